/* `zellige predict`: a kernel product on a machine that is only described. The library's task graph, StarPU's scheduler
 * and memory manager run for real; kernels and transfers take the time that models say, under SimGrid. A process
 * simulates one machine in its life, so every machine has a child of its own, which leaves its result in a private
 * directory: the machine asked about first, then what it is compared with. */
#define _GNU_SOURCE
#include <errno.h>
#include <ftw.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tools/gnuplot.h"
#include "tools/interrupt.h"
#include "tools/json.h"
#include "tools/kernels.h"
#include "tools/number.h"
#include "tools/progress.h"
#include "tools/table.h"
#include "tools/terminal.h"
#include "tools/tool.h"

enum {
  KEY_MACHINE = 0x7000,
  KEY_GPUS,
  KEY_SCHED,
  KEY_MEMORY,
  KEY_TYPE,
  KEY_FROM,
  KEY_TILE,
  KEY_ALONE,
  KEY_PLOT,
  KEY_JSON,
  KEY_DIRECTORY
};

struct predict {
  zlg_platform platform;
  const char *machine, *scheduler, *plot, *models;
  int gpus, workers; /* -1: as described */
  zlg_kernel_kind kind;
  zlg_type type;
  int64_t rows, columns, dimension, rhs, memory, tile_rows, tile_columns;
  zlg_storage storage;
  bool alone, json;
  struct progress progress;
};

/* One machine simulated. */
struct variant {
  int cpu_workers, gpus;
  char directory[256];
  pid_t child;
  json_t *result;
};

static const struct argp_option options[] = {
    {NULL, 0, NULL, 0, "Machine:", 1},
    {"machine", KEY_MACHINE, "FILE", 0, "Its description, as in perfmodels/machines/", 1},
    {"gpus", KEY_GPUS, "N", 0, "Only N of its GPUs (default: all)", 1},
    {"workers", 'w', "N", 0, "CPU workers (default: a core each, but one for each GPU)", 1},
    {"sched", KEY_SCHED, "NAME", 0, "StarPU's scheduling policy (default: as for a product)", 1},
    {"memory", KEY_MEMORY, "SIZE", 0, "Most memory for staged tiles and accumulators", 1},
    {"directory", KEY_DIRECTORY, "DIR", 0, "Where calibrated models are (default: StarPU's directory of models)", 1},
    {NULL, 0, NULL, 0, "Product:", 2},
    {"kernel", 'k', "NAME", 0, "As for 'zellige product' (default: gaussian)", 2},
    {"rows", 'm', "M", 0, "Rows of the result", 2},
    {"columns", 'n', "N", 0, "Points summed over", 2},
    {"dimension", 'd', "D", 0, "Of the points (default: 3)", 2},
    {"rhs", 'r', "R", 0, "Columns of B (default: 1)", 2},
    {"type", KEY_TYPE, "f32|f64", 0, "Of the numbers (default: f32)", 2},
    {"from", KEY_FROM, "memory|disk", 0, "Where the N points and B lie (default: memory)", 2},
    {"tile", KEY_TILE, "RxC", 0, "Rows and columns of a tile (default: chosen from sizes)", 2},
    {NULL, 0, NULL, 0, "Report:", 3},
    {"alone", KEY_ALONE, NULL, 0, "Do not simulate one GPU and the cores alone for comparison", 3},
    {"plot", KEY_PLOT, "FILE", 0, "Draw what each worker did when: FILE.svg or FILE.png (needs gnuplot)", 3},
    {"json", KEY_JSON, NULL, 0, "Print one JSON object instead of text", 3},
    {0}};

static const char doc[] =
    "Simulates a kernel product on a described machine: the real task graph, scheduler and memory manager, with "
    "kernels "
    "and transfers that take as long as models say. Nothing is computed, and the matrices take no memory. Needs a "
    "zellige built by ./bootstrap simgrid."
    "\v"
    "Examples:\n"
    "  zellige predict --machine perfmodels/machines/a100-nvlink.machine -m 1e5 -n 1e8 -d 50\n"
    "  zellige predict --machine my.machine --gpus 2 -m 1e5 -n 1e8 --from disk --plot gantt.svg";

/* ---- the line --------------------------------------------------------------------------------------------------- */

