/* Matrices: what is refused and in which words, blocks in every order from memory and files against a plain loop,
 * overlap against marking every byte, and each constructor under a memory that runs out. */
#include "tests/support.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/core/matrix.h"
#include "src/core/memory.h"

#define CHECK(condition) zlg_check((condition), #condition, __FILE__, __LINE__)

static zlg_context *context;

/* Fails unless the call gives `status` and a message with both words in it. */
#define CHECK_REFUSED(call, status, word, other)                                                                       \
  do {                                                                                                                 \
    ZLG_CHECK_STATUS(call, status, context);                                                                           \
    check_words(word, other, __LINE__);                                                                                \
  } while (0)

static void check_words(const char *word, const char *other, int line) {
  const char *message = zlg_context_message(context);
  char text[700];
  snprintf(text, sizeof text, "message \"%.500s\" lacks \"%s\" or \"%s\"", message, word, other);
  zlg_check(strstr(message, word) && strstr(message, other), text, __FILE__, line);
}

/* --- what a view may be --- */

static void wrap_refuses_bad_shapes(void) {
  float data[16] = {0};
  zlg_matrix *m = (zlg_matrix *)data; /* anything but NULL: it must be reset */
  CHECK_REFUSED(zlg_matrix_wrap(context, &m, ZLG_F32, 2, 3, ZLG_ROW_MAJOR, 2, data), ZLG_EINVAL,
                "zlg_matrix_wrap: ld = 2 for a row-major matrix of 3 columns", "expected at least 3");
  CHECK(m == NULL);
  CHECK_REFUSED(zlg_matrix_wrap(context, &m, ZLG_F32, 4, 3, ZLG_COLUMN_MAJOR, 3, data), ZLG_EINVAL,
                "ld = 3 for a column-major matrix of 4 rows", "expected at least 4");
  CHECK_REFUSED(zlg_matrix_wrap(context, &m, ZLG_F32, 2, 3, ZLG_ROW_MAJOR, 0, data), ZLG_EINVAL, "ld = 0", "3");
  CHECK_REFUSED(zlg_matrix_wrap(context, &m, ZLG_F32, 2, 3, ZLG_ROW_MAJOR, -3, data), ZLG_EINVAL, "ld = -3", "3");
  CHECK_REFUSED(zlg_matrix_wrap(context, &m, ZLG_F32, -1, 3, ZLG_ROW_MAJOR, 3, data), ZLG_EINVAL, "rows = -1",
                "0 or more");
  CHECK_REFUSED(zlg_matrix_wrap(context, &m, ZLG_F32, 1, -3, ZLG_ROW_MAJOR, 3, data), ZLG_EINVAL, "columns = -3",
                "0 or more");
  CHECK_REFUSED(zlg_matrix_wrap(context, &m, (zlg_type)7, 1, 3, ZLG_ROW_MAJOR, 3, data), ZLG_EINVAL, "type = 7",
                "ZLG_F32");
  CHECK_REFUSED(zlg_matrix_wrap(context, &m, ZLG_F32, 1, 3, (zlg_order)0, 3, data), ZLG_EINVAL, "order = 0",
                "ZLG_ROW_MAJOR");
}

static void wrap_refuses_bad_data(void) {
  double data[16] = {0};
  zlg_matrix *m = NULL;
  CHECK_REFUSED(zlg_matrix_wrap(context, &m, ZLG_F32, 2, 3, ZLG_ROW_MAJOR, 3, NULL), ZLG_EINVAL, "data is NULL",
                "24 bytes");
  CHECK_REFUSED(zlg_matrix_wrap_const(context, &m, ZLG_F32, 2, 3, ZLG_ROW_MAJOR, 3, (char *)data + 2), ZLG_EINVAL,
                "zlg_matrix_wrap_const: data", "aligned to the 4 bytes");
  CHECK_REFUSED(zlg_matrix_wrap(context, &m, ZLG_F64, 2, 3, ZLG_ROW_MAJOR, 3, (char *)data + 4), ZLG_EINVAL, "data",
                "aligned to the 8 bytes");
  CHECK_REFUSED(zlg_matrix_wrap(context, &m, ZLG_F64, 1, 3, ZLG_ROW_MAJOR, 3, (void *)(UINTPTR_MAX - 15)),
                ZLG_EOVERFLOW, "data", "address space");
  CHECK_REFUSED(zlg_matrix_wrap(context, NULL, ZLG_F64, 1, 3, ZLG_ROW_MAJOR, 3, data), ZLG_EINVAL, "matrix is NULL",
                "");
  CHECK(zlg_matrix_wrap(NULL, &m, ZLG_F64, 1, 3, ZLG_ROW_MAJOR, 3, data) == ZLG_EINVAL);
  CHECK(strstr(zlg_context_message(NULL), "context is NULL") != NULL);
}

