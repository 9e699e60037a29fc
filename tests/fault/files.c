/* Files when the system fails: the k-th call of each kind fails, is interrupted, moves fewer bytes, or finds the file
 * shorter (system.h); and then real disks that are full or read-only, and a process that is killed in the middle. */
#include "config.h"

#include "tests/fault/system.h"
#include "tests/support.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(condition) zlg_check((condition), #condition, __FILE__, __LINE__)

static zlg_context *context;

/* --- a directory to look at --- */

static char *work; /* the directory that the files of a case are in */

static char *in_work(const char *name) {
  static char path[8][6000];
  static int next;
  next = (next + 1) % 8;
  snprintf(path[next], sizeof path[next], "%s/%s", work, name);
  return path[next];
}

/* How many entries the directory has, but for . and .. */
static int entries(const char *directory) {
  DIR *stream = opendir(directory);
  if (!stream) return -1;
  int count = -2;
  while (readdir(stream)) count++;
  closedir(stream);
  return count;
}

static void empty_work(void) {
  DIR *stream = opendir(work);
  if (!stream) abort();
  for (struct dirent *entry; (entry = readdir(stream));)
    if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) unlink(in_work(entry->d_name));
  closedir(stream);
}

static void write_text(const char *path, const char *text) {
  FILE *stream = fopen(path, "w");
  if (!stream || fputs(text, stream) < 0 || fclose(stream) != 0) abort();
}

static bool holds_text(const char *path, const char *text) {
  char got[64] = {0};
  FILE *stream = fopen(path, "r");
  if (!stream) return false;
  size_t bytes = fread(got, 1, sizeof got - 1, stream);
  fclose(stream);
  return bytes == strlen(text) && strcmp(got, text) == 0;
}

static void check_words(const char *word, int line) {
  char text[700];
  snprintf(text, sizeof text, "message \"%.500s\" lacks \"%s\"", zlg_context_message(context), word);
  zlg_check(strstr(zlg_context_message(context), word) != NULL, text, __FILE__, line);
}
#define CHECK_REFUSED(call, status, word)                                                                              \
  do {                                                                                                                 \
    ZLG_CHECK_STATUS(call, status, context);                                                                           \
    check_words(word, __LINE__);                                                                                       \
  } while (0)

/* --- whole jobs, in which each call fails once --- */

enum { ROWS = 300, COLUMNS = 40 };

static float value_at(int i, int k) {
  return (float)(i * COLUMNS + k + 1);
}

/* Creates, writes two blocks (one of them of the other order), closes. */
static int write_job(const char *path, bool npy) {
  zlg_matrix *m = NULL;
  static float rows[ROWS * COLUMNS], columns[ROWS * COLUMNS];
  for (int i = 0; i < ROWS; i++)
    for (int k = 0; k < COLUMNS; k++) {
      rows[i * COLUMNS + k] = value_at(i, k);
      if (i >= ROWS / 2) columns[k * (ROWS / 2) + i - ROWS / 2] = value_at(i, k);
    }
  int status = npy ? zlg_matrix_create_npy(context, &m, path, ZLG_F32, ROWS, COLUMNS, ZLG_ROW_MAJOR)
                   : zlg_matrix_create_raw(context, &m, path, ZLG_F32, ROWS, COLUMNS, ZLG_ROW_MAJOR);
  if (status == ZLG_OK) status = zlg_matrix_write(m, 0, ROWS / 2, 0, COLUMNS, ZLG_ROW_MAJOR, COLUMNS, rows);
  if (status == ZLG_OK)
    status = zlg_matrix_write(m, ROWS / 2, ROWS / 2, 0, COLUMNS, ZLG_COLUMN_MAJOR, ROWS / 2, columns);
  if (status == ZLG_OK) status = zlg_matrix_close(m);
  zlg_matrix_release(m);
  return status;
}

