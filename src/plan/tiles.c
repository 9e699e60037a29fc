/* Tiles: blocks of a matrix as StarPU data. Memory is registered where it lies, one handle a tile; files, and views
 * that StarPU 1.3's 32-bit leading dimension cannot describe, are staged through buffers. */
#include <string.h>

#include "src/core/memory.h"
#include "src/plan/graph.h"

bool zlg_tile_is_staged(const zlg_matrix *matrix) {
  return !matrix->data || matrix->columns == 0 || matrix->ld > UINT32_MAX;
}

static size_t element_bytes(const zlg_matrix *matrix) {
  return zlg_type_size(matrix->type);
}

/* The stored tile's leading dimension: the order stays the matrix's. */
static int64_t tight_ld(const zlg_matrix *matrix, const struct zlg_tile *tile) {
  return matrix->order == ZLG_ROW_MAJOR ? tile->columns : tile->rows;
}

static int stage(zlg_request *request, struct zlg_tile *tile, zlg_matrix *matrix, enum zlg_tile_use use) {
  bool points_at_origin = matrix->columns == 0; /* D = 0: every point is the same, a column of zeros */
  if (points_at_origin) tile->columns = 1;
  int64_t bytes = tile->rows * tile->columns * (int64_t)element_bytes(matrix);
  zlg_buffer_want(&request->context->staging, &tile->buffer, bytes);
  if (!tile->buffer.memory)
    return zlg_fail(request->context, ZLG_ENOMEM, "no memory for a tile of %lld bytes", (long long)bytes);
  if (points_at_origin)
    memset(tile->buffer.memory, 0, (size_t)bytes);
  else if (use != ZLG_TILE_WRITE)
    return zlg_matrix_read(matrix, tile->row, tile->rows, tile->column, tile->columns, matrix->order,
                           tight_ld(matrix, tile), tile->buffer.memory);
  return ZLG_OK;
}

int zlg_tile_open(zlg_request *request, struct zlg_tile *tile, zlg_matrix *matrix, enum zlg_tile_use use, int64_t row,
                  int64_t rows, int64_t column, int64_t columns) {
  tile->row = row, tile->rows = rows, tile->column = column, tile->columns = columns;
  bool staged = zlg_tile_is_staged(matrix), row_major = matrix->order == ZLG_ROW_MAJOR;
  char *start;
  int64_t ld;
  if (staged) {
    int status = stage(request, tile, matrix, use);
    if (status != ZLG_OK) return status;
    start = tile->buffer.memory;
    ld = tight_ld(matrix, tile);
    if (matrix->path && use != ZLG_TILE_WRITE) /* a file */
      request->report.bytes_read += tile->rows * tile->columns * (int64_t)element_bytes(matrix);
  } else {
    ld = matrix->ld;
    start = (char *)matrix->data + (size_t)(row_major ? row * ld + column : column * ld + row) * element_bytes(matrix);
  }
  int64_t nx = row_major ? tile->columns : tile->rows, ny = row_major ? tile->rows : tile->columns;
  /* A single line has no use for a large leading dimension, and StarPU then moves it in one piece. */
  if (ny == 1) ld = nx;
  starpu_matrix_data_register(&tile->handle, STARPU_MAIN_RAM, (uintptr_t)start, (uint32_t)ld, (uint32_t)nx,
                              (uint32_t)ny, element_bytes(matrix));
  return ZLG_OK;
}

static void wait_until_idle(zlg_request *request, struct zlg_tile *tile) {
  zlg_monitor_lock(&request->monitor);
  while (tile->pending > 0) zlg_request_wait_tasks(request, request->in_flight / 2);
  zlg_monitor_unlock(&request->monitor);
}

int zlg_tile_close(zlg_request *request, struct zlg_tile *tile, zlg_matrix *matrix, bool write) {
  if (!tile->handle) return ZLG_OK;
  wait_until_idle(request, tile);
  starpu_data_unregister(tile->handle);
  tile->handle = NULL;
  if (!write || !zlg_tile_is_staged(matrix)) return ZLG_OK;
  int status = zlg_request_state(request);
  if (status != ZLG_OK) return status; /* not written: the request must not end as if it were */
  status = zlg_matrix_write(matrix, tile->row, tile->rows, tile->column, tile->columns, matrix->order,
                            tight_ld(matrix, tile), tile->buffer.memory);
  if (status == ZLG_OK && matrix->path)
    request->report.bytes_written += tile->rows * tile->columns * (int64_t)element_bytes(matrix);
  return status;
}

void zlg_tile_free(zlg_request *request, struct zlg_tile *tile) {
  zlg_buffer_release(&request->context->staging, &tile->buffer);
  *tile = (struct zlg_tile){0};
}
