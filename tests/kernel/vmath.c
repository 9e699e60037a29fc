/* The vector functions of codelets/common/simd.h: errors in units in the last place against long double over dense
 * samples of their whole domain, the largest seen printed, and the values at its ends. */
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kernel/reference.h"
#include "tests/kernel/vmath.h"
#include "tests/support.h"

static long double reference(enum vmath_function function, long double x) {
  switch (function) {
  case VMATH_EXP2:
    return exp2l(x);
  case VMATH_LOG2P1:
    return log1pl(x) / 0.693147180559945309417232121458176568L;
  default:
    return tanhl(x);
  }
}

/* One ulp at `value`; below the normal numbers, the smallest normal: results may be lost there (simd.h). */
static long double ulp(long double value, zlg_type type) {
  const int digits = type == ZLG_F32 ? 24 : 53, least = type == ZLG_F32 ? -126 : -1022;
  const int exponent = value == 0 ? least : ilogbl(value);
  return exponent < least ? ldexpl(1, least) : ldexpl(1, exponent - digits + 1);
}

static const char *const names[] = {"exp2", "log2(1 + x)", "tanh"};

static void report(enum vmath_function function, zlg_type type, double worst, double at, double limit) {
  printf("    %-8s %-12s %s: %.3f ulp at %.17g\n", zlg_isa_name(zlg_isa_current()), names[function],
         type == ZLG_F32 ? "f32" : "f64", worst, at);
  CU_ASSERT(worst <= limit);
}

/* Every `step`-th float whose bits lie in [low, high]. */
static void sweep_f32(enum vmath_function function, float low, float high, uint32_t step, double limit) {
  enum { CHUNK = 1024 };
  uint32_t bits, end;
  memcpy(&bits, &low, 4), memcpy(&end, &high, 4);
  double worst = 0, at = 0;
  while (bits <= end) {
    float x[CHUNK] = {0}, y[CHUNK];
    int64_t count = 0;
    for (; count < CHUNK && bits <= end; count++, bits += step) memcpy(&x[count], &bits, 4);
    memcpy(y, x, sizeof x);
    ZLG_CPU(vmath_f32)(function, y, count);
    for (int64_t i = 0; i < count; i++) {
      const long double want = reference(function, x[i]);
      const double error = (double)(fabsl(y[i] - want) / ulp(want, ZLG_F32));
      if (!(error <= worst)) worst = isnan(error) ? INFINITY : error, at = x[i];
    }
  }
  report(function, ZLG_F32, worst, at, limit);
}

/* Doubles between low and high, spread over the exponents (so that small and large ones come up alike) and evenly. */
static void sweep_f64(enum vmath_function function, double low, double high, double limit) {
  enum { COUNT_F64 = 400000 };
  double *x = malloc(COUNT_F64 * sizeof *x), *y = malloc(COUNT_F64 * sizeof *y);
  uint64_t state = 7;
  for (int64_t i = 0; i < COUNT_F64; i++)
    x[i] = i % 2 ? copysign(exp2(log2(fabs(low)) + (log2(fabs(high)) - log2(fabs(low))) * uniform(&state)), low)
                 : low + (high - low) * uniform(&state);
  memcpy(y, x, COUNT_F64 * sizeof *x);
  ZLG_CPU(vmath_f64)(function, y, COUNT_F64);
  double worst = 0, at = 0;
  for (int64_t i = 0; i < COUNT_F64; i++) {
    const long double want = reference(function, x[i]);
    const double error = (double)(fabsl(y[i] - want) / ulp(want, ZLG_F64));
    if (!(error <= worst)) worst = isnan(error) ? INFINITY : error, at = x[i];
  }
  report(function, ZLG_F64, worst, at, limit);
  free(x), free(y);
}

