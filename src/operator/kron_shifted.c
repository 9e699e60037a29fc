/* Eigendecompositions of Kronecker products by factor, and what they are for: S = A + shift I, its inverse, its
 * determinant and their gradients. The eigenvalues of A are all products of one eigenvalue of each factor. */
#include "src/operator/kron_shifted.h"

#include <math.h>
#include <string.h>

#include "codelets/common/lapack.h"
#include "src/core/context.h"
#include "src/core/error.h"
#include "src/core/memory.h"
#include "src/operator/composed.h"
#include "src/operator/kron_dense.h"
#include "zellige/kron.h"

#define WORKSPACE_MOST (64ll << 20)
#define BLOCK_ELEMENTS 16384

/* ---- the eigendecomposition ------------------------------------------------------------------------------------- */

static int check_symmetric(const zlg_operator *A, int64_t i, int64_t n, double *factor) {
  const double u = A->type == ZLG_F32 ? 0x1p-24 : 0x1p-53;
  double most = 0;
  for (int64_t e = 0; e < n * n; e++) {
    if (!isfinite(factor[e]))
      return zlg_fail(A->context, ZLG_EINVAL, "factors[%lld] has an element that is not finite", (long long)i);
    most = fmax(most, fabs(factor[e]));
  }
  for (int64_t j = 0; j < n; j++)
    for (int64_t k = 0; k < j; k++) {
      double *a = &factor[j * n + k], *b = &factor[k * n + j];
      if (fabs(*a - *b) > 16 * u * most)
        return zlg_fail(A->context, ZLG_EINVAL,
                        "factors[%lld] is not symmetric: its elements (%lld, %lld) and (%lld, %lld) are %.9g and %.9g",
                        (long long)i, (long long)j, (long long)k, (long long)k, (long long)j, *a, *b);
      *a = *b = *a / 2 + *b / 2;
    }
  return ZLG_OK;
}

static int decompose(const zlg_operator *A, int64_t i, double *vectors, double *values) {
  const int64_t n = zlg_kron_rows(zlg_kron_of(A), i);
  double *factor;
  int status = zlg_kron_read(A, i, &factor);
  if (status != ZLG_OK) return status;
  status = check_symmetric(A, i, n, factor);
  if (status == ZLG_OK) {
    status = zlg_lapack_eigen(n, factor, values);
    if (status != ZLG_OK) zlg_fail(A->context, status, "no eigendecomposition of factors[%lld]", (long long)i);
  }
  if (status == ZLG_OK) memcpy(vectors, factor, (size_t)(n * n) * sizeof *vectors);
  zlg_free(factor);
  return status;
}

/* The sizes of the factors, all square; *values_count is their sum and *elements that of their squares. */
static int sizes_of(const zlg_operator *A, int64_t **sizes, int64_t *values_count, int64_t *elements) {
  const struct zlg_kron *kron = zlg_kron_of(A);
  *values_count = *elements = 0;
  *sizes = zlg_calloc((size_t)kron->count + 1, sizeof **sizes);
  if (!*sizes) return zlg_fail(A->context, ZLG_ENOMEM, "no memory for a list of factors");
  for (int64_t i = 0; i < kron->count; i++) {
    int status = zlg_kron_check_square(A, i);
    if (status != ZLG_OK) {
      zlg_free(*sizes);
      return status;
    }
    const int64_t n = (*sizes)[i] = zlg_kron_rows(kron, i);
    *values_count += n;
    *elements += n * n;
  }
  return ZLG_OK;
}

/* Q as an operator and the values, the caller's to free. */
static int eigen_of(zlg_operator *A, zlg_operator **Q, double **values, int64_t *values_count) {
  const struct zlg_kron *kron = zlg_kron_of(A);
  int64_t *sizes, elements;
  int status = sizes_of(A, &sizes, values_count, &elements);
  if (status != ZLG_OK) return status;
  double *vectors = zlg_malloc((size_t)(elements + 1) * sizeof *vectors);
  *values = zlg_malloc((size_t)(*values_count + 1) * sizeof **values);
  if (!vectors || !*values) status = zlg_fail(A->context, ZLG_ENOMEM, "no memory for eigenvectors");
  int64_t at = 0, value = 0;
  for (int64_t i = 0; i < kron->count && status == ZLG_OK; i++) {
    status = decompose(A, i, vectors + at, *values + value);
    at += sizes[i] * sizes[i];
    value += sizes[i];
  }
  if (status == ZLG_OK)
    status = zlg_kron_owning(A->context, Q, A->type, kron->count, sizes, vectors, "an eigenvector");
  else
    zlg_free(vectors);
  if (status != ZLG_OK) zlg_free(*values);
  zlg_free(sizes);
  return status;
}

