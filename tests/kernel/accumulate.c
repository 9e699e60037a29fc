/* The end of every tiled sum on the CPU: Y = alpha (acc_1 + … + acc_s) + beta Y against long double, in both orders,
 * with beta = 0 over a Y full of NaN. */
#include "codelets/accumulate/args.h"

#include <math.h>
#include <stdlib.h>

#include "tests/kernel/reference.h"
#include "tests/support.h"

static double get(const void *y, zlg_type type, int64_t at) {
  return type == ZLG_F32 ? (double)((const float *)y)[at] : ((const double *)y)[at];
}

static void put(void *y, zlg_type type, int64_t at, double value) {
  if (type == ZLG_F32)
    ((float *)y)[at] = (float)value;
  else
    ((double *)y)[at] = value;
}

static void one(zlg_type type, zlg_order order, int64_t m, int64_t r, int parts, double alpha, double beta) {
  uint64_t state = (uint64_t)(m * 7 + r);
  const struct zlg_accumulate_args args = {
      .type = type, .m = m, .r = r, .y_order = order, .parts = parts, .alpha = alpha, .beta = beta};
  const int64_t ld = (order == ZLG_ROW_MAJOR ? r : m) + 3, elements = ld * (order == ZLG_ROW_MAJOR ? m : r);
  double *acc[3];
  for (int p = 0; p < 3; p++) {
    acc[p] = malloc((size_t)(m * r + 1) * sizeof(double));
    for (int64_t e = 0; e < m * r; e++) acc[p][e] = p < parts ? uniform(&state) - 0.5 : NAN;
  }
  void *y = malloc((size_t)(elements + 1) * sizeof(double)), *before = malloc((size_t)(elements + 1) * sizeof(double));
  for (int64_t e = 0; e < elements; e++) {
    put(before, type, e, beta == 0 ? NAN : uniform(&state));
    put(y, type, e, get(before, type, e));
  }
  long double *want = calloc((size_t)(m * r + 1), sizeof *want), *size = calloc((size_t)(m * r + 1), sizeof *size);
  for (int64_t e = 0; e < m * r; e++)
    for (int p = 0; p < parts; p++) want[e] += alpha * acc[p][e], size[e] += fabsl(alpha * acc[p][e]);
  ZLG_CPU(zlg_accumulate_cpu)(&args, y, ld, acc);
  int64_t untouched = 0;
  for (int64_t e = 0; e < elements; e++) {
    const int64_t i = order == ZLG_ROW_MAJOR ? e / ld : e % ld, c = order == ZLG_ROW_MAJOR ? e % ld : e / ld;
    if (i >= m || c >= r) {
      const double old = get(before, type, e), new = get(y, type, e);
      untouched += old == new || (isnan(old) && isnan(new));
      continue;
    }
    const long double old = beta == 0 ? 0 : beta * (long double)get(before, type, e);
    /* parts additions and two products in binary64, then one rounding to the type. */
    const long double bound = (size[i * r + c] + fabsl(old)) * (parts + 3) * 0x1p-53L +
                              fabsl(want[i * r + c] + old) * unit_roundoff(type) * 1.01L;
    ZLG_CHECK_CLOSE(get(y, type, e), want[i * r + c] + old, bound);
  }
  CU_ASSERT(untouched == elements - m * r);
  for (int p = 0; p < 3; p++) free(acc[p]);
  free(y), free(before), free(want), free(size);
}

static void body(void) {
  static const int64_t rows[] = {0, 1, 7, 33, 1031}, columns[] = {1, 2, 33, 700};
  for (int64_t y = 0; y < COUNT(all_types); y++)
    for (int64_t i = 0; i < COUNT(rows); i++)
      for (int64_t c = 0; c < COUNT(columns); c++)
        for (int variant = 0; variant < 4 && rows[i] * columns[c] < 40000; variant++)
          one(all_types[y], variant & 1 ? ZLG_COLUMN_MAJOR : ZLG_ROW_MAJOR, rows[i], columns[c],
              (int)(i + c + variant) % 4, 1.7, variant & 2 ? 0 : -0.3);
}
static void sums_are_added_and_scaled(void) {
  each_isa(body);
}

int main(int argc, char **argv) {
  static const struct zlg_test_case cases[] = {
      {"sums are added and scaled", sums_are_added_and_scaled},
      {NULL, NULL},
  };
  return zlg_test_main(argc, argv, cases);
}
