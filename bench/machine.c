/* The machine itself: the rates that limits are made of, as rows of their own. */
#include "bench/bench.h"

#include "codelets/common/isa.h"

struct machine_trial {
  zlg_type type;
  int workers;
};

static double once_fma(void *state) {
  const struct machine_trial *trial = state;
  return 2e-9 * bench_rate(BENCH_FMA, trial->type, trial->workers);
}

static double once_gemm(void *state) {
  const struct machine_trial *trial = state;
  return 2e-9 * bench_gemm_rate(trial->type, trial->workers);
}

static double once_triad(void *state) {
  const struct machine_trial *trial = state;
  return 1e-9 * bench_triad_rate(trial->workers);
}

static int measure(const struct bench_settings *settings, struct bench_row *row, const char *unit,
                   double (*rate)(void *), double (*above)(void *)) {
  struct machine_trial trial = {row->type, settings->workers};
  struct bench_meter ours = {"the rate", rate, &trial, 0, 0}, limit = {"limit", above, &trial, 0, 0};
  row->unit = unit;
  return bench_compare(settings, row, &ours, above ? &limit : NULL, NULL, 0);
}

static int run_fma(const struct bench_case *self, const struct bench_settings *settings, struct bench_row *row) {
  (void)self;
  bench_note(row, "multiply-adds, %s", zlg_isa_name(zlg_isa_current()));
  return measure(settings, row, "GF/s", once_fma, NULL);
}

static int run_gemm(const struct bench_case *self, const struct bench_settings *settings, struct bench_row *row) {
  (void)self;
  bench_note(row, "OpenBLAS, its %s kernels", bench_gemm_kernel());
  return measure(settings, row, "GF/s", once_gemm, once_fma);
}

static int run_triad(const struct bench_case *self, const struct bench_settings *settings, struct bench_row *row) {
  (void)self;
  bench_note(row, "a = b + s c, write-allocate counted");
  return measure(settings, row, "GB/s", once_triad, NULL);
}

const struct bench_case bench_machine_cases[] = {
    {"machine/fma", run_fma, NULL, 0, 0},
    {"machine/gemm", run_gemm, NULL, 0, 0},
    {"machine/triad", run_triad, NULL, 0, ZLG_F64},
    {NULL, NULL, NULL, 0, 0},
};
