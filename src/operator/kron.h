/* The inside of a Kronecker product operator, for what asks about its factors: the algebra by factor. */
#ifndef ZLG_OPERATOR_KRON_H
#define ZLG_OPERATOR_KRON_H

#include "src/operator/operator.h"
#include "src/plan/plan.h"

struct zlg_kron {
  int64_t count;
  zlg_matrix **factors; /* references of the operator's own */
  zlg_op *ops;
  void *owned; /* memory of factors that are the operator's own, or NULL */
};

extern const struct zlg_operator_kind zlg_kron_kind;

/* The state of an operator of this kind. */
static inline const struct zlg_kron *zlg_kron_of(const zlg_operator *A) {
  return A->self;
}

/* Rows and columns of op_i(F_i). */
static inline int64_t zlg_kron_rows(const struct zlg_kron *kron, int64_t i) {
  return kron->ops[i] == ZLG_NOTRANS ? kron->factors[i]->rows : kron->factors[i]->columns;
}
static inline int64_t zlg_kron_columns(const struct zlg_kron *kron, int64_t i) {
  return kron->ops[i] == ZLG_NOTRANS ? kron->factors[i]->columns : kron->factors[i]->rows;
}

/* op(A) as the plan takes it; X, Y and the scalars are still to come. Its give_back() releases A. */
struct zlg_chain zlg_kron_chain(zlg_operator *A, zlg_op op);

#endif