/* Opens and reads all of it in both orders. */
static int read_job(const char *path, bool npy) {
  zlg_matrix *m = NULL;
  static float rows[ROWS * COLUMNS], columns[ROWS * COLUMNS];
  memset(rows, 0, sizeof rows);
  memset(columns, 0, sizeof columns);
  int status = npy ? zlg_matrix_open_npy(context, &m, path)
                   : zlg_matrix_open_raw(context, &m, path, ZLG_F32, ROWS, COLUMNS, ZLG_ROW_MAJOR, 0, 0);
  if (status == ZLG_OK) status = zlg_matrix_read(m, 0, ROWS, 0, COLUMNS, ZLG_ROW_MAJOR, COLUMNS, rows);
  if (status == ZLG_OK) status = zlg_matrix_read(m, 0, ROWS, 0, COLUMNS, ZLG_COLUMN_MAJOR, ROWS, columns);
  int wrong = 0;
  for (int i = 0; i < ROWS && status == ZLG_OK; i++)
    for (int k = 0; k < COLUMNS; k++)
      wrong += !(rows[i * COLUMNS + k] == value_at(i, k) && columns[k * ROWS + i] == value_at(i, k));
  CHECK(wrong == 0);
  zlg_matrix_release(m);
  return status;
}

static int status_for(int error) {
  return error == ENOSPC || error == EDQUOT ? ZLG_ENOSPC : ZLG_EIO;
}

/* Each call of the kind fails once: the job must say so, and leave the old file or the complete new one, nothing else.
 */
static void check_each_failure(enum zlg_call call, int error, bool writes, bool npy, int least_calls) {
  char *path = in_work("job");
  for (int at = 1;; at++) {
    empty_work();
    if (writes)
      write_text(path, "old");
    else
      CHECK(write_job(path, npy) == ZLG_OK);
    zlg_arm(call, at, error, 0, -1);
    int status = writes ? write_job(path, npy) : read_job(path, npy);
    zlg_disarm();
    if (!zlg_struck()) {
      CHECK(status == ZLG_OK);
      zlg_check(at > least_calls, zlg_call_names[call], __FILE__, __LINE__);
      return;
    }
    ZLG_CHECK_STATUS(status, status_for(error), context);
    check_words("job", __LINE__);
    check_words(strerror(error), __LINE__);
    CHECK(entries(work) == 1);
    bool renamed = writes && !holds_text(path, "old");
    CHECK(!renamed ||
          (call == ZLG_CALL_FSYNC && at == 2 && read_job(path, npy) == ZLG_OK)); /* flushing the directory */
  }
}

static void every_failing_call_is_an_error(void) {
  static const struct {
    enum zlg_call call;
    int error;
    bool writes;
    int npy_calls, raw_calls; /* at least */
  } rows[] = {
      {ZLG_CALL_OPEN, EACCES, false, 1, 1},     {ZLG_CALL_OPEN, EMFILE, false, 1, 1},
      {ZLG_CALL_FSTAT, EIO, false, 1, 1},       {ZLG_CALL_PREAD, EIO, false, 4, 2},
      {ZLG_CALL_PREAD, ESTALE, false, 4, 2},    {ZLG_CALL_OPEN, EMFILE, true, 2, 2},
      {ZLG_CALL_OPEN, EROFS, true, 2, 2},       {ZLG_CALL_ENTROPY, EIO, true, 1, 1},
      {ZLG_CALL_FSTAT, EIO, true, 1, 1},        {ZLG_CALL_FALLOCATE, ENOSPC, true, 1, 1},
      {ZLG_CALL_FALLOCATE, EDQUOT, true, 1, 1}, {ZLG_CALL_FALLOCATE, EFBIG, true, 1, 1},
      {ZLG_CALL_PWRITE, ENOSPC, true, 3, 2},    {ZLG_CALL_PWRITE, EIO, true, 3, 2},
      {ZLG_CALL_FSYNC, EIO, true, 2, 2},        {ZLG_CALL_FSYNC, ENOSPC, true, 2, 2},
      {ZLG_CALL_RENAME, EIO, true, 1, 1},       {ZLG_CALL_RENAME, EISDIR, true, 1, 1},
      {ZLG_CALL_FCHMOD, EIO, true, 1, 1},       {ZLG_CALL_FTRUNCATE, ENOSPC, true, 1, 1},
      {ZLG_CALL_FTRUNCATE, EFBIG, true, 1, 1},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    check_each_failure(rows[i].call, rows[i].error, rows[i].writes, true, rows[i].npy_calls);
    check_each_failure(rows[i].call, rows[i].error, rows[i].writes, false, rows[i].raw_calls);
  }
}

