/* The sum without tasks: a problem that costs less than a task runs at once in the calling thread, through the same CPU
 * implementations and with the same bits as its single tile would have. */
#include "src/core/memory.h"
#include "src/plan/graph.h"

static struct zlg_operand operand_of(const zlg_matrix *matrix, const double *zeros) {
  if (matrix->columns == 0 && zeros) return (struct zlg_operand){(void *)zeros, 1};
  return (struct zlg_operand){matrix->data, matrix->ld};
}

static int end(const struct zlg_sum *sum, int parts, double *acc) {
  struct zlg_accumulate_args args = {.type = sum->y->type,
                                     .m = sum->y->rows,
                                     .r = sum->y->columns,
                                     .y_order = sum->y->order,
                                     .parts = parts,
                                     .alpha = sum->alpha,
                                     .beta = sum->beta};
  struct zlg_operand operands[] = {operand_of(sum->y, NULL), {acc, 0}};
  return zlg_codelet_accumulate.cpu(&args, operands);
}

int zlg_sum_direct(const struct zlg_sum *sum, zlg_request *request) {
  int64_t m = sum->y->rows, n = sum->x->rows, r = sum->y->columns;
  if (m == 0 || r == 0) return ZLG_OK;
  if (n == 0 || sum->alpha == 0) return end(sum, 0, NULL);
  /* Points in no dimension are all the same: a column of zeros stands for them. */
  bool origin = sum->p->columns == 0;
  double *zeros = origin ? zlg_calloc((size_t)(m > n ? m : n), sizeof *zeros) : NULL;
  double *acc = zlg_malloc_aligned(64, (size_t)(m * r) * sizeof *acc);
  int status =
      !acc || (origin && !zeros) ? zlg_fail(request->context, ZLG_ENOMEM, "no memory for an accumulator") : ZLG_OK;
  if (status == ZLG_OK) {
    sum->shape(sum->args, m, n, r, true);
    struct zlg_operand operands[] = {operand_of(sum->p, zeros),
                                     operand_of(sum->q, zeros),
                                     operand_of(sum->x, NULL),
                                     {(void *)sum->constants, 0},
                                     {acc, 0}};
    status = sum->codelet->cpu(sum->args, operands);
    if (status != ZLG_OK) zlg_fail(request->context, status, "%s: no memory for scratch", sum->codelet->name);
  }
  if (status == ZLG_OK) status = end(sum, 1, acc);
  zlg_free_aligned(acc);
  zlg_free(zeros);
  return status;
}
