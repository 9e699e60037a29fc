/* Kronecker products, in GF/s counted alike for everybody (kron_flops): one row per shape, through the public
 * interface, beside FastKron and two algorithms on OpenBLAS; the limit is OpenBLAS's product of 2048 x 2048 matrices.
 *
 * kron/FORM/[M@]SHAPE: FORM mkm (Y = X A) or kmm (Y = A X), with -xt where X is stored transposed, -ft where the
 * factors are, -tt for both; `one` is mkm on one vector, `real` FastKron's set of sizes from applications. */
#include "bench/kron.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void peer_fn(const struct kron_problem *problem, int threads, int calls);

static double peer_rate(const struct kron_trial *trial, peer_fn *peer, int calls) {
  double share = (double)trial->problem.peer_m / (double)trial->problem.shape.m;
  double start = bench_clock(trial->settings->workers);
  peer(&trial->problem, trial->settings->workers, calls);
  return 1e-9 * calls * share * trial->flops / (bench_clock(trial->settings->workers) - start);
}

static double once_shuffle(void *state) {
  const struct kron_trial *trial = state;
  return peer_rate(trial, kron_shuffle, trial->shuffle_calls);
}

static double once_modes(void *state) {
  const struct kron_trial *trial = state;
  return peer_rate(trial, kron_modes, trial->modes_calls);
}

static double once_ours(void *state) {
  struct kron_trial *trial = state;
  double start = bench_clock(trial->settings->workers);
  for (int k = 0; k < trial->our_calls; k++)
    if (kron_problem_apply(&trial->problem, trial->context, trial->row)) return -1;
  return 1e-9 * trial->our_calls * trial->flops / (bench_clock(trial->settings->workers) - start);
}

static double once_peak(void *state) {
  const struct kron_trial *trial = state;
  return 2e-9 * bench_gemm_peak(trial->problem.type, trial->settings->workers);
}

/* Sets *calls so that a repetition lasts; false: failed. */
static bool calibrate(const struct kron_trial *trial, struct bench_meter *meter, int *calls) {
  for (*calls = 1; *calls < 1 << 24; *calls *= 4) {
    double start = bench_clock(trial->settings->workers);
    if (!(meter->once(meter->state) >= 0)) return false;
    double seconds = bench_clock(trial->settings->workers) - start;
    if (seconds < trial->settings->seconds / 8) continue;
    *calls = (int)fmax(1, *calls * trial->settings->seconds / seconds);
    return true;
  }
  return true;
}

static int add_blas(struct kron_trial *trial, const char *name, double (*once)(void *), peer_fn *peer, int *calls) {
  struct bench_meter *meter = &trial->others[trial->other_count++];
  *meter = (struct bench_meter){name, once, trial, 0, 0};
  memset(trial->problem.peer_y, 0xff,
         (size_t)(trial->problem.peer_m * trial->problem.l) * zlg_type_size(trial->problem.type));
  peer(&trial->problem, trial->settings->workers, 1);
  if (kron_problem_check(&trial->problem, trial->problem.peer_y, trial->problem.peer_m, name, trial->row)) return -1;
  if (kron_problem_agree(&trial->problem, name, trial->row)) return -1;
  return calibrate(trial, meter, calls) ? 0 : -1;
}

/* FastKron checks itself against NumPy (peers.py). */
static void add_fastkron(struct kron_trial *trial) {
  const struct kron_shape *shape = &trial->problem.shape;
  char problem[400], factors[300];
  kron_shape_name(shape, factors, sizeof factors);
  snprintf(problem, sizeof problem, "kron %s %s %d %d %lld %s", shape->left ? "kmm" : "mkm",
           zlg_type_name(trial->problem.type), shape->x_trans, shape->f_trans, (long long)trial->problem.peer_m,
           factors);
  trial->other_count += bench_peers(trial->settings, problem, trial->others + trial->other_count);
}

