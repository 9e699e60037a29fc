/* Kronecker products of random shapes: on which is a peer ahead? One row: the worst shape's figures, its ratio to the
 * best peer and the median of all ratios in the note. Every shape goes to stderr by the name under which it can be run
 * on its own (--only). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/kron.h"

enum { SHAPES = 300, SHAPES_QUICK = 24, MOST_FACTORS = 8, MOST_SIZE = 70 };
static const double most_elements = 0x1p26;

static uint64_t next_random(uint64_t *state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return *state >> 33;
}

static double uniform(uint64_t *state) {
  return ((double)next_random(state) + 0.5) * 0x1p-31;
}

/* Uniform for few factors, and by its logarithm for half of them and for many, where uniform ones never fit. */
static int64_t random_size(uint64_t *state, bool logarithmic) {
  return logarithmic ? (int64_t)exp(uniform(state) * log(MOST_SIZE + 1)) : 1 + (int64_t)(uniform(state) * MOST_SIZE);
}

/* A shape whose M vectors stay within most_elements, between the factors too. */
static struct kron_shape random_shape(uint64_t *state) {
  struct kron_shape shape = {.count = 1 + (int)(next_random(state) % MOST_FACTORS), .m = 1};
  bool logarithmic = shape.count > 5 || next_random(state) % 2;
  shape.left = next_random(state) % 4 == 0;
  shape.m = (int64_t)exp(uniform(state) * log(257));
  do {
    for (int i = 0; i < shape.count; i++) {
      shape.p[i] = random_size(state, logarithmic);
      shape.q[i] = next_random(state) % 3 ? random_size(state, logarithmic) : shape.p[i];
    }
  } while ((double)shape.m * (double)kron_widest(&shape) > most_elements);
  return shape;
}

struct outcome {
  double ratio, ours;
  int peer_count;
  const char *peers[BENCH_PEERS];
  double values[BENCH_PEERS];
};

static int measure(const struct bench_settings *settings, const struct kron_shape *shape, struct bench_row *row,
                   struct outcome *outcome) {
  struct kron_trial trial;
  struct bench_row one = {.name = row->name, .type = row->type};
  int status = kron_trial_open(&trial, settings, shape, row->type, &one);
  if (status) return bench_fail(row, "%s", one.note);
  status = bench_compare(settings, &one, &trial.ours, NULL, trial.others, trial.other_count);
  *outcome = (struct outcome){.ratio = INFINITY, .ours = one.ours, .peer_count = trial.other_count};
  for (int k = 0; k < trial.other_count; k++) {
    outcome->peers[k] = trial.others[k].name;
    outcome->values[k] = trial.others[k].median;
    if (isfinite(trial.others[k].median)) /* a peer that died in the middle is no peer */
      outcome->ratio = fmin(outcome->ratio, trial.others[k].relative);
  }
  kron_trial_close(&trial);
  return status ? bench_fail(row, "%s", one.note) : 0;
}

static void say(const char *name, const struct bench_row *row, const struct outcome *outcome) {
  char peers[128] = "";
  for (int k = 0, used = 0; k < outcome->peer_count && used < (int)sizeof peers; k++)
    used += snprintf(peers + used, sizeof peers - (size_t)used, " %s %.3g", outcome->peers[k], outcome->values[k]);
  bench_say("  %.2f %s %s: ours %.3g%s", outcome->ratio, name, zlg_type_name(row->type), outcome->ours, peers);
}

static void full_name(const struct kron_shape *shape, char *name, size_t bytes) {
  int used = snprintf(name, bytes, "kron/%s/%lld@", shape->left ? "kmm" : "mkm", (long long)shape->m);
  kron_shape_name(shape, name + used, bytes - (size_t)used);
}

static void fill_row(struct bench_row *row, const struct outcome *worst) {
  row->ours = worst->ours;
  row->peer_count = worst->peer_count;
  for (int k = 0; k < worst->peer_count; k++) {
    row->peers[k].name = worst->peers[k];
    row->peers[k].value = worst->values[k];
  }
}

/* The machine's speed wanders: a shape that seems to lose is measured again, for longer. */
static int measure_shape(const struct bench_settings *settings, const struct kron_shape *shape, struct bench_row *row,
                         struct outcome *outcome) {
  struct bench_settings quick = *settings, longer = *settings;
  quick.repetitions = 3;
  quick.seconds = settings->quick ? 0.01 : 0.02;
  longer.repetitions = 7;
  longer.seconds = 0.1;
  if (measure(&quick, shape, row, outcome)) return -1;
  return outcome->ratio < 1.1 ? measure(&longer, shape, row, outcome) : 0;
}

int kron_run_sweep(const struct bench_case *self, const struct bench_settings *settings, struct bench_row *row) {
  const int count = settings->quick ? SHAPES_QUICK : SHAPES;
  uint64_t state = 5;
  double ratios[SHAPES];
  struct outcome worst = {.ratio = INFINITY};
  char name[160], worst_name[160] = "";
  int behind = 0;
  (void)self;
  row->unit = "GF/s";
  for (int t = 0; t < count; t++) {
    struct kron_shape shape = random_shape(&state);
    struct outcome outcome;
    full_name(&shape, name, sizeof name);
    if (measure_shape(settings, &shape, row, &outcome)) {
      bench_say("  failed: %s %s: %s", name, zlg_type_name(row->type), row->note);
      return -1;
    }
    say(name, row, &outcome);
    ratios[t] = outcome.ratio;
    behind += outcome.ratio < 1;
    if (outcome.ratio >= worst.ratio) continue;
    worst = outcome;
    snprintf(worst_name, sizeof worst_name, "%s", name);
  }
  fill_row(row, &worst);
  bench_note(row, "%d shapes, %d slower than the best peer; median %.2f times it, worst %.2f: %s", count, behind,
             bench_median(ratios, count), worst.ratio, worst_name);
  return 0;
}
