/* Every public call while memory runs out: with 0, 1, 2, ... allocations allowed, once (that one fails and later ones
 * succeed) and for good (all later ones fail too). Each time the call gives ZLG_ENOMEM with a message or succeeds,
 * leaves nothing allocated, and what it was called with is as usable as before. Only the library's own allocations are
 * refused; StarPU's are not ours to refuse. */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support_product.h"

#define CHECK(condition) zlg_check((condition), #condition, __FILE__, __LINE__)

/* --- the allocator --- */

static atomic_long allowed, live; /* allowed < 0: as many as wanted */
static atomic_bool for_good;

static bool refuses(void) {
  long before = atomic_load(&allowed);
  if (before < 0) return false;
  before = atomic_fetch_sub(&allowed, 1);
  if (before > 0) return false;
  if (before == 0) {
    if (atomic_load(&for_good)) atomic_store(&allowed, 0);
    return true; /* once: allowed is negative now */
  }
  return false;
}

static void *allocate(void *user, size_t bytes) {
  (void)user;
  if (refuses()) return NULL;
  void *memory = malloc(bytes);
  if (memory != NULL) atomic_fetch_add(&live, 1);
  return memory;
}
static void *reallocate(void *user, void *old, size_t bytes) {
  (void)user;
  return refuses() ? NULL : realloc(old, bytes);
}
static void release(void *user, void *memory) {
  (void)user;
  if (memory != NULL) atomic_fetch_sub(&live, 1);
  free(memory);
}

static void allow_all(void) {
  atomic_store(&allowed, -1);
}
/* True where the limit was not reached: the call has all it wants. */
static bool limit_left(void) {
  return atomic_load(&allowed) > 0;
}
static void allow(long count, bool permanently) {
  atomic_store(&for_good, permanently);
  atomic_store(&allowed, count);
}

/* --- what is called --- */

static zlg_context *context;
static double points[3 * 40], weights[40], results[40];
static zlg_matrix *X, *B, *Y, *XFile, *BFile;
static zlg_operator *A, *AFile;
static char *input, *output;

static int create_context(void) {
  zlg_context *made = NULL;
  zlg_context_options options;
  zlg_test_context_options(&options);
  int status = zlg_context_create(&made, &options);
  CHECK((status == ZLG_OK) == (made != NULL));
  zlg_context_release(made);
  return status;
}

static int wrap(void) {
  zlg_matrix *made = NULL;
  int status = zlg_matrix_wrap(context, &made, ZLG_F64, 40, 3, ZLG_ROW_MAJOR, 3, points);
  CHECK((status == ZLG_OK) == (made != NULL));
  zlg_matrix_release(made);
  return status;
}

static int open_npy(void) {
  zlg_matrix *made = NULL;
  int status = zlg_matrix_open_npy(context, &made, input);
  CHECK((status == ZLG_OK) == (made != NULL));
  zlg_matrix_release(made);
  return status;
}

static int open_raw(void) {
  zlg_matrix *made = NULL;
  int status = zlg_matrix_open_raw(context, &made, input, ZLG_F64, 2, 2, ZLG_ROW_MAJOR, 0, 0);
  CHECK((status == ZLG_OK) == (made != NULL));
  zlg_matrix_release(made);
  return status;
}

/* A file that was not finished is not there. */
static int create_npy(void) {
  zlg_matrix *made = NULL;
  int status = zlg_matrix_create_npy(context, &made, output, ZLG_F64, 40, 1, ZLG_ROW_MAJOR);
  if (status == ZLG_OK) status = zlg_matrix_write(made, 0, 40, 0, 1, ZLG_COLUMN_MAJOR, 40, weights);
  if (status == ZLG_OK) status = zlg_matrix_close(made);
  zlg_matrix_release(made);
  CHECK((access(output, F_OK) == 0) == (status == ZLG_OK));
  unlink(output);
  return status;
}

static int create_raw(void) {
  zlg_matrix *made = NULL;
  int status = zlg_matrix_create_raw(context, &made, output, ZLG_F64, 40, 1, ZLG_ROW_MAJOR);
  if (status == ZLG_OK) status = zlg_matrix_close(made);
  zlg_matrix_release(made);
  CHECK((access(output, F_OK) == 0) == (status == ZLG_OK));
  unlink(output);
  return status;
}

static int read_block(void) {
  double block[40 * 3];
  return zlg_matrix_read(XFile, 0, 40, 0, 3, ZLG_COLUMN_MAJOR, 40, block);
}

static int make_kernel(void) {
  static const double scales[] = {1, 2, 3};
  zlg_kernel_spec spec;
  zlg_operator *made = NULL;
  zlg_kernel_spec_init(&spec, ZLG_GAUSSIAN);
  spec.lengthscale_count = 3;
  spec.lengthscales = scales;
  int status = zlg_kernel(context, &made, &spec, X, X);
  CHECK((status == ZLG_OK) == (made != NULL));
  zlg_operator_release(made);
  return status;
}

