/* Many threads at once: on one context and on contexts of their own, in both runtime modes, beside an application that
 * runs StarPU tasks itself. Also what ThreadSanitizer and helgrind run. Threads count what went wrong; the case checks.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support_product.h"
#include "tests/support_starpu.h"

#define CHECK(condition) zlg_check((condition), #condition, __FILE__, __LINE__)
#define THREADS 64
#define POINTS 96
#define TILE 32

static atomic_int wrong, opencl_tasks;

static zlg_context *make_context(zlg_runtime_mode mode) {
  zlg_context_options options;
  zlg_context *context = NULL;
  zlg_test_context_options(&options);
  options.mode = mode;
  if (mode == ZLG_RUNTIME_SHARED) {
    options.cpu_workers = options.opencl_workers = options.cuda_workers = -1;
    options.scheduler = NULL;
  }
  options.tile_rows = options.tile_columns = TILE;
  options.direct_seconds = 0;
  if (zlg_context_create(&context, &options) != ZLG_OK) {
    printf("%s\n", zlg_context_message(NULL));
    atomic_fetch_add(&wrong, 1);
  }
  return context;
}

/* Exact whatever the order and the worker: linear kernel of small integers. y_i = sum_j (x_i z_j) b_j. */
struct work {
  float x1[POINTS], x2[POINTS], b[POINTS], y[POINTS];
  zlg_matrix *X1, *X2, *B, *Y;
  zlg_operator *A;
};

static bool work_new(zlg_context *context, int seed, struct work *w) {
  zlg_kernel_spec spec;
  zlg_kernel_spec_init(&spec, ZLG_LINEAR);
  for (int i = 0; i < POINTS; i++) {
    w->x1[i] = (float)((i + seed) % 7);
    w->x2[i] = (float)((i * seed) % 5);
    w->b[i] = (float)(i % 3 + 1);
    w->y[i] = -1;
  }
  return zlg_matrix_wrap(context, &w->X1, ZLG_F32, POINTS, 1, ZLG_ROW_MAJOR, 1, w->x1) == ZLG_OK &&
         zlg_matrix_wrap(context, &w->X2, ZLG_F32, POINTS, 1, ZLG_ROW_MAJOR, 1, w->x2) == ZLG_OK &&
         zlg_matrix_wrap(context, &w->B, ZLG_F32, POINTS, 1, ZLG_ROW_MAJOR, 1, w->b) == ZLG_OK &&
         zlg_matrix_wrap(context, &w->Y, ZLG_F32, POINTS, 1, ZLG_ROW_MAJOR, 1, w->y) == ZLG_OK &&
         zlg_kernel(context, &w->A, &spec, w->X1, w->X2) == ZLG_OK;
}

static void work_free(struct work *w) {
  zlg_operator_release(w->A);
  zlg_matrix_release(w->X1);
  zlg_matrix_release(w->X2);
  zlg_matrix_release(w->B);
  zlg_matrix_release(w->Y);
}

static bool work_is_right(const struct work *w) {
  double sum = 0;
  for (int j = 0; j < POINTS; j++) sum += (double)w->x2[j] * w->b[j];
  for (int i = 0; i < POINTS; i++)
    if (w->y[i] != (float)(w->x1[i] * sum)) return false;
  return true;
}

static void count_devices(zlg_request *request) {
  zlg_report report;
  if (zlg_request_report(request, &report) != ZLG_OK) return;
  for (int i = 0; i < report.worker_count; i++)
    if (report.workers[i].worker.kind == ZLG_WORKER_OPENCL)
      atomic_fetch_add(&opencl_tasks, (int)report.workers[i].tasks);
}

/* Looks at a request from the side while it runs, waits, checks. */
static bool run_once(struct work *w, int seed) {
  zlg_request *request = NULL;
  zlg_progress progress;
  int done;
  for (int i = 0; i < POINTS; i++) w->y[i] = -1;
  if (zlg_apply_async(w->A, ZLG_NOTRANS, 1, w->B, 0, w->Y, &request) != ZLG_OK) return false;
  bool right = zlg_request_progress(request, &progress) == ZLG_OK && zlg_request_test(request, &done) == ZLG_OK;
  right = right && zlg_request_wait(request) == ZLG_OK && work_is_right(w);
  count_devices(request);
  zlg_request_release(request);
  if (seed % 4 == 0) right = right && zlg_apply(w->A, ZLG_NOTRANS, 1, w->B, 0, w->Y) == ZLG_OK && work_is_right(w);
  return right;
}

