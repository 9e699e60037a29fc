/* SIGINT, SIGTERM and SIGHUP: while an output is being made a first one cancels the request, so that the unfinished
 * file goes, and the command then dies of the signal as its parent expects; a second one kills at once. */
#ifndef ZLG_TOOL_INTERRUPT_H
#define ZLG_TOOL_INTERRUPT_H

#include "zellige.h"

/* Notes which signals were ignored when the program started (nohup): those stay ignored. First thing in main(). */
void interrupt_remember(void);
/* From now on the first signal is recorded instead of killing. To be called after zlg_context_create(), and again
 * whenever a device library may have put its own handlers in place: PoCL does when it is first used. */
void interrupt_catch(void);
/* The request that a signal cancels; NULL: none. A signal that came before cancels it at once. */
void interrupt_watch(zlg_request *request);
/* The signal recorded, 0 if none came. */
int interrupt_signal(void);
/* Dies of a signal recorded. */
void interrupt_die(int signal_number) __attribute__((noreturn));

#endif
