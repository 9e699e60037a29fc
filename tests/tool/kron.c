/* `zellige kron` as its users meet it: small integers in files, so that every answer is exact, and what it says. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/tool/run.h"

enum { FACTORS = 3, MOST = 16, ROWS = 12, COLUMNS = 12, R = 5 };

/* Rows and columns of F1, F2, F3; their product is ROWS x COLUMNS. */
static const int shapes[FACTORS][2] = {{2, 3}, {3, 2}, {2, 2}};
static double factors[FACTORS][MOST], x[ROWS * R], xt[ROWS * R], y[COLUMNS * R + 8];

static double small(uint64_t *state) {
  return (double)(int)(9 * zlg_test_uniform(state)) - 4;
}

static void write_both(const char *name, const double *values, int count) {
  float narrow[ROWS * R];
  char path[32];
  for (int i = 0; i < count; i++) narrow[i] = (float)values[i];
  snprintf(path, sizeof path, "%s.f64", name);
  zlg_write_file(path, values, (size_t)count * sizeof *values);
  snprintf(path, sizeof path, "%s.f32", name);
  zlg_write_file(path, narrow, (size_t)count * sizeof *narrow);
}

static void make_inputs(void) {
  uint64_t state = 7;
  for (int f = 0; f < FACTORS; f++) {
    char name[16];
    int count = shapes[f][0] * shapes[f][1];
    for (int i = 0; i < count; i++) factors[f][i] = small(&state);
    snprintf(name, sizeof name, "f%d", f + 1);
    write_both(name, factors[f], count);
  }
  for (int i = 0; i < COLUMNS; i++)
    for (int j = 0; j < R; j++) xt[j * COLUMNS + i] = x[i * R + j] = small(&state);
  write_both("x", x, COLUMNS * R);
  write_both("xt", xt, COLUMNS * R);
}

/* K[i, j], the factors in `transposed` (bits) transposed. */
static double element(int i, int j, unsigned transposed) {
  double product = 1;
  for (int f = FACTORS - 1; f >= 0; f--) {
    bool turned = transposed >> f & 1;
    int rows = shapes[f][turned], columns = shapes[f][!turned], a = i % rows, b = j % columns;
    product *= factors[f][turned ? b * shapes[f][1] + a : a * shapes[f][1] + b];
    i /= rows, j /= columns;
  }
  return product;
}

static void check_product(const char *path, unsigned transposed, double scale) {
  zlg_check(zlg_read_file(path, y, sizeof y) == sizeof *y * ROWS * R, "the size of the result", path, 0);
  for (int i = 0; i < ROWS; i++)
    for (int r = 0; r < R; r++) {
      double want = 0;
      for (int j = 0; j < COLUMNS; j++) want += element(i, j, transposed) * x[j * R + r];
      ZLG_CHECK_CLOSE(y[i * R + r], scale * want, 0);
    }
}

#define FACTORS_F64 "-f f1.f64:2x3 -f f2.f64:3x2 -f f3.f64:2x2 "
#define FACTORS_F32 "-f f1.f32:2x3 -f f2.f32:3x2 -f f3.f32:2x2 "

static void factors_multiply_in_their_order(void) {
  char line[500];
  snprintf(line, sizeof line, "$z kron " FACTORS_F64 "-x x.f64:12x5 -o y.f64 --tile 1x1 --explain %s",
           zlg_tool_workers());
  RUN(line, 0);
  check_product("y.f64", 0, 1);
  CHECK_SAYS("Kronecker product of 3 factors, 12 x 12 f64");
  CHECK_SAYS("right-hand side 5 columns");
  CHECK_SAYS("predicted");
  CHECK(*zlg_err_text == 0);
}

static void x_may_stand_on_the_left(void) {
  /* X K = (K^T X^T)^T */
  RUN("$z kron " FACTORS_F64 "--side right --trans 1,2,3,x -x x.f64:12x5 -o y.f64:col --explain", 0);
  CHECK_SAYS("left-hand side  5 rows");
  check_product("y.f64", 0, 1);
  RUN("$z kron " FACTORS_F64 "--side=right -q -x xt.f64:5x12 -o y.f64:col", 0);
  check_product("y.f64", 7, 1);
}

