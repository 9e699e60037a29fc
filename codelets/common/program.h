/* Programs of devices, whatever speaks to them: a text specialised for its arguments, compiled once a device, and
 * launched on the queue of the StarPU worker that runs the task. The codelets' device functions see only this; OpenCL
 * and CUDA stand behind it (backend.h). */
#ifndef ZLG_COMMON_PROGRAM_H
#define ZLG_COMMON_PROGRAM_H

#include "codelets/common/device.h"
#include "codelets/common/starpu_compat.h"

struct zlg_device; /* a device of the running StarPU */
struct zlg_program;

/* The device of the calling StarPU worker; NULL on a CPU worker and when memory runs out. */
struct zlg_device *zlg_device_here(void);
const struct zlg_device_profile *zlg_device_profile(const struct zlg_device *device);
/* For can_execute: false on a device that lacks what the texts need, binary64. */
bool zlg_device_usable(unsigned worker);

/* The text of codelet `name` compiled with these -D options; from memory, from disk or by the driver. ZLG_OK, or
 * ZLG_ENOTSUP (no binary64), ZLG_ENOMEM, ZLG_EDEVICE, with `message` filled in (message may be NULL). */
int zlg_device_program(struct zlg_device *device, const char *name, const char *options, struct zlg_program **program,
                       char *message, size_t message_bytes);
struct zlg_device *zlg_program_device(const struct zlg_program *program);

/* An operand on a device: OpenCL buffer or CUDA address, and offset and leading dimension in elements. */
struct zlg_place {
  uintptr_t memory;
  int64_t at, ld;
};
struct zlg_place zlg_matrix_place(void *buffer, size_t element_bytes);
struct zlg_place zlg_vector_place(void *buffer, size_t element_bytes);

/* A launch: arguments in the kernel's order, then the grid in groups. */
#define ZLG_LAUNCH_ARGUMENTS 40
struct zlg_launch {
  struct zlg_program *program;
  const char *kernel; /* static */
  void *queue;        /* NULL: the worker's; else one that the backend made for a trial */
  int count;
  struct {
    enum { ZLG_ARGUMENT_MEMORY, ZLG_ARGUMENT_WIDE, ZLG_ARGUMENT_INT, ZLG_ARGUMENT_DOUBLE } type;
    union {
      uintptr_t memory;
      int64_t wide;
      int32_t plain;
      double real;
    } value;
  } arguments[ZLG_LAUNCH_ARGUMENTS];
};
void zlg_launch_begin(struct zlg_launch *launch, struct zlg_program *program, const char *kernel, void *queue);
void zlg_launch_memory(struct zlg_launch *launch, uintptr_t memory);
void zlg_launch_wide(struct zlg_launch *launch, int64_t value);
void zlg_launch_int(struct zlg_launch *launch, int value);
void zlg_launch_double(struct zlg_launch *launch, double value);
/* memory, at, and ld where wanted: as the texts take an operand. */
void zlg_launch_place(struct zlg_launch *launch, const struct zlg_place *place, bool with_ld);
/* Enqueues groups[0] x groups[1] x groups[2] groups of `threads`; does not wait. ZLG_OK or ZLG_EDEVICE. */
int zlg_launch_run(const struct zlg_launch *launch, size_t threads, const int64_t groups[3]);

/* Device memory of at least `bytes`, for launches on the worker's queue until the next call; 0 when there is none.
 * Commands of one queue run in order, so launches may share it. */
uintptr_t zlg_device_scratch(struct zlg_device *device, size_t bytes);

/* Makes a program ready before the first task, on every device that a StarPU worker drives: compiles it and, where the
 * driver finishes compiling at the first launch only (PoCL), tries it once. The result is stored on disk. */
struct zlg_trial {
  const char *name;
  void (*options)(const void *args, const struct zlg_device_profile *profile, char *text, size_t bytes);
  /* Launches every kernel once on tiny operands that all lie in `memory`, `bytes` of it. */
  int (*run)(const void *args, struct zlg_program *program, void *queue, uintptr_t memory);
  size_t memory_bytes;
};
int zlg_device_prepare(const struct zlg_trial *trial, const void *args, char *message, size_t message_bytes);

/* Lets go of everything that belongs to the running StarPU: called before it is shut down, when no task is left. */
void zlg_device_release(void);

#endif
