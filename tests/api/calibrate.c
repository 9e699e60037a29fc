/* Calibration and its models: what is measured, kept and read back; what damage does (nothing); that models decide. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "codelets/common/model.h"
#include "perfmodels/perfmodels.h"
#include "src/core/runtime.h"
#include "tests/support_product.h"

#define CHECK(condition) zlg_check((condition), #condition, __FILE__, __LINE__)

static zlg_calibration_options brief(void) {
  zlg_calibration_options options;
  zlg_calibration_options_init(&options);
  options.short_run = 1;
  return options;
}

/* Codelets that are watched may take so long that points are left out. */
#ifdef __SANITIZE_THREAD__
#define SLOW true
#else
#define SLOW false
#endif

static int64_t calls, last_done, last_total, left_out;
static int cancel_at;

static int on_progress(void *user, const zlg_calibration_progress *now) {
  (void)user;
  CHECK(now->points_done == last_done + 1 && now->codelet && now->label[0]);
  calls++;
  last_done = now->points_done;
  last_total = now->points_total;
  return cancel_at && calls >= cancel_at;
}

static int worker_kinds(void) {
  return 1 + (zlg_test_mode() != ZLG_TEST_CPU);
}

/* Models of a short run: a family of each codelet's brief cases for each kind of worker that it has something for. */
static int brief_models(void) {
  _Alignas(64) unsigned char args[1024];
  const struct zlg_codelet *codelet;
  struct zlg_case what;
  char label[64] = "";
  int count = 0;
  for (int i = 0; (codelet = zlg_codelet_at(i)); i++) {
    CHECK(codelet->args_bytes <= sizeof args);
    const unsigned other = zlg_test_mode() == ZLG_TEST_CPU ? 0 : ZLG_ON_OPENCL;
    const int kinds = 1 + ((zlg_codelet_backends(i) & other) != 0);
    for (int k = 0; codelet->calibration(k, args, &what); k++) {
      if (!what.brief || strcmp(what.label, label) == 0) continue;
      snprintf(label, sizeof label, "%s", what.label);
      count += kinds;
    }
  }
  return count;
}

static void check_points(const zlg_model_info *model) {
  if (left_out == 0) CHECK(model->point_count >= 3 && model->unseen_count >= 1);
  for (int i = 0; i < model->point_count; i++) {
    const zlg_model_point *p = &model->points[i];
    CHECK(p->samples >= 25 && p->seconds > 0 && p->deviation >= 0 && p->outliers >= 0);
    CHECK(i == 0 || p->size > model->points[i - 1].size);
  }
  if (model->point_count >= 3) CHECK(model->a >= 0 && model->c >= 0 && model->b > 0);
}

static void check_models(const char *directory, int wanted) {
  zlg_models *models;
  zlg_model_info info;
  ZLG_CHECK_OK(zlg_models_open(&models, directory), NULL);
  CHECK(zlg_models_count(models) == wanted);
  for (int i = 0; zlg_models_get(models, i, &info) == ZLG_OK; i++) check_points(&info);
  zlg_models_release(models);
}

static bool all_codelets_have_models(zlg_context *context) {
  zlg_codelet_info codelet;
  for (int i = 0; zlg_context_codelet(context, i, &codelet) == ZLG_OK; i++)
    if (!codelet.model_found) return false;
  return true;
}

