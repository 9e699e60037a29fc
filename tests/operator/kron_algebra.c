/* The algebra of Kronecker products by factor, against dense matrices in long double: diagonal, trace, determinant,
 * inverse, eigendecomposition, a multiple of the identity added, sums, and the determinant's gradients. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support_product.h"

#define MOST 4 /* factors of a problem */

static zlg_context *context;
static const zlg_type types[] = {ZLG_F32, ZLG_F64};

/* ---- dense, in long double -------------------------------------------------------------------------------------- */

struct dense {
  int64_t rows, columns;
  long double *at;
};

static struct dense dense_new(int64_t rows, int64_t columns) {
  struct dense a = {rows, columns, calloc((size_t)(rows * columns) + 1, sizeof(long double))};
  if (!a.at) abort();
  return a;
}

/* op(F) x so far. */
static struct dense dense_kron(struct dense a, const struct zlg_test_array *f, zlg_op op) {
  const bool trans = op == ZLG_TRANS;
  const int64_t rows = trans ? f->columns : f->rows, columns = trans ? f->rows : f->columns;
  struct dense c = dense_new(a.rows * rows, a.columns * columns);
  for (int64_t i = 0; i < c.rows; i++)
    for (int64_t k = 0; k < c.columns; k++) {
      const int64_t r = i % rows, s = k % columns;
      c.at[i * c.columns + k] = a.at[i / rows * a.columns + k / columns] *
                                (trans ? zlg_test_array_get(f, s, r) : zlg_test_array_get(f, r, s));
    }
  free(a.at);
  return c;
}

/* Gauss and Jordan with pivots: the inverse in place of a, log|det| and the sign. */
static long double dense_invert(struct dense *a, int *sign) {
  const int64_t n = a->rows;
  struct dense b = dense_new(n, n);
  long double log = 0;
  *sign = 1;
  for (int64_t i = 0; i < n; i++) b.at[i * n + i] = 1;
  for (int64_t c = 0; c < n; c++) {
    int64_t p = c;
    for (int64_t r = c; r < n; r++)
      if (fabsl(a->at[r * n + c]) > fabsl(a->at[p * n + c])) p = r;
    if (p != c) *sign = -*sign;
    for (int64_t k = 0; k < n; k++) {
      long double t = a->at[c * n + k];
      a->at[c * n + k] = a->at[p * n + k], a->at[p * n + k] = t;
      t = b.at[c * n + k];
      b.at[c * n + k] = b.at[p * n + k], b.at[p * n + k] = t;
    }
    const long double pivot = a->at[c * n + c];
    if (pivot < 0) *sign = -*sign;
    log += logl(fabsl(pivot));
    for (int64_t k = 0; k < n; k++) a->at[c * n + k] /= pivot, b.at[c * n + k] /= pivot;
    for (int64_t r = 0; r < n; r++) {
      const long double by = a->at[r * n + c];
      if (r == c || by == 0) continue;
      for (int64_t k = 0; k < n; k++) {
        a->at[r * n + k] -= by * a->at[c * n + k];
        b.at[r * n + k] -= by * b.at[c * n + k];
      }
    }
  }
  free(a->at);
  *a = b;
  return log;
}

static long double dense_norm(struct dense a) { /* by rows */
  long double most = 0;
  for (int64_t i = 0; i < a.rows; i++) {
    long double sum = 0;
    for (int64_t k = 0; k < a.columns; k++) sum += fabsl(a.at[i * a.columns + k]);
    most = fmaxl(most, sum);
  }
  return most;
}

/* ---- problems --------------------------------------------------------------------------------------------------- */

struct problem {
  int count;
  struct zlg_test_array factors[MOST];
  zlg_matrix *matrices[MOST];
  zlg_op ops[MOST];
  zlg_operator *A;
};

static void problem_free(struct problem *p) {
  zlg_operator_release(p->A);
  for (int i = 0; i < p->count; i++) {
    zlg_matrix_release(p->matrices[i]);
    zlg_test_array_free(&p->factors[i]);
  }
}

static void problem_finish(struct problem *p) {
  for (int i = 0; i < p->count; i++) p->matrices[i] = zlg_test_array_wrap(context, &p->factors[i]);
  ZLG_CHECK_OK(zlg_kron(context, &p->A, p->count, p->matrices, p->ops), context);
}

