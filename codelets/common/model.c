/* Performance models. A codelet says what a task does (count); here that becomes seconds: analytic rates of the worker
 * kind, times a correction learned from the tasks that ran in this process. The correction is kept per codelet, worker
 * kind and footprint, so an uncalibrated machine starts sensibly and improves as it runs. */
#include <math.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "codelets/common/codelet.h"
#include "codelets/common/starpu_compat.h"

/* What one worker of a kind does, before anything was measured. flops: of the kernels, not the peak. A CPU core: 2 FMA
 * of the vector width a cycle at 3 GHz, 60 % reached. Devices are guesses that the first tasks correct: PoCL is a CPU,
 * a card is a thousand times a core's order. */
struct rates {
  double flops, bytes, launch;
};

static struct rates rates_of(zlg_worker_kind kind) {
  static const double lanes[] = {[ZLG_ISA_BASELINE] = 4, [ZLG_ISA_AVX2] = 8, [ZLG_ISA_AVX512] = 16};
  struct rates cpu = {0.6 * 4 * 3e9 * lanes[zlg_isa_current()], 10e9, 1e-6};
  switch (kind) {
  case ZLG_WORKER_CPU:
    return cpu;
  case ZLG_WORKER_OPENCL:
    return (struct rates){0.2 * cpu.flops, 5e9, 50e-6};
  case ZLG_WORKER_CUDA:
    return (struct rates){5e12, 800e9, 10e-6};
  }
  return cpu;
}

/* Learned corrections: an open-addressed table without locks. A slot's key is claimed once by compare-and-swap; the
 * factor is a float whose lost updates do no harm. A full table just stops learning new shapes. */
#define SLOTS 1024u
static struct slot {
  _Atomic uint64_t key; /* 0: free */
  _Atomic float factor;
  atomic_int samples;
} slots[SLOTS];

static uint64_t slot_key(const struct zlg_codelet *codelet, const void *args, zlg_worker_kind kind) {
  uint32_t hash = zlg_hash_u64(ZLG_HASH_SEED, codelet->footprint(args));
  for (const char *c = codelet->name; *c; c++) hash = (hash ^ (unsigned char)*c) * 16777619u;
  return ((uint64_t)kind << 32) | hash;
}

static struct slot *slot_find(uint64_t key, bool claim) {
  for (unsigned probe = 0, at = (unsigned)(key ^ key >> 32) % SLOTS; probe < 16; probe++, at = (at + 1) % SLOTS) {
    uint64_t seen = atomic_load_explicit(&slots[at].key, memory_order_acquire);
    if (seen == key) return &slots[at];
    if (seen) continue;
    if (!claim) return NULL;
    if (atomic_compare_exchange_strong(&slots[at].key, &seen, key) || seen == key) return &slots[at];
  }
  return NULL;
}

static double analytic_seconds(const struct zlg_codelet *codelet, const void *args, zlg_worker_kind kind) {
  struct zlg_count count = {0};
  codelet->count(args, &count);
  struct rates rates = rates_of(kind);
  return rates.launch + fmax(count.flops / rates.flops, count.bytes / rates.bytes);
}

double zlg_model_seconds(const struct zlg_codelet *codelet, const void *args, zlg_worker_kind kind) {
  double seconds = analytic_seconds(codelet, args, kind);
  struct slot *slot = slot_find(slot_key(codelet, args, kind), false);
  if (slot && atomic_load_explicit(&slot->samples, memory_order_relaxed) > 0)
    seconds *= (double)atomic_load_explicit(&slot->factor, memory_order_relaxed);
  return seconds;
}

void zlg_model_learn(const struct zlg_codelet *codelet, const void *args, zlg_worker_kind kind, double seconds) {
  double analytic = analytic_seconds(codelet, args, kind);
  if (!(seconds > 0) || !(analytic > 0)) return;
  struct slot *slot = slot_find(slot_key(codelet, args, kind), true);
  if (!slot) return;
  float ratio = (float)(seconds / analytic);
  int samples = atomic_fetch_add_explicit(&slot->samples, 1, memory_order_relaxed);
  float old = atomic_load_explicit(&slot->factor, memory_order_relaxed);
  /* A running mean of the last 32 or so; the first sample may hold cold caches, so it is forgotten at the third. */
  float weight = samples < 2 ? 1.0f : samples < 32 ? 1.0f / (float)samples : 1.0f / 32;
  atomic_store(&slot->factor, old + weight * (ratio - old)); /* an exchange, which helgrind takes for atomic */
}

static zlg_worker_kind kind_of_arch(const struct starpu_perfmodel_arch *arch) {
  if (arch->ndevices > 0 && arch->devices[0].type == STARPU_OPENCL_WORKER) return ZLG_WORKER_OPENCL;
  if (arch->ndevices > 0 && arch->devices[0].type == STARPU_CUDA_WORKER) return ZLG_WORKER_CUDA;
  return ZLG_WORKER_CPU;
}

double zlg_model_microseconds(struct starpu_task *task, struct starpu_perfmodel_arch *arch, unsigned implementation) {
  (void)implementation;
  const struct zlg_codelet *codelet = zlg_codelet_of(task->cl);
  return codelet ? 1e6 * zlg_model_seconds(codelet, task->cl_arg, kind_of_arch(arch)) : NAN;
}

uint32_t zlg_model_footprint(struct starpu_task *task) {
  const struct zlg_codelet *codelet = zlg_codelet_of(task->cl);
  return codelet ? codelet->footprint(task->cl_arg) : 0;
}
