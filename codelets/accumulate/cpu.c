/* Y = alpha (acc_1 + … + acc_s) + beta Y on the CPU: one pass over the accumulators, which it is bound by. */
#include "codelets/accumulate/args.h"

/* Adds the parts of `count` consecutive elements from `at` into sum, in the order given. */
static void add_parts(const struct zlg_accumulate_args *args, double *const *acc, int64_t at, int64_t count,
                      double *sum) {
  for (int64_t e = 0; e < count; e++) sum[e] = args->parts > 0 ? acc[0][at + e] : 0;
  for (int p = 1; p < args->parts; p++)
    for (int64_t e = 0; e < count; e++) sum[e] += acc[p][at + e];
}

/* One piece of one row; `step` is the distance between its elements in Y. */
#define PUT(real)                                                                                                      \
  static void put_##real(const double *sum, int64_t count, double alpha, double beta, real *y, int64_t step) {         \
    if (beta == 0)                                                                                                     \
      for (int64_t e = 0; e < count; e++) y[e * step] = (real)(alpha * sum[e]);                                        \
    else                                                                                                               \
      for (int64_t e = 0; e < count; e++) y[e * step] = (real)(alpha * sum[e] + beta * (double)y[e * step]);           \
  }
PUT(float)
PUT(double)

static void put(const struct zlg_accumulate_args *args, const double *sum, int64_t count, void *y, int64_t offset,
                int64_t step) {
  if (args->type == ZLG_F32)
    put_float(sum, count, args->alpha, args->beta, (float *)y + offset, step);
  else
    put_double(sum, count, args->alpha, args->beta, (double *)y + offset, step);
}

#define PIECE 512

void ZLG_ISA_FN(zlg_accumulate_cpu)(const struct zlg_accumulate_args *args, void *y, int64_t ldy, double *const *acc) {
  double sum[PIECE];
  if (args->r == 1) { /* one column: rows follow each other in acc, and in Y at this step */
    int64_t step = args->y_order == ZLG_ROW_MAJOR ? ldy : 1;
    for (int64_t i = 0; i < args->m; i += PIECE) {
      int64_t count = args->m - i < PIECE ? args->m - i : PIECE;
      add_parts(args, acc, i, count, sum);
      put(args, sum, count, y, i * step, step);
    }
    return;
  }
  for (int64_t i = 0; i < args->m; i++)
    for (int64_t c = 0; c < args->r; c += PIECE) {
      int64_t count = args->r - c < PIECE ? args->r - c : PIECE;
      add_parts(args, acc, i * args->r + c, count, sum);
      if (args->y_order == ZLG_ROW_MAJOR)
        put(args, sum, count, y, i * ldy + c, 1);
      else
        put(args, sum, count, y, i + c * ldy, ldy);
    }
}
