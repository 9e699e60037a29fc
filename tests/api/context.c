/* Contexts: who runs StarPU, what is refused before it starts, what an idle context costs, and that an application's
 * own tasks are none of our business. */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/support_product.h"
#include "tests/support_starpu.h"

#define CHECK(condition) zlg_check((condition), #condition, __FILE__, __LINE__)

static bool says(const char *words) {
  bool found = strstr(zlg_context_message(NULL), words) != NULL;
  if (!found) printf("\"%s\" does not say \"%s\"\n", zlg_context_message(NULL), words);
  return found;
}

static zlg_context_options mode_options(zlg_runtime_mode mode) {
  zlg_context_options options;
  zlg_test_context_options(&options);
  options.mode = mode;
  if (mode == ZLG_RUNTIME_SHARED) options.cpu_workers = options.opencl_workers = options.cuda_workers = -1;
  options.direct_seconds = 0;
  options.tile_rows = options.tile_columns = 32;
  return options;
}

static zlg_context *create(zlg_runtime_mode mode) {
  zlg_context_options options = mode_options(mode);
  zlg_context *context = NULL;
  ZLG_CHECK_OK(zlg_context_create(&context, &options), NULL);
  return context;
}

static zlg_runtime_mode mode_of(const zlg_context *context) {
  zlg_machine_info machine;
  ZLG_CHECK_OK(zlg_context_machine(context, &machine), context);
  return machine.mode;
}

/* A product of ones through tasks, checked: 100 ones add up exactly. */
static bool computes(zlg_context *context) {
  float points[100] = {0}, ones[100], y[100];
  zlg_matrix *X = NULL, *B = NULL, *Y = NULL;
  zlg_operator *A = NULL;
  zlg_kernel_spec spec;
  zlg_kernel_spec_init(&spec, ZLG_GAUSSIAN);
  for (int i = 0; i < 100; i++) ones[i] = 1;
  int status = zlg_matrix_wrap(context, &X, ZLG_F32, 100, 1, ZLG_ROW_MAJOR, 1, points);
  if (status == ZLG_OK) status = zlg_matrix_wrap(context, &B, ZLG_F32, 100, 1, ZLG_ROW_MAJOR, 1, ones);
  if (status == ZLG_OK) status = zlg_matrix_wrap(context, &Y, ZLG_F32, 100, 1, ZLG_ROW_MAJOR, 1, y);
  if (status == ZLG_OK) status = zlg_kernel(context, &A, &spec, X, X);
  if (status == ZLG_OK) status = zlg_test_apply(A, ZLG_NOTRANS, 1, B, 0, Y);
  zlg_operator_release(A);
  zlg_matrix_release(X);
  zlg_matrix_release(B);
  zlg_matrix_release(Y);
  for (int i = 0; status == ZLG_OK && i < 100; i++)
    if (y[i] != 100) return false;
  return status == ZLG_OK;
}

/* --- who runs StarPU --- */

static void an_own_context_has_the_workers_it_asked_for(void) {
  zlg_context *context = create(ZLG_RUNTIME_OWN);
  int kinds[4] = {0};
  CHECK(mode_of(context) == ZLG_RUNTIME_OWN);
  CHECK(zlg_context_worker_count(context) == zlg_test_cpu_workers() + zlg_test_opencl_workers());
  for (int i = 0; i < zlg_context_worker_count(context); i++) {
    zlg_worker_info worker;
    ZLG_CHECK_OK(zlg_context_worker(context, i, &worker), context);
    CHECK(worker.name != NULL && *worker.name != '\0');
    CHECK((worker.memory_node == 0) == (worker.kind == ZLG_WORKER_CPU));
    kinds[worker.kind]++;
  }
  CHECK(kinds[ZLG_WORKER_CPU] == zlg_test_cpu_workers());
  CHECK(kinds[ZLG_WORKER_OPENCL] == zlg_test_opencl_workers());
  CHECK(computes(context));
  zlg_context_release(context);
}

