/* Raw binary files: elements in the machine's own byte order, nothing else known about them than what the caller says.
 */
#include "config.h"

#include <inttypes.h>

#include "src/core/error.h"
#include "src/io/io.h"

static int check_size(const zlg_matrix *matrix, const char *path, int64_t offset, int64_t bytes) {
  int64_t span = zlg_matrix_span(matrix), end;
  if (__builtin_add_overflow(offset, span, &end))
    return zlg_fail(matrix->context, ZLG_EOVERFLOW,
                    "zlg_matrix_open_raw: offset = %" PRId64 " and %" PRId64 " bytes; expected an end below 2^63",
                    offset, span);
  if (end <= bytes) return ZLG_OK;
  return zlg_fail(matrix->context, ZLG_EFORMAT,
                  "%s: has %" PRId64 " bytes; expected at least %" PRId64 " for %" PRId64 " x %" PRId64
                  " elements of %s"
                  " from byte %" PRId64 " on",
                  zlg_path_tail(path), bytes, end, matrix->rows, matrix->columns, zlg_type_name(matrix->type), offset);
}

int zlg_matrix_open_raw(zlg_context *context, zlg_matrix **matrix, const char *path, zlg_type type, int64_t rows,
                        int64_t columns, zlg_order order, int64_t ld, int64_t offset) {
  static const char what[] = "zlg_matrix_open_raw";
  zlg_matrix *made = NULL;
  struct zlg_file *file = NULL;
  int64_t bytes = 0;
  if (matrix) *matrix = NULL;
  if (ld == 0) ld = zlg_matrix_least_ld(rows, columns, order);
  int status = zlg_matrix_new(context, what, matrix ? &made : NULL, type, rows, columns, order, ld);
  if (status != ZLG_OK) return status;
  if (offset < 0) status = zlg_fail(context, ZLG_EINVAL, "%s: offset = %" PRId64 "; expected 0 or more", what, offset);
  if (status == ZLG_OK) status = zlg_file_open(context, what, path, &file, &bytes);
  if (status == ZLG_OK) status = check_size(made, path, offset, bytes);
  if (status == ZLG_OK) {
    zlg_file_attach(file, made, offset);
    *matrix = made;
    return ZLG_OK;
  }
  zlg_file_discard(file);
  zlg_matrix_release(made);
  return status;
}

int zlg_matrix_create_raw(zlg_context *context, zlg_matrix **matrix, const char *path, zlg_type type, int64_t rows,
                          int64_t columns, zlg_order order) {
  static const char what[] = "zlg_matrix_create_raw";
  zlg_matrix *made = NULL;
  struct zlg_file *file;
  if (matrix) *matrix = NULL;
  int64_t ld = zlg_matrix_least_ld(rows, columns, order);
  int status = zlg_matrix_new(context, what, matrix ? &made : NULL, type, rows, columns, order, ld);
  if (status != ZLG_OK) return status;
  status = zlg_file_create(context, what, path, zlg_matrix_span(made), &file);
  if (status != ZLG_OK) {
    zlg_matrix_release(made);
    return status;
  }
  zlg_file_attach(file, made, 0);
  *matrix = made;
  return ZLG_OK;
}
