/* Kernel product of one tile on the CPU.
 *
 * A tile is worked off in blocks of K that stay in the first-level cache: `rows` points whose coordinates are broadcast
 * times one panel of P points that lie in the lanes. Three steps a block: the metric (squared distance, L1 distance or
 * scalar product) with a block of accumulators held in registers; the kernel function in place; the product with B.
 * With one right-hand side the last two are one loop.
 *
 * Lanes run over the outputs i (the common case: acc is then summed lane by lane), or over j where m is too small to
 * fill panels. Distances are sums of (x - y)^2 of the raw coordinates, scaled afterwards: exact for near points
 * wherever they lie.
 *
 * The text below the marker is compiled for float and double by including this file from itself. */
#ifndef REAL

#include "codelets/kernel_product/args.h"

#include <math.h>

#include "codelets/common/simd.h"

#define V 2 /* vectors in a panel */
/* Points in a register block: V * GROUP accumulators. K blocks take 16 KiB: BLOCK * P elements. */
#if ZLG_VECTOR_BYTES == 64
#define GROUP 8
#define BLOCK 128
#else
#define GROUP 4
#define BLOCK 256
#endif
#define COLUMNS (V == 2 && ZLG_VECTOR_BYTES == 64 ? 8 : 6) /* right-hand sides in a register block */
#define CHUNK 8                                            /* panels in a K block when lanes run over j */
#define COLUMN_CHUNK 512                                   /* right-hand sides for which K is computed once */
#define PACKED_X_BYTES (4 << 20)                           /* packed rows and their sums */
#define PACKED_Y_BYTES (256 << 10)

enum metric { METRIC_SQUARE, METRIC_ABS, METRIC_DOT };
/* How coordinates are packed. POWER: times a power of two (exact). SCALED: (x - centre) * weight, rounded once; where
 * the result is small. RAW: untouched, the difference is weighted in the metric. */
enum packing { PACK_POWER, PACK_SCALED, PACK_RAW };

static inline int64_t min64(int64_t a, int64_t b) {
  return a < b ? a : b;
}
static inline int64_t max64(int64_t a, int64_t b) {
  return a > b ? a : b;
}
static inline int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}
static inline size_t align64(size_t bytes) {
  return (bytes + 63) & ~(size_t)63;
}

static enum metric kernel_metric(zlg_kernel_kind kind) {
  switch (kind) {
  case ZLG_LAPLACIAN:
    return METRIC_ABS;
  case ZLG_LINEAR:
  case ZLG_POLYNOMIAL:
  case ZLG_SIGMOID:
    return METRIC_DOT;
  default:
    return METRIC_SQUARE;
  }
}

/* The blocking of one call, from sizes alone. Scratch holds, in this order, the parts whose bytes are given. */
struct plan {
  int64_t lanes, panel; /* points in a vector, in a panel */
  bool over_j;          /* lanes run over j */
  int64_t lane_points;  /* packed at once in lanes: a multiple of panel */
  int64_t group_points; /* packed at once for broadcasts: a multiple of GROUP */
  int64_t columns;      /* right-hand sides at once */
  size_t lane_bytes, group_bytes, b_bytes, k_bytes, partial_bytes, sum_bytes, weight_bytes;
};

static void make_plan(const struct zlg_kernel_product_args *args, struct plan *plan) {
  const int64_t size = args->type == ZLG_F32 ? 4 : 8;
  const int64_t d = args->d;
  plan->lanes = ZLG_VECTOR_BYTES / size;
  plan->panel = V * plan->lanes;
  plan->columns = max64(1, min64(args->r, COLUMN_CHUNK));
  /* Points computed, padding included, if lanes run over i or over j; over j costs the packing of all of x2. */
  const double cost_i = (double)ceil_div(args->m, plan->panel) * (double)plan->panel * (double)args->n;
  const double cost_j = (double)args->m * (double)ceil_div(args->n, plan->panel) * (double)plan->panel;
  plan->over_j = args->m < 3 * plan->panel && cost_i > 1.1 * cost_j;
  int64_t k_points;
  if (plan->over_j) {
    plan->lane_points = CHUNK * plan->panel;
    plan->group_points = ceil_div(args->m, GROUP) * GROUP;
    k_points = plan->group_points * plan->lane_points;
    plan->partial_bytes = align64((size_t)(args->m * plan->columns * plan->lanes * size));
    plan->sum_bytes = align64((size_t)(args->m * plan->columns * plan->lanes * 8));
    plan->b_bytes = align64((size_t)(plan->columns * plan->lane_points * size));
  } else {
    const int64_t row_bytes = d * size + plan->columns * 8;
    const int64_t panels = max64(1, min64(PACKED_X_BYTES / row_bytes / plan->panel, ceil_div(args->m, plan->panel)));
    plan->lane_points = panels * plan->panel;
    const int64_t blocks = max64(1, PACKED_Y_BYTES / ((d + plan->columns) * size * BLOCK));
    plan->group_points = min64(blocks * BLOCK, ceil_div(args->n, GROUP) * GROUP);
    k_points = BLOCK * plan->panel;
    plan->partial_bytes = align64((size_t)(plan->panel * size));
    plan->sum_bytes = align64((size_t)(plan->lane_points * plan->columns * 8));
    plan->b_bytes = align64((size_t)(plan->columns * plan->group_points * size));
  }
  plan->lane_bytes = align64((size_t)(plan->lane_points * d * size));
  plan->group_bytes = align64((size_t)(plan->group_points * d * size));
  plan->k_bytes = align64((size_t)(k_points * size));
  plan->weight_bytes = align64((size_t)d * 8);
}

