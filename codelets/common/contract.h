/* Contractions of tensors with matrices along their indices, as Kronecker factors ask for them: for cpu.c files, once a
 * type. A cpu.c includes this after simd.h with ZLG_BITS 32 and again with 64; names end in the type's bits,
 * ZLG_C(name).
 *
 * A tensor is seen as (lead, p, trail); a factor p x q makes (lead, q, trail) of it. All arithmetic is done in
 * *panels*: so many tensors side by side, one in each lane of one to four vectors, element s of all lanes one behind
 * the other. There each factor is blocks of QB x NV accumulators, QB columns of the factor times NV vectors, summed
 * over p inside: QB + NV loads for QB NV multiply-adds. A panel comes about in two ways. Where an element's trail is
 * long, its vectors are lanes as they lie (zlg_pass_trail). Where it is short, as behind the last factor of a row,
 * lanes are the leading index: lines are transposed in registers on the way in and on the way out (zlg_pass_lead).
 * Rows under a factor of (nearly) whole vectors need no panel: its columns are the lanes (zlg_pass_rows).
 *
 * Sums run over p upwards from 0 in fused multiply-adds where the instruction set has them, whatever the lane, so that
 * an element's bits depend on its own tensor only. */
#ifndef ZLG_COMMON_CONTRACT_H
#define ZLG_COMMON_CONTRACT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Panels that stay in a core's first cache, with what they are read from and written to; where that is transposed on
 * the way, smaller ones are better, down to what keeps the multipliers busy: so many sums at a time. */
#define ZLG_PANEL_BYTES 16384
#define ZLG_LEAD_PANEL_BYTES 6144
#define ZLG_SUMS_LEAST 8
/* How far ahead rows are asked for. */
#define ZLG_AHEAD 4096
/* Blocks of accumulators that the registers hold: columns times vectors. zlg_block_most: columns, by vectors - 1. */
/* clang-format off */
#define ZLG_BLOCKS_HALF(X)                                                                                             \
  X(1, 1) X(2, 1) X(3, 1) X(4, 1) X(5, 1) X(6, 1) X(7, 1) X(8, 1) X(9, 1) X(10, 1) X(11, 1) X(12, 1)                   \
  X(1, 2) X(2, 2) X(3, 2) X(4, 2) X(5, 2) X(6, 2) X(1, 3) X(2, 3) X(3, 3) X(4, 3) X(1, 4) X(2, 4)
#if ZLG_VECTOR_BYTES == 64
#define ZLG_MOST_1 14
static const int zlg_block_most[4] = {ZLG_MOST_1, 12, 8, 6};
#define ZLG_BLOCKS(X)                                                                                                  \
  ZLG_BLOCKS_HALF(X)                                                                                                   \
  X(13, 1) X(14, 1) X(7, 2) X(8, 2) X(9, 2) X(10, 2) X(11, 2) X(12, 2) X(5, 3) X(6, 3) X(7, 3) X(8, 3)                 \
  X(3, 4) X(4, 4) X(5, 4) X(6, 4)
#else
#define ZLG_MOST_1 12
static const int zlg_block_most[4] = {ZLG_MOST_1, 6, 4, 2};
#define ZLG_BLOCKS(X) ZLG_BLOCKS_HALF(X)
#endif
/* clang-format on */

/* What happens to a sum on its way out: itself, past the caches (to whole lines only), alpha times it, beta times what
 * was there added. */
enum zlg_ending { ZLG_STORE, ZLG_STREAM, ZLG_SCALE, ZLG_ADD };

