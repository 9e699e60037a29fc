/* The gradients of a chain of Kronecker factors over one block of vectors. With y = x (F_1 x … x F_n), F_i being p_i x
 * q_i and contracted with index i of a vector's tensor, and dy a function's gradient with respect to y:
 *
 *   dF_i[a, b] = sum over vectors, l, t of v[l, a, t] g[l, b, t],   dx = dy (F_1 x … x F_n)^T,
 *
 * v being what x has become when factor i is about to be applied, seen as lead x p_i x trail, and g what dy becomes
 * when all later factors are applied transposed, lead x q_i x trail: the chain rule, step by step backwards. The
 * intermediates v are computed anew in each task and never leave its scratch memory.
 *
 * Sums run over at most 256 products in the type of the vectors, the rest is added in binary64. */
#ifndef ZLG_KRON_GRADIENTS_ARGS_H
#define ZLG_KRON_GRADIENTS_ARGS_H

#include <stdbool.h>

#include "codelets/common/task.h"

#define ZLG_KRON_GRADIENTS_FACTORS 64

struct zlg_kron_gradients_args {
  struct zlg_task_head head;
  zlg_type type;
  int count;                                                            /* of factors, 1 or more */
  int32_t p[ZLG_KRON_GRADIENTS_FACTORS], q[ZLG_KRON_GRADIENTS_FACTORS]; /* 1 or more each */
  int8_t turn[ZLG_KRON_GRADIENTS_FACTORS];                              /* turn[0] is the factor applied first */
  int64_t vectors;
  zlg_order x_order, dy_order, dx_order; /* row-major: a vector's elements side by side */
  bool first;                            /* the accumulator is overwritten; else added to */
  bool wants_dx;
  double alpha, beta; /* dX = alpha dx + beta dX; beta = 0 never reads dX */
};

/* ld: from vector to vector of a row-major block, from element to element of a column-major one. factors: one behind
 * the other, row-major, p_i x q_i; acc: dF_i, the same way, in binary64. dx is not there unless it is wanted. */
struct zlg_kron_gradients_operands {
  const void *x;
  int64_t ldx;
  const void *dy;
  int64_t lddy;
  const void *factors;
  double *acc;
  void *dx;
  int64_t lddx;
};

/* Bytes of scratch that the CPU implementation needs (aligned to 64): bounded, however many vectors there are. */
typedef size_t zlg_kron_gradients_scratch_fn(const struct zlg_kron_gradients_args *args);
ZLG_CPU_DECLARE(zlg_kron_gradients_scratch, zlg_kron_gradients_scratch_fn);

/* Does one block. Every pointer is distinct memory; nothing is allocated. */
typedef void zlg_kron_gradients_cpu_fn(const struct zlg_kron_gradients_args *args,
                                       const struct zlg_kron_gradients_operands *operands, void *scratch);
ZLG_CPU_DECLARE(zlg_kron_gradients_cpu, zlg_kron_gradients_cpu_fn);

#endif
