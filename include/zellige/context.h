/* The context: the runtime under the library, its workers, limits, progress and last error. */
#ifndef ZELLIGE_CONTEXT_H
#define ZELLIGE_CONTEXT_H

#include "zellige/types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct zlg_context zlg_context;

/* Who runs StarPU.
 * OWN: the library starts it with the settings below and pauses its workers while no request is under way (an idle
 * context uses no processor time); ZLG_ESTATE where the application started StarPU before. Several OWN contexts share
 * one StarPU: later ones may not ask for other workers or another scheduler (ZLG_ESTATE). SHARED: the application has
 * started StarPU; the library takes a reference, changes no global setting, never pauses; ZLG_ESTATE where StarPU is
 * not running. AUTO: SHARED where StarPU runs already and it was not the library that started it, else OWN. */
typedef enum zlg_runtime_mode { ZLG_RUNTIME_AUTO = 0, ZLG_RUNTIME_OWN = 1, ZLG_RUNTIME_SHARED = 2 } zlg_runtime_mode;

/* What is done so far of one request; also handed to the progress function. */
typedef struct zlg_progress {
  double work_done, work_total; /* units of work: pairs (i, j) for kernel products */
  int64_t tasks_done, tasks_total;
  double seconds;             /* since submission */
  double seconds_left;        /* estimate from the rate so far; NaN before the first task ended */
  int worker_count;           /* workers of the context, in the order of zlg_context_worker() */
  const double *worker_share; /* worker_count shares of work_done, each in [0, 1] */
} zlg_progress;

/* Called from the thread that waits (zlg_apply, zlg_request_wait), about ten times a second, and once at the end. A
 * return other than 0 cancels the request. */
typedef int (*zlg_progress_fn)(void *user, const zlg_progress *progress);

typedef struct zlg_context_options {
  size_t struct_size; /* set by zlg_context_options_init() */
  zlg_runtime_mode mode;
  int cpu_workers;       /* OWN: number of CPU workers, -1 all cores, 0 none */
  int opencl_workers;    /* OWN: number of OpenCL workers, -1 all devices, 0 none */
  int cuda_workers;      /* OWN: number of CUDA workers, -1 all devices, 0 none */
  const char *scheduler; /* OWN: one of StarPU's policies by name; NULL: "dmdas" with devices, else "lws". StarPU's
                            environment, STARPU_SCHED, outranks it */
  int bind_workers;      /* OWN: 1 CPU workers one core each, 0 all unbound; -1 as StarPU and its environment say */
  int64_t memory_limit;  /* bytes the library may use for staged tiles and accumulators; 0: 1/8 of the machine's memory,
                            of which a quarter at most stages each of a file's operands */
  double direct_seconds; /* problems predicted to be shorter run at once in the calling thread, without a task;
                            0: never; negative: the default, 100 microseconds */
  int64_t tile_rows, tile_columns; /* 0: chosen from sizes and caches; else the tile shape of every product (for tests:
                                      StarPU can hang where several devices hold fewer than a dozen such tiles each) */
  zlg_progress_fn progress;
  void *progress_user;
} zlg_context_options;

/* Fills in the defaults: AUTO, all workers, default scheduler. */
ZLG_API void zlg_context_options_init(zlg_context_options *options);

/* Makes a context; options may be NULL. Errors: ZLG_EINVAL (an option out of range, an unknown scheduler: the message
 * lists the known ones), ZLG_ESTATE (mode), ZLG_ERUNTIME (StarPU did not start, its directory cannot be written),
 * ZLG_ENODEV (no worker at all), ZLG_ENOMEM. */
ZLG_API int zlg_context_create(zlg_context **context, const zlg_context_options *options);

/* A forked child has no workers: contexts of its parent refuse to apply anything there (ZLG_ESTATE), new ones are
 * refused while the parent had an OWN one; giving objects back is allowed, waiting for requests is not. Fork before the
 * first context, or call exec. */

/* Gives the context back. Objects made with it keep it alive until they are gone; NULL is allowed. Requests under way
 * are waited for. */
ZLG_API void zlg_context_release(zlg_context *context);

/* The message of the last error in the calling thread on this context; "" if there was none. NULL: the last error of
 * the calling thread, of whatever context (where zlg_context_create() failed). Valid until the thread's next call. */
ZLG_API const char *zlg_context_message(const zlg_context *context);

/* One worker. Pointers live as long as the context. */
typedef struct zlg_worker_info {
  zlg_worker_kind kind;
  int id;           /* StarPU's worker number */
  int memory_node;  /* 0 is the machine's memory */
  const char *name; /* as StarPU describes it, "CPU 0", "OpenCL 0 (pthread…)" */
} zlg_worker_info;

ZLG_API int zlg_context_worker_count(const zlg_context *context);
ZLG_API int zlg_context_worker(const zlg_context *context, int index, zlg_worker_info *info);

/* What the machine, the build and the runtime are; in a simulation the machine is the described one, and its caches are
 * unknown. Pointers live as long as the context. */
typedef struct zlg_machine_info {
  zlg_runtime_mode mode;      /* OWN or SHARED */
  const char *starpu_version; /* of the library that runs, "1.3.10" */
  const char *scheduler;
  const char *model_directory; /* where StarPU keeps its performance models */
  const char *instruction_set; /* of the CPU kernels chosen: "baseline", "avx2", "avx512" */
  const char *cpu_name;
  int cores;                  /* of the machine, usable by this process */
  int cpu_worker_limit;       /* most CPU workers that this StarPU was compiled for */
  const char *worker_warning; /* NULL, or one sentence: fewer CPU workers than cores, and the remedy */
  const char *model_warning;  /* NULL, or one sentence: model files that were skipped, and why */
  int memory_nodes;
  int64_t memory_bytes;                 /* of the machine */
  int64_t memory_limit;                 /* of this context */
  int64_t l1_bytes, l2_bytes, l3_bytes; /* data caches as hwloc sees them; 0 unknown */
  int64_t l2_core_bytes;                /* of L2, what each core has where several share one */
  int has_opencl, has_cuda;             /* 1 where the library was built with it */
} zlg_machine_info;

ZLG_API int zlg_context_machine(const zlg_context *context, zlg_machine_info *info);

/* The codelets of this build: one row per index from 0; ZLG_EINVAL past the last. */
typedef struct zlg_codelet_info {
  const char *name;
  const char *model_symbol; /* name of its performance model */
  int has_cpu, has_opencl, has_cuda;
  int model_found; /* 1 where a calibrated model of this machine was found */
} zlg_codelet_info;
ZLG_API int zlg_context_codelet(const zlg_context *context, int index, zlg_codelet_info *info);

#ifdef __cplusplus
}
#endif
#endif
