/* A chain of Kronecker factors at work: one task a block of vectors, all factors in it; two stages of such tasks, one
 * after the other through a workspace, where vectors are few and long. The factors are packed once and serve all. */
#include <string.h>

#include "src/core/memory.h"
#include "src/core/runtime.h"
#include "src/core/simulation.h"
#include "src/plan/chain.h"
#include "src/plan/graph.h"

struct slot { /* the tiles of a task */
  struct zlg_tile x, y;
};

struct run {
  struct zlg_chain chain;
  struct zlg_chain_shape shape;
  zlg_request *request;
  struct slot *slots;
  void *factors, *workspace;
  double scale; /* alpha and the factors of 1 x 1 */
  starpu_data_handle_t handles[2];
  int factors_pending[2];
};

/* One operand of a stage: which lines of which matrix a task takes. Line i is rows [i unit, (i + 1) unit) or columns,
 * and a vector is a row or a column of what is taken. */
struct side {
  zlg_matrix *matrix;
  bool cut_rows, vectors_are_rows;
  int64_t unit;
};

static int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

/* Vectors that are columns lie side by side in a block that is stored by columns. */
static zlg_order block_order(const struct side *side) {
  const zlg_order other = side->matrix->order == ZLG_ROW_MAJOR ? ZLG_COLUMN_MAJOR : ZLG_ROW_MAJOR;
  return side->vectors_are_rows ? side->matrix->order : other;
}

/* ---- at once, without tasks ------------------------------------------------------------------------------------- */

#define FEW_BYTES 16384 /* of factors that are packed on the stack */

static int only_scale(const struct zlg_chain *chain, const struct zlg_operand *y) {
  const struct zlg_accumulate_args args = {.type = chain->type,
                                           .m = chain->y->rows,
                                           .r = chain->y->columns,
                                           .y_order = chain->y->order,
                                           .parts = 0,
                                           .alpha = chain->alpha,
                                           .beta = chain->beta};
  const struct zlg_operand operands[] = {*y, {NULL, 0}};
  return zlg_codelet_accumulate.cpu(&args, operands);
}

static int compute_at_once(const struct zlg_chain *chain, const struct zlg_links *links,
                           struct zlg_kron_factor_args *args) {
  _Alignas(64) char few[FEW_BYTES];
  const size_t bytes = (size_t)links->elements * zlg_type_size(chain->type);
  void *packed = bytes <= sizeof few ? few : zlg_malloc_aligned(64, bytes);
  if (!packed) return zlg_fail(chain->context, ZLG_ENOMEM, "no memory for %zu bytes of factors", bytes);
  double scale;
  int status = zlg_chain_read(chain, links, packed, &scale);
  args->vectors = chain->y->columns;
  args->x_order = block_order(&(struct side){.matrix = chain->x});
  args->y_order = block_order(&(struct side){.matrix = chain->y});
  args->alpha = chain->alpha * scale;
  args->beta = chain->beta;
  const struct zlg_operand operands[] = {{chain->x->data, chain->x->ld}, {packed, 0}, {chain->y->data, chain->y->ld}};
  if (status == ZLG_OK) {
    status = zlg_codelet_kron_factor.cpu(args, operands);
    if (status != ZLG_OK) zlg_fail(chain->context, status, "kron_factor: no memory for scratch");
  }
  if (packed != few) zlg_free_aligned(packed);
  return status;
}

/* All operands are where the processor can reach them. */
static bool is_in_memory(const struct zlg_chain *chain) {
  if (!chain->x->data || !chain->y->data) return false;
  for (int64_t i = 0; i < chain->count; i++)
    if (!chain->factors[i]->data) return false;
  return true;
}

bool zlg_chain_direct(const struct zlg_chain *chain, int *status) {
  const double most = chain->context->options.direct_seconds;
  if (ZLG_SIMULATED || !(most > 0) || chain->alpha == 0 || chain->y->columns == 0 || !is_in_memory(chain)) return false;
  struct zlg_links links;
  struct zlg_kron_factor_args args;
  if (zlg_chain_link(chain, ZLG_KRON_FACTORS, &links) != ZLG_OK || links.count == 0) return false;
  args.head = (struct zlg_task_head){0};
  zlg_chain_args(chain, &links, 0, links.count, &args);
  args.vectors = chain->y->columns;
  if (chain->context->options.tile_rows > 0 || zlg_chain_direct_seconds(&args) >= most) return false;
  *status = compute_at_once(chain, &links, &args);
  return true;
}