static int check_kron(const zlg_operator *A, const char *what) {
  if (!A) return zlg_fail(NULL, ZLG_EINVAL, "%s: A is NULL, expected an operator", what);
  if (A->kind == &zlg_kron_kind) return ZLG_OK;
  return zlg_fail(A->context, ZLG_ENOTSUP, "%s: A is a %s operator; expected a Kronecker product", what, A->kind->name);
}

int zlg_kron_eigen(zlg_operator *A, zlg_operator **Q, double *values) {
  if (Q) *Q = NULL;
  int status = check_kron(A, "zlg_kron_eigen");
  zlg_operator *vectors = NULL;
  double *found;
  int64_t count;
  if (status == ZLG_OK) status = eigen_of(A, &vectors, &found, &count);
  if (status != ZLG_OK) return status;
  if (values) memcpy(values, found, (size_t)count * sizeof *values);
  zlg_free(found);
  if (Q)
    *Q = vectors;
  else
    zlg_operator_release(vectors);
  return ZLG_OK;
}

/* ---- walking over the eigenvalues -------------------------------------------------------------------------------- */

/* All products of one value of each factor, line by line: a line has every value of the largest factor and one of each
 * of the others, whose product is `rest`. */
struct spectrum {
  const struct zlg_shifted *shifted;
  const int64_t *begin;   /* of each factor's values */
  int64_t inner, length;  /* the largest factor and its number of values; -1 and 1 without factors */
  const double *values;   /* its values */
  struct zlg_digits rest; /* of the others; the inner one's extent is 1 */
  double product;
};

typedef void line_fn(void *user, const struct spectrum *spectrum);

static int spectrum_start(const struct zlg_shifted *shifted, struct spectrum *s, int64_t *begin) {
  static const double one = 1;
  const struct zlg_kron *kron = zlg_kron_of(shifted->kron);
  *s = (struct spectrum){.shifted = shifted, .begin = begin, .inner = -1, .length = 1, .values = &one};
  int status = zlg_digits_start(shifted->kron->context, &s->rest, kron->count);
  if (status != ZLG_OK) return status;
  for (int64_t i = 0, at = 0; i < kron->count; i++) {
    const int64_t n = s->rest.extent[i] = zlg_kron_rows(kron, i);
    if (s->inner < 0 || n > s->length) s->inner = i, s->length = n, s->values = shifted->values + at;
    begin[i] = at;
    at += n;
  }
  if (s->inner >= 0) s->rest.extent[s->inner] = 1;
  return ZLG_OK;
}

static double value_of(const struct spectrum *s, int64_t i) {
  return i == s->inner ? 1 : s->shifted->values[s->begin[i] + s->rest.digit[i]];
}

static int each_line(const struct zlg_shifted *shifted, line_fn *line, void *user) {
  const int64_t count = zlg_kron_of(shifted->kron)->count;
  int64_t *begin = zlg_calloc((size_t)count + 1, sizeof *begin);
  if (!begin) return zlg_fail(shifted->kron->context, ZLG_ENOMEM, "no memory for a list of factors");
  struct spectrum s;
  int status = spectrum_start(shifted, &s, begin);
  if (status == ZLG_OK) {
    const int64_t lines = shifted->kron->rows / (s.length > 0 ? s.length : 1);
    for (int64_t l = 0; l < lines; l++) {
      s.product = 1;
      for (int64_t i = 0; i < count; i++) s.product *= value_of(&s, i);
      line(user, &s);
      zlg_digits_next(&s.rest);
    }
    zlg_digits_free(&s.rest);
  }
  zlg_free(begin);
  return status;
}

/* ---- log-determinant and its gradient --------------------------------------------------------------------------- */

static void add_logs(void *user, const struct spectrum *s) {
  double sum = 0;
  for (int64_t j = 0; j < s->length; j++) sum += log(s->product * s->values[j] + s->shifted->shift);
  *(long double *)user += sum;
}

