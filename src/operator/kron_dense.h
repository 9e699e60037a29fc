/* Factors of a Kronecker product as dense matrices in memory, in binary64, for the algebra by factor. */
#ifndef ZLG_OPERATOR_KRON_DENSE_H
#define ZLG_OPERATOR_KRON_DENSE_H

#include "src/operator/kron.h"

/* Rows and columns of a Kronecker product's factors: the digits of an index, the last running fastest. */
struct zlg_digits {
  int64_t count;
  int64_t *extent, *digit; /* of one allocation */
};
int zlg_digits_start(zlg_context *context, struct zlg_digits *digits, int64_t count);
/* The next index; returns the first digit that changed (0 too where it starts anew). */
int64_t zlg_digits_next(struct zlg_digits *digits);
void zlg_digits_free(struct zlg_digits *digits);

/* ZLG_ESHAPE, with its name, unless op_i(F_i) is square; ZLG_EOVERFLOW where LAPACK cannot take it. */
int zlg_kron_check_square(const zlg_operator *A, int64_t i);
/* op_i(F_i), row-major, widened to binary64; the caller's to zlg_free(). ZLG_ELIMIT, ZLG_ENOMEM, ZLG_EIO. */
int zlg_kron_read(const zlg_operator *A, int64_t i, double **factor);
/* dF = alpha values + beta dF, in the shape of the matrix that was given as F_i: `values` has op_i(F_i)'s, row-major.
 */
int zlg_kron_write(const zlg_operator *A, int64_t i, double alpha, const double *values, double beta, zlg_matrix *dF);
/* Checks the matrices that gradients go to: NULL ones are skipped. */
int zlg_kron_check_gradients(const zlg_operator *A, zlg_matrix *const *dF);

/* The Kronecker product of square matrices of these sizes, one behind the other and row-major in `values`, which is
 * taken over in every case. `what` names what they are. */
int zlg_kron_owning(zlg_context *context, zlg_operator **op, zlg_type type, int64_t count, const int64_t *sizes,
                    double *values, const char *what);

#endif
