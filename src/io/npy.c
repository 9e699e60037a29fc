/* NumPy's .npy files (numpy/lib/format.py describes them): magic, version, length of the header, the header (the text
 * of a Python dictionary), the elements. Read strictly enough that a foreign or damaged file is told from a good one,
 * and as tolerantly as NumPy as to how the dictionary is written. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "src/core/error.h"
#include "src/core/memory.h"
#include "src/io/io.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "elements are moved as they are in the file, little-endian: this machine would have to swap their bytes"
#endif

#define MAGIC "\x93NUMPY"
#define MAGIC_BYTES 6
#define PREAMBLE_MOST 12          /* magic, version, length of the header in 2 (version 1) or 4 bytes */
#define HEADER_MOST (1024 * 1024) /* NumPy writes some 120 bytes; a longer one is damage or an attack */
#define ALIGNMENT 64              /* of the first element */
#define QUOTED_MOST 60            /* of what was found, in a message */

/* What a header says. */
struct header {
  zlg_type type;
  zlg_order order;
  int dimensions;
  int64_t shape[2];
};

/* A place in the header's text, and for whom an error there is. */
struct parser {
  const zlg_context *context;
  const char *path;
  const char *text, *at, *end;
};

/* --- what a file is that is not .npy --- */

static const char *foreign_format(const unsigned char *start, int64_t bytes) {
  static const struct {
    const char *magic;
    int64_t bytes;
    const char *name;
  } formats[] = {{"\x89HDF\r\n\x1a\n", 8, "an HDF5 (or netCDF-4, MATLAB 7.3) file"},
                 {"PK\x03\x04", 4, "a ZIP archive, such as NumPy's .npz"},
                 {"\x1f\x8b", 2, "compressed with gzip"},
                 {"\x28\xb5\x2f\xfd", 4, "compressed with zstd"},
                 {"\xfd"
                  "7zXZ",
                  5, "compressed with xz"},
                 {"BZh", 3, "compressed with bzip2"},
                 {"CDF", 3, "a classic netCDF file"},
                 {"MATLAB 5.0", 10, "a MATLAB file"},
                 {"SIMPLE  =", 9, "a FITS file"},
                 {"PAR1", 4, "a Parquet file"},
                 {"ARROW1", 6, "an Arrow file"},
                 {"\x80\x02", 2, "a Python pickle"},
                 {"\x80\x03", 2, "a Python pickle"},
                 {"\x80\x04", 2, "a Python pickle"},
                 {"\x80\x05", 2, "a Python pickle"}};
  for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
    if (bytes >= formats[i].bytes && memcmp(start, formats[i].magic, (size_t)formats[i].bytes) == 0)
      return formats[i].name;
  return NULL;
}

static int fail_magic(const zlg_context *context, const char *path, const unsigned char *start, int64_t bytes) {
  const char *name = foreign_format(start, bytes);
  if (name) return zlg_fail(context, ZLG_EFORMAT, "%s: is %s; expected a NumPy file (.npy)", zlg_path_tail(path), name);
  char shown[3 * MAGIC_BYTES];
  for (int i = 0; i < MAGIC_BYTES; i++) snprintf(shown + 3 * i, 3, "%02x", start[i]);
  for (int i = 1; i < MAGIC_BYTES; i++) shown[3 * i - 1] = ' ';
  return zlg_fail(context, ZLG_EFORMAT, "%s: starts with the bytes %s; expected a NumPy file (.npy), 93 4e 55 4d 50 59",
                  zlg_path_tail(path), shown);
}

/* --- the header's text --- */

/* A piece of the file as a message may show it: short, and nothing in it that a terminal would obey. */
struct quote {
  char text[QUOTED_MOST + 1];
};

static struct quote quote(const char *start, size_t length) {
  struct quote q;
  if (length > QUOTED_MOST) length = QUOTED_MOST;
  for (size_t i = 0; i < length; i++) q.text[i] = start[i] >= ' ' && start[i] <= '~' ? start[i] : '?';
  q.text[length] = '\0';
  return q;
}

static int fail_at(const struct parser *p, const char *expected) {
  if (p->at == p->end)
    return zlg_fail(p->context, ZLG_EFORMAT, "%s: the header ends early; expected %s", p->path, expected);
  return zlg_fail(p->context, ZLG_EFORMAT, "%s: the header says \"%s\" at its byte %d; expected %s", p->path,
                  quote(p->at, (size_t)(p->end - p->at)).text, (int)(p->at - p->text), expected);
}

