/* Two products at once, on one operator: K B and K^T U, both under way in the background while this thread watches
 * them. They are then held against each other: U . (K B) = (K^T U) . B, whatever K is. */
#include <math.h>
#include <stdio.h>
#include <time.h>
#include <zellige.h>

enum { M = 20000, N = 30000, D = 3 };
static double x[M][D], y[N][D], b[N], u[M], kb[M], ku[N];

static double dot(const double *v, const double *w, int n) {
  double sum = 0;
  for (int i = 0; i < n; i++) sum += v[i] * w[i];
  return sum;
}

static void fill(void) {
  for (int i = 0; i < M; i++) {
    for (int k = 0; k < D; k++) x[i][k] = sin(1.0 + i * (k + 1));
    u[i] = 1 + cos(i);
  }
  for (int j = 0; j < N; j++) {
    for (int k = 0; k < D; k++) y[j][k] = cos(2.0 + j * (k + 1));
    b[j] = 2 + sin(j);
  }
}

/* Prints how far both are, five times a second, until both have ended. */
static void watch(zlg_request *requests[2]) {
  int done[2] = {0, 0};
  while (!done[0] || !done[1]) {
    for (int k = 0; k < 2; k++) {
      zlg_progress p;
      if (zlg_request_test(requests[k], &done[k]) != ZLG_OK || zlg_request_progress(requests[k], &p) != ZLG_OK) return;
      printf("%s %3.0f %%  ", k ? "K'U" : "KB", p.work_total > 0 ? 100 * p.work_done / p.work_total : 0.0);
    }
    putchar('\n');
    nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
  }
}

static void print_report(const char *name, zlg_request *request) {
  zlg_report r;
  if (zlg_request_report(request, &r) != ZLG_OK) return;
  printf("%s: %.3g %s in %.3f s, %lld tasks\n", name, r.work, r.work_unit, r.seconds, (long long)r.tasks);
  for (int k = 0; k < r.worker_count; k++)
    printf("  %-24s %5.1f %% of the work, busy %.3f s\n", r.workers[k].worker.name, 100 * r.workers[k].work / r.work,
           r.workers[k].busy);
}

int main(void) {
  zlg_context *context = NULL;
  zlg_matrix *X = NULL, *Y = NULL, *B = NULL, *U = NULL, *KB = NULL, *KU = NULL;
  zlg_operator *K = NULL;
  zlg_request *requests[2] = {NULL, NULL};
  zlg_kernel_spec spec;
  zlg_kernel_spec_init(&spec, ZLG_MATERN32);
  fill();

  int status = zlg_context_create(&context, NULL);
  if (!status) status = zlg_matrix_wrap_const(context, &X, ZLG_F64, M, D, ZLG_ROW_MAJOR, D, x);
  if (!status) status = zlg_matrix_wrap_const(context, &Y, ZLG_F64, N, D, ZLG_ROW_MAJOR, D, y);
  if (!status) status = zlg_matrix_wrap_const(context, &B, ZLG_F64, N, 1, ZLG_ROW_MAJOR, 1, b);
  if (!status) status = zlg_matrix_wrap_const(context, &U, ZLG_F64, M, 1, ZLG_ROW_MAJOR, 1, u);
  if (!status) status = zlg_matrix_wrap(context, &KB, ZLG_F64, M, 1, ZLG_ROW_MAJOR, 1, kb);
  if (!status) status = zlg_matrix_wrap(context, &KU, ZLG_F64, N, 1, ZLG_ROW_MAJOR, 1, ku);
  if (!status) status = zlg_kernel(context, &K, &spec, X, Y);
  if (!status) status = zlg_apply_async(K, ZLG_NOTRANS, 1.0, B, 0.0, KB, &requests[0]);
  if (!status) status = zlg_apply_async(K, ZLG_TRANS, 1.0, U, 0.0, KU, &requests[1]);
  if (status) {
    fprintf(stderr, "async: %s\n", zlg_context_message(NULL));
  } else {
    watch(requests);
    for (int k = 0; k < 2 && !status; k++)
      if ((status = zlg_request_wait(requests[k]))) fprintf(stderr, "async: %s\n", zlg_request_message(requests[k]));
  }
  if (!status) {
    print_report("KB", requests[0]);
    print_report("K'U", requests[1]);
    double left = dot(u, kb, M), right = dot(ku, b, N);
    printf("U.(KB) = %.10g, (K'U).B = %.10g, relative difference below 1e-12: %s\n", left, right,
           fabs(left - right) < 1e-12 * left ? "yes" : "no");
  }

  for (int k = 0; k < 2; k++) zlg_request_release(requests[k]); /* waits where one is still under way */
  zlg_operator_release(K);
  zlg_matrix *matrices[] = {X, Y, B, U, KB, KU};
  for (int k = 0; k < 6; k++) zlg_matrix_release(matrices[k]);
  zlg_context_release(context);
  return status != ZLG_OK;
}
