/* Matrices: shapes are checked here once, whoever makes them, so that no later sum or product of sizes can overflow;
 * and here it is decided whether two of them share memory. Formats are in src/io, the moving of blocks in block.c. */
#include "config.h"

#include "src/core/matrix.h"

#include <inttypes.h>

#include "src/core/block.h"
#include "src/core/context.h"
#include "src/core/error.h"
#include "src/core/memory.h"

static const char *order_name(zlg_order order) {
  return order == ZLG_ROW_MAJOR ? "row-major" : "column-major";
}

/* The elements of a line are what ld must not be less than. */
static int check_ld(const zlg_context *context, const char *what, int64_t rows, int64_t columns, zlg_order order,
                    int64_t ld) {
  int64_t width = order == ZLG_ROW_MAJOR ? columns : rows;
  if (ld >= width) return ZLG_OK;
  return zlg_fail(context, ZLG_EINVAL,
                  "%s: ld = %" PRId64 " for a %s matrix of %" PRId64 " %s; expected at least %" PRId64, what, ld,
                  order_name(order), width, order == ZLG_ROW_MAJOR ? "columns" : "rows", width);
}

static int check_order(const zlg_context *context, const char *what, zlg_order order) {
  if (order == ZLG_ROW_MAJOR || order == ZLG_COLUMN_MAJOR) return ZLG_OK;
  return zlg_fail(context, ZLG_EINVAL, "%s: order = %d; expected ZLG_ROW_MAJOR or ZLG_COLUMN_MAJOR", what, (int)order);
}

/* Bytes from the first element to the end of the last; false where they do not fit in 64 bits (or in the address
 * space). */
static bool span_of(zlg_type type, struct zlg_lines lines, int64_t *bytes) {
  *bytes = 0;
  if (lines.count == 0 || lines.width == 0) return true;
  int64_t elements;
  return zlg_mul64(lines.count - 1, lines.stride, &elements) &&
         !__builtin_add_overflow(elements, lines.width, &elements) &&
         zlg_mul64(elements, (int64_t)zlg_type_size(type), bytes) && *bytes <= PTRDIFF_MAX;
}

static int check_shape(const zlg_context *context, const char *what, zlg_type type, int64_t rows, int64_t columns,
                       zlg_order order, int64_t ld) {
  if (zlg_type_size(type) == 0)
    return zlg_fail(context, ZLG_EINVAL, "%s: type = %d; expected ZLG_F32 or ZLG_F64", what, (int)type);
  if (rows < 0 || columns < 0)
    return zlg_fail(context, ZLG_EINVAL, "%s: %s = %" PRId64 "; expected 0 or more", what,
                    rows < 0 ? "rows" : "columns", rows < 0 ? rows : columns);
  int status = check_order(context, what, order);
  if (status == ZLG_OK) status = check_ld(context, what, rows, columns, order, ld);
  if (status != ZLG_OK) return status;
  int64_t bytes;
  if (span_of(type, zlg_lines_of(rows, columns, order, ld), &bytes)) return ZLG_OK;
  return zlg_fail(context, ZLG_EOVERFLOW,
                  "%s: rows = %" PRId64 ", columns = %" PRId64 ", ld = %" PRId64
                  " in %s; expected fewer than 2^63 bytes",
                  what, rows, columns, ld, zlg_type_name(type));
}

int zlg_matrix_new(zlg_context *context, const char *what, zlg_matrix **matrix, zlg_type type, int64_t rows,
                   int64_t columns, zlg_order order, int64_t ld) {
  if (!matrix) return zlg_fail(context, ZLG_EINVAL, "%s: matrix is NULL; expected where to put the new matrix", what);
  *matrix = NULL;
  if (!context) return zlg_fail(NULL, ZLG_EINVAL, "%s: context is NULL; expected a context", what);
  int status = check_shape(context, what, type, rows, columns, order, ld);
  if (status != ZLG_OK) return status;
  zlg_matrix *made = zlg_calloc(1, sizeof *made);
  if (!made) return zlg_fail(context, ZLG_ENOMEM, "%s: no memory for a matrix object", what);
  made->context = zlg_context_retain(context);
  atomic_init(&made->references, 1);
  atomic_init(&made->writers, 0);
  made->type = type;
  made->rows = rows;
  made->columns = columns;
  made->order = order;
  made->ld = ld;
  *matrix = made;
  return ZLG_OK;
}

zlg_matrix *zlg_matrix_retain(zlg_matrix *matrix) {
  atomic_fetch_add_explicit(&matrix->references, 1, memory_order_relaxed);
  return matrix;
}

void zlg_matrix_release(zlg_matrix *matrix) {
  if (!matrix || atomic_fetch_sub_explicit(&matrix->references, 1, memory_order_acq_rel) > 1) return;
  zlg_context *context = matrix->context;
  if (matrix->owner)
    zlg_matrix_release(matrix->owner);
  else if (matrix->ops)
    matrix->ops->release(matrix);
  zlg_free(matrix);
  zlg_context_release(context);
}