/* What must not matter: interruptions, short counts, advice refused, a file system that cannot reserve. */
static void interrupted_and_short_calls_are_continued(void) {
  static const struct {
    enum zlg_call call;
    int error;
    size_t at_most;
    bool writes;
  } rows[] = {{ZLG_CALL_PREAD, EINTR, 0, false},         {ZLG_CALL_PREAD, 0, 1, false},
              {ZLG_CALL_PREAD, 0, 4095, false},          {ZLG_CALL_FADVISE, EINVAL, 0, false},
              {ZLG_CALL_PWRITE, EINTR, 0, true},         {ZLG_CALL_PWRITE, 0, 1, true},
              {ZLG_CALL_PWRITE, 0, 4095, true},          {ZLG_CALL_FALLOCATE, EINTR, 0, true},
              {ZLG_CALL_FALLOCATE, EOPNOTSUPP, 0, true}, {ZLG_CALL_FALLOCATE, ENOSYS, 0, true},
              {ZLG_CALL_FSYNC, EINTR, 0, true},          {ZLG_CALL_FCHMOD, EPERM, 0, true},
              {ZLG_CALL_FTRUNCATE, EINTR, 0, true}};
  char *path = in_work("job");
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    for (int npy = 0; npy < 2; npy++) {
      empty_work();
      write_text(path, "old");
      if (!rows[i].writes) CHECK(write_job(path, npy) == ZLG_OK);
      zlg_arm(rows[i].call, 0, rows[i].error, rows[i].at_most, -1);
      int status = rows[i].writes ? write_job(path, npy) : read_job(path, npy);
      zlg_disarm();
      zlg_check_status(status, ZLG_OK, context, zlg_call_names[rows[i].call], __FILE__, __LINE__);
      CHECK(zlg_struck() > 0);
      CHECK(read_job(path, npy) == ZLG_OK);
      CHECK(entries(work) == 1);
    }
}

/* A directory that cannot be flushed at all (some file systems) is no error. */
static void directories_that_cannot_be_flushed_are_accepted(void) {
  char *path = in_work("job");
  empty_work();
  zlg_arm(ZLG_CALL_FSYNC, 2, EINVAL, 0, -1);
  CHECK(write_job(path, true) == ZLG_OK);
  zlg_disarm();
  CHECK(zlg_struck() == 1 && read_job(path, true) == ZLG_OK);
}

/* The system would send SIGXFSZ, which ends the process. */
static void a_size_beyond_the_limit_of_the_process_is_an_error(void) {
  struct rlimit old, small;
  empty_work();
  CHECK(getrlimit(RLIMIT_FSIZE, &old) == 0);
  small = old;
  small.rlim_cur = 4096;
  CHECK(setrlimit(RLIMIT_FSIZE, &small) == 0);
  CHECK_REFUSED(write_job(in_work("job"), true), ZLG_EIO, strerror(EFBIG));
  CHECK(setrlimit(RLIMIT_FSIZE, &old) == 0);
  CHECK(entries(work) == 0);
}

static void a_failed_write_is_not_forgotten(void) {
  zlg_matrix *m;
  float one = 1;
  empty_work();
  ZLG_CHECK_OK(zlg_matrix_create_npy(context, &m, in_work("out.npy"), ZLG_F32, 2, 1, ZLG_ROW_MAJOR), context);
  zlg_arm(ZLG_CALL_PWRITE, 1, ENOSPC, 0, -1);
  CHECK_REFUSED(zlg_matrix_write(m, 0, 1, 0, 1, ZLG_ROW_MAJOR, 1, &one), ZLG_ENOSPC, "4 bytes at offset 128");
  zlg_disarm();
  CHECK_REFUSED(zlg_matrix_close(m), ZLG_ENOSPC, "cannot be finished");
  CHECK_REFUSED(zlg_matrix_close(m), ZLG_ENOSPC, "cannot be finished");
  zlg_matrix_release(m);
  CHECK(entries(work) == 0);
}

/* The second flush would succeed although the first one lost data. */
static void a_failed_flush_is_not_retried(void) {
  zlg_matrix *m;
  empty_work();
  ZLG_CHECK_OK(zlg_matrix_create_npy(context, &m, in_work("out.npy"), ZLG_F32, 2, 1, ZLG_ROW_MAJOR), context);
  zlg_arm(ZLG_CALL_FSYNC, 1, EIO, 0, -1);
  CHECK_REFUSED(zlg_matrix_close(m), ZLG_EIO, "flushed");
  zlg_disarm();
  CHECK_REFUSED(zlg_matrix_close(m), ZLG_EIO, "cannot be finished");
  zlg_matrix_release(m);
  CHECK(entries(work) == 0);
}

