/* One point of a curve: the same task some dozens of times on one worker, through StarPU as the plans submit it, so
 * that what StarPU adds is in the figure. */
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "codelets/common/starpu_compat.h"
#include "perfmodels/perfmodels.h"
#include "src/core/error.h"
#include "src/core/memory.h"
#include "src/core/runtime.h"

#define WARM_UP 2   /* the first tasks meet cold caches and a driver's first launch */
#define ROUNDS 12   /* at most so many times `samples` tasks, until enough of them were undisturbed */
#define PATIENCE 3. /* seconds; what is still disturbed then stays so */
#define MOST_SAMPLES 1000

struct bench;
struct sample {
  struct bench *bench;
  struct zlg_task_head *args;
  double processor, seconds;
};

struct bench {
  zlg_context *context;
  const struct zlg_codelet *codelet;
  const struct zlg_case *what;
  const void *args;
  int worker;
  bool core; /* the worker is a thread that computes itself */
  int buffer_count;
  void *memory[ZLG_CASE_BUFFERS];
  starpu_data_handle_t handles[ZLG_CASE_BUFFERS];
  enum starpu_data_access_mode modes[ZLG_CASE_BUFFERS];
  pthread_mutex_t lock;
  pthread_cond_t ended;
  int under_way, status;
};

static double thread_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void task_begins(void *argument) {
  struct sample *sample = argument;
  sample->processor = thread_seconds();
}

/* What a core's worker took is its processor time where that is less: other programs are not the task's cost. */
static void task_ended(void *argument) {
  struct sample *sample = argument;
  struct bench *bench = sample->bench;
  sample->seconds = zlg_clock() - sample->args->start;
  if (bench->core) sample->seconds = fmin(sample->seconds, thread_seconds() - sample->processor);
  pthread_mutex_lock(&bench->lock);
  if (sample->args->status != ZLG_OK) bench->status = sample->args->status;
  if (--bench->under_way == 0) pthread_cond_signal(&bench->ended);
  pthread_mutex_unlock(&bench->lock);
}

/* ---- operands --------------------------------------------------------------------------------------------------- */

static int64_t elements_of(const struct zlg_case_buffer *buffer) {
  return buffer->nx * (buffer->ny ? buffer->ny : 1);
}

/* Numbers between -1 and 1 that are the same every time: the cost of a task may depend on them. */
static void fill(void *memory, const struct zlg_case_buffer *buffer, uint64_t seed) {
  uint64_t state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
  for (int64_t i = 0, count = elements_of(buffer); i < count; i++) {
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    double value = (double)(int32_t)(state >> 32) * 0x1p-31;
    if (buffer->element == sizeof(float))
      ((float *)memory)[i] = (float)value;
    else
      ((double *)memory)[i] = value;
  }
}

static int make_buffers(struct bench *bench) {
  for (int i = 0; i < bench->what->buffer_count; i++) {
    const struct zlg_case_buffer *buffer = &bench->what->buffers[i];
    size_t bytes = (size_t)elements_of(buffer) * buffer->element;
    if (!(bench->memory[i] = zlg_malloc_aligned(64, bytes)))
      return zlg_fail(bench->context, ZLG_ENOMEM, "no memory for an operand of %zu bytes", bytes);
    fill(bench->memory[i], buffer, (uint64_t)i + 1);
    uintptr_t at = (uintptr_t)bench->memory[i];
    uint32_t nx = (uint32_t)buffer->nx;
    if (buffer->ny)
      starpu_matrix_data_register(&bench->handles[i], STARPU_MAIN_RAM, at, nx, nx, (uint32_t)buffer->ny,
                                  buffer->element);
    else
      starpu_vector_data_register(&bench->handles[i], STARPU_MAIN_RAM, at, nx, buffer->element);
    bench->modes[i] = buffer->mode == ZLG_CASE_IN ? STARPU_R : buffer->mode == ZLG_CASE_OUT ? STARPU_W : STARPU_RW;
    bench->buffer_count++;
  }
  return ZLG_OK;
}

static void free_buffers(struct bench *bench) {
  for (int i = 0; i < bench->buffer_count; i++) starpu_data_unregister_no_coherency(bench->handles[i]);
  for (int i = 0; i < bench->what->buffer_count; i++) zlg_free_aligned(bench->memory[i]);
}

/* ---- running ---------------------------------------------------------------------------------------------------- */