/* Random factors; every second one transposed, orders alternating. */
static struct problem problem_random(zlg_type type, int count, const int64_t (*shapes)[2], uint64_t seed) {
  struct problem p = {.count = count};
  for (int i = 0; i < count; i++) {
    p.ops[i] = i % 2 ? ZLG_TRANS : ZLG_NOTRANS;
    const int64_t rows = shapes[i][i % 2], columns = shapes[i][1 - i % 2];
    p.factors[i] = zlg_test_array_random(type, rows, columns, i % 2 ? ZLG_COLUMN_MAJOR : ZLG_ROW_MAJOR, i, &seed, 0, 1);
    if (rows == columns) /* well conditioned, of either sign */
      for (int64_t k = 0; k < rows; k++)
        zlg_test_array_set(&p.factors[i], k, k, zlg_test_array_get(&p.factors[i], k, k) + (k % 2 ? 4 : -4));
  }
  problem_finish(&p);
  return p;
}

/* Covariances exp(-|j - k| / 2) plus a little on the diagonal. */
static struct problem problem_symmetric(zlg_type type, int count, const int64_t *sizes) {
  struct problem p = {.count = count};
  for (int i = 0; i < count; i++) {
    p.ops[i] = i % 2 ? ZLG_TRANS : ZLG_NOTRANS;
    p.factors[i] = zlg_test_array_new(type, sizes[i], sizes[i], ZLG_ROW_MAJOR, i);
    for (int64_t j = 0; j < sizes[i]; j++)
      for (int64_t k = 0; k < sizes[i]; k++)
        zlg_test_array_set(&p.factors[i], j, k, exp(-fabs((double)(j - k)) / (2 + i)) + (j == k ? 0.1 : 0));
  }
  problem_finish(&p);
  return p;
}

static struct dense problem_dense(const struct problem *p) {
  struct dense a = dense_new(1, 1);
  a.at[0] = 1;
  for (int i = 0; i < p->count; i++) a = dense_kron(a, &p->factors[i], p->ops[i]);
  return a;
}

/* ---- diagonal and trace ----------------------------------------------------------------------------------------- */

/* Products of `count` numbers in binary64, rounded once, and a sum of them. */
static void diagonals_are_the_dense_ones(void) {
  static const int64_t shapes[][MOST][2] = {
      {{3, 3}, {2, 2}, {4, 4}, {1, 1}}, {{2, 3}, {3, 2}, {5, 4}, {2, 3}}, {{1, 7}, {4, 1}, {3, 3}, {2, 2}}};
  for (int t = 0; t < 2; t++)
    for (int s = 0; s < 3; s++) {
      struct problem p = problem_random(types[t], MOST, shapes[s], 7 + (uint64_t)s);
      struct dense a = problem_dense(&p);
      const int64_t n = a.rows < a.columns ? a.rows : a.columns;
      struct zlg_test_array d = zlg_test_array_new(types[t], n, 1, ZLG_COLUMN_MAJOR, 0);
      zlg_matrix *diagonal = zlg_test_array_wrap(context, &d);
      ZLG_CHECK_OK(zlg_kron_diagonal(p.A, diagonal), context);
      long double trace = 0, absolute = 0;
      for (int64_t i = 0; i < n; i++) {
        const long double want = a.at[i * a.columns + i];
        ZLG_CHECK_CLOSE(zlg_test_array_get(&d, i, 0), want,
                        (zlg_test_roundoff(types[t]) + zlg_test_gamma(MOST, ZLG_F64)) * fabsl(want));
        trace += want, absolute += fabsl(want);
      }
      double got = NAN;
      if (a.rows == a.columns) {
        ZLG_CHECK_OK(zlg_kron_trace(p.A, &got), context);
        /* Products of sums of at most 4 numbers each, whose absolute values multiply up to the sum of all of them. */
        ZLG_CHECK_CLOSE(got, trace, zlg_test_gamma(32, ZLG_F64) * absolute);
      } else {
        ZLG_CHECK_STATUS(zlg_kron_trace(p.A, &got), ZLG_ESHAPE, context);
      }
      zlg_matrix_release(diagonal);
      zlg_test_array_free(&d);
      free(a.at);
      problem_free(&p);
    }
}