/* 1000000 or 1e6 */
static int64_t parse_size(const char *name, const char *text) {
  double value;
  if (!parse_double(text, &value) || !(value >= 1) || value > 9e18 || value != floor(value))
    tool_usage_error("--%s: '%s'; expected a whole number, such as 1000 or 1e9", name, text);
  return (int64_t)value;
}

static int parse_number(const char *name, const char *text) {
  int64_t value;
  if (!parse_int64(text, &value) || value < 0 || value > 4096)
    tool_usage_error("--%s: '%s'; expected a number, 0 to 4096", name, text);
  return (int)value;
}

/* The place of `text` among words; their list ends with NULL. */
static int parse_word(const char *name, const char *text, const char *const *words) {
  for (int i = 0; words[i]; i++)
    if (!strcmp(words[i], text)) return i;
  tool_usage_error("--%s: '%s'; expected %s or %s", name, text, words[0], words[1]);
}

static bool parse_product(struct predict *job, int key, const char *argument) {
  static const char *const types[] = {"f32", "f64", NULL}, *const places[] = {"memory", "disk", NULL};
  switch (key) {
  case 'k':
    job->kind = zlg_kernel_from_name(argument);
    if (!job->kind) tool_usage_error("--kernel: no kernel '%s'; 'zellige kernels' lists them", argument);
    return true;
  case 'm':
    job->rows = parse_size("rows", argument);
    return true;
  case 'n':
    job->columns = parse_size("columns", argument);
    return true;
  case 'd':
    job->dimension = parse_size("dimension", argument);
    return true;
  case 'r':
    job->rhs = parse_size("rhs", argument);
    return true;
  case KEY_TYPE:
    job->type = parse_word("type", argument, types) ? ZLG_F64 : ZLG_F32;
    return true;
  case KEY_FROM:
    job->storage = parse_word("from", argument, places) ? ZLG_ON_DISK : ZLG_IN_MEMORY;
    return true;
  case KEY_TILE:
    if (!parse_shape(argument, &job->tile_rows, &job->tile_columns) || job->tile_rows < 1 || job->tile_columns < 1)
      tool_usage_error("--tile: '%s'; expected ROWSxCOLUMNS", argument);
    return true;
  default:
    return false;
  }
}

static void check_line(const struct predict *job) {
  if (!job->machine) tool_usage_error("no machine; expected --machine FILE");
  if (!job->rows || !job->columns) tool_usage_error("no sizes; expected --rows M and --columns N");
  if (job->plot && !gnuplot_knows(job->plot))
    tool_usage_error("--plot: '%s'; expected FILE.svg or FILE.png", job->plot);
}

static error_t parse(int key, char *argument, struct argp_state *state) {
  struct predict *job = state->input;
  switch (key) {
  case KEY_MACHINE:
    job->machine = argument;
    return 0;
  case KEY_GPUS:
    job->gpus = parse_number("gpus", argument);
    return 0;
  case 'w':
    job->workers = parse_number("workers", argument);
    return 0;
  case KEY_SCHED:
    job->scheduler = argument;
    return 0;
  case KEY_MEMORY:
    if (!parse_bytes(argument, &job->memory) || job->memory == 0)
      tool_usage_error("--memory: '%s'; expected a size such as 500M or 2Gi", argument);
    return 0;
  case KEY_DIRECTORY:
    job->models = argument;
    return 0;
  case KEY_ALONE:
    job->alone = true;
    return 0;
  case KEY_PLOT:
    job->plot = argument;
    return 0;
  case KEY_JSON:
    job->json = true;
    return 0;
  case ARGP_KEY_SUCCESS:
    check_line(job);
    return 0;
  default:
    return parse_product(job, key, argument) ? 0 : ARGP_ERR_UNKNOWN;
  }
}

/* ---- in the child: one machine simulated ------------------------------------------------------------------------ */

struct simulation {
  const struct predict *job;
  const struct variant *variant;
  zlg_platform platform;
  zlg_context *context;
  zlg_matrix *x1, *x2, *b, *y;
  zlg_operator *A;
  zlg_request *request;
};

static json_t *failure(const zlg_context *context) {
  return json_pack("{s:o}", "error", text_json(zlg_context_message(context)));
}

