/* The tiled sum at work: opens blocks of rows in a ring of slots, streams the column tiles past each group of blocks,
 * closes the oldest block when its slot is wanted again. Reading the next tiles, computing and writing finished ones
 * overlap. */
#include <string.h>

#include "src/core/memory.h"
#include "src/core/pinned.h"
#include "src/core/runtime.h"
#include "src/core/simulation.h"
#include "src/plan/graph.h"

struct row_block { /* one block of output rows that is alive */
  bool live;
  int64_t index, rows;
  struct zlg_tile p, y;
  starpu_data_handle_t *acc; /* parts of them */
  bool *started;             /* the chain has had its first task */
};

struct run {
  struct zlg_sum sum;
  struct zlg_sum_shape shape;
  zlg_request *request;
  struct row_block *rows;
  struct zlg_tile *q, *x;
  starpu_data_handle_t constants;
  int64_t m, n, r;
  int64_t column, columns; /* the columns of x under way */
  int constants_pending;
  starpu_data_handle_t *handles; /* of an accumulate task */
  enum starpu_data_access_mode *modes;
  struct zlg_pinned pinned;
};

static int64_t piece(int64_t total, int64_t tile, int64_t index) {
  int64_t left = total - index * tile;
  return left < tile ? left : tile;
}

/* ---- one block of rows ------------------------------------------------------------------------------------------ */

static int close_block(struct run *run, struct row_block *block, bool write) {
  if (!block->live) return ZLG_OK;
  int status = zlg_tile_close(run->request, &block->y, run->sum.y, write);
  int p_status = zlg_tile_close(run->request, &block->p, run->sum.p, false);
  for (int64_t s = 0; s < run->shape.parts; s++)
    if (block->acc[s]) starpu_data_unregister_no_coherency(block->acc[s]);
  memset(block->acc, 0, (size_t)run->shape.parts * sizeof *block->acc);
  memset(block->started, 0, (size_t)run->shape.parts * sizeof *block->started);
  block->live = false;
  return status != ZLG_OK ? status : p_status;
}

static int open_block(struct run *run, struct row_block *block, int64_t index) {
  int status = close_block(run, block, true);
  if (status != ZLG_OK) return status;
  int64_t row = index * run->shape.mt;
  block->index = index;
  block->rows = piece(run->m, run->shape.mt, index);
  block->live = true;
  if (run->sum.alpha != 0) /* else A is not read */
    status =
        zlg_tile_open(run->request, &block->p, run->sum.p, ZLG_TILE_READ, row, block->rows, 0, run->sum.p->columns);
  if (status == ZLG_OK)
    status = zlg_tile_open(run->request, &block->y, run->sum.y, run->sum.beta == 0 ? ZLG_TILE_WRITE : ZLG_TILE_UPDATE,
                           row, block->rows, run->column, run->columns);
  for (int64_t s = 0; status == ZLG_OK && s < run->shape.parts; s++)
    starpu_vector_data_register(&block->acc[s], -1, 0, (uint32_t)(block->rows * run->columns), sizeof(double));
  return status;
}

/* ---- tasks ------------------------------------------------------------------------------------------------------ */

static int submit_tile(struct run *run, struct row_block *block, int64_t j, struct zlg_tile *q, struct zlg_tile *x) {
  const struct zlg_sum *sum = &run->sum;
  int64_t part = j % run->shape.parts;
  bool first = !block->started[part];
  sum->shape(sum->args, block->rows, piece(run->n, run->shape.nt, j), run->columns, first);
  struct zlg_task *task = zlg_task_new(run->request, sum->codelet, sum->args, sum->args_bytes);
  if (!task) return ZLG_ENOMEM;
  task->work *= (double)run->columns / (double)run->r; /* a pair serves all columns, and is counted once */
  task->pending[0] = &block->p.pending;
  task->pending[1] = &q->pending;
  task->pending[2] = &x->pending;
  task->pending[3] = &run->constants_pending;
  starpu_data_handle_t handles[] = {block->p.handle, q->handle, x->handle, run->constants, block->acc[part]};
  enum starpu_data_access_mode modes[] = {STARPU_R, STARPU_R, STARPU_R, STARPU_R, first ? STARPU_W : STARPU_RW};
  block->started[part] = true;
  return zlg_task_submit(task, run->shape.window, handles, modes, 5);
}

