/* Gaussian process regression on a grid of 60 x 50 points: the covariance of a product kernel is K1 x K2, and with
 * noise S = K1 x K2 + sigma^2 I. Its solve and its log-determinant go by factor, so that 9 million entries are never
 * formed. Three length scales are compared by the log marginal likelihood of the data, -1/2 (y' S^-1 y + log det S + n
 * log 2 pi); the mean of the best one, (K1 x K2) S^-1 y, is held against the function behind the noise. */
#include <math.h>
#include <stdio.h>
#include <zellige.h>

enum { M = 60, N = 50 };
static const double pi = 3.14159265358979323846, noise = 0.1;
static double k1[M][M], k2[N][N], y[M][N], weights[M][N], mean[M][N];

static double behind(int i, int j) {
  return sin(5.0 * i / M) * cos(4.0 * j / N);
}

/* About normal: the sum of twelve uniform numbers. */
static double random_normal(void) {
  static unsigned state = 1;
  double sum = -6;
  for (int k = 0; k < 12; k++) sum += (state = state * 1664525u + 1013904223u) / 4294967296.0;
  return sum;
}

/* Gaussian kernels of points i / n. */
static void fill(int n, double length, double *k) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) k[i * n + j] = exp(-pow((double)(i - j) / n / length, 2) / 2);
}

/* The log marginal likelihood for this length scale; `weights` and `mean` are its solution. */
static int regress(zlg_context *context, double length, double *likelihood) {
  zlg_matrix *K1 = NULL, *K2 = NULL, *Y = NULL, *W = NULL, *Mean = NULL;
  zlg_operator *K = NULL, *S = NULL, *inverse = NULL;
  double logdet = 0, fit = 0;
  int sign;
  fill(M, length, &k1[0][0]);
  fill(N, length, &k2[0][0]);
  int failed = zlg_matrix_wrap_const(context, &K1, ZLG_F64, M, M, ZLG_ROW_MAJOR, M, k1) ||
               zlg_matrix_wrap_const(context, &K2, ZLG_F64, N, N, ZLG_ROW_MAJOR, N, k2) ||
               zlg_matrix_wrap_const(context, &Y, ZLG_F64, M * N, 1, ZLG_ROW_MAJOR, 1, y) ||
               zlg_matrix_wrap(context, &W, ZLG_F64, M * N, 1, ZLG_ROW_MAJOR, 1, weights) ||
               zlg_matrix_wrap(context, &Mean, ZLG_F64, M * N, 1, ZLG_ROW_MAJOR, 1, mean) ||
               zlg_kron(context, &K, 2, (zlg_matrix *[]){K1, K2}, NULL) || zlg_kron_shifted(K, noise * noise, &S) ||
               zlg_kron_logdet(S, &logdet, &sign) || zlg_kron_inverse(S, &inverse) ||
               zlg_apply(inverse, ZLG_NOTRANS, 1, Y, 0, W) || zlg_apply(K, ZLG_NOTRANS, 1, W, 0, Mean);
  for (int i = 0; i < M; i++)
    for (int j = 0; j < N; j++) fit += y[i][j] * weights[i][j];
  *likelihood = -(fit + logdet + M * N * log(2 * pi)) / 2;
  zlg_operator_release(inverse), zlg_operator_release(S), zlg_operator_release(K);
  zlg_matrix_release(K1), zlg_matrix_release(K2), zlg_matrix_release(Y);
  zlg_matrix_release(W), zlg_matrix_release(Mean);
  return failed;
}

int main(void) {
  static const double lengths[] = {0.02, 0.2, 2};
  zlg_context *context = NULL;
  double likelihood, best_likelihood = -INFINITY, best = 0, error = 0;
  for (int i = 0; i < M; i++)
    for (int j = 0; j < N; j++) y[i][j] = behind(i, j) + noise * random_normal();
  int failed = zlg_context_create(&context, NULL);
  for (int k = 0; k < 3 && !failed; k++) {
    failed = regress(context, lengths[k], &likelihood);
    if (failed) break;
    printf("length scale %4.2f: log marginal likelihood %9.1f\n", lengths[k], likelihood);
    if (likelihood > best_likelihood) best = lengths[k], best_likelihood = likelihood;
  }
  failed = failed || regress(context, best, &likelihood);
  if (failed) fprintf(stderr, "kron_gp: %s\n", zlg_context_message(NULL));
  for (int i = 0; i < M; i++)
    for (int j = 0; j < N; j++) error += pow(mean[i][j] - behind(i, j), 2);
  if (!failed)
    printf("best: %.2f; its mean is off by %.3f where the data are by %.1f\n", best, sqrt(error / (M * N)), noise);
  zlg_context_release(context);
  return failed;
}
