/* Operators: immutable, reference-counted; one constructor per kind (zellige/kernel.h, …); one verb applies them all.
 */
#ifndef ZELLIGE_OPERATOR_H
#define ZELLIGE_OPERATOR_H

#include "zellige/matrix.h"
#include "zellige/request.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct zlg_operator zlg_operator;

/* Another reference to the same operator. */
ZLG_API zlg_operator *zlg_operator_retain(zlg_operator *op);
/* Gives a reference back; NULL is allowed. Requests under way keep theirs. */
ZLG_API void zlg_operator_release(zlg_operator *op);

typedef struct zlg_operator_info {
  const char *kind; /* "kernel", "kron" */
  zlg_type type;
  int64_t rows, columns;
  int tileable; /* 1: any block A[I, J] can be made or applied on its own */
} zlg_operator_info;
ZLG_API int zlg_operator_get_info(const zlg_operator *op, zlg_operator_info *info);

/* Y = alpha op(A) X + beta Y, with A rows x columns, op(A) X of shape rows(op(A)) x columns(X). Y is the caller's:
 * memory or file. beta = 0 never reads Y. alpha = 0 reads neither A nor X. Any number of threads may apply one
 * operator. The sum of each element of Y is taken in an order that depends on sizes and the machine only: the same call
 * gives the same bits whatever the scheduler and the number of workers (on one kind of worker). Errors, all before
 * anything is written: ZLG_EINVAL, ZLG_ESHAPE, ZLG_ETYPE, ZLG_EOVERLAP (Y overlaps X or the operator's own data),
 * ZLG_EREADONLY, ZLG_EOVERFLOW, ZLG_ELIMIT (with the sizes), ZLG_ENODEV; during the work: ZLG_EIO, ZLG_ENOSPC,
 * ZLG_EDEVICE, ZLG_ENOMEM, ZLG_ECANCELED. */
ZLG_API int zlg_apply(zlg_operator *A, zlg_op op, double alpha, zlg_matrix *X, double beta, zlg_matrix *Y);
/* The same, asynchronous: validated and started, then waited for with zlg_request_wait(). X, Y and their memory must
 * live until then and Y may not be touched. The request is the caller's to release. */
ZLG_API int zlg_apply_async(zlg_operator *A, zlg_op op, double alpha, zlg_matrix *X, double beta, zlg_matrix *Y,
                            zlg_request **request);

/* From the right: Y = alpha X op(A) + beta Y, X of shape rows(X) x rows(op(A)), Y of rows(X) x columns(op(A)). It is
 * the product of op(A) transposed with X and Y transposed, and keeps all that is said above. */
ZLG_API int zlg_apply_right(zlg_operator *A, zlg_op op, double alpha, zlg_matrix *X, double beta, zlg_matrix *Y);
ZLG_API int zlg_apply_right_async(zlg_operator *A, zlg_op op, double alpha, zlg_matrix *X, double beta, zlg_matrix *Y,
                                  zlg_request **request);

/* A = c_1 A_1 + … + c_n A_n, of `count` (1 or more) operators of one shape and type, coefficients NULL: all ones. The
 * sum is applied term by term, Y = alpha c_1 op(A_1) X + beta Y, then Y += alpha c_i op(A_i) X: Y is read and written
 * `count` times, rounded to its type each time, and no memory is needed but the terms' own. A term with c_i = 0 is left
 * out. It keeps references to the terms. Errors: ZLG_EINVAL, ZLG_ESHAPE, ZLG_ETYPE, ZLG_ENOMEM. */
ZLG_API int zlg_operator_sum(zlg_context *context, zlg_operator **sum, int64_t count, zlg_operator *const *terms,
                             const double *coefficients);

/* What an application with `columns` right-hand sides will need, known beforehand. */
typedef struct zlg_cost {
  double flops;      /* adds, multiplies and exponentials by their polynomials */
  double work;       /* pairs, for kernels */
  double bytes_read; /* of X, A's data and Y, from memory or files, each reading counted */
  double bytes_written;
  double bytes_to_devices, bytes_from_devices; /* over the buses, where the models' shares of the work come true */
  int64_t memory_bytes;                        /* the library's own, at its peak: accumulators and staged tiles */
  double seconds;                              /* predicted by the performance models, on the context's workers */
  int64_t tasks;
  int64_t tile_rows, tile_columns;
  double kind_seconds[4]; /* by zlg_worker_kind: all tasks on one worker of that kind; NaN where the context has none */
  const char *bound;      /* what limits it: "compute", "memory" (of tiles) or "disk" (files at 1 GB/s); static */
  double tile_seconds;    /* one tile on one core, by a calibrated model (tile_calibrated = 1) or by nominal rates */
  int tile_calibrated;
  const char *tile_rule; /* what its shape comes from: "time" (that a task should last), "cache" (rows that stay in a
                            core's), "size" (of the whole), "memory limit", "options"; NULL: nothing is cut; static */
} zlg_cost;
ZLG_API int zlg_operator_cost(zlg_operator *A, zlg_op op, int64_t columns, zlg_cost *cost);

#ifdef __cplusplus
}
#endif
#endif