/* ---- one stage -------------------------------------------------------------------------------------------------- */

static int close_slot(struct run *run, struct slot *slot, const struct side *x, const struct side *y, bool write) {
  int x_status = x ? zlg_tile_close(run->request, &slot->x, x->matrix, false) : ZLG_OK;
  int status = zlg_tile_close(run->request, &slot->y, y->matrix, write);
  return status != ZLG_OK ? status : x_status;
}

static int open_tile(struct run *run, struct zlg_tile *tile, const struct side *side, enum zlg_tile_use use,
                     int64_t line, int64_t lines) {
  const int64_t first = line * side->unit, count = lines * side->unit;
  if (side->cut_rows)
    return zlg_tile_open(run->request, tile, side->matrix, use, first, count, 0, side->matrix->columns);
  return zlg_tile_open(run->request, tile, side->matrix, use, 0, side->matrix->rows, first, count);
}

#define KEPT 1 /* byte: of what the next stage reads at once */

/* The last stage adds to the caller's Y; one before it writes the workspace. */
static int submit_block(struct run *run, struct slot *slot, int index, const struct side *x, const struct side *y,
                        int64_t line, int64_t lines) {
  const struct zlg_chain_stage *stage = &run->shape.stage[index];
  const bool last = index == run->shape.stages - 1;
  struct zlg_kron_factor_args args = stage->args;
  args.alpha = last ? run->scale : 1;
  args.beta = last ? run->chain.beta : 0;
  args.y_bytes = last ? run->shape.links.l * run->chain.y->columns * (int64_t)zlg_type_size(args.type) : KEPT;
  args.x_order = block_order(x), args.y_order = block_order(y);
  args.vectors = x->vectors_are_rows ? lines : x->cut_rows ? run->shape.together : lines;
  int status = open_tile(run, &slot->x, x, ZLG_TILE_READ, line, lines);
  if (status == ZLG_OK)
    status = open_tile(run, &slot->y, y, args.beta == 0 ? ZLG_TILE_WRITE : ZLG_TILE_UPDATE, line, lines);
  /* What a device has made goes back at once, over all links side by side, not when its turn comes to be waited for. */
  if (status == ZLG_OK) starpu_data_set_wt_mask(slot->y.handle, 1u << STARPU_MAIN_RAM);
  struct zlg_task *task = NULL;
  if (status == ZLG_OK && !(task = zlg_task_new(run->request, &zlg_codelet_kron_factor, &args, sizeof args)))
    status = ZLG_ENOMEM;
  if (status != ZLG_OK) return status;
  task->pending[0] = &slot->x.pending;
  task->pending[1] = &slot->y.pending;
  task->pending[2] = &run->factors_pending[index];
  const starpu_data_handle_t handles[] = {slot->x.handle, run->handles[index], slot->y.handle};
  const enum starpu_data_access_mode modes[] = {STARPU_R, STARPU_R, args.beta == 0 ? STARPU_W : STARPU_RW};
  return zlg_task_submit(task, run->shape.window, handles, modes, 3);
}

static int submit_scaling(struct run *run, struct slot *slot, const struct side *y, int64_t line, int64_t lines) {
  int status = open_tile(run, &slot->y, y, run->chain.beta == 0 ? ZLG_TILE_WRITE : ZLG_TILE_UPDATE, line, lines);
  if (status != ZLG_OK) return status;
  const struct zlg_accumulate_args args = {.type = run->chain.type,
                                           .m = slot->y.rows,
                                           .r = slot->y.columns,
                                           .y_order = y->matrix->order,
                                           .parts = 0,
                                           .beta = run->chain.beta};
  struct zlg_task *task = zlg_task_new(run->request, &zlg_codelet_accumulate, &args, sizeof args);
  if (!task) return ZLG_ENOMEM;
  task->pending[0] = &slot->y.pending;
  return zlg_task_submit(task, run->shape.window, &slot->y.handle,
                         &(enum starpu_data_access_mode){run->chain.beta == 0 ? STARPU_W : STARPU_RW}, 1);
}

