/* Errors are values; the words go with them. */
#ifndef ZLG_CORE_ERROR_H
#define ZLG_CORE_ERROR_H

#include "zellige/context.h"

#define ZLG_MESSAGE_BYTES 1024

/* Stores the message (of the calling thread, on this context; context may be NULL) and returns `status`. A message that
 * is too long ends in "...". Nothing is allocated. */
int zlg_fail(const zlg_context *context, int status, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* The same for an errno value after a failed system call: ENOSPC and EDQUOT -> ZLG_ENOSPC, ENOENT -> ZLG_ENOENT, ENOMEM
 * -> ZLG_ENOMEM, anything else ZLG_EIO; ": " and the system's text are appended. */
int zlg_fail_errno(const zlg_context *context, int error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A path for a message: its last 500 bytes where it is longer, so that the words behind it are not cut off. */
const char *zlg_path_tail(const char *path);

/* A number from 1 on that no other context of this process has or had (context.c): messages are kept by it, so that a
 * new context at an old one's address does not inherit them. */
uint64_t zlg_context_serial(const zlg_context *context);

#endif
