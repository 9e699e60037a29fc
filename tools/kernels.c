/* `zellige kernels`, and the table behind it: see kernels.h. */
#include "tools/kernels.h"

#include <stdio.h>
#include <string.h>

#include "tools/json.h"
#include "tools/table.h"
#include "tools/terminal.h"
#include "tools/tool.h"

static const struct kernel_row rows[] = {
    {ZLG_GAUSSIAN, 0, "exp(-r^2/2)"},
    {ZLG_EXPONENTIAL, 0, "exp(-r)"},
    {ZLG_LAPLACIAN, 0, "exp(-r1)"},
    {ZLG_MATERN12, 0, "exp(-r)"},
    {ZLG_MATERN32, 0, "(1 + s) exp(-s), s = sqrt(3) r"},
    {ZLG_MATERN52, 0, "(1 + s + s^2/3) exp(-s), s = sqrt(5) r"},
    {ZLG_RATIONAL_QUADRATIC, HAS_ALPHA, "(1 + r^2/(2 alpha))^-alpha"},
    {ZLG_INVERSE_MULTIQUADRIC, 0, "1/sqrt(1 + r^2)"},
    {ZLG_CAUCHY, 0, "1/(1 + r^2)"},
    {ZLG_ENERGY, 0, "-r"},
    {ZLG_LINEAR, HAS_OFFSET, "p + offset"},
    {ZLG_POLYNOMIAL, HAS_GAMMA | HAS_OFFSET | HAS_DEGREE, "(gamma p + offset)^degree"},
    {ZLG_SIGMOID, HAS_GAMMA | HAS_OFFSET, "tanh(gamma p + offset)"},
};
enum { ROWS = sizeof rows / sizeof rows[0] };

const struct kernel_row *kernel_at(int index) {
  return index >= 0 && index < ROWS ? &rows[index] : NULL;
}

const struct kernel_row *kernel_of(zlg_kernel_kind kind) {
  for (int i = 0; i < ROWS; i++)
    if (rows[i].kind == kind) return &rows[i];
  return NULL;
}

struct kernel_words kernel_parameters(const struct kernel_row *row) {
  static const char *const names[] = {"alpha", "gamma", "offset", "degree"};
  struct kernel_words words = {"lengthscale"};
  for (unsigned i = 0; i < 4; i++)
    if (row->parameters & 1u << i) {
      strcat(words.s, ", ");
      strcat(words.s, names[i]);
    }
  return words;
}

enum form { AS_TABLE, AS_NAMES, AS_JSON };
enum { KEY_NAMES = 0x3000, KEY_JSON };

static error_t parse(int key, char *argument, struct argp_state *state) {
  enum form *form = state->input;
  switch (key) {
  case KEY_NAMES:
    *form = AS_NAMES;
    return 0;
  case KEY_JSON:
    *form = AS_JSON;
    return 0;
  case ARGP_KEY_ARG:
    tool_usage_error("'%s': no argument expected", argument);
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

static int print_names(void) {
  for (int i = 0; i < ROWS; i++) puts(zlg_kernel_name(rows[i].kind));
  return tool_finish(TOOL_OK);
}

static int print_kernels_json(void) {
  json_t *kernels = json_array();
  for (int i = 0; i < ROWS; i++) {
    zlg_kernel_spec defaults;
    zlg_kernel_spec_init(&defaults, rows[i].kind);
    json_t *parameters = json_pack("{s:f}", "lengthscale", 1.0);
    if (rows[i].parameters & HAS_ALPHA) json_object_set_new(parameters, "alpha", json_real(defaults.alpha));
    if (rows[i].parameters & HAS_GAMMA) json_object_set_new(parameters, "gamma", json_real(defaults.gamma));
    if (rows[i].parameters & HAS_OFFSET) json_object_set_new(parameters, "offset", json_real(defaults.offset));
    if (rows[i].parameters & HAS_DEGREE) json_object_set_new(parameters, "degree", json_integer(defaults.degree));
    json_array_append_new(kernels, json_pack("{s:s, s:s, s:o}", "name", zlg_kernel_name(rows[i].kind), "formula",
                                             rows[i].formula, "parameters", parameters));
  }
  return print_json(json_pack("{s:s, s:o}", "version", zlg_version(), "kernels", kernels));
}

static int print_table(void) {
  const char *const headers[] = {"kernel", "k(x, y)", "parameters", NULL};
  struct table *table = table_new(headers);
  for (int i = 0; i < ROWS; i++) {
    struct kernel_words words = kernel_parameters(&rows[i]);
    const char *cells[] = {zlg_kernel_name(rows[i].kind), rows[i].formula, words.s};
    table_add(table, cells);
  }
  table_print(table, stdout, 0);
  puts("\nWith points scaled by the lengthscale (one, or one a dimension), u = x/l and v = y/l:\n"
       "r = |u - v|, the Euclidean distance; r1 = the sum of |u_k - v_k|; p = (u|v), the scalar product.");
  return tool_finish(TOOL_OK);
}

int command_kernels(int argc, char **argv) {
  static const struct argp_option options[] = {{"names", KEY_NAMES, NULL, 0, "Names only, one a line", 1},
                                               {"json", KEY_JSON, NULL, 0, "One JSON object, with the defaults", 1},
                                               {0}};
  const struct argp argp = {options, parse, "", "Lists the kernels of 'zellige product'.", NULL, NULL, NULL};
  enum form form = AS_TABLE;
  tool_parse(&argp, argc, argv, &form);
  return form == AS_NAMES ? print_names() : form == AS_JSON ? print_kernels_json() : print_table();
}
