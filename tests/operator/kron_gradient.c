/* Gradients of products with Kronecker operators: against dense sums in long double, from both sides, with every op and
 * order, accumulated, through files; what must hold whatever the numbers are; and what is refused. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support_product.h"

#define MOST 4

static zlg_context *context;
static const zlg_type types[] = {ZLG_F32, ZLG_F64};

struct problem {
  int count;
  struct zlg_test_array f[MOST], df[MOST], x, dy, dx;
  zlg_op ops[MOST];
  zlg_matrix *F[MOST], *dF[MOST], *X, *dY, *dX;
  zlg_operator *A;
};

/* shapes: those of op_i(F_i). Y = op(A) X, or X op(A) where `right`. */
static struct problem make(zlg_type type, int count, const int64_t (*shapes)[2], int64_t r, bool right, zlg_op op,
                           double before) {
  struct problem p = {.count = count};
  uint64_t state = 43;
  int64_t rows = 1, columns = 1;
  for (int i = 0; i < count; i++) {
    const bool trans = i % 2;
    p.ops[i] = trans ? ZLG_TRANS : ZLG_NOTRANS;
    p.f[i] = zlg_test_array_random(type, shapes[i][trans], shapes[i][!trans], i % 3 ? ZLG_COLUMN_MAJOR : ZLG_ROW_MAJOR,
                                   1, &state, 0, 1);
    p.df[i] = zlg_test_array_new(type, p.f[i].rows, p.f[i].columns, ZLG_ROW_MAJOR, i);
    zlg_test_array_fill(&p.df[i], before);
    p.F[i] = zlg_test_array_wrap(context, &p.f[i]);
    p.dF[i] = zlg_test_array_wrap(context, &p.df[i]);
    rows *= shapes[i][0], columns *= shapes[i][1];
  }
  ZLG_CHECK_OK(zlg_kron(context, &p.A, count, p.F, p.ops), context);
  const bool swap = (op == ZLG_TRANS) != right;
  const int64_t from = swap ? rows : columns, to = swap ? columns : rows;
  p.x = zlg_test_array_random(type, right ? r : from, right ? from : r, ZLG_ROW_MAJOR, 1, &state, 0, 1);
  p.dy = zlg_test_array_random(type, right ? r : to, right ? to : r, ZLG_COLUMN_MAJOR, 2, &state, 0, 1);
  p.dx = zlg_test_array_new(type, p.x.rows, p.x.columns, ZLG_ROW_MAJOR, 3);
  zlg_test_array_fill(&p.dx, before);
  p.X = zlg_test_array_wrap(context, &p.x);
  p.dY = zlg_test_array_wrap(context, &p.dy);
  p.dX = zlg_test_array_wrap(context, &p.dx);
  return p;
}

static void unmake(struct problem *p) {
  zlg_matrix *all[] = {p->X, p->dY, p->dX};
  zlg_operator_release(p->A);
  for (int i = 0; i < 3; i++) zlg_matrix_release(all[i]);
  for (int i = 0; i < p->count; i++) {
    zlg_matrix_release(p->F[i]);
    zlg_matrix_release(p->dF[i]);
    zlg_test_array_free(&p->f[i]);
    zlg_test_array_free(&p->df[i]);
  }
  zlg_test_array_free(&p->x);
  zlg_test_array_free(&p->dy);
  zlg_test_array_free(&p->dx);
}

/* Element (i, j) of A without factor `left_out` (-1: of all), and which element of that factor it takes. */
static long double element(const struct problem *p, int64_t i, int64_t j, int left_out, int64_t *row, int64_t *column) {
  long double value = 1;
  for (int f = p->count; f-- > 0;) {
    const bool trans = p->ops[f] == ZLG_TRANS;
    const int64_t rows = trans ? p->f[f].columns : p->f[f].rows, columns = trans ? p->f[f].rows : p->f[f].columns;
    const int64_t a = trans ? j % columns : i % rows, b = trans ? i % rows : j % columns;
    i /= rows, j /= columns;
    if (f == left_out)
      *row = a, *column = b;
    else
      value *= zlg_test_array_get(&p->f[f], a, b);
  }
  return value;
}

