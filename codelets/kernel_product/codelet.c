/* StarPU glue of the kernel product: what a task costs, and how its buffers become operands on each kind of worker.
 *
 * Buffers: 0 X1, 1 X2, 2 B (StarPU matrices: a row-major operand has nx = columns, ny = rows; a column-major one nx =
 * rows, ny = columns), 3 w (vector of d doubles), 4 acc (vector of m r doubles). cl_arg: struct
 * zlg_kernel_product_args. */
#include <math.h>
#include <stdio.h>

#include "codelets/common/codelet.h"
#include "codelets/common/glue.h"
#include "codelets/common/program.h"
#include "codelets/kernel_product/args.h"
#include "zellige/status.h"

enum { X1, X2, B, W, ACC };

static bool of_product(zlg_kernel_kind kind) {
  return kind == ZLG_LINEAR || kind == ZLG_POLYNOMIAL || kind == ZLG_SIGMOID;
}

static int power_multiplications(int exponent) {
  int count = 0;
  for (; exponent > 1; exponent >>= 1) count += 1 + (exponent & 1);
  return count;
}

/* Flops of the kernel function once the sum is there: polynomials of the CPU implementation. */
static double function_flops(const struct zlg_kernel_product_args *args) {
  const double exp_flops = args->type == ZLG_F64 ? 28 : 18;
  switch (args->kind) {
  case ZLG_GAUSSIAN:
  case ZLG_LAPLACIAN:
    return exp_flops;
  case ZLG_MATERN12:
  case ZLG_EXPONENTIAL:
    return exp_flops + 4;
  case ZLG_MATERN32:
    return exp_flops + 7;
  case ZLG_MATERN52:
    return exp_flops + 9;
  case ZLG_RATIONAL_QUADRATIC:
    return 2 * exp_flops + 6;
  case ZLG_INVERSE_MULTIQUADRIC:
    return 8;
  case ZLG_CAUCHY:
    return 5;
  case ZLG_ENERGY:
    return 4;
  case ZLG_LINEAR:
    return 1;
  case ZLG_POLYNOMIAL:
    return 2 + power_multiplications(args->degree);
  case ZLG_SIGMOID:
    return exp_flops + 8;
  }
  return exp_flops;
}

void zlg_kernel_product_count(const void *arguments, struct zlg_count *count) {
  const struct zlg_kernel_product_args *args = arguments;
  const double m = (double)args->m, n = (double)args->n, d = (double)args->d, r = (double)args->r;
  const double term = of_product(args->kind) ? 2 : args->isotropic ? 3 : 4;
  const double size = (double)zlg_type_size(args->type);
  /* Where additions take a multiply-add's place: a distance is two instructions a dimension, one more where it is
   * scaled first; some four stand around the function. */
  count->slots = m * n * ((of_product(args->kind) ? 1 : args->isotropic ? 2 : 3) * d + 4 + r);
  count->type = args->type;
  count->work = m * n;
  count->flops = m * n * (term * d + function_flops(args) + 2 * r);
  count->specials = args->kind == ZLG_LINEAR || args->kind == ZLG_POLYNOMIAL ? 0 : m * n;
  count->bytes = size * (m * d + n * d + n * r) + 8 * d + (args->first ? 8 : 16) * m * r;
}

uint32_t zlg_kernel_product_footprint(const void *arguments) {
  const struct zlg_kernel_product_args *args = arguments;
  const int64_t parts[] = {args->kind,      args->type,   args->m,
                           args->n,         args->d,      args->r,
                           args->isotropic, args->degree, 2 * args->alpha == floor(2 * args->alpha)};
  return zlg_hash_parts(parts, sizeof parts / sizeof *parts);
}

void zlg_kernel_product_family(const void *arguments, struct zlg_family *family) {
  const struct zlg_kernel_product_args *args = arguments;
  *family = (struct zlg_family){.what = {args->kind, args->type, args->isotropic},
                                .width = {args->d, args->r},
                                .size = (double)args->m * (double)args->n};
}

