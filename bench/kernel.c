/* Products by kernel matrices, in Mpair/s: one row per kernel, dimension and number of right-hand sides, through the
 * public interface, beside what the kernels' own count of operations (codelets/kernel_product/args.h) allows. */
#include <math.h>
#include <stdio.h>

#include "bench/product.h"
#include "codelets/kernel_product/args.h"

struct kernel_shape {
  struct bench_kernel kernel;
  const char *peer; /* the peers' name of it (peers.py) */
  int64_t m;        /* 0: as many as a repetition's seconds take */
  int64_t n;        /* 0: the default */
};

/* One measurement under way. */
struct kernel_trial {
  const struct bench_settings *settings;
  struct bench_row *row;
  zlg_context *context;
  struct bench_product product, scalar; /* scalar: the isotropic twin of an ARD case */
  int repeats;                          /* applications in one repetition */
  struct zlg_kernel_product_slots slots;
  double bytes; /* of memory traffic of one pair; 0: stays in caches */
};

static double apply_rate(struct kernel_trial *trial, struct bench_product *product) {
  double start = bench_clock(trial->settings->workers);
  for (int k = 0; k < trial->repeats; k++)
    if (bench_product_apply(product, trial->context, trial->row)) return -1;
  double seconds = bench_clock(trial->settings->workers) - start;
  return 1e-6 * trial->repeats * (double)product->m * (double)product->n / seconds;
}

static double once_ours(void *state) {
  struct kernel_trial *trial = state;
  return apply_rate(trial, &trial->product);
}

static double once_scalar(void *state) {
  struct kernel_trial *trial = state;
  return apply_rate(trial, &trial->scalar);
}

/* Pairs a second: multipliers, divider and memory work side by side, so that the slowest of them decides. */
static double once_limit(void *state) {
  struct kernel_trial *trial = state;
  zlg_type type = trial->product.type;
  int workers = trial->settings->workers;
  double multiplying = trial->slots.multiplier / bench_rate(BENCH_FMA, type, workers), dividing = 0, reading = 0;
  if (trial->slots.divisions > 0) dividing += trial->slots.divisions / bench_rate(BENCH_DIVIDE, type, workers);
  if (trial->slots.roots > 0) dividing += trial->slots.roots / bench_rate(BENCH_ROOT, type, workers);
  if (trial->bytes > 0) reading = trial->bytes / bench_triad_rate(workers);
  return 1e-6 / fmax(multiplying, fmax(dividing, reading));
}

/* Seconds of a product of that many rows, its threads and caches warm; negative: failed. */
static double seconds_of_rows(struct kernel_trial *trial, struct bench_kernel kernel, zlg_type type, int64_t rows,
                              int64_t n) {
  if (bench_product_open(&trial->product, trial->context, kernel, type, rows, n, trial->row)) return -1;
  double rate = apply_rate(trial, &trial->product);
  if (rate > 0) rate = apply_rate(trial, &trial->product);
  bench_product_close(&trial->product);
  return rate > 0 ? 1e-6 * (double)rows * (double)n / rate : -1;
}

/* Rows that one repetition's seconds take, from a short product and then one of a quarter's length. */
static int64_t rows_for(struct kernel_trial *trial, struct bench_kernel kernel, zlg_type type, int64_t n) {
  int64_t rows = 512;
  for (int t = 0; t < 2; t++) {
    double seconds = seconds_of_rows(trial, kernel, type, rows, n), wanted = trial->settings->seconds;
    if (seconds < 0) return -1;
    rows = (int64_t)fmin(fmax((double)rows * (t == 0 ? wanted / 4 : wanted) / seconds, 512), 1e6) / 64 * 64;
  }
  return rows;
}

static int trial_open(struct kernel_trial *trial, const struct kernel_shape *shape, zlg_type type) {
  int64_t n = shape->n ? shape->n : trial->settings->quick ? 8000 : 20000;
  int64_t m = shape->m ? shape->m : rows_for(trial, shape->kernel, type, n);
  if (m < 0 || bench_product_open(&trial->product, trial->context, shape->kernel, type, m, n, trial->row)) return -1;
  if (bench_product_apply(&trial->product, trial->context, trial->row)) return -1;
  if (bench_product_check(&trial->product, trial->row)) return -1;
  trial->slots = zlg_kernel_product_slots(shape->kernel.kind, shape->kernel.alpha > 0 ? shape->kernel.alpha : 1, type,
                                          shape->kernel.d, shape->kernel.r);
  if (shape->m) {
    trial->bytes = (double)(shape->kernel.d + shape->kernel.r) * (double)zlg_type_size(type);
    double seconds = 1e-6 * (double)m * (double)n / apply_rate(trial, &trial->product);
    trial->repeats = (int)fmax(1, trial->settings->seconds / seconds);
  }
  return 0;
}

/* What divisions and roots take from the multipliers, measured once a row. */
static void add_issue(struct kernel_trial *trial) {
  zlg_type type = trial->product.type;
  if (trial->slots.divisions > 0)
    trial->slots.multiplier += trial->slots.divisions * bench_issue_slots(BENCH_FMA_BESIDE_DIVIDE, type);
  if (trial->slots.roots > 0)
    trial->slots.multiplier += trial->slots.roots * bench_issue_slots(BENCH_FMA_BESIDE_ROOT, type);
}

