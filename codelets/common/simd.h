/* Vectors for the CPU kernels: GCC's vector extensions, with one width per instruction set, and the few operations that
 * the extensions do not express (minimum and maximum with the processor's NaN rule, absolute value, the exponential,
 * the logarithm, square roots). For cpu.c files only; each includes it once per instruction set.
 *
 * zlg_v32/zlg_v64 hold ZLG_L32/ZLG_L64 lanes. Functions end in 32 or 64, so that a text written once for both types
 * pastes the suffix. Errors are in units in the last place (ulp) of the exact result and are tested in
 * tests/kernel/vmath.c. */
#ifndef ZLG_COMMON_SIMD_H
#define ZLG_COMMON_SIMD_H

/* The kernels' loops are a few per cent faster for it, and options of the command line come in the wrong order: the
 * builder's -O2 stands behind ours. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) &&             \
    !defined(__SANITIZE_THREAD__)
#pragma GCC optimize("O3")
#endif

#include <stdint.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#if defined(__AVX512F__)
#define ZLG_VECTOR_BYTES 64
#elif defined(__AVX2__)
#define ZLG_VECTOR_BYTES 32
#else
#define ZLG_VECTOR_BYTES 16
#endif
#define ZLG_L32 (ZLG_VECTOR_BYTES / 4)
#define ZLG_L64 (ZLG_VECTOR_BYTES / 8)
#define ZLG_INLINE static inline __attribute__((always_inline, unused))

typedef float zlg_v32 __attribute__((vector_size(ZLG_VECTOR_BYTES)));
typedef double zlg_v64 __attribute__((vector_size(ZLG_VECTOR_BYTES)));
typedef int32_t zlg_i32 __attribute__((vector_size(ZLG_VECTOR_BYTES)));
typedef int64_t zlg_i64 __attribute__((vector_size(ZLG_VECTOR_BYTES)));
typedef uint64_t zlg_u64 __attribute__((vector_size(ZLG_VECTOR_BYTES)));
typedef uint32_t zlg_u32 __attribute__((vector_size(ZLG_VECTOR_BYTES)));

/* An operation of the processor where it has one, with the operands in this order; elsewhere in lanes. */
#if defined(__AVX512F__)
#define ZLG_VOP(op, type) _mm512_##op##_##type
#define ZLG_CAST32(v) ((__m512)(v))
#define ZLG_CAST64(v) ((__m512d)(v))
#elif defined(__AVX2__)
#define ZLG_VOP(op, type) _mm256_##op##_##type
#define ZLG_CAST32(v) ((__m256)(v))
#define ZLG_CAST64(v) ((__m256d)(v))
#elif defined(__x86_64__)
#define ZLG_VOP(op, type) _mm_##op##_##type
#define ZLG_CAST32(v) ((__m128)(v))
#define ZLG_CAST64(v) ((__m128d)(v))
#endif

/* a b + c, rounded once wherever the instruction set can: where a result's bits must not depend on what the compiler
 * makes of a sum of products. */
#if defined(__AVX512F__) || defined(__FMA__)
ZLG_INLINE zlg_v32 zlg_fma32(zlg_v32 a, zlg_v32 b, zlg_v32 c) {
  return (zlg_v32)ZLG_VOP(fmadd, ps)(ZLG_CAST32(a), ZLG_CAST32(b), ZLG_CAST32(c));
}
ZLG_INLINE zlg_v64 zlg_fma64(zlg_v64 a, zlg_v64 b, zlg_v64 c) {
  return (zlg_v64)ZLG_VOP(fmadd, pd)(ZLG_CAST64(a), ZLG_CAST64(b), ZLG_CAST64(c));
}
#else
ZLG_INLINE zlg_v32 zlg_fma32(zlg_v32 a, zlg_v32 b, zlg_v32 c) {
  return a * b + c;
}
ZLG_INLINE zlg_v64 zlg_fma64(zlg_v64 a, zlg_v64 b, zlg_v64 c) {
  return a * b + c;
}
#endif

ZLG_INLINE zlg_v32 zlg_set32(float s) {
  return s - (zlg_v32){0};
}
ZLG_INLINE zlg_v64 zlg_set64(double s) {
  return s - (zlg_v64){0};
}

