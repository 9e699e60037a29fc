/* An allocator that refuses: see refuse.h. */
#include "tests/fault/refuse.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

/* ---- the allocator ----------------------------------------------------------------------------------------------- */

static atomic_long allowed, live; /* allowed < 0: as many as wanted */
static atomic_bool for_good;

static bool refuses(void) {
  long before = atomic_load(&allowed);
  if (before < 0) return false;
  before = atomic_fetch_sub(&allowed, 1);
  if (before > 0) return false;
  if (before == 0) {
    if (atomic_load(&for_good)) atomic_store(&allowed, 0);
    return true; /* once: allowed is negative now */
  }
  return false;
}

static void *allocate(void *user, size_t bytes) {
  (void)user;
  if (refuses()) return NULL;
  void *memory = malloc(bytes);
  if (memory != NULL) atomic_fetch_add(&live, 1);
  return memory;
}
static void *reallocate(void *user, void *old, size_t bytes) {
  (void)user;
  return refuses() ? NULL : realloc(old, bytes);
}
static void release(void *user, void *memory) {
  (void)user;
  if (memory != NULL) atomic_fetch_sub(&live, 1);
  free(memory);
}

static void allow_all(void) {
  atomic_store(&allowed, -1);
}
/* True where the limit was not reached: the call has all it wants. */
static bool limit_left(void) {
  return atomic_load(&allowed) > 0;
}
static void allow(long count, bool permanently) {
  atomic_store(&for_good, permanently);
  atomic_store(&allowed, count);
}

void zlg_refuse_begin(void) {
  static const zlg_allocator refusing = {allocate, reallocate, release, NULL};
  allow_all();
  atomic_store(&live, 0);
  ZLG_CHECK_OK(zlg_set_allocator(&refusing), NULL);
}

void zlg_refuse_end(void) {
  CHECK(atomic_load(&live) == 0);
  ZLG_CHECK_OK(zlg_set_allocator(NULL), NULL);
}

/* ---- the loop ---------------------------------------------------------------------------------------------------- */

static zlg_context *context;

/* At most so many allocations are looked at one by one; a call that wants more is wrong or this number is. */
#define MOST 2000

/* Scratch that a worker keeps for its next task: a record and its memory each, which come with its first task. */
static long kept_by_workers(void) {
  return context ? 2 * zlg_context_worker_count(context) : 0;
}

static void refuse_one_by_one(int (*call)(void), bool permanently) {
  for (long count = 0; count < MOST; count++) {
    long before = atomic_load(&live);
    allow(count, permanently);
    int status = call();
    bool enough = limit_left();
    allow_all();
    CHECK(status == ZLG_OK || status == ZLG_ENOMEM);
    if (status != ZLG_OK) CHECK(*zlg_context_message(context) != '\0');
    if (enough) CHECK(status == ZLG_OK);
    CHECK(labs(atomic_load(&live) - before) <= kept_by_workers());
    if (enough) return;
    if (count % 8 == 0) CHECK(call() == ZLG_OK); /* as usable as before */
  }
  CHECK(!"more allocations than expected");
}

static void *refuse_in_a_thread(void *argument) {
  int (*call)(void) = *(int (**)(void))argument;
  CHECK(call() == ZLG_OK); /* warm: what workers keep for themselves is there */
  refuse_one_by_one(call, false);
  refuse_one_by_one(call, true);
  return NULL;
}

void zlg_refuse_in_turn(zlg_context *whose, int (*call)(void)) {
  pthread_t thread;
  context = whose;
  CHECK(pthread_create(&thread, NULL, refuse_in_a_thread, &call) == 0);
  pthread_join(thread, NULL);
}
