/* Starts, shares, pauses and stops StarPU. StarPU aborts on some misuse (an unwritable model directory) and falls back
 * in silence on others (an unknown scheduler): both are checked here before it is asked to start. */
#include "config.h"

#include "src/core/runtime.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "codelets/common/device.h"
#include "codelets/common/model.h"
#include "codelets/common/program.h"
#include "codelets/common/starpu_compat.h"
#include "src/core/affinity.h"
#include "src/core/error.h"
#include "src/core/machine.h"
#include "src/core/memory.h"
#include "src/core/simulation.h"

#define LINKS (STARPU_MAXNODES * STARPU_MAXNODES)

/* Everything about the one StarPU of this process, under one lock. */
static struct {
  pthread_mutex_t lock;
  int contexts;                                  /* of either mode */
  int owners;                                    /* OWN contexts; StarPU is ours while > 0 */
  int active;                                    /* requests under way of OWN contexts */
  bool awake;                                    /* their workers run */
  int forks;                                     /* zlg_forks() of the process that has the workers */
  int cpu_workers, opencl_workers, cuda_workers; /* as the first OWN context asked */
  char scheduler[64];
  char model_warning[768];   /* about the calibrated models in force */
  int64_t link_bytes[LINKS]; /* that went over each of StarPU's buses */
} runtime = {.lock = PTHREAD_MUTEX_INITIALIZER};

int zlg_runtime_cpu_worker_limit(void) {
  return STARPU_MAXCPUS;
}

/* ---- what StarPU would not tell --------------------------------------------------------------------------------- */

static struct starpu_sched_policy *policy_by_name(const char *name) {
  struct starpu_sched_policy **policies = starpu_sched_get_predefined_policies();
  for (; *policies; policies++)
    if (strcmp((*policies)->policy_name, name) == 0) return *policies;
  return NULL;
}

static int unknown_scheduler(const char *where, const char *name) {
  char known[ZLG_MESSAGE_BYTES / 2] = "";
  for (struct starpu_sched_policy **p = starpu_sched_get_predefined_policies(); *p; p++) {
    size_t used = strlen(known);
    snprintf(known + used, sizeof known - used, "%s%s", used ? " " : "", (*p)->policy_name);
  }
  return zlg_fail(NULL, ZLG_EINVAL, "%s = \"%s\" is no scheduler of this StarPU; known: %s", where, name, known);
}

static const char *nonempty_env(const char *name) {
  const char *value = getenv(name);
  return value && *value ? value : NULL;
}

/* Where StarPU keeps its models: the same choice as its own common/utils.c makes. */
void zlg_runtime_model_directory(char *path, size_t bytes) {
  const char *given = nonempty_env("STARPU_PERF_MODEL_DIR");
  if (given) {
    snprintf(path, bytes, "%s", given);
    return;
  }
  const char *home = NULL;
  const char *const names[] = {"XDG_CACHE_HOME", "STARPU_HOME", "HOME", "TMPDIR", "TEMP", "TMP"};
  for (size_t i = 0; !home && i < sizeof names / sizeof *names; i++) home = nonempty_env(names[i]);
  snprintf(path, bytes, "%s/.starpu/sampling", home ? home : "/tmp");
}

/* Makes the directory as StarPU would, so that a failure is ours to report and not StarPU's to abort on. */
static int make_model_directory(const char *path) {
  char part[512];
  snprintf(part, sizeof part, "%s", path);
  for (char *slash = part + 1; *slash; slash++) {
    if (*slash != '/') continue;
    *slash = '\0';
    (void)mkdir(part, 0777);
    *slash = '/';
  }
  (void)mkdir(part, 0777);
  struct stat status;
  int error = 0;
  if (stat(path, &status) != 0)
    error = errno;
  else if (!S_ISDIR(status.st_mode))
    error = ENOTDIR;
  else if (access(path, W_OK | X_OK) != 0)
    error = errno;
  if (!error) return ZLG_OK;
  return zlg_fail(NULL, ZLG_ERUNTIME,
                  "the directory of StarPU's performance models, %s, cannot be written: %s; set STARPU_HOME or "
                  "STARPU_PERF_MODEL_DIR to one that can",
                  path, strerror(error));
}

/* ---- starting it ------------------------------------------------------------------------------------------------ */