/* A vector from anywhere. Vectors of 64 bytes come in pieces of 16, which memory from malloc() keeps within cache
 * lines: whole ones would cross a line each, and a crossing load that waits for memory costs more than the pieces (Zen
 * 5, streaming points: a fifth of the rate). Of those of 32 bytes every second one crosses, which costs less. */
#if defined(__AVX512F__)
ZLG_INLINE zlg_v64 zlg_load64(const double *from) {
  __m512d v = _mm512_castpd128_pd512(_mm_loadu_pd(from));
  v = _mm512_insertf64x2(v, _mm_loadu_pd(from + 2), 1);
  v = _mm512_insertf64x2(v, _mm_loadu_pd(from + 4), 2);
  return (zlg_v64)_mm512_insertf64x2(v, _mm_loadu_pd(from + 6), 3);
}
ZLG_INLINE zlg_v32 zlg_load32(const float *from) {
  __m512 v = _mm512_castps128_ps512(_mm_loadu_ps(from));
  v = _mm512_insertf32x4(v, _mm_loadu_ps(from + 4), 1);
  v = _mm512_insertf32x4(v, _mm_loadu_ps(from + 8), 2);
  return (zlg_v32)_mm512_insertf32x4(v, _mm_loadu_ps(from + 12), 3);
}
#else
typedef zlg_v32 zlg_loose32 __attribute__((aligned(4), may_alias));
typedef zlg_v64 zlg_loose64 __attribute__((aligned(8), may_alias));
ZLG_INLINE zlg_v64 zlg_load64(const double *from) {
  return *(const zlg_loose64 *)from;
}
ZLG_INLINE zlg_v32 zlg_load32(const float *from) {
  return *(const zlg_loose32 *)from;
}
#endif

/* a where x < limit (not where x is a NaN), b elsewhere; a where e is 0, b elsewhere. */
#if defined(__AVX512F__)
ZLG_INLINE zlg_v32 zlg_where_less32(zlg_v32 x, zlg_v32 limit, zlg_v32 a, zlg_v32 b) {
  return (zlg_v32)_mm512_mask_blend_ps(_mm512_cmp_ps_mask((__m512)x, (__m512)limit, _CMP_LT_OQ), (__m512)b, (__m512)a);
}
ZLG_INLINE zlg_v64 zlg_where_less64(zlg_v64 x, zlg_v64 limit, zlg_v64 a, zlg_v64 b) {
  return (zlg_v64)_mm512_mask_blend_pd(_mm512_cmp_pd_mask((__m512d)x, (__m512d)limit, _CMP_LT_OQ), (__m512d)b,
                                       (__m512d)a);
}
ZLG_INLINE zlg_v32 zlg_where_zero32(zlg_i32 e, zlg_v32 a, zlg_v32 b) {
  return (zlg_v32)_mm512_mask_blend_ps(_mm512_testn_epi32_mask((__m512i)e, (__m512i)e), (__m512)b, (__m512)a);
}
ZLG_INLINE zlg_v64 zlg_where_zero64(zlg_i64 e, zlg_v64 a, zlg_v64 b) {
  return (zlg_v64)_mm512_mask_blend_pd(_mm512_testn_epi64_mask((__m512i)e, (__m512i)e), (__m512d)b, (__m512d)a);
}
#else
ZLG_INLINE zlg_v32 zlg_select32(zlg_i32 mask, zlg_v32 a, zlg_v32 b) {
#if defined(__AVX2__)
  return (zlg_v32)_mm256_blendv_ps((__m256)b, (__m256)a, (__m256)mask);
#else
  return (zlg_v32)((mask & (zlg_i32)a) | (~mask & (zlg_i32)b));
#endif
}
ZLG_INLINE zlg_v64 zlg_select64(zlg_i64 mask, zlg_v64 a, zlg_v64 b) {
#if defined(__AVX2__)
  return (zlg_v64)_mm256_blendv_pd((__m256d)b, (__m256d)a, (__m256d)mask);
#else
  return (zlg_v64)((mask & (zlg_i64)a) | (~mask & (zlg_i64)b));
#endif
}
ZLG_INLINE zlg_v32 zlg_where_less32(zlg_v32 x, zlg_v32 limit, zlg_v32 a, zlg_v32 b) {
  return zlg_select32(x < limit, a, b);
}
ZLG_INLINE zlg_v64 zlg_where_less64(zlg_v64 x, zlg_v64 limit, zlg_v64 a, zlg_v64 b) {
  return zlg_select64(x < limit, a, b);
}
ZLG_INLINE zlg_v32 zlg_where_zero32(zlg_i32 e, zlg_v32 a, zlg_v32 b) {
  return zlg_select32(e == 0, a, b);
}
ZLG_INLINE zlg_v64 zlg_where_zero64(zlg_i64 e, zlg_v64 a, zlg_v64 b) {
  return zlg_select64(e == 0, a, b);
}
#endif