/* Without a shift no product is formed: N / n_i times the logarithms of each factor's values. */
static long double logs_by_factor(const struct zlg_shifted *shifted) {
  const struct zlg_kron *kron = zlg_kron_of(shifted->kron);
  const double *value = shifted->values;
  long double sum = 0;
  for (int64_t i = 0; i < kron->count; i++) {
    const int64_t n = zlg_kron_rows(kron, i);
    long double own = 0;
    for (int64_t j = 0; j < n; j++) own += logl(fabsl((long double)*value++));
    sum += (long double)(shifted->kron->rows / n) * own;
  }
  return sum;
}

int zlg_shifted_logdet(const zlg_operator *S, double *logdet) {
  const struct zlg_shifted *shifted = zlg_shifted_of(S);
  long double sum = 0;
  int status = ZLG_OK;
  if (S->rows > 0 && shifted->shift == 0)
    sum = logs_by_factor(shifted);
  else if (S->rows > 0)
    status = each_line(shifted, add_logs, &sum);
  *logdet = (double)(shifted->inverse ? -sum : sum);
  return status;
}

struct weights {
  double *g; /* beside the values */
  int64_t count;
  double traces;
};

/* g_i[j] gets prod_{l != i} lambda_l / (lambda + shift) of each eigenvalue whose digit i is j: for the inner factor as
 * it stands, for another one the sum over the line of the inner value over (lambda + shift), times the product of the
 * remaining ones. */
static void add_weights(void *user, const struct spectrum *s) {
  struct weights *w = user;
  double inner = 0, traces = 0, before = 1;
  for (int64_t j = 0; j < s->length; j++) {
    const double inverse = 1 / (s->product * s->values[j] + s->shifted->shift);
    traces += inverse;
    inner += s->values[j] * inverse;
    if (s->inner >= 0) w->g[s->begin[s->inner] + j] += s->product * inverse;
  }
  w->traces += traces;
  for (int64_t i = 0; i < w->count; i++) {
    if (i == s->inner) continue;
    double after = 1;
    for (int64_t l = i + 1; l < w->count; l++) after *= value_of(s, l);
    w->g[s->begin[i] + s->rest.digit[i]] += before * after * inner;
    before *= value_of(s, i);
  }
}

/* Q diag(g) Q^T, n x n. */
static void rotate(int64_t n, const double *q, const double *g, double *to) {
  for (int64_t i = 0; i < n; i++)
    for (int64_t k = 0; k <= i; k++) {
      double sum = 0;
      for (int64_t j = 0; j < n; j++) sum += q[i * n + j] * g[j] * q[k * n + j];
      to[i * n + k] = to[k * n + i] = sum;
    }
}

static int write_gradients(const struct zlg_shifted *shifted, const double *g, double alpha, double beta,
                           zlg_matrix *const *dF) {
  const struct zlg_kron *kron = zlg_kron_of(shifted->kron);
  int status = ZLG_OK;
  for (int64_t i = 0; i < kron->count && status == ZLG_OK; i++) {
    const int64_t n = zlg_kron_rows(kron, i);
    if (dF[i] && n > 0) {
      double *q, *values = zlg_malloc((size_t)(n * n) * sizeof *values);
      status = values ? zlg_kron_read(shifted->vectors, i, &q)
                      : zlg_fail(shifted->kron->context, ZLG_ENOMEM, "no memory for dF[%lld]", (long long)i);
      if (status == ZLG_OK) {
        rotate(n, q, g, values);
        zlg_free(q);
        status = zlg_kron_write(shifted->kron, i, alpha, values, beta, dF[i]);
      }
      zlg_free(values);
    }
    g += n;
  }
  return status;
}

int zlg_shifted_gradient(const zlg_operator *S, double alpha, double beta, zlg_matrix *const *dF, double *dshift) {
  const struct zlg_shifted *shifted = zlg_shifted_of(S);
  struct weights weights = {.count = zlg_kron_of(shifted->kron)->count};
  weights.g = zlg_calloc((size_t)shifted->values_count + 1, sizeof *weights.g);
  if (!weights.g) return zlg_fail(S->context, ZLG_ENOMEM, "no memory for a gradient");
  int status = S->rows > 0 ? each_line(shifted, add_weights, &weights) : ZLG_OK;
  if (status == ZLG_OK && S->rows > 0) status = write_gradients(shifted, weights.g, alpha, beta, dF);
  if (status == ZLG_OK && dshift) *dshift = weights.traces;
  zlg_free(weights.g);
  return status;
}

/* ---- applying --------------------------------------------------------------------------------------------------- */

