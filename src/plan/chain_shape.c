/* How a chain is cut, and what it costs. What can change a bit of the result (which links are one, whether vectors of
 * links that are not square are done in two stages) comes from sizes alone, and from a memory limit that is too small
 * for one stage; blocks of vectors, how much is alive at once, and two stages of square links change none. */
#include <math.h>
#include <string.h>

#include "codelets/common/model.h"
#include "src/core/error.h"
#include "src/core/memory.h"
#include "src/core/simulation.h"
#include "src/plan/chain.h"
#include "src/plan/graph.h"

#define NOMINAL_BYTES 1e10
#define CACHED_BYTES 3e10
#define TASK_LEAST 5e-4 /* by the nominal rates; a core takes about twice as long */
#define TASK_SHORT 5e-5 /* where there would be fewer tasks than workers */
#define TASK_MOST 4e-3
#define TASKS 128      /* wanted, so that workers of different speed end together; those that are alike need fewer */
#define ALL_ALIKE 16   /* fewer tasks than this are a power of two, so that two or four workers end together */
#define TASK_FLOPS 1e6 /* of a core while a task is made and ended */
#define SPLIT_VECTOR 2e-3
#define SPLIT_VECTORS 128 /* so many are tasks enough */
#define SPLIT_LEAST 2e-3  /* of all vectors together, so that a barrier does not show */
#define SPLIT_BUSY 0.75   /* the share of the workers that vectors should keep busy */
#define LINE_BYTES 4096   /* of a file's row that a block takes at least */
#define STARPU_MOST INT64_C(0x7fffffff)

void zlg_chain_args(const struct zlg_chain *chain, const struct zlg_links *links, int begin, int count,
                    struct zlg_kron_factor_args *args) {
  args->type = chain->type;
  args->count = count;
  memcpy(args->p, links->p + begin, (size_t)count * sizeof *args->p);
  memcpy(args->q, links->q + begin, (size_t)count * sizeof *args->q);
  args->vectors = 1;
  args->x_order = args->y_order = ZLG_ROW_MAJOR;
  args->alpha = 1, args->beta = 0, args->y_bytes = 0;
  zlg_chain_turn(args);
}

static double seconds_of(const struct zlg_kron_factor_args *args, double bytes_a_second) {
  struct zlg_count count = {0};
  zlg_codelet_kron_factor.count(args, &count);
  return fmax(count.flops / (args->type == ZLG_F32 ? 1e11 : 5e10), count.bytes / bytes_a_second);
}

double zlg_chain_seconds(const struct zlg_kron_factor_args *args) {
  return seconds_of(args, NOMINAL_BYTES);
}

double zlg_chain_direct_seconds(const struct zlg_kron_factor_args *args) {
  return seconds_of(args, CACHED_BYTES);
}

static double flops_of(const struct zlg_kron_factor_args *args, int64_t vectors) {
  struct zlg_count count = {0};
  struct zlg_kron_factor_args all = *args;
  all.vectors = vectors;
  zlg_codelet_kron_factor.count(&all, &count);
  return count.flops;
}

/* The most elements of a vector at any time. */
static double width_of(const struct zlg_kron_factor_args *args) {
  double size = 1, most;
  for (int i = 0; i < args->count; i++) size *= args->p[i];
  most = size;
  for (int i = 0; i < args->count; i++) {
    size = size / args->p[args->turn[i]] * args->q[args->turn[i]];
    most = fmax(most, size);
  }
  return most;
}

/* ---- stages ----------------------------------------------------------------------------------------------------- */

static int64_t product(const int32_t *sizes, int begin, int end) {
  int64_t size = 1;
  for (int i = begin; i < end; i++) size *= sizes[i];
  return size;
}

static void make_stage(const struct zlg_chain *chain, const struct zlg_links *links, int begin, int end,
                       struct zlg_chain_stage *stage) {
  *stage = (struct zlg_chain_stage){.leading = begin == 0};
  zlg_chain_args(chain, links, begin, end - begin, &stage->args);
  for (int i = 0; i < begin; i++) stage->factors += (int64_t)links->p[i] * links->q[i];
  stage->k = product(links->p, begin, end), stage->l = product(links->q, begin, end);
}

static void one_stage(const struct zlg_chain *chain, int64_t vectors, struct zlg_chain_shape *s) {
  s->stages = 1;
  s->together = 1, s->passes = 1, s->workspace = 0;
  make_stage(chain, &s->links, 0, s->links.count, &s->stage[0]);
  s->stage[0].lines = vectors;
}

