/* Programs: looked up by device, text and options; built once, whichever thread comes first; kept until the runtime is
 * shut down. A lookup holds one lock for the lists; a build holds the lock of its program only. */
#include "codelets/common/program.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "codelets/common/backend.h"
#include "src/core/memory.h"
#include "zellige/status.h"

static const struct zlg_backend *const backends[] = {
#ifdef ZLG_WITH_OPENCL
    &zlg_opencl_backend,
#endif
#ifdef ZLG_WITH_CUDA
    &zlg_cuda_backend,
#endif
    NULL};

static pthread_mutex_t lists = PTHREAD_MUTEX_INITIALIZER;
static struct zlg_device *devices;

static int say(char *message, size_t bytes, int status, const char *format, ...) __attribute__((format(printf, 4, 5)));
static int say(char *message, size_t bytes, int status, const char *format, ...) {
  if (message && bytes) {
    va_list rest;
    va_start(rest, format);
    vsnprintf(message, bytes, format, rest);
    va_end(rest);
  }
  return status;
}

/* ---- devices ----------------------------------------------------------------------------------------------------- */

static struct zlg_device *open_device(const struct zlg_backend *backend, int devid) {
  struct zlg_device *device = zlg_calloc(1, sizeof *device);
  if (!device) return NULL;
  device->backend = backend;
  device->devid = devid;
  if (!backend->open(device)) {
    zlg_free(device);
    return NULL;
  }
  device->next = devices;
  devices = device;
  return device;
}

static struct zlg_device *device_of(int worker) {
  enum starpu_worker_archtype type = starpu_worker_get_type(worker);
  int devid = starpu_worker_get_devid(worker);
  const struct zlg_backend *const *backend = backends;
  while (*backend && (*backend)->worker != type) backend++;
  if (!*backend) return NULL;
  pthread_mutex_lock(&lists);
  struct zlg_device *device = devices;
  while (device && !(device->backend == *backend && device->devid == devid && (*backend)->current(device)))
    device = device->next;
  if (!device) device = open_device(*backend, devid);
  pthread_mutex_unlock(&lists);
  return device;
}

struct zlg_device *zlg_device_here(void) {
  return device_of(starpu_worker_get_id());
}

const struct zlg_device_profile *zlg_device_profile(const struct zlg_device *device) {
  return &device->profile;
}

bool zlg_device_usable(unsigned worker) {
  if (starpu_worker_get_type((int)worker) == STARPU_CPU_WORKER) return true;
  struct zlg_device *device = device_of((int)worker);
  return device && device->binary64;
}

uintptr_t zlg_device_scratch(struct zlg_device *device, size_t bytes) {
  if (device->scratch && device->scratch_bytes >= bytes) return device->scratch;
  struct zlg_retired *retired = device->scratch ? zlg_malloc(sizeof *retired) : NULL;
  if (device->scratch && !retired) return 0;
  uintptr_t more = device->backend->memory_new(device, bytes);
  if (!more) {
    zlg_free(retired);
    return 0;
  }
  if (retired) {
    *retired = (struct zlg_retired){device->retired, device->scratch};
    device->retired = retired;
  }
  device->scratch = more;
  device->scratch_bytes = bytes;
  return more;
}

/* ---- building ---------------------------------------------------------------------------------------------------- */

void zlg_program_fail(struct zlg_program *program, const char *words, int code) {
  size_t room = strlen(words) + 128;
  program->failure = zlg_malloc(room);
  if (program->failure)
    snprintf(program->failure, room, "%s error %d compiling %s%s%s", program->device->backend->name, code,
             program->name, *words ? ": " : "", words);
}

static void unload(struct zlg_program *program) {
  const struct zlg_backend *backend = program->device->backend;
  for (int i = 0; i < program->kernel_count; i++) backend->release_kernel(program->kernels[i].kernel);
  if (program->module) backend->unload(program);
  program->kernel_count = 0;
  program->module = NULL;
}

static void free_program(struct zlg_program *program) {
  unload(program);
  pthread_mutex_destroy(&program->build);
  zlg_free(program->failure);
  zlg_free(program->options);
  zlg_free(program);
}

/* Under `lists`. */
static struct zlg_program *find_program(struct zlg_device *device, const char *name, const char *options) {
  for (struct zlg_program *program = device->programs; program; program = program->next)
    if (strcmp(program->options, options) == 0 && strcmp(program->name, name) == 0) return program;
  struct zlg_program *program = zlg_calloc(1, sizeof *program);
  if (!program) return NULL;
  program->options = zlg_strdup(options);
  if (!program->options || pthread_mutex_init(&program->build, NULL) != 0) {
    zlg_free(program->options);
    zlg_free(program);
    return NULL;
  }
  program->device = device;
  program->name = name;
  program->next = device->programs;
  device->programs = program;
  return program;
}

