/* A chain of Kronecker factors over one block of vectors: Y = alpha X (F_1 x … x F_n) + beta Y, where a vector of X has
 * K = p_1 … p_n elements, a vector of Y has L = q_1 … q_n, and F_i is p_i x q_i.
 *
 * In the tensor of a vector (p_1, …, p_n), the last index running fastest, factor i is contracted with index i:
 *   y[j_1, …, j_n] = sum over i_1, …, i_n of F_1[i_1, j_1] … F_n[i_n, j_n] x[i_1, …, i_n].
 * The factors commute as such contractions and are applied in the order of `turn`.
 *
 * Row-major blocks hold a vector's elements side by side (vectors x K), column-major ones the same element of all
 * vectors. The order of all additions depends on the arguments only, except where a vector lies in the block: each
 * vector's result is the same whatever its neighbours. */
#ifndef ZLG_KRON_FACTOR_ARGS_H
#define ZLG_KRON_FACTOR_ARGS_H

#include "codelets/common/task.h"

/* Factors of one task. More are multiplied together first (src/operator/kron.c): sizes of 1 x 1 vanish, others shrink
 * or grow a vector, and neighbours whose product is tiny are cheaper as one. */
#define ZLG_KRON_FACTORS 64

struct zlg_kron_factor_args {
  struct zlg_task_head head;
  zlg_type type;
  int count;                                        /* of factors, 1 or more */
  int32_t p[ZLG_KRON_FACTORS], q[ZLG_KRON_FACTORS]; /* 1 or more each */
  int8_t turn[ZLG_KRON_FACTORS];                    /* turn[0] is the factor applied first: a permutation */
  int64_t vectors;
  zlg_order x_order, y_order;
  double alpha, beta; /* beta = 0 never reads Y */
  int64_t y_bytes; /* of the whole that this block of Y is a part of: large ones need not stay in caches; 0: itself */
};

/* The operands where they lie. ld counts elements, as in zlg_order: from vector to vector of a row-major block, from
 * element to element of a column-major one. factors: F_1, F_2, … one behind the other, each row-major, p_i x q_i. */
struct zlg_kron_factor_operands {
  const void *x;
  int64_t ldx;
  const void *factors;
  void *y;
  int64_t ldy;
};

/* Bytes of scratch that the CPU implementation needs (aligned to 64), for these sizes. */
typedef size_t zlg_kron_factor_scratch_fn(const struct zlg_kron_factor_args *args);
ZLG_CPU_DECLARE(zlg_kron_factor_scratch, zlg_kron_factor_scratch_fn);

/* Does one block. Every pointer is distinct memory; nothing is allocated. */
typedef void zlg_kron_factor_cpu_fn(const struct zlg_kron_factor_args *args,
                                    const struct zlg_kron_factor_operands *operands, void *scratch);
ZLG_CPU_DECLARE(zlg_kron_factor_cpu, zlg_kron_factor_cpu_fn);

/* A device applies a task's factors in several launches, each with a program of its own: `args` of
 * zlg_kron_factor_options is one of these. One past the last launch is the last. */
struct zlg_device_profile;
struct zlg_kron_factor_launch {
  const struct zlg_kron_factor_args *args;
  int index;
};
/* The -D options of device.clc for these arguments. */
void zlg_kron_factor_options(const void *launch, const struct zlg_device_profile *profile, char *text, size_t bytes);

#endif
