/* What the codelet.c files share: StarPU's buffers as operands in the machine's memory. */
#ifndef ZLG_COMMON_GLUE_H
#define ZLG_COMMON_GLUE_H

#include "codelets/common/codelet.h"
#include "codelets/common/program.h"
#include "codelets/common/starpu_compat.h"

static inline struct zlg_operand zlg_matrix_operand(void *buffer) {
  return (struct zlg_operand){(void *)STARPU_MATRIX_GET_PTR(buffer), (int64_t)STARPU_MATRIX_GET_LD(buffer)};
}

static inline struct zlg_operand zlg_vector_operand(void *buffer) {
  return (struct zlg_operand){(void *)STARPU_VECTOR_GET_PTR(buffer), 0};
}

/* The device implementation in a struct starpu_codelet: one function for every way to devices that this build has. It
 * enqueues and returns. */
#ifdef ZLG_WITH_OPENCL
#define ZLG_OPENCL_FUNCTION(function) .opencl_funcs = {function}, .opencl_flags = {STARPU_OPENCL_ASYNC},
#else
#define ZLG_OPENCL_FUNCTION(function)
#endif
#ifdef ZLG_WITH_CUDA
#define ZLG_CUDA_FUNCTION(function) .cuda_funcs = {function}, .cuda_flags = {STARPU_CUDA_ASYNC},
#elif HAVE_DECL_STARPU_SIMGRID
/* Never called: simulated cards want to know that there is one. */
static inline void zlg_simulated_launch(void *buffers[], void *cl_arg) {
  (void)buffers, (void)cl_arg;
}
#define ZLG_CUDA_FUNCTION(function) .cuda_funcs = {zlg_simulated_launch}, .cuda_flags = {STARPU_CUDA_ASYNC},
#else
#define ZLG_CUDA_FUNCTION(function)
#endif
#ifdef ZLG_WITH_DEVICES
static inline int zlg_can_execute(unsigned worker, struct starpu_task *task, unsigned implementation) {
  (void)task, (void)implementation;
  return zlg_device_usable(worker);
}
#define ZLG_DEVICE_FUNCTION(function)                                                                                  \
  ZLG_OPENCL_FUNCTION(function) ZLG_CUDA_FUNCTION(function).can_execute = zlg_can_execute
#define ZLG_DEVICE_PREPARE(function) function
#else
#define ZLG_DEVICE_FUNCTION(function) ZLG_CUDA_FUNCTION(function).can_execute = NULL
#define ZLG_DEVICE_PREPARE(function) NULL
#endif

#endif
