/* Streams: a thread each, made at the first operation, that waits a random while before every operation. Order is kept
 * as vector clocks: what each stream, each event and the host know to have ended. Two accesses of one allocation, one
 * of them a write, must be ordered by the same stream, by an event, or by the host having seen the end of the first. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "standin.h"

static pthread_mutex_t order = PTHREAD_MUTEX_INITIALIZER; /* all clocks, accesses, events */
static pthread_cond_t events_changed = PTHREAD_COND_INITIALIZER;
static struct stream *streams[STREAMS_MOST];
static uint64_t host_clock[STREAMS_MOST];
static int stream_count;
static struct stream *default_streams[CARDS_MOST];

static void join(uint64_t *into, const uint64_t *from) {
  for (int i = 0; i < STREAMS_MOST; i++)
    if (from[i] > into[i]) into[i] = from[i];
}

/* A destroyed stream's place is taken again, with its numbering: what it did stays ordered before what is new. */
static struct stream *take_place(void) {
  for (int i = 0; i < stream_count; i++)
    if (streams[i]->dead) return streams[i];
  if (stream_count == STREAMS_MOST) {
    fprintf(stderr, "stand-in: more than %d streams\n", STREAMS_MOST);
    _exit(99);
  }
  struct stream *made = calloc(1, sizeof *made);
  made->id = stream_count;
  pthread_mutex_init(&made->lock, NULL);
  pthread_cond_init(&made->changed, NULL);
  return streams[stream_count++] = made;
}

struct stream *stream_new(int card, bool blocking) {
  const char *seed = getenv("ZLG_CARD_SEED");
  pthread_mutex_lock(&order);
  struct stream *made = take_place();
  made->dead = made->stop = false;
  made->card = card;
  made->blocking = blocking;
  made->seed = (unsigned)(made->id * 7919 + (seed ? atoi(seed) : 1));
  pthread_mutex_unlock(&order);
  return made;
}

static struct stream *default_stream(int card) {
  pthread_mutex_lock(&order);
  struct stream *found = default_streams[card];
  pthread_mutex_unlock(&order);
  if (found) return found;
  found = stream_new(card, true);
  pthread_mutex_lock(&order);
  default_streams[card] = found;
  pthread_mutex_unlock(&order);
  return found;
}

struct stream *stream_of(void *handle, int *error) {
  *error = cudaSuccess;
  /* 1 and 2 name the legacy and the per-thread default stream. */
  if ((uintptr_t)handle <= 2) return default_stream(current_card());
  pthread_mutex_lock(&order);
  for (int i = 0; i < stream_count; i++)
    if (streams[i] == handle && !streams[i]->dead) {
      pthread_mutex_unlock(&order);
      return handle;
    }
  pthread_mutex_unlock(&order);
  violation("bad-stream", "%p is no stream", handle);
  *error = cudaErrorInvalidResourceHandle;
  return NULL;
}

static unsigned delay_most(void) {
  const char *text = getenv("ZLG_CARD_DELAY_US");
  return text ? (unsigned)atoi(text) : 200;
}

static void *stream_thread(void *argument) {
  struct stream *stream = argument;
  cpu_set_t all; /* the thread that made it may be bound to one core */
  CPU_ZERO(&all);
  for (int i = 0; i < (int)sysconf(_SC_NPROCESSORS_CONF); i++) CPU_SET(i, &all);
  sched_setaffinity(0, sizeof all, &all);
  unsigned most = delay_most();
  pthread_mutex_lock(&stream->lock);
  for (;;) {
    while (!stream->first && !stream->stop) pthread_cond_wait(&stream->changed, &stream->lock);
    struct operation *operation = stream->first;
    if (!operation) break;
    pthread_mutex_unlock(&stream->lock);
    if (most) usleep((unsigned)rand_r(&stream->seed) % (most + 1));
    operation->run(operation);
    pthread_mutex_lock(&stream->lock);
    stream->first = operation->next;
    if (!stream->first) stream->last = NULL;
    stream->completed = operation->sequence;
    free(operation);
    pthread_cond_broadcast(&stream->changed);
  }
  pthread_mutex_unlock(&stream->lock);
  return NULL;
}