size_t ZLG_ISA_FN(zlg_kernel_product_scratch)(const struct zlg_kernel_product_args *args) {
  struct plan plan;
  make_plan(args, &plan);
  return plan.lane_bytes + plan.group_bytes + plan.b_bytes + plan.k_bytes + plan.partial_bytes + plan.sum_bytes +
         2 * plan.weight_bytes + 64;
}

/* One matrix as it lies: element (i, k) at i * row + k * column. */
struct view {
  const void *data;
  int64_t row, column;
};

static struct view make_view(const void *data, zlg_order order, int64_t ld) {
  return order == ZLG_ROW_MAJOR ? (struct view){data, ld, 1} : (struct view){data, 1, ld};
}

/* The range of finite values in one dimension of a tile; inf where a value is not finite (a NaN changes nothing). */
struct range {
  double low, high;
};

/* What the metric's sum is multiplied with, once. */
static double metric_scale(const struct zlg_kernel_product_args *args, double weight) {
  return kernel_metric(args->kind) == METRIC_ABS ? weight : weight * weight;
}

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
#define FN(name) PASTE(name, BITS)

#define REAL float
#define BITS 32
#define LANES ZLG_L32
#define REAL_MAX 3.4028234663852886e38
#define REAL_NAN __builtin_nanf("")
#define DISTANCE_MAX 0x1p100f
#define COORDINATE_MAX 16.0
#include "codelets/kernel_product/cpu.c"
#undef REAL
#undef BITS
#undef LANES
#undef REAL_MAX
#undef REAL_NAN
#undef DISTANCE_MAX
#undef COORDINATE_MAX

#define REAL double
#define BITS 64
#define LANES ZLG_L64
#define REAL_MAX 1.7976931348623157e308
#define REAL_NAN __builtin_nan("")
#define DISTANCE_MAX 0x1p1000
#define COORDINATE_MAX 1024.0
#include "codelets/kernel_product/cpu.c"

void ZLG_ISA_FN(zlg_kernel_product_cpu)(const struct zlg_kernel_product_args *args,
                                        const struct zlg_kernel_product_operands *operands, void *scratch) {
  if (args->m <= 0 || args->r <= 0) return;
  if (args->type == ZLG_F32)
    tile32(args, operands, scratch);
  else
    tile64(args, operands, scratch);
}

#else /* once per type: REAL, BITS, LANES, … */

typedef FN(zlg_v) FN(vec);
#define VEC FN(vec)
#define PANEL (V * LANES)

/* Everything that a tile's steps share. */
struct FN(tile) {
  const struct zlg_kernel_product_args *args;
  struct plan plan;
  enum packing packing;
  const double *w, *centre; /* SCALED, RAW */
  REAL power;               /* POWER */
  REAL *weights;            /* RAW: in the tile's type */
  REAL c0, c1, c2;          /* of the kernel function */
  REAL *lane_points, *group_points, *b, *k, *partial;
  double *sum;
};

/* ---- packing ---- */

ZLG_INLINE REAL FN(coordinate)(const struct FN(tile) * t, REAL x, int64_t k) {
  if (t->packing == PACK_POWER)
    x *= t->power;
  else if (t->packing == PACK_SCALED)
    x = (REAL)(((double)x - t->centre[k]) * t->w[k]);
  return x == x ? x : REAL_NAN; /* without payload, see zlg_exp2 */
}

/* Points first … first + count of a matrix in lanes: element k of point p at (p / P * d + k) * P + p % P; zeros fill
 * the last panel. */
static void FN(pack_lanes)(const struct FN(tile) * t, struct view view, int64_t first, int64_t count, REAL *to) {
  const int64_t d = t->args->d;
  const REAL *from = (const REAL *)view.data + first * view.row;
  for (int64_t p = 0; p < count; p += PANEL, to += d * PANEL) {
    const int64_t lanes = min64(PANEL, count - p);
    for (int64_t k = 0; k < d; k++) {
      for (int64_t l = 0; l < lanes; l++)
        to[k * PANEL + l] = FN(coordinate)(t, from[(p + l) * view.row + k * view.column], k);
      for (int64_t l = lanes; l < PANEL; l++) to[k * PANEL + l] = 0;
    }
  }
}

