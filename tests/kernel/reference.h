/* The kernel product of one tile in long double, written down as the formulas stand in zellige/kernel.h, with the
 * a-priori bound of contract 7 for what the CPU kernels may be off by. Shared by the programs of this folder. */
#ifndef ZLG_TESTS_KERNEL_REFERENCE_H
#define ZLG_TESTS_KERNEL_REFERENCE_H

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "codelets/kernel_product/args.h"

/* A tile with operands of its own, made from doubles (which are rounded to the type first). */
struct tile {
  struct zlg_kernel_product_args args;
  double *x1, *x2, *b, *w;          /* row-major, contiguous: the values after rounding */
  int64_t pad1, pad2, padb;         /* ld beyond the least */
  void *x1_data, *x2_data, *b_data; /* as the kernel sees them */
  double *acc;
  long double *value, *bound; /* m x r */
};

static inline double to_type(zlg_type type, double value) {
  return type == ZLG_F32 ? (double)(float)value : value;
}
static inline long double unit_roundoff(zlg_type type) {
  return type == ZLG_F32 ? 0x1p-24L : 0x1p-53L;
}

/* The kernel as a function of r (radial kernels), r1 (laplacian) or p (the others). */
static inline long double reference_kernel(const struct zlg_kernel_product_args *args, long double s) {
  switch (args->kind) {
  case ZLG_GAUSSIAN:
    return expl(-s * s / 2);
  case ZLG_EXPONENTIAL:
  case ZLG_MATERN12:
  case ZLG_LAPLACIAN:
    return expl(-s);
  case ZLG_MATERN32:
    s *= sqrtl(3);
    return isinf(s) ? 0 : (1 + s) * expl(-s);
  case ZLG_MATERN52:
    s *= sqrtl(5);
    return isinf(s) ? 0 : (1 + s + s * s / 3) * expl(-s);
  case ZLG_RATIONAL_QUADRATIC:
    return expl(-(long double)args->alpha * log1pl(s * s / (2 * (long double)args->alpha)));
  case ZLG_INVERSE_MULTIQUADRIC:
    return 1 / sqrtl(1 + s * s);
  case ZLG_CAUCHY:
    return 1 / (1 + s * s);
  case ZLG_ENERGY:
    return -s;
  case ZLG_LINEAR:
    return s + args->offset;
  case ZLG_POLYNOMIAL: {
    long double result = 1;
    for (int e = 0; e < args->degree; e++) result *= args->gamma * s + args->offset;
    return result;
  }
  case ZLG_SIGMOID:
    return tanhl(args->gamma * s + args->offset);
  }
  return NAN;
}

static inline bool is_dot(zlg_kernel_kind kind) {
  return kind == ZLG_LINEAR || kind == ZLG_POLYNOMIAL || kind == ZLG_SIGMOID;
}

/* How far K[i][j] may be from k: the metric is off by `delta`, the function by a few ulp, and what underflows is lost.
 * Radial kernels are monotone in r, so that the ends of [s - delta, s + delta] bound what delta does. */
static inline long double kernel_error(const struct zlg_kernel_product_args *args, long double s, long double delta) {
  const long double u = unit_roundoff(args->type), k = reference_kernel(args, s);
  const long double tiny = args->type == ZLG_F32 ? 0x1p-125L : 0x1p-1021L;
  if (args->kind == ZLG_POLYNOMIAL) {
    const long double base = fabsl(args->gamma * s + args->offset), off = fabsl(args->gamma * delta) + 2 * u * base;
    return powl(base + off, args->degree) * (1 + 4 * u * args->degree) - powl(base, args->degree);
  }
  long double low = s - delta, high = s + delta;
  if (!is_dot(args->kind) && low < 0) low = 0;
  const long double shift = fmaxl(fabsl(reference_kernel(args, low) - k), fabsl(reference_kernel(args, high) - k));
  return shift + 12 * u * fabsl(k) + tiny;
}

/* The metric of points i, j and how far the computed one may be off. Coordinates differ exactly up to one rounding; d
 * squares are added (gamma_{d+3} on r^2, half of it on r); scaled coordinates (several lengthscales) carry one rounding
 * each of at most `largest` (16 in f32, 1024 in f64: the limit for packing them so, else the tile is centred first). */