static void the_machine_is_described(void) {
  zlg_context *context = create(ZLG_RUNTIME_OWN);
  zlg_machine_info machine;
  ZLG_CHECK_OK(zlg_context_machine(context, &machine), context);
  CHECK(strncmp(machine.starpu_version, "1.", 2) == 0);
  CHECK(strcmp(machine.scheduler, "lws") == 0);
  CHECK(strstr(machine.model_directory, getenv("STARPU_HOME")) == machine.model_directory);
  CHECK(strcmp(machine.instruction_set, "baseline") == 0 || strncmp(machine.instruction_set, "avx", 3) == 0);
  CHECK(machine.cores >= 1 && machine.cpu_worker_limit >= 1);
  CHECK((machine.worker_warning != NULL) == (machine.cpu_worker_limit < machine.cores));
  CHECK(machine.memory_nodes == 1 + zlg_test_opencl_workers());
  CHECK(machine.memory_bytes > (INT64_C(1) << 28) && machine.memory_limit > 0);
  CHECK(machine.memory_limit <= machine.memory_bytes);
  zlg_context_release(context);
}

static void auto_is_own_where_starpu_is_not_running(void) {
  zlg_context *context = create(ZLG_RUNTIME_AUTO);
  CHECK(mode_of(context) == ZLG_RUNTIME_OWN);
  zlg_context_release(context);
  CHECK(!starpu_is_initialized());
}

static void auto_is_shared_where_the_application_runs_starpu(void) {
  zlg_test_starpu_init();
  zlg_context *context = create(ZLG_RUNTIME_AUTO);
  CHECK(mode_of(context) == ZLG_RUNTIME_SHARED);
  CHECK(computes(context));
  zlg_context_release(context);
  CHECK(starpu_is_initialized());
  starpu_shutdown();
  CHECK(!starpu_is_initialized());
}

static void own_is_refused_where_the_application_runs_starpu(void) {
  zlg_test_starpu_init();
  zlg_context_options options = mode_options(ZLG_RUNTIME_OWN);
  zlg_context *context = NULL;
  ZLG_CHECK_STATUS(zlg_context_create(&context, &options), ZLG_ESTATE, NULL);
  CHECK(context == NULL);
  CHECK(says("mode = OWN") && says("SHARED or AUTO"));
  starpu_shutdown();
}

static void shared_is_refused_without_a_starpu_to_share(void) {
  zlg_context_options options = mode_options(ZLG_RUNTIME_SHARED);
  zlg_context *context = NULL;
  ZLG_CHECK_STATUS(zlg_context_create(&context, &options), ZLG_ESTATE, NULL);
  CHECK(says("mode = SHARED") && says("starpu_init()"));
  zlg_context *own = create(ZLG_RUNTIME_OWN);
  ZLG_CHECK_STATUS(zlg_context_create(&context, &options), ZLG_ESTATE, NULL);
  CHECK(says("mode = SHARED") && says("OWN context"));
  zlg_context_release(own);
  CHECK(context == NULL);
}

static void own_contexts_share_one_starpu_with_the_same_settings_only(void) {
  zlg_context *first = create(ZLG_RUNTIME_OWN), *second = create(ZLG_RUNTIME_OWN), *none = NULL;
  zlg_context_options options = mode_options(ZLG_RUNTIME_OWN);
  options.cpu_workers = zlg_test_cpu_workers() == 2 ? 1 : 0;
  ZLG_CHECK_STATUS(zlg_context_create(&none, &options), ZLG_ESTATE, NULL);
  CHECK(says("cpu_workers = ") && says("another context"));
  options = mode_options(ZLG_RUNTIME_OWN);
  options.opencl_workers = 7;
  ZLG_CHECK_STATUS(zlg_context_create(&none, &options), ZLG_ESTATE, NULL);
  CHECK(says("opencl_workers = 7"));
  options = mode_options(ZLG_RUNTIME_OWN);
  options.scheduler = "eager";
  ZLG_CHECK_STATUS(zlg_context_create(&none, &options), ZLG_ESTATE, NULL);
  CHECK(says("scheduler = \"eager\"") && says("\"lws\""));
  options.scheduler = "no such";
  ZLG_CHECK_STATUS(zlg_context_create(&none, &options), ZLG_EINVAL, NULL);
  CHECK(says("\"no such\""));
  CHECK(none == NULL);
  zlg_context_release(first);
  CHECK(computes(second));
  zlg_context_release(second);
  CHECK(!starpu_is_initialized());
}

static void the_application_may_shut_starpu_down_first(void) {
  zlg_test_starpu_init();
  zlg_context *context = create(ZLG_RUNTIME_SHARED);
  starpu_shutdown();
  CHECK(starpu_is_initialized());
  CHECK(computes(context));
  zlg_context_release(context);
  CHECK(!starpu_is_initialized());
}

