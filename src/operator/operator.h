/* The inside of an operator: a shape, a reference count, and what its kind can do. */
#ifndef ZLG_OPERATOR_OPERATOR_H
#define ZLG_OPERATOR_OPERATOR_H

#include <stdatomic.h>
#include <stdbool.h>

#include "src/core/matrix.h"
#include "zellige/operator.h"

/* What a kind of operator implements; X, Y, alpha, beta were validated by operator.c. */
struct zlg_operator_kind {
  const char *name;
  bool tileable;
  /* True where writing Y could change the operator's own data. */
  bool (*overlaps)(const zlg_operator *A, const zlg_matrix *Y);
  /* Starts Y = alpha op(A) X + beta Y. The request holds its own reference to A. */
  int (*apply)(zlg_operator *A, zlg_op op, double alpha, zlg_matrix *X, double beta, zlg_matrix *Y, bool threaded,
               zlg_request **request);
  /* Does it at once where it is short, without a request; false: not done. NULL where a kind has no such way. X and Y
   * are not to be referenced beyond the call. */
  bool (*direct)(zlg_operator *A, zlg_op op, double alpha, zlg_matrix *X, double beta, zlg_matrix *Y, int *status);
  int (*cost)(zlg_operator *A, zlg_op op, int64_t columns, zlg_cost *cost);
  void (*release)(zlg_operator *A); /* frees what `self` holds */
};

struct zlg_operator {
  const struct zlg_operator_kind *kind;
  zlg_context *context;
  atomic_int references;
  zlg_type type;
  int64_t rows, columns;
  void *self; /* the kind's own state, immutable */
};

/* Which way a product goes: op(A) X or X op(A). */
enum zlg_side { ZLG_LEFT, ZLG_RIGHT };
/* What is wrong with a product before it starts; names the caller's X and Y. */
int zlg_operator_check(const zlg_operator *A, enum zlg_side side, zlg_op op, double alpha, const zlg_matrix *X,
                       double beta, const zlg_matrix *Y);
/* A transposed view of memory for the length of a call, without an object of its own. */
zlg_matrix zlg_matrix_transposed(const zlg_matrix *matrix);

zlg_operator *zlg_operator_new(zlg_context *context, const struct zlg_operator_kind *kind, zlg_type type, int64_t rows,
                               int64_t columns, void *self);

#endif
