/* Views of matrices: the same elements seen in another shape. A view of memory points into it; a view of a file hands
 * reads and writes on, moved to where it begins. Whose elements they are, who writes them and whether they may be
 * written is the owner's to say, the matrix at the root. */
#include "config.h"

#include "src/core/error.h"
#include "src/core/matrix.h"

static int read_view(const zlg_matrix *view, int64_t offset, int64_t bytes, void *to) {
  return view->owner->ops->read(view->owner, view->owner_offset + offset, bytes, to);
}

static int write_view(zlg_matrix *view, int64_t offset, int64_t bytes, const void *from) {
  return view->owner->ops->write(view->owner, view->owner_offset + offset, bytes, from);
}

/* Without `close`: a file is finished through the matrix that created it. */
static const struct zlg_store_ops view_ops = {.read = read_view, .write = write_view};

int zlg_matrix_view(zlg_matrix *matrix, const char *what, zlg_matrix **view, int64_t offset, int64_t rows,
                    int64_t columns, zlg_order order, int64_t ld) {
  zlg_matrix *made = NULL;
  int status = zlg_matrix_new(matrix->context, what, view ? &made : NULL, matrix->type, rows, columns, order, ld);
  if (status != ZLG_OK) return status;
  const int64_t bytes = offset * (int64_t)zlg_type_size(matrix->type);
  zlg_matrix *owner = zlg_matrix_owner(matrix);
  made->owner = zlg_matrix_retain(owner);
  made->owner_offset = matrix->owner_offset + bytes;
  made->data = matrix->data ? (char *)matrix->data + bytes : NULL;
  made->ops = owner->ops ? &view_ops : NULL;
  made->device = owner->device;
  made->inode = owner->inode;
  made->path = owner->path;
  *view = made;
  return ZLG_OK;
}

int zlg_matrix_transpose(zlg_matrix *matrix, zlg_matrix **view) {
  static const char what[] = "zlg_matrix_transpose";
  if (view) *view = NULL;
  if (!matrix) return zlg_fail(NULL, ZLG_EINVAL, "%s: matrix is NULL; expected a matrix", what);
  return zlg_matrix_view(matrix, what, view, 0, matrix->columns, matrix->rows,
                         matrix->order == ZLG_ROW_MAJOR ? ZLG_COLUMN_MAJOR : ZLG_ROW_MAJOR, matrix->ld);
}
