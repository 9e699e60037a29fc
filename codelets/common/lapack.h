/* The few factorisations that Zellige takes from LAPACK, in binary64, on matrices in the machine's memory: LU with
 * partial pivoting, the inverse, the eigendecomposition of a symmetric matrix. No type of BLAS is seen from here. */
#ifndef ZLG_COMMON_LAPACK_H
#define ZLG_COMMON_LAPACK_H

#include <stdint.h>

/* Largest order: LAPACK counts in 32 bits, and the eigensolver's workspace is 1 + 6 n + 2 n^2 elements. */
#define ZLG_LAPACK_MOST 32000

/* log|det a| and the sign of det a (0 and -inf for a singular one); `a`, n x n in either order, is overwritten. NaN
 * where `a` has one. ZLG_OK, ZLG_ENOMEM. */
int zlg_lapack_logdet(int64_t n, double *a, double *logabs, int *sign);
/* a becomes its inverse, in the order it was stored. ZLG_OK, ZLG_ESINGULAR (a pivot is zero or the inverse is not
 * finite), ZLG_ENOMEM. */
int zlg_lapack_invert(int64_t n, double *a);
/* The symmetric `a` becomes its eigenvectors, row-major, one a column; values ascend. ZLG_OK, ZLG_ENOMEM, ZLG_ESINGULAR
 * (the iteration did not converge). */
int zlg_lapack_eigen(int64_t n, double *a, double *values);

#endif
