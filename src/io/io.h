/* Files under matrices: what the formats (npy.c, raw.c) share. A file is opened for reading, or created for writing
 * under a temporary name beside the final one, which it takes when it is finished. Nothing is mapped: a file that
 * shrinks or a disk that fails is an error, never a signal. */
#ifndef ZLG_IO_IO_H
#define ZLG_IO_IO_H

#include "src/core/matrix.h"

struct zlg_file;

/* Opens an existing regular file for reading; *bytes is its size. `what` is the public function, for messages. */
int zlg_file_open(zlg_context *context, const char *what, const char *path, struct zlg_file **file, int64_t *bytes);
/* Creates a file of `bytes` zeros under a temporary name, its space reserved where the file system can. A file of the
 * final name stays as it is until zlg_file_finish(), which keeps its permissions. */
int zlg_file_create(zlg_context *context, const char *what, const char *path, int64_t bytes, struct zlg_file **file);

/* The bytes [offset, offset + bytes) of the file, all or an error; from any number of threads. */
int zlg_file_read(const struct zlg_file *file, int64_t offset, int64_t bytes, void *to);
int zlg_file_write(struct zlg_file *file, int64_t offset, int64_t bytes, const void *from);

/* Flushes a created file and gives it its name; does nothing the second time. Refused where a write has failed. */
int zlg_file_finish(struct zlg_file *file);
/* Closes; a created file that is not finished is removed. NULL is allowed. */
void zlg_file_discard(struct zlg_file *file);

/* Makes the file the store of the matrix, its elements from byte `payload` on; writable where the file was created. The
 * file goes with the matrix from then on. */
void zlg_file_attach(struct zlg_file *file, zlg_matrix *matrix, int64_t payload);

#endif