int kron_trial_open(struct kron_trial *trial, const struct bench_settings *settings, const struct kron_shape *shape,
                    zlg_type type, struct bench_row *row) {
  *trial = (struct kron_trial){.settings = settings, .row = row, .our_calls = 1, .shuffle_calls = 1, .modes_calls = 1};
  trial->ours = (struct bench_meter){"ours", once_ours, trial, 0, 0};
  trial->context = bench_context(settings->workers, row);
  if (!trial->context) return -1;
  if (kron_problem_open(&trial->problem, trial->context, settings, shape, type, row)) return -1;
  trial->flops = kron_flops(&trial->problem.shape);
  if (kron_problem_apply(&trial->problem, trial->context, row) ||
      kron_problem_check(&trial->problem, trial->problem.y, trial->problem.shape.m, "ours", row) ||
      !calibrate(trial, &trial->ours, &trial->our_calls) ||
      add_blas(trial, "shuffle", once_shuffle, kron_shuffle, &trial->shuffle_calls) ||
      add_blas(trial, "modes", once_modes, kron_modes, &trial->modes_calls)) {
    kron_trial_close(trial);
    return -1;
  }
  add_fastkron(trial);
  return 0;
}

void kron_trial_close(struct kron_trial *trial) {
  kron_problem_close(&trial->problem);
}

/* What X read and Y written (and read for it, as the triad's is) once would allow, where they are out of caches. */
static void note_memory(const struct kron_trial *trial, struct bench_row *row) {
  const struct kron_problem *problem = &trial->problem;
  double bytes =
      (double)problem->shape.m * (double)(problem->k + 2 * problem->l) * (double)zlg_type_size(problem->type);
  if (bytes > 0x1p26)
    bench_note(row, "memory allows %.0f", 1e-9 * trial->flops * bench_triad_rate(trial->settings->workers) / bytes);
}

static void note_shape(const struct kron_trial *trial, const struct kron_shape *wanted, struct bench_row *row) {
  const struct kron_problem *problem = &trial->problem;
  double seconds = 1e-9 * trial->flops / row->ours;
  char shape[128];
  kron_shape_name(wanted, shape, sizeof shape);
  bench_note(row, "%s m=%lld", shape, (long long)problem->shape.m);
  if (problem->shape.m < wanted->m) bench_note(row, "not %lld: memory", (long long)wanted->m);
  if (problem->peer_m < problem->shape.m) bench_note(row, "peers m=%lld", (long long)problem->peer_m);
  if (seconds < 1e-3) bench_note(row, "%.2f us a call", 1e6 * seconds);
  note_memory(trial, row);
}

static int run_shape(const struct kron_shape *shape, const struct bench_settings *settings, struct bench_row *row) {
  struct kron_trial trial;
  struct bench_settings shorter = *settings; /* calls are milliseconds, and there are many cases */
  shorter.seconds = fmin(settings->seconds, 0.1);
  row->unit = "GF/s";
  if (kron_trial_open(&trial, &shorter, shape, row->type, row)) return -1;
  struct bench_meter peak = {"limit", once_peak, &trial, 0, 0};
  if (1e-9 * trial.flops > 100 && shorter.repetitions > 3) shorter.repetitions = 3; /* seconds a call */
  int status = bench_compare(&shorter, row, &trial.ours, &peak, trial.others, trial.other_count);
  if (!status) {
    bench_row_peers(row, trial.others, trial.other_count);
    note_shape(&trial, shape, row);
  }
  kron_trial_close(&trial);
  return status;
}

/* "mkm", "kmm-ft", "one": into the shape, with its usual M; false: no such form. */
static bool parse_form(struct kron_shape *shape, const char *form) {
  char base[4] = "";
  if (strlen(form) < 3) return false;
  memcpy(base, form, 3);
  *shape = (struct kron_shape){.m = 64};
  const char *rest = form + 3;
  shape->x_trans = strcmp(rest, "-xt") == 0 || strcmp(rest, "-tt") == 0;
  shape->f_trans = strcmp(rest, "-ft") == 0 || strcmp(rest, "-tt") == 0;
  if (*rest && !shape->x_trans && !shape->f_trans) return false;
  if (strcmp(base, "one") == 0) shape->m = 1;
  shape->left = strcmp(base, "kmm") == 0;
  return shape->left || shape->m == 1 || strcmp(base, "mkm") == 0;
}

