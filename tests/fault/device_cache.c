/* Programs of devices kept on disk: what is damaged, foreign or out of reach only means compiling again, and processes
 * that write one file at a time leave a whole one. The file is looked at by itself in every mode; in the modes with
 * devices, products with ZLG_DEVICE_CACHE=always meet it too, each in a process of its own (cold: nothing is compiled
 * yet; the parent starts no runtime, so that it can be forked). */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "codelets/common/device.h"
#include "src/core/memory.h"
#include "tests/support_product.h"

#define CHECK(condition) zlg_check((condition), #condition, __FILE__, __LINE__)

/* The files of the cache: "DIR/zellige", which the test may put anything in place of. */
static char directory[4096];

static void in_directory(char *path, size_t bytes, const char *name) {
  snprintf(path, bytes, "%s/%s", directory, name);
}

static void remove_directory(void) {
  char path[sizeof directory + 300];
  DIR *listing = opendir(directory);
  for (struct dirent *entry; listing && (entry = readdir(listing));) {
    in_directory(path, sizeof path, entry->d_name);
    if (entry->d_name[0] != '.' && unlink(path) != 0) rmdir(path);
  }
  if (listing) closedir(listing);
  if (unlink(directory) != 0) rmdir(directory);
}

/* How many files there are whose name ends in `suffix`; `first` (may be NULL) gets one of them. */
static int count_files(const char *suffix, char *first, size_t bytes) {
  int count = 0;
  DIR *listing = opendir(directory);
  for (struct dirent *entry; listing && (entry = readdir(listing));) {
    size_t length = strlen(entry->d_name), end = strlen(suffix);
    if (entry->d_name[0] == '.' || length < end || strcmp(entry->d_name + length - end, suffix) != 0) continue;
    if (first) in_directory(first, bytes, entry->d_name);
    count++;
  }
  if (listing) closedir(listing);
  return count;
}

static int64_t size_of(const char *path) {
  struct stat file;
  return stat(path, &file) == 0 ? (int64_t)file.st_size : -1;
}

static void flip(const char *path, int64_t at) {
  unsigned char byte = 0;
  int fd = open(path, O_RDWR);
  CHECK(fd >= 0 && pread(fd, &byte, 1, (off_t)at) == 1);
  byte ^= 0x10;
  CHECK(pwrite(fd, &byte, 1, (off_t)at) == 1);
  close(fd);
}

/* --- the file by itself --- */

static struct zlg_device_key key_of(const char *text) {
  struct zlg_device_key key = ZLG_DEVICE_KEY_SEED;
  zlg_device_key_add(&key, text);
  return key;
}

static bool holds(const struct zlg_device_key *key, const void *want, size_t want_bytes) {
  size_t bytes = 0;
  void *found = zlg_device_cache_load(key, &bytes);
  bool same = found && bytes == want_bytes && memcmp(found, want, bytes) == 0;
  zlg_free(found);
  return same;
}

static bool is_absent(const struct zlg_device_key *key) {
  size_t bytes = 0;
  void *found = zlg_device_cache_load(key, &bytes);
  zlg_free(found);
  return found == NULL;
}

static const char code[] = "the code of a kernel, as far as a cache is concerned";

static void what_is_stored_is_found_under_its_key_only(void) {
  remove_directory();
  struct zlg_device_key key = key_of("a"), other = key_of("b");
  CHECK(is_absent(&key));
  zlg_device_cache_store(&key, code, sizeof code);
  CHECK(holds(&key, code, sizeof code) && is_absent(&other));
  zlg_device_cache_store(&key, code, 5); /* replaced as a whole */
  CHECK(holds(&key, code, 5) && count_files("", NULL, 0) == 1);
  zlg_device_cache_store(&other, code, 0); /* nothing is no program */
  CHECK(is_absent(&other));
  struct zlg_device_key joined = ZLG_DEVICE_KEY_SEED, apart = ZLG_DEVICE_KEY_SEED;
  zlg_device_key_add(&joined, "ab");
  zlg_device_key_add(&joined, "c");
  zlg_device_key_add(&apart, "a");
  zlg_device_key_add(&apart, "bc");
  CHECK(memcmp(&joined, &apart, sizeof joined) != 0);
}