/* The same in groups for broadcasts: element k of point p at (p / GROUP * d + k) * GROUP + p % GROUP. */
static void FN(pack_groups)(const struct FN(tile) * t, struct view view, int64_t first, int64_t count, REAL *to) {
  const int64_t d = t->args->d;
  const REAL *from = (const REAL *)view.data + first * view.row;
  for (int64_t p = 0; p < count; p += GROUP, to += d * GROUP)
    for (int64_t l = 0; l < GROUP; l++)
      for (int64_t k = 0; k < d; k++)
        to[k * GROUP + l] = p + l < count ? FN(coordinate)(t, from[(p + l) * view.row + k * view.column], k) : 0;
}

/* ---- the metric ---- */

/* `rows` points of one group (1, 2, 4 or GROUP of them, from its member `at`) against a panel: s[rows][V]. Dimensions
 * k0 … k1; `more`: added to what s holds. FMA slots per pair: d (SQUARE, DOT), 2 d careful; ABS none, 2 d adds. */
ZLG_INLINE void FN(metric_block)(enum metric metric, bool careful, int rows, const REAL *x, const REAL *y,
                                 const REAL *w, int64_t k0, int64_t k1, bool more, REAL *s) {
  VEC sum[GROUP][V];
#pragma GCC unroll 8
  for (int j = 0; j < rows; j++)
#pragma GCC unroll 4
    for (int v = 0; v < V; v++) sum[j][v] = more ? *(const VEC *)(s + j * PANEL + v * LANES) : (VEC){0};
  for (int64_t k = k0; k < k1; k++) {
    VEC xv[V];
#pragma GCC unroll 4
    for (int v = 0; v < V; v++) xv[v] = *(const VEC *)(x + k * PANEL + v * LANES);
#pragma GCC unroll 8
    for (int j = 0; j < rows; j++) {
      const REAL yj = y[k * GROUP + j];
#pragma GCC unroll 4
      for (int v = 0; v < V; v++) {
        if (metric == METRIC_DOT) {
          sum[j][v] += xv[v] * yj;
          continue;
        }
        VEC difference = xv[v] - yj;
        if (careful) difference *= w[k];
        if (metric == METRIC_ABS)
          sum[j][v] += FN(zlg_abs)(difference);
        else
          sum[j][v] += difference * difference;
      }
    }
  }
#pragma GCC unroll 8
  for (int j = 0; j < rows; j++)
#pragma GCC unroll 4
    for (int v = 0; v < V; v++) *(VEC *)(s + j * PANEL + v * LANES) = sum[j][v];
}

/* `count` points from the start of a group against a panel. */
ZLG_INLINE void FN(metric_rows)(enum metric metric, bool careful, int64_t d, int64_t k0, int64_t k1, bool more,
                                const REAL *x, const REAL *y, const REAL *w, int64_t count, REAL *s) {
  for (; count >= GROUP; count -= GROUP, y += d * GROUP, s += GROUP * PANEL)
    FN(metric_block)(metric, careful, GROUP, x, y, w, k0, k1, more, s);
  if (GROUP > 4 && count >= 4) {
    FN(metric_block)(metric, careful, 4, x, y, w, k0, k1, more, s);
    count -= 4, y += 4, s += 4 * PANEL;
  }
  if (count >= 2) {
    FN(metric_block)(metric, careful, 2, x, y, w, k0, k1, more, s);
    count -= 2, y += 2, s += 2 * PANEL;
  }
  if (count) FN(metric_block)(metric, careful, 1, x, y, w, k0, k1, more, s);
}

/* Dimensions are taken in pieces whose panel stays in the first-level cache; the order of additions is that of k. */
#define PIECE (16384 / (V * ZLG_VECTOR_BYTES))
ZLG_INLINE void FN(metric_all)(enum metric metric, bool careful, int64_t d, const REAL *x, const REAL *y, const REAL *w,
                               int64_t count, REAL *s) {
  if (d == 3)
    FN(metric_rows)(metric, careful, 3, 0, 3, false, x, y, w, count, s);
  else if (d == 2)
    FN(metric_rows)(metric, careful, 2, 0, 2, false, x, y, w, count, s);
  else if (d == 1)
    FN(metric_rows)(metric, careful, 1, 0, 1, false, x, y, w, count, s);
  else
    for (int64_t k = 0; k < d; k += PIECE)
      FN(metric_rows)(metric, careful, d, k, min64(d, k + PIECE), k > 0, x, y, w, count, s);
}
#undef PIECE