static void contexts_come_and_go(void) {
  int times = zlg_test_mode() == ZLG_TEST_CPU ? 15 : 3;
  for (int i = 0; i < times; i++) {
    zlg_context *context = create(ZLG_RUNTIME_OWN);
    if (i % 3 == 0) CHECK(computes(context));
    zlg_context_release(context);
    CHECK(!starpu_is_initialized());
  }
}

/* --- the application's own tasks --- */

static atomic_int blocked, let_go, ended;

static void block(void *buffers[], void *argument) {
  (void)buffers, (void)argument;
  atomic_fetch_add(&blocked, 1);
  while (!atomic_load(&let_go)) usleep(500);
  atomic_fetch_add(&ended, 1);
}

static struct starpu_perfmodel block_model = {.type = STARPU_HISTORY_BASED, .symbol = "zlg_test_block"};
static struct starpu_codelet block_codelet = {
    .cpu_funcs = {block}, .cpu_funcs_name = {"block"}, .nbuffers = 0, .model = &block_model, .name = "block"};

static void submit_block(void) {
  struct starpu_task *task = starpu_task_create();
  task->cl = &block_codelet;
  CHECK(starpu_task_submit(task) == 0);
}

/* Where the mode's one CPU worker is blocked, a device computes; where the second one is, the first does. */
static void a_request_does_not_wait_for_the_applications_tasks(void) {
  blocked = let_go = ended = 0;
  zlg_test_starpu_init();
  zlg_context *context = create(ZLG_RUNTIME_SHARED);
  submit_block();
  while (!atomic_load(&blocked)) usleep(100);
  CHECK(computes(context));
  CHECK(atomic_load(&ended) == 0);
  atomic_store(&let_go, 1);
  starpu_task_wait_for_all();
  CHECK(atomic_load(&ended) == 1);
  zlg_context_release(context);
  starpu_shutdown();
}

static void the_applications_tasks_run_while_a_shared_context_is_idle(void) {
  blocked = ended = 0;
  let_go = 1;
  zlg_test_starpu_init();
  zlg_context *context = create(ZLG_RUNTIME_SHARED);
  CHECK(computes(context));
  submit_block();
  starpu_task_wait_for_all();
  CHECK(atomic_load(&ended) == 1);
  zlg_context_release(context);
  submit_block();
  starpu_task_wait_for_all();
  CHECK(atomic_load(&ended) == 2);
  starpu_shutdown();
}

static void a_shared_context_changes_no_global_setting(void) {
  zlg_test_starpu_init();
  int profiling = starpu_profiling_status_get();
  struct sigaction before, after;
  sigaction(SIGINT, NULL, &before);
  zlg_context *context = create(ZLG_RUNTIME_SHARED);
  CHECK(computes(context));
  CHECK(starpu_profiling_status_get() == profiling);
  sigaction(SIGINT, NULL, &after);
  CHECK(before.sa_handler == after.sa_handler);
  zlg_context_release(context);
  CHECK(starpu_profiling_status_get() == profiling);
  starpu_shutdown();
}

static void handler(int number) {
  (void)number;
}

static void the_applications_signal_handlers_stay(void) {
  static const int signals[] = {SIGINT, SIGTERM, SIGUSR1, SIGTRAP};
  struct sigaction mine = {.sa_handler = handler}, now, kept[4];
  for (size_t i = 0; i < 4; i++) sigaction(signals[i], &mine, &kept[i]);
  zlg_context *context = create(ZLG_RUNTIME_OWN);
  CHECK(computes(context));
  for (size_t i = 0; i < 4; i++) {
    sigaction(signals[i], NULL, &now);
    CHECK(now.sa_handler == handler);
  }
  zlg_context_release(context);
  for (size_t i = 0; i < 4; i++) {
    sigaction(signals[i], NULL, &now);
    CHECK(now.sa_handler == handler);
    sigaction(signals[i], &kept[i], NULL);
  }
}

/* --- idle --- */

static double processor_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static double used_in_a_second(void) {
  double before = processor_seconds();
  usleep(1000000);
  return processor_seconds() - before;
}

