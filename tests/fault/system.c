/* The system's calls, answered here first: see the header. */
#include "config.h"

#include "tests/fault/system.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *const zlg_call_names[ZLG_CALLS] = {"open",      "fstat", "fadvise", "pread",      "pwrite", "fallocate",
                                               "ftruncate", "fsync", "rename",  "getentropy", "fchmod"};

void (*_Atomic zlg_before_pwrite)(void);

static _Thread_local struct {
  bool armed;
  enum zlg_call call;
  int at, error;
  size_t at_most;
  int64_t truncate;
  int seen; /* calls of the kind so far */
  int struck;
} fault;

void zlg_arm(enum zlg_call call, int at, int error, size_t at_most, int64_t truncated) {
  memset(&fault, 0, sizeof fault);
  fault.call = call;
  fault.at = at;
  fault.error = error;
  fault.at_most = at_most;
  fault.truncate = truncated;
  fault.armed = true;
}

void zlg_disarm(void) {
  fault.armed = false;
}

int zlg_struck(void) {
  return fault.struck;
}

static bool strikes(enum zlg_call call) {
  if (!fault.armed || call != fault.call) return false;
  fault.seen++;
  if (fault.at && fault.seen != fault.at) return false;
  if (fault.at == 0 && fault.error == EINTR && fault.seen % 2 == 0) return false;
  fault.struck++;
  return true;
}

static bool fails(enum zlg_call call) {
  if (!strikes(call) || !fault.error) return false;
  errno = fault.error;
  return true;
}

#define REAL(name) __typeof__(&(name)) real = (__typeof__(&(name)))dlsym(RTLD_NEXT, #name)

static mode_t mode_of(int flags, va_list arguments) {
  return flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE ? (mode_t)va_arg(arguments, int) : 0;
}

int open(const char *path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  if (fails(ZLG_CALL_OPEN)) return -1;
  REAL(open);
  return real(path, flags, mode);
}

int openat(int directory, const char *path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  if (fails(ZLG_CALL_OPEN)) return -1;
  REAL(openat);
  return real(directory, path, flags, mode);
}

int fstat(int fd, struct stat *state) {
  if (fails(ZLG_CALL_FSTAT)) return -1;
  REAL(fstat);
  return real(fd, state);
}

int posix_fadvise(int fd, off_t offset, off_t bytes, int advice) {
  if (fails(ZLG_CALL_FADVISE)) return fault.error;
  REAL(posix_fadvise);
  return real(fd, offset, bytes, advice);
}

ssize_t pread(int fd, void *to, size_t bytes, off_t offset) {
  REAL(pread);
  if (!strikes(ZLG_CALL_PREAD)) return real(fd, to, bytes, offset);
  if (fault.error) {
    errno = fault.error;
    return -1;
  }
  if (fault.truncate >= 0) {
    char name[64], path[4096];
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(name, path, sizeof path - 1);
    path[length > 0 ? length : 0] = '\0';
    if (truncate(path, fault.truncate) != 0) abort();
  }
  return real(fd, to, fault.at_most && fault.at_most < bytes ? fault.at_most : bytes, offset);
}

ssize_t pwrite(int fd, const void *from, size_t bytes, off_t offset) {
  REAL(pwrite);
  void (*before)(void) = zlg_before_pwrite;
  if (before) before();
  if (!strikes(ZLG_CALL_PWRITE)) return real(fd, from, bytes, offset);
  if (fault.error) {
    errno = fault.error;
    return -1;
  }
  return real(fd, from, fault.at_most && fault.at_most < bytes ? fault.at_most : bytes, offset);
}

int fallocate(int fd, int mode, off_t offset, off_t bytes) {
  if (fails(ZLG_CALL_FALLOCATE)) return -1;
  if (fault.armed && fault.call == ZLG_CALL_FTRUNCATE) { /* which is only called where space cannot be reserved */
    errno = EOPNOTSUPP;
    return -1;
  }
  REAL(fallocate);
  return real(fd, mode, offset, bytes);
}

int ftruncate(int fd, off_t bytes) {
  if (fails(ZLG_CALL_FTRUNCATE)) return -1;
  REAL(ftruncate);
  return real(fd, bytes);
}

int fsync(int fd) {
  if (fails(ZLG_CALL_FSYNC)) return -1;
  REAL(fsync);
  return real(fd);
}

int renameat(int from_directory, const char *from, int to_directory, const char *to) {
  if (fails(ZLG_CALL_RENAME)) return -1;
  REAL(renameat);
  return real(from_directory, from, to_directory, to);
}

int getentropy(void *bytes, size_t count) {
  if (fails(ZLG_CALL_ENTROPY)) return -1;
  REAL(getentropy);
  return real(bytes, count);
}

int fchmod(int fd, mode_t mode) {
  if (fails(ZLG_CALL_FCHMOD)) return -1;
  REAL(fchmod);
  return real(fd, mode);
}