/* After the last store past the caches: others see them then in order. */
static inline void zlg_stream_end(void) {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

/* One factor inside a group: (lead, p, trail) of the group's own indices. */
struct zlg_group_step {
  int factor;
  int64_t p, q, lead, trail;
};

/* Adjacent factors that are applied to a panel one after the other: (lead, in, trail) to (lead, out, trail). */
struct zlg_group {
  const struct zlg_group_step *step;
  int steps, vectors;      /* vectors: of a panel, at most */
  int64_t in, out, widest; /* elements of a lane: before, after, at most */
  int64_t lead, trail;
};

#define ZLG_CHAIN_MOST 64 /* factors */
/* A prefix of the factors and the groups of those behind it. Where a vector is larger than the second cache, the groups
 * run on one piece of it after the other, and the prefix, applied last, on the pieces side by side. */
struct zlg_chain {
  struct zlg_group_step step[ZLG_CHAIN_MOST];
  struct zlg_group group[ZLG_CHAIN_MOST], prefix;
  int groups;
  bool split;                                /* there is a prefix */
  bool turned;                               /* x and y lie in different orders, and the first group turns vectors */
  int64_t in, out;                           /* elements of a vector */
  int64_t piece_in, piece_out, piece_widest; /* of a piece: before and after the groups, at most */
};
/* Pieces are not a power of two apart, which would put their lines into one set of a cache. */
#define ZLG_PIECE_PAD(type) ((int64_t)(320 / sizeof(type)))

#endif

/* ---- blocks ---- */
#if ZLG_BITS == 32
#define ZLG_VEC zlg_v32
#define ZLG_REAL float
#define ZLG_V ZLG_L32
#define ZLG_C(name) name##_32
#define ZLG_FMA zlg_fma32
#define ZLG_SET zlg_set32
#else
#define ZLG_VEC zlg_v64
#define ZLG_REAL double
#define ZLG_V ZLG_L64
#define ZLG_C(name) name##_64
#define ZLG_FMA zlg_fma64
#define ZLG_SET zlg_set64
#endif

typedef ZLG_VEC ZLG_C(zlg_loose) __attribute__((aligned(sizeof(ZLG_REAL))));

/* What happens to a sum on its way out. */
struct ZLG_C(zlg_end) {
  enum zlg_ending mode; /* sum; alpha sum; alpha sum + beta y */
  ZLG_REAL alpha, beta;
};

/* One factor over a panel. Element (l, i, t) of x lies at x + ((l p + i) trail + t) xs, of y alike. */
struct ZLG_C(zlg_step) {
  int64_t lead, p, q, trail;
  const ZLG_REAL *factor; /* p x q, row-major */
  const ZLG_REAL *x;
  int64_t xs;
  ZLG_REAL *y;
  int64_t ys;
  const struct ZLG_C(zlg_end) * end;
};

ZLG_INLINE void ZLG_C(zlg_stream)(ZLG_REAL *y, ZLG_VEC sum) {
#if defined(__x86_64__) && ZLG_BITS == 32
  ZLG_VOP(stream, ps)(y, ZLG_CAST32(sum));
#elif defined(__x86_64__)
  ZLG_VOP(stream, pd)(y, ZLG_CAST64(sum));
#else
  *(ZLG_VEC *)y = sum;
#endif
}

ZLG_INLINE void ZLG_C(zlg_put)(ZLG_REAL *y, ZLG_VEC sum, const struct ZLG_C(zlg_end) * end) {
  ZLG_C(zlg_loose) *to = (ZLG_C(zlg_loose) *)y;
  if (end->mode <= ZLG_STREAM)
    *to = sum;
  else if (end->mode == ZLG_SCALE)
    *to = end->alpha * sum;
  else
    *to = ZLG_FMA(ZLG_SET(end->alpha), sum, end->beta * *to);
}

/* The statement for every accumulator, `to` its row of y: one pointer that is moved on, where the compiler would else
 * compute all rows' addresses beforehand and spill them. */
#define ZLG_EACH_SUM(...)                                                                                              \
  {                                                                                                                    \
    ZLG_REAL *to = y;                                                                                                  \
    _Pragma("GCC unroll 16") for (int j = 0; j < qb; j++) {                                                            \
      _Pragma("GCC unroll 4") for (int v = 0; v < nv; v++) __VA_ARGS__;                                                \
      to += ys;                                                                                                        \
      __asm__("" : "+r"(to));                                                                                          \
    }                                                                                                                  \
  }

ZLG_INLINE void ZLG_C(zlg_block)(const ZLG_REAL *x, int64_t xs, const ZLG_REAL *f, int64_t fs, int64_t p, ZLG_REAL *y,
                                 int64_t ys, const struct ZLG_C(zlg_end) * end, const int64_t fj, const int qb,
                                 const int nv) {
  ZLG_VEC sum[16][4];
#pragma GCC unroll 16
  for (int j = 0; j < qb; j++)
#pragma GCC unroll 4
    for (int v = 0; v < nv; v++) sum[j][v] = (ZLG_VEC){0};
  for (int64_t i = 0; i < p; i++, x += xs, f += fs) {
    ZLG_VEC in[4];
#pragma GCC unroll 4
    for (int v = 0; v < nv; v++) in[v] = *(const ZLG_C(zlg_loose) *)(x + v * ZLG_V);
#pragma GCC unroll 16
    for (int j = 0; j < qb; j++) {
      const ZLG_VEC factor = ZLG_SET(f[j * fj]);
#pragma GCC unroll 4
      for (int v = 0; v < nv; v++) sum[j][v] = ZLG_FMA(factor, in[v], sum[j][v]);
    }
  }
  if (end->mode == ZLG_STORE)
    ZLG_EACH_SUM(*(ZLG_C(zlg_loose) *)(to + v * ZLG_V) = sum[j][v])
  else if (end->mode == ZLG_STREAM)
    ZLG_EACH_SUM(ZLG_C(zlg_stream)(to + v * ZLG_V, sum[j][v]))
  else
    ZLG_EACH_SUM(ZLG_C(zlg_put)(to + v * ZLG_V, sum[j][v], end))
}
#undef ZLG_EACH_SUM

/* Columns j to j + qb of a step, everywhere in the panel. */
typedef void ZLG_C(zlg_sweep)(const struct ZLG_C(zlg_step) *, int64_t);
#define ZLG_SWEEP(qb, nv)                                                                                              \
  static __attribute__((noinline)) void ZLG_C(zlg_sweep_##qb##_##nv)(const struct ZLG_C(zlg_step) * s, int64_t j) {    \
    const struct ZLG_C(zlg_step) c = *s;                                                                               \
    const int64_t xs = c.trail * c.xs, ys = c.trail * c.ys;                                                            \
    for (int64_t l = 0; l < c.lead; l++)                                                                               \
      for (int64_t t = 0; t < c.trail; t++) {                                                                          \
        const ZLG_REAL *x = c.x + l * c.p * xs + t * c.xs;                                                             \
        ZLG_REAL *y = c.y + (l * c.q + j) * ys + t * c.ys;                                                             \
        ZLG_C(zlg_block)(x, xs, c.factor + j, c.q, c.p, y, ys, c.end, 1, qb, nv);                                      \
      }                                                                                                                \
  }
ZLG_BLOCKS(ZLG_SWEEP)
#undef ZLG_SWEEP
#define ZLG_SWEEP(qb, nv) [nv - 1][qb] = ZLG_C(zlg_sweep_##qb##_##nv),
static ZLG_C(zlg_sweep) *const ZLG_C(zlg_sweeps)[4][ZLG_MOST_1 + 1] = {ZLG_BLOCKS(ZLG_SWEEP)};
#undef ZLG_SWEEP

/* One factor over lines that lie as rows, y = x factor: lines of p elements, xl apart, to lines of q elements, yl
 * apart. Lanes are columns of the factor here, and a block is QB lines times NV vectors of columns. */
struct ZLG_C(zlg_lines) {
  int64_t p, q;
  const ZLG_REAL *factor, *x;
  int64_t xl;
  ZLG_REAL *y;
  int64_t yl;
  const struct ZLG_C(zlg_end) * end;
};
typedef void ZLG_C(zlg_rows)(const struct ZLG_C(zlg_lines) *, int64_t, int64_t);
#define ZLG_ROWS(qb, nv)                                                                                               \
  static __attribute__((noinline)) void ZLG_C(zlg_rows_##qb##_##nv)(const struct ZLG_C(zlg_lines) * c, int64_t l,      \
                                                                    int64_t t) {                                       \
    const ZLG_REAL *x = c->x + l * c->xl;                                                                              \
    for (int j = 0; j < qb && t == 0; j++)                                                                             \
      for (int64_t i = 0; i < c->p; i += 64 / (int64_t)sizeof(ZLG_REAL))                                               \
        __builtin_prefetch((const char *)(x + j * c->xl + i) + ZLG_AHEAD);                                             \
    ZLG_REAL *y = c->y + l * c->yl + t;                                                                                \
    ZLG_C(zlg_block)(c->factor + t, c->q, x, 1, c->p, y, c->yl, c->end, c->xl, qb, nv);                                \
  }
ZLG_BLOCKS(ZLG_ROWS)
#undef ZLG_ROWS
#define ZLG_ROWS(qb, nv) [nv - 1][qb] = ZLG_C(zlg_rows_##qb##_##nv),
static ZLG_C(zlg_rows) *const ZLG_C(zlg_rows_of)[4][ZLG_MOST_1 + 1] = {ZLG_BLOCKS(ZLG_ROWS)};
#undef ZLG_ROWS

/* The whole step, in blocks of columns as alike as can be. One vector of lanes is few for a wide factor: neighbours
 * along the trail that lie side by side are as good as further lanes. */
static void ZLG_C(zlg_contract)(const struct ZLG_C(zlg_step) * s, int nv) {
  struct ZLG_C(zlg_step) wide;
  enum { WIDE = ZLG_VECTOR_BYTES == 64 ? 4 : 2 };
  if (nv == 1 && s->q > zlg_block_most[0] && s->trail % WIDE == 0 && s->xs == ZLG_V && s->ys == ZLG_V) {
    wide = *s, s = &wide, nv = WIDE;
    wide.trail /= WIDE, wide.xs *= WIDE, wide.ys *= WIDE;
  }
  const int64_t most = zlg_block_most[nv - 1], blocks = (s->q + most - 1) / most;
  int64_t j = 0;
  for (int64_t b = 0; b < blocks; b++) {
    const int64_t next = s->q * (b + 1) / blocks;
    ZLG_C(zlg_sweeps)[nv - 1][next - j](s, j);
    j = next;
  }
}

/* ---- lanes: ends of lines, transpositions ---- */

#if ZLG_BITS == 32
#if defined(__AVX512F__)
ZLG_INLINE zlg_v32 zlg_load_part_32(const float *p, int n) {
  return (zlg_v32)_mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), p);
}
ZLG_INLINE void zlg_store_part_32(float *p, zlg_v32 v, int n) {
  _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1), (__m512)v);
}
ZLG_INLINE void zlg_transpose_32(zlg_v32 *r) {
  __m512 t[16], *x = (__m512 *)r;
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    const __m512 a = _mm512_unpacklo_ps(x[i], x[i + 1]), b = _mm512_unpackhi_ps(x[i], x[i + 1]);
    const __m512 c = _mm512_unpacklo_ps(x[i + 2], x[i + 3]), d = _mm512_unpackhi_ps(x[i + 2], x[i + 3]);
    t[i] = (__m512)_mm512_unpacklo_pd((__m512d)a, (__m512d)c);
    t[i + 1] = (__m512)_mm512_unpackhi_pd((__m512d)a, (__m512d)c);
    t[i + 2] = (__m512)_mm512_unpacklo_pd((__m512d)b, (__m512d)d);
    t[i + 3] = (__m512)_mm512_unpackhi_pd((__m512d)b, (__m512d)d);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++) {
    const __m512 a = _mm512_shuffle_f32x4(t[i], t[4 + i], 0x88), b = _mm512_shuffle_f32x4(t[i], t[4 + i], 0xdd);
    const __m512 c = _mm512_shuffle_f32x4(t[8 + i], t[12 + i], 0x88),
                 d = _mm512_shuffle_f32x4(t[8 + i], t[12 + i], 0xdd);
    x[i] = _mm512_shuffle_f32x4(a, c, 0x88);
    x[8 + i] = _mm512_shuffle_f32x4(a, c, 0xdd);
    x[4 + i] = _mm512_shuffle_f32x4(b, d, 0x88);
    x[12 + i] = _mm512_shuffle_f32x4(b, d, 0xdd);
  }
}
#elif defined(__AVX2__)
static const int32_t zlg_part32[16] = {-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0};
ZLG_INLINE zlg_v32 zlg_load_part_32(const float *p, int n) {
  return (zlg_v32)_mm256_maskload_ps(p, _mm256_loadu_si256((const __m256i *)(zlg_part32 + 8 - n)));
}
ZLG_INLINE void zlg_store_part_32(float *p, zlg_v32 v, int n) {
  _mm256_maskstore_ps(p, _mm256_loadu_si256((const __m256i *)(zlg_part32 + 8 - n)), (__m256)v);
}
ZLG_INLINE void zlg_transpose_32(zlg_v32 *r) {
  __m256 t[8], *x = (__m256 *)r;
#pragma GCC unroll 2
  for (int i = 0; i < 8; i += 4) {
    const __m256 a = _mm256_unpacklo_ps(x[i], x[i + 1]), b = _mm256_unpackhi_ps(x[i], x[i + 1]);
    const __m256 c = _mm256_unpacklo_ps(x[i + 2], x[i + 3]), d = _mm256_unpackhi_ps(x[i + 2], x[i + 3]);
    t[i] = (__m256)_mm256_unpacklo_pd((__m256d)a, (__m256d)c);
    t[i + 1] = (__m256)_mm256_unpackhi_pd((__m256d)a, (__m256d)c);
    t[i + 2] = (__m256)_mm256_unpacklo_pd((__m256d)b, (__m256d)d);
    t[i + 3] = (__m256)_mm256_unpackhi_pd((__m256d)b, (__m256d)d);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++) {
    x[i] = _mm256_permute2f128_ps(t[i], t[4 + i], 0x20);
    x[4 + i] = _mm256_permute2f128_ps(t[i], t[4 + i], 0x31);
  }
}
#endif
#else
#if defined(__AVX512F__)
ZLG_INLINE zlg_v64 zlg_load_part_64(const double *p, int n) {
  return (zlg_v64)_mm512_maskz_loadu_pd((__mmask8)((1u << n) - 1), p);
}
ZLG_INLINE void zlg_store_part_64(double *p, zlg_v64 v, int n) {
  _mm512_mask_storeu_pd(p, (__mmask8)((1u << n) - 1), (__m512d)v);
}
ZLG_INLINE void zlg_transpose_64(zlg_v64 *r) {
  __m512d t[8], *x = (__m512d *)r;
#pragma GCC unroll 4
  for (int i = 0; i < 8; i += 2) {
    t[i] = _mm512_unpacklo_pd(x[i], x[i + 1]);
    t[i + 1] = _mm512_unpackhi_pd(x[i], x[i + 1]);
  }
#pragma GCC unroll 2
  for (int i = 0; i < 2; i++) {
    const __m512d a = _mm512_shuffle_f64x2(t[i], t[2 + i], 0x88), b = _mm512_shuffle_f64x2(t[i], t[2 + i], 0xdd);
    const __m512d c = _mm512_shuffle_f64x2(t[4 + i], t[6 + i], 0x88),
                  d = _mm512_shuffle_f64x2(t[4 + i], t[6 + i], 0xdd);
    x[i] = _mm512_shuffle_f64x2(a, c, 0x88);
    x[4 + i] = _mm512_shuffle_f64x2(a, c, 0xdd);
    x[2 + i] = _mm512_shuffle_f64x2(b, d, 0x88);
    x[6 + i] = _mm512_shuffle_f64x2(b, d, 0xdd);
  }
}
#elif defined(__AVX2__)
static const int64_t zlg_part64[8] = {-1, -1, -1, -1, 0, 0, 0, 0};
ZLG_INLINE zlg_v64 zlg_load_part_64(const double *p, int n) {
  return (zlg_v64)_mm256_maskload_pd(p, _mm256_loadu_si256((const __m256i *)(zlg_part64 + 4 - n)));
}
ZLG_INLINE void zlg_store_part_64(double *p, zlg_v64 v, int n) {
  _mm256_maskstore_pd(p, _mm256_loadu_si256((const __m256i *)(zlg_part64 + 4 - n)), (__m256d)v);
}
ZLG_INLINE void zlg_transpose_64(zlg_v64 *r) {
  __m256d *x = (__m256d *)r;
  const __m256d a = _mm256_unpacklo_pd(x[0], x[1]), b = _mm256_unpackhi_pd(x[0], x[1]);
  const __m256d c = _mm256_unpacklo_pd(x[2], x[3]), d = _mm256_unpackhi_pd(x[2], x[3]);
  x[0] = _mm256_permute2f128_pd(a, c, 0x20);
  x[1] = _mm256_permute2f128_pd(b, d, 0x20);
  x[2] = _mm256_permute2f128_pd(a, c, 0x31);
  x[3] = _mm256_permute2f128_pd(b, d, 0x31);
}
#endif
#endif
#if !defined(__AVX2__)
ZLG_INLINE ZLG_VEC ZLG_C(zlg_load_part)(const ZLG_REAL *p, int n) {
  ZLG_VEC v = {0};
  for (int i = 0; i < n; i++) v[i] = p[i];
  return v;
}
ZLG_INLINE void ZLG_C(zlg_store_part)(ZLG_REAL *p, ZLG_VEC v, int n) {
  for (int i = 0; i < n; i++) p[i] = v[i];
}
ZLG_INLINE void ZLG_C(zlg_transpose)(ZLG_VEC *r) {
  ZLG_REAL t[ZLG_V][ZLG_V], from[ZLG_V][ZLG_V];
  memcpy(from, r, sizeof from);
  for (int i = 0; i < ZLG_V; i++)
    for (int j = 0; j < ZLG_V; j++) t[i][j] = from[j][i];
  memcpy(r, t, sizeof t);
}
#endif

