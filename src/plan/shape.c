/* Shapes: how a sum is cut. Everything that fixes the order of additions (tile sizes, number of chains) comes from the
 * sizes of the problem and from facts of the machine that stay (doc/architecture.md, Determinism); how much is alive at
 * once (groups, slots, window) comes from workers and limits too.
 *
 * A tile is meant to last a millisecond or some of one core. The rates are fixed numbers; a calibrated model of the
 * codelet changes them by powers of two only, and what was learned by running does not: a rate as it was measured would
 * change the tiles, and with them the bits, from run to run. */
#include <math.h>

#include "codelets/common/model.h"
#include "src/core/memory.h"
#include "src/core/simulation.h"
#include "src/plan/graph.h"

#define NOMINAL_FLOPS 1e11 /* a core with wide vectors */
#define FAST_FLOPS 3e11    /* a core that does these by its calibrated model has the tiles of one that has no model */
#define NOMINAL_BYTES 1e10
#define NOMINAL_DISK 1e9 /* a solid-state disk, read in order */
#define TASK_LEAST 3e-3  /* by the nominal rate, 1 ms or more on a fast core: a task costs some 10 microseconds */
#define TASK_MOST 8e-3
#define TIGHT_TASK 5e-4 /* under a small memory limit */
#define TIGHTER_TASK 2e-4
#define TIGHTEST_TASK 1e-4 /* what is shorter crawls, and is refused */
#define CHAINS_ALIVE 8
#define RIGHT_SIDES_LEAST 16 /* fewer compute the kernel too often */
#define TASKS_MOST 16384     /* where cards do most of them: they get through a core's seconds in milliseconds */
#define CHAINS 128           /* independent chains wanted, so that a machine of that many workers is busy */
/* A card is as fast as a hundred cores: a scheduler gives a core a task when that ends before a card would get round to
 * it, so each card needs as many tasks in front of it. Eight of them. */
#define CARD_CHAINS 1024
#define ACC_MOST (16ll << 20)  /* bytes of one accumulator */
#define CORE_CACHE (1ll << 20) /* where hwloc knows none, and in simulations */
#define SHARED_CACHE (32ll << 20)
#define ROWS_LEAST 256                  /* a column's coordinates are loaded for so many rows, whatever the cache */
#define STARPU_MOST INT64_C(0x7fffffff) /* elements in a direction of a handle */
#define PARTS_MOST_BYTES (64ll << 20)

/* The tile length for `total` cut into pieces of about `want`: pieces of equal length, a multiple of 64. */
static int64_t balanced(int64_t total, int64_t want) {
  want = max64(want, 1);
  if (want >= total) return max64(total, 1);
  int64_t pieces = ceil_div(total, want);
  return min64(total, ceil_div(ceil_div(total, pieces), 64) * 64);
}

struct unit_costs { /* of one tile: seconds = max(mn pair, m row + n column) */
  double pair, row, column;
};

/* How many times longer a core takes for its part than one of FAST_FLOPS, to the nearest power of two: measuring again
 * rarely changes it. The worker is a core, whatever kinds of workers the context has. */
static double slowness(const struct zlg_sum *sum, double flops) {
  if (!zlg_model_has_curve(sum->codelet, ZLG_WORKER_CPU)) return 1;
  double seconds = zlg_model_base(sum->codelet, sum->args, ZLG_WORKER_CPU);
  return fmin(fmax(exp2(round(log2(seconds * FAST_FLOPS / flops))), 0.25), 64);
}

static struct unit_costs costs_of(const struct zlg_sum *sum, int64_t rt) {
  double es = (double)zlg_type_size(sum->p->type), d = (double)max64(sum->p->columns, 1);
  struct zlg_count count = {0};
  const int64_t side = 1024;
  sum->shape(sum->args, side, side, rt, true);
  sum->codelet->count(sum->args, &count);
  return (struct unit_costs){.pair = slowness(sum, count.flops) * count.flops / ((double)side * (double)side) /
                                     NOMINAL_FLOPS,
                             .row = (d * es + 16.0 * (double)rt) / NOMINAL_BYTES,
                             .column = (d + (double)rt) * es / NOMINAL_BYTES};
}

static double tile_seconds(const struct unit_costs *c, double m, double n) {
  return fmax(m * n * c->pair, m * c->row + n * c->column);
}

/* Rows whose points and sums stay in half of a core's cache while the columns of a tile pass: every task of a chain
 * writes the sums. A card has no such cache, and wants many rows. */
