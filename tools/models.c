/* `zellige models`: looks at performance models, here and of other machines. */
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/gnuplot.h"
#include "tools/json.h"
#include "tools/number.h"
#include "tools/runtime.h"
#include "tools/table.h"
#include "tools/terminal.h"
#include "tools/tool.h"

enum { KEY_ONLY = 0x6000, KEY_DIRECTORY, KEY_JSON };

struct models {
  const char *words[4]; /* list | plot FILE | compare DIR */
  int word_count;
  const char *only, *directory;
  bool json;
};

static const struct argp_option options[] = {
    {"only", KEY_ONLY, "GLOB", 0, "Only what matches CODELET/LABEL", 1},
    {"directory", KEY_DIRECTORY, "DIR", 0, "Where the models are (default: StarPU's directory of models)", 1},
    {"json", KEY_JSON, NULL, 0, "Print one JSON object instead of text", 1},
    {0}};

static error_t parse(int key, char *argument, struct argp_state *state) {
  struct models *job = state->input;
  switch (key) {
  case KEY_ONLY:
    job->only = argument;
    return 0;
  case KEY_DIRECTORY:
    job->directory = argument;
    return 0;
  case KEY_JSON:
    job->json = true;
    return 0;
  case ARGP_KEY_ARG:
    if (job->word_count == 4) return ARGP_ERR_UNKNOWN;
    job->words[job->word_count++] = argument;
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

/* `*` and `?` as in file names, without a library that treats '/' apart. */
static bool matches(const char *glob, const char *name) {
  if (!glob || !*glob) return !glob || !*name;
  if (*glob == '*') return matches(glob + 1, name) || (*name && matches(glob, name + 1));
  return *name && (*glob == '?' || *glob == *name) && matches(glob + 1, name + 1);
}

static bool wanted(const struct models *job, const zlg_model_info *info) {
  char name[160];
  snprintf(name, sizeof name, "%s/%s", info->codelet, info->label);
  return !job->only || matches(job->only, name);
}

static int count_wanted(const struct models *job, const zlg_models *models) {
  zlg_model_info info;
  int count = 0;
  for (int i = 0; zlg_models_get(models, i, &info) == ZLG_OK; i++) count += wanted(job, &info);
  return count;
}

static void warn_skipped(const zlg_models *models) {
  const char *path, *reason;
  for (int i = 0; zlg_models_skipped(models, i, &path, &reason) == ZLG_OK; i++)
    tool_warning("%s is skipped: %s", path, reason);
}

/* ---- list ------------------------------------------------------------------------------------------------------- */

static struct text show_curve(const zlg_model_info *info) {
  struct text text;
  if (isnan(info->a))
    snprintf(text.s, sizeof text.s, "-");
  else
    snprintf(text.s, sizeof text.s, "%.2e n^%.2f + %.1e", info->a, info->b, info->c);
  return text;
}

static int list_text(const struct models *job, const zlg_models *models) {
  const char *const headers[] = {"model",    "host",  "worker",     ">points",   ">smallest",      ">time",
                                 ">largest", ">time", ">deviation", ">outliers", "curve, seconds", NULL};
  if (count_wanted(job, models) == 0) {
    printf("no models%s in %s; 'zellige calibrate' makes them\n", job->only ? " of that name" : "",
           zlg_models_directory(models));
    return tool_finish(TOOL_OK);
  }
  struct table *table = table_new(headers);
  zlg_model_info info;
  for (int i = 0; zlg_models_get(models, i, &info) == ZLG_OK; i++) {
    if (!wanted(job, &info)) continue;
    const zlg_model_point *first = &info.points[0], *last = &info.points[info.point_count - 1];
    char name[160], count[16], outliers[24];
    int64_t left_out = 0;
    for (int k = 0; k < info.point_count; k++) left_out += info.points[k].outliers;
    snprintf(name, sizeof name, "%s/%s", info.codelet, info.label);
    snprintf(count, sizeof count, "%d", info.point_count);
    snprintf(outliers, sizeof outliers, "%lld", (long long)left_out);
    struct text small = show_count(first->size, ""), large = show_count(last->size, ""),
                quick = show_seconds(first->seconds), slow = show_seconds(last->seconds),
                deviation = show_percent(last->deviation / last->seconds), curve = show_curve(&info);
    const char *row[] = {
        name,     info.host, zlg_worker_kind_name(info.kind), count, small.s, quick.s, large.s, slow.s, deviation.s,
        outliers, curve.s};
    table_add(table, row);
  }
  table_print(table, stdout, terminal_is(STDOUT_FILENO) ? terminal_width(STDOUT_FILENO) : 0);
  return tool_finish(TOOL_OK);
}

static json_t *points_json(const zlg_model_point *points, int count) {
  json_t *list = json_array();
  for (int i = 0; i < count; i++)
    json_array_append_new(list, json_pack("{s:o, s:o, s:o, s:o, s:o, s:I, s:I}", "size", number_json(points[i].size),
                                          "seconds", number_json(points[i].seconds), "deviation",
                                          number_json(points[i].deviation), "flops", number_json(points[i].flops),
                                          "bytes", number_json(points[i].bytes), "samples",
                                          (json_int_t)points[i].samples, "outliers", (json_int_t)points[i].outliers));
  return list;
}

static int list_json(const struct models *job, const zlg_models *models) {
  json_t *list = json_array(), *skipped = json_array();
  zlg_model_info info;
  const char *path, *reason;
  for (int i = 0; zlg_models_get(models, i, &info) == ZLG_OK; i++)
    if (wanted(job, &info))
      json_array_append_new(
          list, json_pack("{s:s, s:s, s:o, s:s, s:s, s:o, s:o, s:o, s:{s:o, s:o, s:o, s:o}}", "codelet", info.codelet,
                          "label", info.label, "host", text_json(info.host), "instruction_set", info.instruction_set,
                          "kind", zlg_worker_kind_name(info.kind), "path", text_json(info.path), "points",
                          points_json(info.points, info.point_count), "unseen",
                          points_json(info.unseen, info.unseen_count), "fit", "a", number_json(info.a), "b",
                          number_json(info.b), "c", number_json(info.c), "median_error", number_json(info.fit_error)));
  for (int i = 0; zlg_models_skipped(models, i, &path, &reason) == ZLG_OK; i++)
    json_array_append_new(skipped, json_pack("{s:o, s:s}", "path", text_json(path), "reason", reason));
  return print_json(json_pack("{s:s, s:s, s:o, s:o}", "version", zlg_version(), "command", "models", "models", list,
                              "skipped", skipped));
}

/* ---- compare ---------------------------------------------------------------------------------------------------- */

/* Seconds at a size, between the points in the logarithms; NaN outside of them. */
static double seconds_at(const zlg_model_info *info, double size) {
  for (int i = 0; i + 1 < info->point_count; i++) {
    const zlg_model_point *a = &info->points[i], *b = &info->points[i + 1];
    if (size < a->size || size > b->size) continue;
    double part = log(size / a->size) / log(b->size / a->size);
    return a->seconds * pow(b->seconds / a->seconds, part);
  }
  return info->point_count == 1 && info->points[0].size == size ? info->points[0].seconds : NAN;
}

/* Geometric mean of there / here over the sizes here that lie within there; NaN where none does. */
static double ratio_of(const zlg_model_info *here, const zlg_model_info *there) {
  double sum = 0;
  int count = 0;
  for (int i = 0; i < here->point_count; i++) {
    double other = seconds_at(there, here->points[i].size);
    if (!isfinite(other)) continue;
    sum += log(other / here->points[i].seconds);
    count++;
  }
  return count ? exp(sum / count) : NAN;
}

static json_t *comparison(const struct models *job, const zlg_models *here, const zlg_models *there) {
  json_t *list = json_array();
  zlg_model_info a, b;
  for (int i = 0; zlg_models_get(here, i, &a) == ZLG_OK; i++)
    for (int k = 0; wanted(job, &a) && zlg_models_get(there, k, &b) == ZLG_OK; k++) {
      if (strcmp(a.codelet, b.codelet) != 0 || strcmp(a.label, b.label) != 0 || a.kind != b.kind) continue;
      json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:o, s:o, s:o}", "codelet", a.codelet, "label", a.label,
                                            "kind", zlg_worker_kind_name(a.kind), "here", text_json(a.host), "there",
                                            text_json(b.host), "ratio", number_json(ratio_of(&a, &b))));
    }
  return list;
}