/* ---- passes ---- */

/* Where a tensor lies: element (a, b, c, s, t) at data + a step[0] + b step[1] + c step[2] + s element + t. */
struct ZLG_C(zlg_place) {
  ZLG_REAL *data;
  int64_t step[3], element;
};

/* The distance of ZLG_V lines where it is always the same, else 0. */
static int64_t ZLG_C(zlg_even)(ZLG_REAL *const *lines) {
  const int64_t step = lines[1] - lines[0];
  for (int i = 2; i < ZLG_V; i++)
    if (lines[i] - lines[i - 1] != step) return 0;
  return step;
}

/* The statement for ZLG_V lines, `at` line i: four addresses at a time from one pointer, which the compiler would else
 * compute beforehand and spill. */
#define ZLG_EACH_LINE(first, step, ...)                                                                                \
  {                                                                                                                    \
    __typeof__(&(first)[0]) at_ = (first);                                                                             \
    _Pragma("GCC unroll 16") for (int i = 0; i < ZLG_V; i++) {                                                         \
      __typeof__(at_) at = at_ + (i % 4) * (step);                                                                     \
      __VA_ARGS__;                                                                                                     \
      if (i % 4 == 3) {                                                                                                \
        at_ += 4 * (step);                                                                                             \
        __asm__("" : "+r"(at_));                                                                                       \
      }                                                                                                                \
    }                                                                                                                  \
  }

