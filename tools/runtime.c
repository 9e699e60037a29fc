/* The runtime as the command line asks for it: see runtime.h. */
#define _GNU_SOURCE
#include "tools/runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/json.h"
#include "tools/number.h"
#include "tools/tool.h"

enum { KEY_OPENCL = 0x2000, KEY_CUDA, KEY_SCHED, KEY_MEMORY };

static const struct argp_option options[] = {
    {NULL, 0, NULL, 0, "Machine:", 20},
    {"workers", 'w', "N", 0, "CPU workers (default: one a core)", 20},
    {"opencl", KEY_OPENCL, "N", 0, "OpenCL workers (default: one a device)", 20},
    {"cuda", KEY_CUDA, "N", 0, "CUDA workers (default: one a device)", 20},
    {"sched", KEY_SCHED, "NAME", 0, "StarPU's scheduling policy, such as dmdas or lws (default: the library's choice)",
     20},
    {"memory", KEY_MEMORY, "SIZE", 0,
     "Most memory for staged tiles and accumulators: bytes, or with k, M, G, T (powers of 1000), Ki, Mi, Gi, Ti (of "
     "1024)",
     20},
    {0}};

static int parse_workers(const char *name, const char *text) {
  int64_t count;
  if (!parse_int64(text, &count) || count < 0 || count > 4096)
    tool_usage_error("--%s: '%s'; expected a number of workers, 0 to 4096", name, text);
  return (int)count;
}

static int64_t parse_memory(const char *text) {
  int64_t bytes;
  if (!parse_bytes(text, &bytes) || bytes == 0)
    tool_usage_error("--memory: '%s'; expected a size such as 500M or 2Gi", text);
  return bytes;
}

