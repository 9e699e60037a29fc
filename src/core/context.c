/* Contexts: options in, workers and facts out. The runtime itself is in runtime.c. */
#include "src/core/context.h"

#include <math.h>
#include <string.h>

#include "codelets/common/codelet.h"
#include "codelets/common/model.h"
#include "codelets/common/starpu_compat.h"
#include "src/core/error.h"
#include "src/core/machine.h"
#include "src/core/memory.h"
#include "src/core/runtime.h"

void zlg_context_options_init(zlg_context_options *options) {
  if (!options) return;
  *options = (zlg_context_options){.struct_size = sizeof *options,
                                   .mode = ZLG_RUNTIME_AUTO,
                                   .cpu_workers = -1,
                                   .opencl_workers = -1,
                                   .cuda_workers = -1,
                                   .bind_workers = -1,
                                   .direct_seconds = -1};
}

static int check_options(const zlg_context_options *o) {
  if (o->struct_size != sizeof *o)
    return zlg_fail(NULL, ZLG_EINVAL, "options->struct_size = %zu, expected %zu: call zlg_context_options_init() first",
                    o->struct_size, sizeof *o);
  if (o->mode < ZLG_RUNTIME_AUTO || o->mode > ZLG_RUNTIME_SHARED)
    return zlg_fail(NULL, ZLG_EINVAL, "mode = %d, expected ZLG_RUNTIME_AUTO, OWN or SHARED", (int)o->mode);
  if (o->cpu_workers < -1 || o->opencl_workers < -1 || o->cuda_workers < -1)
    return zlg_fail(NULL, ZLG_EINVAL,
                    "cpu_workers, opencl_workers, cuda_workers = %d, %d, %d; expected -1 (all) or more", o->cpu_workers,
                    o->opencl_workers, o->cuda_workers);
  if (o->bind_workers < -1 || o->bind_workers > 1)
    return zlg_fail(NULL, ZLG_EINVAL, "bind_workers = %d, expected -1 (as StarPU does), 0 or 1", o->bind_workers);
  if (o->memory_limit < 0)
    return zlg_fail(NULL, ZLG_EINVAL, "memory_limit = %lld, expected 0 (default) or bytes", (long long)o->memory_limit);
  if (isnan(o->direct_seconds)) return zlg_fail(NULL, ZLG_EINVAL, "direct_seconds is NaN, expected seconds");
  if (o->tile_rows < 0 || o->tile_columns < 0)
    return zlg_fail(NULL, ZLG_EINVAL, "tile_rows, tile_columns = %lld, %lld; expected 0 (chosen) or more",
                    (long long)o->tile_rows, (long long)o->tile_columns);
  return ZLG_OK;
}

/* ---- forks: counted, since asking for the process is a call into the kernel ---- */

static atomic_int forks;

static void count_fork(void) {
  atomic_fetch_add(&forks, 1);
}

static void watch_forks(void) {
  pthread_atfork(NULL, NULL, count_fork);
}

int zlg_forks(void) {
  static pthread_once_t watched = PTHREAD_ONCE_INIT;
  pthread_once(&watched, watch_forks);
  return atomic_load_explicit(&forks, memory_order_relaxed);
}

bool zlg_context_is_ours(const zlg_context *context) {
  return context->forks == zlg_forks();
}

/* ---- contexts ---- */

static atomic_uint_fast64_t serials;

int zlg_context_create(zlg_context **context, const zlg_context_options *options) {
  if (!context) return zlg_fail(NULL, ZLG_EINVAL, "context is NULL, expected where to put the new context");
  *context = NULL;
  zlg_context_options defaults;
  zlg_context_options_init(&defaults);
  if (!options) options = &defaults;
  int status = check_options(options);
  if (status != ZLG_OK) return status;
  zlg_allocator_lock(+1);
  zlg_context *made = zlg_calloc(1, sizeof *made);
  if (!made) {
    zlg_allocator_lock(-1);
    return zlg_fail(NULL, ZLG_ENOMEM, "no memory for a context");
  }
  atomic_init(&made->references, 1);
  made->serial = atomic_fetch_add(&serials, 1) + 1;
  made->forks = zlg_forks();
  made->options = *options;
  if (made->options.direct_seconds < 0) made->options.direct_seconds = 100e-6;
  made->memory_limit = options->memory_limit ? options->memory_limit : zlg_machine_get()->memory_bytes / 8;
  status = zlg_runtime_acquire(made);
  if (status != ZLG_OK) {
    zlg_free(made);
    zlg_allocator_lock(-1);
    return status;
  }
  zlg_staging_start(&made->staging, made->memory_limit, made->kinds[ZLG_WORKER_CUDA] > 0);
  made->options.scheduler = NULL; /* the caller's string: read, not kept */
  *context = made;
  return ZLG_OK;
}