int64_t zlg_matrix_least_ld(int64_t rows, int64_t columns, zlg_order order) {
  int64_t width = order == ZLG_ROW_MAJOR ? columns : rows;
  return width > 1 ? width : 1;
}

int64_t zlg_matrix_span(const zlg_matrix *matrix) {
  int64_t bytes;
  span_of(matrix->type, zlg_lines_of(matrix->rows, matrix->columns, matrix->order, matrix->ld), &bytes);
  return bytes;
}

/* Data must be there, aligned to its elements, and end before the address space does. */
static int check_data(const zlg_context *context, const char *what, const char *name, zlg_type type, int64_t span,
                      const void *data) {
  size_t size = zlg_type_size(type);
  if (span == 0) return ZLG_OK;
  if (!data) return zlg_fail(context, ZLG_EINVAL, "%s: %s is NULL; expected %" PRId64 " bytes", what, name, span);
  if ((uintptr_t)data % size != 0)
    return zlg_fail(context, ZLG_EINVAL, "%s: %s = %p; expected an address aligned to the %zu bytes of an %s", what,
                    name, data, size, zlg_type_name(type));
  if ((uintptr_t)data > UINTPTR_MAX - (uintptr_t)span)
    return zlg_fail(context, ZLG_EOVERFLOW,
                    "%s: %s = %p and %" PRId64 " bytes; expected an end within the address space", what, name, data,
                    span);
  return ZLG_OK;
}

static int wrap(zlg_context *context, const char *what, zlg_matrix **matrix, zlg_type type, int64_t rows,
                int64_t columns, zlg_order order, int64_t ld, void *data, bool writable) {
  zlg_matrix *made = NULL;
  if (matrix) *matrix = NULL;
  int status = zlg_matrix_new(context, what, matrix ? &made : NULL, type, rows, columns, order, ld);
  if (status != ZLG_OK) return status;
  status = check_data(context, what, "data", type, zlg_matrix_span(made), data);
  if (status != ZLG_OK) {
    zlg_matrix_release(made);
    return status;
  }
  made->data = data;
  made->writable = writable;
  *matrix = made;
  return ZLG_OK;
}

int zlg_matrix_wrap(zlg_context *context, zlg_matrix **matrix, zlg_type type, int64_t rows, int64_t columns,
                    zlg_order order, int64_t ld, void *data) {
  return wrap(context, "zlg_matrix_wrap", matrix, type, rows, columns, order, ld, data, true);
}

int zlg_matrix_wrap_const(zlg_context *context, zlg_matrix **matrix, zlg_type type, int64_t rows, int64_t columns,
                          zlg_order order, int64_t ld, const void *data) {
  return wrap(context, "zlg_matrix_wrap_const", matrix, type, rows, columns, order, ld, (void *)(uintptr_t)data, false);
}

int zlg_matrix_get_info(const zlg_matrix *matrix, zlg_matrix_info *info) {
  if (!matrix) return zlg_fail(NULL, ZLG_EINVAL, "zlg_matrix_get_info: matrix is NULL; expected a matrix");
  if (!info)
    return zlg_fail(matrix->context, ZLG_EINVAL, "zlg_matrix_get_info: info is NULL; expected where to put it");
  *info = (zlg_matrix_info){.type = matrix->type,
                            .rows = matrix->rows,
                            .columns = matrix->columns,
                            .order = matrix->order,
                            .ld = matrix->ld,
                            .writable = zlg_matrix_is_writable(matrix),
                            .data = matrix->data,
                            .path = matrix->path};
  return ZLG_OK;
}

int zlg_matrix_close(zlg_matrix *matrix) {
  if (!matrix) return zlg_fail(NULL, ZLG_EINVAL, "zlg_matrix_close: matrix is NULL; expected a matrix");
  if (!matrix->ops || !matrix->ops->close) return ZLG_OK;
  int writers = atomic_load(&matrix->writers);
  if (writers > 0)
    return zlg_fail(matrix->context, ZLG_ESTATE, "zlg_matrix_close: %d request%s still write%s %s; expected none",
                    writers, writers == 1 ? "" : "s", writers == 1 ? "s" : "", zlg_path_tail(matrix->path));
  return matrix->ops->close(matrix);
}

/* [first, first + count) lies within `total`; also where the sum would overflow. */
static int check_range(const zlg_matrix *matrix, const char *what, const char *name, int64_t first, int64_t count,
                       int64_t total) {
  if (first >= 0 && count >= 0 && first <= total && count <= total - first) return ZLG_OK;
  return zlg_fail(matrix->context, ZLG_EINVAL,
                  "%s: %" PRId64 " %ss from %s %" PRId64 " on; expected a part of %" PRId64 " %ss", what, count, name,
                  name, first, total, name);
}