/* Where the two compare false (equal, or a NaN) the second is returned: zlg_max(limit, x) keeps a NaN in x. */
#ifdef ZLG_VOP
ZLG_INLINE zlg_v32 zlg_max32(zlg_v32 a, zlg_v32 b) {
  return (zlg_v32)ZLG_VOP(max, ps)(ZLG_CAST32(a), ZLG_CAST32(b));
}
ZLG_INLINE zlg_v64 zlg_max64(zlg_v64 a, zlg_v64 b) {
  return (zlg_v64)ZLG_VOP(max, pd)(ZLG_CAST64(a), ZLG_CAST64(b));
}
ZLG_INLINE zlg_v32 zlg_min32(zlg_v32 a, zlg_v32 b) {
  return (zlg_v32)ZLG_VOP(min, ps)(ZLG_CAST32(a), ZLG_CAST32(b));
}
ZLG_INLINE zlg_v64 zlg_min64(zlg_v64 a, zlg_v64 b) {
  return (zlg_v64)ZLG_VOP(min, pd)(ZLG_CAST64(a), ZLG_CAST64(b));
}
ZLG_INLINE zlg_v32 zlg_sqrt32(zlg_v32 a) {
  return (zlg_v32)ZLG_VOP(sqrt, ps)(ZLG_CAST32(a));
}
ZLG_INLINE zlg_v64 zlg_sqrt64(zlg_v64 a) {
  return (zlg_v64)ZLG_VOP(sqrt, pd)(ZLG_CAST64(a));
}
#else
ZLG_INLINE zlg_v32 zlg_max32(zlg_v32 a, zlg_v32 b) {
  return a > b ? a : b;
}
ZLG_INLINE zlg_v64 zlg_max64(zlg_v64 a, zlg_v64 b) {
  return a > b ? a : b;
}
ZLG_INLINE zlg_v32 zlg_min32(zlg_v32 a, zlg_v32 b) {
  return a < b ? a : b;
}
ZLG_INLINE zlg_v64 zlg_min64(zlg_v64 a, zlg_v64 b) {
  return a < b ? a : b;
}
ZLG_INLINE zlg_v32 zlg_sqrt32(zlg_v32 a) {
  for (int i = 0; i < ZLG_L32; i++) a[i] = __builtin_sqrtf(a[i]);
  return a;
}
ZLG_INLINE zlg_v64 zlg_sqrt64(zlg_v64 a) {
  for (int i = 0; i < ZLG_L64; i++) a[i] = __builtin_sqrt(a[i]);
  return a;
}
#endif
ZLG_INLINE zlg_v32 zlg_abs32(zlg_v32 a) {
  return (zlg_v32)((zlg_i32)a & INT32_MAX);
}
ZLG_INLINE zlg_v64 zlg_abs64(zlg_v64 a) {
  return (zlg_v64)((zlg_i64)a & INT64_MAX);
}

/* Reduction of t <= 0: t = n + f, n integer, |f| <= 1/2. n is left in the low bits of the sum with 1.5 * 2^23 (2^52).
 */
#define ZLG_MAGIC32 0x1.8p23f
#define ZLG_MAGIC64 0x1.8p52
/* The last exponents: below them 2^t is 0, and between them and the normal numbers it is off by at most 2^-127
 * (2^-1023). */
#define ZLG_EXP2_MIN32 -127.0f
#define ZLG_EXP2_MIN64 -1023.0

/* Stage by stage for n vectors: a chain of some fifty cycles hides behind its neighbours only if they stand close. */
#define ZLG_EACH_VECTOR(v, n) _Pragma("GCC unroll 16") for (int v = 0; v < (n); v++)

/* Makes the compiler read what the pointer points to anew: with 16 registers, constants are better read again in every
 * round of a loop than kept at the price of its sums going to memory and back. */
