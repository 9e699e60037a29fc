/* The kernels as the command line knows them: formula and parameters of each, as in zellige/kernel.h. */
#ifndef ZLG_TOOL_KERNELS_H
#define ZLG_TOOL_KERNELS_H

#include <stdbool.h>

#include "zellige.h"

/* Parameters a kernel has. */
enum kernel_parameter { HAS_ALPHA = 1, HAS_GAMMA = 2, HAS_OFFSET = 4, HAS_DEGREE = 8 };

struct kernel_row {
  zlg_kernel_kind kind;
  unsigned parameters; /* besides the lengthscale, which all have */
  const char *formula;
};

/* NULL past the last, or for what is no kernel. */
const struct kernel_row *kernel_at(int index);
const struct kernel_row *kernel_of(zlg_kernel_kind kind);
/* "lengthscale, gamma, offset" */
struct kernel_words {
  char s[64];
};
struct kernel_words kernel_parameters(const struct kernel_row *row);

#endif
