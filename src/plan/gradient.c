/* Gradients of a chain of Kronecker factors at work: blocks of vectors, each a task that adds into the accumulator of
 * its chain (block b belongs to chain b mod parts, the tasks of a chain run in order); at the end the chains are added
 * in order. Blocks and chains come from sizes alone, and so do the bits. */
#include <math.h>
#include <string.h>

#include "codelets/kron_gradients/args.h"
#include "src/core/memory.h"
#include "src/core/runtime.h"
#include "src/plan/chain.h"
#include "src/plan/graph.h"

#define NOMINAL_FLOPS 5e10
#define TASK_SECONDS 4e-3
#define VECTORS 16 /* a block has a multiple of them: registers are filled with vectors */
#define PARTS_MOST 32
#define PARTS_BYTES (64ll << 20)

struct block { /* of vectors, alive */
  struct zlg_tile x, dy, dx;
};

struct run {
  struct zlg_chain_gradient job;
  struct zlg_links links;
  struct zlg_kron_gradients_args args;
  int64_t vectors, size, count, parts, slots; /* of a block; blocks */
  bool direct;
  double scale; /* the product of the 1 x 1 factors */
  void *packed;
  double *acc; /* of all parts */
  struct block *blocks;
  starpu_data_handle_t factors, parts_at[PARTS_MOST];
  zlg_request *request;
};

/* ---- shape ------------------------------------------------------------------------------------------------------ */

static zlg_order block_order(const zlg_matrix *matrix) {
  return matrix->order == ZLG_ROW_MAJOR ? ZLG_COLUMN_MAJOR : ZLG_ROW_MAJOR;
}

static void set_args(struct run *run) {
  const struct zlg_chain_gradient *job = &run->job;
  struct zlg_kron_factor_args chain = {.count = run->links.count};
  memcpy(chain.p, run->links.p, sizeof chain.p);
  memcpy(chain.q, run->links.q, sizeof chain.q);
  zlg_chain_turn(&chain);
  run->args = (struct zlg_kron_gradients_args){.type = job->chain.type,
                                               .count = run->links.count,
                                               .x_order = block_order(job->chain.x),
                                               .dy_order = block_order(job->dy),
                                               .dx_order = job->dx ? block_order(job->dx) : ZLG_ROW_MAJOR,
                                               .wants_dx = job->dx != NULL,
                                               .beta = job->chain.beta};
  memcpy(run->args.p, chain.p, sizeof chain.p);
  memcpy(run->args.q, chain.q, sizeof chain.q);
  memcpy(run->args.turn, chain.turn, sizeof chain.turn);
}

static int64_t staged_bytes(const struct run *run) {
  const struct zlg_chain_gradient *job = &run->job;
  int64_t elements = 0;
  if (zlg_tile_is_staged(job->chain.x)) elements += run->links.k;
  if (zlg_tile_is_staged(job->dy)) elements += run->links.l;
  if (job->dx && zlg_tile_is_staged(job->dx)) elements += run->links.k;
  return elements * run->size * (int64_t)zlg_type_size(job->chain.type);
}

static int check_memory(const struct run *run) {
  const zlg_context *context = run->job.chain.context;
  struct zlg_kron_gradients_args args = run->args;
  args.vectors = run->size;
  const double scratch = (double)ZLG_CPU(zlg_kron_gradients_scratch)(&args),
               wants = scratch * (run->direct ? 1 : context->worker_count) +
                       (double)run->links.elements * (8.0 * (double)run->parts + 8) +
                       (double)run->slots * (double)staged_bytes(run);
  if (wants <= (double)context->memory_limit) return ZLG_OK;
  return zlg_fail(
      context, ZLG_ELIMIT,
      "the gradients want %.3g bytes for intermediate results, accumulators and tiles of files; the limit is %lld",
      wants, (long long)context->memory_limit);
}

