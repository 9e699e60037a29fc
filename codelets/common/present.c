/* Looks for devices before StarPU starts, to choose a scheduler: placing by performance models is worth its cost only
 * where workers differ; alike workers do better stealing from one another. */
#include <stdlib.h>

#include "codelets/common/device.h"
#include "codelets/common/starpu_compat.h"

#ifdef ZLG_WITH_OPENCL
static bool flag_set(const char *name) {
  const char *value = getenv(name);
  return value && atoi(value) > 0;
}

static bool opencl_present(void) {
  cl_platform_id platforms[16];
  cl_uint count = 0, devices;
  cl_device_type type = CL_DEVICE_TYPE_GPU | CL_DEVICE_TYPE_ACCELERATOR;
  if (flag_set("STARPU_OPENCL_ON_CPUS") || flag_set("STARPU_OPENCL_ONLY_ON_CPUS")) type |= CL_DEVICE_TYPE_CPU;
  if (clGetPlatformIDs(16, platforms, &count) != CL_SUCCESS) return false;
  for (cl_uint i = 0; i < count && i < 16; i++)
    if (clGetDeviceIDs(platforms[i], type, 0, NULL, &devices) == CL_SUCCESS && devices > 0) return true;
  return false;
}
#endif

bool zlg_devices_present(bool opencl, bool cuda) {
  bool found = false;
#ifdef ZLG_WITH_OPENCL
  found = found || (opencl && opencl_present());
#endif
#ifdef ZLG_WITH_CUDA
  found = found || cuda; /* a StarPU built for CUDA is run where there are cards */
#endif
  (void)opencl, (void)cuda;
  return found;
}