static void print_comparison(const json_t *list) {
  const char *const headers[] = {"model", "worker", "here", "there", ">there / here", NULL};
  struct table *table = table_new(headers);
  for (size_t i = 0; i < json_array_size(list); i++) {
    const json_t *row = json_array_get(list, i), *factor = json_object_get(row, "ratio");
    char name[160], ratio[32] = "no size in common";
    snprintf(name, sizeof name, "%s/%s", json_string_value(json_object_get(row, "codelet")),
             json_string_value(json_object_get(row, "label")));
    if (json_is_number(factor)) snprintf(ratio, sizeof ratio, "%.2f", json_number_value(factor));
    const char *cells[] = {name, json_string_value(json_object_get(row, "kind")),
                           json_string_value(json_object_get(row, "here")),
                           json_string_value(json_object_get(row, "there")), ratio};
    table_add(table, cells);
  }
  table_print(table, stdout, terminal_is(STDOUT_FILENO) ? terminal_width(STDOUT_FILENO) : 0);
}

static int compare(const struct models *job, const zlg_models *here, const zlg_models *there) {
  json_t *list = comparison(job, here, there);
  if (job->json)
    return print_json(json_pack("{s:s, s:s, s:o}", "version", zlg_version(), "command", "models", "comparison", list));
  if (json_array_size(list) == 0)
    printf("the two directories have no model in common\n");
  else
    print_comparison(list);
  json_decref(list);
  return tool_finish(TOOL_OK);
}

