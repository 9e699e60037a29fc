/* Strided batches of Kronecker products: many small ones in memory, each with factors of its own or shared ones. */
#include "src/core/error.h"
#include "src/core/memory.h"
#include "src/operator/kron.h"
#include "zellige/kron.h"

struct batch {
  zlg_operator *A;
  zlg_op op; /* of what is applied from the left */
  int64_t count;
  const int64_t *factor_strides;
  zlg_matrix x, y; /* of the first entry, vectors in columns */
  int64_t x_stride, y_stride;
  double alpha, beta;
};

static int64_t factor_stride(const struct batch *b, int64_t i) {
  return b->factor_strides ? b->factor_strides[i] : 0;
}

static zlg_matrix moved(const zlg_matrix *matrix, int64_t elements) {
  zlg_matrix view = *matrix;
  view.data = matrix->data ? (char *)matrix->data + elements * (int64_t)zlg_type_size(matrix->type) : NULL;
  return view;
}

/* ---- checking --------------------------------------------------------------------------------------------------- */

static int check_stride(zlg_context *context, const char *name, int64_t stride, int64_t count,
                        const zlg_matrix *first) {
  int64_t elements, bytes;
  if (stride < 0) return zlg_fail(context, ZLG_EINVAL, "%s = %lld, expected 0 or more", name, (long long)stride);
  if (!first->data && zlg_matrix_span(first) > 0)
    return zlg_fail(context, ZLG_ENOTSUP, "%s: batches are of matrices in memory, and this one is not", name);
  if (zlg_mul64(stride, count, &elements) && zlg_mul64(elements, (int64_t)zlg_type_size(first->type), &bytes) &&
      !__builtin_add_overflow(bytes, zlg_matrix_span(first), &bytes) &&
      (uintptr_t)first->data <= UINTPTR_MAX - (uintptr_t)bytes)
    return ZLG_OK;
  return zlg_fail(context, ZLG_EOVERFLOW, "%s = %lld and %lld entries do not fit into the address space", name,
                  (long long)stride, (long long)count);
}

/* True where the stretches of memory from the first to the last entry meet. */
static bool stretches_meet(const struct batch *b, const zlg_matrix *other, int64_t stride) {
  const int64_t size = (int64_t)zlg_type_size(other->type), last = b->count - 1;
  const char *y = b->y.data, *x = other->data;
  const int64_t y_bytes = zlg_matrix_span(&b->y), x_bytes = zlg_matrix_span(other);
  if (y_bytes == 0 || x_bytes == 0) return false;
  return x < y + last * b->y_stride * size + y_bytes && y < x + last * stride * size + x_bytes;
}

static int check_overlaps(const struct batch *b, const struct zlg_kron *kron) {
  zlg_context *context = b->A->context;
  for (int64_t e = 1; e < b->count; e++) {
    const zlg_matrix entry = moved(&b->y, e * b->y_stride);
    if (zlg_matrix_overlaps(&entry, &b->y))
      return zlg_fail(context, ZLG_EOVERLAP, "y_stride = %lld: entry %lld of Y overlaps the first",
                      (long long)b->y_stride, (long long)e);
  }
  if (stretches_meet(b, &b->x, b->x_stride))
    return zlg_fail(context, ZLG_EOVERLAP, "the batch of Y overlaps that of X");
  for (int64_t i = 0; i < kron->count; i++)
    if (stretches_meet(b, kron->factors[i], factor_stride(b, i)))
      return zlg_fail(context, ZLG_EOVERLAP, "the batch of Y overlaps that of factors[%lld]", (long long)i);
  return ZLG_OK;
}

static int check_batch(const struct batch *b) {
  zlg_context *context = b->A->context;
  const struct zlg_kron *kron = zlg_kron_of(b->A);
  if (b->count < 0) return zlg_fail(context, ZLG_EINVAL, "batch = %lld, expected 0 or more", (long long)b->count);
  int status = check_stride(context, "x_stride", b->x_stride, b->count, &b->x);
  if (status == ZLG_OK) status = check_stride(context, "y_stride", b->y_stride, b->count, &b->y);
  for (int64_t i = 0; i < kron->count && status == ZLG_OK; i++)
    status = check_stride(context, "factor_strides", factor_stride(b, i), b->count, kron->factors[i]);
  return status == ZLG_OK ? check_overlaps(b, kron) : status;
}

/* ---- applying --------------------------------------------------------------------------------------------------- */

