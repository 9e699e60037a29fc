/* OpenCL programs of StarPU's OpenCL workers. Looked up by every task, compiled once per device and specialisation. */
#ifndef ZLG_COMMON_DEVICE_OPENCL_H
#define ZLG_COMMON_DEVICE_OPENCL_H

#include "codelets/common/device.h"
#include "codelets/common/starpu_compat.h"

#ifdef ZLG_WITH_OPENCL

struct zlg_opencl_device; /* a device of the running StarPU */
struct zlg_opencl_program;

/* The device of a StarPU OpenCL device number (starpu_worker_get_devid); NULL when memory runs out. */
struct zlg_opencl_device *zlg_opencl_device(int devid);
const struct zlg_device_profile *zlg_opencl_profile(const struct zlg_opencl_device *device);
/* True when the device has what the texts need: binary64. For can_execute. */
bool zlg_opencl_usable(int devid);

/* The text of codelet `name` compiled with these options; from memory, from disk or by the driver. ZLG_OK, or
 * ZLG_ENOTSUP (no binary64), ZLG_ENOMEM, ZLG_EDEVICE, with `message` filled in (message may be NULL). */
int zlg_opencl_program(struct zlg_opencl_device *device, const char *name, const char *options,
                       struct zlg_opencl_program **program, char *message, size_t message_bytes);

struct zlg_opencl_device *zlg_opencl_program_device(const struct zlg_opencl_program *program);

/* A launch: arguments in order, then the grid in groups. The first error sticks and is returned by the run. */
struct zlg_opencl_launch {
  struct zlg_opencl_device *device;
  cl_command_queue queue;
  cl_kernel kernel;
  bool own_kernel;
  cl_uint next;
  cl_int error;
};
/* queue NULL: the device's StarPU queue, for the worker of that device only (kernel objects are kept, and threads may
 * not share them). Another queue: from any thread. */
void zlg_opencl_launch_begin(struct zlg_opencl_launch *launch, struct zlg_opencl_program *program, const char *kernel,
                             cl_command_queue queue);
void zlg_opencl_arg(struct zlg_opencl_launch *launch, size_t bytes, const void *value);
void zlg_opencl_arg_memory(struct zlg_opencl_launch *launch, cl_mem memory);
void zlg_opencl_arg_wide(struct zlg_opencl_launch *launch, int64_t value);
void zlg_opencl_arg_int(struct zlg_opencl_launch *launch, int value);
void zlg_opencl_arg_double(struct zlg_opencl_launch *launch, double value);
/* Enqueues groups[0] x groups[1] x groups[2] groups of `threads`; does not wait. ZLG_OK or ZLG_EDEVICE. */
int zlg_opencl_launch_run(struct zlg_opencl_launch *launch, size_t threads, const int64_t groups[3]);

/* Device memory of at least `bytes`, for use by launches on the device's queue until the next call; NULL when there is
 * none. Commands of one queue run in order, so launches may share it. */
cl_mem zlg_opencl_scratch(struct zlg_opencl_device *device, size_t bytes);

/* Makes a program ready before the first task, on every OpenCL device that a StarPU worker drives: compiles it, and
 * runs `warm` once with a queue of its own, because some drivers (PoCL) finish compiling at the first launch. `options`
 * writes the specialisation for a device. The result is stored on disk. */
struct zlg_opencl_warm {
  const char *name;
  void (*options)(const void *args, const struct zlg_device_profile *profile, char *text, size_t bytes);
  /* Launches every kernel once on tiny operands that all lie in `memory`, `bytes` of it. */
  int (*warm)(const void *args, struct zlg_opencl_program *program, cl_command_queue queue, cl_mem memory);
  size_t memory_bytes;
};
int zlg_opencl_prepare(const struct zlg_opencl_warm *what, const void *args, char *message, size_t message_bytes);

/* Lets go of everything that belongs to the running StarPU: called before it is shut down, when no task is left. */
void zlg_opencl_release(void);

#endif
#endif