/* Cancelled after one point, resumed, and then once more with nothing left to do. */
static void a_short_calibration_measures_resumes_and_keeps(void) {
  zlg_context *context = zlg_test_context();
  zlg_calibration_options options = brief();
  zlg_calibration *calibration = NULL;
  zlg_calibration_info info;
  zlg_machine_info machine;
  options.progress = on_progress;
  CHECK(!all_codelets_have_models(context));
  cancel_at = 1;
  calls = last_done = 0;
  ZLG_CHECK_STATUS(zlg_calibrate(context, &options, &calibration), ZLG_ECANCELED, context);
  ZLG_CHECK_OK(zlg_calibration_get_info(calibration, &info), context);
  CHECK(info.points_measured == 1 && calls == 1);
  zlg_calibration_release(calibration);

  cancel_at = 0;
  calls = last_done = 0;
  ZLG_CHECK_OK(zlg_calibrate(context, &options, &calibration), context);
  ZLG_CHECK_OK(zlg_calibration_get_info(calibration, &info), context);
  CHECK(info.points_kept == 1 && info.points_measured > 10 && calls == last_total);
  left_out = info.points_left_out;
  CHECK(left_out == 0 || SLOW);
  if (left_out > 0) printf("  %lld points take too long here\n", (long long)left_out);
  CHECK(info.check_count == worker_kinds() && info.limits.fma_f32 > info.limits.fma_f64 && info.limits.triad > 0);
  CHECK((info.link_count > 0) == (zlg_test_mode() != ZLG_TEST_CPU));
  for (int i = 0; i < info.check_count; i++) {
    const zlg_calibration_check *check = &info.checks[i];
    CHECK(check->points >= 6 && check->samples >= 25 * check->points && check->unseen >= 2 && check->far_off == 0);
    CHECK(isfinite(check->median_error) && check->median_error <= check->worst_error);
    printf("  %s: median error of predictions %.1f %%, worst %.1f %%, %lld outliers of %lld\n",
           zlg_worker_kind_name(check->kind), 100 * check->median_error, 100 * check->worst_error,
           (long long)check->outliers, (long long)check->samples);
  }
  CHECK(all_codelets_have_models(context));
  zlg_calibration_release(calibration);

  calls = last_done = 0;
  ZLG_CHECK_OK(zlg_calibrate(context, &options, &calibration), context);
  ZLG_CHECK_OK(zlg_calibration_get_info(calibration, &info), context);
  CHECK(info.points_measured == 0 && info.points_kept + info.points_left_out == last_total);
  CHECK(info.points_left_out == left_out);
  zlg_calibration_release(calibration);
  ZLG_CHECK_OK(zlg_context_machine(context, &machine), context);
  check_models(machine.model_directory, brief_models());
  zlg_context_release(context);

  context = zlg_test_context(); /* a new StarPU reads them */
  CHECK(all_codelets_have_models(context));
  zlg_context_release(context);
}

static void wrong_options_are_refused(void) {
  zlg_context *context = zlg_test_context();
  zlg_calibration_options options = brief();
  zlg_calibration *calibration;
  char *file = zlg_test_path("file");
  FILE *made = fopen(file, "w");
  CHECK(made && fclose(made) == 0);
  options.samples = 24;
  ZLG_CHECK_STATUS(zlg_calibrate(context, &options, &calibration), ZLG_EINVAL, context);
  CHECK(strstr(zlg_context_message(context), "samples = 24"));
  options = brief();
  options.only = "no such thing";
  ZLG_CHECK_STATUS(zlg_calibrate(context, &options, &calibration), ZLG_ENOENT, context);
  options = brief();
  options.struct_size = 1;
  ZLG_CHECK_STATUS(zlg_calibrate(context, &options, &calibration), ZLG_EINVAL, context);
  /* A directory that cannot be: root may write anywhere else. */
  options = brief();
  options.only = "accumulate/*";
  options.directory = file;
  ZLG_CHECK_STATUS(zlg_calibrate(context, &options, &calibration), ZLG_EIO, context);
  CHECK(strstr(zlg_context_message(context), file) && !calibration);
  zlg_models *models;
  ZLG_CHECK_STATUS(zlg_models_open(&models, file), ZLG_ENOENT, NULL);
  CHECK(!models && strstr(zlg_context_message(NULL), file));
  zlg_context_release(context);
  free(file);
}

/* ---- files ------------------------------------------------------------------------------------------------------ */

static const double sizes[] = {1e4, 1e5, 1e6, 1e7};

/* The Gaussian kernel product in three dimensions: seconds a pair on each kind of worker. */
static struct zlg_model model_of(double cpu, double opencl) {
  const double rates[] = {[ZLG_WORKER_CPU] = cpu, [ZLG_WORKER_OPENCL] = opencl};
  struct zlg_model model = {.codelet = "kernel_product", .label = "gaussian-f32-d3-r1", .curve_count = 2};
  model.family = (struct zlg_family){.what = {ZLG_GAUSSIAN, ZLG_F32, 1}, .width = {3, 1}};
  snprintf(model.instructions, sizeof model.instructions, "%s", zlg_isa_name(zlg_isa_current()));
  zlg_model_host(model.host, sizeof model.host);
  for (int kind = ZLG_WORKER_CPU; kind <= ZLG_WORKER_OPENCL; kind++) {
    struct zlg_curve *curve = &model.curves[kind - 1];
    *curve = (struct zlg_curve){.kind = (zlg_worker_kind)kind, .count = 4, .unseen_count = 1};
    for (int i = 0; i < 4; i++) {
      double seconds = rates[kind] * sizes[i];
      curve->points[i] = (zlg_model_point){
          sizes[i], seconds, seconds / 50, seconds, seconds / 40, 29 * sizes[i], 24 * sqrt(sizes[i]), 25, 2};
    }
    curve->unseen[0] = curve->points[2];
    curve->unseen[0].size = 2e6 / 3; /* no decimal number */
  }
  return model;
}

