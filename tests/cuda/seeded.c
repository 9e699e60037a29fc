/* Faults that host code of CUDA may have, seeded into a codelet of the library, and each caught by the pretended cards:
 * were one not caught, the clean runs of the other tests would prove nothing about it. The faults live here only; the
 * linker puts __wrap_starpu_cuda_get_local_stream() where the library asks StarPU for its stream. */
#include <cuda_runtime_api.h>
#include <signal.h>
#include <stdlib.h>

#include "codelets/accumulate/args.h"
#include "codelets/common/codelet.h"
#include "codelets/common/program.h"
#include "tests/cuda/child.h"
#include "tests/support_starpu.h"

#define ROWS 600
#define TASKS 24

/* The codelet that the tasks run: the library's, or a copy with a fault. */
static struct starpu_codelet codelet;
static int wrong_launch = -1; /* the number of the launch that gets the wrong stream; -1: none */
static cudaStream_t wrong_stream;

cudaStream_t __real_starpu_cuda_get_local_stream(void);
cudaStream_t __wrap_starpu_cuda_get_local_stream(void);
cudaStream_t __wrap_starpu_cuda_get_local_stream(void) {
  static int launches;
  int number = __atomic_fetch_add(&launches, 1, __ATOMIC_RELAXED);
  return number == wrong_launch ? wrong_stream : __real_starpu_cuda_get_local_stream();
}

static starpu_data_handle_t matrix(double *values) {
  starpu_data_handle_t handle;
  starpu_matrix_data_register(&handle, STARPU_MAIN_RAM, (uintptr_t)values, 1, 1, ROWS, sizeof *values);
  return handle;
}
static starpu_data_handle_t vector(double *values) {
  starpu_data_handle_t handle;
  starpu_vector_data_register(&handle, STARPU_MAIN_RAM, (uintptr_t)values, ROWS, sizeof *values);
  return handle;
}

static void submit(struct zlg_accumulate_args *args, starpu_data_handle_t y, starpu_data_handle_t x, int card) {
  struct starpu_task *task = starpu_task_create();
  task->cl = &codelet;
  task->cl_arg = args;
  task->nbuffers = 2;
  task->handles[0] = y;
  task->handles[1] = x;
  task->modes[0] = STARPU_RW;
  task->modes[1] = STARPU_R;
  task->execute_on_a_specific_worker = 1;
  task->workerid = (unsigned)zlg_test_starpu_worker(ZLG_WORKER_CUDA, card);
  CU_ASSERT_EQUAL(starpu_task_submit(task), 0);
}

/* Y += x in a row of tasks that go round the cards, so that Y travels from each to the next. */
static void travel(void) {
  static double y[ROWS], x[ROWS];
  struct zlg_accumulate_args args = {
      .type = ZLG_F64, .m = ROWS, .r = 1, .y_order = ZLG_ROW_MAJOR, .parts = 1, .alpha = 1, .beta = 1};
  char message[1024] = "";
  for (int i = 0; i < ROWS; i++) x[i] = i;
  int prepared = zlg_accumulate_prepare(&args, message, sizeof message);
  zlg_check(prepared == ZLG_OK, message, __FILE__, __LINE__);
  starpu_data_handle_t yh = matrix(y), xh = vector(x);
  for (int t = 0; t < TASKS; t++) submit(&args, yh, xh, t % zlg_test_cuda_workers());
  starpu_task_wait_for_all();
  starpu_data_unregister(yh);
  starpu_data_unregister(xh);
  CU_ASSERT_EQUAL(args.head.status, ZLG_OK);
  for (int i = 0; i < ROWS; i++) ZLG_CHECK_CLOSE(y[i], (long double)TASKS * i, 0);
}

static void start(void) {
  zlg_test_starpu_init();
  codelet = *zlg_codelet_accumulate.codelet;
  codelet.model = NULL;
}

static void finish(void) {
  zlg_device_release();
  starpu_shutdown();
}

/* ---- no fault ---------------------------------------------------------------------------------------------------- */

static void without(void) {
  start();
  travel();
  finish();
}
static void without_a_fault_nothing_is_reported(void) {
  static const char *const islands[] = {"ZLG_CARD_PEER", "0", NULL};
  static const char *const slow[] = {"ZLG_CARD_DELAY_US", "4000", "ZLG_CARD_SEED", "9", NULL};
  const char *const *const worlds[] = {NULL, islands, slow};
  for (int i = 0; i < 3; i++) {
    struct cards_child child = cards_run(worlds[i], without);
    CARDS_CHECK_CLEAN(&child);
  }
}

/* ---- order ------------------------------------------------------------------------------------------------------- */

