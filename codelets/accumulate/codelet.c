/* StarPU glue of the end of a tiled sum. Buffers: 0 Y (StarPU matrix; a row-major tile has nx = columns, ny = rows, a
 * column-major one nx = rows, ny = columns), 1 … parts: the accumulators (vectors of m r doubles), acc_0 writable.
 * cl_arg: struct zlg_accumulate_args. */
#include <stdio.h>

#include "codelets/accumulate/args.h"
#include "codelets/common/codelet.h"
#include "codelets/common/glue.h"
#include "codelets/common/program.h"
#include "src/core/memory.h"
#include "zellige/status.h"

void zlg_accumulate_count(const void *arguments, struct zlg_count *count) {
  const struct zlg_accumulate_args *args = arguments;
  const double elements = (double)args->m * (double)args->r;
  const double size = (double)zlg_type_size(args->type);
  count->slots = elements * (args->parts + 2);
  count->type = args->type;
  count->work = 0;
  count->specials = 0;
  count->flops = elements * (args->parts + (args->beta != 0 ? 2 : 0));
  count->bytes = elements * (8.0 * args->parts + (args->beta != 0 ? 2 : 1) * size);
}

uint32_t zlg_accumulate_footprint(const void *arguments) {
  const struct zlg_accumulate_args *args = arguments;
  const int64_t parts[] = {args->type, args->m, args->r, args->y_order, args->parts, args->beta != 0};
  return zlg_hash_parts(parts, sizeof parts / sizeof *parts);
}

void zlg_accumulate_family(const void *arguments, struct zlg_family *family) {
  const struct zlg_accumulate_args *args = arguments;
  *family = (struct zlg_family){.what = {args->type, args->beta != 0, args->y_order},
                                .width = {args->parts, args->r},
                                .size = (double)args->m * (double)args->r};
}

static const struct {
  int64_t elements;
  bool unseen;
} measured_sizes[] = {{1 << 12, false}, {1 << 14, false}, {23170, true},    {1 << 15, false},
                      {1 << 17, false}, {185360, true},   {1 << 18, false}, {1 << 20, false}};

bool zlg_accumulate_calibration(int index, void *arguments, struct zlg_case *what) {
  static const int parts[] = {1, 4};
  enum { SIZES = sizeof measured_sizes / sizeof *measured_sizes, PARTS = sizeof parts / sizeof *parts };
  const int size = index % SIZES, part = index / SIZES % PARTS, type = index / SIZES / PARTS % 2,
            added = index / SIZES / PARTS / 2;
  if (index < 0 || added > 1) return false;
  struct zlg_accumulate_args *args = arguments;
  *args = (struct zlg_accumulate_args){.type = type ? ZLG_F64 : ZLG_F32,
                                       .m = measured_sizes[size].elements,
                                       .r = 1,
                                       .y_order = ZLG_ROW_MAJOR,
                                       .parts = parts[part],
                                       .alpha = 0.5,
                                       .beta = added ? 0.5 : 0};
  *what = (struct zlg_case){
      .brief = type == 0 && part == 0 && !added,
      .unseen = measured_sizes[size].unseen,
      .buffer_count = 1 + args->parts,
      .buffers = {{args->r, args->m, zlg_type_size(args->type), added ? ZLG_CASE_INOUT : ZLG_CASE_OUT}}};
  for (int i = 1; i <= args->parts; i++)
    what->buffers[i] =
        (struct zlg_case_buffer){args->m * args->r, 0, sizeof(double), i == 1 ? ZLG_CASE_INOUT : ZLG_CASE_IN};
  snprintf(what->label, sizeof what->label, "%s-parts%d%s", zlg_type_name(args->type), args->parts,
           added ? "-added" : "");
  return true;
}

static int run_cpu(const void *arguments, const struct zlg_operand *at) {
  const struct zlg_accumulate_args *args = arguments;
  double **acc = args->parts > 0 ? zlg_scratch((size_t)args->parts * sizeof *acc) : NULL;
  if (args->parts > 0 && !acc) return ZLG_ENOMEM;
  for (int i = 0; i < args->parts; i++) acc[i] = at[1 + i].data;
  ZLG_CPU(zlg_accumulate_cpu)(args, at[0].data, at[0].ld, acc);
  return ZLG_OK;
}

static void cpu_function(void *buffers[], void *cl_arg) {
  struct zlg_accumulate_args *args = cl_arg;
  args->head.start = zlg_clock();
  struct zlg_operand *at = zlg_malloc((size_t)(1 + args->parts) * sizeof *at);
  if (!at) {
    args->head.status = ZLG_ENOMEM;
    return;
  }
  at[0] = zlg_matrix_operand(buffers[0]);
  for (int i = 1; i <= args->parts; i++) at[i] = zlg_vector_operand(buffers[i]);
  args->head.status = run_cpu(args, at);
  zlg_free(at);
}