/* ZLG_V lines of n elements into the lanes of n vectors, ld apart. Asks for what comes next: the same lines' next n
 * elements (along), or as many lines further on. */
static void ZLG_C(zlg_transpose_in)(ZLG_REAL *const *lines, int64_t n, ZLG_REAL *panel, int64_t ld, bool along) {
  const int64_t step = ZLG_C(zlg_even)(lines), ahead = along ? n : step * ld;
  int64_t s = 0;
  for (; s < n && n >= ZLG_V; s += ZLG_V) {
    ZLG_VEC r[ZLG_V];
    if (s + ZLG_V > n) s = n - ZLG_V; /* back over some elements once more */
    if (step != 0) {
      const ZLG_REAL *from = lines[0] + s;
      ZLG_EACH_LINE(from, step, (r[i] = *(const ZLG_C(zlg_loose) *)at, __builtin_prefetch(at + ahead)))
    } else {
      for (int i = 0; i < ZLG_V; i++) r[i] = *(const ZLG_C(zlg_loose) *)(lines[i] + s);
    }
    ZLG_C(zlg_transpose)(r);
    ZLG_REAL *to = panel + s * ld;
    ZLG_EACH_LINE(to, ld, *(ZLG_VEC *)at = r[i])
  }
  if (s >= n) return;
  ZLG_VEC r[ZLG_V];
  for (int i = 0; i < ZLG_V; i++) r[i] = ZLG_C(zlg_load_part)(lines[i] + s, (int)(n - s));
  ZLG_C(zlg_transpose)(r);
  for (int i = 0; i < n - s; i++) *(ZLG_VEC *)(panel + (s + i) * ld) = r[i];
}

/* The way back, of the first `count` lanes. */
static void ZLG_C(zlg_transpose_out)(const ZLG_REAL *panel, int64_t ld, int64_t n, ZLG_REAL *const *lines, int count,
                                     const struct ZLG_C(zlg_end) * end) {
  const int64_t step = ZLG_C(zlg_even)(lines);
  const bool whole = count == ZLG_V && step != 0 && end->mode <= ZLG_STREAM;
  int64_t s = 0;
  for (; s < n && n >= ZLG_V; s += ZLG_V) {
    if (s + ZLG_V > n) {
      if (end->mode == ZLG_STREAM || end->mode == ZLG_ADD) break;
      s = n - ZLG_V;
    }
    ZLG_VEC r[ZLG_V];
    const ZLG_REAL *from = panel + s * ld;
    ZLG_EACH_LINE(from, ld, r[i] = *(const ZLG_VEC *)at)
    ZLG_C(zlg_transpose)(r);
    ZLG_REAL *to = lines[0] + s;
    if (whole && end->mode == ZLG_STREAM)
      ZLG_EACH_LINE(to, step, ZLG_C(zlg_stream)(at, r[i]))
    else if (whole)
      ZLG_EACH_LINE(to, step, *(ZLG_C(zlg_loose) *)at = r[i])
    else
      for (int i = 0; i < count; i++) ZLG_C(zlg_put)(lines[i] + s, r[i], end);
  }
  if (s >= n) return;
  ZLG_VEC r[ZLG_V];
  const int rest = (int)(n - s);
  for (int i = 0; i < ZLG_V; i++) r[i] = i < rest ? *(const ZLG_VEC *)(panel + (s + i) * ld) : (ZLG_VEC){0};
  ZLG_C(zlg_transpose)(r);
  for (int i = 0; i < count; i++) {
    ZLG_REAL *to = lines[i] + s;
    ZLG_VEC was = end->mode == ZLG_ADD ? ZLG_C(zlg_load_part)(to, rest) : (ZLG_VEC){0};
    ZLG_C(zlg_put)((ZLG_REAL *)&was, r[i], end);
    ZLG_C(zlg_store_part)(to, was, rest);
  }
}