static int env_number(const char *name) {
  const char *text = nonempty_env(name);
  return text ? atoi(text) : -1;
}

static int choose(int option, const char *env) {
  return option >= 0 ? option : env_number(env);
}

static int check_cpu_workers(int asked) {
  int cores = zlg_machine_get()->cores;
  int most = cores < STARPU_MAXCPUS ? cores : STARPU_MAXCPUS;
  if (asked <= most) return ZLG_OK;
  return zlg_fail(NULL, ZLG_EINVAL,
                  "cpu_workers = %d; at most %d can be had: the machine has %d core%s for this process and StarPU was "
                  "compiled for %d%s",
                  asked, most, cores, cores == 1 ? "" : "s", STARPU_MAXCPUS,
                  STARPU_MAXCPUS < cores ? " (./bootstrap starpu builds one for more)" : "");
}

static int fill_conf(struct starpu_conf *conf, const zlg_context_options *options) {
  starpu_conf_init(conf);
#ifdef HAVE_STRUCT_STARPU_CONF_CATCH_SIGNALS
  conf->catch_signals = 0;
#endif
  bool explicit = options->cpu_workers >= 0 || options->opencl_workers >= 0 || options->cuda_workers >= 0;
  if (explicit) {
    /* Then StarPU reads none of these from the environment, so those not given are taken from there here. */
    conf->precedence_over_environment_variables = 1;
    conf->ncpus = choose(options->cpu_workers, "STARPU_NCPU");
    conf->nopencl = choose(options->opencl_workers, "STARPU_NOPENCL");
    conf->ncuda = choose(options->cuda_workers, "STARPU_NCUDA");
  }
  int status = check_cpu_workers(options->cpu_workers);
  if (status != ZLG_OK) return status;

  /* StarPU lets its environment outrank whatever a program asks for. */
  const char *env_policy = nonempty_env("STARPU_SCHED");
  if (options->scheduler) {
    conf->sched_policy = policy_by_name(options->scheduler);
    if (!conf->sched_policy) return unknown_scheduler("scheduler", options->scheduler);
  }
  if (env_policy) {
    if (!policy_by_name(env_policy)) return unknown_scheduler("STARPU_SCHED (environment)", env_policy);
    conf->sched_policy = NULL;
  } else if (!options->scheduler) {
    bool opencl = options->opencl_workers != 0 && env_number("STARPU_NOPENCL") != 0,
         cuda = options->cuda_workers != 0 && env_number("STARPU_NCUDA") != 0;
    bool devices = ZLG_SIMULATED ? cuda && zlg_simulated_machine.gpus > 0 : zlg_devices_present(opencl, cuda);
    conf->sched_policy = policy_by_name(devices ? "dmdas" : "lws");
  }
  return ZLG_OK;
}

/* Loading an OpenCL driver may hook signals (LLVM does); who owns the process keeps its own. */
static const int kept_signals[] = {SIGINT,  SIGTERM, SIGHUP,  SIGSEGV, SIGBUS,  SIGFPE, SIGILL,
                                   SIGABRT, SIGTRAP, SIGQUIT, SIGPIPE, SIGUSR1, SIGUSR2};
#define KEPT_SIGNALS (sizeof kept_signals / sizeof *kept_signals)

static int init_starpu(struct starpu_conf *conf) {
  int code = starpu_init(conf);
  if (code == -ENODEV)
    return zlg_fail(
        NULL, ZLG_ENODEV,
        "StarPU found no worker: no CPU core, OpenCL or CUDA device was left by the options and the environment");
  if (code != 0) return zlg_fail(NULL, ZLG_ERUNTIME, "starpu_init: %s", strerror(-code));
  return ZLG_OK;
}

static int start_starpu(const zlg_context_options *options) {
  struct sigaction kept[KEPT_SIGNALS];
  struct starpu_conf conf;
  for (size_t i = 0; i < KEPT_SIGNALS; i++) sigaction(kept_signals[i], NULL, &kept[i]);
  int status = fill_conf(&conf, options);
  if (status == ZLG_OK) status = init_starpu(&conf);
  for (size_t i = 0; i < KEPT_SIGNALS; i++) sigaction(kept_signals[i], &kept[i], NULL);
  return status;
}

/* Idle workers poll; simulated ones cost nothing, and are in nobody's way. */
static void rest(void) {
  if (!ZLG_SIMULATED) starpu_pause();
}

