/* Errors are values: each wrong argument gets its code, and a message that names the culprit, what it was and what was
 * expected. Nothing is written where a call is refused. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support_product.h"

static zlg_context *context, *other;
static double memory[64];

static void check_refused(int status, int want, const zlg_context *of, const char *words, const char *call, int line) {
  zlg_check_status(status, want, of, call, __FILE__, line);
  char text[512];
  snprintf(text, sizeof text, "%.150s says \"%.200s\", not \"%.80s\"", call, zlg_context_message(of), words);
  zlg_check(strstr(zlg_context_message(of), words) != NULL, text, __FILE__, line);
}
/* The message is the one on `context`. */
#define REFUSED(call, want, words) check_refused((call), (want), context, (words), #call, __LINE__)
/* The message of a call that had no context. */
#define REFUSED_BARE(call, want, words) check_refused((call), (want), NULL, (words), #call, __LINE__)

static zlg_matrix *view(zlg_context *of, zlg_type type, int64_t rows, int64_t columns) {
  zlg_matrix *matrix = NULL;
  ZLG_CHECK_OK(zlg_matrix_wrap(of, &matrix, type, rows, columns, ZLG_ROW_MAJOR, columns, memory), of);
  return matrix;
}

static zlg_operator *gaussian(zlg_matrix *X1, zlg_matrix *X2) {
  zlg_kernel_spec spec;
  zlg_operator *A = NULL;
  zlg_kernel_spec_init(&spec, ZLG_GAUSSIAN);
  ZLG_CHECK_OK(zlg_kernel(context, &A, &spec, X1, X2), context);
  return A;
}

/* --- NULL --- */

static void null_is_refused_by_name_in_matrices(void) {
  zlg_matrix *m = NULL;
  zlg_matrix_info info;
  REFUSED(zlg_matrix_wrap(context, NULL, ZLG_F64, 1, 1, ZLG_ROW_MAJOR, 1, memory), ZLG_EINVAL, "matrix is NULL");
  REFUSED_BARE(zlg_matrix_wrap(NULL, &m, ZLG_F64, 1, 1, ZLG_ROW_MAJOR, 1, memory), ZLG_EINVAL, "context is NULL");
  REFUSED(zlg_matrix_wrap(context, &m, ZLG_F64, 1, 1, ZLG_ROW_MAJOR, 1, NULL), ZLG_EINVAL, "data is NULL");
  REFUSED(zlg_matrix_wrap_const(context, &m, ZLG_F64, 1, 1, ZLG_ROW_MAJOR, 1, NULL), ZLG_EINVAL, "data is NULL");
  REFUSED(zlg_matrix_open_npy(context, NULL, "x"), ZLG_EINVAL, "matrix is NULL");
  REFUSED(zlg_matrix_open_npy(context, &m, NULL), ZLG_EINVAL, "path is NULL");
  REFUSED_BARE(zlg_matrix_open_npy(NULL, &m, "x"), ZLG_EINVAL, "context is NULL");
  REFUSED(zlg_matrix_create_npy(context, NULL, "x", ZLG_F64, 1, 1, ZLG_ROW_MAJOR), ZLG_EINVAL, "matrix is NULL");
  REFUSED(zlg_matrix_create_npy(context, &m, NULL, ZLG_F64, 1, 1, ZLG_ROW_MAJOR), ZLG_EINVAL, "path is NULL");
  REFUSED(zlg_matrix_open_raw(context, &m, NULL, ZLG_F64, 1, 1, ZLG_ROW_MAJOR, 0, 0), ZLG_EINVAL, "path is NULL");
  REFUSED(zlg_matrix_create_raw(context, &m, NULL, ZLG_F64, 1, 1, ZLG_ROW_MAJOR), ZLG_EINVAL, "path is NULL");
  REFUSED_BARE(zlg_matrix_close(NULL), ZLG_EINVAL, "matrix is NULL");
  REFUSED_BARE(zlg_matrix_get_info(NULL, &info), ZLG_EINVAL, "matrix is NULL");
  REFUSED_BARE(zlg_matrix_read(NULL, 0, 1, 0, 1, ZLG_ROW_MAJOR, 1, memory), ZLG_EINVAL, "matrix is NULL");
  REFUSED_BARE(zlg_matrix_write(NULL, 0, 1, 0, 1, ZLG_ROW_MAJOR, 1, memory), ZLG_EINVAL, "matrix is NULL");
  CU_ASSERT_PTR_NULL(m);
  m = view(context, ZLG_F64, 2, 2);
  REFUSED(zlg_matrix_get_info(m, NULL), ZLG_EINVAL, "info is NULL");
  REFUSED(zlg_matrix_read(m, 0, 1, 0, 1, ZLG_ROW_MAJOR, 1, NULL), ZLG_EINVAL, "block is NULL");
  REFUSED(zlg_matrix_write(m, 0, 1, 0, 1, ZLG_ROW_MAJOR, 1, NULL), ZLG_EINVAL, "block is NULL");
  zlg_matrix_release(m);
  zlg_matrix_release(NULL);
}

