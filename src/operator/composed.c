/* Operators that apply others in turn: the request around them, and its cost. The products inside are requests of their
 * own, run in the thread of the one around. */
#include "src/operator/composed.h"

#include "src/core/memory.h"

struct job {
  struct zlg_composed composed;
};

static int run_job(zlg_request *request, void *memory) {
  const struct job *job = memory;
  const int status = job->composed.run(&job->composed, request);
  if (status == ZLG_OK) request->work_done = request->report.work;
  return status;
}

static void give_back_job(void *memory) {
  struct job *job = memory;
  zlg_matrix_count_writer(job->composed.y, -1);
  zlg_matrix_release(job->composed.x);
  zlg_matrix_release(job->composed.y);
  zlg_operator_release(job->composed.A);
  zlg_free(job);
}

int zlg_composed_start(const struct zlg_composed *composed, bool threaded, zlg_request **request) {
  zlg_cost cost;
  int status = composed->A->kind->cost(composed->A, composed->op, composed->y->columns, &cost);
  if (status != ZLG_OK) return status;
  struct job *job = zlg_calloc(1, sizeof *job);
  if (!job) return zlg_fail(composed->A->context, ZLG_ENOMEM, "no memory for a request");
  job->composed = *composed;
  zlg_operator_retain(composed->A);
  zlg_matrix_retain(composed->x);
  zlg_matrix_retain(composed->y);
  zlg_matrix_count_writer(composed->y, 1);
  const zlg_report known = {.work = cost.work, .work_unit = "flops", .flops = cost.flops, .direct = 1};
  return zlg_request_start(composed->A->context, threaded, &known, run_job, give_back_job, job, request);
}

int zlg_composed_step(zlg_request *request, zlg_operator *A, zlg_op op, double alpha, zlg_matrix *X, double beta,
                      zlg_matrix *Y) {
  const int state = zlg_request_state(request);
  return state == ZLG_OK ? zlg_apply(A, op, alpha, X, beta, Y) : state;
}

int zlg_columns_of(zlg_matrix *matrix, int64_t column, int64_t columns, zlg_matrix **view) {
  const int64_t offset = column * (matrix->order == ZLG_ROW_MAJOR ? 1 : matrix->ld);
  return zlg_matrix_view(matrix, "columns of a matrix", view, offset, matrix->rows, columns, matrix->order, matrix->ld);
}

void zlg_cost_add(zlg_cost *cost, const zlg_cost *term) {
  const int64_t memory = cost->memory_bytes > term->memory_bytes ? cost->memory_bytes : term->memory_bytes;
  if (!cost->bound) {
    *cost = *term;
    return;
  }
  cost->flops += term->flops;
  cost->work += term->work;
  cost->bytes_read += term->bytes_read;
  cost->bytes_written += term->bytes_written;
  cost->bytes_to_devices += term->bytes_to_devices;
  cost->bytes_from_devices += term->bytes_from_devices;
  cost->memory_bytes = memory;
  cost->seconds += term->seconds;
  cost->tasks += term->tasks;
  for (int kind = 0; kind < 4; kind++) cost->kind_seconds[kind] += term->kind_seconds[kind];
}
