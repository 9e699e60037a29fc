/* The benchmark of a card, for tests/device/run: kernel products through the public interface on one CUDA worker,
 * beside the matrix product of cuBLAS and the bandwidth of copies on the same card. CUDA's libraries are opened when it
 * runs: cuBLAS is taken where the machine has it. Prints a table in Markdown. */
#include <dlfcn.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "zellige.h"

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- the card ---------------------------------------------------------------------------------------------------- */

enum { TO_CARD = 1, TO_HOST = 2, ON_CARD = 3 }; /* enum cudaMemcpyKind */

static struct {
  int (*malloc)(void **, size_t);
  int (*free)(void *);
  int (*host_alloc)(void **, size_t, unsigned);
  int (*free_host)(void *);
  int (*memory)(size_t *, size_t *);
  int (*copy)(void *, const void *, size_t, int, void *);
  int (*set)(void *, int, size_t);
  int (*wait)(void);
} cuda;

static bool open_runtime(void) {
  void *library = dlopen("libcudart.so.13", RTLD_NOW | RTLD_GLOBAL);
  if (!library) return false;
  *(void **)&cuda.malloc = dlsym(library, "cudaMalloc");
  *(void **)&cuda.free = dlsym(library, "cudaFree");
  *(void **)&cuda.host_alloc = dlsym(library, "cudaHostAlloc");
  *(void **)&cuda.free_host = dlsym(library, "cudaFreeHost");
  *(void **)&cuda.memory = dlsym(library, "cudaMemGetInfo");
  *(void **)&cuda.copy = dlsym(library, "cudaMemcpyAsync");
  *(void **)&cuda.set = dlsym(library, "cudaMemset");
  *(void **)&cuda.wait = dlsym(library, "cudaDeviceSynchronize");
  return cuda.malloc && cuda.free && cuda.host_alloc && cuda.free_host && cuda.memory && cuda.copy && cuda.set &&
         cuda.wait;
}

/* GB/s of the best of five; a copy on the card reads and writes, and counts twice. */
static double copy_rate(void *to, const void *from, size_t bytes, int kind) {
  double best = 0;
  for (int i = 0; i < 5; i++) {
    const double began = now();
    if (cuda.copy(to, from, bytes, kind, NULL) != 0 || cuda.wait() != 0) return NAN;
    best = fmax(best, 1e-9 * (double)bytes / (now() - began));
  }
  return kind == ON_CARD ? 2 * best : best;
}

static void copies(void) {
  size_t available = 0, total = 0, bytes;
  void *host = NULL, *one = NULL, *other = NULL;
  cuda.memory(&available, &total);
  bytes = available / 4 < (size_t)256 << 20 ? available / 4 : (size_t)256 << 20;
  if (cuda.host_alloc(&host, bytes, 0) == 0 && cuda.malloc(&one, bytes) == 0 && cuda.malloc(&other, bytes) == 0) {
    printf("| copy, host to card, %zu MB | %.1f GB/s | |\n", bytes >> 20, copy_rate(one, host, bytes, TO_CARD));
    printf("| copy, card to host, %zu MB | %.1f GB/s | |\n", bytes >> 20, copy_rate(host, one, bytes, TO_HOST));
    printf("| copy on the card, %zu MB | %.1f GB/s | |\n", bytes >> 20, copy_rate(other, one, bytes, ON_CARD));
  } else {
    printf("| copies | no memory for them | |\n");
  }
  cuda.free(one);
  cuda.free(other);
  cuda.free_host(host);
}

/* ---- cuBLAS ------------------------------------------------------------------------------------------------------ */

typedef int gemm(void *handle, int op_a, int op_b, int m, int n, int k, const void *alpha, const void *A, int lda,
                 const void *B, int ldb, const void *beta, void *C, int ldc);

static double gemm_rate(gemm *multiply, void *handle, int n, const void *one, const void *zero, void *const memory[3]) {
  double best = 0;
  for (int i = 0; i < 4; i++) { /* the first chooses its kernel */
    const double began = now();
    if (multiply(handle, 0, 0, n, n, n, one, memory[0], n, memory[1], n, zero, memory[2], n) != 0 || cuda.wait() != 0)
      return NAN;
    best = fmax(best, 2e-12 * n * n * n / (now() - began));
  }
  return best;
}

static void matrix_products(void) {
  void *library = dlopen("libcublas.so.13", RTLD_NOW | RTLD_LOCAL), *handle = NULL;
  int (*create)(void **) = NULL;
  gemm *single = NULL, *dual = NULL;
  if (library) {
    *(void **)&create = dlsym(library, "cublasCreate_v2");
    *(void **)&single = dlsym(library, "cublasSgemm_v2");
    *(void **)&dual = dlsym(library, "cublasDgemm_v2");
  }
  if (!create || !single || !dual || create(&handle) != 0) {
    printf("| cuBLAS | not on this machine | |\n");
    return;
  }
  const int n = 8192;
  void *memory[3] = {NULL};
  bool there = true;
  for (int i = 0; i < 3; i++) {
    const size_t bytes = (size_t)n * (size_t)n * sizeof(double);
    there = there && cuda.malloc(&memory[i], bytes) == 0 && cuda.set(memory[i], 0, bytes) == 0;
  }
  if (there) {
    printf("| cuBLAS sgemm, n = %d | %.1f TFlop/s | |\n", n,
           gemm_rate(single, handle, n, &(float){1}, &(float){0}, memory));
    printf("| cuBLAS dgemm, n = %d | %.1f TFlop/s | |\n", n,
           gemm_rate(dual, handle, n, &(double){1}, &(double){0}, memory));
  }
  for (int i = 0; i < 3; i++) cuda.free(memory[i]);
}