static void truncation_while_reading_is_an_error(void) {
  char *path = in_work("job");
  for (int npy = 0; npy < 2; npy++)
    for (int at = npy ? 3 : 1;; at++) {
      empty_work();
      CHECK(write_job(path, npy) == ZLG_OK);
      zlg_arm(ZLG_CALL_PREAD, at, 0, 0, 2000);
      int status = read_job(path, npy);
      zlg_disarm();
      if (!zlg_struck()) {
        CHECK(status == ZLG_OK && at >= 3);
        break;
      }
      ZLG_CHECK_STATUS(status, ZLG_EIO, context);
      check_words("truncated while it was read", __LINE__);
      check_words("offset 2000 on", __LINE__);
      check_words("the file has 2000 bytes now", __LINE__);
    }
}

/* --- names --- */

static void inputs_that_are_no_files(void) {
  zlg_matrix *m;
  empty_work();
  CHECK_REFUSED(zlg_matrix_open_npy(context, &m, in_work("absent.npy")), ZLG_ENOENT, "absent.npy");
  CHECK_REFUSED(zlg_matrix_open_npy(context, &m, ""), ZLG_ENOENT, strerror(ENOENT));
  CHECK_REFUSED(zlg_matrix_open_npy(context, &m, NULL), ZLG_EINVAL, "zlg_matrix_open_npy: path is NULL");
  CHECK_REFUSED(zlg_matrix_open_npy(context, NULL, "x"), ZLG_EINVAL, "matrix is NULL");
  CHECK_REFUSED(zlg_matrix_open_npy(context, &m, work), ZLG_EIO, "is a directory; expected a regular file");
  CHECK_REFUSED(zlg_matrix_open_npy(context, &m, "/dev/zero"), ZLG_EIO, "/dev/zero: is a character device");
  CHECK(mkfifo(in_work("pipe"), 0600) == 0); /* must not wait for a writer */
  CHECK_REFUSED(zlg_matrix_open_npy(context, &m, in_work("pipe")), ZLG_EIO, "is a pipe");
  CHECK_REFUSED(zlg_matrix_open_raw(context, &m, in_work("pipe"), ZLG_F32, 1, 1, ZLG_ROW_MAJOR, 1, 0), ZLG_EIO,
                "is a pipe");
  write_text(in_work("file"), "text");
  CHECK_REFUSED(zlg_matrix_open_npy(context, &m, in_work("file/inside.npy")), ZLG_EIO, strerror(ENOTDIR));
  CHECK(symlink("loop", in_work("loop")) == 0);
  CHECK_REFUSED(zlg_matrix_open_npy(context, &m, in_work("loop")), ZLG_EIO, strerror(ELOOP));
}

static int create(const char *path) {
  zlg_matrix *m = (zlg_matrix *)work; /* anything but NULL */
  int status = zlg_matrix_create_npy(context, &m, path, ZLG_F32, 2, 2, ZLG_ROW_MAJOR);
  CHECK((status == ZLG_OK) == (m != NULL));
  if (status == ZLG_OK) status = zlg_matrix_close(m);
  zlg_matrix_release(m);
  return status;
}

static void outputs_that_cannot_be_files(void) {
  empty_work();
  CHECK_REFUSED(create(NULL), ZLG_EINVAL, "zlg_matrix_create_npy: path is NULL");
  CHECK_REFUSED(create(""), ZLG_ENOENT, "names no file");
  CHECK_REFUSED(create(in_work("new/")), ZLG_ENOENT, "names no file");
  CHECK_REFUSED(create(in_work("absent/out.npy")), ZLG_ENOENT, "absent/out.npy");
  CHECK_REFUSED(create(work), ZLG_EIO, "is a directory; expected a regular file or a free name");
  CHECK_REFUSED(create("/dev/full"), ZLG_EIO, "/dev/full: is a character device");
  CHECK_REFUSED(create("/dev/null"), ZLG_EIO, "is a character device");
  CHECK(mkfifo(in_work("pipe"), 0600) == 0);
  CHECK_REFUSED(create(in_work("pipe")), ZLG_EIO, "is a pipe");
  int ends[2];
  char name[64];
  CHECK(pipe(ends) == 0); /* what /dev/stdout is in a pipeline */
  snprintf(name, sizeof name, "/proc/self/fd/%d", ends[1]);
  CHECK_REFUSED(create(name), ZLG_EIO, "is a pipe");
  close(ends[0]);
  close(ends[1]);
  write_text(in_work("file"), "text");
  CHECK_REFUSED(create(in_work("file/out.npy")), ZLG_EIO, strerror(ENOTDIR));
  CHECK(symlink("nowhere", in_work("dangling")) == 0);
  CHECK_REFUSED(create(in_work("dangling")), ZLG_ENOENT, "leads nowhere");
  char longest[5000];
  memset(longest, 'x', sizeof longest);
  longest[256] = '\0';
  CHECK_REFUSED(create(in_work(longest)), ZLG_EIO, strerror(ENAMETOOLONG));
  memset(longest, '/', sizeof longest - 1);
  longest[sizeof longest - 1] = '\0';
  CHECK_REFUSED(create(longest), ZLG_EIO, strerror(ENAMETOOLONG));
  CHECK(entries(work) == 3);
}