static double cached_rows(const struct zlg_sum *sum, int64_t rt) {
  int64_t es = (int64_t)zlg_type_size(sum->p->type), bytes = max64(sum->p->columns, 1) * es + 8 * rt;
  int64_t cache = sum->context->core_cache > 0 ? sum->context->core_cache : CORE_CACHE;
  return sum->context->kinds[ZLG_WORKER_CUDA] ? INFINITY : (double)max64(cache / 2 / bytes, ROWS_LEAST);
}

/* Columns that stay in half of the shared cache for the next block of rows that wants them. */
static double cached_columns(const struct zlg_sum *sum, int64_t rt) {
  int64_t es = (int64_t)zlg_type_size(sum->p->type), bytes = es * (max64(sum->p->columns, 1) + rt);
  int64_t cache = sum->context->shared_cache > 0 ? sum->context->shared_cache : SHARED_CACHE;
  return sum->context->kinds[ZLG_WORKER_CUDA] ? INFINITY : (double)max64(cache / 2 / bytes, 1);
}

/* The caches say how a tile is shaped, not how long it lasts: what one side lacks the other gets. */
static void choose_tile(const struct zlg_sum *sum, int64_t m, int64_t n, int64_t r, struct zlg_sum_shape *s) {
  int64_t rows = min64(max64(m, 1), 4096);
  int64_t rt_most = max64(256, (4ll << 20) / (8 * max64(rows, min64(max64(n, 1), 4096))));
  s->rt = balanced(r, rt_most);
  struct unit_costs c = costs_of(sum, s->rt);
  double all = tile_seconds(&c, (double)m, (double)n), most = TASK_MOST;
  if (sum->context->kinds[ZLG_WORKER_CUDA]) most = fmax(16 * TASK_MOST, all / TASKS_MOST);
  double target = fmin(fmax(all / 256, TASK_LEAST), most);
  double pairs = target / c.pair, side = sqrt(pairs), rows_most = cached_rows(sum, s->rt);
  double mt = fmin((double)m, fmin(side, rows_most)), nt = fmin((double)n, pairs / fmax(mt, 1));
  nt = fmin(nt, target / c.column);
  if (mt < (double)m) nt = fmin(nt, fmax(cached_columns(sum, s->rt), side));
  mt = fmin((double)m, fmin(pairs / fmax(nt, 1), target / c.row));
  mt = fmin(mt, (double)(ACC_MOST / (8 * s->rt)));
  const zlg_context_options *options = &sum->context->options;
  s->mt = options->tile_rows ? min64(max64(m, 1), options->tile_rows) : balanced(m, max64((int64_t)mt, 64));
  s->nt = options->tile_columns ? min64(max64(n, 1), options->tile_columns) : balanced(n, max64((int64_t)nt, 64));
  s->mt = min64(s->mt, max64(1, STARPU_MOST / s->rt)); /* of the accumulator */
  s->nt = min64(s->nt, STARPU_MOST);
  s->tile_rule = options->tile_rows || options->tile_columns            ? "options"
                 : s->mt >= m && s->nt >= n && s->rt >= r               ? "size"
                 : mt <= rows_most && rows_most < fmin((double)m, side) ? "cache"
                                                                        : "time";
}

static int64_t acc_bytes(const struct zlg_sum_shape *s) {
  return 8 * s->mt * s->rt;
}

static int64_t row_slot_bytes(const struct zlg_sum *sum, const struct zlg_sum_shape *s) {
  int64_t es = (int64_t)zlg_type_size(sum->p->type), bytes = s->parts * acc_bytes(s);
  if (zlg_tile_is_staged(sum->p)) bytes += es * s->mt * max64(sum->p->columns, 1);
  if (sum->y && zlg_tile_is_staged(sum->y)) bytes += es * s->mt * s->rt;
  return bytes;
}

static int64_t column_slot_bytes(const struct zlg_sum *sum, const struct zlg_sum_shape *s) {
  int64_t es = (int64_t)zlg_type_size(sum->p->type), bytes = 0;
  if (zlg_tile_is_staged(sum->q)) bytes += es * s->nt * max64(sum->q->columns, 1);
  if (sum->x && zlg_tile_is_staged(sum->x)) bytes += es * s->nt * s->rt;
  return bytes;
}