/* Two stages that meet before link `cut`, the trailing one or the leading one first. */
static void two_stages(const struct zlg_chain *chain, int cut, bool trailing_first, struct zlg_chain_shape *s) {
  struct zlg_chain_stage *leading = &s->stage[trailing_first], *trailing = &s->stage[!trailing_first];
  s->stages = 2;
  make_stage(chain, &s->links, 0, cut, leading);
  make_stage(chain, &s->links, cut, s->links.count, trailing);
  trailing->lines = trailing_first ? leading->k : leading->l;
  leading->lines = s->together * (trailing_first ? trailing->l : trailing->k);
  s->workspace = s->together * (trailing_first ? leading->k * trailing->l : leading->l * trailing->k);
}

/* No device: the workers are cores. */
static bool are_alike(const struct zlg_chain *chain) {
  const int *kinds = chain->context->kinds;
  return !kinds[ZLG_WORKER_OPENCL] && !kinds[ZLG_WORKER_CUDA];
}

/* Square links on processors: two stages, the trailing one first, make the same sums as one, so that the number of
 * workers may decide. */
static bool splits_freely(const struct zlg_chain *chain, const struct zlg_links *links) {
  if (!are_alike(chain)) return false;
  for (int i = 0; i < links->count; i++)
    if (links->p[i] != links->q[i]) return false;
  return true;
}

/* Flops, more of them where there are fewer lines to share out than wanted, and the passage through the workspace. */
static double stages_cost(const struct zlg_chain_shape *s, double wanted, double *width) {
  double cost = 16 * (double)s->workspace;
  /* Each line of the grid is a task there. */
  if (s->together > 1) cost += TASK_FLOPS * (double)s->stage[s->stage[0].leading].lines;
  *width = 0;
  for (int i = 0; i < 2; i++) {
    const struct zlg_chain_stage *stage = &s->stage[i];
    const double lines = (double)stage->lines / (stage->leading ? 16 : 1);
    const int64_t vectors = stage->leading ? stage->lines : stage->lines * s->together;
    cost += flops_of(&stage->args, vectors) * fmax(1, wanted / fmax(lines, 1));
    *width = fmax(*width, width_of(&stage->args) * (stage->leading ? 16 : (double)s->together));
  }
  return cost;
}

static void best_stages(const struct zlg_chain *chain, struct zlg_chain_shape *s) {
  const bool freely = splits_freely(chain, &s->links);
  const double wanted = freely ? 4 * (double)max64(chain->context->kinds[ZLG_WORKER_CPU], 1) : TASKS / 2;
  double best = INFINITY, best_width = INFINITY, width;
  int cut = 1;
  bool trailing_first = true;
  for (int c = 1; c < s->links.count; c++)
    for (int first = 1; first >= freely; first--) {
      two_stages(chain, c, first, s);
      const double cost = stages_cost(s, wanted, &width);
      if (cost > 1.001 * best || (cost > 0.999 * best && width >= best_width)) continue;
      best = cost, best_width = width, cut = c, trailing_first = first;
    }
  two_stages(chain, cut, trailing_first, s);
}

/* True where a column of the matrix is one stretch, or all of them together are: what a grid can be laid over. */
static bool is_tight(const zlg_matrix *matrix) {
  return !matrix || matrix->order == ZLG_COLUMN_MAJOR || matrix->ld == matrix->columns;
}

static bool is_interleaved(const zlg_matrix *matrix) {
  return matrix && matrix->order == ZLG_ROW_MAJOR && matrix->columns > 1;
}

static bool can_split(const struct zlg_chain *chain, const struct zlg_chain_shape *s) {
  if (s->links.count < 2 || !is_tight(chain->x) || !is_tight(chain->y)) return false;
  return is_interleaved(chain->x) == is_interleaved(chain->y);
}

/* Vectors that lie interleaved and share a line of the cache. */
static int64_t line_elements(const struct zlg_chain *chain) {
  return 64 / (int64_t)zlg_type_size(chain->type);
}

/* Whole vectors would leave workers without work. */
static bool leaves_idle(const struct zlg_chain *chain, int64_t vectors, const struct zlg_chain_shape *s) {
  const bool interleaved = is_interleaved(chain->x) || is_interleaved(chain->y);
  const int64_t pieces = interleaved ? ceil_div(vectors, line_elements(chain)) : vectors;
  const int64_t workers = max64(chain->context->kinds[ZLG_WORKER_CPU], 1);
  const double busy = (double)pieces / (double)(ceil_div(pieces, workers) * workers);
  return busy < SPLIT_BUSY && zlg_chain_seconds(&s->stage[0].args) * (double)vectors > SPLIT_LEAST;
}

