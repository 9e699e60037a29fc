/* Blocks between a matrix and plain memory. A store reads and writes runs of bytes only; this file turns a block into
 * as few of them as pay off: whole lines at once, wide lines one by one, narrow lines and other orders through a small
 * buffer. Everything is seen as lines (zlg_lines) of the matrix, so that rows and columns need no code of their own. */
#include "config.h"

#include "src/core/block.h"

#include <string.h>

#include "src/core/error.h"
#include "src/core/memory.h"

#define BUFFER_BYTES (256 * 1024) /* stays in a level-2 cache */
#define TILE 64                   /* elements on a side of one step of a transposition; lines in the buffer at least */
#define WIDE_BYTES (BUFFER_BYTES / TILE) /* a line this long is worth a system call of its own */
#define GAP_BYTES 4096                   /* reading a gap of one page is cheaper than a second system call */

/* The block in the matrix's lines: `count` lines from `line`, `width` elements from `element`. */
struct transfer {
  size_t size; /* of an element */
  int64_t line, count, element, width;
  int64_t stride;       /* of the matrix */
  int64_t block_stride; /* of the caller's memory */
  bool transposed;      /* the caller's lines are the matrix's other direction */
};

static struct transfer describe(const zlg_matrix *matrix, const struct zlg_block *block) {
  struct transfer t = {.size = zlg_type_size(matrix->type),
                       .line = block->row,
                       .count = block->rows,
                       .element = block->column,
                       .width = block->columns,
                       .stride = matrix->ld,
                       .block_stride = block->ld,
                       .transposed = block->order != matrix->order};
  if (matrix->order == ZLG_COLUMN_MAJOR) {
    t.line = block->column, t.count = block->columns;
    t.element = block->row, t.width = block->rows;
  }
  return t;
}

/* Bytes from the matrix's first element to line i, element k of the block. */
static int64_t matrix_offset(const struct transfer *t, int64_t i, int64_t k) {
  return ((t->line + i) * t->stride + t->element + k) * (int64_t)t->size;
}

/* The same in the caller's memory. */
static int64_t block_offset(const struct transfer *t, int64_t i, int64_t k) {
  return (t->transposed ? k * t->block_stride + i : i * t->block_stride + k) * (int64_t)t->size;
}

static void copy_lines(size_t size, int64_t count, int64_t width, const char *from, int64_t from_stride, char *to,
                       int64_t to_stride) {
  if (from_stride == width && to_stride == width) {
    memcpy(to, from, (size_t)(count * width) * size);
    return;
  }
  for (int64_t i = 0; i < count; i++)
    memcpy(to + (size_t)(i * to_stride) * size, from + (size_t)(i * from_stride) * size, (size_t)width * size);
}

/* to[k * to_stride + i] = from[i * from_stride + k], tile by tile, so that both sides stay in the cache. */
#define DEFINE_TRANSPOSE(name, type)                                                                                   \
  static void name(int64_t count, int64_t width, const type *from, int64_t from_stride, type *to, int64_t to_stride) { \
    for (int64_t i0 = 0; i0 < count; i0 += TILE)                                                                       \
      for (int64_t k0 = 0; k0 < width; k0 += TILE) {                                                                   \
        int64_t i1 = count - i0 < TILE ? count : i0 + TILE, k1 = width - k0 < TILE ? width : k0 + TILE;                \
        for (int64_t k = k0; k < k1; k++)                                                                              \
          for (int64_t i = i0; i < i1; i++) to[k * to_stride + i] = from[i * from_stride + k];                         \
      }                                                                                                                \
  }
DEFINE_TRANSPOSE(transpose_f32, float)
DEFINE_TRANSPOSE(transpose_f64, double)

/* `count` lines of `width` elements; `transposed`: `to` gets them as its columns. */
static void move_lines(bool transposed, size_t size, int64_t count, int64_t width, const void *from,
                       int64_t from_stride, void *to, int64_t to_stride) {
  if (!transposed)
    copy_lines(size, count, width, from, from_stride, to, to_stride);
  else if (size == sizeof(float))
    transpose_f32(count, width, from, from_stride, to, to_stride);
  else
    transpose_f64(count, width, from, from_stride, to, to_stride);
}

/* From the matrix's side to the block's, and back, for a piece of the block: `piece` has its own stride. */
static void piece_to_block(const struct transfer *t, int64_t i, int64_t lines, int64_t k, int64_t width,
                           const void *piece, int64_t piece_stride, void *block) {
  move_lines(t->transposed, t->size, lines, width, piece, piece_stride, (char *)block + block_offset(t, i, k),
             t->block_stride);
}

static void block_to_piece(const struct transfer *t, int64_t i, int64_t lines, int64_t k, int64_t width,
                           const void *block, void *piece, int64_t piece_stride) {
  const char *from = (const char *)block + block_offset(t, i, k);
  if (t->transposed)
    move_lines(true, t->size, width, lines, from, t->block_stride, piece, piece_stride);
  else
    move_lines(false, t->size, lines, width, from, t->block_stride, piece, piece_stride);
}

