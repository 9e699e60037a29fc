/* The system's calls, answered by the test first: linked into a program beside the inside of the library, these
 * functions stand before the C library's, so that the k-th call of a kind can fail, be interrupted, move fewer bytes,
 * or find the file shorter. Only calls of a thread that armed them are touched. */
#ifndef ZLG_TESTS_FAULT_SYSTEM_H
#define ZLG_TESTS_FAULT_SYSTEM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum zlg_call {
  ZLG_CALL_OPEN, /* and openat */
  ZLG_CALL_FSTAT,
  ZLG_CALL_FADVISE,
  ZLG_CALL_PREAD,
  ZLG_CALL_PWRITE,
  ZLG_CALL_FALLOCATE,
  ZLG_CALL_FTRUNCATE, /* arming it also takes fallocate away, without which the library does not come to it */
  ZLG_CALL_FSYNC,
  ZLG_CALL_RENAME,
  ZLG_CALL_ENTROPY,
  ZLG_CALL_FCHMOD,
  ZLG_CALLS
};
extern const char *const zlg_call_names[ZLG_CALLS];

/* From now on the at-th call of the kind by this thread (from 1 on; 0: every one) fails with `error`; or, error 0,
 * moves at most `at_most` bytes (0: all); or, truncated >= 0, first finds the file cut to so many bytes (pread). EINTR
 * for every call is given to every other one only, as the library calls again. */
void zlg_arm(enum zlg_call call, int at, int error, size_t at_most, int64_t truncated);
void zlg_disarm(void);
/* How many calls were struck since zlg_arm(). */
int zlg_struck(void);

/* Called before each pwrite of any thread, where it is set. */
extern void (*_Atomic zlg_before_pwrite)(void);

#endif
