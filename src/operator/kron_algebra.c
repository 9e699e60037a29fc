/* What is known of a Kronecker product by its factors: diagonal, trace, determinant, inverse, and the gradient of the
 * determinant's logarithm. */
#include <math.h>

#include "codelets/common/lapack.h"
#include "src/core/error.h"
#include "src/core/memory.h"
#include "src/operator/kron_dense.h"
#include "src/operator/kron_shifted.h"
#include "zellige/kron.h"

/* The Kronecker product in A, and what is added to its diagonal; ZLG_ENOTSUP where there is none. */
static int open_kron(zlg_operator *A, const char *what, zlg_operator **kron, double *shift) {
  if (!A) return zlg_fail(NULL, ZLG_EINVAL, "%s: A is NULL, expected an operator", what);
  *kron = A;
  *shift = 0;
  if (A->kind == &zlg_kron_kind) return ZLG_OK;
  if (!zlg_kron_is_shifted(A) || zlg_shifted_of(A)->inverse)
    return zlg_fail(A->context, ZLG_ENOTSUP,
                    "%s: A is a %s operator; expected a Kronecker product, or one plus a shift", what, A->kind->name);
  *kron = zlg_shifted_of(A)->kron;
  *shift = zlg_shifted_of(A)->shift;
  return ZLG_OK;
}

static int refuse_null(const zlg_operator *A, const char *what, const char *name) {
  return zlg_fail(A->context, ZLG_EINVAL, "%s: %s is NULL, expected where to put it", what, name);
}

/* No factor at all makes the 1 x 1 identity. */
static bool all_square(const zlg_operator *A) {
  const struct zlg_kron *kron = zlg_kron_of(A);
  for (int64_t i = 0; i < kron->count; i++)
    if (zlg_kron_rows(kron, i) != zlg_kron_columns(kron, i)) return false;
  return true;
}

static int check_square(const zlg_operator *A, const char *what) {
  if (A->rows == A->columns) return ZLG_OK;
  return zlg_fail(A->context, ZLG_ESHAPE, "%s: A is %lld x %lld; expected a square one", what, (long long)A->rows,
                  (long long)A->columns);
}

/* ---- the diagonal ----------------------------------------------------------------------------------------------- */

/* Walks down the diagonal: element i is a product of one element of each factor, found by the digits of i among the
 * rows and among the columns. product[k] is that of the first k factors. */
struct walk {
  int64_t count;
  double **factors;
  struct zlg_digits row, column;
  double *product;
};

static void walk_end(struct walk *walk) {
  for (int64_t i = 0; walk->factors && i < walk->count; i++) zlg_free(walk->factors[i]);
  zlg_free(walk->factors);
  zlg_free(walk->product);
  zlg_digits_free(&walk->row);
  zlg_digits_free(&walk->column);
}

static void multiply_from(struct walk *walk, int64_t first) {
  for (int64_t i = first; i < walk->count; i++)
    walk->product[i + 1] =
        walk->product[i] * walk->factors[i][walk->row.digit[i] * walk->column.extent[i] + walk->column.digit[i]];
}

static int walk_start(const zlg_operator *A, struct walk *walk) {
  const struct zlg_kron *kron = zlg_kron_of(A);
  *walk = (struct walk){.count = kron->count};
  walk->factors = zlg_calloc((size_t)kron->count + 1, sizeof(double *));
  walk->product = zlg_calloc((size_t)kron->count + 1, sizeof *walk->product);
  int status =
      walk->factors && walk->product ? ZLG_OK : zlg_fail(A->context, ZLG_ENOMEM, "no memory for a list of factors");
  if (status == ZLG_OK) status = zlg_digits_start(A->context, &walk->row, kron->count);
  if (status == ZLG_OK) status = zlg_digits_start(A->context, &walk->column, kron->count);
  for (int64_t i = 0; i < kron->count && status == ZLG_OK; i++) {
    walk->row.extent[i] = zlg_kron_rows(kron, i);
    walk->column.extent[i] = zlg_kron_columns(kron, i);
    status = zlg_kron_read(A, i, &walk->factors[i]);
  }
  if (status != ZLG_OK) {
    walk_end(walk);
    return status;
  }
  walk->product[0] = 1;
  multiply_from(walk, 0);
  return ZLG_OK;
}

