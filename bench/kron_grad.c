/* Gradients of Kronecker products beside the product itself: kron/grad/SHAPE is zlg_kron_gradient_right() of X and of
 * all factors, for Y = X A with 64 vectors. GF/s count three products, which is what it takes where nothing is kept: X
 * between the factors again, the gradient back through them, and the factors' own sums. What is measured is checked:
 * the product is linear in X and in every factor, so that <dY, Y> = <dX, X> = <dF_i, F_i>. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/kron.h"
#include "bench/product.h"

struct gradient {
  const struct bench_settings *settings;
  struct bench_row *row;
  zlg_context *context;
  struct kron_problem problem;
  double flops; /* of a product */
  int calls;
  void *dy, *dx, *df[KRON_FACTORS];
  zlg_matrix *dY, *dX, *dF[KRON_FACTORS];
};

static int make_arrays(struct gradient *g) {
  struct kron_problem *p = &g->problem;
  const size_t size = zlg_type_size(p->type);
  const int64_t m = p->shape.m;
  g->dy = malloc((size_t)(m * p->l) * size), g->dx = malloc((size_t)(m * p->k) * size);
  bool whole = g->dy && g->dx;
  for (int i = 0; i < p->shape.count; i++)
    whole &= (g->df[i] = malloc((size_t)(p->shape.p[i] * p->shape.q[i]) * size)) != NULL;
  if (!whole) return bench_fail(g->row, "no memory for the gradients");
  bench_random_normal(p->type, g->dy, m * p->l, 1, 77);
  int status = zlg_matrix_wrap(g->context, &g->dY, p->type, m, p->l, ZLG_ROW_MAJOR, p->l, g->dy);
  if (!status) status = zlg_matrix_wrap(g->context, &g->dX, p->type, m, p->k, ZLG_ROW_MAJOR, p->k, g->dx);
  for (int i = 0; i < p->shape.count && !status; i++)
    status = zlg_matrix_wrap(g->context, &g->dF[i], p->type, p->shape.p[i], p->shape.q[i], ZLG_ROW_MAJOR, p->shape.q[i],
                             g->df[i]);
  return status ? bench_fail(g->row, "%s", zlg_context_message(g->context)) : 0;
}

static void close_gradient(struct gradient *g) {
  zlg_matrix_release(g->dY);
  zlg_matrix_release(g->dX);
  free(g->dy);
  free(g->dx);
  for (int i = 0; i < KRON_FACTORS; i++) {
    zlg_matrix_release(g->dF[i]);
    free(g->df[i]);
  }
  kron_problem_close(&g->problem);
}

static int differentiate(struct gradient *g) {
  int status = zlg_kron_gradient_right(g->problem.A, ZLG_NOTRANS, 1, g->problem.X, g->dY, 0, g->dX, g->dF);
  return status ? bench_fail(g->row, "%s", zlg_context_message(g->context)) : 0;
}

static double dot(zlg_type type, const void *a, const void *b, int64_t count, double *size) {
  double sum = 0;
  *size = 0;
  for (int64_t i = 0; i < count; i++) {
    const double term = type == ZLG_F32 ? (double)((const float *)a)[i] * ((const float *)b)[i]
                                        : ((const double *)a)[i] * ((const double *)b)[i];
    sum += term, *size += fabs(term);
  }
  return sum;
}

static int check(struct gradient *g) {
  const struct kron_problem *p = &g->problem;
  const int64_t m = p->shape.m;
  double size, other_size, steps = 16;
  for (int i = 0; i < p->shape.count; i++) steps += (double)(p->shape.p[i] + p->shape.q[i]);
  const double unit = p->type == ZLG_F32 ? 0x1p-24 : 0x1p-53, want = dot(p->type, g->dy, p->y, m * p->l, &size);
  for (int i = -1; i < p->shape.count; i++) {
    const double got = i < 0 ? dot(p->type, g->dx, p->x, m * p->k, &other_size)
                             : dot(p->type, g->df[i], p->factors[i], p->shape.p[i] * p->shape.q[i], &other_size);
    /* Roundings of random sign: of all those terms, their magnitudes bound what they leave. */
    if (!(fabs(got - want) <= steps * unit * (size + other_size)))
      return bench_fail(g->row, "a gradient is wrong: <d., .> of %s %d is %.9g, expected %.9g", i < 0 ? "X" : "factor",
                        i + 1, got, want);
  }
  return 0;
}

static double timed(struct gradient *g, int (*call)(struct gradient *), double flops) {
  const double start = bench_clock(g->settings->workers);
  for (int k = 0; k < g->calls; k++)
    if (call(g)) return -1;
  return 1e-9 * g->calls * flops / (bench_clock(g->settings->workers) - start);
}

static int forward(struct gradient *g) {
  return kron_problem_apply(&g->problem, g->context, g->row);
}

static double once_ours(void *state) {
  struct gradient *g = state;
  return timed(g, differentiate, 3 * g->flops);
}

static double once_forward(void *state) {
  struct gradient *g = state;
  return timed(g, forward, g->flops);
}

static double once_peak(void *state) {
  const struct gradient *g = state;
  return 2e-9 * bench_gemm_peak(g->problem.type, g->settings->workers);
}

static int measure(struct gradient *g, const struct bench_settings *settings, const struct kron_shape *shape) {
  if (!(g->context = bench_context(settings->workers, g->row))) return -1;
  if (kron_problem_open(&g->problem, g->context, settings, shape, g->row->type, g->row)) return -1;
  g->flops = kron_flops(&g->problem.shape);
  if (make_arrays(g) || forward(g) || differentiate(g) || check(g)) return -1;
  const double start = bench_clock(settings->workers);
  if (differentiate(g)) return -1;
  g->calls = (int)fmax(1, settings->seconds / (bench_clock(settings->workers) - start));
  struct bench_meter ours = {"ours", once_ours, g, 0, 0}, peak = {"limit", once_peak, g, 0, 0};
  struct bench_meter product = {"product", once_forward, g, 0, 0};
  if (bench_compare(settings, g->row, &ours, &peak, &product, 1)) return -1;
  bench_row_peers(g->row, &product, 1);
  bench_note(g->row, "m=%lld; takes %.2f times the product's time", (long long)g->problem.shape.m,
             3 / product.relative);
  return 0;
}

static int run(const struct bench_case *self, const struct bench_settings *settings, struct bench_row *row) {
  struct kron_shape shape = {.m = 64};
  struct bench_settings shorter = *settings;
  shorter.seconds = fmin(settings->seconds, 0.1);
  struct gradient g = {.settings = &shorter, .row = row};
  row->unit = "GF/s";
  if (!kron_shape_parse(&shape, self->name + strlen("kron/grad/"))) return bench_fail(row, "%s: no shape", self->name);
  const int status = measure(&g, &shorter, &shape);
  close_gradient(&g);
  return status;
}

#define CASE(name)                                                                                                     \
  { name, run, NULL, 0, 0 }

const struct bench_case bench_kron_grad_cases[] = {
    CASE("kron/grad/8^4"),  CASE("kron/grad/8^5"),  CASE("kron/grad/16^4"),
    CASE("kron/grad/32^3"), CASE("kron/grad/64^3"), CASE("kron/grad/128^2"),
    CASE("kron/grad/5^6"),  CASE("kron/grad/10^5"), {NULL, NULL, NULL, 0, 0}};