/* dot(i, j) = sum over vectors of (what multiplies A[i, j]) : X and dY by side and op. */
static long double pair(const struct problem *p, bool right, zlg_op op, int64_t i, int64_t j, bool absolute) {
  const bool swap = (op == ZLG_TRANS) != right;
  const int64_t in = swap ? i : j, out = swap ? j : i, r = right ? p->x.rows : p->x.columns;
  long double sum = 0;
  for (int64_t v = 0; v < r; v++) {
    const long double x = right ? zlg_test_array_get(&p->x, v, in) : zlg_test_array_get(&p->x, in, v),
                      dy = right ? zlg_test_array_get(&p->dy, v, out) : zlg_test_array_get(&p->dy, out, v);
    sum += absolute ? fabsl(x * dy) : x * dy;
  }
  return sum;
}

/* Roundings of one number: a chain of sums over all sizes of the factors, 256 terms in the type, the rest in binary64.
 */
static long double unit(const struct problem *p) {
  int sizes = 270;
  for (int i = 0; i < p->count; i++) sizes += (int)(p->f[i].rows + p->f[i].columns);
  return zlg_test_gamma(sizes, p->x.type) + zlg_test_gamma(4096, ZLG_F64);
}

static void check_factor(const struct problem *p, int f, bool right, zlg_op op, double alpha, double before) {
  const struct zlg_test_array *got = &p->df[f];
  const int64_t elements = got->rows * got->columns;
  long double *want = calloc((size_t)elements * 2, sizeof *want), *absolute = want + elements;
  zlg_operator_info info;
  zlg_operator_get_info(p->A, &info);
  for (int64_t i = 0; i < info.rows; i++)
    for (int64_t j = 0; j < info.columns; j++) {
      int64_t a = 0, b = 0;
      const long double without = element(p, i, j, f, &a, &b);
      want[a * got->columns + b] += without * pair(p, right, op, i, j, false);
      absolute[a * got->columns + b] += fabsl(without) * pair(p, right, op, i, j, true);
    }
  for (int64_t a = 0; a < got->rows; a++)
    for (int64_t b = 0; b < got->columns; b++) {
      const int64_t e = a * got->columns + b;
      ZLG_CHECK_CLOSE(zlg_test_array_get(got, a, b), alpha * want[e] + before,
                      unit(p) * (fabs(alpha) * absolute[e] + fabs(before)));
    }
  CU_ASSERT(zlg_test_array_gaps_intact(got));
  free(want);
}

static int gradient(struct problem *p, bool right, zlg_op op, double alpha, double beta) {
  return right ? zlg_kron_gradient_right(p->A, op, alpha, p->X, p->dY, beta, p->dX, p->dF)
               : zlg_kron_gradient(p->A, op, alpha, p->X, p->dY, beta, p->dX, p->dF);
}

/* dX is the product with the transpose, which has tests of its own. */
static void check_dx(struct problem *p, bool right, zlg_op op, double alpha, double beta, double before) {
  struct zlg_test_array want = zlg_test_array_copy(&p->dx, ZLG_ROW_MAJOR, 0);
  zlg_test_array_fill(&want, before);
  zlg_matrix *W = zlg_test_array_wrap(context, &want);
  const zlg_op back = op == ZLG_TRANS ? ZLG_NOTRANS : ZLG_TRANS;
  ZLG_CHECK_OK(right ? zlg_apply_right(p->A, back, alpha, p->dY, beta, W)
                     : zlg_apply(p->A, back, alpha, p->dY, beta, W),
               context);
  const int64_t step = want.rows > 1000 ? 61 : 1; /* of large ones a sample */
  long double most = 1;
  for (int64_t i = 0; i < want.rows; i++)
    for (int64_t k = 0; k < want.columns; k++) most = fmaxl(most, fabs(zlg_test_array_get(&want, i, k)));
  for (int64_t i = 0; i < want.rows; i += step)
    for (int64_t k = 0; k < want.columns; k++)
      ZLG_CHECK_CLOSE(zlg_test_array_get(&p->dx, i, k), zlg_test_array_get(&want, i, k), 8 * unit(p) * most);
  CU_ASSERT(zlg_test_array_gaps_intact(&p->dx));
  zlg_matrix_release(W);
  zlg_test_array_free(&want);
}