/* What the header of simd.h promises. */
static void exp2_body(void) {
  /* Without FMA, in the baseline set and where the compiler forms none (sanitizer builds), every product is rounded
   * too. */
  const char *sanitized = getenv("ZLG_SANITIZE");
  bool fused = zlg_isa_current() != ZLG_ISA_BASELINE && !(sanitized && *sanitized);
  sweep_f32(VMATH_EXP2, -0.0f, -140, 997, fused ? 2 : 2.5);
  sweep_f64(VMATH_EXP2, -0x1p-60, -1080, 2);
}
static void log2p1_body(void) {
  sweep_f32(VMATH_LOG2P1, 0x1p-100f, FLT_MAX, 997, 3);
  sweep_f64(VMATH_LOG2P1, 0x1p-100, 1e300, 3);
}
static void tanh_body(void) {
  sweep_f32(VMATH_TANH, 0x1p-100f, 100, 997, 4);
  sweep_f32(VMATH_TANH, -0x1p-100f, -100, 9970, 4);
  sweep_f64(VMATH_TANH, 0x1p-100, 100, 4);
  sweep_f64(VMATH_TANH, -0x1p-100, -100, 4);
}

static void ends_body(void) {
  float a[] = {0, -0.0f, -INFINITY, NAN, -FLT_MAX, -1, -126}, b[] = {0, INFINITY, NAN, 1, 3},
        c[] = {0, INFINITY, -INFINITY, NAN};
  ZLG_CPU(vmath_f32)(VMATH_EXP2, a, COUNT(a));
  CU_ASSERT(a[0] == 1 && a[1] == 1 && a[2] == 0 && isnan(a[3]) && a[4] == 0 && a[5] == 0.5f && a[6] == 0x1p-126f);
  ZLG_CPU(vmath_f32)(VMATH_LOG2P1, b, COUNT(b));
  CU_ASSERT(b[0] == 0 && isinf(b[1]) && isnan(b[2]) && b[3] == 1 && b[4] == 2);
  ZLG_CPU(vmath_f32)(VMATH_TANH, c, COUNT(c));
  CU_ASSERT(c[0] == 0 && c[1] == 1 && c[2] == -1 && isnan(c[3]));
  double d[] = {0, -0.0, -INFINITY, NAN, -DBL_MAX, -1, -1022}, e[] = {0, INFINITY, NAN, 1, 3},
         f[] = {0, INFINITY, -INFINITY, NAN};
  ZLG_CPU(vmath_f64)(VMATH_EXP2, d, COUNT(d));
  CU_ASSERT(d[0] == 1 && d[1] == 1 && d[2] == 0 && isnan(d[3]) && d[4] == 0 && d[5] == 0.5 && d[6] == 0x1p-1022);
  ZLG_CPU(vmath_f64)(VMATH_LOG2P1, e, COUNT(e));
  CU_ASSERT(e[0] == 0 && isinf(e[1]) && isnan(e[2]) && e[3] == 1 && e[4] == 2);
  ZLG_CPU(vmath_f64)(VMATH_TANH, f, COUNT(f));
  CU_ASSERT(f[0] == 0 && f[1] == 1 && f[2] == -1 && isnan(f[3]));
}

static void exp2_within_two_ulp(void) {
  each_isa(exp2_body);
}
static void log2p1_within_three_ulp(void) {
  each_isa(log2p1_body);
}
static void tanh_within_four_ulp(void) {
  each_isa(tanh_body);
}
static void ends_of_the_domains(void) {
  each_isa(ends_body);
}

int main(int argc, char **argv) {
  static const struct zlg_test_case cases[] = {
      {"exp2 within 2 ulp", exp2_within_two_ulp},
      {"log2(1 + x) within 3 ulp", log2p1_within_three_ulp},
      {"tanh within 4 ulp", tanh_within_four_ulp},
      {"zeros, infinities, NaN, the last exponents", ends_of_the_domains},
      {NULL, NULL},
  };
  return zlg_test_main(argc, argv, cases);
}