/* PoCL keeps finished code itself; asked for a binary, it compiles every kernel again for any group size, which takes
 * five times as long as the kernel did and runs slower. */
static bool cache_wanted(const struct zlg_program *program) {
  return zlg_device_cache_wanted(program->device->profile.processor);
}

static bool build_from_disk(struct zlg_program *program) {
  size_t bytes;
  if (!cache_wanted(program)) return false;
  void *binary = zlg_device_cache_load(&program->key, &bytes);
  program->stored = binary && program->device->backend->load(program, binary, bytes);
  zlg_free(binary);
  return program->stored;
}

static void store(struct zlg_program *program) {
  size_t bytes;
  if (program->stored || !cache_wanted(program)) return;
  void *binary = program->device->backend->binary(program, &bytes);
  if (binary) zlg_device_cache_store(&program->key, binary, bytes);
  zlg_free(binary);
  program->stored = true;
}

/* Under the program's own lock. */
static void build(struct zlg_program *program) {
  struct zlg_device_key key = ZLG_DEVICE_KEY_SEED;
  zlg_device_key_add(&key, program->device->backend->name);
  zlg_device_key_add(&key, program->device->identity);
  zlg_device_key_add(&key, zlg_device_vocabulary);
  zlg_device_key_add(&key, zlg_device_text(program->name));
  zlg_device_key_add(&key, program->options);
  program->key = key;
  bool built = build_from_disk(program) || program->device->backend->compile(program);
  program->state = built ? ZLG_BUILT : ZLG_BUILD_FAILED;
}

int zlg_device_program(struct zlg_device *device, const char *name, const char *options, struct zlg_program **found,
                       char *message, size_t message_bytes) {
  if (!device->binary64)
    return say(message, message_bytes, ZLG_ENOTSUP, "%s device %d (%s) has no binary64 arithmetic",
               device->backend->name, device->devid, device->identity);
  pthread_mutex_lock(&lists);
  struct zlg_program *program = find_program(device, name, options);
  pthread_mutex_unlock(&lists);
  if (!program) return say(message, message_bytes, ZLG_ENOMEM, "no memory for a device program");
  pthread_mutex_lock(&program->build);
  if (program->state == ZLG_NOT_BUILT) build(program);
  bool failed = program->state == ZLG_BUILD_FAILED;
  pthread_mutex_unlock(&program->build);
  if (failed)
    return say(message, message_bytes, ZLG_EDEVICE, "%s", program->failure ? program->failure : "a device program");
  *found = program;
  return ZLG_OK;
}

struct zlg_device *zlg_program_device(const struct zlg_program *program) {
  return program->device;
}

/* Under the program's own lock. What the disk gave may load and yet lack a kernel: then it is compiled after all. */
static int attempt(const struct zlg_trial *trial, const void *args, struct zlg_program *program) {
  const struct zlg_backend *backend = program->device->backend;
  if (program->tried || !backend->attempt) return ZLG_OK;
  int status = backend->attempt(trial, args, program);
  if (status == ZLG_OK || !program->stored) return status;
  unload(program);
  program->stored = false;
  if (backend->compile(program)) return backend->attempt(trial, args, program);
  program->state = ZLG_BUILD_FAILED;
  return ZLG_EDEVICE;
}

static int prepare_worker(const struct zlg_trial *trial, const void *args, int worker, char *message, size_t bytes) {
  char options[1024];
  struct zlg_program *program;
  struct zlg_device *device = device_of(worker);
  if (!device)
    return say(message, bytes, ZLG_EDEVICE,
               "device %d of worker %d cannot be opened: no memory, or its driver or compiler (CUDA: libcuda, NVRTC) "
               "is not there",
               starpu_worker_get_devid(worker), worker);
  const struct zlg_backend *backend = device->backend;
  trial->options(args, &device->profile, options, sizeof options);
  int status = zlg_device_program(device, trial->name, options, &program, message, bytes);
  if (status != ZLG_OK) return status;
  pthread_mutex_lock(&program->build);
  status = attempt(trial, args, program);
  program->tried = status == ZLG_OK;
  if (program->tried) store(program);
  pthread_mutex_unlock(&program->build);
  if (status == ZLG_OK) return ZLG_OK;
  return say(message, bytes, status, "%s device %d (%s) does not run %s", backend->name, device->devid,
             device->identity, trial->name);
}