static void wrap_refuses_sizes_that_overflow(void) {
  double data[4] = {0};
  zlg_matrix *m = NULL;
  const int64_t big = INT64_C(1) << 32;
  CHECK_REFUSED(zlg_matrix_wrap(context, &m, ZLG_F32, big, big, ZLG_ROW_MAJOR, big, data), ZLG_EOVERFLOW,
                "rows = 4294967296", "2^63");
  CHECK_REFUSED(zlg_matrix_wrap(context, &m, ZLG_F64, big, big / 16, ZLG_ROW_MAJOR, big / 16, data), ZLG_EOVERFLOW,
                "columns = 268435456", "f64"); /* 2^60 elements are 2^63 bytes: only the bytes overflow */
  CHECK_REFUSED(zlg_matrix_wrap(context, &m, ZLG_F32, 2, 1, ZLG_ROW_MAJOR, INT64_MAX, data), ZLG_EOVERFLOW,
                "ld = 9223372036854775807", "f32");
  CHECK_REFUSED(zlg_matrix_wrap(context, &m, ZLG_F32, INT64_MAX, 1, ZLG_COLUMN_MAJOR, INT64_MAX, data), ZLG_EOVERFLOW,
                "rows = 9223372036854775807", "f32");
}

static void views_say_what_they_are(void) {
  float data[12] = {0};
  zlg_matrix *m = NULL;
  zlg_matrix_info info;
  ZLG_CHECK_OK(zlg_matrix_wrap_const(context, &m, ZLG_F32, 3, 2, ZLG_COLUMN_MAJOR, 5, data), context);
  ZLG_CHECK_OK(zlg_matrix_get_info(m, &info), context);
  CHECK(info.type == ZLG_F32 && info.rows == 3 && info.columns == 2 && info.order == ZLG_COLUMN_MAJOR && info.ld == 5);
  CHECK(info.data == data && info.path == NULL && info.writable == 0);
  CHECK(zlg_matrix_span(m) == 8 * 4);
  CHECK_REFUSED(zlg_matrix_write(m, 0, 1, 0, 1, ZLG_ROW_MAJOR, 1, data + 11), ZLG_EREADONLY, "zlg_matrix_write",
                "read-only");
  CHECK_REFUSED(zlg_matrix_get_info(m, NULL), ZLG_EINVAL, "info is NULL", "");
  ZLG_CHECK_OK(zlg_matrix_close(m), context);
  zlg_matrix_release(m);
  ZLG_CHECK_OK(zlg_matrix_wrap(context, &m, ZLG_F64, 0, 3, ZLG_ROW_MAJOR, 3, NULL), context);
  CHECK(zlg_matrix_span(m) == 0);
  ZLG_CHECK_OK(zlg_matrix_read(m, 0, 0, 1, 2, ZLG_COLUMN_MAJOR, 0, NULL), context);
  zlg_matrix_release(m);
  zlg_matrix_release(NULL);
  CHECK(zlg_matrix_get_info(NULL, &info) == ZLG_EINVAL && zlg_matrix_close(NULL) == ZLG_EINVAL);
}

