/* What the hardware does at best, measured beside every case: multiply-adds of one element type by each instruction
 * set, memory streams, OpenBLAS's matrix product. Limits in the table are counts of the kernels over these rates. */
#include "bench/bench.h"

#include <cblas.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "codelets/common/isa.h"

extern char *openblas_get_corename(void);

/* The chains hide the latency of an FMA (4 cycles, two a cycle: 8 at least) and leave registers for the two operands.
 * The compiler may not reorder the recurrence, so that nothing but the loop counter is shared. Without FMA instructions
 * it is a multiplication and an addition, which is what that instruction set pays for one. */
#define FMA_LOOP(NAME, TYPE, BYTES, CHAINS, ATTRIBUTE)                                                                 \
  ATTRIBUTE static double NAME(int64_t rounds) {                                                                       \
    typedef TYPE vector __attribute__((vector_size(BYTES)));                                                           \
    enum { LANES = BYTES / sizeof(TYPE) };                                                                             \
    vector chain[CHAINS], factor = (vector){0} + (TYPE)0.999, addend = (vector){0} + (TYPE)0.001, sum = {0};           \
    __asm__("" : "+m"(factor), "+m"(addend));                                                                          \
    _Pragma("GCC unroll 32") for (int k = 0; k < CHAINS; k++) chain[k] = (vector){0} + (TYPE)k;                        \
    for (int64_t t = 0; t < rounds; t++)                                                                               \
      _Pragma("GCC unroll 32") for (int k = 0; k < CHAINS; k++) chain[k] = chain[k] * factor + addend;                 \
    _Pragma("GCC unroll 32") for (int k = 0; k < CHAINS; k++) sum += chain[k];                                         \
    double total = 0;                                                                                                  \
    for (int lane = 0; lane < LANES; lane++) total += (double)sum[lane];                                               \
    return total;                                                                                                      \
  }

FMA_LOOP(fma_f32_baseline, float, 16, 12, )
FMA_LOOP(fma_f64_baseline, double, 16, 12, )
#if defined(__x86_64__)
FMA_LOOP(fma_f32_avx2, float, 32, 14, __attribute__((target("avx2,fma"))))
FMA_LOOP(fma_f64_avx2, double, 32, 14, __attribute__((target("avx2,fma"))))
FMA_LOOP(fma_f32_avx512, float, 64, 28, __attribute__((target("avx512f"))))
FMA_LOOP(fma_f64_avx512, double, 64, 28, __attribute__((target("avx512f"))))
#endif

struct fma_loop {
  double (*run)(int64_t rounds);
  double elements; /* multiply-adds of one round */
};

static struct fma_loop fma_loop_in_use(zlg_type type) {
  bool single = type == ZLG_F32;
#if defined(__x86_64__)
  if (zlg_isa_current() == ZLG_ISA_AVX512)
    return single ? (struct fma_loop){fma_f32_avx512, 28 * 16} : (struct fma_loop){fma_f64_avx512, 28 * 8};
  if (zlg_isa_current() == ZLG_ISA_AVX2)
    return single ? (struct fma_loop){fma_f32_avx2, 14 * 8} : (struct fma_loop){fma_f64_avx2, 14 * 4};
#endif
  return single ? (struct fma_loop){fma_f32_baseline, 12 * 4} : (struct fma_loop){fma_f64_baseline, 12 * 2};
}

/* A rate taken by several threads at once: each waits for all, works for some 10 ms and divides by its own time. */
struct gang {
  int threads;
  atomic_int ready;
  zlg_type type;
  double (*work)(const struct gang *gang, int rank); /* returns work done */
};
struct member {
  struct gang *gang;
  int rank;
  double rate;
};

static double thread_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void *member_run(void *argument) {
  struct member *self = argument;
  struct gang *gang = self->gang;
  atomic_fetch_add(&gang->ready, 1);
  while (atomic_load(&gang->ready) < gang->threads)
    ;
  double start = gang->threads == 1 ? thread_seconds() : bench_wall_clock();
  double work = gang->work(gang, self->rank);
  double end = gang->threads == 1 ? thread_seconds() : bench_wall_clock();
  self->rate = work / (end - start);
  return NULL;
}