int zlg_device_prepare(const struct zlg_trial *trial, const void *args, char *message, size_t message_bytes) {
  int workers[STARPU_NMAXWORKERS], status = ZLG_OK;
  for (const struct zlg_backend *const *backend = backends; *backend; backend++) {
    int count = starpu_worker_get_ids_by_type((*backend)->worker, workers, STARPU_NMAXWORKERS);
    for (int i = 0; i < count && status == ZLG_OK; i++)
      status = prepare_worker(trial, args, workers[i], message, message_bytes);
  }
  return status;
}

void zlg_device_release(void) {
  pthread_mutex_lock(&lists);
  while (devices) {
    struct zlg_device *device = devices;
    devices = device->next;
    while (device->programs) {
      struct zlg_program *program = device->programs;
      device->programs = program->next;
      free_program(program);
    }
    while (device->retired) {
      struct zlg_retired *retired = device->retired;
      device->retired = retired->next;
      device->backend->memory_free(device, retired->memory);
      zlg_free(retired);
    }
    if (device->scratch) device->backend->memory_free(device, device->scratch);
    device->backend->close(device);
    zlg_free(device);
  }
  pthread_mutex_unlock(&lists);
}

/* ---- operands and launches --------------------------------------------------------------------------------------- */

struct zlg_place zlg_matrix_place(void *buffer, size_t element_bytes) {
  return (struct zlg_place){(uintptr_t)STARPU_MATRIX_GET_DEV_HANDLE(buffer),
                            (int64_t)(STARPU_MATRIX_GET_OFFSET(buffer) / element_bytes),
                            (int64_t)STARPU_MATRIX_GET_LD(buffer)};
}

struct zlg_place zlg_vector_place(void *buffer, size_t element_bytes) {
  return (struct zlg_place){(uintptr_t)STARPU_VECTOR_GET_DEV_HANDLE(buffer),
                            (int64_t)(STARPU_VECTOR_GET_OFFSET(buffer) / element_bytes), 0};
}

void zlg_launch_begin(struct zlg_launch *launch, struct zlg_program *program, const char *kernel, void *queue) {
  launch->program = program;
  launch->kernel = kernel;
  launch->queue = queue;
  launch->count = 0;
}

#define NEXT(launch, kind, member, what)                                                                               \
  do {                                                                                                                 \
    if ((launch)->count < ZLG_LAUNCH_ARGUMENTS) {                                                                      \
      (launch)->arguments[(launch)->count].type = (kind);                                                              \
      (launch)->arguments[(launch)->count].value.member = (what);                                                      \
    }                                                                                                                  \
    (launch)->count++;                                                                                                 \
  } while (0)

void zlg_launch_memory(struct zlg_launch *launch, uintptr_t memory) {
  NEXT(launch, ZLG_ARGUMENT_MEMORY, memory, memory);
}
void zlg_launch_wide(struct zlg_launch *launch, int64_t value) {
  NEXT(launch, ZLG_ARGUMENT_WIDE, wide, value);
}
void zlg_launch_int(struct zlg_launch *launch, int value) {
  NEXT(launch, ZLG_ARGUMENT_INT, plain, value);
}
void zlg_launch_double(struct zlg_launch *launch, double value) {
  NEXT(launch, ZLG_ARGUMENT_DOUBLE, real, value);
}

void zlg_launch_place(struct zlg_launch *launch, const struct zlg_place *place, bool with_ld) {
  zlg_launch_memory(launch, place->memory);
  zlg_launch_wide(launch, place->at);
  if (with_ld) zlg_launch_wide(launch, place->ld);
}

/* Kept kernels are for the device's worker thread only: OpenCL's may not be shared between threads. */
static void *kept_kernel(struct zlg_program *program, const char *name) {
  for (int i = 0; i < program->kernel_count; i++)
    if (strcmp(program->kernels[i].name, name) == 0) return program->kernels[i].kernel;
  void *kernel = program->device->backend->kernel(program, name);
  if (kernel && program->kernel_count < ZLG_PROGRAM_KERNELS) {
    program->kernels[program->kernel_count].name = name;
    program->kernels[program->kernel_count++].kernel = kernel;
  }
  return kernel;
}

int zlg_launch_run(const struct zlg_launch *launch, size_t threads, const int64_t groups[3]) {
  struct zlg_program *program = launch->program;
  const struct zlg_backend *backend = program->device->backend;
  if (launch->count > ZLG_LAUNCH_ARGUMENTS) return ZLG_EDEVICE;
  void *kernel = launch->queue ? backend->kernel(program, launch->kernel) : kept_kernel(program, launch->kernel);
  int status = kernel ? backend->launch(launch, kernel, threads, groups) : ZLG_EDEVICE;
  if (launch->queue && kernel) backend->release_kernel(kernel);
  return status;
}