static int submit_accumulate(struct run *run, struct row_block *block) {
  const struct zlg_sum *sum = &run->sum;
  int parts = 0;
  run->handles[0] = block->y.handle;
  run->modes[0] = sum->beta == 0 ? STARPU_W : STARPU_RW;
  for (int64_t s = 0; s < run->shape.parts; s++) {
    if (!block->started[s]) continue;
    run->handles[1 + parts] = block->acc[s];
    run->modes[1 + parts] = parts == 0 ? STARPU_RW : STARPU_R;
    parts++;
  }
  struct zlg_accumulate_args args = {.type = sum->y->type,
                                     .m = block->rows,
                                     .r = run->columns,
                                     .y_order = sum->y->order,
                                     .parts = parts,
                                     .alpha = sum->alpha,
                                     .beta = sum->beta};
  struct zlg_task *task = zlg_task_new(run->request, &zlg_codelet_accumulate, &args, sizeof args);
  if (!task) return ZLG_ENOMEM;
  task->pending[0] = &block->y.pending;
  return zlg_task_submit(task, run->shape.window, run->handles, run->modes, 1 + parts);
}

/* The tile of block j in its slot, opened where another lies there. */
static int column_tile(struct run *run, struct zlg_tile *slots, zlg_matrix *matrix, int64_t j, int64_t column,
                       int64_t columns, struct zlg_tile **tile) {
  *tile = &slots[j % run->shape.column_slots];
  if ((*tile)->handle && (*tile)->index == j && (*tile)->column == column) return ZLG_OK;
  int status = zlg_tile_close(run->request, *tile, matrix, false);
  if (status != ZLG_OK) return status;
  (*tile)->index = j;
  return zlg_tile_open(run->request, *tile, matrix, ZLG_TILE_READ, j * run->shape.nt, piece(run->n, run->shape.nt, j),
                       column, columns);
}

static struct row_block *block_of(struct run *run, int64_t i) {
  return &run->rows[i % run->shape.row_slots];
}

static int run_group(struct run *run, int64_t begin, int64_t end) {
  int status = ZLG_OK;
  for (int64_t i = begin; status == ZLG_OK && i < end; i++) status = open_block(run, block_of(run, i), i);
  bool reads_operator = run->sum.alpha != 0;
  for (int64_t j = 0; reads_operator && status == ZLG_OK && j < run->shape.nj; j++) {
    struct zlg_tile *q, *x;
    status = column_tile(run, run->q, run->sum.q, j, 0, run->sum.q->columns, &q);
    if (status == ZLG_OK) status = column_tile(run, run->x, run->sum.x, j, run->column, run->columns, &x);
    for (int64_t i = begin; status == ZLG_OK && i < end; i++) status = submit_tile(run, block_of(run, i), j, q, x);
  }
  for (int64_t i = begin; status == ZLG_OK && i < end; i++) status = submit_accumulate(run, block_of(run, i));
  return status;
}

static int close_all(struct run *run, bool write) {
  int status = ZLG_OK;
  for (int64_t i = 0; i < run->shape.row_slots; i++) {
    int one = close_block(run, &run->rows[i], write && status == ZLG_OK);
    if (status == ZLG_OK) status = one;
  }
  return status;
}

static int run_columns(struct run *run, int64_t chunk) {
  run->column = chunk * run->shape.rt;
  run->columns = piece(run->r, run->shape.rt, chunk);
  int status = ZLG_OK;
  for (int64_t begin = 0; status == ZLG_OK && begin < run->shape.mi; begin += run->shape.group) {
    int64_t end = begin + run->shape.group < run->shape.mi ? begin + run->shape.group : run->shape.mi;
    status = run_group(run, begin, end);
    if (status == ZLG_OK) status = zlg_request_state(run->request);
  }
  return status == ZLG_OK ? close_all(run, true) : status;
}

/* ---- the whole -------------------------------------------------------------------------------------------------- */