static int make_operands(struct simulation *s) {
  const struct predict *job = s->job;
  zlg_kernel_spec spec;
  zlg_kernel_spec_init(&spec, job->kind);
  int status =
      zlg_matrix_simulated(s->context, &s->x1, job->type, job->rows, job->dimension, ZLG_ROW_MAJOR, ZLG_IN_MEMORY);
  if (!status)
    status =
        zlg_matrix_simulated(s->context, &s->x2, job->type, job->columns, job->dimension, ZLG_ROW_MAJOR, job->storage);
  if (!status)
    status = zlg_matrix_simulated(s->context, &s->b, job->type, job->columns, job->rhs, ZLG_ROW_MAJOR, job->storage);
  if (!status)
    status = zlg_matrix_simulated(s->context, &s->y, job->type, job->rows, job->rhs, ZLG_ROW_MAJOR, ZLG_IN_MEMORY);
  return status ? status : zlg_kernel(s->context, &s->A, &spec, s->x1, s->x2);
}

static json_t *links_json(const struct simulation *s) {
  json_t *links = json_array();
  zlg_link_traffic link;
  for (int i = 0; zlg_simulation_link(s->context, i, &link) == ZLG_OK; i++)
    json_array_append_new(
        links, json_pack("{s:i, s:i, s:I}", "from", link.from, "to", link.to, "bytes", (json_int_t)link.bytes));
  return links;
}

static json_t *workers_json(const zlg_report *report) {
  json_t *workers = json_array();
  for (int i = 0; i < report->worker_count; i++) {
    const zlg_worker_report *w = &report->workers[i];
    json_t *worker = worker_json(&w->worker);
    double share = report->work > 0 ? w->work / report->work : 0;
    json_object_update_new(worker, json_pack("{s:I, s:o, s:o, s:o, s:o, s:o}", "tasks", (json_int_t)w->tasks, "share",
                                             number_json(share), "busy", number_json(w->busy), "idle",
                                             number_json(report->seconds - w->busy), "bytes_in",
                                             bytes_json(w->bytes_in), "bytes_out", bytes_json(w->bytes_out)));
    json_array_append_new(workers, worker);
  }
  return workers;
}

static double at_least(double a, double b) {
  return a > b ? a : b;
}

/* The least time that each resource needs for what it did. */
static json_t *limits_json(const struct simulation *s, const zlg_report *report) {
  const zlg_platform *p = &s->platform;
  double link = 0, disk = 0;
  zlg_link_traffic l;
  for (int i = 0; zlg_simulation_link(s->context, i, &l) == ZLG_OK; i++) {
    bool peer = l.from > 0 && l.to > 0 && p->peer_bandwidth > 0;
    link = at_least(link, (double)l.bytes / (peer ? p->peer_bandwidth : p->link_bandwidth));
  }
  if (report->bytes_read) disk += (double)report->bytes_read / p->disk_read;
  if (report->bytes_written) disk += (double)report->bytes_written / p->disk_write;
  const char *slowest = disk > link && disk > report->predicted_seconds ? "disk"
                        : link > report->predicted_seconds              ? "links"
                                                                        : "compute";
  return json_pack("{s:o, s:o, s:o, s:s, s:o}", "compute", number_json(report->predicted_seconds), "links",
                   number_json(link), "disk", number_json(disk), "slowest", slowest, "seconds",
                   number_json(at_least(report->predicted_seconds, at_least(link, disk))));
}

static json_t *result_json(const struct simulation *s) {
  zlg_report report;
  zlg_machine_info machine;
  int64_t tasks, bytes;
  if (zlg_request_report(s->request, &report) || zlg_context_machine(s->context, &machine) ||
      zlg_simulation_peaks(s->context, &tasks, &bytes))
    return failure(s->context);
  return json_pack("{s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:I, s:o, s:I, s:s, s:I, s:b, s:b, s:s, s:o, s:o}", "seconds",
                   number_json(report.seconds), "limits", limits_json(s, &report), "work", number_json(report.work),
                   "flops", number_json(report.flops), "tasks", (json_int_t)report.tasks, "tile_rows",
                   (json_int_t)report.tile_rows, "tile_columns", (json_int_t)report.tile_columns, "tasks_under_way",
                   (json_int_t)tasks, "gpu_memory_used", bytes_json(bytes), "bytes_read", (json_int_t)report.bytes_read,
                   "scheduler", machine.scheduler, "memory_limit", (json_int_t)machine.memory_limit, "cpu_calibrated",
                   s->platform.cpu.calibrated, "gpu_calibrated", s->platform.gpu.calibrated, "calibration_host",
                   s->platform.calibration_host, "workers", workers_json(&report), "links", links_json(s));
}

