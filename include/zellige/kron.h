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

/* Strided batches: for b = 0 … batch - 1, Y_b = alpha op(A_b) X_b + beta Y_b (or X_b op(A_b)), all in memory. A, X and
 * Y are those of b = 0; the elements of X_b, Y_b and of factor i of A_b begin b x_stride, b y_stride and b
 * factor_strides[i] elements behind them. A stride of 0 shares; factor_strides = NULL shares all factors; Y is not
 * shared. The caller answers for the memory behind A's factors, X and Y being there. Where factors are shared and the
 * vectors of all entries lie as those of one larger matrix they are done as that, else one entry after the other; a
 * failure leaves the entries behind it as they were. Errors, before anything is written: those of zlg_apply();
 * ZLG_EINVAL (a negative stride or batch, A no zlg_kron()), ZLG_ENOTSUP (an operand in a file), ZLG_EOVERLAP (two
 * entries of Y overlap, or the stretch from the first to the last of Y with that of X or of a factor), ZLG_EOVERFLOW.
 */
ZLG_API int zlg_kron_apply_batched(zlg_operator *A, zlg_op op, int64_t batch, const int64_t *factor_strides,
                                   double alpha, zlg_matrix *X, int64_t x_stride, double beta, zlg_matrix *Y,
                                   int64_t y_stride);
ZLG_API int zlg_kron_apply_right_batched(zlg_operator *A, zlg_op op, int64_t batch, const int64_t *factor_strides,
                                         double alpha, zlg_matrix *X, int64_t x_stride, double beta, zlg_matrix *Y,
                                         int64_t y_stride);

/* ---- gradients --------------------------------------------------------------------------------------------------
 *
 * Of a function of Y = alpha op(A) X, whose gradient with respect to Y is dY: dX = alpha op(A)^T dY + beta dX, where dX
 * is not NULL, and for every factor with dF[i] not NULL, in the shape and type of the matrix that was given to
 * zlg_kron(), whatever its op, dF_i = (the gradient with respect to F_i) + beta dF_i. dF has as many entries as there
 * are factors. X, dY and dX are memory or files; beta = 0 never reads dX or dF. One call costs about three products:
 * each task takes a block of columns of X and dY, computes what X is between the factors anew, and adds into an
 * accumulator in binary64 (sums of at most 256 products are taken in A's type). The bits do not depend on the number of
 * workers. Memory: per worker, one to a dozen or so vectors of all intermediate lengths, and accumulators of the
 * factors' sizes: ZLG_ELIMIT where they pass the context's limit. Waits until done. Errors as of zlg_apply(), by name;
 * ZLG_ENOTSUP where A is no zlg_kron(). */
ZLG_API int zlg_kron_gradient(zlg_operator *A, zlg_op op, double alpha, zlg_matrix *X, zlg_matrix *dY, double beta,
                              zlg_matrix *dX, zlg_matrix *const *dF);
/* The same for Y = alpha X op(A): dX = alpha dY op(A)^T + beta dX. */
ZLG_API int zlg_kron_gradient_right(zlg_operator *A, zlg_op op, double alpha, zlg_matrix *X, zlg_matrix *dY,
                                    double beta, zlg_matrix *dX, zlg_matrix *const *dF);

/* ---- algebra ----------------------------------------------------------------------------------------------------
 *
 * Of A = F_1 x … x F_n (zlg_kron(); F_i stands for op_i(F_i)), n_i x n_i where square, N = n_1 … n_n, factor by factor:
 * no work or memory grows with N^2. Factors are read into memory, in binary64, whatever their type; their elements and
 * LAPACK's workspace count against the context's memory limit (ZLG_ELIMIT). All run in the calling thread. A
 * zlg_kron_shifted() may be given too. Errors of all: ZLG_EINVAL (an argument is NULL), ZLG_ENOTSUP (another kind of
 * operator, or not of this one), ZLG_ESHAPE (not square), ZLG_ESINGULAR, ZLG_EOVERFLOW (a square factor of more than
 * 32000 rows where LAPACK is needed), ZLG_EIO, ZLG_ENOMEM, ZLG_ELIMIT. */

/* The elements A[i, i], as many as A has rows or columns, into `diagonal`, a matrix of as many rows and one column, of
 * A's type: memory or file. Factors need not be square, nor A. Each element is a product of n numbers in binary64,
 * rounded once. */