static void count_tiles(const struct zlg_sum *sum, int64_t m, int64_t n, int64_t r, struct zlg_sum_shape *s) {
  s->mi = ceil_div(m, s->mt);
  s->nj = ceil_div(n, s->nt);
  s->rc = ceil_div(r, s->rt);
  bool cards = sum->context->kinds[ZLG_WORKER_CUDA] > 0;
  s->parts = min64(s->nj, ceil_div(cards ? CARD_CHAINS : CHAINS, max64(s->mi, 1)));
  /* The last task of a block has all its parts in one memory: StarPU would look for room in a smaller one for ever. */
  int64_t most = min64((cards ? 4 : 1) * PARTS_MOST_BYTES, sum->context->device_memory / 4);
  s->parts = max64(1, min64(s->parts, most / max64(acc_bytes(s), 1)));
  s->tasks = s->mi * s->rc * (s->nj + 1);
}

/* Column tiles of a file that are in memory at once: 64 MiB of them, more where that is too little to keep three tasks
 * a worker under way, within a quarter of the limit. */
static int64_t staged_columns(const struct zlg_sum_shape *s, int64_t workers, int64_t column_bytes, int64_t limit) {
  int64_t wanted = max64((64ll << 20) / column_bytes, 2 + ceil_div(3 * workers, s->group));
  return max64(4, min64(limit / 4 / column_bytes, wanted));
}

/* How much is alive at once: enough to keep every worker busy, more where it saves reading a file again, less where the
 * limit says so. */
static void choose_slots(const struct zlg_sum *sum, struct zlg_sum_shape *s) {
  int64_t workers = max64(sum->context->worker_count, 1), limit = sum->context->memory_limit;
  /* A chain waits for the worker that has its last task: with unlike workers it takes more chains to keep all busy. */
  bool devices = sum->context->memory_nodes > 1;
  s->window = devices ? 128 + 64 * workers : 32 + 16 * workers;
  int64_t row_bytes = max64(row_slot_bytes(sum, s), 1), column_bytes = column_slot_bytes(sum, s);
  s->group = ceil_div(12 * workers, s->parts); /* chains enough that one slow worker holds up no other */
  if (devices) s->group = max64(s->group, min64(ceil_div(48 * workers, s->parts), limit / 16 / row_bytes));
  bool reread = column_bytes > 0 && s->nj > 1;
  if (reread) s->group = max64(s->group, min64(limit / 4, 64ll << 20) / row_bytes);
  s->group = max64(1, min64(s->group, s->mi));
  s->row_slots = max64(2 * s->group, s->group + ceil_div(s->window, s->nj + 1));
  s->row_slots = min64(s->row_slots, max64(s->mi, 1));
  s->column_slots = column_bytes ? staged_columns(s, workers, column_bytes, limit) : 512;
  s->column_slots = max64(1, min64(s->column_slots, s->nj));
}

static int64_t memory_of(const struct zlg_sum *sum, const struct zlg_sum_shape *s) {
  return s->row_slots * row_slot_bytes(sum, s) + s->column_slots * column_slot_bytes(sum, s);
}

/* The fewest things alive that a tile's size is judged by: the same whatever the workers. */
static void fewest_slots(struct zlg_sum_shape *s, int64_t chains) {
  s->row_slots = s->group = min64(ceil_div(chains, s->parts), s->mi);
  s->column_slots = min64(2, s->nj);
}

/* One step to a smaller tile that lasts `least` seconds still: fewer right-hand sides, or the side that takes more
 * memory. Where columns take none they grow as the rows shrink, and tasks last as long as before. */
static bool smaller_tile(const struct zlg_sum *sum, int64_t m, int64_t n, int64_t r, double least,
                         struct zlg_sum_shape *s) {
  const struct unit_costs c = costs_of(sum, s->rt);
  int64_t row_bytes = s->row_slots * row_slot_bytes(sum, s), column_bytes = s->column_slots * column_slot_bytes(sum, s);
  int64_t mt = balanced(m, s->mt / 2), nt = balanced(n, s->nt / 2), wide = s->nt;
  if (column_bytes == 0 && !sum->context->options.tile_columns)
    wide = min64(balanced(n, min64(n, 2 * s->nt)), STARPU_MOST);
  bool rows = mt < s->mt && tile_seconds(&c, (double)mt, (double)wide) >= least;
  bool columns = column_bytes > 0 && nt < s->nt && tile_seconds(&c, (double)s->mt, (double)nt) >= least;
  if (s->rt > RIGHT_SIDES_LEAST)
    s->rt = (s->rt + 1) / 2;
  else if (columns && (column_bytes > row_bytes || !rows))
    s->nt = nt;
  else if (rows)
    s->mt = mt, s->nt = wide;
  else
    return false;
  s->tile_rule = "memory limit";
  count_tiles(sum, m, n, r, s);
  return true;
}