/* A line a task for the picture: worker, start, end, whether it is a product. */
static void write_trace(const struct simulation *s) {
  char path[300];
  int64_t count;
  const zlg_trace_entry *entries;
  snprintf(path, sizeof path, "%s/trace", s->variant->directory);
  FILE *file = s->job->plot ? fopen(path, "w") : NULL;
  if (!file) return;
  if (zlg_request_trace(s->request, &count, &entries)) count = 0;
  for (int64_t i = 0; i < count; i++)
    fprintf(file, "%d %.9g %.9g %d\n", entries[i].worker, entries[i].start, entries[i].end, entries[i].work > 0);
  fclose(file);
}

static json_t *simulated(struct simulation *s) {
  zlg_context_options o;
  zlg_context_options_init(&o);
  o.mode = ZLG_RUNTIME_OWN;
  o.cpu_workers = s->variant->cpu_workers;
  o.cuda_workers = s->variant->gpus;
  o.scheduler = s->job->scheduler;
  o.memory_limit = s->job->memory;
  o.tile_rows = s->job->tile_rows;
  o.tile_columns = s->job->tile_columns;
  if (zlg_context_create(&s->context, &o)) return failure(NULL);
  if (make_operands(s)) return failure(s->context);
  int status = zlg_apply_async(s->A, ZLG_NOTRANS, 1, s->b, 0, s->y, &s->request);
  if (!status) status = zlg_request_wait(s->request);
  if (status) return failure(s->context);
  write_trace(s);
  return result_json(s);
}

static int run_simulation(void *user) {
  struct simulation *s = user;
  char path[300];
  snprintf(path, sizeof path, "%s/result", s->variant->directory);
  json_t *result = simulated(s);
  int failed = !result || json_dump_file(result, path, JSON_REAL_PRECISION(15));
  _exit(failed ? TOOL_FAILED : TOOL_OK); /* the simulated threads end with it */
}

static void __attribute__((noreturn)) child(const struct predict *job, const struct variant *variant) {
  struct simulation s = {.job = job, .variant = variant, .platform = job->platform};
  int code = TOOL_FAILED;
  s.platform.gpus = variant->gpus;
  setenv("STARPU_SILENT", "1", 0);
  if (zlg_platform_install(&s.platform, variant->directory, job->models)) {
    tool_library_error(NULL, ZLG_EIO, NULL);
    _exit(TOOL_FAILED);
  }
  setenv("STARPU_PERF_MODEL_DIR", variant->directory, 1);
  setenv("STARPU_HOME", variant->directory, 1);
  setenv("STARPU_HOSTNAME", s.platform.name, 1);
  unsetenv("XDG_CACHE_HOME"); /* StarPU takes it before its own */
  if (zlg_simulate(run_simulation, &s, &code)) tool_library_error(NULL, ZLG_ESTATE, NULL);
  _exit(code);
}

/* ---- in the parent ---------------------------------------------------------------------------------------------- */

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *walk) {
  (void)status, (void)type, (void)walk;
  return remove(path);
}

static void clean(struct variant *v) {
  if (v->child > 0) kill(v->child, SIGKILL);
  if (v->child > 0) waitpid(v->child, NULL, 0);
  if (*v->directory) nftw(v->directory, remove_one, 16, FTW_DEPTH | FTW_PHYS);
  json_decref(v->result);
  *v = (struct variant){.result = NULL};
}

static int start(const struct predict *job, struct variant *v) {
  const char *folder = getenv("TMPDIR");
  snprintf(v->directory, sizeof v->directory, "%s/zellige-predict-XXXXXX", folder && *folder ? folder : "/tmp");
  if (!mkdtemp(v->directory)) {
    tool_error("%s: %s", v->directory, strerror(errno));
    *v->directory = '\0';
    return TOOL_FAILED;
  }
  fflush(NULL);
  v->child = fork();
  if (v->child == 0) child(job, v);
  if (v->child > 0) return TOOL_OK;
  tool_error("no process for a simulation: %s", strerror(errno));
  return TOOL_FAILED;
}

