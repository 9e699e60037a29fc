/* What the hardware does at best, measured beside every case: multiply-adds of one element type by each instruction
 * set, memory streams, OpenBLAS's matrix product. Limits in the table are counts of the kernels over these rates. */
#include "bench/bench.h"

#include <cblas.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "codelets/common/isa.h"

extern char *openblas_get_corename(void);

/* One operation over and over on independent chains. They hide its latency (an FMA's is 4 cycles at two a cycle: 8 at
 * least) and leave registers for the two operands. The compiler may not reorder the recurrences. Without FMA
 * instructions it is a multiplication and an addition, which is what that instruction set pays for one. */
#define RATE_LOOP(NAME, TYPE, BYTES, CHAINS, ATTRIBUTE, STEP)                                                          \
  ATTRIBUTE static double NAME(int64_t rounds) {                                                                       \
    typedef TYPE vector __attribute__((vector_size(BYTES)));                                                           \
    enum { LANES = BYTES / sizeof(TYPE) };                                                                             \
    vector chain[CHAINS], p = (vector){0} + (TYPE)0.999, q = (vector){0} + (TYPE)0.0013, sum = {0};                    \
    __asm__("" : "+m"(p), "+m"(q));                                                                                    \
    _Pragma("GCC unroll 32") for (int k = 0; k < CHAINS; k++) chain[k] = (vector){0} + (TYPE)(k + 1);                  \
    for (int64_t t = 0; t < rounds; t++)                                                                               \
      _Pragma("GCC unroll 32") for (int k = 0; k < CHAINS; k++) chain[k] = STEP(chain[k], p, q);                       \
    _Pragma("GCC unroll 32") for (int k = 0; k < CHAINS; k++) sum += chain[k];                                         \
    double total = 0;                                                                                                  \
    for (int lane = 0; lane < LANES; lane++) total += (double)sum[lane];                                               \
    return total;                                                                                                      \
  }
/* Two divisions or roots a round beside 4 KEPT multiply-adds, too few to keep the divider busy: what they cost more
 * than the multiply-adds alone is what they take from the multipliers' issue. The round counts as its multiply-adds. */
#define MIXED_LOOP(NAME, TYPE, BYTES, CHAINS, ATTRIBUTE, STEP)                                                         \
  ATTRIBUTE static double NAME(int64_t rounds) {                                                                       \
    typedef TYPE vector __attribute__((vector_size(BYTES)));                                                           \
    enum { LANES = BYTES / sizeof(TYPE), KEPT = CHAINS - 4 };                                                          \
    vector chain[KEPT], slow[2], p = (vector){0} + (TYPE)0.999, q = (vector){0} + (TYPE)0.0013, sum = {0};             \
    __asm__("" : "+m"(p), "+m"(q));                                                                                    \
    _Pragma("GCC unroll 32") for (int k = 0; k < KEPT; k++) chain[k] = (vector){0} + (TYPE)(k + 1);                    \
    slow[0] = q, slow[1] = p;                                                                                          \
    for (int64_t t = 0; t < rounds; t++) {                                                                             \
      _Pragma("GCC unroll 2") for (int half = 0; half < 2; half++) {                                                   \
        slow[half] = STEP(slow[half], p, q);                                                                           \
        _Pragma("GCC unroll 32") for (int k = 0; k < KEPT; k++) chain[k] = STEP_FMA(chain[k], p, q);                   \
        _Pragma("GCC unroll 32") for (int k = 0; k < KEPT; k++) chain[k] = STEP_FMA(chain[k], p, q);                   \
      }                                                                                                                \
    }                                                                                                                  \
    _Pragma("GCC unroll 32") for (int k = 0; k < KEPT; k++) sum += chain[k];                                           \
    sum += slow[0] + slow[1];                                                                                          \
    double total = 0;                                                                                                  \
    for (int lane = 0; lane < LANES; lane++) total += (double)sum[lane];                                               \
    return total;                                                                                                      \
  }
