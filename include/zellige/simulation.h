/* Simulation: the task graphs of this library, StarPU's scheduler and its memory manager run on a machine that is only
 * described. Needs a library built against a StarPU with SimGrid (./bootstrap simgrid); in any other the functions here
 * that need one return ZLG_ENOTSUP. Nothing is computed and time is simulated: a process that simulates does nothing
 * else, one machine in its life, from one thread, and its requests run in the caller's thread. */
#ifndef ZELLIGE_SIMULATION_H
#define ZELLIGE_SIMULATION_H

#include "zellige/matrix.h"

#ifdef __cplusplus
extern "C" {
#endif

/* 1 where this library was built against a StarPU with SimGrid. */
ZLG_API int zlg_simulation_available(void);

/* What one worker of a kind does a second, as kernels reach it. A task takes launch + the longest of its multiply-adds,
 * its special functions and its bytes. [0] binary32, [1] binary64. */
typedef struct zlg_rates {
  double multiply_adds[2]; /* instructions of the multiply-add pipes, additions among them */
  double specials[2];      /* exponentials, roots, divisions by units of their own; 0: in the multiply-add pipes, */
  double special_slots[2]; /*   where one takes so many */
  double bytes;            /* of memory */
  double launch;           /* seconds before the first */
  int calibrated;          /* 1: not these, but the calibrated models of this machine */
} zlg_rates;

/* A described machine: `cores` cores of which each GPU keeps one busy. */
typedef struct zlg_platform {
  char name[48]; /* of the file, without directory and suffix */
  char title[128];
  int sockets, cores, gpus;
  double memory_bytes, gpu_memory_bytes;
  zlg_rates cpu, gpu;
  double link_bandwidth, link_latency; /* memory to each GPU and back, each direction (bytes/s, s) */
  double socket_bandwidth;             /* all links of a socket together; 0: no limit */
  double peer_bandwidth, peer_latency; /* GPU to GPU; 0: along the links to memory */
  double disk_read, disk_write;        /* bytes/s */
  char calibration_host[65];           /* whose calibrated models serve where `calibrated` */
} zlg_platform;

/* Reads a description (doc/simulation.md says what stands in one). ZLG_ENOENT, ZLG_EIO; ZLG_EFORMAT, the message naming
 * file, line and what was expected; the message is zlg_context_message(NULL). */
ZLG_API int zlg_platform_read(const char *path, zlg_platform *platform);
/* Writes what StarPU and SimGrid read about the machine into `directory`, which must exist and be private, and puts its
 * rates in force for this process; `calibrated` stays set where models were found. The caller then sets
 * STARPU_PERF_MODEL_DIR to the directory and STARPU_HOSTNAME to the platform's name in its environment. `models`: the
 * directory of calibrated models, NULL: where StarPU's environment says that models are. ZLG_ENOTSUP, ZLG_EIO,
 * ZLG_EINVAL (more cores or GPUs than this StarPU was built for), ZLG_ENOENT (neither models nor rates of a kind). */
ZLG_API int zlg_platform_install(zlg_platform *platform, const char *directory, const char *models);

/* Runs run(user) as the first thread of the simulation and puts what it returns into *result: contexts are made and
 * used there. Afterwards this process has nothing more to do with StarPU. ZLG_ENOTSUP, ZLG_ESTATE (no platform is
 * installed; a process simulates once). */
ZLG_API int zlg_simulate(int (*run)(void *user), void *user, int *result);

/* A matrix with no data behind it: for the memory manager it has its size, and it takes none. On the disk it is read
 * and written at the disk's bandwidth. ZLG_ENOTSUP outside of a simulation: nothing could be computed from it. */
typedef enum zlg_storage { ZLG_IN_MEMORY = 1, ZLG_ON_DISK = 2 } zlg_storage;
ZLG_API int zlg_matrix_simulated(zlg_context *context, zlg_matrix **matrix, zlg_type type, int64_t rows,
                                 int64_t columns, zlg_order order, zlg_storage storage);

/* The index-th link between two memory nodes (0: the machine's memory, then the GPUs) and the bytes that went over it
 * since the process began; ZLG_EINVAL past the last. Links that carried nothing are there too. */
typedef struct zlg_link_traffic {
  int from, to;
  int64_t bytes;
} zlg_link_traffic;
ZLG_API int zlg_simulation_link(zlg_context *context, int index, zlg_link_traffic *traffic);

/* The most tasks of this process that were under way at once, and the most bytes that were allocated in any GPU's
 * memory at the end of a task. */
ZLG_API int zlg_simulation_peaks(zlg_context *context, int64_t *tasks, int64_t *gpu_bytes);

#ifdef __cplusplus
}
#endif
#endif