void stream_destroy(struct stream *stream) {
  stream_wait(stream);
  pthread_mutex_lock(&stream->lock);
  stream->stop = true;
  pthread_cond_broadcast(&stream->changed);
  pthread_mutex_unlock(&stream->lock);
  if (stream->started) pthread_join(stream->thread, NULL);
  stream->started = false;
  pthread_mutex_lock(&order);
  stream->dead = true;
  pthread_mutex_unlock(&order);
}

static void submit_alone(struct stream *stream, struct operation *operation) {
  pthread_mutex_lock(&order);
  operation->sequence = stream->clock[stream->id] = ++stream->submitted;
  pthread_mutex_unlock(&order);
  operation->card = stream->card;
  pthread_mutex_lock(&stream->lock);
  if (!stream->started) {
    stream->started = true;
    pthread_create(&stream->thread, NULL, stream_thread, stream);
  }
  if (stream->last)
    stream->last->next = operation;
  else
    stream->first = operation;
  stream->last = operation;
  pthread_cond_broadcast(&stream->changed);
  pthread_mutex_unlock(&stream->lock);
}

/* Stream 0 waits for the card's blocking streams, and they for it; others run past it. */
static void order_with_default(struct stream *stream) {
  struct stream *zero = default_stream(stream->card);
  if (stream == zero) {
    for (int i = 0; i < stream_count; i++)
      if (streams[i] && streams[i] != zero && streams[i]->card == stream->card && streams[i]->blocking) {
        stream_wait(streams[i]);
        pthread_mutex_lock(&order);
        join(stream->clock, streams[i]->clock);
        pthread_mutex_unlock(&order);
      }
  } else if (stream->blocking) {
    stream_wait(zero);
    pthread_mutex_lock(&order);
    join(stream->clock, zero->clock);
    pthread_mutex_unlock(&order);
  }
}

void stream_submit(struct stream *stream, struct operation *operation) {
  submit_alone(stream, operation);
}

bool stream_idle(struct stream *stream) {
  pthread_mutex_lock(&stream->lock);
  bool idle = !stream->first;
  pthread_mutex_unlock(&stream->lock);
  if (idle) {
    pthread_mutex_lock(&order);
    join(host_clock, stream->clock);
    pthread_mutex_unlock(&order);
  }
  return idle;
}

void stream_wait(struct stream *stream) {
  pthread_mutex_lock(&order);
  uint64_t seen[STREAMS_MOST];
  memcpy(seen, stream->clock, sizeof seen);
  pthread_mutex_unlock(&order);
  pthread_mutex_lock(&stream->lock);
  while (stream->first) pthread_cond_wait(&stream->changed, &stream->lock);
  pthread_mutex_unlock(&stream->lock);
  pthread_mutex_lock(&order);
  join(host_clock, seen);
  pthread_mutex_unlock(&order);
}

void card_wait(int card) {
  for (int i = 0; i < stream_count; i++)
    if (streams[i] && streams[i]->card == card) stream_wait(streams[i]);
}

/* ---- events ------------------------------------------------------------------------------------------------------ */

struct event *event_new(void) {
  struct event *made = calloc(1, sizeof *made);
  made->stream = -1;
  made->card = current_card();
  return made;
}

void event_free(struct event *event) {
  if (!event_done(event)) event_wait(event);
  free(event);
}

static void run_record(struct operation *operation) {
  pthread_mutex_lock(&order);
  if (operation->event_count > operation->event->completed) operation->event->completed = operation->event_count;
  pthread_cond_broadcast(&events_changed);
  pthread_mutex_unlock(&order);
}

static struct operation *operation_new(const char *what, void (*run)(struct operation *)) {
  struct operation *made = calloc(1, sizeof *made);
  made->what = what;
  made->run = run;
  return made;
}

void event_record(struct event *event, struct stream *stream) {
  struct operation *operation = operation_new("event record", run_record);
  pthread_mutex_lock(&order);
  join(stream->clock, host_clock);
  event->stream = stream->id;
  operation->event = event;
  operation->event_count = ++event->recorded;
  memcpy(event->clock, stream->clock, sizeof event->clock);
  event->clock[stream->id] = stream->submitted + 1;
  pthread_mutex_unlock(&order);
  submit_alone(stream, operation);
}

