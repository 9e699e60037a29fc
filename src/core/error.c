/* The last message of each thread on each context, in fixed thread-local storage: an error about memory needs none. */
#include "config.h"

#include "src/core/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* A thread that fails on more contexts than this forgets the message of the one it failed on least recently. */
#define SLOTS 8

struct slot {
  uint64_t serial; /* of the context; 0: no context */
  uint64_t age;    /* count of the thread's failures when it was written; 0: never */
  char text[ZLG_MESSAGE_BYTES];
};

static _Thread_local struct slot slots[SLOTS];
static _Thread_local uint64_t failures;

static struct slot *find(uint64_t serial) {
  for (int i = 0; i < SLOTS; i++)
    if (slots[i].age && slots[i].serial == serial) return &slots[i];
  return NULL;
}

static struct slot *take(const zlg_context *context) {
  uint64_t serial = context ? zlg_context_serial(context) : 0;
  struct slot *slot = find(serial);
  if (!slot) {
    slot = slots;
    for (int i = 1; i < SLOTS; i++)
      if (slots[i].age < slot->age) slot = &slots[i];
  }
  slot->serial = serial;
  slot->age = ++failures;
  return slot;
}

static void mark_cut(char *text, size_t bytes, int wanted) {
  if (wanted >= 0 && (size_t)wanted >= bytes) memcpy(text + bytes - 4, "...", 4);
}

int zlg_fail(const zlg_context *context, int status, const char *format, ...) {
  /* By way of a copy: an argument may be the old message itself. */
  char text[ZLG_MESSAGE_BYTES];
  va_list arguments;
  va_start(arguments, format);
  int wanted = vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  mark_cut(text, sizeof text, wanted);
  memcpy(take(context)->text, text, sizeof text);
  return status;
}

static int status_of(int error) {
  switch (error) {
  case ENOSPC:
  case EDQUOT:
    return ZLG_ENOSPC;
  case ENOENT:
    return ZLG_ENOENT;
  case ENOMEM:
    return ZLG_ENOMEM;
  default:
    return ZLG_EIO;
  }
}

int zlg_fail_errno(const zlg_context *context, int error, const char *format, ...) {
  char text[ZLG_MESSAGE_BYTES], system_text[128];
  const char *words = strerror_r(error, system_text, sizeof system_text);
  va_list arguments;
  va_start(arguments, format);
  int wanted = vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  mark_cut(text, sizeof text, wanted);
  return zlg_fail(context, status_of(error), "%s: %s", text, words);
}

const char *zlg_path_tail(const char *path) {
  size_t length = strlen(path), most = 500;
  return length > most ? path + length - most : path;
}

const char *zlg_context_message(const zlg_context *context) {
  if (context) {
    struct slot *slot = find(zlg_context_serial(context));
    return slot ? slot->text : "";
  }
  struct slot *latest = slots;
  for (int i = 1; i < SLOTS; i++)
    if (slots[i].age > latest->age) latest = &slots[i];
  return latest->age ? latest->text : "";
}