static void blocks_outside_are_refused(void) {
  float data[12] = {0}, block[12] = {0};
  zlg_matrix *m = NULL;
  ZLG_CHECK_OK(zlg_matrix_wrap(context, &m, ZLG_F32, 4, 3, ZLG_ROW_MAJOR, 3, data), context);
  CHECK_REFUSED(zlg_matrix_read(m, 2, 3, 0, 3, ZLG_ROW_MAJOR, 3, block), ZLG_EINVAL, "3 rows from row 2 on", "4 rows");
  CHECK_REFUSED(zlg_matrix_read(m, 0, 4, 1, 3, ZLG_ROW_MAJOR, 3, block), ZLG_EINVAL, "3 columns from column 1 on",
                "3 columns");
  CHECK_REFUSED(zlg_matrix_read(m, -1, 2, 0, 3, ZLG_ROW_MAJOR, 3, block), ZLG_EINVAL, "from row -1", "4 rows");
  CHECK_REFUSED(zlg_matrix_read(m, 0, -2, 0, 3, ZLG_ROW_MAJOR, 3, block), ZLG_EINVAL, "-2 rows", "4 rows");
  CHECK_REFUSED(zlg_matrix_read(m, 2, INT64_MAX, 0, 3, ZLG_ROW_MAJOR, 3, block), ZLG_EINVAL, "from row 2", "4 rows");
  CHECK_REFUSED(zlg_matrix_read(m, INT64_MAX, INT64_MAX, 0, 3, ZLG_ROW_MAJOR, 3, block), ZLG_EINVAL, "rows", "4 rows");
  CHECK_REFUSED(zlg_matrix_read(m, 0, 2, 0, 3, ZLG_ROW_MAJOR, 2, block), ZLG_EINVAL, "zlg_matrix_read: ld = 2", "3");
  CHECK_REFUSED(zlg_matrix_read(m, 0, 2, 0, 3, (zlg_order)9, 3, block), ZLG_EINVAL, "order = 9", "");
  CHECK_REFUSED(zlg_matrix_read(m, 0, 2, 0, 3, ZLG_ROW_MAJOR, INT64_MAX, block), ZLG_EOVERFLOW, "ld = ", "2^63");
  CHECK_REFUSED(zlg_matrix_read(m, 0, 2, 0, 3, ZLG_ROW_MAJOR, 3, NULL), ZLG_EINVAL, "block is NULL", "24 bytes");
  CHECK_REFUSED(zlg_matrix_write(m, 0, 2, 0, 3, ZLG_ROW_MAJOR, 3, (char *)block + 1), ZLG_EINVAL,
                "block = ", "aligned");
  CHECK(zlg_matrix_read(NULL, 0, 0, 0, 0, ZLG_ROW_MAJOR, 1, NULL) == ZLG_EINVAL);
  zlg_matrix_release(m);
}

/* --- messages --- */

static void messages_belong_to_their_context(void) {
  double data[2] = {0};
  zlg_matrix *m = NULL;
  zlg_context *other = zlg_test_context();
  CHECK(zlg_matrix_wrap(context, &m, ZLG_F64, -1, 1, ZLG_ROW_MAJOR, 1, data) == ZLG_EINVAL);
  CHECK(strcmp(zlg_context_message(other), "") == 0);
  CHECK(zlg_matrix_wrap(other, &m, ZLG_F64, 1, -2, ZLG_ROW_MAJOR, 1, data) == ZLG_EINVAL);
  CHECK(strstr(zlg_context_message(context), "rows = -1") != NULL);
  CHECK(strstr(zlg_context_message(other), "columns = -2") != NULL);
  CHECK(strstr(zlg_context_message(NULL), "columns = -2") != NULL);
  zlg_context_release(other);
  /* The new one may well stand where the old one stood. */
  for (int i = 0; i < 20; i++) {
    other = zlg_test_context();
    CHECK(strcmp(zlg_context_message(other), "") == 0);
    CHECK(zlg_matrix_wrap(other, &m, ZLG_F64, 1, -2, ZLG_ROW_MAJOR, 1, data) == ZLG_EINVAL);
    zlg_context_release(other);
  }
}

static void a_matrix_keeps_its_context(void) {
  double data[2] = {1, 2}, got = 0;
  zlg_matrix *m = NULL;
  zlg_context *other = zlg_test_context();
  ZLG_CHECK_OK(zlg_matrix_wrap(other, &m, ZLG_F64, 2, 1, ZLG_ROW_MAJOR, 1, data), other);
  zlg_context_release(other);
  ZLG_CHECK_OK(zlg_matrix_read(m, 1, 1, 0, 1, ZLG_ROW_MAJOR, 1, &got), context);
  CHECK(got == 2);
  CHECK(zlg_set_allocator(NULL) == ZLG_ESTATE);
  zlg_matrix_release(m);
}

/* --- blocks --- */

static const zlg_order orders[] = {ZLG_ROW_MAJOR, ZLG_COLUMN_MAJOR};

/* Exact in binary32, and hardly ever the same at two places. */
static double value_at(int64_t i, int64_t k) {
  return (double)((i * 4099 + k * 17) % 1048573 + 1);
}

static int64_t least_ld(int64_t rows, int64_t columns, zlg_order order) {
  return zlg_matrix_least_ld(rows, columns, order);
}

