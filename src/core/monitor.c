/* Locks of the system or of the simulation: see monitor.h. */
#include "config.h"

#include "src/core/monitor.h"

#include <time.h>

#include "codelets/common/starpu_compat.h"

#if HAVE_DECL_STARPU_SIMGRID

_Static_assert(sizeof(starpu_pthread_mutex_t) == sizeof(void *) && sizeof(starpu_pthread_cond_t) == sizeof(void *),
               "SimGrid's locks are pointers");

static starpu_pthread_mutex_t *lock_of(struct zlg_monitor *monitor) {
  return (starpu_pthread_mutex_t *)&monitor->simulated_lock;
}

static starpu_pthread_cond_t *changed_of(struct zlg_monitor *monitor) {
  return (starpu_pthread_cond_t *)&monitor->simulated_changed;
}

void zlg_monitor_init(struct zlg_monitor *monitor) {
  starpu_pthread_mutex_init(lock_of(monitor), NULL);
  starpu_pthread_cond_init(changed_of(monitor), NULL);
}

void zlg_monitor_destroy(struct zlg_monitor *monitor) {
  starpu_pthread_cond_destroy(changed_of(monitor));
  starpu_pthread_mutex_destroy(lock_of(monitor));
}

void zlg_monitor_lock(struct zlg_monitor *monitor) {
  starpu_pthread_mutex_lock(lock_of(monitor));
}

void zlg_monitor_unlock(struct zlg_monitor *monitor) {
  starpu_pthread_mutex_unlock(lock_of(monitor));
}

void zlg_monitor_wake(struct zlg_monitor *monitor) {
  starpu_pthread_cond_broadcast(changed_of(monitor));
}

void zlg_monitor_wait(struct zlg_monitor *monitor, double seconds) {
  (void)seconds; /* no change goes unannounced but a cancellation, and nobody is there to cancel */
  starpu_pthread_cond_wait(changed_of(monitor), lock_of(monitor));
}

#else

void zlg_monitor_init(struct zlg_monitor *monitor) {
  pthread_condattr_t monotonic;
  pthread_mutex_init(&monitor->lock, NULL);
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_cond_init(&monitor->changed, &monotonic);
  pthread_condattr_destroy(&monotonic);
}

void zlg_monitor_destroy(struct zlg_monitor *monitor) {
  pthread_cond_destroy(&monitor->changed);
  pthread_mutex_destroy(&monitor->lock);
}

void zlg_monitor_lock(struct zlg_monitor *monitor) {
  pthread_mutex_lock(&monitor->lock);
}

void zlg_monitor_unlock(struct zlg_monitor *monitor) {
  pthread_mutex_unlock(&monitor->lock);
}

void zlg_monitor_wake(struct zlg_monitor *monitor) {
  pthread_cond_broadcast(&monitor->changed);
}

void zlg_monitor_wait(struct zlg_monitor *monitor, double seconds) {
  struct timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_nsec += (long)(seconds * 1e9);
  if (until.tv_nsec >= 1000000000) {
    until.tv_nsec -= 1000000000;
    until.tv_sec++;
  }
  pthread_cond_timedwait(&monitor->changed, &monitor->lock, &until);
}

#endif