/* One launch of TASKS. */
static void on_stream_0(void) {
  start();
  wrong_launch = TASKS / 2;
  travel();
}
static void on_a_stream_of_its_own(void) {
  start();
  wrong_launch = TASKS / 2;
  /* Task n runs on card n modulo the cards. */
  cudaSetDevice(wrong_launch % zlg_test_cuda_workers());
  cudaStreamCreateWithFlags(&wrong_stream, cudaStreamNonBlocking);
  travel();
}
static void a_launch_on_the_wrong_stream(void) {
  for (int i = 0; i < 3; i++) {
    struct cards_child zero = cards_run(NULL, on_stream_0), own = cards_run(NULL, on_a_stream_of_its_own);
    CARDS_CHECK_CAUGHT(&zero, "unordered");
    CARDS_CHECK_CAUGHT(&own, "unordered");
  }
}

static void without_flag(void) {
  start();
  codelet.cuda_flags[0] = 0;
  travel();
}
/* StarPU looks for work left on the stream where its assertions are compiled in; else the cards see what follows. */
static void a_codelet_that_does_not_wait_and_does_not_say_so(void) {
  static const char *const slow[] = {"ZLG_CARD_DELAY_US", "2000", NULL};
  struct cards_child child = cards_run(slow, without_flag);
  CU_ASSERT_FALSE(child.passed);
  if (child.signal != SIGABRT) CARDS_CHECK_CAUGHT(&child, "unordered");
}

/* ---- pointers ---------------------------------------------------------------------------------------------------- */

static void *wrong_memory;

/* The library's device function, given other memory in place of x. */
static void with_wrong_memory(void *buffers[], void *cl_arg) {
  struct starpu_vector_interface x = *(struct starpu_vector_interface *)buffers[1];
  x.ptr = x.dev_handle = (uintptr_t)wrong_memory;
  void *changed[] = {buffers[0], &x};
  zlg_codelet_accumulate.codelet->cuda_funcs[0](changed, cl_arg);
}

static void with_other_cards_memory(void) {
  start();
  cudaSetDevice(1);
  cudaMalloc(&wrong_memory, ROWS * sizeof(double));
  codelet.cuda_funcs[0] = with_wrong_memory;
  travel();
}
static void another_cards_pointer_without_peer_access(void) {
  static const char *const islands[] = {"ZLG_CARD_PEER", "0", NULL};
  struct cards_child child = cards_run(islands, with_other_cards_memory);
  CU_ASSERT_FALSE(child.passed);
  CARDS_CHECK_CAUGHT(&child, "wrong-card");
}

static void with_pageable_memory(void) {
  start();
  wrong_memory = calloc(ROWS, sizeof(double));
  codelet.cuda_funcs[0] = with_wrong_memory;
  travel();
}
static void an_unpinned_buffer_of_the_host(void) {
  struct cards_child child = cards_run(NULL, with_pageable_memory);
  CU_ASSERT_FALSE(child.passed);
  CARDS_CHECK_CAUGHT(&child, "unpinned");
}

static void with_freed_memory(void) {
  start();
  cudaSetDevice(0);
  cudaMalloc(&wrong_memory, ROWS * sizeof(double));
  cudaFree(wrong_memory);
  codelet.cuda_funcs[0] = with_wrong_memory;
  travel();
}
static void memory_that_was_given_back(void) {
  struct cards_child child = cards_run(NULL, with_freed_memory);
  CU_ASSERT_FALSE(child.passed);
  CARDS_CHECK_CAUGHT(&child, "use-after-free");
}

/* The processor's function in the card's place: it follows the card's pointers. */
static void on_the_host(void) {
  start();
  codelet.cuda_funcs[0] = codelet.cpu_funcs[0];
  travel();
}
static void host_code_on_a_cards_memory(void) {
  struct cards_child child = cards_run(NULL, on_the_host);
  CU_ASSERT_EQUAL(child.signal, SIGSEGV);
  CARDS_CHECK_CAUGHT(&child, "host-access");
}

static const struct zlg_test_case cases[] = {
    {"without_a_fault_nothing_is_reported", without_a_fault_nothing_is_reported},
    {"a_launch_on_the_wrong_stream", a_launch_on_the_wrong_stream},
    {"a_codelet_that_does_not_wait_and_does_not_say_so", a_codelet_that_does_not_wait_and_does_not_say_so},
    {"another_cards_pointer_without_peer_access", another_cards_pointer_without_peer_access},
    {"an_unpinned_buffer_of_the_host", an_unpinned_buffer_of_the_host},
    {"memory_that_was_given_back", memory_that_was_given_back},
    {"host_code_on_a_cards_memory", host_code_on_a_cards_memory},
    {NULL, NULL},
};

int main(int argc, char **argv) {
  return zlg_test_main(argc, argv, cases);
}
