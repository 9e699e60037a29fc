/* Factors of a Kronecker product as dense matrices in memory, in binary64, for the algebra by factor. */
#include "src/operator/kron_dense.h"

#include <math.h>
#include <string.h>

#include "codelets/common/lapack.h"
#include "src/core/context.h"
#include "src/core/error.h"
#include "src/core/memory.h"
#include "src/plan/plan.h"
#include "zellige/kron.h"

int zlg_digits_start(zlg_context *context, struct zlg_digits *digits, int64_t count) {
  digits->count = count;
  digits->extent = zlg_calloc(2 * (size_t)count + 1, sizeof *digits->extent);
  if (!digits->extent) return zlg_fail(context, ZLG_ENOMEM, "no memory for an index of %lld digits", (long long)count);
  digits->digit = digits->extent + count;
  return ZLG_OK;
}

int64_t zlg_digits_next(struct zlg_digits *digits) {
  for (int64_t i = digits->count; i-- > 0;) {
    if (++digits->digit[i] < digits->extent[i]) return i;
    digits->digit[i] = 0;
  }
  return 0;
}

void zlg_digits_free(struct zlg_digits *digits) {
  zlg_free(digits->extent);
}

int zlg_kron_check_square(const zlg_operator *A, int64_t i) {
  const struct zlg_kron *kron = zlg_kron_of(A);
  const int64_t rows = zlg_kron_rows(kron, i), columns = zlg_kron_columns(kron, i);
  if (rows != columns)
    return zlg_fail(A->context, ZLG_ESHAPE, "factors[%lld] is %lld x %lld; expected square factors", (long long)i,
                    (long long)rows, (long long)columns);
  if (rows > ZLG_LAPACK_MOST)
    return zlg_fail(A->context, ZLG_EOVERFLOW, "factors[%lld] has %lld rows; expected %d at most", (long long)i,
                    (long long)rows, ZLG_LAPACK_MOST);
  return ZLG_OK;
}

/* A factor, its inverse or eigenvectors and LAPACK's workspace are within the context's limit. */
static int check_limit(const zlg_operator *A, int64_t i, int64_t elements) {
  int64_t bytes;
  if (zlg_mul64(elements, 4 * (int64_t)sizeof(double), &bytes) && bytes <= A->context->memory_limit) return ZLG_OK;
  return zlg_fail(A->context, ZLG_ELIMIT,
                  "factors[%lld] has %lld elements: in binary64 with its workspace it passes the limit of %lld bytes",
                  (long long)i, (long long)elements, (long long)A->context->memory_limit);
}

/* In place, from the end, so that a number is read before its place is taken. */
static void widen(double *data, int64_t count) {
  for (int64_t i = count; i-- > 0;) {
    float value;
    memcpy(&value, (const char *)data + (size_t)i * sizeof value, sizeof value);
    data[i] = value;
  }
}

static void narrow(double *data, int64_t count) {
  for (int64_t i = 0; i < count; i++) {
    const float value = (float)data[i];
    memcpy((char *)data + (size_t)i * sizeof value, &value, sizeof value);
  }
}

static zlg_order order_of(const zlg_operator *A, int64_t i) {
  return zlg_kron_of(A)->ops[i] == ZLG_NOTRANS ? ZLG_ROW_MAJOR : ZLG_COLUMN_MAJOR;
}

int zlg_kron_read(const zlg_operator *A, int64_t i, double **factor) {
  const zlg_matrix *matrix = zlg_kron_of(A)->factors[i];
  const int64_t elements = matrix->rows * matrix->columns, columns = zlg_kron_columns(zlg_kron_of(A), i);
  int status = check_limit(A, i, elements);
  if (status != ZLG_OK) return status;
  *factor = zlg_malloc((size_t)(elements > 0 ? elements : 1) * sizeof **factor);
  if (!*factor) return zlg_fail(A->context, ZLG_ENOMEM, "no memory for factors[%lld]", (long long)i);
  status =
      zlg_matrix_read(matrix, 0, matrix->rows, 0, matrix->columns, order_of(A, i), columns > 1 ? columns : 1, *factor);
  if (status == ZLG_OK && A->type == ZLG_F32) widen(*factor, elements);
  if (status != ZLG_OK) {
    zlg_free(*factor);
    *factor = NULL;
  }
  return status;
}