static void outputs_with_the_longest_name(void) {
  char longest[256];
  memset(longest, 'x', 255);
  longest[255] = '\0';
  empty_work();
  ZLG_CHECK_OK(create(in_work(longest)), context);
  CHECK(entries(work) == 1);
}

static void outputs_keep_links_permissions_and_the_umask(void) {
  struct stat state;
  empty_work();
  mode_t old = umask(027);
  ZLG_CHECK_OK(create(in_work("fresh.npy")), context);
  CHECK(stat(in_work("fresh.npy"), &state) == 0 && (state.st_mode & 0777) == 0640);
  write_text(in_work("private.npy"), "old");
  CHECK(chmod(in_work("private.npy"), 0604) == 0);
  CHECK(symlink("private.npy", in_work("link.npy")) == 0);
  ZLG_CHECK_OK(create(in_work("link.npy")), context);
  umask(old);
  CHECK(lstat(in_work("link.npy"), &state) == 0 && S_ISLNK(state.st_mode));
  CHECK(lstat(in_work("private.npy"), &state) == 0 && S_ISREG(state.st_mode) && (state.st_mode & 0777) == 0604);
  CHECK(!holds_text(in_work("private.npy"), "old"));
  CHECK(entries(work) == 3);
}

static void outputs_are_found_again_after_chdir(void) {
  zlg_matrix *m, *dropped;
  char *before = getcwd(NULL, 0);
  empty_work();
  CHECK(chdir(work) == 0);
  ZLG_CHECK_OK(zlg_matrix_create_raw(context, &m, "relative", ZLG_F32, 2, 2, ZLG_ROW_MAJOR), context);
  ZLG_CHECK_OK(zlg_matrix_create_raw(context, &dropped, "dropped", ZLG_F32, 2, 2, ZLG_ROW_MAJOR), context);
  CHECK(entries(work) == 2);
  CHECK(chdir("/") == 0);
  ZLG_CHECK_OK(zlg_matrix_close(m), context);
  zlg_matrix_release(m);
  zlg_matrix_release(dropped);
  CHECK(entries(work) == 1 && access(in_work("relative"), F_OK) == 0);
  CHECK(chdir(before) == 0);
  free(before);
}

/* --- the life of an output --- */

