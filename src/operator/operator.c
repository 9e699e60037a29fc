/* What all operators share: references, validation before anything starts, the two forms of application. */
#include "src/operator/operator.h"

#include <math.h>

#include "src/core/context.h"
#include "src/core/error.h"
#include "src/core/memory.h"

zlg_operator *zlg_operator_new(zlg_context *context, const struct zlg_operator_kind *kind, zlg_type type, int64_t rows,
                               int64_t columns, void *self) {
  zlg_operator *op = zlg_calloc(1, sizeof *op);
  if (!op) return NULL;
  *op = (zlg_operator){.kind = kind, .type = type, .rows = rows, .columns = columns, .self = self};
  op->context = zlg_context_retain(context);
  atomic_init(&op->references, 1);
  return op;
}

zlg_operator *zlg_operator_retain(zlg_operator *op) {
  if (op) atomic_fetch_add(&op->references, 1);
  return op;
}

void zlg_operator_release(zlg_operator *op) {
  if (!op || atomic_fetch_sub(&op->references, 1) != 1) return;
  zlg_context *context = op->context;
  op->kind->release(op);
  zlg_free(op);
  zlg_context_release(context);
}

int zlg_operator_get_info(const zlg_operator *op, zlg_operator_info *info) {
  if (!op || !info)
    return zlg_fail(op ? op->context : NULL, ZLG_EINVAL, "zlg_operator_get_info: %s is NULL", op ? "info" : "op");
  *info = (zlg_operator_info){op->kind->name, op->type, op->rows, op->columns, op->kind->tileable};
  return ZLG_OK;
}

static int check_op(const zlg_operator *A, zlg_op op) {
  if (op == ZLG_NOTRANS || op == ZLG_TRANS) return ZLG_OK;
  return zlg_fail(A->context, ZLG_EINVAL, "op = %d, expected ZLG_NOTRANS or ZLG_TRANS", (int)op);
}

static int check_common(const zlg_operator *A, const zlg_matrix *X, const zlg_matrix *Y) {
  zlg_context *context = A->context;
  if (X->context != context || Y->context != context)
    return zlg_fail(context, ZLG_EINVAL, "%s was made with another context than A", X->context != context ? "X" : "Y");
  if (X->type != A->type || Y->type != A->type) {
    const zlg_matrix *other = X->type != A->type ? X : Y;
    return zlg_fail(context, ZLG_ETYPE, "%s is %s and A is %s; expected one type", other == X ? "X" : "Y",
                    zlg_type_name(other->type), zlg_type_name(A->type));
  }
  return ZLG_OK;
}

/* The inner extent of X must be op(A)'s, and Y have the outer ones of both. */
static int check_shapes(const zlg_operator *A, enum zlg_side side, zlg_op op, const zlg_matrix *X,
                        const zlg_matrix *Y) {
  const int64_t rows = op == ZLG_NOTRANS ? A->rows : A->columns, columns = op == ZLG_NOTRANS ? A->columns : A->rows;
  const char *name = op == ZLG_NOTRANS ? "A" : "the transpose of A";
  const int64_t inner = side == ZLG_LEFT ? columns : rows, has = side == ZLG_LEFT ? X->rows : X->columns;
  if (has != inner)
    return zlg_fail(A->context, ZLG_ESHAPE, "X is %lld x %lld and %s is %lld x %lld: X needs %lld %s",
                    (long long)X->rows, (long long)X->columns, name, (long long)rows, (long long)columns,
                    (long long)inner, side == ZLG_LEFT ? "rows" : "columns");
  const int64_t y_rows = side == ZLG_LEFT ? rows : X->rows, y_columns = side == ZLG_LEFT ? X->columns : columns;
  if (Y->rows == y_rows && Y->columns == y_columns) return ZLG_OK;
  if (side == ZLG_LEFT)
    return zlg_fail(A->context, ZLG_ESHAPE,
                    "Y is %lld x %lld; %s (%lld x %lld) times X (%lld x %lld) needs %lld x %lld", (long long)Y->rows,
                    (long long)Y->columns, name, (long long)rows, (long long)columns, (long long)X->rows,
                    (long long)X->columns, (long long)y_rows, (long long)y_columns);
  return zlg_fail(A->context, ZLG_ESHAPE, "Y is %lld x %lld; X (%lld x %lld) times %s (%lld x %lld) needs %lld x %lld",
                  (long long)Y->rows, (long long)Y->columns, (long long)X->rows, (long long)X->columns, name,
                  (long long)rows, (long long)columns, (long long)y_rows, (long long)y_columns);
}

int zlg_operator_check(const zlg_operator *A, enum zlg_side side, zlg_op op, double alpha, const zlg_matrix *X,
                       double beta, const zlg_matrix *Y) {
  if (!A) return zlg_fail(NULL, ZLG_EINVAL, "A is NULL, expected an operator");
  if (!X || !Y) return zlg_fail(A->context, ZLG_EINVAL, "%s is NULL, expected a matrix", X ? "Y" : "X");
  if (!zlg_context_is_ours(A->context))
    return zlg_fail(A->context, ZLG_ESTATE, "the context was made before fork() and its workers are the parent's");
  int status = check_op(A, op);
  if (status == ZLG_OK) status = check_common(A, X, Y);
  if (status == ZLG_OK) status = check_shapes(A, side, op, X, Y);
  if (status != ZLG_OK) return status;
  if (isnan(alpha) || isnan(beta))
    return zlg_fail(A->context, ZLG_EINVAL, "%s is NaN", isnan(alpha) ? "alpha" : "beta");
  if (!zlg_matrix_is_writable(Y))
    return zlg_fail(A->context, ZLG_EREADONLY, "Y%s%s is read-only", Y->path ? ", the file " : "",
                    Y->path ? Y->path : "");
  if (zlg_matrix_overlaps(Y, X)) return zlg_fail(A->context, ZLG_EOVERLAP, "Y overlaps X");
  if (A->kind->overlaps(A, Y))
    return zlg_fail(A->context, ZLG_EOVERLAP, "Y overlaps the data of A (a %s operator)", A->kind->name);
  return ZLG_OK;
}

