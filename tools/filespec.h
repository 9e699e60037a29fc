/* Files named on the command line, with what a raw file does not say about itself:
 *
 *   FILE.npy  FILE:npy                              NumPy
 *   FILE:TYPE:[ROWS]xCOLUMNS[:col][:ld=N][:+BYTES]  raw binary; rows left out: from the file's size
 *
 * TYPE is f32 or f64 and may be left out where FILE ends in .f32 or .f64. For an output the shape is known and the type
 * too: FILE.npy, FILE:npy, FILE.f32, FILE.raw, FILE:raw, each with :col for column-major order. */
#ifndef ZLG_TOOL_FILESPEC_H
#define ZLG_TOOL_FILESPEC_H

#include <stdbool.h>

#include "zellige.h"

enum file_format { FILE_NPY = 1, FILE_RAW };

struct filespec {
  char *path; /* for free() */
  enum file_format format;
  zlg_type type;   /* 0: not said */
  int64_t rows;    /* -1: not said */
  int64_t columns; /* -1: not said */
  int64_t ld, offset;
  bool column_major;
};

/* Takes a file name apart. False with a message (what was found, what is expected) where it cannot be one. */
bool filespec_parse(struct filespec *spec, const char *text, bool output, char *message, size_t message_bytes);
void filespec_free(struct filespec *spec);

/* Opens an input, creates an output; TOOL_OK, or TOOL_FAILED after an error message that names the file. */
int filespec_open(zlg_context *context, zlg_matrix **matrix, const struct filespec *spec);
int filespec_create(zlg_context *context, zlg_matrix **matrix, const struct filespec *spec, zlg_type type, int64_t rows,
                    int64_t columns);

#endif
