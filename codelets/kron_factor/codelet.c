/* StarPU glue of a chain of Kronecker factors. Buffers: 0 X (StarPU matrix; a row-major block has nx = K, ny = vectors,
 * a column-major one nx = vectors, ny = K), 1 the factors (vector), 2 Y (as X, L elements a vector).
 * cl_arg: struct zlg_kron_factor_args.
 *
 * Devices need memory for what lies between two launches; it is the worker's (zlg_device_scratch), 32 MiB or two
 * vectors where those are larger, so that a task has the same three buffers on every kind of worker. */
#include <stdio.h>

#include "codelets/common/codelet.h"
#include "codelets/common/glue.h"
#include "codelets/common/program.h"
#include "codelets/kron_factor/args.h"
#include "zellige/status.h"

/* Multiply-adds of one vector, and the elements of its ends. */
static double additions(const struct zlg_kron_factor_args *args, double *k, double *l) {
  double size = 1, sum = 0;
  for (int i = 0; i < args->count; i++) size *= args->p[i];
  *k = size;
  for (int i = 0; i < args->count; i++) {
    const int f = args->turn[i];
    size = size / args->p[f] * args->q[f];
    sum += size * args->p[f];
  }
  *l = size;
  return sum;
}

void zlg_kron_factor_count(const void *arguments, struct zlg_count *count) {
  const struct zlg_kron_factor_args *args = arguments;
  const double vectors = (double)args->vectors, size = (double)zlg_type_size(args->type);
  double k, l, factors = 0;
  const double fmas = vectors * additions(args, &k, &l);
  for (int i = 0; i < args->count; i++) factors += (double)args->p[i] * args->q[i];
  *count = (struct zlg_count){.flops = 2 * fmas,
                              .slots = fmas,
                              .bytes = (vectors * (k + l * (args->beta != 0 ? 2 : 1)) + factors) * size,
                              .work = 2 * fmas,
                              .type = args->type};
}

uint32_t zlg_kron_factor_footprint(const void *arguments) {
  const struct zlg_kron_factor_args *args = arguments;
  const int64_t parts[] = {args->type, args->vectors, args->x_order, args->y_order, args->beta != 0, args->count};
  uint32_t hash = zlg_hash_parts(parts, sizeof parts / sizeof *parts);
  for (int i = 0; i < args->count; i++) {
    hash = zlg_hash_u64(hash, (uint64_t)args->p[i]);
    hash = zlg_hash_u64(hash, (uint64_t)args->q[i]);
    hash = zlg_hash_u64(hash, (uint64_t)args->turn[i]);
  }
  return hash;
}

void zlg_kron_factor_family(const void *arguments, struct zlg_family *family) {
  const struct zlg_kron_factor_args *args = arguments;
  double k, l;
  const double fmas = additions(args, &k, &l);
  *family = (struct zlg_family){.what = {args->type, args->x_order, args->y_order},
                                .width = {(int64_t)(fmas / l + 0.5), (int64_t)k},
                                .size = (double)args->vectors * fmas};
}

bool zlg_kron_factor_calibration(int index, void *arguments, struct zlg_case *what) {
  enum { POINTS = 4 };
  static const struct {
    int32_t size, count;
    int64_t vectors[POINTS]; /* the third is no point of the curve */
  } shapes[] = {{8, 4, {16, 64, 181, 1024}}, {32, 3, {1, 8, 45, 256}}, {128, 2, {1, 8, 45, 256}}};
  enum { SHAPES = sizeof shapes / sizeof *shapes };
  const int point = index % POINTS, shape = index / POINTS % SHAPES, type = index / POINTS / SHAPES;
  if (index < 0 || type > 1) return false;
  const int32_t size = shapes[shape].size, count = shapes[shape].count;
  const int64_t vectors = shapes[shape].vectors[point];
  struct zlg_kron_factor_args *args = arguments;
  *args = (struct zlg_kron_factor_args){.type = type ? ZLG_F64 : ZLG_F32,
                                        .count = count,
                                        .vectors = vectors,
                                        .x_order = ZLG_ROW_MAJOR,
                                        .y_order = ZLG_ROW_MAJOR,
                                        .alpha = 1};
  int64_t k = 1;
  for (int i = 0; i < args->count; i++) {
    args->p[i] = args->q[i] = size;
    args->turn[i] = (int8_t)(args->count - 1 - i);
    k *= size;
  }
  const size_t element = zlg_type_size(args->type);
  *what = (struct zlg_case){.brief = type == 0 && shape == 0,
                            .unseen = point == 2,
                            .buffer_count = 3,
                            .buffers = {{k, vectors, element, ZLG_CASE_IN},
                                        {count * size * size, 0, element, ZLG_CASE_IN},
                                        {k, vectors, element, ZLG_CASE_OUT}}};
  snprintf(what->label, sizeof what->label, "%s-%dx%d", zlg_type_name(args->type), (int)size, (int)count);
  return true;
}

