/* Memories of the cards. Every address that a card hands out lies in a reservation that nobody may touch; its bytes are
 * at a fixed distance from it, open while the allocation lives. So host code that follows a device pointer, and a
 * kernel that follows a dead one, are caught in the act. Addresses are never used again. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "standin.h"

#define SPACE ((size_t)1 << 38) /* addresses of one card */
#define PAGE ((size_t)4096)

static struct {
  pthread_mutex_t lock;
  int cards;
  size_t bytes;
  bool peers, pins;
  uintptr_t handed, backing; /* CARDS_MOST spaces each */
  size_t next[CARDS_MOST], used[CARDS_MOST];
  struct allocation *allocations, *host;
  FILE *report;
} state = {.lock = PTHREAD_MUTEX_INITIALIZER};

static long number(const char *name, long otherwise) {
  const char *text = getenv(name);
  return text && *text ? atol(text) : otherwise;
}

struct standin_counts counts;

EXPORT struct standin_counts standin_counts(void) {
  pthread_mutex_lock(&state.lock);
  struct standin_counts now = counts;
  pthread_mutex_unlock(&state.lock);
  return now;
}

void violation(const char *word, const char *format, ...) {
  char line[512];
  va_list rest;
  va_start(rest, format);
  vsnprintf(line, sizeof line, format, rest);
  va_end(rest);
  fprintf(stderr, "stand-in: %s: %s\n", word, line);
  const char *path = getenv("ZLG_CARD_REPORT");
  FILE *report = path ? fopen(path, "a") : NULL;
  if (!report) return;
  fprintf(report, "%s: %s\n", word, line);
  fclose(report);
}

/* Only async-signal-safe calls: the process is about to die. */
static void on_fault(int number_, siginfo_t *info, void *context) {
  (void)context;
  uintptr_t at = (uintptr_t)info->si_addr;
  bool handed = at - state.handed < CARDS_MOST * SPACE, backing = at - state.backing < CARDS_MOST * SPACE;
  if (handed || backing) {
    const char *text = handed
                           ? "stand-in: host-access: host code followed a device pointer\n"
                           : "stand-in: dead-access: a kernel or copy reached memory outside every live allocation\n";
    ssize_t ignored = write(2, text, strlen(text));
    const char *path = getenv("ZLG_CARD_REPORT");
    FILE *report = path ? fopen(path, "a") : NULL;
    if (report) {
      fputs(text + strlen("stand-in: "), report);
      fclose(report);
    }
    (void)ignored;
  }
  signal(number_, SIG_DFL);
  raise(number_);
}

static void start(void) {
  state.cards = (int)number("ZLG_CARDS", 1);
  if (state.cards < 0) state.cards = 0;
  if (state.cards > CARDS_MOST) state.cards = CARDS_MOST;
  state.bytes = (size_t)number("ZLG_CARD_MB", 256) << 20;
  state.peers = number("ZLG_CARD_PEER", 1) != 0;
  state.pins = number("ZLG_CARD_PIN", 1) != 0;
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void *handed = mmap(NULL, CARDS_MOST * SPACE, PROT_NONE, flags, -1, 0);
  void *backing = mmap(NULL, CARDS_MOST * SPACE, PROT_NONE, flags, -1, 0);
  if (handed == MAP_FAILED || backing == MAP_FAILED) {
    fprintf(stderr, "stand-in: no address space for %d cards\n", CARDS_MOST);
    _exit(99);
  }
  state.handed = (uintptr_t)handed;
  state.backing = (uintptr_t)backing;
  struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
  sigaction(SIGSEGV, &action, NULL);
  sigaction(SIGBUS, &action, NULL);
}

void memory_start(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, start);
}

int card_count(void) {
  memory_start();
  return state.cards;
}
bool peer_possible(void) {
  return state.peers;
}
bool pinning_possible(void) {
  return state.pins;
}

void *memory_backing(uintptr_t address) {
  return (void *)(address - state.handed + state.backing);
}

