/* For tests that start StarPU themselves: the same workers as the mode's context has. */
#ifndef ZLG_TESTS_SUPPORT_STARPU_H
#define ZLG_TESTS_SUPPORT_STARPU_H

#include "codelets/common/starpu_compat.h"
#include "tests/support.h"

/* A configuration with the mode's workers and no others, signals left alone. */
void zlg_test_starpu_conf(struct starpu_conf *conf);
/* starpu_init() with it; ends the program, saying why, where StarPU does not start or a worker of the mode is missing.
 */
void zlg_test_starpu_init(void);
/* The StarPU worker number of the index-th worker of a kind, -1 if there is none. */
int zlg_test_starpu_worker(zlg_worker_kind kind, int index);

#endif
