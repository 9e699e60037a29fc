/* Requests: one asynchronous application of an operator, and its report. */
#ifndef ZELLIGE_REQUEST_H
#define ZELLIGE_REQUEST_H

#include "zellige/context.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct zlg_request zlg_request;

/* Waits for this request only and returns its status; may be called again. Progress is reported from here. */
ZLG_API int zlg_request_wait(zlg_request *request);
/* *done = 1 where the request has ended (its status is then what zlg_request_wait() returns at once), else 0. */
ZLG_API int zlg_request_test(zlg_request *request, int *done);
/* Asks the request to end early with ZLG_ECANCELED; tasks that run already are finished. Output rows that were not
 * reached are as they were. Async-signal-safe. */
ZLG_API void zlg_request_cancel(zlg_request *request);
/* The message of the error that ended the request, "" if none. Lives as long as the request. */
ZLG_API const char *zlg_request_message(const zlg_request *request);
/* Waits, then gives the request back; NULL is allowed. */
ZLG_API void zlg_request_release(zlg_request *request);
/* What is done so far, from any thread. The pointer in it lives until the thread's next call on this request. */
ZLG_API int zlg_request_progress(zlg_request *request, zlg_progress *progress);

/* What one worker did for the request. */
typedef struct zlg_worker_report {
  zlg_worker_info worker;
  int64_t tasks;
  double work;                 /* units of work done (pairs, for kernel products) */
  double busy;                 /* seconds in tasks of this request */
  double predicted_busy;       /* what the models, without what this run taught, say of the same tasks */
  int64_t bytes_in, bytes_out; /* moved to and from the worker's memory node while the request ran, -1 unknown (SHARED
                                  mode without StarPU's profiling); 0 for workers in the machine's memory */
} zlg_worker_report;

typedef struct zlg_report {
  double seconds; /* from submission to the end */
  double predicted_seconds;
  double bound_seconds;  /* the least for the same work at the speeds that the workers had: all busy all the time (area
                            bound); NaN without tasks */
  double work;           /* total, as in zlg_progress */
  const char *work_unit; /* "pairs" */
  double flops;
  int64_t bytes_read, bytes_written; /* files */
  int64_t tasks;
  int direct; /* 1: ran in the calling thread, without tasks; then worker_count is 0 */
  int64_t tile_rows, tile_columns;
  int worker_count;
  const zlg_worker_report *workers; /* live as long as the request */
} zlg_report;
/* The report of a request that has ended; ZLG_ESTATE before. */
ZLG_API int zlg_request_report(zlg_request *request, zlg_report *report);

/* One task of the trace: when, where, what. Seconds since submission. */
typedef struct zlg_trace_entry {
  int worker; /* index as in zlg_context_worker() */
  const char *codelet;
  double start, end;
  double work;
} zlg_trace_entry;
/* The tasks of a request that has ended, in the order of their ends; at most the first 2^20 are kept. */
ZLG_API int zlg_request_trace(zlg_request *request, int64_t *count, const zlg_trace_entry **entries);

#ifdef __cplusplus
}
#endif
#endif