static int run_cpu(const void *arguments, const struct zlg_operand *at) {
  const struct zlg_kron_factor_args *args = arguments;
  const size_t bytes = ZLG_CPU(zlg_kron_factor_scratch)(args);
  void *scratch = bytes > 0 ? zlg_scratch(bytes) : NULL;
  if (bytes > 0 && !scratch) return ZLG_ENOMEM;
  const struct zlg_kron_factor_operands operands = {at[0].data, at[0].ld, at[1].data, at[2].data, at[2].ld};
  ZLG_CPU(zlg_kron_factor_cpu)(args, &operands, scratch);
  return ZLG_OK;
}

static void cpu_function(void *buffers[], void *cl_arg) {
  struct zlg_kron_factor_args *args = cl_arg;
  args->head.start = zlg_clock();
  const struct zlg_operand at[] = {zlg_matrix_operand(buffers[0]), zlg_vector_operand(buffers[1]),
                                   zlg_matrix_operand(buffers[2])};
  args->head.status = run_cpu(args, at);
}

/* How one launch is laid out on a device: a run of factors that are neighbours, applied one after the other. The names
 * are those of device.clc. */
#define STAGES_MOST 8
#define ROWS_MOST 8

struct run {
  int begin, end;                  /* of turn[] */
  int low, high;                   /* the factors are low … high */
  int64_t p, q;                    /* of them all */
  int64_t lead, trail;             /* extents on both sides when the run begins */
  bool x_by_element, y_by_element; /* column-major: the same element of all vectors lies together */
};

struct layout {
  int threads, lanes, rc, columns, x_run, y_run;
  int stages, even, odd, factors; /* a chain in local memory */
  struct stage {
    int lead, p, q, trail, rows, from, at;
  } stage[STAGES_MOST];
  int chunk, rows, jt, pitch; /* stages = 0: one factor by chunks */
};

static int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

static int blocks_of(int64_t q, int64_t most) {
  return (int)((q + most - 1) / most);
}

/* Columns that lie side by side in memory, of a tile's: all, where the same element of many vectors or a long trail
 * does. */
static int side_by_side(bool by_element, int64_t trail, int columns, int enough) {
  return by_element || trail >= enough ? columns : (int)trail;
}

static void runs_of_columns(struct layout *l, const struct run *run, bool processor) {
  const int enough = processor ? l->lanes : 32;
  l->x_run = side_by_side(run->x_by_element, run->trail, l->columns, enough);
  l->y_run = side_by_side(run->y_by_element, run->trail, l->columns, enough);
  /* One thread stages all of a tile: runs shorter than a vector need not divide it. */
  if (processor && l->x_run < l->columns) l->x_run = 1;
  if (processor && l->y_run < l->columns) l->y_run = 1;
}

/* The stages of a run in local memory; false where one is too wide to be one. */
static bool lay_stages(struct layout *l, const struct zlg_kron_factor_args *args, const struct run *run) {
  enum { WIDEST = 1 << 13 };
  int32_t extent[STAGES_MOST];
  int from[STAGES_MOST], offset = 0;
  int64_t width = run->p;
  for (int f = run->low; f <= run->high; f++) {
    extent[f - run->low] = args->p[f];
    from[f - run->low] = offset;
    if (width > WIDEST || (int64_t)args->p[f] * args->q[f] > WIDEST * 8) return false;
    offset += args->p[f] * args->q[f];
  }
  l->stages = run->end - run->begin;
  l->even = (int)width;
  for (int s = 0; s < l->stages; s++) {
    const int f = args->turn[run->begin + s], place = f - run->low;
    struct stage *stage = &l->stage[s];
    *stage = (struct stage){1, args->p[f], args->q[f], 1, 0, from[place], l->factors};
    for (int i = 0; i < place; i++) stage->lead *= extent[i];
    for (int i = place + 1; i <= run->high - run->low; i++) stage->trail *= extent[i];
    const int blocks = blocks_of(args->q[f], ROWS_MOST);
    stage->rows = blocks_of(args->q[f], blocks);
    l->factors += (args->p[f] * blocks * stage->rows + 3) / 4 * 4;
    extent[place] = args->q[f];
    width = (int64_t)stage->lead * args->q[f] * stage->trail;
    if (width > WIDEST) return false;
    int *half = s % 2 ? &l->even : &l->odd;
    if (width > *half) *half = (int)width;
  }
  return true;
}

