/* Performance models. A codelet says what a task does (count); here that becomes seconds: nominal rates of the worker
 * kind, times what calibration found for the task's family (model.h), times a correction learned from the tasks that
 * ran in this process. The correction is kept per codelet, worker kind and footprint, so an uncalibrated machine starts
 * sensibly and improves as it runs.
 *
 * A calibrated curve is kept as the ratio of measured to nominal seconds over size, interpolated linearly in the
 * logarithms and constant beyond its ends: at its points it is what was measured, and a family that was not measured
 * takes the ratio of the nearest one that was. */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "codelets/common/codelet.h"
#include "codelets/common/model.h"
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

/* Those of a described machine, for the kinds that have some. */
static struct {
  bool set;
  zlg_rates rates;
} described[ZLG_MODEL_KINDS + 1];

void zlg_model_set_rates(zlg_worker_kind kind, const zlg_rates *rates) {
  described[kind].rates = *rates;
  described[kind].set = true;
}

static double described_seconds(const struct zlg_count *count, const zlg_rates *rates) {
  const int type = count->type == ZLG_F64;
  double slots = count->slots, special = 0;
  if (rates->specials[type] > 0)
    special = count->specials / rates->specials[type];
  else
    slots += count->specials * rates->special_slots[type];
  return rates->launch + fmax(fmax(slots / rates->multiply_adds[type], special), count->bytes / rates->bytes);
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

static double nominal_seconds(const struct zlg_count *count, zlg_worker_kind kind) {
  if (described[kind].set) return described_seconds(count, &described[kind].rates);
  struct rates rates = rates_of(kind);
  return rates.launch + fmax(count->flops / rates.flops, count->bytes / rates.bytes);
}

/* ---- calibrated curves ------------------------------------------------------------------------------------------ */

#define CURVES 512 /* of a kind; calibration of everything makes some 100 */
struct curve {
  const struct zlg_codelet *codelet;
  struct zlg_family family;
  int count;
  float size[ZLG_CURVE_POINTS], ratio[ZLG_CURVE_POINTS]; /* logarithms */
};
static struct {
  pthread_rwlock_t lock;
  atomic_int count[ZLG_MODEL_KINDS + 1];
  struct curve curves[ZLG_MODEL_KINDS + 1][CURVES];
} table = {.lock = PTHREAD_RWLOCK_INITIALIZER};

static double distance(const struct zlg_family *a, const struct zlg_family *b) {
  static const double weights[] = {16, 4, 1};
  double sum = 0;
  for (int i = 0; i < 3; i++) sum += a->what[i] == b->what[i] ? 0 : weights[i];
  for (int i = 0; i < 2; i++)
    if (a->width[i] != b->width[i]) sum += fabs(log2((double)(a->width[i] + 1)) - log2((double)(b->width[i] + 1)));
  return sum;
}

static const struct curve *nearest(const struct zlg_codelet *codelet, const struct zlg_family *family, int kind) {
  const struct curve *best = NULL;
  double least = INFINITY;
  int count = atomic_load(&table.count[kind]);
  for (int i = 0; i < count && least > 0; i++) {
    const struct curve *curve = &table.curves[kind][i];
    if (curve->codelet != codelet) continue;
    double apart = distance(&curve->family, family);
    if (apart < least) least = apart, best = curve;
  }
  return best;
}

static double ratio_at(const struct curve *curve, double size) {
  float at = (float)log(fmax(size, 1));
  int last = curve->count - 1, i = 0;
  if (at <= curve->size[0]) return exp((double)curve->ratio[0]);
  if (at >= curve->size[last]) return exp((double)curve->ratio[last]);
  while (at > curve->size[i + 1]) i++;
  float part = (at - curve->size[i]) / (curve->size[i + 1] - curve->size[i]);
  return exp((double)(curve->ratio[i] + part * (curve->ratio[i + 1] - curve->ratio[i])));
}

static double calibrated_ratio(const struct zlg_codelet *codelet, const void *args, zlg_worker_kind kind) {
  if (described[kind].set || atomic_load_explicit(&table.count[kind], memory_order_relaxed) == 0) return 1;
  struct zlg_family family = {0};
  codelet->family(args, &family);
  pthread_rwlock_rdlock(&table.lock);
  const struct curve *curve = nearest(codelet, &family, (int)kind);
  double ratio = curve ? ratio_at(curve, family.size) : 1;
  pthread_rwlock_unlock(&table.lock);
  return ratio;
}

static void add_curve(const struct zlg_codelet *codelet, const struct zlg_family *family,
                      const struct zlg_curve *measured) {
  int index = 0, count = atomic_load(&table.count[measured->kind]);
  struct curve *list = table.curves[measured->kind];
  while (index < count && (list[index].codelet != codelet || distance(&list[index].family, family) > 0)) index++;
  if (index == CURVES || measured->count == 0) return;
  struct curve *curve = &list[index];
  *curve = (struct curve){.codelet = codelet, .family = *family, .count = measured->count};
  for (int i = 0; i < measured->count; i++) {
    const zlg_model_point *point = &measured->points[i];
    struct zlg_count task = {.flops = point->flops, .bytes = point->bytes};
    curve->size[i] = (float)log(point->size);
    curve->ratio[i] = (float)log(point->seconds / nominal_seconds(&task, measured->kind));
  }
  if (index == count) atomic_store(&table.count[measured->kind], count + 1);
}

void zlg_model_use(const struct zlg_model *model) {
  const struct zlg_codelet *codelet = NULL;
  for (int i = 0; (codelet = zlg_codelet_at(i)) && strcmp(codelet->name, model->codelet) != 0;) i++;
  if (!codelet) return;
  pthread_rwlock_wrlock(&table.lock);
  for (int i = 0; i < model->curve_count; i++) add_curve(codelet, &model->family, &model->curves[i]);
  pthread_rwlock_unlock(&table.lock);
}

/* What was learned goes too: it corrects the curves that were there. */
void zlg_model_forget(void) {
  pthread_rwlock_wrlock(&table.lock);
  for (int kind = 0; kind <= ZLG_MODEL_KINDS; kind++) atomic_store(&table.count[kind], 0);
  pthread_rwlock_unlock(&table.lock);
  for (unsigned i = 0; i < SLOTS; i++) atomic_store_explicit(&slots[i].samples, 0, memory_order_relaxed);
}

bool zlg_model_has_curve(const struct zlg_codelet *codelet, zlg_worker_kind kind) {
  bool found = false;
  if (described[kind].set) return false;
  pthread_rwlock_rdlock(&table.lock);
  for (int i = 0; i < table.count[kind] && !found; i++) found = table.curves[kind][i].codelet == codelet;
  pthread_rwlock_unlock(&table.lock);
  return found;
}

bool zlg_model_is_calibrated(const struct zlg_codelet *codelet) {
  bool found = false;
  for (int kind = ZLG_WORKER_CPU; kind <= ZLG_MODEL_KINDS; kind++)
    found |= zlg_model_has_curve(codelet, (zlg_worker_kind)kind);
  return found;
}

/* ---- predictions ------------------------------------------------------------------------------------------------ */

double zlg_model_base(const struct zlg_codelet *codelet, const void *args, zlg_worker_kind kind) {
  struct zlg_count count = {0};
  codelet->count(args, &count);
  return nominal_seconds(&count, kind) * calibrated_ratio(codelet, args, kind);
}

double zlg_model_seconds(const struct zlg_codelet *codelet, const void *args, zlg_worker_kind kind) {
  double seconds = zlg_model_base(codelet, args, kind);
  struct slot *slot = slot_find(slot_key(codelet, args, kind), false);
  if (slot && atomic_load_explicit(&slot->samples, memory_order_relaxed) > 0)
    seconds *= (double)atomic_load_explicit(&slot->factor, memory_order_relaxed);
  return seconds;
}

void zlg_model_learn(const struct zlg_codelet *codelet, const void *args, zlg_worker_kind kind, double seconds) {
  double base = zlg_model_base(codelet, args, kind);
  if (!(seconds > 0) || !(base > 0)) return;
  struct slot *slot = slot_find(slot_key(codelet, args, kind), true);
  if (!slot) return;
  float ratio = (float)(seconds / base);
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
