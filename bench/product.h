/* Kernel products as problems: points, weights and result in memory, the operator on a context, one application of it,
 * and the check that what is timed is right. Shared by every area that multiplies by a kernel matrix. */
#ifndef ZLG_BENCH_PRODUCT_H
#define ZLG_BENCH_PRODUCT_H

#include "bench/bench.h"

struct bench_kernel {
  zlg_kernel_kind kind;
  int64_t d, r;
  bool ard;           /* a lengthscale per dimension */
  double alpha;       /* of the rational quadratic; 0: 1 */
  double lengthscale; /* 0: 1; the points are scaled with it, so that the work does not depend on it */
};

/* Y = K(X1, X2) B, all of them row-major; points N(0, 1/d) times the lengthscale: |x - y|^2 / l^2 is about 2. */
struct bench_product {
  struct bench_kernel kernel;
  zlg_type type;
  int64_t m, n;
  void *x1, *x2, *b, *y;
  zlg_matrix *X1, *X2, *B, *Y;
  zlg_operator *K;
};

/* `product` is zeroed first. On failure everything is given back and the reason is in the row. */
int bench_product_open(struct bench_product *product, zlg_context *context, struct bench_kernel kernel, zlg_type type,
                       int64_t m, int64_t n, struct bench_row *row);
void bench_product_close(struct bench_product *product);
int bench_product_operator(zlg_context *context, zlg_operator **K, struct bench_kernel kernel, zlg_matrix *X1,
                           zlg_matrix *X2);
int bench_product_apply(struct bench_product *product, zlg_context *context, struct bench_row *row);
/* Compares some rows of Y with binary64 sums; fails where they are further off than rounding explains. */
int bench_product_check(const struct bench_product *product, struct bench_row *row);

/* count values of N(0, deviation^2), the same for the same seed. */
void bench_random_normal(zlg_type type, void *values, int64_t count, double deviation, uint64_t seed);

#endif
