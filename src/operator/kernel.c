/* Kernel operators: parameters checked and kept, products handed to the plan as tiled sums. Every kernel here is
 * symmetric in its two points, so the transpose is the same sum with the two sets of points exchanged. */
#include "zellige/kernel.h"

#include <math.h>
#include <string.h>

#include "codelets/kernel_product/args.h"
#include "src/core/error.h"
#include "src/core/memory.h"
#include "src/operator/operator.h"
#include "src/plan/plan.h"

static const char *const kernel_names[] = {[ZLG_GAUSSIAN] = "gaussian",
                                           [ZLG_EXPONENTIAL] = "exponential",
                                           [ZLG_LAPLACIAN] = "laplacian",
                                           [ZLG_MATERN12] = "matern12",
                                           [ZLG_MATERN32] = "matern32",
                                           [ZLG_MATERN52] = "matern52",
                                           [ZLG_RATIONAL_QUADRATIC] = "rational-quadratic",
                                           [ZLG_INVERSE_MULTIQUADRIC] = "inverse-multiquadric",
                                           [ZLG_CAUCHY] = "cauchy",
                                           [ZLG_ENERGY] = "energy",
                                           [ZLG_LINEAR] = "linear",
                                           [ZLG_POLYNOMIAL] = "polynomial",
                                           [ZLG_SIGMOID] = "sigmoid"};
#define KERNEL_LAST ZLG_SIGMOID

const char *zlg_kernel_name(zlg_kernel_kind kind) {
  return kind >= ZLG_GAUSSIAN && kind <= KERNEL_LAST ? kernel_names[kind] : NULL;
}

zlg_kernel_kind zlg_kernel_from_name(const char *name) {
  for (int kind = ZLG_GAUSSIAN; name && kind <= (int)KERNEL_LAST; kind++)
    if (strcmp(kernel_names[kind], name) == 0) return (zlg_kernel_kind)kind;
  return (zlg_kernel_kind)0;
}

void zlg_kernel_spec_init(zlg_kernel_spec *spec, zlg_kernel_kind kind) {
  static const double one = 1;
  if (!spec) return;
  *spec = (zlg_kernel_spec){.struct_size = sizeof *spec,
                            .kind = kind,
                            .lengthscale_count = 1,
                            .lengthscales = &one,
                            .alpha = 1,
                            .gamma = 1,
                            .offset = kind == ZLG_POLYNOMIAL ? 1 : 0,
                            .degree = 3};
}

struct kernel {
  struct zlg_kernel_product_args args; /* the template of every task */
  zlg_matrix *x1, *x2;
  int64_t d;
  double *weights; /* d inverse lengthscales; one where d = 0 */
};

/* ---- making ----------------------------------------------------------------------------------------------------- */

static int check_lengthscales(zlg_context *context, const zlg_kernel_spec *spec, int64_t d) {
  if (spec->lengthscale_count != 1 && spec->lengthscale_count != d)
    return zlg_fail(context, ZLG_EINVAL, "lengthscale_count = %lld, expected 1 or the points' %lld dimensions",
                    (long long)spec->lengthscale_count, (long long)d);
  if (!spec->lengthscales && spec->lengthscale_count > 0) return zlg_fail(context, ZLG_EINVAL, "lengthscales is NULL");
  for (int64_t k = 0; k < spec->lengthscale_count; k++)
    if (!(spec->lengthscales[k] > 0) || isinf(spec->lengthscales[k]) || isinf(1 / spec->lengthscales[k]))
      return zlg_fail(context, ZLG_EINVAL, "lengthscales[%lld] = %g, expected a positive, finite number", (long long)k,
                      spec->lengthscales[k]);
  return ZLG_OK;
}

