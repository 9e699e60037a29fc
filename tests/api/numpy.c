/* NumPy on the other side: what it writes is read here, what is written here it reads, for both types and orders, all
 * versions of the format, and the same bytes of header. Skipped where there is no Python with NumPy. */
#include "tests/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(condition) zlg_check((condition), #condition, __FILE__, __LINE__)

static zlg_context *context;
static char *directory;
static const char *python;

/* Element (i, k) of every array here; NumPy makes the same one. */
static const char prelude[] =
    "import sys, os, numpy as np\n"
    "os.chdir(sys.argv[1])\n"
    "def array(m, n, dtype): return np.fromfunction(lambda i, k: i * 1000 + k + 1, (m, n)).astype(dtype)\n";

static double value_at(int64_t i, int64_t k) {
  return (double)(i * 1000 + k + 1);
}

static int run_python(const char *program) {
  char command[5000];
  char *script = zlg_test_path("script.py");
  FILE *stream = fopen(script, "w");
  if (!stream || fputs(prelude, stream) < 0 || fputs(program, stream) < 0 || fclose(stream) != 0) abort();
  /* LD_PRELOAD of a sanitizer run is not for Python. */
  snprintf(command, sizeof command, "LD_PRELOAD= %s '%s' '%s'", python, script, directory);
  fflush(stdout);
  int result = system(command);
  free(script);
  return result;
}

static bool find_python(void) {
  static const char *const candidates[] = {"python3", "/usr/bin/python3"};
  for (size_t i = 0; i < sizeof candidates / sizeof *candidates; i++) {
    char command[200];
    snprintf(command, sizeof command, "LD_PRELOAD= %s -c 'import numpy' >/dev/null 2>&1", candidates[i]);
    python = candidates[i];
    if (system(command) == 0) return true;
  }
  return false;
}

