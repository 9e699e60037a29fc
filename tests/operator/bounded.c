/* What a product keeps for itself is bounded: the memory of one whose operands are files far larger than what it may
 * take, and the number of its tasks that StarPU holds at once. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "codelets/common/starpu_compat.h"
#include "tests/support_product.h"

#define CHECK(condition) zlg_check((condition), #condition, __FILE__, __LINE__)

/* The most memory this process has had, in bytes. */
static int64_t most_resident(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return (int64_t)usage.ru_maxrss * 1024;
}

/* --- memory --- */

#define POINTS 2000000 /* times three f64: 48 MB; the kernel matrix would be 4.8 GB */
#define CENTRES 300
#define MOST (INT64_C(40) << 20)

/* Written in pieces, so that it is never in memory. */
static zlg_matrix *large_file(zlg_context *context, const char *name, int64_t columns, double value) {
  char *path = zlg_test_path(name);
  const int64_t piece = 10000;
  struct zlg_test_array part = zlg_test_array_new(ZLG_F64, piece, columns, ZLG_ROW_MAJOR, 0);
  zlg_matrix *made = NULL, *opened = NULL;
  zlg_test_array_fill(&part, value);
  ZLG_CHECK_OK(zlg_matrix_create_npy(context, &made, path, ZLG_F64, POINTS, columns, ZLG_ROW_MAJOR), context);
  for (int64_t row = 0; row < POINTS; row += piece)
    ZLG_CHECK_OK(zlg_matrix_write(made, row, piece, 0, columns, ZLG_ROW_MAJOR, columns, part.memory), context);
  ZLG_CHECK_OK(zlg_matrix_close(made), context);
  zlg_matrix_release(made);
  ZLG_CHECK_OK(zlg_matrix_open_npy(context, &opened, path), context);
  zlg_test_array_free(&part);
  free(path);
  return opened;
}

static void check_ends(zlg_context *context, zlg_matrix *Y, int64_t rows, double want) {
  double value = 0;
  for (int64_t row = 0; row < rows; row += rows - 1) {
    ZLG_CHECK_OK(zlg_matrix_read(Y, row, 1, 0, 1, ZLG_ROW_MAJOR, 1, &value), context);
    CHECK(value == want);
  }
}

/* Y = K(X, C) B into a file, and Z = K(X, C)' Y, which reads the large one: 6e8 pairs each, of ones. */
static void products_of_large_files_keep_to_their_memory(void) {
  zlg_context_options options;
  zlg_context *context = NULL;
  zlg_kernel_spec spec;
  zlg_operator *A = NULL;
  zlg_matrix *Y = NULL;
  zlg_cost cost;
  zlg_test_context_options(&options);
  options.memory_limit = MOST / 2;
  ZLG_CHECK_OK(zlg_context_create(&context, &options), NULL);
  zlg_kernel_spec_init(&spec, ZLG_CAUCHY);
  struct zlg_test_array centres = zlg_test_array_new(ZLG_F64, CENTRES, 3, ZLG_ROW_MAJOR, 0);
  struct zlg_test_array weights = zlg_test_array_new(ZLG_F64, CENTRES, 1, ZLG_ROW_MAJOR, 0);
  struct zlg_test_array sums = zlg_test_array_new(ZLG_F64, CENTRES, 1, ZLG_ROW_MAJOR, 0);
  zlg_test_array_fill(&weights, 1);
  zlg_matrix *X = large_file(context, "points.npy", 3, 0), *W = large_file(context, "ones.npy", 1, 1);
  zlg_matrix *C = zlg_test_array_wrap(context, &centres), *B = zlg_test_array_wrap(context, &weights);
  zlg_matrix *Z = zlg_test_array_wrap(context, &sums);
  char *path = zlg_test_path("y.npy");
  ZLG_CHECK_OK(zlg_kernel(context, &A, &spec, X, C), context);
  ZLG_CHECK_OK(zlg_matrix_create_npy(context, &Y, path, ZLG_F64, POINTS, 1, ZLG_ROW_MAJOR), context);
  ZLG_CHECK_OK(zlg_operator_cost(A, ZLG_NOTRANS, 1, &cost), context);
  CHECK(cost.memory_bytes <= MOST / 2);
  int64_t before = most_resident();
  ZLG_CHECK_OK(zlg_test_apply(A, ZLG_NOTRANS, 1, B, 0, Y), context);
  ZLG_CHECK_OK(zlg_test_apply(A, ZLG_TRANS, 1, W, 0, Z), context);
  int64_t more = most_resident() - before;
  /* A sanitizer's shadow and its quarantine of freed memory count as ours. */
  const char *sanitized = getenv("ZLG_SANITIZE");
  int64_t most = sanitized && *sanitized ? 4 * MOST : MOST;
  if (more >= most) printf("%lld bytes more\n", (long long)more);
  CHECK(more < most);
  check_ends(context, Y, POINTS, CENTRES);
  CHECK(zlg_test_array_get(&sums, 0, 0) == POINTS && zlg_test_array_get(&sums, CENTRES - 1, 0) == POINTS);
  zlg_operator_release(A);
  zlg_matrix *matrices[] = {X, C, B, Y, W, Z};
  for (size_t i = 0; i < sizeof matrices / sizeof *matrices; i++) zlg_matrix_release(matrices[i]);
  zlg_test_array_free(&centres);
  zlg_test_array_free(&weights);
  zlg_test_array_free(&sums);
  zlg_context_release(context);
  free(path);
}

