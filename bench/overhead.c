/* What the library costs on top of its kernels: the microseconds of a small call, the percents of a long one. Less is
 * better; `limit` is what is allowed and `fraction` the part of it that is used. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/product.h"
#include "codelets/accumulate/args.h"
#include "codelets/kernel_product/args.h"

/* The kernels called in a plain loop over tiles, in this thread, on a product's own arrays. */
struct plain_loop {
  const struct bench_product *product;
  int64_t tile_rows, tile_columns;
  double *acc, *weights;
  void *scratch;
};

static struct zlg_kernel_product_args tile_args(const struct bench_product *product, int64_t m, int64_t n) {
  return (struct zlg_kernel_product_args){.kind = product->kernel.kind,
                                          .type = product->type,
                                          .m = m,
                                          .n = n,
                                          .d = product->kernel.d,
                                          .r = product->kernel.r,
                                          .x1_order = ZLG_ROW_MAJOR,
                                          .x2_order = ZLG_ROW_MAJOR,
                                          .b_order = ZLG_ROW_MAJOR,
                                          .isotropic = true,
                                          .alpha = 1,
                                          .gamma = 1};
}

static int plain_open(struct plain_loop *loop, const struct bench_product *product, int64_t rows, int64_t columns,
                      struct bench_row *row) {
  struct zlg_kernel_product_args args = tile_args(product, rows, columns);
  size_t scratch = ZLG_CPU(zlg_kernel_product_scratch)(&args);
  *loop = (struct plain_loop){.product = product, .tile_rows = rows, .tile_columns = columns};
  loop->acc = aligned_alloc(64, ((size_t)(rows * product->kernel.r) * sizeof(double) + 63) / 64 * 64);
  loop->weights = malloc((size_t)product->kernel.d * sizeof(double));
  loop->scratch = aligned_alloc(64, (scratch + 64) / 64 * 64);
  if (!loop->acc || !loop->weights || !loop->scratch) return bench_fail(row, "no memory for a tile");
  for (int64_t k = 0; k < product->kernel.d; k++) loop->weights[k] = 1;
  return 0;
}

static void plain_close(struct plain_loop *loop) {
  free(loop->acc);
  free(loop->weights);
  free(loop->scratch);
}

static void plain_tile(const struct plain_loop *loop, int64_t i, int64_t m, int64_t j, int64_t n) {
  const struct bench_product *product = loop->product;
  size_t size = zlg_type_size(product->type), d = (size_t)product->kernel.d, r = (size_t)product->kernel.r;
  struct zlg_kernel_product_args args = tile_args(product, m, n);
  args.first = j == 0;
  struct zlg_kernel_product_operands operands = {.x1 = (char *)product->x1 + (size_t)i * d * size,
                                                 .ld1 = product->kernel.d,
                                                 .x2 = (char *)product->x2 + (size_t)j * d * size,
                                                 .ld2 = product->kernel.d,
                                                 .b = (char *)product->b + (size_t)j * r * size,
                                                 .ldb = product->kernel.r,
                                                 .w = loop->weights,
                                                 .acc = loop->acc};
  ZLG_CPU(zlg_kernel_product_cpu)(&args, &operands, loop->scratch);
}

static void plain_run(const struct plain_loop *loop) {
  const struct bench_product *product = loop->product;
  size_t size = zlg_type_size(product->type);
  for (int64_t i = 0; i < product->m; i += loop->tile_rows) {
    int64_t m = loop->tile_rows < product->m - i ? loop->tile_rows : product->m - i;
    for (int64_t j = 0; j < product->n; j += loop->tile_columns)
      plain_tile(loop, i, m, j, loop->tile_columns < product->n - j ? loop->tile_columns : product->n - j);
    struct zlg_accumulate_args end = {
        .type = product->type, .m = m, .r = product->kernel.r, .y_order = ZLG_ROW_MAJOR, .parts = 1, .alpha = 1};
    double *acc = loop->acc;
    ZLG_CPU(zlg_accumulate_cpu)
    (&end, (char *)product->y + (size_t)(i * product->kernel.r) * size, product->kernel.r, &acc);
  }
}

/* A small call: everything that the caller does for one product from arrays in memory, objects made and released. */
static int call_with_objects(const struct bench_product *like, zlg_context *context, struct bench_row *row) {
  struct bench_product call = *like;
  call.X1 = call.X2 = call.B = call.Y = NULL;
  call.K = NULL;
  int64_t d = like->kernel.d, r = like->kernel.r;
  int status = zlg_matrix_wrap_const(context, &call.X1, call.type, call.m, d, ZLG_ROW_MAJOR, d, call.x1) ||
               zlg_matrix_wrap_const(context, &call.X2, call.type, call.n, d, ZLG_ROW_MAJOR, d, call.x2) ||
               zlg_matrix_wrap_const(context, &call.B, call.type, call.n, r, ZLG_ROW_MAJOR, r, call.b) ||
               zlg_matrix_wrap(context, &call.Y, call.type, call.m, r, ZLG_ROW_MAJOR, r, call.y) ||
               bench_product_operator(context, &call.K, call.kernel, call.X1, call.X2) ||
               bench_product_apply(&call, context, row);
  zlg_operator_release(call.K);
  zlg_matrix_release(call.X1);
  zlg_matrix_release(call.X2);
  zlg_matrix_release(call.B);
  zlg_matrix_release(call.Y);
  return status ? bench_fail(row, "%s", zlg_context_message(context)) : 0;
}

static const struct bench_kernel small_kernel = {ZLG_GAUSSIAN, 3, 1, false, 0, 0};