/* The factors of a group over one panel; the first reads x, the last writes y. */
static void ZLG_C(zlg_run_group)(const struct zlg_group *g, const ZLG_REAL *const *factors, int nv, int64_t inner,
                                 const ZLG_REAL *x, int64_t xs, ZLG_REAL *y, int64_t ys,
                                 const struct ZLG_C(zlg_end) * end, ZLG_REAL *const *panels) {
  static const struct ZLG_C(zlg_end) plain = {ZLG_STORE, 1, 0};
  const int64_t lanes = (int64_t)nv * ZLG_V;
  for (int k = 0; k < g->steps; k++) {
    const struct zlg_group_step *gs = &g->step[k];
    const bool last = k == g->steps - 1;
    /* Square factors of one block are applied in place: fewer panels in the first cache. */
    const bool in_place = k > 0 && gs->p == gs->q && gs->q <= zlg_block_most[nv - 1];
    ZLG_REAL *to = last ? y : in_place ? (ZLG_REAL *)(uintptr_t)x : panels[0] == x ? panels[1] : panels[0];
    const struct ZLG_C(zlg_step) step = {.lead = gs->lead,
                                         .p = gs->p,
                                         .q = gs->q,
                                         .trail = gs->trail * inner,
                                         .factor = factors[gs->factor],
                                         .x = x,
                                         .xs = xs,
                                         .y = to,
                                         .ys = last ? ys : lanes,
                                         .end = last ? end : &plain};
    ZLG_C(zlg_contract)(&step, nv);
    x = to, xs = lanes;
  }
}

/* n elements of nv vectors of lanes into a panel; of the last vector only `tail` lanes are there, if not 0. */
static void ZLG_C(zlg_panel_in)(const ZLG_REAL *from, int64_t element, int64_t n, int nv, int tail, ZLG_REAL *panel) {
  const int whole = tail ? nv - 1 : nv;
  for (int64_t s = 0; s < n; s++, from += element, panel += nv * ZLG_V) {
    for (int v = 0; v < whole; v++) *(ZLG_VEC *)(panel + v * ZLG_V) = *(const ZLG_C(zlg_loose) *)(from + v * ZLG_V);
    if (tail) *(ZLG_VEC *)(panel + whole * ZLG_V) = ZLG_C(zlg_load_part)(from + whole * ZLG_V, tail);
  }
}

/* The way back of a panel whose last vector has only `tail` lanes. */
static void ZLG_C(zlg_panel_out)(const ZLG_REAL *panel, int64_t n, int nv, int tail, ZLG_REAL *to, int64_t element,
                                 const struct ZLG_C(zlg_end) * end) {
  for (int64_t s = 0; s < n; s++, to += element, panel += nv * ZLG_V) {
    for (int v = 0; v < nv - 1; v++) ZLG_C(zlg_put)(to + v * ZLG_V, *(const ZLG_VEC *)(panel + v * ZLG_V), end);
    ZLG_REAL *last = to + (nv - 1) * ZLG_V;
    ZLG_VEC was = end->mode == ZLG_ADD ? ZLG_C(zlg_load_part)(last, tail) : (ZLG_VEC){0};
    ZLG_C(zlg_put)((ZLG_REAL *)&was, *(const ZLG_VEC *)(panel + (nv - 1) * ZLG_V), end);
    ZLG_C(zlg_store_part)(last, was, tail);
  }
}

/* Asks for the lines of a panel's lanes. */
ZLG_INLINE void ZLG_C(zlg_ask)(const ZLG_REAL *line, int64_t element, int64_t n, int nv, const int write) {
  for (int64_t s = 0; s < n; s++, line += element)
    for (int v = 0; v < nv; v++)
      if (write)
        __builtin_prefetch(line + v * ZLG_V, 1);
      else
        __builtin_prefetch(line + v * ZLG_V);
}

/* Elements that are read several times do so from a panel, not from lines that may fall on each other in the cache. */
ZLG_INLINE bool ZLG_C(zlg_wants_panel)(const struct zlg_group *g) {
  return g->step[0].q > zlg_block_most[g->vectors - 1] && g->step[0].p > 8;
}

/* One tensor's panels, along `count` trailing elements. */
static void ZLG_C(zlg_panels)(const struct zlg_group *g, const ZLG_REAL *const *factors, int64_t count,
                              const ZLG_REAL *from, int64_t xe, ZLG_REAL *to, int64_t ye,
                              const struct ZLG_C(zlg_end) * end, ZLG_REAL *const *panels, bool far) {
  static const struct ZLG_C(zlg_end) plain = {ZLG_STORE, 1, 0};
  const int most = g->vectors;
  const bool copied = ZLG_C(zlg_wants_panel)(g);
  for (int64_t t = 0, lanes; t < count; t += lanes) {
    const int64_t rest = count - t;
    const int nv = rest >= (int64_t)most * ZLG_V ? most : (int)((rest + ZLG_V - 1) / ZLG_V);
    lanes = (int64_t)nv * ZLG_V;
    int tail = rest < lanes ? (int)(rest - lanes + ZLG_V) : 0;
    /* The last panel goes back over some lanes of the one before, which come out the same. */
    if (tail && count >= lanes && end->mode != ZLG_ADD) t = count - lanes, tail = 0;
    if (far && rest > lanes) {
      ZLG_C(zlg_ask)(from + t + lanes, xe, g->in, nv, 0);
      if (end->mode != ZLG_STREAM) ZLG_C(zlg_ask)(to + t + lanes, ye, g->out, nv, 1);
    }
    const bool in_panel = tail || copied;
    if (in_panel) ZLG_C(zlg_panel_in)(from + t, xe, g->in, nv, tail, panels[0]);
    const ZLG_REAL *x = in_panel ? panels[0] : from + t;
    const int64_t xs = in_panel ? lanes : xe;
    if (tail) {
      ZLG_C(zlg_run_group)(g, factors, nv, 1, x, xs, panels[2], lanes, &plain, panels);
      ZLG_C(zlg_panel_out)(panels[2], g->out, nv, tail, to + t, ye, end);
    } else {
      ZLG_C(zlg_run_group)(g, factors, nv, 1, x, xs, to + t, ye, end, panels);
    }
  }
}

