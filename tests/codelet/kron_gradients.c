/* Gradients of Kronecker factors as the CPU kernels compute them, one block, on every instruction set: against the sums
 * written down in long double. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "codelets/kron_gradients/args.h"
#include "tests/support.h"

#define MOST 8

struct shape {
  int count;
  int32_t p[MOST], q[MOST];
  int64_t vectors;
};

static const struct shape shapes[] = {{1, {1}, {1}, 1},
                                      {1, {5}, {3}, 40},
                                      {2, {3, 4}, {4, 2}, 19},
                                      {3, {8, 8, 8}, {8, 8, 8}, 16},
                                      {3, {2, 7, 5}, {5, 1, 9}, 33},
                                      {4, {3, 2, 4, 3}, {2, 3, 1, 5}, 3},
                                      {2, {17, 33}, {21, 6}, 7},
                                      {2, {1, 64}, {64, 1}, 50},
                                      /* vectors too long to be lines: groups of small factors, and none */
                                      {5, {8, 8, 8, 8, 8}, {8, 8, 8, 8, 8}, 3},
                                      {7, {5, 5, 5, 5, 5, 5, 5}, {5, 5, 5, 5, 5, 5, 5}, 1},
                                      {4, {12, 20, 9, 17}, {14, 18, 11, 17}, 3},
                                      {3, {40, 33, 40}, {40, 35, 24}, 2},
                                      {4, {31, 3, 100, 5}, {30, 2, 100, 7}, 2}};

struct block {
  struct zlg_kron_gradients_args args;
  int64_t k, l, elements;
  void *x, *dy, *factors, *dx;
  double *acc;
};

static int64_t product(const int32_t *sizes, int count) {
  int64_t all = 1;
  for (int i = 0; i < count; i++) all *= sizes[i];
  return all;
}

static double at(const struct block *b, const void *data, int64_t i) {
  return zlg_test_get(b->args.type, ZLG_ROW_MAJOR, 0, data, 0, i);
}

static void *numbers(zlg_type type, int64_t count, uint64_t *state) {
  void *data = malloc((size_t)count * sizeof(double));
  for (int64_t i = 0; i < count; i++) zlg_test_set(type, ZLG_ROW_MAJOR, 0, data, 0, i, zlg_test_normal(state));
  return data;
}

static struct block make(const struct shape *shape, zlg_type type, zlg_order order, bool first) {
  struct block b = {.args = {.type = type,
                             .count = shape->count,
                             .vectors = shape->vectors,
                             .x_order = order,
                             .dy_order = order == ZLG_ROW_MAJOR ? ZLG_COLUMN_MAJOR : ZLG_ROW_MAJOR,
                             .dx_order = order,
                             .first = first,
                             .wants_dx = true,
                             .alpha = first ? -2 : 0.5,
                             .beta = first ? 0 : 3}};
  uint64_t state = 41;
  b.k = product(shape->p, shape->count), b.l = product(shape->q, shape->count);
  for (int i = 0; i < shape->count; i++) {
    b.args.p[i] = shape->p[i], b.args.q[i] = shape->q[i];
    b.args.turn[i] = (int8_t)(shape->count > 4 || type == ZLG_F32 ? shape->count - 1 - i : (i + 1) % shape->count);
    b.elements += (int64_t)shape->p[i] * shape->q[i];
  }
  b.x = numbers(type, b.k * shape->vectors, &state);
  b.dy = numbers(type, b.l * shape->vectors, &state);
  b.factors = numbers(type, b.elements, &state);
  b.dx = numbers(type, b.k * shape->vectors, &state);
  b.acc = malloc((size_t)b.elements * sizeof *b.acc);
  for (int64_t e = 0; e < b.elements; e++) b.acc[e] = first ? NAN : 1;
  if (first)
    for (int64_t i = 0; i < b.k * shape->vectors; i++) zlg_test_set(type, ZLG_ROW_MAJOR, 0, b.dx, 0, i, NAN);
  return b;
}

static void unmake(struct block *b) {
  free(b->x), free(b->dy), free(b->factors), free(b->dx), free(b->acc);
}

static int64_t place(zlg_order order, int64_t vectors, int64_t size, int64_t v, int64_t k) {
  return order == ZLG_ROW_MAJOR ? v * size + k : k * vectors + v;
}

/* A tensor between the factors, and the same of absolute values. */
struct tensor {
  long double *value, *size;
};

static struct tensor new_tensor(int64_t elements) {
  struct tensor t = {calloc((size_t)elements, sizeof *t.value), calloc((size_t)elements, sizeof *t.size)};
  return t;
}
static void free_tensor(struct tensor *t) {
  free(t->value), free(t->size);
}