/* kron/FORM/[M@]SHAPE */
static bool parse_name(struct kron_shape *shape, const char *name) {
  char form[16];
  int end = 0;
  if (sscanf(name, "kron/%15[^/]/%n", form, &end) != 1 || !end || !parse_form(shape, form)) return false;
  const char *text = name + end, *mark = strchr(text, '@');
  if (mark) {
    char *stop;
    shape->m = strtoll(text, &stop, 10);
    if (stop != mark || shape->m < 1) return false;
    text = mark + 1;
  }
  return kron_shape_parse(shape, text);
}

/* self->shape: the name in the form that says everything, where the case's own does not. */
static int run_named(const struct bench_case *self, const struct bench_settings *settings, struct bench_row *row) {
  struct kron_shape shape;
  const char *name = self->shape ? self->shape : self->name;
  if (!parse_name(&shape, name)) return bench_fail(row, "%s: no such shape", name);
  return run_shape(&shape, settings, row);
}

const struct bench_case *bench_kron_case(const char *name) {
  static struct bench_case made;
  struct kron_shape shape;
  if (!parse_name(&shape, name)) return NULL;
  made = (struct bench_case){.name = name, .run = run_named};
  return &made;
}

#define NAMED(name)                                                                                                    \
  { name, run_named, NULL, 0, 0 }
#define SHAPED(name, full)                                                                                             \
  { name, run_named, full, 0, 0 }

const struct bench_case bench_kron_cases[] = {
    NAMED("kron/mkm/8^5"),
    NAMED("kron/mkm/8^6"),
    NAMED("kron/mkm/16^4"),
    NAMED("kron/mkm/16^5"),
    NAMED("kron/mkm/32^3"),
    NAMED("kron/mkm/32^4"),
    NAMED("kron/mkm/64^3"),
    NAMED("kron/mkm/128^2"),
    SHAPED("kron/mkm/128^3", "kron/mkm/16@128^3"),
    NAMED("kron/mkm/5^6"),
    NAMED("kron/mkm/10^5"),
    NAMED("kron/mkm/8x16^4"),
    NAMED("kron/mkm/16x8^4"),
    SHAPED("kron/mkm/mixed", "kron/mkm/8,32,5x7,12"),
    NAMED("kron/kmm/8^5"),
    NAMED("kron/kmm/16^4"),
    NAMED("kron/kmm/32^3"),
    NAMED("kron/kmm/64^3"),
    NAMED("kron/kmm/128^2"),
    NAMED("kron/kmm/10^5"),
    NAMED("kron/mkm-xt/8^5"),
    NAMED("kron/mkm-xt/32^3"),
    NAMED("kron/mkm-xt/10^5"),
    NAMED("kron/mkm-xt/128^2"),
    NAMED("kron/mkm-ft/8^5"),
    NAMED("kron/mkm-ft/32^3"),
    NAMED("kron/mkm-ft/10^5"),
    NAMED("kron/mkm-ft/128^2"),
    NAMED("kron/kmm-tt/8^5"),
    NAMED("kron/kmm-tt/32^3"),
    NAMED("kron/one/2^7"),
    NAMED("kron/one/8^3"),
    NAMED("kron/one/64^2"),
    SHAPED("kron/real/20x2^9", "kron/mkm/20@2^9"),
    SHAPED("kron/real/1024x4^7", "kron/mkm/1024@4^7"),
    SHAPED("kron/real/156x8^3", "kron/mkm/156@8^3"),
    SHAPED("kron/real/16x16^6", "kron/mkm/16@16^6"),
    SHAPED("kron/real/16x32^5", "kron/mkm/16@32^5"),
    SHAPED("kron/real/4x128^4", "kron/mkm/4@128^4"),
    {"kron/sweep/random", kron_run_sweep, NULL, 0, 0},
    {NULL, NULL, NULL, 0, 0},
};
