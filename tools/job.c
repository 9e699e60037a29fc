/* One job of the command: see job.h. */
#define _GNU_SOURCE
#include "tools/job.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tools/interrupt.h"
#include "tools/json.h"
#include "tools/number.h"
#include "tools/report.h"
#include "tools/tool.h"
#include "tools/trace.h"

enum { KEY_SCALE = 0x4000, KEY_BETA, KEY_Y0, KEY_TILE, KEY_EXPLAIN, KEY_JSON, KEY_TRACE, KEY_PROGRESS };

static const struct argp_option options[] = {
    {NULL, 0, NULL, 0, "Result:", 10},
    {"output", 'o', "FILE", 0, "Where Y goes; it takes this name when it is complete", 10},
    {"transpose", 't', NULL, 0, "Multiply by the transpose", 10},
    {"scale", KEY_SCALE, "A", 0, "Multiply the product by A (default: 1)", 10},
    {"y0", KEY_Y0, "FILE", 0, "Add this matrix of Y's shape, times BETA; it may be the output's old file", 10},
    {"beta", KEY_BETA, "BETA", 0, "The factor of --y0 (default: 1)", 10},
    {NULL, 0, NULL, 0, "Report:", 30},
    {"explain", KEY_EXPLAIN, NULL, 0, "Print the plan first: work, memory, tiles, tasks, predicted time", 30},
    {"dry-run", 'n', NULL, 0, "Print the plan and stop; no output is needed", 30},
    {"json", KEY_JSON, NULL, 0, "Print one JSON object instead of text", 30},
    {"trace", KEY_TRACE, "FILE", 0, "Write a row a task, tab-separated: worker, kind, codelet, start, end, work", 30},
    {"progress", KEY_PROGRESS, "auto|always|never", 0,
     "Show progress on standard error (auto: on a terminal, after a second)", 30},
    {"quiet", 'q', NULL, 0, "No report, no progress, no warnings", 30},
    {"tile", KEY_TILE, "RxC", 0, "Rows and columns of a tile (default: chosen from sizes and caches)", 20},
    {0}};

static double parse_factor(const char *name, const char *text) {
  double value;
  if (!parse_double(text, &value) || !isfinite(value)) tool_usage_error("--%s: '%s'; expected a number", name, text);
  return value;
}

static void parse_file(struct filespec *spec, const char *name, const char *text, bool output) {
  char message[256];
  filespec_free(spec);
  if (!filespec_parse(spec, text, output, message, sizeof message))
    tool_usage_error("--%s: %s: %s", name, text, message);
}

static void parse_tile(zlg_context_options *to, const char *text) {
  if (!parse_shape(text, &to->tile_rows, &to->tile_columns) || to->tile_rows < 1 || to->tile_columns < 1)
    tool_usage_error("--tile: '%s'; expected ROWSxCOLUMNS", text);
}

static enum progress_mode parse_progress(const char *text) {
  static const char *const words[] = {"auto", "always", "never"};
  for (int i = 0; i < 3; i++)
    if (!strcmp(text, words[i])) return (enum progress_mode)i;
  tool_usage_error("--progress: '%s'; expected auto, always or never", text);
}

static void check_line(const struct job *job) {
  if (!job->output.path && !job->dry_run) tool_usage_error("no output; expected -o FILE");
  if (!isnan(job->beta) && job->beta != 0 && !job->y0.path)
    tool_usage_error("--beta without the matrix it multiplies; expected --y0 FILE");
}