static int finish(struct variant *v) {
  const struct timespec moment = {.tv_nsec = 20 * 1000 * 1000};
  int status = 0;
  char path[300];
  while (waitpid(v->child, &status, WNOHANG) == 0) {
    if (interrupt_signal()) return TOOL_FAILED; /* clean() ends the child */
    nanosleep(&moment, NULL);
  }
  v->child = 0;
  snprintf(path, sizeof path, "%s/result", v->directory);
  v->result = json_load_file(path, 0, NULL);
  const char *error = json_string_value(json_object_get(v->result, "error"));
  if (error) tool_error("%s", error);
  if (!v->result && WIFSIGNALED(status)) tool_error("the simulation was ended by signal %d", WTERMSIG(status));
  return v->result && !error ? TOOL_OK : TOOL_FAILED;
}

static double number(const json_t *object, const char *key) {
  return json_number_value(json_object_get(object, key));
}

static bool is_core(const json_t *worker) {
  const char *kind = json_string_value(json_object_get(worker, "kind"));
  return kind && !strcmp(kind, zlg_worker_kind_name(ZLG_WORKER_CPU));
}

/* ---- picture ---------------------------------------------------------------------------------------------------- */

struct gantt {
  const struct predict *job;
  const struct variant *v;
  int workers;
};

/* Tasks of a worker that follow each other closely are one box, so that the picture stays small. */
static void write_boxes(FILE *to, const struct gantt *g, bool products) {
  char path[300];
  snprintf(path, sizeof path, "%s/trace", g->v->directory);
  FILE *trace = fopen(path, "r");
  double *from = calloc((size_t)g->workers, sizeof *from), *until = calloc((size_t)g->workers, sizeof *until);
  double gap = number(g->v->result, "seconds") / 1500, start, end;
  int worker, product;
  while (trace && from && until && fscanf(trace, "%d %lf %lf %d", &worker, &start, &end, &product) == 4) {
    if (worker < 0 || worker >= g->workers || (product != 0) != products) continue;
    if (until[worker] > 0 && start - until[worker] > gap) {
      fprintf(to, "%g %d %g %g\n", from[worker], worker, from[worker], until[worker]);
      until[worker] = 0;
    }
    if (until[worker] == 0) from[worker] = start;
    until[worker] = at_least(end, until[worker]);
  }
  for (int i = 0; from && until && i < g->workers; i++)
    if (until[i] > 0) fprintf(to, "%g %d %g %g\n", from[i], i, from[i], until[i]);
  fprintf(to, "0 %d 0 0\ne\n", g->workers); /* never empty, which gnuplot would not like */
  if (trace) fclose(trace);
  free(from);
  free(until);
}

/* Each card, and every eighth core. */
static void write_names(FILE *to, const json_t *workers, int count) {
  int cores = 0, cards = 0;
  for (int i = 0; i < count; i++) {
    bool core = is_core(json_array_get(workers, (size_t)i));
    int number = core ? cores++ : cards++;
    if (!core || number % 8 == 0) fprintf(to, "%s'%s %d' %d", i ? ", " : "", core ? "core" : "GPU", number, i);
  }
}

static void write_gantt(FILE *to, void *user) {
  const struct gantt *g = user;
  const json_t *workers = json_object_get(g->v->result, "workers");
  fprintf(to, "set title \"%s\" noenhanced\nset xlabel 'simulated seconds'\nset xrange [0:%g]\nset yrange [%d:-1]\n",
          g->job->platform.title, number(g->v->result, "seconds"), g->workers);
  fputs("set style fill solid 0.9 noborder\nset key outside bottom horizontal\nset ytics (", to);
  write_names(to, workers, g->workers);
  fputs(")\nset format y '%s'\nset offsets 0,0,0,0\n"
        "plot '-' using (($3+$4)/2):2:3:4:($2-0.4):($2+0.4) with boxxyerror lc rgb '#0b6e4f' title 'products', "
        "'-' using (($3+$4)/2):2:3:4:($2-0.4):($2+0.4) with boxxyerror lc rgb '#c84630' title 'sums of blocks'\n",
        to);
  write_boxes(to, g, true);
  write_boxes(to, g, false);
}