/* Columns of a block: as many as the workspace holds, one at least. */
static int block_columns(const zlg_operator *A, int64_t columns, int64_t *block) {
  int64_t column_bytes;
  const int64_t quarter = A->context->memory_limit / 4, most = quarter < WORKSPACE_MOST ? quarter : WORKSPACE_MOST;
  if (!zlg_mul64(A->rows > 0 ? A->rows : 1, (int64_t)zlg_type_size(A->type), &column_bytes) ||
      column_bytes > A->context->memory_limit)
    return zlg_fail(A->context, ZLG_ELIMIT,
                    "a column of %lld elements, which the inverse needs as workspace, passes the limit of %lld bytes",
                    (long long)A->rows, (long long)A->context->memory_limit);
  *block = most / column_bytes;
  if (*block > columns) *block = columns;
  if (*block < 1) *block = 1;
  return ZLG_OK;
}

/* Row k of the block divided by lambda[k] + shift. */
static void divide(const struct zlg_shifted *shifted, zlg_matrix *t, struct zlg_digits *digits) {
  const bool rows = t->order == ZLG_ROW_MAJOR;
  for (int64_t k = 0; k < t->rows; k++) {
    double value = 1;
    const double *values = shifted->values;
    for (int64_t i = 0; i < digits->count; values += digits->extent[i++]) value *= values[digits->digit[i]];
    const double by = 1 / (value + shifted->shift);
    const int64_t at = rows ? k * t->ld : k, step = rows ? 1 : t->ld;
    if (t->type == ZLG_F32)
      for (int64_t c = 0; c < t->columns; c++) ((float *)t->data)[at + c * step] *= (float)by;
    else
      for (int64_t c = 0; c < t->columns; c++) ((double *)t->data)[at + c * step] *= by;
    zlg_digits_next(digits);
  }
}

static int solve_block(const struct zlg_composed *composed, zlg_request *request, int64_t column, int64_t columns,
                       void *workspace) {
  const struct zlg_shifted *shifted = zlg_shifted_of(composed->A);
  const struct zlg_kron *kron = zlg_kron_of(shifted->kron);
  zlg_context *context = composed->A->context;
  zlg_matrix *x = NULL, *y = NULL, *t = NULL;
  struct zlg_digits digits = {0};
  const zlg_order order = composed->x->order;
  int status = zlg_digits_start(context, &digits, kron->count);
  for (int64_t i = 0; i < kron->count && status == ZLG_OK; i++) digits.extent[i] = zlg_kron_rows(kron, i);
  if (status == ZLG_OK) status = zlg_columns_of(composed->x, column, columns, &x);
  if (status == ZLG_OK) status = zlg_columns_of(composed->y, column, columns, &y);
  if (status == ZLG_OK)
    status = zlg_matrix_wrap(context, &t, composed->A->type, composed->A->rows, columns, order,
                             zlg_matrix_least_ld(composed->A->rows, columns, order), workspace);
  if (status == ZLG_OK) status = zlg_composed_step(request, shifted->vectors, ZLG_TRANS, 1, x, 0, t);
  if (status == ZLG_OK) divide(shifted, t, &digits);
  if (status == ZLG_OK)
    status = zlg_composed_step(request, shifted->vectors, ZLG_NOTRANS, composed->alpha, t, composed->beta, y);
  zlg_matrix_release(x);
  zlg_matrix_release(y);
  zlg_matrix_release(t);
  zlg_digits_free(&digits);
  return status;
}

/* alpha = 0 reads neither X nor Q: beta Y by the product. */
static int run_inverse(const struct zlg_composed *composed, zlg_request *request) {
  const zlg_operator *A = composed->A;
  if (composed->alpha == 0)
    return zlg_composed_step(request, zlg_shifted_of(A)->vectors, ZLG_NOTRANS, 0, composed->x, composed->beta,
                             composed->y);
  int64_t block;
  int status = block_columns(A, composed->y->columns, &block);
  if (status != ZLG_OK || A->rows == 0) return status;
  void *workspace = zlg_malloc_aligned(64, (size_t)(A->rows * block) * zlg_type_size(A->type));
  if (!workspace) return zlg_fail(A->context, ZLG_ENOMEM, "no memory for a block of %lld columns", (long long)block);
  for (int64_t column = 0; column < composed->y->columns && status == ZLG_OK; column += block) {
    const int64_t left = composed->y->columns - column;
    status = solve_block(composed, request, column, left < block ? left : block, workspace);
  }
  zlg_free_aligned(workspace);
  return status;
}