static void an_idle_context_uses_no_processor_time(void) {
  zlg_context *context = create(ZLG_RUNTIME_OWN);
  CHECK(used_in_a_second() < 0.05); /* never used */
  CHECK(computes(context));
  CHECK(used_in_a_second() < 0.05); /* used */
  zlg_context *second = create(ZLG_RUNTIME_OWN);
  CHECK(computes(second) && computes(context));
  zlg_context_release(second);
  CHECK(used_in_a_second() < 0.05);
  zlg_context_release(context);
}

/* --- options --- */

static void check_refused(const zlg_context_options *options, int want, const char *words) {
  zlg_context *context = NULL;
  ZLG_CHECK_STATUS(zlg_context_create(&context, options), want, NULL);
  CHECK(context == NULL);
  CHECK(says(words));
  CHECK(!starpu_is_initialized());
  zlg_context_release(context);
}

static void options_out_of_range_are_refused(void) {
  zlg_context_options good = mode_options(ZLG_RUNTIME_OWN), o;
  o = good, o.struct_size = 4, check_refused(&o, ZLG_EINVAL, "struct_size = 4");
  o = good, o.mode = (zlg_runtime_mode)3, check_refused(&o, ZLG_EINVAL, "mode = 3");
  o = good, o.mode = (zlg_runtime_mode)-1, check_refused(&o, ZLG_EINVAL, "mode = -1");
  o = good, o.cpu_workers = -2, check_refused(&o, ZLG_EINVAL, "-2");
  o = good, o.opencl_workers = -3, check_refused(&o, ZLG_EINVAL, "-3");
  o = good, o.cuda_workers = -4, check_refused(&o, ZLG_EINVAL, "-4");
  o = good, o.bind_workers = 2, check_refused(&o, ZLG_EINVAL, "bind_workers = 2");
  o = good, o.memory_limit = -1, check_refused(&o, ZLG_EINVAL, "memory_limit = -1");
  o = good, o.direct_seconds = 0.0 / 0.0, check_refused(&o, ZLG_EINVAL, "direct_seconds is NaN");
  o = good, o.tile_rows = -1, check_refused(&o, ZLG_EINVAL, "tile_rows");
  o = good, o.tile_columns = -5, check_refused(&o, ZLG_EINVAL, "-5");
}

/* Processors that each worker may use, seen from a task in it. */
static int processors_of[STARPU_NMAXWORKERS];
static void look_at_processors(void *unused) {
  (void)unused;
  cpu_set_t set;
  sched_getaffinity(0, sizeof set, &set);
  processors_of[starpu_worker_get_id()] = CPU_COUNT(&set);
}

static void workers_are_bound_or_loose_as_asked(void) {
  cpu_set_t all;
  sched_getaffinity(0, sizeof all, &all);
  for (int bind = 0; bind < 2; bind++) {
    zlg_context_options options = mode_options(ZLG_RUNTIME_OWN);
    zlg_context *context = NULL;
    options.bind_workers = bind;
    ZLG_CHECK_OK(zlg_context_create(&context, &options), NULL);
    starpu_resume();
    starpu_execute_on_each_worker(look_at_processors, NULL, STARPU_CPU);
    starpu_pause();
    for (int i = 0; i < zlg_context_worker_count(context); i++) {
      zlg_worker_info worker;
      ZLG_CHECK_OK(zlg_context_worker(context, i, &worker), context);
      if (worker.kind == ZLG_WORKER_CPU) CHECK(processors_of[worker.id] == (bind ? 1 : CPU_COUNT(&all)));
    }
    CHECK(computes(context));
    zlg_context_release(context);
  }
}

static void more_cpu_workers_than_cores_are_refused(void) {
  zlg_context_options options = mode_options(ZLG_RUNTIME_OWN);
  options.cpu_workers = 4096;
  check_refused(&options, ZLG_EINVAL, "cpu_workers = 4096; at most ");
  CHECK(says("core"));
}