static inline long double reference_metric(const struct tile *t, int64_t i, int64_t j, long double largest,
                                           long double *delta) {
  const struct zlg_kernel_product_args *args = &t->args;
  const long double u = unit_roundoff(args->type);
  long double sum = 0, absolute = 0;
  for (int64_t k = 0; k < args->d; k++) {
    const long double w = t->w[args->isotropic ? 0 : k];
    const long double x = w * t->x1[i * args->d + k], y = w * t->x2[j * args->d + k];
    if (is_dot(args->kind)) {
      sum += x * y;
      absolute += fabsl(x * y);
    } else {
      sum += args->kind == ZLG_LAPLACIAN ? fabsl(x - y) : (x - y) * (x - y);
    }
  }
  const long double gamma = (args->d + 8) * u;
  if (is_dot(args->kind)) {
    *delta = gamma * absolute + (args->gamma != 0 ? 2 * u * fabsl(args->offset / args->gamma) : 0);
    if (args->kind == ZLG_LINEAR) *delta = gamma * absolute;
    return sum;
  }
  const long double s = args->kind == ZLG_LAPLACIAN ? sum : sqrtl(sum);
  *delta = gamma * s;
  if (!args->isotropic)
    *delta += (args->kind == ZLG_LAPLACIAN ? (long double)args->d : sqrtl((long double)args->d)) * 4 * u * largest;
  return s;
}

static inline long double largest_coordinate(const struct tile *t) {
  long double largest = 0;
  for (int64_t e = 0; e < t->args.m * t->args.d; e++)
    largest = fmaxl(largest, fabsl(t->x1[e] * (long double)t->w[t->args.isotropic ? 0 : e % t->args.d]));
  for (int64_t e = 0; e < t->args.n * t->args.d; e++)
    largest = fmaxl(largest, fabsl(t->x2[e] * (long double)t->w[t->args.isotropic ? 0 : e % t->args.d]));
  return fminl(largest, t->args.type == ZLG_F32 ? 16 : 1024);
}

/* value = K B and bound_i = sum_j (|dK_ij| + (|K_ij| + |dK_ij|) gamma) |b_j|, with gamma for the longest chain of
 * additions: at most 256 in the tile's type (and as many lanes), then one per block in binary64. */
static inline void reference_product(struct tile *t) {
  const struct zlg_kernel_product_args *args = &t->args;
  const long double u = unit_roundoff(args->type), largest = largest_coordinate(t);
  const long double chain = fminl(args->n, 256) + 4;
  const long double gamma = chain * u + (args->n / 64 + 32) * 0x1p-53L;
  for (int64_t e = 0; e < args->m * args->r; e++) t->value[e] = t->bound[e] = 0;
  for (int64_t i = 0; i < args->m; i++)
    for (int64_t j = 0; j < args->n; j++) {
      long double delta;
      const long double s = reference_metric(t, i, j, largest, &delta);
      const long double k = reference_kernel(args, s), dk = kernel_error(args, s, delta);
      for (int64_t c = 0; c < args->r; c++) {
        const long double b = t->b[j * args->r + c];
        t->value[i * args->r + c] += k * b;
        t->bound[i * args->r + c] += (dk + (fabsl(k) + dk) * gamma) * fabsl(b);
      }
    }
}

static inline size_t view_elements(int64_t rows, int64_t columns, zlg_order order, int64_t pad) {
  const int64_t ld = (order == ZLG_ROW_MAJOR ? columns : rows) + pad;
  return (size_t)(ld * (order == ZLG_ROW_MAJOR ? rows : columns));
}

/* Copies a row-major matrix into a view of the tile's type; what lies between is filled with NaN. */
static inline void *make_operand(zlg_type type, const double *from, int64_t rows, int64_t columns, zlg_order order,
                                 int64_t pad) {
  const size_t elements = view_elements(rows, columns, order, pad);
  const size_t size = type == ZLG_F32 ? 4 : 8;
  char *to = malloc(elements * size + 1);
  for (size_t e = 0; e < elements; e++)
    if (type == ZLG_F32)
      ((float *)(void *)to)[e] = NAN;
    else
      ((double *)(void *)to)[e] = NAN;
  const int64_t ld = (order == ZLG_ROW_MAJOR ? columns : rows) + pad;
  for (int64_t i = 0; i < rows; i++)
    for (int64_t k = 0; k < columns; k++) {
      const int64_t at = order == ZLG_ROW_MAJOR ? i * ld + k : i + k * ld;
      if (type == ZLG_F32)
        ((float *)(void *)to)[at] = (float)from[i * columns + k];
      else
        ((double *)(void *)to)[at] = from[i * columns + k];
    }
  return to;
}

/* Room for a tile whose args are set; coordinates, B and w are the caller's to fill in. */
static inline void tile_allocate(struct tile *t) {
  const struct zlg_kernel_product_args *a = &t->args;
  t->x1 = calloc((size_t)(a->m * a->d) + 1, sizeof(double));
  t->x2 = calloc((size_t)(a->n * a->d) + 1, sizeof(double));
  t->b = calloc((size_t)(a->n * a->r) + 1, sizeof(double));
  t->w = calloc((size_t)a->d + 1, sizeof(double));
  for (int64_t k = 0; k < a->d; k++) t->w[k] = 1;
  t->acc = calloc((size_t)(a->m * a->r) + 1, sizeof(double));
  t->value = calloc((size_t)(a->m * a->r) + 1, sizeof(long double));
  t->bound = calloc((size_t)(a->m * a->r) + 1, sizeof(long double));
}

