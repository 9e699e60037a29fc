/* A lock with a condition: where the driver, the waiters and the workers of a request meet. Under a StarPU with SimGrid
 * threads are simulated, and one that waited for a lock of the system's would hold up all the others: there lock and
 * condition are StarPU's, and waiting takes simulated time. */
#ifndef ZLG_CORE_MONITOR_H
#define ZLG_CORE_MONITOR_H

#include <pthread.h>

struct zlg_monitor {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  void *simulated_lock, *simulated_changed;
};

void zlg_monitor_init(struct zlg_monitor *monitor);
void zlg_monitor_destroy(struct zlg_monitor *monitor);
void zlg_monitor_lock(struct zlg_monitor *monitor);
void zlg_monitor_unlock(struct zlg_monitor *monitor);
/* Whoever waits looks again. */
void zlg_monitor_wake(struct zlg_monitor *monitor);
/* With the lock held: until somebody wakes it or, where time is real, so many seconds (less than one) have passed. */
void zlg_monitor_wait(struct zlg_monitor *monitor, double seconds);

#endif
