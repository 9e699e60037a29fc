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
 * unchanged, while the operator is applied. The operator keeps references to the matrix objects. No factor at all
 * (count = 0) is the 1 x 1 identity, of type ZLG_F64.
 *
 * Factors are read once a call, and applied in the order that costs least, those that shrink a vector first. Elements
 * of X meet only factors of their own type: f64 factors with f32 data are ZLG_ETYPE. Errors: ZLG_EINVAL (which factor),
 * ZLG_ETYPE (factors of two types), ZLG_EOVERFLOW (2^31 rows or columns of a factor, 2^63 of the product),
 * ZLG_ENOMEM. */
ZLG_API int zlg_kron(zlg_context *context, zlg_operator **op, int64_t count, zlg_matrix *const *factors,
                     const zlg_op *ops);

#ifdef __cplusplus
}
#endif
#endif
