/* The table of codelets, made from ops.def: the one place where "all codelets" is a list. */
#include <time.h>

#include "codelets/common/codelet.h"
#include "codelets/common/starpu_compat.h"

static const struct zlg_codelet *const all_codelets[] = {
#define ZLG_CODELET(name, backends) &zlg_codelet_##name,
#include "codelets/ops.def"
#undef ZLG_CODELET
    NULL};

static const unsigned all_backends[] = {
#define ZLG_CODELET(name, backends) (backends),
#include "codelets/ops.def"
#undef ZLG_CODELET
};

static const unsigned built_backends = ZLG_ON_CPU
#ifdef ZLG_WITH_OPENCL
                                       | ZLG_ON_OPENCL
#endif
#ifdef ZLG_WITH_CUDA
                                       | ZLG_ON_CUDA
#endif
    ;

#define CODELET_COUNT ((int)(sizeof all_codelets / sizeof *all_codelets) - 1)

const struct zlg_codelet *zlg_codelet_at(int index) {
  return index < 0 || index >= CODELET_COUNT ? NULL : all_codelets[index];
}

unsigned zlg_codelet_backends(int index) {
  return all_backends[index] & built_backends;
}

const struct zlg_codelet *zlg_codelet_of(const struct starpu_codelet *codelet) {
  for (int i = 0; i < CODELET_COUNT; i++)
    if (all_codelets[i]->codelet == codelet) return all_codelets[i];
  return NULL;
}

double zlg_clock(void) {
#if HAVE_DECL_STARPU_SIMGRID
  if (starpu_is_initialized()) return 1e-6 * starpu_timing_now();
#endif
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