static int run_small_call(const struct bench_case *self, const struct bench_settings *settings, struct bench_row *row) {
  enum { CALLS = 500 };
  (void)self;
  struct bench_product product = {.m = 0};
  struct plain_loop loop = {.product = NULL};
  double excess[BENCH_REPETITIONS], whole[BENCH_REPETITIONS], alone[BENCH_REPETITIONS];
  int status = -1;
  row->unit = "us";
  zlg_context *context = bench_context(settings->workers, row);
  if (!context || bench_product_open(&product, context, small_kernel, row->type, 100, 100, row)) return -1;
  if (bench_product_apply(&product, context, row) || bench_product_check(&product, row)) goto cleanup;
  if (plain_open(&loop, &product, 100, 100, row)) goto cleanup;
  for (int t = 0; t < settings->repetitions; t++) {
    double start = bench_clock(1);
    for (int k = 0; k < CALLS; k++) plain_tile(&loop, 0, 100, 0, 100);
    double kernels = bench_clock(1);
    for (int k = 0; k < CALLS; k++)
      if (bench_product_apply(&product, context, row)) goto cleanup;
    double calls = bench_clock(1);
    for (int k = 0; k < CALLS; k++)
      if (call_with_objects(&product, context, row)) goto cleanup;
    double objects = bench_clock(1);
    alone[t] = 1e6 / CALLS * (kernels - start);
    excess[t] = 1e6 / CALLS * (calls - kernels) - alone[t];
    whole[t] = 1e6 / CALLS * (objects - calls) - alone[t];
  }
  row->ours = bench_median(excess, settings->repetitions);
  row->limit = 20;
  row->fraction = row->ours / row->limit;
  bench_note(row, "more than the kernel's %.1f us", bench_median(alone, settings->repetitions));
  bench_note(row, "%.1f with objects made and released", bench_median(whole, settings->repetitions));
  status = 0;
cleanup:
  plain_close(&loop);
  bench_product_close(&product);
  return status;
}

/* Rows that make a product of some seconds, from the speed of a short plain loop. */
static int64_t rows_lasting(double seconds, zlg_context *context, zlg_type type, int64_t n, struct bench_row *row) {
  struct bench_product product;
  if (bench_product_open(&product, context, small_kernel, type, 2048, n, row)) return -1;
  double taken = -1;
  for (int t = 0; t < 2; t++) {
    double start = bench_clock(1);
    if (bench_product_apply(&product, context, row)) break;
    taken = bench_clock(1) - start;
  }
  bench_product_close(&product);
  return taken > 0 ? (int64_t)(2048 * seconds / taken) / 64 * 64 : -1;
}

/* The tiles that the library cuts this product into. */
static int tiles_of(struct bench_product *product, zlg_context *context, int64_t *rows, int64_t *columns,
                    int64_t *tasks, struct bench_row *row) {
  zlg_request *request = NULL;
  zlg_report report;
  int status = zlg_apply_async(product->K, ZLG_NOTRANS, 1, product->B, 0, product->Y, &request) ||
               zlg_request_wait(request) || zlg_request_report(request, &report);
  if (!status) *rows = report.tile_rows, *columns = report.tile_columns, *tasks = report.tasks;
  zlg_request_release(request);
  if (status) return bench_fail(row, "%s", zlg_context_message(context));
  return *rows > 0 && *columns > 0 ? 0 : bench_fail(row, "the report names no tiles");
}

static int run_long_product(const struct bench_case *self, const struct bench_settings *settings,
                            struct bench_row *row) {
  (void)self;
  const int64_t n = 20000;
  struct bench_product product = {.m = 0};
  struct plain_loop loop = {.product = NULL};
  double busy[BENCH_REPETITIONS], wall[BENCH_REPETITIONS];
  int64_t rows = 0, columns = 0, tasks = 0;
  int status = -1;
  row->unit = "%";
  row->workers = 1; /* against one thread that runs the same kernels */
  zlg_context *context = bench_context(1, row);
  int64_t m = context ? rows_lasting(settings->quick ? 0.3 : 2, context, row->type, n, row) : -1;
  if (m <= 0 || bench_product_open(&product, context, small_kernel, row->type, m, n, row)) return -1;
  if (tiles_of(&product, context, &rows, &columns, &tasks, row) || bench_product_check(&product, row)) goto cleanup;
  if (plain_open(&loop, &product, rows < m ? rows : m, columns < n ? columns : n, row)) goto cleanup;
  for (int t = 0; t < settings->repetitions; t++) {
    double start = bench_clock(1), wall_start = bench_wall_clock();
    plain_run(&loop);
    double middle = bench_clock(1), wall_middle = bench_wall_clock();
    if (bench_product_apply(&product, context, row)) goto cleanup;
    busy[t] = 100 * ((bench_clock(1) - middle) / (middle - start) - 1);
    wall[t] = 100 * ((bench_wall_clock() - wall_middle) / (wall_middle - wall_start) - 1);
  }
  row->ours = bench_median(busy, settings->repetitions);
  row->limit = 3;
  row->fraction = row->ours / row->limit;
  bench_note(row, "more processor time than a plain loop over %lld tiles of %lld x %lld", (long long)tasks,
             (long long)rows, (long long)columns);
  bench_note(row, "wall %+.1f %%", bench_median(wall, settings->repetitions));
  status = 0;
cleanup:
  plain_close(&loop);
  bench_product_close(&product);
  return status;
}

const struct bench_case bench_overhead_cases[] = {
    {"overhead/kernel", run_small_call, NULL, 0, 0},
    {"overhead/runtime", run_long_product, NULL, 0, 0},
    {NULL, NULL, NULL, 0, 0},
};
