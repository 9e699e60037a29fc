/* Calls while memory runs out: with 0, 1, 2, ... allocations allowed, once (that one fails and later ones succeed) and
 * for good (all later ones fail too). Each time the call gives ZLG_ENOMEM with a message or succeeds, leaves nothing
 * allocated, and what it was called with is as usable as before. Only the library's own allocations are refused;
 * StarPU's are not ours to refuse. */
#ifndef ZLG_TEST_FAULT_REFUSE_H
#define ZLG_TEST_FAULT_REFUSE_H

#include "tests/support.h"

#define CHECK(condition) zlg_check((condition), #condition, __FILE__, __LINE__)

/* Between these, when no context is there, the library allocates through the allocator that refuses; at the end nothing
 * may be left. */
void zlg_refuse_begin(void);
void zlg_refuse_end(void);
/* The call, with each of its allocations refused in turn, in a thread of its own: what a thread keeps for itself goes
 * with it. context: whose message is looked at, whose workers may keep scratch; NULL: none. */
void zlg_refuse_in_turn(zlg_context *context, int (*call)(void));

#endif
