/* Requests: driving, waiting, cancelling, reporting. A request waits for its own tasks only; nothing here asks StarPU
 * to wait for all. */
#include "src/core/request.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "codelets/common/codelet.h"
#include "src/core/memory.h"
#include "src/core/runtime.h"
#include "src/core/simulation.h"

#define TICK_SECONDS 0.1

static void destroy(zlg_request *request) {
  zlg_free(request->worker_reports);
  zlg_free(request->trace);
  zlg_free(request->tallies);
  zlg_monitor_destroy(&request->monitor);
  zlg_context_release(request->context);
  zlg_free(request);
}

static zlg_request *make(zlg_context *context) {
  zlg_request *request = zlg_calloc(1, sizeof *request);
  if (!request) return NULL;
  size_t workers = (size_t)context->worker_count + 1;
  request->context = zlg_context_retain(context);
  request->wake_at = -1;
  request->tallies = zlg_calloc(workers, sizeof *request->tallies);
  request->worker_reports = zlg_calloc(workers, sizeof *request->worker_reports);
  zlg_monitor_init(&request->monitor);
  if (request->tallies && request->worker_reports) return request;
  destroy(request);
  return NULL;
}

/* ---- progress --------------------------------------------------------------------------------------------------- */

static void fill_progress(zlg_request *request, zlg_progress *progress) {
  static _Thread_local double shares[sizeof request->context->worker_index / sizeof(int)];
  double seconds = (request->done ? request->end : zlg_clock()) - request->begin;
  int workers = request->report.direct ? 0 : request->context->worker_count;
  *progress = (zlg_progress){.work_done = request->work_done,
                             .work_total = request->report.work,
                             .tasks_done = request->tasks_done,
                             .tasks_total = request->report.tasks,
                             .seconds = seconds,
                             .seconds_left = NAN,
                             .worker_count = workers,
                             .worker_share = shares};
  if (request->done)
    progress->seconds_left = 0;
  else if (request->work_done > 0)
    progress->seconds_left = seconds * (request->report.work - request->work_done) / request->work_done;
  for (int i = 0; i < workers; i++)
    shares[i] = request->work_done > 0 ? request->tallies[i].work / request->work_done : 0;
}

/* From the waiting thread, lock held; released while the caller's function runs. */
static void tick(zlg_request *request, bool last) {
  const zlg_context_options *options = &request->context->options;
  double now = zlg_clock();
  if (!options->progress || (!last && now - request->last_tick < TICK_SECONDS)) return;
  request->last_tick = now;
  zlg_progress progress;
  fill_progress(request, &progress);
  zlg_monitor_unlock(&request->monitor);
  if (options->progress(options->progress_user, &progress) != 0) zlg_request_cancel(request);
  zlg_monitor_lock(&request->monitor);
}

static void wait_a_little(zlg_request *request) {
  zlg_monitor_wait(&request->monitor, TICK_SECONDS);
}

void zlg_request_work(zlg_request *request) {
  if (!request->working) zlg_runtime_wake(request->context);
  request->working = true;
}

void zlg_request_wait_tasks(zlg_request *request, int tasks) {
  zlg_request_work(request);
  zlg_runtime_schedule();
  request->wake_at = tasks;
  if (request->in_flight > tasks) wait_a_little(request);
  request->wake_at = -1;
  if (!request->threaded) tick(request, false);
}

/* ---- driving ---------------------------------------------------------------------------------------------------- */

static void read_bus(zlg_request *request, int sign) {
  int64_t in[64] = {0}, out[64] = {0};
  int nodes = request->context->memory_nodes < 64 ? request->context->memory_nodes : 64;
  request->bus_known = zlg_runtime_bus_bytes(nodes, in, out);
  for (int node = 0; node < nodes; node++) {
    request->bus_in[node] += sign * in[node];
    request->bus_out[node] += sign * out[node];
  }
}

static void finish(zlg_request *request, int status) {
  if (status != ZLG_OK) zlg_request_fail(request, status);
  read_bus(request, +1);
  request->give_back(request->job);
  zlg_monitor_lock(&request->monitor);
  request->end = zlg_clock();
  request->done = true;
  if (!request->threaded) tick(request, true);
  zlg_monitor_wake(&request->monitor);
  zlg_monitor_unlock(&request->monitor);
}

