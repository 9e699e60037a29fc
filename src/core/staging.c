/* Buffers between files and workers: see the header. */
#include "src/core/staging.h"

#include "codelets/common/starpu_compat.h"
#include "src/core/memory.h"

#define PAGE 4096                     /* what is pinned are pages: two buffers share none */
#define IDLE_MOST (INT64_C(64) << 20) /* bytes kept for the next call */

/* Stands at the start of the memory that it is about. */
struct zlg_idle_buffer {
  struct zlg_idle_buffer *next;
  struct zlg_buffer buffer;
};

void zlg_staging_start(struct zlg_staging *staging, int64_t memory_limit, bool cards) {
  *staging = (struct zlg_staging){.cards = cards};
  staging->idle_most = memory_limit / 8 < IDLE_MOST ? memory_limit / 8 : IDLE_MOST;
  pthread_mutex_init(&staging->lock, NULL);
}

static void give_back(const struct zlg_buffer *buffer, bool runtime) {
  if (buffer->pinned && runtime) starpu_memory_unpin(buffer->memory, (size_t)buffer->bytes);
  zlg_free_aligned(buffer->memory);
}

void zlg_staging_end(struct zlg_staging *staging, bool runtime) {
  while (staging->idle) {
    const struct zlg_buffer buffer = staging->idle->buffer;
    staging->idle = staging->idle->next;
    give_back(&buffer, runtime);
  }
  pthread_mutex_destroy(&staging->lock);
}

/* The smallest idle one that is large enough. */
static struct zlg_buffer take_idle(struct zlg_staging *staging, int64_t bytes) {
  struct zlg_idle_buffer **best = NULL;
  for (struct zlg_idle_buffer **at = &staging->idle; *at; at = &(*at)->next)
    if ((*at)->buffer.bytes >= bytes && (!best || (*at)->buffer.bytes < (*best)->buffer.bytes)) best = at;
  if (!best) return (struct zlg_buffer){0};
  const struct zlg_buffer taken = (*best)->buffer;
  *best = (*best)->next;
  staging->idle_bytes -= taken.bytes;
  return taken;
}

/* Idle ones leave: none fits what is wanted, and what is new takes their place in memory. */
static void make_room(struct zlg_staging *staging, int64_t bytes) {
  struct zlg_buffer leaves;
  do {
    pthread_mutex_lock(&staging->lock);
    leaves = take_idle(staging, 1);
    pthread_mutex_unlock(&staging->lock);
    give_back(&leaves, true);
    bytes -= leaves.bytes;
  } while (leaves.memory && bytes > 0);
}

/* Memory that cannot be pinned (a limit of the system, a driver that refuses) still serves. */
static struct zlg_buffer make_pinned(int64_t bytes) {
  struct zlg_buffer made = {.bytes = (bytes + PAGE - 1) / PAGE * PAGE};
  made.memory = zlg_malloc_aligned(PAGE, (size_t)made.bytes);
  made.pinned = made.memory && starpu_memory_pin(made.memory, (size_t)made.bytes) == 0;
  return made;
}

static struct zlg_buffer find_pinned(struct zlg_staging *staging, int64_t bytes) {
  pthread_mutex_lock(&staging->lock);
  const struct zlg_buffer found = take_idle(staging, bytes);
  pthread_mutex_unlock(&staging->lock);
  if (found.memory) return found;
  make_room(staging, bytes);
  return make_pinned(bytes);
}

void zlg_buffer_want(struct zlg_staging *staging, struct zlg_buffer *buffer, int64_t bytes) {
  if (buffer->memory && buffer->bytes >= bytes) return;
  zlg_buffer_release(staging, buffer);
  if (staging->cards)
    *buffer = find_pinned(staging, bytes);
  else
    *buffer = (struct zlg_buffer){zlg_malloc_aligned(64, (size_t)bytes), bytes, false};
}

void zlg_buffer_release(struct zlg_staging *staging, struct zlg_buffer *buffer) {
  struct zlg_buffer released = *buffer;
  *buffer = (struct zlg_buffer){0};
  if (!released.memory) return;
  bool kept = false;
  if (released.pinned) {
    pthread_mutex_lock(&staging->lock);
    kept = staging->idle_bytes + released.bytes <= staging->idle_most;
    if (kept) {
      struct zlg_idle_buffer *node = released.memory;
      *node = (struct zlg_idle_buffer){staging->idle, released};
      staging->idle = node;
      staging->idle_bytes += released.bytes;
    }
    pthread_mutex_unlock(&staging->lock);
  }
  if (!kept) give_back(&released, true);
}