/* What calibration measures: kernels x types x these widths x sizes. A short run has the Gaussian in binary32. */
static const zlg_kernel_kind measured_kinds[] = {ZLG_GAUSSIAN,
                                                 ZLG_EXPONENTIAL,
                                                 ZLG_LAPLACIAN,
                                                 ZLG_MATERN32,
                                                 ZLG_MATERN52,
                                                 ZLG_RATIONAL_QUADRATIC,
                                                 ZLG_INVERSE_MULTIQUADRIC,
                                                 ZLG_CAUCHY,
                                                 ZLG_ENERGY,
                                                 ZLG_LINEAR,
                                                 ZLG_POLYNOMIAL,
                                                 ZLG_SIGMOID};
static const struct {
  int d, r;
  bool brief;
} measured_widths[] = {{3, 1, true}, {50, 1, false}, {3, 8, false}, {50, 8, false}};
/* In flops of a task, the planned ones having some 1e8 on a core and more on a card; those unseen are not square. */
static const struct {
  double flops;
  bool unseen, brief;
} measured_sizes[] = {{1e6, false, true},   {1e7, false, true},    {2.5e7, true, true}, {6e7, false, true},
                      {1.2e8, true, false}, {2.5e8, false, false}, {5e8, false, false}, {6.4e9, false, false}};

static int64_t side_of(const struct zlg_kernel_product_args *args, double flops, double stretch) {
  struct zlg_kernel_product_args pair = *args;
  struct zlg_count count;
  pair.m = pair.n = 1;
  zlg_kernel_product_count(&pair, &count);
  double side = stretch * sqrt(flops / count.flops);
  return stretch != 1 ? (int64_t)side : ((int64_t)side + 63) / 64 * 64;
}

bool zlg_kernel_product_calibration(int index, void *arguments, struct zlg_case *what) {
  enum {
    SIZES = sizeof measured_sizes / sizeof *measured_sizes,
    WIDTHS = sizeof measured_widths / sizeof *measured_widths,
    KINDS = sizeof measured_kinds / sizeof *measured_kinds
  };
  const int size = index % SIZES, width = index / SIZES % WIDTHS, type = index / SIZES / WIDTHS % 2,
            kind = index / SIZES / WIDTHS / 2;
  if (index < 0 || kind >= KINDS) return false;
  struct zlg_kernel_product_args *args = arguments;
  *args = (struct zlg_kernel_product_args){.kind = measured_kinds[kind],
                                           .type = type ? ZLG_F64 : ZLG_F32,
                                           .d = measured_widths[width].d,
                                           .r = measured_widths[width].r,
                                           .x1_order = ZLG_ROW_MAJOR,
                                           .x2_order = ZLG_ROW_MAJOR,
                                           .b_order = ZLG_ROW_MAJOR,
                                           .isotropic = true,
                                           .alpha = 1,
                                           .gamma = 1,
                                           .degree = 3};
  const bool unseen = measured_sizes[size].unseen;
  args->m = side_of(args, measured_sizes[size].flops, unseen ? 1.25 : 1);
  args->n = side_of(args, measured_sizes[size].flops, unseen ? 0.8 : 1);
  const size_t element = zlg_type_size(args->type);
  *what =
      (struct zlg_case){.unseen = unseen,
                        .brief = kind == 0 && type == 0 && measured_widths[width].brief && measured_sizes[size].brief,
                        .buffer_count = 5,
                        .buffers = {[X1] = {args->d, args->m, element, ZLG_CASE_IN},
                                    [X2] = {args->d, args->n, element, ZLG_CASE_IN},
                                    [B] = {args->r, args->n, element, ZLG_CASE_IN},
                                    [W] = {args->d, 0, sizeof(double), ZLG_CASE_IN},
                                    [ACC] = {args->m * args->r, 0, sizeof(double), ZLG_CASE_INOUT}}};
  snprintf(what->label, sizeof what->label, "%s-%s-d%d-r%d", zlg_kernel_name(args->kind), zlg_type_name(args->type),
           measured_widths[width].d, measured_widths[width].r);
  return true;
}

