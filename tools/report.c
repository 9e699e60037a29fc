/* What is said before and after a request: see report.h. */
#include "tools/report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tools/json.h"
#include "tools/number.h"
#include "tools/runtime.h"
#include "tools/table.h"
#include "tools/terminal.h"

/* A line: work in its own unit beside the operations, which may be what it is counted in. */
static void print_counts(const char *label, double work, const char *unit, double flops, const char *per) {
  char work_unit[40], flop_unit[40];
  snprintf(work_unit, sizeof work_unit, "%s%s", unit, per);
  snprintf(flop_unit, sizeof flop_unit, "Flop%s", per);
  printf("  %s", label);
  if (strcmp(unit, "flop") != 0) printf("%s, ", show_count(work, work_unit).s);
  printf("%s\n", show_count(flops, flop_unit).s);
}

/* Where the tile comes from. */
static void print_rule(const zlg_cost *cost, const zlg_machine_info *machine) {
  if (!cost->tile_rule || cost->tasks == 0) return;
  const char *rates = cost->tile_calibrated ? "by calibration" : "by nominal rates";
  struct text lasts = show_seconds(cost->tile_seconds);
  if (strcmp(cost->tile_rule, "cache") == 0)
    printf("                  as many rows as half of a core's cache holds (L2, %s), %s a task of a core %s\n",
           machine->l2_core_bytes ? show_bytes((double)machine->l2_core_bytes).s : "nominal 1 MiB", lasts.s, rates);
  else
    printf("                  by %s, %s a task of a core %s\n",
           strcmp(cost->tile_rule, "size") == 0      ? "the size of the whole"
           : strcmp(cost->tile_rule, "time") == 0    ? "what a task should last"
           : strcmp(cost->tile_rule, "options") == 0 ? "the options"
                                                     : "the memory limit",
           lasts.s, rates);
}

void plan_print(const zlg_context *context, const zlg_operator *A, zlg_op op, bool right, const zlg_matrix *X,
                const char *title, const zlg_cost *cost, const char *unit) {
  zlg_operator_info a;
  zlg_matrix_info x;
  zlg_machine_info machine;
  if (zlg_operator_get_info(A, &a) || zlg_matrix_get_info(X, &x) || zlg_context_machine(context, &machine)) return;
  char *workers = runtime_describe(context);
  printf("plan\n");
  printf("  operator        %s, %lld x %lld %s%s\n", title, (long long)a.rows, (long long)a.columns,
         zlg_type_name(a.type), op == ZLG_TRANS ? ", transposed" : "");
  if (right)
    printf("  left-hand side  %lld row%s\n", (long long)x.rows, x.rows == 1 ? "" : "s");
  else
    printf("  right-hand side %lld column%s\n", (long long)x.columns, x.columns == 1 ? "" : "s");
  print_counts("work            ", cost->work, unit, cost->flops, "");
  printf("  traffic         %s read, %s written\n", show_traffic(cost->bytes_read).s,
         show_traffic(cost->bytes_written).s);
  if (cost->bytes_to_devices > 0)
    printf("  bus             %s to devices, %s back\n", show_traffic(cost->bytes_to_devices).s,
           show_traffic(cost->bytes_from_devices).s);
  printf("  memory          %s of the library's own, limit %s\n", show_bytes((double)cost->memory_bytes).s,
         show_bytes((double)machine.memory_limit).s);
  printf("  tiles           %lld x %lld, %lld task%s\n", (long long)cost->tile_rows, (long long)cost->tile_columns,
         (long long)cost->tasks, cost->tasks == 1 ? "" : "s");
  print_rule(cost, &machine);
  printf("  predicted       %s on %s, bound by %s\n", show_seconds(cost->seconds).s, workers ? workers : "",
         cost->bound);
  for (zlg_worker_kind kind = ZLG_WORKER_CPU; kind <= ZLG_WORKER_CUDA; kind++)
    if (isfinite(cost->kind_seconds[kind]))
      printf("                  %s on one %s worker alone, %s of the work for each\n",
             show_seconds(cost->kind_seconds[kind]).s, zlg_worker_kind_name(kind),
             show_percent(cost->seconds / cost->kind_seconds[kind]).s);
  free(workers);
}

json_t *cost_json(const zlg_cost *cost) {
  json_t *kinds = json_object();
  for (zlg_worker_kind kind = ZLG_WORKER_CPU; kind <= ZLG_WORKER_CUDA; kind++)
    json_object_set_new(kinds, zlg_worker_kind_name(kind), number_json(cost->kind_seconds[kind]));
  return json_pack(
      "{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:o, s:s, s:o, s:b, s:s?}", "flops",
      number_json(cost->flops), "work", number_json(cost->work), "bytes_read", number_json(cost->bytes_read),
      "bytes_written", number_json(cost->bytes_written), "bytes_to_devices", number_json(cost->bytes_to_devices),
      "bytes_from_devices", number_json(cost->bytes_from_devices), "memory_bytes", bytes_json(cost->memory_bytes),
      "seconds", number_json(cost->seconds), "tasks", (json_int_t)cost->tasks, "tile_rows", (json_int_t)cost->tile_rows,
      "tile_columns", (json_int_t)cost->tile_columns, "kind_seconds", kinds, "bound", cost->bound, "tile_seconds",
      number_json(cost->tile_seconds), "tile_calibrated", cost->tile_calibrated, "tile_rule", cost->tile_rule);
}

