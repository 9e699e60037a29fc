/* A user of the installed library, in C and in C++ alike: a small product against its value, and an error with its
 * words. */
#include <math.h>
#include <stdio.h>

#include <zellige.h>

static int fails(const char *what, zlg_context *context) {
  printf("FAILED: %s: %s\n", what, zlg_context_message(context));
  return 1;
}

int main(void) {
  double points[4] = {0, 1, 2, 3}, ones[4] = {1, 1, 1, 1}, sums[4] = {0, 0, 0, 0};
  zlg_context_options options;
  zlg_context *context = NULL;
  zlg_matrix *X = NULL, *B = NULL, *Y = NULL;
  zlg_operator *K = NULL;
  zlg_kernel_spec spec;
  zlg_context_options_init(&options);
  options.cpu_workers = 1;
  options.opencl_workers = 0;
  options.cuda_workers = 0;
  if (zlg_context_create(&context, &options) != ZLG_OK) return fails("context", NULL);
  zlg_kernel_spec_init(&spec, ZLG_GAUSSIAN);
  if (zlg_matrix_wrap_const(context, &X, ZLG_F64, 4, 1, ZLG_ROW_MAJOR, 1, points) != ZLG_OK ||
      zlg_matrix_wrap_const(context, &B, ZLG_F64, 4, 1, ZLG_ROW_MAJOR, 1, ones) != ZLG_OK ||
      zlg_matrix_wrap(context, &Y, ZLG_F64, 4, 1, ZLG_ROW_MAJOR, 1, sums) != ZLG_OK ||
      zlg_kernel(context, &K, &spec, X, X) != ZLG_OK || zlg_apply(K, ZLG_NOTRANS, 1.0, B, 0.0, Y) != ZLG_OK)
    return fails("product", context);
  /* 1 + exp(-1/2) + exp(-2) + exp(-9/2) */
  if (!(fabs(sums[0] - 1.7529749394874883) <= 1e-14)) {
    printf("FAILED: sum %.17g\n", sums[0]);
    return 1;
  }
  if (zlg_apply(K, ZLG_NOTRANS, 1.0, B, 0.0, B) != ZLG_EREADONLY)
    return fails("a read-only output was not refused", context);
  zlg_operator_release(K);
  zlg_matrix_release(X);
  zlg_matrix_release(B);
  zlg_matrix_release(Y);
  zlg_context_release(context);
  printf("zellige %s: sum %.15f\n", zlg_version(), sums[0]);
  return 0;
}
