/* CUDA behind program.h: the driver's interface for modules and launches, NVRTC for the text, StarPU's stream for the
 * order. Plain C; nothing here waits for a card. Both libraries are opened when the first card is, so that one build of
 * ours runs with and without a driver. */
#include "codelets/common/backend.h"

#ifdef ZLG_WITH_CUDA

#include <cuda.h>
#include <dlfcn.h>
#include <nvrtc.h>
#include <stdio.h>
#include <string.h>

#include "src/core/memory.h"
#include "zellige/status.h"

/* What is used of the two libraries: X(name of the member, name of the symbol). */
#define DRIVER_FUNCTIONS(X)                                                                                            \
  X(cuInit, "cuInit")                                                                                                  \
  X(cuDeviceGet, "cuDeviceGet")                                                                                        \
  X(cuDeviceGetName, "cuDeviceGetName")                                                                                \
  X(cuDeviceGetAttribute, "cuDeviceGetAttribute")                                                                      \
  X(cuDriverGetVersion, "cuDriverGetVersion")                                                                          \
  X(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain")                                                              \
  X(cuDevicePrimaryCtxRelease_v2, "cuDevicePrimaryCtxRelease_v2")                                                      \
  X(cuCtxPushCurrent_v2, "cuCtxPushCurrent_v2")                                                                        \
  X(cuCtxPopCurrent_v2, "cuCtxPopCurrent_v2")                                                                          \
  X(cuModuleLoadData, "cuModuleLoadData")                                                                              \
  X(cuModuleUnload, "cuModuleUnload")                                                                                  \
  X(cuModuleGetFunction, "cuModuleGetFunction")                                                                        \
  X(cuMemAlloc_v2, "cuMemAlloc_v2")                                                                                    \
  X(cuMemFree_v2, "cuMemFree_v2")                                                                                      \
  X(cuLaunchKernel, "cuLaunchKernel")
#define NVRTC_FUNCTIONS(X)                                                                                             \
  X(nvrtcVersion, "nvrtcVersion")                                                                                      \
  X(nvrtcGetErrorString, "nvrtcGetErrorString")                                                                        \
  X(nvrtcCreateProgram, "nvrtcCreateProgram")                                                                          \
  X(nvrtcCompileProgram, "nvrtcCompileProgram")                                                                        \
  X(nvrtcGetProgramLogSize, "nvrtcGetProgramLogSize")                                                                  \
  X(nvrtcGetProgramLog, "nvrtcGetProgramLog")                                                                          \
  X(nvrtcGetCUBINSize, "nvrtcGetCUBINSize")                                                                            \
  X(nvrtcGetCUBIN, "nvrtcGetCUBIN")                                                                                    \
  X(nvrtcDestroyProgram, "nvrtcDestroyProgram")

static struct {
#define MEMBER(name, symbol) __typeof__(&name) name;
  DRIVER_FUNCTIONS(MEMBER)
  NVRTC_FUNCTIONS(MEMBER)
#undef MEMBER
  bool complete;
} cuda;

static void *open_library(const char *const *names) {
  void *library = NULL;
  for (; *names && !library; names++) library = dlopen(*names, RTLD_NOW | RTLD_LOCAL);
  return library;
}

static void open_libraries(void) {
  static const char *const driver_names[] = {"libcuda.so.1", NULL};
  static const char *const nvrtc_names[] = {ZLG_NVRTC_SONAME, ZLG_NVRTC_PATH, NULL};
  void *driver = open_library(driver_names), *nvrtc = open_library(nvrtc_names);
  cuda.complete = driver && nvrtc;
#define LOOK_UP(library, name, symbol)                                                                                 \
  *(void **)&cuda.name = library ? dlsym(library, symbol) : NULL;                                                      \
  cuda.complete = cuda.complete && cuda.name;
#define LOOK_UP_DRIVER(name, symbol) LOOK_UP(driver, name, symbol)
#define LOOK_UP_NVRTC(name, symbol) LOOK_UP(nvrtc, name, symbol)
  DRIVER_FUNCTIONS(LOOK_UP_DRIVER)
  NVRTC_FUNCTIONS(LOOK_UP_NVRTC)
}

static bool have_libraries(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, open_libraries);
  return cuda.complete;
}

