/* What differs where StarPU is built with SimGrid: nothing is computed, and time is the simulation's. Known at compile
 * time, since such a StarPU is another library. */
#ifndef ZLG_CORE_SIMULATION_H
#define ZLG_CORE_SIMULATION_H

#include "config.h"

#include <stdint.h>

#if HAVE_DECL_STARPU_SIMGRID
#define ZLG_SIMULATED 1
#else
#define ZLG_SIMULATED 0
#endif

/* Lets simulated time pass in the calling (simulated) thread; nothing where time is real. */
void zlg_simulated_sleep(double seconds);

/* The described machine that this process simulates: set before the first context (perfmodels/platform.c). */
struct zlg_simulated_machine {
  int cores, gpus;
  double disk_read, disk_write;       /* bytes a second, 0: none */
  char models[512], models_host[65];  /* calibrated models to read, of that host; "": none */
  int64_t most_tasks, most_gpu_bytes; /* seen under way at once, and in any GPU's memory */
};
extern struct zlg_simulated_machine zlg_simulated_machine;

#endif