struct thread {
  zlg_context *context; /* NULL: one of its own */
  zlg_runtime_mode mode;
  int seed;
};

/* Threads begin together: one after the other, each would be ordered behind the last by the library's own locks, and a
 * race between them would not show, in ThreadSanitizer neither. */
static pthread_barrier_t begin;

static void *compute(void *argument) {
  const struct thread *thread = argument;
  pthread_barrier_wait(&begin);
  zlg_context *context = thread->context ? thread->context : make_context(thread->mode);
  struct work w = {.X1 = NULL};
  bool right = context != NULL && work_new(context, thread->seed, &w);
  for (int repeat = 0; right && repeat < 2; repeat++) right = run_once(&w, thread->seed);
  if (!right) {
    printf("thread %d: %s\n", thread->seed, zlg_context_message(context));
    atomic_fetch_add(&wrong, 1);
  }
  work_free(&w);
  if (!thread->context) zlg_context_release(context);
  return NULL;
}

/* Every second thread has a context of its own. */
static void run_threads(zlg_context *shared, zlg_runtime_mode mode) {
  pthread_t threads[THREADS];
  struct thread arguments[THREADS];
  wrong = opencl_tasks = 0;
  CHECK(pthread_barrier_init(&begin, NULL, THREADS) == 0);
  for (int i = 0; i < THREADS; i++) {
    arguments[i] = (struct thread){i % 2 ? NULL : shared, mode, i};
    CHECK(pthread_create(&threads[i], NULL, compute, &arguments[i]) == 0);
  }
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  pthread_barrier_destroy(&begin);
  CHECK(atomic_load(&wrong) == 0);
  zlg_test_tasks[ZLG_WORKER_OPENCL] += atomic_load(&opencl_tasks);
}

static void sixty_four_threads_compute_on_one_context_and_on_their_own(void) {
  zlg_context *context = make_context(ZLG_RUNTIME_OWN);
  run_threads(context, ZLG_RUNTIME_OWN);
  zlg_context_release(context);
  CHECK(!starpu_is_initialized());
}

/* --- the application's tasks --- */

static void add_one(void *buffers[], void *argument) {
  (void)argument;
  ++*(int *)STARPU_VARIABLE_GET_PTR(buffers[0]);
}
static struct starpu_perfmodel add_model = {.type = STARPU_HISTORY_BASED, .symbol = "zlg_test_add"};
static struct starpu_codelet add_codelet = {.cpu_funcs = {add_one},
                                            .cpu_funcs_name = {"add_one"},
                                            .nbuffers = 1,
                                            .modes = {STARPU_RW},
                                            .model = &add_model,
                                            .name = "add_one"};

static atomic_int stop;

/* What an application does: chains of its own tasks, one after the other, until told to stop. */
static void *application(void *argument) {
  int *sum = argument, submitted = 0;
  starpu_data_handle_t handle;
  starpu_variable_data_register(&handle, STARPU_MAIN_RAM, (uintptr_t)sum, sizeof *sum);
  while (!atomic_load(&stop)) {
    for (int i = 0; i < 20; i++, submitted++)
      if (starpu_task_insert(&add_codelet, STARPU_RW, handle, 0) != 0) atomic_fetch_add(&wrong, 1);
    starpu_data_acquire(handle, STARPU_R);
    if (*sum != submitted) atomic_fetch_add(&wrong, 1);
    starpu_data_release(handle);
    usleep(2000);
  }
  starpu_data_unregister(handle);
  if (*sum != submitted) atomic_fetch_add(&wrong, 1);
  return NULL;
}

static void sixty_four_threads_compute_beside_the_applications_tasks(void) {
  int sum = 0;
  pthread_t thread;
  stop = 0;
  zlg_test_starpu_init();
  zlg_context *context = make_context(ZLG_RUNTIME_SHARED);
  CHECK(pthread_create(&thread, NULL, application, &sum) == 0);
  run_threads(context, ZLG_RUNTIME_SHARED);
  atomic_store(&stop, 1);
  pthread_join(thread, NULL);
  CHECK(atomic_load(&wrong) == 0);
  CHECK(sum > 0);
  zlg_context_release(context);
  CHECK(starpu_is_initialized());
  starpu_shutdown();
}

/* --- one object, several threads --- */