/* Cores: a thread has all of a tile, in vectors. */
static bool chain_on_processor(struct layout *l, const struct run *run, const struct zlg_device_profile *profile,
                               int64_t size) {
  const int64_t most = least(65536, (int64_t)profile->local_bytes / 4) / size / (l->even + l->odd);
  l->threads = 1;
  l->columns = (int)least(most / l->lanes, 4) * l->lanes;
  l->rc = l->lanes * size >= 64 ? 2 : 1;
  runs_of_columns(l, run, true);
  return l->columns > 0 && l->factors * size <= least(262144, (int64_t)profile->local_bytes / 4);
}

/* GPUs: local memory stays under 32 KiB, which every device has. Tiles whose columns lie side by side start at
 * multiples of 32 bytes; shorter runs are taken an odd number of times, which keeps threads out of one another's banks.
 */
static bool chain_on_gpu(struct layout *l, const struct run *run, int64_t size) {
  const int64_t most = least(20480 / size / (l->even + l->odd), 128), sector = 32 / size;
  const bool shorter = run->trail < 32 && !(run->x_by_element && run->y_by_element);
  l->threads = 128;
  l->rc = 2;
  if (shorter) {
    const int64_t times = most / run->trail;
    l->columns = (int)(run->trail * (times % 2 ? times : times - 1));
  } else {
    l->columns = (int)(most / sector * sector);
  }
  runs_of_columns(l, run, false);
  return l->columns >= (shorter ? 3 : sector) && l->factors * size <= 8192;
}

static bool lay_chain(struct layout *l, const struct zlg_kron_factor_args *args, const struct run *run,
                      const struct zlg_device_profile *profile) {
  const int64_t size = (int64_t)zlg_type_size(args->type);
  *l = (struct layout){.lanes = args->type == ZLG_F64 ? profile->lanes_f64 : profile->lanes_f32};
  if (!lay_stages(l, args, run)) return false;
  return profile->processor ? chain_on_processor(l, run, profile, size) : chain_on_gpu(l, run, size);
}

/* One factor too large for a chain. 32 threads lie along the columns, the others along the results. */
static void lay_factor(struct layout *l, const struct zlg_kron_factor_args *args, const struct run *run,
                       const struct zlg_device_profile *profile) {
  const bool binary64 = args->type == ZLG_F64;
  *l = (struct layout){.lanes = binary64 ? profile->lanes_f64 : profile->lanes_f32, .jt = 1};
  const int64_t side = blocks_of(run->q, blocks_of(run->q, profile->processor ? ROWS_MOST : 8 * ROWS_MOST));
  l->rows = (int)least(side, ROWS_MOST);
  if (profile->processor) {
    l->threads = 1;
    l->rc = l->lanes >= (binary64 ? 8 : 16) ? 2 : 1;
    l->columns = l->rc * l->lanes;
    l->chunk = 16;
  } else {
    l->jt = blocks_of(side, ROWS_MOST);
    l->threads = 32 * l->jt;
    l->rc = binary64 ? 2 : 4;
    l->columns = 32 * l->rc;
    if (run->trail < 32 && !(run->x_by_element && run->y_by_element))
      l->columns = (int)(l->columns / run->trail * run->trail);
    l->chunk = l->jt < 2 ? 4 : 2 * l->jt;
  }
  l->chunk = blocks_of(run->p, blocks_of(run->p, l->chunk));
  runs_of_columns(l, run, profile->processor);
  l->pitch = l->columns + (!profile->processor && l->x_run < l->columns ? l->x_run : 0);
}

/* The tensor before a run: factor `f` alone, extents as they are then. */
static struct run run_of(const struct zlg_kron_factor_args *args, const int32_t *extent, int place) {
  const int f = args->turn[place];
  struct run run = {place, place + 1, f, f, args->p[f], args->q[f], 1, 1, false, false};
  for (int i = 0; i < f; i++) run.lead *= extent[i];
  for (int i = f + 1; i < args->count; i++) run.trail *= extent[i];
  return run;
}