static void null_is_refused_by_name_in_operators(void) {
  zlg_kernel_spec spec;
  zlg_operator *A = NULL;
  zlg_operator_info info;
  zlg_cost cost;
  zlg_request *request = NULL;
  zlg_matrix *X = view(context, ZLG_F64, 2, 2), *Y = view(context, ZLG_F64, 2, 1);
  zlg_kernel_spec_init(&spec, ZLG_GAUSSIAN);
  zlg_kernel_spec_init(NULL, ZLG_GAUSSIAN);
  REFUSED_BARE(zlg_kernel(NULL, &A, &spec, X, X), ZLG_EINVAL, "context is NULL");
  REFUSED(zlg_kernel(context, NULL, &spec, X, X), ZLG_EINVAL, "op is NULL");
  REFUSED(zlg_kernel(context, &A, NULL, X, X), ZLG_EINVAL, "spec is NULL");
  REFUSED(zlg_kernel(context, &A, &spec, NULL, X), ZLG_EINVAL, "X1 is NULL");
  REFUSED(zlg_kernel(context, &A, &spec, X, NULL), ZLG_EINVAL, "X2 is NULL");
  spec.lengthscales = NULL;
  REFUSED(zlg_kernel(context, &A, &spec, X, X), ZLG_EINVAL, "lengthscales is NULL");
  A = gaussian(X, X);
  REFUSED_BARE(zlg_operator_get_info(NULL, &info), ZLG_EINVAL, "op is NULL");
  REFUSED(zlg_operator_get_info(A, NULL), ZLG_EINVAL, "info is NULL");
  REFUSED_BARE(zlg_operator_cost(NULL, ZLG_NOTRANS, 1, &cost), ZLG_EINVAL, "A is NULL");
  REFUSED(zlg_operator_cost(A, ZLG_NOTRANS, 1, NULL), ZLG_EINVAL, "cost is NULL");
  REFUSED_BARE(zlg_apply(NULL, ZLG_NOTRANS, 1, X, 0, Y), ZLG_EINVAL, "A is NULL");
  REFUSED(zlg_apply(A, ZLG_NOTRANS, 1, NULL, 0, Y), ZLG_EINVAL, "X is NULL");
  REFUSED(zlg_apply(A, ZLG_NOTRANS, 1, X, 0, NULL), ZLG_EINVAL, "Y is NULL");
  REFUSED(zlg_apply_async(A, ZLG_NOTRANS, 1, X, 0, Y, NULL), ZLG_EINVAL, "request is NULL");
  REFUSED_BARE(zlg_apply_async(NULL, ZLG_NOTRANS, 1, X, 0, Y, &request), ZLG_EINVAL, "A is NULL");
  CU_ASSERT_PTR_NULL(request);
  CU_ASSERT_PTR_NULL(zlg_operator_retain(NULL));
  zlg_operator_release(NULL);
  zlg_operator_release(A);
  zlg_matrix_release(X);
  zlg_matrix_release(Y);
}

