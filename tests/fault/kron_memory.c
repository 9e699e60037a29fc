/* Kronecker products, their algebra and gradients while memory runs out (refuse.h). */
#include <stdlib.h>

#include "tests/fault/refuse.h"
#include "zellige/kron.h"

enum { N = 6, VECTORS = 4, BATCH = 3 };

static zlg_context *context;
static double f1[] = {2, 1, 1, 2}, f2[] = {3, 1, 0, 1, 3, 1, 0, 1, 3}, g1[4], g2[9];
static double x[BATCH * N * VECTORS], y[BATCH * N * VECTORS], diagonal[N];
static zlg_matrix *F[2], *G[2], *X, *Y, *D;
static zlg_operator *A, *S;

/* ---- what is called ---------------------------------------------------------------------------------------------- */

/* Row i of A times ones: what Y holds after a product of ones. */
static double row_sum(int i) {
  return (f1[i / 3 * 2] + f1[i / 3 * 2 + 1]) * (f2[i % 3 * 3] + f2[i % 3 * 3 + 1] + f2[i % 3 * 3 + 2]);
}

/* Whole elements only: done, or not reached; all of them done where the call says so. Vectors are columns. */
static int checked(int status, int entries) {
  for (int i = 0; i < entries * N * VECTORS; i++) {
    const bool done = y[i] == row_sum(i % (N * VECTORS) / VECTORS);
    CHECK(done || (status != ZLG_OK && y[i] == -1));
  }
  return status;
}

static void forget(void) {
  for (int i = 0; i < BATCH * N * VECTORS; i++) y[i] = -1;
}

static int make(void) {
  zlg_operator *made = NULL;
  int status = zlg_kron(context, &made, 2, F, NULL);
  CHECK((status == ZLG_OK) == (made != NULL));
  zlg_operator_release(made);
  return status;
}

static int ask_cost(void) {
  zlg_cost cost;
  return zlg_operator_cost(A, ZLG_NOTRANS, VECTORS, &cost);
}

static int apply(void) {
  forget();
  return checked(zlg_apply(A, ZLG_NOTRANS, 1, X, 0, Y), 1);
}

static int apply_async(void) {
  zlg_request *request = NULL;
  forget();
  int status = zlg_apply_async(A, ZLG_NOTRANS, 1, X, 0, Y, &request);
  CHECK((status == ZLG_OK) == (request != NULL));
  if (request) status = zlg_request_wait(request);
  zlg_request_release(request);
  return checked(status, 1);
}

/* From the right, with Y's transpose: A is symmetric. */
static int apply_right(void) {
  zlg_matrix *xt = NULL, *yt = NULL;
  forget();
  int status = zlg_matrix_transpose(X, &xt);
  if (status == ZLG_OK) status = zlg_matrix_transpose(Y, &yt);
  if (status == ZLG_OK) status = zlg_apply_right(A, ZLG_NOTRANS, 1, xt, 0, yt);
  zlg_matrix_release(xt);
  zlg_matrix_release(yt);
  return checked(status, 1);
}

static int apply_batched(void) {
  forget();
  return checked(zlg_kron_apply_batched(A, ZLG_NOTRANS, BATCH, NULL, 1, X, N * VECTORS, 0, Y, N * VECTORS), BATCH);
}

static int ask_diagonal(void) {
  return zlg_kron_diagonal(A, D);
}
static int ask_trace(void) {
  double trace;
  return zlg_kron_trace(A, &trace);
}
static int ask_logdet(void) {
  double logabs;
  int sign;
  return zlg_kron_logdet(A, &logabs, &sign);
}

/* The product with an operator that the call made. */
static int use(int status, zlg_operator *made) {
  CHECK((status == ZLG_OK) == (made != NULL));
  if (status == ZLG_OK) status = zlg_apply(made, ZLG_NOTRANS, 1, X, 0, Y);
  zlg_operator_release(made);
  return status;
}