static void an_unknown_scheduler_is_refused_with_those_known(void) {
  zlg_context_options options = mode_options(ZLG_RUNTIME_OWN);
  options.scheduler = "fastest";
  check_refused(&options, ZLG_EINVAL, "scheduler = \"fastest\"");
  CHECK(says("eager") && says("dmdas"));
  options.scheduler = "";
  check_refused(&options, ZLG_EINVAL, "scheduler = \"\"");
  options.scheduler = NULL;
  setenv("STARPU_SCHED", "slowest", 1);
  check_refused(&options, ZLG_EINVAL, "STARPU_SCHED");
  CHECK(says("slowest") && says("dmdas"));
  setenv("STARPU_SCHED", "eager", 1);
  zlg_context *context = NULL;
  zlg_machine_info machine;
  ZLG_CHECK_OK(zlg_context_create(&context, &options), NULL);
  ZLG_CHECK_OK(zlg_context_machine(context, &machine), context);
  CHECK(strcmp(machine.scheduler, "eager") == 0);
  zlg_context_release(context);
  options.scheduler = "prio"; /* StarPU's environment outranks what the program asks for */
  ZLG_CHECK_OK(zlg_context_create(&context, &options), NULL);
  ZLG_CHECK_OK(zlg_context_machine(context, &machine), context);
  CHECK(strcmp(machine.scheduler, "eager") == 0);
  zlg_context *second = NULL;
  ZLG_CHECK_OK(zlg_context_create(&second, &options), NULL);
  zlg_context_release(second);
  zlg_context_release(context);
  setenv("STARPU_SCHED", "slowest", 1); /* and would be replaced in silence */
  check_refused(&options, ZLG_EINVAL, "STARPU_SCHED");
  unsetenv("STARPU_SCHED");
}

/* Below a file there is no directory, not even for root. */
static void a_model_directory_that_cannot_be_written_is_named(void) {
  static const char *const names[] = {"XDG_CACHE_HOME", "STARPU_HOME", "STARPU_PERF_MODEL_DIR"};
  char *kept[3], *file = zlg_test_path("file"), *below = zlg_test_path("file/below");
  fclose(fopen(file, "w"));
  for (int i = 0; i < 3; i++) {
    const char *value = getenv(names[i]);
    kept[i] = value != NULL ? strdup(value) : NULL;
  }
  for (int i = 0; i < 3; i++) {
    zlg_context_options options = mode_options(ZLG_RUNTIME_OWN);
    unsetenv("XDG_CACHE_HOME");
    setenv(names[i], below, 1);
    check_refused(&options, ZLG_ERUNTIME, below);
    CHECK(says("cannot be written") && says("STARPU_HOME"));
    for (int k = 0; k < 3; k++)
      if (kept[k] != NULL)
        setenv(names[k], kept[k], 1);
      else
        unsetenv(names[k]);
  }
  zlg_context *context = create(ZLG_RUNTIME_OWN);
  CHECK(computes(context));
  zlg_context_release(context);
  for (int i = 0; i < 3; i++) free(kept[i]);
  free(file);
  free(below);
}

static void no_worker_at_all_is_an_error_and_the_next_context_works(void) {
  zlg_context_options options = mode_options(ZLG_RUNTIME_OWN);
  options.cpu_workers = options.opencl_workers = options.cuda_workers = 0;
  check_refused(&options, ZLG_ENODEV, "no worker");
  zlg_context *context = create(ZLG_RUNTIME_OWN);
  CHECK(computes(context));
  zlg_context_release(context);
}

static void devices_alone_compute(void) {
  if (zlg_test_opencl_workers() == 0) return;
  zlg_context_options options = mode_options(ZLG_RUNTIME_OWN);
  zlg_context *context = NULL;
  options.cpu_workers = 0;
  ZLG_CHECK_OK(zlg_context_create(&context, &options), NULL);
  CHECK(zlg_context_worker_count(context) == zlg_test_opencl_workers());
  int64_t before = zlg_test_tasks[ZLG_WORKER_CPU];
  CHECK(computes(context));
  CHECK(zlg_test_tasks[ZLG_WORKER_CPU] == before && zlg_test_tasks[ZLG_WORKER_OPENCL] > 0);
  zlg_context_release(context);
}

static void default_options_work(void) {
  zlg_context *context = NULL;
  ZLG_CHECK_OK(zlg_context_create(&context, NULL), NULL);
  CHECK(zlg_context_worker_count(context) >= 1);
  CHECK(computes(context));
  zlg_context_release(context);
}

/* --- memory --- */

static void *refuse(void *user, size_t bytes) {
  (void)user, (void)bytes;
  return NULL;
}