/* The run with one factor more, where that is a neighbour. */
static bool lengthen(const struct zlg_kron_factor_args *args, struct run *run) {
  if (run->end == args->count || run->end - run->begin == STAGES_MOST) return false;
  const int f = args->turn[run->end];
  if (f != run->low - 1 && f != run->high + 1) return false;
  if (f < run->low)
    run->low = f, run->lead /= args->p[f];
  else
    run->high = f, run->trail /= args->p[f];
  run->p *= args->p[f];
  run->q *= args->q[f];
  run->end++;
  return true;
}

/* All launches of a task over one block, in their order. Where X and Y differ in their order the launch with the last
 * factor turns the block round: there both sides are contiguous, one along the tensor, one along the vectors. */
static int runs_of(const struct zlg_kron_factor_args *args, const struct zlg_device_profile *profile, struct run *runs,
                   struct layout *layouts) {
  int32_t extent[ZLG_KRON_FACTORS];
  bool by_element = args->x_order == ZLG_COLUMN_MAJOR;
  int count = 0;
  for (int i = 0; i < args->count; i++) extent[i] = args->p[i];
  for (int place = 0; place < args->count; place = runs[count++].end) {
    struct run run = run_of(args, extent, place), longer = run;
    const bool last = args->y_order == ZLG_COLUMN_MAJOR;
    struct layout layout, tried;
    run.x_by_element = run.y_by_element = by_element;
    if (run.high == args->count - 1) run.y_by_element = last;
    if (!lay_chain(&layout, args, &run, profile)) {
      lay_factor(&layout, args, &run, profile);
    } else {
      for (longer = run; lengthen(args, &longer); run = longer, layout = tried) {
        if (longer.high == args->count - 1) longer.y_by_element = last;
        if (!lay_chain(&tried, args, &longer, profile)) break;
      }
    }
    by_element = run.y_by_element;
    for (int f = run.low; f <= run.high; f++) extent[f] = args->q[f];
    runs[count] = run;
    layouts[count] = layout;
  }
  return count;
}

static void options_of(const struct zlg_kron_factor_args *args, const struct run *run, const struct layout *l,
                       char *text, size_t bytes) {
  int used = snprintf(text, bytes,
                      "-w -DZLG_F64=%d -DP=%d -DQ=%d -DCOLUMNS=%d -DX_RUN=%d -DY_RUN=%d -DVECTORS_FASTEST=%d "
                      "-DTHREADS=%d -DRC=%d -DVLEN=%d -DSTAGES=%d",
                      args->type == ZLG_F64, (int)run->p, (int)run->q, l->columns, l->x_run, l->y_run,
                      run->x_by_element || run->y_by_element, l->threads, l->rc, l->lanes, l->stages);
  if (l->stages == 0)
    snprintf(text + used, bytes - (size_t)used, " -DCHUNK=%d -DROWS=%d -DJT=%d -DPITCH=%d", l->chunk, l->rows, l->jt,
             l->pitch);
  else
    used +=
        snprintf(text + used, bytes - (size_t)used, " -DEVEN=%d -DODD=%d -DFACTORS=%d", l->even, l->odd, l->factors);
  for (int s = 0; s < l->stages; s++) {
    const struct stage *at = &l->stage[s];
    used += snprintf(text + used, bytes - (size_t)used, " -DS%d=%d,%d,%d,%d,%d,%d,%d", s, at->lead, at->p, at->q,
                     at->trail, at->rows, at->from, at->at);
  }
}

/* Several launches have several programs: what stands behind the address is these arguments and which launch; one past
 * the last is the last. */
void zlg_kron_factor_options(const void *arguments, const struct zlg_device_profile *profile, char *text,
                             size_t bytes) {
  const struct zlg_kron_factor_launch *launch = arguments;
  struct run runs[ZLG_KRON_FACTORS];
  struct layout layouts[ZLG_KRON_FACTORS];
  const int count = runs_of(launch->args, profile, runs, layouts);
  const int index = launch->index < count ? launch->index : count - 1;
  options_of(launch->args, &runs[index], &layouts[index], text, bytes);
}

#ifdef ZLG_WITH_DEVICES

/* A block of vectors where a launch finds or leaves it: strides of a vector and of an element. */
struct block {
  struct zlg_place place; /* ld unused */
  int64_t vector, element;
};

