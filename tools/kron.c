/* `zellige kron`: Y = scale (op(F1) x ... x op(Fn)) X + beta Y0 on files, or with X on the left; the product of the
 * factors never formed. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/job.h"
#include "tools/json.h"
#include "tools/number.h"
#include "tools/tool.h"

enum { KEY_SIDE = 0x6000, KEY_TRANS };

struct kron {
  struct job job;
  int count, room;
  struct filespec *files; /* of the factors */
  zlg_matrix **factors;
  zlg_op *ops;
  struct filespec x_file;
  zlg_matrix *x;
  bool x_trans;
  const char *trans; /* --trans as given */
  char title[64];
};

static const struct argp_option options[] = {
    {NULL, 0, NULL, 0, "Product:", 1},
    {"factor", 'f', "FILE", 0, "A factor; once for each, in the order of the product", 1},
    {"x", 'x', "FILE", 0, "The matrix that is multiplied", 1},
    {"side", KEY_SIDE, "left|right", 0,
     "Where the product of the factors stands: Y = K X (left, the default) or Y = X K", 1},
    {"trans", KEY_TRANS, "LIST", 0, "What is transposed first: numbers of factors, from 1, and x; as in 1,3,x", 1},
    {0}};

static const char doc[] =
    "Computes Y = K X, where K is the Kronecker product of the factors, F1 x F2 x ... x Fn: with F1 of P1 x Q1 and so "
    "on it has P1 P2 ... Pn rows and Q1 Q2 ... Qn columns, and the last factor's indices run fastest. K is never "
    "formed "
    "and the files need not fit in memory."
    "\v"
    "Factors and X have one element type, which is also that of the result. Files are NumPy (FILE.npy) or raw binary "
    "(FILE:f32:ROWSxCOLUMNS[:col][:ld=N][:+BYTES], also f64). The output is FILE.npy, or raw when named FILE.f32, "
    "FILE.f64, FILE.raw or FILE:raw; :col makes it column-major.\n"
    "\n"
    "Examples:\n"
    "  zellige kron -f F1.npy -f F2.npy -x X.npy -o Y.npy\n"
    "  zellige kron -f F.npy -f F.npy -f F.npy --trans 2,x --side right -x X.npy -o Y.npy --explain\n"
    "  zellige kron -f time.npy -f space.npy -x X.npy -o Y.npy --y0 Y.npy --beta 0.5 --memory 2G";

static void out_of_memory(void) {
  tool_error("out of memory");
  exit(TOOL_FAILED);
}

static void parse_file(struct filespec *spec, const char *name, const char *text) {
  char message[256];
  filespec_free(spec);
  if (!filespec_parse(spec, text, false, message, sizeof message))
    tool_usage_error("--%s: %s: %s", name, text, message);
}

static void parse_factor(struct kron *kron, const char *text) {
  if (kron->count == kron->room) {
    kron->room = 2 * kron->room + 8;
    kron->files = realloc(kron->files, (size_t)kron->room * sizeof *kron->files);
    if (!kron->files) out_of_memory();
  }
  kron->files[kron->count] = (struct filespec){.path = NULL};
  parse_file(&kron->files[kron->count++], "factor", text);
}

static bool parse_side(const char *text) {
  if (strcmp(text, "left") && strcmp(text, "right")) tool_usage_error("--side: '%s'; expected left or right", text);
  return text[0] == 'r';
}

/* --trans, once the factors are counted. */
static void parse_trans(struct kron *kron) {
  char *list = strdup(kron->trans), *rest = list;
  if (!list) out_of_memory();
  for (char *word; (word = strsep(&rest, ","));) {
    int64_t which = 0;
    if (!strcmp(word, "x") || !strcmp(word, "X"))
      kron->x_trans = true;
    else if (parse_int64(word, &which) && which >= 1 && which <= kron->count)
      kron->ops[which - 1] = ZLG_TRANS;
    else
      tool_usage_error("--trans: '%s'; expected numbers of factors, 1 to %d, and x", word, kron->count);
  }
  free(list);
}

static void complete(struct kron *kron) {
  if (!kron->count) tool_usage_error("no factor; expected --factor FILE, once for each");
  if (!kron->x_file.path) tool_usage_error("no X; expected -x FILE");
  kron->factors = calloc((size_t)kron->count, sizeof *kron->factors);
  kron->ops = calloc((size_t)kron->count, sizeof *kron->ops);
  if (!kron->factors || !kron->ops) out_of_memory();
  for (int i = 0; i < kron->count; i++) kron->ops[i] = ZLG_NOTRANS;
  if (kron->trans) parse_trans(kron);
}

