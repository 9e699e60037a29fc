/* Simulated time: see simulation.h. */
#include "src/core/simulation.h"

#include "codelets/common/starpu_compat.h"

struct zlg_simulated_machine zlg_simulated_machine;

void zlg_simulated_sleep(double seconds) {
#if ZLG_SIMULATED
  if (seconds > 0) starpu_sleep((float)seconds);
#else
  (void)seconds;
#endif
}