/* Few long vectors, or vectors that are too long to be handled whole. */
static bool should_split(const struct zlg_chain *chain, int64_t vectors, const struct zlg_chain_shape *s) {
  const int64_t rows = chain->context->options.tile_rows;
  const struct zlg_kron_factor_args *args = &s->stage[0].args;
  const double width = width_of(args) * (double)zlg_type_size(chain->type);
  if (rows > 0) return rows < s->links.l;
  if (max64(s->links.k, s->links.l) > STARPU_MOST) return true;
  if (width > (double)chain->context->memory_limit / 16) return true;
  if (splits_freely(chain, &s->links)) return leaves_idle(chain, vectors, s);
  return vectors < SPLIT_VECTORS && zlg_chain_seconds(args) > SPLIT_VECTOR * (double)max64(vectors, 2);
}

/* ---- blocks ----------------------------------------------------------------------------------------------------- */

/* Lines per task: tasks of about a millisecond, in whole registers of the processor. */
static void choose_block(const struct zlg_chain *chain, int64_t pass_lines, bool interleaved,
                         struct zlg_chain_stage *stage) {
  const double line = zlg_chain_seconds(&stage->args), all = line * (double)pass_lines;
  const int *kinds = chain->context->kinds;
  const bool alike = are_alike(chain);
  const double wanted = alike ? 2 * max64(kinds[ZLG_WORKER_CPU], 1) : TASKS;
  const double most = kinds[ZLG_WORKER_CUDA] ? 8 * TASK_MOST : TASK_MOST;
  const double target = fmin(fmax(all / wanted, TASK_LEAST), most);
  double pieces = ceil(all / target - 0.01);
  /* Short work: one task a worker, where that is still worth a task. */
  pieces = fmax(pieces, fmin(chain->context->worker_count, floor(all / TASK_SHORT)));
  pieces = fmin(fmax(pieces, 1), (double)stage->lines);
  if (pieces > 2 && pieces < ALL_ALIKE) pieces = exp2(ceil(log2(pieces)));
  const int64_t register_lines = line_elements(chain);
  stage->block = ceil_div(stage->lines, (int64_t)pieces);
  /* Few vectors to a task are long ones, which need no neighbours to fill registers; where they lie interleaved, a
   * core does, and a device is better off with more tasks. */
  if (stage->block >= 8 * register_lines || stage->leading || (interleaved && alike))
    stage->block = ceil_div(stage->block, register_lines) * register_lines;
}

static void bound_block(struct zlg_chain_stage *stage, int64_t together) {
  const int64_t elements = max64(stage->k, stage->l) * (stage->leading ? 1 : together);
  stage->block = min64(stage->block, max64(1, STARPU_MOST / max64(elements, 1)));
  stage->block = max64(1, min64(stage->block, stage->lines));
  stage->tasks = ceil_div(stage->lines, stage->block);
}

static bool narrow_lines(const zlg_matrix *matrix) {
  return matrix && !matrix->data && matrix->order == ZLG_ROW_MAJOR;
}

/* Of vectors that lie interleaved, on cores: four lines of the cache, fewer where workers would be left without a
 * block. */
static int64_t wide_block(const struct zlg_chain *chain, int64_t vectors) {
  if (!are_alike(chain)) return 1;
  int64_t wide = 4 * line_elements(chain);
  while (wide > line_elements(chain) && ceil_div(vectors, wide) < chain->context->worker_count) wide /= 2;
  return wide;
}

static void choose_blocks(const struct zlg_chain *chain, struct zlg_chain_shape *s) {
  const zlg_context_options *options = &chain->context->options;
  for (int i = 0; i < s->stages; i++) {
    struct zlg_chain_stage *stage = &s->stage[i];
    const bool interleaved = s->stages == 2 ? stage->leading : is_interleaved(chain->x) || is_interleaved(chain->y);
    choose_block(chain, stage->lines * (s->stages == 2 && !stage->leading ? s->together : 1), interleaved, stage);
    const int64_t least = LINE_BYTES / (int64_t)zlg_type_size(chain->type);
    if (s->stages == 1 && (narrow_lines(chain->x) || narrow_lines(chain->y))) stage->block = max64(stage->block, least);
    if (s->stages == 1 && interleaved) stage->block = max64(stage->block, wide_block(chain, stage->lines));
    if (s->stages == 2 && stage->leading) stage->block = max64(stage->block, 64);
    if (s->stages == 1 && options->tile_columns) stage->block = options->tile_columns;
    if (s->stages == 2 && options->tile_rows) stage->block = max64(1, options->tile_rows / stage->l);
    if (s->stages == 2 && !stage->leading && s->together > 1) stage->block = 1; /* a line of the grid is a block */
    bound_block(stage, s->together);
  }
}

