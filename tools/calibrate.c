/* `zellige calibrate`: measures this machine, so that the scheduler knows from the first task on who is how fast. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/interrupt.h"
#include "tools/json.h"
#include "tools/number.h"
#include "tools/runtime.h"
#include "tools/table.h"
#include "tools/terminal.h"
#include "tools/tool.h"

enum { KEY_ONLY = 0x5000, KEY_SHORT, KEY_SAMPLES, KEY_RESUME, KEY_FRESH, KEY_DIRECTORY, KEY_JSON, KEY_PROGRESS };

struct calibrate {
  struct runtime runtime;
  zlg_calibration_options options;
  enum progress_mode mode;
  bool json, quiet, drawn;
  double drawn_at;
};

static const struct argp_option options[] = {
    {"only", KEY_ONLY, "GLOB", 0, "Only what matches CODELET/LABEL, such as 'kernel_product/gaussian-*'", 1},
    {"short", KEY_SHORT, NULL, 0, "A few families only: a first look, in seconds", 1},
    {"samples", KEY_SAMPLES, "N", 0, "Accepted measurements of each point (default and least: 25)", 1},
    {"resume", KEY_RESUME, NULL, 0, "Keep what is measured already (default)", 1},
    {"fresh", KEY_FRESH, NULL, 0, "Measure everything anew", 1},
    {"directory", KEY_DIRECTORY, "DIR", 0, "Where models go (default: StarPU's directory of models)", 1},
    {"json", KEY_JSON, NULL, 0, "Print one JSON object instead of text", 30},
    {"progress", KEY_PROGRESS, "auto|always|never", 0, "Show progress on standard error (auto: on a terminal)", 30},
    {"quiet", 'q', NULL, 0, "No report, no progress, no warnings", 30},
    {0}};

static int parse_samples(const char *text) {
  int64_t count;
  if (!parse_int64(text, &count) || count < 25 || count > 800)
    tool_usage_error("--samples: '%s'; expected 25 to 800", text);
  return (int)count;
}

static enum progress_mode parse_progress(const char *text) {
  static const char *const words[] = {"auto", "always", "never"};
  for (int i = 0; i < 3; i++)
    if (!strcmp(text, words[i])) return (enum progress_mode)i;
  tool_usage_error("--progress: '%s'; expected auto, always or never", text);
}

static error_t parse(int key, char *argument, struct argp_state *state) {
  struct calibrate *job = state->input;
  switch (key) {
  case ARGP_KEY_INIT:
    state->child_inputs[0] = &job->runtime;
    return 0;
  case KEY_ONLY:
    job->options.only = argument;
    return 0;
  case KEY_SHORT:
    job->options.short_run = 1;
    return 0;
  case KEY_SAMPLES:
    job->options.samples = parse_samples(argument);
    return 0;
  case KEY_RESUME:
    job->options.resume = 1;
    return 0;
  case KEY_FRESH:
    job->options.resume = 0;
    return 0;
  case KEY_DIRECTORY:
    job->options.directory = argument;
    return 0;
  case KEY_JSON:
    job->json = true;
    return 0;
  case KEY_PROGRESS:
    job->mode = parse_progress(argument);
    return 0;
  case 'q':
    job->quiet = job->runtime.quiet = true;
    return 0;
  case ARGP_KEY_ARG:
    tool_usage_error("'%s': no argument expected", argument);
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

/* ---- progress --------------------------------------------------------------------------------------------------- */

static void draw(const zlg_calibration_progress *now, bool terminal) {
  char line[256], bar[21];
  double part = (double)now->points_done / (double)now->points_total;
  for (int i = 0; i < 20; i++) bar[i] = i < (int)(20 * part) ? '#' : '.';
  bar[20] = '\0';
  int length = snprintf(line, sizeof line, "%3.0f%% %s  %lld/%lld  %s left  %s  %s/%s", floor(100 * part), bar,
                        (long long)now->points_done, (long long)now->points_total, show_clock(now->seconds_left).s,
                        zlg_worker_kind_name(now->kind), now->codelet, now->label);
  if (!terminal) {
    fprintf(stderr, "%s\n", line);
    return;
  }
  int width = terminal_width(STDERR_FILENO) - 1;
  fprintf(stderr, "\r%-*.*s", length < width ? width : length, width, line);
}

