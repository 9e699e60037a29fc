/* Products in tests: see the header. */
#include "tests/support_product.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int64_t zlg_test_tasks[4];

static _Noreturn void give_up(const char *what, const zlg_context *context) {
  fprintf(stderr, "%s: %s\n", what, zlg_context_message(context));
  exit(1);
}

static void *allocate(size_t count, size_t bytes) {
  void *memory = calloc(count > 0 ? count : 1, bytes);
  if (memory == NULL) give_up("no memory for a test", NULL);
  return memory;
}

/* --- arrays --- */

static int64_t lines_of(const struct zlg_test_array *array, int64_t *width) {
  *width = array->order == ZLG_ROW_MAJOR ? array->columns : array->rows;
  return array->order == ZLG_ROW_MAJOR ? array->rows : array->columns;
}

static void set_gaps(struct zlg_test_array *array) {
  int64_t width, lines = lines_of(array, &width);
  for (int64_t line = 0; line < lines; line++)
    for (int64_t k = width; k < array->ld; k++)
      zlg_test_set(array->type, ZLG_ROW_MAJOR, array->ld, array->memory, line, k, NAN);
}

struct zlg_test_array zlg_test_array_new(zlg_type type, int64_t rows, int64_t columns, zlg_order order, int64_t gap) {
  struct zlg_test_array array = {.type = type, .rows = rows, .columns = columns, .order = order};
  int64_t width, lines = lines_of(&array, &width);
  array.ld = width + gap;
  array.bytes = (size_t)(lines * array.ld) * zlg_type_size(type);
  array.memory = allocate(array.bytes, 1);
  set_gaps(&array);
  return array;
}

struct zlg_test_array zlg_test_array_random(zlg_type type, int64_t rows, int64_t columns, zlg_order order, int64_t gap,
                                            uint64_t *state, double mean, double deviation) {
  struct zlg_test_array array = zlg_test_array_new(type, rows, columns, order, gap);
  for (int64_t i = 0; i < rows; i++)
    for (int64_t k = 0; k < columns; k++) zlg_test_array_set(&array, i, k, mean + deviation * zlg_test_normal(state));
  return array;
}

struct zlg_test_array zlg_test_array_copy(const struct zlg_test_array *from, zlg_order order, int64_t gap) {
  struct zlg_test_array array = zlg_test_array_new(from->type, from->rows, from->columns, order, gap);
  for (int64_t i = 0; i < from->rows; i++)
    for (int64_t k = 0; k < from->columns; k++) zlg_test_array_set(&array, i, k, zlg_test_array_get(from, i, k));
  return array;
}

void zlg_test_array_free(struct zlg_test_array *array) {
  free(array->memory);
  array->memory = NULL;
}

void zlg_test_array_fill(struct zlg_test_array *array, double value) {
  for (int64_t i = 0; i < array->rows; i++)
    for (int64_t k = 0; k < array->columns; k++) zlg_test_array_set(array, i, k, value);
}

bool zlg_test_array_gaps_intact(const struct zlg_test_array *array) {
  int64_t width, lines = lines_of(array, &width);
  for (int64_t line = 0; line < lines; line++)
    for (int64_t k = width; k < array->ld; k++)
      if (!isnan(zlg_test_get(array->type, ZLG_ROW_MAJOR, array->ld, array->memory, line, k))) return false;
  return true;
}

bool zlg_test_array_same_bits(const struct zlg_test_array *a, const struct zlg_test_array *b) {
  for (int64_t i = 0; i < a->rows; i++)
    for (int64_t k = 0; k < a->columns; k++) {
      double one = zlg_test_array_get(a, i, k), other = zlg_test_array_get(b, i, k);
      if (memcmp(&one, &other, sizeof one) != 0) return false;
    }
  return true;
}

zlg_matrix *zlg_test_array_wrap(zlg_context *context, struct zlg_test_array *array) {
  zlg_matrix *matrix = NULL;
  if (zlg_matrix_wrap(context, &matrix, array->type, array->rows, array->columns, array->order, array->ld,
                      array->memory) != ZLG_OK)
    give_up("zlg_matrix_wrap", context);
  return matrix;
}