static double walk_next(struct walk *walk) {
  const double element = walk->product[walk->count];
  const int64_t row = zlg_digits_next(&walk->row), column = zlg_digits_next(&walk->column);
  multiply_from(walk, row < column ? row : column);
  return element;
}

static int check_diagonal(const zlg_operator *A, const zlg_matrix *diagonal, int64_t length) {
  if (diagonal->context != A->context)
    return zlg_fail(A->context, ZLG_EINVAL, "diagonal was made with another context");
  if (diagonal->type != A->type)
    return zlg_fail(A->context, ZLG_ETYPE, "diagonal is %s and A is %s; expected one type",
                    zlg_type_name(diagonal->type), zlg_type_name(A->type));
  if (diagonal->rows != length || diagonal->columns != 1)
    return zlg_fail(A->context, ZLG_ESHAPE, "diagonal is %lld x %lld; A is %lld x %lld and needs %lld x 1",
                    (long long)diagonal->rows, (long long)diagonal->columns, (long long)A->rows, (long long)A->columns,
                    (long long)length);
  if (!zlg_matrix_is_writable(diagonal)) return zlg_fail(A->context, ZLG_EREADONLY, "diagonal is read-only");
  if (A->kind->overlaps(A, diagonal)) return zlg_fail(A->context, ZLG_EOVERLAP, "diagonal overlaps the data of A");
  return ZLG_OK;
}

int zlg_kron_diagonal(zlg_operator *A, zlg_matrix *diagonal) {
  static const char what[] = "zlg_kron_diagonal";
  zlg_operator *kron = NULL;
  double shift, numbers[1024];
  float narrow[1024];
  int status = open_kron(A, what, &kron, &shift);
  if (status != ZLG_OK) return status;
  if (!diagonal) return refuse_null(A, what, "diagonal");
  const int64_t length = A->rows < A->columns ? A->rows : A->columns;
  struct walk walk;
  status = check_diagonal(kron, diagonal, length);
  if (status != ZLG_OK || length == 0) return status;
  status = walk_start(kron, &walk);
  if (status != ZLG_OK) return status;
  for (int64_t at = 0; at < length && status == ZLG_OK; at += 1024) {
    const int64_t some = length - at < 1024 ? length - at : 1024;
    for (int64_t i = 0; i < some; i++) narrow[i] = (float)(numbers[i] = walk_next(&walk) + shift);
    status = zlg_matrix_write(diagonal, at, some, 0, 1, ZLG_COLUMN_MAJOR, some,
                              A->type == ZLG_F32 ? (const void *)narrow : numbers);
  }
  walk_end(&walk);
  return status;
}

/* ---- the trace -------------------------------------------------------------------------------------------------- */

static int product_of_traces(const zlg_operator *A, double *trace) {
  const struct zlg_kron *kron = zlg_kron_of(A);
  *trace = 1;
  for (int64_t i = 0; i < kron->count; i++) {
    double *factor, sum = 0;
    int status = zlg_kron_read(A, i, &factor);
    if (status != ZLG_OK) return status;
    const int64_t n = zlg_kron_rows(kron, i);
    for (int64_t k = 0; k < n; k++) sum += factor[k * n + k];
    *trace *= sum;
    zlg_free(factor);
  }
  return ZLG_OK;
}

static int sum_of_diagonal(const zlg_operator *A, double *trace) {
  struct walk walk;
  long double sum = 0;
  int status = A->rows > 0 ? walk_start(A, &walk) : ZLG_OK;
  if (status != ZLG_OK) return status;
  for (int64_t i = 0; i < A->rows; i++) sum += walk_next(&walk);
  if (A->rows > 0) walk_end(&walk);
  *trace = (double)sum;
  return ZLG_OK;
}

