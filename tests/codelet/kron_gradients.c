/* Gradients of Kronecker factors as the CPU kernels compute them, one block, on every instruction set: against the sums
 * written down in long double. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "codelets/kron_gradients/args.h"
#include "tests/support.h"

#define MOST 4

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
                                      {2, {1, 64}, {64, 1}, 50}};

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
    b.args.turn[i] = (int8_t)((i + 1) % shape->count); /* not in the order of the factors */
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

/* By the definition: every (i, j) of the whole product, every vector; with sums of absolute values beside. */
static void reference(const struct block *b, long double *df, long double *df_abs, long double *dx,
                      long double *dx_abs) {
  const struct zlg_kron_gradients_args *args = &b->args;
  for (int64_t i = 0; i < b->k; i++)
    for (int64_t j = 0; j < b->l; j++) {
      int64_t place_of[MOST], rest_i = i, rest_j = j, from = b->elements;
      long double whole = 1, without[MOST];
      for (int f = args->count; f-- > 0;) {
        from -= (int64_t)args->p[f] * args->q[f];
        place_of[f] = from + rest_i % args->p[f] * args->q[f] + rest_j % args->q[f];
        rest_i /= args->p[f], rest_j /= args->q[f];
        whole *= at(b, b->factors, place_of[f]);
      }
      for (int f = 0; f < args->count; f++) {
        without[f] = 1;
        for (int g = 0; g < args->count; g++)
          if (g != f) without[f] *= at(b, b->factors, place_of[g]);
      }
      for (int64_t v = 0; v < args->vectors; v++) {
        const long double x = at(b, b->x, place(args->x_order, args->vectors, b->k, v, i)),
                          dy = at(b, b->dy, place(args->dy_order, args->vectors, b->l, v, j));
        for (int f = 0; f < args->count; f++) {
          df[place_of[f]] += without[f] * x * dy;
          df_abs[place_of[f]] += fabsl(without[f] * x * dy);
        }
        dx[v * b->k + i] += whole * dy;
        dx_abs[v * b->k + i] += fabsl(whole * dy);
      }
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
  void *scratch = aligned_alloc(64, (ZLG_CPU(zlg_kron_gradients_scratch)(&b.args) + 63) / 64 * 64);
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