/* All blocks of a stage (index -1: of y alone, scaled), in a ring of slots; at its end everything is where it lies. */
static int run_lines(struct run *run, int index, const struct side *x, const struct side *y, int64_t lines,
                     int64_t block) {
  int status = ZLG_OK;
  int64_t turn = 0;
  for (int64_t line = 0; line < lines && status == ZLG_OK; line += block, turn++) {
    struct slot *slot = &run->slots[turn % run->shape.window];
    const int64_t count = least(block, lines - line);
    status = close_slot(run, slot, x, y, true);
    if (status == ZLG_OK)
      status =
          index < 0 ? submit_scaling(run, slot, y, line, count) : submit_block(run, slot, index, x, y, line, count);
    if (status == ZLG_OK) status = zlg_request_state(run->request);
  }
  if (status != ZLG_OK) {
    zlg_request_fail(run->request, status);
    zlg_tasks_drain(run->request);
  }
  for (int64_t i = 0; i < run->shape.window; i++) {
    int one = close_slot(run, &run->slots[i], x, y, status == ZLG_OK);
    if (status == ZLG_OK) status = one;
  }
  return status;
}

/* ---- two stages ------------------------------------------------------------------------------------------------- */

/* How a stage sees the grid of lines x width elements, of `together` interleaved vectors, that begins at `offset` of a
 * matrix: trailing links take its rows for vectors, or a row of it for several; leading ones its columns. */
static int grid_side(const struct run *run, const struct zlg_chain_stage *stage, zlg_matrix *matrix, int64_t offset,
                     int64_t lines, int64_t width, struct side *side) {
  static const char what[] = "zlg_apply";
  const int64_t together = run->shape.together;
  if (stage->leading || together == 1) {
    *side = (struct side){.cut_rows = !stage->leading, .vectors_are_rows = !stage->leading, .unit = 1};
    return zlg_matrix_view(matrix, what, &side->matrix, offset, lines, width * together, ZLG_ROW_MAJOR,
                           width * together);
  }
  *side = (struct side){.cut_rows = true, .unit = width};
  return zlg_matrix_view(matrix, what, &side->matrix, offset, lines * width, together, ZLG_ROW_MAJOR, together);
}

static int64_t start_of(const zlg_matrix *matrix, int64_t column) {
  return matrix->order == ZLG_COLUMN_MAJOR ? column * matrix->ld : 0;
}

static int run_pass(struct run *run, zlg_matrix *between, int64_t column) {
  const struct zlg_chain_stage *first = &run->shape.stage[0], *last = &run->shape.stage[1];
  const struct zlg_chain_stage *leading = first->leading ? first : last, *trailing = first->leading ? last : first;
  const int64_t mid_lines = first->leading ? leading->l : leading->k;
  const int64_t mid_width = first->leading ? trailing->k : trailing->l;
  struct side x = {0}, to = {0}, from = {0}, y = {0};
  zlg_matrix *const X = run->chain.x, *const Y = run->chain.y;
  int status = grid_side(run, first, X, start_of(X, column), leading->k, trailing->k, &x);
  if (status == ZLG_OK) status = grid_side(run, first, between, 0, mid_lines, mid_width, &to);
  if (status == ZLG_OK) status = grid_side(run, last, between, 0, mid_lines, mid_width, &from);
  if (status == ZLG_OK) status = grid_side(run, last, Y, start_of(Y, column), leading->l, trailing->l, &y);
  if (status == ZLG_OK) status = run_lines(run, 0, &x, &to, first->lines, first->block);
  if (status == ZLG_OK) status = run_lines(run, 1, &from, &y, last->lines, last->block);
  zlg_matrix *views[] = {x.matrix, to.matrix, from.matrix, y.matrix};
  for (int i = 0; i < 4; i++) zlg_matrix_release(views[i]);
  return status;
}

static int run_two_stages(struct run *run) {
  zlg_matrix *between = NULL;
  const size_t bytes = (size_t)run->shape.workspace * zlg_type_size(run->chain.type);
  run->workspace = zlg_malloc_aligned(64, bytes);
  if (!run->workspace) return zlg_fail(run->chain.context, ZLG_ENOMEM, "no memory for a workspace of %zu bytes", bytes);
  int status = zlg_matrix_wrap(run->chain.context, &between, run->chain.type, run->shape.workspace, 1, ZLG_COLUMN_MAJOR,
                               run->shape.workspace, run->workspace);
  for (int64_t pass = 0; pass < run->shape.passes && status == ZLG_OK; pass++) status = run_pass(run, between, pass);
  zlg_matrix_release(between);
  return status;
}