/* ---- plot ------------------------------------------------------------------------------------------------------- */

static const char *const colours[] = {"", "#0b6e4f", "#c84630", "#2b59c3"};

static void write_data(FILE *to, const zlg_model_point *points, int count) {
  for (int i = 0; i < count; i++)
    fprintf(to, "%.17g %.17g %.17g\n", points[i].size, points[i].seconds, points[i].deviation);
  fputs("e\n", to);
}

/* A picture a family: the kinds of workers in it. Data stands in the script, behind each plot command. */
static void plot_family(FILE *to, const zlg_models *models, int first, int count) {
  zlg_model_info info;
  zlg_models_get(models, first, &info);
  fprintf(to, "set title \"%s  %s\\n%s\" noenhanced\nplot", info.codelet, info.label, info.host);
  for (int i = 0; i < count; i++) {
    zlg_models_get(models, first + i, &info);
    const char *kind = zlg_worker_kind_name(info.kind), *colour = colours[info.kind];
    fprintf(to, "%s '-' using 1:2:3 with yerrorbars pt 7 ps 0.6 lc rgb '%s' title '%s'", i ? "," : "", colour, kind);
    if (info.unseen_count) fprintf(to, ", '-' using 1:2 with points pt 6 ps 0.9 lc rgb '%s' notitle", colour);
    if (isfinite(info.a))
      fprintf(to, ", [%.17g:%.17g] %.17g*x**%.17g+%.17g with lines lc rgb '%s' notitle", info.points[0].size,
              info.points[info.point_count - 1].size, info.a, info.b, info.c, colour);
  }
  fputc('\n', to);
  for (int i = 0; i < count; i++) {
    zlg_models_get(models, first + i, &info);
    write_data(to, info.points, info.point_count);
    if (info.unseen_count) write_data(to, info.unseen, info.unseen_count);
  }
}

