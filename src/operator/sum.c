/* Sums of operators, c_1 A_1 + … + c_n A_n, applied term by term into the caller's Y. */
#include <math.h>

#include "src/core/error.h"
#include "src/core/memory.h"
#include "src/operator/composed.h"

struct sum {
  int64_t count;
  zlg_operator **terms;
  double *coefficients;
};

static void free_sum(struct sum *sum) {
  for (int64_t i = 0; i < sum->count && sum->terms; i++) zlg_operator_release(sum->terms[i]);
  zlg_free(sum->terms);
  zlg_free(sum->coefficients);
  zlg_free(sum);
}

static struct sum *make_sum(int64_t count, zlg_operator *const *terms, const double *coefficients) {
  struct sum *sum = zlg_calloc(1, sizeof *sum);
  if (!sum) return NULL;
  sum->terms = zlg_calloc((size_t)count, sizeof(zlg_operator *));
  sum->coefficients = zlg_calloc((size_t)count, sizeof *sum->coefficients);
  if (!sum->terms || !sum->coefficients) {
    free_sum(sum);
    return NULL;
  }
  /* Terms that count nothing are left out; one stays, so that beta is applied. */
  for (int64_t i = 0; i < count; i++) {
    const double c = coefficients ? coefficients[i] : 1;
    if (c == 0 && (sum->count > 0 || i + 1 < count)) continue;
    sum->terms[sum->count] = zlg_operator_retain(terms[i]);
    sum->coefficients[sum->count++] = c;
  }
  return sum;
}

/* ---- applying --------------------------------------------------------------------------------------------------- */

static int run_sum(const struct zlg_composed *composed, zlg_request *request) {
  const struct sum *sum = composed->A->self;
  int status = ZLG_OK;
  for (int64_t i = 0; i < sum->count && status == ZLG_OK; i++)
    status = zlg_composed_step(request, sum->terms[i], composed->op, composed->alpha * sum->coefficients[i],
                               composed->x, i == 0 ? composed->beta : 1, composed->y);
  return status;
}

static int apply_sum(zlg_operator *A, zlg_op op, double alpha, zlg_matrix *X, double beta, zlg_matrix *Y, bool threaded,
                     zlg_request **request) {
  const struct zlg_composed composed = {.A = A, .op = op, .alpha = alpha, .beta = beta, .x = X, .y = Y, .run = run_sum};
  return zlg_composed_start(&composed, threaded, request);
}

static int cost_sum(zlg_operator *A, zlg_op op, int64_t columns, zlg_cost *cost) {
  const struct sum *sum = A->self;
  *cost = (zlg_cost){0};
  for (int64_t i = 0; i < sum->count; i++) {
    zlg_cost term;
    int status = sum->terms[i]->kind->cost(sum->terms[i], op, columns, &term);
    if (status != ZLG_OK) return status;
    zlg_cost_add(cost, &term);
  }
  return ZLG_OK;
}

static bool sum_overlaps(const zlg_operator *A, const zlg_matrix *Y) {
  const struct sum *sum = A->self;
  for (int64_t i = 0; i < sum->count; i++)
    if (sum->terms[i]->kind->overlaps(sum->terms[i], Y)) return true;
  return false;
}

static void release_sum(zlg_operator *A) {
  free_sum(A->self);
}

static const struct zlg_operator_kind sum_kind = {.name = "sum",
                                                  .tileable = false,
                                                  .overlaps = sum_overlaps,
                                                  .apply = apply_sum,
                                                  .cost = cost_sum,
                                                  .release = release_sum};

/* ---- making ----------------------------------------------------------------------------------------------------- */

static int check_term(zlg_context *context, zlg_operator *const *terms, const double *coefficients, int64_t i) {
  const zlg_operator *term = terms[i], *first = terms[0];
  if (!term) return zlg_fail(context, ZLG_EINVAL, "terms[%lld] is NULL, expected an operator", (long long)i);
  if (term->context != context)
    return zlg_fail(context, ZLG_EINVAL, "terms[%lld] was made with another context", (long long)i);
  if (term->type != first->type)
    return zlg_fail(context, ZLG_ETYPE, "terms[%lld] is %s and terms[0] is %s; expected one type", (long long)i,
                    zlg_type_name(term->type), zlg_type_name(first->type));
  if (term->rows != first->rows || term->columns != first->columns)
    return zlg_fail(context, ZLG_ESHAPE, "terms[%lld] is %lld x %lld and terms[0] is %lld x %lld; expected one shape",
                    (long long)i, (long long)term->rows, (long long)term->columns, (long long)first->rows,
                    (long long)first->columns);
  if (coefficients && isnan(coefficients[i]))
    return zlg_fail(context, ZLG_EINVAL, "coefficients[%lld] is NaN", (long long)i);
  return ZLG_OK;
}

int zlg_operator_sum(zlg_context *context, zlg_operator **sum, int64_t count, zlg_operator *const *terms,
                     const double *coefficients) {
  if (!context || !sum || !terms)
    return zlg_fail(context, ZLG_EINVAL, "zlg_operator_sum: %s is NULL", !context ? "context" : !sum ? "sum" : "terms");
  *sum = NULL;
  if (count < 1) return zlg_fail(context, ZLG_EINVAL, "count = %lld, expected 1 or more terms", (long long)count);
  int status = ZLG_OK;
  for (int64_t i = 0; i < count && status == ZLG_OK; i++) status = check_term(context, terms, coefficients, i);
  if (status != ZLG_OK) return status;
  struct sum *made = make_sum(count, terms, coefficients);
  if (made) *sum = zlg_operator_new(context, &sum_kind, terms[0]->type, terms[0]->rows, terms[0]->columns, made);
  if (*sum) return ZLG_OK;
  if (made) free_sum(made);
  return zlg_fail(context, ZLG_ENOMEM, "no memory for a sum of %lld operators", (long long)count);
}
