/* What a way to devices implements (OpenCL, CUDA), for program.c. */
#ifndef ZLG_COMMON_BACKEND_H
#define ZLG_COMMON_BACKEND_H

#include <pthread.h>

#include "codelets/common/program.h"

#define ZLG_PROGRAM_KERNELS 4 /* most kernels of one text */

struct zlg_device {
  struct zlg_device *next;
  const struct zlg_backend *backend;
  int devid;
  struct zlg_device_profile profile;
  bool binary64;
  char identity[512]; /* what a binary depends on besides text and options */
  void *context, *id; /* the backend's */
  uintptr_t scratch;
  size_t scratch_bytes;
  struct zlg_retired { /* scratch that was outgrown while commands may still use it */
    struct zlg_retired *next;
    uintptr_t memory;
  } * retired;
  struct zlg_program *programs;
};

struct zlg_program {
  struct zlg_program *next;
  struct zlg_device *device;
  const char *name;
  char *options;
  pthread_mutex_t build; /* held while it is built or tried */
  enum { ZLG_NOT_BUILT, ZLG_BUILT, ZLG_BUILD_FAILED } state;
  bool stored, tried;
  struct zlg_device_key key;
  void *module; /* the backend's program */
  int kernel_count;
  struct {
    const char *name;
    void *kernel;
  } kernels[ZLG_PROGRAM_KERNELS];
  char *failure; /* the compiler's words, NULL when there was no memory for them */
};

struct zlg_backend {
  const char *name;
  enum starpu_worker_archtype worker;
  /* Opens device->devid: context, id, profile, identity, binary64. */
  bool (*open)(struct zlg_device *device);
  /* False where StarPU was stopped and started since and the device is another now. */
  bool (*current)(const struct zlg_device *device);
  void (*close)(struct zlg_device *device);
  /* program->module from a binary of the disk; false: compile again. */
  bool (*load)(struct zlg_program *program, const void *binary, size_t bytes);
  /* program->module from the texts; false with program->failure. Where the binary is at hand it may be stored at once.
   */
  bool (*compile)(struct zlg_program *program);
  /* The module's binary, the caller's to zlg_free; NULL: none, or stored by compile(). */
  void *(*binary)(const struct zlg_program *program, size_t *bytes);
  void (*unload)(struct zlg_program *program);
  /* A kernel by name; NULL: not there. One of a thread of its own where `own`, then given back with release_kernel. */
  void *(*kernel)(struct zlg_program *program, const char *name);
  void (*release_kernel)(void *kernel);
  uintptr_t (*memory_new)(struct zlg_device *device, size_t bytes);
  void (*memory_free)(struct zlg_device *device, uintptr_t memory);
  int (*launch)(const struct zlg_launch *launch, void *kernel, size_t threads, const int64_t groups[3]);
  /* Runs a trial on a queue of its own and waits; NULL where drivers compile at once. */
  int (*attempt)(const struct zlg_trial *trial, const void *args, struct zlg_program *program);
};

extern const struct zlg_backend zlg_opencl_backend, zlg_cuda_backend;

/* "text (name): words", kept as the program's failure. */
void zlg_program_fail(struct zlg_program *program, const char *words, int code);

#endif
