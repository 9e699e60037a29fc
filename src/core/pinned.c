/* Pinned memory of callers: see the header. One list for the process, since a driver pins a page once. */
#include "src/core/pinned.h"

#include <pthread.h>

#include "codelets/common/starpu_compat.h"
#include "src/core/memory.h"

#define PAGE 4096
#define LEAST (INT64_C(1) << 20)  /* bytes; less is not worth the calls */
#define LARGE (INT64_C(64) << 20) /* worth it for one copy: it goes on while the worker does something else */

struct zlg_pin {
  struct zlg_pin *next;
  uintptr_t first, end;
  int users; /* requests */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct zlg_pin *pins;

/* Memory in question, and whether pinning it pays. */
struct range {
  uintptr_t first, end;
  bool pays;
};

static bool shares_a_page(uintptr_t first, uintptr_t end, uintptr_t other_first, uintptr_t other_end) {
  return first / PAGE <= (other_end - 1) / PAGE && other_first / PAGE <= (end - 1) / PAGE;
}

/* Half of the span at least is the matrix's own. */
static bool is_dense(const zlg_matrix *matrix, int64_t span) {
  return 2.0 * (double)matrix->rows * (double)matrix->columns * (double)zlg_type_size(matrix->type) >= (double)span;
}

static int ranges_of(const zlg_matrix *const *matrices, int count, int64_t copies, struct range *ranges) {
  int made = 0;
  for (int i = 0; i < count && made < ZLG_PINNED_MOST; i++) {
    const int64_t span = matrices[i]->data ? zlg_matrix_span(matrices[i]) : 0;
    if (span == 0) continue;
    const bool pays = span >= LEAST && (copies > 1 || span >= LARGE) && is_dense(matrices[i], span);
    ranges[made++] = (struct range){(uintptr_t)matrices[i]->data, (uintptr_t)matrices[i]->data + (uintptr_t)span, pays};
  }
  return made;
}

/* Ranges that share a page become one: a copy must not begin in memory that is pinned and end in some that is not. */
static int merge(struct range *ranges, int count) {
  for (int i = 0; i < count; i++)
    for (int k = i + 1; k < count; k++) {
      struct range *a = &ranges[i], *b = &ranges[k];
      if (!shares_a_page(a->first, a->end, b->first, b->end)) continue;
      *a = (struct range){a->first < b->first ? a->first : b->first, a->end > b->end ? a->end : b->end,
                          a->pays || b->pays};
      *b = ranges[--count];
      i = -1; /* the larger one may meet those before it */
      break;
    }
  return count;
}

/* Under the lock. NULL: not pinned by us. */
static struct zlg_pin *pin(const struct range *range) {
  for (struct zlg_pin *at = pins; at; at = at->next) {
    if (!shares_a_page(at->first, at->end, range->first, range->end)) continue;
    if (at->first > range->first || at->end < range->end) return NULL; /* a part is pinned: left to that request */
    at->users++;
    return at;
  }
  struct zlg_pin *made = zlg_malloc(sizeof *made);
  if (!made) return NULL;
  if (starpu_memory_pin((void *)range->first, (size_t)(range->end - range->first)) != 0) {
    zlg_free(made);
    return NULL;
  }
  *made = (struct zlg_pin){pins, range->first, range->end, 1};
  pins = made;
  return made;
}

void zlg_pin(struct zlg_pinned *pinned, const zlg_matrix *const *matrices, int count, int64_t copies) {
  struct range ranges[ZLG_PINNED_MOST];
  count = merge(ranges, ranges_of(matrices, count, copies, ranges));
  pthread_mutex_lock(&lock);
  for (int i = 0; i < count; i++) {
    struct zlg_pin *made = ranges[i].pays ? pin(&ranges[i]) : NULL;
    if (made) pinned->pins[pinned->count++] = made;
  }
  pthread_mutex_unlock(&lock);
}

/* Under the lock. */
static void unpin(struct zlg_pin *leaving) {
  if (--leaving->users > 0) return;
  struct zlg_pin **at = &pins;
  while (*at != leaving) at = &(*at)->next;
  *at = leaving->next;
  starpu_memory_unpin((void *)leaving->first, (size_t)(leaving->end - leaving->first));
  zlg_free(leaving);
}

void zlg_unpin(struct zlg_pinned *pinned) {
  pthread_mutex_lock(&lock);
  while (pinned->count > 0) unpin(pinned->pins[--pinned->count]);
  pthread_mutex_unlock(&lock);
}