/* A view of fresh memory (*memory is to be freed), or a file, created and not yet closed. */
enum home { IN_MEMORY, IN_PADDED_MEMORY, IN_NPY, IN_RAW, HOMES };

static zlg_matrix *make_home(enum home home, zlg_type type, int64_t rows, int64_t columns, zlg_order order,
                             void **memory) {
  static int serial;
  zlg_matrix *m = NULL;
  int64_t ld = least_ld(rows, columns, order) + (home == IN_PADDED_MEMORY ? 5 : 0);
  char name[32];
  snprintf(name, sizeof name, "block-%d", serial++);
  char *path = zlg_test_path(name);
  *memory = NULL;
  if (home == IN_NPY)
    ZLG_CHECK_OK(zlg_matrix_create_npy(context, &m, path, type, rows, columns, order), context);
  else if (home == IN_RAW)
    ZLG_CHECK_OK(zlg_matrix_create_raw(context, &m, path, type, rows, columns, order), context);
  else {
    *memory = calloc((size_t)(ld * (order == ZLG_ROW_MAJOR ? rows : columns)), zlg_type_size(type));
    ZLG_CHECK_OK(zlg_matrix_wrap(context, &m, type, rows, columns, order, ld, *memory), context);
  }
  free(path);
  return m;
}

/* Writes the block with value_at() through zlg_matrix_write, from memory of the given order and ld. */
static void write_block(zlg_matrix *m, int64_t i0, int64_t rows, int64_t k0, int64_t columns, zlg_order order,
                        int64_t pad) {
  int64_t ld = least_ld(rows, columns, order) + pad;
  size_t elements = (size_t)(ld * (order == ZLG_ROW_MAJOR ? rows : columns));
  void *block = calloc(elements, zlg_type_size(m->type));
  for (int64_t i = 0; i < rows; i++)
    for (int64_t k = 0; k < columns; k++) zlg_test_set(m->type, order, ld, block, i, k, value_at(i0 + i, k0 + k));
  ZLG_CHECK_OK(zlg_matrix_write(m, i0, rows, k0, columns, order, ld, block), context);
  free(block);
}

/* Reads the block and compares; what lies between its lines must stay as it was. */
static void check_block(const zlg_matrix *m, int64_t i0, int64_t rows, int64_t k0, int64_t columns, zlg_order order,
                        int64_t pad) {
  int64_t ld = least_ld(rows, columns, order) + pad, lines = order == ZLG_ROW_MAJOR ? rows : columns;
  size_t bytes = (size_t)(ld * lines) * zlg_type_size(m->type);
  void *block = malloc(bytes);
  memset(block, 0x2a, bytes);
  double untouched = zlg_test_get(m->type, order, ld, block, 0, 0);
  ZLG_CHECK_OK(zlg_matrix_read(m, i0, rows, k0, columns, order, ld, block), context);
  int64_t wrong = 0, spoiled = 0, width = order == ZLG_ROW_MAJOR ? columns : rows;
  for (int64_t i = 0; i < rows; i++)
    for (int64_t k = 0; k < columns; k++)
      wrong += !(zlg_test_get(m->type, order, ld, block, i, k) == value_at(i0 + i, k0 + k));
  for (int64_t line = 0; line < lines; line++)
    for (int64_t e = width; e < ld; e++)
      spoiled += !(zlg_test_get(m->type, ZLG_ROW_MAJOR, ld, block, line, e) == untouched);
  CHECK(wrong == 0);
  CHECK(spoiled == 0);
  free(block);
}

/* Every home, type, order of the matrix and order of the block, tight and padded. */
static void check_blocks_of(int64_t rows, int64_t columns, int64_t i0, int64_t m_rows, int64_t k0, int64_t m_columns) {
  for (int home = 0; home < HOMES; home++)
    for (int o = 0; o < 4; o++)
      for (zlg_type type = ZLG_F32; type <= ZLG_F64; type++) {
        void *memory;
        zlg_matrix *m = make_home((enum home)home, type, rows, columns, orders[o & 1], &memory);
        write_block(m, 0, rows, 0, columns, orders[o >> 1], 0);
        for (int64_t pad = 0; pad <= 3; pad += 3) {
          check_block(m, i0, m_rows, k0, m_columns, orders[o >> 1], pad);
          write_block(m, i0, m_rows, k0, m_columns, orders[o >> 1], pad);
          check_block(m, 0, rows, 0, columns, orders[o >> 1], pad);
        }
        zlg_matrix_release(m);
        free(memory);
      }
}

