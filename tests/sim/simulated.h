/* One product on one described machine, in a child process of its own: what every test here is made of. */
#ifndef ZLG_TESTS_SIM_SIMULATED_H
#define ZLG_TESTS_SIM_SIMULATED_H

#include "tests/support.h"

struct sim_product {
  int64_t m, n, d;
  int factors; /* not 0: n vectors through as many factors of m x m, instead of a Gaussian product */
  zlg_type type;
  zlg_storage storage;
  int cpu_workers;       /* -1: a core each, but one for each GPU */
  const char *scheduler; /* NULL: the library's choice */
  int64_t tile_rows, tile_columns;
  int64_t memory_limit;
  const char *models; /* directory of calibrated models, NULL: none */
};

struct sim_outcome {
  int status; /* of the first call that failed; then `message` */
  char message[512];
  double seconds;         /* simulated */
  double compute;         /* least seconds that the workers need, all busy all the time */
  double into_gpus;       /* bytes over links to GPUs, from memory and from other GPUs */
  double over_busiest;    /* seconds that the busiest link needs at its bandwidth */
  double read;            /* bytes from the simulated disk */
  double cpu_share, idle; /* of the work; the longest idle time of a GPU */
  int64_t tasks, under_way, gpu_bytes, shape[2];
  int64_t resident_bytes; /* memory that the child really took, at its peak */
  int cpu_calibrated, gpu_calibrated, workers;
  int cores; /* these three as zlg_context_machine() says */
  int64_t memory;
  char cpu_name[128];
};

/* Reads perfmodels/machines/NAME.machine; ends the program where that fails. */
zlg_platform sim_machine(const char *name);
/* A Gaussian product of dimension 50 in binary32, from memory, all workers. */
struct sim_product sim_product(int64_t m, int64_t n);
/* A Kronecker product in binary32 of `vectors` columns, cards alone. */
struct sim_product sim_kron(int factors, int64_t size, int64_t vectors);
/* Simulates. A child that dies of a signal or takes longer than five minutes is a status of -1000 with a message. */
struct sim_outcome sim_run(const zlg_platform *platform, const struct sim_product *product);

/* Names of StarPU's predefined schedulers; NULL past the last. */
const char *sim_scheduler(int index);

#endif