#if ZLG_VECTOR_BYTES == 64 || !defined(__GNUC__)
#define ZLG_READ_AGAIN(pointer) ((void)0)
#else
#define ZLG_READ_AGAIN(pointer) __asm__("" : "+r"(pointer))
#endif

/* Minimax for the relative error of 2^f, |f| <= 1/2, constant term 1 (2^0 = 1 exactly): 1.6 * 2^-24 and 0.05 * 2^-53.
 */
#define ZLG_EXP2_TERMS32 6
#define ZLG_EXP2_TERMS64 12
struct zlg_exp2_32 {
  float least, magic, coefficients[ZLG_EXP2_TERMS32];
};
struct zlg_exp2_64 {
  double least, magic, coefficients[ZLG_EXP2_TERMS64];
};
static const struct zlg_exp2_32 zlg_exp2_table32 = {
    ZLG_EXP2_MIN32, ZLG_MAGIC32, {0x1.5bfd58p-10f, 0x1.3ceaf8p-7f, 0x1.c6b69ap-5f, 0x1.ebf9bap-3f, 0x1.62e42ap-1f, 1}};
static const struct zlg_exp2_64 zlg_exp2_table64 = {
    ZLG_EXP2_MIN64,
    ZLG_MAGIC64,
    {0x1.e9731780488cp-32, 0x1.e61d4332035bap-28, 0x1.b52522bc20bcdp-24, 0x1.62bfc6596be6ap-20, 0x1.ffcbfc6685ee5p-17,
     0x1.4309130f6cbdbp-13, 0x1.5d87fe789e96fp-10, 0x1.3b2ab6fb9fda6p-7, 0x1.c6b08d704a12cp-5, 0x1.ebfbdff82c5a6p-3,
     0x1.62e42fefa39efp-1, 1}};

/* 2^t in place for t <= 0, -inf and NaN included: t = integer + f. FMA slots: ZLG_EXP2_TERMS - 1. */
#if defined(__AVX512F__)
/* The processor finds f by itself, of infinities too, and VSCALEF lets results underflow gradually. */
#define ZLG_REDUCE32(t) ((zlg_v32)_mm512_reduce_ps((__m512)(t), 0))
#define ZLG_REDUCE64(t) ((zlg_v64)_mm512_reduce_pd((__m512d)(t), 0))
#define ZLG_SCALE32(p, t) ((zlg_v32)_mm512_scalef_ps((__m512)(p), (__m512)(t)))
#define ZLG_SCALE64(p, t) ((zlg_v64)_mm512_scalef_pd((__m512d)(p), (__m512d)(t)))
#define ZLG_EXP2_SPLIT(b)                                                                                              \
  ZLG_EACH_VECTOR (v, n) f[v] = ZLG_REDUCE##b(t[v]);                                                                   \
  ZLG_EACH_VECTOR (v, n) exponent[v] = t[v] - f[v];
#define ZLG_EXP2_JOIN(b, fbits)                                                                                        \
  ZLG_EACH_VECTOR (v, n) t[v] = ZLG_SCALE##b(p[v], exponent[v]);
#else
/* A NaN must be one without payload (the packing sees to that): the exponent is added as an integer. */
#define ZLG_EXP2_SPLIT(b)                                                                                              \
  ZLG_EACH_VECTOR (v, n) f[v] = zlg_max##b(zlg_set##b(table->least), t[v]);                                            \
  ZLG_EACH_VECTOR (v, n) exponent[v] = f[v] + table->magic;                                                            \
  ZLG_EACH_VECTOR (v, n) f[v] = f[v] - (exponent[v] - table->magic);
