/* Calibration: every codelet's cases on every kind of worker, family by family; each family is written as soon as a
 * kind of worker is done with it, so that an interrupted calibration goes on where it stood. */
#include <errno.h>
#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codelets/common/starpu_compat.h"
#include "perfmodels/perfmodels.h"
#include "src/core/error.h"
#include "src/core/machine.h"
#include "src/core/memory.h"
#include "src/core/runtime.h"

#define LEAST_SAMPLES 25
#define MOST_SAMPLES 800
#define LONGEST 0.15 /* seconds: longer tasks are not planned on that kind of worker */
#define NOISE 0.85   /* a larger task that takes less than this of a smaller one's time is no noise */
#define FAR_OFF 1000.
#define ARGS_BYTES 1024 /* room for any codelet's arguments */

struct zlg_calibration {
  zlg_calibration_info info;
  zlg_calibration_check checks[ZLG_MODEL_KINDS];
  zlg_link_info *links;
  double *errors[ZLG_MODEL_KINDS + 1]; /* of predictions, by kind */
};

struct calibrator {
  zlg_context *context;
  const zlg_calibration_options *options;
  const char *directory;
  zlg_calibration *result;
  int workers[ZLG_MODEL_KINDS + 1]; /* the one of each kind that measures; -1 none */
  double begin;
  int64_t done, total, timed; /* points; timed: those that took time */
  /* The family under way. */
  const struct zlg_codelet *codelet;
  unsigned backends; /* of the codelet */
  struct zlg_model model;
  bool changed;
};

void zlg_calibration_options_init(zlg_calibration_options *options) {
  if (!options) return;
  *options = (zlg_calibration_options){.struct_size = sizeof *options, .samples = LEAST_SAMPLES, .resume = 1};
}

/* ---- which cases ------------------------------------------------------------------------------------------------ */

static bool wanted(const zlg_calibration_options *options, const struct zlg_codelet *codelet,
                   const struct zlg_case *what) {
  char name[128];
  if (options->short_run && !what->brief) return false;
  snprintf(name, sizeof name, "%s/%s", codelet->name, what->label);
  return !options->only || fnmatch(options->only, name, 0) == 0;
}

/* The index-th case of a codelet, its arguments in room of ARGS_BYTES; a codelet with more of them has none. */
static bool case_at(const struct zlg_codelet *codelet, int index, void *args, struct zlg_case *what) {
  return codelet->args_bytes <= ARGS_BYTES && codelet->calibration(index, args, what);
}

/* A worker of the kind is there, and the codelet has an implementation for it. */
static bool measures(const struct calibrator *c, unsigned backends, zlg_worker_kind kind) {
  static const unsigned bits[] = {0, ZLG_ON_CPU, ZLG_ON_OPENCL, ZLG_ON_CUDA};
  return c->workers[kind] >= 0 && (backends & bits[kind]) != 0;
}

static int kinds_of(const struct calibrator *c, int codelet) {
  const unsigned backends = zlg_codelet_backends(codelet);
  int count = 0;
  for (int kind = ZLG_WORKER_CPU; kind <= ZLG_WORKER_CUDA; kind++)
    count += measures(c, backends, (zlg_worker_kind)kind);
  return count;
}

/* Those that are wanted; to c->total, what there is to measure of them. */
static int64_t count_cases(struct calibrator *c) {
  _Alignas(64) unsigned char args[ARGS_BYTES];
  const struct zlg_codelet *codelet;
  struct zlg_case what;
  int64_t count = 0, all = 0;
  for (int i = 0; (codelet = zlg_codelet_at(i)); i++)
    for (int k = 0; case_at(codelet, k, args, &what); k++) {
      bool asked = wanted(c->options, codelet, &what);
      all += asked;
      count += asked * kinds_of(c, i);
    }
  c->total = count;
  return all;
}

/* ---- one curve -------------------------------------------------------------------------------------------------- */

static struct zlg_curve *curve_of(struct zlg_model *model, zlg_worker_kind kind) {
  for (int i = 0; i < model->curve_count; i++)
    if (model->curves[i].kind == kind) return &model->curves[i];
  struct zlg_curve *made = &model->curves[model->curve_count++];
  *made = (struct zlg_curve){.kind = kind};
  return made;
}