static void blocks_of_narrow_matrices(void) {
  check_blocks_of(1, 1, 0, 1, 0, 1);
  check_blocks_of(70, 3, 0, 70, 0, 3);
  check_blocks_of(70, 3, 11, 50, 0, 3);
  check_blocks_of(70, 3, 11, 50, 1, 1);
  check_blocks_of(3, 70, 1, 2, 5, 64);
}

/* Wider than a page's gap, and pieces of the buffer that do not divide the block. */
static void blocks_of_wide_matrices(void) {
  check_blocks_of(130, 2500, 3, 127, 7, 2400);
  check_blocks_of(2500, 130, 7, 2400, 3, 127);
  check_blocks_of(200, 1500, 0, 200, 700, 3);
  check_blocks_of(1, 70000, 0, 1, 3, 69990);
  check_blocks_of(70000, 2, 5, 69000, 0, 2);
}

/* A block written narrowly must leave the columns beside it alone. */
static void writing_a_column_leaves_its_neighbours(void) {
  for (int home = 0; home < HOMES; home++)
    for (int o = 0; o < 2; o++) {
      void *memory;
      zlg_matrix *m = make_home((enum home)home, ZLG_F64, 100, 3, orders[o], &memory);
      write_block(m, 0, 100, 0, 1, ZLG_ROW_MAJOR, 0);
      write_block(m, 0, 100, 2, 1, ZLG_COLUMN_MAJOR, 0);
      double middle[100];
      ZLG_CHECK_OK(zlg_matrix_read(m, 0, 100, 1, 1, ZLG_ROW_MAJOR, 1, middle), context);
      for (int i = 0; i < 100; i++) CHECK(middle[i] == 0);
      check_block(m, 0, 100, 0, 1, ZLG_ROW_MAJOR, 0);
      check_block(m, 0, 100, 2, 1, ZLG_ROW_MAJOR, 0);
      zlg_matrix_release(m);
      free(memory);
    }
}

/* --- overlap --- */

/* The truth: the bytes of one view marked, those of the other looked for. */
static bool truly_overlap(const zlg_matrix *a, const zlg_matrix *b, const char *arena, size_t bytes) {
  char *mark = calloc(bytes, 1);
  bool found = false;
  const zlg_matrix *both[2] = {a, b};
  for (int which = 0; which < 2; which++)
    for (int64_t i = 0; i < both[which]->rows; i++)
      for (int64_t k = 0; k < both[which]->columns; k++) {
        const zlg_matrix *m = both[which];
        int64_t at = m->order == ZLG_ROW_MAJOR ? i * m->ld + k : k * m->ld + i;
        size_t size = zlg_type_size(m->type), byte = (size_t)((const char *)m->data - arena) + (size_t)at * size;
        for (size_t e = 0; e < size; e++) {
          if (which == 1 && mark[byte + e]) found = true;
          if (which == 0) mark[byte + e] = 1;
        }
      }
  free(mark);
  return found;
}

/* Random pairs of views into one array. With one stride (or a single line on a side) the answer is exact; else it may
 * only err towards yes. */
static void overlap_agrees_with_marking_bytes(void) {
  enum { ARENA = 4096 };
  double *arena = calloc(ARENA / 8, 8);
  uint64_t seed = 5;
  int exact = 0, yes = 0, no = 0;
  for (int round = 0; round < 20000; round++) {
    zlg_matrix *m[2];
    int64_t shared = 1 + (int64_t)(zlg_test_random(&seed) % 9);
    for (int which = 0; which < 2; which++) {
      zlg_order order = orders[zlg_test_random(&seed) & 1];
      int64_t ld = zlg_test_random(&seed) % 4 ? shared : 1 + (int64_t)(zlg_test_random(&seed) % 9);
      int64_t width = 1 + (int64_t)(zlg_test_random(&seed) % (uint64_t)ld);
      int64_t lines = 1 + (int64_t)(zlg_test_random(&seed) % 6), first = (int64_t)(zlg_test_random(&seed) % 60);
      int64_t rows = order == ZLG_ROW_MAJOR ? lines : width, columns = order == ZLG_ROW_MAJOR ? width : lines;
      ZLG_CHECK_OK(zlg_matrix_wrap(context, &m[which], ZLG_F64, rows, columns, order, ld, arena + first), context);
    }
    bool truth = truly_overlap(m[0], m[1], (const char *)arena, ARENA), said = zlg_matrix_overlaps(m[0], m[1]);
    CHECK(said == zlg_matrix_overlaps(m[1], m[0]));
    if (m[0]->ld == m[1]->ld) {
      CHECK(said == truth);
      exact++;
    } else
      CHECK(said || !truth);
    truth ? yes++ : no++;
    zlg_matrix_release(m[0]);
    zlg_matrix_release(m[1]);
  }
  CHECK(exact > 10000 && yes > 2000 && no > 2000);
  free(arena);
}