/* y += s x, elements. */
static void add_scaled(zlg_type type, int64_t count, double s, const void *x, void *y) {
  if (type == ZLG_F32)
    for (int64_t i = 0; i < count; i++) ((float *)y)[i] += (float)s * ((const float *)x)[i];
  else
    for (int64_t i = 0; i < count; i++) ((double *)y)[i] += s * ((const double *)x)[i];
}

static int add_shift(const struct zlg_composed *composed, zlg_request *request, double s, void *x, void *y) {
  const zlg_matrix *X = composed->x;
  const bool by_rows = X->order == ZLG_ROW_MAJOR;
  const int64_t wide = by_rows ? X->columns : X->rows, lines = by_rows ? X->rows : X->columns;
  const int64_t width = wide < BLOCK_ELEMENTS ? wide : BLOCK_ELEMENTS, height = BLOCK_ELEMENTS / width;
  int status = ZLG_OK;
  for (int64_t line = 0; line < lines; line += height)
    for (int64_t at = 0; at < wide && status == ZLG_OK; at += width) {
      const int64_t h = lines - line < height ? lines - line : height, w = wide - at < width ? wide - at : width;
      const int64_t row = by_rows ? line : at, rows = by_rows ? h : w, column = by_rows ? at : line,
                    columns = by_rows ? w : h;
      status = zlg_request_state(request);
      if (status == ZLG_OK) status = zlg_matrix_read(X, row, rows, column, columns, X->order, w, x);
      if (status == ZLG_OK) status = zlg_matrix_read(composed->y, row, rows, column, columns, X->order, w, y);
      if (status != ZLG_OK) return status;
      add_scaled(X->type, h * w, s, x, y);
      status = zlg_matrix_write(composed->y, row, rows, column, columns, X->order, w, y);
    }
  return status;
}

static int run_shifted(const struct zlg_composed *composed, zlg_request *request) {
  const struct zlg_shifted *shifted = zlg_shifted_of(composed->A);
  int status = zlg_composed_step(request, shifted->kron, composed->op, composed->alpha, composed->x, composed->beta,
                                 composed->y);
  const double s = composed->alpha * shifted->shift;
  if (status != ZLG_OK || s == 0 || composed->y->rows == 0 || composed->y->columns == 0) return status;
  double *blocks = zlg_malloc(2 * BLOCK_ELEMENTS * sizeof *blocks);
  if (!blocks) return zlg_fail(composed->A->context, ZLG_ENOMEM, "no memory for a block");
  status = add_shift(composed, request, s, blocks, blocks + BLOCK_ELEMENTS);
  zlg_free(blocks);
  return status;
}

static int apply_shifted(zlg_operator *A, zlg_op op, double alpha, zlg_matrix *X, double beta, zlg_matrix *Y,
                         bool threaded, zlg_request **request) {
  const struct zlg_composed composed = {.A = A,
                                        .op = op,
                                        .alpha = alpha,
                                        .beta = beta,
                                        .x = X,
                                        .y = Y,
                                        .run = zlg_shifted_of(A)->inverse ? run_inverse : run_shifted};
  return zlg_composed_start(&composed, threaded, request);
}

static int cost_shifted(zlg_operator *A, zlg_op op, int64_t columns, zlg_cost *cost) {
  const struct zlg_shifted *shifted = zlg_shifted_of(A);
  if (!shifted->inverse) return shifted->kron->kind->cost(shifted->kron, op, columns, cost);
  int64_t block;
  zlg_cost there, back;
  int status = block_columns(A, columns, &block);
  if (status == ZLG_OK) status = shifted->vectors->kind->cost(shifted->vectors, ZLG_TRANS, columns, &there);
  if (status == ZLG_OK) status = shifted->vectors->kind->cost(shifted->vectors, ZLG_NOTRANS, columns, &back);
  if (status != ZLG_OK) return status;
  *cost = there;
  zlg_cost_add(cost, &back);
  cost->memory_bytes += A->rows * block * (int64_t)zlg_type_size(A->type);
  return ZLG_OK;
}

static bool shifted_overlaps(const zlg_operator *A, const zlg_matrix *Y) {
  const struct zlg_shifted *shifted = zlg_shifted_of(A);
  return !shifted->inverse && shifted->kron->kind->overlaps(shifted->kron, Y);
}

