/* The `zellige` command as its users meet it: right answers in files, messages, exit codes, what an interrupt leaves.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/tool/run.h"

/* The kernel, types and numbers of columns of whatever runs on devices: one program to compile, which takes PoCL
 * seconds. */
#define KERNEL "-k gaussian -l 0.5,0.25,1 --tile 64x64"

enum { M = 300, N = 500, D = 3, R = 2 };
static double x1[M * D], x2[N * D], b[N * R], y[N * R + 16], want[M * R];
static float f1[M * D], f2[N * D], fb[N * R];

static void make_inputs(void) {
  uint64_t state = 1;
  for (int i = 0; i < M * D; i++) x1[i] = f1[i] = (float)zlg_test_uniform(&state);
  for (int i = 0; i < N * D; i++) x2[i] = f2[i] = (float)zlg_test_uniform(&state);
  for (int i = 0; i < N * R; i++) b[i] = fb[i] = (float)zlg_test_uniform(&state);
  zlg_write_file("x1.f64", x1, sizeof x1);
  zlg_write_file("x2.f64", x2, sizeof x2);
  zlg_write_file("b.f64", b, sizeof b);
  zlg_write_file("x1.f32", f1, sizeof f1);
  zlg_write_file("x2.f32", f2, sizeof f2);
  zlg_write_file("b.f32", fb, sizeof fb);
}

static double kernel_value(const zlg_kernel_spec *spec, int i, int j) {
  return (double)zlg_reference_kernel(spec, D, ZLG_F64, x1 + i * D, 1, x2 + j * D, 1);
}

/* Sums of N positive terms below 1: |error| <= gamma_(N+20) N by Higham's bound with a kernel good to 20 roundings. */
static double bound(zlg_type type) {
  return (double)zlg_test_gamma(N + 20, type) * N;
}

static void reference(const zlg_kernel_spec *spec) {
  for (int i = 0; i < M; i++)
    for (int k = 0; k < R; k++) {
      long double sum = 0;
      for (int j = 0; j < N; j++) sum += (long double)kernel_value(spec, i, j) * (long double)b[j * R + k];
      want[i * R + k] = (double)sum;
    }
}

static void reference_gaussian(void) {
  static const double l[] = {0.5, 0.25, 1};
  zlg_kernel_spec spec;
  zlg_kernel_spec_init(&spec, ZLG_GAUSSIAN);
  spec.lengthscales = l;
  spec.lengthscale_count = 3;
  reference(&spec);
}

static void raw_files_in_and_out_give_the_right_product(void) {
  char line[500];
  snprintf(line, sizeof line, "$z product " KERNEL " x1.f64:300x3 x2.f64:x3 b.f64:500x2 -o y.f64 %s",
           zlg_tool_workers());
  RUN(line, 0);
  CHECK(zlg_read_file("y.f64", y, sizeof y) == M * R * sizeof *y);
  reference_gaussian();
  for (int i = 0; i < M * R; i++) ZLG_CHECK_CLOSE(y[i], want[i], bound(ZLG_F64));
  CHECK_SAYS("rate");
  CHECK(*zlg_err_text == 0);
}

static void every_worker_of_a_tiled_product_is_in_the_table(void) {
  char line[500];
  snprintf(line, sizeof line,
           "$z product " KERNEL " x1.f64:x3 x2.f64:x3 b.f64:x2 -o y.f64:col --trace t.tsv --explain %s",
           zlg_tool_workers());
  RUN(line, 0);
  CHECK_SAYS("CPU 0");
  CHECK_SAYS("share");
  CHECK_SAYS("tiles of 64 x 64");
  CHECK_SAYS("predicted");
  if (zlg_test_mode() != ZLG_TEST_CPU) CHECK_SAYS("OpenCL 0");
  CHECK(zlg_read_file("y.f64", y, sizeof y) == M * R * sizeof *y);
  reference_gaussian();
  for (int i = 0; i < M; i++)
    for (int k = 0; k < R; k++) ZLG_CHECK_CLOSE(y[i + k * M], want[i * R + k], bound(ZLG_F64));
  /* A row a task under the titles; all pairs are in it. */
  RUN("head -n 1 t.tsv; awk -F'\\t' 'NR > 1 && $3 == \"kernel_product\" { n++; pairs += $6; bad += !($5 >= $4 && $4 >= "
      "0) } END { print n, pairs, bad + 0 }' t.tsv",
      0);
  CHECK_SAYS("worker\tkind\tcodelet\tstart\tend\twork\tindex");
  CHECK_SAYS("40 150000 0");
}