static void skip_space(struct parser *p) {
  while (p->at < p->end && (*p->at == ' ' || *p->at == '\t' || *p->at == '\n' || *p->at == '\r')) p->at++;
}

/* True, and passed, where the next thing is `c`. */
static bool take(struct parser *p, char c) {
  skip_space(p);
  if (p->at == p->end || *p->at != c) return false;
  p->at++;
  return true;
}

static bool take_word(struct parser *p, const char *word) {
  skip_space(p);
  size_t length = strlen(word);
  if ((size_t)(p->end - p->at) < length || memcmp(p->at, word, length) != 0) return false;
  p->at += length;
  return true;
}

/* A string between quotes of either kind; escapes are not for the words that occur here. */
static bool take_string(struct parser *p, const char **start, size_t *length) {
  skip_space(p);
  if (p->at == p->end || (*p->at != '\'' && *p->at != '"')) return false;
  const char *close = memchr(p->at + 1, *p->at, (size_t)(p->end - p->at - 1));
  if (!close || memchr(p->at, '\\', (size_t)(close - p->at))) return false;
  *start = p->at + 1;
  *length = (size_t)(close - *start);
  p->at = close + 1;
  return true;
}

static bool is_word(const char *start, size_t length, const char *word) {
  return length == strlen(word) && memcmp(start, word, length) == 0;
}

static int parse_type(struct parser *p, zlg_type *type) {
  static const char expected[] = "the dtype '<f4' or '<f8'";
  const char *word;
  size_t length;
  skip_space(p);
  struct parser before = *p;
  if (!take_string(p, &word, &length)) return fail_at(&before, expected);
  if (is_word(word, length, "<f4"))
    *type = ZLG_F32;
  else if (is_word(word, length, "<f8"))
    *type = ZLG_F64;
  else
    return zlg_fail(p->context, ZLG_EFORMAT, "%s: has the dtype '%s'; expected '<f4' or '<f8'", p->path,
                    quote(word, length).text);
  return ZLG_OK;
}

static int parse_order(struct parser *p, zlg_order *order) {
  if (take_word(p, "True"))
    *order = ZLG_COLUMN_MAJOR;
  else if (take_word(p, "False"))
    *order = ZLG_ROW_MAJOR;
  else
    return fail_at(p, "True or False for fortran_order");
  return ZLG_OK;
}

/* A number of elements; Python 2 wrote an L behind long ones. */
static int parse_size(struct parser *p, int64_t *size) {
  skip_space(p);
  struct parser before = *p;
  *size = 0;
  while (p->at < p->end && *p->at >= '0' && *p->at <= '9')
    if (__builtin_mul_overflow(*size, 10, size) || __builtin_add_overflow(*size, *p->at++ - '0', size))
      return fail_at(&before, "a size below 2^63");
  if (p->at == before.at) return fail_at(p, "a size in the shape");
  if (p->at < p->end && *p->at == 'L') p->at++;
  return ZLG_OK;
}

/* A tuple of at most two: (), (n,), (m, n). */
static int parse_shape(struct parser *p, struct header *header) {
  skip_space(p);
  struct parser before = *p;
  if (!take(p, '(')) return fail_at(p, "the shape, in parentheses");
  bool comma = true;
  for (header->dimensions = 0; !take(p, ')'); header->dimensions++) {
    if (!comma) return fail_at(p, "a comma or a closing parenthesis in the shape");
    if (header->dimensions == 2) return fail_at(&before, "a shape of at most two dimensions");
    int status = parse_size(p, &header->shape[header->dimensions]);
    if (status != ZLG_OK) return status;
    comma = take(p, ',');
  }
  if (header->dimensions == 1 && !comma) return fail_at(&before, "a tuple for the shape");
  return ZLG_OK;
}

