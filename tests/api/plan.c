/* What a product says of itself: shares that add up, progress that ends at the end, tiles that StarPU can count, bytes
 * of files. */
#include "tests/support_product.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "codelets/common/model.h"
#include "src/core/context.h"
#include "src/core/runtime.h"

#define CHECK(condition) zlg_check((condition), #condition, __FILE__, __LINE__)

static double last_done, last_total, last_shares;
static int calls;

static int on_progress(void *user, const zlg_progress *progress) {
  (void)user;
  calls++;
  last_done = progress->work_done;
  last_total = progress->work_total;
  last_shares = 0;
  for (int i = 0; i < progress->worker_count; i++) last_shares += progress->worker_share[i];
  return 0;
}

static zlg_context *context_with_tiles(int64_t tile) {
  zlg_context_options options;
  zlg_context *context = NULL;
  zlg_test_context_options(&options);
  options.direct_seconds = 0;
  options.tile_rows = options.tile_columns = tile;
  options.memory_limit = INT64_C(1) << 50; /* or it would make the tiles smaller */
  options.progress = on_progress;
  CHECK(zlg_context_create(&context, &options) == ZLG_OK);
  return context;
}

/* So many right-hand sides that they are done in several turns: each pair is still counted once. */
static void shares_and_progress_add_up_whatever_the_columns(void) {
  enum { M = 200, N = 150, R = 20000 };
  zlg_context *context = context_with_tiles(64);
  zlg_matrix *points, *rows, *b, *y;
  zlg_operator *K;
  zlg_kernel_spec spec;
  zlg_request *request;
  zlg_report report;
  float *out = calloc((size_t)M * R, sizeof *out);
  zlg_kernel_spec_init(&spec, ZLG_GAUSSIAN);
  ZLG_CHECK_OK(zlg_matrix_constant(context, &rows, ZLG_F32, M, 2, 1), context);
  ZLG_CHECK_OK(zlg_matrix_constant(context, &points, ZLG_F32, N, 2, 1), context);
  ZLG_CHECK_OK(zlg_matrix_constant(context, &b, ZLG_F32, N, R, 1), context);
  ZLG_CHECK_OK(zlg_matrix_wrap(context, &y, ZLG_F32, M, R, ZLG_ROW_MAJOR, R, out), context);
  ZLG_CHECK_OK(zlg_kernel(context, &K, &spec, rows, points), context);
  ZLG_CHECK_OK(zlg_apply_async(K, ZLG_NOTRANS, 1, b, 0, y, &request), context);
  ZLG_CHECK_OK(zlg_request_wait(request), context);
  CHECK(out[0] == N && out[(int64_t)M * R - 1] == N);
  ZLG_CHECK_OK(zlg_request_report(request, &report), context);
  double work = 0;
  int64_t tasks = 0;
  for (int i = 0; i < report.worker_count; i++) work += report.workers[i].work, tasks += report.workers[i].tasks;
  CHECK(tasks > 2 * 4 * 3 + 4); /* more than one turn */
  ZLG_CHECK_CLOSE(report.work, (double)M * N, 0);
  ZLG_CHECK_CLOSE(work, report.work, 1e-9L * report.work);
  CHECK(calls > 0);
  ZLG_CHECK_CLOSE(last_done, last_total, 1e-9L * report.work);
  ZLG_CHECK_CLOSE(last_shares, 1, 1e-9L);
  zlg_request_release(request);
  zlg_operator_release(K);
  zlg_matrix *all[] = {points, rows, b, y};
  for (int i = 0; i < 4; i++) zlg_matrix_release(all[i]);
  zlg_context_release(context);
  free(out);
}