/* X op(A) is the transpose of op(A)^T X^T. */
static int start_right(zlg_operator *A, zlg_op op, double alpha, zlg_matrix *X, double beta, zlg_matrix *Y,
                       bool threaded, zlg_request **request) {
  zlg_matrix *x = NULL, *y = NULL;
  int status = zlg_matrix_transpose(X, &x);
  if (status == ZLG_OK) status = zlg_matrix_transpose(Y, &y);
  if (status == ZLG_OK)
    status = A->kind->apply(A, op == ZLG_TRANS ? ZLG_NOTRANS : ZLG_TRANS, alpha, x, beta, y, threaded, request);
  zlg_matrix_release(x);
  zlg_matrix_release(y);
  return status;
}

/* Starts what was validated. */
static int start(zlg_operator *A, enum zlg_side side, zlg_op op, double alpha, zlg_matrix *X, double beta,
                 zlg_matrix *Y, bool threaded, zlg_request **request) {
  if (side == ZLG_RIGHT) return start_right(A, op, alpha, X, beta, Y, threaded, request);
  return A->kind->apply(A, op, alpha, X, beta, Y, threaded, request);
}

zlg_matrix zlg_matrix_transposed(const zlg_matrix *matrix) {
  return (zlg_matrix){.references = 1,
                      .context = matrix->context,
                      .type = matrix->type,
                      .rows = matrix->columns,
                      .columns = matrix->rows,
                      .order = matrix->order == ZLG_ROW_MAJOR ? ZLG_COLUMN_MAJOR : ZLG_ROW_MAJOR,
                      .ld = matrix->ld,
                      .data = matrix->data};
}

/* Short products need no request; but who wants to hear of progress gets one. */
static bool do_at_once(zlg_operator *A, enum zlg_side side, zlg_op op, double alpha, zlg_matrix *X, double beta,
                       zlg_matrix *Y, int *status) {
  if (!A->kind->direct || A->context->options.progress) return false;
  if (side == ZLG_LEFT) return A->kind->direct(A, op, alpha, X, beta, Y, status);
  zlg_matrix x = zlg_matrix_transposed(X), y = zlg_matrix_transposed(Y);
  return A->kind->direct(A, op == ZLG_TRANS ? ZLG_NOTRANS : ZLG_TRANS, alpha, &x, beta, &y, status);
}

static int start_async(zlg_operator *A, enum zlg_side side, zlg_op op, double alpha, zlg_matrix *X, double beta,
                       zlg_matrix *Y, zlg_request **request) {
  if (!request) return zlg_fail(A ? A->context : NULL, ZLG_EINVAL, "request is NULL, expected where to put it");
  *request = NULL;
  int status = zlg_operator_check(A, side, op, alpha, X, beta, Y);
  return status == ZLG_OK ? start(A, side, op, alpha, X, beta, Y, true, request) : status;
}

static int apply(zlg_operator *A, enum zlg_side side, zlg_op op, double alpha, zlg_matrix *X, double beta,
                 zlg_matrix *Y) {
  int status = zlg_operator_check(A, side, op, alpha, X, beta, Y);
  if (status != ZLG_OK || do_at_once(A, side, op, alpha, X, beta, Y, &status)) return status;
  zlg_request *request = NULL;
  status = start(A, side, op, alpha, X, beta, Y, false, &request);
  if (status == ZLG_OK) status = zlg_request_wait(request);
  zlg_request_release(request);
  return status;
}

int zlg_apply_async(zlg_operator *A, zlg_op op, double alpha, zlg_matrix *X, double beta, zlg_matrix *Y,
                    zlg_request **request) {
  return start_async(A, ZLG_LEFT, op, alpha, X, beta, Y, request);
}

int zlg_apply_right_async(zlg_operator *A, zlg_op op, double alpha, zlg_matrix *X, double beta, zlg_matrix *Y,
                          zlg_request **request) {
  return start_async(A, ZLG_RIGHT, op, alpha, X, beta, Y, request);
}

int zlg_apply(zlg_operator *A, zlg_op op, double alpha, zlg_matrix *X, double beta, zlg_matrix *Y) {
  return apply(A, ZLG_LEFT, op, alpha, X, beta, Y);
}

int zlg_apply_right(zlg_operator *A, zlg_op op, double alpha, zlg_matrix *X, double beta, zlg_matrix *Y) {
  return apply(A, ZLG_RIGHT, op, alpha, X, beta, Y);
}

int zlg_operator_cost(zlg_operator *A, zlg_op op, int64_t columns, zlg_cost *cost) {
  if (!A || !cost)
    return zlg_fail(A ? A->context : NULL, ZLG_EINVAL, "zlg_operator_cost: %s is NULL", A ? "cost" : "A");
  int status = check_op(A, op);
  if (status != ZLG_OK) return status;
  if (columns < 0) return zlg_fail(A->context, ZLG_EINVAL, "columns = %lld, expected 0 or more", (long long)columns);
  return A->kind->cost(A, op, columns, cost);
}
