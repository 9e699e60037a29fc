/* Device texts by name, and the compiled programs on disk. */
#include "codelets/common/device.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/core/memory.h"

const struct zlg_device_profile zlg_device_gpu = {false, 1, 1, 32768};

const char *zlg_device_text(const char *name) {
  for (const struct zlg_device_text *row = zlg_device_texts; row->name; row++)
    if (strcmp(row->name, name) == 0) return row->text;
  return NULL;
}

static uint64_t fnv64(uint64_t hash, const void *data, size_t bytes) {
  const unsigned char *byte = data;
  for (size_t i = 0; i < bytes; i++) hash = (hash ^ byte[i]) * 0x100000001b3u;
  return hash;
}

void zlg_device_key_add(struct zlg_device_key *key, const char *text) {
  size_t bytes = strlen(text) + 1; /* the final 0 keeps "ab","c" and "a","bc" apart */
  key->words[0] = fnv64(key->words[0], text, bytes);
  key->words[1] = fnv64(key->words[1] ^ (uint64_t)bytes, text, bytes);
}

/* What a file of the cache begins with; the payload follows. */
struct header {
  char magic[8];
  struct zlg_device_key key;
  uint64_t bytes, checksum;
};
#define CACHE_MAGIC "zlgdev1"
#define CACHE_LARGEST (64u << 20) /* bytes; a file that claims more is not ours */

bool zlg_device_cache_wanted(bool driver_keeps) {
  const char *when = getenv("ZLG_DEVICE_CACHE");
  if (when && strcmp(when, "never") == 0) return false;
  if (when && strcmp(when, "always") == 0) return true;
  return !driver_keeps;
}

/* The directory, made if need be; false where there is none to be had. */
static bool cache_directory(char *path, size_t bytes) {
  const char *base = getenv("XDG_CACHE_HOME");
  const char *home = getenv("HOME");
  int length;
  if (base && base[0] == '/')
    length = snprintf(path, bytes, "%s", base);
  else if (home && home[0] == '/')
    length = snprintf(path, bytes, "%s/.cache", home);
  else
    return false;
  if (length < 0 || (size_t)length + sizeof "/zellige" > bytes) return false;
  if (mkdir(path, 0700) != 0 && errno != EEXIST) return false;
  memcpy(path + length, "/zellige", sizeof "/zellige");
  return mkdir(path, 0700) == 0 || errno == EEXIST;
}

static bool cache_path(const struct zlg_device_key *key, char *path, size_t bytes) {
  if (!cache_directory(path, bytes)) return false;
  size_t used = strlen(path);
  int length = snprintf(path + used, bytes - used, "/%016llx%016llx.bin", (unsigned long long)key->words[0],
                        (unsigned long long)key->words[1]);
  return length > 0 && (size_t)length < bytes - used;
}

static bool read_whole(int fd, void *to, size_t bytes) {
  for (size_t done = 0; done < bytes;) {
    ssize_t got = read(fd, (char *)to + done, bytes - done);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    done += (size_t)got;
  }
  return true;
}

static bool write_whole(int fd, const void *from, size_t bytes) {
  for (size_t done = 0; done < bytes;) {
    ssize_t put = write(fd, (const char *)from + done, bytes - done);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    done += (size_t)put;
  }
  return true;
}

void *zlg_device_cache_load(const struct zlg_device_key *key, size_t *bytes) {
  char path[4096];
  if (!cache_path(key, path, sizeof path)) return NULL;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe under this name is no file: nobody waits for it */
  if (fd < 0) return NULL;
  struct header header;
  void *data = NULL;
  if (read_whole(fd, &header, sizeof header) && memcmp(header.magic, CACHE_MAGIC, sizeof header.magic) == 0 &&
      memcmp(&header.key, key, sizeof *key) == 0 && header.bytes > 0 && header.bytes <= CACHE_LARGEST)
    data = zlg_malloc((size_t)header.bytes);
  if (data && !(read_whole(fd, data, (size_t)header.bytes) &&
                fnv64(key->words[0], data, (size_t)header.bytes) == header.checksum)) {
    zlg_free(data);
    data = NULL;
  }
  close(fd);
  if (data) *bytes = (size_t)header.bytes;
  return data;
}

void zlg_device_cache_store(const struct zlg_device_key *key, const void *data, size_t bytes) {
  char path[4096], temporary[4096 + 16];
  if (bytes == 0 || bytes > CACHE_LARGEST || !cache_path(key, path, sizeof path)) return;
  snprintf(temporary, sizeof temporary, "%s.XXXXXX", path);
  int fd = mkstemp(temporary);
  if (fd < 0) return;
  struct header header = {CACHE_MAGIC, *key, bytes, fnv64(key->words[0], data, bytes)};
  bool whole = write_whole(fd, &header, sizeof header) && write_whole(fd, data, bytes);
  if (close(fd) != 0 || !whole || rename(temporary, path) != 0) unlink(temporary);
}