static int shape_run(struct run *run) {
  const zlg_context *context = run->job.chain.context;
  int64_t doers = 0;
  for (int64_t i = 0; i < run->job.chain.count; i++) {
    const zlg_matrix *factor = run->job.chain.factors[i];
    doers += factor->rows != 1 || factor->columns != 1;
  }
  if (doers > run->links.count)
    return zlg_fail(context, ZLG_EOVERFLOW, "%lld factors are not 1 x 1; gradients take %d at most", (long long)doers,
                    ZLG_KRON_GRADIENTS_FACTORS);
  if (run->links.k > INT32_MAX || run->links.l > INT32_MAX)
    return zlg_fail(context, ZLG_EOVERFLOW, "vectors of %lld and %lld elements; gradients take fewer than 2^31",
                    (long long)run->links.k, (long long)run->links.l);
  struct zlg_count count;
  set_args(run);
  run->args.vectors = 1;
  zlg_codelet_kron_gradients.count(&run->args, &count);
  const double seconds = count.flops / NOMINAL_FLOPS;
  run->vectors = run->job.chain.x->columns;
  run->size = min64((int64_t)fmin(TASK_SECONDS / seconds / VECTORS + 1, 1e9) * VECTORS, run->vectors);
  run->size = min64(run->size, INT32_MAX / VECTORS * VECTORS);
  run->count = (run->vectors + run->size - 1) / run->size;
  run->parts = min64(min64(run->count, PARTS_MOST), PARTS_BYTES / (8 * run->links.elements));
  if (run->parts < 1) run->parts = 1;
  run->direct = run->count == 1 && seconds * (double)run->vectors < context->options.direct_seconds &&
                run->job.chain.x->data && run->job.dy->data && (!run->job.dx || run->job.dx->data);
  run->slots = min64(run->count, 2 * context->worker_count + 2);
  return check_memory(run);
}

/* ---- tasks ------------------------------------------------------------------------------------------------------ */

static int close_block(struct run *run, struct block *block, bool write) {
  int status = zlg_tile_close(run->request, &block->dx, run->job.dx, write);
  zlg_tile_close(run->request, &block->x, run->job.chain.x, false);
  zlg_tile_close(run->request, &block->dy, run->job.dy, false);
  return status;
}

static int open_block(struct run *run, struct block *block, int64_t vector, int64_t vectors) {
  const struct zlg_chain_gradient *job = &run->job;
  zlg_request *request = run->request;
  int status = close_block(run, block, true);
  if (status == ZLG_OK)
    status = zlg_tile_open(request, &block->x, job->chain.x, ZLG_TILE_READ, 0, run->links.k, vector, vectors);
  if (status == ZLG_OK)
    status = zlg_tile_open(request, &block->dy, job->dy, ZLG_TILE_READ, 0, run->links.l, vector, vectors);
  if (status == ZLG_OK && job->dx)
    status = zlg_tile_open(request, &block->dx, job->dx, job->chain.beta == 0 ? ZLG_TILE_WRITE : ZLG_TILE_UPDATE, 0,
                           run->links.k, vector, vectors);
  return status;
}

static int submit_block(struct run *run, int64_t b) {
  struct block *block = &run->blocks[b % run->slots];
  const int64_t vector = b * run->size, part = b % run->parts;
  run->args.vectors = min64(run->size, run->vectors - vector);
  run->args.first = b < run->parts;
  int status = open_block(run, block, vector, run->args.vectors);
  if (status != ZLG_OK) return status;
  struct zlg_task *task = zlg_task_new(run->request, &zlg_codelet_kron_gradients, &run->args, sizeof run->args);
  if (!task) return ZLG_ENOMEM;
  task->pending[0] = &block->x.pending;
  task->pending[1] = &block->dy.pending;
  task->pending[2] = &block->dx.pending;
  const starpu_data_handle_t handles[] = {block->x.handle, block->dy.handle, run->factors, run->parts_at[part],
                                          block->dx.handle};
  const enum starpu_data_access_mode modes[] = {STARPU_R, STARPU_R, STARPU_R, run->args.first ? STARPU_W : STARPU_RW,
                                                run->args.beta == 0 ? STARPU_W : STARPU_RW};
  return zlg_task_submit(task, 2 * run->slots, handles, modes, run->args.wants_dx ? 5 : 4);
}

