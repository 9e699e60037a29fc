/* Scratch memory of worker threads: one buffer a thread, grown on demand, gone with the thread. A StarPU scratch handle would
 * do the same for more runtime work per task, and could not serve the path that runs without tasks. */
#include <pthread.h>

#include "codelets/common/codelet.h"
#include "src/core/memory.h"

struct scratch {
  void *memory;
  size_t bytes;
};

static pthread_once_t scratch_once = PTHREAD_ONCE_INIT;
static pthread_key_t scratch_key;
static int scratch_key_status = -1;

static void scratch_gone(void *value) {
  struct scratch *scratch = value;
  zlg_free_aligned(scratch->memory);
  zlg_free(scratch);
}

static void scratch_make_key(void) { scratch_key_status = pthread_key_create(&scratch_key, scratch_gone); }

void *zlg_scratch(size_t bytes) {
  pthread_once(&scratch_once, scratch_make_key);
  if (scratch_key_status != 0) return NULL;
  struct scratch *scratch = pthread_getspecific(scratch_key);
  if (!scratch) {
    scratch = zlg_calloc(1, sizeof *scratch);
    if (!scratch) return NULL;
    if (pthread_setspecific(scratch_key, scratch) != 0) {
      zlg_free(scratch);
      return NULL;
    }
  }
  if (scratch->bytes < bytes || !scratch->memory) {
    size_t want = bytes < 4096 ? 4096 : bytes;
    zlg_free_aligned(scratch->memory);
    scratch->memory = zlg_malloc_aligned(64, want);
    scratch->bytes = scratch->memory ? want : 0;
  }
  return scratch->memory;
}