/* ---- the whole -------------------------------------------------------------------------------------------------- */

static int read_factors(struct run *run) {
  const size_t size = zlg_type_size(run->chain.type), bytes = (size_t)run->shape.links.elements * size;
  double scale;
  run->factors = zlg_malloc_aligned(64, bytes);
  if (!run->factors) return zlg_fail(run->chain.context, ZLG_ENOMEM, "no memory for %zu bytes of factors", bytes);
  int status = zlg_chain_read(&run->chain, &run->shape.links, run->factors, &scale);
  run->scale = run->chain.alpha * scale;
  for (int64_t i = 0; i < run->chain.count; i++)
    if (run->chain.factors[i]->path)
      run->request->report.bytes_read += run->chain.factors[i]->rows * run->chain.factors[i]->columns * (int64_t)size;
  return status;
}

static void register_factors(struct run *run) {
  const size_t size = zlg_type_size(run->chain.type);
  for (int i = 0; i < run->shape.stages; i++) {
    const struct zlg_chain_stage *stage = &run->shape.stage[i];
    int64_t elements = 0;
    for (int f = 0; f < stage->args.count; f++) elements += (int64_t)stage->args.p[f] * stage->args.q[f];
    starpu_vector_data_register(&run->handles[i], STARPU_MAIN_RAM,
                                (uintptr_t)run->factors + (size_t)stage->factors * size, (uint32_t)elements, size);
  }
}

/* Devices' programs for whole blocks and for the last ones. */
static int prepare(struct run *run, bool scaling) {
  char message[ZLG_MESSAGE_BYTES] = "";
  int status = ZLG_OK;
  for (int i = 0; i < 2 * run->shape.stages && !scaling && status == ZLG_OK; i++) {
    const struct zlg_chain_stage *stage = &run->shape.stage[i / 2];
    struct zlg_kron_factor_args args = stage->args;
    const bool grid = run->shape.stages == 2, rows = grid && !stage->leading && run->shape.together == 1;
    const struct side x = {.matrix = run->chain.x}, y = {.matrix = run->chain.y};
    args.x_order = rows ? ZLG_ROW_MAJOR : grid ? ZLG_COLUMN_MAJOR : block_order(&x);
    args.y_order = rows ? ZLG_ROW_MAJOR : grid ? ZLG_COLUMN_MAJOR : block_order(&y);
    args.beta = i / 2 == run->shape.stages - 1 ? run->chain.beta : 0;
    args.vectors = i % 2 == 0 ? stage->block : stage->lines % stage->block;
    if (grid && !stage->leading && !rows && args.vectors > 0) args.vectors = run->shape.together;
    if (args.vectors > 0 && zlg_codelet_kron_factor.prepare)
      status = zlg_codelet_kron_factor.prepare(&args, message, sizeof message);
  }
  const struct zlg_accumulate_args args = {
      .type = run->chain.type, .m = 1, .r = 1, .y_order = run->chain.y->order, .parts = 0};
  if (scaling && zlg_codelet_accumulate.prepare)
    status = zlg_codelet_accumulate.prepare(&args, message, sizeof message);
  return status == ZLG_OK ? ZLG_OK : zlg_fail(run->chain.context, status, "%s", message);
}

static int run_stages(struct run *run) {
  int status = read_factors(run);
  if (status == ZLG_OK) status = prepare(run, false);
  if (status != ZLG_OK) return status;
  zlg_runtime_enter(run->chain.context);
  register_factors(run);
  if (run->shape.stages == 2) {
    status = run_two_stages(run);
  } else {
    const struct side x = {.matrix = run->chain.x, .unit = 1}, y = {.matrix = run->chain.y, .unit = 1};
    status = run_lines(run, 0, &x, &y, run->shape.stage[0].lines, run->shape.stage[0].block);
  }
  if (status != ZLG_OK) zlg_request_fail(run->request, status);
  zlg_tasks_drain(run->request);
  for (int i = 0; i < run->shape.stages; i++) starpu_data_unregister(run->handles[i]);
  zlg_runtime_leave(run->chain.context);
  return status;
}

#define SCALED_ELEMENTS (INT64_C(1) << 20) /* of y in a task that only scales */

