/* A described machine as StarPU and SimGrid want it: a platform (hosts, links, routes) and two tables of what transfers
 * cost, in the directory where StarPU keeps what it measured about a machine; and its rates for the models. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "codelets/common/model.h"
#include "codelets/common/starpu_compat.h"
#include "perfmodels/perfmodels.h"
#include "src/core/error.h"
#include "src/core/machine.h"
#include "src/core/runtime.h"
#include "src/core/simulation.h"
#include "zellige/simulation.h"

int zlg_simulation_available(void) {
  return ZLG_SIMULATED;
}

#if ZLG_SIMULATED

/* ---- files ------------------------------------------------------------------------------------------------------ */

static FILE *create(const char *directory, const char *name, const char *suffix) {
  char path[1024];
  snprintf(path, sizeof path, "%s/bus", directory);
  (void)mkdir(path, 0700);
  snprintf(path, sizeof path, "%s/bus/%s.%s", directory, name, suffix);
  FILE *file = fopen(path, "w");
  if (!file) zlg_fail(NULL, ZLG_EIO, "%s: %s", path, strerror(errno));
  return file;
}

static int finish(FILE *file, const char *directory) {
  int bad = ferror(file);
  return fclose(file) || bad ? zlg_fail(NULL, ZLG_EIO, "%s: the description could not be written", directory) : ZLG_OK;
}

static int socket_of(const zlg_platform *p, int gpu) {
  return gpu * p->sockets / p->gpus;
}

static void write_link(FILE *to, const char *from, const char *end, double bandwidth, double latency) {
  fprintf(to, "  <link id=\"%s-%s\" bandwidth=\"%.0fBps\" latency=\"%.9fs\"/>\n", from, end, bandwidth, latency);
}

static void write_hosts(FILE *to, const zlg_platform *p) {
  fputs("  <host id=\"MAIN\" speed=\"1f\"/>\n  <host id=\"RAM\" speed=\"1f\"/>\n", to);
  for (int i = 0; i < p->cores; i++) fprintf(to, "  <host id=\"CPU%d\" speed=\"2000000000f\"/>\n", i);
  for (int i = 0; i < p->gpus; i++)
    fprintf(to,
            "  <host id=\"CUDA%d\" speed=\"2000000000f\">\n   <prop id=\"model\" value=\"described\"/>\n"
            "   <prop id=\"memsize\" value=\"%.0f\"/>\n   <prop id=\"memcpy_peer\" value=\"1\"/>\n  </host>\n",
            i, p->gpu_memory_bytes);
}

static void write_links(FILE *to, const zlg_platform *p) {
  char gpu[16], other[16];
  for (int s = 0; p->socket_bandwidth > 0 && s < p->sockets; s++)
    fprintf(to, "  <link id=\"socket%d\" bandwidth=\"%.0fBps\" latency=\"0s\"/>\n", s, p->socket_bandwidth);
  for (int i = 0; i < p->gpus; i++) {
    snprintf(gpu, sizeof gpu, "CUDA%d", i);
    write_link(to, "RAM", gpu, p->link_bandwidth, p->link_latency);
    write_link(to, gpu, "RAM", p->link_bandwidth, p->link_latency);
    for (int k = 0; p->peer_bandwidth > 0 && k < p->gpus; k++) {
      snprintf(other, sizeof other, "CUDA%d", k);
      if (k != i) write_link(to, gpu, other, p->peer_bandwidth, p->peer_latency);
    }
  }
}

static void write_socket(FILE *to, const zlg_platform *p, int gpu) {
  if (p->socket_bandwidth > 0) fprintf(to, "<link_ctn id=\"socket%d\"/>", socket_of(p, gpu));
}

static void write_routes(FILE *to, const zlg_platform *p) {
  for (int i = 0; i < p->gpus; i++) {
    for (int up = 0; up < 2; up++) {
      char gpu[16];
      snprintf(gpu, sizeof gpu, "CUDA%d", i);
      const char *from = up ? gpu : "RAM", *end = up ? "RAM" : gpu;
      fprintf(to, "  <route src=\"%s\" dst=\"%s\" symmetrical=\"NO\"><link_ctn id=\"%s-%s\"/>", from, end, from, end);
      write_socket(to, p, i);
      fputs("</route>\n", to);
    }
    for (int k = 0; k < p->gpus; k++) {
      if (k == i) continue;
      fprintf(to, "  <route src=\"CUDA%d\" dst=\"CUDA%d\" symmetrical=\"NO\">", i, k);
      if (p->peer_bandwidth > 0) {
        fprintf(to, "<link_ctn id=\"CUDA%d-CUDA%d\"/>", i, k);
      } else {
        fprintf(to, "<link_ctn id=\"CUDA%d-RAM\"/><link_ctn id=\"RAM-CUDA%d\"/>", i, k);
        write_socket(to, p, i);
        if (socket_of(p, i) != socket_of(p, k)) write_socket(to, p, k);
      }
      fputs("</route>\n", to);
    }
  }
}

