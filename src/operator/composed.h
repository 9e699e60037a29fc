/* Operators that apply others in turn: one request around several. */
#ifndef ZLG_OPERATOR_COMPOSED_H
#define ZLG_OPERATOR_COMPOSED_H

#include "src/core/request.h"
#include "src/operator/operator.h"

struct zlg_composed {
  zlg_operator *A;
  zlg_op op;
  double alpha, beta;
  zlg_matrix *x, *y;
  int (*run)(const struct zlg_composed *composed, zlg_request *request);
};

/* Starts run() as a request. `composed` is copied; A, x and y are retained until its end. */
int zlg_composed_start(const struct zlg_composed *composed, bool threaded, zlg_request **request);
/* One product inside of it; not begun where the request is cancelled. */
int zlg_composed_step(zlg_request *request, zlg_operator *A, zlg_op op, double alpha, zlg_matrix *X, double beta,
                      zlg_matrix *Y);
/* A view of columns [column, column + columns). */
int zlg_columns_of(zlg_matrix *matrix, int64_t column, int64_t columns, zlg_matrix **view);
/* Adds a term that is applied after others: work and bytes add up, of memory the most counts. */
void zlg_cost_add(zlg_cost *cost, const zlg_cost *term);

#endif
