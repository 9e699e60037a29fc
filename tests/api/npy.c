/* .npy and raw files made byte by byte here, so that no other program is needed: every way to write a header that NumPy
 * accepts, every way to damage one, and the bytes that the library itself writes. */
#include "tests/support.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHECK(condition) zlg_check((condition), #condition, __FILE__, __LINE__)

static zlg_context *context;
static char *path;

static void write_bytes(const void *bytes, size_t count) {
  FILE *stream = fopen(path, "wb");
  if (!stream || fwrite(bytes, 1, count, stream) != count || fclose(stream) != 0) abort();
}

/* A file of the version with this header, as it is, and `count` doubles 1, 2, … (or floats) behind it. */
static void write_npy(int version, const char *header, size_t count, size_t size) {
  size_t length = strlen(header), start = version == 1 ? 10 : 12;
  unsigned char *bytes = calloc(1, start + length + count * size);
  memcpy(bytes, "\x93NUMPY", 6);
  bytes[6] = (unsigned char)version;
  for (size_t i = 8; i < start; i++) bytes[i] = (unsigned char)(length >> 8 * (i - 8));
  memcpy(bytes + start, header, length);
  for (size_t i = 0; i < count; i++) {
    double wide = (double)i + 1;
    float narrow = (float)wide;
    memcpy(bytes + start + length + i * size, size == 4 ? (void *)&narrow : (void *)&wide, size);
  }
  write_bytes(bytes, start + length + count * size);
  free(bytes);
}

static void check_words(const char *word, const char *what, int line) {
  const char *message = zlg_context_message(context);
  char text[700];
  snprintf(text, sizeof text, "%.100s: message \"%.450s\" lacks \"%s\"", what, message, word);
  zlg_check(strstr(message, word) != NULL, text, __FILE__, line);
}

static void check_refused(int status, const char *word, const char *what, int line) {
  zlg_matrix *m = (zlg_matrix *)path;
  zlg_check_status(zlg_matrix_open_npy(context, &m, path), status, context, what, __FILE__, line);
  zlg_check(m == NULL, what, __FILE__, line);
  check_words(word, what, line);
  check_words(path, what, line);
}
#define CHECK_REFUSED(status, word, what) check_refused(status, word, what, __LINE__)

/* Opens and checks shape, order, type and every element: element e of the file is e + 1. */
static void check_opens(const char *what, zlg_type type, int64_t rows, int64_t columns, zlg_order order, int line) {
  zlg_matrix *m;
  zlg_matrix_info info;
  zlg_check_status(zlg_matrix_open_npy(context, &m, path), ZLG_OK, context, what, __FILE__, line);
  if (!m) return;
  CHECK(zlg_matrix_get_info(m, &info) == ZLG_OK);
  zlg_check(info.type == type && info.rows == rows && info.columns == columns && info.order == order, what, __FILE__,
            line);
  CHECK(!info.writable && info.data == NULL && strcmp(info.path, path) == 0);
  int64_t count = rows * columns, ld = columns ? columns : 1, wrong = 0;
  double *block = calloc((size_t)count + 1, sizeof *block);
  ZLG_CHECK_OK(zlg_matrix_read(m, 0, rows, 0, columns, ZLG_ROW_MAJOR, ld, block), context);
  for (int64_t i = 0; i < rows; i++)
    for (int64_t k = 0; k < columns; k++) {
      double want = (double)(order == ZLG_ROW_MAJOR ? i * columns + k : i + k * rows) + 1;
      wrong += !(zlg_test_get(type, ZLG_ROW_MAJOR, ld, block, i, k) == want);
    }
  zlg_check(wrong == 0, what, __FILE__, line);
  free(block);
  zlg_matrix_release(m);
}

