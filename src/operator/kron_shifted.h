/* Kronecker products of symmetric factors plus a multiple of the identity, S = A + shift I, by A's eigendecomposition.
 */
#ifndef ZLG_OPERATOR_KRON_SHIFTED_H
#define ZLG_OPERATOR_KRON_SHIFTED_H

#include "src/operator/kron.h"

struct zlg_shifted {
  zlg_operator *kron;    /* A */
  zlg_operator *vectors; /* Q, of A's type */
  double *values;        /* of A's factors, one behind the other */
  int64_t values_count;
  double shift;
  bool inverse; /* the operator is S^-1 */
};

/* True for S and S^-1. */
bool zlg_kron_is_shifted(const zlg_operator *A);
static inline const struct zlg_shifted *zlg_shifted_of(const zlg_operator *S) {
  return S->self;
}

int zlg_shifted_inverse(zlg_operator *S, zlg_operator **inverse);
/* log det of S, or of S^-1. */
int zlg_shifted_logdet(const zlg_operator *S, double *logdet);
int zlg_shifted_gradient(const zlg_operator *S, double alpha, double beta, zlg_matrix *const *dF, double *dshift);

#endif