static int draw(const struct predict *job, const struct variant *v) {
  struct gantt gantt = {job, v, (int)json_array_size(json_object_get(v->result, "workers"))};
  return gnuplot_draw(job->plot, 1200, 120 + 14 * gantt.workers, write_gantt, &gantt);
}

/* ---- words ------------------------------------------------------------------------------------------------------ */

struct sums { /* of a kind of workers */
  int workers;
  double tasks, share, busy, least_idle, most_idle;
};

static void add_worker(struct sums *sums, const json_t *worker) {
  double idle = number(worker, "idle");
  sums->least_idle = sums->workers && sums->least_idle < idle ? sums->least_idle : idle;
  sums->most_idle = at_least(sums->most_idle, idle);
  sums->workers++;
  sums->tasks += number(worker, "tasks");
  sums->share += number(worker, "share");
  sums->busy += number(worker, "busy");
}

static void print_sums(struct table *table, const char *name, const struct sums *sums, double seconds) {
  char tasks[24], idle[80];
  snprintf(tasks, sizeof tasks, "%.0f", sums->tasks);
  struct text share = show_percent(sums->share), busy = show_percent(sums->busy / (sums->workers * seconds)),
              least = show_seconds(sums->least_idle), most = show_seconds(sums->most_idle);
  if (sums->workers > 1)
    snprintf(idle, sizeof idle, "%s to %s", least.s, most.s);
  else
    snprintf(idle, sizeof idle, "%s", most.s);
  const char *cells[] = {name, tasks, share.s, busy.s, idle};
  table_add(table, cells);
}

/* CPU workers are alike and many: one line; each card has its own. */
static void print_workers(const json_t *result) {
  const char *const headers[] = {"worker", ">tasks", ">share", ">busy", ">idle", NULL};
  struct table *table = table_new(headers);
  const json_t *workers = json_object_get(result, "workers");
  struct sums cores = {.workers = 0};
  double seconds = number(result, "seconds");
  for (size_t i = 0; i < json_array_size(workers); i++) {
    const json_t *worker = json_array_get(workers, i);
    if (is_core(worker)) add_worker(&cores, worker);
  }
  char name[48];
  snprintf(name, sizeof name, "%d CPU workers", cores.workers);
  if (cores.workers) print_sums(table, name, &cores, seconds);
  int gpu = 0;
  for (size_t i = 0; i < json_array_size(workers); i++) {
    const json_t *worker = json_array_get(workers, i);
    if (is_core(worker)) continue;
    struct sums card = {.workers = 0};
    add_worker(&card, worker);
    snprintf(name, sizeof name, "GPU %d", gpu++);
    print_sums(table, name, &card, seconds);
  }
  table_print(table, stdout, 0);
}

static double link_bytes(const json_t *result, int from, int to) {
  const json_t *links = json_object_get(result, "links");
  double bytes = 0;
  for (size_t i = 0; i < json_array_size(links); i++) {
    const json_t *link = json_array_get(links, i);
    if ((int)number(link, "from") == from && (int)number(link, "to") == to) bytes += number(link, "bytes");
  }
  return bytes;
}

/* From each memory (lines) to each (columns). */
static void print_links(const json_t *result, int gpus) {
  const char *headers[16] = {"GB from, to", ">memory"};
  char names[14][20], cells[15][24];
  for (int i = 0; i < gpus && i < 13; i++) {
    snprintf(names[i], sizeof names[i], ">GPU %d", i);
    headers[2 + i] = names[i];
  }
  struct table *table = table_new(headers);
  for (int from = 0; from <= gpus && from < 14; from++) {
    const char *row[15];
    for (int to = -1; to <= gpus && to < 13; to++) {
      char *cell = cells[to + 1];
      if (to < 0)
        snprintf(cell, sizeof cells[0], from ? "GPU %d" : "memory", from - 1);
      else if (to == from)
        snprintf(cell, sizeof cells[0], "-");
      else
        snprintf(cell, sizeof cells[0], "%.2f", 1e-9 * link_bytes(result, from, to));
      row[to + 1] = cell;
    }
    table_add(table, row);
  }
  table_print(table, stdout, 0);
}