static void FN(metric)(const struct FN(tile) * t, const REAL *x, const REAL *y, int64_t count, REAL *s) {
  const int64_t d = t->args->d;
  const bool careful = t->packing == PACK_RAW;
  switch (kernel_metric(t->args->kind)) {
  case METRIC_DOT:
    FN(metric_all)(METRIC_DOT, false, d, x, y, NULL, count, s);
    break;
  case METRIC_ABS:
    if (careful)
      FN(metric_all)(METRIC_ABS, true, d, x, y, t->weights, count, s);
    else
      FN(metric_all)(METRIC_ABS, false, d, x, y, NULL, count, s);
    break;
  case METRIC_SQUARE:
    if (careful)
      FN(metric_all)(METRIC_SQUARE, true, d, x, y, t->weights, count, s);
    else
      FN(metric_all)(METRIC_SQUARE, false, d, x, y, NULL, count, s);
    break;
  }
}

/* ---- the kernel functions of the metric's value ---- */

/* Constants; `scale` turns the metric's sum into r^2, r1 or p of zellige/kernel.h. Clamped, so that 0 * scale is never
 * NaN. */
static void FN(set_constants)(struct FN(tile) * t, double scale) {
  const double log2e = 0x1.71547652b82fep0;
  const struct zlg_kernel_product_args *args = t->args;
  double c0 = scale, c1 = 0, c2 = 0;
  switch (args->kind) {
  case ZLG_GAUSSIAN:
    c0 = -0.5 * log2e * scale;
    break;
  case ZLG_LAPLACIAN:
    c0 = -log2e * scale;
    break;
  case ZLG_EXPONENTIAL:
  case ZLG_MATERN12:
    c0 = -log2e * sqrt(scale);
    break;
  case ZLG_MATERN32:
    c1 = sqrt(3 * scale);
    c0 = -log2e * c1;
    break;
  case ZLG_MATERN52:
    c1 = sqrt(5 * scale);
    c0 = -log2e * c1;
    c2 = 5 * scale / 3;
    break;
  case ZLG_RATIONAL_QUADRATIC:
    c0 = scale / (2 * args->alpha);
    c1 = -args->alpha;
    break;
  case ZLG_ENERGY:
    c0 = -sqrt(scale);
    break;
  case ZLG_LINEAR:
    c1 = args->offset;
    break;
  case ZLG_POLYNOMIAL:
  case ZLG_SIGMOID:
    c0 = args->gamma * scale;
    c1 = args->offset;
    break;
  case ZLG_INVERSE_MULTIQUADRIC:
  case ZLG_CAUCHY:
    break;
  }
  t->c0 = (REAL)fmax(-REAL_MAX, fmin(c0, REAL_MAX));
  t->c1 = (REAL)fmax(-REAL_MAX, fmin(c1, REAL_MAX));
  t->c2 = (REAL)fmin(c2, REAL_MAX);
}

/* x^degree by repeated squaring. */
ZLG_INLINE VEC FN(power)(VEC x, int degree) {
  VEC result = FN(zlg_set)(1);
  for (; degree > 0; degree >>= 1, x *= x)
    if (degree & 1) result *= x;
  return result;
}

ZLG_INLINE VEC FN(kernel)(zlg_kernel_kind kind, const struct FN(tile) * t, VEC s) {
  const VEC far = FN(zlg_set)(DISTANCE_MAX); /* exp() of it is 0, and its square is finite */
  VEC r;
  switch (kind) {
  case ZLG_GAUSSIAN:
  case ZLG_LAPLACIAN:
    return FN(zlg_exp2_)(s * t->c0);
  case ZLG_EXPONENTIAL:
  case ZLG_MATERN12:
    return FN(zlg_exp2_)(FN(zlg_sqrt)(s) * t->c0);
  case ZLG_MATERN32:
    r = FN(zlg_sqrt)(FN(zlg_min)(far, s));
    return (1 + r * t->c1) * FN(zlg_exp2_)(r * t->c0);
  case ZLG_MATERN52:
    s = FN(zlg_min)(far, s);
    r = FN(zlg_sqrt)(s);
    return (1 + r * t->c1 + s * t->c2) * FN(zlg_exp2_)(r * t->c0);
  case ZLG_RATIONAL_QUADRATIC:
    return FN(zlg_exp2_)(FN(zlg_log2p1_)(s * t->c0) * t->c1);
  case ZLG_INVERSE_MULTIQUADRIC:
    return 1 / FN(zlg_sqrt)(1 + s * t->c0);
  case ZLG_CAUCHY:
    return 1 / (1 + s * t->c0);
  case ZLG_ENERGY:
    return FN(zlg_sqrt)(s) * t->c0;
  case ZLG_LINEAR:
    return s * t->c0 + t->c1;
  case ZLG_POLYNOMIAL:
    return FN(power)(s * t->c0 + t->c1, t->args->degree);
  case ZLG_SIGMOID:
    return FN(zlg_tanh)(s * t->c0 + t->c1);
  }
  return s;
}