static void null_is_refused_by_name_in_contexts_and_requests(void) {
  zlg_worker_info worker;
  zlg_machine_info machine;
  zlg_codelet_info codelet;
  zlg_progress progress;
  zlg_report report;
  int done;
  int64_t count;
  const zlg_trace_entry *entries;
  REFUSED_BARE(zlg_context_create(NULL, NULL), ZLG_EINVAL, "context is NULL");
  REFUSED_BARE(zlg_context_worker(NULL, 0, &worker), ZLG_EINVAL, "context is NULL");
  REFUSED(zlg_context_worker(context, 0, NULL), ZLG_EINVAL, "info is NULL");
  REFUSED_BARE(zlg_context_machine(NULL, &machine), ZLG_EINVAL, "context is NULL");
  REFUSED(zlg_context_machine(context, NULL), ZLG_EINVAL, "info is NULL");
  REFUSED_BARE(zlg_context_codelet(NULL, 0, &codelet), ZLG_EINVAL, "context is NULL");
  REFUSED(zlg_context_codelet(context, 0, NULL), ZLG_EINVAL, "info is NULL");
  CU_ASSERT_EQUAL(zlg_context_worker_count(NULL), 0);
  zlg_context_options_init(NULL);
  zlg_context_release(NULL);
  REFUSED_BARE(zlg_request_wait(NULL), ZLG_EINVAL, "request is NULL");
  REFUSED_BARE(zlg_request_test(NULL, &done), ZLG_EINVAL, "request is NULL");
  REFUSED_BARE(zlg_request_progress(NULL, &progress), ZLG_EINVAL, "request is NULL");
  REFUSED_BARE(zlg_request_report(NULL, &report), ZLG_EINVAL, "request is NULL");
  REFUSED_BARE(zlg_request_trace(NULL, &count, &entries), ZLG_EINVAL, "request is NULL");
  CU_ASSERT_STRING_EQUAL(zlg_request_message(NULL), "");
  zlg_request_cancel(NULL);
  zlg_request_release(NULL);
}

/* --- wrong values --- */

static void wrong_indices_are_refused(void) {
  zlg_worker_info worker;
  zlg_codelet_info codelet;
  char words[64];
  int count = zlg_context_worker_count(context), codelets = 0;
  snprintf(words, sizeof words, "worker index = %d, expected 0 to %d", count, count - 1);
  REFUSED(zlg_context_worker(context, count, &worker), ZLG_EINVAL, words);
  REFUSED(zlg_context_worker(context, -1, &worker), ZLG_EINVAL, "worker index = -1");
  while (zlg_context_codelet(context, codelets, &codelet) == ZLG_OK) {
    CU_ASSERT_PTR_NOT_NULL(codelet.name);
    CU_ASSERT_EQUAL(codelet.has_cpu, 1);
    CU_ASSERT_EQUAL(strncmp(codelet.model_symbol, "zlg_", 4), 0);
    codelets++;
  }
  CU_ASSERT_TRUE(codelets >= 2);
  REFUSED(zlg_context_codelet(context, -1, &codelet), ZLG_EINVAL, "codelet index = -1");
}

/* One field of a kernel's description at a time. */
static void wrong_kernel_parameters_are_refused_with_their_value(void) {
  static const double bad[] = {NAN, INFINITY};
  zlg_matrix *X = view(context, ZLG_F64, 2, 3);
  zlg_operator *A = NULL;
  zlg_kernel_spec spec;
  zlg_kernel_spec_init(&spec, ZLG_GAUSSIAN);
  spec.struct_size = 8;
  REFUSED(zlg_kernel(context, &A, &spec, X, X), ZLG_EINVAL, "struct_size = 8");
  zlg_kernel_spec_init(&spec, (zlg_kernel_kind)99);
  REFUSED(zlg_kernel(context, &A, &spec, X, X), ZLG_EINVAL, "kind = 99");
  zlg_kernel_spec_init(&spec, (zlg_kernel_kind)0);
  REFUSED(zlg_kernel(context, &A, &spec, X, X), ZLG_EINVAL, "kind = 0");
  static const int64_t counts[] = {0, -1, 2, 4};
  for (size_t i = 0; i < 4; i++) {
    char words[64];
    zlg_kernel_spec_init(&spec, ZLG_GAUSSIAN);
    spec.lengthscale_count = counts[i];
    snprintf(words, sizeof words, "lengthscale_count = %d, expected 1 or", (int)counts[i]);
    REFUSED(zlg_kernel(context, &A, &spec, X, X), ZLG_EINVAL, words);
  }
  for (size_t i = 0; i < 2; i++) {
    zlg_kernel_spec_init(&spec, ZLG_SIGMOID);
    spec.gamma = bad[i];
    REFUSED(zlg_kernel(context, &A, &spec, X, X), ZLG_EINVAL, i ? "gamma = inf" : "gamma = nan");
    zlg_kernel_spec_init(&spec, ZLG_LINEAR);
    spec.offset = bad[i];
    REFUSED(zlg_kernel(context, &A, &spec, X, X), ZLG_EINVAL, i ? "offset = inf" : "offset = nan");
    zlg_kernel_spec_init(&spec, ZLG_RATIONAL_QUADRATIC);
    spec.alpha = bad[i];
    REFUSED(zlg_kernel(context, &A, &spec, X, X), ZLG_EINVAL, i ? "alpha = inf" : "alpha = nan");
  }
  spec.alpha = 0;
  REFUSED(zlg_kernel(context, &A, &spec, X, X), ZLG_EINVAL, "alpha = 0, expected a positive");
  zlg_kernel_spec_init(&spec, ZLG_POLYNOMIAL);
  spec.degree = -1;
  REFUSED(zlg_kernel(context, &A, &spec, X, X), ZLG_EINVAL, "degree = -1, expected 0 or more");
  static const double tiny = 1e-320;
  zlg_kernel_spec_init(&spec, ZLG_GAUSSIAN);
  spec.lengthscales = &tiny; /* its inverse is infinite */
  REFUSED(zlg_kernel(context, &A, &spec, X, X), ZLG_EINVAL, "lengthscales[0] = ");
  CU_ASSERT_PTR_NULL(A);
  zlg_matrix_release(X);
}