static int run_cpu(const void *arguments, const struct zlg_operand *at) {
  const struct zlg_kernel_product_args *args = arguments;
  const struct zlg_kernel_product_operands operands = {.x1 = at[X1].data,
                                                       .ld1 = at[X1].ld,
                                                       .x2 = at[X2].data,
                                                       .ld2 = at[X2].ld,
                                                       .b = at[B].data,
                                                       .ldb = at[B].ld,
                                                       .w = at[W].data,
                                                       .acc = at[ACC].data};
  size_t bytes = ZLG_CPU(zlg_kernel_product_scratch)(args);
  void *scratch = bytes ? zlg_scratch(bytes) : NULL;
  if (bytes && !scratch) return ZLG_ENOMEM;
  ZLG_CPU(zlg_kernel_product_cpu)(args, &operands, scratch);
  return ZLG_OK;
}

static void cpu_function(void *buffers[], void *cl_arg) {
  struct zlg_kernel_product_args *args = cl_arg;
  args->head.start = zlg_clock();
  const struct zlg_operand at[] = {zlg_matrix_operand(buffers[X1]), zlg_matrix_operand(buffers[X2]),
                                   zlg_matrix_operand(buffers[B]), zlg_vector_operand(buffers[W]),
                                   zlg_vector_operand(buffers[ACC])};
  args->head.status = run_cpu(args, at);
}

/* How the work is laid out on a device; the names are those of device.clc. */
struct layout {
  int lanes, lanes_are_points, rt, jt, rows, row_blocks, cols, repeat, rc, dc, dimension, flush;
  int tm, tn; /* rows and points of a group's tile */
};

static int clamp(int64_t value, int low, int high) {
  return value < low ? low : value > high ? high : (int)value;
}

/* Right-hand sides in equal chunks of at most `largest`. */
static int balanced(int64_t r, int largest) {
  int64_t chunks = (r + largest - 1) / largest;
  return (int)((r + chunks - 1) / chunks);
}

static size_t local_bytes(const struct layout *l, size_t size) {
  size_t points = (size_t)l->dc * (size_t)(l->tm + l->tn) + (size_t)(l->rc + 1) * (size_t)l->tn + 2 * (size_t)l->dc;
  return points * size + (l->jt > 1 ? (size_t)l->jt * (size_t)l->tm * sizeof(double) : 0);
}

static void layout_tiles(struct layout *l) {
  l->tm = l->rt * l->row_blocks * l->rows * (l->lanes_are_points ? 1 : l->lanes);
  l->tn = l->jt * l->cols * l->repeat * (l->lanes_are_points ? l->lanes : 1);
}

/* Cores: groups of one thread, which is a vector; it stages points for several blocks of rows. */
static void layout_processor(struct layout *l, const struct zlg_kernel_product_args *args,
                             const struct zlg_device_profile *profile, size_t size) {
  const int chunk = args->type == ZLG_F64 ? 32 : 64;
  l->lanes = args->type == ZLG_F64 ? profile->lanes_f64 : profile->lanes_f32;
  l->lanes_are_points = args->m <= l->lanes / 2;
  l->dimension = args->d <= chunk ? (int)args->d : 0;
  l->dc = l->dimension ? l->dimension : chunk;
  l->rt = l->jt = l->row_blocks = l->flush = 1;
  if (l->lanes_are_points) {
    l->rows = args->m > 2 ? 4 : (int)args->m;
    l->cols = 2;
    l->repeat = 128 / (2 * l->lanes);
    l->rc = balanced(args->r, 8);
    layout_tiles(l);
    return;
  }
  l->rows = 2;
  l->cols = 4;
  l->repeat = 16;
  l->rc = balanced(args->r, 16);
  l->row_blocks = 8;
  layout_tiles(l);
  while (l->row_blocks > 1 && local_bytes(l, size) > profile->local_bytes) {
    l->row_blocks /= 2;
    layout_tiles(l);
  }
}