static struct block block_at(struct zlg_place place, bool by_element, int64_t ld) {
  return (struct block){place, by_element ? 1 : ld, by_element ? ld : 1};
}

static struct block from_vector(struct block block, int64_t vector) {
  block.place.at += vector * block.vector;
  return block;
}

static void launch_block(struct zlg_launch *launch, const struct block *block) {
  zlg_launch_place(launch, &block->place, false);
  zlg_launch_wide(launch, block->vector);
  zlg_launch_wide(launch, block->element);
}

static int64_t groups_for(const struct layout *l, bool processor, int64_t columns) {
  const int64_t tiles = (columns + l->columns - 1) / l->columns;
  /* A chain's group stages the factors once for all its tiles; a card has places for some thousand groups. */
  return least(tiles, l->stages == 0 ? (int64_t)1 << 30 : processor ? 256 : 4096);
}

static int launch_run(const struct run *run, const struct layout *l, struct zlg_program *program, void *queue,
                      const struct block *x, struct zlg_place factors, const struct block *y, int64_t vectors,
                      double alpha, double beta) {
  struct zlg_launch launch;
  zlg_launch_begin(&launch, program, "kron_factor", queue);
  launch_block(&launch, x);
  zlg_launch_place(&launch, &factors, false);
  launch_block(&launch, y);
  zlg_launch_wide(&launch, run->lead);
  zlg_launch_wide(&launch, run->trail);
  zlg_launch_wide(&launch, vectors);
  zlg_launch_double(&launch, alpha);
  zlg_launch_double(&launch, beta);
  const bool processor = zlg_device_profile(zlg_program_device(program))->processor;
  const int64_t tiles = groups_for(l, processor, run->lead * run->trail * vectors);
  const int64_t groups[3] = {tiles > 0 ? tiles : 1, l->stages > 0 ? 1 : blocks_of(run->q, (int64_t)l->rows * l->jt), 1};
  return zlg_launch_run(&launch, (size_t)l->threads, groups);
}

/* All launches of a task: what they share. */
struct chain {
  const struct zlg_kron_factor_args *args;
  int count;
  struct run runs[ZLG_KRON_FACTORS];
  struct layout layouts[ZLG_KRON_FACTORS];
  struct zlg_program *programs[ZLG_KRON_FACTORS];
  struct zlg_place factors[ZLG_KRON_FACTORS]; /* where each launch's begin */
  uintptr_t scratch;
  int64_t widest; /* most elements of a vector between two launches */
};

static int64_t left_of(const struct run *run) {
  return run->lead * run->q * run->trail;
}

static int open_chain(struct chain *chain, struct zlg_device *device, struct zlg_place factors) {
  const struct zlg_kron_factor_args *args = chain->args;
  char options[1024];
  int status = ZLG_OK;
  chain->count = runs_of(args, zlg_device_profile(device), chain->runs, chain->layouts);
  chain->widest = 0;
  for (int i = 0; i < chain->count && status == ZLG_OK; i++) {
    const struct run *run = &chain->runs[i];
    options_of(args, run, &chain->layouts[i], options, sizeof options);
    status = zlg_device_program(device, "kron_factor", options, &chain->programs[i], NULL, 0);
    chain->factors[i] = factors;
    for (int f = 0; f < run->low; f++) chain->factors[i].at += (int64_t)args->p[f] * args->q[f];
    if (i + 1 < chain->count && left_of(run) > chain->widest) chain->widest = left_of(run);
  }
  return status;
}

/* Some vectors through all launches; what lies between two of them is in one half of the scratch memory or the other.
 */
static int launch_chain(const struct chain *chain, struct block x, struct block y, int64_t vectors, int64_t chunk) {
  const struct zlg_kron_factor_args *args = chain->args;
  int status = ZLG_OK;
  for (int i = 0; i < chain->count && status == ZLG_OK; i++) {
    const struct run *run = &chain->runs[i];
    const bool last = i + 1 == chain->count;
    const struct zlg_place half = {chain->scratch, i % 2 * chain->widest * chunk, 0};
    const struct block to = last ? y : block_at(half, run->y_by_element, run->y_by_element ? vectors : left_of(run));
    status = launch_run(run, &chain->layouts[i], chain->programs[i], NULL, &x, chain->factors[i], &to, vectors,
                        last ? args->alpha : 1, last ? args->beta : 0);
    x = to;
  }
  return status;
}

/* Vectors that go through all launches before the next ones begin, so that what lies between launches stays in the
 * device's cache; there is enough work in as many for every multiprocessor. */