static void wrong_applications_are_refused(void) {
  zlg_matrix *X = view(context, ZLG_F64, 4, 2), *B = view(context, ZLG_F64, 4, 1);
  zlg_matrix *foreign = view(other, ZLG_F64, 4, 1), *foreign_points = view(other, ZLG_F64, 4, 2), *Y = NULL;
  zlg_kernel_spec spec;
  zlg_cost cost;
  zlg_operator *A = gaussian(X, X), *none = NULL;
  static double output[4] = {1, 2, 3, 4};
  ZLG_CHECK_OK(zlg_matrix_wrap(context, &Y, ZLG_F64, 4, 1, ZLG_ROW_MAJOR, 1, output), context);
  REFUSED(zlg_apply(A, (zlg_op)3, 1, B, 0, Y), ZLG_EINVAL, "op = 3, expected");
  REFUSED(zlg_apply(A, ZLG_NOTRANS, NAN, B, 0, Y), ZLG_EINVAL, "alpha is NaN");
  REFUSED(zlg_apply(A, ZLG_NOTRANS, 1, B, NAN, Y), ZLG_EINVAL, "beta is NaN");
  REFUSED(zlg_apply(A, ZLG_NOTRANS, 1, foreign, 0, Y), ZLG_EINVAL, "X was made with another context");
  REFUSED(zlg_apply(A, ZLG_NOTRANS, 1, B, 0, foreign), ZLG_EINVAL, "Y was made with another context");
  REFUSED(zlg_operator_cost(A, ZLG_NOTRANS, -1, &cost), ZLG_EINVAL, "columns = -1");
  REFUSED(zlg_operator_cost(A, (zlg_op)0, 1, &cost), ZLG_EINVAL, "op = 0");
  zlg_kernel_spec_init(&spec, ZLG_GAUSSIAN);
  REFUSED(zlg_kernel(context, &none, &spec, foreign_points, X), ZLG_EINVAL, "X1 was made with another context");
  REFUSED(zlg_kernel(context, &none, &spec, X, foreign_points), ZLG_EINVAL, "X2 was made with another context");
  for (int i = 0; i < 4; i++) CU_ASSERT_EQUAL(output[i], i + 1);
  zlg_operator_release(A);
  zlg_matrix *made[] = {X, B, foreign, foreign_points, Y};
  for (size_t i = 0; i < 5; i++) zlg_matrix_release(made[i]);
}

/* Points that take no memory, so that there are many of them: products of sizes that do not fit in 64 bits. */
static void sizes_whose_product_overflows_are_refused(void) {
  zlg_matrix *X = NULL, *B = NULL;
  zlg_cost cost;
  const int64_t many = INT64_C(1) << 40;
  ZLG_CHECK_OK(zlg_matrix_wrap(context, &X, ZLG_F32, many, 0, ZLG_ROW_MAJOR, 0, NULL), context);
  zlg_operator *A = gaussian(X, X);
  REFUSED(zlg_operator_cost(A, ZLG_NOTRANS, 1, &cost), ZLG_EOVERFLOW, "1099511627776 x 1099511627776");
  REFUSED(zlg_matrix_wrap(context, &B, ZLG_F64, many, many, ZLG_ROW_MAJOR, many, memory), ZLG_EOVERFLOW,
          "rows = 1099511627776");
  CU_ASSERT_PTR_NULL(B);
  zlg_operator_release(A);
  zlg_matrix_release(X);
}

/* --- messages --- */