/* The only file there, and its path. */
static void store_alone(const struct zlg_device_key *key, char *path, size_t bytes) {
  remove_directory();
  zlg_device_cache_store(key, code, sizeof code);
  CHECK(count_files(".bin", path, bytes) == 1);
}

/* Every byte of it: the magic, the key, the length, the checksum, the code. */
static void a_file_with_any_byte_changed_is_not_used(void) {
  char path[sizeof directory + 300];
  struct zlg_device_key key = key_of("changed");
  store_alone(&key, path, sizeof path);
  int64_t bytes = size_of(path);
  CHECK(bytes > (int64_t)sizeof code);
  for (int64_t at = 0; at < bytes; at++) {
    flip(path, at);
    CHECK(is_absent(&key));
    flip(path, at);
  }
  CHECK(holds(&key, code, sizeof code));
}

static void a_file_cut_anywhere_is_not_used(void) {
  char path[sizeof directory + 300];
  struct zlg_device_key key = key_of("cut");
  store_alone(&key, path, sizeof path);
  for (int64_t bytes = size_of(path) - 1; bytes >= 0; bytes--) {
    CHECK(truncate(path, (off_t)bytes) == 0);
    CHECK(is_absent(&key));
  }
  zlg_device_cache_store(&key, code, sizeof code);
  CHECK(holds(&key, code, sizeof code));
}

/* Another program's file under this name. */
static void a_file_of_another_key_is_not_used(void) {
  char path[sizeof directory + 300], elsewhere[sizeof directory + 300];
  struct zlg_device_key key = key_of("one"), other = key_of("other");
  store_alone(&key, path, sizeof path);
  in_directory(elsewhere, sizeof elsewhere, "moved");
  CHECK(rename(path, elsewhere) == 0);
  zlg_device_cache_store(&other, code, sizeof code);
  CHECK(count_files(".bin", path, sizeof path) == 1 && rename(elsewhere, path) == 0);
  CHECK(is_absent(&other));
}

/* Nobody waits for a writer of a pipe, and a directory stays what it is. */
static void what_is_no_file_is_not_used(void) {
  char path[sizeof directory + 300];
  struct zlg_device_key key = key_of("no file");
  store_alone(&key, path, sizeof path);
  CHECK(unlink(path) == 0 && mkfifo(path, 0600) == 0);
  CHECK(is_absent(&key));
  zlg_device_cache_store(&key, code, sizeof code);
  CHECK(holds(&key, code, sizeof code));
  CHECK(unlink(path) == 0 && mkdir(path, 0700) == 0);
  CHECK(is_absent(&key));
  zlg_device_cache_store(&key, code, sizeof code);
  CHECK(is_absent(&key) && count_files("", NULL, 0) == 1); /* no temporary file stays */
}

/* A file where the directory should be, and a directory in which nobody, root included, can make a file. */
static void a_directory_that_cannot_be_written_is_done_without(void) {
  struct zlg_device_key key = key_of("nowhere");
  remove_directory();
  int fd = open(directory, O_CREAT | O_WRONLY, 0600);
  CHECK(fd >= 0);
  close(fd);
  zlg_device_cache_store(&key, code, sizeof code);
  CHECK(is_absent(&key) && size_of(directory) == 0);
  CHECK(unlink(directory) == 0 && symlink("/proc/self", directory) == 0);
  zlg_device_cache_store(&key, code, sizeof code);
  CHECK(is_absent(&key));
  remove_directory();
}

/* Two processes write different contents of one key, and read: always one of the two, whole. */
static int write_and_read(const struct zlg_device_key *key, unsigned char letter) {
  enum { MOST = 200000 };
  unsigned char *mine = malloc(MOST);
  if (!mine) return 1;
  memset(mine, letter, MOST);
  for (int i = 0; i < 200; i++) {
    size_t bytes = 0;
    zlg_device_cache_store(key, mine, letter == 'a' ? MOST : MOST / 3);
    unsigned char *found = zlg_device_cache_load(key, &bytes);
    if (!found || bytes != (size_t)(found[0] == 'a' ? MOST : MOST / 3)) return 2;
    for (size_t k = 1; k < bytes; k++)
      if (found[k] != found[0]) return 3;
    zlg_free(found);
  }
  free(mine);
  return 0;
}

