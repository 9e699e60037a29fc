/* Interrupts: see interrupt.h. Handlers, not a waiting thread: libraries start threads before main() that block
 * nothing. */
#include "tools/interrupt.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
enum { SIGNALS = sizeof signals / sizeof signals[0] };
static bool ignored[SIGNALS];

static atomic_int caught;
static _Atomic(zlg_request *) watched;
static atomic_int inside; /* handlers that may be using `watched` */

void interrupt_remember(void) {
  for (int i = 0; i < SIGNALS; i++) {
    struct sigaction old;
    ignored[i] = sigaction(signals[i], NULL, &old) == 0 && old.sa_handler == SIG_IGN;
  }
}

void interrupt_die(int signal_number) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal_number);
  signal(signal_number, SIG_DFL);
  pthread_sigmask(SIG_UNBLOCK, &set, NULL);
  raise(signal_number);
  _Exit(128 + signal_number);
}

static void on_signal(int signal_number) {
  int none = 0;
  if (!atomic_compare_exchange_strong(&caught, &none, signal_number)) interrupt_die(signal_number);
  atomic_fetch_add(&inside, 1);
  zlg_request *request = atomic_load(&watched);
  if (request) zlg_request_cancel(request);
  atomic_fetch_sub(&inside, 1);
}

void interrupt_catch(void) {
  struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
  sigemptyset(&action.sa_mask);
  for (int i = 0; i < SIGNALS; i++)
    if (!ignored[i]) sigaction(signals[i], &action, NULL);
}

void interrupt_watch(zlg_request *request) {
  atomic_store(&watched, request);
  if (!request) {
    while (atomic_load(&inside)) continue;
    return;
  }
  if (interrupt_signal()) zlg_request_cancel(request);
}

int interrupt_signal(void) {
  return atomic_load(&caught);
}
