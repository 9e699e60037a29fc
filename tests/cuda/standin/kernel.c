/* Modules, functions and launches: the driver's side. What NVRTC's stand-in calls a binary is the neutral text with its
 * options; it is built by PoCL for the machine's processor, and a launch runs there, in the stream's thread, on the
 * backing of the card's memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CL_TARGET_OPENCL_VERSION 200
#include <CL/cl.h>

#include "standin.h"
#include "text.h"

struct argument {
  bool pointer, local, constant;
  size_t bytes;
};
struct function {
  struct function *next;
  struct module *module;
  char name[64];
  int arguments;
  struct argument argument[ARGUMENTS_MOST];
};
struct module {
  int card;
  cl_program program;
  struct function *functions;
};
struct kernel_call {
  struct function *function;
  size_t global[3], local[3];
  size_t shared;
  unsigned char value[ARGUMENTS_MOST][16];
};

static struct {
  pthread_once_t once;
  cl_context context;
  cl_device_id device;
} pocl = {.once = PTHREAD_ONCE_INIT};

static void *start_pocl(void *nothing) {
  (void)nothing;
  cl_platform_id platforms[16];
  cl_uint count = 0;
  clGetPlatformIDs(16, platforms, &count);
  for (cl_uint i = 0; i < count && !pocl.device; i++)
    if (clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_CPU, 1, &pocl.device, NULL) != CL_SUCCESS) pocl.device = NULL;
  if (pocl.device) pocl.context = clCreateContext(NULL, 1, &pocl.device, NULL, NULL, NULL);
  return NULL;
}

/* From a thread of its own: StarPU's threads are bound to cores, and PoCL's would be born so. */
static void start_pocl_unbound(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, start_pocl, NULL);
  pthread_join(thread, NULL);
}

static cl_program build(const char *text, char **log) {
  pthread_once(&pocl.once, start_pocl_unbound);
  const char *source;
  char *options = text_split(text, &source);
  if (!pocl.context || !options) {
    *log = strdup(pocl.context ? "not a text of the stand-in" : "no OpenCL processor to run kernels on");
    free(options);
    return NULL;
  }
  cl_int error;
  cl_program program = clCreateProgramWithSource(pocl.context, 1, &source, NULL, &error);
  if (error == CL_SUCCESS) error = clBuildProgram(program, 1, &pocl.device, options, NULL, NULL);
  free(options);
  if (error == CL_SUCCESS) return program;
  size_t bytes = 0;
  clGetProgramBuildInfo(program, pocl.device, CL_PROGRAM_BUILD_LOG, 0, NULL, &bytes);
  *log = calloc(1, bytes + 1);
  clGetProgramBuildInfo(program, pocl.device, CL_PROGRAM_BUILD_LOG, bytes, *log, NULL);
  clReleaseProgram(program);
  return NULL;
}

/* ---- launching --------------------------------------------------------------------------------------------------- */

static size_t bytes_of_type(const char *type) {
  static const struct {
    const char *name;
    size_t bytes;
  } sizes[] = {{"char", 1},  {"uchar", 1}, {"short", 2}, {"ushort", 2}, {"int", 4},    {"uint", 4},
               {"float", 4}, {"wide", 8},  {"long", 8},  {"ulong", 8},  {"double", 8}, {"size_t", 8}};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    if (strcmp(sizes[i].name, type) == 0) return sizes[i].bytes;
  return 0;
}

static bool describe(struct function *function, cl_kernel kernel) {
  cl_uint count = 0;
  clGetKernelInfo(kernel, CL_KERNEL_NUM_ARGS, sizeof count, &count, NULL);
  if (count > ARGUMENTS_MOST) return false;
  function->arguments = (int)count;
  for (cl_uint i = 0; i < count; i++) {
    struct argument *argument = &function->argument[i];
    cl_kernel_arg_address_qualifier space = 0;
    cl_kernel_arg_type_qualifier qualifier = 0;
    char type[64] = "";
    clGetKernelArgInfo(kernel, i, CL_KERNEL_ARG_ADDRESS_QUALIFIER, sizeof space, &space, NULL);
    clGetKernelArgInfo(kernel, i, CL_KERNEL_ARG_TYPE_QUALIFIER, sizeof qualifier, &qualifier, NULL);
    clGetKernelArgInfo(kernel, i, CL_KERNEL_ARG_TYPE_NAME, sizeof type, type, NULL);
    argument->pointer = space == CL_KERNEL_ARG_ADDRESS_GLOBAL || space == CL_KERNEL_ARG_ADDRESS_CONSTANT;
    argument->local = space == CL_KERNEL_ARG_ADDRESS_LOCAL;
    argument->constant = (qualifier & CL_KERNEL_ARG_TYPE_CONST) != 0;
    argument->bytes = argument->pointer || argument->local ? sizeof(void *) : bytes_of_type(type);
    if (!argument->bytes) {
      violation("argument-type", "%s: the size of argument %u, a %s, is not known", function->name, i, type);
      return false;
    }
  }
  return true;
}