static void files_overlap_by_identity(void) {
  char *path = zlg_test_path("same.npy"), *name = zlg_test_path("other-name.npy"),
       *free_name = zlg_test_path("new.npy");
  zlg_matrix *out, *in, *again, *linked, *memory;
  double data[6] = {0};
  ZLG_CHECK_OK(zlg_matrix_create_npy(context, &out, path, ZLG_F64, 3, 2, ZLG_ROW_MAJOR), context);
  CHECK(zlg_matrix_overlaps(out, out));
  ZLG_CHECK_OK(zlg_matrix_close(out), context);
  ZLG_CHECK_OK(zlg_matrix_open_npy(context, &in, path), context);
  CHECK(zlg_matrix_overlaps(out, in));
  CHECK(link(path, name) == 0);
  ZLG_CHECK_OK(zlg_matrix_open_npy(context, &linked, name), context);
  CHECK(zlg_matrix_overlaps(linked, in));
  /* A new file under the same name is another file until it takes the name. */
  ZLG_CHECK_OK(zlg_matrix_create_npy(context, &again, path, ZLG_F64, 3, 2, ZLG_ROW_MAJOR), context);
  CHECK(!zlg_matrix_overlaps(again, in));
  ZLG_CHECK_OK(zlg_matrix_wrap(context, &memory, ZLG_F64, 3, 2, ZLG_ROW_MAJOR, 2, data), context);
  CHECK(!zlg_matrix_overlaps(memory, in) && !zlg_matrix_overlaps(again, memory));
  zlg_matrix *all[] = {out, in, again, linked, memory};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) zlg_matrix_release(all[i]);
  free(path);
  free(name);
  free(free_name);
}

/* --- memory that runs out --- */

static struct {
  int64_t allowed; /* allocations still granted; negative: any number */
  int64_t live;
} heap = {-1, 0};

static void *heap_allocate(void *user, size_t bytes) {
  (void)user;
  if (heap.allowed == 0) return NULL;
  if (heap.allowed > 0) heap.allowed--;
  heap.live++;
  return malloc(bytes);
}
static void *heap_reallocate(void *user, void *old, size_t bytes) {
  (void)user;
  if (heap.allowed == 0) return NULL;
  if (heap.allowed > 0) heap.allowed--;
  return realloc(old, bytes);
}
static void heap_release(void *user, void *memory) {
  (void)user;
  heap.live--;
  free(memory);
}

static double grid[6];
static char *npy_path, *raw_path, *new_path;

static int make_wrap(zlg_matrix **m) {
  return zlg_matrix_wrap(context, m, ZLG_F64, 3, 2, ZLG_ROW_MAJOR, 2, grid);
}
static int make_open_npy(zlg_matrix **m) {
  return zlg_matrix_open_npy(context, m, npy_path);
}
static int make_open_raw(zlg_matrix **m) {
  return zlg_matrix_open_raw(context, m, raw_path, ZLG_F64, 3, 2, ZLG_ROW_MAJOR, 0, 0);
}
static int make_create_npy(zlg_matrix **m) {
  return zlg_matrix_create_npy(context, m, new_path, ZLG_F64, 3, 2, ZLG_COLUMN_MAJOR);
}
static int make_create_raw(zlg_matrix **m) {
  return zlg_matrix_create_raw(context, m, new_path, ZLG_F64, 3, 2, ZLG_ROW_MAJOR);
}
/* A conversion of the order needs a buffer. */
static int make_and_convert(zlg_matrix **m) {
  double block[6] = {0};
  int status = make_create_npy(m);
  if (status == ZLG_OK) status = zlg_matrix_write(*m, 0, 3, 0, 2, ZLG_ROW_MAJOR, 2, block);
  if (status == ZLG_OK) status = zlg_matrix_read(*m, 0, 3, 0, 2, ZLG_ROW_MAJOR, 2, block);
  if (status == ZLG_OK) return ZLG_OK;
  zlg_matrix_release(*m);
  *m = NULL;
  return status;
}

