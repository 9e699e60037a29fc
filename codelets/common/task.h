/* What every codelet's arguments and counts have in common. No StarPU here. */
#ifndef ZLG_COMMON_TASK_H
#define ZLG_COMMON_TASK_H

#include <stddef.h>
#include <stdint.h>

#include "codelets/common/isa.h"
#include "zellige/types.h"

/* First member of every codelet's arguments. The codelet's glue stamps it when it starts; the submitter reads it when
 * the task has ended. Arguments live until then: device implementations are asynchronous. */
struct zlg_task_head {
  double start; /* zlg_clock() at entry of the implementation */
  int status;   /* ZLG_OK, or what a device said (ZLG_EDEVICE); the plan ends the request with it */
};

/* What one task does, from its arguments alone; the analytic performance model and the cost query add these up. */
struct zlg_count {
  double flops;    /* adds and multiplies, an FMA is two; exp and the like by their polynomials */
  double specials; /* exp, log, sqrt, division: counted once more for devices with special function units */
  double slots;    /* instructions of the multiply-add pipes, without the specials: for described machines */
  double bytes;    /* operands read and written once each */
  double work;     /* the unit shown to users: pairs for kernel products, 0 for housekeeping */
  zlg_type type;   /* what it computes in */
};

/* FNV-1a over the bytes of an integer or double, for footprints: equal costs must hash equal on every machine. */
static inline uint32_t zlg_hash_u64(uint32_t hash, uint64_t value) {
  for (int i = 0; i < 8; i++, value >>= 8) hash = (hash ^ (uint32_t)(value & 255)) * 16777619u;
  return hash;
}
#define ZLG_HASH_SEED 2166136261u
/* The hash of `count` of them: what a footprint consists of, or begins with. */
static inline uint32_t zlg_hash_parts(const int64_t *parts, size_t count) {
  uint32_t hash = ZLG_HASH_SEED;
  for (size_t i = 0; i < count; i++) hash = zlg_hash_u64(hash, (uint64_t)parts[i]);
  return hash;
}

#endif