static int ask_cost(void) {
  zlg_cost cost;
  return zlg_operator_cost(A, ZLG_NOTRANS, 1, &cost);
}

/* Coincident points and ones: every row is 40, or was not reached. */
static bool rows_are_whole(void) {
  for (int i = 0; i < 40; i++)
    if (results[i] != 40 && results[i] != -1) return false;
  return true;
}
static bool rows_are_done(void) {
  for (int i = 0; i < 40; i++)
    if (results[i] != 40) return false;
  return true;
}

static int checked(int status) {
  CHECK(rows_are_whole());
  if (status == ZLG_OK) CHECK(rows_are_done());
  return status;
}

static int apply(void) {
  for (int i = 0; i < 40; i++) results[i] = -1;
  return checked(zlg_apply(A, ZLG_NOTRANS, 1, B, 0, Y));
}

static int apply_async(void) {
  zlg_request *request = NULL;
  zlg_report report;
  const zlg_trace_entry *entries;
  int64_t count;
  for (int i = 0; i < 40; i++) results[i] = -1;
  int status = zlg_apply_async(A, ZLG_NOTRANS, 1, B, 0, Y, &request);
  CHECK((status == ZLG_OK) == (request != NULL));
  if (status != ZLG_OK) return checked(status);
  status = zlg_request_wait(request);
  CHECK(zlg_request_report(request, &report) == ZLG_OK);
  CHECK(zlg_request_trace(request, &count, &entries) == ZLG_OK);
  CHECK((status == ZLG_OK) == (*zlg_request_message(request) == '\0'));
  for (int i = 0; i < report.worker_count; i++)
    zlg_test_tasks[report.workers[i].worker.kind] += report.workers[i].tasks;
  zlg_request_release(request);
  return checked(status);
}

/* Files everywhere; a product that failed leaves no output. */
static int apply_files(void) {
  zlg_matrix *made = NULL;
  int status = zlg_matrix_create_npy(context, &made, output, ZLG_F64, 40, 1, ZLG_ROW_MAJOR);
  for (int i = 0; i < 40; i++) results[i] = -1;
  if (status == ZLG_OK) status = zlg_apply(AFile, ZLG_TRANS, 1, BFile, 0, made);
  if (status == ZLG_OK) status = zlg_matrix_read(made, 0, 40, 0, 1, ZLG_ROW_MAJOR, 1, results);
  if (status == ZLG_OK) status = zlg_matrix_close(made);
  zlg_matrix_release(made);
  CHECK((access(output, F_OK) == 0) == (status == ZLG_OK));
  unlink(output);
  return checked(status);
}

/* --- the loop --- */

/* At most so many allocations are looked at one by one; a call that wants more is wrong or this number is. */
#define MOST 2000

/* Scratch that a worker keeps for its next task: a record and its memory each, which come with its first task. */
static long kept_by_workers(void) {
  return 2 * zlg_context_worker_count(context);
}

static void refuse_one_by_one(int (*call)(void), bool permanently) {
  for (long count = 0; count < MOST; count++) {
    long before = atomic_load(&live);
    allow(count, permanently);
    int status = call();
    bool enough = limit_left();
    allow_all();
    CHECK(status == ZLG_OK || status == ZLG_ENOMEM);
    if (status != ZLG_OK) CHECK(*zlg_context_message(context) != '\0');
    if (enough) CHECK(status == ZLG_OK);
    CHECK(labs(atomic_load(&live) - before) <= kept_by_workers());
    if (enough) return;
    if (count % 8 == 0) CHECK(call() == ZLG_OK); /* as usable as before */
  }
  CHECK(!"more allocations than expected");
}

/* In a thread of its own: what a thread keeps for itself goes with it, and has gone when the case counts. */
static void *refuse_in_a_thread(void *argument) {
  int (*call)(void) = *(int (**)(void))argument;
  CHECK(call() == ZLG_OK); /* warm: what workers keep for themselves is there */
  refuse_one_by_one(call, false);
  refuse_one_by_one(call, true);
  return NULL;
}

static void in_a_thread(int (*call)(void)) {
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, refuse_in_a_thread, &call) == 0);
  pthread_join(thread, NULL);
}

