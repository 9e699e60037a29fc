/* What the codelet.c files share: StarPU's buffers as operands in the machine's memory. */
#ifndef ZLG_COMMON_GLUE_H
#define ZLG_COMMON_GLUE_H

#include "codelets/common/codelet.h"
#include "codelets/common/starpu_compat.h"

static inline struct zlg_operand zlg_matrix_operand(void *buffer) {
  return (struct zlg_operand){(void *)STARPU_MATRIX_GET_PTR(buffer), (int64_t)STARPU_MATRIX_GET_LD(buffer)};
}

static inline struct zlg_operand zlg_vector_operand(void *buffer) {
  return (struct zlg_operand){(void *)STARPU_VECTOR_GET_PTR(buffer), 0};
}

#endif