static int check_block(const zlg_matrix *matrix, const char *what, const struct zlg_block *block, const void *memory) {
  if (!matrix) return zlg_fail(NULL, ZLG_EINVAL, "%s: matrix is NULL; expected a matrix", what);
  int status = check_range(matrix, what, "row", block->row, block->rows, matrix->rows);
  if (status == ZLG_OK) status = check_range(matrix, what, "column", block->column, block->columns, matrix->columns);
  if (status == ZLG_OK)
    status = check_shape(matrix->context, what, matrix->type, block->rows, block->columns, block->order, block->ld);
  if (status != ZLG_OK) return status;
  int64_t span;
  span_of(matrix->type, zlg_lines_of(block->rows, block->columns, block->order, block->ld), &span);
  return check_data(matrix->context, what, "block", matrix->type, span, memory);
}

static bool is_empty(const struct zlg_block *block) {
  return block->rows == 0 || block->columns == 0;
}

int zlg_matrix_read(const zlg_matrix *matrix, int64_t row, int64_t rows, int64_t column, int64_t columns,
                    zlg_order order, int64_t ld, void *block) {
  struct zlg_block wanted = {row, rows, column, columns, order, ld};
  int status = check_block(matrix, "zlg_matrix_read", &wanted, block);
  if (status != ZLG_OK || is_empty(&wanted)) return status;
  return zlg_block_read(matrix, &wanted, block);
}

int zlg_matrix_write(zlg_matrix *matrix, int64_t row, int64_t rows, int64_t column, int64_t columns, zlg_order order,
                     int64_t ld, const void *block) {
  struct zlg_block given = {row, rows, column, columns, order, ld};
  int status = check_block(matrix, "zlg_matrix_write", &given, block);
  if (status != ZLG_OK) return status;
  if (!zlg_matrix_is_writable(matrix))
    return zlg_fail(matrix->context, ZLG_EREADONLY,
                    "zlg_matrix_write: %s is read-only; expected a matrix made for writing",
                    matrix->path ? zlg_path_tail(matrix->path) : "the matrix");
  return is_empty(&given) ? ZLG_OK : zlg_block_write(matrix, &given, block);
}

/* Lines of bytes at an address. */
struct byte_lines {
  uintptr_t first;
  int64_t count, width, stride;
};

static struct byte_lines byte_lines_of(const zlg_matrix *matrix) {
  struct zlg_lines lines = zlg_lines_of(matrix->rows, matrix->columns, matrix->order, matrix->ld);
  int64_t size = (int64_t)zlg_type_size(matrix->type), stride = lines.count > 1 ? lines.stride * size : 0;
  return (struct byte_lines){(uintptr_t)matrix->data, lines.count, lines.width * size, stride};
}

/* A single line has no stride of its own: it takes the other's, where it fits into it. */
static void share_stride(struct byte_lines *single, const struct byte_lines *other) {
  if (single->count == 1 && single->width <= other->stride) single->stride = other->stride;
}

/* Lines [first, first + count) of one grid of lines against lines [0, other_count) of the other. */
static bool meets(int64_t first, int64_t count, int64_t other_count) {
  return first < other_count && first + count > 0;
}

/* b starts q strides and r bytes after a, 0 <= r < stride: line j of b meets a's line j + q where r is inside the
 * line's width, and a's line j + q + 1 where r + width of b reaches beyond the stride. No other pair can meet. */
static bool lines_overlap(const struct byte_lines *a, const struct byte_lines *b) {
  int64_t q = (int64_t)(b->first - a->first) / a->stride, r = (int64_t)(b->first - a->first) % a->stride;
  if (r < a->width && meets(q, b->count, a->count)) return true;
  return r + b->width > a->stride && meets(q + 1, b->count, a->count);
}

static bool memory_overlaps(const zlg_matrix *x, const zlg_matrix *y) {
  struct byte_lines a = byte_lines_of(x), b = byte_lines_of(y);
  if (a.first > b.first) {
    struct byte_lines swap = a;
    a = b, b = swap;
  }
  uintptr_t end = a.first + (uintptr_t)zlg_matrix_span(a.first == (uintptr_t)x->data ? x : y);
  if (b.first >= end) return false;
  share_stride(&a, &b);
  share_stride(&b, &a);
  return a.stride == b.stride && a.stride > 0 ? lines_overlap(&a, &b) : true;
}

bool zlg_matrix_overlaps(const zlg_matrix *output, const zlg_matrix *input) {
  if (output == input) return zlg_matrix_span(output) > 0;
  if (zlg_matrix_span(output) == 0 || zlg_matrix_span(input) == 0) return false;
  if (output->ops || input->ops)
    return output->ops && input->ops && output->device == input->device && output->inode == input->inode;
  return memory_overlaps(output, input);
}