static const zlg_model_point *point_of(const zlg_model_point *points, int count, double size) {
  for (int i = 0; i < count; i++)
    if (points[i].size == size) return &points[i];
  return NULL;
}

static void insert(zlg_model_point *points, int *count, int space, const zlg_model_point *point) {
  int at = 0;
  while (at < *count && points[at].size < point->size) at++;
  if (at == *count || points[at].size != point->size) {
    if (*count == space) return;
    memmove(&points[at + 1], &points[at], sizeof *points * (size_t)(*count - at));
    ++*count;
  }
  points[at] = *point;
}

static bool known(const struct calibrator *c, const struct zlg_curve *curve, const void *args, bool unseen) {
  struct zlg_family family = {0};
  c->codelet->family(args, &family);
  const zlg_model_point *point = unseen ? point_of(curve->unseen, curve->unseen_count, family.size)
                                        : point_of(curve->points, curve->count, family.size);
  return point && point->samples >= c->options->samples;
}

/* By what was measured of the family so far. */
static bool too_long(const struct calibrator *c, const struct zlg_curve *curve, const void *args) {
  struct zlg_count count = {0};
  if (curve->count == 0) return false;
  const zlg_model_point *last = &curve->points[curve->count - 1];
  c->codelet->count(args, &count);
  return last->seconds * (count.flops + count.bytes) / (last->flops + last->bytes) > LONGEST;
}

static int prepare(struct calibrator *c, zlg_worker_kind kind, const void *args) {
  char message[ZLG_MESSAGE_BYTES / 2] = "";
  if (kind == ZLG_WORKER_CPU || !c->codelet->prepare) return ZLG_OK;
  int status = c->codelet->prepare(args, message, sizeof message);
  return status == ZLG_OK ? ZLG_OK : zlg_fail(c->context, status, "%s", message);
}

static int leave_out(struct calibrator *c) {
  c->result->info.points_left_out++;
  return ZLG_OK;
}

static int measure_case(struct calibrator *c, zlg_worker_kind kind, const void *args, const struct zlg_case *what) {
  struct zlg_curve *curve = curve_of(&c->model, kind);
  zlg_model_point point;
  if (known(c, curve, args, what->unseen)) {
    c->result->info.points_kept++;
    return ZLG_OK;
  }
  if (too_long(c, curve, args)) return leave_out(c);
  int status = prepare(c, kind, args);
  if (status != ZLG_OK) return status;
  status = zlg_measure(c->context, c->codelet, args, what, c->workers[kind], c->options->samples, &point);
  /* No implementation for this kind, or a device that lacks what it needs. */
  if (status == ZLG_ENODEV) return leave_out(c);
  if (status != ZLG_OK) return status;
  if (!(point.seconds > 0))
    return zlg_fail(c->context, ZLG_ERUNTIME, "%s/%s took no time that could be measured", c->codelet->name,
                    what->label);
  if (what->unseen)
    insert(curve->unseen, &curve->unseen_count, ZLG_CURVE_UNSEEN, &point);
  else
    insert(curve->points, &curve->count, ZLG_CURVE_POINTS, &point);
  c->changed = true;
  c->timed++;
  c->result->info.points_measured++;
  return ZLG_OK;
}

static int tell(struct calibrator *c, zlg_worker_kind kind, const char *label) {
  c->done++;
  if (!c->options->progress) return ZLG_OK;
  zlg_calibration_progress progress = {.points_done = c->done,
                                       .points_total = c->total,
                                       .seconds = zlg_clock() - c->begin,
                                       .seconds_left = NAN,
                                       .codelet = c->codelet->name,
                                       .label = label,
                                       .kind = kind};
  if (c->timed > 0) progress.seconds_left = progress.seconds * (double)(c->total - c->done) / (double)c->done;
  if (c->options->progress(c->options->progress_user, &progress) == 0) return ZLG_OK;
  return zlg_fail(c->context, ZLG_ECANCELED, "calibration was cancelled after %lld of %lld points", (long long)c->done,
                  (long long)c->total);
}

