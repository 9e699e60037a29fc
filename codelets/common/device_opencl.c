/* OpenCL behind program.h: StarPU's OpenCL devices, their queues, the driver's compiler. */
#include "codelets/common/backend.h"

#ifdef ZLG_WITH_OPENCL

#include <stdio.h>
#include <string.h>

#include "src/core/memory.h"
#include "zellige/status.h"

static cl_context context_of(const struct zlg_device *device) {
  return device->context;
}
static cl_device_id id_of(const struct zlg_device *device) {
  return device->id;
}

static void describe(struct zlg_device *device) {
  cl_device_id id = id_of(device);
  char name[128] = "", vendor[64] = "", version[160] = "", driver[96] = "";
  cl_device_type type = 0;
  cl_device_fp_config binary64 = 0;
  cl_uint f32 = 0, f64 = 0;
  cl_ulong local = 0;
  clGetDeviceInfo(id, CL_DEVICE_NAME, sizeof name, name, NULL);
  clGetDeviceInfo(id, CL_DEVICE_VENDOR, sizeof vendor, vendor, NULL);
  clGetDeviceInfo(id, CL_DEVICE_VERSION, sizeof version, version, NULL);
  clGetDeviceInfo(id, CL_DRIVER_VERSION, sizeof driver, driver, NULL);
  clGetDeviceInfo(id, CL_DEVICE_TYPE, sizeof type, &type, NULL);
  clGetDeviceInfo(id, CL_DEVICE_DOUBLE_FP_CONFIG, sizeof binary64, &binary64, NULL);
  clGetDeviceInfo(id, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT, sizeof f32, &f32, NULL);
  clGetDeviceInfo(id, CL_DEVICE_NATIVE_VECTOR_WIDTH_DOUBLE, sizeof f64, &f64, NULL);
  clGetDeviceInfo(id, CL_DEVICE_LOCAL_MEM_SIZE, sizeof local, &local, NULL);
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

static bool open_device(struct zlg_device *device) {
  cl_context context = NULL;
  cl_device_id id = NULL;
  starpu_opencl_get_context(device->devid, &context);
  starpu_opencl_get_device(device->devid, &id);
  clRetainContext(context);
  device->context = context;
  device->id = id;
  describe(device);
  return true;
}

/* The context that our programs refer to stays alive, and its address taken, for as long as they do. */
static bool is_current(const struct zlg_device *device) {
  cl_context context = NULL;
  starpu_opencl_get_context(device->devid, &context);
  return context == context_of(device);
}

static void close_device(struct zlg_device *device) {
  clReleaseContext(context_of(device));
}

static bool load(struct zlg_program *program, const void *binary, size_t bytes) {
  cl_device_id id = id_of(program->device);
  const unsigned char *binaries = binary;
  cl_int status = CL_SUCCESS, error = CL_SUCCESS;
  cl_program made = clCreateProgramWithBinary(context_of(program->device), 1, &id, &bytes, &binaries, &status, &error);
  if (error != CL_SUCCESS || !made) return false;
  if (status != CL_SUCCESS || clBuildProgram(made, 1, &id, program->options, NULL, NULL) != CL_SUCCESS) {
    clReleaseProgram(made);
    return false;
  }
  program->module = made;
  return true;
}

static void keep_failure(struct zlg_program *program, cl_program made, cl_int error) {
  size_t bytes = 0;
  if (made) clGetProgramBuildInfo(made, id_of(program->device), CL_PROGRAM_BUILD_LOG, 0, NULL, &bytes);
  char *log = zlg_calloc(1, bytes + 1);
  if (log && bytes) clGetProgramBuildInfo(made, id_of(program->device), CL_PROGRAM_BUILD_LOG, bytes, log, NULL);
  zlg_program_fail(program, log ? log : "", (int)error);
  zlg_free(log);
}

static bool compile(struct zlg_program *program) {
  cl_device_id id = id_of(program->device);
  const char *sources[] = {zlg_device_vocabulary, zlg_device_text(program->name)};
  cl_int error = CL_SUCCESS;
  cl_program made = clCreateProgramWithSource(context_of(program->device), 2, sources, NULL, &error);
  if (error == CL_SUCCESS) error = clBuildProgram(made, 1, &id, program->options, NULL, NULL);
  if (error == CL_SUCCESS) {
    program->module = made;
    return true;
  }
  keep_failure(program, made, error);
  if (made) clReleaseProgram(made);
  return false;
}

static void *binary_of(const struct zlg_program *program, size_t *bytes) {
  *bytes = 0;
  if (clGetProgramInfo(program->module, CL_PROGRAM_BINARY_SIZES, sizeof *bytes, bytes, NULL) != CL_SUCCESS || !*bytes)
    return NULL;
  unsigned char *binary = zlg_malloc(*bytes);
  if (binary && clGetProgramInfo(program->module, CL_PROGRAM_BINARIES, sizeof binary, &binary, NULL) == CL_SUCCESS)
    return binary;
  zlg_free(binary);
  return NULL;
}

static void unload(struct zlg_program *program) {
  clReleaseProgram(program->module);
}

static void *kernel_of(struct zlg_program *program, const char *name) {
  cl_int error = CL_SUCCESS;
  cl_kernel kernel = clCreateKernel(program->module, name, &error);
  return error == CL_SUCCESS ? kernel : NULL;
}

static void release_kernel(void *kernel) {
  clReleaseKernel(kernel);
}

static uintptr_t memory_new(struct zlg_device *device, size_t bytes) {
  cl_int error = CL_SUCCESS;
  cl_mem memory = clCreateBuffer(context_of(device), CL_MEM_READ_WRITE, bytes, NULL, &error);
  return error == CL_SUCCESS ? (uintptr_t)memory : 0;
}

static void memory_free(struct zlg_device *device, uintptr_t memory) {
  (void)device;
  clReleaseMemObject((cl_mem)memory);
}

static cl_int set_argument(cl_kernel kernel, cl_uint index, const struct zlg_launch *launch) {
  const void *value = &launch->arguments[index].value;
  switch (launch->arguments[index].type) {
  case ZLG_ARGUMENT_MEMORY:
    return clSetKernelArg(kernel, index, sizeof(cl_mem), value);
  case ZLG_ARGUMENT_WIDE:
    return clSetKernelArg(kernel, index, sizeof(cl_long), value);
  case ZLG_ARGUMENT_INT:
    return clSetKernelArg(kernel, index, sizeof(cl_int), value);
  case ZLG_ARGUMENT_DOUBLE:
    return clSetKernelArg(kernel, index, sizeof(cl_double), value);
  }
  return CL_INVALID_ARG_VALUE;
}

static int launch(const struct zlg_launch *what, void *kernel, size_t threads, const int64_t groups[3]) {
  const size_t local[3] = {threads, 1, 1};
  const size_t global[3] = {threads * (size_t)groups[0], (size_t)groups[1], (size_t)groups[2]};
  cl_command_queue queue = what->queue;
  cl_int error = CL_SUCCESS;
  if (!queue) starpu_opencl_get_queue(what->program->device->devid, &queue);
  for (int i = 0; i < what->count && error == CL_SUCCESS; i++) error = set_argument(kernel, (cl_uint)i, what);
  if (error == CL_SUCCESS) error = clEnqueueNDRangeKernel(queue, kernel, 3, NULL, global, local, 0, NULL, NULL);
  if (error == CL_SUCCESS) error = clFlush(queue);
  return error == CL_SUCCESS ? ZLG_OK : ZLG_EDEVICE;
}

static int attempt(const struct zlg_trial *trial, const void *args, struct zlg_program *program) {
  struct zlg_device *device = program->device;
  cl_int error = CL_SUCCESS;
  cl_command_queue queue = clCreateCommandQueue(context_of(device), id_of(device), 0, &error);
  cl_mem memory =
      queue ? clCreateBuffer(context_of(device), CL_MEM_READ_WRITE, trial->memory_bytes, NULL, &error) : NULL;
  int status = memory ? trial->run(args, program, queue, (uintptr_t)memory) : ZLG_EDEVICE;
  if (queue && clFinish(queue) != CL_SUCCESS) status = ZLG_EDEVICE;
  if (memory) clReleaseMemObject(memory);
  if (queue) clReleaseCommandQueue(queue);
  return status;
}

const struct zlg_backend zlg_opencl_backend = {.name = "OpenCL",
                                               .worker = STARPU_OPENCL_WORKER,
                                               .open = open_device,
                                               .current = is_current,
                                               .close = close_device,
                                               .load = load,
                                               .compile = compile,
                                               .binary = binary_of,
                                               .unload = unload,
                                               .kernel = kernel_of,
                                               .release_kernel = release_kernel,
                                               .memory_new = memory_new,
                                               .memory_free = memory_free,
                                               .launch = launch,
                                               .attempt = attempt};

#endif