static void headers_as_numpy_accepts_them(void) {
  static const struct {
    const char *header;
    zlg_type type;
    int64_t rows, columns;
    zlg_order order;
  } rows[] = {
      {"{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }         \n", ZLG_F64, 3, 4, ZLG_ROW_MAJOR},
      {"{'descr': '<f4', 'fortran_order': True, 'shape': (3, 4), }\n", ZLG_F32, 3, 4, ZLG_COLUMN_MAJOR},
      {"{'shape': (3, 4), 'descr': '<f4', 'fortran_order': False}", ZLG_F32, 3, 4, ZLG_ROW_MAJOR},
      {"{\"descr\":\"<f8\",\"fortran_order\":True,\"shape\":(3,4)}\n", ZLG_F64, 3, 4, ZLG_COLUMN_MAJOR},
      {"  {  'fortran_order'  :  False  ,\n\t'shape' : ( 3 , 4 , ) ,'descr': '<f8' , } \r\n\n", ZLG_F64, 3, 4,
       ZLG_ROW_MAJOR},
      {"{'descr': '<f8', 'fortran_order': False, 'shape': (7,), }\n", ZLG_F64, 7, 1, ZLG_ROW_MAJOR},
      {"{'descr': '<f8', 'fortran_order': True, 'shape': (7,), }\n", ZLG_F64, 7, 1, ZLG_COLUMN_MAJOR},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (), }\n", ZLG_F32, 1, 1, ZLG_ROW_MAJOR},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (3L, 4L), }\n", ZLG_F32, 3, 4, ZLG_ROW_MAJOR},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (0, 4), }\n", ZLG_F32, 0, 4, ZLG_ROW_MAJOR},
      {"{'descr': '<f4', 'fortran_order': True, 'shape': (4, 0), }\n", ZLG_F32, 4, 0, ZLG_COLUMN_MAJOR},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    for (int version = 1; version <= 3; version++) {
      write_npy(version, rows[i].header, (size_t)(rows[i].rows * rows[i].columns), zlg_type_size(rows[i].type));
      check_opens(rows[i].header, rows[i].type, rows[i].rows, rows[i].columns, rows[i].order, __LINE__);
    }
}

static void headers_that_are_refused(void) {
  static const struct {
    const char *header, *word;
  } rows[] = {
      {"{'descr': '>f4', 'fortran_order': False, 'shape': (2,), }", "'>f4'; expected '<f4' or '<f8'"},
      {"{'descr': '=f4', 'fortran_order': False, 'shape': (2,), }", "'=f4'"},
      {"{'descr': '<f2', 'fortran_order': False, 'shape': (2,), }", "'<f2'"},
      {"{'descr': '<i8', 'fortran_order': False, 'shape': (2,), }", "'<i8'"},
      {"{'descr': '<c8', 'fortran_order': False, 'shape': (2,), }", "'<c8'"},
      {"{'descr': '|O', 'fortran_order': False, 'shape': (2,), }", "'|O'"},
      {"{'descr': '<f88', 'fortran_order': False, 'shape': (2,), }", "'<f88'"},
      {"{'descr': '', 'fortran_order': False, 'shape': (2,), }", "dtype ''"},
      {"{'descr': [('x', '<f4'), ('y', '<f4')], 'fortran_order': False, 'shape': (2,), }", "[('x', '<f4')"},
      {"{'descr': ('<f4', (3,)), 'fortran_order': False, 'shape': (2,), }", "('<f4', (3,))"},
      {"{'descr': '<f4\x1b[2J', 'fortran_order': False, 'shape': (2,), }", "'<f4?[2J'"},
      {"{'descr': '<f4', 'fortran_order': 1, 'shape': (2,), }", "True or False"},
      {"{'descr': '<f4', 'fortran_order': false, 'shape': (2,), }", "True or False"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3, 4), }", "(2, 3, 4)"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (2), }", "a tuple"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': 2, }", "parentheses"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': [2, 3], }", "parentheses"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (-2,), }", "-2"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (2.5,), }", ".5"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (,), }", "a size"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (2 3), }", "a comma"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,3", "ends early"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775808,), }", "below 2^63"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999999,), }", "below 2^63"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,)", "ends early"},
      {"{'descr': '<f4', 'fortran_order': False, }", "lacks shape"},
      {"{'descr': '<f4', 'shape': (2,), }", "lacks fortran_order"},
      {"{'fortran_order': False, 'shape': (2,), }", "lacks descr"},
      {"{}", "lacks descr"},
      {"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", "once each"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'more': 1}", "'more'"},
      {"{'descr': '<f4' 'fortran_order': False, 'shape': (2,)}", "a comma"},
      {"{'descr' '<f4', 'fortran_order': False, 'shape': (2,)}", "a colon"},
      {"{descr: '<f4', 'fortran_order': False, 'shape': (2,)}", "in quotes"},
      {"{'descr': '<f4, 'fortran_order': False, 'shape': (2,)}", "'<f4, '"},
      {"{'descr: <f4, fortran_order: False, shape: (2,)}", "in quotes"},
      {"{'descr': '<\\x66\\x34', 'fortran_order': False, 'shape': (2,)}", "the dtype"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} x", "nothing behind"},
      {"['descr', '<f4']", "a Python dictionary"},
      {"", "ends early"},
      {"          \n", "ends early"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    for (int version = 1; version <= 3; version++) {
      write_npy(version, rows[i].header, 24, 8);
      CHECK_REFUSED(ZLG_EFORMAT, rows[i].word, rows[i].header);
    }
}

