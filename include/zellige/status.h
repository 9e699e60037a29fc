/* The error table: one row per code; zlg_status, zlg_strerror() and zlg_status_name() are all made from it. */
#ifndef ZELLIGE_STATUS_H
#define ZELLIGE_STATUS_H

#include "zellige/version.h"

#ifdef __cplusplus
extern "C" {
#endif

/* X(name, value, text). Codes are negative, never renumbered, never reused. */
#define ZLG_STATUS_MAP(X)                                                                                              \
  X(OK, 0, "success")                                                                                                  \
  X(EINVAL, -1, "invalid argument")                                                                                    \
  X(ESHAPE, -2, "shapes do not fit together")                                                                          \
  X(ETYPE, -3, "element types do not fit together")                                                                    \
  X(EOVERLAP, -4, "output overlaps an input")                                                                          \
  X(EOVERFLOW, -5, "a size or a product of sizes does not fit in 64 bits")                                             \
  X(ENOMEM, -6, "out of memory")                                                                                       \
  X(ELIMIT, -7, "the work does not fit in the memory limit")                                                           \
  X(EIO, -8, "reading or writing a file failed")                                                                       \
  X(EFORMAT, -9, "the file is not what its name or header claims")                                                     \
  X(ENOSPC, -10, "no space left on the device")                                                                        \
  X(EREADONLY, -11, "the output is read-only")                                                                         \
  X(ENODEV, -12, "no worker of this machine can run the task")                                                         \
  X(ERUNTIME, -13, "the task runtime could not be started")                                                            \
  X(EDEVICE, -14, "a device refused a program or a launch")                                                            \
  X(ECANCELED, -15, "the request was cancelled")                                                                       \
  X(ENOTSUP, -16, "not supported by this build")                                                                       \
  X(ESTATE, -17, "not possible in the present state")                                                                  \
  X(EEXIST, -18, "the file exists already")                                                                            \
  X(ENOENT, -19, "no such file")                                                                                       \
  X(ESINGULAR, -20, "a matrix is singular, or not positive definite")

typedef enum zlg_status {
#define ZLG_STATUS_ENUM(name, value, text) ZLG_##name = value,
  ZLG_STATUS_MAP(ZLG_STATUS_ENUM)
#undef ZLG_STATUS_ENUM
      ZLG_STATUS_LAST_ = -1000 /* keeps the enumeration open; never returned */
} zlg_status;

/* The text of a code, "unknown status" for a number that is none. Static storage. */
ZLG_API const char *zlg_strerror(int status);
/* The name of a code, "ZLG_EINVAL"; "ZLG_UNKNOWN" for a number that is none. Static storage. */
ZLG_API const char *zlg_status_name(int status);

#ifdef __cplusplus
}
#endif
#endif
