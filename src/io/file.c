/* Files: opened, created, read, written, finished, each failure of the system turned into a code and a sentence with
 * the path and the offset. One file serves any number of threads: only positioned reads and writes are used. */
#include "config.h"

#include "src/io/io.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "src/core/error.h"
#include "src/core/memory.h"

#define RUN_BYTES (INT64_C(1) << 30) /* of one system call: Linux moves less than 2 GiB at once */
#define NAME_TRIES 100
#define NAME_KEPT 200 /* bytes of the final name in the temporary one: together below NAME_MAX */

struct zlg_file {
  zlg_context *context;
  char *path; /* as the caller gave it */
  int fd;
  int64_t payload;
  uint64_t device, inode;
  /* Created files. Names are relative to the open directory, wherever the process may be by then. */
  bool created;
  atomic_int failed; /* status of the first write or flush that failed, ZLG_OK if none */
  int directory;     /* -1: none open */
  char *name;
  char *temporary;         /* NULL once the file has its name */
  pthread_mutex_t closing; /* guards temporary */
};

static const char *tail(const struct zlg_file *file) {
  return zlg_path_tail(file->path);
}

static const char *kind_of(mode_t mode) {
  switch (mode & S_IFMT) {
  case S_IFDIR:
    return "a directory";
  case S_IFCHR:
    return "a character device";
  case S_IFBLK:
    return "a block device";
  case S_IFIFO:
    return "a pipe";
  case S_IFSOCK:
    return "a socket";
  default:
    return "not a file";
  }
}

static int make_file(zlg_context *context, const char *what, const char *path, struct zlg_file **file) {
  *file = NULL;
  if (!context) return zlg_fail(NULL, ZLG_EINVAL, "%s: context is NULL; expected a context", what);
  if (!path) return zlg_fail(context, ZLG_EINVAL, "%s: path is NULL; expected the name of a file", what);
  struct zlg_file *made = zlg_calloc(1, sizeof *made);
  if (made) made->path = zlg_strdup(path);
  if (!made || !made->path) {
    zlg_free(made);
    return zlg_fail(context, ZLG_ENOMEM, "%s: no memory to open %s", what, zlg_path_tail(path));
  }
  made->context = context;
  made->fd = made->directory = -1;
  atomic_init(&made->failed, ZLG_OK);
  pthread_mutex_init(&made->closing, NULL);
  *file = made;
  return ZLG_OK;
}

void zlg_file_discard(struct zlg_file *file) {
  if (!file) return;
  if (file->temporary && file->fd >= 0) unlinkat(file->directory, file->temporary, 0);
  if (file->fd >= 0) close(file->fd);
  if (file->directory >= 0) close(file->directory);
  pthread_mutex_destroy(&file->closing);
  zlg_free(file->temporary);
  zlg_free(file->name);
  zlg_free(file->path);
  zlg_free(file);
}

/* --- opening --- */

static int identify(struct zlg_file *file, struct stat *state) {
  if (fstat(file->fd, state) != 0) return zlg_fail_errno(file->context, errno, "%s: cannot be examined", tail(file));
  if (!S_ISREG(state->st_mode))
    return zlg_fail(file->context, ZLG_EIO, "%s: is %s; expected a regular file", tail(file), kind_of(state->st_mode));
  file->device = (uint64_t)state->st_dev;
  file->inode = (uint64_t)state->st_ino;
  return ZLG_OK;
}

/* Looked at before it is opened, since opening alone does things to a pipe or a device; and after, since it may be
 * another file by then. */
static int open_existing(struct zlg_file *file, int64_t *bytes) {
  struct stat state;
  if (stat(file->path, &state) != 0)
    return zlg_fail_errno(file->context, errno, "%s: cannot be opened for reading", tail(file));
  if (!S_ISREG(state.st_mode))
    return zlg_fail(file->context, ZLG_EIO, "%s: is %s; expected a regular file", tail(file), kind_of(state.st_mode));
  file->fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (file->fd < 0) return zlg_fail_errno(file->context, errno, "%s: cannot be opened for reading", tail(file));
  int status = identify(file, &state);
  if (status != ZLG_OK) return status;
  posix_fadvise(file->fd, 0, 0, POSIX_FADV_SEQUENTIAL); /* advice: a refusal changes nothing */
  *bytes = state.st_size;
  return ZLG_OK;
}

