/* Facts about the machine from hwloc: cores this process may use, caches, memory, the processor's name. Read once. */
#ifndef ZLG_CORE_MACHINE_H
#define ZLG_CORE_MACHINE_H

#include <stdint.h>

struct zlg_machine {
  int cores;
  int64_t memory_bytes, l1_bytes, l2_bytes, l3_bytes;
  char cpu_name[128];
};

/* Never fails: what hwloc cannot tell is 0 or 1 core, and "unknown". */
const struct zlg_machine *zlg_machine_get(void);

#endif