static void an_output_appears_when_it_is_closed(void) {
  zlg_matrix *m, *reader;
  zlg_matrix_info info;
  char *path = in_work("out.npy");
  float block[4] = {1, 2, 3, 4}, got[4] = {0};
  empty_work();
  ZLG_CHECK_OK(zlg_matrix_create_npy(context, &m, path, ZLG_F32, 2, 2, ZLG_ROW_MAJOR), context);
  CHECK(access(path, F_OK) != 0);
  ZLG_CHECK_OK(zlg_matrix_read(m, 0, 2, 0, 2, ZLG_ROW_MAJOR, 2, got), context);
  CHECK(got[0] == 0 && got[3] == 0);
  ZLG_CHECK_OK(zlg_matrix_write(m, 0, 2, 0, 2, ZLG_ROW_MAJOR, 2, block), context);
  CHECK(zlg_matrix_get_info(m, &info) == ZLG_OK && info.writable && strcmp(info.path, path) == 0);
  ZLG_CHECK_OK(zlg_matrix_close(m), context);
  ZLG_CHECK_OK(zlg_matrix_close(m), context);
  CHECK(entries(work) == 1);
  CHECK_REFUSED(zlg_matrix_write(m, 0, 2, 0, 2, ZLG_ROW_MAJOR, 2, block), ZLG_EREADONLY, "out.npy");
  ZLG_CHECK_OK(zlg_matrix_read(m, 0, 2, 0, 2, ZLG_ROW_MAJOR, 2, got), context);
  CHECK(memcmp(got, block, sizeof got) == 0);
  /* While another one is written, the old one is read; the reader keeps it even beyond. */
  ZLG_CHECK_OK(zlg_matrix_open_npy(context, &reader, path), context);
  ZLG_CHECK_OK(create(path), context);
  ZLG_CHECK_OK(zlg_matrix_read(reader, 0, 2, 0, 2, ZLG_ROW_MAJOR, 2, got), context);
  CHECK(memcmp(got, block, sizeof got) == 0);
  CHECK_REFUSED(zlg_matrix_write(reader, 0, 2, 0, 2, ZLG_ROW_MAJOR, 2, block), ZLG_EREADONLY, "out.npy");
  ZLG_CHECK_OK(zlg_matrix_close(reader), context);
  zlg_matrix_release(reader);
  zlg_matrix_release(m);
  CHECK(entries(work) == 1);
}

static void an_output_released_without_close_is_removed(void) {
  zlg_matrix *m;
  empty_work();
  write_text(in_work("out.npy"), "old");
  ZLG_CHECK_OK(zlg_matrix_create_npy(context, &m, in_work("out.npy"), ZLG_F64, 1000, 3, ZLG_ROW_MAJOR), context);
  CHECK(entries(work) == 2);
  zlg_matrix_release(m);
  CHECK(entries(work) == 1 && holds_text(in_work("out.npy"), "old"));
}

/* What the program does when it is started as the victim: half an output, a word, and a wait for the end. */
static int be_the_victim(const char *path) {
  zlg_matrix *m;
  float row[4] = {1, 2, 3, 4};
  context = zlg_test_context();
  if (zlg_matrix_create_npy(context, &m, path, ZLG_F32, 1000, 4, ZLG_ROW_MAJOR) != ZLG_OK) return 1;
  for (int i = 0; i < 500; i++)
    if (zlg_matrix_write(m, i, 1, 0, 4, ZLG_ROW_MAJOR, 4, row) != ZLG_OK) return 1;
  if (write(STDOUT_FILENO, "half\n", 5) != 5) return 1;
  for (;;) pause();
}

static void kill_9_leaves_nothing_that_looks_complete(void) {
  int ends[2];
  char word[8] = {0}, *path = in_work("out.npy");
  empty_work();
  write_text(path, "old");
  CHECK(pipe(ends) == 0);
  pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    close(ends[0]);
    close(ends[1]);
    execl("/proc/self/exe", "victim", "--victim", path, (char *)NULL);
    _exit(127);
  }
  close(ends[1]);
  CHECK(read(ends[0], word, 5) == 5 && strcmp(word, "half\n") == 0);
  close(ends[0]);
  CHECK(kill(child, SIGKILL) == 0);
  int state;
  CHECK(waitpid(child, &state, 0) == child && WIFSIGNALED(state));
  CHECK(entries(work) == 2 && holds_text(path, "old"));
  DIR *stream = opendir(work);
  for (struct dirent *entry; (entry = readdir(stream));)
    CHECK(entry->d_name[0] == '.' || strcmp(entry->d_name, "out.npy") == 0);
  closedir(stream);
}

/* --- threads --- */

enum { THREADS = 8, BLOCK = 500 };

struct part {
  zlg_matrix *matrix;
  int index, wrong;
};

static void *write_part(void *argument) {
  struct part *part = argument;
  float *block = malloc(BLOCK * 3 * sizeof *block);
  for (int round = 0; round < 4; round++) {
    int first = (round * THREADS + part->index) * BLOCK;
    for (int i = 0; i < BLOCK; i++)
      for (int k = 0; k < 3; k++) block[round % 2 ? k * BLOCK + i : i * 3 + k] = (float)((first + i) * 3 + k);
    part->wrong += zlg_matrix_write(part->matrix, first, BLOCK, 0, 3, round % 2 ? ZLG_COLUMN_MAJOR : ZLG_ROW_MAJOR,
                                    round % 2 ? BLOCK : 3, block) != ZLG_OK;
  }
  free(block);
  return NULL;
}

