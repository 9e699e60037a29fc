/* What a product says of itself: shares that add up, progress that ends at the end, tiles that StarPU can count. */
#include "tests/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

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

int main(int argc, char **argv) {
  static const struct zlg_test_case cases[] = {
      {"shares and progress add up whatever the columns", shares_and_progress_add_up_whatever_the_columns},
      {"tiles stay below what StarPU counts", tiles_stay_below_what_starpu_counts},
      {NULL, NULL}};
  return zlg_test_main(argc, argv, cases);
}
