/* Between tests/kernel/vmath.c and vmath_isa.c, which is compiled once per instruction set. */
#ifndef ZLG_TESTS_KERNEL_VMATH_H
#define ZLG_TESTS_KERNEL_VMATH_H

#include <stdint.h>

#include "codelets/common/isa.h"

enum vmath_function { VMATH_EXP2, VMATH_LOG2P1, VMATH_TANH };
typedef void vmath_f32_fn(enum vmath_function function, float *x, int64_t count);
typedef void vmath_f64_fn(enum vmath_function function, double *x, int64_t count);
ZLG_CPU_DECLARE(vmath_f32, vmath_f32_fn);
ZLG_CPU_DECLARE(vmath_f64, vmath_f64_fn);

#endif