struct step {
  int64_t lead, p, q, trail, at;
};

/* y += x F, or with `back` x += y F^T. */
static void contract(const struct block *b, const struct step *s, const struct tensor *x, const struct tensor *y,
                     bool back) {
  for (int64_t l = 0; l < s->lead; l++)
    for (int64_t i = 0; i < s->p; i++)
      for (int64_t j = 0; j < s->q; j++) {
        const long double f = at(b, b->factors, s->at + i * s->q + j);
        const int64_t from = (l * s->p + i) * s->trail, to = (l * s->q + j) * s->trail;
        for (int64_t t = 0; t < s->trail; t++) {
          const int64_t k = from + t, m = to + t;
          if (back)
            x->value[k] += f * y->value[m], x->size[k] += fabsl(f) * y->size[m];
          else
            y->value[m] += f * x->value[k], y->size[m] += fabsl(f) * x->size[k];
        }
      }
}

static void add_products(const struct step *s, const struct tensor *x, const struct tensor *g, long double *df,
                         long double *df_abs) {
  for (int64_t l = 0; l < s->lead; l++)
    for (int64_t i = 0; i < s->p; i++)
      for (int64_t j = 0; j < s->q; j++)
        for (int64_t t = 0; t < s->trail; t++) {
          const int64_t k = (l * s->p + i) * s->trail + t, m = (l * s->q + j) * s->trail + t;
          df[s->at + i * s->q + j] += x->value[k] * g->value[m];
          df_abs[s->at + i * s->q + j] += x->size[k] * g->size[m];
        }
}

static int64_t steps_of(const struct zlg_kron_gradients_args *args, struct step *steps, int64_t *sizes) {
  int64_t extent[MOST];
  sizes[0] = 1;
  for (int i = 0; i < args->count; i++) extent[i] = args->p[i], sizes[0] *= args->p[i];
  for (int s = 0; s < args->count; s++) {
    const int f = args->turn[s];
    steps[s] = (struct step){1, args->p[f], args->q[f], 1, 0};
    for (int i = 0; i < f; i++) steps[s].lead *= extent[i], steps[s].at += (int64_t)args->p[i] * args->q[i];
    for (int i = f + 1; i < args->count; i++) steps[s].trail *= extent[i];
    extent[f] = args->q[f];
    sizes[s + 1] = sizes[s] / args->p[f] * args->q[f];
  }
  return sizes[args->count];
}

/* By the chain rule, in long double, a vector at a time; with sums of absolute values beside. */
static void reference(const struct block *b, long double *df, long double *df_abs, long double *dx,
                      long double *dx_abs) {
  const struct zlg_kron_gradients_args *args = &b->args;
  struct step steps[MOST];
  int64_t sizes[MOST + 1];
  const int64_t out = steps_of(args, steps, sizes);
  for (int64_t v = 0; v < args->vectors; v++) {
    struct tensor x[MOST + 1], g = new_tensor(out);
    for (int s = 0; s <= args->count; s++) x[s] = new_tensor(sizes[s]);
    for (int64_t k = 0; k < sizes[0]; k++) {
      x[0].value[k] = at(b, b->x, place(args->x_order, args->vectors, b->k, v, k));
      x[0].size[k] = fabsl(x[0].value[k]);
    }
    for (int64_t k = 0; k < out; k++) {
      g.value[k] = at(b, b->dy, place(args->dy_order, args->vectors, b->l, v, k));
      g.size[k] = fabsl(g.value[k]);
    }
    for (int s = 0; s < args->count; s++) contract(b, &steps[s], &x[s], &x[s + 1], false);
    for (int s = args->count; s-- > 0;) {
      struct tensor before = new_tensor(sizes[s]);
      add_products(&steps[s], &x[s], &g, df, df_abs);
      contract(b, &steps[s], &before, &g, true);
      free_tensor(&g);
      g = before;
    }
    memcpy(dx + v * b->k, g.value, (size_t)b->k * sizeof *dx);
    memcpy(dx_abs + v * b->k, g.size, (size_t)b->k * sizeof *dx);
    for (int s = 0; s <= args->count; s++) free_tensor(&x[s]);
    free_tensor(&g);
  }
}

/* Each number of the chain is a sum over p_i products, rounded: gamma of all p and q together, the factors' own
 * products; sums for a factor's gradient have 256 terms in the type, and lanes and blocks in binary64. */
