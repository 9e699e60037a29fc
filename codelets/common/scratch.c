/* Scratch memory of the threads that run CPU implementations: one buffer a thread, grown on demand. A StarPU scratch
 * handle would do the same for more runtime work per task, and could not serve the path that runs without tasks. The
 * buffers go with their thread, and all of them with the last context: the threads may be the application's and live
 * on, and the allocator that made the buffers may not. */
#include <pthread.h>
#include <stdbool.h>

#include "codelets/common/codelet.h"
#include "src/core/memory.h"

struct scratch {
  void *memory;
  size_t bytes;
  bool listed;
  struct scratch *next, **place; /* in `all` */
};

static _Thread_local struct scratch mine;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the list */
static struct scratch *all;
static pthread_mutex_t key_lock = PTHREAD_MUTEX_INITIALIZER; /* guards the making of the key; not pthread_once(), which
                                                                helgrind does not know */
static pthread_key_t key; /* for its destructor: called while the thread's variables are still there */
static enum { NOT_TRIED, MADE, REFUSED } key_state;

static void drop(struct scratch *scratch) {
  zlg_free_aligned(scratch->memory);
  scratch->memory = NULL;
  scratch->bytes = 0;
}

static void thread_ends(void *value) {
  struct scratch *scratch = value;
  pthread_mutex_lock(&lock);
  drop(scratch);
  *scratch->place = scratch->next;
  if (scratch->next) scratch->next->place = scratch->place;
  scratch->listed = false;
  pthread_mutex_unlock(&lock);
}

static void contexts_end(void) {
  pthread_mutex_lock(&lock);
  for (struct scratch *scratch = all; scratch; scratch = scratch->next) drop(scratch);
  pthread_mutex_unlock(&lock);
}

static bool key_is_made(void) {
  pthread_mutex_lock(&key_lock);
  if (key_state == NOT_TRIED) {
    key_state = pthread_key_create(&key, thread_ends) == 0 ? MADE : REFUSED;
    zlg_allocator_at_end(contexts_end);
  }
  bool made = key_state == MADE;
  pthread_mutex_unlock(&key_lock);
  return made;
}

static bool enlist(struct scratch *scratch) {
  if (!key_is_made() || pthread_setspecific(key, scratch) != 0) return false;
  pthread_mutex_lock(&lock);
  scratch->next = all;
  scratch->place = &all;
  if (all) all->place = &scratch->next;
  all = scratch;
  scratch->listed = true;
  pthread_mutex_unlock(&lock);
  return true;
}

void *zlg_scratch(size_t bytes) {
  if (mine.memory && bytes <= mine.bytes) return mine.memory;
  if (!mine.listed && !enlist(&mine)) return NULL;
  size_t want = bytes < 4096 ? 4096 : bytes;
  drop(&mine);
  mine.memory = zlg_malloc_aligned(64, want);
  mine.bytes = mine.memory ? want : 0;
  return mine.memory;
}
