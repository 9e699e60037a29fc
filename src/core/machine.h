/* Facts about the machine from hwloc: cores this process may use, caches, memory, the processor's name. Read once. A
 * simulation's are those of the machine that is described. */
#ifndef ZLG_CORE_MACHINE_H
#define ZLG_CORE_MACHINE_H

#include <stdint.h>

struct zlg_machine {
  int cores;
  int64_t memory_bytes, l1_bytes, l2_bytes, l3_bytes;
  int64_t l2_core_bytes; /* of a second-level cache, for each core that shares it: the smallest such share */
  char cpu_name[128];
};

/* Never fails: what hwloc cannot tell is 0 or 1 core, and "unknown". */
const struct zlg_machine *zlg_machine_get(void);

/* From now on the machine is this one: for simulations, before the first context. */
void zlg_machine_describe(const struct zlg_machine *described);

#endif