/* --- tasks --- */

static atomic_int stop, most_submitted;

static void *watch(void *unused) {
  (void)unused;
  while (!atomic_load(&stop)) {
    int now = starpu_task_nsubmitted();
    if (now > atomic_load(&most_submitted)) atomic_store(&most_submitted, now);
    usleep(50);
  }
  return NULL;
}

/* 250 x 250 tiles, of which a window of 32 and 16 a worker is under way (src/plan/shape.c). */
static void tasks_are_submitted_in_a_window(void) {
  zlg_context_options options;
  zlg_context *context = NULL;
  zlg_kernel_spec spec;
  zlg_operator *A = NULL;
  pthread_t thread;
  zlg_test_context_options(&options);
  options.tile_rows = options.tile_columns = 16;
  options.direct_seconds = 0;
  ZLG_CHECK_OK(zlg_context_create(&context, &options), NULL);
  zlg_kernel_spec_init(&spec, ZLG_CAUCHY);
  struct zlg_test_array x = zlg_test_array_new(ZLG_F32, 4000, 3, ZLG_ROW_MAJOR, 0);
  struct zlg_test_array b = zlg_test_array_new(ZLG_F32, 4000, 1, ZLG_ROW_MAJOR, 0);
  struct zlg_test_array y = zlg_test_array_new(ZLG_F32, 4000, 1, ZLG_ROW_MAJOR, 0);
  zlg_test_array_fill(&b, 1);
  zlg_matrix *X = zlg_test_array_wrap(context, &x), *B = zlg_test_array_wrap(context, &b);
  zlg_matrix *Y = zlg_test_array_wrap(context, &y);
  ZLG_CHECK_OK(zlg_kernel(context, &A, &spec, X, X), context);
  CHECK(pthread_create(&thread, NULL, watch, NULL) == 0);
  ZLG_CHECK_OK(zlg_test_apply(A, ZLG_NOTRANS, 1, B, 0, Y), context);
  atomic_store(&stop, 1);
  pthread_join(thread, NULL);
  /* StarPU counts a task a little longer than we do, one more a worker, and the work of unregistering a tile as well.
   */
  int window = 32 + 16 * zlg_context_worker_count(context), more = 2 * zlg_context_worker_count(context);
  printf("%d tasks at most\n", atomic_load(&most_submitted));
  CHECK(atomic_load(&most_submitted) > 0 && atomic_load(&most_submitted) <= window + more);
  CHECK(zlg_test_array_get(&y, 0, 0) == 4000 && zlg_test_array_get(&y, 3999, 0) == 4000);
  zlg_operator_release(A);
  zlg_matrix_release(X);
  zlg_matrix_release(B);
  zlg_matrix_release(Y);
  zlg_test_array_free(&x);
  zlg_test_array_free(&b);
  zlg_test_array_free(&y);
  zlg_context_release(context);
}

int main(int argc, char **argv) {
  static const struct zlg_test_case cases[] = {
      {"products_of_large_files_keep_to_their_memory", products_of_large_files_keep_to_their_memory},
      {"tasks_are_submitted_in_a_window", tasks_are_submitted_in_a_window},
      {NULL, NULL}};
  return zlg_test_main(argc, argv, cases);
}