int zlg_file_open(zlg_context *context, const char *what, const char *path, struct zlg_file **file, int64_t *bytes) {
  int status = make_file(context, what, path, file);
  if (status != ZLG_OK) return status;
  status = open_existing(*file, bytes);
  if (status == ZLG_OK) return ZLG_OK;
  zlg_file_discard(*file);
  *file = NULL;
  return status;
}

/* --- creating --- */

/* Where the file will be: `place` (PATH_MAX bytes) gets `path`, or what a symbolic link there leads to, so that a link
 * stays a link. *mode gets the permissions of the file that is there, 0 if none. */
static int find_place(const struct zlg_file *file, char *place, mode_t *mode) {
  struct stat state;
  *mode = 0;
  if (strlen(file->path) >= PATH_MAX)
    return zlg_fail_errno(file->context, ENAMETOOLONG, "%s: cannot be created", tail(file));
  strcpy(place, file->path);
  if (stat(file->path, &state) != 0) {
    if (errno != ENOENT) return zlg_fail_errno(file->context, errno, "%s: cannot be created", tail(file));
    if (lstat(file->path, &state) == 0)
      return zlg_fail(file->context, ZLG_ENOENT, "%s: is a symbolic link that leads nowhere", tail(file));
    return ZLG_OK;
  }
  if (!S_ISREG(state.st_mode))
    return zlg_fail(file->context, ZLG_EIO, "%s: is %s; expected a regular file or a free name", tail(file),
                    kind_of(state.st_mode));
  if (faccessat(AT_FDCWD, file->path, W_OK, AT_EACCESS) != 0)
    return zlg_fail_errno(file->context, errno, "%s: exists and cannot be replaced", tail(file));
  *mode = state.st_mode & 0777;
  if (lstat(file->path, &state) == 0 && S_ISLNK(state.st_mode) && !realpath(file->path, place))
    return zlg_fail_errno(file->context, errno, "%s: cannot be created", tail(file));
  return ZLG_OK;
}

/* Splits `place` into the directory, opened, and the name. A directory that may be written but not listed serves too.
 */
static int open_directory(struct zlg_file *file, char *place) {
  char *slash = strrchr(place, '/');
  const char *name = slash ? slash + 1 : place, *directory = ".";
  if (*name == '\0')
    return zlg_fail(file->context, ZLG_ENOENT, "\"%s\": names no file; expected the name of a file", tail(file));
  file->name = zlg_strdup(name);
  file->temporary = zlg_malloc(strlen(name) + sizeof "..zlg-XXXXXX");
  if (!file->name || !file->temporary)
    return zlg_fail(file->context, ZLG_ENOMEM, "%s: no memory to create it", tail(file));
  if (slash) {
    *slash = '\0';
    directory = slash == place ? "/" : place;
  }
  file->directory = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file->directory < 0 && errno == EACCES) file->directory = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (file->directory < 0)
    return zlg_fail_errno(file->context, errno, "%s: cannot be created in this directory", tail(file));
  return ZLG_OK;
}

static int make_temporary_name(struct zlg_file *file) {
  static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
  unsigned char random[6];
  if (getentropy(random, sizeof random) != 0)
    return zlg_fail_errno(file->context, errno, "%s: no random name for it", tail(file));
  char *end = file->temporary + sprintf(file->temporary, ".%.*s.zlg-", NAME_KEPT, file->name);
  for (size_t i = 0; i < sizeof random; i++) *end++ = letters[random[i] % (sizeof letters - 1)];
  *end = '\0';
  return ZLG_OK;
}