zlg_matrix *zlg_test_array_file(zlg_context *context, const struct zlg_test_array *array, enum zlg_test_file format,
                                const char *name) {
  char *path = zlg_test_path(name);
  zlg_matrix *made = NULL, *opened = NULL;
  int status =
      format == ZLG_TEST_NPY
          ? zlg_matrix_create_npy(context, &made, path, array->type, array->rows, array->columns, array->order)
          : zlg_matrix_create_raw(context, &made, path, array->type, array->rows, array->columns, array->order);
  if (status == ZLG_OK)
    status = zlg_matrix_write(made, 0, array->rows, 0, array->columns, array->order, array->ld, array->memory);
  if (status == ZLG_OK) status = zlg_matrix_close(made);
  zlg_matrix_release(made);
  if (status == ZLG_OK)
    status = format == ZLG_TEST_NPY ? zlg_matrix_open_npy(context, &opened, path)
                                    : zlg_matrix_open_raw(context, &opened, path, array->type, array->rows,
                                                          array->columns, array->order, 0, 0);
  if (status != ZLG_OK) give_up(path, context);
  free(path);
  return opened;
}

/* --- kernels and their bounds --- */

/* What a kernel is a function of, at one pair. */
struct pair {
  long double r2, r1, p;
  long double magnitude; /* sum |u_k v_k| */
};

static struct pair pair_of(const zlg_kernel_spec *spec, const struct zlg_test_array *x1, int64_t i,
                           const struct zlg_test_array *x2, int64_t j) {
  struct pair pair = {0};
  for (int64_t k = 0; k < x1->columns; k++) {
    long double l = spec->lengthscales[spec->lengthscale_count == 1 ? 0 : k];
    long double u = zlg_test_array_get(x1, i, k) / l, v = zlg_test_array_get(x2, j, k) / l;
    pair.r2 += (u - v) * (u - v);
    pair.r1 += fabsl(u - v);
    pair.p += u * v;
    pair.magnitude += fabsl(u * v);
  }
  return pair;
}

/* Functions of p: the argument gamma p + offset has an error of gamma_{d+4} of the sum of magnitudes (d products and
 * sums, two scalings, the rounded parameters); the function itself is good to a few roundings. */
static long double error_of_product(const zlg_kernel_spec *spec, const struct pair *pair, long double value, int64_t d,
                                    zlg_type type) {
  long double u = zlg_test_roundoff(type), gamma = spec->kind == ZLG_LINEAR ? 1 : fabsl((long double)spec->gamma);
  long double reach = gamma * pair->magnitude + fabsl((long double)spec->offset);
  long double error = zlg_test_gamma((double)d + 4, type) * reach;
  if (spec->kind == ZLG_LINEAR) return error;
  if (spec->kind == ZLG_SIGMOID) return error + 8 * u * fabsl(value);
  long double base = fabsl((spec->kind == ZLG_LINEAR ? 1 : spec->gamma) * pair->p + spec->offset);
  return powl(base + error, spec->degree) - powl(base, spec->degree) +
         zlg_test_gamma(spec->degree + 1.0, type) * powl(base + error, spec->degree);
}

/* Functions of r: subtracted first, the squared distance has a relative error of gamma_{d+8} (in each term the
 * difference, its scaling by a rounded weight, the square; d sums; a scaling for the exponent). The function is
 * evaluated at both ends of that interval; exp and the like add 8 roundings (4 ulp), a power alpha |log| more of them.
 */
static long double error_of_distance(const zlg_kernel_spec *spec, const struct pair *pair, long double value, int64_t d,
                                     zlg_type type) {
  long double u = zlg_test_roundoff(type), relative = zlg_test_gamma((double)d + 8, type), error = 0;
  for (int sign = -1; sign <= 1; sign += 2) {
    long double factor = 1 + sign * relative;
    error = fmaxl(error, fabsl(zlg_reference_radial(spec, pair->r2 * factor, pair->r1 * factor) - value));
  }
  long double roundings = 8;
  if (spec->kind == ZLG_RATIONAL_QUADRATIC)
    roundings += 4 * (long double)spec->alpha * log1pl(pair->r2 / (2 * (long double)spec->alpha));
  return error + roundings * u * fabsl(value);
}

struct zlg_test_kernel zlg_test_kernel_new(const zlg_kernel_spec *spec, const struct zlg_test_array *x1,
                                           const struct zlg_test_array *x2) {
  struct zlg_test_kernel kernel = {.type = x1->type, .m = x1->rows, .n = x2->rows};
  size_t count = (size_t)(kernel.m * kernel.n);
  kernel.value = allocate(count, sizeof *kernel.value);
  kernel.error = allocate(count, sizeof *kernel.error);
  bool product = spec->kind == ZLG_LINEAR || spec->kind == ZLG_POLYNOMIAL || spec->kind == ZLG_SIGMOID;
  int64_t d = x1->columns;
  for (int64_t i = 0; i < kernel.m; i++)
    for (int64_t j = 0; j < kernel.n; j++) {
      struct pair pair = pair_of(spec, x1, i, x2, j);
      long double value = zlg_reference_of(spec, pair.r2, pair.r1, pair.p);
      kernel.value[i * kernel.n + j] = value;
      kernel.error[i * kernel.n + j] = product ? error_of_product(spec, &pair, value, d, kernel.type)
                                               : error_of_distance(spec, &pair, value, d, kernel.type);
    }
  return kernel;
}

