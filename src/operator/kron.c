/* Kronecker products: the factors by reference, validated once; how they are applied is the plan's (src/plan/kron.c).
 */
#include "src/operator/kron.h"

#include <string.h>

#include "src/core/error.h"
#include "src/core/memory.h"
#include "zellige/kron.h"

/* ---- making ----------------------------------------------------------------------------------------------------- */

static int check_factor(zlg_context *context, zlg_matrix *const *factors, const zlg_op *ops, int64_t i) {
  const zlg_matrix *factor = factors[i];
  if (!factor) return zlg_fail(context, ZLG_EINVAL, "factors[%lld] is NULL, expected a matrix", (long long)i);
  if (factor->context != context)
    return zlg_fail(context, ZLG_EINVAL, "factors[%lld] was made with another context", (long long)i);
  if (factor->type != factors[0]->type)
    return zlg_fail(context, ZLG_ETYPE, "factors[%lld] is %s and factors[0] is %s; expected one type", (long long)i,
                    zlg_type_name(factor->type), zlg_type_name(factors[0]->type));
  if (ops && ops[i] != ZLG_NOTRANS && ops[i] != ZLG_TRANS)
    return zlg_fail(context, ZLG_EINVAL, "ops[%lld] = %d, expected ZLG_NOTRANS or ZLG_TRANS", (long long)i,
                    (int)ops[i]);
  if (factor->rows > INT32_MAX || factor->columns > INT32_MAX)
    return zlg_fail(context, ZLG_EOVERFLOW, "factors[%lld] is %lld x %lld; expected fewer than 2^31 of each",
                    (long long)i, (long long)factor->rows, (long long)factor->columns);
  return ZLG_OK;
}

/* Rows and columns of the product; a factor without rows or columns makes it empty, however large the others are. */
static int shape_of(zlg_context *context, const struct zlg_kron *kron, int64_t *rows, int64_t *columns) {
  bool no_rows = false, no_columns = false;
  *rows = *columns = 1;
  for (int64_t i = 0; i < kron->count; i++) {
    no_rows = no_rows || zlg_kron_rows(kron, i) == 0;
    no_columns = no_columns || zlg_kron_columns(kron, i) == 0;
  }
  for (int64_t i = 0; i < kron->count; i++)
    if ((!no_rows && !zlg_mul64(*rows, zlg_kron_rows(kron, i), rows)) ||
        (!no_columns && !zlg_mul64(*columns, zlg_kron_columns(kron, i), columns)))
      return zlg_fail(context, ZLG_EOVERFLOW, "the product of the first %lld factors has 2^63 rows or columns or more",
                      (long long)i + 1);
  if (no_rows) *rows = 0;
  if (no_columns) *columns = 0;
  return ZLG_OK;
}

static void free_kron(struct zlg_kron *kron) {
  for (int64_t i = 0; i < kron->count && kron->factors; i++) zlg_matrix_release(kron->factors[i]);
  zlg_free(kron->factors);
  zlg_free(kron->ops);
  zlg_free(kron->owned);
  zlg_free(kron);
}

static struct zlg_kron *make_kron(int64_t count, zlg_matrix *const *factors, const zlg_op *ops) {
  struct zlg_kron *kron = zlg_calloc(1, sizeof *kron);
  if (!kron) return NULL;
  kron->count = count;
  kron->factors = zlg_calloc((size_t)count + 1, sizeof *kron->factors);
  kron->ops = zlg_calloc((size_t)count + 1, sizeof *kron->ops);
  if (!kron->factors || !kron->ops) {
    free_kron(kron);
    return NULL;
  }
  for (int64_t i = 0; i < count; i++) {
    kron->factors[i] = zlg_matrix_retain(factors[i]);
    kron->ops[i] = ops ? ops[i] : ZLG_NOTRANS;
  }
  return kron;
}

/* ---- applying --------------------------------------------------------------------------------------------------- */

static void give_back_operator(void *op) {
  zlg_operator_release(op);
}

struct zlg_chain zlg_kron_chain(zlg_operator *A, zlg_op op) {
  const struct zlg_kron *kron = A->self;
  return (struct zlg_chain){.context = A->context,
                            .type = A->type,
                            .count = kron->count,
                            .factors = kron->factors,
                            .ops = kron->ops,
                            .transposed = op == ZLG_TRANS,
                            .give_back = give_back_operator,
                            .keep = A};
}

static int apply_kron(zlg_operator *A, zlg_op op, double alpha, zlg_matrix *X, double beta, zlg_matrix *Y,
                      bool threaded, zlg_request **request) {
  struct zlg_chain chain = zlg_kron_chain(A, op);
  chain.x = X, chain.y = Y, chain.alpha = alpha, chain.beta = beta;
  zlg_operator_retain(A);
  return zlg_chain_start(&chain, threaded, request);
}

static bool direct_kron(zlg_operator *A, zlg_op op, double alpha, zlg_matrix *X, double beta, zlg_matrix *Y,
                        int *status) {
  struct zlg_chain chain = zlg_kron_chain(A, op);
  chain.x = X, chain.y = Y, chain.alpha = alpha, chain.beta = beta;
  return zlg_chain_direct(&chain, status);
}

static int cost_kron(zlg_operator *A, zlg_op op, int64_t columns, zlg_cost *cost) {
  const struct zlg_chain chain = zlg_kron_chain(A, op);
  return zlg_chain_cost(&chain, columns, cost);
}

static bool kron_overlaps(const zlg_operator *A, const zlg_matrix *Y) {
  const struct zlg_kron *kron = A->self;
  for (int64_t i = 0; i < kron->count; i++)
    if (zlg_matrix_overlaps(Y, kron->factors[i])) return true;
  return false;
}

static void release_kron(zlg_operator *A) {
  free_kron(A->self);
}

const struct zlg_operator_kind zlg_kron_kind = {.name = "kron",
                                                .tileable = true,
                                                .overlaps = kron_overlaps,
                                                .apply = apply_kron,
                                                .direct = direct_kron,
                                                .cost = cost_kron,
                                                .release = release_kron};

int zlg_kron(zlg_context *context, zlg_operator **op, int64_t count, zlg_matrix *const *factors, const zlg_op *ops) {
  if (!context || !op) return zlg_fail(context, ZLG_EINVAL, "zlg_kron: %s is NULL", context ? "op" : "context");
  *op = NULL;
  if (count < 0) return zlg_fail(context, ZLG_EINVAL, "count = %lld, expected 0 or more factors", (long long)count);
  if (count > 0 && !factors) return zlg_fail(context, ZLG_EINVAL, "factors is NULL, expected %lld", (long long)count);
  int status = ZLG_OK;
  for (int64_t i = 0; i < count && status == ZLG_OK; i++) status = check_factor(context, factors, ops, i);
  if (status != ZLG_OK) return status;
  struct zlg_kron *kron = make_kron(count, factors, ops);
  if (!kron) return zlg_fail(context, ZLG_ENOMEM, "no memory for a list of %lld factors", (long long)count);
  int64_t rows, columns;
  status = shape_of(context, kron, &rows, &columns);
  const zlg_type type = count > 0 ? factors[0]->type : ZLG_F64;
  zlg_operator *made = status == ZLG_OK ? zlg_operator_new(context, &zlg_kron_kind, type, rows, columns, kron) : NULL;
  if (!made) {
    free_kron(kron);
    return status != ZLG_OK ? status : zlg_fail(context, ZLG_ENOMEM, "no memory for a Kronecker operator");
  }
  *op = made;
  return ZLG_OK;
}
