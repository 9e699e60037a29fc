/* Kernel product of one tile on the CPU.
 *
 * A tile is worked off in blocks of K that stay in the first-level cache: `rows` points whose coordinates are broadcast
 * times one panel of P points that lie in the lanes. Three steps a block: the metric (squared distance, L1 distance or
 * scalar product) with a block of accumulators held in registers; the kernel function in place; the product with B.
 * With one or two right-hand sides the last two are one loop.
 *
 * Lanes run over the outputs i (the common case: acc is then summed lane by lane), or over j where m is too small to
 * fill panels. Distances are sums of (x - y)^2 of the raw coordinates, scaled afterwards: exact for near points
 * wherever they lie.
 *
 * The expanded form |x|^2 + |y|^2 - 2xy would leave the subtractions out, cost three operations a pair more and its
 * accuracy far from the origin. AMD's cores since Zen subtract beside the multipliers: there the Gaussian kernel issues
 * as many multiply-adds a second as the linear one, which subtracts nothing (Zen 5, d = 10, 50, 100, f32 and f64: 0.97
 * to 1.02 times as many). Nothing is to be gained, and it is not built.
 *
 * The text below the marker is compiled for float and double by including this file from itself. */
#ifndef REAL

#include "codelets/kernel_product/args.h"

#include <math.h>

#include "codelets/common/simd.h"

#define EACH ZLG_EACH_VECTOR
#define ROWS_ROOTED (ZLG_VECTOR_BYTES == 64 ? 4 : 2) /* even, a divisor of GROUP */
#define FEW 2                                        /* right-hand sides that are summed where K is computed */
#define V 2                                          /* vectors in a panel */
/* Points in a register block: V * GROUP accumulators. K blocks take 16 KiB: BLOCK * P elements. */
#if ZLG_VECTOR_BYTES == 64
#define GROUP 8
#define BLOCK 128
#else
#define GROUP 6
#define BLOCK 252
#endif
#define COLUMNS (V == 2 && ZLG_VECTOR_BYTES == 64 ? 8 : 6) /* right-hand sides in a register block */
#define CHUNK 8                                            /* panels in a K block when lanes run over j, at least */
#define CHUNK_MOST 16                                      /* and at most */
#define AHEAD 4096                                         /* bytes, see ask_ahead */
#define K_BYTES (16 << 10)
#define COLUMN_CHUNK 512         /* right-hand sides for which K is computed once */
#define PACKED_X_BYTES (4 << 20) /* packed rows and their sums */
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
/* Asks for the cache lines AHEAD of `bytes` that are about to be read in order. With few rows there is little to
 * compute for a point: the processor's own prefetching stops whenever computing does, and starts anew; this keeps it
 * going (Zen 5, one row: 1.7 times the rate). Behind the end it asks for what nobody reads, which is harmless. */
ZLG_INLINE void ask_ahead(const void *from, int64_t bytes) {
  for (int64_t at = 0; at < bytes; at += 64)
    __builtin_prefetch((const void *)((uintptr_t)from + AHEAD + (uintptr_t)at));
}
static inline size_t align64(size_t bytes) {
  return (bytes + 63) & ~(size_t)63;
}

