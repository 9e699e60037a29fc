/* Linux's affinity masks; a system that refuses leaves the workers where they are, which changes no result. */
#include "config.h"

#include "src/core/affinity.h"

#include "codelets/common/starpu_compat.h"

void zlg_affinity_of_caller(cpu_set_t *set) {
  if (sched_getaffinity(0, sizeof *set, set) != 0) CPU_ZERO(set);
}

/* The `index`-th processor of the set, counted round. */
static int processor_at(const cpu_set_t *set, int index) {
  index %= CPU_COUNT(set);
  for (int processor = 0; processor < CPU_SETSIZE; processor++)
    if (CPU_ISSET(processor, set) && index-- == 0) return processor;
  return 0;
}

/* In each worker's thread. */
static void let_loose(void *set) {
  (void)sched_setaffinity(0, sizeof(cpu_set_t), set);
}

static void bind_one(void *set) {
  int index = 0, me = starpu_worker_get_id();
  for (int id = 0; id < me; id++) index += starpu_worker_get_type(id) == STARPU_CPU_WORKER;
  cpu_set_t mine;
  CPU_ZERO(&mine);
  CPU_SET(processor_at(set, index), &mine);
  (void)sched_setaffinity(0, sizeof mine, &mine);
}

void zlg_affinity_apply(int bind, const cpu_set_t *set) {
  if (bind < 0 || CPU_COUNT(set) == 0) return;
  cpu_set_t kept = *set;
  if (bind)
    starpu_execute_on_each_worker(bind_one, &kept, STARPU_CPU);
  else
    starpu_execute_on_each_worker(let_loose, &kept, STARPU_CPU | STARPU_OPENCL | STARPU_CUDA);
}