/* K in place, `count` vectors. */
ZLG_INLINE void FN(apply_kind)(zlg_kernel_kind kind, const struct FN(tile) * t, int64_t count, REAL *s) {
  for (int64_t e = 0; e < count * LANES; e += LANES) *(VEC *)(s + e) = FN(kernel)(kind, t, *(const VEC *)(s + e));
}

/* partial[l] = sum over j of K[j][l] b[j], K from the metric's values. */
ZLG_INLINE void FN(sum_kind)(zlg_kernel_kind kind, const struct FN(tile) * t, int64_t count, const REAL *s,
                             const REAL *b, REAL *partial) {
  VEC sum[V] = {{0}};
  for (int64_t j = 0; j < count; j++, s += PANEL)
#pragma GCC unroll 4
    for (int v = 0; v < V; v++) sum[v] += FN(kernel)(kind, t, *(const VEC *)(s + v * LANES)) * b[j];
#pragma GCC unroll 4
  for (int v = 0; v < V; v++) *(VEC *)(partial + v * LANES) = sum[v];
}

/* Each kernel gets loops of its own. */
#define EACH_KERNEL(call)                                                                                              \
  switch (t->args->kind) {                                                                                             \
  case ZLG_LAPLACIAN:                                                                                                  \
  case ZLG_GAUSSIAN:                                                                                                   \
    call(ZLG_GAUSSIAN);                                                                                                \
    break;                                                                                                             \
  case ZLG_MATERN12:                                                                                                   \
  case ZLG_EXPONENTIAL:                                                                                                \
    call(ZLG_EXPONENTIAL);                                                                                             \
    break;                                                                                                             \
  case ZLG_MATERN32:                                                                                                   \
    call(ZLG_MATERN32);                                                                                                \
    break;                                                                                                             \
  case ZLG_MATERN52:                                                                                                   \
    call(ZLG_MATERN52);                                                                                                \
    break;                                                                                                             \
  case ZLG_RATIONAL_QUADRATIC:                                                                                         \
    call(ZLG_RATIONAL_QUADRATIC);                                                                                      \
    break;                                                                                                             \
  case ZLG_INVERSE_MULTIQUADRIC:                                                                                       \
    call(ZLG_INVERSE_MULTIQUADRIC);                                                                                    \
    break;                                                                                                             \
  case ZLG_CAUCHY:                                                                                                     \
    call(ZLG_CAUCHY);                                                                                                  \
    break;                                                                                                             \
  case ZLG_ENERGY:                                                                                                     \
    call(ZLG_ENERGY);                                                                                                  \
    break;                                                                                                             \
  case ZLG_LINEAR:                                                                                                     \
    call(ZLG_LINEAR);                                                                                                  \
    break;                                                                                                             \
  case ZLG_POLYNOMIAL:                                                                                                 \
    call(ZLG_POLYNOMIAL);                                                                                              \
    break;                                                                                                             \
  case ZLG_SIGMOID:                                                                                                    \
    call(ZLG_SIGMOID);                                                                                                 \
    break;                                                                                                             \
  }

static void FN(apply_kernel)(const struct FN(tile) * t, int64_t count, REAL *s) {
#define APPLY(kind) FN(apply_kind)(kind, t, count, s)
  EACH_KERNEL(APPLY)
#undef APPLY
}

static void FN(sum_kernel)(const struct FN(tile) * t, int64_t count, const REAL *s, const REAL *b, REAL *partial) {
#define SUM(kind) FN(sum_kind)(kind, t, count, s, b, partial)
  EACH_KERNEL(SUM)
#undef SUM
}

/* ---- the product with B, lanes over i ---- */

/* Columns of right-hand sides are cut into ceil(r / COLUMNS) strips of nearly equal width, each packed [j][width]. */
struct FN(strips) {
  int64_t count, wide, width; /* the first `wide` have `width` columns, the others one less */
};
static struct FN(strips) FN(cut)(int64_t columns) {
  const int64_t count = ceil_div(columns, COLUMNS);
  const int64_t width = ceil_div(columns, count);
  return (struct FN(strips)){count, columns - (width - 1) * count, width};
}

static void FN(pack_b)(struct view view, int64_t first, int64_t count, int64_t column, int64_t columns, REAL *to) {
  const struct FN(strips) strips = FN(cut)(columns);
  const REAL *from = (const REAL *)view.data + first * view.row + column * view.column;
  for (int64_t s = 0; s < strips.count; s++) {
    const int64_t width = strips.width - (s >= strips.wide);
    for (int64_t j = 0; j < count; j++)
      for (int64_t c = 0; c < width; c++) to[j * width + c] = from[j * view.row + c * view.column];
    to += count * width;
    from += width * view.column;
  }
}

