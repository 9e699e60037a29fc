/* Between the files of this room: calibration sits above codelets and the runtime, and below nothing but the public
 * interface (zellige/machine.h). */
#ifndef ZLG_PERFMODELS_H
#define ZLG_PERFMODELS_H

#include "codelets/common/model.h"
#include "src/core/context.h"

/* Measures one task `samples` times on one of StarPU's workers, which runs nothing else meanwhile. `codelet` is ready
 * (prepare) for the arguments. Between zlg_runtime_enter() and zlg_runtime_leave().
 * ZLG_OK; ZLG_ENODEV (that worker cannot run it), ZLG_ENOMEM, or what the codelet says. */
int zlg_measure(zlg_context *context, const struct zlg_codelet *codelet, const void *args, const struct zlg_case *what,
                int worker, int samples, zlg_model_point *point);

/* The point of `measured` times, at least `wanted` of them (which it sorts): median and spread of those that nothing
 * disturbed, `wanted` or more, and the number of the others. False where more should be measured: too few lie close
 * together, or others were faster. */
bool zlg_samples_summarise(double *times, int measured, int wanted, zlg_model_point *point);

/* What the cores can do: some tenths of a second. */
void zlg_measure_limits(int threads, zlg_machine_limits *limits);

#endif
