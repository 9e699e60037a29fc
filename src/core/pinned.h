/* The caller's own memory, pinned for cards while a request works on it. A copy between a card and memory that is not
 * pinned goes through the driver's buffer and holds up the worker. Pinning takes about as long as copying once, so it
 * is for what is copied more often than that, or is large. Memory that somebody has pinned already, or that cannot be
 * pinned, stays as it is. */
#ifndef ZLG_CORE_PINNED_H
#define ZLG_CORE_PINNED_H

#include "src/core/matrix.h"

#define ZLG_PINNED_MOST 4

/* What one request keeps pinned. */
struct zlg_pinned {
  struct zlg_pin *pins[ZLG_PINNED_MOST];
  int count;
};

/* Pins those of `matrices` (at most ZLG_PINNED_MOST) that lie in memory and are copied `copies` times each or about;
 * in one piece where they share a page. Memory of two requests is pinned once. */
void zlg_pin(struct zlg_pinned *pinned, const zlg_matrix *const *matrices, int count, int64_t copies);
/* No copy of it is under way. */
void zlg_unpin(struct zlg_pinned *pinned);

#endif
