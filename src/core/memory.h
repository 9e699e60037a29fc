/* All memory of the library, through the caller's allocator. */
#ifndef ZLG_CORE_MEMORY_H
#define ZLG_CORE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void *zlg_malloc(size_t bytes); /* NULL for 0 bytes too */
void *zlg_calloc(size_t count, size_t bytes);
void *zlg_realloc(void *old, size_t bytes); /* 0 bytes: gives `old` back and returns NULL */
void zlg_free(void *memory);
char *zlg_strdup(const char *text);
/* `alignment` a power of two; given back with zlg_free_aligned(). */
void *zlg_malloc_aligned(size_t alignment, size_t bytes);
void zlg_free_aligned(void *memory);

/* A context counts itself in (+1) before its first allocation and out (-1) after its last; in between
 * zlg_set_allocator() refuses. */
void zlg_allocator_lock(int delta);
/* What to call when the last context counts itself out, to give back what is kept for the next one: one function. */
void zlg_allocator_at_end(void (*give_back)(void));

/* Products of sizes; false when the result does not fit in int64_t or an argument is negative. */
static inline bool zlg_mul64(int64_t a, int64_t b, int64_t *product) {
  return a >= 0 && b >= 0 && !__builtin_mul_overflow(a, b, product);
}

#endif