static void release_shifted(zlg_operator *A) {
  struct zlg_shifted *shifted = A->self;
  zlg_operator_release(shifted->kron);
  zlg_operator_release(shifted->vectors);
  zlg_free(shifted->values);
  zlg_free(shifted);
}

static const struct zlg_operator_kind shifted_kind = {.name = "kron-shifted",
                                                      .tileable = false,
                                                      .overlaps = shifted_overlaps,
                                                      .apply = apply_shifted,
                                                      .cost = cost_shifted,
                                                      .release = release_shifted};
static const struct zlg_operator_kind inverse_kind = {.name = "kron-shifted-inverse",
                                                      .tileable = false,
                                                      .overlaps = shifted_overlaps,
                                                      .apply = apply_shifted,
                                                      .cost = cost_shifted,
                                                      .release = release_shifted};

bool zlg_kron_is_shifted(const zlg_operator *A) {
  return A->kind == &shifted_kind || A->kind == &inverse_kind;
}

/* ---- making ----------------------------------------------------------------------------------------------------- */

/* The smallest product of one value of each factor. */
static double least_value(const struct zlg_shifted *shifted) {
  const struct zlg_kron *kron = zlg_kron_of(shifted->kron);
  const double *values = shifted->values;
  double least = 1, most = 1;
  for (int64_t i = 0; i < kron->count; i++) {
    const int64_t n = zlg_kron_rows(kron, i);
    if (n == 0) return INFINITY;
    const double low = values[0], high = values[n - 1];
    const double ends[] = {least * low, least * high, most * low, most * high};
    least = fmin(fmin(ends[0], ends[1]), fmin(ends[2], ends[3]));
    most = fmax(fmax(ends[0], ends[1]), fmax(ends[2], ends[3]));
    values += n;
  }
  return least;
}

/* Takes over what `parts` refers to, in every case. */
static int make_shifted(zlg_operator *A, const struct zlg_operator_kind *kind, const struct zlg_shifted *parts,
                        zlg_operator **made) {
  struct zlg_shifted *shifted = zlg_malloc(sizeof *shifted);
  if (shifted) {
    *shifted = *parts;
    *made = zlg_operator_new(A->context, kind, A->type, A->rows, A->columns, shifted);
    if (*made) return ZLG_OK;
  }
  zlg_free(shifted);
  zlg_operator_release(parts->kron);
  zlg_operator_release(parts->vectors);
  zlg_free(parts->values);
  return zlg_fail(A->context, ZLG_ENOMEM, "no memory for an operator");
}

int zlg_kron_shifted(zlg_operator *A, double shift, zlg_operator **S) {
  static const char what[] = "zlg_kron_shifted";
  if (S) *S = NULL;
  int status = check_kron(A, what);
  if (status != ZLG_OK) return status;
  if (!S) return zlg_fail(A->context, ZLG_EINVAL, "%s: S is NULL, expected where to put it", what);
  if (!isfinite(shift)) return zlg_fail(A->context, ZLG_EINVAL, "shift = %g, expected a finite number", shift);
  struct zlg_shifted parts = {.shift = shift};
  status = eigen_of(A, &parts.vectors, &parts.values, &parts.values_count);
  if (status != ZLG_OK) return status;
  parts.kron = zlg_operator_retain(A);
  const double least = least_value(&parts) + shift;
  if (least > 0) return make_shifted(A, &shifted_kind, &parts, S);
  zlg_operator_release(parts.kron);
  zlg_operator_release(parts.vectors);
  zlg_free(parts.values);
  return zlg_fail(A->context, ZLG_ESINGULAR, "A + %g I is not positive definite: its smallest eigenvalue is %.3g",
                  shift, least);
}

int zlg_shifted_inverse(zlg_operator *S, zlg_operator **inverse) {
  const struct zlg_shifted *shifted = zlg_shifted_of(S);
  struct zlg_shifted parts = *shifted;
  parts.values = zlg_malloc((size_t)(shifted->values_count + 1) * sizeof *parts.values);
  if (!parts.values) return zlg_fail(S->context, ZLG_ENOMEM, "no memory for an operator");
  memcpy(parts.values, shifted->values, (size_t)shifted->values_count * sizeof *parts.values);
  zlg_operator_retain(parts.kron);
  zlg_operator_retain(parts.vectors);
  parts.inverse = true;
  return make_shifted(S, &inverse_kind, &parts, inverse);
}