static void *drive(void *argument) {
  zlg_request *request = argument;
  finish(request, request->run(request, request->job));
  return NULL;
}

/* The driver's thread takes no signals: they are for the application's threads. */
static int start_thread(zlg_request *request) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int error = pthread_create(&request->thread, NULL, drive, request);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return error;
}

int zlg_request_start(zlg_context *context, bool threaded, const zlg_report *known, int (*run)(zlg_request *, void *),
                      void (*give_back)(void *), void *job, zlg_request **out) {
  zlg_request *request = make(context);
  if (!request) {
    give_back(job);
    return zlg_fail(context, ZLG_ENOMEM, "no memory for a request");
  }
  request->report = *known;
  request->run = run;
  request->give_back = give_back;
  request->job = job;
  request->threaded = threaded = threaded && !ZLG_SIMULATED;
  request->begin = request->last_tick = zlg_clock();
  read_bus(request, -1);
  *out = request;
  if (!threaded) {
    drive(request);
    return ZLG_OK;
  }
  int error = start_thread(request);
  if (error == 0) return ZLG_OK;
  give_back(job);
  destroy(request);
  *out = NULL;
  return zlg_fail(context, ZLG_ENOMEM, "no thread for the request: %s", strerror(error));
}

void zlg_request_fail(zlg_request *request, int status) {
  const char *message = status == ZLG_ECANCELED ? "the request was cancelled" : zlg_context_message(request->context);
  zlg_monitor_lock(&request->monitor);
  if (request->status == ZLG_OK) {
    request->status = status;
    snprintf(request->message, sizeof request->message, "%s", message);
  }
  zlg_monitor_wake(&request->monitor);
  zlg_monitor_unlock(&request->monitor);
}

int zlg_request_state(zlg_request *request) {
  return request->status != ZLG_OK ? request->status : atomic_load(&request->cancelled) ? ZLG_ECANCELED : ZLG_OK;
}

static void add_trace(zlg_request *request, const zlg_trace_entry *entry) {
  if (request->trace_count == request->trace_space) {
    int64_t space = request->trace_space ? 2 * request->trace_space : 256;
    zlg_trace_entry *more = space <= ZLG_TRACE_MOST ? zlg_realloc(request->trace, (size_t)space * sizeof *more) : NULL;
    if (!more) return;
    request->trace = more;
    request->trace_space = space;
  }
  /* Two tasks that end together may come here in the other order. */
  int64_t at = request->trace_count++;
  for (; at > 0 && request->trace[at - 1].end > entry->end; at--) request->trace[at] = request->trace[at - 1];
  request->trace[at] = *entry;
}

double zlg_request_task_done(zlg_request *request, int id, const char *codelet, double begin, double end, double work,
                             double predicted) {
  int slots = (int)(sizeof request->context->worker_index / sizeof(int));
  int worker = id >= 0 && id < slots ? request->context->worker_index[id] : -1;
  request->tasks_done++;
  request->work_done += work;
  if (worker < 0) return end - begin;
  struct zlg_tally *tally = &request->tallies[worker];
  double from = begin > tally->last_end ? begin : tally->last_end; /* launches of a device overlap */
  if (from < request->begin) from = request->begin;
  tally->tasks++;
  tally->work += work;
  tally->busy += end > from ? end - from : 0;
  tally->predicted += predicted;
  tally->last_end = end;
  add_trace(request, &(zlg_trace_entry){worker, codelet, from - request->begin, end - request->begin, work});
  return end - from;
}

/* ---- public ----------------------------------------------------------------------------------------------------- */

int zlg_request_wait(zlg_request *request) {
  if (!request) return zlg_fail(NULL, ZLG_EINVAL, "request is NULL");
  zlg_monitor_lock(&request->monitor);
  bool was_done = request->done;
  while (!request->done) {
    wait_a_little(request);
    if (!request->done) tick(request, false);
  }
  if (!was_done) tick(request, true);
  int status = request->status;
  zlg_monitor_unlock(&request->monitor);
  if (status != ZLG_OK) zlg_fail(request->context, status, "%s", request->message);
  return status;
}