static const char *source(const json_t *result, const char *key) {
  return json_is_true(json_object_get(result, key)) ? "calibrated" : "counts and described rates";
}

static void print_machine(const struct predict *job, const struct variant *v) {
  const json_t *r = v->result;
  printf("machine     %s: %d CPU workers, %d GPU%s, scheduler %s\n", job->platform.title, v->cpu_workers, v->gpus,
         v->gpus == 1 ? "" : "s", json_string_value(json_object_get(r, "scheduler")));
  printf("models      CPU: %s", source(r, "cpu_calibrated"));
  if (v->gpus) printf("; GPU: %s", source(r, "gpu_calibrated"));
  if (json_is_true(json_object_get(r, "cpu_calibrated")) || json_is_true(json_object_get(r, "gpu_calibrated")))
    printf(" (of %s)", json_string_value(json_object_get(r, "calibration_host")));
  printf("\nproduct     %s kernel, %lld x %lld, dimension %lld, %s, %lld column%s, points in %s\n",
         zlg_kernel_name(job->kind), (long long)job->rows, (long long)job->columns, (long long)job->dimension,
         zlg_type_name(job->type), (long long)job->rhs, job->rhs == 1 ? "" : "s",
         job->storage == ZLG_ON_DISK ? "files" : "memory");
  printf("tasks       %.0f, tiles of %.0f x %.0f, at most %.0f under way\n\n", number(r, "tasks"),
         number(r, "tile_rows"), number(r, "tile_columns"), number(r, "tasks_under_way"));
}

static void print_speedup(const struct variant *v, const struct variant *other) {
  if (!other->result) return;
  double seconds = number(other->result, "seconds");
  printf("speed-up    %.2f against ", seconds / number(v->result, "seconds"));
  if (other->gpus) printf("1 GPU and ");
  printf("%d CPU workers%s (%s)\n", other->cpu_workers, other->gpus ? "" : " alone", show_seconds(seconds).s);
}

static int print_text(const struct predict *job, const struct variant *v, const struct variant *others) {
  const json_t *r = v->result, *limits = json_object_get(r, "limits");
  double seconds = number(r, "seconds");
  print_machine(job, v);
  print_workers(r);
  if (v->gpus) {
    putchar('\n');
    print_links(r, v->gpus);
  }
  printf("\ntime        %s, simulated\n", show_seconds(seconds).s);
  printf("limit       %s of %s: %s of it reached (compute %s, links %s, disk %s)\n",
         show_seconds(number(limits, "seconds")).s, json_string_value(json_object_get(limits, "slowest")),
         show_percent(number(limits, "seconds") / seconds).s, show_seconds(number(limits, "compute")).s,
         show_seconds(number(limits, "links")).s, show_seconds(number(limits, "disk")).s);
  printf("rate        %s, %s\n", show_count(number(r, "work") / seconds, "pair/s").s,
         show_count(number(r, "flops") / seconds, "Flop/s").s);
  for (int i = 0; i < 2; i++) print_speedup(v, &others[i]);
  if (v->gpus)
    printf("GPU memory  %s in use at most, of %s\n", show_bytes(number(r, "gpu_memory_used")).s,
           show_bytes(job->platform.gpu_memory_bytes).s);
  return tool_finish(TOOL_OK);
}

static json_t *comparison_json(const struct variant *v, const struct variant *other) {
  if (!other->result) return json_null();
  double seconds = number(other->result, "seconds");
  return json_pack("{s:i, s:i, s:o, s:o}", "cpu_workers", other->cpu_workers, "gpus", other->gpus, "seconds",
                   number_json(seconds), "speedup", number_json(seconds / number(v->result, "seconds")));
}

static int print_object(const struct predict *job, const struct variant *v, const struct variant *others) {
  json_t *object =
      json_pack("{s:s, s:s, s:{s:s, s:o, s:i, s:i}, s:{s:s, s:I, s:I, s:I, s:I, s:s, s:s}, s:O, s:{s:o, s:o}}",
                "version", zlg_version(), "command", "predict", "machine", "name", job->platform.name, "title",
                text_json(job->platform.title), "cpu_workers", v->cpu_workers, "gpus", v->gpus, "product", "kernel",
                zlg_kernel_name(job->kind), "rows", (json_int_t)job->rows, "columns", (json_int_t)job->columns,
                "dimension", (json_int_t)job->dimension, "rhs", (json_int_t)job->rhs, "type", zlg_type_name(job->type),
                "from", job->storage == ZLG_ON_DISK ? "disk" : "memory", "simulation", v->result, "against", "one_gpu",
                comparison_json(v, &others[0]), "cpu_only", comparison_json(v, &others[1]));
  return print_json(object);
}