/* GPUs: 4 x 4 pairs a thread, 16 threads along the rows, the others along the points; with few rows all threads lie
 * along the points. Local memory stays under 32 KiB, which every device has. */
static void layout_gpu(struct layout *l, const struct zlg_kernel_product_args *args, size_t size) {
  const int chunk = args->type == ZLG_F64 ? 16 : 32;
  l->lanes = l->row_blocks = 1;
  l->dimension = args->d <= chunk ? (int)args->d : 0;
  l->dc = l->dimension ? l->dimension : chunk;
  l->rc = balanced(args->r, args->type == ZLG_F64 ? 4 : 8);
  if (args->m < 16) {
    l->rt = 1;
    l->jt = 128;
    l->rows = args->m > 2 ? 4 : (int)args->m;
    l->cols = 1;
  } else {
    l->rt = 16;
    l->jt = l->rc > 2 || args->type == ZLG_F64 ? 8 : 16; /* 256 threads have 128 registers each, in practice */
    l->rows = l->cols = 4;
  }
  /* Distances kept between chunks of dimensions take registers twice. */
  if (l->rt > 1 && args->type == ZLG_F64 && !l->dimension) l->cols = 2;
  l->repeat = l->dimension ? 4 : 1;
  layout_tiles(l);
  while (l->repeat > 1 && local_bytes(l, size) > 24576) {
    l->repeat /= 2;
    layout_tiles(l);
  }
  l->flush = clamp(128 / (l->cols * l->repeat), 1, 128);
}

static struct layout layout_of(const struct zlg_kernel_product_args *args, const struct zlg_device_profile *profile) {
  struct layout l = {0};
  size_t size = zlg_type_size(args->type);
  if (profile->processor)
    layout_processor(&l, args, profile, size);
  else
    layout_gpu(&l, args, size);
  return l;
}

static const char *const kernel_options[] = {
    [ZLG_GAUSSIAN] = "GAUSSIAN",
    [ZLG_EXPONENTIAL] = "EXPONENTIAL",
    [ZLG_LAPLACIAN] = "LAPLACIAN",
    [ZLG_MATERN12] = "EXPONENTIAL",
    [ZLG_MATERN32] = "MATERN32",
    [ZLG_MATERN52] = "MATERN52",
    [ZLG_RATIONAL_QUADRATIC] = "RATIONAL_QUADRATIC",
    [ZLG_INVERSE_MULTIQUADRIC] = "INVERSE_MULTIQUADRIC",
    [ZLG_CAUCHY] = "CAUCHY",
    [ZLG_ENERGY] = "ENERGY",
    [ZLG_LINEAR] = "LINEAR",
    [ZLG_POLYNOMIAL] = "POLYNOMIAL",
    [ZLG_SIGMOID] = "SIGMOID",
};

void zlg_kernel_product_options(const void *arguments, const struct zlg_device_profile *profile, char *text,
                                size_t bytes) {
  const struct zlg_kernel_product_args *args = arguments;
  const struct layout l = layout_of(args, profile);
  /* Half-integer powers of the rational quadratic by multiplication; any other through the logarithm. */
  const double twice = args->kind == ZLG_RATIONAL_QUADRATIC ? 2 * args->alpha : 0;
  const int twice_alpha = twice >= 1 && twice <= 8 && twice == floor(twice) ? (int)twice : 0;
  snprintf(text, bytes,
           "-w -DKERNEL_%s -DZLG_F64=%d -DD=%d -DDC=%d -DROWS=%d -DROW_BLOCKS=%d -DCOLS=%d -DREPEAT=%d -DRT=%d -DJT=%d "
           "-DRC=%d -DFLUSH=%d "
           "-DVLEN=%d -DLANES_ARE_POINTS=%d -DX1_COLUMNS=%d -DX2_COLUMNS=%d -DB_COLUMNS=%d -DISOTROPIC=%d -DDEGREE=%d "
           "-DTWICE_ALPHA=%d",
           kernel_options[args->kind], args->type == ZLG_F64, l.dimension, l.dc, l.rows, l.row_blocks, l.cols, l.repeat,
           l.rt, l.jt, l.rc, l.flush, l.lanes, l.lanes_are_points, args->x1_order == ZLG_COLUMN_MAJOR,
           args->x2_order == ZLG_COLUMN_MAJOR, args->b_order == ZLG_COLUMN_MAJOR, args->isotropic,
           args->kind == ZLG_POLYNOMIAL ? args->degree : 0, twice_alpha);
}