static bool ends_well(pid_t child) {
  int status = -1;
  return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void two_writers_leave_a_whole_file(void) {
  struct zlg_device_key key = key_of("race");
  pid_t children[2];
  remove_directory();
  for (int i = 0; i < 2; i++)
    if ((children[i] = fork()) == 0) _exit(write_and_read(&key, (unsigned char)('a' + i)));
  for (int i = 0; i < 2; i++) CHECK(ends_well(children[i]));
  CHECK(!is_absent(&key) && count_files("", NULL, 0) == 1);
}

/* --- products --- */

/* In a child: a product of ones, in tiles enough for every worker. 0: right, and the device has computed. */
static int compute(void) {
  enum { POINTS = 600 };
  zlg_kernel_spec spec;
  zlg_context_options options;
  zlg_context *context = NULL;
  zlg_test_context_options(&options);
  options.tile_rows = options.tile_columns = 60;
  options.direct_seconds = 0;
  if (zlg_context_create(&context, &options) != ZLG_OK) return 1;
  zlg_kernel_spec_init(&spec, ZLG_CAUCHY);
  struct zlg_test_array x = zlg_test_array_new(ZLG_F64, POINTS, 2, ZLG_ROW_MAJOR, 0);
  struct zlg_test_array b = zlg_test_array_new(ZLG_F64, POINTS, 1, ZLG_ROW_MAJOR, 0);
  struct zlg_test_array y = zlg_test_array_new(ZLG_F64, POINTS, 1, ZLG_ROW_MAJOR, 0);
  zlg_test_array_fill(&b, 1);
  zlg_matrix *X = zlg_test_array_wrap(context, &x), *B = zlg_test_array_wrap(context, &b);
  zlg_matrix *Y = zlg_test_array_wrap(context, &y);
  zlg_operator *A = NULL;
  int status = zlg_kernel(context, &A, &spec, X, X);
  /* The cores may be done before the device has woken: again until it has met a product. */
  for (int i = 0; status == ZLG_OK && i < 100 && zlg_test_tasks[zlg_test_device_kind()] == 0; i++)
    status = zlg_test_apply(A, ZLG_NOTRANS, 1, B, 0, Y);
  if (status != ZLG_OK) fprintf(stderr, "%s: %s\n", zlg_status_name(status), zlg_context_message(context));
  bool right = status == ZLG_OK && zlg_test_tasks[zlg_test_device_kind()] > 0;
  for (int64_t i = 0; i < POINTS; i++) right = right && zlg_test_array_get(&y, i, 0) == POINTS;
  zlg_operator_release(A);
  zlg_matrix_release(X);
  zlg_matrix_release(B);
  zlg_matrix_release(Y);
  zlg_context_release(context);
  return right ? 0 : 2;
}

static pid_t start_computing(void) {
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) _exit(compute());
  return child;
}

static bool has_devices(void) {
  return zlg_test_device_workers() > 0;
}

/* The files of the cache, with the inode of each: a file that is written anew gets another. */
struct files {
  int count;
  char path[8][sizeof directory + 300];
  ino_t inode[8];
};

static struct files list_files(void) {
  struct files files = {.count = 0};
  DIR *listing = opendir(directory);
  for (struct dirent *entry; listing && files.count < 8 && (entry = readdir(listing));) {
    struct stat file;
    if (entry->d_name[0] == '.') continue;
    in_directory(files.path[files.count], sizeof *files.path, entry->d_name);
    if (stat(files.path[files.count], &file) == 0) files.inode[files.count++] = file.st_ino;
  }
  if (listing) closedir(listing);
  return files;
}

static bool written_anew(const struct files *before, int which) {
  struct stat file;
  return stat(before->path[which], &file) == 0 && file.st_ino != before->inode[which];
}

/* The key of a file, as its name says it. */
static struct zlg_device_key key_of_file(const char *path) {
  struct zlg_device_key key = {{0, 0}};
  unsigned long long words[2] = {0, 0};
  const char *name = strrchr(path, '/');
  CHECK(name && sscanf(name, "/%16llx%16llx.bin", &words[0], &words[1]) == 2);
  key.words[0] = words[0], key.words[1] = words[1];
  return key;
}

