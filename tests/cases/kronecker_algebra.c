/* Cases on which other libraries' algebra of Kronecker products went wrong, with the right values: linear_operator
 * (clamped eigenvalues, a diagonal of factors that are not square), probnum#205, gpytorch#1208, #1430, #1673. */
#include <math.h>
#include <stdlib.h>

#include "tests/support_product.h"

static zlg_context *context;

/* A = F x G from row-major numbers. */
static zlg_operator *kron_of(int64_t m, int64_t n, const double *f, int64_t p, int64_t q, const double *g) {
  zlg_matrix *factors[2] = {NULL, NULL};
  zlg_operator *A = NULL;
  ZLG_CHECK_OK(zlg_matrix_wrap_const(context, &factors[0], ZLG_F64, m, n, ZLG_ROW_MAJOR, n, f), context);
  ZLG_CHECK_OK(zlg_matrix_wrap_const(context, &factors[1], ZLG_F64, p, q, ZLG_ROW_MAJOR, q, g), context);
  ZLG_CHECK_OK(zlg_kron(context, &A, 2, factors, NULL), context);
  for (int i = 0; i < 2; i++) zlg_matrix_release(factors[i]);
  return A;
}

static void check_logdet(zlg_operator *A, long double want) {
  double got = NAN;
  int sign = 0;
  ZLG_CHECK_OK(zlg_kron_logdet(A, &got, &sign), context);
  ZLG_CHECK_CLOSE(got, want, 4 * 0x1p-53L * fabsl(want)); /* a few logarithms, each right to a unit in the last place */
  CU_ASSERT_EQUAL(sign, 1);
  zlg_operator_release(A);
}

static void diagonal_of_factors_that_are_not_square(void) {
  static const double numbers[] = {0, 1, 2, 3, 4, 5}, want[] = {0, 0, 4, 4, 10, 25};
  zlg_operator *A = kron_of(2, 3, numbers, 3, 2, numbers);
  double got[6];
  zlg_matrix *diagonal = NULL;
  ZLG_CHECK_OK(zlg_matrix_wrap(context, &diagonal, ZLG_F64, 6, 1, ZLG_COLUMN_MAJOR, 6, got), context);
  ZLG_CHECK_OK(zlg_kron_diagonal(A, diagonal), context);
  for (int i = 0; i < 6; i++) ZLG_CHECK_CLOSE(got[i], want[i], 0);
  zlg_matrix_release(diagonal);
  zlg_operator_release(A);
}

static void determinants_are_not_clamped(void) {
  static const double small[] = {1e-4, 0, 0, 1}, tiny[] = {1e-9, 0, 0, 1e-9}, one[] = {1, 0, 0, 1},
                      five[] = {1e-5, 0, 0, 1e-5};
  check_logdet(kron_of(2, 2, small, 2, 2, small), 4 * logl(1e-4L));
  check_logdet(kron_of(2, 2, tiny, 2, 2, one), 4 * logl(1e-9L));
  check_logdet(kron_of(2, 2, five, 2, 2, five), 4 * logl(1e-10L));
}

static void determinant_of_unlike_sizes(void) {
  static const double a[] = {2, 0, 0, 3}, b[] = {1, 0, 0, 0, 2, 0, 0, 0, 4};
  check_logdet(kron_of(2, 2, a, 3, 3, b), logl(13824));
}

/* (A x B + s I)^-1 x and its determinant, 3 x 3 and 4 x 4, s = 0.1, by elimination on the dense 12 x 12 in long double.
 */
static void shifted_solve_equals_the_dense_one(void) {
  double a[9], b[16], x[12], y[12];
  long double m[12][13], log = 0;
  for (int i = 0; i < 3; i++)
    for (int k = 0; k < 3; k++) a[3 * i + k] = (i == k ? 2 : 0) + 1.0 / (1 + i + k);
  for (int i = 0; i < 4; i++)
    for (int k = 0; k < 4; k++) b[4 * i + k] = (i == k ? 1 : 0) + 0.5 * exp(-abs(i - k));
  for (int i = 0; i < 12; i++) {
    for (int k = 0; k < 12; k++)
      m[i][k] = (long double)a[i / 4 * 3 + k / 4] * b[i % 4 * 4 + k % 4] + (i == k ? 0.1 : 0);
    x[i] = m[i][12] = i % 5 - 2;
  }
  for (int c = 0; c < 12; c++) { /* positive definite: no pivots */
    log += logl(m[c][c]);
    for (int r = 0; r < 12; r++)
      for (int k = 12; r != c && k >= c; k--) m[r][k] -= m[r][c] / m[c][c] * m[c][k];
  }
  zlg_operator *A = kron_of(3, 3, a, 4, 4, b), *S = NULL, *inverse = NULL;
  zlg_matrix *X = NULL, *Y = NULL;
  ZLG_CHECK_OK(zlg_kron_shifted(A, 0.1, &S), context);
  ZLG_CHECK_OK(zlg_kron_inverse(S, &inverse), context);
  ZLG_CHECK_OK(zlg_matrix_wrap(context, &X, ZLG_F64, 12, 1, ZLG_COLUMN_MAJOR, 12, x), context);
  ZLG_CHECK_OK(zlg_matrix_wrap(context, &Y, ZLG_F64, 12, 1, ZLG_COLUMN_MAJOR, 12, y), context);
  ZLG_CHECK_OK(zlg_apply(inverse, ZLG_NOTRANS, 1, X, 0, Y), context);
  /* Eigenvalues between 1 and 8: a condition of less than 10, and some 12 u of it. */
  for (int i = 0; i < 12; i++) ZLG_CHECK_CLOSE(y[i], m[i][12] / m[i][i], 12 * 10 * 0x1p-53L * 2);
  double got;
  int sign;
  ZLG_CHECK_OK(zlg_kron_logdet(S, &got, &sign), context);
  ZLG_CHECK_CLOSE(got, log, 12 * 10 * 0x1p-53L);
  zlg_matrix_release(X);
  zlg_matrix_release(Y);
  zlg_operator_release(inverse);
  zlg_operator_release(S);
  zlg_operator_release(A);
}

