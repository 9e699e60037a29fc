/* The trace of a request as a tab-separated file, for plots: one row a task, under a row of titles. */
#ifndef ZLG_TOOL_TRACE_H
#define ZLG_TOOL_TRACE_H

#include "zellige.h"

struct trace;

/* Opened before the work, so that a place that cannot be written is known in time. NULL after a message. */
struct trace *trace_open(const char *path);
/* Writes it and gives it its name. TOOL_OK, or TOOL_FAILED after a message. */
int trace_write(struct trace *trace, const zlg_context *context, zlg_request *request);
/* Gives it back, and away what was not written. NULL is allowed. */
void trace_close(struct trace *trace);

#endif