/* A pointer that a kernel is given: where it leads, and whether it may. */
static int check_pointer(struct stream *stream, const struct function *function, int index, uintptr_t address,
                         void **place) {
  *place = NULL;
  if (!address) return CUDA_SUCCESS;
  struct allocation *device = memory_find(address), *host = device ? NULL : host_find(address);
  struct allocation *found = device ? device : host;
  if (!found) {
    violation("unpinned", "%s: argument %d, %#lx, is neither a card's memory nor pinned", function->name, index,
              (unsigned long)address);
    return CUDA_ERROR_ILLEGAL_ADDRESS;
  }
  if (!found->live) {
    violation("use-after-free", "%s: argument %d on card %d", function->name, index, found->card);
    return CUDA_ERROR_ILLEGAL_ADDRESS;
  }
  if (device && device->card != stream->card && !peer_enabled(stream->card, device->card)) {
    violation("wrong-card", "%s on card %d: argument %d is memory of card %d", function->name, stream->card, index,
              device->card);
    return CUDA_ERROR_ILLEGAL_ADDRESS;
  }
  const struct extent rest = {.low = address - found->base, .high = found->bytes};
  order_access(stream, found, &rest, !function->argument[index].constant, function->name);
  *place = device ? memory_backing(address) : (void *)address;
  return CUDA_SUCCESS;
}

void kernel_run(struct operation *operation) {
  struct kernel_call *call = operation->call;
  cl_int error;
  cl_command_queue queue = clCreateCommandQueueWithProperties(pocl.context, pocl.device, NULL, &error);
  cl_kernel kernel = clCreateKernel(call->function->module->program, call->function->name, &error);
  for (int i = 0; i < call->function->arguments && error == CL_SUCCESS; i++) {
    const struct argument *argument = &call->function->argument[i];
    if (argument->pointer)
      error = clSetKernelArgSVMPointer(kernel, (cl_uint)i, *(void **)call->value[i]);
    else if (argument->local)
      error = clSetKernelArg(kernel, (cl_uint)i, call->shared, NULL);
    else
      error = clSetKernelArg(kernel, (cl_uint)i, argument->bytes, call->value[i]);
  }
  if (error == CL_SUCCESS)
    error = clEnqueueNDRangeKernel(queue, kernel, 3, NULL, call->global, call->local, 0, NULL, NULL);
  if (error == CL_SUCCESS) error = clFinish(queue);
  if (error != CL_SUCCESS) {
    violation("launch", "%s: OpenCL error %d", call->function->name, (int)error);
    card_error_set(operation->card, CUDA_ERROR_LAUNCH_FAILED);
  }
  clReleaseKernel(kernel);
  clReleaseCommandQueue(queue);
  free(call);
}

static int launch(struct function *function, const unsigned grid[3], const unsigned block[3], size_t shared,
                  void *handle, void **values) {
  int error;
  struct stream *stream = stream_of(handle, &error);
  if (!stream) return CUDA_ERROR_INVALID_HANDLE;
  if (card_error(stream->card)) return card_error(stream->card);
  if (function->module->card != stream->card) {
    violation("wrong-card", "%s was loaded for card %d and launched on card %d", function->name, function->module->card,
              stream->card);
    return CUDA_ERROR_INVALID_HANDLE;
  }
  if (!grid[0] || !grid[1] || !grid[2] || grid[1] > 65535 || grid[2] > 65535 ||
      (size_t)block[0] * block[1] * block[2] > 1024 || shared > 48 << 10)
    return CUDA_ERROR_INVALID_VALUE;
  struct kernel_call *call = calloc(1, sizeof *call);
  call->function = function;
  call->shared = shared;
  for (int k = 0; k < 3; k++) call->local[k] = block[k], call->global[k] = (size_t)grid[k] * block[k];
  for (int i = 0; i < function->arguments; i++) {
    memcpy(call->value[i], values[i], function->argument[i].bytes);
    if (!function->argument[i].pointer) continue;
    void *place;
    error = check_pointer(stream, function, i, *(uintptr_t *)call->value[i], &place);
    if (error) { /* as on a card: found out late, and for good */
      free(call);
      card_error_set(stream->card, error);
      return CUDA_SUCCESS;
    }
    memcpy(call->value[i], &place, sizeof place);
  }
  COUNT(launches, 1);
  struct operation *operation = calloc(1, sizeof *operation);
  *operation = (struct operation){.run = kernel_run, .what = function->name, .call = call};
  stream_submit(stream, operation);
  return CUDA_SUCCESS;
}