/* ---- memory ----------------------------------------------------------------------------------------------------- */

static int64_t scratch_bytes(const struct zlg_chain_shape *s) {
  int64_t most = 0;
  for (int i = 0; i < s->stages; i++) {
    struct zlg_kron_factor_args args = s->stage[i].args;
    args.vectors = s->stage[i].leading || s->together == 1 ? s->stage[i].block : s->together;
    most = max64(most, (int64_t)ZLG_CPU(zlg_kron_factor_scratch)(&args));
    args.x_order = args.y_order = ZLG_COLUMN_MAJOR;
    most = max64(most, (int64_t)ZLG_CPU(zlg_kron_factor_scratch)(&args));
    args.y_order = ZLG_ROW_MAJOR;
    if (s->stages == 1) most = max64(most, (int64_t)ZLG_CPU(zlg_kron_factor_scratch)(&args));
  }
  return most;
}

/* Of the tiles of one task that are staged; the workspace never is. */
static int64_t slot_bytes(const struct zlg_chain *chain, const struct zlg_chain_shape *s) {
  const struct zlg_chain_stage *first = &s->stage[0], *last = &s->stage[s->stages - 1];
  const int64_t size = (int64_t)zlg_type_size(chain->type);
  int64_t x = 0, y = 0;
  if (chain->x && zlg_tile_is_staged(chain->x))
    x = size * first->block * first->k * (first->leading || s->stages == 1 ? 1 : s->together);
  if (chain->y && zlg_tile_is_staged(chain->y))
    y = size * last->block * last->l * (last->leading || s->stages == 1 ? 1 : s->together);
  return s->stages == 1 ? x + y : max64(x, y);
}

static int64_t memory_of(const struct zlg_chain *chain, const struct zlg_chain_shape *s) {
  const int64_t size = (int64_t)zlg_type_size(chain->type);
  const int64_t cores = min64(chain->context->kinds[ZLG_WORKER_CPU], s->window);
  return size * (s->links.elements + s->workspace) + cores * scratch_bytes(s) + s->window * slot_bytes(chain, s);
}

static bool smaller_blocks(const struct zlg_chain_shape *from, struct zlg_chain_shape *s) {
  bool smaller = false;
  for (int i = 0; i < from->stages; i++)
    if (s->stage[i].block > 1) {
      s->stage[i].block = (s->stage[i].block + 1) / 2;
      bound_block(&s->stage[i], s->together);
      smaller = true;
    }
  return smaller;
}

static int fit_memory(const struct zlg_chain *chain, struct zlg_chain_shape *s) {
  const int64_t limit = chain->context->memory_limit, workers = max64(chain->context->worker_count, 1);
  s->window = 32 + 16 * workers;
  if (slot_bytes(chain, s) > 0) s->window = 2 + 2 * workers;
  s->window = max64(1, min64(s->window, max64(s->stage[0].tasks, s->stages == 2 ? s->stage[1].tasks : 1)));
  while (s->window > workers + 1 && memory_of(chain, s) > limit) s->window = max64(workers + 1, s->window / 2);
  while (memory_of(chain, s) > limit && smaller_blocks(s, s)) continue;
  while (s->window > 1 && memory_of(chain, s) > limit) s->window--;
  s->memory_bytes = memory_of(chain, s);
  if (s->memory_bytes <= limit) return ZLG_OK;
  return zlg_fail(chain->context, ZLG_ELIMIT,
                  "a chain of factors over vectors of %lld elements needs %lld bytes at least and the memory limit is "
                  "%lld bytes",
                  (long long)max64(s->links.k, s->links.l), (long long)s->memory_bytes, (long long)limit);
}

/* ---- the whole -------------------------------------------------------------------------------------------------- */

static void predict(const struct zlg_chain *chain, struct zlg_chain_shape *s) {
  double rate = 0;
  s->kind_seconds[0] = NAN;
  for (int kind = ZLG_WORKER_CPU; kind <= ZLG_WORKER_CUDA; kind++) {
    const int workers = chain->context->kinds[kind];
    double seconds = workers ? 0 : NAN;
    for (int i = 0; i < s->stages && workers; i++) {
      struct zlg_kron_factor_args args = s->stage[i].args;
      args.vectors = s->stage[i].leading || s->together == 1 ? s->stage[i].block : s->together;
      seconds += (double)(s->stage[i].tasks * s->passes) *
                 zlg_model_seconds(&zlg_codelet_kron_factor, &args, (zlg_worker_kind)kind);
    }
    s->kind_seconds[kind] = seconds;
    if (workers > 0) rate += workers / seconds;
  }
  s->seconds = rate > 0 ? 1 / rate : NAN;
}

