/* LAPACK, as OpenBLAS brings it, in the calling thread. Its number of threads is the application's to say. */
#include "codelets/common/lapack.h"

#include <math.h>
#include <stddef.h>

#include "src/core/memory.h"
#include "zellige/status.h"

/* Fortran's interface: everything by address, the lengths of texts behind. */
void dgetrf_(const int *m, const int *n, double *a, const int *lda, int *pivots, int *info);
void dgetri_(const int *n, double *a, const int *lda, const int *pivots, double *work, const int *lwork, int *info);
void dsyevd_(const char *job, const char *half, const int *n, double *a, const int *lda, double *values, double *work,
             const int *lwork, int *iwork, const int *liwork, int *info, size_t job_length, size_t half_length);

static void transpose(int64_t n, double *a) {
  for (int64_t i = 0; i < n; i++)
    for (int64_t k = 0; k < i; k++) {
      const double kept = a[i * n + k];
      a[i * n + k] = a[k * n + i];
      a[k * n + i] = kept;
    }
}

int zlg_lapack_logdet(int64_t n, double *a, double *logabs, int *sign) {
  *logabs = 0;
  *sign = 1;
  if (n == 0) return ZLG_OK;
  const int order = (int)n;
  int info, *pivots = zlg_malloc((size_t)n * sizeof *pivots);
  if (!pivots) return ZLG_ENOMEM;
  dgetrf_(&order, &order, a, &order, pivots, &info);
  long double sum = 0;
  for (int64_t i = 0; i < n; i++) {
    const double pivot = a[i * n + i];
    if ((pivots[i] != i + 1) != (pivot < 0)) *sign = -*sign;
    if (pivot == 0) *sign = 0;
    sum += logl(fabsl((long double)pivot));
  }
  *logabs = (double)sum;
  if (*sign == 0 && !isnan(sum)) *logabs = -INFINITY;
  zlg_free(pivots);
  return ZLG_OK;
}

int zlg_lapack_invert(int64_t n, double *a) {
  if (n == 0) return ZLG_OK;
  const int order = (int)n, length = 64 * order;
  int info, *pivots = zlg_malloc((size_t)n * sizeof *pivots);
  double *work = zlg_malloc((size_t)length * sizeof *work);
  int status = pivots && work ? ZLG_OK : ZLG_ENOMEM;
  if (status == ZLG_OK) {
    dgetrf_(&order, &order, a, &order, pivots, &info);
    if (info == 0) dgetri_(&order, a, &order, pivots, work, &length, &info);
    for (int64_t i = 0; info == 0 && i < n * n; i++)
      if (!isfinite(a[i])) info = 1;
    if (info != 0) status = ZLG_ESINGULAR;
  }
  zlg_free(work);
  zlg_free(pivots);
  return status;
}

int zlg_lapack_eigen(int64_t n, double *a, double *values) {
  if (n == 0) return ZLG_OK;
  const int order = (int)n, length = 1 + 6 * order + 2 * order * order, integers = 3 + 5 * order;
  int info, *iwork = zlg_malloc((size_t)integers * sizeof *iwork);
  double *work = zlg_malloc((size_t)length * sizeof *work);
  int status = iwork && work ? ZLG_OK : ZLG_ENOMEM;
  if (status == ZLG_OK) {
    dsyevd_("V", "U", &order, a, &order, values, work, &length, iwork, &integers, &info, 1, 1);
    if (info != 0) status = ZLG_ESINGULAR;
    transpose(n, a); /* LAPACK stores by columns */
  }
  zlg_free(work);
  zlg_free(iwork);
  return status;
}