static void make_inputs(void) {
  zlg_matrix *npy = NULL, *raw = NULL;
  if (zlg_matrix_create_npy(context, &npy, npy_path, ZLG_F64, 3, 2, ZLG_ROW_MAJOR) != ZLG_OK ||
      zlg_matrix_create_raw(context, &raw, raw_path, ZLG_F64, 3, 2, ZLG_ROW_MAJOR) != ZLG_OK ||
      zlg_matrix_close(npy) != ZLG_OK || zlg_matrix_close(raw) != ZLG_OK) {
    fprintf(stderr, "the tests' inputs: %s\n", zlg_context_message(context));
    exit(1);
  }
  zlg_matrix_release(npy);
  zlg_matrix_release(raw);
}

static int make_constant(zlg_matrix **m) {
  return zlg_matrix_constant(context, m, ZLG_F32, 3, 2, 1);
}

static void each_constructor_survives_without_memory(void) {
  int (*const makers[])(zlg_matrix **) = {make_wrap,       make_open_npy,    make_open_raw, make_create_npy,
                                          make_create_raw, make_and_convert, make_constant};
  const int needs[] = {1, 3, 3, 3, 3, 5, 2};
  for (size_t i = 0; i < sizeof makers / sizeof *makers; i++) {
    int refused = 0;
    for (int64_t allowed = 0;; allowed++) {
      zlg_matrix *m = NULL;
      int64_t before = heap.live;
      heap.allowed = allowed;
      int status = makers[i](&m);
      heap.allowed = -1;
      if (status == ZLG_OK) {
        zlg_matrix_release(m);
        CHECK(heap.live == before);
        break;
      }
      refused++;
      ZLG_CHECK_STATUS(status, ZLG_ENOMEM, context);
      CHECK(strstr(zlg_context_message(context), "memory") != NULL);
      CHECK(m == NULL);
      CHECK(heap.live == before);
      CHECK(access(new_path, F_OK) != 0);
    }
    CHECK(refused >= needs[i]);
  }
}

static void the_allocator_is_fixed_while_a_context_lives(void) {
  zlg_allocator half = {heap_allocate, NULL, heap_release, NULL};
  CHECK(zlg_set_allocator(&half) == ZLG_EINVAL);
  CHECK(strstr(zlg_context_message(NULL), "2 of the 3") != NULL);
  CHECK(zlg_set_allocator(NULL) == ZLG_ESTATE);
  CHECK(strstr(zlg_context_message(NULL), "context") != NULL);
  CHECK(heap.live > 0); /* the context's own */
}

static void the_allocator_is_asked_for_everything(void) {
  void *aligned = zlg_malloc_aligned(4096, 100);
  CHECK(aligned != NULL && (uintptr_t)aligned % 4096 == 0);
  memset(aligned, 1, 100);
  int64_t before = heap.live;
  zlg_free_aligned(aligned);
  CHECK(heap.live == before - 1);
  CHECK(zlg_malloc(0) == NULL && zlg_malloc_aligned(64, 0) == NULL && zlg_malloc_aligned(64, SIZE_MAX - 8) == NULL);
  CHECK(zlg_calloc(SIZE_MAX / 2, 3) == NULL);
  char *zeros = zlg_calloc(3, 5);
  for (int i = 0; i < 15; i++) CHECK(zeros[i] == 0);
  zeros = zlg_realloc(zeros, 100);
  CHECK(zeros != NULL && heap.live == before);
  CHECK(zlg_realloc(zeros, 0) == NULL && heap.live == before - 1);
}

/* --- constants --- */