int zlg_kron_write(const zlg_operator *A, int64_t i, double alpha, const double *values, double beta, zlg_matrix *dF) {
  const int64_t columns = zlg_kron_columns(zlg_kron_of(A), i);
  return zlg_matrix_update(dF, order_of(A, i), columns > 1 ? columns : 1, alpha, values, beta);
}

int zlg_kron_check_gradients(const zlg_operator *A, zlg_matrix *const *dF) {
  const struct zlg_kron *kron = zlg_kron_of(A);
  if (!dF && kron->count > 0) return zlg_fail(A->context, ZLG_EINVAL, "dF is NULL, expected a matrix for each factor");
  for (int64_t i = 0; i < kron->count; i++) {
    const zlg_matrix *factor = kron->factors[i], *to = dF[i];
    if (!to) continue;
    const long long at = (long long)i;
    if (to->context != A->context)
      return zlg_fail(A->context, ZLG_EINVAL, "dF[%lld] was made with another context", at);
    if (to->type != A->type)
      return zlg_fail(A->context, ZLG_ETYPE, "dF[%lld] is %s and A is %s; expected one type", at,
                      zlg_type_name(to->type), zlg_type_name(A->type));
    if (to->rows != factor->rows || to->columns != factor->columns)
      return zlg_fail(A->context, ZLG_ESHAPE, "dF[%lld] is %lld x %lld; factors[%lld] is %lld x %lld", at,
                      (long long)to->rows, (long long)to->columns, at, (long long)factor->rows,
                      (long long)factor->columns);
    if (!zlg_matrix_is_writable(to)) return zlg_fail(A->context, ZLG_EREADONLY, "dF[%lld] is read-only", at);
    for (int64_t k = 0; k < kron->count; k++)
      if (zlg_matrix_overlaps(to, kron->factors[k]))
        return zlg_fail(A->context, ZLG_EOVERLAP, "dF[%lld] overlaps factors[%lld]", at, (long long)k);
  }
  return ZLG_OK;
}

/* Wraps the matrices that lie one behind the other in `data`. */
static int wrap_all(zlg_context *context, zlg_type type, int64_t count, const int64_t *sizes, const void *data,
                    zlg_matrix **factors) {
  const char *at = data;
  int status = ZLG_OK;
  for (int64_t i = 0; i < count && status == ZLG_OK; i++) {
    const int64_t n = sizes[i];
    status = zlg_matrix_wrap_const(context, &factors[i], type, n, n, ZLG_ROW_MAJOR, n > 1 ? n : 1, at);
    at += (size_t)(n * n) * zlg_type_size(type);
  }
  return status;
}

static int narrow_all(zlg_context *context, int64_t count, const int64_t *sizes, double *values, const char *what) {
  int64_t at = 0;
  for (int64_t i = 0; i < count; i++)
    for (int64_t end = at + sizes[i] * sizes[i]; at < end; at++)
      if (isfinite(values[at]) && isinf((float)values[at]))
        return zlg_fail(context, ZLG_ESINGULAR, "%s of factors[%lld] has an element of %g, past the range of f32", what,
                        (long long)i, values[at]);
  narrow(values, at);
  return ZLG_OK;
}

int zlg_kron_owning(zlg_context *context, zlg_operator **op, zlg_type type, int64_t count, const int64_t *sizes,
                    double *values, const char *what) {
  zlg_matrix **factors = zlg_calloc((size_t)count + 1, sizeof(zlg_matrix *));
  int status =
      factors ? ZLG_OK : zlg_fail(context, ZLG_ENOMEM, "no memory for a list of %lld factors", (long long)count);
  if (status == ZLG_OK && type == ZLG_F32) status = narrow_all(context, count, sizes, values, what);
  if (status == ZLG_OK) status = wrap_all(context, type, count, sizes, values, factors);
  if (status == ZLG_OK) status = zlg_kron(context, op, count, factors, NULL);
  if (status == ZLG_OK)
    ((struct zlg_kron *)(*op)->self)->owned = values;
  else
    zlg_free(values);
  for (int64_t i = 0; factors && i < count; i++) zlg_matrix_release(factors[i]);
  zlg_free(factors);
  return status;
}
