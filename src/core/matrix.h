/* The inside of a matrix: a view of memory, or a store (src/io) that reads and writes blocks. */
#ifndef ZLG_CORE_MATRIX_H
#define ZLG_CORE_MATRIX_H

#include <stdatomic.h>
#include <stdbool.h>

#include "zellige/matrix.h"

/* A file format: what src/io implements once per format. Offsets and lengths are those of the payload, in bytes; the
 * matrix layer turns blocks into them. Each returns ZLG_OK or a code with the message set (zlg_fail on
 * matrix->context). Read and write are called from several threads at once. */
struct zlg_store_ops {
  int (*read)(const zlg_matrix *matrix, int64_t offset, int64_t bytes, void *to);
  int (*write)(zlg_matrix *matrix, int64_t offset, int64_t bytes, const void *from); /* NULL for read-only stores */
  int (*close)(zlg_matrix *matrix);    /* finish: sync, rename; NULL for read-only stores; `writable` ends */
  void (*release)(zlg_matrix *matrix); /* give up: close descriptors, remove what is unfinished, free `store`; not
                                          called for views */
};

struct zlg_matrix {
  zlg_context *context;
  atomic_int references;
  zlg_type type;
  int64_t rows, columns;
  zlg_order order;
  int64_t ld;
  bool writable;                   /* the owner's: ask zlg_matrix_is_writable() */
  void *data;                      /* memory; NULL for a store (or an empty view) */
  const struct zlg_store_ops *ops; /* NULL for memory */
  void *store;                     /* the store's own state */
  uint64_t device, inode;          /* of the store's file: what makes two of them the same */
  const char *path;                /* as the caller gave it, the store's; NULL for memory */
  atomic_int writers;              /* requests under way that write it; the owner's counts */
  zlg_matrix *owner;               /* of a view: whose elements these are, referenced; else NULL */
  int64_t owner_offset;            /* bytes from the owner's first element to the view's */
};

/* Validates shape, type, order and ld and makes the object, read-only and without data; shared by memory and stores.
 * The span in bytes is known to fit in 64 bits then. `what` is the public function, for messages. */
int zlg_matrix_new(zlg_context *context, const char *what, zlg_matrix **matrix, zlg_type type, int64_t rows,
                   int64_t columns, zlg_order order, int64_t ld);
zlg_matrix *zlg_matrix_retain(zlg_matrix *matrix);
/* Another shape of the elements from `offset` on, which must lie within the matrix: see src/core/view.c. */
int zlg_matrix_view(zlg_matrix *matrix, const char *what, zlg_matrix **view, int64_t offset, int64_t rows,
                    int64_t columns, zlg_order order, int64_t ld);
static inline zlg_matrix *zlg_matrix_owner(zlg_matrix *matrix) {
  return matrix->owner ? matrix->owner : matrix;
}
static inline bool zlg_matrix_is_writable(const zlg_matrix *matrix) {
  return matrix->owner ? matrix->owner->writable : matrix->writable;
}
/* A request under way writes it, until the count is taken back (-1). */
static inline void zlg_matrix_count_writer(zlg_matrix *matrix, int change) {
  atomic_fetch_add(&zlg_matrix_owner(matrix)->writers, change);
}
/* The least ld that zlg_matrix_new() accepts and is not 0. */
int64_t zlg_matrix_least_ld(int64_t rows, int64_t columns, zlg_order order);
/* Bytes from the first element to the end of the last one; 0 when empty. Never overflows for a matrix that exists. */
int64_t zlg_matrix_span(const zlg_matrix *matrix);
/* True when a write to `output` could change what is read from `input`: memory ranges that meet (exact for two views
 * with one ld: interleaved columns of one array do not overlap), or the same file. */
bool zlg_matrix_overlaps(const zlg_matrix *output, const zlg_matrix *input);

#endif