static void *fail_elsewhere(void *unused) {
  (void)unused;
  zlg_cost cost;
  bool fresh = strcmp(zlg_context_message(context), "") == 0 && strcmp(zlg_context_message(NULL), "") == 0;
  zlg_operator_cost(NULL, ZLG_NOTRANS, 1, &cost);
  return fresh ? context : NULL;
}

static void a_message_is_its_threads_and_its_contexts(void) {
  pthread_t thread;
  void *fresh = NULL;
  zlg_worker_info worker;
  REFUSED(zlg_context_worker(context, -7, &worker), ZLG_EINVAL, "-7");
  check_refused(zlg_context_worker(other, -8, &worker), ZLG_EINVAL, other, "-8", "on the other context", __LINE__);
  CU_ASSERT_PTR_NOT_NULL(strstr(zlg_context_message(context), "-7"));
  CU_ASSERT_PTR_NOT_NULL(strstr(zlg_context_message(NULL), "-8"));
  CU_ASSERT_EQUAL(pthread_create(&thread, NULL, fail_elsewhere, NULL), 0);
  CU_ASSERT_EQUAL(pthread_join(thread, &fresh), 0);
  CU_ASSERT_PTR_EQUAL(fresh, context);
  CU_ASSERT_PTR_NOT_NULL(strstr(zlg_context_message(context), "-7"));
}

static void every_status_has_a_name_and_a_text(void) {
#define CHECK_STATUS_ROW(name, value, text)                                                                            \
  CU_ASSERT_EQUAL(ZLG_##name, value);                                                                                  \
  CU_ASSERT_STRING_EQUAL(zlg_strerror(value), text);                                                                   \
  CU_ASSERT_STRING_EQUAL(zlg_status_name(value), "ZLG_" #name);
  ZLG_STATUS_MAP(CHECK_STATUS_ROW)
  CU_ASSERT_STRING_EQUAL(zlg_strerror(1), "unknown status");
  CU_ASSERT_STRING_EQUAL(zlg_status_name(-999), "ZLG_UNKNOWN");
}

static void every_type_and_worker_kind_has_a_name(void) {
  CU_ASSERT_STRING_EQUAL(zlg_type_name(ZLG_F32), "f32");
  CU_ASSERT_STRING_EQUAL(zlg_type_name(ZLG_F64), "f64");
  CU_ASSERT_PTR_NULL(zlg_type_name((zlg_type)0));
  CU_ASSERT_EQUAL(zlg_type_size(ZLG_F32), 4);
  CU_ASSERT_EQUAL(zlg_type_size(ZLG_F64), 8);
  CU_ASSERT_EQUAL(zlg_type_size((zlg_type)3), 0);
  CU_ASSERT_STRING_EQUAL(zlg_worker_kind_name(ZLG_WORKER_CPU), "cpu");
  CU_ASSERT_STRING_EQUAL(zlg_worker_kind_name(ZLG_WORKER_OPENCL), "opencl");
  CU_ASSERT_STRING_EQUAL(zlg_worker_kind_name(ZLG_WORKER_CUDA), "cuda");
  CU_ASSERT_PTR_NULL(zlg_worker_kind_name((zlg_worker_kind)9));
}

int main(int argc, char **argv) {
  static const struct zlg_test_case cases[] = {
      {"null_is_refused_by_name_in_matrices", null_is_refused_by_name_in_matrices},
      {"null_is_refused_by_name_in_operators", null_is_refused_by_name_in_operators},
      {"null_is_refused_by_name_in_contexts_and_requests", null_is_refused_by_name_in_contexts_and_requests},
      {"wrong_indices_are_refused", wrong_indices_are_refused},
      {"wrong_kernel_parameters_are_refused_with_their_value", wrong_kernel_parameters_are_refused_with_their_value},
      {"wrong_applications_are_refused", wrong_applications_are_refused},
      {"sizes_whose_product_overflows_are_refused", sizes_whose_product_overflows_are_refused},
      {"a_message_is_its_threads_and_its_contexts", a_message_is_its_threads_and_its_contexts},
      {"every_status_has_a_name_and_a_text", every_status_has_a_name_and_a_text},
      {"every_type_and_worker_kind_has_a_name", every_type_and_worker_kind_has_a_name},
      {NULL, NULL}};
  context = zlg_test_context();
  other = zlg_test_context();
  int status = zlg_test_main(argc, argv, cases);
  zlg_context_release(context);
  zlg_context_release(other);
  return status;
}