ZLG_INLINE enum metric kernel_metric(zlg_kernel_kind kind) {
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

/* Indices for __builtin_shuffle of 16-byte vectors. */
typedef int32_t short_index_32 __attribute__((vector_size(16)));
typedef int64_t short_index_64 __attribute__((vector_size(16)));
#define SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (FN(short_index)){__VA_ARGS__})

/* Some rational quadratics are kernels without powers: 1 / (1 + r^2 / 2) for alpha = 1, (1 + r^2)^(-1/2) for 1/2. */
static zlg_kernel_kind same_kernel(const struct zlg_kernel_product_args *args) {
  if (args->kind == ZLG_RATIONAL_QUADRATIC && args->alpha == 1) return ZLG_CAUCHY;
  if (args->kind == ZLG_RATIONAL_QUADRATIC && args->alpha == 0.5) return ZLG_INVERSE_MULTIQUADRIC;
  return args->kind;
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
    /* The fewer the rows, the longer the chunk: its fixed costs, and the wait of the first loads for the stores of the
     * packing, are shared by more points. K takes at most K_BYTES where it may be so little. */
    const int64_t chunk = max64(CHUNK, min64(CHUNK_MOST, K_BYTES / (args->m * plan->panel * size)));
    plan->lane_points = max64(1, min64(chunk, PACKED_Y_BYTES / (plan->panel * d * size))) * plan->panel;
    plan->group_points = ceil_div(args->m, GROUP) * GROUP;
    k_points = plan->group_points * plan->lane_points + GROUP * plan->panel;
    plan->partial_bytes = align64((size_t)(args->m * plan->columns * plan->lanes * size));
    plan->sum_bytes = align64((size_t)(args->m * plan->columns * plan->lanes * 8));
    plan->b_bytes = align64((size_t)(plan->columns * plan->lane_points * size));
  } else {
    const int64_t row_bytes = d * size + plan->columns * 8;
    const int64_t panels = max64(1, min64(PACKED_X_BYTES / row_bytes / plan->panel, ceil_div(args->m, plan->panel)));
    plan->lane_points = panels * plan->panel;
    /* Whole blocks; in very many dimensions less than one. */
    const int64_t point_bytes = (d + plan->columns) * size, blocks = max64(1, PACKED_Y_BYTES / (point_bytes * BLOCK));
    const int64_t points = max64(4 * GROUP, min64(blocks * BLOCK, 4 * PACKED_Y_BYTES / point_bytes / GROUP * GROUP));
    plan->group_points = min64(points, ceil_div(args->n, GROUP) * GROUP);
    k_points = (BLOCK + GROUP) * plan->panel;
    plan->partial_bytes = align64((size_t)(FEW * plan->panel * size));
    plan->sum_bytes = align64((size_t)(plan->lane_points * plan->columns * 8));
    plan->b_bytes = align64((size_t)(plan->columns * plan->group_points * size));
  }
  plan->lane_bytes = align64((size_t)(plan->lane_points * d * size));
  plan->group_bytes = align64((size_t)((plan->group_points + GROUP) * d * size));
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

/* do(0), do(1), … for the lanes of a vector. */
#define EACH_2(do)                                                                                                     \
  do (0), do(1)
#define EACH_4(do) EACH_2(do), do(2), do(3)
#define EACH_8(do) EACH_4(do), do(4), do(5), do(6), do(7)
#define EACH_16(do) EACH_8(do), do(8), do(9), do(10), do(11), do(12), do(13), do(14), do(15)

#if ZLG_VECTOR_BYTES == 64
#define EACH_LANE_32 EACH_16
#define EACH_LANE_64 EACH_8
#elif ZLG_VECTOR_BYTES == 32
#define EACH_LANE_32 EACH_8
#define EACH_LANE_64 EACH_4
#else
#define EACH_LANE_32 EACH_4
#define EACH_LANE_64 EACH_2
#endif
#define INVERSE_OF_3 (LANES == 16 ? 11 : LANES == 2 ? 1 : 3) /* 3 * INVERSE_OF_3 % LANES == 1 */

#define EACH_KERNEL(do)                                                                                                 \
  do                                                                                                                    \
  (ZLG_GAUSSIAN) do(ZLG_EXPONENTIAL) do(ZLG_LAPLACIAN) do(ZLG_MATERN32) do(ZLG_MATERN52) do(ZLG_RATIONAL_QUADRATIC) do( \
      ZLG_INVERSE_MULTIQUADRIC) do(ZLG_CAUCHY) do(ZLG_ENERGY) do(ZLG_LINEAR) do(ZLG_POLYNOMIAL) do(ZLG_SIGMOID)

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
#define OP(name) PASTE(name, BITS)
#define FN(name) PASTE(PASTE(name, _), BITS)

#define REAL float
#define ROWS (ZLG_VECTOR_BYTES == 64 ? 4 : 2) /* points whose kernel functions are evaluated side by side */
#define BITS 32
#define LANES ZLG_L32
#define EACH_LANE EACH_LANE_32
#define REAL_MAX 3.4028234663852886e38
#define REAL_NAN __builtin_nanf("")
#define DISTANCE_MAX 0x1p100f
#define COORDINATE_MAX 16.0
#include "codelets/kernel_product/cpu.c"
#undef REAL
#undef ROWS
#undef BITS
#undef LANES
#undef EACH_LANE
#undef REAL_MAX
#undef REAL_NAN
#undef DISTANCE_MAX
#undef COORDINATE_MAX

#define REAL double
#define ROWS (ZLG_VECTOR_BYTES == 64 ? 4 : 3)
#define BITS 64
#define LANES ZLG_L64
#define EACH_LANE EACH_LANE_64
#define REAL_MAX 1.7976931348623157e308
#define REAL_NAN __builtin_nan("")
#define DISTANCE_MAX 0x1p1000
#define COORDINATE_MAX 1024.0
#include "codelets/kernel_product/cpu.c"

void ZLG_ISA_FN(zlg_kernel_product_cpu)(const struct zlg_kernel_product_args *args,
                                        const struct zlg_kernel_product_operands *operands, void *scratch) {
  if (args->m <= 0 || args->r <= 0) return;
  if (args->type == ZLG_F32)
    tile_32(args, operands, scratch);
  else
    tile_64(args, operands, scratch);
}

#else /* once per type: REAL, BITS, LANES, … */

typedef OP(zlg_v) FN(vec);
#define VEC FN(vec)
#define PANEL (V * LANES)
typedef OP(zlg_i) FN(lane_index);
#define SHORT FN(short_vector)
#define SHORT_LANES (16 / (int)sizeof(REAL))
typedef REAL SHORT __attribute__((vector_size(16), aligned(sizeof(REAL)), may_alias));

/* Constants of the kernel function, see FN(set_constants). */
struct FN(constants) {
  REAL c0, c1, c2;
  REAL one; /* 1, not known to the compiler */
  int degree;
};

/* Everything that a tile's steps share. */
struct FN(tile) {
  const struct zlg_kernel_product_args *args;
  struct plan plan;
  zlg_kernel_kind kind; /* the function computed: args->kind, or a cheaper one that is the same */
  enum packing packing;
  const double *w, *centre; /* SCALED, RAW */
  REAL power;               /* POWER */
  REAL *weights;            /* RAW: in the tile's type */
  struct FN(constants) constants;
  REAL *lane_points, *group_points, *b, *k, *partial;
  double *sum;
};

/* ---- packing ---- */

static bool FN(transforms)(const struct FN(tile) * t) {
  return t->packing == PACK_SCALED || t->power != 1;
}

/* count coordinates of dimensions k, k + 1, …, each `run` times, as the tile wants them. */
static void FN(transform)(const struct FN(tile) * t, int64_t run, REAL *x) {
  const int64_t d = t->args->d;
  if (t->packing == PACK_SCALED)
    for (int64_t k = 0; k < d; k++)
      for (int64_t e = 0; e < run; e++) x[k * run + e] = (REAL)(((double)x[k * run + e] - t->centre[k]) * t->w[k]);
  else if (t->power != 1)
    for (int64_t e = 0; e < d * run; e++) x[e] *= t->power;
}

/* A NaN without payload, see zlg_exp2; done where values are in registers, as reading them back at once would wait for
 * the stores. */
ZLG_INLINE REAL FN(clean)(REAL x) {
  return x == x ? x : REAL_NAN;
}
ZLG_INLINE SHORT FN(clean_short)(SHORT x) {
  typedef __typeof__(x == x) mask;
  const mask number = x == x;
  return (SHORT)(((mask)x & number) | ((mask)((SHORT){0} + REAL_NAN) & ~number));
}

ZLG_INLINE VEC FN(clean_vector)(VEC x) {
  typedef __typeof__(x == x) mask;
  const mask number = x == x;
  return (VEC)(((mask)x & number) | ((mask)(OP(zlg_set)(REAL_NAN)) & ~number));
}

/* Small transposes in 16-byte registers, which every set has: SHORT_LANES x SHORT_LANES of a matrix, and SHORT_LANES
 * points of three coordinates. from: rows `step` apart; to: rows `run` apart. */
#if BITS == 32
ZLG_INLINE void FN(transpose_square)(const REAL *from, int64_t step, int64_t run, REAL *to) {
  SHORT a, b, c, e;
  memcpy(&a, from, sizeof a), memcpy(&b, from + step, sizeof a);
  memcpy(&c, from + 2 * step, sizeof a), memcpy(&e, from + 3 * step, sizeof a);
  const SHORT ab = SHUFFLE(a, b, 0, 4, 1, 5), ab2 = SHUFFLE(a, b, 2, 6, 3, 7);
  const SHORT ce = SHUFFLE(c, e, 0, 4, 1, 5), ce2 = SHUFFLE(c, e, 2, 6, 3, 7);
  *(SHORT *)to = FN(clean_short)(SHUFFLE(ab, ce, 0, 1, 4, 5));
  *(SHORT *)(to + run) = FN(clean_short)(SHUFFLE(ab, ce, 2, 3, 6, 7));
  *(SHORT *)(to + 2 * run) = FN(clean_short)(SHUFFLE(ab2, ce2, 0, 1, 4, 5));
  *(SHORT *)(to + 3 * run) = FN(clean_short)(SHUFFLE(ab2, ce2, 2, 3, 6, 7));
}
ZLG_INLINE void FN(transpose_three)(const REAL *from, int64_t run, REAL *to) {
  SHORT a, b, c;
  memcpy(&a, from, sizeof a), memcpy(&b, from + 4, sizeof a), memcpy(&c, from + 8, sizeof a);
  *(SHORT *)to = FN(clean_short)(SHUFFLE(SHUFFLE(a, b, 0, 3, 6, 0), c, 0, 1, 2, 5));
  *(SHORT *)(to + run) = FN(clean_short)(SHUFFLE(SHUFFLE(a, b, 1, 4, 7, 0), c, 0, 1, 2, 6));
  *(SHORT *)(to + 2 * run) = FN(clean_short)(SHUFFLE(SHUFFLE(a, b, 2, 5, 0, 0), c, 0, 1, 4, 7));
}
#else
ZLG_INLINE void FN(transpose_square)(const REAL *from, int64_t step, int64_t run, REAL *to) {
  SHORT a, b;
  memcpy(&a, from, sizeof a), memcpy(&b, from + step, sizeof a);
  *(SHORT *)to = FN(clean_short)(SHUFFLE(a, b, 0, 2));
  *(SHORT *)(to + run) = FN(clean_short)(SHUFFLE(a, b, 1, 3));
}
ZLG_INLINE void FN(transpose_three)(const REAL *from, int64_t run, REAL *to) {
  SHORT a, b, c;
  memcpy(&a, from, sizeof a), memcpy(&b, from + 2, sizeof a), memcpy(&c, from + 4, sizeof a);
  *(SHORT *)to = FN(clean_short)(SHUFFLE(a, b, 0, 3));
  *(SHORT *)(to + run) = FN(clean_short)(SHUFFLE(a, c, 1, 2));
  *(SHORT *)(to + 2 * run) = FN(clean_short)(SHUFFLE(b, c, 0, 3));
}
#endif

/* Coordinate k of LANES points of three: lane p holds element 3 p + k of the three vectors. 3 has an inverse for every
 * number of lanes, so each position is wanted from one of the vectors only: two blends and a permutation. */
ZLG_INLINE VEC FN(every_third)(VEC a, VEC b, VEC c, FN(lane_index) from_b, FN(lane_index) from_c,
                               FN(lane_index) order) {
  return FN(clean_vector)(__builtin_shuffle(__builtin_shuffle(__builtin_shuffle(a, b, from_b), c, from_c), order));
}
#define SOURCE(k, q) ((3 * (((q) + 3 * LANES - (k)) * INVERSE_OF_3 % LANES) + (k)) / LANES)
#define FROM_B_0(q) (q) + (SOURCE(0, q) >= 1 ? LANES : 0)
#define FROM_B_1(q) (q) + (SOURCE(1, q) >= 1 ? LANES : 0)
#define FROM_B_2(q) (q) + (SOURCE(2, q) >= 1 ? LANES : 0)
#define FROM_C_0(q) (q) + (SOURCE(0, q) == 2 ? LANES : 0)
#define FROM_C_1(q) (q) + (SOURCE(1, q) == 2 ? LANES : 0)
#define FROM_C_2(q) (q) + (SOURCE(2, q) == 2 ? LANES : 0)
#define ORDER_0(p) 3 * (p) % LANES
#define ORDER_1(p) (3 * (p) + 1) % LANES
#define ORDER_2(p) (3 * (p) + 2) % LANES
#define THIRD(k)                                                                                                       \
  FN(every_third)                                                                                                      \
  (a, b, c, (FN(lane_index)){EACH_LANE(FROM_B_##k)}, (FN(lane_index)){EACH_LANE(FROM_C_##k)},                          \
   (FN(lane_index)){EACH_LANE(ORDER_##k)})
/* Whole panels. */
static void FN(panels_of_three)(const REAL *from, int64_t panels, REAL *to) {
  for (int64_t p = 0; p < panels; p++, to += 3 * PANEL)
    EACH (v, V) {
      ask_ahead(from, 3 * ZLG_VECTOR_BYTES);
      const VEC a = OP(zlg_load)(from), b = OP(zlg_load)(from + LANES), c = OP(zlg_load)(from + 2 * LANES);
      *(VEC *)(to + v * LANES) = THIRD(0);
      *(VEC *)(to + v * LANES + PANEL) = THIRD(1);
      *(VEC *)(to + v * LANES + 2 * PANEL) = THIRD(2);
      from += 3 * LANES;
    }
}

/* `points` x d, from the matrix's point at `from`, into to[k * run + p]. */
static void FN(transpose)(struct view view, const REAL *from, int64_t points, int64_t d, int64_t run, REAL *to) {
  int64_t k = 0;
  if (view.column == 1 && points % SHORT_LANES == 0) {
    if (d == 3 && view.row == 3) {
      for (int64_t p = 0; p < points; p += SHORT_LANES) FN(transpose_three)(from + 3 * p, run, to + p);
      return;
    }
    for (; k + SHORT_LANES <= d; k += SHORT_LANES)
      for (int64_t p = 0; p < points; p += SHORT_LANES)
        FN(transpose_square)(from + p * view.row + k, view.row, run, to + k * run + p);
  }
  for (; k < d; k++)
    for (int64_t p = 0; p < points; p++) to[k * run + p] = FN(clean)(from[p * view.row + k * view.column]);
}

/* Points first … first + count of a matrix in runs of `run`: element k of point p at (p / run * d + k) * run + p % run;
 * zeros fill the last run. A run is a panel (lanes) or a group (broadcasts). */
static void FN(pack)(const struct FN(tile) * t, struct view view, int64_t first, int64_t count, int64_t run, REAL *to) {
  const int64_t d = t->args->d;
  const REAL *from = (const REAL *)view.data + first * view.row;
  int64_t p = 0;
  if (run == PANEL && d == 3 && view.column == 1 && view.row == 3) {
    p = count / PANEL * PANEL;
    FN(panels_of_three)(from, count / PANEL, to);
    for (int64_t q = 0; q < p && FN(transforms)(t); q += PANEL) FN(transform)(t, PANEL, to + q * 3);
    from += 3 * p, to += 3 * p;
  }
  for (; p < count; p += run, to += d * run, from += run * view.row) {
    const int64_t points = min64(run, count - p);
    if (run == PANEL && view.column == 1 && view.row * (int64_t)sizeof(REAL) <= 256)
      ask_ahead(from, points * view.row * (int64_t)sizeof(REAL));
    FN(transpose)(view, from, points, d, run, to);
    for (int64_t k = 0; points < run && k < d; k++)
      memset(to + k * run + points, 0, (size_t)(run - points) * sizeof(REAL));
    FN(transform)(t, run, to);
  }
}

/* ---- the metric ---- */

/* One dimension of `rows` points of a group (y: the first) against a panel (x), added to sum. FMA slots per pair and
 * dimension: 1 (SQUARE, DOT), 2 where differences are weighted, 1.5 for ABS (three operations for four pipes). */
ZLG_INLINE void FN(metric_step)(enum metric metric, bool careful, int rows, const VEC *x, const REAL *y, REAL w,
                                VEC (*sum)[V]) {
  EACH (j, rows)
    EACH (v, V) {
      if (metric == METRIC_DOT) {
        sum[j][v] += x[v] * y[j];
        continue;
      }
      VEC difference;
      if (metric == METRIC_ABS && !careful)
        difference = x[v] * w - y[j]; /* w = 1: the same difference from the multipliers, as the sum takes the adders */
      else
        difference = x[v] - y[j];
      if (careful) difference *= w;
      if (metric == METRIC_ABS)
        sum[j][v] += OP(zlg_abs)(difference);
      else
        sum[j][v] += difference * difference;
    }
}

/* Dimensions k0 … k1. */
ZLG_INLINE void FN(metric)(enum metric metric, bool careful, int rows, const REAL *x, const REAL *y, const REAL *w,
                           REAL one, int64_t k0, int64_t k1, VEC (*sum)[V]) {
  for (int64_t k = k0; k < k1; k++) {
    VEC xv[V];
    EACH (v, V) xv[v] = *(const VEC *)(x + k * PANEL + v * LANES);
    FN(metric_step)(metric, careful, rows, xv, y + k * GROUP, careful ? w[k] : one, sum);
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
    c0 = args->gamma * scale;
    c1 = args->offset;
    break;
  case ZLG_SIGMOID:
    c0 = ZLG_TANH_SCALE * args->gamma * scale;
    c1 = ZLG_TANH_SCALE * args->offset;
    break;
  case ZLG_INVERSE_MULTIQUADRIC:
  case ZLG_CAUCHY:
    break;
  }
  t->constants = (struct FN(constants)){.c0 = (REAL)fmax(-REAL_MAX, fmin(c0, REAL_MAX)),
                                        .c1 = (REAL)fmax(-REAL_MAX, fmin(c1, REAL_MAX)),
                                        .c2 = (REAL)fmin(c2, REAL_MAX),
                                        .one = args->d > 0,
                                        .degree = args->degree};
}

/* x^degree in place by repeated squaring, from the highest bit of the degree down. */
ZLG_INLINE void FN(power)(VEC *x, int n, int degree) {
  VEC base[ROWS * V];
  if (degree == 0)
    EACH (v, n) x[v] = OP(zlg_set)(1);
  if (degree < 2) return;
  EACH (v, n) base[v] = x[v];
  for (int bit = 1 << (30 - __builtin_clz((unsigned)degree)); bit; bit >>= 1) {
    EACH (v, n) x[v] *= x[v];
    if (degree & bit)
      EACH (v, n) x[v] *= base[v];
  }
}

/* A kernel function is evaluated in two steps for n vectors at once. The first holds what the divider does, which works
 * beside the multipliers if its results are not waited for: it is done one step ahead (see FN(ahead)). Beside, but not
 * for nothing: on Zen 5 each division or root, of either type and width, keeps the multipliers from two operations, so
 * that the Cauchy kernel in three dimensions has 5 slots of 7. Estimates with a Newton step instead (AVX-512, f32) are
 * slower there: 0.96 times the rate for the Cauchy kernel, 0.84 for the sigmoid, 0.9 for the rational quadratic. */
ZLG_INLINE void FN(kernel_begin)(zlg_kernel_kind kind, const struct FN(constants) * c, VEC *s, int n) {
  const VEC far = OP(zlg_set)(DISTANCE_MAX); /* exp() of it is 0, and its square is finite */
  switch (kind) {
  case ZLG_EXPONENTIAL:
  case ZLG_ENERGY:
    EACH (v, n) s[v] = OP(zlg_sqrt)(s[v]);
    break;
  case ZLG_MATERN32:
  case ZLG_MATERN52:
    EACH (v, n) s[v] = OP(zlg_sqrt)(OP(zlg_min)(far, s[v]));
    break;
  case ZLG_INVERSE_MULTIQUADRIC:
    EACH (v, n) s[v] = 1 / OP(zlg_sqrt)(1 + s[v] * c->c0);
    break;
  case ZLG_CAUCHY:
    EACH (v, n) s[v] = 1 / (1 + s[v] * c->c0);
    break;
  default:
    break;
  }
}

ZLG_INLINE void FN(kernel_end)(zlg_kernel_kind kind, const struct FN(constants) * c, VEC *s, int n) {
  VEC factor[ROWS * V];
  const struct OP(zlg_exp2_) *exp2_table = &OP(zlg_exp2_table);
  ZLG_READ_AGAIN(c);
  ZLG_READ_AGAIN(exp2_table);
  const struct OP(zlg_tanh_) *tanh_table = &OP(zlg_tanh_table);
  ZLG_READ_AGAIN(tanh_table);
  switch (kind) {
  case ZLG_GAUSSIAN:
  case ZLG_LAPLACIAN:
  case ZLG_EXPONENTIAL:
    EACH (v, n) s[v] *= c->c0;
    OP(zlg_exp2_)(exp2_table, s, n);
    break;
  case ZLG_MATERN32:
    EACH (v, n) factor[v] = 1 + s[v] * c->c1;
    EACH (v, n) s[v] *= c->c0;
    OP(zlg_exp2_)(exp2_table, s, n);
    EACH (v, n) s[v] *= factor[v];
    break;
  case ZLG_MATERN52:
    EACH (v, n) factor[v] = c->c1 + s[v] * c->c2;
    EACH (v, n) factor[v] = 1 + s[v] * factor[v];
    EACH (v, n) s[v] *= c->c0;
    OP(zlg_exp2_)(exp2_table, s, n);
    EACH (v, n) s[v] *= factor[v];
    break;
  case ZLG_RATIONAL_QUADRATIC: /* of the logarithm */
    EACH (v, n) s[v] *= c->c1;
    OP(zlg_exp2_)(exp2_table, s, n);
    break;
  case ZLG_ENERGY:
    EACH (v, n) s[v] *= c->c0;
    break;
  case ZLG_LINEAR:
    EACH (v, n) s[v] = s[v] * c->c0 + c->c1;
    break;
  case ZLG_POLYNOMIAL:
    EACH (v, n) s[v] = s[v] * c->c0 + c->c1;
    FN(power)(s, n, c->degree);
    break;
  case ZLG_SIGMOID:
    EACH (v, n) s[v] = s[v] * c->c0 + c->c1;
    OP(zlg_tanh_)(tanh_table, s, n);
    break;
  default:
    break;
  }
}

/* ---- a block of K ---- */

/* One panel against `count` points from the start of a group. With b, [count][columns], columns up to FEW, the sums
 * over the points go into partial, [columns][P]; without, K is stored: [count][P] in k, which is room for the block in
 * both cases. */
struct FN(block) {
  int64_t count;
  int64_t panels; /* against each of so many panels, x's one after the other; k's, `count` rows each, too */
  int columns;    /* of b, 0 without */
  const REAL *x, *y, *b;
  REAL *partial, *k;
  int64_t rooted; /* into the metric: whether roots may be taken; out of it: of how many rows, see FN(take_root) */
};

/* Dimensions k0 … k1 of the metric of `rows` points from member y of a group, added to what k holds where k0 > 0. */
/* Square roots are worked off by the divider, beside the multipliers. Where the kernel function needs one, its loop
 * would wait for the divider and the metric's leave it idle: the metric's loop takes the root of the first vector of
 * even rows. */
ZLG_INLINE VEC FN(take_root)(bool roots, int j, int v, VEC s) {
  return roots && j % 2 == 0 && v == 0 ? OP(zlg_sqrt)(OP(zlg_min)(OP(zlg_set)(DISTANCE_MAX), s)) : s;
}

ZLG_INLINE void FN(metric_rows)(enum metric metric, bool careful, bool roots, int rows, int64_t k0, int64_t k1,
                                const REAL *x, const REAL *y, const REAL *w, REAL one, REAL *k) {
  VEC value[GROUP][V];
  EACH (j, rows)
    EACH (v, V) value[j][v] = k0 > 0 ? *(const VEC *)(k + j * PANEL + v * LANES) : (VEC){0};
  FN(metric)(metric, careful, rows, x, y, w, one, k0, k1, value);
  EACH (j, rows)
    EACH (v, V) *(VEC *)(k + j * PANEL + v * LANES) = FN(take_root)(roots, j, v, value[j][v]);
}

/* Dimensions are taken in pieces whose panel stays in the first-level cache, in the order of k. */
#define PIECE (16384 / (V * ZLG_VECTOR_BYTES))
ZLG_INLINE void FN(metric_panel)(enum metric metric, bool careful, bool roots, const struct FN(tile) * t,
                                 const struct FN(block) * block) {
  const int64_t d = t->args->d;
  for (int64_t k0 = 0; k0 < d; k0 += PIECE) {
    const int64_t k1 = min64(d, k0 + PIECE);
    const REAL *y = block->y;
    REAL *k = block->k;
    int64_t count = block->count;
    for (; count >= GROUP; count -= GROUP, y += d * GROUP, k += GROUP * PANEL)
      if (roots && k1 == d)
        FN(metric_rows)(metric, careful, true, GROUP, k0, k1, block->x, y, t->weights, t->constants.one, k);
      else
        FN(metric_rows)(metric, careful, false, GROUP, k0, k1, block->x, y, t->weights, t->constants.one, k);
    for (; count >= 3; count -= 3, y += 3, k += 3 * PANEL)
      FN(metric_rows)(metric, careful, false, 3, k0, k1, block->x, y, t->weights, t->constants.one, k);
    for (; count > 0; count--, y++, k += PANEL)
      FN(metric_rows)(metric, careful, false, 1, k0, k1, block->x, y, t->weights, t->constants.one, k);
  }
}
#undef PIECE

ZLG_INLINE void FN(metric_block)(enum metric metric, bool careful, bool roots, const struct FN(tile) * t,
                                 const struct FN(block) * blocks) {
  struct FN(block) block = *blocks;
  for (int64_t p = 0; p < blocks->panels; p++, block.x += PANEL * t->args->d, block.k += PANEL * block.count)
    FN(metric_panel)(metric, careful, roots, t, &block);
}

/* The same for the smallest dimensions: the panel stays in registers (d is a constant). */
ZLG_INLINE void FN(metric_panel_small)(enum metric metric, bool roots, int d, REAL one, const REAL *panel,
                                       const struct FN(block) * block, REAL *k) {
  VEC x[3][V];
  EACH (e, d * V) x[e / V][e % V] = *(const VEC *)(panel + e * LANES);
  const REAL *y = block->y;
  for (int64_t j = 0; j < block->count; j += GROUP, y += d * GROUP) {
    const int rows = (int)min64(GROUP, block->count - j);
    int g = 0;
#pragma GCC unroll 1
    for (; rows == GROUP && g < GROUP; g += 2, k += 2 * PANEL) {
      VEC value[2][V] = {{{0}}};
      EACH (e, d) FN(metric_step)(metric, false, 2, x[e], y + e * GROUP + g, one, value);
      EACH (r, 2)
        EACH (v, V) *(VEC *)(k + r * PANEL + v * LANES) = FN(take_root)(roots, r, v, value[r][v]);
    }
    for (; g < rows; g++, k += PANEL) {
      VEC value[1][V] = {{{0}}};
      EACH (e, d) FN(metric_step)(metric, false, 1, x[e], y + e * GROUP + g, one, value);
      EACH (v, V) *(VEC *)(k + v * LANES) = value[0][v];
    }
  }
}

/* Of a single row: one loop over all panels. */
ZLG_INLINE void FN(metric_row)(enum metric metric, int d, REAL one, const struct FN(block) * block) {
  REAL y[3];
  EACH (e, d) y[e] = block->y[e * GROUP];
  for (int64_t p = 0; p < block->panels; p++) {
    VEC value[1][V] = {{{0}}};
    EACH (e, d) {
      VEC x[V];
      EACH (v, V) x[v] = *(const VEC *)(block->x + (p * d + e) * PANEL + v * LANES);
      FN(metric_step)(metric, false, 1, x, y + e, one, value);
    }
    EACH (v, V) *(VEC *)(block->k + p * PANEL + v * LANES) = value[0][v];
  }
}

ZLG_INLINE void FN(metric_small)(enum metric metric, bool roots, int d, REAL one, const struct FN(block) * block) {
  if (block->count == 1) {
    FN(metric_row)(metric, d, one, block);
    return;
  }
  for (int64_t p = 0; p < block->panels; p++) FN(metric_panel_small)
  (metric, roots, d, one, block->x + p * d * PANEL, block, block->k + p * block->count * PANEL);
}

ZLG_INLINE void FN(metric_any_d)(enum metric metric, bool roots, const struct FN(tile) * t,
                                 const struct FN(block) * block) {
  const REAL one = t->constants.one;
  switch (t->args->d) {
  case 1:
    FN(metric_small)(metric, roots, 1, one, block);
    break;
  case 2:
    FN(metric_small)(metric, roots, 2, one, block);
    break;
  case 3:
    FN(metric_small)(metric, roots, 3, one, block);
    break;
  default:
    FN(metric_block)(metric, false, roots, t, block);
  }
}

/* Kernels whose function begins with a root. */
ZLG_INLINE bool FN(ahead)(zlg_kernel_kind kind) {
  return kind == ZLG_EXPONENTIAL || kind == ZLG_MATERN32 || kind == ZLG_MATERN52;
}

/* Those that share them with the metric (f64: the divider is no faster for it). */
ZLG_INLINE bool FN(shared_roots)(zlg_kernel_kind kind) {
  return FN(ahead)(kind) && sizeof(REAL) == 4;
}

static void FN(do_metric)(const struct FN(tile) * t, struct FN(block) * block) {
  const enum metric metric = kernel_metric(t->kind);
  const bool careful = t->packing == PACK_RAW, roots = block->rooted && FN(shared_roots)(t->kind) && !careful;
  block->rooted = roots ? block->count / GROUP * GROUP : 0;
  if (metric == METRIC_DOT)
    FN(metric_any_d)(METRIC_DOT, false, t, block);
  else if (metric == METRIC_ABS && careful)
    FN(metric_block)(METRIC_ABS, true, false, t, block);
  else if (metric == METRIC_ABS)
    FN(metric_any_d)(METRIC_ABS, false, t, block);
  else if (careful)
    FN(metric_block)(METRIC_SQUARE, true, false, t, block);
  else if (roots)
    FN(metric_any_d)(METRIC_SQUARE, true, t, block);
  else
    FN(metric_any_d)(METRIC_SQUARE, false, t, block);
}

/* What becomes of `rows` x V values after kernel_begin: the sum with b, or the store. */
ZLG_INLINE void FN(finish)(zlg_kernel_kind kind, int sums, int rows, const struct FN(constants) * c, VEC (*value)[V],
                           const REAL *b, VEC *sum, REAL *k) {
  FN(kernel_end)(kind, c, &value[0][0], rows * V);
  EACH (j, rows)
    EACH (v, V) {
      if (sums)
        EACH (e, sums) sum[e * V + v] += value[j][v] * b[j * sums + e];
      else
        *(VEC *)(k + j * PANEL + v * LANES) = value[j][v];
    }
}

/* Values of the metric from k, with the first step done; `rooted`: of the first vectors of even rows it is done
 * already. */
ZLG_INLINE void FN(begin_stored)(zlg_kernel_kind kind, bool rooted, int rows, const struct FN(constants) * c,
                                 const REAL *k, VEC (*value)[V]) {
  EACH (j, rows)
    EACH (v, V) value[j][v] = *(const VEC *)(k + j * PANEL + v * LANES);
  if (rooted)
    EACH (j, rows)
      EACH (v, V) {
        if (j % 2 || v) FN(kernel_begin)(kind, c, &value[j][v], 1);
      }
  else
    FN(kernel_begin)(kind, c, &value[0][0], rows * V);
}

/* The kernel function of rows first … end of a block, `step` at once, the rest one by one. ROWS rows behind the block
 * may be read. */
ZLG_INLINE void FN(function_rows)(zlg_kernel_kind kind, int sums, bool rooted, int step, int64_t count,
                                  const struct FN(constants) * c, const REAL *b, VEC *sum, REAL *k) {
  VEC next[ROWS][V], value[ROWS][V];
  int64_t j = 0;
  if (FN(ahead)(kind)) FN(begin_stored)(kind, rooted, step, c, k, next);
  for (; j + step <= count; j += step, k += step * PANEL, b += sums * step) {
    if (FN(ahead)(kind)) {
      EACH (e, step)
        EACH (v, V) value[e][v] = next[e][v];
      FN(begin_stored)(kind, rooted, step, c, k + step * PANEL, next);
    } else {
      FN(begin_stored)(kind, false, step, c, k, value);
    }
    FN(finish)(kind, sums, step, c, value, b, sum, k);
  }
  for (; !rooted && j < count; j++, k += PANEL, b += sums) {
    FN(begin_stored)(kind, false, 1, c, k, value);
    FN(finish)(kind, sums, 1, c, value, b, sum, k);
  }
}

/* The first half of the rational quadratic, log2(1 + s c0) in place, in a loop of its own: logarithm and exponential in
 * one would be a chain of some 150 cycles, and the few vectors of it that fit into the processor's window leave most of
 * the multipliers' time unused (Zen 5: one loop takes 1.1 to 1.3 times as long). */
ZLG_INLINE void FN(logarithm_rows)(int rows, const struct FN(constants) * c, REAL *k) {
  VEC value[ROWS * V];
  const struct OP(zlg_log2_) *table = &OP(zlg_log2_table);
  ZLG_READ_AGAIN(table);
  EACH (v, rows * V) value[v] = *(const VEC *)(k + v * LANES) * c->c0;
  OP(zlg_log2p1_)(table, value, rows * V);
  EACH (v, rows * V) *(VEC *)(k + v * LANES) = value[v];
}

ZLG_INLINE void FN(logarithms)(int64_t count, const struct FN(constants) * c, REAL *k) {
  for (; count >= ROWS; count -= ROWS, k += ROWS * PANEL) FN(logarithm_rows)(ROWS, c, k);
  for (; count > 0; count--, k += PANEL) FN(logarithm_rows)(1, c, k);
}

ZLG_INLINE void FN(function_block)(zlg_kernel_kind kind, int sums, const struct FN(constants) * c,
                                   const struct FN(block) * block) {
  VEC sum[FEW * V] = {{0}};
  const int64_t rooted = FN(shared_roots)(kind) ? block->rooted : 0; /* whole groups */
  if (kind == ZLG_RATIONAL_QUADRATIC) FN(logarithms)(block->count, c, block->k);
  if (FN(shared_roots)(kind)) FN(function_rows)(kind, sums, true, ROWS_ROOTED, rooted, c, block->b, sum, block->k);
  FN(function_rows)
  (kind, sums, false, ROWS, block->count - rooted, c, sums ? block->b + sums * rooted : NULL, sum,
   block->k + rooted * PANEL);
  EACH (e, sums * V) *(VEC *)(block->partial + e * LANES) = sum[e];
}

/* Metric and kernel function in one loop, for functions that are cheaper than going through memory, in one to three
 * dimensions (d is a constant: the panel stays in registers). */
ZLG_INLINE bool FN(cheap)(zlg_kernel_kind kind) {
  return kind == ZLG_LINEAR || kind == ZLG_POLYNOMIAL || kind == ZLG_CAUCHY || kind == ZLG_INVERSE_MULTIQUADRIC ||
         kind == ZLG_ENERGY;
}

ZLG_INLINE void FN(fused_rows)(zlg_kernel_kind kind, int sums, int rows, int d, const struct FN(constants) * c,
                               const VEC (*x)[V], const REAL *y, const REAL *b, VEC *sum, REAL *k) {
  VEC value[2][V] = {{{0}}};
  EACH (e, d) FN(metric_step)(kernel_metric(kind), false, rows, x[e], y + e * GROUP, 1, value);
  FN(kernel_begin)(kind, c, &value[0][0], rows * V);
  FN(finish)(kind, sums, rows, c, value, b, sum, k);
}

ZLG_INLINE void FN(fused_block)(zlg_kernel_kind kind, int sums, int d, const struct FN(constants) * c,
                                const struct FN(block) * block) {
  VEC x[3][V], sum[FEW * V] = {{0}};
  EACH (e, d * V) x[e / V][e % V] = *(const VEC *)(block->x + e * LANES);
  const VEC(*const panel)[V] = (const VEC(*)[V])x;
  REAL *k = block->k;
  const REAL *y = block->y, *b = block->b;
  int64_t count = block->count;
  for (; count >= GROUP; count -= GROUP, y += d * GROUP)
#pragma GCC unroll 1
    for (int g = 0; g < GROUP; g += 2, k += 2 * PANEL, b += sums * 2)
      FN(fused_rows)(kind, sums, 2, d, c, panel, y + g, b, sum, k);
  for (; count > 0; count--, y++, k += PANEL, b += sums) FN(fused_rows)(kind, sums, 1, d, c, panel, y, b, sum, k);
  EACH (e, sums * V) *(VEC *)(block->partial + e * LANES) = sum[e];
}

ZLG_INLINE void FN(function_kind)(zlg_kernel_kind kind, int sums, const struct FN(tile) * t,
                                  const struct FN(block) * block) {
  const struct FN(constants) constants = t->constants; /* a copy that no store can change */
  if (FN(cheap)(kind) && block->x && t->args->d == 1)
    FN(fused_block)(kind, sums, 1, &constants, block);
  else if (FN(cheap)(kind) && block->x && t->args->d == 2)
    FN(fused_block)(kind, sums, 2, &constants, block);
  else if (FN(cheap)(kind) && block->x && t->args->d == 3)
    FN(fused_block)(kind, sums, 3, &constants, block);
  else
    FN(function_block)(kind, sums, &constants, block);
}

/* Each kernel gets loops of its own. */
#define KERNEL(kind)                                                                                                   \
  static __attribute__((noinline)) void FN(function_##kind)(const struct FN(tile) * t,                                 \
                                                            const struct FN(block) * block) {                          \
    if (block->columns == 1)                                                                                           \
      FN(function_kind)(kind, 1, t, block);                                                                            \
    else if (block->columns == 2)                                                                                      \
      FN(function_kind)(kind, 2, t, block);                                                                            \
    else                                                                                                               \
      FN(function_kind)(kind, 0, t, block);                                                                            \
  }
EACH_KERNEL(KERNEL)
#undef KERNEL

static void FN(do_function)(const struct FN(tile) * t, const struct FN(block) * block) {
  switch (t->kind) {
#define KERNEL(kind)                                                                                                   \
  case kind:                                                                                                           \
    FN(function_##kind)(t, block);                                                                                     \
    break;
    EACH_KERNEL(KERNEL)
#undef KERNEL
  default: /* ZLG_MATERN12 comes as ZLG_EXPONENTIAL */
    break;
  }
}

/* Both steps. A cheap kernel in few dimensions takes them in one (block.x then tells it that the metric is not in k).
 */
static void FN(do_block)(const struct FN(tile) * t, struct FN(block) block) {
  if (!(FN(cheap)(t->kind) && t->args->d <= 3 && t->packing != PACK_RAW)) {
    FN(do_metric)(t, &block);
    block.x = NULL;
  }
  FN(do_function)(t, &block);
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
  EACH (i, width)
    EACH (v, V) c[i][v] = (VEC){0};
  for (int64_t j = 0; j < count; j++, k += PANEL, b += width) {
    VEC kv[V];
    EACH (v, V) kv[v] = *(const VEC *)(k + v * LANES);
    EACH (i, width)
      EACH (v, V) c[i][v] += kv[v] * b[i];
  }
  REAL block[COLUMNS * PANEL] __attribute__((aligned(64)));
  EACH (i, width)
    EACH (v, V) *(VEC *)(block + i * PANEL + v * LANES) = c[i][v];
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
    WIDTH(3)
    WIDTH(4)
    WIDTH(5)
    WIDTH(6)
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
    struct FN(block) block = {.count = min64(BLOCK, n - j),
                              .panels = 1,
                              .x = x,
                              .y = t->group_points + j * t->args->d,
                              .columns = columns <= FEW ? (int)columns : 0,
                              .b = columns <= FEW ? t->b + j * columns : NULL,
                              .partial = t->partial,
                              .k = t->k,
                              .rooted = 1};
    FN(do_block)(t, block);
    if (columns <= FEW)
      for (int64_t l = 0; l < columns * PANEL; l++) sum[l] += (double)t->partial[l];
    else
      FN(multiply)(columns, n, j, block.count, t->k, t->b, sum);
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
      FN(pack)(t, x1, i, rows, PANEL, t->lane_points);
      memset(t->sum, 0, (size_t)(ceil_div(rows, PANEL) * PANEL * columns) * sizeof(double));
      for (int64_t j = 0; j < args->n; j += t->plan.group_points) {
        const int64_t n = min64(t->plan.group_points, args->n - j);
        FN(pack)(t, x2, j, n, GROUP, t->group_points);
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
  const int64_t run = t->plan.lane_points;
  const REAL *from = (const REAL *)view.data + first * view.row + column * view.column;
  if (view.row == 1 || view.row == columns) ask_ahead(from, count * view.row * (int64_t)sizeof(REAL));
  if (view.row == 1)
    for (int64_t c = 0; c < columns; c++) memcpy(to + c * run, from + c * view.column, (size_t)count * sizeof(REAL));
  else
    FN(transpose)(view, from, count, columns, run, to);
  for (int64_t c = 0; count < run && c < columns; c++)
    memset(to + c * run + count, 0, (size_t)(run - count) * sizeof(REAL));
}

/* rows x columns sums over the chunk's vectors of k[i] b[c], added to partial; k is [panel][m][P]. */
ZLG_INLINE void FN(multiply_lanes)(int rows, int columns, int64_t panels, int64_t m, const REAL *k, int64_t stride,
                                   const REAL *b, int64_t partial_stride, REAL *partial) {
  VEC sum[4][2][V] = {{{{0}}}};
  for (int64_t p = 0; p < panels; p++, k += m * PANEL, b += PANEL)
    EACH (v, V)
      EACH (c, columns) {
        const VEC bv = *(const VEC *)(b + c * stride + v * LANES);
        EACH (i, rows) sum[i][c][v] += *(const VEC *)(k + i * PANEL + v * LANES) * bv;
      }
  EACH (i, rows)
    EACH (c, columns)
      EACH (v, V) *(VEC *)(partial + i * partial_stride + c * LANES) += sum[i][c][v];
}

static void FN(multiply_over_j)(const struct FN(tile) * t, int64_t panels, int64_t columns) {
  const int64_t m = t->args->m, stride = t->plan.lane_points, partial_stride = columns * LANES;
  for (int64_t i = 0; i < m;) {
    const int rows = m - i >= 4 ? 4 : 1;
    for (int64_t c = 0; c < columns;) {
      const REAL *k = t->k + i * PANEL, *b = t->b + c * stride;
      REAL *partial = t->partial + i * partial_stride + c * LANES;
      const int width = columns - c >= 2 ? 2 : 1;
      if (rows == 4 && width == 2)
        FN(multiply_lanes)(4, 2, panels, m, k, stride, b, partial_stride, partial);
      else if (rows == 4)
        FN(multiply_lanes)(4, 1, panels, m, k, stride, b, partial_stride, partial);
      else if (width == 2)
        FN(multiply_lanes)(1, 2, panels, m, k, stride, b, partial_stride, partial);
      else
        FN(multiply_lanes)(1, 1, panels, m, k, stride, b, partial_stride, partial);
      c += width;
    }
    i += rows;
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
  FN(pack)(t, x1, 0, m, GROUP, t->group_points);
  for (int64_t c = 0; c < args->r; c += t->plan.columns) {
    const int64_t columns = min64(t->plan.columns, args->r - c);
    const int64_t sums = m * columns * LANES;
    memset(t->sum, 0, (size_t)sums * sizeof(double));
    memset(t->partial, 0, (size_t)sums * sizeof(REAL));
    int64_t terms = 0;
    for (int64_t j = 0; j < args->n; j += chunk) {
      const int64_t n = min64(chunk, args->n - j), panels = ceil_div(n, PANEL);
      FN(pack)(t, x2, j, n, PANEL, t->lane_points);
      FN(pack_b_lanes)(t, b, j, n, c, columns, t->b);
      struct FN(block) block = {.count = m, .panels = panels, .x = t->lane_points, .y = t->group_points, .k = t->k};
      FN(do_metric)(t, &block);
      FN(do_function)(t, &(struct FN(block)){.count = panels * m, .k = t->k});
      FN(clear_behind)(t, n);
      FN(multiply_over_j)(t, panels, columns);
      terms += panels * V; /* at most 256 are added in the tile's type, and those of one chunk */
      if (terms > 256 - panels * V) FN(flush_partial)(t, sums), terms = 0;
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
  bool isotropic = true;
  for (int64_t k = 1; k < args->d && !args->isotropic; k++) isotropic = isotropic && t->w[k] == t->w[0];
  if (isotropic) {
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
    small = small && fmax(-range.low, range.high) * t->w[k] <= COORDINATE_MAX;
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
  struct FN(tile) t = {.args = args, .kind = same_kernel(args), .w = operands->w};
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

#undef SOURCE
#undef FROM_B_0
#undef FROM_B_1
#undef FROM_B_2
#undef FROM_C_0
#undef FROM_C_1
#undef FROM_C_2
#undef ORDER_0
#undef ORDER_1
#undef ORDER_2
#undef THIRD
#undef VEC
#undef SHORT
#undef SHORT_LANES
#undef PANEL
#endif
