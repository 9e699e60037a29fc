/* StarPU glue of a chain of Kronecker factors. Buffers: 0 X (StarPU matrix; a row-major block has nx = K, ny = vectors,
 * a column-major one nx = vectors, ny = K), 1 the factors (vector), 2 Y (as X, L elements a vector).
 * cl_arg: struct zlg_kron_factor_args. */
#include <stdio.h>

#include "codelets/common/codelet.h"
#include "codelets/common/glue.h"
#include "codelets/kron_factor/args.h"
#include "zellige/status.h"

/* Multiply-adds of one vector, and the elements of its ends. */
static double additions(const struct zlg_kron_factor_args *args, double *k, double *l) {
  double size = 1, sum = 0;
  for (int i = 0; i < args->count; i++) size *= args->p[i];
  *k = size;
  for (int i = 0; i < args->count; i++) {
    const int f = args->turn[i];
    size = size / args->p[f] * args->q[f];
    sum += size * args->p[f];
  }
  *l = size;
  return sum;
}

void zlg_kron_factor_count(const void *arguments, struct zlg_count *count) {
  const struct zlg_kron_factor_args *args = arguments;
  const double vectors = (double)args->vectors, size = (double)zlg_type_size(args->type);
  double k, l, factors = 0;
  const double fmas = vectors * additions(args, &k, &l);
  for (int i = 0; i < args->count; i++) factors += (double)args->p[i] * args->q[i];
  *count = (struct zlg_count){.flops = 2 * fmas,
                              .slots = fmas,
                              .bytes = (vectors * (k + l * (args->beta != 0 ? 2 : 1)) + factors) * size,
                              .work = 2 * fmas,
                              .type = args->type};
}

uint32_t zlg_kron_factor_footprint(const void *arguments) {
  const struct zlg_kron_factor_args *args = arguments;
  const int64_t parts[] = {args->type, args->vectors, args->x_order, args->y_order, args->beta != 0, args->count};
  uint32_t hash = ZLG_HASH_SEED;
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) hash = zlg_hash_u64(hash, (uint64_t)parts[i]);
  for (int i = 0; i < args->count; i++) {
    hash = zlg_hash_u64(hash, (uint64_t)args->p[i]);
    hash = zlg_hash_u64(hash, (uint64_t)args->q[i]);
    hash = zlg_hash_u64(hash, (uint64_t)args->turn[i]);
  }
  return hash;
}

void zlg_kron_factor_family(const void *arguments, struct zlg_family *family) {
  const struct zlg_kron_factor_args *args = arguments;
  double k, l;
  const double fmas = additions(args, &k, &l);
  *family = (struct zlg_family){.what = {args->type, args->x_order, args->y_order},
                                .width = {(int64_t)(fmas / l + 0.5), (int64_t)k},
                                .size = (double)args->vectors * fmas};
}

bool zlg_kron_factor_calibration(int index, void *arguments, struct zlg_case *what) {
  static const int32_t sizes[] = {8, 16, 32, 64};
  static const int counts[] = {4, 3, 3, 2};
  static const int64_t vectors[] = {4, 16, 45, 64, 181, 256};
  enum { SHAPES = sizeof sizes / sizeof *sizes, POINTS = sizeof vectors / sizeof *vectors };
  const int point = index % POINTS, shape = index / POINTS % SHAPES, type = index / POINTS / SHAPES;
  if (index < 0 || type > 1) return false;
  struct zlg_kron_factor_args *args = arguments;
  *args = (struct zlg_kron_factor_args){.type = type ? ZLG_F64 : ZLG_F32,
                                        .count = counts[shape],
                                        .vectors = vectors[point],
                                        .x_order = ZLG_ROW_MAJOR,
                                        .y_order = ZLG_ROW_MAJOR,
                                        .alpha = 1};
  int64_t k = 1;
  for (int i = 0; i < args->count; i++) {
    args->p[i] = args->q[i] = sizes[shape];
    args->turn[i] = (int8_t)(args->count - 1 - i);
    k *= sizes[shape];
  }
  const size_t element = zlg_type_size(args->type);
  *what = (struct zlg_case){.brief = type == 0 && shape == 1,
                            .unseen = vectors[point] == 45 || vectors[point] == 181,
                            .buffer_count = 3,
                            .buffers = {{k, vectors[point], element, ZLG_CASE_IN},
                                        {args->count * sizes[shape] * sizes[shape], 0, element, ZLG_CASE_IN},
                                        {k, vectors[point], element, ZLG_CASE_OUT}}};
  snprintf(what->label, sizeof what->label, "%s-%dx%d", zlg_type_name(args->type), (int)sizes[shape], args->count);
  return true;
}

static int run_cpu(const void *arguments, const struct zlg_operand *at) {
  const struct zlg_kron_factor_args *args = arguments;
  const size_t bytes = ZLG_CPU(zlg_kron_factor_scratch)(args);
  void *scratch = bytes > 0 ? zlg_scratch(bytes) : NULL;
  if (bytes > 0 && !scratch) return ZLG_ENOMEM;
  const struct zlg_kron_factor_operands operands = {at[0].data, at[0].ld, at[1].data, at[2].data, at[2].ld};
  ZLG_CPU(zlg_kron_factor_cpu)(args, &operands, scratch);
  return ZLG_OK;
}

static void cpu_function(void *buffers[], void *cl_arg) {
  struct zlg_kron_factor_args *args = cl_arg;
  args->head.start = zlg_clock();
  const struct zlg_operand at[] = {zlg_matrix_operand(buffers[0]), zlg_vector_operand(buffers[1]),
                                   zlg_matrix_operand(buffers[2])};
  args->head.status = run_cpu(args, at);
}

static struct starpu_perfmodel model = ZLG_MODEL(kron_factor);

struct starpu_codelet zlg_kron_factor_codelet = {
    .name = "zlg_kron_factor",
    .cpu_funcs = {cpu_function},
    .cpu_funcs_name = {"zlg_kron_factor"},
    .nbuffers = STARPU_VARIABLE_NBUFFERS,
    .model = &model,
};

const struct zlg_codelet zlg_codelet_kron_factor = {
    .name = "kron_factor",
    .codelet = &zlg_kron_factor_codelet,
    .cpu = run_cpu,
    .count = zlg_kron_factor_count,
    .footprint = zlg_kron_factor_footprint,
    .args_bytes = sizeof(struct zlg_kron_factor_args),
    .family = zlg_kron_factor_family,
    .calibration = zlg_kron_factor_calibration,
};
