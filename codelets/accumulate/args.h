/* The end of every tiled sum: Y = alpha (acc_1 + … + acc_s) + beta Y over one tile of Y, m x r.
 *
 * The accumulators are binary64, row-major, contiguous; they are added in the order given. beta = 0 never reads Y. */
#ifndef ZLG_ACCUMULATE_ARGS_H
#define ZLG_ACCUMULATE_ARGS_H

#include "codelets/common/task.h"

struct zlg_accumulate_args {
  struct zlg_task_head head;
  zlg_type type;
  int64_t m, r;
  zlg_order y_order;
  int parts; /* accumulators; acc[0] may be overwritten; 0: Y = beta Y */
  double alpha, beta;
};

/* y: the tile with leading dimension ldy. acc: `parts` pointers. */
typedef void zlg_accumulate_cpu_fn(const struct zlg_accumulate_args *args, void *y, int64_t ldy, double *const *acc);
ZLG_CPU_DECLARE(zlg_accumulate_cpu, zlg_accumulate_cpu_fn);

/* The -D options that specialise device.clc for these arguments on a device (codelet.c). */
struct zlg_device_profile;
void zlg_accumulate_options(const void *args, const struct zlg_device_profile *profile, char *text, size_t bytes);

#endif