static void work(void) {
  if (!ZLG_SIMULATED) starpu_resume();
}

/* One process at a time starts StarPU on a directory: its first start measures the bus and writes files there, and a
 * second process that read one half written would be aborted by it. Not waited for longer than LOCK_SECONDS, which
 * would be for a process that was stopped; without a lock (-1) StarPU starts all the same. */
#define LOCK_SECONDS 120
static int lock_model_directory(const char *path) {
  char name[576];
  snprintf(name, sizeof name, "%s/zellige.lock", path);
  int lock = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  const struct timespec pause = {0, 5000000};
  for (int tries = 0; lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) != 0; tries++) {
    if ((errno != EWOULDBLOCK && errno != EINTR) || tries >= LOCK_SECONDS * 200) break;
    nanosleep(&pause, NULL);
  }
  return lock;
}

static int start_own(zlg_context *context) {
  const zlg_context_options *options = &context->options;
  if (ZLG_SIMULATED && zlg_simulated_machine.cores == 0)
    return zlg_fail(NULL, ZLG_ESTATE,
                    "this library simulates (its StarPU is built with SimGrid), and no machine is described: "
                    "zlg_platform_install() comes first");
  int status = make_model_directory(context->model_directory);
  cpu_set_t processors;
  zlg_affinity_of_caller(&processors);
  if (status == ZLG_OK) {
    int lock = lock_model_directory(context->model_directory);
    status = start_starpu(options);
    if (lock >= 0) close(lock);
  }
  if (status != ZLG_OK) return status;
  if (!ZLG_SIMULATED) zlg_affinity_apply(options->bind_workers, &processors);
  if (starpu_memory_nodes_get_count() > 1) starpu_profiling_status_set(STARPU_PROFILING_ENABLE);
  runtime.forks = zlg_forks();
  runtime.cpu_workers = options->cpu_workers;
  runtime.opencl_workers = options->opencl_workers;
  runtime.cuda_workers = options->cuda_workers;
  snprintf(runtime.scheduler, sizeof runtime.scheduler, "%s", starpu_sched_ctx_get_sched_policy(0)->policy_name);
  rest();
  return ZLG_OK;
}

/* A further OWN context takes the StarPU that runs; it may repeat what was asked, or ask nothing. */
static int join_own(const zlg_context_options *options) {
  const struct {
    const char *name;
    int asked, has;
  } numbers[] = {{"cpu_workers", options->cpu_workers, runtime.cpu_workers},
                 {"opencl_workers", options->opencl_workers, runtime.opencl_workers},
                 {"cuda_workers", options->cuda_workers, runtime.cuda_workers}};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
    if (numbers[i].asked >= 0 && numbers[i].asked != numbers[i].has)
      return zlg_fail(NULL, ZLG_ESTATE,
                      "%s = %d, but another context of this process has started StarPU with %d (-1: all)",
                      numbers[i].name, numbers[i].asked, numbers[i].has);
  if (options->scheduler && !policy_by_name(options->scheduler))
    return unknown_scheduler("scheduler", options->scheduler);
  if (options->scheduler && !nonempty_env("STARPU_SCHED") && strcmp(options->scheduler, runtime.scheduler) != 0)
    return zlg_fail(NULL, ZLG_ESTATE,
                    "scheduler = \"%s\", but another context of this process has started StarPU with \"%s\"",
                    options->scheduler, runtime.scheduler);
  return ZLG_OK;
}

static int resolve_mode(zlg_context *context) {
  if (runtime.owners > 0 && runtime.forks != zlg_forks())
    return zlg_fail(NULL, ZLG_ESTATE,
                    "this process was forked from one with a context, whose workers it does not have: make contexts "
                    "after fork(), or call exec");
  bool foreign = runtime.owners == 0 && starpu_is_initialized();
  context->mode = context->options.mode;
  if (context->mode == ZLG_RUNTIME_AUTO) context->mode = foreign ? ZLG_RUNTIME_SHARED : ZLG_RUNTIME_OWN;
  if (context->mode == ZLG_RUNTIME_OWN && foreign)
    return zlg_fail(NULL, ZLG_ESTATE, "mode = OWN, but the application has started StarPU itself: use SHARED or AUTO");
  if (context->mode == ZLG_RUNTIME_SHARED && !foreign)
    return zlg_fail(NULL, ZLG_ESTATE, "mode = SHARED, but %s",
                    runtime.owners ? "it is Zellige that has started StarPU, for an OWN context of this process"
                                   : "StarPU is not running: call starpu_init() before, or use OWN or AUTO");
  return ZLG_OK;
}

