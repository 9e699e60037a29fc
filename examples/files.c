/* A product whose operands and result are files, larger than memory if they like: points are written to a .npy file
 * block by block, the product reads its operands from files and writes its result to one, and two values are read back.
 *   files DIRECTORY
 * The density of the points i/N, i = 0 … N-1, smoothed by a Gaussian, is 1 far from the ends, and half of it at an end.
 */
#include <math.h>
#include <stdio.h>
#include <zellige.h>

enum { N = 40000, BLOCK = 4000 };
#define LENGTHSCALE 0.01

static int give_up(void) {
  fprintf(stderr, "files: %s\n", zlg_context_message(NULL));
  return 1;
}

/* The file takes its name in zlg_matrix_close(): a run that ends before leaves nothing that looks complete. */
static int write_points(zlg_context *context, const char *path, int positions) {
  static double block[BLOCK];
  zlg_matrix *file = NULL;
  int status = zlg_matrix_create_npy(context, &file, path, ZLG_F64, N, 1, ZLG_ROW_MAJOR);
  if (status) return status;
  for (int row = 0; row < N && !status; row += BLOCK) {
    for (int i = 0; i < BLOCK; i++) block[i] = positions ? (row + i) / (double)N : 1.0;
    status = zlg_matrix_write(file, row, BLOCK, 0, 1, ZLG_ROW_MAJOR, 1, block);
  }
  if (!status) status = zlg_matrix_close(file);
  zlg_matrix_release(file);
  return status;
}

static int multiply(zlg_context *context, const char *points, const char *weights, const char *result) {
  zlg_matrix *X = NULL, *B = NULL, *Y = NULL;
  zlg_operator *K = NULL;
  double lengthscale = LENGTHSCALE;
  zlg_kernel_spec spec;
  zlg_kernel_spec_init(&spec, ZLG_GAUSSIAN);
  spec.lengthscales = &lengthscale;
  int status = zlg_matrix_open_npy(context, &X, points);
  if (!status) status = zlg_matrix_open_npy(context, &B, weights);
  if (!status) status = zlg_matrix_create_npy(context, &Y, result, ZLG_F64, N, 1, ZLG_ROW_MAJOR);
  if (!status) status = zlg_kernel(context, &K, &spec, X, X);
  if (!status) status = zlg_apply(K, ZLG_NOTRANS, 1.0 / (lengthscale * sqrt(2 * M_PI) * N), B, 0.0, Y);
  if (!status) status = zlg_matrix_close(Y);
  zlg_operator_release(K);
  zlg_matrix_release(Y);
  zlg_matrix_release(B);
  zlg_matrix_release(X);
  return status;
}

static int read_value(zlg_context *context, const char *path, int64_t row, double *value) {
  zlg_matrix *file = NULL;
  int status = zlg_matrix_open_npy(context, &file, path);
  if (!status) status = zlg_matrix_read(file, row, 1, 0, 1, ZLG_ROW_MAJOR, 1, value);
  zlg_matrix_release(file);
  return status;
}

int main(int argc, char **argv) {
  char points[4096], weights[4096], result[4096];
  double middle, end;
  zlg_context *context = NULL;
  if (argc != 2) return fputs("usage: files DIRECTORY\n", stderr), 2;
  snprintf(points, sizeof points, "%s/points.npy", argv[1]);
  snprintf(weights, sizeof weights, "%s/weights.npy", argv[1]);
  snprintf(result, sizeof result, "%s/result.npy", argv[1]);
  if (zlg_context_create(&context, NULL) || write_points(context, points, 1) || write_points(context, weights, 0) ||
      multiply(context, points, weights, result) || read_value(context, result, N / 2, &middle) ||
      read_value(context, result, 0, &end))
    return give_up();
  printf("middle %.6f, known 1; end %.6f, known %.6f\n", middle, end,
         0.5 + 0.5 / (LENGTHSCALE * sqrt(2 * M_PI) * N)); /* the point at the end itself counts whole, not half */
  zlg_context_release(context);
  return 0;
}