/* A square product of factors that are not: 6 x 6 of 2 x 3 and 3 x 2. */
static void traces_of_factors_that_are_not_square(void) {
  static const int64_t shapes[][2] = {{2, 3}, {3, 2}};
  struct problem p = problem_random(ZLG_F64, 2, shapes, 3);
  struct dense a = problem_dense(&p);
  long double want = 0, absolute = 0;
  for (int64_t i = 0; i < 6; i++) want += a.at[7 * i], absolute += fabsl(a.at[7 * i]);
  double got = NAN, log = NAN;
  int sign = 7;
  ZLG_CHECK_OK(zlg_kron_trace(p.A, &got), context);
  ZLG_CHECK_CLOSE(got, want, zlg_test_gamma(8, ZLG_F64) * absolute);
  /* Its rank is 4 at most. */
  ZLG_CHECK_OK(zlg_kron_logdet(p.A, &log, &sign), context);
  CU_ASSERT(sign == 0 && log == -INFINITY);
  free(a.at);
  problem_free(&p);
}

static void a_long_diagonal_goes_to_a_file(void) {
  static const int64_t shapes[][2] = {{50, 50}, {61, 61}};
  struct problem p = problem_random(ZLG_F64, 2, shapes, 5);
  char *path = zlg_test_path("diagonal.npy");
  zlg_matrix *file = NULL;
  ZLG_CHECK_OK(zlg_matrix_create_npy(context, &file, path, ZLG_F64, 3050, 1, ZLG_ROW_MAJOR), context);
  ZLG_CHECK_OK(zlg_kron_diagonal(p.A, file), context);
  double got[3050];
  ZLG_CHECK_OK(zlg_matrix_read(file, 0, 3050, 0, 1, ZLG_ROW_MAJOR, 1, got), context);
  for (int i = 0; i < 3050; i++) { /* one product of two numbers: exactly rounded */
    const double want =
        zlg_test_array_get(&p.factors[0], i / 61, i / 61) * zlg_test_array_get(&p.factors[1], i % 61, i % 61);
    ZLG_CHECK_CLOSE(got[i], want, 0);
  }
  zlg_matrix_release(file);
  free(path);
  problem_free(&p);
}

/* ---- determinant and inverse ------------------------------------------------------------------------------------ */

static const int64_t square_shapes[][2] = {{3, 3}, {4, 4}, {1, 1}, {5, 5}};

/* LU: det(F + E) with |E| <= gamma_3n |L||U|, some n cond(F) u; its logarithm's error counts N / n_i times. All well
 * conditioned here: cond < 100. */
static void logdets_are_the_dense_ones(void) {
  for (int t = 0; t < 2; t++)
    for (int count = 0; count <= MOST; count++) {
      struct problem p = problem_random(types[t], count, square_shapes, 11);
      struct dense a = problem_dense(&p);
      int want_sign, sign = 7;
      const long double want = dense_invert(&a, &want_sign);
      double got = NAN;
      ZLG_CHECK_OK(zlg_kron_logdet(p.A, &got, &sign), context);
      ZLG_CHECK_CLOSE(got, want, (long double)a.rows * 15 * 100 * 0x1p-53L);
      CU_ASSERT_EQUAL(sign, want_sign);
      free(a.at);
      problem_free(&p);
    }
}

/* y = A^-1 x rounded to the type: each factor's inverse is off by some n cond u of its norm, the product by gamma (see
 * zellige/kron.h): cond(A) times a few u of the norm of A^-1 times that of x, whose
 * elements are below 4. */