ZLG_API int zlg_kron_diagonal(zlg_operator *A, zlg_matrix *diagonal);
/* The sum of the diagonal of a square A: the product of the traces, tr(F_1) … tr(F_n), where all factors are square (no
 * step grows with N then), else the sum itself. */
ZLG_API int zlg_kron_trace(zlg_operator *A, double *trace);
/* *logabs = log|det A| and *sign = -1, 0 or 1: log|det A| = sum_i N / n_i log|det F_i|, each by LU with partial
 * pivoting and a sum of logarithms, so that nothing under- or overflows and nothing is clamped. A singular A has sign 0
 * and logabs -inf; so has a square product of factors that are not square, whose rank is less than N. The relative
 * error of |det F_i| is about n_i cond(F_i) 1e-16. An empty A has determinant 1. */
ZLG_API int zlg_kron_logdet(zlg_operator *A, double *logabs, int *sign);
/* The inverse as an operator: for A, the Kronecker product of the factors' inverses, computed in binary64 (LU with
 * partial pivoting), rounded to A's type, and the operator's own; applying it solves with A, through the same tasks,
 * devices and files as any product (zlg_kron(), zlg_apply(), zlg_apply_right()). Relative forward error of a solution:
 * about cond(A) u with u of A's type, cond(A) = cond(F_1) … cond(F_n) (Higham, Accuracy and Stability of Numerical
 * Algorithms, 2nd ed., section 14.1); unlike that of an LU solve, the residual may be as large as cond(A) u ||b||.
 * ZLG_ESHAPE names a factor that is not square, ZLG_ESINGULAR one that is singular, or whose inverse is past A's type.
 *
 * For S = A + s I (zlg_kron_shifted()): S^-1 = Q diag(1 / (lambda + s)) Q^T. It is no Kronecker product: blocks of
 * columns of X pass through a workspace of N elements a column, 64 MiB or a quarter of the memory limit at most, one
 * column at least. */
ZLG_API int zlg_kron_inverse(zlg_operator *A, zlg_operator **inverse);
/* A = Q diag(lambda) Q^T with Q = Q_1 x … x Q_n and lambda = lambda_1 x … x lambda_n: orthogonal eigenvectors of the
 * factors, each n_i x n_i, as an operator of A's type that owns them, and the eigenvalues of the factors, ascending,
 * one factor's behind the other's in `values` (n_1 + … + n_n numbers). By LAPACK in binary64. Each factor must be
 * symmetric up to rounding, |F[j,k] - F[k,j]| <= 16 u max|F|: ZLG_EINVAL names the one that is not; their symmetric
 * parts are taken. Q or values may be NULL. */
ZLG_API int zlg_kron_eigen(zlg_operator *A, zlg_operator **Q, double *values);
/* S = A + shift I, for symmetric factors, as an operator with the eigendecomposition of A inside, made here once: to
 * multiply with (A X plus shift X), and for zlg_kron_inverse(), zlg_kron_logdet(), zlg_kron_trace(),
 * zlg_kron_diagonal() and zlg_kron_logdet_gradient(). Covariances of Gaussian processes on grids, K_1 x K_2 + sigma^2
 * I, are such (Saatci, Scalable Inference for Structured Gaussian Process Models, 2011). ZLG_ESINGULAR where the
 * smallest lambda + shift is not positive. One number is all that can be added: with a diagonal that varies the
 * eigenvectors are others, and nothing here takes one. log det S = sum_k log(lambda_k + shift), N logarithms. */
ZLG_API int zlg_kron_shifted(zlg_operator *A, double shift, zlg_operator **S);
/* dF_i = alpha d log|det A| / dF_i + beta dF_i for each factor with dF[i] not NULL, in the shape and type of the matrix
 * that was given to zlg_kron(), whatever its op. For A: N / n_i F_i^-T. For S: Q_i diag(g_i) Q_i^T with g_i[j] = sum
 * over k with k_i = j of prod_{l != i} lambda_l[k_l] / (lambda[k] + shift), which needs no eigenvalue to be simple; and
 * *dshift = d log det S / d shift, the sum of all 1 / (lambda + shift), where dshift is not NULL. beta = 0 never reads
 * dF. One matrix may stand for several factors where beta = 1. ZLG_EREADONLY, ZLG_ETYPE and ZLG_ESHAPE name the matrix.
 */
ZLG_API int zlg_kron_logdet_gradient(zlg_operator *A, double alpha, double beta, zlg_matrix *const *dF, double *dshift);

#ifdef __cplusplus
}
#endif
#endif