static void f32_files_give_the_right_product(void) {
  RUN("$z product -k matern52 x1.f32:x3 x2.f32:x3 b.f32:x2 -o y.f32", 0);
  zlg_kernel_spec spec;
  zlg_kernel_spec_init(&spec, ZLG_MATERN52);
  reference(&spec);
  float got[M * R + 1];
  CHECK(zlg_read_file("y.f32", got, sizeof got) == M * R * sizeof *got);
  for (int i = 0; i < M * R; i++) ZLG_CHECK_CLOSE(got[i], want[i], bound(ZLG_F32));
}

static void the_transpose_a_factor_and_an_old_result_are_taken_in(void) {
  char line[900];
  snprintf(line, sizeof line,
           "$z product -k linear --offset 1 -q -t x1.f64:x3 x2.f64:x3 -o y.f64 %s && "
           "$z product -k linear --offset 1 -q -t x1.f64:x3 x2.f64:x3 --scale 2 --beta -0.5 --y0 y.f64:x1 -o y.f64 %s",
           zlg_tool_workers(), zlg_tool_workers());
  RUN(line, 0);
  CHECK(*zlg_out_text == 0 && *zlg_err_text == 0);
  CHECK(zlg_read_file("y.f64", y, sizeof y) == N * sizeof *y);
  zlg_kernel_spec spec;
  zlg_kernel_spec_init(&spec, ZLG_LINEAR);
  spec.offset = 1;
  for (int j = 0; j < N; j++) {
    long double sum = 0;
    for (int i = 0; i < M; i++) sum += (long double)kernel_value(&spec, i, j);
    ZLG_CHECK_CLOSE(y[j], 1.5L * sum, 16 * bound(ZLG_F64));
  }
}

static void npy_files_go_through(void) {
  char line[900];
  snprintf(
      line, sizeof line,
      "$z product -k energy -q x1.f64:x3 x2.f64:x3 -o k.npy %s && $z product -k linear -q k.npy k.npy -o kk.npy %s && "
      "head -c 6 kk.npy | tail -c 5; wc -c < kk.npy",
      zlg_tool_workers(), zlg_tool_workers());
  RUN(line, 0);
  CHECK_SAYS("NUMPY");
  CHECK_SAYS("2528"); /* 128 of header, 300 doubles */
}

static void json_has_plan_report_and_workers(void) {
  char line[500];
  snprintf(line, sizeof line, "$z product " KERNEL " x1.f64:x3 x2.f64:x3 b.f64:x2 -o y.npy --json %s",
           zlg_tool_workers());
  RUN(line, 0);
  CHECK(*zlg_out_text == '{');
  const char *const members[] = {
      "\"command\": \"product\"", "\"plan\": {",         "\"report\": {",      "\"share\": ",
      "\"kind\": \"cpu\"",        "\"busy\": ",          "\"machine\": {",     "\"starpu\": \"1.",
      "\"peak_memory_bytes\": ",  "\"path\": \"b.f64\"", "\"work\": 150000.0", "\"direct\": false",
      "\"name\": \"gaussian\"",   "\"path\": \"y.npy\""};
  for (size_t i = 0; i < sizeof members / sizeof *members; i++) CHECK_SAYS(members[i]);
}

static void a_file_name_may_be_any_bytes(void) {
  RUN("cp x1.f64 \"$(printf 'x\\351.f64')\"; $z product -k linear \"$(printf 'x\\351.f64'):x3\" x2.f64:x3 -o y.npy "
      "--json",
      0);
  CHECK_SAYS("\"x?.f64\"");
}

static void the_output_may_be_the_file_of_an_input(void) {
  RUN("$z product -k linear -q x1.f64:x3 x2.f64:x3 -o apart.f64 && cp x1.f64 same.f64 && "
      "$z product -k linear -q same.f64:x3 x2.f64:x3 -o same.f64 && cmp same.f64 apart.f64",
      0);
}

static void a_dry_run_makes_nothing(void) {
  remove("y.npy");
  RUN("$z product -k gaussian x1.f64:x3 x2.f64:x3 -o y.npy --dry-run", 0);
  CHECK_SAYS("plan");
  CHECK_SAYS("300 x 500 f64");
  CHECK_SAYS("150 kpair");
  CHECK(!zlg_exists("y.npy"));
  RUN("$z product -k gaussian x1.f64:x3 x2.f64:x3 -n --json", 0);
  CHECK_SAYS("\"tasks\"");
  CHECK(!strstr(zlg_out_text, "\"report\""));
}

