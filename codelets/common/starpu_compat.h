/* StarPU 1.3 and 1.4 behind one face. What differs is probed by configure (config.h), not deduced from version numbers.
 */
#ifndef ZLG_COMMON_STARPU_COMPAT_H
#define ZLG_COMMON_STARPU_COMPAT_H

#include "config.h"

/* StarPU's headers would choose OpenCL 1.0; the codelets ask a device what 1.2 knows. */
#ifndef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 120
#endif

/* StarPU's headers are not clean under our warnings. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wstrict-prototypes"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wdeprecated-declarations" /* CUDA's, which they include */
#include <starpu.h>
#pragma GCC diagnostic pop

/* Device code can be built only where both StarPU and configure have the device's headers. */
#if defined(STARPU_USE_OPENCL) && defined(ZLG_HAVE_OPENCL)
#define ZLG_WITH_OPENCL 1
#endif
#if defined(STARPU_USE_CUDA) && defined(ZLG_HAVE_CUDA)
#define ZLG_WITH_CUDA 1
#endif
#if defined(ZLG_WITH_OPENCL) || defined(ZLG_WITH_CUDA)
#define ZLG_WITH_DEVICES 1
#endif

#endif
