/* Several workers over one: the same product on a context of each size, in turns, by the wall clock; the limit is what
 * as many bare threads gain. It means something on a machine that is otherwise idle. */
#include <math.h>

#include "bench/kron.h"
#include "bench/product.h"

struct scaling_trial;
/* Seconds of the product on that many workers, its threads warm; negative: failed. */
typedef double seconds_fn(const struct scaling_trial *trial, int workers);

struct scaling_trial {
  const struct bench_settings *settings;
  struct bench_row *row;
  seconds_fn *seconds;
  int64_t m; /* rows of the kernel matrix, or calls of the Kronecker product */
  struct kron_shape shape;
};

static const struct bench_kernel scaled_kernel = {ZLG_GAUSSIAN, 3, 1, false, 0, 0};

static double kernel_seconds(const struct scaling_trial *trial, int workers) {
  struct bench_product product;
  double seconds = -1;
  zlg_context *context = bench_context(workers, trial->row);
  if (!context) return -1;
  if (bench_product_open(&product, context, scaled_kernel, trial->row->type, trial->m, 20000, trial->row)) return -1;
  for (int t = 0; t < 2; t++) {
    double start = bench_wall_clock();
    if (bench_product_apply(&product, context, trial->row)) {
      seconds = -1;
      break;
    }
    seconds = bench_wall_clock() - start;
  }
  bench_product_close(&product);
  return seconds;
}

static double kron_seconds(const struct scaling_trial *trial, int workers) {
  struct kron_problem problem;
  zlg_context *context = bench_context(workers, trial->row);
  if (!context) return -1;
  if (kron_problem_open(&problem, context, trial->settings, &trial->shape, trial->row->type, trial->row)) return -1;
  int status = kron_problem_apply(&problem, context, trial->row);
  double start = bench_wall_clock();
  for (int64_t k = 0; k < trial->m && !status; k++) status = kron_problem_apply(&problem, context, trial->row);
  double seconds = bench_wall_clock() - start;
  kron_problem_close(&problem);
  return status ? -1 : seconds;
}

static double once_ours(void *state) {
  const struct scaling_trial *trial = state;
  double one = trial->seconds(trial, 1), several = trial->seconds(trial, trial->settings->workers);
  return one > 0 && several > 0 ? one / several : -1;
}

static double once_limit(void *state) {
  const struct scaling_trial *trial = state;
  return bench_rate(BENCH_FMA, trial->row->type, trial->settings->workers) / bench_rate(BENCH_FMA, trial->row->type, 1);
}

static int compare(struct scaling_trial *trial) {
  struct bench_meter ours = {"scaling", once_ours, trial, 0, 0}, limit = {"limit", once_limit, trial, 0, 0};
  trial->row->unit = "x";
  return bench_compare(trial->settings, trial->row, &ours, &limit, NULL, 0);
}

static int run_kernel(const struct bench_case *self, const struct bench_settings *settings, struct bench_row *row) {
  (void)self;
  struct scaling_trial trial = {.settings = settings, .row = row, .seconds = kernel_seconds, .m = 2048};
  double seconds = kernel_seconds(&trial, 1);
  if (seconds < 0) return -1;
  trial.m = (int64_t)(2048 * 4 * settings->seconds / seconds) / 64 * 64 + 64;
  bench_note(row, "m=%lld n=20000, wall clock", (long long)trial.m);
  return compare(&trial);
}

static int run_kron(const struct bench_case *self, const struct bench_settings *settings, struct bench_row *row) {
  struct scaling_trial trial = {.settings = settings, .row = row, .seconds = kron_seconds, .m = 1};
  if (!kron_shape_parse(&trial.shape, self->shape)) return bench_fail(row, "%s: no such shape", self->name);
  trial.shape.m = 64;
  double seconds = kron_seconds(&trial, 1);
  if (seconds < 0) return -1;
  trial.m = (int64_t)fmax(1, 2 * settings->seconds / seconds);
  double bytes = 3 * (double)(trial.shape.m * kron_rows_in(&trial.shape)) * (double)zlg_type_size(row->type);
  bench_note(row, "m=64, wall clock; one worker moves %.1f of the triad's %.0f GB/s", 1e-9 * bytes / seconds,
             1e-9 * bench_triad_rate(settings->workers));
  return compare(&trial);
}

const struct bench_case bench_scaling_cases[] = {
    {"scaling/kernel/gaussian-d3", run_kernel, NULL, 2, 0},
    {"scaling/kron/8^5", run_kron, "8^5", 2, 0},
    {"scaling/kron/32^3", run_kron, "32^3", 2, 0},
    {"scaling/kron/128^2", run_kron, "128^2", 2, 0},
    {NULL, NULL, NULL, 0, 0},
};
