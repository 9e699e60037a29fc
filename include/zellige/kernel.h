/* Kernel matrices given by name: A[i][j] = k(x_i, y_j), never formed.
 *
 * Points are rows: X1 is M x D, X2 is N x D, A is M x N. Distances are taken between points scaled by the lengthscales,
 *   u = (x_1/l_1, …, x_D/l_D), v = (y_1/l_1, …, y_D/l_D),   r = |u - v|_2,   r1 = |u - v|_1,   p = (u|v).
 *
 *   name                          k(x, y)                                 parameters (default)
 *   ZLG_GAUSSIAN                  exp(-r^2 / 2)                           l
 *   ZLG_EXPONENTIAL               exp(-r)            L2 norm              l
 *   ZLG_LAPLACIAN                 exp(-r1)           L1 norm              l
 *   ZLG_MATERN12                  exp(-r)            = ZLG_EXPONENTIAL    l
 *   ZLG_MATERN32                  (1 + s) exp(-s),           s = sqrt(3) r     l
 *   ZLG_MATERN52                  (1 + s + s^2/3) exp(-s),   s = sqrt(5) r     l
 *   ZLG_RATIONAL_QUADRATIC        (1 + r^2 / (2 alpha))^-alpha            l, alpha > 0 (1)
 *   ZLG_INVERSE_MULTIQUADRIC      (1 + r^2)^(-1/2)                        l
 *   ZLG_CAUCHY                    1 / (1 + r^2)                           l
 *   ZLG_ENERGY                    -r                                      l
 *   ZLG_LINEAR                    p + offset                              l, offset (0)
 *   ZLG_POLYNOMIAL                (gamma p + offset)^degree               l, gamma (1), offset (1), degree (3)
 *   ZLG_SIGMOID                   tanh(gamma p + offset)                  l, gamma (1), offset (0)
 *
 * Rasmussen & Williams, Gaussian Processes for Machine Learning (2006), chapter 4; Buhmann, Radial Basis Functions
 * (2003) for the multiquadric; Szekely & Rizzo (2013) for the energy distance. At x = y: r = 0 and the value is the
 * formula's limit (1 for the radial ones, 0 for energy); r = +inf gives the limit too (0), never NaN. */
#ifndef ZELLIGE_KERNEL_H
#define ZELLIGE_KERNEL_H

#include "zellige/operator.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum zlg_kernel_kind {
  ZLG_GAUSSIAN = 1,
  ZLG_EXPONENTIAL,
  ZLG_LAPLACIAN,
  ZLG_MATERN12,
  ZLG_MATERN32,
  ZLG_MATERN52,
  ZLG_RATIONAL_QUADRATIC,
  ZLG_INVERSE_MULTIQUADRIC,
  ZLG_CAUCHY,
  ZLG_ENERGY,
  ZLG_LINEAR,
  ZLG_POLYNOMIAL,
  ZLG_SIGMOID
} zlg_kernel_kind;

typedef struct zlg_kernel_spec {
  size_t struct_size; /* set by zlg_kernel_spec_init() */
  zlg_kernel_kind kind;
  int64_t lengthscale_count;  /* 1: the same in every dimension; D: one each */
  const double *lengthscales; /* finite and positive; copied */
  double alpha;               /* rational quadratic */
  double gamma, offset;       /* linear (offset only), polynomial, sigmoid */
  int degree;                 /* polynomial: >= 0 */
} zlg_kernel_spec;

/* Fills in the kind and the defaults: lengthscale 1 (a static array), the parameters above. */
ZLG_API void zlg_kernel_spec_init(zlg_kernel_spec *spec, zlg_kernel_kind kind);

/* "gaussian", "matern32", …; NULL for a value that is no kernel. zlg_kernel_from_name() returns 0 for an unknown name.
 */
ZLG_API const char *zlg_kernel_name(zlg_kernel_kind kind);
ZLG_API zlg_kernel_kind zlg_kernel_from_name(const char *name);

/* The operator A[i][j] = k(X1_i, X2_j), of X1's type. X1 and X2 may be the same matrix, in memory or files; both must
 * live (their memory unchanged) while the operator is applied; the operator keeps references to the matrix objects.
 * D = 0 is the kernel at a single point. Errors: ZLG_EINVAL (a parameter: named, with its value), ZLG_ESHAPE (columns
 * of X1 and X2 differ), ZLG_ETYPE, ZLG_EOVERFLOW, ZLG_ENOMEM. */
ZLG_API int zlg_kernel(zlg_context *context, zlg_operator **op, const zlg_kernel_spec *spec, zlg_matrix *X1,
                       zlg_matrix *X2);

#ifdef __cplusplus
}
#endif
#endif