static const int64_t shapes[][MOST][2] = {
    {{5, 3}, {2, 2}}, {{3, 4}, {1, 1}, {2, 5}, {4, 2}}, {{1, 1}, {1, 1}, {1, 1}}, {{6, 6}}};
static const int counts[] = {2, 4, 3, 1};

static void gradients_are_the_dense_sums(void) {
  for (int which = 0; which < 64; which++) {
    const int t = which % 2, s = which / 8 % 4;
    const bool right = which / 2 % 2, accumulate = which / 32;
    const zlg_op op = which / 4 % 2 ? ZLG_TRANS : ZLG_NOTRANS;
    struct problem p = make(types[t], counts[s], shapes[s], 5 + 20 * accumulate, right, op, accumulate ? 2 : NAN);
    ZLG_CHECK_OK(gradient(&p, right, op, -1.5, accumulate ? 0.5 : 0), context);
    for (int f = 0; f < p.count; f++) check_factor(&p, f, right, op, -1.5, accumulate ? 1 : 0);
    check_dx(&p, right, op, -1.5, accumulate ? 0.5 : 0, accumulate ? 2 : 0);
    unmake(&p);
  }
}

/* Only those asked for; the others' matrices may be missing, and dX. */
static void only_what_is_asked_for(void) {
  struct problem p = make(ZLG_F64, 4, shapes[1], 9, false, ZLG_NOTRANS, NAN);
  zlg_matrix *dF[MOST] = {NULL, p.dF[1], NULL, p.dF[3]};
  ZLG_CHECK_OK(zlg_kron_gradient(p.A, ZLG_NOTRANS, 1, p.X, p.dY, 0, NULL, dF), context);
  check_factor(&p, 1, false, ZLG_NOTRANS, 1, 0);
  check_factor(&p, 3, false, ZLG_NOTRANS, 1, 0);
  CU_ASSERT(isnan(zlg_test_array_get(&p.df[0], 0, 0)) && isnan(zlg_test_array_get(&p.dx, 0, 0)));
  zlg_matrix *none[MOST] = {NULL};
  ZLG_CHECK_OK(zlg_kron_gradient(p.A, ZLG_NOTRANS, 1, p.X, p.dY, 0, p.dX, none), context);
  check_dx(&p, false, ZLG_NOTRANS, 1, 0, 0);
  /* alpha = 0: beta times what there is, and nothing of X or dY. */
  zlg_test_array_fill(&p.x, NAN);
  ZLG_CHECK_OK(zlg_kron_gradient(p.A, ZLG_NOTRANS, 0, p.X, p.dY, 0, p.dX, p.dF), context);
  CU_ASSERT(zlg_test_array_get(&p.df[2], 0, 0) == 0 && zlg_test_array_get(&p.dx, 0, 0) == 0);
  unmake(&p);
}

/* Factors of 1 x 1, then of 2 x 2, then of 1 x 2. Y is linear in each factor, so sum(F_i dF_i) = sum(Y dY), whatever i
 * (Euler). */