static int check_sizes(const struct zlg_chain *chain, int64_t vectors, const struct zlg_links *links) {
  const int64_t size = (int64_t)zlg_type_size(chain->type);
  int64_t elements, bytes;
  if (zlg_mul64(max64(links->k, links->l), max64(vectors, 1), &elements) && zlg_mul64(elements, size, &bytes))
    return ZLG_OK;
  return zlg_fail(chain->context, ZLG_EOVERFLOW, "%lld vectors of %lld elements: expected fewer than 2^63 bytes",
                  (long long)vectors, (long long)max64(links->k, links->l));
}

int zlg_chain_plan(const struct zlg_chain *chain, int64_t vectors, struct zlg_chain_shape *s) {
  int status = zlg_chain_link(chain, ZLG_KRON_FACTORS, &s->links);
  if (status == ZLG_OK) status = check_sizes(chain, vectors, &s->links);
  if (status != ZLG_OK) return status;
  s->stages = 0;
  s->together = s->passes = s->window = 1;
  s->workspace = s->memory_bytes = s->tasks = 0;
  s->flops = s->seconds = 0;
  if (s->links.count == 0 || vectors == 0) return ZLG_OK;
  one_stage(chain, vectors, s);
  s->flops = flops_of(&s->stage[0].args, vectors);
  if (can_split(chain, s) && should_split(chain, vectors, s)) {
    const bool interleaved = is_interleaved(chain->x) || is_interleaved(chain->y);
    s->together = interleaved ? vectors : 1;
    s->passes = interleaved ? 1 : vectors;
    best_stages(chain, s);
    s->flops = 0;
    for (int i = 0; i < 2; i++) {
      const int64_t lines = s->stage[i].leading ? s->stage[i].lines : s->stage[i].lines * s->together;
      s->flops += (double)s->passes * flops_of(&s->stage[i].args, lines);
    }
  }
  choose_blocks(chain, s);
  status = fit_memory(chain, s);
  if (status != ZLG_OK) return status;
  for (int i = 0; i < s->stages; i++) s->tasks += s->passes * s->stage[i].tasks;
  predict(chain, s);
  return ZLG_OK;
}

int zlg_chain_cost(const struct zlg_chain *chain, int64_t vectors, zlg_cost *cost) {
  struct zlg_chain_shape s;
  int status = zlg_chain_plan(chain, vectors, &s);
  if (status != ZLG_OK) return status;
  const double size = (double)zlg_type_size(chain->type), columns = (double)vectors;
  *cost = (zlg_cost){.flops = s.flops,
                     .work = s.flops,
                     .bytes_read = size * ((double)s.links.k * columns + (double)s.links.elements),
                     .bytes_written = size * (double)s.links.l * columns,
                     .memory_bytes = s.memory_bytes,
                     .seconds = s.seconds,
                     .tasks = s.tasks,
                     .tile_rows = s.stages ? s.stage[s.stages - 1].l : 1,
                     .tile_columns = s.stages ? s.stage[s.stages - 1].block : 1,
                     .kind_seconds = {NAN, NAN, NAN, NAN},
                     .bound = "memory",
                     .tile_rule = s.links.count > 0 && s.tasks == 1 ? "size" : "time"};
  if (s.stages == 0) return ZLG_OK;
  memcpy(cost->kind_seconds, s.kind_seconds, sizeof cost->kind_seconds);
  struct zlg_kron_factor_args task = s.stage[0].args;
  task.vectors = s.stage[0].block;
  cost->tile_seconds = zlg_model_base(&zlg_codelet_kron_factor, &task, ZLG_WORKER_CPU);
  cost->tile_calibrated = zlg_model_has_curve(&zlg_codelet_kron_factor, ZLG_WORKER_CPU);
  if (s.flops / (chain->type == ZLG_F32 ? 1e11 : 5e10) > (cost->bytes_read + cost->bytes_written) / NOMINAL_BYTES)
    cost->bound = "compute";
  double device = 0;
  for (int kind = ZLG_WORKER_OPENCL; kind <= ZLG_WORKER_CUDA; kind++)
    if (chain->context->kinds[kind]) device += chain->context->kinds[kind] * s.seconds / s.kind_seconds[kind];
  const double between = size * (double)s.workspace * (double)s.passes;
  cost->bytes_to_devices = device * (size * (double)s.links.k * columns + between) +
                           (device > 0 ? size * (double)s.links.elements * (chain->context->memory_nodes - 1) : 0);
  cost->bytes_from_devices = device * (cost->bytes_written + between);
  return ZLG_OK;
}