#ifdef ZLG_WITH_DEVICES

/* Points per slice, so that few rows still make many groups: 1024 of them on a GPU, 32 on cores, if each keeps some
 * tiles to work on. From the shape alone, so that all devices of a kind add in the same order. */
static int64_t slice_of(const struct zlg_kernel_product_args *args, const struct layout *l, bool processor) {
  const int64_t groups = (args->m + l->tm - 1) / l->tm * ((args->r + l->rc - 1) / l->rc);
  const int64_t largest_partial = (int64_t)64 << 20; /* bytes */
  int64_t slices = (processor ? 32 : 1024) / groups;
  const int64_t by_work = args->n / ((int64_t)l->tn * (processor ? 32 : 8));
  const int64_t by_memory = largest_partial / 8 / args->m / args->r;
  if (slices > by_work) slices = by_work;
  if (slices > by_memory) slices = by_memory;
  if (slices < 1) slices = 1;
  const int64_t tiles = (args->n + (int64_t)l->tn * slices - 1) / ((int64_t)l->tn * slices);
  return (tiles > 0 ? tiles : 1) * l->tn;
}

struct shape {
  int64_t m, n, r, slice;
  bool add;
};

static int launch_product(const struct zlg_kernel_product_args *args, const struct layout *l,
                          struct zlg_program *program, void *queue, const struct zlg_place places[5],
                          const struct shape *shape) {
  struct zlg_launch launch;
  zlg_launch_begin(&launch, program, "kernel_product", queue);
  for (int i = X1; i <= ACC; i++) zlg_launch_place(&launch, &places[i], i <= B);
  zlg_launch_wide(&launch, shape->m);
  zlg_launch_wide(&launch, shape->n);
  zlg_launch_wide(&launch, args->d);
  zlg_launch_wide(&launch, shape->r);
  zlg_launch_wide(&launch, shape->slice);
  zlg_launch_int(&launch, shape->add);
  zlg_launch_double(&launch, args->alpha);
  zlg_launch_double(&launch, args->gamma);
  zlg_launch_double(&launch, args->offset);
  const int64_t slices = shape->n > 0 ? (shape->n + shape->slice - 1) / shape->slice : 1;
  const int64_t groups[3] = {(shape->m + l->tm - 1) / l->tm, slices, (shape->r + l->rc - 1) / l->rc};
  return zlg_launch_run(&launch, (size_t)l->rt * (size_t)l->jt, groups);
}

static int launch_slices(struct zlg_program *program, void *queue, uintptr_t partial, int64_t slices, int64_t count,
                         const struct zlg_place *acc, bool add) {
  struct zlg_launch launch;
  zlg_launch_begin(&launch, program, "add_slices", queue);
  zlg_launch_memory(&launch, partial);
  zlg_launch_wide(&launch, slices);
  zlg_launch_wide(&launch, count);
  zlg_launch_place(&launch, acc, false);
  zlg_launch_int(&launch, add);
  const int64_t groups[3] = {(count + 63) / 64, 1, 1};
  return zlg_launch_run(&launch, 64, groups);
}