static void each_factor_and_x_may_be_transposed(void) {
  RUN("$z kron " FACTORS_F64 "-q --trans 3 -x x.f64:12x5 -o y.f64", 0);
  check_product("y.f64", 4, 1);
  RUN("$z kron " FACTORS_F64 "-q --trans 1,2,x -x xt.f64:5x12 -o y.f64", 0);
  check_product("y.f64", 3, 1);
  RUN("$z kron " FACTORS_F64 "-q -t --trans=1,2 -x x.f64:12x5 -o y.f64", 0);
  check_product("y.f64", 4, 1);
}

static void a_factor_and_an_old_result_are_taken_in(void) {
  RUN("$z kron " FACTORS_F64 "-q --scale 2 -x x.f64:12x5 -o y.f64 && "
      "$z kron " FACTORS_F64 "-q --scale 4 --beta -0.5 --y0 y.f64:12x5 -x x.f64:12x5 -o y.f64",
      0);
  check_product("y.f64", 0, 3);
}

static void f32_files_give_an_f32_result(void) {
  float narrow[ROWS * R + 1];
  RUN("$z kron " FACTORS_F32 "-q -x x.f32:12x5 -o y.f32 && $z kron " FACTORS_F64 "-q -x x.f64:12x5 -o y.f64", 0);
  CHECK(zlg_read_file("y.f32", narrow, sizeof narrow) == sizeof *narrow * ROWS * R);
  check_product("y.f64", 0, 1);
  for (int i = 0; i < ROWS * R; i++) ZLG_CHECK_CLOSE(narrow[i], y[i], 0);
}

static void npy_files_go_through(void) {
  /* A result is a factor: (F3 I) x F2 x … with the identity's place taken by a product of its own. */
  RUN("$z kron -q -f f3.f64:2x2 -x f3.f64:2x2 -o ff.npy && $z kron -q -f f3.f64:2x2 -f f3.f64:2x2 -x f1.f64:1x4 "
      "--trans x "
      "-o once.npy && $z kron -q -f ff.npy -f ff.npy -x f1.f64:1x4 --trans x -o twice.npy && "
      "$z kron -q -f f3.f64:2x2 -f f3.f64:2x2 -x once.npy -o again.npy && cmp twice.npy again.npy && head -c 6 "
      "again.npy",
      0);
  CHECK_SAYS("NUMPY");
}

static void the_output_may_be_the_file_of_x(void) {
  RUN("cp x.f64 same.f64 && $z kron " FACTORS_F64 "-q -x same.f64:12x5 -o same.f64", 0);
  check_product("same.f64", 0, 1);
}

static void json_has_factors_plan_and_report(void) {
  char line[500];
  snprintf(line, sizeof line, "$z kron " FACTORS_F64 "--trans 2,1 -t --side right -x xt.f64:5x12 -o y.npy --json %s",
           zlg_tool_workers());
  RUN(line, 0);
  CHECK(*zlg_out_text == '{');
  const char *const members[] = {"\"command\": \"kron\"", "\"side\": \"right\"", "\"path\": \"f3.f64\"",
                                 "\"path\": \"xt.f64\"",  "\"transpose\": true", "\"transpose\": false",
                                 "\"plan\": {",           "\"report\": {",       "\"work_unit\": \"flops\"",
                                 "\"path\": \"y.npy\""};
  for (size_t i = 0; i < sizeof members / sizeof *members; i++) CHECK_SAYS(members[i]);
}

static void a_dry_run_makes_nothing(void) {
  remove("y.npy");
  RUN("$z kron " FACTORS_F64 "-x x.f64:12x5 -o y.npy --dry-run", 0);
  CHECK_SAYS("plan");
  CHECK(!zlg_exists("y.npy"));
  RUN("$z kron " FACTORS_F64 "-x x.f64:12x5 -n --json", 0);
  CHECK_SAYS("\"flops\"");
  CHECK(!strstr(zlg_out_text, "\"report\""));
}

