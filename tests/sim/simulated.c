/* A described machine in a child process: see simulated.h. */
#define _GNU_SOURCE
#include "tests/sim/simulated.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILD_SECONDS 300

struct job {
  zlg_platform platform;
  const struct sim_product *product;
  struct sim_outcome outcome;
  int result; /* where the outcome goes: the pipe to the parent */
  zlg_context *context;
  zlg_matrix *x1, *x2, *b, *y;
  zlg_operator *A;
  zlg_request *request;
};

zlg_platform sim_machine(const char *name) {
  char path[1024];
  zlg_platform platform;
  const char *source = getenv("ZLG_SRCDIR");
  snprintf(path, sizeof path, "%s/perfmodels/machines/%s.machine", source ? source : ".", name);
  if (zlg_platform_read(path, &platform) == ZLG_OK) return platform;
  fprintf(stderr, "%s\n", zlg_context_message(NULL));
  exit(1);
}

struct sim_product sim_product(int64_t m, int64_t n) {
  return (struct sim_product){.m = m, .n = n, .d = 50, .type = ZLG_F32, .storage = ZLG_IN_MEMORY, .cpu_workers = -1};
}

struct sim_product sim_kron(int factors, int64_t size, int64_t vectors) {
  return (struct sim_product){
      .m = size, .n = vectors, .factors = factors, .type = ZLG_F32, .storage = ZLG_IN_MEMORY, .cpu_workers = 0};
}

/* ---- in the child ----------------------------------------------------------------------------------------------- */

static int prepare_kron(struct job *job) {
  const struct sim_product *p = job->product;
  zlg_matrix *factors[8];
  int64_t k = 1;
  for (int i = 0; i < p->factors; i++) k *= p->m;
  /* The factors are read before the first task; what is in them does not matter. */
  void *zeros = calloc((size_t)(p->m * p->m), sizeof(double));
  int status = zlg_matrix_wrap(job->context, &job->x1, p->type, p->m, p->m, ZLG_ROW_MAJOR, p->m, zeros);
  if (!status) status = zlg_matrix_simulated(job->context, &job->b, p->type, k, p->n, ZLG_COLUMN_MAJOR, p->storage);
  if (!status) status = zlg_matrix_simulated(job->context, &job->y, p->type, k, p->n, ZLG_COLUMN_MAJOR, p->storage);
  for (int i = 0; i < p->factors; i++) factors[i] = job->x1;
  return status ? status : zlg_kron(job->context, &job->A, p->factors, factors, NULL);
}

static int prepare(struct job *job) {
  const struct sim_product *p = job->product;
  zlg_context_options options;
  zlg_kernel_spec spec;
  zlg_kernel_spec_init(&spec, ZLG_GAUSSIAN);
  zlg_context_options_init(&options);
  options.mode = ZLG_RUNTIME_OWN;
  options.cpu_workers = p->cpu_workers >= 0 ? p->cpu_workers : job->platform.cores - job->platform.gpus;
  options.cuda_workers = job->platform.gpus;
  options.scheduler = p->scheduler;
  options.tile_rows = p->tile_rows;
  options.tile_columns = p->tile_columns;
  options.memory_limit = p->memory_limit;
  const zlg_order rows = ZLG_ROW_MAJOR;
  int status = zlg_context_create(&job->context, &options);
  if (p->factors) return status ? status : prepare_kron(job);
  if (!status) status = zlg_matrix_simulated(job->context, &job->x1, p->type, p->m, p->d, rows, ZLG_IN_MEMORY);
  if (!status) status = zlg_matrix_simulated(job->context, &job->x2, p->type, p->n, p->d, rows, p->storage);
  if (!status) status = zlg_matrix_simulated(job->context, &job->b, p->type, p->n, 1, rows, p->storage);
  if (!status) status = zlg_matrix_simulated(job->context, &job->y, p->type, p->m, 1, rows, ZLG_IN_MEMORY);
  return status ? status : zlg_kernel(job->context, &job->A, &spec, job->x1, job->x2);
}

static void add_links(struct job *job) {
  struct sim_outcome *o = &job->outcome;
  zlg_link_traffic link;
  for (int i = 0; zlg_simulation_link(job->context, i, &link) == ZLG_OK; i++) {
    bool peer = link.from > 0 && link.to > 0 && job->platform.peer_bandwidth > 0;
    double seconds = (double)link.bytes / (peer ? job->platform.peer_bandwidth : job->platform.link_bandwidth);
    if (link.to > 0) o->into_gpus += (double)link.bytes;
    if (seconds > o->over_busiest) o->over_busiest = seconds;
  }
}