static int on_progress(void *user, const zlg_calibration_progress *now) {
  struct calibrate *job = user;
  bool terminal = terminal_is(STDERR_FILENO);
  bool shown = !job->quiet && job->mode != PROGRESS_NEVER && (terminal || job->mode == PROGRESS_ALWAYS) &&
               terminal_foreground(STDERR_FILENO);
  interrupt_catch();
  bool due = now->seconds - job->drawn_at > (terminal ? 0.09 : 1) || now->points_done == now->points_total;
  if (shown && due) {
    job->drawn_at = now->seconds;
    draw(now, terminal);
    job->drawn = terminal;
  }
  return interrupt_signal() != 0;
}

static void clear(struct calibrate *job) {
  if (job->drawn) fprintf(stderr, "\r%*s\r", terminal_width(STDERR_FILENO) - 1, "");
  job->drawn = false;
}

/* ---- report ----------------------------------------------------------------------------------------------------- */

static void print_checks(const zlg_calibration_info *info, int width) {
  const char *const headers[] = {"worker",          ">points",       ">samples",      ">outliers",    ">not monotone",
                                 ">1000 times off", ">unseen sizes", ">median error", ">worst error", NULL};
  struct table *table = table_new(headers);
  for (int i = 0; i < info->check_count; i++) {
    const zlg_calibration_check *check = &info->checks[i];
    const int64_t numbers[] = {check->points,       check->samples, check->outliers,
                               check->not_monotone, check->far_off, check->unseen};
    char cells[6][24];
    for (int k = 0; k < 6; k++) snprintf(cells[k], sizeof cells[k], "%lld", (long long)numbers[k]);
    struct text median = show_percent(check->median_error), worst = show_percent(check->worst_error);
    const char *row[] = {zlg_worker_kind_name(check->kind),
                         cells[0],
                         cells[1],
                         cells[2],
                         cells[3],
                         cells[4],
                         cells[5],
                         check->unseen ? median.s : "-",
                         check->unseen ? worst.s : "-"};
    table_add(table, row);
  }
  table_print(table, stdout, width);
}

static const char *directory_of(const struct calibrate *job, const zlg_context *context) {
  zlg_machine_info machine;
  if (job->options.directory) return job->options.directory;
  return zlg_context_machine(context, &machine) ? "" : machine.model_directory;
}

static int print_text(const struct calibrate *job, const zlg_context *context, const zlg_calibration_info *info) {
  const zlg_machine_limits *limits = &info->limits;
  if (job->quiet) return tool_finish(TOOL_OK);
  print_checks(info, terminal_is(STDOUT_FILENO) ? terminal_width(STDOUT_FILENO) : 0);
  printf("\n  time      %s; %lld points measured, %lld kept from before\n", show_seconds(info->seconds).s,
         (long long)info->points_measured, (long long)info->points_kept);
  if (info->points_left_out > 0)
    printf("  left out  %lld points: a task of such a size takes too long here, or its worker cannot do it\n",
           (long long)info->points_left_out);
  printf("  limits    a core: %s f32, %s f64; triad %s, all cores %s\n", show_count(limits->fma_f32, "FMA/s").s,
         show_count(limits->fma_f64, "FMA/s").s, show_count(limits->triad, "B/s").s,
         show_count(limits->triad_all, "B/s").s);
  for (int i = 0; i < info->link_count; i++)
    printf("  bus       node %d to node %d: %s, %s\n", info->links[i].from, info->links[i].to,
           show_count(info->links[i].bytes_per_second, "B/s").s, show_seconds(info->links[i].latency).s);
  printf("  models    %s\n", directory_of(job, context));
  return tool_finish(TOOL_OK);
}

static json_t *check_json(const zlg_calibration_check *check) {
  return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o}", "kind", zlg_worker_kind_name(check->kind), "points",
                   (json_int_t)check->points, "samples", (json_int_t)check->samples, "outliers",
                   (json_int_t)check->outliers, "not_monotone", (json_int_t)check->not_monotone, "far_off",
                   (json_int_t)check->far_off, "unseen", (json_int_t)check->unseen, "median_error",
                   number_json(check->median_error), "worst_error", number_json(check->worst_error));
}