/* ---- one family ------------------------------------------------------------------------------------------------- */

static void drop_empty_curves(struct zlg_model *model) {
  int kept = 0;
  for (int i = 0; i < model->curve_count; i++)
    if (model->curves[i].count > 0) model->curves[kept++] = model->curves[i];
  model->curve_count = kept;
}

/* What is there already of the family: all of it when resuming, else what other kinds of workers have. */
static void load_family(struct calibrator *c, const struct zlg_model *fresh) {
  char path[1024], reason[256];
  struct zlg_model old;
  zlg_model_path(fresh, c->directory, path, sizeof path);
  c->model = *fresh;
  c->changed = false;
  if (zlg_model_read(path, &old, reason, sizeof reason) != ZLG_OK) return;
  if (strcmp(old.instructions, fresh->instructions) != 0) return;
  for (int i = 0; i < old.curve_count; i++)
    if (c->options->resume || c->workers[old.curves[i].kind] < 0)
      c->model.curves[c->model.curve_count++] = old.curves[i];
}

static int save_family(struct calibrator *c) {
  char message[ZLG_MESSAGE_BYTES / 2];
  struct zlg_model whole = c->model;
  drop_empty_curves(&whole);
  if (whole.curve_count == 0) return ZLG_OK;
  if (c->changed) {
    int status = zlg_model_write(c->directory, &whole, message, sizeof message);
    if (status != ZLG_OK)
      return zlg_fail(c->context, status, "the model of %s cannot be written: %s", whole.label, message);
    c->changed = false;
  }
  zlg_model_use(&whole);
  return ZLG_OK;
}

/* Cases of one family, from `first` on; how many there are goes to *count. */
static int calibrate_kind(struct calibrator *c, int first, zlg_worker_kind kind, int *count) {
  _Alignas(64) unsigned char args[ARGS_BYTES];
  struct zlg_case what;
  int status = ZLG_OK;
  for (*count = 0; case_at(c->codelet, first + *count, args, &what); ++*count) {
    if (strcmp(what.label, c->model.label) != 0) break;
    if (status != ZLG_OK || !measures(c, c->backends, kind) || !wanted(c->options, c->codelet, &what)) continue;
    status = measure_case(c, kind, args, &what);
    if (status == ZLG_OK) status = tell(c, kind, what.label);
  }
  return status;
}

static void note_far_off(struct calibrator *c, const struct zlg_curve *curve, zlg_calibration_check *check) {
  for (int other = 0; other < c->model.curve_count; other++)
    for (int i = 0; i < curve->count; i++) {
      const struct zlg_curve *against = &c->model.curves[other];
      const zlg_model_point *point = point_of(against->points, against->count, curve->points[i].size);
      if (!point || against->kind == curve->kind) continue;
      double ratio = curve->points[i].seconds / point->seconds;
      check->far_off += ratio > FAR_OFF || ratio < 1 / FAR_OFF;
    }
}

static void note_points(const struct zlg_curve *curve, zlg_calibration_check *check) {
  check->points += curve->count;
  for (int i = 0; i < curve->count; i++) {
    check->samples += curve->points[i].samples;
    check->outliers += curve->points[i].outliers;
    check->not_monotone += i > 0 && curve->points[i].seconds < NOISE * curve->points[i - 1].seconds;
  }
  for (int i = 0; i < curve->unseen_count; i++) {
    check->samples += curve->unseen[i].samples;
    check->outliers += curve->unseen[i].outliers;
  }
}

/* The predictions that the scheduler will make of the tasks that no curve has as a point. */
static void note_errors(struct calibrator *c, int first, int count, const struct zlg_curve *curve,
                        zlg_calibration_check *check) {
  _Alignas(64) unsigned char args[ARGS_BYTES];
  struct zlg_case what;
  for (int k = 0; k < count && case_at(c->codelet, first + k, args, &what); k++) {
    struct zlg_family family = {0};
    c->codelet->family(args, &family);
    const zlg_model_point *point = what.unseen ? point_of(curve->unseen, curve->unseen_count, family.size) : NULL;
    if (!point || !wanted(c->options, c->codelet, &what)) continue;
    c->result->errors[curve->kind][check->unseen++] =
        fabs(zlg_model_base(c->codelet, args, curve->kind) / point->seconds - 1);
  }
}