static int run_device(const struct zlg_kernel_product_args *args, struct zlg_device *device,
                      const struct zlg_place places[5]) {
  char options[1024];
  const struct zlg_device_profile *profile = zlg_device_profile(device);
  zlg_kernel_product_options(args, profile, options, sizeof options);
  struct zlg_program *program;
  int status = zlg_device_program(device, "kernel_product", options, &program, NULL, 0);
  if (status != ZLG_OK) return status;
  const struct layout l = layout_of(args, profile);
  const int64_t slice = slice_of(args, &l, profile->processor), slices = (args->n + slice - 1) / slice;
  struct shape shape = {args->m, args->n, args->r, slice, !args->first};
  if (slices <= 1) return launch_product(args, &l, program, NULL, places, &shape);
  uintptr_t partial = zlg_device_scratch(device, (size_t)(slices * args->m * args->r) * sizeof(double));
  if (!partial) return ZLG_ENOMEM;
  struct zlg_place partials[5] = {places[X1], places[X2], places[B], places[W], {partial, 0, 0}};
  shape.add = false;
  status = launch_product(args, &l, program, NULL, partials, &shape);
  if (status != ZLG_OK) return status;
  return launch_slices(program, NULL, partial, slices, args->m * args->r, &places[ACC], !args->first);
}

static void device_function(void *buffers[], void *cl_arg) {
  struct zlg_kernel_product_args *args = cl_arg;
  args->head.start = zlg_clock();
  if (args->m == 0 || args->r == 0) return;
  const size_t size = zlg_type_size(args->type);
  const struct zlg_place places[5] = {zlg_matrix_place(buffers[X1], size), zlg_matrix_place(buffers[X2], size),
                                      zlg_matrix_place(buffers[B], size), zlg_vector_place(buffers[W], sizeof(double)),
                                      zlg_vector_place(buffers[ACC], sizeof(double))};
  struct zlg_device *device = zlg_device_here();
  args->head.status = device ? run_device(args, device, places) : ZLG_ENOMEM;
}

/* One row, no points: everything lies at the start of one buffer of max(d, 1) doubles. */
static int try_once(const void *arguments, struct zlg_program *program, void *queue, uintptr_t memory) {
  const struct zlg_kernel_product_args *args = arguments;
  const struct layout l = layout_of(args, zlg_device_profile(zlg_program_device(program)));
  const struct zlg_place place = {memory, 0, 1}, places[5] = {place, place, place, place, place};
  const struct shape shape = {.m = 1, .n = 0, .r = 1, .slice = l.tn, .add = false};
  int status = launch_product(args, &l, program, queue, places, &shape);
  return status == ZLG_OK ? launch_slices(program, queue, memory, 0, 1, &place, false) : status;
}

int zlg_kernel_product_prepare(const void *arguments, char *message, size_t message_bytes) {
  const struct zlg_kernel_product_args *args = arguments;
  const struct zlg_trial trial = {"kernel_product", zlg_kernel_product_options, try_once,
                                  sizeof(double) * (size_t)(args->d + 1)};
  return zlg_device_prepare(&trial, arguments, message, message_bytes);
}

#endif

static struct starpu_perfmodel model = ZLG_MODEL(kernel_product);

struct starpu_codelet zlg_kernel_product_codelet = {
    .name = "zlg_kernel_product",
    .cpu_funcs = {cpu_function},
    .cpu_funcs_name = {"zlg_kernel_product"},
    ZLG_DEVICE_FUNCTION(device_function),
    .nbuffers = STARPU_VARIABLE_NBUFFERS,
    .model = &model,
};

const struct zlg_codelet zlg_codelet_kernel_product = {
    .name = "kernel_product",
    .codelet = &zlg_kernel_product_codelet,
    .cpu = run_cpu,
    .count = zlg_kernel_product_count,
    .footprint = zlg_kernel_product_footprint,
    .prepare = ZLG_DEVICE_PREPARE(zlg_kernel_product_prepare),
    .args_bytes = sizeof(struct zlg_kernel_product_args),
    .family = zlg_kernel_product_family,
    .calibration = zlg_kernel_product_calibration,
};