static void euler_holds(int scalars, int squares, int rows) {
  enum { MANY = 80 };
  double values[MANY][4], grads[MANY][4];
  zlg_matrix *F[MANY], *dF[MANY];
  const int count = scalars + squares + rows;
  uint64_t state = 47;
  for (int i = 0; i < count; i++) {
    const int64_t r = i >= scalars && i < scalars + squares ? 2 : 1, c = i < scalars ? 1 : 2;
    for (int e = 0; e < 4; e++) values[i][e] = 1 + 0.1 * zlg_test_normal(&state), grads[i][e] = NAN;
    ZLG_CHECK_OK(zlg_matrix_wrap(context, &F[i], ZLG_F64, r, c, ZLG_ROW_MAJOR, c, values[i]), context);
    ZLG_CHECK_OK(zlg_matrix_wrap(context, &dF[i], ZLG_F64, r, c, ZLG_ROW_MAJOR, c, grads[i]), context);
  }
  zlg_operator *A = NULL;
  zlg_operator_info info;
  ZLG_CHECK_OK(zlg_kron(context, &A, count, F, NULL), context);
  ZLG_CHECK_OK(zlg_operator_get_info(A, &info), context);
  struct zlg_test_array x = zlg_test_array_random(ZLG_F64, info.columns, 2, ZLG_ROW_MAJOR, 0, &state, 1, 0.1);
  struct zlg_test_array dy = zlg_test_array_random(ZLG_F64, info.rows, 2, ZLG_ROW_MAJOR, 0, &state, 1, 0.1);
  struct zlg_test_array y = zlg_test_array_new(ZLG_F64, info.rows, 2, ZLG_ROW_MAJOR, 0);
  zlg_matrix *X = zlg_test_array_wrap(context, &x), *dY = zlg_test_array_wrap(context, &dy),
             *Y = zlg_test_array_wrap(context, &y);
  ZLG_CHECK_OK(zlg_apply(A, ZLG_NOTRANS, 1, X, 0, Y), context);
  ZLG_CHECK_OK(zlg_kron_gradient(A, ZLG_NOTRANS, 1, X, dY, 0, NULL, dF), context);
  long double want = 0;
  for (int64_t i = 0; i < info.rows; i++)
    for (int64_t k = 0; k < 2; k++) want += (long double)zlg_test_array_get(&y, i, k) * zlg_test_array_get(&dy, i, k);
  for (int i = 0; i < count; i++) {
    zlg_matrix_info f;
    zlg_matrix_get_info(F[i], &f);
    long double got = 0;
    for (int64_t e = 0; e < f.rows * f.columns; e++) got += (long double)values[i][e] * grads[i][e];
    ZLG_CHECK_CLOSE(got, want, zlg_test_gamma(4096, ZLG_F64) * fabsl(want)); /* nothing here is negative */
  }
  zlg_operator_release(A);
  zlg_matrix *all[] = {X, dY, Y};
  for (int i = 0; i < 3; i++) zlg_matrix_release(all[i]);
  for (int i = 0; i < count; i++) zlg_matrix_release(F[i]), zlg_matrix_release(dF[i]);
  zlg_test_array_free(&x);
  zlg_test_array_free(&dy);
  zlg_test_array_free(&y);
}

static void more_factors_than_a_task_takes(void) {
  euler_holds(63, 7, 0);
  euler_holds(2, 2, 14);
  euler_holds(3, 3, 0);
}

/* Many blocks, files, and any number of workers: the same bits. A context of its own for each, since contexts that live
 * together share their workers. */