/* One key and its value; `seen` has a bit for each key. */
static int parse_entry(struct parser *p, struct header *header, unsigned *seen) {
  static const char *const keys[] = {"descr", "fortran_order", "shape"};
  const char *word;
  size_t length;
  skip_space(p);
  struct parser before = *p;
  if (!take_string(p, &word, &length)) return fail_at(&before, "a key in quotes");
  unsigned key = 0;
  while (key < 3 && !is_word(word, length, keys[key])) key++;
  if (key == 3 || *seen & 1u << key) return fail_at(&before, "the keys descr, fortran_order and shape, once each");
  *seen |= 1u << key;
  if (!take(p, ':')) return fail_at(p, "a colon behind the key");
  if (key == 0) return parse_type(p, &header->type);
  return key == 1 ? parse_order(p, &header->order) : parse_shape(p, header);
}

static int parse_header(struct parser *p, struct header *header) {
  unsigned seen = 0;
  if (!take(p, '{')) return fail_at(p, "a Python dictionary");
  bool comma = true;
  while (!take(p, '}')) {
    if (!comma) return fail_at(p, "a comma or a closing brace");
    int status = parse_entry(p, header, &seen);
    if (status != ZLG_OK) return status;
    comma = take(p, ',');
  }
  if (seen != 7)
    return zlg_fail(p->context, ZLG_EFORMAT, "%s: the header lacks %s; expected descr, fortran_order and shape",
                    p->path,
                    !(seen & 1)   ? "descr"
                    : !(seen & 2) ? "fortran_order"
                                  : "shape");
  skip_space(p);
  return p->at == p->end ? ZLG_OK : fail_at(p, "nothing behind the dictionary");
}

/* --- reading --- */

/* The length of the header, and where its text starts. */
static int read_preamble(const zlg_context *context, const char *path, struct zlg_file *file, int64_t bytes,
                         int64_t *start, int64_t *length) {
  unsigned char head[PREAMBLE_MOST] = {0};
  const char *tail = zlg_path_tail(path);
  int status = zlg_file_read(file, 0, bytes < PREAMBLE_MOST ? bytes : PREAMBLE_MOST, head);
  if (status != ZLG_OK) return status;
  if (bytes == 0) return zlg_fail(context, ZLG_EFORMAT, "%s: is empty; expected a NumPy file (.npy)", tail);
  if (memcmp(head, MAGIC, MAGIC_BYTES) != 0 && bytes >= MAGIC_BYTES) return fail_magic(context, path, head, bytes);
  int major = head[MAGIC_BYTES], minor = head[MAGIC_BYTES + 1];
  *start = major == 1 ? 10 : 12;
  if (bytes < *start)
    return zlg_fail(context, ZLG_EFORMAT, "%s: has %" PRId64 " bytes only; expected a NumPy file (.npy)", tail, bytes);
  if (major < 1 || major > 3 || minor != 0)
    return zlg_fail(context, ZLG_EFORMAT, "%s: is a NumPy file of version %d.%d; expected 1.0, 2.0 or 3.0", tail, major,
                    minor);
  *length = head[8] | head[9] << 8;
  if (major > 1) *length |= (int64_t)head[10] << 16 | (int64_t)head[11] << 24;
  if (*length > HEADER_MOST)
    return zlg_fail(context, ZLG_EFORMAT, "%s: claims a header of %" PRId64 " bytes; expected at most %d", tail,
                    *length, HEADER_MOST);
  if (*length > bytes - *start)
    return zlg_fail(context, ZLG_EFORMAT,
                    "%s: is truncated: it claims a header of %" PRId64 " bytes from byte %" PRId64
                    " on and has %" PRId64 " bytes in all",
                    tail, *length, *start, bytes);
  return ZLG_OK;
}

static int read_header(const zlg_context *context, const char *path, struct zlg_file *file, int64_t bytes,
                       struct header *header, int64_t *payload) {
  int64_t start = 0, length = 0;
  int status = read_preamble(context, path, file, bytes, &start, &length);
  if (status != ZLG_OK) return status;
  char *text = zlg_malloc((size_t)length + 1);
  if (!text) return zlg_fail(context, ZLG_ENOMEM, "%s: no memory for the header", zlg_path_tail(path));
  status = zlg_file_read(file, start, length, text);
  struct parser parser = {context, zlg_path_tail(path), text, text, text + length};
  if (status == ZLG_OK) status = parse_header(&parser, header);
  zlg_free(text);
  *payload = start + length;
  return status;
}

/* A number is 1 x 1, a one-dimensional array of n is n x 1. More bytes than the elements need are nobody's, as in
 * NumPy, which puts several arrays into one file. */
