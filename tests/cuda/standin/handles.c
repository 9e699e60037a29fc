/* The libraries whose handles StarPU makes for each card: only making, destroying and setting a stream, which is all
 * that runs without a library call. */
#include "standin.h"

#define HANDLE(name)                                                                                                   \
  EXPORT int name(void **handle) {                                                                                     \
    *handle = (void *)1;                                                                                               \
    return 0;                                                                                                          \
  }
#define NOTHING(name)                                                                                                  \
  EXPORT int name(void *handle, void *other) {                                                                         \
    (void)handle, (void)other;                                                                                         \
    return 0;                                                                                                          \
  }

HANDLE(cublasCreate_v2)
HANDLE(cublasLtCreate)
HANDLE(cusparseCreate)
HANDLE(cusolverDnCreate)
HANDLE(cusolverSpCreate)
HANDLE(cusolverRfCreate)
NOTHING(cublasDestroy_v2)
NOTHING(cublasSetStream_v2)
NOTHING(cublasSetKernelStream)
NOTHING(cublasLtDestroy)
NOTHING(cusparseDestroy)
NOTHING(cusparseSetStream)
NOTHING(cusolverDnDestroy)
NOTHING(cusolverDnSetStream)
NOTHING(cusolverSpDestroy)
NOTHING(cusolverSpSetStream)
NOTHING(cusolverRfDestroy)
EXPORT int cublasInit(void) {
  return 0;
}
EXPORT int cublasShutdown(void) {
  return 0;
}