static void shapes_whose_product_overflows(void) {
  zlg_matrix *m;
  write_npy(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296), }", 24, 8);
  ZLG_CHECK_STATUS(zlg_matrix_open_npy(context, &m, path), ZLG_EOVERFLOW, context);
  check_words("rows = 4294967296", "overflow", __LINE__);
  write_npy(1, "{'descr': '<f8', 'fortran_order': True, 'shape': (9223372036854775807, 1), }", 24, 8);
  ZLG_CHECK_STATUS(zlg_matrix_open_npy(context, &m, path), ZLG_EOVERFLOW, context);
}

static void truncated_and_longer_files(void) {
  static const char header[] = "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }\n";
  size_t whole = 10 + strlen(header) + 12 * 8;
  for (size_t bytes = 0; bytes < whole; bytes++) {
    write_npy(1, header, 12, 8);
    CHECK(truncate(path, (off_t)bytes) == 0);
    const char *word = bytes == 0 ? "is empty" : bytes < 10 ? "bytes only" : "is truncated";
    CHECK_REFUSED(ZLG_EFORMAT, word, "a truncated file");
    if (bytes >= 10 + strlen(header)) { /* both sizes */
      char number[32];
      snprintf(number, sizeof number, "has %zu bytes in all", bytes);
      CHECK_REFUSED(ZLG_EFORMAT, number, "a truncated file");
      CHECK_REFUSED(ZLG_EFORMAT, "3 x 4 elements of f64, 96 bytes", "a truncated file");
    }
  }
  /* NumPy puts several arrays into one file and reads the first. */
  write_npy(1, header, 20, 8);
  check_opens("a longer file", ZLG_F64, 3, 4, ZLG_ROW_MAJOR, __LINE__);
}

static void header_lengths_are_limited(void) {
  char bytes[64] = "\x93NUMPY\x02";
  memcpy(bytes + 8, "\xff\xff\xff\xff", 4);
  write_bytes(bytes, sizeof bytes);
  CHECK_REFUSED(ZLG_EFORMAT, "a header of 4294967295 bytes; expected at most", "a huge header");
  memcpy(bytes + 8, "\x00\x00\x00\x80", 4);
  write_bytes(bytes, sizeof bytes);
  CHECK_REFUSED(ZLG_EFORMAT, "a header of 2147483648 bytes", "a negative header");
  memcpy(bytes + 8, "\x35\x00\x00\x00", 4); /* 12 + 53 = 65 */
  write_bytes(bytes, sizeof bytes);
  CHECK_REFUSED(ZLG_EFORMAT, "has 64 bytes in all", "a header longer than the file");
  /* Padding is NumPy's to choose. */
  char *header = malloc(65536);
  memset(header, ' ', 65535);
  header[65535] = '\0';
  static const char words[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }";
  memcpy(header, words, strlen(words));
  for (int version = 1; version <= 3; version++) {
    write_npy(version, header, 12, 4);
    check_opens("a padded header", ZLG_F32, 3, 4, ZLG_ROW_MAJOR, __LINE__);
  }
  free(header);
}