/* The card's primary context, which StarPU's runtime calls use as well; current in its worker's thread, not in others.
 */
static bool enter(const struct zlg_device *device) {
  return cuda.cuCtxPushCurrent_v2(device->context) == CUDA_SUCCESS;
}
static void leave(void) {
  cuda.cuCtxPopCurrent_v2(NULL);
}
static CUdevice card_of(const struct zlg_device *device) {
  return (CUdevice)(intptr_t)device->id;
}

static bool open_device(struct zlg_device *device) {
  CUdevice card;
  CUcontext context;
  char name[128] = "";
  int major = 0, minor = 0, driver = 0, nvrtc_major = 0, nvrtc_minor = 0;
  if (!have_libraries() || cuda.cuInit(0) != CUDA_SUCCESS || cuda.cuDeviceGet(&card, device->devid) != CUDA_SUCCESS)
    return false;
  if (cuda.cuDevicePrimaryCtxRetain(&context, card) != CUDA_SUCCESS) return false;
  cuda.cuDeviceGetName(name, sizeof name, card);
  cuda.cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, card);
  cuda.cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, card);
  cuda.cuDriverGetVersion(&driver);
  cuda.nvrtcVersion(&nvrtc_major, &nvrtc_minor);
  device->context = context;
  device->id = (void *)(intptr_t)card;
  device->profile = zlg_device_gpu;
  device->binary64 = true;
  snprintf(device->identity, sizeof device->identity, "sm_%d%d|2|NVRTC %d.%d|driver %d|%s", major, minor, nvrtc_major,
           nvrtc_minor, driver, name);
  return true;
}

/* A primary context is the card's for as long as it is retained here. */
static bool is_current(const struct zlg_device *device) {
  (void)device;
  return true;
}

static void close_device(struct zlg_device *device) {
  cuda.cuDevicePrimaryCtxRelease_v2(card_of(device));
}

static bool load(struct zlg_program *program, const void *binary, size_t bytes) {
  (void)bytes;
  CUmodule module = NULL;
  if (!enter(program->device)) return false;
  CUresult result = cuda.cuModuleLoadData(&module, binary);
  leave();
  program->module = module;
  return result == CUDA_SUCCESS;
}

/* ---- compiling --------------------------------------------------------------------------------------------------- */

#define OPTIONS_MOST 64

/* "-DA=1 -DB=2" cut at its spaces, in place; the architecture and what is the same for all first. */
static int split_options(char *text, const char **options, const char *architecture) {
  static const char *const same[] = {ZLG_CUDA_OPTIONS};
  int count = 0;
  options[count++] = architecture;
  for (size_t i = 0; i < sizeof same / sizeof *same; i++) options[count++] = same[i];
  for (char *rest = NULL, *word = strtok_r(text, " ", &rest); word && count < OPTIONS_MOST;
       word = strtok_r(NULL, " ", &rest))
    options[count++] = word;
  return count;
}

static void keep_log(struct zlg_program *program, nvrtcProgram source, nvrtcResult result) {
  size_t bytes = 0;
  char *log = source && cuda.nvrtcGetProgramLogSize(source, &bytes) == NVRTC_SUCCESS ? zlg_calloc(1, bytes + 1) : NULL;
  if (log) cuda.nvrtcGetProgramLog(source, log);
  zlg_program_fail(program, log ? log : cuda.nvrtcGetErrorString(result), (int)result);
  zlg_free(log);
}

