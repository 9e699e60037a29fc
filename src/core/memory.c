/* All memory of the library passes here, so that a caller's allocator sees every byte and a test can refuse any one of
 * them. The table may change only while no context exists: objects are given back to the allocator that made them. */
#include "config.h"

#include "src/core/memory.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/error.h"

static void *default_allocate(void *user, size_t bytes) {
  (void)user;
  return malloc(bytes);
}
static void *default_reallocate(void *user, void *old, size_t bytes) {
  (void)user;
  return realloc(old, bytes);
}
static void default_release(void *user, void *memory) {
  (void)user;
  free(memory);
}

static const zlg_allocator default_allocator = {default_allocate, default_reallocate, default_release, NULL};

/* The mutex guards the count and orders a change of the table before the next context; while a context exists the table
 * is constant and read without it. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int locks;
static void (*at_end)(void);
static zlg_allocator current = {default_allocate, default_reallocate, default_release, NULL};

void zlg_allocator_lock(int delta) {
  pthread_mutex_lock(&mutex);
  locks += delta;
  if (locks == 0 && at_end) at_end();
  pthread_mutex_unlock(&mutex);
}

void zlg_allocator_at_end(void (*give_back)(void)) {
  pthread_mutex_lock(&mutex);
  at_end = give_back;
  pthread_mutex_unlock(&mutex);
}

int zlg_set_allocator(const zlg_allocator *allocator) {
  int given = 0;
  if (allocator) given = (allocator->allocate != NULL) + (allocator->reallocate != NULL) + (allocator->release != NULL);
  if (given == 1 || given == 2)
    return zlg_fail(NULL, ZLG_EINVAL, "zlg_set_allocator: %d of the 3 functions are given; expected all or none",
                    given);
  pthread_mutex_lock(&mutex);
  int in_use = locks;
  if (in_use == 0) current = given ? *allocator : default_allocator;
  pthread_mutex_unlock(&mutex);
  if (in_use > 0)
    return zlg_fail(NULL, ZLG_ESTATE, "zlg_set_allocator: %d context%s in use; expected none", in_use,
                    in_use == 1 ? " is" : "s are");
  return ZLG_OK;
}

void *zlg_malloc(size_t bytes) {
  return bytes ? current.allocate(current.user, bytes) : NULL;
}

void *zlg_calloc(size_t count, size_t bytes) {
  size_t total;
  if (__builtin_mul_overflow(count, bytes, &total)) return NULL;
  void *memory = zlg_malloc(total);
  if (memory) memset(memory, 0, total);
  return memory;
}

void *zlg_realloc(void *old, size_t bytes) {
  if (!old) return zlg_malloc(bytes);
  if (bytes) return current.reallocate(current.user, old, bytes);
  zlg_free(old);
  return NULL;
}

void zlg_free(void *memory) {
  if (memory) current.release(current.user, memory);
}

char *zlg_strdup(const char *text) {
  size_t bytes = strlen(text) + 1;
  char *copy = zlg_malloc(bytes);
  if (copy) memcpy(copy, text, bytes);
  return copy;
}

/* The allocator's own pointer stands just below the aligned address. */
void *zlg_malloc_aligned(size_t alignment, size_t bytes) {
  size_t total;
  if (bytes == 0 || __builtin_add_overflow(bytes, alignment + sizeof(void *), &total)) return NULL;
  char *base = zlg_malloc(total);
  if (!base) return NULL;
  uintptr_t first = (uintptr_t)(base + sizeof(void *));
  char *aligned = base + sizeof(void *) + (((first + alignment - 1) & ~(uintptr_t)(alignment - 1)) - first);
  memcpy(aligned - sizeof(void *), &base, sizeof base);
  return aligned;
}

void zlg_free_aligned(void *memory) {
  if (!memory) return;
  void *base;
  memcpy(&base, (char *)memory - sizeof(void *), sizeof base);
  zlg_free(base);
}