static int allocate(struct run *run) {
  const struct zlg_sum_shape *s = &run->shape;
  run->rows = zlg_calloc((size_t)s->row_slots, sizeof *run->rows);
  run->q = zlg_calloc((size_t)s->column_slots, sizeof *run->q);
  run->x = zlg_calloc((size_t)s->column_slots, sizeof *run->x);
  run->handles = zlg_calloc((size_t)s->parts + 1, sizeof *run->handles);
  run->modes = zlg_calloc((size_t)s->parts + 1, sizeof *run->modes);
  bool complete = run->rows && run->q && run->x && run->handles && run->modes;
  for (int64_t i = 0; complete && i < s->row_slots; i++) {
    run->rows[i].acc = zlg_calloc((size_t)s->parts, sizeof *run->rows[i].acc);
    run->rows[i].started = zlg_calloc((size_t)s->parts, sizeof *run->rows[i].started);
    complete = run->rows[i].acc && run->rows[i].started;
  }
  return complete ? ZLG_OK : zlg_fail(run->request->context, ZLG_ENOMEM, "no memory for the tables of a sum");
}

static void free_all(struct run *run) {
  for (int64_t i = 0; run->rows && i < run->shape.row_slots; i++) {
    zlg_tile_free(run->request, &run->rows[i].p);
    zlg_tile_free(run->request, &run->rows[i].y);
    zlg_free(run->rows[i].acc);
    zlg_free(run->rows[i].started);
  }
  for (int64_t j = 0; j < run->shape.column_slots; j++) {
    if (run->q) zlg_tile_free(run->request, &run->q[j]);
    if (run->x) zlg_tile_free(run->request, &run->x[j]);
  }
  zlg_free(run->rows);
  zlg_free(run->q);
  zlg_free(run->x);
  zlg_free(run->handles);
  zlg_free(run->modes);
}

/* Whatever happened, no task is under way and nothing is registered after this. */
static void unregister_all(struct run *run) {
  zlg_tasks_drain(run->request);
  close_all(run, false);
  for (int64_t j = 0; j < run->shape.column_slots; j++) {
    zlg_tile_close(run->request, &run->q[j], run->sum.q, false);
    zlg_tile_close(run->request, &run->x[j], run->sum.x, false);
  }
  if (run->constants) starpu_data_unregister(run->constants);
}

/* The length of the last tile, where it is shorter than the others; else 0. */
static int64_t remainder_of(int64_t total, int64_t tile) {
  return total > tile ? total % tile : 0;
}

static int prepare_shape(struct run *run, int64_t m, int64_t r, char *message, size_t bytes) {
  const struct zlg_sum *sum = &run->sum;
  struct zlg_accumulate_args args = {.type = sum->y->type, .m = m, .r = r, .y_order = sum->y->order, .parts = 1};
  sum->shape(sum->args, m, run->shape.nt, r, true);
  int status = sum->codelet->prepare ? sum->codelet->prepare(sum->args, message, bytes) : ZLG_OK;
  if (status == ZLG_OK && zlg_codelet_accumulate.prepare)
    status = zlg_codelet_accumulate.prepare(&args, message, bytes);
  return status;
}

/* Devices' programs for whole tiles and for those at the edges, so that no task meets a compiler. */
static int prepare_codelets(struct run *run) {
  char message[ZLG_MESSAGE_BYTES] = "";
  const int64_t rows[] = {run->shape.mt, remainder_of(run->m, run->shape.mt)};
  const int64_t columns[] = {run->shape.rt, remainder_of(run->r, run->shape.rt)};
  int status = ZLG_OK;
  for (int i = 0; i < 4 && status == ZLG_OK; i++)
    if (rows[i / 2] > 0 && columns[i % 2] > 0)
      status = prepare_shape(run, rows[i / 2], columns[i % 2], message, sizeof message);
  return status == ZLG_OK ? ZLG_OK : zlg_fail(run->request->context, status, "%s", message);
}