static int print_calibration_json(const struct calibrate *job, const zlg_context *context,
                                  const zlg_calibration_info *info) {
  json_t *checks = json_array(), *links = json_array();
  for (int i = 0; i < info->check_count; i++) json_array_append_new(checks, check_json(&info->checks[i]));
  for (int i = 0; i < info->link_count; i++)
    json_array_append_new(links, json_pack("{s:i, s:i, s:o, s:o}", "from", info->links[i].from, "to", info->links[i].to,
                                           "bytes_per_second", number_json(info->links[i].bytes_per_second), "latency",
                                           number_json(info->links[i].latency)));
  return print_json(json_pack(
      "{s:s, s:s, s:o, s:o, s:I, s:I, s:I, s:o, s:o, s:{s:o, s:o, s:o, s:o}}", "version", zlg_version(), "command",
      "calibrate", "directory", text_json(directory_of(job, context)), "seconds", number_json(info->seconds),
      "points_measured", (json_int_t)info->points_measured, "points_kept", (json_int_t)info->points_kept,
      "points_left_out", (json_int_t)info->points_left_out, "checks", checks, "links", links, "limits", "fma_f32",
      number_json(info->limits.fma_f32), "fma_f64", number_json(info->limits.fma_f64), "triad",
      number_json(info->limits.triad), "triad_all", number_json(info->limits.triad_all)));
}

/* A calibration that contradicts itself is still written, since it is what was measured; but the user is told. */
static void warn(const struct calibrate *job, const zlg_calibration_info *info) {
  for (int i = 0; i < info->check_count && !job->quiet; i++) {
    const zlg_calibration_check *check = &info->checks[i];
    const char *kind = zlg_worker_kind_name(check->kind);
    if (check->not_monotone)
      tool_warning("%s: %lld of %lld points took less time than a smaller size; is the machine busy?", kind,
                   (long long)check->not_monotone, (long long)check->points);
    if (check->far_off)
      tool_warning("%s: %lld points are a thousand times off from another kind of worker", kind,
                   (long long)check->far_off);
    if (check->worst_error > 1)
      tool_warning("%s: a prediction is %s off: the machine was too busy for some sizes; --fresh measures them anew",
                   kind, show_percent(check->worst_error).s);
    if (check->median_error > 0.1)
      tool_warning("%s: the median error of predictions is %s, and 10 %% was aimed at; is the machine busy?", kind,
                   show_percent(check->median_error).s);
  }
}

static int run(struct calibrate *job, zlg_context *context) {
  zlg_calibration *calibration = NULL;
  zlg_calibration_info info;
  job->options.progress = on_progress;
  job->options.progress_user = job;
  interrupt_catch();
  int status = zlg_calibrate(context, &job->options, &calibration);
  clear(job);
  int code = TOOL_FAILED;
  if (status != ZLG_OK) {
    tool_library_error(context, status, NULL);
    if (status == ZLG_ECANCELED && !job->quiet)
      fprintf(stderr, "What was measured is kept: the same command%s goes on from there.\n",
              job->options.resume ? "" : " without --fresh");
  } else if (zlg_calibration_get_info(calibration, &info) == ZLG_OK) {
    code = job->json ? print_calibration_json(job, context, &info) : print_text(job, context, &info);
    warn(job, &info);
  }
  zlg_calibration_release(calibration);
  return code;
}

int command_calibrate(int argc, char **argv) {
  const struct argp_child children[] = {{&runtime_argp, 0, NULL, 0}, {0}};
  const struct argp argp = {options,
                            parse,
                            "",
                            "Measures every codelet on every kind of worker of this machine, writes what it found as "
                            "StarPU performance models, and checks them. The machine should have nothing else to do.",
                            children,
                            NULL,
                            NULL};
  struct calibrate job = {.mode = PROGRESS_AUTO};
  struct progress progress = {.mode = PROGRESS_AUTO};
  zlg_context *context = NULL;
  runtime_init(&job.runtime);
  zlg_calibration_options_init(&job.options);
  tool_parse(&argp, argc, argv, &job);
  int code = runtime_start(&job.runtime, &progress, &context);
  if (code == TOOL_OK) code = run(&job, context);
  zlg_context_release(context);
  if (code != TOOL_OK && interrupt_signal()) interrupt_die(interrupt_signal());
  return code;
}