static void inverses_solve(void) {
  for (int t = 0; t < 2; t++)
    for (int trans = 0; trans < 2; trans++) {
      struct problem p = problem_random(types[t], MOST, square_shapes, 13);
      struct dense a = problem_dense(&p);
      const int64_t n = a.rows, r = 3;
      const long double norm = dense_norm(a);
      int sign;
      dense_invert(&a, &sign);
      const long double inverse_norm = dense_norm(a), cond = norm * inverse_norm;
      uint64_t state = 17;
      struct zlg_test_array x = zlg_test_array_random(types[t], n, r, ZLG_ROW_MAJOR, 1, &state, 0, 1);
      struct zlg_test_array y = zlg_test_array_new(types[t], n, r, ZLG_COLUMN_MAJOR, 2);
      zlg_test_array_fill(&y, NAN);
      zlg_matrix *X = zlg_test_array_wrap(context, &x), *Y = zlg_test_array_wrap(context, &y);
      zlg_operator *inverse = NULL;
      ZLG_CHECK_OK(zlg_kron_inverse(p.A, &inverse), context);
      ZLG_CHECK_OK(zlg_apply(inverse, trans ? ZLG_TRANS : ZLG_NOTRANS, 1, X, 0, Y), context);
      for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < r; k++) {
          long double want = 0;
          for (int64_t j = 0; j < n; j++) want += a.at[trans ? j * n + i : i * n + j] * zlg_test_array_get(&x, j, k);
          ZLG_CHECK_CLOSE(zlg_test_array_get(&y, i, k), want,
                          4 * zlg_test_roundoff(types[t]) * cond * inverse_norm * 4);
        }
      CU_ASSERT(zlg_test_array_gaps_intact(&y));
      zlg_operator_release(inverse);
      zlg_matrix_release(X);
      zlg_matrix_release(Y);
      zlg_test_array_free(&x);
      zlg_test_array_free(&y);
      free(a.at);
      problem_free(&p);
    }
}

static void what_has_no_inverse_is_named(void) {
  static const int64_t shapes[][2] = {{3, 3}, {2, 2}}, flat[][2] = {{2, 2}, {2, 3}, {3, 2}};
  struct problem p = problem_random(ZLG_F64, 2, shapes, 19);
  for (int64_t k = 0; k < 2; k++) zlg_test_array_set(&p.factors[1], 1, k, 2 * zlg_test_array_get(&p.factors[1], 0, k));
  zlg_operator *inverse = (void *)&p;
  ZLG_CHECK_STATUS(zlg_kron_inverse(p.A, &inverse), ZLG_ESINGULAR, context);
  CU_ASSERT_PTR_NULL(inverse);
  CU_ASSERT_PTR_NOT_NULL(strstr(zlg_context_message(context), "factors[1] is singular"));
  double log = 0;
  int sign = 7;
  ZLG_CHECK_OK(zlg_kron_logdet(p.A, &log, &sign), context);
  CU_ASSERT(sign == 0 && log == -INFINITY);
  zlg_matrix *dF[] = {NULL, p.matrices[1]};
  ZLG_CHECK_STATUS(zlg_kron_logdet_gradient(p.A, 1, 0, dF, NULL), ZLG_EOVERLAP, context);
  problem_free(&p);
  p = problem_random(ZLG_F64, 3, flat, 19);
  ZLG_CHECK_STATUS(zlg_kron_inverse(p.A, &inverse), ZLG_ESHAPE, context);
  CU_ASSERT_PTR_NOT_NULL(strstr(zlg_context_message(context), "factors[1] is 2 x 3"));
  problem_free(&p);
}

/* ---- symmetric factors ------------------------------------------------------------------------------------------ */

static const int64_t symmetric_sizes[] = {4, 1, 6, 3};
#define SYMMETRIC_N 72
#define SHIFT 0.25

/* Q is orthogonal up to some n u and A Q = Q diag(lambda): checked on A's columns, A e = Q diag(lambda) Q^T e, whose
 * error is some n u of A's norm in the type. */