static int write_platform(const zlg_platform *p, const char *directory) {
  FILE *to = create(directory, p->name, "platform.v4.xml");
  if (!to) return ZLG_EIO;
  fputs("<?xml version='1.0'?>\n"
        "<!DOCTYPE platform SYSTEM \"http://simgrid.gforge.inria.fr/simgrid/simgrid.dtd\">\n"
        "<platform version=\"4.1\">\n <config id=\"General\">\n"
        /* A bus is no network: no windows, no factors, no acknowledgements. */
        "  <prop id=\"network/TCP-gamma\" value=\"-1\"></prop>\n"
        "  <prop id=\"network/latency-factor\" value=\"1\"></prop>\n"
        "  <prop id=\"network/bandwidth-factor\" value=\"1\"></prop>\n"
        "  <prop id=\"network/weight-S\" value=\"0.0\"></prop>\n"
        "  <prop id=\"network/crosstraffic\" value=\"0\"></prop>\n"
        " </config>\n <zone id=\"machine\" routing=\"Full\">\n",
        to);
  write_hosts(to, p);
  write_links(to, p);
  write_routes(to, p);
  fputs(" </zone>\n</platform>\n", to);
  return finish(to, directory);
}

/* StarPU only asks whether it is there: it marks the directory. */
static int write_config(const zlg_platform *p, const char *directory) {
  FILE *to = create(directory, p->name, "config");
  if (!to) return ZLG_EIO;
  fprintf(to, "# described\n%d # Number of CPUs\n1 # Number of NUMA nodes\n%d # Number of CUDA devices\n", p->cores,
          p->gpus);
  return finish(to, directory);
}

/* Node 0 is memory, then come the GPUs. Between two of them without links of their own, data goes up and down. */
static double between(const zlg_platform *p, int from, int to, double link, double peer, double twice) {
  if (from == to) return 0;
  return from == 0 || to == 0 ? link : p->peer_bandwidth > 0 ? peer : twice;
}

static int write_table(const zlg_platform *p, const char *directory, const char *suffix, double link, double peer,
                       double twice) {
  FILE *to = create(directory, p->name, suffix);
  if (!to) return ZLG_EIO;
  for (int i = 0; i < STARPU_MAXNODES; i++)
    for (int k = 0; k < STARPU_MAXNODES; k++) {
      char end = k + 1 < STARPU_MAXNODES ? '\t' : '\n';
      if (i > p->gpus || k > p->gpus)
        fprintf(to, "nan%c", end);
      else
        fprintf(to, "%f%c", between(p, i, k, link, peer, twice), end);
    }
  return finish(to, directory);
}

/* ---- in force --------------------------------------------------------------------------------------------------- */

struct search {
  bool found[ZLG_MODEL_KINDS + 1];
};

static void look_at(void *user, const char *path, const struct zlg_model *model, const char *reason) {
  struct search *search = user;
  (void)path, (void)reason; /* one that cannot be used is no model */
  for (int i = 0; model && i < model->curve_count; i++)
    if (model->curves[i].count > 0) search->found[model->curves[i].kind] = true;
}

/* Rates that a description may leave out where models serve. */
static int check_kind(const zlg_platform *p, const zlg_rates *rates, const char *kind, bool used) {
  if (!used || rates->calibrated || (rates->multiply_adds[0] > 0 && rates->multiply_adds[1] > 0 && rates->bytes > 0))
    return ZLG_OK;
  return zlg_fail(NULL, ZLG_ENOENT, "%s: no calibrated model of %s has a %s worker, and no rates are described",
                  p->name, p->calibration_host, kind);
}

static int use_rates(zlg_platform *platform, const char *models) {
  struct search search = {{false}};
  char host[65], directory[512];
  snprintf(host, sizeof host, "%s", platform->calibration_host);
  if (!*host) zlg_model_host(host, sizeof host);
  zlg_runtime_model_directory(directory, sizeof directory);
  if (!models) models = directory;
  if (platform->cpu.calibrated || platform->gpu.calibrated) zlg_model_scan(models, host, look_at, &search);
  platform->cpu.calibrated = platform->cpu.calibrated && search.found[ZLG_WORKER_CPU];
  platform->gpu.calibrated = platform->gpu.calibrated && search.found[ZLG_WORKER_CUDA];
  snprintf(platform->calibration_host, sizeof platform->calibration_host, "%s", host);
  int status = check_kind(platform, &platform->cpu, "CPU", true);
  if (status == ZLG_OK) status = check_kind(platform, &platform->gpu, "CUDA", platform->gpus > 0);
  if (status != ZLG_OK) return status;
  if (!platform->cpu.calibrated) zlg_model_set_rates(ZLG_WORKER_CPU, &platform->cpu);
  if (!platform->gpu.calibrated) zlg_model_set_rates(ZLG_WORKER_CUDA, &platform->gpu);
  bool any = platform->cpu.calibrated || platform->gpu.calibrated;
  snprintf(zlg_simulated_machine.models, sizeof zlg_simulated_machine.models, "%s", any ? models : "");
  snprintf(zlg_simulated_machine.models_host, sizeof zlg_simulated_machine.models_host, "%s", host);
  return ZLG_OK;
}

