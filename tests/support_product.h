/* What the tests of products share: arrays with gaps that nobody may touch, kernel matrices in long double with the
 * a-priori bound of each entry, the check of a product against them, and a tally of who computed. */
#ifndef ZLG_TESTS_SUPPORT_PRODUCT_H
#define ZLG_TESTS_SUPPORT_PRODUCT_H

#include "tests/support.h"

/* A matrix in memory. Lines are `gap` elements longer than they need to be; those hold NaN, so that a product that
 * reads them shows it, and zlg_test_array_gaps_intact() tells whether one has written them. */
struct zlg_test_array {
  zlg_type type;
  int64_t rows, columns;
  zlg_order order;
  int64_t ld;
  void *memory; /* never NULL */
  size_t bytes;
};

/* Zeros. Ends the program where there is no memory; to be given back with zlg_test_array_free(). */
struct zlg_test_array zlg_test_array_new(zlg_type type, int64_t rows, int64_t columns, zlg_order order, int64_t gap);
/* Normal numbers of this mean and deviation. */
struct zlg_test_array zlg_test_array_random(zlg_type type, int64_t rows, int64_t columns, zlg_order order, int64_t gap,
                                            uint64_t *state, double mean, double deviation);
/* The same elements in another order. */
struct zlg_test_array zlg_test_array_copy(const struct zlg_test_array *from, zlg_order order, int64_t gap);
void zlg_test_array_free(struct zlg_test_array *array);
void zlg_test_array_fill(struct zlg_test_array *array, double value);
bool zlg_test_array_gaps_intact(const struct zlg_test_array *array);
/* True where all elements have the same bits. */
bool zlg_test_array_same_bits(const struct zlg_test_array *a, const struct zlg_test_array *b);

static inline double zlg_test_array_get(const struct zlg_test_array *array, int64_t i, int64_t k) {
  return zlg_test_get(array->type, array->order, array->ld, array->memory, i, k);
}
static inline void zlg_test_array_set(struct zlg_test_array *array, int64_t i, int64_t k, double value) {
  zlg_test_set(array->type, array->order, array->ld, array->memory, i, k, value);
}

/* A view of it; ends the program with the message where the library refuses. The caller's to release. */
zlg_matrix *zlg_test_array_wrap(zlg_context *context, struct zlg_test_array *array);

/* A file with its elements, opened. `name` is a file in the test's directory. */
enum zlg_test_file { ZLG_TEST_NPY, ZLG_TEST_RAW };
zlg_matrix *zlg_test_array_file(zlg_context *context, const struct zlg_test_array *array, enum zlg_test_file format,
                                const char *name);

/* K[i][j] = k(x1_i, x2_j) in long double, and how far a kernel in the arrays' precision may be from it. */
struct zlg_test_kernel {
  zlg_type type;
  int64_t m, n;
  long double *value, *error;
};
struct zlg_test_kernel zlg_test_kernel_new(const zlg_kernel_spec *spec, const struct zlg_test_array *x1,
                                           const struct zlg_test_array *x2);
void zlg_test_kernel_free(struct zlg_test_kernel *kernel);

/* Checks every element of y against alpha op(K) b + beta before, with its bound (support_product.c derives it); where
 * the reference is NaN, y must be. `before` may be NULL where beta is 0. */
void zlg_test_check_product(const struct zlg_test_kernel *kernel, zlg_op op, double alpha,
                            const struct zlg_test_array *b, double beta, const struct zlg_test_array *before,
                            const struct zlg_test_array *y, const char *file, int line);
#define ZLG_CHECK_PRODUCT(kernel, op, alpha, b, beta, before, y)                                                       \
  zlg_test_check_product(kernel, op, alpha, b, beta, before, y, __FILE__, __LINE__)

/* One product, waited for; counts the tasks of each kind of worker into zlg_test_tasks. Returns the status. */
int zlg_test_apply(zlg_operator *A, zlg_op op, double alpha, zlg_matrix *X, double beta, zlg_matrix *Y);
/* Y = alpha op(K) B + beta Y with matrices made and given back here: what most tests want. Checks that it succeeds. */
void zlg_test_product(zlg_context *context, const zlg_kernel_spec *spec, struct zlg_test_array *x1,
                      struct zlg_test_array *x2, zlg_op op, double alpha, struct zlg_test_array *b, double beta,
                      struct zlg_test_array *y);
/* Tasks that zlg_test_apply() has seen run, by zlg_worker_kind. */
extern int64_t zlg_test_tasks[4];
/* A case for the end of a table: fails in the modes with devices unless they ran tasks. */
void zlg_test_devices_ran_tasks(void);

#endif