static void eigenvectors_rebuild_the_operator(void) {
  for (int t = 0; t < 2; t++) {
    struct problem p = problem_symmetric(types[t], MOST, symmetric_sizes);
    struct dense a = problem_dense(&p);
    zlg_operator *Q = NULL;
    double values[14];
    ZLG_CHECK_OK(zlg_kron_eigen(p.A, &Q, values), context);
    struct zlg_test_array x = zlg_test_array_new(types[t], SYMMETRIC_N, SYMMETRIC_N, ZLG_ROW_MAJOR, 0);
    struct zlg_test_array y = zlg_test_array_copy(&x, ZLG_ROW_MAJOR, 0), z = zlg_test_array_copy(&x, ZLG_ROW_MAJOR, 0);
    for (int64_t i = 0; i < SYMMETRIC_N; i++) zlg_test_array_set(&x, i, i, 1);
    zlg_matrix *X = zlg_test_array_wrap(context, &x), *Y = zlg_test_array_wrap(context, &y),
               *Z = zlg_test_array_wrap(context, &z);
    ZLG_CHECK_OK(zlg_apply(Q, ZLG_TRANS, 1, X, 0, Y), context);
    for (int64_t i = 0; i < SYMMETRIC_N; i++)
      for (int64_t k = 0; k < SYMMETRIC_N; k++) {
        const double lambda = values[i / 18] * values[4] * values[5 + i / 3 % 6] * values[11 + i % 3];
        zlg_test_array_set(&y, i, k, lambda * zlg_test_array_get(&y, i, k));
      }
    ZLG_CHECK_OK(zlg_apply(Q, ZLG_NOTRANS, 1, Y, 0, Z), context);
    const long double bound = 64 * zlg_test_roundoff(types[t]) * dense_norm(a);
    for (int64_t i = 0; i < SYMMETRIC_N; i++)
      for (int64_t k = 0; k < SYMMETRIC_N; k++)
        ZLG_CHECK_CLOSE(zlg_test_array_get(&z, i, k), a.at[i * SYMMETRIC_N + k], bound);
    zlg_operator_release(Q);
    zlg_matrix *all[] = {X, Y, Z};
    for (int i = 0; i < 3; i++) zlg_matrix_release(all[i]);
    zlg_test_array_free(&x);
    zlg_test_array_free(&y);
    zlg_test_array_free(&z);
    free(a.at);
    problem_free(&p);
  }
}

/* S and S^-1 on all columns of the identity, alpha and beta included, and what S is. Errors: some n u norm(S), and for
 * the inverse of the largest eigenvalue over the square of the smallest, which is cond(S) norm(S^-1). */
static void shifted_operators_multiply_and_solve(void) {
  for (int t = 0; t < 2; t++) {
    struct problem p = problem_symmetric(types[t], MOST, symmetric_sizes);
    struct dense s = problem_dense(&p), a = problem_dense(&p);
    for (int64_t i = 0; i < SYMMETRIC_N; i++) a.at[i * (SYMMETRIC_N + 1)] = s.at[i * (SYMMETRIC_N + 1)] += SHIFT;
    int sign, got_sign = 0;
    const long double log = dense_invert(&a, &sign), norm = dense_norm(s), inverse_norm = dense_norm(a);
    zlg_operator *S = NULL, *inverse = NULL;
    ZLG_CHECK_OK(zlg_kron_shifted(p.A, SHIFT, &S), context);
    ZLG_CHECK_OK(zlg_kron_inverse(S, &inverse), context);
    double got = NAN;
    ZLG_CHECK_OK(zlg_kron_logdet(S, &got, &got_sign), context);
    const long double u64 = 0x1p-53L, eigen = 64 * u64 * norm * inverse_norm;
    ZLG_CHECK_CLOSE(got, log, SYMMETRIC_N * eigen);
    CU_ASSERT_EQUAL(got_sign, 1);
    ZLG_CHECK_OK(zlg_kron_logdet(inverse, &got, &got_sign), context);
    ZLG_CHECK_CLOSE(got, -log, SYMMETRIC_N * eigen);
    for (int which = 0; which < 2; which++)
      for (int o = 0; o < 2; o++) {
        const zlg_order order = o ? ZLG_COLUMN_MAJOR : ZLG_ROW_MAJOR;
        struct zlg_test_array x = zlg_test_array_new(types[t], SYMMETRIC_N, SYMMETRIC_N, order, 1);
        struct zlg_test_array y = zlg_test_array_copy(&x, ZLG_ROW_MAJOR, 2);
        for (int64_t i = 0; i < SYMMETRIC_N; i++) zlg_test_array_set(&x, i, i, 1);
        zlg_test_array_fill(&y, o ? 3 : NAN);
        zlg_matrix *X = zlg_test_array_wrap(context, &x), *Y = zlg_test_array_wrap(context, &y);
        ZLG_CHECK_OK(zlg_apply(which ? inverse : S, ZLG_NOTRANS, -2, X, o ? 0.5 : 0, Y), context);
        const struct dense *want = which ? &a : &s;
        const long double bound =
            128 * zlg_test_roundoff(types[t]) * ((which ? norm * inverse_norm * inverse_norm : norm) + (o ? 2 : 0));
        for (int64_t i = 0; i < SYMMETRIC_N; i++)
          for (int64_t k = 0; k < SYMMETRIC_N; k++)
            ZLG_CHECK_CLOSE(zlg_test_array_get(&y, i, k), -2 * want->at[i * SYMMETRIC_N + k] + (o ? 1.5L : 0), bound);
        CU_ASSERT(zlg_test_array_gaps_intact(&y));
        zlg_matrix_release(X);
        zlg_matrix_release(Y);
        zlg_test_array_free(&x);
        zlg_test_array_free(&y);
      }
    zlg_operator_release(S);
    zlg_operator_release(inverse);
    free(a.at);
    free(s.at);
    problem_free(&p);
  }
}

