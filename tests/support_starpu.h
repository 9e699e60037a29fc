/* For tests that start StarPU themselves: the same workers as the mode's context has. */
#ifndef ZLG_TESTS_SUPPORT_STARPU_H
#define ZLG_TESTS_SUPPORT_STARPU_H

#include "codelets/common/starpu_compat.h"
#include "codelets/common/task.h"
#include "tests/support.h"

/* A configuration with the mode's workers and no others, signals left alone. */
void zlg_test_starpu_conf(struct starpu_conf *conf);
/* starpu_init() with it; ends the program, saying why, where StarPU does not start or a worker of the mode is missing.
 */
void zlg_test_starpu_init(void);
/* The StarPU worker number of the index-th worker of a kind, -1 if there is none. */
int zlg_test_starpu_worker(zlg_worker_kind kind, int index);
/* The workers that a test of a codelet runs on: the mode's devices, then a CPU worker; -1 behind the last. */
int zlg_test_starpu_each(int index);
/* Runs one task of the codelet there and waits for it; checks that it ran there and well. `head` begins its arguments.
 */
void zlg_test_starpu_run(struct starpu_codelet *codelet, struct zlg_task_head *head, int worker,
                         const starpu_data_handle_t *handles, const enum starpu_data_access_mode *modes, int count);

#endif