static int open_temporary(struct zlg_file *file, mode_t mode) {
  for (int i = 0; i < NAME_TRIES && file->fd < 0; i++) {
    int status = make_temporary_name(file);
    if (status != ZLG_OK) return status;
    file->fd = openat(file->directory, file->temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (file->fd < 0 && errno != EEXIST) break;
  }
  if (file->fd < 0) return zlg_fail_errno(file->context, errno, "%s: cannot be created", tail(file));
  /* A file system without permissions is no reason to refuse. */
  if (mode && fchmod(file->fd, mode) != 0 && errno != EPERM && errno != ENOTSUP)
    return zlg_fail_errno(file->context, errno, "%s: cannot keep its permissions", tail(file));
  struct stat state;
  return identify(file, &state);
}

/* Beyond this limit the system would not only refuse but send SIGXFSZ, which ends the process. */
static bool beyond_limit(int64_t bytes) {
  struct rlimit limit;
  return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && (uint64_t)bytes > limit.rlim_cur;
}

static int fail_reserve(const struct zlg_file *file, int64_t bytes, int error) {
  struct statvfs disk;
  if (error != ENOSPC || fstatvfs(file->fd, &disk) != 0)
    return zlg_fail_errno(file->context, error, "%s: %" PRId64 " bytes cannot be reserved", tail(file), bytes);
  return zlg_fail_errno(file->context, error, "%s: %" PRId64 " bytes cannot be reserved, %" PRIu64 " are free",
                        tail(file), bytes, (uint64_t)disk.f_bavail * (uint64_t)disk.f_frsize);
}

/* fallocate() itself: posix_fallocate() would write the whole file where the file system cannot reserve. */
static int reserve(const struct zlg_file *file, int64_t bytes) {
  if (bytes == 0) return ZLG_OK;
  if (beyond_limit(bytes)) return fail_reserve(file, bytes, EFBIG);
  int result;
  do result = fallocate(file->fd, 0, 0, bytes);
  while (result != 0 && errno == EINTR);
  if (result != 0 && (errno == EOPNOTSUPP || errno == ENOSYS)) {
    do result = ftruncate(file->fd, bytes);
    while (result != 0 && errno == EINTR);
  }
  return result == 0 ? ZLG_OK : fail_reserve(file, bytes, errno);
}

static int create_temporary(struct zlg_file *file, int64_t bytes) {
  mode_t mode;
  char *place = zlg_malloc(PATH_MAX);
  if (!place) return zlg_fail(file->context, ZLG_ENOMEM, "%s: no memory to create it", tail(file));
  int status = find_place(file, place, &mode);
  if (status == ZLG_OK) status = open_directory(file, place);
  zlg_free(place);
  if (status == ZLG_OK) status = open_temporary(file, mode);
  if (status == ZLG_OK) status = reserve(file, bytes);
  return status;
}

int zlg_file_create(zlg_context *context, const char *what, const char *path, int64_t bytes, struct zlg_file **file) {
  int status = make_file(context, what, path, file);
  if (status != ZLG_OK) return status;
  (*file)->created = true;
  status = create_temporary(*file, bytes);
  if (status == ZLG_OK) return ZLG_OK;
  zlg_file_discard(*file);
  *file = NULL;
  return status;
}

/* --- reading and writing --- */

static int fail_short(const struct zlg_file *file, int64_t offset, int64_t bytes) {
  struct stat state;
  if (fstat(file->fd, &state) != 0) state.st_size = 0;
  return zlg_fail(file->context, ZLG_EIO,
                  "%s: was truncated while it was read: %" PRId64 " bytes from offset %" PRId64
                  " on are wanted and the file has %" PRId64 " bytes now",
                  tail(file), bytes, offset, (int64_t)state.st_size);
}

int zlg_file_read(const struct zlg_file *file, int64_t offset, int64_t bytes, void *to) {
  char *next = to;
  while (bytes > 0) {
    ssize_t got = pread(file->fd, next, (size_t)(bytes < RUN_BYTES ? bytes : RUN_BYTES), (off_t)offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0)
      return zlg_fail_errno(file->context, errno, "%s: reading %" PRId64 " bytes at offset %" PRId64 " failed",
                            tail(file), bytes, offset);
    if (got == 0) return fail_short(file, offset, bytes);
    next += got;
    offset += got;
    bytes -= got;
  }
  return ZLG_OK;
}

/* From now on the file cannot be finished: what was to be written is not in it. */
static int remember(struct zlg_file *file, int status) {
  int none = ZLG_OK;
  atomic_compare_exchange_strong(&file->failed, &none, status);
  return status;
}

int zlg_file_write(struct zlg_file *file, int64_t offset, int64_t bytes, const void *from) {
  const char *next = from;
  while (bytes > 0) {
    ssize_t put = pwrite(file->fd, next, (size_t)(bytes < RUN_BYTES ? bytes : RUN_BYTES), (off_t)offset);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0)
      return remember(file, zlg_fail_errno(file->context, put < 0 ? errno : EIO,
                                           "%s: writing %" PRId64 " bytes at offset %" PRId64 " failed", tail(file),
                                           bytes, offset));
    next += put;
    offset += put;
    bytes -= put;
  }
  return ZLG_OK;
}

