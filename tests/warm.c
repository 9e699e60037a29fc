/* Starts StarPU once in the mode's configuration, so that its bus benchmark is done: tests/run-test keeps the result
 * and gives every test a copy. */
#include "tests/support_starpu.h"

int main(void) {
  zlg_test_starpu_init();
  starpu_shutdown();
  return 0;
}
