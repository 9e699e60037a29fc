/* Gradients of products with Kronecker operators: of X and of the factors, checked here and handed to the plan. */
#include <math.h>

#include "src/core/error.h"
#include "src/operator/kron_dense.h"
#include "src/plan/plan.h"
#include "zellige/kron.h"

static void give_back_operator(void *op) {
  zlg_operator_release(op);
}

static int check_matrix(const zlg_operator *A, const char *name, const zlg_matrix *matrix, int64_t rows,
                        int64_t columns) {
  if (matrix->context != A->context)
    return zlg_fail(A->context, ZLG_EINVAL, "%s was made with another context than A", name);
  if (matrix->type != A->type)
    return zlg_fail(A->context, ZLG_ETYPE, "%s is %s and A is %s; expected one type", name, zlg_type_name(matrix->type),
                    zlg_type_name(A->type));
  if (matrix->rows != rows || matrix->columns != columns)
    return zlg_fail(A->context, ZLG_ESHAPE, "%s is %lld x %lld, expected %lld x %lld", name, (long long)matrix->rows,
                    (long long)matrix->columns, (long long)rows, (long long)columns);
  return ZLG_OK;
}

/* No output may be an input, or another output. */
static int check_overlaps(const zlg_operator *A, const zlg_matrix *X, const zlg_matrix *dY, const zlg_matrix *dX,
                          zlg_matrix *const *dF) {
  const int64_t count = zlg_kron_of(A)->count;
  if (dX && (zlg_matrix_overlaps(dX, X) || zlg_matrix_overlaps(dX, dY) || A->kind->overlaps(A, dX)))
    return zlg_fail(A->context, ZLG_EOVERLAP, "dX overlaps X, dY or a factor");
  for (int64_t i = 0; i < count; i++) {
    if (!dF[i]) continue;
    if (zlg_matrix_overlaps(dF[i], X) || zlg_matrix_overlaps(dF[i], dY) || (dX && zlg_matrix_overlaps(dF[i], dX)))
      return zlg_fail(A->context, ZLG_EOVERLAP, "dF[%lld] overlaps X, dY or dX", (long long)i);
  }
  return ZLG_OK;
}

static int check_all(const zlg_operator *A, zlg_op op, double alpha, const zlg_matrix *X, const zlg_matrix *dY,
                     double beta, const zlg_matrix *dX, zlg_matrix *const *dF) {
  static const char what[] = "zlg_kron_gradient";
  if (!A) return zlg_fail(NULL, ZLG_EINVAL, "%s: A is NULL, expected an operator", what);
  if (A->kind != &zlg_kron_kind)
    return zlg_fail(A->context, ZLG_ENOTSUP, "%s: A is a %s operator; expected a Kronecker product", what,
                    A->kind->name);
  if (!X || !dY) return zlg_fail(A->context, ZLG_EINVAL, "%s: %s is NULL, expected a matrix", what, X ? "dY" : "X");
  if (op != ZLG_NOTRANS && op != ZLG_TRANS)
    return zlg_fail(A->context, ZLG_EINVAL, "op = %d, expected ZLG_NOTRANS or ZLG_TRANS", (int)op);
  if (isnan(alpha) || isnan(beta))
    return zlg_fail(A->context, ZLG_EINVAL, "%s is NaN", isnan(alpha) ? "alpha" : "beta");
  const int64_t rows = op == ZLG_NOTRANS ? A->rows : A->columns, columns = op == ZLG_NOTRANS ? A->columns : A->rows;
  int status = check_matrix(A, "X", X, columns, X->columns);
  if (status == ZLG_OK) status = check_matrix(A, "dY", dY, rows, X->columns);
  if (status == ZLG_OK && dX) status = check_matrix(A, "dX", dX, columns, X->columns);
  if (status == ZLG_OK && dX && !zlg_matrix_is_writable(dX))
    status = zlg_fail(A->context, ZLG_EREADONLY, "dX is read-only");
  if (status == ZLG_OK) status = zlg_kron_check_gradients(A, dF);
  if (status == ZLG_OK) status = check_overlaps(A, X, dY, dX, dF);
  return status;
}

/* Nothing to add up: dX = beta dX, dF = beta dF. */
static int only_scale(zlg_operator *A, zlg_op op, zlg_matrix *dY, double beta, zlg_matrix *dX, zlg_matrix *const *dF) {
  const struct zlg_kron *kron = zlg_kron_of(A);
  int status = dX ? zlg_apply(A, op == ZLG_NOTRANS ? ZLG_TRANS : ZLG_NOTRANS, 0, dY, beta, dX) : ZLG_OK;
  for (int64_t i = 0; i < kron->count && status == ZLG_OK; i++)
    if (dF[i]) status = zlg_kron_write(A, i, 0, NULL, beta, dF[i]);
  return status;
}

int zlg_kron_gradient(zlg_operator *A, zlg_op op, double alpha, zlg_matrix *X, zlg_matrix *dY, double beta,
                      zlg_matrix *dX, zlg_matrix *const *dF) {
  int status = check_all(A, op, alpha, X, dY, beta, dX, dF);
  if (status != ZLG_OK) return status;
  const struct zlg_kron *kron = zlg_kron_of(A);
  if (alpha == 0 || A->rows == 0 || A->columns == 0 || X->columns == 0) return only_scale(A, op, dY, beta, dX, dF);
  bool wanted = false;
  for (int64_t i = 0; i < kron->count; i++) wanted = wanted || dF[i];
  if (!wanted) return dX ? zlg_apply(A, op == ZLG_NOTRANS ? ZLG_TRANS : ZLG_NOTRANS, alpha, dY, beta, dX) : ZLG_OK;
  const struct zlg_chain_gradient job = {.chain = {.context = A->context,
                                                   .type = A->type,
                                                   .count = kron->count,
                                                   .factors = kron->factors,
                                                   .ops = kron->ops,
                                                   .transposed = op == ZLG_TRANS,
                                                   .x = X,
                                                   .alpha = alpha,
                                                   .beta = beta,
                                                   .give_back = give_back_operator,
                                                   .keep = zlg_operator_retain(A)},
                                         .dy = dY,
                                         .dx = dX,
                                         .df = (zlg_matrix **)dF};
  zlg_request *request = NULL;
  status = zlg_chain_gradient_start(&job, false, &request);
  if (status == ZLG_OK) status = zlg_request_wait(request);
  zlg_request_release(request);
  return status;
}

int zlg_kron_gradient_right(zlg_operator *A, zlg_op op, double alpha, zlg_matrix *X, zlg_matrix *dY, double beta,
                            zlg_matrix *dX, zlg_matrix *const *dF) {
  zlg_matrix *x = NULL, *dy = NULL, *dx = NULL;
  int status = X && dY ? ZLG_OK : zlg_fail(A ? A->context : NULL, ZLG_EINVAL, "%s is NULL", X ? "dY" : "X");
  if (status == ZLG_OK) status = zlg_matrix_transpose(X, &x);
  if (status == ZLG_OK) status = zlg_matrix_transpose(dY, &dy);
  if (status == ZLG_OK && dX) status = zlg_matrix_transpose(dX, &dx);
  if (status == ZLG_OK)
    status = zlg_kron_gradient(A, op == ZLG_NOTRANS ? ZLG_TRANS : ZLG_NOTRANS, alpha, x, dy, beta, dx, dF);
  zlg_matrix_release(x);
  zlg_matrix_release(dy);
  zlg_matrix_release(dx);
  return status;
}