/* Where models are that a context reads. */
static char directory[512], path[1024];

static void write_model(const struct zlg_model *model) {
  char message[512] = "";
  zlg_runtime_model_directory(directory, sizeof directory);
  CHECK(zlg_model_write(directory, model, message, sizeof message) == ZLG_OK);
  if (*message) printf("  %s\n", message);
  zlg_model_path(model, directory, path, sizeof path);
}

static size_t slurp(char *text, size_t bytes) {
  FILE *file = fopen(path, "r");
  size_t length = file ? fread(text, 1, bytes - 1, file) : 0;
  if (file) fclose(file);
  text[length] = '\0';
  return length;
}

static void spill(const char *text, size_t length) {
  FILE *file = fopen(path, "w");
  CHECK(file && fwrite(text, 1, length, file) == length);
  if (file) CHECK(fclose(file) == 0);
}

static bool same_points(const zlg_model_point *a, const zlg_model_point *b, int count) {
  for (int i = 0; i < count; i++)
    if (a[i].size != b[i].size || a[i].seconds != b[i].seconds || a[i].deviation != b[i].deviation ||
        a[i].mean != b[i].mean || a[i].spread != b[i].spread || a[i].flops != b[i].flops || a[i].bytes != b[i].bytes ||
        a[i].samples != b[i].samples || a[i].outliers != b[i].outliers)
      return false;
  return true;
}

static void a_model_comes_back_to_the_last_bit(void) {
  struct zlg_model model = model_of(1e-10 / 3, 7e-10), back;
  char message[512];
  write_model(&model);
  CHECK(zlg_model_read(path, &back, message, sizeof message) == ZLG_OK);
  CHECK(!strcmp(back.codelet, model.codelet) && !strcmp(back.label, model.label) && !strcmp(back.host, model.host) &&
        !strcmp(back.instructions, model.instructions) && back.curve_count == 2);
  CHECK(!memcmp(back.family.what, model.family.what, sizeof back.family.what) &&
        !memcmp(back.family.width, model.family.width, sizeof back.family.width));
  for (int i = 0; i < 2; i++) {
    CHECK(back.curves[i].kind == model.curves[i].kind && back.curves[i].count == 4 && back.curves[i].unseen_count == 1);
    CHECK(same_points(back.curves[i].points, model.curves[i].points, 4));
    CHECK(same_points(back.curves[i].unseen, model.curves[i].unseen, 1));
  }
  struct zlg_fit fit = zlg_curve_fit(&model.curves[1]);
  ZLG_CHECK_CLOSE(fit.b, 1, 1e-9L);
  ZLG_CHECK_CLOSE(fit.a, 7e-10, 1e-14L);
}

static bool is_refused(void) {
  struct zlg_model model;
  char message[512] = "";
  return zlg_model_read(path, &model, message, sizeof message) == ZLG_EFORMAT && *message;
}

static void damage_of_any_byte_is_noticed(void) {
  struct zlg_model model = model_of(1e-10, 1e-9);
  static char whole[ZLG_MODEL_FILE_BYTES], changed[ZLG_MODEL_FILE_BYTES];
  write_model(&model);
  size_t length = slurp(whole, sizeof whole);
  char *starpu_part = strstr(whole, "\n###");
  CHECK(length > 1000 && starpu_part);
  int missed = 0, cut = 0;
  for (size_t at = 0; starpu_part && at < (size_t)(starpu_part - whole); at++)
    for (int bit = 0; bit < 8; bit += 3) {
      memcpy(changed, whole, length);
      changed[at] = (char)(changed[at] ^ (1 << bit));
      spill(changed, length);
      missed += !is_refused();
    }
  for (size_t at = 0; at < length; at += 7) {
    spill(whole, at);
    cut += !is_refused();
  }
  CHECK(missed == 0);
  CHECK(cut == 0);
  spill(whole, length);
  CHECK(!is_refused());
}