static error_t parse(int key, char *argument, struct argp_state *state) {
  struct job *job = state->input;
  switch (key) {
  case ARGP_KEY_INIT:
    state->child_inputs[0] = &job->runtime;
    return 0;
  case 'o':
    parse_file(&job->output, "output", argument, true);
    return 0;
  case 't':
    job->op = ZLG_TRANS;
    return 0;
  case KEY_SCALE:
    job->scale = parse_factor("scale", argument);
    return 0;
  case KEY_BETA:
    job->beta = parse_factor("beta", argument);
    return 0;
  case KEY_Y0:
    parse_file(&job->y0, "y0", argument, false);
    return 0;
  case KEY_TILE:
    parse_tile(&job->runtime.options, argument);
    return 0;
  case KEY_EXPLAIN:
    job->explain = true;
    return 0;
  case 'n':
    job->explain = job->dry_run = true;
    return 0;
  case KEY_JSON:
    job->json = true;
    return 0;
  case KEY_TRACE:
    job->trace = argument;
    return 0;
  case KEY_PROGRESS:
    job->progress.mode = parse_progress(argument);
    return 0;
  case 'q':
    job->quiet = job->runtime.quiet = true;
    return 0;
  case ARGP_KEY_SUCCESS:
    check_line(job);
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

static const struct argp_child children[] = {{&runtime_argp, 0, NULL, 0}, {0}};
const struct argp job_argp = {options, parse, NULL, NULL, children, NULL, NULL};

void job_init(struct job *job) {
  *job = (struct job){.scale = 1, .beta = NAN, .op = ZLG_NOTRANS, .progress = {.unit = "pair"}};
  runtime_init(&job->runtime);
}

int job_start(struct job *job) {
  zlg_context_options *to = &job->runtime.options;
  to->progress = progress_report;
  to->progress_user = &job->progress;
  if (job->trace || to->tile_rows) to->direct_seconds = 0; /* tasks, however small */
  if (job->quiet && job->progress.mode == PROGRESS_AUTO) job->progress.mode = PROGRESS_NEVER;
  int code = runtime_start(&job->runtime, &job->progress, &job->context);
  job->progress.context = job->context;
  return code;
}

void job_end(struct job *job) {
  zlg_matrix_release(job->X);
  zlg_operator_release(job->A);
  zlg_context_release(job->context);
  filespec_free(&job->output);
  filespec_free(&job->y0);
}

int job_failed(const struct job *job, int status) {
  tool_library_error(job->context, status, NULL);
  if (job->operands && (status == ZLG_ESHAPE || status == ZLG_ETYPE || status == ZLG_EOVERLAP))
    fputs(job->operands, stderr);
  return TOOL_FAILED;
}

char *job_describe(int count, const char *const *names, zlg_matrix *const *matrices, const char *constant) {
  char *text = NULL;
  size_t bytes;
  FILE *to = open_memstream(&text, &bytes);
  if (!to) return NULL;
  for (int i = 0; i < count; i++) {
    zlg_matrix_info m;
    if (!matrices[i] || zlg_matrix_get_info(matrices[i], &m)) continue;
    fprintf(to, "  %s is %s, %lld x %lld %s\n", names[i], m.path ? m.path : constant, (long long)m.rows,
            (long long)m.columns, zlg_type_name(m.type));
  }
  fclose(to);
  return text;
}

json_t *matrix_json(const zlg_matrix *matrix) {
  zlg_matrix_info m;
  if (!matrix || zlg_matrix_get_info(matrix, &m)) return json_null();
  return json_pack("{s:o, s:I, s:I, s:s, s:s}", "path", text_json(m.path), "rows", (json_int_t)m.rows, "columns",
                   (json_int_t)m.columns, "type", zlg_type_name(m.type), "order",
                   m.order == ZLG_ROW_MAJOR ? "row" : "column");
}

/* Copies `from` into `to`, of the same shape and type, through a buffer of a few megabytes. */
static int copy_matrix(const struct job *job, const zlg_matrix *from, zlg_matrix *to, const zlg_matrix_info *shape) {
  const int64_t most = 1 << 19;
  const int64_t columns = shape->columns < most ? shape->columns : most;
  const int64_t rows = columns && most / columns < shape->rows ? most / columns : shape->rows;
  if (rows == 0 || columns == 0) return TOOL_OK;
  void *block = malloc((size_t)(rows * columns) * zlg_type_size(shape->type));
  if (!block) {
    tool_error("out of memory");
    return TOOL_FAILED;
  }
  int status = ZLG_OK;
  for (int64_t i = 0; i < shape->rows && !status; i += rows) {
    int64_t m = shape->rows - i < rows ? shape->rows - i : rows;
    for (int64_t j = 0; j < shape->columns && !status && !interrupt_signal(); j += columns) {
      int64_t n = shape->columns - j < columns ? shape->columns - j : columns;
      status = zlg_matrix_read(from, i, m, j, n, ZLG_ROW_MAJOR, n, block);
      if (!status) status = zlg_matrix_write(to, i, m, j, n, ZLG_ROW_MAJOR, n, block);
    }
  }
  free(block);
  return status ? job_failed(job, status) : TOOL_OK;
}

/* Y starts as Y0. */
static int fill_output(const struct job *job, zlg_matrix *Y) {
  zlg_matrix *y0 = NULL;
  zlg_matrix_info is, wanted;
  if (filespec_open(job->context, &y0, &job->y0)) return TOOL_FAILED;
  int code = TOOL_FAILED;
  if (zlg_matrix_get_info(y0, &is) || zlg_matrix_get_info(Y, &wanted)) goto cleanup;
  if (is.rows != wanted.rows || is.columns != wanted.columns || is.type != wanted.type) {
    tool_error("%s: %lld x %lld %s; expected the result's %lld x %lld %s", job->y0.path, (long long)is.rows,
               (long long)is.columns, zlg_type_name(is.type), (long long)wanted.rows, (long long)wanted.columns,
               zlg_type_name(wanted.type));
    goto cleanup;
  }
  code = copy_matrix(job, y0, Y, &is);
cleanup:
  zlg_matrix_release(y0);
  return code;
}

/* The message of an interrupt. The file is gone by then. */
static void say_interrupted(const struct job *job) {
  struct stat old;
  bool exists = stat(job->output.path, &old) == 0;
  tool_error("interrupted; %s %s", job->output.path, exists ? "is as it was before" : "was not made");
}

struct result {
  zlg_cost cost;
  zlg_matrix *Y;
  zlg_request *request;
  struct trace *trace;
};

static int create_output(const struct job *job, struct result *result) {
  zlg_operator_info a;
  zlg_matrix_info x;
  if (zlg_operator_get_info(job->A, &a) || zlg_matrix_get_info(job->X, &x)) return TOOL_FAILED;
  int64_t rows = job->op == ZLG_NOTRANS ? a.rows : a.columns, columns = x.columns;
  if (job->right) columns = a.rows + a.columns - rows, rows = x.rows;
  if (job->trace && !(result->trace = trace_open(job->trace))) return TOOL_FAILED;
  if (filespec_create(job->context, &result->Y, &job->output, a.type, rows, columns)) return TOOL_FAILED;
  return job->y0.path ? fill_output(job, result->Y) : TOOL_OK;
}

/* The work itself: Y is complete in its temporary file when it returns TOOL_OK. */
static int compute(struct job *job, struct result *result) {
  double beta = !job->y0.path ? 0 : isnan(job->beta) ? 1 : job->beta;
  progress_wait(&job->progress, "preparing (a device's program is compiled once)");
  int status = (job->right ? zlg_apply_right_async : zlg_apply_async)(job->A, job->op, job->scale, job->X, beta,
                                                                      result->Y, &result->request);
  progress_waited(&job->progress);
  interrupt_catch();
  if (status) return job_failed(job, status);
  interrupt_watch(result->request);
  status = zlg_request_wait(result->request);
  interrupt_watch(NULL);
  progress_clear(&job->progress);
  if (!status || interrupt_signal()) return status ? TOOL_FAILED : TOOL_OK;
  const char *message = zlg_request_message(result->request);
  tool_error("%s", message && *message ? message : zlg_strerror(status));
  return TOOL_FAILED;
}

static int make_output(struct job *job, struct result *result) {
  int code = create_output(job, result);
  if (code == TOOL_OK && !interrupt_signal()) code = compute(job, result);
  if (code != TOOL_OK || interrupt_signal()) return TOOL_FAILED;
  int status = zlg_matrix_close(result->Y);
  if (status) tool_library_error(job->context, status, job->output.path);
  return status ? TOOL_FAILED : TOOL_OK;
}

static int report(const struct job *job, const struct result *result, json_t *about) {
  zlg_report r;
  int status = zlg_request_report(result->request, &r);
  if (status) {
    json_decref(about);
    return job_failed(job, status);
  }
  int code = result->trace ? trace_write(result->trace, job->context, result->request) : TOOL_OK;
  if (job->json) {
    json_object_set_new(about, "report", report_json(&r));
    if (print_json(about)) code = TOOL_FAILED;
    return code;
  }
  json_decref(about);
  if (!job->quiet) report_print(&r, job->output.path);
  return tool_finish(code);
}

static int begin_report(struct job *job, json_t *about, const zlg_cost *cost) {
  if (job->json) {
    json_object_set_new(about, "plan", cost_json(cost));
    json_object_update_new(about, runtime_json(job->context));
  } else if (job->explain) {
    plan_print(job->context, job->A, job->op, job->right, job->X, job->title, cost, job->progress.unit);
    if (!job->dry_run && !job->quiet) putchar('\n');
    if (tool_finish(TOOL_OK)) return TOOL_FAILED;
  }
  return TOOL_OK;
}

int job_run(struct job *job, json_t *about) {
  struct result result = {.Y = NULL};
  zlg_matrix_info x;
  int status = zlg_matrix_get_info(job->X, &x);
  /* From the right it is the transposed operator on the rows of X. */
  zlg_op op = !job->right ? job->op : job->op == ZLG_NOTRANS ? ZLG_TRANS : ZLG_NOTRANS;
  if (!status) status = zlg_operator_cost(job->A, op, job->right ? x.rows : x.columns, &result.cost);
  int code = status ? job_failed(job, status) : begin_report(job, about, &result.cost);
  if (code != TOOL_OK) {
    json_decref(about);
    return code;
  }
  if (job->dry_run) return job->json ? print_json(about) : (json_decref(about), TOOL_OK);
  interrupt_catch();
  code = make_output(job, &result);
  if (code == TOOL_OK) {
    json_object_set_new(about, "output", matrix_json(result.Y));
    code = report(job, &result, about);
  } else {
    json_decref(about);
  }
  zlg_request_release(result.request);
  zlg_matrix_release(result.Y);
  trace_close(result.trace);
  if (code != TOOL_OK && interrupt_signal()) {
    say_interrupted(job);
    interrupt_die(interrupt_signal());
  }
  return code;
}