static int64_t chunk_of(const struct chain *chain, const struct zlg_device_profile *profile) {
  const int64_t cache = profile->processor ? 1 << 20 : 1 << 24;
  const int64_t fit =
      chain->widest > 0 ? cache / (int64_t)zlg_type_size(chain->args->type) / chain->widest : chain->args->vectors;
  return fit < 1 ? 1 : least(fit, chain->args->vectors);
}

static int run_device(const struct zlg_kron_factor_args *args, struct zlg_device *device, void *buffers[]) {
  struct chain chain = {.args = args};
  const size_t size = zlg_type_size(args->type);
  const struct zlg_place x_place = zlg_matrix_place(buffers[0], size), y_place = zlg_matrix_place(buffers[2], size);
  int status = open_chain(&chain, device, zlg_vector_place(buffers[1], size));
  if (status != ZLG_OK) return status;
  const int64_t chunk = chunk_of(&chain, zlg_device_profile(device));
  if (chain.count > 1) chain.scratch = zlg_device_scratch(device, 2 * (size_t)(chain.widest * chunk) * size);
  if (chain.count > 1 && !chain.scratch) return ZLG_ENOMEM;
  const struct block x = block_at(x_place, args->x_order == ZLG_COLUMN_MAJOR, x_place.ld);
  const struct block y = block_at(y_place, args->y_order == ZLG_COLUMN_MAJOR, y_place.ld);
  for (int64_t v = 0; v < args->vectors && status == ZLG_OK; v += chunk)
    status = launch_chain(&chain, from_vector(x, v), from_vector(y, v), least(chunk, args->vectors - v), chunk);
  return status;
}

static void device_function(void *buffers[], void *cl_arg) {
  struct zlg_kron_factor_args *args = cl_arg;
  args->head.start = zlg_clock();
  if (args->vectors == 0) return;
  struct zlg_device *device = zlg_device_here();
  args->head.status = device ? run_device(args, device, buffers) : ZLG_ENOMEM;
}

#define TRIAL_BYTES (1 << 18) /* the most that a launch stages of factors */

/* No vectors: the factors are staged, and nothing else is read or written. */
static int try_once(const void *arguments, struct zlg_program *program, void *queue, uintptr_t memory) {
  const struct zlg_kron_factor_launch *launch = arguments;
  struct run runs[ZLG_KRON_FACTORS];
  struct layout layouts[ZLG_KRON_FACTORS];
  const int count = runs_of(launch->args, zlg_device_profile(zlg_program_device(program)), runs, layouts);
  const int index = launch->index < count ? launch->index : count - 1;
  const struct block nothing = {{memory, 0, 0}, 0, 0};
  return launch_run(&runs[index], &layouts[index], program, queue, &nothing, nothing.place, &nothing, 0, 1, 0);
}

int zlg_kron_factor_prepare(const void *arguments, char *message, size_t message_bytes) {
  const struct zlg_trial trial = {"kron_factor", zlg_kron_factor_options, try_once, TRIAL_BYTES};
  const struct zlg_kron_factor_args *args = arguments;
  int status = ZLG_OK;
  /* A launch has one factor at least; devices of another kind may have fewer launches. */
  for (int i = 0; i < args->count && status == ZLG_OK; i++) {
    const struct zlg_kron_factor_launch launch = {args, i};
    status = zlg_device_prepare(&trial, &launch, message, message_bytes);
  }
  return status;
}

#endif

static struct starpu_perfmodel model = ZLG_MODEL(kron_factor);

struct starpu_codelet zlg_kron_factor_codelet = {
    .name = "zlg_kron_factor",
    .cpu_funcs = {cpu_function},
    .cpu_funcs_name = {"zlg_kron_factor"},
    ZLG_DEVICE_FUNCTION(device_function),
    .nbuffers = STARPU_VARIABLE_NBUFFERS,
    .model = &model,
};

const struct zlg_codelet zlg_codelet_kron_factor = {
    .name = "kron_factor",
    .codelet = &zlg_kron_factor_codelet,
    .cpu = run_cpu,
    .count = zlg_kron_factor_count,
    .footprint = zlg_kron_factor_footprint,
    .prepare = ZLG_DEVICE_PREPARE(zlg_kron_factor_prepare),
    .args_bytes = sizeof(struct zlg_kron_factor_args),
    .family = zlg_kron_factor_family,
    .calibration = zlg_kron_factor_calibration,
};