static void *read_part(void *argument) {
  struct part *part = argument;
  float *block = malloc(BLOCK * 3 * sizeof *block);
  for (int round = 0; round < 4; round++) {
    int first = (round * THREADS + part->index) * BLOCK;
    part->wrong += zlg_matrix_read(part->matrix, first, BLOCK, 0, 3, ZLG_ROW_MAJOR, 3, block) != ZLG_OK;
    for (int i = 0; i < BLOCK * 3; i++) part->wrong += !(block[i] == (float)(first * 3 + i));
  }
  free(block);
  return NULL;
}

static void run_parts(zlg_matrix *m, void *(*run)(void *)) {
  pthread_t threads[THREADS];
  struct part parts[THREADS];
  for (int t = 0; t < THREADS; t++) {
    parts[t] = (struct part){m, t, 0};
    CHECK(pthread_create(&threads[t], NULL, run, &parts[t]) == 0);
  }
  for (int t = 0; t < THREADS; t++) {
    pthread_join(threads[t], NULL);
    CHECK(parts[t].wrong == 0);
  }
}

static void threads_write_and_read_disjoint_blocks(void) {
  zlg_matrix *m;
  empty_work();
  for (int order = ZLG_ROW_MAJOR; order <= ZLG_COLUMN_MAJOR; order++) {
    ZLG_CHECK_OK(
        zlg_matrix_create_npy(context, &m, in_work("out.npy"), ZLG_F32, 4 * THREADS * BLOCK, 3, (zlg_order)order),
        context);
    run_parts(m, write_part);
    run_parts(m, read_part);
    ZLG_CHECK_OK(zlg_matrix_close(m), context);
    zlg_matrix_release(m);
  }
}

/* --- real disks --- */

/* Mounts are made in a namespace of this process (its main thread), if it may have one. */
static bool own_mounts;
static char why_not[256];

static bool write_proc(const char *path, const char *format, unsigned id) {
  char text[64];
  int length = snprintf(text, sizeof text, format, id), fd = open(path, O_WRONLY);
  bool written = fd >= 0 && write(fd, text, (size_t)length) == length;
  if (fd >= 0) close(fd);
  return written;
}

/* Who is not root becomes it in a namespace of users that has himself only. */
static bool make_own_users(void) {
  unsigned user = getuid(), group = getgid();
  return unshare(CLONE_NEWUSER) == 0 && write_proc("/proc/self/setgroups", "deny", 0) &&
         write_proc("/proc/self/uid_map", "0 %u 1", user) && write_proc("/proc/self/gid_map", "0 %u 1", group);
}

static void make_own_mounts(void) {
  own_mounts = (getuid() == 0 || make_own_users()) && unshare(CLONE_NEWNS) == 0 &&
               mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
  if (!own_mounts) snprintf(why_not, sizeof why_not, "no mounts of its own: %s", strerror(errno));
}

/* Mounts at work/disk; false, and says why, where that is not permitted. */
static bool mount_disk(const char *type, const char *data) {
  char *disk = in_work("disk");
  if (mkdir(disk, 0755) != 0 && errno != EEXIST) return false;
  if (own_mounts && mount("zlg-test", disk, type, 0, data) == 0) return true;
  printf("  (not run: %s)\n", own_mounts ? strerror(errno) : why_not);
  return false;
}

static void leave_disk(void) {
  CHECK(umount(in_work("disk")) == 0);
  CHECK(rmdir(in_work("disk")) == 0);
}

static void a_full_disk_is_found_at_creation(void) {
  empty_work();
  if (!mount_disk("tmpfs", "size=1m")) return;
  zlg_matrix *m;
  CHECK_REFUSED(zlg_matrix_create_npy(context, &m, in_work("disk/out.npy"), ZLG_F64, 1000000, 3, ZLG_ROW_MAJOR),
                ZLG_ENOSPC, "24000128 bytes cannot be reserved, ");
  check_words(" are free: No space left on device", __LINE__);
  CHECK(entries(in_work("disk")) == 0);
  /* What fits is reserved: another one finds less. */
  ZLG_CHECK_OK(zlg_matrix_create_raw(context, &m, in_work("disk/half"), ZLG_F64, 80000, 1, ZLG_ROW_MAJOR), context);
  zlg_matrix *other;
  CHECK_REFUSED(zlg_matrix_create_raw(context, &other, in_work("disk/more"), ZLG_F64, 80000, 1, ZLG_ROW_MAJOR),
                ZLG_ENOSPC, "more");
  zlg_matrix_release(m);
  ZLG_CHECK_OK(zlg_matrix_create_raw(context, &other, in_work("disk/more"), ZLG_F64, 80000, 1, ZLG_ROW_MAJOR), context);
  zlg_matrix_release(other);
  CHECK(entries(in_work("disk")) == 0);
  leave_disk();
}