#define ZLG_EXP2_JOIN(b, fbits)                                                                                        \
  ZLG_EACH_VECTOR (v, n) t[v] = (zlg_v##b)((zlg_i##b)p[v] + ((zlg_i##b)exponent[v] << fbits));
#endif
#define ZLG_EXP2_BODY(b, fbits)                                                                                        \
  zlg_v##b f[16], p[16], exponent[16];                                                                                 \
  ZLG_EXP2_SPLIT(b)                                                                                                    \
  ZLG_EACH_VECTOR (v, n) p[v] = table->coefficients[0] * f[v] + table->coefficients[1];                                \
  _Pragma("GCC unroll 16") for (int e = 2; e < ZLG_EXP2_TERMS##b; e++) ZLG_EACH_VECTOR (v, n) p[v] =                   \
      p[v] * f[v] + table->coefficients[e];                                                                            \
  ZLG_EXP2_JOIN(b, fbits)
/* table: &zlg_exp2_table, perhaps through ZLG_READ_AGAIN. */
ZLG_INLINE void zlg_exp2_32(const struct zlg_exp2_32 *table, zlg_v32 *t, int n){ZLG_EXP2_BODY(32, 23)} ZLG_INLINE
    void zlg_exp2_64(const struct zlg_exp2_64 *table, zlg_v64 *t, int n) {
  ZLG_EXP2_BODY(64, 52)
}

/* tanh(t / (2 log2(e))) = (e - 1) / (e + 1), e = 2^t, in place, from e - 1 without the cancellation near 0: with t = n
 * + f, e - 1 = 2^n (2^f - 1) + (2^n - 1). (2^f - 1) / f is a polynomial: relative error 0.6 * 2^-24 and 0.5 * 2^-53.
 * FMA slots: 2 and its degree, 5 and 10, and a division. */
#define ZLG_TANH_SCALE 0x1.71547652b82fep1
#define ZLG_TANH_TERMS32 6
#define ZLG_TANH_TERMS64 11
struct zlg_tanh_32 {
  float least, most, magic, coefficients[ZLG_TANH_TERMS32];
};
struct zlg_tanh_64 {
  double least, most, magic, coefficients[ZLG_TANH_TERMS64];
};
static const struct zlg_tanh_32 zlg_tanh_table32 = {
    -100,
    100,
    ZLG_MAGIC32,
    {0x1.3fa206p-13f, 0x1.5f0b82p-10f, 0x1.3b30ap-7f, 0x1.c6af76p-5f, 0x1.ebfbd8p-3f, 0x1.62e43p-1f}};
static const struct zlg_tanh_64 zlg_tanh_table64 = {-100,
                                                    100,
                                                    ZLG_MAGIC64,
                                                    {0x1.e9731780488cp-32, 0x1.e61d4332035bap-28, 0x1.b52522bc20bcdp-24,
                                                     0x1.62bfc6596be6ap-20, 0x1.ffcbfc6685ee5p-17,
                                                     0x1.4309130f6cbdbp-13, 0x1.5d87fe789e96fp-10, 0x1.3b2ab6fb9fda6p-7,
                                                     0x1.c6b08d704a12cp-5, 0x1.ebfbdff82c5a6p-3, 0x1.62e42fefa39efp-1}};
#if defined(__AVX512F__)
#define ZLG_TANH_SPLIT(b, fbits)                                                                                       \
  ZLG_EACH_VECTOR (v, n) power[v] = zlg_min##b(zlg_set##b(table->most), x[v]);                                         \
  ZLG_EACH_VECTOR (v, n) f[v] = ZLG_REDUCE##b(power[v]);                                                               \
  ZLG_EACH_VECTOR (v, n) power[v] = ZLG_SCALE##b(zlg_set##b(1), power[v] - f[v]);
#else
#define ZLG_TANH_SPLIT(b, fbits)                                                                                       \
  ZLG_EACH_VECTOR (v, n) f[v] = zlg_max##b(zlg_set##b(table->least), zlg_min##b(zlg_set##b(table->most), x[v]));       \
  ZLG_EACH_VECTOR (v, n) power[v] = f[v] + table->magic;                                                               \
  ZLG_EACH_VECTOR (v, n) f[v] = f[v] - (power[v] - table->magic);                                                      \
  ZLG_EACH_VECTOR (v, n) power[v] = (zlg_v##b)((zlg_i##b)zlg_set##b(1) + ((zlg_i##b)power[v] << fbits));
#endif
#define ZLG_TANH_BODY(b, fbits)                                                                                        \
  zlg_v##b f[16], p[16], power[16];                                                                                    \
  ZLG_TANH_SPLIT(b, fbits)                                                                                             \
  ZLG_EACH_VECTOR (v, n) p[v] = table->coefficients[0] * f[v] + table->coefficients[1];                                \
  _Pragma("GCC unroll 16") for (int e = 2; e < ZLG_TANH_TERMS##b; e++) ZLG_EACH_VECTOR (v, n) p[v] =                   \
      p[v] * f[v] + table->coefficients[e];                                                                            \
  ZLG_EACH_VECTOR (v, n) f[v] *= p[v];                                                                                 \
  ZLG_EACH_VECTOR (v, n) f[v] = power[v] * f[v] + (power[v] - 1);                                                      \
  ZLG_EACH_VECTOR (v, n) x[v] = f[v] / (2 + f[v]);
ZLG_INLINE void zlg_tanh_32(const struct zlg_tanh_32 *table, zlg_v32 *x, int n){ZLG_TANH_BODY(32, 23)} ZLG_INLINE
    void zlg_tanh_64(const struct zlg_tanh_64 *table, zlg_v64 *x, int n) {
  ZLG_TANH_BODY(64, 52)
}

/* log2(1 + x) in place for x >= 0, inf and NaN included: 1 + x = 2^e (1 + f) with f in [sqrt(1/2) - 1, sqrt(2) - 1]; e
 * = 0 keeps x itself as f, so that small x lose nothing. log2(1 + f) is a polynomial in s^2 times s, s = f / (2 + f):
 * relative error 0.2 * 2^-24 and 0.13 * 2^-53. FMA slots: 2 and its degree, 3 and 7, and a division. */
#define ZLG_LOG2_TERMS32 4
#define ZLG_LOG2_TERMS64 8
struct zlg_log2_32 {
  float magic, coefficients[ZLG_LOG2_TERMS32];
};
struct zlg_log2_64 {
  double magic, coefficients[ZLG_LOG2_TERMS64];
};
static const struct zlg_log2_32 zlg_log2_table32 = {ZLG_MAGIC32,
                                                    {0x1.c7913p-2f, 0x1.26ee5cp-1f, 0x1.ec7234p-1f, 0x1.715476p1f}};
static const struct zlg_log2_64 zlg_log2_table64 = {ZLG_MAGIC64,
                                                    {0x1.b9ff45fdabb84p-3, 0x1.c3f12a18fb28ep-3, 0x1.0ca421c3a9f45p-2,
                                                     0x1.484aeba221205p-2, 0x1.a61763075c5f7p-2, 0x1.2776c50ebd13dp-1,
                                                     0x1.ec709dc3a062ap-1, 0x1.71547652b82fep1}};
#define ZLG_LOG2P1_BODY(b, real, fbits, half)                                                                          \
  zlg_v##b s[16], z[16], p[16], exponent[16];                                                                          \
  ZLG_EACH_VECTOR (v, n) {                                                                                             \
    const zlg_i##b bits = (zlg_i##b)(1 + x[v]), e = (zlg_i##b)((zlg_u##b)(bits - half) >> fbits);                      \
    exponent[v] = (zlg_v##b)(e + (zlg_i##b)zlg_set##b(table->magic)) - table->magic;                                   \
    s[v] = zlg_where_zero##b(e, x[v], (zlg_v##b)(bits - (e << fbits)) - 1);                                            \
  }                                                                                                                    \
  ZLG_EACH_VECTOR (v, n) s[v] = s[v] / (2 + s[v]);                                                                     \
  ZLG_EACH_VECTOR (v, n) z[v] = s[v] * s[v];                                                                           \
  ZLG_EACH_VECTOR (v, n) p[v] = table->coefficients[0] * z[v] + table->coefficients[1];                                \
  _Pragma("GCC unroll 16") for (int e = 2; e < ZLG_LOG2_TERMS##b; e++) ZLG_EACH_VECTOR (v, n) p[v] =                   \
      p[v] * z[v] + table->coefficients[e];                                                                            \
  ZLG_EACH_VECTOR (v, n) p[v] = s[v] * p[v] + exponent[v];                                                             \
  ZLG_EACH_VECTOR (v, n) x[v] = zlg_where_less##b(x[v], zlg_set##b((real)__builtin_inf()), p[v], x[v]);
/* half: the bits of sqrt(1/2). */
ZLG_INLINE void zlg_log2p1_32(const struct zlg_log2_32 *table, zlg_v32 *x,
                              int n){ZLG_LOG2P1_BODY(32, float, 23, 0x3f3504f3)} ZLG_INLINE
    void zlg_log2p1_64(const struct zlg_log2_64 *table, zlg_v64 *x, int n) {
  ZLG_LOG2P1_BODY(64, double, 52, 0x3fe6a09e667f3bcd)
}

#endif
