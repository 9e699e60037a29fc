/* `zellige product`: Y = scale K(X1, X2) B + beta Y0 on files, the kernel matrix K never formed. */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/job.h"
#include "tools/json.h"
#include "tools/kernels.h"
#include "tools/number.h"
#include "tools/tool.h"

enum { KEY_ALPHA = 0x5000, KEY_GAMMA, KEY_OFFSET, KEY_DEGREE };
enum { X1, X2, B, INPUTS };
static const char *const input_names[INPUTS] = {"X1", "X2", "B "};

struct product {
  struct job job;
  zlg_kernel_spec spec;
  unsigned given; /* kernel_parameter bits seen on the line */
  double *lengthscales;
  size_t lengthscale_count;
  struct filespec files[INPUTS];
  zlg_matrix *inputs[INPUTS];
  int file_count;
  char title[48];
};

static const struct argp_option options[] = {
    {NULL, 0, NULL, 0, "Kernel:", 1},
    {"kernel", 'k', "NAME", 0, "gaussian, exponential, matern52, ...: see 'zellige kernels'", 1},
    {"lengthscale", 'l', "L[,L...]", 0, "One for all dimensions, or one each (default: 1)", 1},
    {"alpha", KEY_ALPHA, "A", 0, "rational-quadratic: its exponent", 1},
    {"gamma", KEY_GAMMA, "G", 0, "polynomial, sigmoid: factor of the scalar product", 1},
    {"offset", KEY_OFFSET, "C", 0, "linear, polynomial, sigmoid: added to the scalar product", 1},
    {"degree", KEY_DEGREE, "P", 0, "polynomial: the power, an integer", 1},
    {0}};

static const char doc[] =
    "Computes Y = K B, where K[i][j] = k(x_i, y_j) for the rows x_i of X1 (M x D) and y_j of X2 (N x D) and B is N x "
    "R; "
    "Y is M x R. Without B: a column of ones. K is never formed and the files need not fit in memory."
    "\v"
    "Files are NumPy (FILE.npy) or raw binary (FILE:f32:ROWSxCOLUMNS[:col][:ld=N][:+BYTES], also f64; rows left out "
    "are "
    "taken from the file's size, as in points.f32:x3). The output is FILE.npy, or raw when named FILE.f32, FILE.f64, "
    "FILE.raw or FILE:raw; :col makes it column-major.\n"
    "\n"
    "Examples:\n"
    "  zellige product -k gaussian -l 0.1 grid.npy points.npy -o density.npy\n"
    "  zellige product -k matern52 -l 1,2,5 X1.npy X2.npy B.npy -o Y.npy --explain\n"
    "  zellige product -k linear X.npy X.npy B.npy -o Y.npy --y0 Y.npy --beta 0.5\n"
    "  zellige product -k gaussian x.f32:1000x3 y.f32:x3 -o y.f32 --memory 500M";

static double parse_parameter(struct product *product, enum kernel_parameter bit, const char *name, const char *text) {
  double value;
  if (!parse_double(text, &value)) tool_usage_error("--%s: '%s'; expected a number", name, text);
  product->given |= bit;
  return value;
}

static void parse_degree(struct product *product, const char *text) {
  int64_t degree;
  if (!parse_int64(text, &degree) || degree > INT32_MAX || degree < INT32_MIN)
    tool_usage_error("--degree: '%s'; expected an integer", text);
  product->spec.degree = (int)degree;
  product->given |= HAS_DEGREE;
}

static void parse_lengthscale(struct product *product, const char *text) {
  size_t count;
  double *list = parse_list(text, &count);
  if (!list) tool_usage_error("--lengthscale: '%s': item %zu is no number", text, count + 1);
  free(product->lengthscales);
  product->lengthscales = list;
  product->lengthscale_count = count;
}

static void parse_kernel(struct product *product, const char *name) {
  product->spec.kind = zlg_kernel_from_name(name);
  if (!product->spec.kind) tool_usage_error("--kernel: no kernel '%s'; 'zellige kernels' lists them", name);
}

static void parse_input(struct product *product, const char *text) {
  char message[256];
  if (product->file_count == INPUTS) tool_usage_error("'%s': too many files; expected X1 X2 [B]", text);
  struct filespec *spec = &product->files[product->file_count++];
  if (!filespec_parse(spec, text, false, message, sizeof message)) tool_usage_error("%s: %s", text, message);
}

/* Defaults of the kernel named for the parameters that were not given; a parameter that it has not is refused. */
static void complete_kernel(struct product *product) {
  static const char *const names[] = {"alpha", "gamma", "offset", "degree"};
  zlg_kernel_spec defaults, *spec = &product->spec;
  if (!spec->kind) tool_usage_error("no kernel; expected --kernel NAME ('zellige kernels' lists them)");
  const struct kernel_row *row = kernel_of(spec->kind);
  unsigned foreign = row ? product->given & ~row->parameters : 0;
  if (foreign) {
    int first = __builtin_ctz(foreign);
    tool_usage_error("--%s: the %s kernel has no such parameter; expected %s%s", names[first],
                     zlg_kernel_name(spec->kind), kernel_parameters(row).s,
                     foreign & HAS_ALPHA ? " (--scale multiplies the product)" : "");
  }
  zlg_kernel_spec_init(&defaults, spec->kind);
  if (product->given & HAS_ALPHA) defaults.alpha = spec->alpha;
  if (product->given & HAS_GAMMA) defaults.gamma = spec->gamma;
  if (product->given & HAS_OFFSET) defaults.offset = spec->offset;
  if (product->given & HAS_DEGREE) defaults.degree = spec->degree;
  if (product->lengthscales) {
    defaults.lengthscales = product->lengthscales;
    defaults.lengthscale_count = (int64_t)product->lengthscale_count;
  }
  *spec = defaults;
}

