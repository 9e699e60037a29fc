/* Contexts, matrices, files, kernel products while memory runs out (refuse.h). */
#include <stdlib.h>
#include <unistd.h>

#include "tests/fault/refuse.h"
#include "tests/support_product.h"

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
  zlg_context_options options;
  zlg_refuse_begin();
  zlg_test_context_options(&options);
  options.tile_rows = options.tile_columns = tile;
  options.direct_seconds = direct_seconds;
  ZLG_CHECK_OK(zlg_context_create(&context, &options), NULL);
  make_inputs();
  for (int i = 0; calls[i] != NULL; i++) zlg_refuse_in_turn(context, calls[i]);
  free_inputs();
  zlg_context_release(context);
  context = NULL;
  zlg_refuse_end();
}

static void making_a_context_survives_any_refusal(void) {
  zlg_refuse_begin();
  zlg_refuse_in_turn(NULL, create_context);
  zlg_refuse_end();
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