/* ---- the driver's interface -------------------------------------------------------------------------------------- */

static _Thread_local int context_stack[16], context_depth;

EXPORT CUresult cuInit(unsigned flags) {
  (void)flags;
  return card_count() ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}
EXPORT CUresult cuDriverGetVersion(int *version) {
  *version = CUDA_VERSION;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuDeviceGetCount(int *count) {
  *count = card_count();
  return CUDA_SUCCESS;
}
EXPORT CUresult cuDeviceGet(CUdevice *device, int ordinal) {
  *device = ordinal;
  return ordinal >= 0 && ordinal < card_count() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
EXPORT CUresult cuDeviceGetName(char *name, int bytes, CUdevice device) {
  snprintf(name, (size_t)bytes, "pretended card %d", device);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) {
  size_t available;
  memory_info(device, &available, bytes);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
  (void)device;
  switch (attribute) {
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
    *value = 9;
    break;
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
    *value = 0;
    break;
  case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
    *value = 4;
    break;
  case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
    *value = 48 << 10;
    break;
  default:
    *value = 0;
  }
  return CUDA_SUCCESS;
}
/* A primary context is named by its card. */
EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
  *context = (CUcontext)(uintptr_t)(device + 1);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  (void)device;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuCtxPushCurrent_v2(CUcontext context) {
  if (context_depth == 16) return CUDA_ERROR_INVALID_VALUE;
  context_stack[context_depth++] = current_card();
  set_current_card((int)(uintptr_t)context - 1);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuCtxPopCurrent_v2(CUcontext *context) {
  if (!context_depth) return CUDA_ERROR_INVALID_CONTEXT;
  if (context) *context = (CUcontext)(uintptr_t)(current_card() + 1);
  set_current_card(context_stack[--context_depth]);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuCtxGetCurrent(CUcontext *context) {
  *context = (CUcontext)(uintptr_t)(current_card() + 1);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuCtxSetCurrent(CUcontext context) {
  set_current_card((int)(uintptr_t)context - 1);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuCtxSynchronize(void) {
  card_wait(current_card());
  return card_error(current_card());
}
EXPORT CUresult cuModuleLoadData(CUmodule *module, const void *image) {
  char *log = NULL;
  cl_program program = build(image, &log);
  if (!program) {
    violation("module", "%s", log);
    free(log);
    return CUDA_ERROR_INVALID_IMAGE;
  }
  struct module *made = calloc(1, sizeof *made);
  made->card = current_card();
  made->program = program;
  *module = (CUmodule)made;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuModuleUnload(CUmodule handle) {
  struct module *module = (struct module *)handle;
  card_wait(module->card);
  while (module->functions) {
    struct function *function = module->functions;
    module->functions = function->next;
    free(function);
  }
  clReleaseProgram(module->program);
  free(module);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuModuleGetFunction(CUfunction *found, CUmodule handle, const char *name) {
  struct module *module = (struct module *)handle;
  cl_int error;
  cl_kernel kernel = clCreateKernel(module->program, name, &error);
  if (error != CL_SUCCESS) return CUDA_ERROR_NOT_FOUND;
  struct function *function = calloc(1, sizeof *function);
  snprintf(function->name, sizeof function->name, "%s", name);
  function->module = module;
  bool known = describe(function, kernel);
  clReleaseKernel(kernel);
  if (!known) {
    free(function);
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  function->next = module->functions;
  module->functions = function;
  *found = (CUfunction)function;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                               unsigned bz, unsigned shared, CUstream stream, void **values, void **extra) {
  if (extra || !function) return CUDA_ERROR_INVALID_VALUE;
  return launch((struct function *)function, (unsigned[]){gx, gy, gz}, (unsigned[]){bx, by, bz}, shared, stream,
                values);
}
EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes) {
  struct allocation *made = memory_new(current_card(), bytes);
  if (!made) return CUDA_ERROR_OUT_OF_MEMORY;
  *address = made->base;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuMemFree_v2(CUdeviceptr address) {
  card_wait(current_card());
  return memory_free(current_card(), address) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
EXPORT CUresult cuGetErrorString(CUresult error, const char **text) {
  *text = error == CUDA_SUCCESS                 ? "no error"
          : error == CUDA_ERROR_OUT_OF_MEMORY   ? "out of memory"
          : error == CUDA_ERROR_ILLEGAL_ADDRESS ? "an illegal memory access was encountered"
                                                : "an error of the stand-in";
  return CUDA_SUCCESS;
}