static void usage_errors_exit_2_and_say_where_help_is(void) {
  const struct {
    const char *line, *says;
  } cases[] = {
      {"$z", "Usage: zellige"},
      {"$z prodct", "no command 'prodct'"},
      {"$z --frobnicate", "unrecognized option '--frobnicate'"},
      {"$z product", "0 of the files"},
      {"$z product -k gaussian a.npy b.npy", "expected -o FILE"},
      {"$z product a.npy b.npy -o y.npy", "expected --kernel NAME"},
      {"$z product -k gausian a.npy b.npy -o y.npy", "no kernel 'gausian'"},
      {"$z product -k gaussian --alpha 2 a.npy b.npy -o y.npy", "--scale multiplies the product"},
      {"$z product -k linear --degree 2 a.npy b.npy -o y.npy", "expected lengthscale, offset"},
      {"$z product -k gaussian -l 1,x a.npy b.npy -o y.npy", "item 2 is no number"},
      {"$z product -k gaussian --memory lots a.npy b.npy -o y.npy", "expected a size such as 500M"},
      {"$z product -k gaussian --workers -2 a.npy b.npy -o y.npy", "--workers: '-2'"},
      {"$z product -k gaussian --tile 5 a.npy b.npy -o y.npy", "expected ROWSxCOLUMNS"},
      {"$z product -k gaussian --beta 2 a.npy b.npy -o y.npy", "expected --y0 FILE"},
      {"$z product -k gaussian --scale nan a.npy b.npy -o y.npy", "--scale: 'nan'"},
      {"$z product -k gaussian --progress no a.npy b.npy -o y.npy", "auto, always or never"},
      {"$z product -k gaussian a.dat b.npy -o y.npy", "a.dat: unknown format"},
      {"$z product -k gaussian a.npy b.npy c.npy d.npy -o y.npy", "too many files"},
      {"$z product -k gaussian a.npy b.npy -o y.dat", "y.dat: unknown format"},
      {"$z product --frobnicate", "zellige: product: unrecognized option '--frobnicate'"},
      {"$z product --kernel", "requires an argument"},
      {"$z info extra", "no argument expected"},
      {"$z kernels extra", "no argument expected"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    RUN(cases[i].line, 2);
    CHECK_COMPLAINS(cases[i].says);
    if (i) CHECK_COMPLAINS("--help' for");
    CHECK(*zlg_out_text == 0);
  }
}

static void help_and_version_exit_0(void) {
  RUN("$z --version", 0);
  CHECK_SAYS("zellige " ZLG_VERSION "\n");
  RUN("$z --help", 0);
  CHECK_SAYS("product");
  CHECK_SAYS("kernels");
  RUN("$z help product", 0);
  CHECK_SAYS("Usage: zellige product [OPTION...] X1 X2 [B]");
  CHECK_SAYS("--lengthscale");
  CHECK_SAYS("a column of ones");
  RUN("$z product --usage", 0);
  CHECK_SAYS("Usage: zellige product");
  RUN("$z help nothing", 2);
}

static void every_kernel_is_listed(void) {
  RUN("$z kernels", 0);
  for (int kind = 1; zlg_kernel_name((zlg_kernel_kind)kind); kind++) CHECK_SAYS(zlg_kernel_name((zlg_kernel_kind)kind));
  RUN("$z kernels --names | wc -l", 0);
  int kinds = 0;
  while (zlg_kernel_name((zlg_kernel_kind)(kinds + 1))) kinds++;
  CHECK(atoi(zlg_out_text) == kinds);
  RUN("$z kernels --json", 0);
  CHECK_SAYS("\"degree\": 3");
}

static void errors_name_the_culprit_and_exit_1(void) {
  zlg_write_file("short.npy", "\x93NUMPY\x01\0", 8);
  zlg_write_file("x4.f64", x1, 100 * 4 * 8);
  const struct {
    const char *line, *says;
  } cases[] = {
      {"$z product -k gaussian none.npy x2.f64:x3 -o y.npy", "zellige: product: none.npy: "},
      {"$z product -k gaussian x1.f64:x3 short.npy -o y.npy", "short.npy"},
      {"$z product -k gaussian x1.f64:x3 x4.f64:x4 -o y.npy", "X2 is x4.f64, 100 x 4 f64"},
      {"$z product -k gaussian x1.f64:x3 x2.f32:x3 -o y.npy", "X2 is x2.f32, 500 x 3 f32"},
      {"$z product -k gaussian x1.f64:x3 x2.f64:x3 x1.f64:x1 -o y.npy", "B  is x1.f64, 900 x 1 f64"},
      {"$z product -k gaussian x1.f64:301x3 x2.f64:x3 -o y.npy", "x1.f64"},
      {"$z product -k gaussian -l -1 x1.f64:x3 x2.f64:x3 -o y.npy", "lengthscale"},
      {"$z product -k gaussian -l nan x1.f64:x3 x2.f64:x3 -o y.npy", "nan"},
      {"$z product -k gaussian -l 1,2 x1.f64:x3 x2.f64:x3 -o y.npy", "lengthscale"},
      {"$z product -k gaussian x1.f64:x3 x2.f64:x3 -o none/y.npy", "none/y.npy"},
      {"$z product -k gaussian x1.f64:x3 x2.f64:x3 -o /dev/null:npy", "/dev/null: is no regular file"},
      {"$z product -k gaussian x1.f64:x3 x2.f64:x3 -o y.f32", "named f32"},
      {"$z product -k gaussian x1.f64:x3 x2.f64:x3 -o y.npy --y0 x1.f64:x3", "expected the result's 300 x 1 f64"},
      {"$z product -k gaussian x1.f64:x3 x2.f64:x3 -o y.npy --sched fastest", "--sched = \"fastest\""},
      {"$z product -k gaussian x1.f64:x3 x2.f64:x3 -o y.npy --trace none/t.tsv", "none/t.tsv"},
      {"$z product -k gaussian x1.f64:x3 x2.f64:x3 -o y.npy --opencl 12", "12 OpenCL workers asked for"},
      {"$z product -k gaussian x1.f64:x3 x2.f64:x3 -o y.npy -w 4000", "--workers = 4000; at most "},
      {"$z info --sched fastest", "known: "},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    remove("y.npy");
    RUN(cases[i].line, 1);
    CHECK_COMPLAINS("zellige: ");
    CHECK_COMPLAINS(cases[i].says);
    CHECK(*zlg_out_text == 0);
    CHECK(!zlg_exists("y.npy"));
  }
  CHECK(zlg_files_like("y.npy") == 0);
}

static void a_failing_run_leaves_the_old_output(void) {
  zlg_write_file("y.npy", "old", 3);
  RUN("$z product -k gaussian -l 0 x1.f64:x3 x2.f64:x3 -o y.npy", 1);
  char text[8] = "";
  CHECK(zlg_read_file("y.npy", text, sizeof text) == 3 && !strcmp(text, "old"));
}

static void an_output_nobody_can_write_to_is_an_error(void) {
  if (!zlg_exists("/dev/full")) return;
  RUN("$z info > /dev/full", 1);
  CHECK_COMPLAINS("standard output: No space left on device");
  RUN("$z kernels > /dev/full", 1);
  RUN("$z --version > /dev/full", 1);
  RUN("$z --help > /dev/full", 1);
  RUN("$z product --help > /dev/full", 1);
  RUN("$z product -k gaussian x1.f64:x3 x2.f64:x3 -o y.npy > /dev/full", 1);
  remove("y.npy");
  RUN("$z product -k gaussian x1.f64:x3 x2.f64:x3 -o y.npy >&-", 1);
  CHECK_COMPLAINS("standard output: ");
  CHECK(zlg_size_of("y.npy") == 128 + M * 8);
  RUN("{ sleep 0.2; $z kernels; echo $? > code; } | true; cat code", 0);
  CHECK_SAYS("1");
  CHECK_COMPLAINS("Broken pipe");
}

static void info_tells_the_workers(void) {
  char line[300];
  snprintf(line, sizeof line, "$z info %s", zlg_tool_workers());
  RUN(line, 0);
  const char *const parts[] = {"StarPU", "scheduler", "CPU 0", "kernel_product", "L1", "memory"};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) CHECK_SAYS(parts[i]);
  if (zlg_test_mode() != ZLG_TEST_CPU) CHECK_SAYS("OpenCL 0");
  snprintf(line, sizeof line, "$z info --json %s", zlg_tool_workers());
  RUN(line, 0);
  CHECK_SAYS("\"instruction_set\"");
  CHECK_SAYS("\"codelets\": [");
}