/* ---- the command ------------------------------------------------------------------------------------------------ */

static int cpu_workers(const struct predict *job, int gpus) {
  return job->workers >= 0 ? job->workers : job->platform.cores - gpus;
}

/* One GPU, and none, with the tiles of the machine asked about, so that only the machine differs. */
static int compare(struct predict *job, const struct variant *v, struct variant *others) {
  job->tile_rows = (int64_t)number(v->result, "tile_rows");
  job->tile_columns = (int64_t)number(v->result, "tile_columns");
  bool wanted[2] = {v->gpus > 1, v->gpus > 0 && cpu_workers(job, 0) > 0};
  int code = TOOL_OK;
  for (int i = 0; i < 2; i++) others[i] = (struct variant){cpu_workers(job, i == 0), i == 0, "", 0, NULL};
  for (int i = 0; i < 2 && code == TOOL_OK; i++)
    if (wanted[i]) code = start(job, &others[i]);
  progress_wait(&job->progress, "simulating what it is compared with");
  for (int i = 0; i < 2 && code == TOOL_OK; i++)
    if (wanted[i]) code = finish(&others[i]);
  progress_waited(&job->progress);
  return code;
}

static int run(struct predict *job, struct variant *v, struct variant *others) {
  *v = (struct variant){cpu_workers(job, job->platform.gpus), job->platform.gpus, "", 0, NULL};
  int code = start(job, v); /* before there is a second thread: a child has but one */
  progress_wait(&job->progress, "simulating the machine");
  if (code == TOOL_OK) code = finish(v);
  progress_waited(&job->progress);
  if (code == TOOL_OK && !job->alone) code = compare(job, v, others);
  if (code == TOOL_OK && job->plot) code = draw(job, v);
  if (code != TOOL_OK) return code;
  return job->json ? print_object(job, v, others) : print_text(job, v, others);
}

/* A description whose numbers the line may lower. */
static int read_machine(struct predict *job) {
  int status = zlg_platform_read(job->machine, &job->platform);
  if (status) {
    tool_library_error(NULL, status, NULL);
    return TOOL_FAILED;
  }
  if (job->gpus > job->platform.gpus)
    tool_usage_error("--gpus: %d, and %s has %d", job->gpus, job->machine, job->platform.gpus);
  if (job->gpus >= 0) job->platform.gpus = job->gpus;
  if (job->workers > job->platform.cores)
    tool_usage_error("--workers: %d, and %s has %d cores", job->workers, job->machine, job->platform.cores);
  if (job->storage == ZLG_ON_DISK && !(job->platform.disk_read > 0 && job->platform.disk_write > 0))
    tool_usage_error("--from: %s describes no disk", job->machine);
  return TOOL_OK;
}

int command_predict(int argc, char **argv) {
  static const struct argp argp = {options, parse, NULL, doc, NULL, NULL, NULL};
  struct predict job = {.gpus = -1,
                        .workers = -1,
                        .kind = ZLG_GAUSSIAN,
                        .type = ZLG_F32,
                        .dimension = 3,
                        .rhs = 1,
                        .storage = ZLG_IN_MEMORY};
  struct variant variant = {.result = NULL}, others[2] = {{.result = NULL}, {.result = NULL}};
  tool_parse(&argp, argc, argv, &job);
  if (!zlg_simulation_available()) {
    tool_error("this zellige computes and cannot simulate: its StarPU is not built with SimGrid.\n"
               "'./bootstrap simgrid' in the source tree builds one that does: build-simgrid/tools/zellige");
    return TOOL_FAILED;
  }
  if (read_machine(&job) != TOOL_OK) return TOOL_FAILED;
  interrupt_catch();
  int code = run(&job, &variant, others);
  clean(&variant);
  for (int i = 0; i < 2; i++) clean(&others[i]);
  if (interrupt_signal()) interrupt_die(interrupt_signal());
  return code;
}