static void make_inputs(void) {
  zlg_kernel_spec spec;
  zlg_matrix *file = NULL;
  zlg_kernel_spec_init(&spec, ZLG_GAUSSIAN);
  for (int i = 0; i < 40; i++) weights[i] = 1;
  ZLG_CHECK_OK(zlg_matrix_wrap(context, &X, ZLG_F64, 40, 3, ZLG_ROW_MAJOR, 3, points), context);
  ZLG_CHECK_OK(zlg_matrix_wrap(context, &B, ZLG_F64, 40, 1, ZLG_ROW_MAJOR, 1, weights), context);
  ZLG_CHECK_OK(zlg_matrix_wrap(context, &Y, ZLG_F64, 40, 1, ZLG_ROW_MAJOR, 1, results), context);
  ZLG_CHECK_OK(zlg_kernel(context, &A, &spec, X, X), context);
  ZLG_CHECK_OK(zlg_matrix_create_npy(context, &file, input, ZLG_F64, 40, 3, ZLG_ROW_MAJOR), context);
  ZLG_CHECK_OK(zlg_matrix_close(file), context);
  zlg_matrix_release(file);
  ZLG_CHECK_OK(zlg_matrix_open_npy(context, &XFile, input), context);
  char *ones = zlg_test_path("ones.npy");
  ZLG_CHECK_OK(zlg_matrix_create_npy(context, &file, ones, ZLG_F64, 40, 1, ZLG_ROW_MAJOR), context);
  ZLG_CHECK_OK(zlg_matrix_write(file, 0, 40, 0, 1, ZLG_ROW_MAJOR, 1, weights), context);
  ZLG_CHECK_OK(zlg_matrix_close(file), context);
  zlg_matrix_release(file);
  ZLG_CHECK_OK(zlg_matrix_open_npy(context, &BFile, ones), context);
  ZLG_CHECK_OK(zlg_kernel(context, &AFile, &spec, XFile, XFile), context);
  free(ones);
}

static void free_inputs(void) {
  zlg_matrix *matrices[] = {X, B, Y, XFile, BFile};
  for (size_t i = 0; i < 5; i++) zlg_matrix_release(matrices[i]);
  zlg_operator_release(A);
  zlg_operator_release(AFile);
}

/* The calls on a context of these settings; all is given back in the end. */
static void refuse_in(int (*const calls[])(void), int64_t tile, double direct_seconds) {
  static const zlg_allocator refusing = {allocate, reallocate, release, NULL};
  zlg_context_options options;
  allow_all();
  atomic_store(&live, 0);
  ZLG_CHECK_OK(zlg_set_allocator(&refusing), NULL);
  zlg_test_context_options(&options);
  options.tile_rows = options.tile_columns = tile;
  options.direct_seconds = direct_seconds;
  ZLG_CHECK_OK(zlg_context_create(&context, &options), NULL);
  make_inputs();
  for (int i = 0; calls[i] != NULL; i++) in_a_thread(calls[i]);
  free_inputs();
  zlg_context_release(context);
  context = NULL;
  CHECK(atomic_load(&live) == 0);
  ZLG_CHECK_OK(zlg_set_allocator(NULL), NULL);
}

static void making_a_context_survives_any_refusal(void) {
  static const zlg_allocator refusing = {allocate, reallocate, release, NULL};
  allow_all();
  atomic_store(&live, 0);
  ZLG_CHECK_OK(zlg_set_allocator(&refusing), NULL);
  in_a_thread(create_context);
  CHECK(atomic_load(&live) == 0);
  ZLG_CHECK_OK(zlg_set_allocator(NULL), NULL);
}
static void making_matrices_and_operators_survives_any_refusal(void) {
  static int (*const calls[])(void) = {wrap,       open_npy,    open_raw, create_npy, create_raw,
                                       read_block, make_kernel, ask_cost, NULL};
  refuse_in(calls, 16, 0);
}
static void a_product_in_tasks_survives_any_refusal(void) {
  static int (*const calls[])(void) = {apply, apply_async, NULL};
  refuse_in(calls, 16, 0);
}
static void a_direct_product_survives_any_refusal(void) {
  static int (*const calls[])(void) = {apply, apply_async, NULL};
  refuse_in(calls, 0, 1);
}
static void a_product_of_files_survives_any_refusal(void) {
  static int (*const calls[])(void) = {apply_files, NULL};
  refuse_in(calls, 16, 0);
}

int main(int argc, char **argv) {
  static const struct zlg_test_case cases[] = {
      {"making_a_context_survives_any_refusal", making_a_context_survives_any_refusal},
      {"making_matrices_and_operators_survives_any_refusal", making_matrices_and_operators_survives_any_refusal},
      {"a_product_in_tasks_survives_any_refusal", a_product_in_tasks_survives_any_refusal},
      {"a_direct_product_survives_any_refusal", a_direct_product_survives_any_refusal},
      {"a_product_of_files_survives_any_refusal", a_product_of_files_survives_any_refusal},
      {"devices_ran_tasks", zlg_test_devices_ran_tasks},
      {NULL, NULL}};
  input = zlg_test_path("input.npy");
  output = zlg_test_path("output.npy");
  int status = zlg_test_main(argc, argv, cases);
  free(input);
  free(output);
  return status;
}
