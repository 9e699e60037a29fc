/* Descriptions of machines: lines `key = value`, '#' starts a comment, every key known and at most once. */
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "perfmodels/perfmodels.h"
#include "src/core/error.h"
#include "zellige/simulation.h"

enum form { TEXT, COUNT, NUMBER, FLAG };

#define KEY(name_, form_, member_)                                                                                     \
  { name_, form_, offsetof(zlg_platform, member_), sizeof((zlg_platform *)0)->member_ }
#define RATES(kind)                                                                                                    \
  KEY(#kind ".fma.f32", NUMBER, kind.multiply_adds[0]), KEY(#kind ".fma.f64", NUMBER, kind.multiply_adds[1]),          \
      KEY(#kind ".special.f32", NUMBER, kind.specials[0]), KEY(#kind ".special.f64", NUMBER, kind.specials[1]),        \
      KEY(#kind ".special_slots.f32", NUMBER, kind.special_slots[0]),                                                  \
      KEY(#kind ".special_slots.f64", NUMBER, kind.special_slots[1]), KEY(#kind ".bytes", NUMBER, kind.bytes),         \
      KEY(#kind ".launch", NUMBER, kind.launch), KEY(#kind ".calibrated", FLAG, kind.calibrated)
static const struct key {
  const char *name;
  enum form form;
  size_t offset, bytes;
} keys[] = {KEY("title", TEXT, title),
            KEY("sockets", COUNT, sockets),
            KEY("cores", COUNT, cores),
            KEY("gpus", COUNT, gpus),
            KEY("memory", NUMBER, memory_bytes),
            KEY("gpu.memory", NUMBER, gpu_memory_bytes),
            RATES(cpu),
            RATES(gpu),
            KEY("link.bandwidth", NUMBER, link_bandwidth),
            KEY("link.latency", NUMBER, link_latency),
            KEY("socket.bandwidth", NUMBER, socket_bandwidth),
            KEY("peer.bandwidth", NUMBER, peer_bandwidth),
            KEY("peer.latency", NUMBER, peer_latency),
            KEY("disk.read", NUMBER, disk_read),
            KEY("disk.write", NUMBER, disk_write),
            KEY("calibration.host", TEXT, calibration_host)};
enum { KEYS = sizeof keys / sizeof *keys };

static const struct key *find_key(const char *name) {
  for (int i = 0; i < KEYS; i++)
    if (strcmp(keys[i].name, name) == 0) return &keys[i];
  return NULL;
}

static char *trim(char *text) {
  while (*text == ' ' || *text == '\t') text++;
  char *end = text + strlen(text);
  while (end > text && strchr(" \t\r\n", end[-1])) *--end = '\0';
  return text;
}

/* What a value should have been; NULL where it is that, and then in its place. */
static const char *take(const struct key *key, const char *text, zlg_platform *platform) {
  char *place = (char *)platform + key->offset, *end;
  double number = strtod(text, &end);
  bool numeric = end != text && *end == '\0' && isfinite(number) && number >= 0;
  switch (key->form) {
  case TEXT:
    if (!*text || strlen(text) >= key->bytes) return "a text, not too long";
    memcpy(place, text, strlen(text) + 1);
    return NULL;
  case FLAG:
    if (strcmp(text, "yes") != 0 && strcmp(text, "no") != 0) return "yes or no";
    *(int *)place = *text == 'y';
    return NULL;
  case COUNT:
    if (!numeric || number > 4096 || number != floor(number)) return "a whole number, 0 to 4096";
    *(int *)place = (int)number;
    return NULL;
  case NUMBER:
    if (!numeric) return "a number, 0 or more, in bytes, seconds or a second";
    *(double *)place = number;
    return NULL;
  }
  return "";
}

static int read_line(const char *path, int number, char *line, bool *given, zlg_platform *platform) {
  char *comment = strchr(line, '#');
  if (comment) *comment = '\0';
  char *name = trim(line), *equals = strchr(name, '=');
  if (!*name) return ZLG_OK;
  if (!equals) return zlg_fail(NULL, ZLG_EFORMAT, "%s, line %d: '%s'; expected key = value", path, number, name);
  *equals = '\0';
  name = trim(name);
  char *value = trim(equals + 1);
  const struct key *key = find_key(name);
  if (!key) return zlg_fail(NULL, ZLG_EFORMAT, "%s, line %d: no key '%s'", path, number, name);
  if (given[key - keys]) return zlg_fail(NULL, ZLG_EFORMAT, "%s, line %d: a second '%s'", path, number, name);
  given[key - keys] = true;
  const char *expected = take(key, value, platform);
  if (!expected) return ZLG_OK;
  return zlg_fail(NULL, ZLG_EFORMAT, "%s, line %d: %s = '%s'; expected %s", path, number, name, value, expected);
}

static int need(const char *path, const char *key, bool there) {
  return there ? ZLG_OK : zlg_fail(NULL, ZLG_EFORMAT, "%s: no '%s', or 0; expected a positive number", path, key);
}

static int check_rates(const char *path, const char *kind, const zlg_rates *rates) {
  const struct {
    const char *name;
    double value;
  } needed[] = {{"fma.f32", rates->multiply_adds[0]}, {"fma.f64", rates->multiply_adds[1]}, {"bytes", rates->bytes}};
  for (int i = 0; i < 3 && !rates->calibrated; i++) {
    char key[64];
    snprintf(key, sizeof key, "%s.%s", kind, needed[i].name);
    if (need(path, key, needed[i].value > 0) != ZLG_OK) return ZLG_EFORMAT;
  }
  return ZLG_OK;
}

static int check(const char *path, const zlg_platform *p) {
  int status = need(path, "cores", p->cores > 0);
  if (status == ZLG_OK) status = need(path, "memory", p->memory_bytes > 0);
  if (status == ZLG_OK) status = check_rates(path, "cpu", &p->cpu);
  if (status != ZLG_OK || p->gpus == 0) return status;
  status = need(path, "gpu.memory", p->gpu_memory_bytes > 0);
  if (status == ZLG_OK) status = need(path, "link.bandwidth", p->link_bandwidth > 0);
  if (status == ZLG_OK && p->gpus >= p->cores)
    status = zlg_fail(NULL, ZLG_EFORMAT, "%s: %d gpus and %d cores; each GPU keeps a core busy, and one must be left",
                      path, p->gpus, p->cores);
  return status == ZLG_OK ? check_rates(path, "gpu", &p->gpu) : status;
}

/* a100-nvlink of perfmodels/machines/a100-nvlink.machine; StarPU takes a '.' for the end of a name. */
static void set_name(const char *path, zlg_platform *platform) {
  const char *slash = strrchr(path, '/'), *start = slash ? slash + 1 : path;
  size_t length = strcspn(start, ".");
  snprintf(platform->name, sizeof platform->name, "%.*s", (int)length, start);
  for (char *c = platform->name; *c; c++)
    if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_", *c)) *c = '-';
  if (!*platform->name) snprintf(platform->name, sizeof platform->name, "machine");
}

int zlg_platform_read(const char *path, zlg_platform *platform) {
  if (!path || !platform) return zlg_fail(NULL, ZLG_EINVAL, "%s is NULL", path ? "platform" : "path");
  *platform = (zlg_platform){.sockets = 1};
  FILE *file = fopen(path, "r");
  if (!file) return zlg_fail(NULL, errno == ENOENT ? ZLG_ENOENT : ZLG_EIO, "%s: %s", path, strerror(errno));
  set_name(path, platform);
  bool given[KEYS] = {false};
  char line[512];
  int status = ZLG_OK;
  for (int number = 1; status == ZLG_OK && fgets(line, sizeof line, file); number++)
    status = read_line(path, number, line, given, platform);
  if (status == ZLG_OK && ferror(file)) status = zlg_fail(NULL, ZLG_EIO, "%s: %s", path, strerror(errno));
  fclose(file);
  if (status == ZLG_OK) status = check(path, platform);
  if (status == ZLG_OK && !*platform->title) snprintf(platform->title, sizeof platform->title, "%s", platform->name);
  if (platform->sockets < 1) platform->sockets = 1;
  return status;
}