static int run_tasks(struct run *run) {
  run->blocks = zlg_calloc((size_t)run->slots, sizeof *run->blocks);
  if (!run->blocks) return zlg_fail(run->request->context, ZLG_ENOMEM, "no memory for a list of blocks");
  zlg_runtime_enter(run->request->context);
  const uint32_t elements = (uint32_t)run->links.elements;
  starpu_vector_data_register(&run->factors, STARPU_MAIN_RAM, (uintptr_t)run->packed, elements,
                              zlg_type_size(run->job.chain.type));
  for (int64_t part = 0; part < run->parts; part++)
    starpu_vector_data_register(&run->parts_at[part], STARPU_MAIN_RAM,
                                (uintptr_t)(run->acc + part * run->links.elements), elements, sizeof *run->acc);
  int status = ZLG_OK;
  for (int64_t b = 0; b < run->count && status == ZLG_OK; b++) {
    status = submit_block(run, b);
    if (status == ZLG_OK) status = zlg_request_state(run->request);
  }
  if (status != ZLG_OK) zlg_request_fail(run->request, status);
  zlg_tasks_drain(run->request);
  if (status == ZLG_OK) status = zlg_request_state(run->request);
  for (int64_t slot = 0; slot < run->slots; slot++) {
    const int one = close_block(run, &run->blocks[slot], status == ZLG_OK);
    if (status == ZLG_OK) status = one;
    zlg_tile_free(run->request, &run->blocks[slot].x);
    zlg_tile_free(run->request, &run->blocks[slot].dy);
    zlg_tile_free(run->request, &run->blocks[slot].dx);
  }
  starpu_data_unregister(run->factors);
  for (int64_t part = 0; part < run->parts; part++) starpu_data_unregister(run->parts_at[part]);
  zlg_runtime_leave(run->request->context);
  zlg_free(run->blocks);
  return status;
}

static int run_direct(struct run *run) {
  const struct zlg_chain_gradient *job = &run->job;
  run->args.vectors = run->vectors;
  run->args.first = true;
  const struct zlg_operand operands[] = {{job->chain.x->data, job->chain.x->ld},
                                         {job->dy->data, job->dy->ld},
                                         {run->packed, 0},
                                         {run->acc, 0},
                                         {job->dx ? job->dx->data : NULL, job->dx ? job->dx->ld : 0}};
  int status = zlg_codelet_kron_gradients.cpu(&run->args, operands);
  if (status == ZLG_OK) run->request->work_done = run->request->report.work;
  return status == ZLG_OK ? ZLG_OK : zlg_fail(run->request->context, status, "no memory for scratch");
}

/* ---- from accumulators to matrices
 * -------------------------------------------------------------------------------------- */

int zlg_matrix_update(zlg_matrix *matrix, zlg_order order, int64_t ld, double alpha, const double *values,
                      double beta) {
  const int64_t elements = matrix->rows * matrix->columns;
  const bool narrow = matrix->type == ZLG_F32;
  char *now = zlg_malloc((size_t)(elements > 0 ? elements : 1) * zlg_type_size(matrix->type));
  if (!now)
    return zlg_fail(matrix->context, ZLG_ENOMEM, "no memory for a matrix of %lld elements", (long long)elements);
  int status = beta != 0 ? zlg_matrix_read(matrix, 0, matrix->rows, 0, matrix->columns, order, ld, now) : ZLG_OK;
  if (status == ZLG_OK) {
    for (int64_t e = 0; e < elements; e++) {
      double *wide = (double *)now + e;
      float *slim = (float *)now + e;
      const double before = beta == 0 ? 0 : beta * (narrow ? (double)*slim : *wide);
      const double value = (values ? alpha * values[e] : 0) + before;
      if (narrow)
        *slim = (float)value;
      else
        *wide = value;
    }
    status = zlg_matrix_write(matrix, 0, matrix->rows, 0, matrix->columns, order, ld, now);
  }
  zlg_free(now);
  return status;
}