static zlg_calibration_check *check_of(zlg_calibration *result, zlg_worker_kind kind) {
  for (int i = 0; i < result->info.check_count; i++)
    if (result->checks[i].kind == kind) return &result->checks[i];
  zlg_calibration_check *made = &result->checks[result->info.check_count++];
  *made = (zlg_calibration_check){.kind = kind, .median_error = NAN, .worst_error = NAN};
  return made;
}

static void check_family(struct calibrator *c, int first, int count) {
  for (int i = 0; i < c->model.curve_count; i++) {
    const struct zlg_curve *curve = &c->model.curves[i];
    if (c->workers[curve->kind] < 0 || curve->count == 0) continue;
    zlg_calibration_check *check = check_of(c->result, curve->kind);
    note_points(curve, check);
    note_far_off(c, curve, check);
    note_errors(c, first, count, curve, check);
  }
}

/* The family that begins with case `first`; *next is the first case of the one behind it. */
static int calibrate_family(struct calibrator *c, int first, int *next) {
  _Alignas(64) unsigned char args[ARGS_BYTES];
  struct zlg_case what;
  struct zlg_model fresh = {.curve_count = 0};
  case_at(c->codelet, first, args, &what);
  c->codelet->family(args, &fresh.family);
  snprintf(fresh.codelet, sizeof fresh.codelet, "%s", c->codelet->name);
  snprintf(fresh.label, sizeof fresh.label, "%s", what.label);
  snprintf(fresh.instructions, sizeof fresh.instructions, "%s", zlg_isa_name(zlg_isa_current()));
  zlg_model_host(fresh.host, sizeof fresh.host);
  load_family(c, &fresh);
  int status = ZLG_OK, count = 0;
  for (int kind = ZLG_WORKER_CPU; kind <= ZLG_WORKER_CUDA && status == ZLG_OK; kind++) {
    status = calibrate_kind(c, first, (zlg_worker_kind)kind, &count);
    int saved = save_family(c);
    if (status == ZLG_OK) status = saved;
  }
  check_family(c, first, count);
  *next = first + count;
  return status;
}