static void check(const struct shape *shape, zlg_type type, zlg_order order, bool first) {
  struct block b = make(shape, type, order, first);
  long double *all = calloc((size_t)(2 * b.elements + 2 * b.k * shape->vectors), sizeof *all), *df = all,
              *df_abs = df + b.elements, *dx = df_abs + b.elements, *dx_abs = dx + b.k * shape->vectors;
  reference(&b, df, df_abs, dx, dx_abs);
  struct block before = make(shape, type, order, first);
  const size_t bytes = (ZLG_CPU(zlg_kron_gradients_scratch)(&b.args) + 63) / 64 * 64;
  void *scratch = aligned_alloc(64, bytes);
  memset(scratch, 0xff, bytes); /* NaN */
  const bool rows = order == ZLG_ROW_MAJOR;
  const struct zlg_kron_gradients_operands operands = {
      b.x,  rows ? b.k : shape->vectors, b.dy, rows ? shape->vectors : b.l, b.factors, b.acc,
      b.dx, rows ? b.k : shape->vectors};
  ZLG_CPU(zlg_kron_gradients_cpu)(&b.args, &operands, scratch);
  int sizes = 2;
  for (int i = 0; i < shape->count; i++) sizes += shape->p[i] + shape->q[i];
  for (int64_t e = 0; e < b.elements; e++)
    ZLG_CHECK_CLOSE(b.acc[e], df[e] + (first ? 0 : 1),
                    (zlg_test_gamma(sizes + 258, type) + zlg_test_gamma(1024, ZLG_F64)) * (df_abs[e] + 1));
  for (int64_t v = 0; v < shape->vectors; v++)
    for (int64_t i = 0; i < b.k; i++) {
      const int64_t where = place(order, shape->vectors, b.k, v, i);
      const long double old = first ? 0 : b.args.beta * at(&b, before.dx, where);
      ZLG_CHECK_CLOSE(at(&b, b.dx, where), b.args.alpha * dx[v * b.k + i] + old,
                      zlg_test_gamma(sizes + 4, type) * (fabsl(b.args.alpha) * dx_abs[v * b.k + i] + fabsl(old)));
    }
  free(scratch);
  free(all);
  unmake(&before);
  unmake(&b);
}

static void gradients_are_the_sums_of_their_definition(void) {
  const enum zlg_isa detected = zlg_isa_detect();
  for (int isa = ZLG_ISA_BASELINE; isa <= (int)detected; isa++) {
    if (zlg_isa_force((enum zlg_isa)isa) != (enum zlg_isa)isa) continue;
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
      for (int which = 0; which < 4; which++)
        check(&shapes[s], which % 2 ? ZLG_F32 : ZLG_F64, which / 2 ? ZLG_ROW_MAJOR : ZLG_COLUMN_MAJOR,
              which == 0 || which == 3);
  }
  zlg_isa_force(detected);
}

/* 2^20 ones: f32 sums alone would stop at 2^24 terms of one or drift; every number here is an integer, and exact. */
static void long_sums_are_exact_for_ones(void) {
  enum { VECTORS = 1 << 19 };
  struct zlg_kron_gradients_args args = {.type = ZLG_F32,
                                         .count = 2,
                                         .p = {8, 8},
                                         .q = {8, 8},
                                         .turn = {1, 0},
                                         .vectors = VECTORS,
                                         .x_order = ZLG_COLUMN_MAJOR,
                                         .dy_order = ZLG_COLUMN_MAJOR,
                                         .dx_order = ZLG_COLUMN_MAJOR,
                                         .first = true,
                                         .alpha = 1};
  float *x = malloc((size_t)64 * VECTORS * sizeof *x), factors[128];
  double acc[128];
  for (int64_t i = 0; i < (int64_t)64 * VECTORS; i++) x[i] = 1;
  for (int i = 0; i < 128; i++) factors[i] = 1;
  void *scratch = aligned_alloc(64, (ZLG_CPU(zlg_kron_gradients_scratch)(&args) + 63) / 64 * 64);
  const struct zlg_kron_gradients_operands operands = {x, VECTORS, x, VECTORS, factors, acc, NULL, 0};
  ZLG_CPU(zlg_kron_gradients_cpu)(&args, &operands, scratch);
  for (int i = 0; i < 128; i++) ZLG_CHECK_CLOSE(acc[i], 64.0 * VECTORS, 0);
  free(scratch);
  free(x);
}

int main(int argc, char **argv) {
  static const struct zlg_test_case cases[] = {
      {"gradients_are_the_sums_of_their_definition", gradients_are_the_sums_of_their_definition},
      {"long_sums_are_exact_for_ones", long_sums_are_exact_for_ones},
      {NULL, NULL}};
  return zlg_test_main(argc, argv, cases);
}
