/* The window: tasks are submitted while fewer than so many are under way, and come back here when they end. Who submits
 * waits until half of them have ended: on a machine whose cores are all workers', each of its turns costs one of them.
 * Everything shared with the workers' threads is under the request's lock, taken once a task. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "codelets/common/model.h"
#include "src/core/memory.h"
#include "src/core/simulation.h"
#include "src/plan/graph.h"

struct zlg_task *zlg_task_new(zlg_request *request, const struct zlg_codelet *codelet, const void *args, size_t bytes) {
  struct zlg_task *task = zlg_calloc(1, sizeof *task + bytes);
  if (!task) {
    zlg_fail(request->context, ZLG_ENOMEM, "no memory for a task");
    return NULL;
  }
  task->request = request;
  task->codelet = codelet;
  memcpy(task->args, args, bytes);
  struct zlg_count count = {0};
  codelet->count(args, &count);
  task->work = count.work;
  return task;
}

static zlg_worker_kind kind_of_worker(const zlg_context *context, int id) {
  int slots = (int)(sizeof context->worker_index / sizeof(int));
  int index = id >= 0 && id < slots ? context->worker_index[id] : -1;
  return index < 0 ? ZLG_WORKER_CPU : context->workers[index].kind;
}

#if ZLG_SIMULATED
/* What tests of simulated machines ask about. Simulated threads take turns: no lock. */
static void note_peaks(const zlg_request *request, zlg_worker_kind kind) {
  struct zlg_simulated_machine *machine = &zlg_simulated_machine;
  if (request->in_flight > machine->most_tasks) machine->most_tasks = request->in_flight;
  if (kind != ZLG_WORKER_CUDA) return;
  int64_t bytes = (int64_t)starpu_memory_get_used(starpu_worker_get_local_memory_node());
  if (bytes > machine->most_gpu_bytes) machine->most_gpu_bytes = bytes;
}
#endif

/* StarPU's callback, in the worker's thread: the last look at the task. */
static void task_ended(void *argument) {
  struct zlg_task *task = argument;
  zlg_request *request = task->request;
  struct zlg_task_head *const head = (struct zlg_task_head *)task->args;
  double end = zlg_clock();
  int id = starpu_worker_get_id();
  zlg_worker_kind kind = kind_of_worker(request->context, id);
  double predicted = zlg_model_base(task->codelet, task->args, kind);
#if ZLG_SIMULATED
  note_peaks(request, kind);
  head->start = end - predicted; /* no codelet ran to say so; it took what the model said */
#endif
  if (head->status != ZLG_OK) {
    zlg_fail(request->context, head->status, "%s: %s", task->codelet->name, zlg_strerror(head->status));
    zlg_request_fail(request, head->status);
  }
  zlg_monitor_lock(&request->monitor);
  double seconds = zlg_request_task_done(request, id, task->codelet->name, head->start > 0 ? head->start : end, end,
                                         task->work, predicted);
  if (head->start > 0 && !ZLG_SIMULATED) zlg_model_learn(task->codelet, task->args, kind, seconds);
  const bool wake = --request->in_flight <= request->wake_at;
  for (int i = 0; i < ZLG_TASK_TILES; i++)
    if (task->pending[i]) --*task->pending[i];
  /* All under the lock: as soon as it is free the request, the context and their allocator may be gone. */
  zlg_free(task);
  if (wake) zlg_monitor_wake(&request->monitor);
  zlg_monitor_unlock(&request->monitor);
}

/* Workers start when a few tasks each are there, or reading tiles takes so long that there is one: the tasks of a short
 * request are then submitted by a processor that no idle worker polls on. */
#define EARLY_TASKS 8
#define EARLY_SECONDS 1e-4
static void start_workers(zlg_request *request) {
  if (request->working) return;
  const bool enough = ++request->early >= EARLY_TASKS * request->context->worker_count;
  if (enough || zlg_clock() - request->begin > EARLY_SECONDS) zlg_request_work(request);
}

static int take_place(struct zlg_task *task, int64_t window) {
  zlg_request *request = task->request;
  zlg_monitor_lock(&request->monitor);
  while (request->in_flight >= window && zlg_request_state(request) == ZLG_OK)
    zlg_request_wait_tasks(request, (int)window / 2);
  int status = zlg_request_state(request);
  if (status == ZLG_OK) {
    request->in_flight++;
    for (int i = 0; i < ZLG_TASK_TILES; i++)
      if (task->pending[i]) ++*task->pending[i];
  }
  zlg_monitor_unlock(&request->monitor);
  return status;
}

static void give_place_back(struct zlg_task *task) {
  zlg_request *request = task->request;
  zlg_monitor_lock(&request->monitor);
  request->in_flight--;
  for (int i = 0; i < ZLG_TASK_TILES; i++)
    if (task->pending[i]) --*task->pending[i];
  zlg_monitor_unlock(&request->monitor);
}

static int set_buffers(struct starpu_task *task, const starpu_data_handle_t *handles,
                       const enum starpu_data_access_mode *modes, int count) {
  task->nbuffers = count;
  if (count > STARPU_NMAXBUFS) { /* StarPU gives these back with free() */
    task->dyn_handles = malloc((size_t)count * sizeof *handles);
    task->dyn_modes = malloc((size_t)count * sizeof *modes);
    if (!task->dyn_handles || !task->dyn_modes) return ZLG_ENOMEM;
  }
  memcpy(task->dyn_handles ? task->dyn_handles : task->handles, handles, (size_t)count * sizeof *handles);
  memcpy(task->dyn_modes ? task->dyn_modes : task->modes, modes, (size_t)count * sizeof *modes);
  return ZLG_OK;
}

static int refused(struct starpu_task *starpu, struct zlg_task *task, int code) {
  zlg_context *context = task->request->context;
  starpu->destroy = 0;
  starpu_task_destroy(starpu);
  if (code == -ENODEV)
    return zlg_fail(context, ZLG_ENODEV, "no worker of this context can run %s", task->codelet->name);
  return zlg_fail(context, ZLG_ERUNTIME, "StarPU refused a task of %s: %s", task->codelet->name, strerror(-code));
}

int zlg_task_submit(struct zlg_task *task, int64_t window, const starpu_data_handle_t *handles,
                    const enum starpu_data_access_mode *modes, int count) {
  zlg_request *const request = task->request; /* the task may have ended and gone when it is submitted */
  int status = take_place(task, window);
  if (status != ZLG_OK) {
    zlg_free(task);
    return status;
  }
  struct starpu_task *starpu = starpu_task_create();
  starpu->cl = task->codelet->codelet;
  starpu->name = task->codelet->name;
  starpu->cl_arg = task->args;
  starpu->callback_func = task_ended;
  starpu->callback_arg = task;
  int code = set_buffers(starpu, handles, modes, count) == ZLG_OK ? starpu_task_submit(starpu) : -ENOMEM;
  if (code == 0) {
    start_workers(request);
    return ZLG_OK;
  }
  status = refused(starpu, task, code);
  give_place_back(task);
  zlg_free(task);
  return status;
}

void zlg_tasks_drain(zlg_request *request) {
  zlg_monitor_lock(&request->monitor);
  while (request->in_flight > 0) zlg_request_wait_tasks(request, 0);
  zlg_monitor_unlock(&request->monitor);
}