/* ---- what was obtained ------------------------------------------------------------------------------------------ */

static int worker_kind(int id) {
  switch (starpu_worker_get_type(id)) {
  case STARPU_CPU_WORKER:
    return ZLG_WORKER_CPU;
  case STARPU_OPENCL_WORKER:
    return ZLG_WORKER_OPENCL;
  case STARPU_CUDA_WORKER:
    return ZLG_WORKER_CUDA;
  default:
    return 0;
  }
}

static int describe_workers(zlg_context *context) {
  int count = (int)starpu_worker_get_count();
  context->workers = zlg_calloc((size_t)(count ? count : 1), sizeof *context->workers);
  if (!context->workers) return zlg_fail(NULL, ZLG_ENOMEM, "no memory for the list of %d workers", count);
  int slots = (int)(sizeof context->worker_index / sizeof *context->worker_index);
  for (int id = 0; id < slots; id++) context->worker_index[id] = -1;
  for (int id = 0; id < count && id < slots; id++) {
    int kind = worker_kind(id);
    if (!kind) continue;
    char name[128] = "";
    starpu_worker_get_name(id, name, sizeof name);
    char *kept = zlg_strdup(name);
    if (!kept) return zlg_fail(NULL, ZLG_ENOMEM, "no memory for the name of worker %d", id);
    context->worker_index[id] = context->worker_count;
    context->workers[context->worker_count++] =
        (zlg_worker_info){(zlg_worker_kind)kind, id, (int)starpu_worker_get_memory_node((unsigned)id), kept};
    context->kinds[kind]++;
  }
  return ZLG_OK;
}

static void describe(zlg_context *context) {
  int major, minor, release;
  starpu_get_version(&major, &minor, &release);
  snprintf(context->starpu_version, sizeof context->starpu_version, "%d.%d.%d", major, minor, release);
  snprintf(context->scheduler, sizeof context->scheduler, "%s", starpu_sched_ctx_get_sched_policy(0)->policy_name);
  context->memory_nodes = (int)starpu_memory_nodes_get_count();
  context->device_memory = INT64_MAX;
  context->core_cache = zlg_machine_get()->l2_core_bytes;
  context->shared_cache = zlg_machine_get()->l3_bytes;
  for (int node = 1; node < context->memory_nodes; node++) {
    int64_t bytes = (int64_t)starpu_memory_get_total((unsigned)node);
    if (bytes > 0 && bytes < context->device_memory) context->device_memory = bytes;
  }
  const int cores = zlg_machine_get()->cores;
  if (STARPU_MAXCPUS < cores)
    snprintf(context->worker_warning, sizeof context->worker_warning,
             "this StarPU (%s) was compiled for at most %d CPU workers and the machine has %d cores; "
             "./bootstrap starpu builds one for all of them",
             context->starpu_version, STARPU_MAXCPUS, cores);
}

static void load_models(const zlg_context *context) {
  const struct zlg_simulated_machine *simulated = &zlg_simulated_machine;
  bool other = ZLG_SIMULATED && *simulated->models;
  zlg_model_load(other ? simulated->models : context->model_directory, other ? simulated->models_host : NULL,
                 runtime.model_warning, sizeof runtime.model_warning);
}

int zlg_runtime_acquire(zlg_context *context) {
  zlg_runtime_model_directory(context->model_directory, sizeof context->model_directory);
  pthread_mutex_lock(&runtime.lock);
  int status = resolve_mode(context);
  if (status == ZLG_OK && context->mode == ZLG_RUNTIME_OWN)
    status = runtime.owners ? join_own(&context->options) : start_own(context);
  else if (status == ZLG_OK && starpu_init(NULL) != 0)
    status = zlg_fail(NULL, ZLG_ERUNTIME, "a reference to the application's StarPU could not be taken");
  if (status == ZLG_OK) {
    if (runtime.contexts++ == 0) load_models(context);
    memcpy(context->model_warning, runtime.model_warning, sizeof context->model_warning);
    runtime.owners += context->mode == ZLG_RUNTIME_OWN;
  }
  pthread_mutex_unlock(&runtime.lock);
  if (status != ZLG_OK) return status;
  status = describe_workers(context);
  if (status != ZLG_OK) {
    zlg_runtime_release(context);
    return status;
  }
  describe(context);
  return ZLG_OK;
}