/* A limit that holds two columns makes blocks of few of them: the same bits, and the cost says so. */
static void a_small_limit_makes_blocks(void) {
  static const int64_t sizes[] = {40, 50};
  enum { N = 2000, R = 21 };
  struct zlg_test_array results[2];
  for (int pass = 0; pass < 2; pass++) {
    zlg_context *all = context;
    zlg_context_options options;
    zlg_test_context_options(&options);
    if (pass == 1) options.memory_limit = 4 << 20;
    ZLG_CHECK_OK(zlg_context_create(&context, &options), NULL);
    struct problem p = problem_symmetric(ZLG_F64, 2, sizes);
    uint64_t state = 23;
    struct zlg_test_array x = zlg_test_array_random(ZLG_F64, N, R, ZLG_ROW_MAJOR, 0, &state, 0, 1);
    results[pass] = zlg_test_array_new(ZLG_F64, N, R, ZLG_COLUMN_MAJOR, 0);
    zlg_matrix *X = zlg_test_array_wrap(context, &x), *Y = zlg_test_array_wrap(context, &results[pass]);
    zlg_operator *S = NULL, *inverse = NULL;
    ZLG_CHECK_OK(zlg_kron_shifted(p.A, SHIFT, &S), context);
    ZLG_CHECK_OK(zlg_kron_inverse(S, &inverse), context);
    zlg_cost cost;
    ZLG_CHECK_OK(zlg_operator_cost(inverse, ZLG_NOTRANS, 1000, &cost), context);
    if (pass == 1) CU_ASSERT(cost.memory_bytes <= options.memory_limit);
    zlg_request *request = NULL;
    ZLG_CHECK_OK(zlg_apply_async(inverse, ZLG_NOTRANS, 1, X, 0, Y, &request), context);
    zlg_operator_release(inverse); /* the request keeps it */
    zlg_operator_release(S);
    ZLG_CHECK_OK(zlg_request_wait(request), context);
    zlg_request_release(request);
    zlg_matrix_release(X);
    zlg_matrix_release(Y);
    zlg_test_array_free(&x);
    problem_free(&p);
    zlg_context_release(context);
    context = all;
  }
  CU_ASSERT(zlg_test_array_same_bits(&results[0], &results[1]));
  for (int pass = 0; pass < 2; pass++) zlg_test_array_free(&results[pass]);
}

static void what_is_not_symmetric_or_positive_is_refused(void) {
  static const int64_t sizes[] = {3, 4};
  struct problem p = problem_symmetric(ZLG_F64, 2, sizes);
  zlg_operator *S = (void *)&p, *inverse = NULL;
  zlg_test_array_set(&p.factors[1], 2, 0, 0.7);
  ZLG_CHECK_STATUS(zlg_kron_shifted(p.A, 1, &S), ZLG_EINVAL, context);
  CU_ASSERT_PTR_NULL(S);
  CU_ASSERT_PTR_NOT_NULL(
      strstr(zlg_context_message(context), "factors[1] is not symmetric: its elements (2, 0) and (0, 2)"));
  zlg_test_array_set(&p.factors[1], 2, 0, NAN);
  ZLG_CHECK_STATUS(zlg_kron_eigen(p.A, &S, NULL), ZLG_EINVAL, context);
  zlg_test_array_set(&p.factors[1], 2, 0, zlg_test_array_get(&p.factors[1], 0, 2));
  ZLG_CHECK_STATUS(zlg_kron_shifted(p.A, -1, &S), ZLG_ESINGULAR, context);
  CU_ASSERT_PTR_NOT_NULL(strstr(zlg_context_message(context), "not positive definite: its smallest eigenvalue is"));
  ZLG_CHECK_STATUS(zlg_kron_shifted(p.A, NAN, &S), ZLG_EINVAL, context);
  ZLG_CHECK_OK(zlg_kron_shifted(p.A, 0, &S), context);
  ZLG_CHECK_OK(zlg_kron_inverse(S, &inverse), context);
  zlg_operator *again = NULL;
  ZLG_CHECK_STATUS(zlg_kron_inverse(inverse, &again), ZLG_ENOTSUP, context);
  ZLG_CHECK_STATUS(zlg_kron_shifted(S, 1, &again), ZLG_ENOTSUP, context);
  zlg_operator_release(S);
  zlg_operator_release(inverse);
  problem_free(&p);
}

