/* The machine's limits: multiply-adds of one core, and the memory's triad, by the instruction set in use. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <time.h>

#include "codelets/common/isa.h"
#include "perfmodels/perfmodels.h"

/* Independent chains hide the latency of a multiply-add; the recurrence keeps the compiler from doing less. */
#define FMA_LOOP(NAME, TYPE, BYTES, CHAINS, ATTRIBUTE)                                                                 \
  ATTRIBUTE static double NAME(int64_t rounds) {                                                                       \
    typedef TYPE vector __attribute__((vector_size(BYTES)));                                                           \
    vector chain[CHAINS], factor = (vector){0} + (TYPE)0.999, addend = (vector){0} + (TYPE)0.0013, sum = {0};          \
    __asm__("" : "+m"(factor), "+m"(addend));                                                                          \
    _Pragma("GCC unroll 32") for (int k = 0; k < CHAINS; k++) chain[k] = (vector){0} + (TYPE)(k + 1);                  \
    for (int64_t t = 0; t < rounds; t++)                                                                               \
      _Pragma("GCC unroll 32") for (int k = 0; k < CHAINS; k++) chain[k] = chain[k] * factor + addend;                 \
    _Pragma("GCC unroll 32") for (int k = 0; k < CHAINS; k++) sum += chain[k];                                         \
    double total = 0;                                                                                                  \
    for (int lane = 0; lane < (int)(BYTES / sizeof(TYPE)); lane++) total += (double)sum[lane];                         \
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

static const struct {
  double (*f32)(int64_t), (*f64)(int64_t);
  int bytes; /* of all chains */
} loops[] = {
    [ZLG_ISA_BASELINE] = {fma_f32_baseline, fma_f64_baseline, 12 * 16},
#if defined(__x86_64__)
    [ZLG_ISA_AVX2] = {fma_f32_avx2, fma_f64_avx2, 14 * 32},
    [ZLG_ISA_AVX512] = {fma_f32_avx512, fma_f64_avx512, 28 * 64},
#endif
};

static volatile double sink;

/* Processor time of this thread: what other programs take is not the core's slowness. */
static double thread_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static double best_fma(double (*run)(int64_t), double per_round) {
  enum { ROUNDS = 200000, TURNS = 9 };
  double best = 0;
  for (int turn = 0; turn < TURNS; turn++) {
    double start = thread_seconds();
    sink = run(ROUNDS);
    double rate = ROUNDS * per_round / (thread_seconds() - start);
    if (rate > best) best = rate;
  }
  return best;
}

/* Three arrays of 32 MiB a thread, out of most caches. */
enum { STREAM = 1 << 22, TURNS = 5 };
struct stream {
  double *memory;
  atomic_int *ready;
  int threads;
  double rate;
};

static void *run_stream(void *argument) {
  struct stream *stream = argument;
  double *restrict a = stream->memory;
  const double *restrict b = a + STREAM, *restrict c = b + STREAM;
  for (size_t i = 0; i < 3 * (size_t)STREAM; i++) stream->memory[i] = 1;
  atomic_fetch_add(stream->ready, 1);
  while (atomic_load(stream->ready) < stream->threads) continue;
  for (int turn = 0; turn < TURNS; turn++) {
    double start = thread_seconds();
    for (size_t i = 0; i < STREAM; i++) a[i] = b[i] + 3 * c[i];
    __asm__ volatile("" : : "r"(a) : "memory");
    double rate = 3 * sizeof *a * (double)STREAM / (thread_seconds() - start);
    if (rate > stream->rate) stream->rate = rate;
  }
  return NULL;
}

enum { MOST_THREADS = 256 };

/* 0 where there is not the memory or the threads for it. */
static double triad(int threads) {
  struct stream streams[MOST_THREADS];
  pthread_t ids[MOST_THREADS];
  atomic_int ready = 0;
  const size_t bytes = 3 * sizeof(double) * STREAM;
  if (threads > MOST_THREADS) threads = MOST_THREADS;
  void *memory = mmap(NULL, bytes * (size_t)threads, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 0;
  for (int i = 0; i < threads; i++)
    streams[i] = (struct stream){(double *)((char *)memory + bytes * (size_t)i), &ready, threads, 0};
  int started = 1;
  while (started < threads && pthread_create(&ids[started], NULL, run_stream, &streams[started]) == 0) started++;
  if (started < threads) atomic_store(&ready, threads); /* nobody waits for those who did not start */
  run_stream(&streams[0]);
  double rate = streams[0].rate;
  for (int i = 1; i < started; i++) {
    pthread_join(ids[i], NULL);
    rate += streams[i].rate;
  }
  munmap(memory, bytes * (size_t)threads);
  return started == threads ? rate : 0;
}

void zlg_measure_limits(int threads, zlg_machine_limits *limits) {
  enum zlg_isa isa = zlg_isa_current();
  limits->fma_f32 = best_fma(loops[isa].f32, (double)loops[isa].bytes / sizeof(float));
  limits->fma_f64 = best_fma(loops[isa].f64, (double)loops[isa].bytes / sizeof(double));
  limits->triad = triad(1);
  limits->triad_all = threads > 1 ? triad(threads) : limits->triad;
}