static double share(const zlg_report *report, double work) {
  return report->work > 0 ? work / report->work : 0;
}

static struct text moved(int64_t bytes) {
  return bytes < 0 ? (struct text){"-"} : show_traffic((double)bytes);
}

static void print_workers(const zlg_report *report, int width) {
  const char *const headers[] = {"worker", ">tasks", ">share", ">predicted", ">busy", ">of time", ">in", ">out", NULL};
  struct table *table = table_new(headers);
  for (int i = 0; i < report->worker_count; i++) {
    const zlg_worker_report *w = &report->workers[i];
    char tasks[24];
    snprintf(tasks, sizeof tasks, "%lld", (long long)w->tasks);
    struct text part = show_percent(share(report, w->work)), busy = show_seconds(w->busy),
                expected = show_seconds(w->predicted_busy),
                of_time = show_percent(report->seconds > 0 ? w->busy / report->seconds : 0), in = moved(w->bytes_in),
                out = moved(w->bytes_out);
    const char *cells[] = {w->worker.name, tasks, part.s, expected.s, busy.s, of_time.s, in.s, out.s};
    table_add(table, cells);
  }
  table_print(table, stdout, width);
}

static double peak_memory(void) {
  struct rusage usage;
  return getrusage(RUSAGE_SELF, &usage) ? 0 : 1024.0 * (double)usage.ru_maxrss;
}

/* "pairs" -> "pair" */
static struct text singular(const char *unit) {
  struct text text;
  snprintf(text.s, sizeof text.s, "%s", unit ? unit : "");
  size_t length = strlen(text.s);
  if (length && text.s[length - 1] == 's') text.s[length - 1] = 0;
  return text;
}

void report_print(const zlg_report *report, const char *output) {
  int width = terminal_is(STDOUT_FILENO) ? terminal_width(STDOUT_FILENO) : 0;
  struct text unit = singular(report->work_unit);
  if (report->worker_count > 0) {
    print_workers(report, width);
    printf("\n");
  }
  double seconds = report->seconds > 0 ? report->seconds : INFINITY;
  printf("  time      %s (predicted %s)\n", show_seconds(report->seconds).s, show_seconds(report->predicted_seconds).s);
  if (isfinite(report->bound_seconds))
    printf("  bound     %s with every worker busy all the time: %s of it reached\n",
           show_seconds(report->bound_seconds).s, show_percent(report->bound_seconds / seconds).s);
  print_counts("work      ", report->work, unit.s, report->flops, "");
  print_counts("rate      ", report->work / seconds, unit.s, report->flops / seconds, "/s");
  if (report->direct)
    printf("  tasks     none: small enough to be done at once\n");
  else
    printf("  tasks     %lld, tiles of %lld x %lld\n", (long long)report->tasks, (long long)report->tile_rows,
           (long long)report->tile_columns);
  printf("  files     %s read, %s written to %s\n", show_traffic((double)report->bytes_read).s,
         show_traffic((double)report->bytes_written).s, output);
  printf("  memory    %s at the process's peak\n", show_bytes(peak_memory()).s);
}

json_t *report_json(const zlg_report *report) {
  json_t *workers = json_array();
  for (int i = 0; i < report->worker_count; i++) {
    const zlg_worker_report *w = &report->workers[i];
    json_t *worker = worker_json(&w->worker);
    json_object_update_new(worker,
                           json_pack("{s:I, s:o, s:o, s:o, s:o, s:o, s:o}", "tasks", (json_int_t)w->tasks, "work",
                                     number_json(w->work), "share", number_json(share(report, w->work)),
                                     "predicted_busy", number_json(w->predicted_busy), "busy", number_json(w->busy),
                                     "bytes_in", bytes_json(w->bytes_in), "bytes_out", bytes_json(w->bytes_out)));
    json_array_append_new(workers, worker);
  }
  return json_pack("{s:o, s:o, s:o, s:o, s:s?, s:o, s:I, s:I, s:I, s:b, s:I, s:I, s:o, s:o}", "seconds",
                   number_json(report->seconds), "predicted_seconds", number_json(report->predicted_seconds),
                   "bound_seconds", number_json(report->bound_seconds), "work", number_json(report->work), "work_unit",
                   report->work_unit, "flops", number_json(report->flops), "bytes_read", (json_int_t)report->bytes_read,
                   "bytes_written", (json_int_t)report->bytes_written, "tasks", (json_int_t)report->tasks, "direct",
                   report->direct, "tile_rows", (json_int_t)report->tile_rows, "tile_columns",
                   (json_int_t)report->tile_columns, "peak_memory_bytes", number_json(peak_memory()), "workers",
                   workers);
}
