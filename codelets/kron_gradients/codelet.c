/* StarPU glue of the gradients of Kronecker factors. Buffers: 0 X and 1 dY (StarPU matrices; a row-major block has nx =
 * elements of a vector, ny = vectors, a column-major one the other way round), 2 the factors (vector), 3 the
 * accumulator (vector of binary64), 4 dX where it is wanted (as X). cl_arg: struct zlg_kron_gradients_args. */
#include <stdio.h>

#include "codelets/common/codelet.h"
#include "codelets/common/glue.h"
#include "codelets/kron_gradients/args.h"
#include "zellige/status.h"

/* Multiply-adds of one vector through the chain, and the elements of its ends and of the factors. */
static double additions(const struct zlg_kron_gradients_args *args, double *k, double *l, double *factors) {
  double size = 1, sum = 0;
  *factors = 0;
  for (int i = 0; i < args->count; i++) size *= args->p[i], *factors += (double)args->p[i] * args->q[i];
  *k = size;
  for (int s = 0; s < args->count; s++) {
    const int f = args->turn[s];
    size = size / args->p[f] * args->q[f];
    sum += size * args->p[f];
  }
  *l = size;
  return sum;
}

/* Forward, backward and the factors: three times the chain. */
void zlg_kron_gradients_count(const void *arguments, struct zlg_count *count) {
  const struct zlg_kron_gradients_args *args = arguments;
  const double vectors = (double)args->vectors;
  double k, l, factors;
  const double fmas = 3 * vectors * additions(args, &k, &l, &factors);
  const double elements = vectors * (k + l + (args->wants_dx ? k * (args->beta != 0 ? 2 : 1) : 0)) + factors;
  *count = (struct zlg_count){.flops = 2 * fmas,
                              .slots = fmas,
                              .bytes = elements * (double)zlg_type_size(args->type) + 16 * factors,
                              .work = 2 * fmas,
                              .type = args->type};
}

uint32_t zlg_kron_gradients_footprint(const void *arguments) {
  const struct zlg_kron_gradients_args *args = arguments;
  const int64_t parts[] = {args->type,     args->vectors,   args->x_order,  args->dy_order,
                           args->dx_order, args->beta != 0, args->wants_dx, args->count};
  uint32_t hash = zlg_hash_parts(parts, sizeof parts / sizeof *parts);
  for (int i = 0; i < args->count; i++) {
    hash = zlg_hash_u64(hash, (uint64_t)args->p[i]);
    hash = zlg_hash_u64(hash, (uint64_t)args->q[i]);
    hash = zlg_hash_u64(hash, (uint64_t)args->turn[i]);
  }
  return hash;
}

void zlg_kron_gradients_family(const void *arguments, struct zlg_family *family) {
  const struct zlg_kron_gradients_args *args = arguments;
  double k, l, factors;
  const double fmas = additions(args, &k, &l, &factors);
  *family = (struct zlg_family){.what = {args->type, args->x_order, args->wants_dx},
                                .width = {(int64_t)(fmas / l + 0.5), (int64_t)k},
                                .size = (double)args->vectors * fmas};
}

bool zlg_kron_gradients_calibration(int index, void *arguments, struct zlg_case *what) {
  static const int32_t sizes[] = {8, 16, 32};
  static const int counts[] = {4, 3, 2};
  static const int64_t vectors[] = {16, 32, 64, 112, 192};
  enum { SHAPES = sizeof sizes / sizeof *sizes, POINTS = sizeof vectors / sizeof *vectors };
  const int point = index % POINTS, shape = index / POINTS % SHAPES, type = index / POINTS / SHAPES;
  if (index < 0 || type > 1) return false;
  struct zlg_kron_gradients_args *args = arguments;
  *args = (struct zlg_kron_gradients_args){.type = type ? ZLG_F64 : ZLG_F32,
                                           .count = counts[shape],
                                           .vectors = vectors[point],
                                           .x_order = ZLG_ROW_MAJOR,
                                           .dy_order = ZLG_ROW_MAJOR,
                                           .dx_order = ZLG_ROW_MAJOR,
                                           .first = true,
                                           .wants_dx = true,
                                           .alpha = 1};
  int64_t k = 1;
  for (int i = 0; i < args->count; i++) {
    args->p[i] = args->q[i] = sizes[shape];
    args->turn[i] = (int8_t)(args->count - 1 - i);
    k *= sizes[shape];
  }
  const int64_t factors = (int64_t)args->count * sizes[shape] * sizes[shape], n = vectors[point];
  const size_t element = zlg_type_size(args->type);
  *what = (struct zlg_case){.brief = type == 0 && shape == 1,
                            .unseen = n == 112,
                            .buffer_count = 5,
                            .buffers = {{k, n, element, ZLG_CASE_IN},
                                        {k, n, element, ZLG_CASE_IN},
                                        {factors, 0, element, ZLG_CASE_IN},
                                        {factors, 0, sizeof(double), ZLG_CASE_OUT},
                                        {k, n, element, ZLG_CASE_OUT}}};
  snprintf(what->label, sizeof what->label, "%s-%dx%d-dx", zlg_type_name(args->type), (int)sizes[shape], args->count);
  return true;
}

static int run_cpu(const void *arguments, const struct zlg_operand *at) {
  const struct zlg_kron_gradients_args *args = arguments;
  void *scratch = zlg_scratch(ZLG_CPU(zlg_kron_gradients_scratch)(args));
  if (!scratch) return ZLG_ENOMEM;
  struct zlg_kron_gradients_operands operands = {at[0].data, at[0].ld,   at[1].data, at[1].ld,
                                                 at[2].data, at[3].data, NULL,       0};
  if (args->wants_dx) operands.dx = at[4].data, operands.lddx = at[4].ld;
  ZLG_CPU(zlg_kron_gradients_cpu)(args, &operands, scratch);
  return ZLG_OK;
}

static void cpu_function(void *buffers[], void *cl_arg) {
  struct zlg_kron_gradients_args *args = cl_arg;
  args->head.start = zlg_clock();
  struct zlg_operand at[5] = {zlg_matrix_operand(buffers[0]), zlg_matrix_operand(buffers[1]),
                              zlg_vector_operand(buffers[2]), zlg_vector_operand(buffers[3])};
  if (args->wants_dx) at[4] = zlg_matrix_operand(buffers[4]);
  args->head.status = run_cpu(args, at);
}

static struct starpu_perfmodel model = ZLG_MODEL(kron_gradients);

struct starpu_codelet zlg_kron_gradients_codelet = {
    .name = "zlg_kron_gradients",
    .cpu_funcs = {cpu_function},
    .cpu_funcs_name = {"zlg_kron_gradients"},
    .nbuffers = STARPU_VARIABLE_NBUFFERS,
    .model = &model,
};

const struct zlg_codelet zlg_codelet_kron_gradients = {
    .name = "kron_gradients",
    .codelet = &zlg_kron_gradients_codelet,
    .cpu = run_cpu,
    .count = zlg_kron_gradients_count,
    .footprint = zlg_kron_gradients_footprint,
    .args_bytes = sizeof(struct zlg_kron_gradients_args),
    .family = zlg_kron_gradients_family,
    .calibration = zlg_kron_gradients_calibration,
};
