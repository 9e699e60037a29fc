/* The inside of a context. Contexts are cheap: the runtime under them is one per process (runtime.h). */
#ifndef ZLG_CORE_CONTEXT_H
#define ZLG_CORE_CONTEXT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "src/core/staging.h"
#include "zellige/context.h"

struct zlg_context {
  atomic_int references;
  uint64_t serial;             /* see zlg_context_serial() */
  zlg_context_options options; /* as given, defaults filled in; strings are not kept */
  zlg_runtime_mode mode;       /* OWN or SHARED */
  int forks;                   /* zlg_forks() in the process that made it */
  int64_t memory_limit;
  struct zlg_staging staging;
  int worker_count;
  zlg_worker_info *workers; /* names owned */
  int worker_index[128];    /* StarPU's worker number -> index in workers, -1 none */
  int memory_nodes;
  int64_t device_memory;            /* bytes of the smallest device's that is known; INT64_MAX without */
  int kinds[4];                     /* number of workers by zlg_worker_kind */
  int64_t core_cache, shared_cache; /* bytes: what a core has to itself (L2), what several share (L3); 0 unknown */
  char scheduler[64], starpu_version[32], model_directory[512], worker_warning[256], model_warning[768];
};

zlg_context *zlg_context_retain(zlg_context *context);

/* How many forks lie between the process that made the first context and this one: children have none of the workers of
 * their parents. */
int zlg_forks(void);
/* This process is the one that made it. */
bool zlg_context_is_ours(const zlg_context *context);

#endif
