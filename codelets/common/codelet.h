/* The registry of codelets and what their StarPU glue shares. Used by src/plan, which submits, by operators, which name
 * the codelet they want, and by codelet.c files. StarPU's types are names only here: who looks inside them includes
 * starpu_compat.h too. */
#ifndef ZLG_COMMON_CODELET_H
#define ZLG_COMMON_CODELET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "codelets/common/task.h"

#define ZLG_ON_CPU 1u
#define ZLG_ON_OPENCL 2u
#define ZLG_ON_CUDA 4u

/* One buffer of a task where it lies in the machine's memory; ld counts elements, 0 for vectors. */
struct zlg_operand {
  void *data;
  int64_t ld;
};

struct starpu_codelet;
struct starpu_task;
struct starpu_perfmodel_arch;

/* Tasks that differ in size only, so that one curve over the size describes them. Between families the nearest one
 * helps out: what[] says what kind of work it is, the first number counting most; width[] differs gradually. */
struct zlg_family {
  int32_t what[3];
  int64_t width[2];
  double size; /* of the one task asked about */
};

/* A task that calibration measures: arguments (by the codelet's calibration function), and the buffers to make for
 * them. A vector has ny = 0; a matrix is contiguous. */
#define ZLG_CASE_BUFFERS 8
struct zlg_case {
  char label[64]; /* of the family: letters, digits and '-', "gaussian-f32-d3-r1" */
  bool brief;     /* part of a short run */
  bool unseen;    /* no point of the curve: measured to check it */
  int buffer_count;
  struct zlg_case_buffer {
    int64_t nx, ny;
    size_t element;
    enum { ZLG_CASE_IN, ZLG_CASE_OUT, ZLG_CASE_INOUT } mode;
  } buffers[ZLG_CASE_BUFFERS];
};

struct zlg_codelet {
  const char *name;
  struct starpu_codelet *codelet;
  /* The CPU implementation without StarPU, buffers in the codelet's order: what the codelet's own CPU function calls,
   * and what small problems call at once in the caller's thread. ZLG_OK or ZLG_ENOMEM (scratch). */
  int (*cpu)(const void *args, const struct zlg_operand *operands);
  void (*count)(const void *args, struct zlg_count *count);
  uint32_t (*footprint)(const void *args);
  /* Makes the program for these arguments ready on every device of the kinds that run, so that no task meets a compiler
   * or its errors: called by the plan before the first task. ZLG_OK, or a code with `message` filled in. NULL: nothing.
   */
  int (*prepare)(const void *args, char *message, size_t message_bytes);
  size_t args_bytes;
  void (*family)(const void *args, struct zlg_family *family);
  /* The index-th case, from 0: fills in args and `what`; false past the last. Cases of a family follow one another, by
   * growing size. */
  bool (*calibration)(int index, void *args, struct zlg_case *what);
};

#define ZLG_CODELET(name, backends)                                                                                    \
  extern struct starpu_codelet zlg_##name##_codelet;                                                                   \
  void zlg_##name##_count(const void *args, struct zlg_count *count);                                                  \
  uint32_t zlg_##name##_footprint(const void *args);                                                                   \
  int zlg_##name##_prepare(const void *args, char *message, size_t message_bytes);                                     \
  void zlg_##name##_family(const void *args, struct zlg_family *family);                                               \
  bool zlg_##name##_calibration(int index, void *args, struct zlg_case *what);                                         \
  extern const struct zlg_codelet zlg_codelet_##name;
#include "codelets/ops.def"
#undef ZLG_CODELET

/* All of them, in the order of ops.def; NULL past the last. */
const struct zlg_codelet *zlg_codelet_at(int index);
/* Which of its implementations, of those that ops.def names, are in this build: ZLG_ON_… */
unsigned zlg_codelet_backends(int index);
/* The row whose StarPU codelet this is, NULL if none. */
const struct zlg_codelet *zlg_codelet_of(const struct starpu_codelet *codelet);

/* Seconds on a monotonic clock. */
double zlg_clock(void);

/* Scratch memory of the calling worker thread, 64-byte aligned, valid until the thread's next call; freed with the
 * thread. NULL when there is no memory. */
void *zlg_scratch(size_t bytes);

/* The performance model that every codelet's `model` points to: calibrated curves (model.h) where there are some, else
 * nominal rates and count(); corrected by what was measured in this process (zlg_model_learn), so that an uncalibrated
 * machine starts sensibly and improves as it runs. */
#define ZLG_MODEL(name_)                                                                                               \
  {                                                                                                                    \
    .type = STARPU_PER_ARCH, .symbol = "zlg_" #name_, .arch_cost_function = zlg_model_microseconds,                    \
    .footprint = zlg_model_footprint                                                                                   \
  }
double zlg_model_microseconds(struct starpu_task *task, struct starpu_perfmodel_arch *arch, unsigned implementation);
uint32_t zlg_model_footprint(struct starpu_task *task);
/* Predicted seconds of one task with these arguments on a worker kind. */
double zlg_model_seconds(const struct zlg_codelet *codelet, const void *args, zlg_worker_kind kind);
/* A task ran for `seconds` on a worker of that kind. */
void zlg_model_learn(const struct zlg_codelet *codelet, const void *args, zlg_worker_kind kind, double seconds);

#endif
