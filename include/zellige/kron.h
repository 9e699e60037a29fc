/* Kronecker products: A = op_1(F_1) x … x op_n(F_n), never formed.
 *
 * (F x G)[(i, k), (j, l)] = F[i, j] G[k, l], the indices of the last factor running fastest. */
#ifndef ZELLIGE_KRON_H
#define ZELLIGE_KRON_H

#include "zellige/operator.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The Kronecker product of `count` matrices of one type, with op (ZLG_NOTRANS, ZLG_TRANS) for each, or NULL for none
 * transposed: its rows are the product of the rows of all op_i(F_i), its columns that of their columns. Factors may
 * have any shape, leading dimension and order, and may lie in memory or in files; they must live, their elements
 * unchanged, while the operator is applied. The operator keeps references to the matrix objects. */
ZLG_API int zlg_kron(zlg_context *context, zlg_operator **op, int64_t count, zlg_matrix *const *factors,
                     const zlg_op *ops);

#ifdef __cplusplus
}
#endif
#endif