/* ---- gradients of the determinant ------------------------------------------------------------------------------- */

/* d log|det M| = tr(M^-1 dM), with the dense inverse: dM / dF_i[j, k] is A with a unit matrix in place of F_i. */
static void check_gradient(const struct problem *p, struct dense inverse, int i, const struct zlg_test_array *got,
                           double alpha, double before, long double bound) {
  struct problem unit = *p;
  unit.factors[i] = zlg_test_array_new(p->factors[i].type, p->factors[i].rows, p->factors[i].columns, ZLG_ROW_MAJOR, 0);
  for (int64_t j = 0; j < got->rows; j++)
    for (int64_t k = 0; k < got->columns; k++) {
      zlg_test_array_fill(&unit.factors[i], 0);
      zlg_test_array_set(&unit.factors[i], j, k, 1);
      struct dense d = problem_dense(&unit);
      long double trace = 0;
      for (int64_t r = 0; r < d.rows; r++)
        for (int64_t c = 0; c < d.rows; c++) trace += inverse.at[c * d.rows + r] * d.at[r * d.rows + c];
      ZLG_CHECK_CLOSE(zlg_test_array_get(got, j, k), alpha * trace + before, bound);
      free(d.at);
    }
  zlg_test_array_free(&unit.factors[i]);
}

static void gradients_of_logdets_are_traces(void) {
  static const int64_t sizes[] = {4, 1, 3, 3};
  for (int t = 0; t < 2; t++)
    for (int shifted = 0; shifted < 2; shifted++) {
      struct problem p =
          shifted ? problem_symmetric(types[t], MOST, sizes) : problem_random(types[t], 3, square_shapes, 29);
      struct dense a = problem_dense(&p);
      for (int64_t i = 0; i < a.rows && shifted; i++) a.at[i * (a.rows + 1)] += SHIFT;
      const long double norm = dense_norm(a);
      int sign;
      dense_invert(&a, &sign);
      zlg_operator *S = zlg_operator_retain(p.A);
      double dshift = NAN;
      if (shifted) {
        zlg_operator_release(S);
        ZLG_CHECK_OK(zlg_kron_shifted(p.A, SHIFT, &S), context);
      }
      struct zlg_test_array g[MOST];
      zlg_matrix *dF[MOST] = {NULL};
      for (int i = 0; i < p.count; i++) {
        g[i] = zlg_test_array_new(types[t], p.factors[i].rows, p.factors[i].columns, ZLG_COLUMN_MAJOR, 1);
        zlg_test_array_fill(&g[i], 2);
        if (i != 1) dF[i] = zlg_test_array_wrap(context, &g[i]);
      }
      ZLG_CHECK_OK(zlg_kron_logdet_gradient(S, 3, -1, dF, shifted ? &dshift : NULL), context);
      /* Errors: the inverse's, cond u of its norm, in N elements that a trace adds; one rounding to the type. */
      const long double cond = norm * dense_norm(a), bound = 3 *
                                                             (64 * 0x1p-53L * cond + 2 * zlg_test_roundoff(types[t])) *
                                                             (long double)a.rows * dense_norm(a) * norm;
      for (int i = 0; i < p.count; i++)
        if (dF[i]) check_gradient(&p, a, i, &g[i], 3, -2, bound);
      CU_ASSERT(zlg_test_array_get(&g[1], 0, 0) == 2);
      long double trace = 0;
      for (int64_t i = 0; i < a.rows; i++) trace += a.at[i * (a.rows + 1)];
      if (shifted) ZLG_CHECK_CLOSE(dshift, trace, 64 * 0x1p-53L * cond * trace);
      for (int i = 0; i < p.count; i++) {
        zlg_matrix_release(dF[i]);
        zlg_test_array_free(&g[i]);
      }
      zlg_operator_release(S);
      free(a.at);
      problem_free(&p);
    }
}