/* sum[c][l] += sum over j of k[j][l] b[j][c], in the tile's type over this block, then in binary64. FMA slots per pair:
 * `width`. */
ZLG_INLINE void FN(multiply_strip)(int width, int64_t count, const REAL *k, const REAL *b, double *sum) {
  VEC c[COLUMNS][V];
#pragma GCC unroll 8
  for (int i = 0; i < width; i++)
#pragma GCC unroll 4
    for (int v = 0; v < V; v++) c[i][v] = (VEC){0};
  for (int64_t j = 0; j < count; j++, k += PANEL, b += width) {
    VEC kv[V];
#pragma GCC unroll 4
    for (int v = 0; v < V; v++) kv[v] = *(const VEC *)(k + v * LANES);
#pragma GCC unroll 8
    for (int i = 0; i < width; i++)
#pragma GCC unroll 4
      for (int v = 0; v < V; v++) c[i][v] += kv[v] * b[i];
  }
  REAL block[COLUMNS * PANEL] __attribute__((aligned(64)));
#pragma GCC unroll 8
  for (int i = 0; i < width; i++)
#pragma GCC unroll 4
    for (int v = 0; v < V; v++) *(VEC *)(block + i * PANEL + v * LANES) = c[i][v];
  for (int e = 0; e < width * PANEL; e++) sum[e] += (double)block[e];
}

static void FN(multiply_width)(int64_t width, int64_t count, const REAL *k, const REAL *b, double *sum) {
  switch (width) {
#define WIDTH(n)                                                                                                       \
  case n:                                                                                                              \
    FN(multiply_strip)(n, count, k, b, sum);                                                                           \
    break;
    WIDTH(1)
    WIDTH(2)
    WIDTH(3) WIDTH(4) WIDTH(5) WIDTH(6)
#if ZLG_VECTOR_BYTES == 64
        WIDTH(7) WIDTH(8)
#endif
#undef WIDTH
  }
}

/* All columns; b is the packed chunk of `packed` points, of which the block takes `count` from `at`. */
static void FN(multiply)(int64_t columns, int64_t packed, int64_t at, int64_t count, const REAL *k, const REAL *b,
                         double *sum) {
  const struct FN(strips) strips = FN(cut)(columns);
  for (int64_t s = 0; s < strips.count; s++) {
    const int64_t width = strips.width - (s >= strips.wide);
    FN(multiply_width)(width, count, k, b + at * width, sum);
    b += packed * width;
    sum += width * PANEL;
  }
}

/* One panel against the packed points j. */
static void FN(panel_over_i)(const struct FN(tile) * t, const REAL *x, int64_t n, int64_t columns, double *sum) {
  for (int64_t j = 0; j < n; j += BLOCK) {
    const int64_t count = min64(BLOCK, n - j);
    FN(metric)(t, x, t->group_points + j * t->args->d, count, t->k);
    if (columns == 1) {
      FN(sum_kernel)(t, count, t->k, t->b + j, t->partial);
      for (int l = 0; l < PANEL; l++) sum[l] += (double)t->partial[l];
    } else {
      FN(apply_kernel)(t, count * V, t->k);
      FN(multiply)(columns, n, j, count, t->k, t->b, sum);
    }
  }
}

static void FN(store_over_i)(const struct FN(tile) * t, int64_t first, int64_t rows, int64_t column, int64_t columns,
                             double *acc) {
  for (int64_t i = 0; i < rows; i++) {
    const double *sum = t->sum + (i / PANEL * columns * PANEL + i % PANEL);
    double *to = acc + (first + i) * t->args->r + column;
    if (t->args->first)
      for (int64_t c = 0; c < columns; c++) to[c] = sum[c * PANEL];
    else
      for (int64_t c = 0; c < columns; c++) to[c] += sum[c * PANEL];
  }
}

static void FN(tile_over_i)(const struct FN(tile) * t, struct view x1, struct view x2, struct view b, double *acc) {
  const struct zlg_kernel_product_args *args = t->args;
  for (int64_t c = 0; c < args->r; c += t->plan.columns) {
    const int64_t columns = min64(t->plan.columns, args->r - c);
    for (int64_t i = 0; i < args->m; i += t->plan.lane_points) {
      const int64_t rows = min64(t->plan.lane_points, args->m - i);
      FN(pack_lanes)(t, x1, i, rows, t->lane_points);
      memset(t->sum, 0, (size_t)(ceil_div(rows, PANEL) * PANEL * columns) * sizeof(double));
      for (int64_t j = 0; j < args->n; j += t->plan.group_points) {
        const int64_t n = min64(t->plan.group_points, args->n - j);
        FN(pack_groups)(t, x2, j, n, t->group_points);
        FN(pack_b)(b, j, n, c, columns, t->b);
        for (int64_t p = 0; p < rows; p += PANEL)
          FN(panel_over_i)(t, t->lane_points + p * args->d, n, columns, t->sum + p * columns);
      }
      FN(store_over_i)(t, i, rows, c, columns, acc);
    }
  }
}