#define STEP_FMA(x, p, q) ((x) * (p) + (q))
#define STEP_DIVIDE(x, p, q) ((p) / ((x) + (q)))

/* The operations for both types of one instruction set; the rows of the table below in the order of the enums. */
#define RATE_LOOPS(ISA, BYTES, CHAINS, ATTRIBUTE, ROOT32, ROOT64)                                                      \
  RATE_LOOP(fma_f32_##ISA, float, BYTES, CHAINS, ATTRIBUTE, STEP_FMA)                                                  \
  RATE_LOOP(fma_f64_##ISA, double, BYTES, CHAINS, ATTRIBUTE, STEP_FMA)                                                 \
  RATE_LOOP(divide_f32_##ISA, float, BYTES, CHAINS, ATTRIBUTE, STEP_DIVIDE)                                            \
  RATE_LOOP(divide_f64_##ISA, double, BYTES, CHAINS, ATTRIBUTE, STEP_DIVIDE)                                           \
  RATE_LOOP(root_f32_##ISA, float, BYTES, CHAINS, ATTRIBUTE, ROOT32)                                                   \
  RATE_LOOP(root_f64_##ISA, double, BYTES, CHAINS, ATTRIBUTE, ROOT64)                                                  \
  MIXED_LOOP(mixed_divide_f32_##ISA, float, BYTES, CHAINS, ATTRIBUTE, STEP_DIVIDE)                                     \
  MIXED_LOOP(mixed_divide_f64_##ISA, double, BYTES, CHAINS, ATTRIBUTE, STEP_DIVIDE)                                    \
  MIXED_LOOP(mixed_root_f32_##ISA, float, BYTES, CHAINS, ATTRIBUTE, ROOT32)                                            \
  MIXED_LOOP(mixed_root_f64_##ISA, double, BYTES, CHAINS, ATTRIBUTE, ROOT64)
#define RATE_ROW(ISA, BYTES, CHAINS)                                                                                   \
  {                                                                                                                    \
    .bytes = BYTES * CHAINS, .mixed_fma = 4 * (CHAINS - 4),                                                            \
    .run = {{fma_f32_##ISA, fma_f64_##ISA},                                                                            \
            {divide_f32_##ISA, divide_f64_##ISA},                                                                      \
            {root_f32_##ISA, root_f64_##ISA},                                                                          \
            {mixed_divide_f32_##ISA, mixed_divide_f64_##ISA},                                                          \
            {mixed_root_f32_##ISA, mixed_root_f64_##ISA}},                                                             \
    .vector = BYTES,                                                                                                   \
  }

#if defined(__x86_64__)
#define ROOT32_512(x, p, q) ((vector)_mm512_sqrt_ps((__m512)((x) + (p))))
#define ROOT64_512(x, p, q) ((vector)_mm512_sqrt_pd((__m512d)((x) + (p))))
#define ROOT32_256(x, p, q) ((vector)_mm256_sqrt_ps((__m256)((x) + (p))))
#define ROOT64_256(x, p, q) ((vector)_mm256_sqrt_pd((__m256d)((x) + (p))))
#define ROOT32_128(x, p, q) ((vector)_mm_sqrt_ps((__m128)((x) + (p))))
#define ROOT64_128(x, p, q) ((vector)_mm_sqrt_pd((__m128d)((x) + (p))))
RATE_LOOPS(avx512, 64, 28, __attribute__((target("avx512f"))), ROOT32_512, ROOT64_512)
RATE_LOOPS(avx2, 32, 14, __attribute__((target("avx2,fma"))), ROOT32_256, ROOT64_256)
RATE_LOOPS(baseline, 16, 12, , ROOT32_128, ROOT64_128)
#else
/* In lanes, as the kernels do there. */
#define ROOT32_LANES(x, p, q) ((vector){sqrtf((x)[0] + (p)[0]), sqrtf((x)[1]), sqrtf((x)[2]), sqrtf((x)[3])})
#define ROOT64_LANES(x, p, q) ((vector){sqrt((x)[0] + (p)[0]), sqrt((x)[1])})
RATE_LOOPS(baseline, 16, 12, , ROOT32_LANES, ROOT64_LANES)
#endif

struct rate_loops {
  int bytes;             /* that one round of each unmixed loop works on */
  int mixed_fma, vector; /* multiply-adds of a round of the mixed ones, bytes of each */
  double (*run[5][2])(int64_t rounds);
};
static const struct rate_loops all_rate_loops[] = {
    [ZLG_ISA_BASELINE] = RATE_ROW(baseline, 16, 12),
#if defined(__x86_64__)
    [ZLG_ISA_AVX2] = RATE_ROW(avx2, 32, 14),
    [ZLG_ISA_AVX512] = RATE_ROW(avx512, 64, 28),
#endif
};

/* A rate taken by several threads at once: each waits for all, works for some 10 ms and divides by its own time. */
struct gang {
  int threads;
  atomic_int ready;
  enum bench_operation operation;
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

static double gang_rate(enum bench_operation operation, zlg_type type, int threads,
                        double (*work)(const struct gang *, int)) {
  struct gang gang = {.threads = threads, .operation = operation, .type = type, .work = work};
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

static double operation_work(const struct gang *gang, int rank) {
  const struct rate_loops *loops = &all_rate_loops[zlg_isa_current()];
  double (*run)(int64_t) = loops->run[gang->operation][gang->type == ZLG_F64];
  const int64_t rounds = gang->operation == BENCH_DIVIDE || gang->operation == BENCH_ROOT ? 5000 : 50000;
  int64_t done = 0;
  double start = thread_seconds(), sum = 0;
  while (thread_seconds() - start < 0.01) {
    sum += run(rounds);
    done += rounds;
  }
  if (rank == 0) sink = sum;
  bool mixed = gang->operation == BENCH_FMA_BESIDE_DIVIDE || gang->operation == BENCH_FMA_BESIDE_ROOT;
  return (double)done * (mixed ? loops->mixed_fma * loops->vector : loops->bytes) / (double)zlg_type_size(gang->type);
}

double bench_issue_slots(enum bench_operation operation, zlg_type type) {
  const int fma = all_rate_loops[zlg_isa_current()].mixed_fma;
  double alone = 0, beside = 0; /* the least disturbed of a few measurements */
  for (int k = 0; k < 3; k++) {
    alone = fmax(alone, bench_rate(BENCH_FMA, type, 1));
    beside = fmax(beside, bench_rate(operation, type, 1));
  }
  return alone > 0 && beside > 0 ? fmax(0, fma * (alone / beside - 1) / 2) : 0;
}

double bench_rate(enum bench_operation operation, zlg_type type, int threads) {
  return gang_rate(operation, type, threads, operation_work);
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
  return stream_ready() ? gang_rate(BENCH_FMA, ZLG_F64, threads, triad_work) : -1;
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
  return gang_rate(BENCH_FMA, type, threads, gemm_work);
}

/* One product of 2048 x 2048 matrices, its rows shared out. */
static double peak_work(const struct gang *gang, int rank) {
  enum { SIDE = 2048 };
  size_t area = (size_t)SIDE * SIDE;
  int from = SIDE * rank / gang->threads, rows = SIDE * (rank + 1) / gang->threads - from;
  size_t first = (size_t)from * SIDE;
  double *a = stream, *b = a + area, *c = b + area;
  float *fa = (float *)a, *fb = (float *)b, *fc = (float *)c;
  if (gang->type == ZLG_F64)
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, rows, SIDE, SIDE, 1, a + first, SIDE, b, SIDE, 0, c + first,
                SIDE);
  else
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, rows, SIDE, SIDE, 1, fa + first, SIDE, fb, SIDE, 0,
                fc + first, SIDE);
  return (double)rows * SIDE * SIDE;
}

double bench_gemm_peak(zlg_type type, int threads) {
  return stream_ready() ? gang_rate(BENCH_FMA, type, threads, peak_work) : -1;
}

const char *bench_gemm_kernel(void) {
  return openblas_get_corename();
}