static void a_constant_is_its_value_everywhere(void) {
  const int64_t rows = INT64_C(1) << 40;
  zlg_matrix *m = NULL;
  zlg_matrix_info info;
  ZLG_CHECK_OK(zlg_matrix_constant(context, &m, ZLG_F32, rows, 2, 0.5), context);
  ZLG_CHECK_OK(zlg_matrix_get_info(m, &info), context);
  CHECK(info.rows == rows && info.columns == 2 && !info.writable && !info.data && !info.path);
  float block[6] = {0};
  ZLG_CHECK_OK(zlg_matrix_read(m, rows - 3, 3, 0, 2, ZLG_COLUMN_MAJOR, 3, block), context);
  for (int i = 0; i < 6; i++) CHECK(block[i] == 0.5f);
  ZLG_CHECK_STATUS(zlg_matrix_write(m, 0, 1, 0, 1, ZLG_ROW_MAJOR, 1, block), ZLG_EREADONLY, context);
  zlg_matrix_release(m);
  ZLG_CHECK_OK(zlg_matrix_constant(context, &m, ZLG_F64, 1, 2, -3), context);
  double row[2] = {0};
  ZLG_CHECK_OK(zlg_matrix_read(m, 0, 1, 0, 2, ZLG_ROW_MAJOR, 2, row), context);
  CHECK(row[0] == -3 && row[1] == -3);
  zlg_matrix_release(m);
  CHECK_REFUSED(zlg_matrix_constant(context, &m, ZLG_F32, -1, 2, 1), ZLG_EINVAL, "zlg_matrix_constant: rows = -1",
                "0 or more");
  CHECK(m == NULL);
}

/* --- names --- */

static void every_code_has_its_name_and_text(void) {
  static const struct {
    int value;
    const char *name, *text;
  } rows[] = {
#define ROW(name_, value_, text_) {value_, "ZLG_" #name_, text_},
      ZLG_STATUS_MAP(ROW)
#undef ROW
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    CHECK(strcmp(zlg_status_name(rows[i].value), rows[i].name) == 0);
    CHECK(strcmp(zlg_strerror(rows[i].value), rows[i].text) == 0);
  }
  CHECK(strcmp(zlg_status_name(-999), "ZLG_UNKNOWN") == 0 && strcmp(zlg_strerror(1), "unknown status") == 0);
  CHECK(zlg_type_size(ZLG_F32) == 4 && zlg_type_size(ZLG_F64) == 8 && zlg_type_size((zlg_type)0) == 0);
  CHECK(strcmp(zlg_type_name(ZLG_F64), "f64") == 0 && zlg_type_name((zlg_type)3) == NULL);
  CHECK(strcmp(zlg_worker_kind_name(ZLG_WORKER_OPENCL), "opencl") == 0 &&
        zlg_worker_kind_name((zlg_worker_kind)0) == NULL);
  CHECK(strcmp(zlg_version(), ZLG_VERSION) == 0);
}

int main(int argc, char **argv) {
  static const struct zlg_test_case cases[] = {
      {"wrap refuses bad shapes", wrap_refuses_bad_shapes},
      {"wrap refuses bad data", wrap_refuses_bad_data},
      {"wrap refuses sizes that overflow", wrap_refuses_sizes_that_overflow},
      {"views say what they are", views_say_what_they_are},
      {"blocks outside are refused", blocks_outside_are_refused},
      {"messages belong to their context", messages_belong_to_their_context},
      {"a matrix keeps its context", a_matrix_keeps_its_context},
      {"blocks of narrow matrices", blocks_of_narrow_matrices},
      {"blocks of wide matrices", blocks_of_wide_matrices},
      {"writing a column leaves its neighbours", writing_a_column_leaves_its_neighbours},
      {"overlap agrees with marking bytes", overlap_agrees_with_marking_bytes},
      {"files overlap by identity", files_overlap_by_identity},
      {"each constructor survives without memory", each_constructor_survives_without_memory},
      {"the allocator is fixed while a context lives", the_allocator_is_fixed_while_a_context_lives},
      {"the allocator is asked for everything", the_allocator_is_asked_for_everything},
      {"a constant is its value everywhere", a_constant_is_its_value_everywhere},
      {"every code has its name and text", every_code_has_its_name_and_text},
      {NULL, NULL}};
  const zlg_allocator counting = {heap_allocate, heap_reallocate, heap_release, NULL};
  if (zlg_set_allocator(&counting) != ZLG_OK) return 1;
  npy_path = zlg_test_path("given.npy");
  raw_path = zlg_test_path("given.raw");
  new_path = zlg_test_path("new");
  context = zlg_test_context();
  make_inputs();
  int result = zlg_test_main(argc, argv, cases);
  zlg_context_release(context);
  free(npy_path);
  free(raw_path);
  free(new_path);
  if (heap.live != 0) printf("%" PRId64 " allocations are left\n", heap.live);
  return result || heap.live != 0;
}