/* StarPU counts in 32 bits; a tile of more, wrapped around, would be a small one. */
static void tiles_stay_below_what_starpu_counts(void) {
  zlg_context *context = context_with_tiles(INT64_C(1) << 33);
  const int64_t rows = INT64_C(1) << 33;
  /* Addresses only: a cost query touches no element. */
  void *nowhere = mmap(NULL, (size_t)rows * 4, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (nowhere == MAP_FAILED) {
    printf("  (not run: no 32 GiB of addresses)\n");
    zlg_context_release(context);
    return;
  }
  zlg_matrix *few, *many;
  zlg_operator *K;
  zlg_kernel_spec spec;
  zlg_cost cost;
  zlg_kernel_spec_init(&spec, ZLG_GAUSSIAN);
  ZLG_CHECK_OK(zlg_matrix_wrap_const(context, &few, ZLG_F32, 1, 1, ZLG_ROW_MAJOR, 1, nowhere), context);
  ZLG_CHECK_OK(zlg_matrix_wrap_const(context, &many, ZLG_F32, rows, 1, ZLG_ROW_MAJOR, 1, nowhere), context);
  ZLG_CHECK_OK(zlg_kernel(context, &K, &spec, few, many), context);
  for (zlg_op op = ZLG_NOTRANS; op <= ZLG_TRANS; op++) {
    ZLG_CHECK_OK(zlg_operator_cost(K, op, 3, &cost), context);
    CHECK(cost.tile_columns <= INT32_MAX && 3 * cost.tile_rows <= INT32_MAX);
    CHECK(cost.tasks >= 4);
  }
  zlg_operator_release(K);
  zlg_matrix_release(few);
  zlg_matrix_release(many);
  munmap(nowhere, (size_t)rows * 4);
  zlg_context_release(context);
}

/* --- small memory limits --- */

#define MANY INT64_C(1000000)
#define A_NOMINAL_TASK 1e-4 /* seconds at 1e11 flops a second: the shortest that a limit leaves (src/plan/shape.c) */

/* The cost of a product of MANY x MANY points on so many workers. Operands in memory are addresses only: nothing is
 * read. Constants are staged, as files are. */
static int cost_under_limit(int64_t limit, int workers, const void *memory, zlg_cost *cost, char *message) {
  zlg_context_options options;
  zlg_context *context = NULL;
  zlg_matrix *points = NULL;
  zlg_operator *K = NULL;
  zlg_kernel_spec spec;
  zlg_test_context_options(&options);
  options.cpu_workers = workers;
  options.memory_limit = limit;
  ZLG_CHECK_OK(zlg_context_create(&context, &options), NULL);
  if (memory)
    ZLG_CHECK_OK(zlg_matrix_wrap_const(context, &points, ZLG_F32, MANY, 3, ZLG_ROW_MAJOR, 3, memory), context);
  else
    ZLG_CHECK_OK(zlg_matrix_constant(context, &points, ZLG_F32, MANY, 3, 1), context);
  zlg_kernel_spec_init(&spec, ZLG_GAUSSIAN);
  ZLG_CHECK_OK(zlg_kernel(context, &K, &spec, points, points), context);
  int status = zlg_operator_cost(K, ZLG_NOTRANS, 1, cost);
  snprintf(message, 500, "%s", zlg_context_message(context));
  zlg_operator_release(K);
  zlg_matrix_release(points);
  zlg_context_release(context);
  return status;
}

/* Returns whether the limit is enough. */
static bool check_limit(int64_t limit, const void *memory) {
  zlg_cost one, two;
  char message[500];
  int status = cost_under_limit(limit, 1, memory, &one, message);
  CHECK(cost_under_limit(limit, 2, memory, &two, message) == status);
  if (status == ZLG_OK) {
    double pairs = (double)one.tile_rows * (double)one.tile_columns;
    CHECK(one.memory_bytes <= limit && two.memory_bytes <= limit);
    CHECK(pairs * one.flops / one.work >= A_NOMINAL_TASK * 1e11);
    CHECK(one.tile_rows == two.tile_rows && one.tile_columns == two.tile_columns && one.tasks == two.tasks);
    return true;
  }
  long long least = 0;
  const char *words = strstr(message, "need ");
  CHECK(status == ZLG_ELIMIT && words && sscanf(words, "need %lld bytes", &least) == 1 && least > limit);
  CHECK(cost_under_limit(least, 2, memory, &two, message) == ZLG_OK);
  CHECK(cost_under_limit(least - 1, 2, memory, &two, message) == ZLG_ELIMIT);
  return false;
}

/* However small the limit: tiles that are worth a task, the same for any number of workers, or a refusal that names the
 * least limit that is enough. Points in memory need little more than the sums of some rows. */
static void a_small_limit_leaves_tiles_worth_a_task(void) {
  void *nowhere = mmap(NULL, (size_t)MANY * 12, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  CHECK(nowhere != MAP_FAILED);
  for (int64_t limit = 300; limit < 10000000; limit *= 3) {
    CHECK(check_limit(limit, nowhere) || limit < 20000);
    CHECK(check_limit(limit, NULL) || limit < 50000);
  }
  munmap(nowhere, (size_t)MANY * 12);
}

/* --- caches and calibrated models --- */

static zlg_context *context_of(int workers, const char *scheduler) {
  zlg_context_options options;
  zlg_context *context = NULL;
  zlg_test_context_options(&options);
  options.cpu_workers = workers;
  options.opencl_workers = 0;
  options.scheduler = scheduler;
  options.direct_seconds = 0;
  ZLG_CHECK_OK(zlg_context_create(&context, &options), NULL);
  return context;
}

/* The Gaussian kernel of MANY x MANY points that nobody reads. */
static zlg_cost cost_of(zlg_context *context, int64_t dimensions, int64_t sides) {
  zlg_matrix *points;
  zlg_operator *K;
  zlg_kernel_spec spec;
  zlg_cost cost = {0};
  const size_t bytes = (size_t)(MANY * dimensions) * 4;
  void *nowhere = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  CHECK(nowhere != MAP_FAILED);
  zlg_kernel_spec_init(&spec, ZLG_GAUSSIAN);
  ZLG_CHECK_OK(zlg_matrix_wrap_const(context, &points, ZLG_F32, MANY, dimensions, ZLG_ROW_MAJOR, dimensions, nowhere),
               context);
  ZLG_CHECK_OK(zlg_kernel(context, &K, &spec, points, points), context);
  ZLG_CHECK_OK(zlg_operator_cost(K, ZLG_NOTRANS, sides, &cost), context);
  zlg_operator_release(K);
  zlg_matrix_release(points);
  munmap(nowhere, bytes);
  return cost;
}

static double pairs_of(const zlg_cost *cost) {
  return (double)cost->tile_rows * (double)cost->tile_columns;
}

/* Points and sums of a tile's rows take half of a core's cache where there are many of either; the tile is as long as
 * before, and few of both leave it as it was. */
static void tiles_follow_the_caches(void) {
  enum { DIMENSIONS = 3, SIDES = 100, ROW = DIMENSIONS * 4 + SIDES * 8 };
  zlg_context *context = context_of(1, "lws");
  int64_t rows[3];
  double pairs[3];
  for (int i = 0; i < 3; i++) {
    context->core_cache = INT64_C(1) << (19 + i);
    zlg_cost cost = cost_of(context, DIMENSIONS, SIDES);
    CHECK(strcmp(cost.tile_rule, "cache") == 0);
    rows[i] = cost.tile_rows, pairs[i] = pairs_of(&cost);
    CHECK(rows[i] * ROW <= context->core_cache / 2 + 64 * ROW || rows[i] <= 256);
    CHECK(pairs[i] > 0.8 * pairs[0] && pairs[i] < 1.25 * pairs[0]);
  }
  CHECK(rows[0] < rows[1] && rows[1] < rows[2]);
  context->core_cache = 0; /* unknown: nominal, 1 MiB */
  CHECK(cost_of(context, DIMENSIONS, SIDES).tile_rows == rows[1]);
  zlg_cost few = cost_of(context, DIMENSIONS, 1);
  CHECK(strcmp(few.tile_rule, "time") == 0);
  context->shared_cache = 100 * 16; /* a hundred columns */
  CHECK(cost_of(context, DIMENSIONS, 1).tile_columns <= few.tile_columns);
  context->options.tile_rows = 99;
  zlg_cost asked = cost_of(context, DIMENSIONS, SIDES);
  CHECK(asked.tile_rows == 99 && strcmp(asked.tile_rule, "options") == 0);
  zlg_context_release(context);
}

/* A calibrated model of the Gaussian on a core that does so many flops a second; each point is off by `noise`. */
static void calibrate(double flops, double noise) {
  char directory[512], message[512] = "";
  struct zlg_model model = {.codelet = "kernel_product", .label = "gaussian-f32-d3-r1", .curve_count = 1};
  model.family = (struct zlg_family){.what = {ZLG_GAUSSIAN, ZLG_F32, 1}, .width = {3, 1}};
  snprintf(model.instructions, sizeof model.instructions, "%s", zlg_isa_name(zlg_isa_current()));
  zlg_model_host(model.host, sizeof model.host);
  model.curves[0] = (struct zlg_curve){.kind = ZLG_WORKER_CPU, .count = 4};
  for (int i = 0; i < 4; i++) {
    double size = pow(100, i + 1), seconds = 29 * size / flops * (1 + (i % 2 ? noise : -noise));
    model.curves[0].points[i] =
        (zlg_model_point){size, seconds, seconds / 50, seconds, seconds / 40, 29 * size, 24 * sqrt(size), 25, 2};
  }
  zlg_runtime_model_directory(directory, sizeof directory);
  CHECK(zlg_model_write(directory, &model, message, sizeof message) == ZLG_OK);
}

static void forget_calibration(void) {
  char directory[512], path[1024];
  struct zlg_model model = {.codelet = "kernel_product", .label = "gaussian-f32-d3-r1"};
  zlg_model_host(model.host, sizeof model.host);
  zlg_runtime_model_directory(directory, sizeof directory);
  zlg_model_path(&model, directory, path, sizeof path);
  CHECK(unlink(path) == 0);
}

static zlg_cost cost_when_calibrated(double flops, double noise) {
  calibrate(flops, noise);
  zlg_context *context = context_of(1, "lws");
  zlg_cost cost = cost_of(context, 3, 1);
  CHECK(cost.tile_calibrated == 1);
  zlg_context_release(context);
  return cost;
}

/* Tasks of a slow core last as long as those of a fast one; measuring again changes nothing. */
static void tiles_follow_calibrated_models(void) {
  zlg_context *context = context_of(1, "lws");
  const zlg_cost nominal = cost_of(context, 3, 1);
  CHECK(nominal.tile_calibrated == 0 && nominal.tile_seconds > 0);
  zlg_context_release(context);
  const zlg_cost fast = cost_when_calibrated(3e11, 0), slow = cost_when_calibrated(3e11 / 16, 0);
  CHECK(fast.tile_rows == nominal.tile_rows && fast.tile_columns == nominal.tile_columns);
  CHECK(pairs_of(&slow) < pairs_of(&fast) / 12 && pairs_of(&slow) > pairs_of(&fast) / 20);
  CHECK(slow.tile_seconds > 0.7 * fast.tile_seconds && slow.tile_seconds < 1.4 * fast.tile_seconds);
  for (int i = 1; i <= 4; i++) {
    const zlg_cost again = cost_when_calibrated(3e11 / 16 * (1 + 0.02 * i), 0.1);
    CHECK(again.tile_rows == slow.tile_rows && again.tile_columns == slow.tile_columns);
  }
  forget_calibration();
}

/* A product of some tiles, the same at each call. */
static struct zlg_test_array product_of(int workers, const char *scheduler, int64_t *tasks) {
  enum { M = 1500, N = 2000, R = 2 };
  uint64_t state = 11;
  zlg_context *context = context_of(workers, scheduler);
  struct zlg_test_array x = zlg_test_array_random(ZLG_F32, M, 3, ZLG_ROW_MAJOR, 0, &state, 0, 1),
                        z = zlg_test_array_random(ZLG_F32, N, 3, ZLG_ROW_MAJOR, 0, &state, 0, 1),
                        b = zlg_test_array_random(ZLG_F32, N, R, ZLG_ROW_MAJOR, 0, &state, 0, 1),
                        y = zlg_test_array_new(ZLG_F32, M, R, ZLG_ROW_MAJOR, 0);
  zlg_kernel_spec spec;
  zlg_kernel_spec_init(&spec, ZLG_GAUSSIAN);
  zlg_matrix *X = zlg_test_array_wrap(context, &x), *Z = zlg_test_array_wrap(context, &z),
             *B = zlg_test_array_wrap(context, &b), *Y = zlg_test_array_wrap(context, &y);
  zlg_operator *K;
  zlg_cost cost = {0};
  ZLG_CHECK_OK(zlg_kernel(context, &K, &spec, X, Z), context);
  for (int i = 0; i < 3; i++) { /* what the first ones teach changes nothing */
    ZLG_CHECK_OK(zlg_operator_cost(K, ZLG_NOTRANS, R, &cost), context);
    CHECK(i == 0 || cost.tasks == *tasks);
    *tasks = cost.tasks;
    ZLG_CHECK_OK(zlg_apply(K, ZLG_NOTRANS, 1, B, 0, Y), context);
  }
  zlg_operator_release(K);
  zlg_matrix *const matrices[] = {X, Z, B, Y};
  for (int i = 0; i < 4; i++) zlg_matrix_release(matrices[i]);
  zlg_context_release(context);
  zlg_test_array_free(&x), zlg_test_array_free(&z), zlg_test_array_free(&b);
  return y;
}

static void a_calibrated_machine_keeps_the_bits(void) {
  static const char *const schedulers[] = {"lws", "dmdas", "eager"};
  int64_t tasks = 0, others = 0;
  calibrate(1e10, 0.05);
  struct zlg_test_array first = product_of(1, schedulers[0], &tasks);
  CHECK(tasks > 10);
  for (int workers = 1; workers <= 2; workers++)
    for (int i = 0; i < 3; i++) {
      struct zlg_test_array other = product_of(workers, schedulers[i], &others);
      CHECK(zlg_test_array_same_bits(&first, &other) && others == tasks);
      zlg_test_array_free(&other);
    }
  zlg_test_array_free(&first);
  forget_calibration();
}

/* --- bytes of files --- */

enum { ROWS = 300, COLUMNS = 200, DIMENSIONS = 3, SIDES = 2, OF_F64 = 8 };

struct operands {
  struct zlg_test_array p, q, b, y;
  zlg_matrix *P, *Q, *B, *Y;
};

/* `files`: which of P, Q, B, Y are files, a bit each. */
static struct operands operands_new(zlg_context *context, int files) {
  uint64_t state = 1;
  struct operands o;
  char *path = zlg_test_path("bytes-y.npy");
  o.p = zlg_test_array_random(ZLG_F64, ROWS, DIMENSIONS, ZLG_ROW_MAJOR, 0, &state, 0, 1);
  o.q = zlg_test_array_random(ZLG_F64, COLUMNS, DIMENSIONS, ZLG_COLUMN_MAJOR, 0, &state, 0, 1);
  o.b = zlg_test_array_random(ZLG_F64, COLUMNS, SIDES, ZLG_ROW_MAJOR, 0, &state, 0, 1);
  o.y = zlg_test_array_new(ZLG_F64, ROWS, SIDES, ZLG_ROW_MAJOR, 0);
  struct zlg_test_array *arrays[] = {&o.p, &o.q, &o.b};
  zlg_matrix **matrices[] = {&o.P, &o.Q, &o.B};
  static const char *const names[] = {"bytes-p.npy", "bytes-q.npy", "bytes-b.npy"};
  for (int i = 0; i < 3; i++)
    *matrices[i] = files >> i & 1 ? zlg_test_array_file(context, arrays[i], ZLG_TEST_NPY, names[i])
                                  : zlg_test_array_wrap(context, arrays[i]);
  o.Y = NULL;
  if (files >> 3 & 1)
    ZLG_CHECK_OK(zlg_matrix_create_npy(context, &o.Y, path, ZLG_F64, ROWS, SIDES, ZLG_ROW_MAJOR), context);
  else
    o.Y = zlg_test_array_wrap(context, &o.y);
  free(path);
  return o;
}

static void operands_free(struct operands *o) {
  zlg_matrix *matrices[] = {o->P, o->Q, o->B, o->Y};
  struct zlg_test_array *arrays[] = {&o->p, &o->q, &o->b, &o->y};
  for (int i = 0; i < 4; i++) zlg_matrix_release(matrices[i]), zlg_test_array_free(arrays[i]);
}

/* The report of a product, and what its plan said. */
static zlg_report report_of(zlg_context *context, const struct operands *o, double beta, zlg_cost *cost) {
  zlg_operator *K = NULL;
  zlg_kernel_spec spec;
  zlg_request *request = NULL;
  zlg_report report = {0};
  zlg_kernel_spec_init(&spec, ZLG_GAUSSIAN);
  ZLG_CHECK_OK(zlg_kernel(context, &K, &spec, o->P, o->Q), context);
  ZLG_CHECK_OK(zlg_operator_cost(K, ZLG_NOTRANS, SIDES, cost), context);
  ZLG_CHECK_OK(zlg_apply_async(K, ZLG_NOTRANS, 1, o->B, beta, o->Y, &request), context);
  ZLG_CHECK_OK(zlg_request_wait(request), context);
  ZLG_CHECK_OK(zlg_request_report(request, &report), context);
  report.workers = NULL; /* the request's */
  zlg_request_release(request);
  zlg_operator_release(K);
  return report;
}

/* Whatever is a file is read once where its tiles have room, an output only where beta is not 0. */
static void bytes_of_files_are_those_of_the_operands(void) {
  static const int64_t sizes[] = {OF_F64 * ROWS * DIMENSIONS, OF_F64 * COLUMNS * DIMENSIONS, OF_F64 * COLUMNS * SIDES,
                                  OF_F64 * ROWS * SIDES};
  zlg_context *context = context_with_tiles(64);
  for (int files = 0; files < 16; files++)
    for (int beta = 0; beta < 2; beta++) {
      struct operands o = operands_new(context, files);
      zlg_cost cost;
      zlg_report report = report_of(context, &o, beta, &cost);
      int64_t read = beta && files >> 3 ? sizes[3] : 0;
      for (int i = 0; i < 3; i++) read += files >> i & 1 ? sizes[i] : 0;
      CHECK(report.bytes_read == read);
      CHECK(report.bytes_written == (files >> 3 ? sizes[3] : 0));
      CHECK(cost.bytes_read == (double)(sizes[0] + sizes[1] + sizes[2]) && cost.bytes_written == (double)sizes[3]);
      operands_free(&o);
    }
  zlg_context_release(context);
}

/* Under small limits the columns are read again in every pass: the plan knows how often, to the byte. It counts the
 * right-hand side, which lies in memory here and of which a part is read whenever the same part of the columns is. */
static void bytes_that_are_read_again_are_foretold(void) {
  const double rows = OF_F64 * ROWS * DIMENSIONS, columns = OF_F64 * COLUMNS * DIMENSIONS;
  double least = INFINITY, most = 0;
  for (int64_t limit = 7000; limit < 100000; limit += limit / 8) {
    zlg_context_options options;
    zlg_context *context = NULL;
    zlg_cost cost;
    zlg_test_context_options(&options);
    options.direct_seconds = 0;
    options.tile_rows = options.tile_columns = 32;
    options.memory_limit = limit;
    ZLG_CHECK_OK(zlg_context_create(&context, &options), NULL);
    struct operands o = operands_new(context, 1 + 2);
    zlg_report report = report_of(context, &o, 0, &cost);
    double again = (double)report.bytes_read - rows;
    ZLG_CHECK_CLOSE(cost.bytes_read, rows + again * (DIMENSIONS + SIDES) / DIMENSIONS, 0.5L);
    least = fmin(least, again), most = fmax(most, again);
    operands_free(&o);
    zlg_context_release(context);
  }
  CHECK(least == columns && most > 3 * columns);
}

/* A constant is a matrix like another: the same bits as from memory, and never an output. */
static void a_constant_computes_as_the_same_numbers_in_memory(void) {
  zlg_context *context = context_with_tiles(64);
  struct operands o = operands_new(context, 0);
  struct zlg_test_array want = zlg_test_array_new(ZLG_F64, ROWS, SIDES, ZLG_ROW_MAJOR, 0);
  zlg_matrix *filled = zlg_test_array_wrap(context, &o.b), *Want = zlg_test_array_wrap(context, &want);
  zlg_matrix *constant = NULL, *output = NULL;
  zlg_operator *K = NULL;
  zlg_kernel_spec spec;
  zlg_kernel_spec_init(&spec, ZLG_MATERN32);
  zlg_test_array_fill(&o.b, -0.3);
  ZLG_CHECK_OK(zlg_matrix_constant(context, &constant, ZLG_F64, COLUMNS, SIDES, -0.3), context);
  ZLG_CHECK_OK(zlg_kernel(context, &K, &spec, o.P, o.Q), context);
  ZLG_CHECK_OK(zlg_test_apply(K, ZLG_NOTRANS, 2, filled, 0, Want), context);
  ZLG_CHECK_OK(zlg_test_apply(K, ZLG_NOTRANS, 2, constant, 0, o.Y), context);
  CHECK(zlg_test_array_get(&want, 0, 0) < 0 && zlg_test_array_same_bits(&o.y, &want));
  ZLG_CHECK_OK(zlg_matrix_constant(context, &output, ZLG_F64, ROWS, SIDES, 0), context);
  ZLG_CHECK_STATUS(zlg_apply(K, ZLG_NOTRANS, 1, filled, 0, output), ZLG_EREADONLY, context);
  zlg_operator_release(K);
  zlg_matrix *matrices[] = {filled, Want, constant, output};
  for (int i = 0; i < 4; i++) zlg_matrix_release(matrices[i]);
  operands_free(&o);
  zlg_test_array_free(&want);
  zlg_context_release(context);
}

int main(int argc, char **argv) {
  static const struct zlg_test_case cases[] = {
      {"shares and progress add up whatever the columns", shares_and_progress_add_up_whatever_the_columns},
      {"tiles stay below what StarPU counts", tiles_stay_below_what_starpu_counts},
      {"a small limit leaves tiles worth a task", a_small_limit_leaves_tiles_worth_a_task},
      {"tiles follow the caches", tiles_follow_the_caches},
      {"tiles follow calibrated models", tiles_follow_calibrated_models},
      {"a calibrated machine keeps the bits", a_calibrated_machine_keeps_the_bits},
      {"bytes of files are those of the operands", bytes_of_files_are_those_of_the_operands},
      {"bytes that are read again are foretold", bytes_that_are_read_again_are_foretold},
      {"a constant computes as the same numbers in memory", a_constant_computes_as_the_same_numbers_in_memory},
      {NULL, NULL}};
  return zlg_test_main(argc, argv, cases);
}