static void progress_on_request_goes_to_a_pipe_in_lines(void) {
  RUN("$z product -k cauchy x1.f64:x3 x2.f64:x3 -o y.npy --progress=always --tile 64x64", 0);
  CHECK_COMPLAINS("100%  ");
  CHECK_COMPLAINS("CPU 0");
  CHECK(!strchr(zlg_err_text, '\r') && !strchr(zlg_err_text, '\033'));
  RUN("$z product -k cauchy x1.f64:x3 x2.f64:x3 -o y.npy --tile 64x64", 0);
  CHECK(*zlg_err_text == 0);
}

/* ---- interrupts of long work ---- */

/* A product of many seconds on y.npy, after `prefix`. */
static pid_t start_long_product(const char *prefix) {
  char line[1600];
  RUN("cp x2.f64 points; cp b.f64 weights; for i in 1 2 3 4 5 6 7 8 9 10 11; do for f in points weights; do "
      "cat $f $f > more && mv more $f; done; done",
      0);
  snprintf(line, sizeof line, "%s exec $z product " KERNEL " points:f64:x3 points:f64:x3 weights:f64:x2 -o y.npy %s",
           prefix, zlg_tool_workers());
  return zlg_start_long(line, "y.npy");
}

static void check_dies_cleanly(pid_t child, int signal_number) {
  zlg_check_dies_cleanly(child, signal_number, "y.npy", "zellige: product: interrupted; y.npy was not made");
}