/* ---- kernel products --------------------------------------------------------------------------------------------- */

struct product {
  zlg_kernel_kind kind;
  zlg_type type;
  int64_t d, r;
};

static void *points(zlg_type type, int64_t count, uint64_t seed) {
  void *values = malloc((size_t)count * zlg_type_size(type));
  uint64_t state = seed;
  for (int64_t i = 0; values && i < count; i++) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const double value = (double)(state >> 40) * 0x1p-24;
    if (type == ZLG_F32)
      ((float *)values)[i] = (float)value;
    else
      ((double *)values)[i] = value;
  }
  return values;
}

static double run(zlg_context *context, zlg_operator *K, zlg_matrix *B, zlg_matrix *Y, double *busy) {
  zlg_request *request = NULL;
  zlg_report report;
  double seconds = NAN;
  if (zlg_apply_async(K, ZLG_NOTRANS, 1, B, 0, Y, &request) == ZLG_OK && zlg_request_wait(request) == ZLG_OK &&
      zlg_request_report(request, &report) == ZLG_OK) {
    seconds = report.seconds;
    *busy = 0;
    for (int i = 0; i < report.worker_count; i++) *busy += report.workers[i].busy;
  } else {
    fprintf(stderr, "bench: %s\n", zlg_context_message(context));
  }
  zlg_request_release(request);
  return seconds;
}

/* n x n pairs: seconds of the better of two, NaN where it failed. */
static double measure(zlg_context *context, const struct product *p, int64_t n, double *busy) {
  void *x = points(p->type, n * p->d, 1), *b = points(p->type, n * p->r, 2),
       *y = malloc((size_t)(n * p->r) * zlg_type_size(p->type));
  zlg_matrix *X = NULL, *B = NULL, *Y = NULL;
  zlg_operator *K = NULL;
  zlg_kernel_spec spec;
  double lengthscale = 0.5, seconds = NAN;
  zlg_kernel_spec_init(&spec, p->kind);
  spec.lengthscales = &lengthscale;
  spec.lengthscale_count = 1;
  if (x && b && y && zlg_matrix_wrap_const(context, &X, p->type, n, p->d, ZLG_ROW_MAJOR, p->d, x) == ZLG_OK &&
      zlg_matrix_wrap_const(context, &B, p->type, n, p->r, ZLG_ROW_MAJOR, p->r, b) == ZLG_OK &&
      zlg_matrix_wrap(context, &Y, p->type, n, p->r, ZLG_ROW_MAJOR, p->r, y) == ZLG_OK &&
      zlg_kernel(context, &K, &spec, X, X) == ZLG_OK) {
    double first = 0, second = 0;
    const double earlier = run(context, K, B, Y, &first), later = run(context, K, B, Y, &second);
    seconds = fmin(earlier, later);
    *busy = later <= earlier ? second : first;
  }
  zlg_operator_release(K);
  zlg_matrix_release(X);
  zlg_matrix_release(B);
  zlg_matrix_release(Y);
  free(x), free(b), free(y);
  return seconds;
}

static bool print_product(zlg_context *context, const struct product *p) {
  int64_t n = 1024;
  double busy = 0, seconds = measure(context, p, n, &busy);
  while (seconds < 0.1 && n < (1 << 19)) {
    n *= 2;
    seconds = measure(context, p, n, &busy);
  }
  const double pairs = 1e-9 * (double)n * (double)n;
  printf("| %s, %s, d %d, r %d, n = %lld | %.3g Gpair/s | %.3g Gpair/s while busy |\n", zlg_kernel_name(p->kind),
         zlg_type_name(p->type), (int)p->d, (int)p->r, (long long)n, pairs / seconds, pairs / busy);
  fflush(stdout);
  return seconds > 0;
}

static int products(void) {
  static const struct product list[] = {
      {ZLG_GAUSSIAN, ZLG_F32, 3, 1},    {ZLG_GAUSSIAN, ZLG_F32, 10, 1},   {ZLG_GAUSSIAN, ZLG_F32, 50, 1},
      {ZLG_GAUSSIAN, ZLG_F32, 3, 8},    {ZLG_EXPONENTIAL, ZLG_F32, 3, 1}, {ZLG_MATERN52, ZLG_F32, 3, 1},
      {ZLG_CAUCHY, ZLG_F32, 3, 1},      {ZLG_GAUSSIAN, ZLG_F64, 3, 1},    {ZLG_GAUSSIAN, ZLG_F64, 10, 1},
      {ZLG_EXPONENTIAL, ZLG_F64, 3, 1},
  };
  zlg_context_options options;
  zlg_context *context = NULL;
  zlg_context_options_init(&options);
  options.cpu_workers = options.opencl_workers = 0;
  options.cuda_workers = 1;
  options.direct_seconds = 0;
  if (zlg_context_create(&context, &options) != ZLG_OK) {
    fprintf(stderr, "bench: %s\n", zlg_context_message(NULL));
    return 1;
  }
  int failed = 0;
  for (size_t i = 0; i < sizeof list / sizeof *list; i++) failed += !print_product(context, &list[i]);
  zlg_context_release(context);
  return failed != 0;
}

int main(void) {
  if (!open_runtime()) {
    fprintf(stderr, "bench: %s\n", dlerror());
    return 1;
  }
  printf("| what | rate | |\n|---|---|---|\n");
  copies();
  matrix_products();
  return products();
}