/* One factor as the chain applies it, p x q and row-major, in binary64. */
struct wide {
  int64_t p, q;
  double *at;
};

static bool is_transposed(const struct zlg_chain *chain, int64_t i) {
  return (chain->ops[i] == ZLG_TRANS) != chain->transposed;
}

static struct wide sides_of(const struct zlg_chain *chain, int64_t i) {
  const zlg_matrix *f = chain->factors[i];
  return is_transposed(chain, i) ? (struct wide){f->rows, f->columns, NULL} : (struct wide){f->columns, f->rows, NULL};
}

static zlg_order order_of(const struct zlg_chain *chain, int64_t i) {
  return is_transposed(chain, i) ? ZLG_ROW_MAJOR : ZLG_COLUMN_MAJOR;
}

static int read_wide(const struct zlg_chain *chain, int64_t i, struct wide *f) {
  *f = sides_of(chain, i);
  const zlg_matrix *matrix = chain->factors[i];
  const int64_t elements = f->p * f->q;
  f->at = zlg_malloc((size_t)elements * sizeof *f->at);
  if (!f->at) return zlg_fail(chain->context, ZLG_ENOMEM, "no memory for factors[%lld]", (long long)i);
  int status = zlg_matrix_read(matrix, 0, matrix->rows, 0, matrix->columns, order_of(chain, i), f->q, f->at);
  for (int64_t e = elements; chain->type == ZLG_F32 && e-- > 0;) {
    float value;
    memcpy(&value, (const char *)f->at + (size_t)e * sizeof value, sizeof value);
    f->at[e] = value;
  }
  if (status != ZLG_OK) zlg_free(f->at);
  return status;
}

static int store(const struct run *run, int64_t i, double alpha, const double *values) {
  return zlg_matrix_update(run->job.df[i], order_of(&run->job.chain, i), sides_of(&run->job.chain, i).q,
                           alpha * run->job.chain.alpha, values, run->job.chain.beta);
}

static bool only_scales(struct wide s) {
  return s.p == 1 && s.q == 1;
}

/* The factors of 1 x 1 but one, which is left out where it is. */
static int scale_without(const struct zlg_chain *chain, int64_t left_out, double *scale) {
  *scale = 1;
  for (int64_t i = 0; i < chain->count; i++) {
    if (i == left_out || !only_scales(sides_of(chain, i))) continue;
    struct wide f;
    int status = read_wide(chain, i, &f);
    if (status != ZLG_OK) return status;
    *scale *= f.at[0];
    zlg_free(f.at);
  }
  return ZLG_OK;
}

/* Of a factor of 1 x 1: the others times the sum of any link's elements times their gradients. */
static int store_scale(const struct run *run, int64_t i, const double *d) {
  double scale, sum = 0;
  int status = scale_without(&run->job.chain, i, &scale);
  if (status != ZLG_OK) return status;
  for (int64_t e = 0; e < (int64_t)run->links.p[0] * run->links.q[0]; e++)
    sum += d[e] * (run->job.chain.type == ZLG_F32 ? ((const float *)run->packed)[e] : ((const double *)run->packed)[e]);
  return store(run, i, scale, &sum);
}

/* A link is one factor that does something, and those of 1 x 1 around it. */
static int store_all(const struct run *run) {
  const struct zlg_chain *chain = &run->job.chain;
  const double *d = run->acc;
  int status = ZLG_OK;
  for (int64_t i = 0; i < chain->count && status == ZLG_OK; i++) {
    const struct wide s = sides_of(chain, i);
    if (run->job.df[i]) status = only_scales(s) ? store_scale(run, i, run->acc) : store(run, i, run->scale, d);
    if (!only_scales(s)) d += s.p * s.q;
  }
  return status;
}