/* ---- lanes over j ---- */

/* B by columns, `columns` of plan.lane_points each, zeros behind the end. */
static void FN(pack_b_lanes)(const struct FN(tile) * t, struct view view, int64_t first, int64_t count, int64_t column,
                             int64_t columns, REAL *to) {
  const REAL *from = (const REAL *)view.data + first * view.row + column * view.column;
  for (int64_t c = 0; c < columns; c++, to += t->plan.lane_points, from += view.column) {
    for (int64_t j = 0; j < count; j++) to[j] = from[j * view.row];
    for (int64_t j = count; j < t->plan.lane_points; j++) to[j] = 0;
  }
}

/* partial[i][c] (vectors) += sum over the chunk's vectors of k[i] b[c]; k is [panel][m][P]. */
static void FN(multiply_over_j)(const struct FN(tile) * t, int64_t panels, int64_t columns) {
  const int64_t m = t->args->m, stride = t->plan.lane_points;
  for (int64_t i = 0; i < m; i++)
    for (int64_t c = 0; c < columns; c += 4) {
      const int64_t width = min64(4, columns - c);
      VEC sum[4] = {{0}};
      for (int64_t p = 0; p < panels; p++)
        for (int v = 0; v < V; v++) {
          const VEC k = *(const VEC *)(t->k + (p * m + i) * PANEL + v * LANES);
          const REAL *b = t->b + c * stride + p * PANEL + v * LANES;
          if (width == 4)
#pragma GCC unroll 4
            for (int e = 0; e < 4; e++) sum[e] += k * *(const VEC *)(b + e * stride);
          else
            for (int e = 0; e < width; e++) sum[e] += k * *(const VEC *)(b + e * stride);
        }
      for (int e = 0; e < width; e++) *(VEC *)(t->partial + (i * columns + c + e) * LANES) += sum[e];
    }
}

/* Lanes behind the end of x2 hold the kernel at a made-up point: nothing of it may reach a sum. */
static void FN(clear_behind)(const struct FN(tile) * t, int64_t count) {
  if (count % PANEL == 0) return;
  const int64_t m = t->args->m;
  for (int64_t i = 0; i < m; i++)
    for (int64_t l = count % PANEL; l < PANEL; l++) t->k[(count / PANEL * m + i) * PANEL + l] = 0;
}

static void FN(flush_partial)(const struct FN(tile) * t, int64_t count) {
  for (int64_t e = 0; e < count; e++) t->sum[e] += (double)t->partial[e];
  memset(t->partial, 0, (size_t)count * sizeof(REAL));
}

static void FN(tile_over_j)(const struct FN(tile) * t, struct view x1, struct view x2, struct view b, double *acc) {
  const struct zlg_kernel_product_args *args = t->args;
  const int64_t m = args->m, chunk = t->plan.lane_points;
  FN(pack_groups)(t, x1, 0, m, t->group_points);
  for (int64_t c = 0; c < args->r; c += t->plan.columns) {
    const int64_t columns = min64(t->plan.columns, args->r - c);
    const int64_t sums = m * columns * LANES;
    memset(t->sum, 0, (size_t)sums * sizeof(double));
    memset(t->partial, 0, (size_t)sums * sizeof(REAL));
    int chunks = 0;
    for (int64_t j = 0; j < args->n; j += chunk) {
      const int64_t n = min64(chunk, args->n - j), panels = ceil_div(n, PANEL);
      FN(pack_lanes)(t, x2, j, n, t->lane_points);
      FN(pack_b_lanes)(t, b, j, n, c, columns, t->b);
      for (int64_t p = 0; p < panels; p++)
        FN(metric)(t, t->lane_points + p * PANEL * args->d, t->group_points, m, t->k + p * m * PANEL);
      FN(apply_kernel)(t, panels * m * V, t->k);
      FN(clear_behind)(t, n);
      FN(multiply_over_j)(t, panels, columns);
      if (++chunks % 16 == 0) FN(flush_partial)(t, sums); /* at most 256 terms are added in the tile's type */
    }
    FN(flush_partial)(t, sums);
    for (int64_t e = 0; e < m * columns; e++) {
      double sum = 0;
      for (int l = 0; l < LANES; l++) sum += t->sum[e * LANES + l];
      double *to = acc + e / columns * args->r + c + e % columns;
      *to = args->first ? sum : *to + sum;
    }
  }
}