static void other_versions(void) {
  static const char header[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }\n";
  write_npy(4, header, 12, 4);
  CHECK_REFUSED(ZLG_EFORMAT, "version 4.0; expected 1.0, 2.0 or 3.0", "version 4");
  write_npy(0, header, 12, 4);
  CHECK_REFUSED(ZLG_EFORMAT, "version 0.0", "version 0");
  write_npy(1, header, 12, 4);
  int fd = open(path, O_WRONLY);
  CHECK(pwrite(fd, "\x07", 1, 7) == 1);
  close(fd);
  CHECK_REFUSED(ZLG_EFORMAT, "version 1.7", "version 1.7");
}

static void foreign_files_are_named(void) {
  static const struct {
    const char *start;
    size_t length;
    const char *word;
  } rows[] = {{"\x89HDF\r\n\x1a\n", 8, "HDF5"},
              {"PK\x03\x04", 4, ".npz"},
              {"\x1f\x8b\x08", 3, "gzip"},
              {"\x28\xb5\x2f\xfd", 4, "zstd"},
              {"BZh9", 4, "bzip2"},
              {"CDF\x01", 4, "netCDF"},
              {"MATLAB 5.0 MAT-file", 19, "MATLAB"},
              {"\x80\x04\x95", 3, "pickle"},
              {"PAR1", 4, "Parquet"},
              {"x,y,z\n1,2,3\n", 12, "78 2c 79 2c 7a 0a"},
              {"\x93NUMPX", 6, "93 4e 55 4d 50 58"}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    char bytes[64] = {0};
    memcpy(bytes, rows[i].start, rows[i].length);
    write_bytes(bytes, sizeof bytes);
    CHECK_REFUSED(ZLG_EFORMAT, rows[i].word, rows[i].word);
    CHECK_REFUSED(ZLG_EFORMAT, "expected a NumPy file", rows[i].word);
  }
}

/* A changed byte anywhere in the header is refused or still means a matrix that fits the file; nothing else may happen
 * (the sanitizers look on). */
static void any_byte_of_a_header_may_be_damaged(void) {
  static const char header[] = "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }\n";
  write_npy(1, header, 12, 8);
  int fd = open(path, O_RDWR), refused = 0, opened = 0;
  for (off_t at = 0; at < (off_t)(10 + strlen(header)); at++) {
    char good;
    CHECK(pread(fd, &good, 1, at) == 1);
    for (int value = 0; value < 256; value++) {
      char bad = (char)value;
      if (bad == good) continue;
      CHECK(pwrite(fd, &bad, 1, at) == 1);
      zlg_matrix *m = NULL;
      int status = zlg_matrix_open_npy(context, &m, path);
      if (status == ZLG_OK)
        opened++;
      else {
        refused++;
        CHECK(status == ZLG_EFORMAT && m == NULL);
      }
      zlg_matrix_release(m);
    }
    CHECK(pwrite(fd, &good, 1, at) == 1);
  }
  close(fd);
  CHECK(refused > 15000 && opened < 500);
  check_opens("the undamaged file", ZLG_F64, 3, 4, ZLG_ROW_MAJOR, __LINE__);
}

/* Twelve gigabytes of nothing, but for the last row. */
static void sizes_beyond_32_bits(void) {
  static const char header[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (1500000000, 2), }\n";
  write_npy(1, header, 0, 4);
  off_t payload = (off_t)(10 + strlen(header)), last = payload + 1499999999L * 8;
  const float row[2] = {3, 4};
  float got[4] = {9, 9, 9, 9};
  if (truncate(path, last + 8) != 0) { /* a file system without room for the size, not for the bytes */
    printf("  (no sparse file of 12 GB here)\n");
    return;
  }
  int fd = open(path, O_WRONLY);
  CHECK(pwrite(fd, row, sizeof row, last) == sizeof row);
  close(fd);
  zlg_matrix *m;
  ZLG_CHECK_OK(zlg_matrix_open_npy(context, &m, path), context);
  ZLG_CHECK_OK(zlg_matrix_read(m, 1499999998, 2, 0, 2, ZLG_ROW_MAJOR, 2, got), context);
  CHECK(got[0] == 0 && got[1] == 0 && got[2] == 3 && got[3] == 4);
  ZLG_CHECK_OK(zlg_matrix_read(m, 1499999998, 2, 1, 1, ZLG_COLUMN_MAJOR, 2, got), context);
  CHECK(got[0] == 0 && got[1] == 4);
  zlg_matrix_release(m);
  CHECK(truncate(path, 0) == 0);
}