/* Cold from two processes at once; then from the files, none of which is written again. */
static void processes_share_what_one_of_them_compiled(void) {
  if (!has_devices()) return;
  remove_directory();
  pid_t one = start_computing(), other = start_computing();
  CHECK(ends_well(one));
  CHECK(ends_well(other));
  struct files files = list_files();
  CHECK(files.count >= 2 && count_files(".bin", NULL, 0) == files.count);
  for (int i = 0; i < files.count; i++) {
    struct zlg_device_key key = key_of_file(files.path[i]);
    CHECK(!is_absent(&key));
  }
  CHECK(ends_well(start_computing()));
  for (int i = 0; i < files.count; i++) CHECK(!written_anew(&files, i));
}

/* Each kind of damage to every file; the next process compiles again, computes right, and mends the files. */
static void cut_files(const struct files *files) {
  for (int i = 0; i < files->count; i++) CHECK(truncate(files->path[i], (off_t)(size_of(files->path[i]) / 2)) == 0);
}

static void change_files(const struct files *files) {
  for (int i = 0; i < files->count; i++) flip(files->path[i], size_of(files->path[i]) - 1);
}

/* Whole as far as the cache can tell, and no code of any device. */
static void replace_code(const struct files *files) {
  for (int i = 0; i < files->count; i++) {
    struct zlg_device_key key = key_of_file(files->path[i]);
    zlg_device_cache_store(&key, code, sizeof code);
  }
}

/* Code of the device, and of another program: it loads, and lacks the kernels. */
static void exchange_code(const struct files *files) {
  void *held[8];
  size_t bytes[8];
  for (int i = 0; i < files->count; i++) {
    struct zlg_device_key key = key_of_file(files->path[i]);
    held[i] = zlg_device_cache_load(&key, &bytes[i]);
    CHECK(held[i] != NULL);
  }
  for (int i = 0; i < files->count; i++) {
    struct zlg_device_key key = key_of_file(files->path[i]);
    int other = (i + 1) % files->count;
    zlg_device_cache_store(&key, held[other], bytes[other]);
  }
  for (int i = 0; i < files->count; i++) zlg_free(held[i]);
}

static void damaged_files_are_compiled_and_written_again(void) {
  static void (*const damages[])(const struct files *) = {cut_files, change_files, replace_code, exchange_code};
  if (!has_devices()) return;
  for (size_t k = 0; k < sizeof damages / sizeof *damages; k++) {
    if (list_files().count == 0) CHECK(ends_well(start_computing())); /* run by itself */
    struct files files = list_files();
    CHECK(files.count >= 2);
    damages[k](&files);
    files = list_files();
    CHECK(ends_well(start_computing()));
    for (int i = 0; i < files.count; i++) CHECK(written_anew(&files, i));
  }
}

static void products_do_without_a_cache_that_cannot_be_written(void) {
  if (!has_devices()) return;
  remove_directory();
  CHECK(symlink("/proc/self", directory) == 0);
  CHECK(ends_well(start_computing()));
  remove_directory();
}

int main(int argc, char **argv) {
  static const struct zlg_test_case cases[] = {
      {"what_is_stored_is_found_under_its_key_only", what_is_stored_is_found_under_its_key_only},
      {"a_file_with_any_byte_changed_is_not_used", a_file_with_any_byte_changed_is_not_used},
      {"a_file_cut_anywhere_is_not_used", a_file_cut_anywhere_is_not_used},
      {"a_file_of_another_key_is_not_used", a_file_of_another_key_is_not_used},
      {"what_is_no_file_is_not_used", what_is_no_file_is_not_used},
      {"a_directory_that_cannot_be_written_is_done_without", a_directory_that_cannot_be_written_is_done_without},
      {"two_writers_leave_a_whole_file", two_writers_leave_a_whole_file},
      {"processes_share_what_one_of_them_compiled", processes_share_what_one_of_them_compiled},
      {"damaged_files_are_compiled_and_written_again", damaged_files_are_compiled_and_written_again},
      {"products_do_without_a_cache_that_cannot_be_written", products_do_without_a_cache_that_cannot_be_written},
      {NULL, NULL}};
  const char *home = getenv("XDG_CACHE_HOME"); /* the test's own (run-test) */
  if (!home || !getenv("ZLG_TEST_DIR")) {
    fputs("run the test through tests/run-test\n", stderr);
    return 1;
  }
  snprintf(directory, sizeof directory, "%s/zellige", home);
  setenv("ZLG_DEVICE_CACHE", "always", 1);
  return zlg_test_main(argc, argv, cases);
}