static int check_parameters(zlg_context *context, const zlg_kernel_spec *spec) {
  if (spec->struct_size != sizeof *spec)
    return zlg_fail(context, ZLG_EINVAL, "spec->struct_size = %zu, expected %zu: call zlg_kernel_spec_init() first",
                    spec->struct_size, sizeof *spec);
  if (!zlg_kernel_name(spec->kind)) return zlg_fail(context, ZLG_EINVAL, "kind = %d is no kernel", (int)spec->kind);
  if (spec->kind == ZLG_RATIONAL_QUADRATIC && (!(spec->alpha > 0) || isinf(spec->alpha)))
    return zlg_fail(context, ZLG_EINVAL, "alpha = %g, expected a positive, finite number", spec->alpha);
  if (!isfinite(spec->gamma)) return zlg_fail(context, ZLG_EINVAL, "gamma = %g, expected a finite number", spec->gamma);
  if (!isfinite(spec->offset))
    return zlg_fail(context, ZLG_EINVAL, "offset = %g, expected a finite number", spec->offset);
  if (spec->degree < 0) return zlg_fail(context, ZLG_EINVAL, "degree = %d, expected 0 or more", spec->degree);
  return ZLG_OK;
}

static int check_points(zlg_context *context, const zlg_matrix *X1, const zlg_matrix *X2) {
  if (!X1 || !X2) return zlg_fail(context, ZLG_EINVAL, "%s is NULL, expected a matrix of points", X1 ? "X2" : "X1");
  if (X1->context != context || X2->context != context)
    return zlg_fail(context, ZLG_EINVAL, "%s was made with another context", X1->context != context ? "X1" : "X2");
  if (X1->type != X2->type)
    return zlg_fail(context, ZLG_ETYPE, "X1 is %s and X2 is %s; expected one type", zlg_type_name(X1->type),
                    zlg_type_name(X2->type));
  if (X1->columns != X2->columns)
    return zlg_fail(context, ZLG_ESHAPE, "X1 has %lld columns and X2 has %lld; points need the same dimension",
                    (long long)X1->columns, (long long)X2->columns);
  return ZLG_OK;
}

static bool all_equal(const double *values, int64_t count) {
  for (int64_t i = 1; i < count; i++)
    if (values[i] != values[0]) return false;
  return true;
}

static void release_kernel_state(struct kernel *kernel) {
  zlg_matrix_release(kernel->x1);
  zlg_matrix_release(kernel->x2);
  zlg_free(kernel->weights);
  zlg_free(kernel);
}

static struct kernel *make_kernel(const zlg_kernel_spec *spec, zlg_matrix *X1, zlg_matrix *X2) {
  struct kernel *kernel = zlg_calloc(1, sizeof *kernel);
  if (!kernel) return NULL;
  int64_t d = X1->columns;
  kernel->d = d;
  kernel->weights = zlg_malloc((size_t)(d > 0 ? d : 1) * sizeof *kernel->weights);
  if (!kernel->weights) {
    zlg_free(kernel);
    return NULL;
  }
  kernel->weights[0] = 1;
  for (int64_t k = 0; k < d; k++) kernel->weights[k] = 1 / spec->lengthscales[spec->lengthscale_count == 1 ? 0 : k];
  kernel->x1 = zlg_matrix_retain(X1);
  kernel->x2 = zlg_matrix_retain(X2);
  kernel->args = (struct zlg_kernel_product_args){
      .kind = spec->kind == ZLG_MATERN12 ? ZLG_EXPONENTIAL : spec->kind,
      .type = X1->type,
      .d = d > 0 ? d : 1,
      .isotropic = all_equal(kernel->weights, d),
      .alpha = spec->alpha,
      .gamma = spec->gamma,
      .offset = spec->offset,
      .degree = spec->degree,
  };
  return kernel;
}

/* ---- applying --------------------------------------------------------------------------------------------------- */

static void shape_args(void *args, int64_t m, int64_t n, int64_t r, bool first) {
  struct zlg_kernel_product_args *a = args;
  a->m = m, a->n = n, a->r = r, a->first = first;
}

static void give_back_operator(void *op) {
  zlg_operator_release(op);
}

