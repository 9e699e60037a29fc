/* hwloc's answers, kept for the life of the process. The topology itself is not: it is large, and these facts do not
 * change. */
#include "src/core/machine.h"

#include <hwloc.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static struct zlg_machine machine;
static pthread_once_t machine_once = PTHREAD_ONCE_INIT;

static int64_t cache_bytes(hwloc_topology_t topology, hwloc_obj_type_t level) {
  hwloc_obj_t cache = hwloc_get_obj_by_type(topology, level, 0);
  return cache ? (int64_t)cache->attr->cache.size : 0;
}

/* Unlike cores (or clusters of them) have unlike caches: the least any core has to itself, whichever hwloc names first.
 */
static int64_t share_of_a_core(hwloc_topology_t topology, hwloc_obj_type_t level) {
  int64_t least = 0;
  for (hwloc_obj_t cache = NULL; (cache = hwloc_get_next_obj_by_type(topology, level, cache));) {
    int cores = hwloc_get_nbobjs_inside_cpuset_by_type(topology, cache->cpuset, HWLOC_OBJ_CORE);
    int64_t share = (int64_t)cache->attr->cache.size / (cores > 0 ? cores : 1);
    if (least == 0 || share < least) least = share;
  }
  return least;
}

static int cores_usable(hwloc_topology_t topology) {
  hwloc_bitmap_t bound = hwloc_bitmap_alloc();
  int cores = 0;
  if (bound && hwloc_get_cpubind(topology, bound, HWLOC_CPUBIND_PROCESS) == 0 && !hwloc_bitmap_iszero(bound))
    cores = hwloc_get_nbobjs_inside_cpuset_by_type(topology, bound, HWLOC_OBJ_CORE);
  hwloc_bitmap_free(bound);
  if (cores <= 0) cores = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE);
  return cores > 0 ? cores : 1;
}

static void read_topology(hwloc_topology_t topology) {
  machine.cores = cores_usable(topology);
  machine.l1_bytes = cache_bytes(topology, HWLOC_OBJ_L1CACHE);
  machine.l2_bytes = cache_bytes(topology, HWLOC_OBJ_L2CACHE);
  machine.l3_bytes = cache_bytes(topology, HWLOC_OBJ_L3CACHE);
  machine.l2_core_bytes = share_of_a_core(topology, HWLOC_OBJ_L2CACHE);
  hwloc_obj_t root = hwloc_get_root_obj(topology);
  machine.memory_bytes = (int64_t)root->total_memory;
  hwloc_obj_t package = hwloc_get_obj_by_type(topology, HWLOC_OBJ_PACKAGE, 0);
  const char *name = hwloc_obj_get_info_by_name(package ? package : root, "CPUModel");
  if (name) snprintf(machine.cpu_name, sizeof machine.cpu_name, "%s", name);
}

static void read_machine(void) {
  hwloc_topology_t topology;
  machine.cores = 1;
  snprintf(machine.cpu_name, sizeof machine.cpu_name, "unknown");
  if (hwloc_topology_init(&topology) == 0) {
    if (hwloc_topology_load(topology) == 0) read_topology(topology);
    hwloc_topology_destroy(topology);
  }
  /* hwloc counts what its NUMA nodes say, which in virtual machines with hot-plugged memory is a part only. */
  int64_t pages = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
  if (pages > machine.memory_bytes) machine.memory_bytes = pages;
}

void zlg_machine_describe(const struct zlg_machine *described) {
  pthread_once(&machine_once, read_machine);
  machine = *described;
}

const struct zlg_machine *zlg_machine_get(void) {
  pthread_once(&machine_once, read_machine);
  return &machine;
}