static void usage_errors_exit_2_and_say_where_help_is(void) {
  const struct {
    const char *line, *says;
  } cases[] = {
      {"$z kron", "expected --factor FILE"},
      {"$z kron -f a.npy -o y.npy", "no X; expected -x FILE"},
      {"$z kron -f a.npy -x x.npy", "expected -o FILE"},
      {"$z kron -f a.npy b.npy -x x.npy -o y.npy", "'b.npy': unexpected"},
      {"$z kron -f a.npy -x x.npy -o y.npy --trans 2", "--trans: '2'; expected numbers of factors, 1 to 1, and x"},
      {"$z kron -f a.npy -x x.npy -o y.npy --trans 1,", "--trans: ''"},
      {"$z kron -f a.npy -x x.npy -o y.npy --side up", "expected left or right"},
      {"$z kron -f a.dat -x x.npy -o y.npy", "--factor: a.dat: unknown format"},
      {"$z kron -f a.npy -x x.f64 -o y.npy", "--x: x.f64: raw file without a shape"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    RUN(cases[i].line, 2);
    CHECK_COMPLAINS(cases[i].says);
    CHECK_COMPLAINS("--help' for");
    CHECK(*zlg_out_text == 0);
  }
}

static void errors_name_the_culprit_and_exit_1(void) {
  const struct {
    const char *line, *says;
  } cases[] = {
      {"$z kron -f none.npy -x x.f64:12x5 -o y.npy", "zellige: kron: none.npy: "},
      {"$z kron -f f1.f64:2x3 -x x.f64:12x5 -o y.npy", "F1 is f1.f64, 2 x 3 f64"},
      {"$z kron -f f1.f64:2x3 -x xt.f64:5x12 --trans x,1 -o y.npy", "X^T is xt.f64, 5 x 12 f64"},
      {"$z kron -f f1.f64:2x3 -f f2.f32:3x2 -x x.f64:6x5 -o y.npy", "F2 is f2.f32, 3 x 2 f32"},
      {"$z kron " FACTORS_F32 "-x x.f64:12x5 -o y.npy", "X is x.f64, 12 x 5 f64"},
      {"$z kron " FACTORS_F64 "-x x.f64:12x5 -o y.f32", "named f32"},
      {"$z kron " FACTORS_F64 "-x x.f64:12x5 -o y.npy --y0 x.f64:6x10", "expected the result's 12 x 5 f64"},
      {"$z kron " FACTORS_F64 "--side right -x xt.f64:5x12 -o y.npy --y0 x.f64:6x10",
       "expected the result's 5 x 12 f64"},
      {"$z kron " FACTORS_F64 "-x x.f64:12x5 -o none/y.npy", "none/y.npy"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    remove("y.npy");
    RUN(cases[i].line, 1);
    CHECK_COMPLAINS("zellige: kron: ");
    CHECK_COMPLAINS(cases[i].says);
    CHECK(*zlg_out_text == 0);
    CHECK(!zlg_exists("y.npy"));
  }
  CHECK(zlg_files_like("y.npy") == 0);
}

/* Zeros without blocks on the disk, for seconds of work. */
static void an_interrupt_leaves_no_file(void) {
  char line[400];
  RUN("truncate -s 16777216 long.f32; truncate -s 4294967296 many.f32", 0);
  snprintf(line, sizeof line,
           "exec $z kron -f long.f32:2048x2048 -f long.f32:2048x2048 --side right -x many.f32:256x4194304 -o y.npy %s",
           zlg_tool_workers());
  zlg_check_dies_cleanly(zlg_start_long(line, "y.npy"), SIGINT, "y.npy",
                         "zellige: kron: interrupted; y.npy was not made");
  RUN("rm long.f32 many.f32", 0);
}

#define CASE(name)                                                                                                     \
  { #name, name }

static const struct zlg_test_case cases[] = {CASE(factors_multiply_in_their_order),
                                             CASE(x_may_stand_on_the_left),
                                             CASE(each_factor_and_x_may_be_transposed),
                                             CASE(a_factor_and_an_old_result_are_taken_in),
                                             CASE(f32_files_give_an_f32_result),
                                             CASE(npy_files_go_through),
                                             CASE(the_output_may_be_the_file_of_x),
                                             CASE(json_has_factors_plan_and_report),
                                             CASE(a_dry_run_makes_nothing),
                                             CASE(usage_errors_exit_2_and_say_where_help_is),
                                             CASE(errors_name_the_culprit_and_exit_1),
                                             CASE(an_interrupt_leaves_no_file),
                                             {NULL, NULL}};

/* What devices can change. */
static const struct zlg_test_case device_cases[] = {
    CASE(factors_multiply_in_their_order), CASE(json_has_factors_plan_and_report), {NULL, NULL}};

int main(int argc, char **argv) {
  if (!zlg_tool_begin()) return 1;
  make_inputs();
  return zlg_test_main(argc, argv, zlg_test_mode() == ZLG_TEST_CPU ? cases : device_cases);
}