/* Lanes along the trailing elements, `count` of them side by side. */
static void ZLG_C(zlg_pass_trail)(const struct zlg_group *g, const ZLG_REAL *const *factors, const int64_t *counts,
                                  int64_t count, const struct ZLG_C(zlg_place) * x, const struct ZLG_C(zlg_place) * y,
                                  const struct ZLG_C(zlg_end) * end, ZLG_REAL *const *panels, bool far) {
  for (int64_t a = 0; a < counts[0]; a++)
    for (int64_t b = 0; b < counts[1]; b++)
      for (int64_t c = 0; c < counts[2]; c++) {
        const ZLG_REAL *from = x->data + a * x->step[0] + b * x->step[1] + c * x->step[2];
        ZLG_REAL *to = y->data + a * y->step[0] + b * y->step[1] + c * y->step[2];
        ZLG_C(zlg_panels)(g, factors, count, from, x->element, to, y->element, end, panels, far);
      }
}

/* Lanes along counts[0] x counts[1] lines, each of in * inner elements side by side. */
static void ZLG_C(zlg_pass_lead)(const struct zlg_group *g, const ZLG_REAL *const *factors, const int64_t *counts,
                                 int64_t inner, const struct ZLG_C(zlg_place) * x, const struct ZLG_C(zlg_place) * y,
                                 const struct ZLG_C(zlg_end) * end, ZLG_REAL *const *panels) {
  static const struct ZLG_C(zlg_end) plain = {ZLG_STORE, 1, 0};
  const int64_t lines = counts[0] * counts[1];
  int64_t fewest = ZLG_SUMS_LEAST;
  for (int k = 0; k < g->steps; k++) fewest = g->step[k].q < fewest ? g->step[k].q : fewest;
  const int64_t lane = g->widest * inner * ZLG_VECTOR_BYTES;
  int most = g->vectors;
  while (most > 1 && lane * most > ((most - 1) * fewest >= ZLG_SUMS_LEAST ? ZLG_LEAD_PANEL_BYTES : ZLG_PANEL_BYTES))
    most--;
  int64_t a = 0, b = 0;
  for (int64_t at = 0; at < lines;) {
    ZLG_REAL *from[4 * ZLG_V], *to[4 * ZLG_V];
    const int64_t rest = lines - at;
    const int nv = rest >= (int64_t)most * ZLG_V ? most : (int)((rest + ZLG_V - 1) / ZLG_V);
    const int lanes = nv * ZLG_V;
    if (rest < lanes && lines >= lanes && end->mode != ZLG_ADD) {
      at = lines - lanes; /* back over some lines, which come out the same */
      a = at / counts[1], b = at % counts[1];
    }
    const int used = lines - at < lanes ? (int)(lines - at) : lanes;
    for (int i = 0; i < used; i++) {
      from[i] = x->data + a * x->step[0] + b * x->step[1];
      to[i] = y->data + a * y->step[0] + b * y->step[1];
      if (++b == counts[1]) b = 0, a++;
    }
    for (int i = used; i < lanes; i++) from[i] = from[0], to[i] = to[0];
    for (int v = 0; v < nv; v++)
      ZLG_C(zlg_transpose_in)(from + v * ZLG_V, g->in * inner, panels[0] + v * ZLG_V, lanes, false);
    ZLG_C(zlg_run_group)(g, factors, nv, inner, panels[0], lanes, panels[2], lanes, &plain, panels);
    for (int v = 0; v < nv; v++) {
      const int here = used - v * ZLG_V < ZLG_V ? used - v * ZLG_V : ZLG_V;
      if (here > 0) ZLG_C(zlg_transpose_out)(panels[2] + v * ZLG_V, lanes, g->out * inner, to + v * ZLG_V, here, end);
    }
    at += used;
  }
}

/* One group whose trail is one element, between two orders: lanes are vectors, each of `lead` lines. x_rows: a vector's
 * elements lie side by side in x, and vectors xs apart, and in y the same element of all vectors does, and elements ys
 * apart; else the other way round. */
static void ZLG_C(zlg_pass_turn)(const struct zlg_group *g, const ZLG_REAL *const *factors, int64_t vectors,
                                 bool x_rows, const ZLG_REAL *x, int64_t xs, ZLG_REAL *y, int64_t ys,
                                 const struct ZLG_C(zlg_end) * end, ZLG_REAL *const *panels) {
  static const struct ZLG_C(zlg_end) plain = {ZLG_STORE, 1, 0};
  const int most = g->vectors;
  const bool copied = ZLG_C(zlg_wants_panel)(g);
  for (int64_t v = 0, used; v < vectors; v += used) {
    const int64_t rest = vectors - v;
    const int nv = rest >= (int64_t)most * ZLG_V ? most : (int)((rest + ZLG_V - 1) / ZLG_V), lanes = nv * ZLG_V;
    const int tail = rest < lanes ? (int)rest - lanes + ZLG_V : 0;
    used = rest < lanes ? rest : lanes;
    for (int64_t l = 0; l < g->lead; l++) {
      ZLG_REAL *lines[4 * ZLG_V]; /* of the side that is stored by vectors */
      ZLG_REAL *const row = x_rows ? (ZLG_REAL *)(uintptr_t)x + v * xs + l * g->in : y + v * ys + l * g->out;
      for (int i = 0; i < lanes; i++) lines[i] = row + (i < used ? i : 0) * (x_rows ? xs : ys);
      if (x_rows) {
        ZLG_REAL *to = y + l * g->out * ys + v;
        for (int w = 0; w < lanes; w += ZLG_V) ZLG_C(zlg_transpose_in)(lines + w, g->in, panels[0] + w, lanes, true);
        ZLG_C(zlg_run_group)
        (g, factors, nv, 1, panels[0], lanes, tail ? panels[2] : to, tail ? lanes : ys, tail ? &plain : end, panels);
        if (tail) ZLG_C(zlg_panel_out)(panels[2], g->out, nv, tail, to, ys, end);
      } else {
        const ZLG_REAL *from = x + l * g->in * xs + v;
        const bool in_panel = tail || copied;
        ZLG_C(zlg_ask)(from + g->in * xs, xs, g->in, nv, 0);
        if (in_panel) ZLG_C(zlg_panel_in)(from, xs, g->in, nv, tail, panels[0]);
        ZLG_C(zlg_run_group)
        (g, factors, nv, 1, in_panel ? panels[0] : from, in_panel ? lanes : xs, panels[2], lanes, &plain, panels);
        for (int w = 0; w < used; w += ZLG_V) ZLG_C(zlg_transpose_out)
        (panels[2] + w, lanes, g->out, lines + w, used - w < ZLG_V ? (int)used - w : ZLG_V, end);
      }
    }
  }
}