static int submit(struct bench *bench, struct sample *sample) {
  struct starpu_task *task = starpu_task_create();
  task->cl = bench->codelet->codelet;
  task->name = bench->codelet->name;
  task->cl_arg = sample->args;
  task->nbuffers = bench->buffer_count;
  memcpy(task->handles, bench->handles, sizeof *bench->handles * (size_t)bench->buffer_count);
  memcpy(task->modes, bench->modes, sizeof *bench->modes * (size_t)bench->buffer_count);
  task->execute_on_a_specific_worker = 1;
  task->workerid = (unsigned)bench->worker;
  task->prologue_callback_pop_func = task_begins;
  task->prologue_callback_pop_arg = sample;
  task->callback_func = task_ended;
  task->callback_arg = sample;
  pthread_mutex_lock(&bench->lock);
  bench->under_way++;
  pthread_mutex_unlock(&bench->lock);
  int code = starpu_task_submit(task);
  if (code == 0) return ZLG_OK;
  task->destroy = 0;
  starpu_task_destroy(task);
  pthread_mutex_lock(&bench->lock);
  bench->under_way--;
  pthread_mutex_unlock(&bench->lock);
  return code == -ENODEV ? ZLG_ENODEV
                         : zlg_fail(bench->context, ZLG_ERUNTIME, "StarPU refused a task of %s: %s",
                                    bench->codelet->name, strerror(-code));
}

static int run(struct bench *bench, struct sample *samples, int count, unsigned char *args) {
  size_t bytes = (bench->codelet->args_bytes + 15) / 16 * 16;
  int status = ZLG_OK;
  for (int i = 0; status == ZLG_OK && i < count; i++) {
    memcpy(args + bytes * (size_t)i, bench->args, bench->codelet->args_bytes);
    samples[i] = (struct sample){.bench = bench, .args = (struct zlg_task_head *)(args + bytes * (size_t)i)};
    status = submit(bench, &samples[i]);
  }
  zlg_runtime_schedule();
  pthread_mutex_lock(&bench->lock);
  while (bench->under_way > 0) pthread_cond_wait(&bench->ended, &bench->lock);
  pthread_mutex_unlock(&bench->lock);
  if (status == ZLG_OK && bench->status != ZLG_OK)
    status = zlg_fail(bench->context, bench->status, "%s: %s", bench->codelet->name, zlg_strerror(bench->status));
  return status;
}

/* ---- samples ------------------------------------------------------------------------------------------------------
 */

static int take_samples(struct bench *bench, int wanted, struct sample *samples, unsigned char *args,
                        zlg_model_point *point) {
  double times[ROUNDS * MOST_SAMPLES];
  int measured = 0;
  bool settled = false;
  double begin = zlg_clock();
  int status = run(bench, samples, WARM_UP, args);
  for (int round = 0; status == ZLG_OK && round < ROUNDS && !settled && (round == 0 || zlg_clock() - begin < PATIENCE);
       round++) {
    /* A few more than wanted at once, since some will be outliers. */
    int count = round == 0 ? wanted + wanted / 8 : wanted;
    if (measured + count > ROUNDS * MOST_SAMPLES) break;
    status = run(bench, samples, count, args);
    for (int i = 0; status == ZLG_OK && i < count; i++) times[measured++] = samples[i].seconds;
    if (status == ZLG_OK) settled = zlg_samples_summarise(times, measured, wanted, point);
  }
  return status;
}

int zlg_measure(zlg_context *context, const struct zlg_codelet *codelet, const void *args, const struct zlg_case *what,
                int worker, int samples, zlg_model_point *point) {
  struct bench bench = {.context = context, .codelet = codelet, .what = what, .args = args, .worker = worker};
  struct zlg_family family = {0};
  struct zlg_count count = {0};
  int most = samples + samples / 8 > WARM_UP ? samples + samples / 8 : WARM_UP;
  codelet->family(args, &family);
  codelet->count(args, &count);
  *point = (zlg_model_point){.size = family.size, .flops = count.flops, .bytes = count.bytes};
  bench.core = starpu_worker_get_type(worker) == STARPU_CPU_WORKER;
  pthread_mutex_init(&bench.lock, NULL);
  pthread_cond_init(&bench.ended, NULL);
  struct sample *list = zlg_calloc((size_t)most, sizeof *list);
  unsigned char *copies = zlg_malloc_aligned(64, (size_t)most * ((codelet->args_bytes + 15) / 16 * 16));
  int status = list && copies ? ZLG_OK : zlg_fail(context, ZLG_ENOMEM, "no memory for %d samples", most);
  if (status == ZLG_OK) status = make_buffers(&bench);
  if (status == ZLG_OK) status = take_samples(&bench, samples, list, copies, point);
  free_buffers(&bench);
  zlg_free_aligned(copies);
  zlg_free(list);
  pthread_cond_destroy(&bench.ended);
  pthread_mutex_destroy(&bench.lock);
  return status;
}
