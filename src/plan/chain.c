/* A chain of Kronecker factors at work, in the request's own thread: one block of all vectors. */
#include <math.h>
#include <string.h>

#include "src/core/memory.h"
#include "src/plan/chain.h"
#include "src/plan/graph.h"

struct run {
  struct zlg_chain chain;
  zlg_request *request;
};

static int copy_in(const struct zlg_chain *chain, zlg_matrix *matrix, bool read, struct zlg_operand *at) {
  at->ld = zlg_matrix_least_ld(matrix->rows, matrix->columns, matrix->order);
  at->data = zlg_malloc((size_t)(matrix->rows * matrix->columns) * zlg_type_size(matrix->type));
  if (!at->data) return zlg_fail(chain->context, ZLG_ENOMEM, "no memory for a copy of a matrix");
  return read ? zlg_matrix_read(matrix, 0, matrix->rows, 0, matrix->columns, matrix->order, at->ld, at->data) : ZLG_OK;
}

/* The vectors are the columns: side by side in a block that is stored by columns. */
static zlg_order block_order(const zlg_matrix *matrix) {
  return matrix->order == ZLG_ROW_MAJOR ? ZLG_COLUMN_MAJOR : ZLG_ROW_MAJOR;
}

static int only_scale(const struct zlg_chain *chain, struct zlg_operand *y) {
  struct zlg_accumulate_args args = {.type = chain->type,
                                     .m = chain->y->rows,
                                     .r = chain->y->columns,
                                     .y_order = chain->y->order,
                                     .parts = 0,
                                     .alpha = chain->alpha,
                                     .beta = chain->beta};
  struct zlg_operand operands[] = {*y, {NULL, 0}};
  return zlg_codelet_accumulate.cpu(&args, operands);
}

static int apply_links(const struct zlg_chain *chain, const struct zlg_links *links, struct zlg_operand *x,
                       struct zlg_operand *y) {
  struct zlg_kron_factor_args args = {.type = chain->type,
                                      .count = links->count,
                                      .vectors = chain->y->columns,
                                      .x_order = block_order(chain->x),
                                      .y_order = block_order(chain->y),
                                      .beta = chain->beta};
  memcpy(args.p, links->p, sizeof args.p);
  memcpy(args.q, links->q, sizeof args.q);
  zlg_chain_turn(&args);
  void *packed = zlg_malloc_aligned(64, (size_t)links->elements * zlg_type_size(chain->type));
  if (!packed) return zlg_fail(chain->context, ZLG_ENOMEM, "no memory for the factors");
  double scale;
  int status = zlg_chain_read(chain, links, packed, &scale);
  args.alpha = chain->alpha * scale;
  struct zlg_operand operands[] = {*x, {packed, 0}, *y};
  if (status == ZLG_OK) status = zlg_codelet_kron_factor.cpu(&args, operands);
  zlg_free_aligned(packed);
  return status;
}

static int run_chain(zlg_request *request, void *job) {
  struct run *run = job;
  const struct zlg_chain *chain = &run->chain;
  struct zlg_links links;
  int status = zlg_chain_link(chain, ZLG_KRON_FACTORS, &links);
  if (status != ZLG_OK || chain->y->rows == 0 || chain->y->columns == 0) return status;
  struct zlg_operand x = {chain->x->data, chain->x->ld}, y = {chain->y->data, chain->y->ld};
  const bool reads = chain->alpha != 0 && chain->x->rows > 0;
  if (reads && !x.data) status = copy_in(chain, chain->x, true, &x);
  if (status == ZLG_OK && !y.data) status = copy_in(chain, chain->y, chain->beta != 0, &y);
  if (status == ZLG_OK) status = reads ? apply_links(chain, &links, &x, &y) : only_scale(chain, &y);
  if (status == ZLG_OK && !chain->y->data)
    status = zlg_matrix_write(chain->y, 0, chain->y->rows, 0, chain->y->columns, chain->y->order, y.ld, y.data);
  if (!chain->x->data) zlg_free(x.data);
  if (!chain->y->data) zlg_free(y.data);
  if (status == ZLG_OK) request->work_done = request->report.work;
  return status;
}

static void give_back_run(void *job) {
  struct run *run = job;
  zlg_matrix_count_writer(run->chain.y, -1);
  zlg_matrix_release(run->chain.x);
  zlg_matrix_release(run->chain.y);
  run->chain.give_back(run->chain.keep);
  zlg_free(run);
}

int zlg_chain_start(const struct zlg_chain *chain, bool threaded, zlg_request **request) {
  struct run *run = zlg_calloc(1, sizeof *run);
  zlg_cost cost;
  int status = run ? zlg_chain_cost(chain, chain->y->columns, &cost)
                   : zlg_fail(chain->context, ZLG_ENOMEM, "no memory for a chain of factors");
  if (status != ZLG_OK) {
    zlg_free(run);
    chain->give_back(chain->keep);
    return status;
  }
  run->chain = *chain;
  zlg_matrix_retain(chain->x);
  zlg_matrix_retain(chain->y);
  zlg_matrix_count_writer(chain->y, 1);
  const zlg_report known = {.work = cost.work, .work_unit = "flops", .flops = cost.flops, .direct = 1};
  return zlg_request_start(chain->context, threaded, &known, run_chain, give_back_run, run, request);
}
