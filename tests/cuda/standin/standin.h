/* A stand-in for the CUDA runtime and driver: pretended cards with memories of their own, limited sizes, streams that
 * run late and out of step, and a check that every two accesses that conflict are ordered. For tests of host code only:
 * it proves streams, ordering, residency, argument lists, placement and error paths; nothing about time or a card's
 * arithmetic.
 *
 * Environment: ZLG_CARDS (number, default 1), ZLG_CARD_MB (memory of each, default 256), ZLG_CARD_PEER (1: cards reach
 * one another's memory once asked to, default; 0: never), ZLG_CARD_DELAY_US (largest random delay before an operation
 * of a stream, default 200), ZLG_CARD_SEED, ZLG_CARD_PIN (0: the host's memory cannot be pinned), ZLG_CARD_REPORT (file
 * that each violation is appended to, a line each). */
#ifndef ZLG_STANDIN_H
#define ZLG_STANDIN_H

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "counts.h"

#define CARDS_MOST 8
#define STREAMS_MOST 512
#define ARGUMENTS_MOST 64

#define EXPORT __attribute__((visibility("default")))

/* ---- violations: one word, then details; appended to the report and told on stderr --------------------------------
 */
void violation(const char *word, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Adds to a count: COUNT(launches, 1). */
extern struct standin_counts counts;
#define COUNT(what, more) ((void)__atomic_fetch_add(&counts.what, (uint64_t)(more), __ATOMIC_RELAXED))

/* ---- memory ------------------------------------------------------------------------------------------------------ */
/* An access that was made or is to be made: by which operation of which stream. */
struct access {
  struct access *next;
  size_t low, high;    /* bytes of the allocation */
  size_t pitch, width; /* lines of `width` bytes, one every `pitch`; 0: all of it */
  bool write;
  int stream;
  uint64_t sequence;
  const char *what;
};
struct allocation {
  struct allocation *next;
  int card; /* -1: pinned memory of the host */
  uintptr_t base;
  size_t bytes;
  bool live;
  struct access *accesses;
};
void memory_start(void);
int card_count(void);
bool peer_possible(void);
/* NULL where the card is full. */
struct allocation *memory_new(int card, size_t bytes);
/* 0, or a CUDA error for an address that is none, or was given back. */
int memory_free(int card, uintptr_t address);
void memory_free_card(int card);
void memory_info(int card, size_t *available, size_t *total);
/* The allocation that holds the address, live or not; NULL: none of any card. */
struct allocation *memory_find(uintptr_t address);
/* Where the bytes of a card's address really are. */
void *memory_backing(uintptr_t device_address);
/* False where a page of it is pinned already. */
bool host_register(void *memory, size_t bytes);
bool pinning_possible(void);
bool host_unregister(void *memory);
struct allocation *host_find(uintptr_t address);

/* ---- cards, errors ----------------------------------------------------------------------------------------------- */
int current_card(void);
void set_current_card(int card);
void peer_enable(int from, int to);
bool peer_enabled(int from, int to);
/* An error that a stream met: sticky for its card. */
void card_error_set(int card, int error);
int card_error(int card);
/* The error of this thread's last call, as cudaGetLastError() returns it. */
int remember(int error);
int last_error(void);
void card_reset(int card);

/* ---- streams and events ------------------------------------------------------------------------------------------ */
struct operation {
  struct operation *next;
  void (*run)(struct operation *operation);
  const char *what;
  int card;
  uint64_t sequence;
  /* copies */
  uintptr_t to, from;
  size_t bytes, to_pitch, from_pitch, width, height;
  int value;
  /* events */
  struct event *event;
  uint64_t event_count;
  /* kernels */
  struct kernel_call *call;
};
struct stream {
  int id, card;
  bool blocking, dead;
  pthread_t thread;
  bool started, stop;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  struct operation *first, *last;
  uint64_t submitted, completed;
  unsigned seed;
  uint64_t clock[STREAMS_MOST]; /* what is ordered before its next operation */
};
struct event {
  int stream;
  uint64_t recorded, completed; /* counts of recordings */
  uint64_t clock[STREAMS_MOST];
  int card;
};
struct stream *stream_new(int card, bool blocking);
/* NULL: the default stream of the current card; a bad handle gives NULL with *error set. */
struct stream *stream_of(void *handle, int *error);
void stream_destroy(struct stream *stream);
void stream_submit(struct stream *stream, struct operation *operation);
bool stream_idle(struct stream *stream);
void stream_wait(struct stream *stream);
void card_wait(int card);
struct event *event_new(void);
void event_free(struct event *event);
void event_record(struct event *event, struct stream *stream);
bool event_done(struct event *event);
void event_wait(struct event *event);
void stream_wait_event(struct stream *stream, struct event *event);
/* Checks the access of the stream's next operation against those before, and keeps it. Called at submission. */
struct extent {
  size_t low, high, pitch, width; /* as in struct access */
};
void order_access(struct stream *stream, struct allocation *allocation, const struct extent *extent, bool write,
                  const char *what);

/* ---- kernels ----------------------------------------------------------------------------------------------------- */
struct kernel_call;
void kernel_run(struct operation *operation);
void text_build(const char *text, char **log, bool *good); /* compiles for the check only */

#endif