static struct work common;

static void *apply_common(void *argument) {
  struct work own = {.X1 = NULL};
  zlg_context *context = argument;
  memcpy(own.x1, common.x1, sizeof own.x1);
  memcpy(own.x2, common.x2, sizeof own.x2);
  memcpy(own.b, common.b, sizeof own.b);
  zlg_matrix *Y = NULL;
  zlg_operator *A = zlg_operator_retain(common.A);
  bool right = zlg_matrix_wrap(context, &Y, ZLG_F32, POINTS, 1, ZLG_ROW_MAJOR, 1, own.y) == ZLG_OK;
  for (int repeat = 0; right && repeat < 3; repeat++)
    right = zlg_apply(A, ZLG_NOTRANS, 1, common.B, 0, Y) == ZLG_OK && work_is_right(&own);
  zlg_matrix_release(Y);
  zlg_operator_release(A);
  if (!right) atomic_fetch_add(&wrong, 1);
  return NULL;
}

static void one_operator_serves_many_threads(void) {
  pthread_t threads[16];
  zlg_context *context = make_context(ZLG_RUNTIME_OWN);
  wrong = 0;
  memset(&common, 0, sizeof common);
  CHECK(work_new(context, 3, &common));
  for (int i = 0; i < 16; i++) CHECK(pthread_create(&threads[i], NULL, apply_common, context) == 0);
  for (int i = 0; i < 16; i++) pthread_join(threads[i], NULL);
  CHECK(atomic_load(&wrong) == 0);
  work_free(&common);
  zlg_context_release(context);
}

static void *wait_for(void *request) {
  if (zlg_request_wait(request) != ZLG_OK) atomic_fetch_add(&wrong, 1);
  return NULL;
}

static void many_threads_wait_for_one_request(void) {
  pthread_t threads[16];
  zlg_request *request = NULL;
  zlg_context *context = make_context(ZLG_RUNTIME_OWN);
  wrong = 0;
  memset(&common, 0, sizeof common);
  CHECK(work_new(context, 4, &common));
  ZLG_CHECK_OK(zlg_apply_async(common.A, ZLG_NOTRANS, 1, common.B, 0, common.Y, &request), context);
  for (int i = 0; i < 16; i++) CHECK(pthread_create(&threads[i], NULL, wait_for, request) == 0);
  for (int i = 0; i < 16; i++) pthread_join(threads[i], NULL);
  CHECK(atomic_load(&wrong) == 0 && work_is_right(&common));
  zlg_request_release(request);
  work_free(&common);
  zlg_context_release(context);
}

/* Contexts made and given back at once: StarPU starts and stops under them. */
static void *come_and_go(void *argument) {
  (void)argument;
  for (int i = 0; i < 3; i++) {
    zlg_context *context = make_context(ZLG_RUNTIME_OWN);
    struct work w = {.X1 = NULL};
    if (context == NULL || !work_new(context, i, &w) || !run_once(&w, 1)) atomic_fetch_add(&wrong, 1);
    work_free(&w);
    zlg_context_release(context);
  }
  return NULL;
}

static void contexts_come_and_go_in_many_threads(void) {
  pthread_t threads[8];
  wrong = 0;
  int count = zlg_test_mode() == ZLG_TEST_CPU ? 8 : 3;
  for (int i = 0; i < count; i++) CHECK(pthread_create(&threads[i], NULL, come_and_go, NULL) == 0);
  for (int i = 0; i < count; i++) pthread_join(threads[i], NULL);
  CHECK(atomic_load(&wrong) == 0);
  CHECK(!starpu_is_initialized());
}

int main(int argc, char **argv) {
  static const struct zlg_test_case cases[] = {
      {"sixty_four_threads_compute_on_one_context_and_on_their_own",
       sixty_four_threads_compute_on_one_context_and_on_their_own},
      {"sixty_four_threads_compute_beside_the_applications_tasks",
       sixty_four_threads_compute_beside_the_applications_tasks},
      {"one_operator_serves_many_threads", one_operator_serves_many_threads},
      {"many_threads_wait_for_one_request", many_threads_wait_for_one_request},
      {"contexts_come_and_go_in_many_threads", contexts_come_and_go_in_many_threads},
      {"devices_ran_tasks", zlg_test_devices_ran_tasks},
      {NULL, NULL}};
  return zlg_test_main(argc, argv, cases);
}
