/* `zellige info`: what a product on this machine would run on. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/json.h"
#include "tools/number.h"
#include "tools/runtime.h"
#include "tools/table.h"
#include "tools/terminal.h"
#include "tools/tool.h"

enum { KEY_JSON = 0x3000 };

struct info {
  struct runtime runtime;
  bool json;
};

static error_t parse(int key, char *argument, struct argp_state *state) {
  struct info *info = state->input;
  switch (key) {
  case ARGP_KEY_INIT:
    state->child_inputs[0] = &info->runtime;
    return 0;
  case KEY_JSON:
    info->json = true;
    return 0;
  case ARGP_KEY_ARG:
    tool_usage_error("'%s': no argument expected", argument);
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

static void print_machine(const zlg_context *context) {
  zlg_machine_info m;
  if (zlg_context_machine(context, &m)) return;
  char *workers = runtime_describe(context);
  printf("machine\n");
  printf("  processor       %s\n", m.cpu_name ? m.cpu_name : "unknown");
  printf("  cores           %d usable, kernels for %s\n", m.cores, m.instruction_set);
  printf("  data caches     L1 %s, L2 %s, L3 %s\n", m.l1_bytes ? show_bytes((double)m.l1_bytes).s : "unknown",
         m.l2_bytes ? show_bytes((double)m.l2_bytes).s : "unknown",
         m.l3_bytes ? show_bytes((double)m.l3_bytes).s : "unknown");
  printf("  memory          %s, %d memory node%s\n", show_bytes((double)m.memory_bytes).s, m.memory_nodes,
         m.memory_nodes == 1 ? "" : "s");
  printf("\nruntime\n");
  printf("  StarPU          %s, at most %d CPU workers\n", m.starpu_version, m.cpu_worker_limit);
  printf("  workers         %s\n", workers ? workers : "");
  printf("  scheduler       %s\n", m.scheduler ? m.scheduler : "none");
  printf("  memory limit    %s for staged tiles and accumulators\n", show_bytes((double)m.memory_limit).s);
  printf("  models          %s\n", m.model_directory ? m.model_directory : "none");
  if (m.model_warning) printf("                  %s\n", m.model_warning);
  printf("  built with      OpenCL: %s, CUDA: %s\n", m.has_opencl ? "yes" : "no", m.has_cuda ? "yes" : "no");
  free(workers);
}

static void print_workers(const zlg_context *context, int width) {
  const char *const headers[] = {"worker", "kind", ">memory node", NULL};
  struct table *table = table_new(headers);
  zlg_worker_info worker;
  for (int i = 0; i < zlg_context_worker_count(context); i++) {
    if (zlg_context_worker(context, i, &worker)) continue;
    char node[16];
    snprintf(node, sizeof node, "%d", worker.memory_node);
    const char *cells[] = {worker.name, zlg_worker_kind_name(worker.kind), node};
    table_add(table, cells);
  }
  printf("\nworkers\n");
  table_print(table, stdout, width);
}

static void print_codelets(const zlg_context *context, int width) {
  const char *const headers[] = {"codelet", "cpu", "opencl", "cuda", "performance model", NULL};
  struct table *table = table_new(headers);
  zlg_codelet_info codelet;
  for (int i = 0; zlg_context_codelet(context, i, &codelet) == ZLG_OK; i++) {
    const char *cells[] = {codelet.name, codelet.has_cpu ? "yes" : "no", codelet.has_opencl ? "yes" : "no",
                           codelet.has_cuda ? "yes" : "no",
                           codelet.model_found ? "calibrated" : "analytic, improves as it runs"};
    table_add(table, cells);
  }
  printf("\ncodelets\n");
  table_print(table, stdout, width);
}

static int print_text(const zlg_context *context) {
  int width = terminal_is(STDOUT_FILENO) ? terminal_width(STDOUT_FILENO) : 0;
  printf("zellige %s\n\n", zlg_version());
  print_machine(context);
  print_workers(context, width);
  print_codelets(context, width);
  return tool_finish(TOOL_OK);
}

static int print_info_json(const zlg_context *context) {
  json_t *object = json_pack("{s:s, s:s}", "version", zlg_version(), "command", "info");
  json_t *runtime = runtime_json(context);
  if (object && json_object_update_new(object, runtime)) {
    json_decref(object);
    object = NULL;
  }
  return print_json(object);
}

int command_info(int argc, char **argv) {
  static const struct argp_option options[] = {{"json", KEY_JSON, NULL, 0, "One JSON object on standard output", 1},
                                               {0}};
  const struct argp_child children[] = {{&runtime_argp, 0, NULL, 0}, {0}};
  const struct argp argp = {options,
                            parse,
                            "",
                            "Shows the workers that a product would get on this machine, its memory and caches, the "
                            "runtime, and the models found.",
                            children,
                            NULL,
                            NULL};
  struct info info = {.json = false};
  runtime_init(&info.runtime);
  tool_parse(&argp, argc, argv, &info);
  zlg_context *context = NULL;
  struct progress progress = {.mode = PROGRESS_AUTO};
  int code = runtime_start(&info.runtime, &progress, &context);
  if (code == TOOL_OK) code = info.json ? print_info_json(context) : print_text(context);
  zlg_context_release(context);
  return code;
}
