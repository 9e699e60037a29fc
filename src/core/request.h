/* The inside of a request: who drives it, what is done so far, who waits. The plan (src/plan) drives; tasks report from
 * worker threads through zlg_request_task_done(). */
#ifndef ZLG_CORE_REQUEST_H
#define ZLG_CORE_REQUEST_H

#include <stdatomic.h>
#include <stdbool.h>

#include "src/core/context.h"
#include "src/core/error.h"
#include "src/core/monitor.h"
#include "zellige/request.h"

#define ZLG_TRACE_MOST (1 << 20)

struct zlg_tally { /* one worker's share, under the request's lock */
  int64_t tasks;
  double work, busy, predicted, last_end;
};

struct zlg_request {
  zlg_context *context;
  struct zlg_monitor monitor; /* woken when a task ended, or the request did */
  atomic_int cancelled;
  bool done, threaded;
  bool working; /* the workers were woken for it; as the next, the driver's alone */
  int early;    /* tasks submitted before that */
  atomic_int status;
  char message[ZLG_MESSAGE_BYTES];
  pthread_t thread;
  int (*run)(zlg_request *request, void *job);
  void (*give_back)(void *job);
  void *job;

  double begin, end, last_tick;
  int in_flight; /* tasks submitted and not ended */
  int wake_at;   /* the driver waits until so few are; -1 while it does not wait */
  int64_t tasks_done;
  double work_done;
  struct zlg_tally *tallies; /* one per worker of the context */
  zlg_trace_entry *trace;
  int64_t trace_count, trace_space;
  int64_t bus_in[64], bus_out[64];
  bool bus_known;
  zlg_worker_report *worker_reports;

  /* What the plan says before the first task. */
  zlg_report report;
};

/* Starts `run(request, job)`: in a thread of its own (threaded), or at once in the calling one, which then also calls
 * the progress function. `give_back(job)` is called once at the end, and also where this fails. `known`: what the
 * report says before the first task. */
int zlg_request_start(zlg_context *context, bool threaded, const zlg_report *known, int (*run)(zlg_request *, void *),
                      void (*give_back)(void *), void *job, zlg_request **request);

/* Ends the request early with this status; the message is the calling thread's last. The first one counts. Lock not
 * held. */
void zlg_request_fail(zlg_request *request, int status);
/* ZLG_OK while work should go on, else why not. Lock held or not. */
int zlg_request_state(zlg_request *request);
/* The driver, once tasks are there: workers start. */
void zlg_request_work(zlg_request *request);
/* The driver, with the lock held: waits until at most `tasks` are in flight, the request failed or a tenth of a second
 * passed; calls the progress function (lock released meanwhile) where the driver is the waiting thread. */
void zlg_request_wait_tasks(zlg_request *request, int tasks);
/* A task ended on StarPU's worker `id`, lock held: counts it. `begin` as the codelet stamped it; `predicted` seconds.
 * Returns the seconds that it had the worker to itself: launches of a device overlap. */
double zlg_request_task_done(zlg_request *request, int id, const char *codelet, double begin, double end, double work,
                             double predicted);

#endif