static int family_length(const zlg_models *models, int first) {
  zlg_model_info info, next;
  int count = 1;
  zlg_models_get(models, first, &info);
  while (zlg_models_get(models, first + count, &next) == ZLG_OK && !strcmp(info.path, next.path)) count++;
  return count;
}

static int count_families(const struct models *job, const zlg_models *models) {
  zlg_model_info info;
  int count = 0;
  for (int i = 0; zlg_models_get(models, i, &info) == ZLG_OK; i += family_length(models, i))
    count += wanted(job, &info);
  return count;
}

struct picture {
  const struct models *job;
  const zlg_models *models;
  int families, columns, rows;
};

static void write_picture(FILE *to, void *user) {
  const struct picture *picture = user;
  const zlg_models *models = picture->models;
  zlg_model_info info;
  fprintf(to, "set multiplot layout %d,%d\nset logscale xy\nset format x '10^{%%T}'\nset format y '10^{%%T}'\n",
          picture->rows, picture->columns);
  fputs("set xlabel 'size'\nset ylabel 'seconds'\nset key top left\nset grid\n", to);
  for (int i = 0; zlg_models_get(models, i, &info) == ZLG_OK; i += family_length(models, i))
    if (wanted(picture->job, &info)) plot_family(to, models, i, family_length(models, i));
  fputs("unset multiplot\n", to);
}

static int plot(const struct models *job, const zlg_models *models, const char *output) {
  struct picture picture = {job, models, .families = count_families(job, models)};
  if (!gnuplot_knows(output)) tool_usage_error("plot: '%s'; expected FILE.svg or FILE.png", output);
  if (picture.families == 0) {
    tool_error("no models to plot: 'zellige calibrate' makes them");
    return TOOL_FAILED;
  }
  picture.columns = (int)ceil(sqrt((double)picture.families));
  picture.rows = (picture.families + picture.columns - 1) / picture.columns;
  return gnuplot_draw(output, 480 * picture.columns, 360 * picture.rows, write_picture, &picture);
}

/* ---- the command ------------------------------------------------------------------------------------------------ */

static zlg_models *open_models(const char *directory) {
  zlg_models *models = NULL;
  int status = zlg_models_open(&models, directory);
  if (status != ZLG_OK) tool_library_error(NULL, status, directory);
  return models;
}

static int run(const struct models *job, const zlg_models *models) {
  const char *verb = job->words[0];
  if (!strcmp(verb, "plot")) return plot(job, models, job->words[1]);
  if (!strcmp(verb, "list")) return job->json ? list_json(job, models) : list_text(job, models);
  zlg_models *there = open_models(job->words[1]);
  if (!there) return TOOL_FAILED;
  warn_skipped(there);
  int code = compare(job, models, there);
  zlg_models_release(there);
  return code;
}

static void check_words(struct models *job) {
  static const struct {
    const char *verb, *what;
    int words;
  } verbs[] = {{"list", "nothing more", 1}, {"plot", "FILE.svg or FILE.png", 2}, {"compare", "a directory", 2}};
  if (job->word_count == 0) job->words[job->word_count++] = "list";
  for (int i = 0; i < 3; i++) {
    if (strcmp(job->words[0], verbs[i].verb) != 0) continue;
    if (job->word_count != verbs[i].words) tool_usage_error("%s: expected %s", verbs[i].verb, verbs[i].what);
    return;
  }
  tool_usage_error("'%s'; expected list, plot or compare", job->words[0]);
}

int command_models(int argc, char **argv) {
  const struct argp argp = {options,
                            parse,
                            "[list | plot FILE.svg|FILE.png | compare DIR]",
                            "Shows the performance models that calibration has written: lists them, plots measured "
                            "points and fitted curves, or compares them with another machine's.",
                            NULL,
                            NULL,
                            NULL};
  struct models job = {.word_count = 0};
  tool_parse(&argp, argc, argv, &job);
  check_words(&job);
  zlg_models *models = open_models(job.directory);
  if (!models) return TOOL_FAILED;
  if (!job.json) warn_skipped(models);
  int code = run(&job, models);
  zlg_models_release(models);
  return code;
}