static double gang_rate(zlg_type type, int threads, double (*work)(const struct gang *, int)) {
  struct gang gang = {.threads = threads, .type = type, .work = work};
  struct member *members = calloc((size_t)threads, sizeof *members);
  pthread_t *ids = calloc((size_t)threads, sizeof *ids);
  double rate = -1;
  int started = 1;
  if (!members || !ids) goto cleanup;
  for (int k = 0; k < threads; k++) members[k] = (struct member){.gang = &gang, .rank = k};
  while (started < threads && pthread_create(&ids[started], NULL, member_run, &members[started]) == 0) started++;
  if (started < threads) atomic_store(&gang.ready, threads);
  member_run(&members[0]);
  for (int k = 1; k < started; k++) pthread_join(ids[k], NULL);
  if (started < threads) goto cleanup;
  rate = 0;
  for (int k = 0; k < threads; k++) rate += members[k].rate;
cleanup:
  free(members);
  free(ids);
  return rate;
}

static volatile double sink;

static double fma_work(const struct gang *gang, int rank) {
  struct fma_loop loop = fma_loop_in_use(gang->type);
  int64_t rounds = 0;
  double start = thread_seconds(), sum = 0;
  while (thread_seconds() - start < 0.01) {
    sum += loop.run(100000);
    rounds += 100000;
  }
  if (rank == 0) sink = sum;
  return (double)rounds * loop.elements;
}

double bench_fma_rate(zlg_type type, int threads) {
  return gang_rate(type, threads, fma_work);
}

/* Three arrays of 64 MiB, out of every cache but the largest servers'; a slice of them per thread. Made once. */
enum { STREAM = 1 << 23 };
static double *stream;

static bool stream_ready(void) {
  if (stream) return true;
  stream = malloc(3 * sizeof *stream * STREAM);
  if (!stream) return false;
  for (size_t i = 0; i < 3 * (size_t)STREAM; i++) stream[i] = 1;
  return true;
}

static double triad_work(const struct gang *gang, int rank) {
  size_t from = (size_t)STREAM * (size_t)rank / (size_t)gang->threads;
  size_t to = (size_t)STREAM * (size_t)(rank + 1) / (size_t)gang->threads;
  double *restrict a = stream;
  const double *restrict b = stream + STREAM, *restrict c = stream + 2 * (size_t)STREAM;
  for (size_t i = from; i < to; i++) a[i] = b[i] + 3 * c[i];
  return 4 * sizeof *a * (double)(to - from);
}

double bench_triad_rate(int threads) {
  return stream_ready() ? gang_rate(ZLG_F64, threads, triad_work) : -1;
}

/* 512 x 512 x 512 a thread, out of the same arrays, OpenBLAS itself on one thread (the driver sets
 * OPENBLAS_NUM_THREADS). */
static double gemm_work(const struct gang *gang, int rank) {
  enum { SIDE = 512, COUNT = 8 };
  size_t area = (size_t)SIDE * SIDE;
  double *a = stream + 3 * area * (size_t)rank, *b = a + area, *c = b + area;
  float *fa = (float *)a, *fb = (float *)b, *fc = (float *)c;
  for (int t = 0; t < COUNT; t++)
    if (gang->type == ZLG_F64)
      cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, SIDE, SIDE, SIDE, 1, a, SIDE, b, SIDE, 0, c, SIDE);
    else
      cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, SIDE, SIDE, SIDE, 1, fa, SIDE, fb, SIDE, 0, fc, SIDE);
  return (double)COUNT * SIDE * SIDE * SIDE;
}

double bench_gemm_rate(zlg_type type, int threads) {
  if (!stream_ready() || threads > 3 * STREAM / (3 * 512 * 512)) return -1;
  return gang_rate(type, threads, gemm_work);
}

const char *bench_gemm_kernel(void) {
  return openblas_get_corename();
}