static int invert(void) {
  zlg_operator *made = NULL;
  const int status = zlg_kron_inverse(A, &made);
  return use(status, made);
}
static int decompose(void) {
  double values[5];
  zlg_operator *made = NULL;
  const int status = zlg_kron_eigen(A, &made, values);
  return use(status, made);
}
static int shift(void) {
  zlg_operator *made = NULL;
  const int status = zlg_kron_shifted(A, 0.5, &made);
  return use(status, made);
}
static int invert_shifted(void) {
  zlg_operator *made = NULL;
  const int status = zlg_kron_inverse(S, &made);
  return use(status, made);
}
static int ask_shifted_logdet(void) {
  double logabs;
  int sign;
  return zlg_kron_logdet(S, &logabs, &sign);
}
static int differentiate_logdet(void) {
  return zlg_kron_logdet_gradient(A, 1, 0, G, NULL);
}
static int differentiate_shifted_logdet(void) {
  double slope;
  return zlg_kron_logdet_gradient(S, 1, 0, G, &slope);
}
static int differentiate(void) {
  return zlg_kron_gradient(A, ZLG_NOTRANS, 1, X, X, 0, Y, G);
}

/* ---- cases ------------------------------------------------------------------------------------------------------- */

static zlg_matrix *wrap(int64_t rows, int64_t columns, double *data) {
  zlg_matrix *made = NULL;
  ZLG_CHECK_OK(zlg_matrix_wrap(context, &made, ZLG_F64, rows, columns, ZLG_ROW_MAJOR, columns, data), context);
  return made;
}

static void refuse_in(int (*const calls[])(void), int64_t tile_rows, int64_t tile_columns, double direct_seconds) {
  zlg_context_options options;
  zlg_refuse_begin();
  zlg_test_context_options(&options);
  options.tile_rows = tile_rows, options.tile_columns = tile_columns;
  options.direct_seconds = direct_seconds;
  ZLG_CHECK_OK(zlg_context_create(&context, &options), NULL);
  for (int i = 0; i < BATCH * N * VECTORS; i++) x[i] = 1;
  F[0] = wrap(2, 2, f1), F[1] = wrap(3, 3, f2), G[0] = wrap(2, 2, g1), G[1] = wrap(3, 3, g2);
  X = wrap(N, VECTORS, x), Y = wrap(N, VECTORS, y), D = wrap(N, 1, diagonal);
  ZLG_CHECK_OK(zlg_kron(context, &A, 2, F, NULL), context);
  ZLG_CHECK_OK(zlg_kron_shifted(A, 0.5, &S), context);
  for (int i = 0; calls[i] != NULL; i++) zlg_refuse_in_turn(context, calls[i]);
  zlg_operator_release(S);
  zlg_operator_release(A);
  zlg_matrix *matrices[] = {F[0], F[1], G[0], G[1], X, Y, D};
  for (size_t i = 0; i < sizeof matrices / sizeof *matrices; i++) zlg_matrix_release(matrices[i]);
  zlg_context_release(context);
  zlg_refuse_end();
}

static int (*const products[])(void) = {apply, apply_async, apply_right, apply_batched, ask_cost, NULL};

static void products_at_once(void) {
  refuse_in(products, 0, 0, 1);
}
static void products_in_tasks(void) {
  refuse_in(products, 0, 1, 0);
}
static void products_in_two_stages(void) {
  refuse_in(products, 1, 0, 0);
}
static void algebra(void) {
  static int (*const calls[])(void) = {make,
                                       ask_diagonal,
                                       ask_trace,
                                       ask_logdet,
                                       invert,
                                       decompose,
                                       shift,
                                       invert_shifted,
                                       ask_shifted_logdet,
                                       differentiate_logdet,
                                       differentiate_shifted_logdet,
                                       NULL};
  refuse_in(calls, 0, 0, 1);
}
static void gradients(void) {
  static int (*const calls[])(void) = {differentiate, NULL};
  refuse_in(calls, 0, 0, 1);
  refuse_in(calls, 0, 1, 0);
}

int main(int argc, char **argv) {
  static const struct zlg_test_case cases[] = {{"products at once", products_at_once},
                                               {"products in tasks", products_in_tasks},
                                               {"products in two stages", products_in_two_stages},
                                               {"algebra", algebra},
                                               {"gradients", gradients},
                                               {NULL, NULL}};
  return zlg_test_main(argc, argv, cases);
}