/* ---- the whole -------------------------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void finish_checks(zlg_calibration *result) {
  for (int i = 0; i < result->info.check_count; i++) {
    zlg_calibration_check *check = &result->checks[i];
    double *errors = result->errors[check->kind];
    if (check->unseen == 0) continue;
    qsort(errors, (size_t)check->unseen, sizeof *errors, by_value);
    check->median_error = errors[check->unseen / 2];
    check->worst_error = errors[check->unseen - 1];
  }
}

static void read_links(zlg_context *context, zlg_calibration *result) {
  int nodes = context->memory_nodes;
  for (int from = 0; from < nodes; from++)
    for (int to = 0; to < nodes; to++) {
      double megabytes = starpu_transfer_bandwidth((unsigned)from, (unsigned)to);
      if (from == to || !(megabytes > 0)) continue;
      result->links[result->info.link_count++] =
          (zlg_link_info){from, to, 1e6 * megabytes, 1e-6 * starpu_transfer_latency((unsigned)from, (unsigned)to)};
    }
}

static int run_all(struct calibrator *c) {
  _Alignas(64) unsigned char args[ARGS_BYTES];
  struct zlg_case what;
  int status = ZLG_OK;
  for (int i = 0; status == ZLG_OK && (c->codelet = zlg_codelet_at(i)); i++) {
    c->backends = zlg_codelet_backends(i);
    for (int k = 0, next; status == ZLG_OK && case_at(c->codelet, k, args, &what); k = next)
      status = calibrate_family(c, k, &next);
  }
  return status;
}

static int check_options(zlg_context *context, const zlg_calibration_options *o) {
  if (o->struct_size != sizeof *o)
    return zlg_fail(context, ZLG_EINVAL,
                    "options->struct_size = %zu, expected %zu: call zlg_calibration_options_init() first",
                    o->struct_size, sizeof *o);
  if (o->samples < LEAST_SAMPLES || o->samples > MOST_SAMPLES)
    return zlg_fail(context, ZLG_EINVAL, "samples = %d, expected %d to %d", o->samples, LEAST_SAMPLES, MOST_SAMPLES);
  if (!zlg_context_is_ours(context))
    return zlg_fail(context, ZLG_ESTATE, "this process was forked from the one that made the context");
  return ZLG_OK;
}

static int find_workers(struct calibrator *c) {
  for (int kind = 0; kind <= ZLG_MODEL_KINDS; kind++) c->workers[kind] = -1;
  for (int i = c->context->worker_count - 1; i >= 0; i--)
    c->workers[c->context->workers[i].kind] = c->context->workers[i].id;
  return c->context->worker_count > 0 ? ZLG_OK
                                      : zlg_fail(c->context, ZLG_ENODEV, "the context has no worker to calibrate");
}

static zlg_calibration *make_result(const struct calibrator *c, int64_t cases) {
  zlg_calibration *result = zlg_calloc(1, sizeof *result);
  size_t nodes = (size_t)c->context->memory_nodes;
  if (!result) return NULL;
  zlg_allocator_lock(+1);
  result->links = zlg_calloc(nodes * nodes + 1, sizeof *result->links);
  bool complete = result->links != NULL;
  for (int kind = ZLG_WORKER_CPU; kind <= ZLG_WORKER_CUDA; kind++) {
    result->errors[kind] = zlg_calloc((size_t)cases, sizeof *result->errors[kind]);
    complete = complete && result->errors[kind];
  }
  if (complete) return result;
  zlg_calibration_release(result);
  return NULL;
}

void zlg_calibration_release(zlg_calibration *calibration) {
  if (!calibration) return;
  for (int kind = ZLG_WORKER_CPU; kind <= ZLG_WORKER_CUDA; kind++) zlg_free(calibration->errors[kind]);
  zlg_free(calibration->links);
  zlg_free(calibration);
  zlg_allocator_lock(-1);
}

int zlg_calibrate(zlg_context *context, const zlg_calibration_options *options, zlg_calibration **result) {
  if (!context || !options || !result)
    return zlg_fail(context, ZLG_EINVAL, "%s is NULL", !context ? "context" : !options ? "options" : "result");
  *result = NULL;
  struct calibrator c = {.context = context, .options = options, .begin = zlg_clock()};
  c.directory = options->directory ? options->directory : context->model_directory;
  int status = check_options(context, options);
  if (status == ZLG_OK) status = find_workers(&c);
  if (status != ZLG_OK) return status;
  int64_t cases = count_cases(&c);
  if (cases == 0)
    return zlg_fail(context, ZLG_ENOENT, "only = \"%s\" matches no codelet's \"codelet/label\"",
                    options->only ? options->only : "");
  if (!(c.result = make_result(&c, cases))) return zlg_fail(context, ZLG_ENOMEM, "no memory for a calibration");
  zlg_runtime_enter(context);
  zlg_runtime_wake(context);
  status = run_all(&c);
  zlg_runtime_leave(context);
  if (status == ZLG_OK) zlg_measure_limits(zlg_machine_get()->cores, &c.result->info.limits);
  finish_checks(c.result);
  read_links(context, c.result);
  c.result->info.checks = c.result->checks;
  c.result->info.links = c.result->links;
  c.result->info.seconds = zlg_clock() - c.begin;
  if (status == ZLG_OK || status == ZLG_ECANCELED)
    *result = c.result;
  else
    zlg_calibration_release(c.result);
  return status;
}

int zlg_calibration_get_info(const zlg_calibration *calibration, zlg_calibration_info *info) {
  if (!calibration || !info) return zlg_fail(NULL, ZLG_EINVAL, "%s is NULL", calibration ? "info" : "calibration");
  *info = calibration->info;
  return ZLG_OK;
}