static void an_interrupt_leaves_no_file(void) {
  check_dies_cleanly(start_long_product(""), SIGINT);
}
static void a_termination_leaves_no_file(void) {
  check_dies_cleanly(start_long_product(""), SIGTERM);
}
static void a_hangup_leaves_no_file(void) {
  check_dies_cleanly(start_long_product(""), SIGHUP);
}

static void under_nohup_a_hangup_is_ignored(void) {
  pid_t child = start_long_product("trap '' HUP;");
  kill(child, SIGHUP);
  zlg_pause(0.5);
  CHECK(waitpid(child, NULL, WNOHANG) == 0);
  check_dies_cleanly(child, SIGTERM);
}

#define CASE(name)                                                                                                     \
  { #name, name }

static const struct zlg_test_case cases[] = {CASE(raw_files_in_and_out_give_the_right_product),
                                             CASE(every_worker_of_a_tiled_product_is_in_the_table),
                                             CASE(f32_files_give_the_right_product),
                                             CASE(the_transpose_a_factor_and_an_old_result_are_taken_in),
                                             CASE(npy_files_go_through),
                                             CASE(json_has_plan_report_and_workers),
                                             CASE(a_file_name_may_be_any_bytes),
                                             CASE(the_output_may_be_the_file_of_an_input),
                                             CASE(a_dry_run_makes_nothing),
                                             CASE(usage_errors_exit_2_and_say_where_help_is),
                                             CASE(help_and_version_exit_0),
                                             CASE(every_kernel_is_listed),
                                             CASE(errors_name_the_culprit_and_exit_1),
                                             CASE(a_failing_run_leaves_the_old_output),
                                             CASE(an_output_nobody_can_write_to_is_an_error),
                                             CASE(info_tells_the_workers),
                                             CASE(progress_on_request_goes_to_a_pipe_in_lines),
                                             CASE(an_interrupt_leaves_no_file),
                                             CASE(a_termination_leaves_no_file),
                                             CASE(a_hangup_leaves_no_file),
                                             CASE(under_nohup_a_hangup_is_ignored),
                                             {NULL, NULL}};

/* What devices can change; PoCL hooks signals of its own. */
static const struct zlg_test_case device_cases[] = {CASE(raw_files_in_and_out_give_the_right_product),
                                                    CASE(every_worker_of_a_tiled_product_is_in_the_table),
                                                    CASE(json_has_plan_report_and_workers),
                                                    CASE(info_tells_the_workers),
                                                    CASE(an_interrupt_leaves_no_file),
                                                    CASE(a_termination_leaves_no_file),
                                                    {NULL, NULL}};

int main(int argc, char **argv) {
  if (!zlg_tool_begin()) return 1;
  make_inputs();
  return zlg_test_main(argc, argv, zlg_test_mode() == ZLG_TEST_CPU ? cases : device_cases);
}