static void note_shape(struct kernel_trial *trial, struct bench_row *row) {
  const struct bench_product *product = &trial->product;
  zlg_cost cost;
  bench_note(row, "m=%lld n=%lld", (long long)product->m, (long long)product->n);
  if (zlg_operator_cost(product->K, ZLG_NOTRANS, product->kernel.r, &cost) == ZLG_OK)
    bench_note(row, "tiles %lld x %lld", (long long)cost.tile_rows, (long long)cost.tile_columns);
  bench_note(row, "%.3g slots", trial->slots.multiplier);
  if (trial->slots.divisions + trial->slots.roots > 0)
    bench_note(row, "%g divisions or roots", trial->slots.divisions + trial->slots.roots);
}

static int run_kernel(const struct bench_case *self, const struct bench_settings *settings, struct bench_row *row) {
  const struct kernel_shape *shape = self->shape;
  struct kernel_trial trial = {.settings = settings, .row = row, .repeats = 1};
  struct bench_meter ours = {"ours", once_ours, &trial, 0, 0}, limit = {"limit", once_limit, &trial, 0, 0};
  struct bench_meter others[BENCH_PEERS + 1];
  char problem[128];
  int status = -1;
  row->unit = "Mpair/s";
  trial.context = bench_context(settings->workers, row);
  if (!trial.context || trial_open(&trial, shape, row->type)) goto cleanup;
  add_issue(&trial);
  snprintf(problem, sizeof problem, "kernel %s %s %d %d %lld %lld", shape->peer, zlg_type_name(row->type),
           (int)shape->kernel.d, (int)shape->kernel.r, (long long)shape->m, (long long)trial.product.n);
  int peers = bench_peers(settings, problem, others), count = peers;
  if (shape->kernel.ard) {
    struct bench_kernel isotropic = shape->kernel;
    isotropic.ard = false;
    if (bench_product_open(&trial.scalar, trial.context, isotropic, row->type, trial.product.m, trial.product.n, row))
      goto cleanup;
    others[count++] = (struct bench_meter){"scalar", once_scalar, &trial, 0, 0};
  }
  status = bench_compare(settings, row, &ours, &limit, others, count);
  if (status) goto cleanup;
  bench_row_peers(row, others, peers);
  note_shape(&trial, row);
  if (shape->kernel.ard)
    bench_note(row, "%.3f of one lengthscale's %.0f", others[peers].relative, others[peers].median);
cleanup:
  bench_product_close(&trial.product);
  bench_product_close(&trial.scalar);
  return status;
}

#define SHAPE(...)                                                                                                     \
  &(const struct kernel_shape) {                                                                                       \
    __VA_ARGS__                                                                                                        \
  }
#define GAUSSIAN(label, dimensions, columns)                                                                           \
  {                                                                                                                    \
    "kernel/gaussian/" label, run_kernel, SHAPE({ZLG_GAUSSIAN, dimensions, columns, false, 0, 0}, "gaussian", 0, 0),   \
        0, 0                                                                                                           \
  }
#define ARD(label, dimensions, l)                                                                                      \
  { "kernel/gaussian/" label, run_kernel, SHAPE({ZLG_GAUSSIAN, dimensions, 1, true, 0, l}, "gaussian-ard", 0, 0), 0, 0 }
#define D3(name, kind)                                                                                                 \
  { "kernel/" name "/d3", run_kernel, SHAPE({kind, 3, 1, false, 0, 0}, name, 0, 0), 0, 0 }

const struct bench_case bench_kernel_cases[] = {
    GAUSSIAN("d3", 3, 1),
    GAUSSIAN("d10", 10, 1),
    GAUSSIAN("d50", 50, 1),
    GAUSSIAN("d100", 100, 1),
    GAUSSIAN("d3-rhs10", 3, 10),
    GAUSSIAN("d50-rhs10", 50, 10),
    ARD("d3-ard", 3, 2.8),
    ARD("d28-ard", 28, 2.8),
    D3("exponential", ZLG_EXPONENTIAL),
    D3("laplacian", ZLG_LAPLACIAN),
    D3("matern32", ZLG_MATERN32),
    D3("matern52", ZLG_MATERN52),
    D3("rational-quadratic", ZLG_RATIONAL_QUADRATIC),
    {"kernel/rational-quadratic/d3-power", run_kernel,
     SHAPE({ZLG_RATIONAL_QUADRATIC, 3, 1, false, 0.7, 0}, "rational-quadratic-power", 0, 0), 0, 0},
    D3("inverse-multiquadric", ZLG_INVERSE_MULTIQUADRIC),
    D3("cauchy", ZLG_CAUCHY),
    D3("energy", ZLG_ENERGY),
    D3("linear", ZLG_LINEAR),
    D3("polynomial", ZLG_POLYNOMIAL),
    D3("sigmoid", ZLG_SIGMOID),
    {"kernel/gaussian/m1-n1e7", run_kernel, SHAPE({ZLG_GAUSSIAN, 3, 1, false, 0, 0}, "gaussian", 1, 10000000), 0, 0},
    {NULL, NULL, NULL, 0, 0},
};