uint64_t zlg_context_serial(const zlg_context *context) {
  return context->serial;
}

zlg_context *zlg_context_retain(zlg_context *context) {
  atomic_fetch_add(&context->references, 1);
  return context;
}

void zlg_context_release(zlg_context *context) {
  if (!context || atomic_fetch_sub(&context->references, 1) != 1) return;
  zlg_staging_end(&context->staging, zlg_context_is_ours(context));
  zlg_runtime_release(context);
  zlg_free(context);
  zlg_allocator_lock(-1);
}

int zlg_context_worker_count(const zlg_context *context) {
  return context ? context->worker_count : 0;
}

int zlg_context_worker(const zlg_context *context, int index, zlg_worker_info *info) {
  if (!context || !info) return zlg_fail(context, ZLG_EINVAL, "%s is NULL", context ? "info" : "context");
  if (index < 0 || index >= context->worker_count)
    return zlg_fail(context, ZLG_EINVAL, "worker index = %d, expected 0 to %d", index, context->worker_count - 1);
  *info = context->workers[index];
  return ZLG_OK;
}

int zlg_context_machine(const zlg_context *context, zlg_machine_info *info) {
  if (!context || !info) return zlg_fail(context, ZLG_EINVAL, "%s is NULL", context ? "info" : "context");
  const struct zlg_machine *machine = zlg_machine_get();
  *info = (zlg_machine_info){.mode = context->mode,
                             .starpu_version = context->starpu_version,
                             .scheduler = context->scheduler,
                             .model_directory = context->model_directory,
                             .instruction_set = zlg_isa_name(zlg_isa_current()),
                             .cpu_name = machine->cpu_name,
                             .cores = machine->cores,
                             .cpu_worker_limit = zlg_runtime_cpu_worker_limit(),
                             .worker_warning = *context->worker_warning ? context->worker_warning : NULL,
                             .model_warning = *context->model_warning ? context->model_warning : NULL,
                             .memory_nodes = context->memory_nodes,
                             .memory_bytes = machine->memory_bytes,
                             .memory_limit = context->memory_limit,
                             .l1_bytes = machine->l1_bytes,
                             .l2_bytes = machine->l2_bytes,
                             .l3_bytes = machine->l3_bytes,
                             .l2_core_bytes = machine->l2_core_bytes};
#ifdef ZLG_WITH_OPENCL
  info->has_opencl = 1;
#endif
#ifdef ZLG_WITH_CUDA
  info->has_cuda = 1;
#endif
  return ZLG_OK;
}

int zlg_context_codelet(const zlg_context *context, int index, zlg_codelet_info *info) {
  if (!context || !info) return zlg_fail(context, ZLG_EINVAL, "%s is NULL", context ? "info" : "context");
  const struct zlg_codelet *codelet = zlg_codelet_at(index);
  if (!codelet) return zlg_fail(context, ZLG_EINVAL, "codelet index = %d is none", index);
  unsigned backends = zlg_codelet_backends(index);
  *info = (zlg_codelet_info){.name = codelet->name,
                             .model_symbol = codelet->codelet->model->symbol,
                             .has_cpu = (backends & ZLG_ON_CPU) != 0,
                             .has_opencl = (backends & ZLG_ON_OPENCL) != 0,
                             .has_cuda = (backends & ZLG_ON_CUDA) != 0,
                             .model_found = zlg_model_is_calibrated(codelet)};
  return ZLG_OK;
}
