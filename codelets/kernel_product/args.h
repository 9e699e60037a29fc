/* Kernel product over one tile: acc (+)= K(X1, X2) B, with X1 m x d, X2 n x d, B n x r, acc m x r.
 *
 * acc is binary64, row-major, contiguous (ld = r), whatever the type of the operands: inside a tile f32 sums run over short
 * blocks in f32 and are then added to acc, so that a sum of 2e7 ones is 2e7. The order of all additions depends on m, n,
 * d, r and the tile's data only. */
#ifndef ZLG_KERNEL_PRODUCT_ARGS_H
#define ZLG_KERNEL_PRODUCT_ARGS_H

#include <stdbool.h>

#include "codelets/common/task.h"
#include "zellige/kernel.h"

struct zlg_kernel_product_args {
  struct zlg_task_head head;
  zlg_kernel_kind kind; /* never ZLG_MATERN12, which is ZLG_EXPONENTIAL by then */
  zlg_type type;
  int64_t m, n, d, r;                   /* d >= 1 */
  zlg_order x1_order, x2_order, b_order;
  bool isotropic;                       /* all weights equal w[0] */
  bool first;                           /* acc is overwritten, not added to (and never read) */
  double alpha, gamma, offset;          /* see zellige/kernel.h */
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

#endif