/* A context starts all the same, says which file and why, and predicts from nominal rates. */
static void a_context_names_and_skips(const char *why) {
  zlg_context *context = zlg_test_context();
  zlg_machine_info machine;
  zlg_codelet_info codelet;
  ZLG_CHECK_OK(zlg_context_machine(context, &machine), context);
  CHECK(machine.model_warning && strstr(machine.model_warning, path) && strstr(machine.model_warning, why));
  for (int i = 0; zlg_context_codelet(context, i, &codelet) == ZLG_OK; i++)
    CHECK(strcmp(codelet.name, "kernel_product") != 0 || !codelet.model_found);
  zlg_context_release(context);
  zlg_models *models;
  const char *skipped, *reason;
  ZLG_CHECK_OK(zlg_models_open(&models, NULL), NULL);
  CHECK(zlg_models_skipped(models, 0, &skipped, &reason) == ZLG_OK && !strcmp(skipped, path) && strstr(reason, why));
  zlg_models_release(models);
}

static void unusable_models_are_named_and_skipped(void) {
  struct zlg_model model = model_of(1e-10, 1e-9);
  static char whole[ZLG_MODEL_FILE_BYTES];
  char message[512];
  write_model(&model);
  size_t length = slurp(whole, sizeof whole);
  spill(whole, length / 2);
  a_context_names_and_skips("damaged");
  whole[strlen("# zellige model ")] = '2';
  spill(whole, length);
  a_context_names_and_skips("version 2");
  spill("", 0);
  a_context_names_and_skips("damaged");
  CHECK(unlink(path) == 0 && mkdir(path, 0777) == 0);
  struct zlg_model back;
  CHECK(zlg_model_read(path, &back, message, sizeof message) == ZLG_EIO);
  CHECK(rmdir(path) == 0);
  snprintf(model.instructions, sizeof model.instructions, "abacus");
  write_model(&model);
  zlg_context *context = zlg_test_context();
  zlg_machine_info machine;
  ZLG_CHECK_OK(zlg_context_machine(context, &machine), context);
  CHECK(machine.model_warning && strstr(machine.model_warning, "abacus"));
  zlg_context_release(context);
  CHECK(unlink(path) == 0);
}

/* ---- samples ---- */

/* `count` times around `around`, from one part in `width` below to as much above. */
static int add_times(double *times, int at, int count, double around, double width, uint64_t *state) {
  for (int i = 0; i < count; i++) times[at + i] = around * (1 + width * (2 * zlg_test_uniform(state) - 1));
  return at + count;
}

static void delayed_samples_are_outliers_however_many(void) {
  zlg_model_point point = {0};
  double times[400];
  uint64_t state = 4;
  /* A slice of the scheduler's time is more exact than the task itself. */
  int count = add_times(times, 0, 26, 1.7e-3, 0.03, &state);
  count = add_times(times, count, 200, 8e-3, 1e-4, &state);
  CHECK(zlg_samples_summarise(times, count, 25, &point));
  ZLG_CHECK_CLOSE(point.seconds, 1.7e-3, 0.03 * 1.7e-3);
  CHECK(point.samples == 26 && point.outliers == 200);
  CHECK(point.deviation > 0 && point.deviation < 0.03 * 1.7e-3 && point.spread >= point.deviation);
  /* Too few undisturbed ones: more are wanted, and meanwhile the least of all are nearest. */
  count = add_times(times, 0, 20, 1.7e-3, 0.03, &state);
  count = add_times(times, count, 40, 8e-3, 1e-4, &state);
  CHECK(!zlg_samples_summarise(times, count, 25, &point));
  ZLG_CHECK_CLOSE(point.seconds, 1.7e-3, 0.03 * 1.7e-3);
  CHECK(point.samples == 25 && point.outliers == 35);
  /* One freak of two hundred asks for nothing. */
  count = add_times(times, 0, 1, 1e-6, 0.1, &state);
  count = add_times(times, count, 199, 5e-3, 0.02, &state);
  CHECK(zlg_samples_summarise(times, count, 25, &point) && point.outliers >= 1);
  ZLG_CHECK_CLOSE(point.seconds, 5e-3, 0.02 * 5e-3);
  /* A restless machine. */
  for (count = 0; count < 100; count++) times[count] = 1e-3 * pow(1.02, count);
  CHECK(!zlg_samples_summarise(times, count, 25, &point) && point.samples == 25);
  ZLG_CHECK_CLOSE(point.seconds, 1e-3 * pow(1.02, 12), 1e-12);
}