bool event_done(struct event *event) {
  pthread_mutex_lock(&order);
  bool done = event->completed == event->recorded;
  if (done) join(host_clock, event->clock);
  pthread_mutex_unlock(&order);
  return done;
}

void event_wait(struct event *event) {
  pthread_mutex_lock(&order);
  uint64_t until = event->recorded;
  while (event->completed < until) pthread_cond_wait(&events_changed, &order);
  join(host_clock, event->clock);
  pthread_mutex_unlock(&order);
}

static void run_wait(struct operation *operation) {
  pthread_mutex_lock(&order);
  while (operation->event->completed < operation->event_count) pthread_cond_wait(&events_changed, &order);
  pthread_mutex_unlock(&order);
}

void stream_wait_event(struct stream *stream, struct event *event) {
  struct operation *operation = operation_new("event wait", run_wait);
  pthread_mutex_lock(&order);
  operation->event = event;
  operation->event_count = event->recorded;
  join(stream->clock, event->clock);
  pthread_mutex_unlock(&order);
  submit_alone(stream, operation);
}

/* ---- order of accesses ------------------------------------------------------------------------------------------- */

/* Entries that the new access covers and is ordered after tell nothing more. */
static void forget_covered(struct allocation *allocation, size_t low, size_t high) {
  for (struct access **at = &allocation->accesses; *at;) {
    struct access *old = *at;
    if (old->low >= low && old->high <= high) {
      *at = old->next;
      free(old);
    } else {
      at = &old->next;
    }
  }
}

/* The same access by the same stream again: the later one stands for both. */
static void keep_access(struct stream *stream, struct allocation *allocation, const struct access *mine) {
  struct access *kept = allocation->accesses;
  while (kept && !(kept->stream == mine->stream && kept->write == mine->write && kept->low == mine->low &&
                   kept->high == mine->high && kept->pitch == mine->pitch && kept->width == mine->width))
    kept = kept->next;
  if (!kept) {
    kept = calloc(1, sizeof *kept);
    *kept = *mine;
    kept->next = allocation->accesses;
    allocation->accesses = kept;
  }
  kept->sequence = stream->submitted + 1;
  kept->what = mine->what;
}

/* Two blocks of columns of one matrix, whose lines take turns in memory. */
static bool side_by_side(const struct access *a, const struct access *b) {
  if (!a->pitch || a->pitch != b->pitch) return false;
  size_t left = a->low % a->pitch, right = b->low % b->pitch;
  if (left + a->width > a->pitch || right + b->width > b->pitch) return false;
  return left + a->width <= right || right + b->width <= left;
}

void order_access(struct stream *stream, struct allocation *allocation, const struct extent *extent, bool write,
                  const char *what) {
  const struct access mine = {.low = extent->low,
                              .high = extent->high,
                              .pitch = extent->pitch,
                              .width = extent->width,
                              .write = write,
                              .stream = stream->id,
                              .what = what};
  order_with_default(stream);
  pthread_mutex_lock(&order);
  join(stream->clock, host_clock);
  bool ordered = true;
  for (struct access *old = allocation->accesses; old; old = old->next) {
    bool conflict = old->low < mine.high && mine.low < old->high && (write || old->write) && !side_by_side(old, &mine);
    if (!conflict || old->stream == stream->id || stream->clock[old->stream] >= old->sequence) continue;
    ordered = false;
    violation("unordered", "%s on stream %d of card %d (%s) and %s on stream %d (%s) meet in one allocation of %s %d",
              what, stream->id, stream->card, write ? "writes" : "reads", old->what, old->stream,
              old->write ? "writes" : "reads", allocation->card < 0 ? "the host" : "card", allocation->card);
  }
  if (write && ordered && !mine.pitch) forget_covered(allocation, mine.low, mine.high);
  keep_access(stream, allocation, &mine);
  pthread_mutex_unlock(&order);
}