int zlg_request_test(zlg_request *request, int *done) {
  if (!request || !done)
    return zlg_fail(request ? request->context : NULL, ZLG_EINVAL, "%s is NULL", request ? "done" : "request");
  zlg_monitor_lock(&request->monitor);
  *done = request->done;
  zlg_monitor_unlock(&request->monitor);
  return ZLG_OK;
}

void zlg_request_cancel(zlg_request *request) {
  if (request) atomic_store(&request->cancelled, 1); /* drivers look ten times a second: nothing here but the store */
}

const char *zlg_request_message(const zlg_request *request) {
  return request ? request->message : "";
}

void zlg_request_release(zlg_request *request) {
  if (!request) return;
  if (request->threaded) pthread_join(request->thread, NULL);
  destroy(request);
}

int zlg_request_progress(zlg_request *request, zlg_progress *progress) {
  if (!request || !progress)
    return zlg_fail(request ? request->context : NULL, ZLG_EINVAL, "%s is NULL", request ? "progress" : "request");
  zlg_monitor_lock(&request->monitor);
  fill_progress(request, progress);
  zlg_monitor_unlock(&request->monitor);
  return ZLG_OK;
}

static int ended(zlg_request *request, const char *what) {
  zlg_monitor_lock(&request->monitor);
  bool done = request->done;
  zlg_monitor_unlock(&request->monitor);
  return done ? ZLG_OK
              : zlg_fail(request->context, ZLG_ESTATE,
                         "the request is still under way: its %s comes after zlg_request_wait()", what);
}

static void report_worker(const zlg_request *request, int index, zlg_worker_report *report) {
  const struct zlg_tally *tally = &request->tallies[index];
  int node = request->context->workers[index].memory_node;
  *report = (zlg_worker_report){.worker = request->context->workers[index],
                                .tasks = tally->tasks,
                                .work = tally->work,
                                .busy = tally->busy,
                                .predicted_busy = tally->predicted};
  if (node > 0 && node < 64) {
    report->bytes_in = request->bus_known ? request->bus_in[node] : -1;
    report->bytes_out = request->bus_known ? request->bus_out[node] : -1;
  }
}

/* The area bound: the same work with every worker busy all the time, each as fast as it was. Workers that did nothing
 * are as fast as others of their kind; kinds that did nothing have no speed to tell of. */
static double area_bound(const zlg_request *request) {
  double work[4] = {0}, busy[4] = {0}, rate = 0;
  const zlg_context *context = request->context;
  for (int i = 0; i < context->worker_count; i++) {
    work[context->workers[i].kind] += request->tallies[i].work;
    busy[context->workers[i].kind] += request->tallies[i].busy;
  }
  for (int kind = ZLG_WORKER_CPU; kind <= ZLG_WORKER_CUDA; kind++)
    if (busy[kind] > 0) rate += context->kinds[kind] * work[kind] / busy[kind];
  return rate > 0 ? request->work_done / rate : NAN;
}

int zlg_request_report(zlg_request *request, zlg_report *report) {
  if (!request || !report)
    return zlg_fail(request ? request->context : NULL, ZLG_EINVAL, "%s is NULL", request ? "report" : "request");
  int status = ended(request, "report");
  if (status != ZLG_OK) return status;
  zlg_monitor_lock(&request->monitor);
  *report = request->report;
  report->seconds = request->end - request->begin;
  report->tasks = request->tasks_done;
  report->worker_count = request->report.direct ? 0 : request->context->worker_count;
  report->workers = request->worker_reports;
  report->bound_seconds = area_bound(request);
  for (int i = 0; i < report->worker_count; i++) report_worker(request, i, &request->worker_reports[i]);
  zlg_monitor_unlock(&request->monitor);
  return ZLG_OK;
}

int zlg_request_trace(zlg_request *request, int64_t *count, const zlg_trace_entry **entries) {
  if (!request || !count || !entries)
    return zlg_fail(request ? request->context : NULL, ZLG_EINVAL, "%s is NULL",
                    !request ? "request"
                    : !count ? "count"
                             : "entries");
  int status = ended(request, "trace");
  if (status != ZLG_OK) return status;
  *count = request->trace_count;
  *entries = request->trace;
  return ZLG_OK;
}