/* ---- models decide ---------------------------------------------------------------------------------------------- */

static double device_share(double cpu, double opencl) {
  enum { ROWS = 32 * 1024, POINTS = 1024 };
  struct zlg_model model = model_of(cpu, opencl);
  zlg_context_options options;
  zlg_context *context = NULL;
  write_model(&model);
  zlg_test_context_options(&options);
  options.scheduler = "dmdas";
  options.direct_seconds = 0;
  options.tile_rows = options.tile_columns = POINTS;
  ZLG_CHECK_OK(zlg_context_create(&context, &options), NULL);
  uint64_t state = 1;
  struct zlg_test_array x1 = zlg_test_array_random(ZLG_F32, ROWS, 3, ZLG_ROW_MAJOR, 0, &state, 0, 1),
                        x2 = zlg_test_array_random(ZLG_F32, POINTS, 3, ZLG_ROW_MAJOR, 0, &state, 0, 1),
                        b = zlg_test_array_random(ZLG_F32, POINTS, 1, ZLG_ROW_MAJOR, 0, &state, 0, 1),
                        y = zlg_test_array_new(ZLG_F32, ROWS, 1, ZLG_ROW_MAJOR, 0);
  zlg_kernel_spec spec;
  zlg_request *request;
  zlg_operator *K;
  zlg_report report;
  double all = 0, device = 0;
  zlg_kernel_spec_init(&spec, ZLG_GAUSSIAN);
  zlg_matrix *X1 = zlg_test_array_wrap(context, &x1), *X2 = zlg_test_array_wrap(context, &x2),
             *B = zlg_test_array_wrap(context, &b), *Y = zlg_test_array_wrap(context, &y);
  ZLG_CHECK_OK(zlg_kernel(context, &K, &spec, X1, X2), context);
  ZLG_CHECK_OK(zlg_apply_async(K, ZLG_NOTRANS, 1, B, 0, Y, &request), context);
  ZLG_CHECK_OK(zlg_request_wait(request), context);
  ZLG_CHECK_OK(zlg_request_report(request, &report), context);
  for (int i = 0; i < report.worker_count; i++) {
    all += report.workers[i].work;
    if (report.workers[i].worker.kind != ZLG_WORKER_CPU) device += report.workers[i].work;
  }
  zlg_request_release(request);
  zlg_operator_release(K);
  zlg_matrix *const matrices[] = {X1, X2, B, Y};
  for (int i = 0; i < 4; i++) zlg_matrix_release(matrices[i]);
  struct zlg_test_array *const arrays[] = {&x1, &x2, &b, &y};
  for (int i = 0; i < 4; i++) zlg_test_array_free(arrays[i]);
  zlg_context_release(context);
  CHECK(unlink(path) == 0);
  return device / all;
}

/* What runs teaches would correct a lie sooner or later: all tasks are given out before many have ended. */
static void tampered_models_move_the_work(void) {
  if (zlg_test_mode() == ZLG_TEST_CPU) {
    printf("  (not run: one kind of worker)\n");
    return;
  }
  double lying = device_share(1e-6, 1e-10), lying_otherwise = device_share(1e-10, 1e-6);
  printf("  the devices' share of the work: %.0f %% said to be fast, %.0f %% said to be slow\n", 100 * lying,
         100 * lying_otherwise);
  CHECK(lying > 0.7);
  CHECK(lying_otherwise < 0.3);
}

int main(int argc, char **argv) {
  static const struct zlg_test_case cases[] = {
      {"a model comes back to the last bit", a_model_comes_back_to_the_last_bit},
      {"damage of any byte is noticed", damage_of_any_byte_is_noticed},
      {"unusable models are named and skipped", unusable_models_are_named_and_skipped},
      {"delayed samples are outliers however many", delayed_samples_are_outliers_however_many},
      {"tampered models move the work", tampered_models_move_the_work},
      {"wrong options are refused", wrong_options_are_refused},
      {"a short calibration measures, resumes and keeps", a_short_calibration_measures_resumes_and_keeps},
      {NULL, NULL}};
  return zlg_test_main(argc, argv, cases);
}