/* --- finishing --- */

static int sync_descriptor(int fd) {
  int result;
  do result = fsync(fd);
  while (result != 0 && errno == EINTR);
  return result;
}

/* A system that cannot flush directories says EINVAL; one that was opened without the right to list it says EBADF. */
static int flush_directory(const struct zlg_file *file) {
  if (sync_descriptor(file->directory) == 0 || errno == EINVAL || errno == EBADF) return ZLG_OK;
  return zlg_fail_errno(file->context, errno, "%s: is complete, but its directory could not be flushed to the disk",
                        tail(file));
}

/* After a failed flush the system may forget what it could not write, and a second one would succeed: never retried. */
static int flush(struct zlg_file *file) {
  int status = atomic_load(&file->failed);
  if (status != ZLG_OK)
    return zlg_fail(file->context, status, "%s: cannot be finished, because writing it failed before", tail(file));
  if (sync_descriptor(file->fd) == 0) return ZLG_OK;
  return remember(file, zlg_fail_errno(file->context, errno, "%s: could not be flushed to the disk", tail(file)));
}

static int take_name(struct zlg_file *file) {
  if (renameat(file->directory, file->temporary, file->directory, file->name) != 0)
    return zlg_fail_errno(file->context, errno, "%s: the finished file cannot take this name", tail(file));
  zlg_free(file->temporary);
  file->temporary = NULL;
  return flush_directory(file);
}

int zlg_file_finish(struct zlg_file *file) {
  pthread_mutex_lock(&file->closing);
  int status = ZLG_OK;
  if (file->temporary) {
    status = flush(file);
    if (status == ZLG_OK) status = take_name(file);
  }
  pthread_mutex_unlock(&file->closing);
  return status;
}

/* --- as a store --- */

static int store_read(const zlg_matrix *matrix, int64_t offset, int64_t bytes, void *to) {
  const struct zlg_file *file = matrix->store;
  return zlg_file_read(file, file->payload + offset, bytes, to);
}

static int store_write(zlg_matrix *matrix, int64_t offset, int64_t bytes, const void *from) {
  struct zlg_file *file = matrix->store;
  return zlg_file_write(file, file->payload + offset, bytes, from);
}

static int store_close(zlg_matrix *matrix) {
  const struct zlg_file *file = matrix->store;
  int status = zlg_file_finish(matrix->store);
  if (!file->temporary) matrix->writable = false; /* it has its name: what is there now stays */
  return status;
}

static void store_release(zlg_matrix *matrix) {
  zlg_file_discard(matrix->store);
}

static const struct zlg_store_ops opened_ops = {.read = store_read, .release = store_release};
static const struct zlg_store_ops created_ops = {
    .read = store_read, .write = store_write, .close = store_close, .release = store_release};

void zlg_file_attach(struct zlg_file *file, zlg_matrix *matrix, int64_t payload) {
  file->payload = payload;
  matrix->store = file;
  matrix->ops = file->created ? &created_ops : &opened_ops;
  matrix->path = file->path;
  matrix->device = file->device;
  matrix->inode = file->inode;
  matrix->writable = file->created;
}
