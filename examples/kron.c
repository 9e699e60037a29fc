/* The Poisson equation -u_xx - u_yy = f on a square, zero at its border, by the sine transform S of each direction,
 * which makes the 5-point differences diagonal: u = (S x S) D^-1 (S x S) f, with 16 million entries of S x S that are
 * never formed. The sum of two modes has a solution that is known. */
#include <math.h>
#include <stdio.h>
#include <zellige.h>

enum { N = 63 };
static const double pi = 3.14159265358979323846;
static double sines[N][N], f[N][N], modes[N][N], u[N][N], largest;

/* Eigenvalue of the 3-point second difference for mode k = 0, 1, … */
static double eigenvalue(int k) {
  double s = 2 * (N + 1) * sin(pi * (k + 1) / (2 * (N + 1)));
  return s * s;
}

static double known(int i, int j, int inverse) {
  double one = sin(pi * (i + 1) / (N + 1)) * sin(2 * pi * (j + 1) / (N + 1));
  double two = sin(5 * pi * (i + 1) / (N + 1)) * sin(3 * pi * (j + 1) / (N + 1));
  return inverse ? one / (eigenvalue(0) + eigenvalue(1)) + two / (eigenvalue(4) + eigenvalue(2)) : one + two;
}

int main(void) {
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++) {
      sines[i][j] = sqrt(2.0 / (N + 1)) * sin(pi * (i + 1) * (j + 1) / (N + 1));
      f[i][j] = known(i, j, 0);
    }
  zlg_context *context = NULL;
  zlg_matrix *S = NULL, *F = NULL, *M = NULL, *U = NULL;
  zlg_operator *SxS = NULL;
  int failed = zlg_context_create(&context, NULL) ||
               zlg_matrix_wrap_const(context, &S, ZLG_F64, N, N, ZLG_ROW_MAJOR, N, sines) ||
               zlg_matrix_wrap_const(context, &F, ZLG_F64, N * N, 1, ZLG_ROW_MAJOR, 1, f) ||
               zlg_matrix_wrap(context, &M, ZLG_F64, N * N, 1, ZLG_ROW_MAJOR, 1, modes) ||
               zlg_matrix_wrap(context, &U, ZLG_F64, N * N, 1, ZLG_ROW_MAJOR, 1, u) ||
               zlg_kron(context, &SxS, 2, (zlg_matrix *[]){S, S}, NULL) || zlg_apply(SxS, ZLG_NOTRANS, 1, F, 0, M);
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++) modes[i][j] /= eigenvalue(i) + eigenvalue(j);
  failed = failed || zlg_apply(SxS, ZLG_NOTRANS, 1, M, 0, U);
  if (failed) fprintf(stderr, "kron: %s\n", zlg_context_message(NULL));
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++) largest = fmax(largest, fabs(u[i][j] - known(i, j, 1)));
  if (!failed) printf("largest error below 1e-15: %s\n", largest < 1e-15 ? "yes" : "no");
  zlg_operator_release(SxS);
  zlg_matrix_release(S), zlg_matrix_release(F), zlg_matrix_release(M), zlg_matrix_release(U);
  zlg_context_release(context);
  return failed;
}