static int make_matrix(zlg_context *context, zlg_matrix **matrix, const char *path, const struct header *header,
                       int64_t payload, int64_t bytes) {
  int64_t rows = header->dimensions > 0 ? header->shape[0] : 1, columns = header->dimensions > 1 ? header->shape[1] : 1;
  int status = zlg_matrix_new(context, zlg_path_tail(path), matrix, header->type, rows, columns, header->order,
                              zlg_matrix_least_ld(rows, columns, header->order));
  if (status != ZLG_OK) return status;
  int64_t span = zlg_matrix_span(*matrix);
  if (span <= bytes - payload) return ZLG_OK;
  zlg_matrix_release(*matrix);
  *matrix = NULL;
  return zlg_fail(context, ZLG_EFORMAT,
                  "%s: is truncated: its header says %" PRId64 " x %" PRId64 " elements of %s, %" PRId64
                  " bytes from byte %" PRId64 " on, and the file has %" PRId64 " bytes in all",
                  zlg_path_tail(path), rows, columns, zlg_type_name(header->type), span, payload, bytes);
}

int zlg_matrix_open_npy(zlg_context *context, zlg_matrix **matrix, const char *path) {
  static const char what[] = "zlg_matrix_open_npy";
  if (!matrix) return zlg_fail(context, ZLG_EINVAL, "%s: matrix is NULL; expected where to put the new matrix", what);
  *matrix = NULL;
  struct zlg_file *file;
  struct header header = {0};
  int64_t bytes = 0, payload = 0;
  int status = zlg_file_open(context, what, path, &file, &bytes);
  if (status != ZLG_OK) return status;
  status = read_header(context, path, file, bytes, &header, &payload);
  if (status == ZLG_OK) status = make_matrix(context, matrix, path, &header, payload, bytes);
  if (status == ZLG_OK)
    zlg_file_attach(file, *matrix, payload);
  else
    zlg_file_discard(file);
  return status;
}

/* --- writing --- */

/* The header as NumPy writes it: version 1.0, padded with spaces so that the elements start aligned (at byte 128; the
 * room that NumPy leaves for the first dimension to grow fits into the padding). Returns its bytes. */
static int64_t write_header(const zlg_matrix *matrix, char *text, size_t room) {
  int length = snprintf(
      text + 10, room - 10, "{'descr': '<f%zu', 'fortran_order': %s, 'shape': (%" PRId64 ", %" PRId64 "), }",
      zlg_type_size(matrix->type), matrix->order == ZLG_COLUMN_MAJOR ? "True" : "False", matrix->rows, matrix->columns);
  int total = (10 + length + 1 + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  memset(text + 10 + length, ' ', (size_t)(total - 10 - length - 1));
  text[total - 1] = '\n';
  memcpy(text, MAGIC "\x01\x00", MAGIC_BYTES + 2);
  text[8] = (char)((total - 10) & 255);
  text[9] = (char)((total - 10) >> 8);
  return total;
}

int zlg_matrix_create_npy(zlg_context *context, zlg_matrix **matrix, const char *path, zlg_type type, int64_t rows,
                          int64_t columns, zlg_order order) {
  static const char what[] = "zlg_matrix_create_npy";
  zlg_matrix *made = NULL;
  struct zlg_file *file = NULL;
  char text[4 * ALIGNMENT];
  int64_t bytes;
  if (matrix) *matrix = NULL;
  int status = zlg_matrix_new(context, what, matrix ? &made : NULL, type, rows, columns, order,
                              zlg_matrix_least_ld(rows, columns, order));
  if (status != ZLG_OK) return status;
  int64_t payload = write_header(made, text, sizeof text);
  if (__builtin_add_overflow(zlg_matrix_span(made), payload, &bytes))
    status =
        zlg_fail(context, ZLG_EOVERFLOW,
                 "%s: rows = %" PRId64 ", columns = %" PRId64 "; expected fewer than 2^63 bytes", what, rows, columns);
  if (status == ZLG_OK) status = zlg_file_create(context, what, path, bytes, &file);
  if (status == ZLG_OK) status = zlg_file_write(file, 0, payload, text);
  if (status == ZLG_OK) {
    zlg_file_attach(file, made, payload);
    *matrix = made;
    return ZLG_OK;
  }
  zlg_file_discard(file);
  zlg_matrix_release(made);
  return status;
}
