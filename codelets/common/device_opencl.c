/* OpenCL programs: looked up by device, text and options; built once, whichever thread comes first; kept until the
 * runtime is shut down. A lookup holds one lock for the lists; a build holds the lock of its program only. */
#include "codelets/common/device_opencl.h"

#ifdef ZLG_WITH_OPENCL

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "src/core/memory.h"
#include "zellige/status.h"

#define KERNELS_LARGEST 4

struct zlg_opencl_device {
  struct zlg_opencl_device *next;
  int devid;
  cl_context context;
  cl_device_id id;
  struct zlg_device_profile profile;
  bool binary64;
  char identity[512]; /* what a binary depends on besides text and options */
  cl_mem scratch;
  size_t scratch_bytes;
  struct zlg_opencl_program *programs;
};

struct zlg_opencl_program {
  struct zlg_opencl_program *next;
  struct zlg_opencl_device *device;
  char *options;
  const char *name;
  pthread_mutex_t build;
  enum { NOT_BUILT, BUILT, FAILED } state;
  bool from_disk, warm;
  struct zlg_device_key key;
  cl_program program;
  int kernel_count;
  struct {
    const char *name;
    cl_kernel kernel;
  } kernels[KERNELS_LARGEST];
  char *failure; /* the driver's words, NULL when there was no memory for them */
};

static pthread_mutex_t lists = PTHREAD_MUTEX_INITIALIZER;
static struct zlg_opencl_device *devices;

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

static void describe(struct zlg_opencl_device *device) {
  char name[128] = "", vendor[64] = "", version[160] = "", driver[96] = "";
  cl_device_type type = 0;
  cl_device_fp_config binary64 = 0;
  cl_uint f32 = 0, f64 = 0;
  cl_ulong local = 0;
  clGetDeviceInfo(device->id, CL_DEVICE_NAME, sizeof name, name, NULL);
  clGetDeviceInfo(device->id, CL_DEVICE_VENDOR, sizeof vendor, vendor, NULL);
  clGetDeviceInfo(device->id, CL_DEVICE_VERSION, sizeof version, version, NULL);
  clGetDeviceInfo(device->id, CL_DRIVER_VERSION, sizeof driver, driver, NULL);
  clGetDeviceInfo(device->id, CL_DEVICE_TYPE, sizeof type, &type, NULL);
  clGetDeviceInfo(device->id, CL_DEVICE_DOUBLE_FP_CONFIG, sizeof binary64, &binary64, NULL);
  clGetDeviceInfo(device->id, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT, sizeof f32, &f32, NULL);
  clGetDeviceInfo(device->id, CL_DEVICE_NATIVE_VECTOR_WIDTH_DOUBLE, sizeof f64, &f64, NULL);
  clGetDeviceInfo(device->id, CL_DEVICE_LOCAL_MEM_SIZE, sizeof local, &local, NULL);
  snprintf(device->identity, sizeof device->identity, "%s|%s|%s|%s", name, vendor, version, driver);
  device->binary64 = binary64 != 0;
  device->profile = zlg_device_gpu;
  device->profile.local_bytes = (size_t)local;
  if (type & CL_DEVICE_TYPE_CPU) {
    device->profile.processor = true;
    device->profile.lanes_f32 = f32 >= 16 ? 16 : f32 >= 8 ? 8 : 4;
    device->profile.lanes_f64 = f64 >= 8 ? 8 : f64 >= 4 ? 4 : 2;
  }
}

/* Under `lists`. StarPU may have been stopped and started since: a device is the same only in the same OpenCL context,
 * which stays alive, and its address taken, for as long as our programs refer to it. */
static struct zlg_opencl_device *find_device(int devid) {
  cl_context context = NULL;
  starpu_opencl_get_context(devid, &context);
  for (struct zlg_opencl_device *device = devices; device; device = device->next)
    if (device->devid == devid && device->context == context) return device;
  struct zlg_opencl_device *device = zlg_calloc(1, sizeof *device);
  if (!device) return NULL;
  device->devid = devid;
  device->context = context;
  clRetainContext(context);
  starpu_opencl_get_device(devid, &device->id);
  describe(device);
  device->next = devices;
  devices = device;
  return device;
}