/* Rounds the values to the type and lays the operands out as args say. */
static inline void tile_lay_out(struct tile *t) {
  const struct zlg_kernel_product_args *a = &t->args;
  for (int64_t e = 0; e < a->m * a->d; e++) t->x1[e] = to_type(a->type, t->x1[e]);
  for (int64_t e = 0; e < a->n * a->d; e++) t->x2[e] = to_type(a->type, t->x2[e]);
  for (int64_t e = 0; e < a->n * a->r; e++) t->b[e] = to_type(a->type, t->b[e]);
  t->x1_data = make_operand(a->type, t->x1, a->m, a->d, a->x1_order, t->pad1);
  t->x2_data = make_operand(a->type, t->x2, a->n, a->d, a->x2_order, t->pad2);
  t->b_data = make_operand(a->type, t->b, a->n, a->r, a->b_order, t->padb);
}

static inline void tile_free(struct tile *t) {
  free(t->x1), free(t->x2), free(t->b), free(t->w), free(t->acc), free(t->value), free(t->bound);
  free(t->x1_data), free(t->x2_data), free(t->b_data);
}

/* Runs the implementation of the set in use. Scratch is filled with NaN, with a guard behind it: true if that is whole.
 */
static inline bool tile_run(struct tile *t) {
  const struct zlg_kernel_product_args *a = &t->args;
  const struct zlg_kernel_product_operands operands = {
      .x1 = t->x1_data,
      .ld1 = (a->x1_order == ZLG_ROW_MAJOR ? a->d : a->m) + t->pad1,
      .x2 = t->x2_data,
      .ld2 = (a->x2_order == ZLG_ROW_MAJOR ? a->d : a->n) + t->pad2,
      .b = t->b_data,
      .ldb = (a->b_order == ZLG_ROW_MAJOR ? a->r : a->n) + t->padb,
      .w = t->w,
      .acc = t->acc,
  };
  const size_t bytes = ZLG_CPU(zlg_kernel_product_scratch)(a), guard = 256;
  unsigned char *scratch = aligned_alloc(64, (bytes + guard + 63) / 64 * 64);
  memset(scratch, 0xff, bytes + guard);
  ZLG_CPU(zlg_kernel_product_cpu)(a, &operands, scratch);
  bool whole = true;
  for (size_t e = 0; e < guard; e++) whole = whole && scratch[bytes + e] == 0xff;
  free(scratch);
  return whole;
}

/* The largest |acc - value| / bound; a NaN that was not expected makes it inf. */
static inline double tile_error(const struct tile *t) {
  double worst = 0;
  for (int64_t e = 0; e < t->args.m * t->args.r; e++) {
    const long double error = fabsl(t->acc[e] - t->value[e]);
    if (!(error <= t->bound[e])) return INFINITY;
    if (t->bound[e] > 0) worst = fmax(worst, (double)(error / t->bound[e]));
  }
  return worst;
}

/* Numbers that are the same everywhere: a 64-bit linear congruential generator (Knuth's constants). */
static inline double uniform(uint64_t *state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (double)(*state >> 11) * 0x1p-53;
}

static inline void tile_fill(struct tile *t, uint64_t seed, double spread) {
  uint64_t state = seed * 2654435761u + 1;
  for (int64_t e = 0; e < t->args.m * t->args.d; e++) t->x1[e] = spread * (uniform(&state) - 0.5);
  for (int64_t e = 0; e < t->args.n * t->args.d; e++) t->x2[e] = spread * (uniform(&state) - 0.5);
  for (int64_t e = 0; e < t->args.n * t->args.r; e++) t->b[e] = uniform(&state) - 0.4;
  if (t->args.isotropic)
    for (int64_t k = 0; k < t->args.d; k++) t->w[k] = 1 / 1.3;
  else
    for (int64_t k = 0; k < t->args.d; k++) t->w[k] = 1 / (0.7 + 0.2 * (double)(k % 7));
}

static const zlg_type all_types[] = {ZLG_F32, ZLG_F64};
static const zlg_kernel_kind all_kinds[] = {
    ZLG_GAUSSIAN, ZLG_EXPONENTIAL,          ZLG_LAPLACIAN, ZLG_MATERN32, ZLG_MATERN52,   ZLG_RATIONAL_QUADRATIC,
    ZLG_CAUCHY,   ZLG_INVERSE_MULTIQUADRIC, ZLG_ENERGY,    ZLG_LINEAR,   ZLG_POLYNOMIAL, ZLG_SIGMOID};
#define COUNT(array) ((int64_t)(sizeof(array) / sizeof((array)[0])))

/* Calls the body once per instruction set that this processor has. */
static inline void each_isa(void (*body)(void)) {
  const enum zlg_isa detected = zlg_isa_detect();
  for (int isa = ZLG_ISA_BASELINE; isa <= (int)detected; isa++)
    if (zlg_isa_force((enum zlg_isa)isa) == (enum zlg_isa)isa) body();
  zlg_isa_force(detected);
}

#endif