/* All entries' columns as those of one matrix; false where they do not lie so. */
static bool join(zlg_matrix *matrix, int64_t stride, int64_t count) {
  const int64_t columns = matrix->columns;
  if (matrix->order == ZLG_COLUMN_MAJOR && columns == 1 && stride >= matrix->rows && stride > 0)
    matrix->ld = stride;
  else if (matrix->order == ZLG_COLUMN_MAJOR ? stride != columns * matrix->ld
                                             : stride != columns || matrix->ld < count * columns)
    return false;
  matrix->columns = columns * count;
  return true;
}

/* A batch with shared factors may be one product of more vectors. */
static void join_entries(struct batch *b) {
  const struct zlg_kron *kron = zlg_kron_of(b->A);
  for (int64_t i = 0; i < kron->count; i++)
    if (factor_stride(b, i) != 0) return;
  zlg_matrix x = b->x, y = b->y;
  if (!join(&x, b->x_stride, b->count) || !join(&y, b->y_stride, b->count)) return;
  b->x = x, b->y = y;
  b->count = 1;
}

static int apply_chain(struct zlg_chain *chain) {
  int status;
  zlg_request *request = NULL;
  if (!chain->context->options.progress && zlg_chain_direct(chain, &status)) return status;
  zlg_operator_retain(chain->keep);
  status = zlg_chain_start(chain, false, &request);
  if (status == ZLG_OK) status = zlg_request_wait(request);
  zlg_request_release(request);
  return status;
}

static int apply_entries(struct batch *b) {
  const struct zlg_kron *kron = zlg_kron_of(b->A);
  zlg_matrix *entries = zlg_calloc((size_t)kron->count + 1, sizeof *entries);
  zlg_matrix **factors = zlg_calloc((size_t)kron->count + 1, sizeof *factors);
  int status = entries && factors ? ZLG_OK : zlg_fail(b->A->context, ZLG_ENOMEM, "no memory for a batch's factors");
  struct zlg_chain chain = zlg_kron_chain(b->A, b->op);
  chain.factors = factors;
  chain.alpha = b->alpha, chain.beta = b->beta;
  for (int64_t e = 0; e < b->count && status == ZLG_OK; e++) {
    zlg_matrix x = moved(&b->x, e * b->x_stride), y = moved(&b->y, e * b->y_stride);
    for (int64_t i = 0; i < kron->count; i++) {
      entries[i] = moved(kron->factors[i], e * factor_stride(b, i));
      factors[i] = &entries[i];
    }
    chain.x = &x, chain.y = &y;
    status = apply_chain(&chain);
  }
  zlg_free(entries);
  zlg_free(factors);
  return status;
}

static int apply_batch(zlg_operator *A, enum zlg_side side, zlg_op op, int64_t count, const int64_t *factor_strides,
                       double alpha, zlg_matrix *X, int64_t x_stride, double beta, zlg_matrix *Y, int64_t y_stride) {
  int status = zlg_operator_check(A, side, op, alpha, X, beta, Y);
  if (status != ZLG_OK) return status;
  if (A->kind != &zlg_kron_kind)
    return zlg_fail(A->context, ZLG_EINVAL, "A is a %s operator, expected a zlg_kron()", A->kind->name);
  zlg_matrix x = zlg_matrix_transposed(X), y = zlg_matrix_transposed(Y);
  const zlg_op other = op == ZLG_TRANS ? ZLG_NOTRANS : ZLG_TRANS;
  struct batch b = {.A = A,
                    .op = side == ZLG_LEFT ? op : other,
                    .count = count,
                    .factor_strides = factor_strides,
                    .x = side == ZLG_LEFT ? zlg_matrix_transposed(&x) : x,
                    .y = side == ZLG_LEFT ? zlg_matrix_transposed(&y) : y,
                    .x_stride = x_stride,
                    .y_stride = y_stride,
                    .alpha = alpha,
                    .beta = beta};
  status = check_batch(&b);
  if (status != ZLG_OK || b.count == 0) return status;
  join_entries(&b);
  return apply_entries(&b);
}

int zlg_kron_apply_batched(zlg_operator *A, zlg_op op, int64_t batch, const int64_t *factor_strides, double alpha,
                           zlg_matrix *X, int64_t x_stride, double beta, zlg_matrix *Y, int64_t y_stride) {
  return apply_batch(A, ZLG_LEFT, op, batch, factor_strides, alpha, X, x_stride, beta, Y, y_stride);
}

int zlg_kron_apply_right_batched(zlg_operator *A, zlg_op op, int64_t batch, const int64_t *factor_strides, double alpha,
                                 zlg_matrix *X, int64_t x_stride, double beta, zlg_matrix *Y, int64_t y_stride) {
  return apply_batch(A, ZLG_RIGHT, op, batch, factor_strides, alpha, X, x_stride, beta, Y, y_stride);
}