/* --- what the library writes --- */

static void created_files_are_numpys_bytes(void) {
  static const char row_major[] = "\x93NUMPY\x01\x00\x76\x00{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"
                                  "                                                          \n";
  static const char column_major[] =
      "\x93NUMPY\x01\x00\x76\x00{'descr': '<f8', 'fortran_order': True, 'shape': (2, 3), }"
      "                                                           \n";
  const float narrow[6] = {1, 2, 3, 4, 5, 6}, narrow_file[6] = {1, 2, 3, 4, 5, 6};
  const double wide[6] = {1, 2, 3, 4, 5, 6}, wide_file[6] = {1, 4, 2, 5, 3, 6};
  unsigned char bytes[256];
  CHECK(sizeof row_major == 129 && sizeof column_major == 129);
  for (int which = 0; which < 2; which++) {
    zlg_matrix *m;
    zlg_type type = which ? ZLG_F64 : ZLG_F32;
    ZLG_CHECK_OK(zlg_matrix_create_npy(context, &m, path, type, 2, 3, which ? ZLG_COLUMN_MAJOR : ZLG_ROW_MAJOR),
                 context);
    ZLG_CHECK_OK(zlg_matrix_write(m, 0, 2, 0, 3, ZLG_ROW_MAJOR, 3, which ? (const void *)wide : narrow), context);
    ZLG_CHECK_OK(zlg_matrix_close(m), context);
    zlg_matrix_release(m);
    FILE *stream = fopen(path, "rb");
    size_t got = fread(bytes, 1, sizeof bytes, stream), payload = 6 * zlg_type_size(type);
    fclose(stream);
    CHECK(got == 128 + payload);
    CHECK(memcmp(bytes, which ? column_major : row_major, 128) == 0);
    CHECK(memcmp(bytes + 128, which ? (const void *)wide_file : narrow_file, payload) == 0);
  }
}

/* Every digit that the shape may have, and nothing at all. */
static void created_headers_are_aligned_and_read_back(void) {
  const int64_t sizes[] = {0, 1, 9, 10, 99999, 100000};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    for (int o = ZLG_ROW_MAJOR; o <= ZLG_COLUMN_MAJOR; o++) {
      zlg_matrix *m;
      zlg_matrix_info info;
      ZLG_CHECK_OK(zlg_matrix_create_npy(context, &m, path, ZLG_F32, sizes[i], 2, (zlg_order)o), context);
      ZLG_CHECK_OK(zlg_matrix_close(m), context);
      zlg_matrix_release(m);
      struct stat state;
      CHECK(stat(path, &state) == 0 && (state.st_size - sizes[i] * 8) % 64 == 0);
      ZLG_CHECK_OK(zlg_matrix_open_npy(context, &m, path), context);
      CHECK(zlg_matrix_get_info(m, &info) == ZLG_OK);
      CHECK(info.rows == sizes[i] && info.columns == 2 && info.order == (zlg_order)o);
      zlg_matrix_release(m);
    }
}

/* --- raw --- */