struct allocation *memory_new(int card, size_t bytes) {
  memory_start();
  size_t room = (bytes + PAGE - 1) / PAGE * PAGE;
  struct allocation *made = calloc(1, sizeof *made);
  pthread_mutex_lock(&state.lock);
  bool fits = made && state.used[card] + room <= state.bytes && state.next[card] + room + 2 * PAGE < SPACE;
  if (fits) {
    made->card = card;
    made->base = state.handed + (size_t)card * SPACE + state.next[card] + PAGE;
    made->bytes = bytes;
    made->live = true;
    state.next[card] += room + 2 * PAGE; /* a closed page on either side */
    state.used[card] += room;
    COUNT(allocated, room);
    if (state.used[card] > counts.most) counts.most = state.used[card];
    mprotect(memory_backing(made->base), room, PROT_READ | PROT_WRITE);
    memset(memory_backing(made->base), 0xff, room);
    made->next = state.allocations;
    state.allocations = made;
  }
  pthread_mutex_unlock(&state.lock);
  if (fits) return made;
  free(made);
  return NULL;
}

static void close_allocation(struct allocation *allocation) {
  size_t room = (allocation->bytes + PAGE - 1) / PAGE * PAGE;
  allocation->live = false;
  state.used[allocation->card] -= room;
  COUNT(freed, room);
  madvise(memory_backing(allocation->base), room, MADV_DONTNEED);
  mprotect(memory_backing(allocation->base), room, PROT_NONE);
}

int memory_free(int card, uintptr_t address) {
  pthread_mutex_lock(&state.lock);
  struct allocation *found = state.allocations;
  while (found && found->base != address) found = found->next;
  int error = cudaSuccess;
  if (!found || !found->live) {
    violation(found ? "double-free" : "bad-free", "address %#lx on card %d", (unsigned long)address, card);
    error = cudaErrorInvalidValue;
  } else {
    close_allocation(found);
  }
  pthread_mutex_unlock(&state.lock);
  return error;
}

void memory_free_card(int card) {
  pthread_mutex_lock(&state.lock);
  for (struct allocation *a = state.allocations; a; a = a->next)
    if (a->card == card && a->live) close_allocation(a);
  pthread_mutex_unlock(&state.lock);
}

void memory_info(int card, size_t *available, size_t *total) {
  memory_start();
  pthread_mutex_lock(&state.lock);
  *available = state.bytes - state.used[card];
  *total = state.bytes;
  pthread_mutex_unlock(&state.lock);
}

static struct allocation *find(struct allocation *list, uintptr_t address) {
  for (; list; list = list->next)
    if (address >= list->base && address - list->base < (list->bytes ? list->bytes : 1)) return list;
  return NULL;
}

struct allocation *memory_find(uintptr_t address) {
  pthread_mutex_lock(&state.lock);
  struct allocation *found = find(state.allocations, address);
  pthread_mutex_unlock(&state.lock);
  return found;
}

/* ---- pinned memory of the host ----------------------------------------------------------------------------------- */

/* What is pinned are whole pages. */
static bool pages_meet(const struct allocation *a, const struct allocation *b) {
  const uintptr_t a_end = (a->base + a->bytes + PAGE - 1) / PAGE, b_end = (b->base + b->bytes + PAGE - 1) / PAGE;
  return a->base / PAGE < b_end && b->base / PAGE < a_end;
}

bool host_register(void *memory, size_t bytes) {
  struct allocation *made = calloc(1, sizeof *made);
  if (!made) return false;
  *made = (struct allocation){.card = -1, .base = (uintptr_t)memory, .bytes = bytes, .live = true};
  pthread_mutex_lock(&state.lock);
  bool free_pages = true;
  for (struct allocation *old = state.host; old; old = old->next) free_pages = free_pages && !pages_meet(made, old);
  if (free_pages) {
    made->next = state.host;
    state.host = made;
  }
  pthread_mutex_unlock(&state.lock);
  if (!free_pages) free(made);
  return free_pages;
}

bool host_unregister(void *memory) {
  pthread_mutex_lock(&state.lock);
  struct allocation **at = &state.host;
  while (*at && (*at)->base != (uintptr_t)memory) at = &(*at)->next;
  struct allocation *found = *at;
  if (found) *at = found->next;
  pthread_mutex_unlock(&state.lock);
  free(found);
  return found != NULL;
}

struct allocation *host_find(uintptr_t address) {
  pthread_mutex_lock(&state.lock);
  struct allocation *found = find(state.host, address);
  pthread_mutex_unlock(&state.lock);
  return found;
}