/* Copies n x vectors elements between two orders: element (k, v) at k xk + v xv of x and k yk + v yv of y, one of the
 * two strides 1. */
static void ZLG_C(zlg_convert)(int64_t n, int64_t vectors, const ZLG_REAL *x, int64_t xk, int64_t xv, ZLG_REAL *y,
                               int64_t yk, int64_t yv, const struct ZLG_C(zlg_end) * end) {
  if ((xk == 1) == (yk == 1)) {
    const int64_t count = xk == 1 ? n : vectors, lines = xk == 1 ? vectors : n;
    for (int64_t l = 0; l < lines; l++) {
      const ZLG_REAL *from = x + l * (xk == 1 ? xv : xk);
      ZLG_REAL *to = y + l * (xk == 1 ? yv : yk);
      int64_t t = 0;
      for (; t + ZLG_V <= count; t += ZLG_V) ZLG_C(zlg_put)(to + t, *(const ZLG_C(zlg_loose) *)(from + t), end);
      if (t == count) continue;
      const int tail = (int)(count - t);
      ZLG_VEC was = end->mode == ZLG_ADD ? ZLG_C(zlg_load_part)(to + t, tail) : (ZLG_VEC){0};
      ZLG_C(zlg_put)((ZLG_REAL *)&was, ZLG_C(zlg_load_part)(from + t, tail), end);
      ZLG_C(zlg_store_part)(to + t, was, tail);
    }
    return;
  }
  const int64_t rows = xk == 1 ? vectors : n, columns = xk == 1 ? n : vectors; /* lines of x, and their length */
  const int64_t xl = xk == 1 ? xv : xk, yl = xk == 1 ? yk : yv;
  for (int64_t i = 0; i < rows; i += ZLG_V)
    for (int64_t j = 0; j < columns; j += ZLG_V) {
      ZLG_VEC r[ZLG_V];
      const int di = rows - i < ZLG_V ? (int)(rows - i) : ZLG_V, dj = columns - j < ZLG_V ? (int)(columns - j) : ZLG_V;
      for (int e = 0; e < ZLG_V; e++)
        r[e] = e >= di       ? (ZLG_VEC){0}
               : dj == ZLG_V ? *(const ZLG_C(zlg_loose) *)(x + (i + e) * xl + j)
                             : ZLG_C(zlg_load_part)(x + (i + e) * xl + j, dj);
      ZLG_C(zlg_transpose)(r);
      for (int e = 0; e < dj; e++) {
        ZLG_REAL *to = y + (j + e) * yl + i;
        if (di == ZLG_V) {
          ZLG_C(zlg_put)(to, r[e], end);
        } else {
          ZLG_VEC was = end->mode == ZLG_ADD ? ZLG_C(zlg_load_part)(to, di) : (ZLG_VEC){0};
          ZLG_C(zlg_put)((ZLG_REAL *)&was, r[e], end);
          ZLG_C(zlg_store_part)(to, was, di);
        }
      }
    }
}

/* Whether a factor's columns are better lanes than so many lines: where they fill whole vectors, nearly so, or lines
 * are few. The last columns are then taken twice, where that does not add twice. */
ZLG_INLINE bool ZLG_C(zlg_columns_are_lanes)(int64_t q, int64_t lines, bool adds) {
  if (q % ZLG_V == 0) return true;
  return q > ZLG_V && !adds && (lines < ZLG_V || 8 * q >= 7 * ((q + ZLG_V - 1) / ZLG_V * ZLG_V));
}

/* A last factor over counts[0] x counts[1] rows as they lie; its columns are lanes. */
static void ZLG_C(zlg_pass_rows)(const struct zlg_group *g, const ZLG_REAL *const *factors, const int64_t *counts,
                                 const struct ZLG_C(zlg_place) * x, const struct ZLG_C(zlg_place) * y,
                                 const struct ZLG_C(zlg_end) * end) {
  const bool even = x->step[0] == counts[1] * x->step[1] && y->step[0] == counts[1] * y->step[1];
  const int64_t outer = even ? 1 : counts[0], lines = even ? counts[0] * counts[1] : counts[1];
  for (int64_t o = 0; o < outer; o++) {
    const struct ZLG_C(zlg_lines) c = {.p = g->in,
                                       .q = g->out,
                                       .factor = factors[g->step[0].factor],
                                       .x = x->data + o * x->step[0],
                                       .xl = x->step[1],
                                       .y = y->data + o * y->step[0],
                                       .yl = y->step[1],
                                       .end = end};
    for (int64_t t = 0; t < g->out;) {
      if (g->out - t < ZLG_V) t = g->out - ZLG_V;
      const int64_t rest = (g->out - t) / ZLG_V;
      const int nv = rest > g->vectors ? g->vectors : (int)rest;
      const int64_t most = zlg_block_most[nv - 1], blocks = (lines + most - 1) / most;
      for (int64_t b = 0, l = 0; b < blocks; b++) {
        const int64_t next = lines * (b + 1) / blocks;
        ZLG_C(zlg_rows_of)[nv - 1][next - l](&c, l, t);
        l = next;
      }
      t += nv * ZLG_V;
    }
  }
}

/* One group: outer tensors (lead, in, trail) with `inner` lanes behind each element. xo, yo: from tensor to tensor; xe,
 * ye: from element to element. */
static void ZLG_C(zlg_pass)(const struct zlg_group *g, const ZLG_REAL *const *factors, int64_t outer, int64_t inner,
                            const ZLG_REAL *x, int64_t xo, int64_t xe, int64_t pad, ZLG_REAL *y, int64_t yo, int64_t ye,
                            const struct ZLG_C(zlg_end) * end, ZLG_REAL *const *panels, bool far) {
  const int64_t trail = g->trail * inner, lines = outer * g->lead;
  const bool together = xe == inner && ye == inner; /* trailing elements lie side by side */
  const bool split = !together && g->trail > 1;
  const struct ZLG_C(zlg_place) from = {(ZLG_REAL *)(uintptr_t)x, {xo, g->in * g->trail * xe, xe}, g->trail * xe + pad};
  const struct ZLG_C(zlg_place) into = {y, {yo, g->out * g->trail * ye, ye}, g->trail * ye};
  const double by_trail = (double)trail / (double)((trail + ZLG_V - 1) / ZLG_V * ZLG_V);
  const double by_lead = 0.7 * (double)lines / (double)((lines + ZLG_V - 1) / ZLG_V * ZLG_V);
  if (together && pad == 0 && trail == 1 && g->steps == 1 &&
      ZLG_C(zlg_columns_are_lanes)(g->out, lines, end->mode == ZLG_ADD)) {
    const int64_t counts[2] = {outer, g->lead};
    ZLG_C(zlg_pass_rows)(g, factors, counts, &from, &into, end);
  } else if (together && pad == 0 && by_lead > by_trail &&
             g->widest * trail * ZLG_VECTOR_BYTES <= 2 * ZLG_PANEL_BYTES) {
    const int64_t counts[2] = {outer, g->lead};
    ZLG_C(zlg_pass_lead)(g, factors, counts, trail, &from, &into, end, panels);
  } else {
    const int64_t counts[3] = {outer, g->lead, split ? g->trail : 1};
    ZLG_C(zlg_pass_trail)(g, factors, counts, split ? inner : trail, &from, &into, end, panels, far);
  }
}