static error_t parse(int key, char *argument, struct argp_state *state) {
  struct runtime *runtime = state->input;
  switch (key) {
  case 'w':
    runtime->options.cpu_workers = parse_workers("workers", argument);
    return 0;
  case KEY_OPENCL:
    runtime->options.opencl_workers = parse_workers("opencl", argument);
    return 0;
  case KEY_CUDA:
    runtime->options.cuda_workers = parse_workers("cuda", argument);
    return 0;
  case KEY_SCHED:
    runtime->options.scheduler = argument;
    return 0;
  case KEY_MEMORY:
    runtime->options.memory_limit = parse_memory(argument);
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

const struct argp runtime_argp = {options, parse, NULL, NULL, NULL, NULL, NULL};

void runtime_init(struct runtime *runtime) {
  zlg_context_options_init(&runtime->options);
  runtime->options.mode = ZLG_RUNTIME_OWN;
  runtime->quiet = false;
}

int runtime_count(const zlg_context *context, zlg_worker_kind kind) {
  int count = 0;
  zlg_worker_info worker;
  for (int i = 0; i < zlg_context_worker_count(context); i++)
    count += zlg_context_worker(context, i, &worker) == ZLG_OK && worker.kind == kind;
  return count;
}

static const char *kind_title(zlg_worker_kind kind) {
  return kind == ZLG_WORKER_CPU ? "CPU" : kind == ZLG_WORKER_OPENCL ? "OpenCL" : "CUDA";
}

char *runtime_describe(const zlg_context *context) {
  char *text = NULL;
  for (zlg_worker_kind kind = ZLG_WORKER_CPU; kind <= ZLG_WORKER_CUDA; kind++) {
    int count = runtime_count(context, kind);
    if (!count) continue;
    char *longer;
    if (asprintf(&longer, "%s%s%d %s worker%s", text ? text : "", text ? " and " : "", count, kind_title(kind),
                 count == 1 ? "" : "s") < 0)
      longer = NULL;
    free(text);
    text = longer;
  }
  return text ? text : strdup("no worker");
}

/* Devices that were asked for by number and are not there. */
static int check_devices(const struct runtime *runtime, const zlg_context *context) {
  const struct {
    zlg_worker_kind kind;
    int asked;
    const char *hint;
  } devices[] = {{ZLG_WORKER_OPENCL, runtime->options.opencl_workers,
                  getenv("STARPU_OPENCL_ON_CPUS") ? "" : " (a CPU's OpenCL counts with STARPU_OPENCL_ON_CPUS=1 only)"},
                 {ZLG_WORKER_CUDA, runtime->options.cuda_workers, ""}};
  for (int i = 0; i < 2; i++) {
    int found = runtime_count(context, devices[i].kind);
    if (devices[i].asked <= found) continue;
    tool_error("%d %s worker%s asked for, %d found%s", devices[i].asked, kind_title(devices[i].kind),
               devices[i].asked == 1 ? "" : "s", found, devices[i].hint);
    return TOOL_FAILED;
  }
  return TOOL_OK;
}

static void warn_about_workers(const struct runtime *runtime, const zlg_context *context) {
  zlg_machine_info machine;
  if (runtime->quiet || zlg_context_machine(context, &machine)) return;
  if (machine.worker_warning) tool_warning("%s", machine.worker_warning);
  int found = runtime_count(context, ZLG_WORKER_CPU);
  if (runtime->options.cpu_workers > found && !machine.worker_warning)
    tool_warning("%d CPU workers asked for, %d found", runtime->options.cpu_workers, found);
}

/* The library's message, with its names of options turned into those of the command line. */
static void say_why_not(int status) {
  static const struct {
    const char *field, *option;
  } names[] = {{"cpu_workers = ", "--workers"}, {"scheduler = ", "--sched"}};
  const char *message = zlg_context_message(NULL);
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    if (!strncmp(message, names[i].field, strlen(names[i].field))) {
      tool_error("%s%s", names[i].option, strchr(message, ' '));
      return;
    }
  tool_library_error(NULL, status, NULL);
}

int runtime_start(struct runtime *runtime, struct progress *progress, zlg_context **context) {
  setenv("STARPU_SILENT", "1", 0); /* its messages would stand between ours; STARPU_SILENT=0 brings them back */
  progress_wait(progress, "starting the workers (the first time on a machine, its buses are measured)");
  int status = zlg_context_create(context, &runtime->options);
  progress_waited(progress);
  if (status) {
    say_why_not(status);
    return TOOL_FAILED;
  }
  warn_about_workers(runtime, *context);
  return check_devices(runtime, *context);
}

static json_t *workers_json(const zlg_context *context) {
  json_t *workers = json_array();
  zlg_worker_info worker;
  for (int i = 0; i < zlg_context_worker_count(context); i++) {
    if (zlg_context_worker(context, i, &worker)) continue;
    json_array_append_new(workers, worker_json(&worker));
  }
  return workers;
}

static json_t *codelets_json(const zlg_context *context) {
  json_t *codelets = json_array();
  zlg_codelet_info codelet;
  for (int i = 0; zlg_context_codelet(context, i, &codelet) == ZLG_OK; i++)
    json_array_append_new(codelets,
                          json_pack("{s:s, s:s?, s:b, s:b, s:b, s:b}", "name", codelet.name, "model",
                                    codelet.model_symbol, "cpu", codelet.has_cpu, "opencl", codelet.has_opencl, "cuda",
                                    codelet.has_cuda, "model_found", codelet.model_found));
  return codelets;
}

json_t *runtime_json(const zlg_context *context) {
  zlg_machine_info m;
  if (zlg_context_machine(context, &m)) return json_null();
  json_t *machine = json_pack("{s:s?, s:i, s:i, s:s?, s:I, s:{s:I, s:I, s:I}, s:s?}", "cpu", m.cpu_name, "cores",
                              m.cores, "memory_nodes", m.memory_nodes, "instruction_set", m.instruction_set,
                              "memory_bytes", (json_int_t)m.memory_bytes, "cache_bytes", "l1", (json_int_t)m.l1_bytes,
                              "l2", (json_int_t)m.l2_bytes, "l3", (json_int_t)m.l3_bytes, "warning", m.worker_warning);
  json_t *runtime = json_pack("{s:s?, s:s, s:s?, s:i, s:I, s:o}", "starpu", m.starpu_version, "mode",
                              m.mode == ZLG_RUNTIME_SHARED ? "shared" : "own", "scheduler", m.scheduler,
                              "cpu_worker_limit", m.cpu_worker_limit, "memory_limit", (json_int_t)m.memory_limit,
                              "model_directory", text_json(m.model_directory));
  return json_pack("{s:o, s:o, s:o, s:o, s:{s:b, s:b}}", "machine", machine, "runtime", runtime, "workers",
                   workers_json(context), "codelets", codelets_json(context), "build", "opencl", m.has_opencl, "cuda",
                   m.has_cuda);
}