static void files_and_workers_change_no_bit(void) {
  static const int64_t cube[][2] = {{16, 16}, {12, 16}, {16, 20}};
  enum { R = 3000 };
  struct zlg_test_array kept[4];
  zlg_context_release(context);
  for (int pass = 0; pass < 2; pass++) {
    zlg_context_options options;
    zlg_test_context_options(&options);
    if (zlg_test_mode() == ZLG_TEST_CPU) options.cpu_workers = 1 + pass;
    ZLG_CHECK_OK(zlg_context_create(&context, &options), NULL);
    struct problem p = make(ZLG_F32, 3, cube, R, false, ZLG_NOTRANS, 0);
    if (pass == 1) {
      char *path = zlg_test_path("dx.npy");
      zlg_matrix_release(p.X);
      zlg_matrix_release(p.dX);
      p.X = zlg_test_array_file(context, &p.x, ZLG_TEST_NPY, "x.npy");
      ZLG_CHECK_OK(zlg_matrix_create_npy(context, &p.dX, path, ZLG_F32, p.x.rows, R, ZLG_ROW_MAJOR), context);
      free(path);
    }
    ZLG_CHECK_OK(zlg_kron_gradient(p.A, ZLG_NOTRANS, 1, p.X, p.dY, 0, p.dX, p.dF), context);
    ZLG_CHECK_OK(zlg_matrix_read(p.dX, 0, p.dx.rows, 0, R, ZLG_ROW_MAJOR, p.dx.ld, p.dx.memory), context);
    for (int i = 0; i < 4; i++) {
      const struct zlg_test_array *result = i < 3 ? &p.df[i] : &p.dx;
      if (pass == 0)
        kept[i] = zlg_test_array_copy(result, ZLG_ROW_MAJOR, 0);
      else
        CU_ASSERT(zlg_test_array_same_bits(&kept[i], result));
    }
    if (pass == 1) check_dx(&p, false, ZLG_NOTRANS, 1, 0, 0);
    unmake(&p);
    zlg_context_release(context);
  }
  for (int i = 0; i < 4; i++) zlg_test_array_free(&kept[i]);
  context = zlg_test_context();
}

static void refusals_name_the_matrix(void) {
  struct problem p = make(ZLG_F64, 2, shapes[0], 3, false, ZLG_NOTRANS, 0);
  zlg_matrix *swapped[] = {p.dF[1], p.dF[0]}, *own[] = {p.F[0], NULL};
  ZLG_CHECK_STATUS(zlg_kron_gradient(p.A, ZLG_NOTRANS, 1, p.X, p.dY, 0, p.dX, swapped), ZLG_ESHAPE, context);
  CU_ASSERT_PTR_NOT_NULL(strstr(zlg_context_message(context), "dF[0] is 2 x 2"));
  ZLG_CHECK_STATUS(zlg_kron_gradient(p.A, ZLG_NOTRANS, 1, p.X, p.dY, 0, p.dX, own), ZLG_EOVERLAP, context);
  ZLG_CHECK_STATUS(zlg_kron_gradient(p.A, ZLG_NOTRANS, 1, p.X, p.dY, 0, p.X, p.dF), ZLG_EOVERLAP, context);
  ZLG_CHECK_STATUS(zlg_kron_gradient(p.A, ZLG_TRANS, 1, p.X, p.dY, 0, p.dX, p.dF), ZLG_ESHAPE, context);
  ZLG_CHECK_STATUS(zlg_kron_gradient(p.A, ZLG_NOTRANS, NAN, p.X, p.dY, 0, p.dX, p.dF), ZLG_EINVAL, context);
  ZLG_CHECK_STATUS(zlg_kron_gradient(p.A, ZLG_NOTRANS, 1, p.X, NULL, 0, p.dX, p.dF), ZLG_EINVAL, context);
  ZLG_CHECK_STATUS(zlg_kron_gradient(p.A, ZLG_NOTRANS, 1, p.X, p.dY, 0, p.dX, NULL), ZLG_EINVAL, context);
  unmake(&p);
}

int main(int argc, char **argv) {
  static const struct zlg_test_case cases[] = {{"gradients_are_the_dense_sums", gradients_are_the_dense_sums},
                                               {"only_what_is_asked_for", only_what_is_asked_for},
                                               {"more_factors_than_a_task_takes", more_factors_than_a_task_takes},
                                               {"files_and_workers_change_no_bit", files_and_workers_change_no_bit},
                                               {"refusals_name_the_matrix", refusals_name_the_matrix},
                                               {NULL, NULL}};
  context = zlg_test_context();
  int status = zlg_test_main(argc, argv, cases);
  zlg_context_release(context);
  return status;
}
