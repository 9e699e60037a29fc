/* StarPU under the contexts: one per process. Started here (OWN) or by the application (SHARED); in OWN mode its
 * workers are paused while no request is under way, so that an idle context uses no processor time. */
#ifndef ZLG_CORE_RUNTIME_H
#define ZLG_CORE_RUNTIME_H

#include <stdbool.h>

#include "src/core/context.h"

/* Takes a reference for the context, starting StarPU where the mode says so; fills in the context's mode, workers,
 * nodes and names. Messages go to the calling thread without a context, which does not exist for its caller yet. */
int zlg_runtime_acquire(zlg_context *context);
void zlg_runtime_release(zlg_context *context);

/* Between enter and leave the workers run, from the first wake on, which comes before any wait for them: what is
 * submitted before it is there when they start, and idle ones do not poll on the processors that submit. Nested and
 * concurrent use is counted. */
void zlg_runtime_enter(const zlg_context *context);
void zlg_runtime_wake(const zlg_context *context);
void zlg_runtime_leave(const zlg_context *context);

/* Schedulers that hold tasks back until they are asked for them (graph_test) give them out: called before waiting. */
void zlg_runtime_schedule(void);

/* Bytes moved into and out of each memory node since the process began, as far as StarPU's bus profiling says; false
 * where it is off (SHARED mode and the application did not switch it on). Arrays of `nodes` entries. */
bool zlg_runtime_bus_bytes(int nodes, int64_t *in, int64_t *out);

/* The index-th link between two memory nodes and the bytes that went over it; false past the last. */
bool zlg_runtime_link(int index, int *from, int *to, int64_t *bytes);

/* Where StarPU keeps its performance models, by its environment. */
void zlg_runtime_model_directory(char *path, size_t bytes);

/* The most CPU workers that this StarPU was compiled for. */
int zlg_runtime_cpu_worker_limit(void);

#endif
