/* Kronecker factors on the CPU: one contraction after the other over one vector. */
#include <stdbool.h>

#include "codelets/kron_factor/args.h"

/* The largest number of elements that a vector has between two factors. */
static int64_t widest(const struct zlg_kron_factor_args *args) {
  int64_t size = 1;
  for (int i = 0; i < args->count; i++) size *= args->p[i];
  int64_t most = size;
  for (int i = 0; i < args->count; i++) {
    const int f = args->turn[i];
    size = size / args->p[f] * args->q[f];
    if (size > most) most = size;
  }
  return most;
}

size_t ZLG_ISA_FN(zlg_kron_factor_scratch)(const struct zlg_kron_factor_args *args) {
  return 2 * (size_t)widest(args) * zlg_type_size(args->type);
}

#define KRON(real)                                                                                                     \
  static void contract_##real(const real *x, const real *factor, real *y, int64_t lead, int64_t p, int64_t q,          \
                              int64_t trail) {                                                                         \
    for (int64_t l = 0; l < lead; l++)                                                                                 \
      for (int64_t j = 0; j < q; j++)                                                                                  \
        for (int64_t t = 0; t < trail; t++) {                                                                          \
          real sum = 0;                                                                                                \
          for (int64_t i = 0; i < p; i++) sum += factor[i * q + j] * x[(l * p + i) * trail + t];                       \
          y[(l * q + j) * trail + t] = sum;                                                                            \
        }                                                                                                              \
  }                                                                                                                    \
  static void vector_##real(const struct zlg_kron_factor_args *args, const struct zlg_kron_factor_operands *at,        \
                            int64_t v, real *from, real *to) {                                                         \
    int32_t extent[ZLG_KRON_FACTORS];                                                                                  \
    int64_t size = 1;                                                                                                  \
    for (int i = 0; i < args->count; i++) size *= extent[i] = args->p[i];                                              \
    const bool x_rows = args->x_order == ZLG_ROW_MAJOR, y_rows = args->y_order == ZLG_ROW_MAJOR;                       \
    for (int64_t k = 0; k < size; k++) from[k] = ((const real *)at->x)[x_rows ? v * at->ldx + k : k * at->ldx + v];    \
    for (int i = 0; i < args->count; i++) {                                                                            \
      const int f = args->turn[i];                                                                                     \
      const real *factor = at->factors;                                                                                \
      int64_t lead = 1, trail = 1;                                                                                     \
      for (int e = 0; e < f; e++) lead *= extent[e], factor += (int64_t)args->p[e] * args->q[e];                       \
      for (int e = f + 1; e < args->count; e++) trail *= extent[e];                                                    \
      contract_##real(from, factor, to, lead, args->p[f], args->q[f], trail);                                          \
      extent[f] = args->q[f];                                                                                          \
      size = lead * args->q[f] * trail;                                                                                \
      real *other = from;                                                                                              \
      from = to, to = other;                                                                                           \
    }                                                                                                                  \
    for (int64_t k = 0; k < size; k++) {                                                                               \
      real *y = (real *)at->y + (y_rows ? v * at->ldy + k : k * at->ldy + v);                                          \
      *y = args->beta == 0 ? (real)args->alpha * from[k] : (real)args->alpha * from[k] + (real)args->beta * *y;        \
    }                                                                                                                  \
  }
KRON(float)
KRON(double)

void ZLG_ISA_FN(zlg_kron_factor_cpu)(const struct zlg_kron_factor_args *args,
                                     const struct zlg_kron_factor_operands *operands, void *scratch) {
  const int64_t most = widest(args);
  for (int64_t v = 0; v < args->vectors; v++)
    if (args->type == ZLG_F32)
      vector_float(args, operands, v, scratch, (float *)scratch + most);
    else
      vector_double(args, operands, v, scratch, (double *)scratch + most);
}