/* Where space cannot be reserved, a disk that fills up is found when it is written, and nothing is finished. */
static void a_disk_that_fills_up_is_found_at_writing(void) {
  empty_work();
  if (!mount_disk("tmpfs", "size=1m")) return;
  zlg_matrix *m;
  static double block[100000];
  zlg_arm(ZLG_CALL_FALLOCATE, 0, EOPNOTSUPP, 0, -1);
  ZLG_CHECK_OK(zlg_matrix_create_npy(context, &m, in_work("disk/out.npy"), ZLG_F64, 300000, 1, ZLG_ROW_MAJOR), context);
  zlg_disarm();
  ZLG_CHECK_OK(zlg_matrix_write(m, 0, 100000, 0, 1, ZLG_ROW_MAJOR, 1, block), context);
  CHECK_REFUSED(zlg_matrix_write(m, 100000, 100000, 0, 1, ZLG_ROW_MAJOR, 1, block), ZLG_ENOSPC, "bytes at offset ");
  CHECK_REFUSED(zlg_matrix_close(m), ZLG_ENOSPC, "cannot be finished");
  zlg_matrix_release(m);
  CHECK(entries(in_work("disk")) == 0);
  leave_disk();
}

static void a_read_only_disk_refuses(void) {
  empty_work();
  if (!mount_disk("tmpfs", "size=1m")) return;
  write_text(in_work("disk/old.npy"), "old");
  CHECK(mount(NULL, in_work("disk"), NULL, MS_REMOUNT | MS_RDONLY, NULL) == 0);
  CHECK_REFUSED(create(in_work("disk/out.npy")), ZLG_EIO, strerror(EROFS));
  CHECK_REFUSED(create(in_work("disk/old.npy")), ZLG_EIO, "exists and cannot be replaced");
  CHECK(holds_text(in_work("disk/old.npy"), "old"));
  leave_disk();
}

int main(int argc, char **argv) {
  static const struct zlg_test_case cases[] = {
      {"every failing call is an error", every_failing_call_is_an_error},
      {"interrupted and short calls are continued", interrupted_and_short_calls_are_continued},
      {"directories that cannot be flushed are accepted", directories_that_cannot_be_flushed_are_accepted},
      {"a size beyond the limit of the process is an error", a_size_beyond_the_limit_of_the_process_is_an_error},
      {"a failed write is not forgotten", a_failed_write_is_not_forgotten},
      {"a failed flush is not retried", a_failed_flush_is_not_retried},
      {"truncation while reading is an error", truncation_while_reading_is_an_error},
      {"inputs that are no files", inputs_that_are_no_files},
      {"outputs that cannot be files", outputs_that_cannot_be_files},
      {"outputs with the longest name", outputs_with_the_longest_name},
      {"outputs keep links, permissions and the umask", outputs_keep_links_permissions_and_the_umask},
      {"outputs are found again after chdir", outputs_are_found_again_after_chdir},
      {"an output appears when it is closed", an_output_appears_when_it_is_closed},
      {"an output released without close is removed", an_output_released_without_close_is_removed},
      {"kill -9 leaves nothing that looks complete", kill_9_leaves_nothing_that_looks_complete},
      {"threads write and read disjoint blocks", threads_write_and_read_disjoint_blocks},
      {"a full disk is found at creation", a_full_disk_is_found_at_creation},
      {"a disk that fills up is found at writing", a_disk_that_fills_up_is_found_at_writing},
      {"a read-only disk refuses", a_read_only_disk_refuses},
      {NULL, NULL}};
  if (argc == 3 && strcmp(argv[1], "--victim") == 0) return be_the_victim(argv[2]);
  make_own_mounts(); /* before there are other threads */
  work = zlg_test_path("work");
  if (mkdir(work, 0755) != 0) return 1;
  context = zlg_test_context();
  int result = zlg_test_main(argc, argv, cases);
  zlg_context_release(context);
  free(work);
  return result;
}
