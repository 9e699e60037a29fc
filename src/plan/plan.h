/* Plans: from an operator's sum to tiles, from tiles to tasks. The only room that submits tasks.
 *
 * Two graphs. The tiled sum, Y = alpha sum_J f(P_I, Q_J) X_J + beta Y: for every block I of output rows,
 * partial sums run over the column blocks J in `parts` independent chains (block J in chain J mod parts, each chain in
 * order), and one accumulate task adds the chains in order and writes Y_I. Tile shapes and the number of chains depend
 * on sizes only, so the bits do not depend on workers or schedulers. And the chain of Kronecker factors over blocks of
 * vectors. */
#ifndef ZLG_PLAN_PLAN_H
#define ZLG_PLAN_PLAN_H

#include "codelets/common/codelet.h"
#include "src/core/matrix.h"
#include "src/core/request.h"
#include "zellige/operator.h"

/* What an operator asks for. `args` is a template that `shape` adapts to a tile; p has a row per row of Y, q a row per
 * row of x. The codelet's buffers: P tile, Q tile, X tile, constants, accumulator (see codelets/kernel_product/args.h).
 */
struct zlg_sum {
  zlg_context *context;
  const struct zlg_codelet *codelet;
  void *args;
  size_t args_bytes;
  void (*shape)(void *args, int64_t m, int64_t n, int64_t r, bool first);
  zlg_matrix *p, *q, *x, *y;
  const double *constants;
  int64_t constant_count;
  double alpha, beta;
  void (*give_back)(void *keep); /* what must live as long as the sum: the operator */
  void *keep;
};

/* Tiles, chains and memory of a sum, from sizes, options and limits. */
struct zlg_sum_shape {
  int64_t mt, nt, rt;   /* tile: rows of Y, rows of x, columns of x */
  int64_t mi, nj, rc;   /* number of tiles in each direction */
  int64_t parts;        /* chains per block of rows */
  int64_t group;        /* blocks of rows that share a pass over the columns */
  int64_t row_slots;    /* blocks of rows alive at once */
  int64_t column_slots; /* column tiles alive at once */
  int64_t window;       /* tasks under way at most */
  int64_t memory_bytes;
  int64_t tasks;
  bool direct; /* short enough to run in the calling thread */
  double flops, work, bytes_read, bytes_written, bytes_to_devices, bytes_from_devices, seconds;
  double kind_seconds[4]; /* as in zlg_cost, and `bound` */
  const char *bound;
  double tile_seconds; /* these three as in zlg_cost */
  bool tile_calibrated;
  const char *tile_rule;
};

/* Columns of the right-hand side r are an argument: x and y may be missing (NULL) when only a cost is asked for. Writes
 * into sum->args, which must be a copy of its own. ZLG_ELIMIT where even the smallest tiles pass the context's limit,
 * ZLG_EOVERFLOW. */
int zlg_sum_plan(const struct zlg_sum *sum, int64_t m, int64_t n, int64_t r, struct zlg_sum_shape *shape);

/* Runs the sum, whose operands were validated before. `sum` and its args are copied, x and y retained, `keep` taken
 * over; the constants and p and q stay those of the operator that `keep` keeps alive. */
int zlg_sum_start(const struct zlg_sum *sum, bool threaded, zlg_request **request);

/* A chain of Kronecker factors over the columns of x: y = alpha (op_1(F_1) x … x op_n(F_n)) x + beta y, or with the
 * transpose of the product. */
struct zlg_chain {
  zlg_context *context;
  zlg_type type;
  int64_t count;
  zlg_matrix *const *factors;
  const zlg_op *ops;
  bool transposed; /* the product as a whole */
  zlg_matrix *x, *y;
  double alpha, beta;
  void (*give_back)(void *keep); /* what must live as long as the chain: the operator */
  void *keep;
};

/* Runs the chain, whose operands were validated before. `chain` is copied, x and y retained, `keep` taken over; the
 * factors stay those of the operator that `keep` keeps alive. */
int zlg_chain_start(const struct zlg_chain *chain, bool threaded, zlg_request **request);
/* Runs it at once in the calling thread where that takes less than a task costs, allocating next to nothing; false: it
 * is not so short, or lies in files, and nothing was done. */
bool zlg_chain_direct(const struct zlg_chain *chain, int *status);
/* What it will need for `vectors` columns; x and y may be missing. */
int zlg_chain_cost(const struct zlg_chain *chain, int64_t vectors, zlg_cost *cost);

/* The gradients of such a chain: of x into dx (NULL: not wanted) and of the factors into df (each may be NULL), given
 * dy, that of alpha times the product; the matrices are scaled by beta first. chain.y is not used. */
struct zlg_chain_gradient {
  struct zlg_chain chain;
  zlg_matrix *dy, *dx;
  zlg_matrix **df;
};
/* Runs it, all operands validated and neither empty nor alpha 0. The list is copied, the matrices are retained; `keep`
 * is taken over. ZLG_ELIMIT, ZLG_EOVERFLOW, ZLG_ENOMEM. */
int zlg_chain_gradient_start(const struct zlg_chain_gradient *job, bool threaded, zlg_request **request);

/* matrix = alpha values + beta matrix, all of it: values in this order, with the least leading dimension, ld. values
 * NULL: zeros. */
int zlg_matrix_update(zlg_matrix *matrix, zlg_order order, int64_t ld, double alpha, const double *values, double beta);

#endif