/* ---- how coordinates are scaled ---- */

static void FN(extend)(struct view view, int64_t rows, int64_t k, struct range *range) {
  const REAL *from = (const REAL *)view.data + k * view.column;
  REAL low = (REAL)range->low, high = (REAL)range->high;
  for (int64_t i = 0; i < rows; i++) {
    const REAL x = from[i * view.row];
    low = x < low ? x : low;
    high = x > high ? x : high;
  }
  range->low = low;
  range->high = high;
}

static struct range FN(range)(const struct FN(tile) * t, struct view x1, struct view x2, int64_t k) {
  struct range range = {INFINITY, -INFINITY};
  FN(extend)(x1, t->args->m, k, &range);
  FN(extend)(x2, t->args->n, k, &range);
  return range.low <= range.high ? range : (struct range){0, 0};
}

/* Sets packing (see enum packing) and, with it, the scale of the metric's sum. `centre` is room for d numbers. */
static double FN(choose_packing)(struct FN(tile) * t, struct view x1, struct view x2, double *centre) {
  const struct zlg_kernel_product_args *args = t->args;
  const enum metric metric = kernel_metric(args->kind);
  t->centre = centre;
  t->power = 1;
  if (args->isotropic) {
    t->packing = PACK_POWER;
    /* Ordinary lengthscales leave the coordinates alone; extreme ones are brought into range by a power of two, which
     * is exact, unless coordinates would leave the range by it. */
    int exponent = ilogb(t->w[0]);
    if (abs(exponent) <= 20) return metric_scale(args, t->w[0]);
    exponent = (int)max64(-100, min64(exponent, 100));
    double largest = 1;
    for (int64_t k = 0; k < args->d; k++) {
      const struct range range = FN(range)(t, x1, x2, k);
      largest = fmax(largest, fmax(-range.low, range.high));
    }
    if (exponent > 0 && isfinite(largest)) exponent = (int)min64(exponent, max64(0, 100 - ilogb(largest)));
    t->power = (REAL)ldexp(1, exponent);
    return metric_scale(args, ldexp(t->w[0], -exponent));
  }
  t->packing = PACK_SCALED;
  for (int64_t k = 0; k < args->d; k++) centre[k] = 0;
  if (metric == METRIC_DOT) return 1;
  bool small = true, centred_small = true;
  for (int64_t k = 0; k < args->d; k++) {
    const struct range range = FN(range)(t, x1, x2, k);
    small = small && fmax(-range.low, range.high) * args->d >= 0 &&
            fmax(-range.low, range.high) * t->w[k] <= COORDINATE_MAX;
    centred_small = centred_small && (range.high - range.low) * 0.5 * t->w[k] <= COORDINATE_MAX;
    centre[k] = range.low + (range.high - range.low) * 0.5;
  }
  if (small)
    for (int64_t k = 0; k < args->d; k++) centre[k] = 0;
  else if (!centred_small)
    t->packing = PACK_RAW;
  for (int64_t k = 0; k < args->d; k++) t->weights[k] = (REAL)t->w[k];
  return 1;
}

static void FN(tile)(const struct zlg_kernel_product_args *args, const struct zlg_kernel_product_operands *operands,
                     void *scratch) {
  struct FN(tile) t = {.args = args, .w = operands->w};
  make_plan(args, &t.plan);
  char *at = (char *)(((uintptr_t)scratch + 63) & ~(uintptr_t)63);
#define TAKE(pointer, bytes) ((pointer) = (void *)at, at += (bytes))
  double *centre;
  TAKE(t.lane_points, t.plan.lane_bytes);
  TAKE(t.group_points, t.plan.group_bytes);
  TAKE(t.b, t.plan.b_bytes);
  TAKE(t.k, t.plan.k_bytes);
  TAKE(t.partial, t.plan.partial_bytes);
  TAKE(t.sum, t.plan.sum_bytes);
  TAKE(centre, t.plan.weight_bytes);
  TAKE(t.weights, t.plan.weight_bytes);
#undef TAKE
  const struct view x1 = make_view(operands->x1, args->x1_order, operands->ld1);
  const struct view x2 = make_view(operands->x2, args->x2_order, operands->ld2);
  const struct view b = make_view(operands->b, args->b_order, operands->ldb);
  FN(set_constants)(&t, FN(choose_packing)(&t, x1, x2, centre));
  if (t.plan.over_j)
    FN(tile_over_j)(&t, x1, x2, b, operands->acc);
  else
    FN(tile_over_i)(&t, x1, x2, b, operands->acc);
}

#undef VEC
#undef PANEL
#endif