static void add_report(struct job *job, const zlg_report *report) {
  struct sim_outcome *o = &job->outcome;
  o->seconds = report->seconds;
  o->compute = report->predicted_seconds;
  o->read = (double)report->bytes_read;
  o->tasks = report->tasks;
  o->shape[0] = report->tile_rows;
  o->shape[1] = report->tile_columns;
  o->workers = report->worker_count;
  for (int i = 0; i < report->worker_count; i++) {
    const zlg_worker_report *worker = &report->workers[i];
    double idle = report->seconds - worker->busy;
    if (worker->worker.kind == ZLG_WORKER_CPU)
      o->cpu_share += worker->work / report->work;
    else if (idle > o->idle)
      o->idle = idle;
  }
}

static int apply(struct job *job) {
  zlg_report report;
  struct sim_outcome *o = &job->outcome;
  int status = prepare(job);
  if (!status) status = zlg_apply_async(job->A, ZLG_NOTRANS, 1, job->b, 0, job->y, &job->request);
  if (!status) status = zlg_request_wait(job->request);
  if (!status) status = zlg_request_report(job->request, &report);
  if (!status) status = zlg_simulation_peaks(job->context, &o->under_way, &o->gpu_bytes);
  if (status) return status;
  add_report(job, &report);
  add_links(job);
  zlg_machine_info machine;
  status = zlg_context_machine(job->context, &machine);
  if (status) return status;
  o->cores = machine.cores, o->memory = machine.memory_bytes;
  snprintf(o->cpu_name, sizeof o->cpu_name, "%s", machine.cpu_name);
  return ZLG_OK;
}

static _Noreturn void tell(struct job *job, int status) {
  struct rusage usage;
  struct sim_outcome *o = &job->outcome;
  o->status = status;
  o->cpu_calibrated = job->platform.cpu.calibrated;
  o->gpu_calibrated = job->platform.gpu.calibrated;
  if (status) snprintf(o->message, sizeof o->message, "%s", zlg_context_message(NULL));
  if (getrusage(RUSAGE_SELF, &usage) == 0) o->resident_bytes = 1024 * (int64_t)usage.ru_maxrss;
  bool told = write(job->result, o, sizeof *o) == (ssize_t)sizeof *o;
  _exit(told ? 0 : 1); /* the simulated threads end with the process */
}

static int run(void *user) {
  struct job *job = user;
  tell(job, apply(job));
}

static _Noreturn void child(struct job *job) {
  char *directory = zlg_test_path("machine-XXXXXX");
  int result;
  alarm(CHILD_SECONDS);
  if (!mkdtemp(directory)) _exit(1);
  int status = zlg_platform_install(&job->platform, directory, job->product->models);
  setenv("STARPU_PERF_MODEL_DIR", directory, 1);
  setenv("STARPU_HOSTNAME", job->platform.name, 1);
  if (!status) status = zlg_simulate(run, job, &result);
  tell(job, status);
}

/* ---- in the parent ---------------------------------------------------------------------------------------------- */

static void say(const struct sim_product *p, const struct sim_outcome *o) {
  printf(
      "  %lld x %lld: %s%.6g s, compute %.6g s, links %.3g s, %lld tasks of %lld x %lld, %lld under way, GPU %.3g MB, "
      "%.3g MB resident\n",
      (long long)p->m, (long long)p->n, o->message, o->seconds, o->compute, o->over_busiest, (long long)o->tasks,
      (long long)o->shape[0], (long long)o->shape[1], (long long)o->under_way, 1e-6 * (double)o->gpu_bytes,
      1e-6 * (double)o->resident_bytes);
  fflush(stdout);
}

struct sim_outcome sim_run(const zlg_platform *platform, const struct sim_product *product) {
  int ends[2], ended = 0;
  struct job job = {.platform = *platform, .product = product};
  struct sim_outcome lost = {.status = -1000, .message = "no child process"};
  if (pipe(ends)) return lost;
  fflush(NULL);
  pid_t pid = fork();
  if (pid == 0) {
    close(ends[0]);
    job.result = ends[1];
    child(&job);
  }
  close(ends[1]);
  bool told = pid > 0 && read(ends[0], &job.outcome, sizeof job.outcome) == (ssize_t)sizeof job.outcome;
  close(ends[0]);
  if (pid > 0) waitpid(pid, &ended, 0);
  if (!told) {
    snprintf(lost.message, sizeof lost.message, "the simulation ended by signal %d without a word", WTERMSIG(ended));
    job.outcome = lost;
  }
  say(product, &job.outcome);
  return job.outcome;
}