/* ---- the whole -------------------------------------------------------------------------------------------------- */

static int run_gradient(zlg_request *request, void *memory) {
  struct run *run = memory;
  run->request = request;
  const size_t elements = (size_t)run->links.elements;
  run->packed = zlg_malloc_aligned(64, elements * zlg_type_size(run->job.chain.type));
  run->acc = zlg_malloc_aligned(64, elements * (size_t)run->parts * sizeof *run->acc);
  int status = run->packed && run->acc ? ZLG_OK : zlg_fail(request->context, ZLG_ENOMEM, "no memory for accumulators");
  if (status == ZLG_OK) status = zlg_chain_read(&run->job.chain, &run->links, run->packed, &run->scale);
  run->args.alpha = run->job.chain.alpha * run->scale;
  if (status == ZLG_OK) status = run->direct ? run_direct(run) : run_tasks(run);
  for (int64_t part = 1; part < run->parts && status == ZLG_OK; part++)
    for (size_t e = 0; e < elements; e++) run->acc[e] += run->acc[(size_t)part * elements + e];
  if (status == ZLG_OK) status = store_all(run);
  zlg_free_aligned(run->packed);
  zlg_free_aligned(run->acc);
  return status;
}

static void count_writers(const struct zlg_chain_gradient *job, int change) {
  for (int64_t i = 0; i < job->chain.count; i++)
    if (job->df[i]) zlg_matrix_count_writer(job->df[i], change);
  if (job->dx) zlg_matrix_count_writer(job->dx, change);
}

static void give_back_run(void *memory) {
  struct run *run = memory;
  struct zlg_chain_gradient *job = &run->job;
  count_writers(job, -1);
  for (int64_t i = 0; i < job->chain.count; i++) zlg_matrix_release(job->df[i]);
  zlg_free(job->df);
  zlg_matrix_release(job->chain.x);
  zlg_matrix_release(job->dy);
  zlg_matrix_release(job->dx);
  job->chain.give_back(job->chain.keep);
  zlg_free(run);
}

int zlg_chain_gradient_start(const struct zlg_chain_gradient *job, bool threaded, zlg_request **request) {
  const int64_t count = job->chain.count;
  struct run *run = zlg_calloc(1, sizeof *run);
  zlg_matrix **df = zlg_calloc((size_t)count + 1, sizeof(zlg_matrix *));
  int status = run && df ? ZLG_OK : zlg_fail(job->chain.context, ZLG_ENOMEM, "no memory for a request");
  if (status == ZLG_OK) {
    run->job = *job;
    run->job.df = df;
    status = zlg_chain_link(&job->chain, ZLG_KRON_GRADIENTS_FACTORS, &run->links);
  }
  if (status == ZLG_OK) status = shape_run(run);
  if (status != ZLG_OK) {
    zlg_free(df);
    zlg_free(run);
    job->chain.give_back(job->chain.keep);
    return status;
  }
  for (int64_t i = 0; i < count; i++)
    if (job->df[i]) df[i] = zlg_matrix_retain(job->df[i]);
  zlg_matrix_retain(job->chain.x);
  zlg_matrix_retain(job->dy);
  if (job->dx) zlg_matrix_retain(job->dx);
  count_writers(&run->job, 1);
  struct zlg_count one;
  run->args.vectors = run->vectors;
  zlg_codelet_kron_gradients.count(&run->args, &one);
  const zlg_report known = {.work = one.work,
                            .work_unit = "flops",
                            .flops = one.flops,
                            .tasks = run->direct ? 0 : run->count,
                            .direct = run->direct,
                            .tile_rows = run->links.k,
                            .tile_columns = run->size};
  return zlg_request_start(job->chain.context, threaded && !run->direct, &known, run_gradient, give_back_run, run,
                           request);
}