/* The sum of op(A), its args pointing to `args`. */
static struct zlg_sum sum_of(zlg_operator *A, zlg_op op, struct zlg_kernel_product_args *args) {
  const struct kernel *kernel = A->self;
  bool transposed = op == ZLG_TRANS;
  *args = kernel->args;
  struct zlg_sum sum = {.context = A->context,
                        .codelet = &zlg_codelet_kernel_product,
                        .args = args,
                        .args_bytes = sizeof *args,
                        .shape = shape_args,
                        .p = transposed ? kernel->x2 : kernel->x1,
                        .q = transposed ? kernel->x1 : kernel->x2,
                        .constants = kernel->weights,
                        .constant_count = args->d,
                        .give_back = give_back_operator,
                        .keep = A};
  args->x1_order = sum.p->order;
  args->x2_order = sum.q->order;
  args->b_order = ZLG_ROW_MAJOR;
  return sum;
}

static int apply_kernel(zlg_operator *A, zlg_op op, double alpha, zlg_matrix *X, double beta, zlg_matrix *Y,
                        bool threaded, zlg_request **request) {
  struct zlg_kernel_product_args args;
  struct zlg_sum sum = sum_of(A, op, &args);
  args.b_order = X->order;
  sum.x = X, sum.y = Y, sum.alpha = alpha, sum.beta = beta;
  zlg_operator_retain(A);
  return zlg_sum_start(&sum, threaded, request);
}

static int cost_kernel(zlg_operator *A, zlg_op op, int64_t columns, zlg_cost *cost) {
  struct zlg_kernel_product_args args;
  struct zlg_sum sum = sum_of(A, op, &args);
  struct zlg_sum_shape shape;
  int status = zlg_sum_plan(&sum, sum.p->rows, sum.q->rows, columns, &shape);
  if (status != ZLG_OK) return status;
  *cost = (zlg_cost){.flops = shape.flops,
                     .work = shape.work,
                     .bytes_read = shape.bytes_read,
                     .bytes_written = shape.bytes_written,
                     .bytes_to_devices = shape.bytes_to_devices,
                     .bytes_from_devices = shape.bytes_from_devices,
                     .memory_bytes = shape.memory_bytes,
                     .seconds = shape.seconds,
                     .tasks = shape.direct ? 0 : shape.tasks,
                     .tile_rows = shape.mt,
                     .tile_columns = shape.nt,
                     .bound = shape.bound,
                     .tile_seconds = shape.tile_seconds,
                     .tile_calibrated = shape.tile_calibrated,
                     .tile_rule = shape.tile_rule};
  memcpy(cost->kind_seconds, shape.kind_seconds, sizeof cost->kind_seconds);
  return ZLG_OK;
}

static bool kernel_overlaps(const zlg_operator *A, const zlg_matrix *Y) {
  const struct kernel *kernel = A->self;
  return zlg_matrix_overlaps(Y, kernel->x1) || zlg_matrix_overlaps(Y, kernel->x2);
}

static void release_kernel(zlg_operator *A) {
  release_kernel_state(A->self);
}

static const struct zlg_operator_kind kernel_kind = {.name = "kernel",
                                                     .tileable = true,
                                                     .overlaps = kernel_overlaps,
                                                     .apply = apply_kernel,
                                                     .cost = cost_kernel,
                                                     .release = release_kernel};

int zlg_kernel(zlg_context *context, zlg_operator **op, const zlg_kernel_spec *spec, zlg_matrix *X1, zlg_matrix *X2) {
  if (!context || !op || !spec)
    return zlg_fail(context, ZLG_EINVAL, "zlg_kernel: %s is NULL", !context ? "context" : !op ? "op" : "spec");
  *op = NULL;
  int status = check_points(context, X1, X2);
  if (status == ZLG_OK) status = check_parameters(context, spec);
  if (status == ZLG_OK) status = check_lengthscales(context, spec, X1->columns);
  if (status != ZLG_OK) return status;
  struct kernel *kernel = make_kernel(spec, X1, X2);
  zlg_operator *made = kernel ? zlg_operator_new(context, &kernel_kind, X1->type, X1->rows, X2->rows, kernel) : NULL;
  if (!made) {
    if (kernel) release_kernel_state(kernel);
    return zlg_fail(context, ZLG_ENOMEM, "no memory for a kernel operator of %lld dimensions", (long long)X1->columns);
  }
  *op = made;
  return ZLG_OK;
}
