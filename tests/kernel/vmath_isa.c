/* The functions of codelets/common/simd.h over arrays, compiled once per instruction set for tests/kernel/vmath.c. */
#include "codelets/common/isa.h"
#include "codelets/common/simd.h"
#include "tests/kernel/vmath.h"

#define APPLY(b, real, lanes, call)                                                                                    \
  for (int64_t i = 0; i < count; i += lanes) {                                                                         \
    zlg_v##b v;                                                                                                        \
    real part[lanes] = {0};                                                                                            \
    const size_t bytes = (size_t)(count - i < lanes ? count - i : lanes) * sizeof(real);                               \
    memcpy(part, x + i, bytes);                                                                                        \
    memcpy(&v, part, sizeof v);                                                                                        \
    call;                                                                                                              \
    memcpy(part, &v, sizeof v);                                                                                        \
    memcpy(x + i, part, bytes);                                                                                        \
  }

void ZLG_ISA_FN(vmath_f32)(enum vmath_function function, float *x, int64_t count) {
  switch (function) {
  case VMATH_EXP2:
    APPLY(32, float, ZLG_L32, zlg_exp2_32(&zlg_exp2_table32, &v, 1));
    break;
  case VMATH_LOG2P1:
    APPLY(32, float, ZLG_L32, zlg_log2p1_32(&zlg_log2_table32, &v, 1));
    break;
  case VMATH_TANH:
    APPLY(32, float, ZLG_L32, v *= (float)ZLG_TANH_SCALE; zlg_tanh_32(&zlg_tanh_table32, &v, 1));
    break;
  }
}

void ZLG_ISA_FN(vmath_f64)(enum vmath_function function, double *x, int64_t count) {
  switch (function) {
  case VMATH_EXP2:
    APPLY(64, double, ZLG_L64, zlg_exp2_64(&zlg_exp2_table64, &v, 1));
    break;
  case VMATH_LOG2P1:
    APPLY(64, double, ZLG_L64, zlg_log2p1_64(&zlg_log2_table64, &v, 1));
    break;
  case VMATH_TANH:
    APPLY(64, double, ZLG_L64, v *= ZLG_TANH_SCALE; zlg_tanh_64(&zlg_tanh_table64, &v, 1));
    break;
  }
}
