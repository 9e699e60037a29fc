/* A kernel product from memory: the short program of the README.
 * Sources on a cubic lattice of step h make a sum that is known: (l sqrt(2 pi) / h)^3, far from the lattice's border.
 */
#include <math.h>
#include <stdio.h>
#include <zellige.h>

static float x[1000][3], y[64000][3], b[64000], sum[1000];

int main(void) {
  for (int i = 0; i < 3000; i++) x[i / 3][i % 3] = 0.5f + 0.1f * sinf((float)i);
  for (int j = 0; j < 64000; j++) {
    y[j][0] = (float)(j % 40) / 40, y[j][1] = (float)(j / 40 % 40) / 40, y[j][2] = (float)(j / 1600) / 40;
    b[j] = 1;
  }
  zlg_context *context = NULL;
  zlg_matrix *X = NULL, *Y = NULL, *B = NULL, *Sum = NULL;
  zlg_operator *K = NULL;
  double lengthscale = 0.05;
  zlg_kernel_spec gaussian;
  zlg_kernel_spec_init(&gaussian, ZLG_GAUSSIAN);
  gaussian.lengthscales = &lengthscale;

  int status = zlg_context_create(&context, NULL); /* StarPU, with all workers of the machine */
  if (!status) status = zlg_matrix_wrap_const(context, &X, ZLG_F32, 1000, 3, ZLG_ROW_MAJOR, 3, x);
  if (!status) status = zlg_matrix_wrap_const(context, &Y, ZLG_F32, 64000, 3, ZLG_ROW_MAJOR, 3, y);
  if (!status) status = zlg_matrix_wrap_const(context, &B, ZLG_F32, 64000, 1, ZLG_ROW_MAJOR, 1, b);
  if (!status) status = zlg_matrix_wrap(context, &Sum, ZLG_F32, 1000, 1, ZLG_ROW_MAJOR, 1, sum);
  if (!status) status = zlg_kernel(context, &K, &gaussian, X, Y);
  if (!status) status = zlg_apply(K, ZLG_NOTRANS, 1.0, B, 0.0, Sum); /* Sum = K(X, Y) B */
  if (status)
    fprintf(stderr, "product: %s\n", zlg_context_message(NULL));
  else
    printf("first %.3f, last %.3f, known %.3f\n", sum[0], sum[999], pow(lengthscale * sqrt(2 * M_PI) * 40, 3));

  zlg_operator_release(K);
  zlg_matrix *matrices[] = {X, Y, B, Sum};
  for (int k = 0; k < 4; k++) zlg_matrix_release(matrices[k]);
  zlg_context_release(context);
  return status != ZLG_OK;
}