/* ---- chains ---- */

/* The groups behind the prefix from the begin-th on, over `outer` tensors, which in between lie `pad` elements apart;
 * one that does not begin with the first finds its tensors in tensors[0]. */
static void ZLG_C(zlg_chain)(const struct zlg_chain *c, int begin, const ZLG_REAL *const *factors, int64_t outer,
                             int64_t inner, int64_t pad, const ZLG_REAL *x, int64_t xo, int64_t xe, ZLG_REAL *y,
                             int64_t yo, int64_t ye, const struct ZLG_C(zlg_end) * end, ZLG_REAL *const *tensors,
                             ZLG_REAL *const *panels) {
  static const struct ZLG_C(zlg_end) plain = {ZLG_STORE, 1, 0};
  for (int i = begin; i < c->groups; i++) {
    const struct zlg_group *g = &c->group[i];
    const bool first = i == 0, last = i == c->groups - 1;
    const ZLG_REAL *from = first ? x : tensors[(i - 1) & 1];
    ZLG_C(zlg_pass)
    (g, factors, outer, inner, from, first ? xo : g->lead * g->in * g->trail * inner + pad, first ? xe : inner, 0,
     last ? y : tensors[i & 1], last ? yo : g->lead * g->out * g->trail * inner + pad, last ? ye : inner,
     last ? end : &plain, panels, first || last);
  }
}

/* All factors over `vectors` vectors; rows: a vector's elements lie side by side, and vectors xs and ys apart; else all
 * vectors' elements k do, and elements xs and ys apart. tensors: 0 and 1 for the chain, 2 between it and the prefix. */
static void ZLG_C(zlg_whole)(const struct zlg_chain *c, const ZLG_REAL *const *factors, int64_t vectors, bool rows,
                             const ZLG_REAL *x, int64_t xs, ZLG_REAL *y, int64_t ys, const struct ZLG_C(zlg_end) * end,
                             ZLG_REAL *const *tensors, ZLG_REAL *const *panels) {
  static const struct ZLG_C(zlg_end) plain = {ZLG_STORE, 1, 0};
  const int64_t inner = rows ? 1 : vectors, outer = rows ? vectors : 1, xe = rows ? 1 : xs, ye = rows ? 1 : ys;
  if (!c->split) {
    ZLG_C(zlg_chain)(c, 0, factors, outer, inner, 0, x, xs, xe, y, ys, ye, end, tensors, panels);
    return;
  }
  const int64_t apart = c->piece_out * inner + ZLG_PIECE_PAD(ZLG_REAL);
  for (int64_t o = 0; o < outer; o++) {
    for (int64_t a = 0; a < c->prefix.in; a++) {
      const ZLG_REAL *piece = x + o * xs + a * c->piece_in * xe;
      ZLG_REAL *to = tensors[2] + a * apart;
      ZLG_C(zlg_chain)(c, 0, factors, 1, inner, 0, piece, 0, xe, to, 0, inner, &plain, tensors, panels);
    }
    ZLG_REAL *to = y + o * ys;
    ZLG_C(zlg_pass)
    (&c->prefix, factors, 1, inner, tensors[2], 0, inner, ZLG_PIECE_PAD(ZLG_REAL), to, 0, ye, end, panels, true);
  }
}

/* The same where x and y are stored in different orders (c->turned): the first group turns vectors on its way, all
 * else is done in y's order. */
static void ZLG_C(zlg_turned)(const struct zlg_chain *c, const ZLG_REAL *const *factors, int64_t vectors, bool x_rows,
                              const ZLG_REAL *x, int64_t xs, ZLG_REAL *y, int64_t ys, const struct ZLG_C(zlg_end) * end,
                              ZLG_REAL *const *tensors, ZLG_REAL *const *panels) {
  static const struct ZLG_C(zlg_end) plain = {ZLG_STORE, 1, 0};
  const struct zlg_group *first = &c->group[0];
  const int64_t pad = ZLG_PIECE_PAD(ZLG_REAL); /* for lines that are written side by side */
  const int64_t inner = x_rows ? vectors : 1, outer = x_rows ? 1 : vectors, ye = x_rows ? ys : 1;
  const int64_t pieces = c->split ? c->prefix.in : 1, apart = c->piece_out * inner + pad;
  const struct ZLG_C(zlg_end) *chain_end = c->split ? &plain : end;
  const int64_t to_outer = c->split ? pieces * apart : ys, to_element = c->split ? inner : ye;
  for (int64_t a = 0; a < pieces; a++) {
    const ZLG_REAL *piece = x + a * c->piece_in * (x_rows ? 1 : xs);
    ZLG_REAL *to = c->split ? tensors[2] + a * apart : y;
    const bool alone = c->groups == 1;
    const int64_t next = x_rows ? (alone ? to_element : inner) : alone ? to_outer : first->lead * first->out + pad;
    ZLG_C(zlg_pass_turn)
    (first, factors, vectors, x_rows, piece, xs, alone ? to : tensors[0], next, alone ? chain_end : &plain, panels);
    ZLG_C(zlg_chain)
    (c, 1, factors, outer, inner, pad, NULL, 0, 0, to, to_outer, to_element, chain_end, tensors, panels);
  }
  for (int64_t o = 0; o < outer && c->split; o++) ZLG_C(zlg_pass)
  (&c->prefix, factors, 1, inner, tensors[2] + o * to_outer, 0, inner, pad, y + o * ys, 0, ye, end, panels, true);
}

#undef ZLG_EACH_LINE
#undef ZLG_VEC
#undef ZLG_FMA
#undef ZLG_SET
#undef ZLG_REAL
#undef ZLG_V
#undef ZLG_C
#undef ZLG_BITS