/* y = beta y: nothing else is read. */
static int run_scaling(struct run *run) {
  zlg_matrix *const Y = run->chain.y;
  const struct side y = {.matrix = Y, .cut_rows = Y->order == ZLG_ROW_MAJOR, .unit = 1};
  const int64_t width = Y->order == ZLG_ROW_MAJOR ? Y->columns : Y->rows;
  const int64_t lines = Y->order == ZLG_ROW_MAJOR ? Y->rows : Y->columns;
  const int64_t fits = run->chain.context->memory_limit / 8 / run->shape.window / (int64_t)sizeof(double);
  const int64_t most = least(SCALED_ELEMENTS, fits), block = width < most ? most / width : 1;
  if (Y->data && Y->rows * Y->columns <= SCALED_ELEMENTS && !ZLG_SIMULATED)
    return only_scale(&run->chain, &(struct zlg_operand){Y->data, Y->ld});
  int status = prepare(run, true);
  if (status != ZLG_OK) return status;
  zlg_runtime_enter(run->chain.context);
  status = run_lines(run, -1, NULL, &y, lines, block);
  zlg_runtime_leave(run->chain.context);
  return status;
}

static int run_chain(zlg_request *request, void *job) {
  struct run *run = job;
  int status = ZLG_OK;
  run->request = request;
  if (run->chain.y->rows == 0 || run->chain.y->columns == 0) return ZLG_OK;
  if (request->report.direct && zlg_chain_direct(&run->chain, &status)) {
    if (status == ZLG_OK) request->work_done = request->report.work;
    return status;
  }
  run->slots = zlg_calloc((size_t)run->shape.window, sizeof *run->slots);
  if (!run->slots) return zlg_fail(run->chain.context, ZLG_ENOMEM, "no memory for the tables of a chain");
  status = run->shape.stages == 0 ? run_scaling(run) : run_stages(run);
  for (int64_t i = 0; i < run->shape.window; i++) {
    zlg_tile_free(request, &run->slots[i].x);
    zlg_tile_free(request, &run->slots[i].y);
  }
  return status;
}

static void give_back_run(void *job) {
  struct run *run = job;
  zlg_matrix_count_writer(run->chain.y, -1);
  zlg_matrix_release(run->chain.x);
  zlg_matrix_release(run->chain.y);
  run->chain.give_back(run->chain.keep);
  zlg_free_aligned(run->factors);
  zlg_free_aligned(run->workspace);
  zlg_free(run->slots);
  zlg_free(run);
}

/* Whether zlg_chain_direct() will do it, as far as the report has to say so beforehand. */
static bool will_be_direct(const struct zlg_chain *chain, const struct zlg_chain_shape *s) {
  const double most = chain->context->options.direct_seconds;
  struct zlg_kron_factor_args args = s->stage[0].args;
  if (ZLG_SIMULATED || s->stages != 1 || !(most > 0) || chain->context->options.tile_rows > 0) return false;
  args.vectors = chain->y->columns;
  return is_in_memory(chain) && zlg_chain_direct_seconds(&args) < most;
}

int zlg_chain_start(const struct zlg_chain *chain, bool threaded, zlg_request **request) {
  struct run *run = zlg_calloc(1, sizeof *run);
  int status = run ? zlg_chain_plan(chain, chain->y->columns, &run->shape)
                   : zlg_fail(chain->context, ZLG_ENOMEM, "no memory for a chain of factors");
  if (status != ZLG_OK) {
    zlg_free(run);
    chain->give_back(chain->keep);
    return status;
  }
  run->chain = *chain;
  struct zlg_chain_shape *s = &run->shape;
  if (chain->alpha == 0) s->stages = 0, s->flops = s->seconds = 0, s->tasks = 1;
  zlg_matrix_retain(chain->x);
  zlg_matrix_retain(chain->y);
  zlg_matrix_count_writer(chain->y, 1);
  const bool direct = will_be_direct(chain, s);
  const zlg_report known = {.work = s->flops,
                            .work_unit = "flops",
                            .flops = s->flops,
                            .predicted_seconds = s->seconds,
                            .tasks = s->tasks,
                            .direct = direct,
                            .tile_rows = s->stages ? s->stage[s->stages - 1].l : chain->y->rows,
                            .tile_columns = s->stages ? s->stage[s->stages - 1].block : chain->y->columns};
  return zlg_request_start(chain->context, threaded && !direct, &known, run_chain, give_back_run, run, request);
}