/* Each card wants the operands, and wants them again in another pass over columns that could not stay. */
static void pin_operands(struct run *run) {
  const struct zlg_sum *sum = &run->sum;
  const int64_t cards = run->request->context->kinds[ZLG_WORKER_CUDA];
  const struct zlg_sum_shape *s = &run->shape;
  bool stay = s->nj <= s->column_slots && zlg_matrix_span(sum->q) < run->request->context->device_memory / 2;
  const int64_t passes = stay ? 1 : s->rc * ((s->mi + s->group - 1) / s->group);
  if (ZLG_SIMULATED || cards == 0 || sum->alpha == 0) return;
  const zlg_matrix *used[ZLG_PINNED_MOST] = {0};
  const zlg_matrix *const all[] = {sum->p, sum->q, sum->x, sum->y};
  int count = 0;
  for (int i = 0; i < 4; i++)
    if (!zlg_tile_is_staged(all[i])) used[count++] = all[i];
  zlg_pin(&run->pinned, used, count, cards * passes);
}

static int run_tasks(struct run *run) {
  int status = allocate(run);
  if (status == ZLG_OK) status = prepare_codelets(run);
  if (status == ZLG_OK) {
    zlg_runtime_enter(run->request->context);
    pin_operands(run);
    starpu_vector_data_register(&run->constants, STARPU_MAIN_RAM, (uintptr_t)run->sum.constants,
                                (uint32_t)run->sum.constant_count, sizeof(double));
    for (int64_t chunk = 0; status == ZLG_OK && chunk < run->shape.rc; chunk++) status = run_columns(run, chunk);
    if (status != ZLG_OK) zlg_request_fail(run->request, status);
    unregister_all(run);
    zlg_unpin(&run->pinned);
    zlg_runtime_leave(run->request->context);
  }
  free_all(run);
  return status;
}

/* What is known before the first task. */
static zlg_report known_of(const struct run *run) {
  return (zlg_report){.work = run->shape.work,
                      .work_unit = "pairs",
                      .flops = run->shape.flops,
                      .predicted_seconds = run->shape.seconds,
                      .tasks = run->shape.tasks,
                      .direct = run->shape.direct,
                      .tile_rows = run->shape.mt,
                      .tile_columns = run->shape.nt};
}

static int run_sum(zlg_request *request, void *job) {
  struct run *run = job;
  run->request = request;
  int status = run->shape.direct ? zlg_sum_direct(&run->sum, request) : run_tasks(run);
  if (status == ZLG_OK && run->shape.direct) request->work_done = run->shape.work;
  return status;
}

static void give_back_run(void *job) {
  struct run *run = job;
  zlg_matrix_count_writer(run->sum.y, -1);
  zlg_matrix_release(run->sum.x);
  zlg_matrix_release(run->sum.y);
  run->sum.give_back(run->sum.keep);
  zlg_free(run->sum.args);
  zlg_free(run);
}

/* alpha = 0: the last task of each block of rows is all there is to do. */
static void leave_out_operator(struct zlg_sum_shape *shape) {
  shape->tasks = shape->mi * shape->rc;
  shape->work = shape->flops = shape->seconds = 0;
}

int zlg_sum_start(const struct zlg_sum *sum, bool threaded, zlg_request **request) {
  struct run *run = zlg_calloc(1, sizeof *run);
  void *args =
      zlg_malloc(sum->args_bytes); /* a copy: `shape` writes into it, and operators are shared between threads */
  int status = run && args ? ZLG_OK : zlg_fail(sum->context, ZLG_ENOMEM, "no memory for a sum");
  if (status == ZLG_OK) {
    memcpy(args, sum->args, sum->args_bytes);
    *run = (struct run){.sum = *sum, .m = sum->y->rows, .n = sum->x->rows, .r = sum->y->columns};
    run->sum.args = args;
    status = zlg_sum_plan(&run->sum, run->m, run->n, run->r, &run->shape);
    if (sum->alpha == 0) leave_out_operator(&run->shape);
  }
  if (status != ZLG_OK) {
    zlg_free(args);
    zlg_free(run);
    sum->give_back(sum->keep);
    return status;
  }
  zlg_matrix_retain(sum->x);
  zlg_matrix_retain(sum->y);
  zlg_matrix_count_writer(sum->y, 1);
  const zlg_report known = known_of(run);
  return zlg_request_start(sum->context, threaded && !run->shape.direct, &known, run_sum, give_back_run, run, request);
}