static void raw_files_are_what_the_caller_says(void) {
  double data[40];
  for (int i = 0; i < 40; i++) data[i] = i;
  write_bytes(data, sizeof data);
  zlg_matrix *m;
  double block[6];
  /* 3 x 2, rows 8 apart, from the fifth element on. */
  ZLG_CHECK_OK(zlg_matrix_open_raw(context, &m, path, ZLG_F64, 3, 2, ZLG_ROW_MAJOR, 8, 40), context);
  ZLG_CHECK_OK(zlg_matrix_read(m, 0, 3, 0, 2, ZLG_ROW_MAJOR, 2, block), context);
  CHECK(block[0] == 5 && block[1] == 6 && block[2] == 13 && block[5] == 22);
  zlg_matrix_release(m);
  ZLG_CHECK_OK(zlg_matrix_open_raw(context, &m, path, ZLG_F64, 3, 2, ZLG_COLUMN_MAJOR, 0, 0), context);
  ZLG_CHECK_OK(zlg_matrix_read(m, 0, 3, 0, 2, ZLG_ROW_MAJOR, 2, block), context);
  CHECK(block[0] == 0 && block[1] == 3 && block[4] == 2 && block[5] == 5);
  zlg_matrix_release(m);
  ZLG_CHECK_OK(zlg_matrix_open_raw(context, &m, path, ZLG_F64, 20, 2, ZLG_ROW_MAJOR, 0, 0), context);
  zlg_matrix_release(m);
  ZLG_CHECK_STATUS(zlg_matrix_open_raw(context, &m, path, ZLG_F64, 20, 2, ZLG_ROW_MAJOR, 0, 1), ZLG_EFORMAT, context);
  check_words("has 320 bytes; expected at least 321", "raw", __LINE__);
  CHECK(m == NULL);
  ZLG_CHECK_STATUS(zlg_matrix_open_raw(context, &m, path, ZLG_F64, 1, 1, ZLG_ROW_MAJOR, 0, -1), ZLG_EINVAL, context);
  check_words("offset = -1", "raw", __LINE__);
  ZLG_CHECK_STATUS(zlg_matrix_open_raw(context, &m, path, ZLG_F64, 1, 1, ZLG_ROW_MAJOR, 0, INT64_MAX), ZLG_EOVERFLOW,
                   context);
  check_words("offset = 9223372036854775807", "raw", __LINE__);
  ZLG_CHECK_STATUS(zlg_matrix_open_raw(context, &m, path, ZLG_F64, 2, 3, ZLG_ROW_MAJOR, 2, 0), ZLG_EINVAL, context);
  check_words("zlg_matrix_open_raw: ld = 2", "raw", __LINE__);
}

static void raw_files_are_created_bare(void) {
  zlg_matrix *m;
  const float block[4] = {1, 2, 3, 4};
  float got[4];
  ZLG_CHECK_OK(zlg_matrix_create_raw(context, &m, path, ZLG_F32, 2, 2, ZLG_COLUMN_MAJOR), context);
  ZLG_CHECK_OK(zlg_matrix_write(m, 0, 2, 0, 2, ZLG_ROW_MAJOR, 2, block), context);
  ZLG_CHECK_OK(zlg_matrix_close(m), context);
  zlg_matrix_release(m);
  FILE *stream = fopen(path, "rb");
  CHECK(fread(got, sizeof *got, 4, stream) == 4 && fgetc(stream) == EOF);
  fclose(stream);
  CHECK(got[0] == 1 && got[1] == 3 && got[2] == 2 && got[3] == 4);
  ZLG_CHECK_OK(zlg_matrix_create_raw(context, &m, path, ZLG_F32, 0, 2, ZLG_ROW_MAJOR), context);
  ZLG_CHECK_OK(zlg_matrix_close(m), context);
  zlg_matrix_release(m);
  struct stat state;
  CHECK(stat(path, &state) == 0 && state.st_size == 0);
}

int main(int argc, char **argv) {
  static const struct zlg_test_case cases[] = {
      {"headers as NumPy accepts them", headers_as_numpy_accepts_them},
      {"headers that are refused", headers_that_are_refused},
      {"shapes whose product overflows", shapes_whose_product_overflows},
      {"truncated and longer files", truncated_and_longer_files},
      {"header lengths are limited", header_lengths_are_limited},
      {"other versions", other_versions},
      {"foreign files are named", foreign_files_are_named},
      {"any byte of a header may be damaged", any_byte_of_a_header_may_be_damaged},
      {"sizes beyond 32 bits", sizes_beyond_32_bits},
      {"created files are NumPy's bytes", created_files_are_numpys_bytes},
      {"created headers are aligned and read back", created_headers_are_aligned_and_read_back},
      {"raw files are what the caller says", raw_files_are_what_the_caller_says},
      {"raw files are created bare", raw_files_are_created_bare},
      {NULL, NULL}};
  path = zlg_test_path("array.npy");
  context = zlg_test_context();
  int result = zlg_test_main(argc, argv, cases);
  zlg_context_release(context);
  free(path);
  return result;
}