int zlg_kron_trace(zlg_operator *A, double *trace) {
  static const char what[] = "zlg_kron_trace";
  zlg_operator *kron = NULL;
  double shift;
  int status = open_kron(A, what, &kron, &shift);
  if (status != ZLG_OK) return status;
  if (!trace) return refuse_null(A, what, "trace");
  status = check_square(kron, what);
  if (status == ZLG_OK) status = all_square(kron) ? product_of_traces(kron, trace) : sum_of_diagonal(kron, trace);
  if (status == ZLG_OK) *trace += shift * (double)A->rows;
  return status;
}

/* ---- the determinant -------------------------------------------------------------------------------------------- */

static int factor_logdet(const zlg_operator *A, int64_t i, double *logabs, int *sign) {
  double *factor;
  int status = zlg_kron_check_square(A, i);
  if (status == ZLG_OK) status = zlg_kron_read(A, i, &factor);
  if (status != ZLG_OK) return status;
  status = zlg_lapack_logdet(zlg_kron_rows(zlg_kron_of(A), i), factor, logabs, sign);
  zlg_free(factor);
  return status == ZLG_OK ? ZLG_OK
                          : zlg_fail(A->context, status, "no memory for the pivots of factors[%lld]", (long long)i);
}

static int logdet_of(const zlg_operator *A, double *logabs, int *sign) {
  const struct zlg_kron *kron = zlg_kron_of(A);
  long double sum = 0;
  *logabs = 0;
  *sign = 1;
  if (A->rows == 0) return ZLG_OK;
  if (!all_square(A)) {
    *logabs = -INFINITY;
    *sign = 0;
    return ZLG_OK;
  }
  for (int64_t i = 0; i < kron->count; i++) {
    double log;
    int one;
    int status = factor_logdet(A, i, &log, &one);
    if (status != ZLG_OK) return status;
    const int64_t times = A->rows / zlg_kron_rows(kron, i);
    if (times % 2 == 1 || one == 0) *sign *= one;
    sum += (long double)times * log;
  }
  *logabs = *sign == 0 && !isnan(sum) ? -INFINITY : (double)sum;
  return ZLG_OK;
}

int zlg_kron_logdet(zlg_operator *A, double *logabs, int *sign) {
  static const char what[] = "zlg_kron_logdet";
  if (A && (!logabs || !sign)) return refuse_null(A, what, logabs ? "sign" : "logabs");
  if (A && zlg_kron_is_shifted(A)) {
    *sign = 1;
    return zlg_shifted_logdet(A, logabs);
  }
  zlg_operator *kron = NULL;
  double shift;
  int status = open_kron(A, what, &kron, &shift);
  if (status == ZLG_OK) status = check_square(A, what);
  return status == ZLG_OK ? logdet_of(A, logabs, sign) : status;
}

/* ---- the inverse ------------------------------------------------------------------------------------------------ */

static int refuse_singular(const zlg_operator *A, int64_t i, int status) {
  if (status == ZLG_ENOMEM)
    return zlg_fail(A->context, status, "no memory for the inverse of factors[%lld]", (long long)i);
  return zlg_fail(A->context, status, "factors[%lld] is singular; expected an invertible one", (long long)i);
}

/* The inverse of op_i(F_i), the caller's to free. */
static int invert_factor(const zlg_operator *A, int64_t i, double **inverse) {
  int status = zlg_kron_check_square(A, i);
  if (status == ZLG_OK) status = zlg_kron_read(A, i, inverse);
  if (status != ZLG_OK) return status;
  status = zlg_lapack_invert(zlg_kron_rows(zlg_kron_of(A), i), *inverse);
  if (status == ZLG_OK) return ZLG_OK;
  zlg_free(*inverse);
  return refuse_singular(A, i, status);
}

static int invert_all(const zlg_operator *A, const int64_t *sizes, double *values) {
  const struct zlg_kron *kron = zlg_kron_of(A);
  for (int64_t i = 0; i < kron->count; i++) {
    double *inverse;
    int status = invert_factor(A, i, &inverse);
    if (status != ZLG_OK) return status;
    for (int64_t e = 0; e < sizes[i] * sizes[i]; e++) *values++ = inverse[e];
    zlg_free(inverse);
  }
  return ZLG_OK;
}

