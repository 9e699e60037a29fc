/* A kernel product from memory: the short program of the README. Ones at distance 1 on a line have a sum that is known:
 * sqrt(2 pi) far from the ends, half of it and one half more at an end. */
#include <stdio.h>
#include <zellige.h>

static float points[20000], ones[20000], sums[20000];

int main(void) {
  for (int i = 0; i < 20000; i++) points[i] = (float)i, ones[i] = 1;
  zlg_context *context = NULL;
  zlg_matrix *X = NULL, *B = NULL, *Y = NULL;
  zlg_operator *K = NULL;
  zlg_kernel_spec gaussian;
  zlg_kernel_spec_init(&gaussian, ZLG_GAUSSIAN);
  int failed = zlg_context_create(&context, NULL) || /* StarPU, with all workers of the machine */
               zlg_matrix_wrap_const(context, &X, ZLG_F32, 20000, 1, ZLG_ROW_MAJOR, 1, points) ||
               zlg_matrix_wrap_const(context, &B, ZLG_F32, 20000, 1, ZLG_ROW_MAJOR, 1, ones) ||
               zlg_matrix_wrap(context, &Y, ZLG_F32, 20000, 1, ZLG_ROW_MAJOR, 1, sums) ||
               zlg_kernel(context, &K, &gaussian, X, X) || zlg_apply(K, ZLG_NOTRANS, 1, B, 0, Y); /* Y = K(X, X) B */
  if (failed) fprintf(stderr, "product: %s\n", zlg_context_message(NULL));
  if (!failed) printf("at the end %.4f, in the middle %.4f\n", sums[0], sums[10000]);
  zlg_operator_release(K);
  zlg_matrix_release(X), zlg_matrix_release(B), zlg_matrix_release(Y);
  zlg_context_release(context);
  return failed;
}
