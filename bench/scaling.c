/* Several workers over one: the same product on a context of each size, in turns, by the wall clock; the limit is what
 * as many bare threads gain. It means something on a machine that is otherwise idle. */
#include "bench/product.h"

struct scaling_trial {
  const struct bench_settings *settings;
  struct bench_row *row;
  int64_t m;
};

static const struct bench_kernel scaled_kernel = {ZLG_GAUSSIAN, 3, 1, false, 0, 0};

/* Seconds of the product on that many workers, its threads warm; negative: failed. */
static double seconds_on(const struct scaling_trial *trial, int workers, int64_t m) {
  struct bench_product product;
  double seconds = -1;
  zlg_context *context = bench_context(workers, trial->row);
  if (!context) return -1;
  if (bench_product_open(&product, context, scaled_kernel, trial->row->type, m, 20000, trial->row)) return -1;
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

static double once_ours(void *state) {
  const struct scaling_trial *trial = state;
  double one = seconds_on(trial, 1, trial->m), several = seconds_on(trial, trial->settings->workers, trial->m);
  return one > 0 && several > 0 ? one / several : -1;
}

static double once_limit(void *state) {
  const struct scaling_trial *trial = state;
  return bench_rate(BENCH_FMA, trial->row->type, trial->settings->workers) / bench_rate(BENCH_FMA, trial->row->type, 1);
}

static int run_scaling(const struct bench_case *self, const struct bench_settings *settings, struct bench_row *row) {
  (void)self;
  struct scaling_trial trial = {settings, row, 0};
  struct bench_meter ours = {"scaling", once_ours, &trial, 0, 0}, limit = {"limit", once_limit, &trial, 0, 0};
  row->unit = "x";
  double seconds = seconds_on(&trial, 1, 2048);
  if (seconds < 0) return -1;
  trial.m = (int64_t)(2048 * 4 * settings->seconds / seconds) / 64 * 64 + 64;
  bench_note(row, "m=%lld n=20000, wall clock", (long long)trial.m);
  return bench_compare(settings, row, &ours, &limit, NULL, 0);
}

const struct bench_case bench_scaling_cases[] = {
    {"scaling/kernel/gaussian-d3", run_scaling, NULL, 2, 0},
    {NULL, NULL, NULL, 0, 0},
};
