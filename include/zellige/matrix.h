/* Matrices: views of the caller's memory, or files. A matrix owns nothing it was not asked to own. */
#ifndef ZELLIGE_MATRIX_H
#define ZELLIGE_MATRIX_H

#include "zellige/context.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct zlg_matrix zlg_matrix;

/* A view of rows x columns elements in the caller's memory, which stays the caller's and must outlive the view and
 * every request that uses it. ld counts elements (see zlg_order). data may be NULL where rows or columns is 0.
 * Errors: ZLG_EINVAL (negative sizes, ld too small, unaligned data), ZLG_EOVERFLOW, ZLG_ENOMEM. */
ZLG_API int zlg_matrix_wrap(zlg_context *context, zlg_matrix **matrix, zlg_type type, int64_t rows, int64_t columns,
                            zlg_order order, int64_t ld, void *data);
/* The same, read-only: as an output it is refused (ZLG_EREADONLY). */
ZLG_API int zlg_matrix_wrap_const(zlg_context *context, zlg_matrix **matrix, zlg_type type, int64_t rows,
                                  int64_t columns, zlg_order order, int64_t ld, const void *data);

/* A matrix that is `value` everywhere, read-only and without memory behind it: as X, ones give row sums.
 * Errors: ZLG_EINVAL, ZLG_EOVERFLOW, ZLG_ENOMEM. */
ZLG_API int zlg_matrix_constant(zlg_context *context, zlg_matrix **matrix, zlg_type type, int64_t rows, int64_t columns,
                                double value);

/* Opens a NumPy file (versions 1.0 to 3.0, little endian, '<f4' or '<f8', C or Fortran order, at most two dimensions; a
 * one-dimensional array of n is n x 1, a number 1 x 1) for reading. Nothing is loaded. Bytes behind the array are
 * ignored, as NumPy does. Errors: ZLG_ENOENT, ZLG_EIO (not a regular file, unreadable), ZLG_EFORMAT (truncated,
 * foreign, another type: the message says what was found and expected), ZLG_EOVERFLOW, ZLG_ENOMEM. */
ZLG_API int zlg_matrix_open_npy(zlg_context *context, zlg_matrix **matrix, const char *path);

/* Creates a NumPy file of the final size, zeros at first, for writing (and reading back). It is written under a
 * temporary name beside `path`, ".NAME.zlg-XXXXXX", and takes its name in zlg_matrix_close(); until then `path` is
 * untouched, and a run that ends otherwise leaves no file that looks complete. A file that exists already is replaced
 * then, and keeps its permissions; it may be open as an input meanwhile, since its content stays until then and, for
 * who has it open, after. Errors: ZLG_EIO (what is there is no regular file or may not be written), ZLG_ENOENT (no such
 * directory), ZLG_ENOSPC (space is reserved at once, where the file system can), ZLG_EINVAL, ZLG_EOVERFLOW, ZLG_ENOMEM.
 */
ZLG_API int zlg_matrix_create_npy(zlg_context *context, zlg_matrix **matrix, const char *path, zlg_type type,
                                  int64_t rows, int64_t columns, zlg_order order);

/* Raw binary, native byte order, the elements from byte `offset` on with leading dimension ld (0: the least). The file
 * must hold them all (ZLG_EFORMAT, with both sizes). */
ZLG_API int zlg_matrix_open_raw(zlg_context *context, zlg_matrix **matrix, const char *path, zlg_type type,
                                int64_t rows, int64_t columns, zlg_order order, int64_t ld, int64_t offset);
ZLG_API int zlg_matrix_create_raw(zlg_context *context, zlg_matrix **matrix, const char *path, zlg_type type,
                                  int64_t rows, int64_t columns, zlg_order order);

/* A view of the same elements with rows and columns exchanged: the memory is the caller's as before, a file is shared.
 * It may be written where the matrix may, and keeps the matrix alive; closing is the matrix's own business
 * (zlg_matrix_close() of a view does nothing), and ends writing through its views too. */
ZLG_API int zlg_matrix_transpose(zlg_matrix *matrix, zlg_matrix **view);

/* Finishes a created file: flushed to the disk and given its name; from then on it is read-only. A created matrix that
 * is released without it is removed. For other matrices, and the second time, it does nothing. A file of which a write
 * or a flush has failed cannot be finished any more. Errors: ZLG_EIO, ZLG_ENOSPC, ZLG_ESTATE (a request still writes
 * it). */
ZLG_API int zlg_matrix_close(zlg_matrix *matrix);

/* Gives the matrix back; NULL is allowed. Operators and requests that use it keep it alive. */
ZLG_API void zlg_matrix_release(zlg_matrix *matrix);

typedef struct zlg_matrix_info {
  zlg_type type;
  int64_t rows, columns;
  zlg_order order;
  int64_t ld;
  int writable;
  void *data;       /* NULL for a file or a constant */
  const char *path; /* NULL for memory or a constant */
} zlg_matrix_info;
ZLG_API int zlg_matrix_get_info(const zlg_matrix *matrix, zlg_matrix_info *info);

/* Copies the block of rows [row, row + rows) and columns [column, column + columns) to or from the caller's memory
 * (same type; order and ld are the block's). Works for memory and files, from any number of threads where the blocks
 * are disjoint; fast for whole rows of a row-major file and whole columns of a column-major one. Errors: ZLG_EINVAL,
 * ZLG_EOVERFLOW, ZLG_EIO (with the offset), ZLG_ENOSPC, ZLG_ENOMEM, ZLG_EREADONLY. */
ZLG_API int zlg_matrix_read(const zlg_matrix *matrix, int64_t row, int64_t rows, int64_t column, int64_t columns,
                            zlg_order order, int64_t ld, void *block);
ZLG_API int zlg_matrix_write(zlg_matrix *matrix, int64_t row, int64_t rows, int64_t column, int64_t columns,
                             zlg_order order, int64_t ld, const void *block);

#ifdef __cplusplus
}
#endif
#endif
