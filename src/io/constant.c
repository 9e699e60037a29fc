/* Matrices that are one value everywhere and take no memory: the ones of a row sum, however many rows it has. */
#include "config.h"

#include <stdlib.h>

#include "src/core/error.h"
#include "src/core/matrix.h"
#include "src/core/memory.h"

static int read_constant(const zlg_matrix *matrix, int64_t offset, int64_t bytes, void *to) {
  (void)offset; /* every element is the same */
  const double *value = matrix->store;
  int64_t count = bytes / (int64_t)zlg_type_size(matrix->type);
  if (matrix->type == ZLG_F32)
    for (int64_t i = 0; i < count; i++) ((float *)to)[i] = (float)*value;
  else
    for (int64_t i = 0; i < count; i++) ((double *)to)[i] = *value;
  return ZLG_OK;
}

static void release_constant(zlg_matrix *matrix) {
  zlg_free(matrix->store);
}

static const struct zlg_store_ops constant_ops = {.read = read_constant, .release = release_constant};

int zlg_matrix_constant(zlg_context *context, zlg_matrix **matrix, zlg_type type, int64_t rows, int64_t columns,
                        double value) {
  static const char what[] = "zlg_matrix_constant";
  zlg_matrix *made = NULL;
  if (matrix) *matrix = NULL;
  int64_t ld = zlg_matrix_least_ld(rows, columns, ZLG_ROW_MAJOR);
  int status = zlg_matrix_new(context, what, matrix ? &made : NULL, type, rows, columns, ZLG_ROW_MAJOR, ld);
  if (status != ZLG_OK) return status;
  double *store = zlg_malloc(sizeof *store);
  if (!store) {
    zlg_matrix_release(made);
    return zlg_fail(context, ZLG_ENOMEM, "%s: no memory for its value", what);
  }
  *store = value;
  made->store = store;
  made->ops = &constant_ops;
  *matrix = made;
  return ZLG_OK;
}