/* ---- sums ------------------------------------------------------------------------------------------------------- */

/* 2 K1 x A - 3 K2 x B and its transpose, against both dense ones: each term has gamma of its inner dimensions, and Y is
 * rounded once more a term. */
static void sums_are_applied_term_by_term(void) {
  static const int64_t shapes[][2][2] = {{{3, 2}, {4, 5}}, {{6, 5}, {2, 2}}};
  for (int t = 0; t < 2; t++)
    for (int trans = 0; trans < 2; trans++) {
      struct problem p[2];
      struct dense a[2];
      zlg_operator *terms[3];
      for (int i = 0; i < 2; i++) {
        p[i] = problem_random(types[t], 2, shapes[i], 31 + (uint64_t)i);
        a[i] = problem_dense(&p[i]);
        terms[i] = p[i].A;
      }
      terms[2] = terms[0]; /* counts nothing */
      zlg_operator *sum = NULL;
      ZLG_CHECK_OK(zlg_operator_sum(context, &sum, 3, terms, (double[]){2, -3, 0}), context);
      const int64_t rows = trans ? 10 : 12, inner = trans ? 12 : 10, r = 4;
      uint64_t state = 37;
      struct zlg_test_array x = zlg_test_array_random(types[t], inner, r, ZLG_ROW_MAJOR, 1, &state, 0, 1);
      struct zlg_test_array y = zlg_test_array_new(types[t], rows, r, ZLG_ROW_MAJOR, 0);
      zlg_test_array_fill(&y, 1);
      zlg_matrix *X = zlg_test_array_wrap(context, &x), *Y = zlg_test_array_wrap(context, &y);
      ZLG_CHECK_OK(zlg_apply(sum, trans ? ZLG_TRANS : ZLG_NOTRANS, 0.5, X, 4, Y), context);
      for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < r; k++) {
          long double want = 4, absolute = 4;
          for (int64_t j = 0; j < inner; j++)
            for (int term = 0; term < 2; term++) {
              const long double e =
                  (term ? -1.5L : 1) * a[term].at[trans ? j * 10 + i : i * 10 + j] * zlg_test_array_get(&x, j, k);
              want += e, absolute += fabsl(e);
            }
          ZLG_CHECK_CLOSE(zlg_test_array_get(&y, i, k), want, zlg_test_gamma(24, types[t]) * absolute);
        }
      zlg_operator *no = NULL;
      if (!trans) ZLG_CHECK_STATUS(zlg_kron_inverse(sum, &no), ZLG_ENOTSUP, context);
      zlg_operator_release(sum);
      zlg_matrix_release(X);
      zlg_matrix_release(Y);
      zlg_test_array_free(&x);
      zlg_test_array_free(&y);
      for (int i = 0; i < 2; i++) {
        free(a[i].at);
        problem_free(&p[i]);
      }
    }
}

int main(int argc, char **argv) {
  static const struct zlg_test_case cases[] = {
      {"diagonals_are_the_dense_ones", diagonals_are_the_dense_ones},
      {"traces_of_factors_that_are_not_square", traces_of_factors_that_are_not_square},
      {"a_long_diagonal_goes_to_a_file", a_long_diagonal_goes_to_a_file},
      {"logdets_are_the_dense_ones", logdets_are_the_dense_ones},
      {"inverses_solve", inverses_solve},
      {"what_has_no_inverse_is_named", what_has_no_inverse_is_named},
      {"eigenvectors_rebuild_the_operator", eigenvectors_rebuild_the_operator},
      {"shifted_operators_multiply_and_solve", shifted_operators_multiply_and_solve},
      {"a_small_limit_makes_blocks", a_small_limit_makes_blocks},
      {"what_is_not_symmetric_or_positive_is_refused", what_is_not_symmetric_or_positive_is_refused},
      {"gradients_of_logdets_are_traces", gradients_of_logdets_are_traces},
      {"sums_are_applied_term_by_term", sums_are_applied_term_by_term},
      {NULL, NULL}};
  context = zlg_test_context();
  int status = zlg_test_main(argc, argv, cases);
  zlg_context_release(context);
  return status;
}