void zlg_test_kernel_free(struct zlg_test_kernel *kernel) {
  free(kernel->value);
  free(kernel->error);
}

/* --- products --- */

/* One element: with s = sum_j K_ij b_j, computed s differs by the kernel's error, by gamma_{n+3} sum |K_ij b_j| for the
 * sum in any order (Higham, section 4.2), and by what is too small for the type; then alpha s + beta y is rounded. */
static void check_element(const struct zlg_test_kernel *kernel, zlg_op op, int64_t i, int64_t column, double alpha,
                          const struct zlg_test_array *b, double beta, const struct zlg_test_array *before, double got,
                          const char *file, int line) {
  int64_t terms = op == ZLG_NOTRANS ? kernel->n : kernel->m;
  long double tiny = kernel->type == ZLG_F32 ? 0x1p-120L : 0x1p-1000L, u = zlg_test_roundoff(kernel->type);
  long double gamma = zlg_test_gamma((double)terms + 3, kernel->type), sum = 0, bound = 0;
  for (int64_t j = 0; alpha != 0 && j < terms; j++) {
    int64_t at = op == ZLG_NOTRANS ? i * kernel->n + j : j * kernel->n + i;
    long double weight = zlg_test_array_get(b, j, column);
    sum += kernel->value[at] * weight;
    bound += (kernel->error[at] * (1 + gamma) + gamma * fabsl(kernel->value[at]) + tiny) * fabsl(weight);
  }
  long double old = beta == 0 ? 0 : beta * (long double)zlg_test_array_get(before, i, column);
  long double want = alpha * sum + old;
  if (isnan(want)) {
    zlg_check(isnan(got), "a NaN that the sum meets is lost", file, line);
    return;
  }
  bound = fabsl((long double)alpha) * bound + 4 * u * (fabsl(alpha * sum) + fabsl(old)) + tiny;
  zlg_check_close(got, want, bound, file, line);
}

void zlg_test_check_product(const struct zlg_test_kernel *kernel, zlg_op op, double alpha,
                            const struct zlg_test_array *b, double beta, const struct zlg_test_array *before,
                            const struct zlg_test_array *y, const char *file, int line) {
  for (int64_t i = 0; i < y->rows; i++)
    for (int64_t column = 0; column < y->columns; column++)
      check_element(kernel, op, i, column, alpha, b, beta, before, zlg_test_array_get(y, i, column), file, line);
  zlg_check(zlg_test_array_gaps_intact(y), "memory between the lines of Y was written", file, line);
}

int zlg_test_apply(zlg_operator *A, zlg_op op, double alpha, zlg_matrix *X, double beta, zlg_matrix *Y) {
  zlg_request *request = NULL;
  zlg_report report;
  int status = zlg_apply_async(A, op, alpha, X, beta, Y, &request);
  if (status == ZLG_OK) status = zlg_request_wait(request);
  if (request != NULL && zlg_request_report(request, &report) == ZLG_OK)
    for (int i = 0; i < report.worker_count; i++)
      zlg_test_tasks[report.workers[i].worker.kind] += report.workers[i].tasks;
  zlg_request_release(request);
  return status;
}

void zlg_test_product(zlg_context *context, const zlg_kernel_spec *spec, struct zlg_test_array *x1,
                      struct zlg_test_array *x2, zlg_op op, double alpha, struct zlg_test_array *b, double beta,
                      struct zlg_test_array *y) {
  zlg_matrix *X1 = zlg_test_array_wrap(context, x1), *X2 = zlg_test_array_wrap(context, x2);
  zlg_matrix *B = zlg_test_array_wrap(context, b), *Y = zlg_test_array_wrap(context, y);
  zlg_operator *A = NULL;
  ZLG_CHECK_OK(zlg_kernel(context, &A, spec, X1, X2), context);
  ZLG_CHECK_OK(zlg_test_apply(A, op, alpha, B, beta, Y), context);
  zlg_operator_release(A);
  zlg_matrix_release(X1);
  zlg_matrix_release(X2);
  zlg_matrix_release(B);
  zlg_matrix_release(Y);
}

void zlg_test_devices_ran_tasks(void) {
  zlg_check(zlg_test_device_workers() == 0 || zlg_test_tasks[zlg_test_device_kind()] > 0,
            "the devices of this mode ran no task", __FILE__, __LINE__);
}
