/* StarPU's own list of schedulers. Apart, since starpu.h renames main(). */
#include "codelets/common/starpu_compat.h"
#include "tests/sim/simulated.h"

const char *sim_scheduler(int index) {
  struct starpu_sched_policy **policies = starpu_sched_get_predefined_policies();
  for (int i = 0; policies[i]; i++)
    if (i == index) return policies[i]->policy_name;
  return NULL;
}