static int inverse_of(zlg_operator *A, zlg_operator **inverse) {
  const struct zlg_kron *kron = zlg_kron_of(A);
  int64_t *sizes = zlg_calloc((size_t)kron->count + 1, sizeof *sizes), elements = 1;
  int status = sizes ? ZLG_OK : zlg_fail(A->context, ZLG_ENOMEM, "no memory for a list of factors");
  for (int64_t i = 0; i < kron->count && status == ZLG_OK; i++) {
    status = zlg_kron_check_square(A, i);
    sizes[i] = zlg_kron_rows(kron, i);
    elements += sizes[i] * sizes[i];
  }
  double *values = status == ZLG_OK ? zlg_malloc((size_t)elements * sizeof *values) : NULL;
  if (status == ZLG_OK && !values)
    status = zlg_fail(A->context, ZLG_ENOMEM, "no memory for the inverses of the factors");
  if (status == ZLG_OK) status = invert_all(A, sizes, values);
  if (status == ZLG_OK)
    status = zlg_kron_owning(A->context, inverse, A->type, kron->count, sizes, values, "the inverse");
  else
    zlg_free(values);
  zlg_free(sizes);
  return status;
}

int zlg_kron_inverse(zlg_operator *A, zlg_operator **inverse) {
  static const char what[] = "zlg_kron_inverse";
  if (inverse) *inverse = NULL;
  zlg_operator *kron = NULL;
  double shift;
  int status = open_kron(A, what, &kron, &shift);
  if (status != ZLG_OK) return status;
  if (!inverse) return refuse_null(A, what, "inverse");
  return kron == A ? inverse_of(A, inverse) : zlg_shifted_inverse(A, inverse);
}

/* ---- the gradient of the determinant's logarithm ---------------------------------------------------------------- */

/* d log|det A| / dF_i = N / n_i F_i^-T, of op_i(F_i) as of F_i itself (Magnus and Neudecker, Matrix Differential
 * Calculus, section 8.3). */
static int gradient_of(const zlg_operator *A, double alpha, double beta, zlg_matrix *const *dF) {
  const struct zlg_kron *kron = zlg_kron_of(A);
  for (int64_t i = 0; i < kron->count; i++) {
    int status = zlg_kron_check_square(A, i);
    if (status != ZLG_OK) return status;
  }
  for (int64_t i = 0; i < kron->count && A->rows > 0; i++) {
    if (!dF[i]) continue;
    double *inverse;
    int status = invert_factor(A, i, &inverse);
    if (status != ZLG_OK) return status;
    const int64_t n = zlg_kron_rows(kron, i);
    for (int64_t j = 0; j < n; j++)
      for (int64_t k = 0; k < j; k++) {
        const double kept = inverse[j * n + k];
        inverse[j * n + k] = inverse[k * n + j];
        inverse[k * n + j] = kept;
      }
    status = zlg_kron_write(A, i, alpha * (double)(A->rows / n), inverse, beta, dF[i]);
    zlg_free(inverse);
    if (status != ZLG_OK) return status;
  }
  return ZLG_OK;
}

int zlg_kron_logdet_gradient(zlg_operator *A, double alpha, double beta, zlg_matrix *const *dF, double *dshift) {
  static const char what[] = "zlg_kron_logdet_gradient";
  zlg_operator *kron = NULL;
  double shift;
  int status = open_kron(A, what, &kron, &shift);
  if (status == ZLG_OK && (isnan(alpha) || isnan(beta)))
    status = zlg_fail(A->context, ZLG_EINVAL, "%s: %s is NaN", what, isnan(alpha) ? "alpha" : "beta");
  if (status == ZLG_OK) status = zlg_kron_check_gradients(kron, dF);
  if (status != ZLG_OK) return status;
  if (kron != A) return zlg_shifted_gradient(A, alpha, beta, dF, dshift);
  if (dshift) return zlg_fail(A->context, ZLG_ENOTSUP, "%s: dshift is given and A has no shift; expected NULL", what);
  return gradient_of(A, alpha, beta, dF);
}