static error_t parse(int key, char *argument, struct argp_state *state) {
  struct product *product = state->input;
  switch (key) {
  case ARGP_KEY_INIT:
    state->child_inputs[0] = &product->job;
    return 0;
  case 'k':
    parse_kernel(product, argument);
    return 0;
  case 'l':
    parse_lengthscale(product, argument);
    return 0;
  case KEY_ALPHA:
    product->spec.alpha = parse_parameter(product, HAS_ALPHA, "alpha", argument);
    return 0;
  case KEY_GAMMA:
    product->spec.gamma = parse_parameter(product, HAS_GAMMA, "gamma", argument);
    return 0;
  case KEY_OFFSET:
    product->spec.offset = parse_parameter(product, HAS_OFFSET, "offset", argument);
    return 0;
  case KEY_DEGREE:
    parse_degree(product, argument);
    return 0;
  case ARGP_KEY_ARG:
    parse_input(product, argument);
    return 0;
  case ARGP_KEY_END:
    if (product->file_count < 2) tool_usage_error("%d of the files X1 and X2 given", product->file_count);
    complete_kernel(product);
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

/* B where none is given: a column of ones, of X1's type. */
static int make_ones(struct product *product) {
  zlg_matrix_info x1, other;
  zlg_matrix_get_info(product->inputs[X1], &x1);
  zlg_matrix_get_info(product->inputs[product->job.op == ZLG_NOTRANS ? X2 : X1], &other);
  int status = zlg_matrix_constant(product->job.context, &product->inputs[B], x1.type, other.rows, 1, 1);
  return status ? job_failed(&product->job, status) : TOOL_OK;
}

static json_t *about_json(const struct product *product) {
  const zlg_kernel_spec *spec = &product->spec;
  const struct kernel_row *row = kernel_of(spec->kind);
  json_t *lengthscales = json_array();
  for (int64_t i = 0; i < spec->lengthscale_count; i++)
    json_array_append_new(lengthscales, json_real(spec->lengthscales[i]));
  json_t *kernel = json_pack("{s:s, s:o}", "name", zlg_kernel_name(spec->kind), "lengthscale", lengthscales);
  unsigned has = row ? row->parameters : 0;
  if (has & HAS_ALPHA) json_object_set_new(kernel, "alpha", json_real(spec->alpha));
  if (has & HAS_GAMMA) json_object_set_new(kernel, "gamma", json_real(spec->gamma));
  if (has & HAS_OFFSET) json_object_set_new(kernel, "offset", json_real(spec->offset));
  if (has & HAS_DEGREE) json_object_set_new(kernel, "degree", json_integer(spec->degree));
  return json_pack("{s:s, s:s, s:o, s:b, s:f, s:{s:o, s:o, s:o}}", "version", zlg_version(), "command", "product",
                   "kernel", kernel, "transpose", product->job.op == ZLG_TRANS, "scale", product->job.scale, "inputs",
                   "X1", matrix_json(product->inputs[X1]), "X2", matrix_json(product->inputs[X2]), "B",
                   matrix_json(product->file_count > B ? product->inputs[B] : NULL));
}

static int run(struct product *product) {
  struct job *job = &product->job;
  if (job_start(job)) return TOOL_FAILED;
  for (int i = 0; i < product->file_count; i++)
    if (filespec_open(job->context, &product->inputs[i], &product->files[i])) return TOOL_FAILED;
  if (product->file_count <= B && make_ones(product)) return TOOL_FAILED;
  char *operands = job_describe(INPUTS, input_names, product->inputs, "a column of ones");
  job->operands = operands;
  snprintf(product->title, sizeof product->title, "%s kernel", zlg_kernel_name(product->spec.kind));
  job->title = product->title;
  int status = zlg_kernel(job->context, &job->A, &product->spec, product->inputs[X1], product->inputs[X2]);
  int code;
  if (status) {
    code = job_failed(job, status);
  } else {
    json_t *about = about_json(product);
    job->X = product->inputs[B];
    product->inputs[B] = NULL; /* the job's now */
    code = job_run(job, about);
  }
  job->operands = NULL;
  free(operands);
  return code;
}

int command_product(int argc, char **argv) {
  static const struct argp_child children[] = {{&job_argp, 0, NULL, 0}, {0}};
  static const struct argp argp = {options, parse, "X1 X2 [B]", doc, children, NULL, NULL};
  struct product product = {.file_count = 0};
  job_init(&product.job);
  tool_parse(&argp, argc, argv, &product);
  int code = run(&product);
  for (int i = 0; i < INPUTS; i++) {
    zlg_matrix_release(product.inputs[i]);
    filespec_free(&product.files[i]);
  }
  job_end(&product.job);
  free(product.lengthscales);
  return code;
}
