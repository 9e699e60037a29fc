/* Buffers between files and workers. A tile of a file is read into one, handed to StarPU from there, and the buffer
 * serves the next tile after it. Where cards work, their copy engines reach pinned memory only: a copy from any other
 * goes through the driver's own buffer and holds up the worker. Pinning takes about as long as copying, so pinned
 * buffers are kept in the context for the next call. */
#ifndef ZLG_CORE_STAGING_H
#define ZLG_CORE_STAGING_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct zlg_buffer {
  void *memory; /* NULL: none */
  int64_t bytes;
  bool pinned;
};

/* What a context keeps: pinned buffers that nobody uses. */
struct zlg_staging {
  pthread_mutex_t lock;
  struct zlg_idle_buffer *idle;
  int64_t idle_bytes, idle_most;
  bool cards; /* there are CUDA workers */
};

void zlg_staging_start(struct zlg_staging *staging, int64_t memory_limit, bool cards);
/* `runtime`: StarPU is there, so that memory can be given back to the driver; false in a forked child. */
void zlg_staging_end(struct zlg_staging *staging, bool runtime);

/* Makes *buffer hold at least `bytes` (> 0): as it is, another in its place, or memory NULL where there is none. What
 * it held is lost. */
void zlg_buffer_want(struct zlg_staging *staging, struct zlg_buffer *buffer, int64_t bytes);
void zlg_buffer_release(struct zlg_staging *staging, struct zlg_buffer *buffer);

#endif
