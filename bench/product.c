/* Kernel products as problems; see product.h. */
#include "bench/product.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static double uniform(uint64_t *state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return ((double)(*state >> 11) + 0.5) * 0x1p-53;
}

static void put(zlg_type type, void *values, int64_t index, double value) {
  if (type == ZLG_F32)
    ((float *)values)[index] = (float)value;
  else
    ((double *)values)[index] = value;
}

static double get(zlg_type type, const void *values, int64_t index) {
  return type == ZLG_F32 ? (double)((const float *)values)[index] : ((const double *)values)[index];
}

/* Box and Muller (1958), two values a turn. */
void bench_random_normal(zlg_type type, void *values, int64_t count, double deviation, uint64_t seed) {
  uint64_t state = seed * 2654435769u + 1;
  for (int64_t i = 0; i < count; i += 2) {
    double radius = deviation * sqrt(-2 * log(uniform(&state))), angle = 2 * M_PI * uniform(&state);
    put(type, values, i, radius * cos(angle));
    if (i + 1 < count) put(type, values, i + 1, radius * sin(angle));
  }
}

static void *normal_array(zlg_type type, int64_t count, double deviation, uint64_t seed) {
  void *values = malloc((size_t)count * zlg_type_size(type) + 1);
  if (values) bench_random_normal(type, values, count, deviation, seed);
  return values;
}

static double lengthscale_of(struct bench_kernel kernel) {
  return kernel.lengthscale > 0 ? kernel.lengthscale : 1;
}

int bench_product_operator(zlg_context *context, zlg_operator **K, struct bench_kernel kernel, zlg_matrix *X1,
                           zlg_matrix *X2) {
  zlg_kernel_spec spec;
  zlg_kernel_spec_init(&spec, kernel.kind);
  double *lengthscales = malloc((size_t)kernel.d * sizeof *lengthscales);
  if (!lengthscales) return ZLG_ENOMEM;
  for (int64_t k = 0; k < kernel.d; k++) lengthscales[k] = lengthscale_of(kernel);
  spec.lengthscale_count = kernel.ard ? kernel.d : 1;
  spec.lengthscales = lengthscales;
  if (kernel.alpha > 0) spec.alpha = kernel.alpha;
  int status = zlg_kernel(context, K, &spec, X1, X2);
  free(lengthscales);
  return status;
}

int bench_product_open(struct bench_product *product, zlg_context *context, struct bench_kernel kernel, zlg_type type,
                       int64_t m, int64_t n, struct bench_row *row) {
  int64_t d = kernel.d, r = kernel.r;
  double deviation = lengthscale_of(kernel) / sqrt((double)d);
  *product = (struct bench_product){.kernel = kernel, .type = type, .m = m, .n = n};
  product->x1 = normal_array(type, m * d, deviation, 1);
  product->x2 = normal_array(type, n * d, deviation, 2);
  product->b = normal_array(type, n * r, 1, 3);
  product->y = calloc((size_t)(m * r), zlg_type_size(type));
  if (!product->x1 || !product->x2 || !product->b || !product->y) {
    bench_product_close(product);
    return bench_fail(row, "no memory for %lld x %lld points", (long long)(m + n), (long long)d);
  }
  if (zlg_matrix_wrap_const(context, &product->X1, type, m, d, ZLG_ROW_MAJOR, d, product->x1) ||
      zlg_matrix_wrap_const(context, &product->X2, type, n, d, ZLG_ROW_MAJOR, d, product->x2) ||
      zlg_matrix_wrap_const(context, &product->B, type, n, r, ZLG_ROW_MAJOR, r, product->b) ||
      zlg_matrix_wrap(context, &product->Y, type, m, r, ZLG_ROW_MAJOR, r, product->y) ||
      bench_product_operator(context, &product->K, kernel, product->X1, product->X2)) {
    bench_fail(row, "%s", zlg_context_message(context));
    bench_product_close(product);
    return -1;
  }
  return 0;
}

void bench_product_close(struct bench_product *product) {
  zlg_operator_release(product->K);
  zlg_matrix_release(product->X1);
  zlg_matrix_release(product->X2);
  zlg_matrix_release(product->B);
  zlg_matrix_release(product->Y);
  free(product->x1);
  free(product->x2);
  free(product->b);
  free(product->y);
  memset(product, 0, sizeof *product);
}

int bench_product_apply(struct bench_product *product, zlg_context *context, struct bench_row *row) {
  if (zlg_apply(product->K, ZLG_NOTRANS, 1, product->B, 0, product->Y) == ZLG_OK) return 0;
  return bench_fail(row, "%s", zlg_context_message(context));
}

/* k(x, y) as zellige/kernel.h defines it, by the squared distance, the L1 distance and the product.
 */
static double kernel_value(struct bench_kernel kernel, double square, double l1, double dot) {
  double r = sqrt(square), s, alpha = kernel.alpha > 0 ? kernel.alpha : 1;
  switch (kernel.kind) {
  case ZLG_GAUSSIAN:
    return exp(-square / 2);
  case ZLG_EXPONENTIAL:
  case ZLG_MATERN12:
    return exp(-r);
  case ZLG_LAPLACIAN:
    return exp(-l1);
  case ZLG_MATERN32:
    return s = sqrt(3) * r, (1 + s) * exp(-s);
  case ZLG_MATERN52:
    return s = sqrt(5) * r, (1 + s + s * s / 3) * exp(-s);
  case ZLG_RATIONAL_QUADRATIC:
    return pow(1 + square / (2 * alpha), -alpha);
  case ZLG_INVERSE_MULTIQUADRIC:
    return 1 / sqrt(1 + square);
  case ZLG_CAUCHY:
    return 1 / (1 + square);
  case ZLG_ENERGY:
    return -r;
  case ZLG_LINEAR:
    return dot;
  case ZLG_POLYNOMIAL:
    return pow(dot + 1, 3);
  case ZLG_SIGMOID:
    return tanh(dot);
  }
  return NAN;
}

static double pair_value(const struct bench_product *product, int64_t i, int64_t j) {
  double square = 0, l1 = 0, dot = 0, scale = 1 / lengthscale_of(product->kernel);
  for (int64_t k = 0; k < product->kernel.d; k++) {
    double u = scale * get(product->type, product->x1, i * product->kernel.d + k);
    double v = scale * get(product->type, product->x2, j * product->kernel.d + k);
    square += (u - v) * (u - v);
    l1 += fabs(u - v);
    dot += u * v;
  }
  return kernel_value(product->kernel, square, l1, dot);
}

int bench_product_check(const struct bench_product *product, struct bench_row *row) {
  enum { ROWS = 4 };
  double unit = product->type == ZLG_F32 ? 0x1p-24 : 0x1p-53;
  for (int64_t t = 0; t < ROWS && t < product->m; t++) {
    int64_t i = t * (product->m - 1) / (ROWS - 1);
    double exact = 0, magnitude = 0;
    for (int64_t j = 0; j < product->n; j++) {
      double term = pair_value(product, i, j) * get(product->type, product->b, j * product->kernel.r);
      exact += term;
      magnitude += fabs(term);
    }
    /* Sums are kept in blocks and then in binary64; an entry is off by a multiple of d + some ten roundings. */
    double bound = unit * (double)(product->kernel.d + 1000) * magnitude;
    double off = fabs(get(product->type, product->y, i * product->kernel.r) - exact);
    if (!(off <= bound))
      return bench_fail(row, "wrong: row %lld is off by %.2g, more than %.2g", (long long)i, off, bound);
  }
  return 0;
}
