/* Where the runtime's worker threads may run. StarPU binds each to a core unless its environment says otherwise; a
 * program that asks for one or the other gets it here, once the workers run. */
#ifndef ZLG_CORE_AFFINITY_H
#define ZLG_CORE_AFFINITY_H

#include <sched.h>

/* The processors that the calling thread may use: taken before StarPU starts. */
void zlg_affinity_of_caller(cpu_set_t *set);
/* bind: 1 each CPU worker to a processor of its own out of `set`, 0 all workers to all of them, -1 as they are. */
void zlg_affinity_apply(int bind, const cpu_set_t *set);

#endif