static int check_limits(const zlg_platform *p) {
  if (p->cores > STARPU_MAXCPUS)
    return zlg_fail(NULL, ZLG_EINVAL, "%s has %d cores, and this StarPU was built for %d", p->name, p->cores,
                    STARPU_MAXCPUS);
  if (p->gpus > STARPU_MAXCUDADEVS)
    return zlg_fail(NULL, ZLG_EINVAL, "%s has %d GPUs, and this StarPU was built for %d", p->name, p->gpus,
                    STARPU_MAXCUDADEVS);
  return ZLG_OK;
}

int zlg_platform_install(zlg_platform *platform, const char *directory, const char *models) {
  const zlg_platform *p = platform;
  if (!p || !directory) return zlg_fail(NULL, ZLG_EINVAL, "%s is NULL", p ? "directory" : "platform");
  int status = check_limits(p);
  if (status == ZLG_OK) status = write_platform(p, directory);
  if (status == ZLG_OK) status = write_config(p, directory);
  if (status == ZLG_OK)
    status = write_table(p, directory, "latency", 1e6 * p->link_latency, 1e6 * p->peer_latency, 2e6 * p->link_latency);
  if (status == ZLG_OK)
    status = write_table(p, directory, "bandwidth", 1e-6 * p->link_bandwidth, 1e-6 * p->peer_bandwidth,
                         1e-6 * p->link_bandwidth);
  if (status != ZLG_OK) return status;
  zlg_simulated_machine = (struct zlg_simulated_machine){
      .cores = p->cores, .gpus = p->gpus, .disk_read = p->disk_read, .disk_write = p->disk_write};
  struct zlg_machine described = {.cores = p->cores, .memory_bytes = (int64_t)p->memory_bytes};
  snprintf(described.cpu_name, sizeof described.cpu_name, "%s", p->title);
  zlg_machine_describe(&described);
  return use_rates(platform, models);
}

#else

int zlg_platform_install(zlg_platform *platform, const char *directory, const char *models) {
  (void)platform, (void)directory, (void)models;
  return zlg_fail(
      NULL, ZLG_ENOTSUP,
      "this library computes and cannot simulate: its StarPU is not built with SimGrid; ./bootstrap simgrid "
      "builds both, into build-simgrid/");
}

#endif

/* ---- a simulation ----------------------------------------------------------------------------------------------- */

#if ZLG_SIMULATED

/* Contexts would start SimGrid too, but each of its threads would then be one of the system's, and a switch between two
 * of them as slow: some 70 times slower in all. StarPU's own main() does it the quick way and calls starpu_main(). */
static struct {
  int (*run)(void *user);
  void *user;
} job;

__attribute__((visibility("default"))) int starpu_main(int argc, char *argv[]);
int starpu_main(int argc, char *argv[]) {
  (void)argc, (void)argv;
  return job.run(job.user);
}

int zlg_simulate(int (*run)(void *user), void *user, int *result) {
  if (!run || !result) return zlg_fail(NULL, ZLG_EINVAL, "%s is NULL", run ? "result" : "run");
  if (zlg_simulated_machine.cores == 0)
    return zlg_fail(NULL, ZLG_ESTATE, "no machine is described: zlg_platform_install() comes first");
  union {
    void *object;
    int (*function)(int, char **);
  } start = {dlsym(RTLD_NEXT, "main")};
  if (!start.object || job.run)
    return zlg_fail(NULL, ZLG_ESTATE,
                    job.run ? "a process simulates once" : "this StarPU has no main() to start SimGrid");
  job.run = run;
  job.user = user;
  char name[] = "zellige", quiet[] = "--log=root.thres:error", *line[] = {name, quiet, NULL};
  *result = start.function(2, line);
  return ZLG_OK;
}

#else

int zlg_simulate(int (*run)(void *user), void *user, int *result) {
  (void)run, (void)user, (void)result;
  return zlg_platform_install(NULL, NULL, NULL);
}

#endif

/* ---- what a simulation tells ------------------------------------------------------------------------------------ */

int zlg_simulation_link(zlg_context *context, int index, zlg_link_traffic *traffic) {
  if (!context || !traffic) return zlg_fail(context, ZLG_EINVAL, "%s is NULL", context ? "traffic" : "context");
  if (!zlg_runtime_link(index, &traffic->from, &traffic->to, &traffic->bytes))
    return zlg_fail(context, ZLG_EINVAL, "link index = %d is none", index);
  return ZLG_OK;
}

int zlg_simulation_peaks(zlg_context *context, int64_t *tasks, int64_t *gpu_bytes) {
  if (!context || !tasks || !gpu_bytes) return zlg_fail(context, ZLG_EINVAL, "an argument is NULL");
  *tasks = zlg_simulated_machine.most_tasks;
  *gpu_bytes = zlg_simulated_machine.most_gpu_bytes;
  return ZLG_OK;
}