void zlg_accumulate_options(const void *arguments, const struct zlg_device_profile *profile, char *text, size_t bytes) {
  const struct zlg_accumulate_args *args = arguments;
  (void)profile;
  snprintf(text, bytes, "-w -DZLG_F64=%d -DY_COLUMNS=%d", args->type == ZLG_F64, args->y_order == ZLG_COLUMN_MAJOR);
}

#ifdef ZLG_WITH_DEVICES

#define PARTS_A_LAUNCH 4 /* accumulators that one launch takes */

/* Arguments p1 … p3 and their number; places that are not there repeat the first, and are not read. */
static void launch_parts(struct zlg_launch *launch, const struct zlg_place *parts, int count) {
  for (int i = 1; i < PARTS_A_LAUNCH; i++) zlg_launch_place(launch, &parts[i < count ? i : 0], false);
  zlg_launch_int(launch, count);
}

static int launch_groups(struct zlg_launch *launch, int64_t elements) {
  const int64_t groups[3] = {(elements + 63) / 64, 1, 1};
  return zlg_launch_run(launch, 64, groups);
}

static int launch_sum(struct zlg_program *program, void *queue, const struct zlg_place *parts, int count,
                      int64_t elements) {
  struct zlg_launch launch;
  zlg_launch_begin(&launch, program, "sum_parts", queue);
  zlg_launch_place(&launch, &parts[0], false);
  launch_parts(&launch, parts, count);
  zlg_launch_wide(&launch, elements);
  return launch_groups(&launch, elements);
}

static int launch_finish(const struct zlg_accumulate_args *args, struct zlg_program *program, void *queue,
                         const struct zlg_place *y, const struct zlg_place *parts, int count, int64_t m, int64_t r) {
  struct zlg_launch launch;
  zlg_launch_begin(&launch, program, "finish", queue);
  zlg_launch_place(&launch, y, true);
  zlg_launch_place(&launch, &parts[0], false);
  launch_parts(&launch, parts, count);
  zlg_launch_wide(&launch, m);
  zlg_launch_wide(&launch, r);
  zlg_launch_double(&launch, args->alpha);
  zlg_launch_double(&launch, args->beta);
  return launch_groups(&launch, m * r);
}

static int run_device(const struct zlg_accumulate_args *args, struct zlg_device *device, void *buffers[]) {
  char options[256];
  zlg_accumulate_options(args, zlg_device_profile(device), options, sizeof options);
  struct zlg_program *program;
  int status = zlg_device_program(device, "accumulate", options, &program, NULL, 0);
  const struct zlg_place y = zlg_matrix_place(buffers[0], zlg_type_size(args->type));
  struct zlg_place parts[PARTS_A_LAUNCH] = {args->parts > 0 ? zlg_vector_place(buffers[1], sizeof(double)) : y};
  int count = args->parts > 0;
  for (int next = 1; status == ZLG_OK && next < args->parts; next++) {
    if (count == PARTS_A_LAUNCH) {
      status = launch_sum(program, NULL, parts, count, args->m * args->r);
      count = 1;
    }
    parts[count++] = zlg_vector_place(buffers[1 + next], sizeof(double));
  }
  return status == ZLG_OK ? launch_finish(args, program, NULL, &y, parts, count, args->m, args->r) : status;
}

static void device_function(void *buffers[], void *cl_arg) {
  struct zlg_accumulate_args *args = cl_arg;
  args->head.start = zlg_clock();
  if (args->m == 0 || args->r == 0) return;
  struct zlg_device *device = zlg_device_here();
  args->head.status = device ? run_device(args, device, buffers) : ZLG_ENOMEM;
}

static int try_once(const void *arguments, struct zlg_program *program, void *queue, uintptr_t memory) {
  const struct zlg_place place = {memory, 0, 1};
  int status = launch_sum(program, queue, &place, 1, 1);
  return status == ZLG_OK ? launch_finish(arguments, program, queue, &place, &place, 0, 1, 1) : status;
}

int zlg_accumulate_prepare(const void *arguments, char *message, size_t message_bytes) {
  const struct zlg_trial trial = {"accumulate", zlg_accumulate_options, try_once, 64};
  return zlg_device_prepare(&trial, arguments, message, message_bytes);
}

#endif

static struct starpu_perfmodel model = ZLG_MODEL(accumulate);

struct starpu_codelet zlg_accumulate_codelet = {
    .name = "zlg_accumulate",
    .cpu_funcs = {cpu_function},
    .cpu_funcs_name = {"zlg_accumulate"},
    ZLG_DEVICE_FUNCTION(device_function),
    .nbuffers = STARPU_VARIABLE_NBUFFERS,
    .model = &model,
};

const struct zlg_codelet zlg_codelet_accumulate = {
    .name = "accumulate",
    .codelet = &zlg_accumulate_codelet,
    .cpu = run_cpu,
    .count = zlg_accumulate_count,
    .footprint = zlg_accumulate_footprint,
    .prepare = ZLG_DEVICE_PREPARE(zlg_accumulate_prepare),
    .args_bytes = sizeof(struct zlg_accumulate_args),
    .family = zlg_accumulate_family,
    .calibration = zlg_accumulate_calibration,
};