/* Tiles that fit with some chains alive; else shorter ones, with fewer; else with fewer chains in all. */
static bool fit_tiles(const struct zlg_sum *sum, int64_t m, int64_t n, int64_t r, struct zlg_sum_shape *s) {
  static const struct {
    int64_t chains;
    double least;
  } stages[] = {{CHAINS_ALIVE, TIGHT_TASK}, {4, TIGHTER_TASK}, {2, TIGHTEST_TASK}, {1, TIGHTEST_TASK}};
  for (int i = 0; i < 4; i++) {
    int64_t most = sum->context->memory_limit;
    while (fewest_slots(s, stages[i].chains), memory_of(sum, s) > most)
      if (!smaller_tile(sum, m, n, r, stages[i].least, s)) break;
    while (fewest_slots(s, stages[i].chains), memory_of(sum, s) > most && s->parts > stages[i].chains) s->parts /= 2;
    if (memory_of(sum, s) <= most) return true;
  }
  return false;
}

/* Fewer things alive, which changes no bit. A group keeps some chains going and shares what it reads, so it is the last
 * to go. */
static bool fewer_slots(struct zlg_sum_shape *s) {
  int64_t busy = ceil_div(CHAINS_ALIVE, s->parts);
  if (s->row_slots > 2 * s->group)
    s->row_slots = max64(2 * s->group, s->row_slots / 2);
  else if (s->group > busy)
    s->group = max64(busy, s->group / 2), s->row_slots = min64(s->row_slots, 2 * s->group);
  else if (s->column_slots > 4)
    s->column_slots = max64(4, s->column_slots / 2);
  else if (s->row_slots > s->group)
    s->row_slots = max64(s->group, s->row_slots / 2);
  else if (s->column_slots > 2)
    s->column_slots = 2;
  else if (s->group > 1)
    s->row_slots = s->group = s->group / 2;
  else
    return false;
  return true;
}

static int fit_memory(const struct zlg_sum *sum, int64_t m, int64_t n, int64_t r, struct zlg_sum_shape *s) {
  int64_t limit = sum->context->memory_limit;
  if (!fit_tiles(sum, m, n, r, s))
    return zlg_fail(sum->context, ZLG_ELIMIT,
                    "the smallest tiles (%lld x %lld, %lld columns) need %lld bytes and the memory limit is %lld bytes",
                    (long long)s->mt, (long long)s->nt, (long long)s->rt, (long long)memory_of(sum, s),
                    (long long)limit);
  choose_slots(sum, s);
  while ((s->memory_bytes = memory_of(sum, s)) > limit && fewer_slots(s)) continue;
  return ZLG_OK;
}

/* The area bound: every worker busy all the time at its predicted rate. */
static double predicted_seconds(const struct zlg_sum *sum, struct zlg_sum_shape *s) {
  double rate = 0, tiles = (double)s->mi * (double)s->nj * (double)s->rc;
  sum->shape(sum->args, s->mt, s->nt, s->rt, false);
  s->kind_seconds[0] = NAN;
  s->tile_seconds = zlg_model_base(sum->codelet, sum->args, ZLG_WORKER_CPU);
  s->tile_calibrated = zlg_model_has_curve(sum->codelet, ZLG_WORKER_CPU);
  for (int kind = ZLG_WORKER_CPU; kind <= ZLG_WORKER_CUDA; kind++) {
    int workers = sum->context->kinds[kind];
    double seconds = workers ? tiles * zlg_model_seconds(sum->codelet, sum->args, (zlg_worker_kind)kind) : NAN;
    s->kind_seconds[kind] = seconds;
    if (workers > 0) rate += workers / seconds;
  }
  return rate > 0 ? 1 / rate : NAN;
}

/* Bytes read of each operand. Tiles of columns that have a slot of their own are read once and stay; the others are
 * read in every pass, and in every turn of right-hand sides. */
struct traffic {
  double p, q, x;
};

static struct traffic traffic_of(const struct zlg_sum *sum, const struct zlg_sum_shape *s, int64_t m, int64_t n,
                                 int64_t r) {
  double es = (double)zlg_type_size(sum->p->type), d = (double)sum->p->columns;
  int64_t passes = ceil_div(s->mi, s->group), stay = s->nj <= s->column_slots ? s->nj : 2 * s->column_slots - s->nj;
  double again = (double)(n - min64(n, max64(stay, 0) * s->nt));
  return (struct traffic){.p = es * (double)s->rc * (double)m * d,
                          .q = es * d * ((double)n + (double)(s->rc * passes - 1) * again),
                          .x = es * (double)r * ((double)n + (double)(passes - 1) * again)};
}

