/* Blocks of a matrix, moved between the matrix (memory or store) and plain memory, with conversion of the order. */
#ifndef ZLG_CORE_BLOCK_H
#define ZLG_CORE_BLOCK_H

#include "src/core/matrix.h"

/* A matrix seen as lines of contiguous elements: the rows of a row-major one, the columns of a column-major one. */
struct zlg_lines {
  int64_t count;  /* lines */
  int64_t width;  /* elements of each */
  int64_t stride; /* elements from one line's start to the next one's */
};

static inline struct zlg_lines zlg_lines_of(int64_t rows, int64_t columns, zlg_order order, int64_t ld) {
  if (order == ZLG_ROW_MAJOR) return (struct zlg_lines){rows, columns, ld};
  return (struct zlg_lines){columns, rows, ld};
}

/* A block of a matrix and the caller's memory for it. Sizes are valid and neither is empty. */
struct zlg_block {
  int64_t row, rows, column, columns;
  zlg_order order;
  int64_t ld;
};

/* ZLG_OK, ZLG_ENOMEM (for the buffer, 256 KiB at most, that conversions and narrow blocks of stores need), or what the
 * store says. */
int zlg_block_read(const zlg_matrix *matrix, const struct zlg_block *block, void *to);
int zlg_block_write(zlg_matrix *matrix, const struct zlg_block *block, const void *from);

#endif