/* Under the lock, when no request is under way any more. The allocator may be another one next time. */
static void forget_programs(void) {
#ifdef ZLG_WITH_DEVICES
  zlg_device_release();
#endif
}

void zlg_runtime_release(zlg_context *context) {
  for (int i = 0; i < context->worker_count; i++) zlg_free((char *)context->workers[i].name);
  zlg_free(context->workers);
  if (!zlg_context_is_ours(context)) return; /* a forked child: StarPU is the parent's */
  pthread_mutex_lock(&runtime.lock);
  if (--runtime.contexts == 0) forget_programs();
  if (context->mode == ZLG_RUNTIME_SHARED) {
    starpu_shutdown(); /* gives the reference back */
  } else if (--runtime.owners == 0) {
    work(); /* paused workers would never see the end */
    starpu_shutdown();
  }
  pthread_mutex_unlock(&runtime.lock);
}

/* Under the lock. */
static void wake(void) {
  if (!runtime.awake) work();
  runtime.awake = true;
}

void zlg_runtime_enter(const zlg_context *context) {
  if (context->mode != ZLG_RUNTIME_OWN) return;
  pthread_mutex_lock(&runtime.lock);
  runtime.active++;
  /* Where StarPU bounds what is submitted, a submission may wait for a task to end. */
  if (nonempty_env("STARPU_LIMIT_MAX_SUBMITTED_TASKS")) wake();
  pthread_mutex_unlock(&runtime.lock);
}

void zlg_runtime_wake(const zlg_context *context) {
  if (context->mode != ZLG_RUNTIME_OWN) return;
  pthread_mutex_lock(&runtime.lock);
  wake();
  pthread_mutex_unlock(&runtime.lock);
}

void zlg_runtime_leave(const zlg_context *context) {
  if (context->mode != ZLG_RUNTIME_OWN) return;
  pthread_mutex_lock(&runtime.lock);
  if (--runtime.active == 0 && runtime.awake) {
    rest();
    runtime.awake = false;
  }
  pthread_mutex_unlock(&runtime.lock);
}

void zlg_runtime_schedule(void) {
  starpu_do_schedule();
}

/* ---- transfers -------------------------------------------------------------------------------------------------- */

/* Under the lock. Reading resets StarPU's counters: ours keep the sum. */
static void read_links(void) {
  for (int bus = 0; bus < starpu_bus_get_count() && bus < LINKS; bus++) {
    struct starpu_profiling_bus_info info;
    if (starpu_bus_get_profiling_info(bus, &info) == 0) runtime.link_bytes[bus] += info.transferred_bytes;
  }
}

static void add_bytes(int64_t *sums, int nodes, int node, int64_t bytes) {
  if (node >= 0 && node < nodes) sums[node] += bytes;
}

bool zlg_runtime_bus_bytes(int nodes, int64_t *in, int64_t *out) {
  if (nodes > 1 && starpu_profiling_status_get() != STARPU_PROFILING_ENABLE) return false;
  pthread_mutex_lock(&runtime.lock);
  if (nodes > 1) read_links();
  for (int bus = 0; nodes > 1 && bus < starpu_bus_get_count() && bus < LINKS; bus++) {
    add_bytes(out, nodes, starpu_bus_get_src(bus), runtime.link_bytes[bus]);
    add_bytes(in, nodes, starpu_bus_get_dst(bus), runtime.link_bytes[bus]);
  }
  pthread_mutex_unlock(&runtime.lock);
  return true;
}

bool zlg_runtime_link(int index, int *from, int *to, int64_t *bytes) {
  if (index < 0 || index >= starpu_bus_get_count() || index >= LINKS) return false;
  pthread_mutex_lock(&runtime.lock);
  read_links();
  *bytes = runtime.link_bytes[index];
  pthread_mutex_unlock(&runtime.lock);
  *from = starpu_bus_get_src(index);
  *to = starpu_bus_get_dst(index);
  return true;
}
