/* Files named on the command line: see filespec.h. */
#include "tools/filespec.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tools/number.h"
#include "tools/tool.h"

#define INPUT_FORMS "FILE.npy or FILE:f32|f64:ROWSxCOLUMNS[:col][:ld=N][:+BYTES]"
#define OUTPUT_FORMS "FILE.npy, FILE.f32, FILE.f64, FILE.raw or FILE:npy|raw|f32|f64[:col]"

struct parser {
  struct filespec *spec;
  bool output;
  char *message;
  size_t message_bytes;
};

static bool __attribute__((format(printf, 2, 3))) refuse(struct parser *parser, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(parser->message, parser->message_bytes, format, arguments);
  va_end(arguments);
  return false;
}

static bool type_named(const char *word, zlg_type *type) {
  for (zlg_type t = ZLG_F32; t <= ZLG_F64; t++)
    if (strcmp(word, zlg_type_name(t)) == 0) {
      *type = t;
      return true;
    }
  return false;
}

static const char *suffix(const char *path) {
  const char *name = strrchr(path, '/');
  const char *dot = strrchr(name ? name : path, '.');
  return dot ? dot + 1 : "";
}

/* "[ROWS]xCOLUMNS" */
static bool shape(const char *word, struct filespec *spec) {
  if (*word == 'x') {
    spec->rows = -1;
    return parse_int64(word + 1, &spec->columns) && spec->columns >= 0;
  }
  return parse_shape(word, &spec->rows, &spec->columns) && spec->rows >= 0 && spec->columns >= 0;
}

/* One word between colons. False where it is none of ours: it then belongs to the path. */
static bool take_word(struct filespec *spec, const char *word) {
  if (!strcmp(word, "npy") || !strcmp(word, "raw")) {
    spec->format = *word == 'n' ? FILE_NPY : FILE_RAW;
    return true;
  }
  if (type_named(word, &spec->type)) {
    spec->format = FILE_RAW;
    return true;
  }
  if (!strcmp(word, "col")) return spec->column_major = true;
  if (!strcmp(word, "row")) return true;
  if (!strncmp(word, "ld=", 3)) return parse_int64(word + 3, &spec->ld) && spec->ld > 0;
  if (*word == '+') return parse_bytes(word + 1, &spec->offset);
  return shape(word, spec);
}

static void format_from_suffix(struct filespec *spec) {
  const char *end = suffix(spec->path);
  zlg_type type;
  if (!strcmp(end, "npy") && !spec->format) spec->format = FILE_NPY;
  if (type_named(end, &type) && spec->format != FILE_NPY) {
    spec->format = FILE_RAW;
    if (!spec->type) spec->type = type;
  }
  if (!strcmp(end, "raw") && !spec->format) spec->format = FILE_RAW;
}

static bool complete_input(struct parser *parser) {
  struct filespec *spec = parser->spec;
  if (spec->format == FILE_NPY) {
    if (spec->columns >= 0 || spec->ld || spec->offset || spec->column_major || spec->type)
      return refuse(parser, "type, shape and order stand in the .npy file itself; expected just its name");
    return true;
  }
  if (!spec->type) return refuse(parser, "raw file without an element type; expected %s", INPUT_FORMS);
  if (spec->columns < 0) return refuse(parser, "raw file without a shape; expected %s", INPUT_FORMS);
  if (spec->rows < 0 && (spec->column_major || spec->ld))
    return refuse(parser, "rows may be left out for contiguous row-major files only; expected ROWSxCOLUMNS");
  return true;
}

static bool complete_output(struct parser *parser) {
  struct filespec *spec = parser->spec;
  if (spec->columns >= 0 || spec->ld || spec->offset)
    return refuse(parser, "an output's shape follows from the inputs; expected %s", OUTPUT_FORMS);
  return true;
}

bool filespec_parse(struct filespec *spec, const char *text, bool output, char *message, size_t message_bytes) {
  struct parser parser = {spec, output, message, message_bytes};
  *spec = (struct filespec){.rows = -1, .columns = -1};
  spec->path = strdup(text);
  if (!spec->path) return refuse(&parser, "out of memory");
  char *colon;
  while ((colon = strrchr(spec->path, ':')) && colon != spec->path && take_word(spec, colon + 1)) *colon = 0;
  if (!*spec->path) return refuse(&parser, "empty file name");
  format_from_suffix(spec);
  if (!spec->format) return refuse(&parser, "unknown format; expected %s", output ? OUTPUT_FORMS : INPUT_FORMS);
  return output ? complete_output(&parser) : complete_input(&parser);
}

void filespec_free(struct filespec *spec) {
  free(spec->path);
  spec->path = NULL;
}

static int failed(const zlg_context *context, int status, const char *path) {
  tool_library_error(context, status, path);
  return TOOL_FAILED;
}

/* Rows of a raw file from its size. */
static int count_rows(const struct filespec *spec, int64_t *rows) {
  struct stat status;
  if (stat(spec->path, &status)) {
    tool_error("%s: %s", spec->path, strerror(errno));
    return TOOL_FAILED;
  }
  int64_t row_bytes;
  int64_t bytes = (int64_t)status.st_size - spec->offset;
  if (__builtin_mul_overflow(spec->columns, (int64_t)zlg_type_size(spec->type), &row_bytes) || row_bytes == 0 ||
      bytes < 0 || bytes % row_bytes) {
    tool_error("%s: %lld bytes from byte %lld on are no whole number of rows of %lld %s", spec->path,
               (long long)(bytes < 0 ? 0 : bytes), (long long)spec->offset, (long long)spec->columns,
               zlg_type_name(spec->type));
    return TOOL_FAILED;
  }
  *rows = bytes / row_bytes;
  return TOOL_OK;
}

static zlg_order order_of(const struct filespec *spec) {
  return spec->column_major ? ZLG_COLUMN_MAJOR : ZLG_ROW_MAJOR;
}

int filespec_open(zlg_context *context, zlg_matrix **matrix, const struct filespec *spec) {
  int status;
  if (spec->format == FILE_NPY) {
    status = zlg_matrix_open_npy(context, matrix, spec->path);
  } else {
    int64_t rows = spec->rows;
    if (rows < 0 && count_rows(spec, &rows)) return TOOL_FAILED;
    status = zlg_matrix_open_raw(context, matrix, spec->path, spec->type, rows, spec->columns, order_of(spec), spec->ld,
                                 spec->offset);
  }
  return status ? failed(context, status, spec->path) : TOOL_OK;
}

int filespec_create(zlg_context *context, zlg_matrix **matrix, const struct filespec *spec, zlg_type type, int64_t rows,
                    int64_t columns) {
  struct stat old;
  if (stat(spec->path, &old) == 0 && !S_ISREG(old.st_mode)) { /* renaming onto a device would replace it */
    tool_error("%s: %s; expected a regular file or a new name", spec->path,
               S_ISDIR(old.st_mode) ? "is a directory" : "is no regular file");
    return TOOL_FAILED;
  }
  if (spec->type && spec->type != type) {
    tool_error("%s: named %s, but the inputs and so the result are %s", spec->path, zlg_type_name(spec->type),
               zlg_type_name(type));
    return TOOL_FAILED;
  }
  int status = spec->format == FILE_NPY
                   ? zlg_matrix_create_npy(context, matrix, spec->path, type, rows, columns, order_of(spec))
                   : zlg_matrix_create_raw(context, matrix, spec->path, type, rows, columns, order_of(spec));
  return status ? failed(context, status, spec->path) : TOOL_OK;
}