/* K1 x K2 + diag(d) with d that varies can be applied, as a sum; its solve and determinant are refused, never those of
 * something else. */
static void a_diagonal_that_varies_is_refused(void) {
  static const double k[] = {2, 1, 1, 2}, d[] = {1, 0, 0, 3}, one[] = {1, 0, 0, 1};
  zlg_operator *terms[] = {kron_of(2, 2, k, 2, 2, k), kron_of(2, 2, d, 2, 2, one)}, *sum = NULL, *no = NULL;
  ZLG_CHECK_OK(zlg_operator_sum(context, &sum, 2, terms, NULL), context);
  double log;
  int sign;
  ZLG_CHECK_STATUS(zlg_kron_inverse(sum, &no), ZLG_ENOTSUP, context);
  ZLG_CHECK_STATUS(zlg_kron_logdet(sum, &log, &sign), ZLG_ENOTSUP, context);
  ZLG_CHECK_STATUS(zlg_kron_shifted(sum, 1, &no), ZLG_ENOTSUP, context);
  zlg_operator_release(sum);
  for (int i = 0; i < 2; i++) zlg_operator_release(terms[i]);
}

/* I2 x K + c I has every eigenvalue twice. d log det / dI = sum over K's eigenvalues of k / (k + c) on the diagonal,
 * and d / dK = 2 (K + c I)^-1; K = [2 1; 1 2] has the eigenvalues 1 and 3. */
static void repeated_eigenvalues_have_a_finite_gradient(void) {
  static const double one[] = {1, 0, 0, 1}, k[] = {2, 1, 1, 2};
  double di[4], dk[4], dshift = NAN;
  zlg_operator *A = kron_of(2, 2, one, 2, 2, k), *S = NULL;
  zlg_matrix *dF[2] = {NULL, NULL};
  ZLG_CHECK_OK(zlg_matrix_wrap(context, &dF[0], ZLG_F64, 2, 2, ZLG_ROW_MAJOR, 2, di), context);
  ZLG_CHECK_OK(zlg_matrix_wrap(context, &dF[1], ZLG_F64, 2, 2, ZLG_ROW_MAJOR, 2, dk), context);
  ZLG_CHECK_OK(zlg_kron_shifted(A, 0.5, &S), context);
  ZLG_CHECK_OK(zlg_kron_logdet_gradient(S, 1, 0, dF, &dshift), context);
  const long double u = 16 * 0x1p-53L, diagonal = 1 / 1.5L + 3 / 3.5L;
  for (int i = 0; i < 4; i++) {
    ZLG_CHECK_CLOSE(di[i], i % 3 == 0 ? diagonal : 0, u);
    ZLG_CHECK_CLOSE(dk[i], i % 3 == 0 ? 1 / 1.5L + 1 / 3.5L : 1 / 3.5L - 1 / 1.5L, u);
  }
  ZLG_CHECK_CLOSE(dshift, 2 * (1 / 1.5L + 1 / 3.5L), u);
  for (int i = 0; i < 2; i++) zlg_matrix_release(dF[i]);
  zlg_operator_release(S);
  zlg_operator_release(A);
}

int main(int argc, char **argv) {
  static const struct zlg_test_case cases[] = {
      {"diagonal_of_factors_that_are_not_square", diagonal_of_factors_that_are_not_square},
      {"determinants_are_not_clamped", determinants_are_not_clamped},
      {"determinant_of_unlike_sizes", determinant_of_unlike_sizes},
      {"shifted_solve_equals_the_dense_one", shifted_solve_equals_the_dense_one},
      {"a_diagonal_that_varies_is_refused", a_diagonal_that_varies_is_refused},
      {"repeated_eigenvalues_have_a_finite_gradient", repeated_eigenvalues_have_a_finite_gradient},
      {NULL, NULL}};
  context = zlg_test_context();
  int status = zlg_test_main(argc, argv, cases);
  zlg_context_release(context);
  return status;
}