static const struct shape {
  int64_t rows, columns;
} shapes[] = {{1, 1}, {5, 3}, {3, 5}, {0, 4}, {4, 0}, {1, 7}, {7, 1}, {1000, 40}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static const char *type_text(zlg_type type) {
  return type == ZLG_F32 ? "<f4" : "<f8";
}

static void check_file(const char *name, zlg_type type, int64_t rows, int64_t columns, zlg_order order) {
  char *path = zlg_test_path(name);
  zlg_matrix *m;
  zlg_matrix_info info;
  ZLG_CHECK_OK(zlg_matrix_open_npy(context, &m, path), context);
  free(path);
  if (!m) return;
  CHECK(zlg_matrix_get_info(m, &info) == ZLG_OK);
  zlg_check(info.type == type && info.rows == rows && info.columns == columns && info.order == order, name, __FILE__,
            __LINE__);
  int64_t ld = columns ? columns : 1;
  double *block = malloc((size_t)(rows * columns + 1) * sizeof *block);
  ZLG_CHECK_OK(zlg_matrix_read(m, 0, rows, 0, columns, ZLG_ROW_MAJOR, ld, block), context);
  int64_t wrong = 0;
  for (int64_t i = 0; i < rows; i++)
    for (int64_t k = 0; k < columns; k++)
      wrong += !(zlg_test_get(type, ZLG_ROW_MAJOR, ld, block, i, k) == value_at(i, k));
  zlg_check(wrong == 0, name, __FILE__, __LINE__);
  free(block);
  zlg_matrix_release(m);
}

/* Fortran order of a matrix with one row or column, or none, is C order too, and NumPy says so. */
static zlg_order order_by_numpy(const struct shape *shape, int fortran) {
  bool both = shape->rows <= 1 || shape->columns <= 1;
  return fortran && !both ? ZLG_COLUMN_MAJOR : ZLG_ROW_MAJOR;
}

static void numpys_files_are_read(void) {
  CHECK(run_python("shapes = [(1, 1), (5, 3), (3, 5), (0, 4), (4, 0), (1, 7), (7, 1), (1000, 40)]\n"
                   "for s, (m, n) in enumerate(shapes):\n"
                   "  for f4 in (0, 1):\n"
                   "    for fortran in (0, 1):\n"
                   "      a = array(m, n, '<f4' if f4 else '<f8')\n"
                   "      a = np.asfortranarray(a) if fortran else a\n"
                   "      for version in (1, 2, 3):\n"
                   "        with open('n-%d-%d-%d-%d.npy' % (s, f4, fortran, version), 'wb') as stream:\n"
                   "          np.lib.format.write_array(stream, a, (version, 0))\n"
                   "np.save('vector.npy', array(9, 1, '<f8')[:, 0])\n"
                   "np.save('number.npy', np.float32(1))\n") == 0);
  for (int s = 0; s < SHAPES; s++)
    for (int f4 = 0; f4 < 2; f4++)
      for (int fortran = 0; fortran < 2; fortran++)
        for (int version = 1; version <= 3; version++) {
          char name[64];
          snprintf(name, sizeof name, "n-%d-%d-%d-%d.npy", s, f4, fortran, version);
          check_file(name, f4 ? ZLG_F32 : ZLG_F64, shapes[s].rows, shapes[s].columns,
                     order_by_numpy(&shapes[s], fortran));
        }
  check_file("vector.npy", ZLG_F64, 9, 1, ZLG_ROW_MAJOR);
  check_file("number.npy", ZLG_F32, 1, 1, ZLG_ROW_MAJOR);
}

static void numpys_other_types_are_refused(void) {
  CHECK(run_python("np.save('int.npy', np.arange(4))\n"
                   "np.save('big.npy', array(2, 2, '>f4'))\n"
                   "np.save('half.npy', array(2, 2, '<f2'))\n"
                   "np.save('complex.npy', array(2, 2, '<c16'))\n"
                   "np.save('bool.npy', array(2, 2, '?'))\n"
                   "np.save('text.npy', np.array(['a', 'b']))\n"
                   "np.save('object.npy', np.array([None, 1]), allow_pickle=True)\n"
                   "np.save('struct.npy', np.zeros(3, [('x', '<f4'), ('y', '<f8')]))\n"
                   "np.save('cube.npy', np.zeros((2, 3, 4)))\n"
                   "np.savez('zip.npz', np.zeros(3))\n"
                   "np.savetxt('text.txt', np.zeros(3))\n") == 0);
  static const struct {
    const char *name, *word;
  } rows[] = {{"int.npy", "'<i8'"},
              {"big.npy", "'>f4'"},
              {"half.npy", "'<f2'"},
              {"complex.npy", "'<c16'"},
              {"bool.npy", "'|b1'"},
              {"text.npy", "'<U1'"},
              {"object.npy", "'|O'"},
              {"struct.npy", "('x', '<f4')"},
              {"cube.npy", "(2, 3, 4)"},
              {"zip.npz", ".npz"},
              {"text.txt", "expected a NumPy file"}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    char *path = zlg_test_path(rows[i].name);
    zlg_matrix *m;
    ZLG_CHECK_STATUS(zlg_matrix_open_npy(context, &m, path), ZLG_EFORMAT, context);
    zlg_check(strstr(zlg_context_message(context), rows[i].word) != NULL, zlg_context_message(context), __FILE__,
              __LINE__);
    free(path);
  }
}

static void write_file(const char *name, zlg_type type, int64_t rows, int64_t columns, zlg_order order) {
  char *path = zlg_test_path(name);
  zlg_matrix *m;
  int64_t ld = columns ? columns : 1;
  ZLG_CHECK_OK(zlg_matrix_create_npy(context, &m, path, type, rows, columns, order), context);
  double *block = malloc((size_t)(rows * columns + 1) * sizeof *block);
  for (int64_t i = 0; i < rows; i++)
    for (int64_t k = 0; k < columns; k++) zlg_test_set(type, ZLG_ROW_MAJOR, ld, block, i, k, value_at(i, k));
  ZLG_CHECK_OK(zlg_matrix_write(m, 0, rows, 0, columns, ZLG_ROW_MAJOR, ld, block), context);
  ZLG_CHECK_OK(zlg_matrix_close(m), context);
  zlg_matrix_release(m);
  free(block);
  free(path);
}

/* np.save writes Fortran order only for what is not C-contiguous too, hence the shapes of which that is asked. */
static void numpy_reads_what_is_written(void) {
  char program[6000] =
      "def check(name, m, n, dtype, fortran):\n"
      "  a = np.load(name)\n"
      "  assert a.dtype == np.dtype(dtype) and a.shape == (m, n), (name, a.dtype, a.shape)\n"
      "  assert a.flags.f_contiguous if fortran else a.flags.c_contiguous, name\n"
      "  assert (a == array(m, n, dtype)).all(), name\n"
      "  if m > 1 and n > 1 or not fortran:\n"
      "    np.save('again.npy', np.asfortranarray(a) if fortran else a)\n"
      "    if tuple(map(int, np.__version__.split('.')[:2])) >= (1, 24):\n"
      "      assert open('again.npy', 'rb').read() == open(name, 'rb').read(), name + ': other bytes'\n";
  for (int s = 0; s < SHAPES; s++)
    for (zlg_type type = ZLG_F32; type <= ZLG_F64; type++)
      for (int order = ZLG_ROW_MAJOR; order <= ZLG_COLUMN_MAJOR; order++) {
        char name[64], line[160];
        snprintf(name, sizeof name, "z-%d-%d-%d.npy", s, (int)type, order);
        write_file(name, type, shapes[s].rows, shapes[s].columns, (zlg_order)order);
        snprintf(line, sizeof line, "check('%s', %d, %d, '%s', %s)\n", name, (int)shapes[s].rows,
                 (int)shapes[s].columns, type_text(type), order == ZLG_COLUMN_MAJOR ? "True" : "False");
        strcat(program, line);
      }
  CHECK(run_python(program) == 0);
  CHECK(run_python("sys.exit(1)\n") != 0); /* it would be noticed */
}

int main(int argc, char **argv) {
  static const struct zlg_test_case cases[] = {{"NumPy's files are read", numpys_files_are_read},
                                               {"NumPy's other types are refused", numpys_other_types_are_refused},
                                               {"NumPy reads what is written", numpy_reads_what_is_written},
                                               {NULL, NULL}};
  if (!find_python()) zlg_test_skip("no python3 that has NumPy. On Debian: apt-get install python3-numpy");
  directory = zlg_test_path("");
  context = zlg_test_context();
  int result = zlg_test_main(argc, argv, cases);
  zlg_context_release(context);
  free(directory);
  return result;
}
