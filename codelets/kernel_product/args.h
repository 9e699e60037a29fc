/* Kernel product over one tile: acc (+)= K(X1, X2) B, with X1 m x d, X2 n x d, B n x r, acc m x r.
 *
 * acc is binary64, row-major, contiguous (ld = r), whatever the type of the operands: inside a tile f32 sums run over
 * short blocks in f32 and are then added to acc, so that a sum of 2e7 ones is 2e7. The order of all additions depends
 * on m, n, d, r and the tile's data only.
 *
 * Coordinates are subtracted as they are and the difference is scaled: near points are exact wherever they lie. With
 * several lengthscales they are scaled first where that is harmless (see cpu.c), else the difference is. Distances
 * whose square leaves the type's range (1.8e19 in f32, 1.3e154 in f64, unless the lengthscale is as large) count as
 * infinite. */
#ifndef ZLG_KERNEL_PRODUCT_ARGS_H
#define ZLG_KERNEL_PRODUCT_ARGS_H

#include <stdbool.h>

#include "codelets/common/task.h"
#include "zellige/kernel.h"

struct zlg_kernel_product_args {
  struct zlg_task_head head;
  zlg_kernel_kind kind; /* never ZLG_MATERN12, which is ZLG_EXPONENTIAL by then */
  zlg_type type;
  int64_t m, n, d, r; /* d >= 1 */
  zlg_order x1_order, x2_order, b_order;
  bool isotropic;              /* all weights equal w[0] */
  bool first;                  /* acc is overwritten, not added to (and never read) */
  double alpha, gamma, offset; /* see zellige/kernel.h */
  int degree;
};

/* The operands where they lie. ld counts elements, as in zlg_order. w: d inverse lengthscales (binary64). */
struct zlg_kernel_product_operands {
  const void *x1;
  int64_t ld1;
  const void *x2;
  int64_t ld2;
  const void *b;
  int64_t ldb;
  const double *w;
  double *acc;
};

/* Bytes of scratch that the CPU implementation needs (aligned to 64), for these sizes. */
typedef size_t zlg_kernel_product_scratch_fn(const struct zlg_kernel_product_args *args);
ZLG_CPU_DECLARE(zlg_kernel_product_scratch, zlg_kernel_product_scratch_fn);

/* Does one tile. Every pointer is distinct memory; nothing is allocated. */
typedef void zlg_kernel_product_cpu_fn(const struct zlg_kernel_product_args *args,
                                       const struct zlg_kernel_product_operands *operands, void *scratch);
ZLG_CPU_DECLARE(zlg_kernel_product_cpu, zlg_kernel_product_cpu_fn);

/* The -D options that specialise device.clc for these arguments on a device (codelet.c). */
struct zlg_device_profile;
void zlg_kernel_product_options(const void *args, const struct zlg_device_profile *profile, char *text, size_t bytes);

/* What one pair costs a core at least, as the CPU kernels with FMA are written: the arithmetic limit is the slower of
 * the multipliers and the divider, which works beside them. */
struct zlg_kernel_product_slots {
  double multiplier;       /* FMAs and multiplications */
  double divisions, roots; /* of the divider */
};

/* The multipliers take d for the metric (1.5 d for the L1 one: a subtraction, an absolute value and an addition for
 * four pipes of which two multiply), the function's multiplications (the exponential: one for its argument, then degree
 * 5 or 11 of its polynomial) and r for the right-hand sides. Other additions, rounding, exponents and bits go to pipes
 * of their own on AMD's cores since Zen. */
static inline struct zlg_kernel_product_slots zlg_kernel_product_slots(zlg_kernel_kind kind, double alpha,
                                                                       zlg_type type, int64_t d, int64_t r) {
  const bool f32 = type == ZLG_F32;
  const double exponential = f32 ? 6 : 12;
  struct zlg_kernel_product_slots slots = {.multiplier = (double)(d + r)};
  switch (kind) {
  case ZLG_GAUSSIAN:
    slots.multiplier += exponential;
    break;
  case ZLG_LAPLACIAN:
    slots.multiplier += exponential + 0.5 * (double)d;
    break;
  case ZLG_EXPONENTIAL:
  case ZLG_MATERN12:
    slots.multiplier += exponential, slots.roots = 1;
    break;
  case ZLG_MATERN32: /* 1 + s, and the product */
    slots.multiplier += exponential + 2, slots.roots = 1;
    break;
  case ZLG_MATERN52:
    slots.multiplier += exponential + 3, slots.roots = 1;
    break;
  case ZLG_INVERSE_MULTIQUADRIC:
    slots.multiplier += 1, slots.roots = 1, slots.divisions = 1;
    break;
  case ZLG_RATIONAL_QUADRATIC: /* scale, square, 3 or 7 terms, exponent, alpha; then 2^t; 1 is a Cauchy kernel */
    slots.multiplier += alpha == 1 ? 1 : (f32 ? 7 : 11) + exponential - 1, slots.divisions = 1;
    break;
  case ZLG_CAUCHY:
    slots.multiplier += 1, slots.divisions = 1;
    break;
  case ZLG_ENERGY:
    slots.multiplier += 1, slots.roots = 1;
    break;
  case ZLG_LINEAR:
    slots.multiplier += 1;
    break;
  case ZLG_POLYNOMIAL: /* of degree 3 */
    slots.multiplier += 3;
    break;
  case ZLG_SIGMOID: /* argument, 6 or 11 terms of 2^t - 1, its scale */
    slots.multiplier += f32 ? 8 : 13, slots.divisions = 1;
    break;
  }
  return slots;
}

#endif