/* What passes the buses where the models share out the work and schedulers do as they like: every column goes to every
 * device once a pass, a block of rows to where one of its chains runs; a chain's sums go to the next task's worker. */
static void fill_bus(const struct zlg_sum *sum, struct zlg_sum_shape *s, const struct traffic *read, int64_t m,
                     int64_t r) {
  double nodes = sum->context->memory_nodes - 1, part = 0;
  for (int kind = ZLG_WORKER_OPENCL; kind <= ZLG_WORKER_CUDA; kind++)
    if (sum->context->kinds[kind]) part += sum->context->kinds[kind] * s->seconds / s->kind_seconds[kind];
  if (!(part > 0)) return;
  double sums = 8 * (double)m * (double)r, moves = (double)(s->nj - s->parts) * part * (1 - part / nodes);
  s->bytes_to_devices = nodes * (read->q + read->x) + fmin(nodes, (double)s->nj * part) * read->p + moves * sums;
  s->bytes_from_devices = (moves + part * (double)s->parts) * sums;
}

static double file_bytes(const zlg_matrix *matrix, double bytes) {
  return matrix && matrix->path ? bytes : 0;
}

/* What there is most of: seconds of reading and writing files, of moving tiles, of computing. */
static const char *bound_of(const struct zlg_sum *sum, const struct zlg_sum_shape *s, const struct traffic *read) {
  double disk = file_bytes(sum->p, read->p) + file_bytes(sum->q, read->q) + file_bytes(sum->x, read->x) +
                file_bytes(sum->y, s->bytes_written);
  if (disk / NOMINAL_DISK > s->seconds) return "disk";
  struct unit_costs c = costs_of(sum, s->rt);
  double mt = (double)s->mt, nt = (double)s->nt;
  return mt * c.row + nt * c.column > mt * nt * c.pair ? "memory" : "compute";
}

static void fill_costs(const struct zlg_sum *sum, int64_t m, int64_t n, int64_t r, struct zlg_sum_shape *s) {
  struct zlg_count count = {0};
  const struct traffic read = traffic_of(sum, s, m, n, r);
  sum->shape(sum->args, m, n, r, true);
  sum->codelet->count(sum->args, &count);
  s->flops = count.flops;
  s->work = count.work;
  s->bytes_read = read.p + read.q + read.x;
  s->bytes_written = (double)zlg_type_size(sum->p->type) * (double)m * (double)r;
  s->seconds = predicted_seconds(sum, s);
  s->bound = bound_of(sum, s, &read);
  fill_bus(sum, s, &read, m, r);
}

static bool runs_direct(const struct zlg_sum *sum, int64_t m, int64_t n, int64_t r, const struct zlg_sum_shape *s) {
  if (ZLG_SIMULATED || s->tasks > 2 || sum->context->options.direct_seconds <= 0) return false;
  const zlg_matrix *const used[] = {sum->p, sum->q, sum->x, sum->y};
  for (int i = 0; i < 4; i++)
    if (used[i] && !used[i]->data && used[i]->columns > 0 && used[i]->rows > 0) return false;
  struct unit_costs c = costs_of(sum, r);
  return tile_seconds(&c, (double)m, (double)n) < sum->context->options.direct_seconds;
}

int zlg_sum_plan(const struct zlg_sum *sum, int64_t m, int64_t n, int64_t r, struct zlg_sum_shape *shape) {
  *shape = (struct zlg_sum_shape){.mt = 1,
                                  .nt = 1,
                                  .rt = 1,
                                  .parts = 1,
                                  .group = 1,
                                  .row_slots = 1,
                                  .column_slots = 1,
                                  .kind_seconds = {NAN, NAN, NAN, NAN},
                                  .bound = "memory",
                                  .tile_rule = "size"};
  if (m == 0 || r == 0) {
    shape->direct = true;
    return ZLG_OK;
  }
  int64_t pairs, all;
  if (!zlg_mul64(m, max64(n, 1), &pairs) || !zlg_mul64(pairs, r, &all))
    return zlg_fail(sum->context, ZLG_EOVERFLOW, "%lld x %lld pairs times %lld columns do not fit in 64 bits",
                    (long long)m, (long long)n, (long long)r);
  choose_tile(sum, m, n, r, shape);
  count_tiles(sum, m, n, r, shape);
  int status = fit_memory(sum, m, n, r, shape);
  if (status != ZLG_OK) return status;
  fill_costs(sum, m, n, r, shape);
  shape->direct = runs_direct(sum, m, n, r, shape);
  if (shape->direct) shape->bytes_to_devices = shape->bytes_from_devices = 0;
  return ZLG_OK;
}