/* The two texts as one, and the options as a list; a cubin for the card, the caller's to zlg_free. */
static void *make_cubin(struct zlg_program *program, size_t *bytes) {
  const char *body = zlg_device_text(program->name), *list[OPTIONS_MOST];
  size_t head = strlen(zlg_device_vocabulary);
  char architecture[64], *text = zlg_malloc(head + strlen(body) + 1), *options = zlg_strdup(program->options),
                         *cubin = NULL;
  nvrtcProgram source = NULL;
  nvrtcResult result = NVRTC_ERROR_OUT_OF_MEMORY;
  if (text && options) {
    memcpy(text, zlg_device_vocabulary, head);
    strcpy(text + head, body);
    snprintf(architecture, sizeof architecture, "--gpu-architecture=%.*s", (int)strcspn(program->device->identity, "|"),
             program->device->identity);
    result = cuda.nvrtcCreateProgram(&source, text, program->name, 0, NULL, NULL);
  }
  if (result == NVRTC_SUCCESS)
    result = cuda.nvrtcCompileProgram(source, split_options(options, list, architecture), list);
  if (result == NVRTC_SUCCESS) result = cuda.nvrtcGetCUBINSize(source, bytes);
  if (result == NVRTC_SUCCESS && !(cubin = zlg_malloc(*bytes))) result = NVRTC_ERROR_OUT_OF_MEMORY;
  if (result == NVRTC_SUCCESS) result = cuda.nvrtcGetCUBIN(source, cubin);
  if (result != NVRTC_SUCCESS) {
    keep_log(program, source, result);
    zlg_free(cubin);
    cubin = NULL;
  }
  if (source) cuda.nvrtcDestroyProgram(&source);
  zlg_free(text);
  zlg_free(options);
  return cubin;
}

static bool compile(struct zlg_program *program) {
  size_t bytes;
  void *cubin = make_cubin(program, &bytes);
  if (!cubin) return false;
  bool loaded = load(program, cubin, bytes);
  if (loaded && zlg_device_cache_wanted(false)) zlg_device_cache_store(&program->key, cubin, bytes);
  if (!loaded) zlg_program_fail(program, "the driver refused the compiled module", 0);
  zlg_free(cubin);
  return loaded;
}

/* compile() has stored it. */
static void *binary_of(const struct zlg_program *program, size_t *bytes) {
  (void)program, (void)bytes;
  return NULL;
}

static void unload(struct zlg_program *program) {
  if (!enter(program->device)) return;
  cuda.cuModuleUnload(program->module);
  leave();
}

static void *kernel_of(struct zlg_program *program, const char *name) {
  CUfunction function = NULL;
  return cuda.cuModuleGetFunction(&function, program->module, name) == CUDA_SUCCESS ? function : NULL;
}

static void release_kernel(void *kernel) {
  (void)kernel; /* its module's */
}

static uintptr_t memory_new(struct zlg_device *device, size_t bytes) {
  CUdeviceptr memory = 0;
  if (!enter(device)) return 0;
  CUresult result = cuda.cuMemAlloc_v2(&memory, bytes);
  leave();
  return result == CUDA_SUCCESS ? (uintptr_t)memory : 0;
}

static void memory_free(struct zlg_device *device, uintptr_t memory) {
  if (!enter(device)) return;
  cuda.cuMemFree_v2((CUdeviceptr)memory);
  leave();
}

static int launch(const struct zlg_launch *what, void *kernel, size_t threads, const int64_t groups[3]) {
  void *values[ZLG_LAUNCH_ARGUMENTS];
  for (int i = 0; i < what->count; i++) values[i] = (void *)&what->arguments[i].value;
  if (groups[0] > INT32_MAX || groups[1] > 65535 || groups[2] > 65535) return ZLG_EDEVICE;
  CUresult result =
      cuda.cuLaunchKernel(kernel, (unsigned)groups[0], (unsigned)groups[1], (unsigned)groups[2], (unsigned)threads, 1,
                          1, 0, (CUstream)starpu_cuda_get_local_stream(), values, NULL);
  return result == CUDA_SUCCESS ? ZLG_OK : ZLG_EDEVICE;
}

const struct zlg_backend zlg_cuda_backend = {.name = "CUDA",
                                             .worker = STARPU_CUDA_WORKER,
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
                                             .launch = launch};

#endif