static error_t parse(int key, char *argument, struct argp_state *state) {
  struct kron *kron = state->input;
  switch (key) {
  case ARGP_KEY_INIT:
    state->child_inputs[0] = &kron->job;
    return 0;
  case 'f':
    parse_factor(kron, argument);
    return 0;
  case 'x':
    parse_file(&kron->x_file, "x", argument);
    return 0;
  case KEY_SIDE:
    kron->job.right = parse_side(argument);
    return 0;
  case KEY_TRANS:
    kron->trans = argument;
    return 0;
  case ARGP_KEY_ARG:
    tool_usage_error("'%s': unexpected; files are named by --factor and -x", argument);
  case ARGP_KEY_END:
    complete(kron);
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

/* What the files are, for errors of shapes and types. */
static char *describe(const struct kron *kron) {
  int count = kron->count + 1;
  char(*names)[24] = calloc((size_t)count, sizeof *names);
  const char **pointers = calloc((size_t)count, sizeof *pointers);
  zlg_matrix **matrices = calloc((size_t)count, sizeof *matrices);
  char *text = NULL;
  if (names && pointers && matrices) {
    for (int i = 0; i < count; i++) {
      bool is_x = i == kron->count, trans = is_x ? kron->x_trans : kron->ops[i] == ZLG_TRANS;
      if (is_x)
        snprintf(names[i], sizeof *names, "X%s", trans ? "^T" : "");
      else
        snprintf(names[i], sizeof *names, "F%d%s", i + 1, trans ? "^T" : "");
      pointers[i] = names[i];
      matrices[i] = is_x ? kron->x : kron->factors[i];
    }
    text = job_describe(count, pointers, matrices, "a constant");
  }
  free(names);
  free(pointers);
  free(matrices);
  return text;
}

static json_t *about_json(const struct kron *kron) {
  json_t *factors = json_array();
  for (int i = 0; i < kron->count; i++) {
    json_t *factor = matrix_json(kron->factors[i]);
    json_object_set_new(factor, "transpose", json_boolean(kron->ops[i] == ZLG_TRANS));
    json_array_append_new(factors, factor);
  }
  json_t *x = matrix_json(kron->x);
  json_object_set_new(x, "transpose", json_boolean(kron->x_trans));
  return json_pack("{s:s, s:s, s:s, s:b, s:f, s:{s:o, s:o}}", "version", zlg_version(), "command", "kron", "side",
                   kron->job.right ? "right" : "left", "transpose", kron->job.op == ZLG_TRANS, "scale", kron->job.scale,
                   "inputs", "factors", factors, "X", x);
}

/* X as it is multiplied, the job's. */
static int take_x(struct kron *kron) {
  struct job *job = &kron->job;
  if (!kron->x_trans) {
    job->X = kron->x;
    kron->x = NULL;
    return ZLG_OK;
  }
  return zlg_matrix_transpose(kron->x, &job->X);
}

static int open_files(struct kron *kron) {
  for (int i = 0; i < kron->count; i++)
    if (filespec_open(kron->job.context, &kron->factors[i], &kron->files[i])) return TOOL_FAILED;
  return filespec_open(kron->job.context, &kron->x, &kron->x_file);
}

static int run(struct kron *kron) {
  struct job *job = &kron->job;
  if (job_start(job) || open_files(kron)) return TOOL_FAILED;
  char *operands = describe(kron);
  job->operands = operands;
  snprintf(kron->title, sizeof kron->title, "Kronecker product of %d factor%s", kron->count,
           kron->count == 1 ? "" : "s");
  job->title = kron->title;
  job->progress.unit = "flop";
  json_t *about = about_json(kron);
  int status = zlg_kron(job->context, &job->A, kron->count, kron->factors, kron->ops), code;
  if (!status) status = take_x(kron);
  if (status) {
    json_decref(about);
    code = job_failed(job, status);
  } else {
    code = job_run(job, about);
  }
  job->operands = NULL;
  free(operands);
  return code;
}

int command_kron(int argc, char **argv) {
  static const struct argp_child children[] = {{&job_argp, 0, NULL, 0}, {0}};
  static const struct argp argp = {options, parse, NULL, doc, children, NULL, NULL};
  struct kron kron = {.count = 0};
  job_init(&kron.job);
  tool_parse(&argp, argc, argv, &kron);
  int code = run(&kron);
  for (int i = 0; i < kron.count; i++) {
    zlg_matrix_release(kron.factors[i]);
    filespec_free(&kron.files[i]);
  }
  zlg_matrix_release(kron.x);
  filespec_free(&kron.x_file);
  job_end(&kron.job);
  free(kron.files);
  free(kron.factors);
  free(kron.ops);
  return code;
}