static void the_allocator_changes_only_while_no_context_exists(void) {
  const zlg_allocator some = {refuse, NULL, NULL, NULL};
  zlg_allocator none = {NULL, NULL, NULL, NULL};
  ZLG_CHECK_STATUS(zlg_set_allocator(&some), ZLG_EINVAL, NULL);
  CHECK(says("1 of the 3 functions"));
  ZLG_CHECK_OK(zlg_set_allocator(&none), NULL);
  zlg_context *context = create(ZLG_RUNTIME_OWN);
  ZLG_CHECK_STATUS(zlg_set_allocator(NULL), ZLG_ESTATE, NULL);
  CHECK(says("1 context is in use"));
  float point = 0;
  zlg_matrix *X = NULL;
  ZLG_CHECK_OK(zlg_matrix_wrap(context, &X, ZLG_F32, 1, 1, ZLG_ROW_MAJOR, 1, &point), context);
  zlg_context_release(context); /* the matrix keeps it */
  ZLG_CHECK_STATUS(zlg_set_allocator(NULL), ZLG_ESTATE, NULL);
  zlg_matrix_release(X);
  ZLG_CHECK_OK(zlg_set_allocator(NULL), NULL);
}

/* --- fork --- */

/* In the child there are no workers: refused, not waited for. */
static void a_context_is_refused_in_a_forked_child(void) {
  zlg_context *context = create(ZLG_RUNTIME_OWN);
  CHECK(computes(context));
  fflush(stdout);
  pid_t pid = fork();
  if (pid == 0) {
    alarm(20);
    bool refused = !computes(context) && strstr(zlg_context_message(context), "fork") != NULL;
    zlg_context *another = NULL;
    zlg_context_options options = mode_options(ZLG_RUNTIME_OWN);
    refused = refused && zlg_context_create(&another, &options) == ZLG_ESTATE && another == NULL;
    zlg_context_release(context);
    _exit(refused ? 0 : 1);
  }
  int status = -1;
  CHECK(waitpid(pid, &status, 0) == pid);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  CHECK(computes(context));
  zlg_context_release(context);
}

int main(int argc, char **argv) {
  static const struct zlg_test_case cases[] = {
      {"an_own_context_has_the_workers_it_asked_for", an_own_context_has_the_workers_it_asked_for},
      {"the_machine_is_described", the_machine_is_described},
      {"auto_is_own_where_starpu_is_not_running", auto_is_own_where_starpu_is_not_running},
      {"auto_is_shared_where_the_application_runs_starpu", auto_is_shared_where_the_application_runs_starpu},
      {"own_is_refused_where_the_application_runs_starpu", own_is_refused_where_the_application_runs_starpu},
      {"shared_is_refused_without_a_starpu_to_share", shared_is_refused_without_a_starpu_to_share},
      {"own_contexts_share_one_starpu_with_the_same_settings_only",
       own_contexts_share_one_starpu_with_the_same_settings_only},
      {"the_application_may_shut_starpu_down_first", the_application_may_shut_starpu_down_first},
      {"contexts_come_and_go", contexts_come_and_go},
      {"a_request_does_not_wait_for_the_applications_tasks", a_request_does_not_wait_for_the_applications_tasks},
      {"the_applications_tasks_run_while_a_shared_context_is_idle",
       the_applications_tasks_run_while_a_shared_context_is_idle},
      {"a_shared_context_changes_no_global_setting", a_shared_context_changes_no_global_setting},
      {"the_applications_signal_handlers_stay", the_applications_signal_handlers_stay},
      {"an_idle_context_uses_no_processor_time", an_idle_context_uses_no_processor_time},
      {"options_out_of_range_are_refused", options_out_of_range_are_refused},
      {"workers_are_bound_or_loose_as_asked", workers_are_bound_or_loose_as_asked},
      {"more_cpu_workers_than_cores_are_refused", more_cpu_workers_than_cores_are_refused},
      {"an_unknown_scheduler_is_refused_with_those_known", an_unknown_scheduler_is_refused_with_those_known},
      {"a_model_directory_that_cannot_be_written_is_named", a_model_directory_that_cannot_be_written_is_named},
      {"no_worker_at_all_is_an_error_and_the_next_context_works",
       no_worker_at_all_is_an_error_and_the_next_context_works},
      {"devices_alone_compute", devices_alone_compute},
      {"default_options_work", default_options_work},
      {"the_allocator_changes_only_while_no_context_exists", the_allocator_changes_only_while_no_context_exists},
      {"a_context_is_refused_in_a_forked_child", a_context_is_refused_in_a_forked_child},
      {"devices_ran_tasks", zlg_test_devices_ran_tasks},
      {NULL, NULL}};
  return zlg_test_main(argc, argv, cases);
}