/* How a block of a store is cut. */
struct cut {
  bool direct;   /* no buffer: each run of bytes goes straight to or from the caller's memory */
  int64_t lines; /* of one piece */
  int64_t width;
  bool whole;     /* the lines of a piece are one run of bytes of the file (gaps read along) */
  int64_t stride; /* of the piece in the buffer */
};

/* `gap_bytes`: how much between two lines may be part of one run; 0 for writing, which may not touch what lies there.
 */
static struct cut cut_block(const struct transfer *t, int64_t gap_bytes) {
  int64_t size = (int64_t)t->size, least = t->count < TILE ? t->count : TILE;
  struct cut cut = {.lines = t->count, .width = t->width, .stride = t->width};
  if (!t->transposed) {
    cut.whole = t->count == 1 || (t->width == t->stride && t->width == t->block_stride);
    cut.direct = cut.whole || t->width * size >= WIDE_BYTES;
    if (cut.direct) return cut;
  }
  if (cut.width > BUFFER_BYTES / size / least) cut.width = BUFFER_BYTES / size / least;
  cut.whole = t->count == 1 || (t->stride - cut.width) * size <= gap_bytes;
  cut.stride = cut.whole && t->count > 1 ? t->stride : cut.width;
  int64_t lines = BUFFER_BYTES / size / cut.stride;
  if (cut.lines > lines) cut.lines = lines;
  return cut;
}

static void *cut_buffer(const zlg_matrix *matrix, const struct transfer *t, const struct cut *cut) {
  size_t bytes = (size_t)(cut->lines * cut->stride) * t->size;
  void *buffer = zlg_malloc(bytes);
  if (!buffer) zlg_fail(matrix->context, ZLG_ENOMEM, "no memory for a buffer of %zu bytes to move a block", bytes);
  return buffer;
}

/* Out of a store or into it: the other is NULL. */
struct way {
  const zlg_matrix *from;
  zlg_matrix *to;
};

static int move_run(const struct way *way, const struct transfer *t, int64_t i, int64_t k, int64_t elements,
                    void *memory) {
  int64_t offset = matrix_offset(t, i, k), bytes = elements * (int64_t)t->size;
  return way->to ? way->to->ops->write(way->to, offset, bytes, memory)
                 : way->from->ops->read(way->from, offset, bytes, memory);
}

/* One piece, lines [i, i + lines) and elements [k, k + width), between the store and memory with this stride. */
static int move_piece(const struct way *way, const struct transfer *t, bool whole, int64_t i, int64_t lines, int64_t k,
                      int64_t width, char *memory, int64_t stride) {
  if (whole) return move_run(way, t, i, k, (lines - 1) * stride + width, memory);
  int status = ZLG_OK;
  for (int64_t line = 0; line < lines && status == ZLG_OK; line++)
    status = move_run(way, t, i + line, k, width, memory + (size_t)(line * stride) * t->size);
  return status;
}

static int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

/* The caller's block is only read where the way goes into the store. */
static int move_store(const struct way *way, const struct transfer *t, void *block) {
  struct cut cut = cut_block(t, way->to ? 0 : GAP_BYTES);
  if (cut.direct) return move_piece(way, t, cut.whole, 0, t->count, 0, t->width, block, t->block_stride);
  char *buffer = cut_buffer(way->to ? way->to : way->from, t, &cut);
  if (!buffer) return ZLG_ENOMEM;
  int status = ZLG_OK;
  for (int64_t i = 0; i < t->count && status == ZLG_OK; i += cut.lines)
    for (int64_t k = 0; k < t->width && status == ZLG_OK; k += cut.width) {
      int64_t lines = least(cut.lines, t->count - i), width = least(cut.width, t->width - k);
      if (way->to) block_to_piece(t, i, lines, k, width, block, buffer, cut.stride);
      status = move_piece(way, t, cut.whole, i, lines, k, width, buffer, cut.stride);
      if (way->from && status == ZLG_OK) piece_to_block(t, i, lines, k, width, buffer, cut.stride, block);
    }
  zlg_free(buffer);
  return status;
}

int zlg_block_read(const zlg_matrix *matrix, const struct zlg_block *block, void *to) {
  struct transfer t = describe(matrix, block);
  if (matrix->ops) return move_store(&(struct way){.from = matrix}, &t, to);
  piece_to_block(&t, 0, t.count, 0, t.width, (const char *)matrix->data + matrix_offset(&t, 0, 0), t.stride, to);
  return ZLG_OK;
}

int zlg_block_write(zlg_matrix *matrix, const struct zlg_block *block, const void *from) {
  struct transfer t = describe(matrix, block);
  if (matrix->ops) return move_store(&(struct way){.to = matrix}, &t, (void *)from);
  block_to_piece(&t, 0, t.count, 0, t.width, from, (char *)matrix->data + matrix_offset(&t, 0, 0), t.stride);
  return ZLG_OK;
}