struct zlg_opencl_device *zlg_opencl_device(int devid) {
  pthread_mutex_lock(&lists);
  struct zlg_opencl_device *device = find_device(devid);
  pthread_mutex_unlock(&lists);
  return device;
}

const struct zlg_device_profile *zlg_opencl_profile(const struct zlg_opencl_device *device) {
  return &device->profile;
}

bool zlg_opencl_usable(int devid) {
  struct zlg_opencl_device *device = zlg_opencl_device(devid);
  return device && device->binary64;
}

static void program_free(struct zlg_opencl_program *program) {
  for (int i = 0; i < program->kernel_count; i++) clReleaseKernel(program->kernels[i].kernel);
  if (program->program) clReleaseProgram(program->program);
  pthread_mutex_destroy(&program->build);
  zlg_free(program->failure);
  zlg_free(program->options);
  zlg_free(program);
}

/* Under `lists`. */
static struct zlg_opencl_program *find_program(struct zlg_opencl_device *device, const char *name,
                                               const char *options) {
  for (struct zlg_opencl_program *program = device->programs; program; program = program->next)
    if (strcmp(program->options, options) == 0 && strcmp(program->name, name) == 0) return program;
  struct zlg_opencl_program *program = zlg_calloc(1, sizeof *program);
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
static bool cache_wanted(const struct zlg_opencl_device *device) {
  return zlg_device_cache_wanted(device->profile.processor);
}

static bool build_from_disk(struct zlg_opencl_program *program) {
  struct zlg_opencl_device *device = program->device;
  if (!cache_wanted(device)) return false;
  size_t bytes;
  unsigned char *binary = zlg_device_cache_load(&program->key, &bytes);
  if (!binary) return false;
  const unsigned char *binaries = binary;
  cl_int status = CL_SUCCESS, error = CL_SUCCESS;
  cl_program made = clCreateProgramWithBinary(device->context, 1, &device->id, &bytes, &binaries, &status, &error);
  zlg_free(binary);
  if (error != CL_SUCCESS || !made) return false;
  if (status != CL_SUCCESS || clBuildProgram(made, 1, &device->id, program->options, NULL, NULL) != CL_SUCCESS) {
    clReleaseProgram(made);
    return false;
  }
  program->program = made;
  program->from_disk = true;
  return true;
}

static void keep_failure(struct zlg_opencl_program *program, cl_program made, cl_int error) {
  size_t bytes = 0;
  if (made) clGetProgramBuildInfo(made, program->device->id, CL_PROGRAM_BUILD_LOG, 0, NULL, &bytes);
  size_t room = 256 + bytes;
  program->failure = zlg_malloc(room);
  if (!program->failure) return;
  int used = snprintf(program->failure, room, "OpenCL error %d compiling %s (%s)", (int)error, program->name,
                      program->device->profile.processor ? "CPU device" : "GPU");
  if (bytes > 1) {
    size_t at = (size_t)used + 2;
    memcpy(program->failure + used, ": ", 3);
    clGetProgramBuildInfo(made, program->device->id, CL_PROGRAM_BUILD_LOG, room - at, program->failure + at, NULL);
  }
}

static bool build_from_text(struct zlg_opencl_program *program) {
  struct zlg_opencl_device *device = program->device;
  const char *sources[] = {zlg_device_vocabulary, zlg_device_text(program->name)};
  cl_int error = CL_SUCCESS;
  cl_program made = clCreateProgramWithSource(device->context, 2, sources, NULL, &error);
  if (error == CL_SUCCESS) error = clBuildProgram(made, 1, &device->id, program->options, NULL, NULL);
  if (error == CL_SUCCESS) {
    program->program = made;
    return true;
  }
  keep_failure(program, made, error);
  if (made) clReleaseProgram(made);
  return false;
}

static void store(const struct zlg_opencl_program *program) {
  size_t bytes = 0;
  if (clGetProgramInfo(program->program, CL_PROGRAM_BINARY_SIZES, sizeof bytes, &bytes, NULL) != CL_SUCCESS || !bytes)
    return;
  unsigned char *binary = zlg_malloc(bytes);
  if (!binary) return;
  if (clGetProgramInfo(program->program, CL_PROGRAM_BINARIES, sizeof binary, &binary, NULL) == CL_SUCCESS)
    zlg_device_cache_store(&program->key, binary, bytes);
  zlg_free(binary);
}

/* Under the program's own lock. */
static void build(struct zlg_opencl_program *program) {
  struct zlg_device_key key = ZLG_DEVICE_KEY_SEED;
  zlg_device_key_add(&key, program->device->identity);
  zlg_device_key_add(&key, zlg_device_vocabulary);
  zlg_device_key_add(&key, zlg_device_text(program->name));
  zlg_device_key_add(&key, program->options);
  program->key = key;
  program->state = build_from_disk(program) || build_from_text(program) ? BUILT : FAILED;
}

int zlg_opencl_program(struct zlg_opencl_device *device, const char *name, const char *options,
                       struct zlg_opencl_program **found, char *message, size_t message_bytes) {
  if (!device->binary64)
    return say(message, message_bytes, ZLG_ENOTSUP, "OpenCL device %d (%s) has no binary64 arithmetic", device->devid,
               device->identity);
  pthread_mutex_lock(&lists);
  struct zlg_opencl_program *program = find_program(device, name, options);
  pthread_mutex_unlock(&lists);
  if (!program) return say(message, message_bytes, ZLG_ENOMEM, "no memory for a device program");
  pthread_mutex_lock(&program->build);
  if (program->state == NOT_BUILT) build(program);
  int state = program->state;
  pthread_mutex_unlock(&program->build);
  if (state == FAILED)
    return say(message, message_bytes, ZLG_EDEVICE, "%s", program->failure ? program->failure : "a device program");
  *found = program;
  return ZLG_OK;
}

struct zlg_opencl_device *zlg_opencl_program_device(const struct zlg_opencl_program *program) {
  return program->device;
}

/* By the device's worker thread only. */
static cl_kernel kept_kernel(struct zlg_opencl_program *program, const char *name, cl_int *error) {
  for (int i = 0; i < program->kernel_count; i++)
    if (strcmp(program->kernels[i].name, name) == 0) return program->kernels[i].kernel;
  cl_kernel kernel = clCreateKernel(program->program, name, error);
  if (kernel) {
    program->kernels[program->kernel_count].name = name;
    program->kernels[program->kernel_count++].kernel = kernel;
  }
  return kernel;
}

void zlg_opencl_launch_begin(struct zlg_opencl_launch *launch, struct zlg_opencl_program *program, const char *kernel,
                             cl_command_queue queue) {
  *launch = (struct zlg_opencl_launch){.device = program->device, .queue = queue, .own_kernel = queue != NULL};
  if (queue) {
    launch->kernel = clCreateKernel(program->program, kernel, &launch->error);
  } else {
    starpu_opencl_get_queue(program->device->devid, &launch->queue);
    launch->kernel = kept_kernel(program, kernel, &launch->error);
  }
}

void zlg_opencl_arg(struct zlg_opencl_launch *launch, size_t bytes, const void *value) {
  if (launch->error == CL_SUCCESS) launch->error = clSetKernelArg(launch->kernel, launch->next++, bytes, value);
}

void zlg_opencl_arg_memory(struct zlg_opencl_launch *launch, cl_mem memory) {
  zlg_opencl_arg(launch, sizeof memory, &memory);
}

void zlg_opencl_arg_wide(struct zlg_opencl_launch *launch, int64_t value) {
  cl_long wide = value;
  zlg_opencl_arg(launch, sizeof wide, &wide);
}

void zlg_opencl_arg_int(struct zlg_opencl_launch *launch, int value) {
  cl_int plain = value;
  zlg_opencl_arg(launch, sizeof plain, &plain);
}

void zlg_opencl_arg_double(struct zlg_opencl_launch *launch, double value) {
  zlg_opencl_arg(launch, sizeof value, &value);
}

int zlg_opencl_launch_run(struct zlg_opencl_launch *launch, size_t threads, const int64_t groups[3]) {
  const size_t local[3] = {threads, 1, 1};
  const size_t global[3] = {threads * (size_t)groups[0], (size_t)groups[1], (size_t)groups[2]};
  if (launch->error == CL_SUCCESS)
    launch->error = clEnqueueNDRangeKernel(launch->queue, launch->kernel, 3, NULL, global, local, 0, NULL, NULL);
  if (launch->error == CL_SUCCESS) launch->error = clFlush(launch->queue);
  if (launch->own_kernel && launch->kernel) clReleaseKernel(launch->kernel);
  return launch->error == CL_SUCCESS ? ZLG_OK : ZLG_EDEVICE;
}

cl_mem zlg_opencl_scratch(struct zlg_opencl_device *device, size_t bytes) {
  if (device->scratch && device->scratch_bytes >= bytes) return device->scratch;
  /* Commands that still use the old buffer keep it. */
  if (device->scratch) clReleaseMemObject(device->scratch);
  cl_int error = CL_SUCCESS;
  device->scratch = clCreateBuffer(device->context, CL_MEM_READ_WRITE, bytes, NULL, &error);
  if (error != CL_SUCCESS) device->scratch = NULL;
  device->scratch_bytes = device->scratch ? bytes : 0;
  return device->scratch;
}

static int warm_up(const struct zlg_opencl_warm *what, const void *args, struct zlg_opencl_program *program,
                   char *message, size_t message_bytes) {
  struct zlg_opencl_device *device = program->device;
  cl_int error = CL_SUCCESS;
  cl_command_queue queue = clCreateCommandQueue(device->context, device->id, 0, &error);
  cl_mem memory = queue ? clCreateBuffer(device->context, CL_MEM_READ_WRITE, what->memory_bytes, NULL, &error) : NULL;
  int status = memory ? what->warm(args, program, queue, memory) : ZLG_EDEVICE;
  if (queue && clFinish(queue) != CL_SUCCESS) status = ZLG_EDEVICE;
  if (memory) clReleaseMemObject(memory);
  if (queue) clReleaseCommandQueue(queue);
  if (status != ZLG_OK)
    return say(message, message_bytes, status, "OpenCL device %d (%s) does not run %s", device->devid, device->identity,
               what->name);
  return ZLG_OK;
}

static int prepare_device(const struct zlg_opencl_warm *what, const void *args, int devid, char *message,
                          size_t message_bytes) {
  char options[1024];
  struct zlg_opencl_device *device = zlg_opencl_device(devid);
  struct zlg_opencl_program *program;
  if (!device) return say(message, message_bytes, ZLG_ENOMEM, "no memory for an OpenCL device");
  what->options(args, &device->profile, options, sizeof options);
  int status = zlg_opencl_program(device, what->name, options, &program, message, message_bytes);
  if (status != ZLG_OK) return status;
  pthread_mutex_lock(&program->build);
  if (!program->warm) {
    status = warm_up(what, args, program, message, message_bytes);
    program->warm = status == ZLG_OK;
    if (program->warm && !program->from_disk && cache_wanted(device)) store(program);
  }
  pthread_mutex_unlock(&program->build);
  return status;
}

int zlg_opencl_prepare(const struct zlg_opencl_warm *what, const void *args, char *message, size_t message_bytes) {
  int workers[STARPU_NMAXWORKERS];
  int count = starpu_worker_get_ids_by_type(STARPU_OPENCL_WORKER, workers, STARPU_NMAXWORKERS);
  for (int i = 0; i < count; i++) {
    int status = prepare_device(what, args, starpu_worker_get_devid(workers[i]), message, message_bytes);
    if (status != ZLG_OK) return status;
  }
  return ZLG_OK;
}

void zlg_opencl_release(void) {
  pthread_mutex_lock(&lists);
  while (devices) {
    struct zlg_opencl_device *device = devices;
    devices = device->next;
    while (device->programs) {
      struct zlg_opencl_program *program = device->programs;
      device->programs = program->next;
      program_free(program);
    }
    if (device->scratch) clReleaseMemObject(device->scratch);
    clReleaseContext(device->context);
    zlg_free(device);
  }
  pthread_mutex_unlock(&lists);
}

#endif
