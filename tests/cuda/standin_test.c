/* The stand-in for CUDA is itself tested: what a card would refuse is refused, what only goes wrong now and then on a
 * card is found each time, and what is right passes without a word. */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <math.h>
#include <nvrtc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codelets/common/device.h"
#include "tests/cuda/child.h"
#include "tests/cuda/standin/counts.h"
#include "tests/support.h"

#define ELEMENTS 1024
#define BYTES (ELEMENTS * sizeof(float))

static const char *const one_card[] = {"ZLG_CARDS", "1", NULL};
static const char *const two_cards[] = {"ZLG_CARDS", "2", NULL};
static const char *const two_islands[] = {"ZLG_CARDS", "2", "ZLG_CARD_PEER", "0", NULL};
static const char *const small_card[] = {"ZLG_CARDS", "1", "ZLG_CARD_MB", "2", NULL};
/* Long delays: what is not ordered would be seen in the numbers too. */
static const char *const slow_card[] = {"ZLG_CARDS", "1", "ZLG_CARD_DELAY_US", "3000", NULL};

#define CUDA_OK(call) CU_ASSERT_EQUAL((call), cudaSuccess)

/* ---- a kernel ---------------------------------------------------------------------------------------------------- */

/* y += a x, n elements, in groups of 32. */
static const char text[] = "KERNEL(32) add(GLOBAL float *y, GLOBAL const float *x, int n, float a) {\n"
                           "  int i = (int)GLOBAL_ID(x);\n"
                           "  if (i < n) y[i] += a * x[i];\n"
                           "}\n";

static CUfunction add_on(int card) {
  char source[sizeof text + 16384];
  snprintf(source, sizeof source, "%s%s", zlg_device_vocabulary, text);
  nvrtcProgram program;
  const char *const options[] = {"-DZLG_F64=0"};
  size_t bytes = 0;
  CUcontext context;
  CUmodule module;
  CUfunction function = NULL;
  CU_ASSERT_EQUAL(nvrtcCreateProgram(&program, source, "add", 0, NULL, NULL), NVRTC_SUCCESS);
  CU_ASSERT_EQUAL(nvrtcCompileProgram(program, 1, options), NVRTC_SUCCESS);
  CU_ASSERT_EQUAL(nvrtcGetCUBINSize(program, &bytes), NVRTC_SUCCESS);
  char *binary = malloc(bytes);
  CU_ASSERT_EQUAL(nvrtcGetCUBIN(program, binary), NVRTC_SUCCESS);
  nvrtcDestroyProgram(&program);
  CU_ASSERT_EQUAL(cuDevicePrimaryCtxRetain(&context, card), CUDA_SUCCESS);
  CU_ASSERT_EQUAL(cuCtxPushCurrent(context), CUDA_SUCCESS);
  CU_ASSERT_EQUAL(cuModuleLoadData(&module, binary), CUDA_SUCCESS);
  CU_ASSERT_EQUAL(cuModuleGetFunction(&function, module, "add"), CUDA_SUCCESS);
  CU_ASSERT_EQUAL(cuCtxPopCurrent(NULL), CUDA_SUCCESS);
  free(binary);
  return function;
}

static CUresult launch_add(CUfunction add, cudaStream_t stream, float *y, const float *x, int n, float a) {
  void *values[] = {&y, &x, &n, &a};
  return cuLaunchKernel(add, ((unsigned)n + 31) / 32, 1, 1, 32, 1, 1, 0, stream, values, NULL);
}

static float *device_array(float value) {
  float *array = NULL, host[ELEMENTS];
  for (int i = 0; i < ELEMENTS; i++) host[i] = value;
  CUDA_OK(cudaMalloc((void **)&array, BYTES));
  CUDA_OK(cudaMemcpy(array, host, BYTES, cudaMemcpyHostToDevice));
  return array;
}

static void check_all(const float *array, float want) {
  float host[ELEMENTS];
  CUDA_OK(cudaMemcpy(host, array, BYTES, cudaMemcpyDeviceToHost));
  for (int i = 0; i < ELEMENTS; i++) ZLG_CHECK_CLOSE(host[i], want, 0);
}

static cudaStream_t stream_with(unsigned flags) {
  cudaStream_t stream = NULL;
  CUDA_OK(cudaStreamCreateWithFlags(&stream, flags));
  return stream;
}

/* ---- what is right ----------------------------------------------------------------------------------------------- */

static void compute(void) {
  cudaStream_t stream = stream_with(cudaStreamNonBlocking);
  float *x = device_array(3), *y = device_array(1);
  CUfunction add = add_on(0);
  for (int i = 0; i < 5; i++) CU_ASSERT_EQUAL(launch_add(add, stream, y, x, ELEMENTS, 2), CUDA_SUCCESS);
  CUDA_OK(cudaStreamSynchronize(stream));
  check_all(y, 31);
  CU_ASSERT_EQUAL(launch_add(add, stream, y + 512, x, 1, 1), CUDA_SUCCESS); /* inside an allocation */
  CUDA_OK(cudaStreamSynchronize(stream));
  float one;
  CUDA_OK(cudaMemcpy(&one, y + 512, sizeof one, cudaMemcpyDeviceToHost));
  ZLG_CHECK_CLOSE(one, 34, 0);
  CUDA_OK(cudaFree(x));
  CUDA_OK(cudaFree(y));
}
static void kernels_compute(void) {
  struct cards_child child = cards_run(one_card, compute);
  CARDS_CHECK_CLEAN(&child);
}

static void look_at_new(void) {
  float *memory, seen[4];
  CUDA_OK(cudaMalloc((void **)&memory, sizeof seen));
  CUDA_OK(cudaMemcpy(seen, memory, sizeof seen, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 4; i++) CU_ASSERT(isnan(seen[i]));
}
static void new_memory_is_nan(void) {
  struct cards_child child = cards_run(one_card, look_at_new);
  CARDS_CHECK_CLEAN(&child);
}

static void fill_memory(void) {
  size_t available, total;
  void *first, *second = NULL;
  CUDA_OK(cudaMemGetInfo(&available, &total));
  CU_ASSERT_EQUAL(total, 2u << 20);
  CUDA_OK(cudaMalloc(&first, 3u << 19));
  CU_ASSERT_EQUAL(cudaMalloc(&second, 1u << 20), cudaErrorMemoryAllocation);
  CU_ASSERT_EQUAL(cudaGetLastError(), cudaErrorMemoryAllocation);
  CU_ASSERT_EQUAL(cudaGetLastError(), cudaSuccess);
  CUDA_OK(cudaFree(first));
  CUDA_OK(cudaMalloc(&second, 1u << 20));
  CU_ASSERT(second != first);
}
static void memory_is_limited_and_comes_back(void) {
  struct cards_child child = cards_run(small_card, fill_memory);
  CARDS_CHECK_CLEAN(&child);
}

static void launch_too_large(void) {
  float *y = device_array(0);
  CUfunction add = add_on(0);
  void *values[] = {&y, &y, &(int){1}, &(float){1}};
  CU_ASSERT_EQUAL(cuLaunchKernel(add, 1, 1, 1, 2048, 1, 1, 0, NULL, values, NULL), CUDA_ERROR_INVALID_VALUE);
  CU_ASSERT_EQUAL(cuLaunchKernel(add, 1, 70000, 1, 32, 1, 1, 0, NULL, values, NULL), CUDA_ERROR_INVALID_VALUE);
  CU_ASSERT_EQUAL(cuLaunchKernel(add, 1, 1, 1, 32, 1, 1, 1 << 20, NULL, values, NULL), CUDA_ERROR_INVALID_VALUE);
}
static void launches_over_a_limit_are_refused(void) {
  struct cards_child child = cards_run(one_card, launch_too_large);
  CARDS_CHECK_CLEAN(&child);
}

/* ---- order ------------------------------------------------------------------------------------------------------- */

/* Writes x on one stream and reads it on another, ordered by `how`. */
enum order { BY_NOTHING, BY_EVENT, BY_HOST, BY_STREAM_QUERY };
static void write_then_read(enum order how) {
  cudaStream_t one = stream_with(cudaStreamNonBlocking), other = stream_with(cudaStreamNonBlocking);
  float *x = device_array(1), *y = device_array(0), *c = device_array(1);
  cudaEvent_t event;
  CUfunction add = add_on(0);
  CUDA_OK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  CU_ASSERT_EQUAL(launch_add(add, one, x, c, ELEMENTS, 1), CUDA_SUCCESS);
  CUDA_OK(cudaEventRecord(event, one));
  if (how == BY_EVENT) CUDA_OK(cudaStreamWaitEvent(other, event, 0));
  if (how == BY_HOST) CUDA_OK(cudaEventSynchronize(event));
  while (how == BY_STREAM_QUERY && cudaStreamQuery(one) == cudaErrorNotReady) continue;
  CU_ASSERT_EQUAL(launch_add(add, other, y, x, ELEMENTS, 1), CUDA_SUCCESS);
  CUDA_OK(cudaDeviceSynchronize());
  if (how != BY_NOTHING) check_all(y, 2);
}
static void by_nothing(void) {
  write_then_read(BY_NOTHING);
}
static void by_event(void) {
  write_then_read(BY_EVENT);
}
static void by_host(void) {
  write_then_read(BY_HOST);
}
static void by_query(void) {
  write_then_read(BY_STREAM_QUERY);
}
static void an_event_the_host_or_a_query_orders_two_streams(void) {
  void (*const ways[])(void) = {by_event, by_host, by_query};
  for (int i = 0; i < 3; i++) {
    struct cards_child child = cards_run(slow_card, ways[i]);
    CARDS_CHECK_CLEAN(&child);
  }
}
static void unordered_accesses_are_found(void) {
  for (int i = 0; i < 3; i++) {
    struct cards_child child = cards_run(one_card, by_nothing);
    CARDS_CHECK_CAUGHT(&child, "unordered");
  }
}

static void read_twice(void) {
  cudaStream_t one = stream_with(cudaStreamNonBlocking), other = stream_with(cudaStreamNonBlocking);
  float *x = device_array(1), *y = device_array(0), *z = device_array(0);
  CUfunction add = add_on(0);
  CU_ASSERT_EQUAL(launch_add(add, one, y, x, ELEMENTS, 1), CUDA_SUCCESS);
  CU_ASSERT_EQUAL(launch_add(add, other, z, x, ELEMENTS, 1), CUDA_SUCCESS);
  CUDA_OK(cudaDeviceSynchronize());
  check_all(y, 1);
  check_all(z, 1);
}
static void two_streams_may_read_the_same(void) {
  struct cards_child child = cards_run(one_card, read_twice);
  CARDS_CHECK_CLEAN(&child);
}

/* Two blocks of columns of one pinned matrix, copied out by two streams; `shift` moves the second over the first. */
static void copy_blocks(size_t shift) {
  cudaStream_t streams[] = {stream_with(cudaStreamNonBlocking), stream_with(cudaStreamNonBlocking)};
  char *host, *block;
  CUDA_OK(cudaHostAlloc((void **)&host, 8192, 0));
  CUDA_OK(cudaMalloc((void **)&block, 4096));
  for (size_t i = 0; i < 2; i++)
    CUDA_OK(cudaMemcpy2DAsync(host + i * (64 - shift), 128, block, 64, 64, 64, cudaMemcpyDeviceToHost, streams[i]));
  CUDA_OK(cudaDeviceSynchronize());
}
static void copy_apart(void) {
  copy_blocks(0);
}
static void copy_over(void) {
  copy_blocks(4);
}
static void blocks_of_columns_side_by_side_do_not_meet(void) {
  struct cards_child apart = cards_run(one_card, copy_apart), over = cards_run(one_card, copy_over);
  CARDS_CHECK_CLEAN(&apart);
  CARDS_CHECK_CAUGHT(&over, "unordered");
}

/* Stream 0 and another write the same, with no more order than stream 0 gives. */
static void beside_default(unsigned flags) {
  cudaStream_t stream = stream_with(flags);
  float *x = device_array(1), *c = device_array(1);
  CUfunction add = add_on(0);
  for (int i = 0; i < 3; i++) {
    CU_ASSERT_EQUAL(launch_add(add, stream, x, c, ELEMENTS, 1), CUDA_SUCCESS);
    CU_ASSERT_EQUAL(launch_add(add, NULL, x, c, ELEMENTS, 1), CUDA_SUCCESS);
  }
  CUDA_OK(cudaDeviceSynchronize());
  if (flags == cudaStreamDefault) check_all(x, 7);
}
static void beside_default_blocking(void) {
  beside_default(cudaStreamDefault);
}
static void beside_default_non_blocking(void) {
  beside_default(cudaStreamNonBlocking);
}
static void stream_0_waits_for_blocking_streams_only(void) {
  struct cards_child blocking = cards_run(slow_card, beside_default_blocking);
  struct cards_child other = cards_run(slow_card, beside_default_non_blocking);
  CARDS_CHECK_CLEAN(&blocking);
  CARDS_CHECK_CAUGHT(&other, "unordered");
}

/* More streams than there are places, one after another. */
static void many_streams(void) {
  for (int i = 0; i < 1500; i++) CUDA_OK(cudaStreamDestroy(stream_with(cudaStreamNonBlocking)));
  cudaStream_t last = stream_with(cudaStreamNonBlocking);
  CUDA_OK(cudaStreamDestroy(last));
  CU_ASSERT_EQUAL(cudaStreamQuery(last), cudaErrorInvalidResourceHandle);
}
static void destroyed_streams_make_room_and_are_no_streams(void) {
  struct cards_child child = cards_run(one_card, many_streams);
  CU_ASSERT(child.passed);
  CARDS_CHECK_CAUGHT(&child, "bad-stream");
}

/* ---- pointers ---------------------------------------------------------------------------------------------------- */

static void use_freed(void) {
  float *x = device_array(1), *y = device_array(0);
  CUfunction add = add_on(0);
  CUDA_OK(cudaFree(x));
  launch_add(add, NULL, y, x, ELEMENTS, 1);
  CU_ASSERT_EQUAL(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
}
static void copy_freed(void) {
  float *x = device_array(1), host;
  CUDA_OK(cudaFree(x));
  CU_ASSERT_NOT_EQUAL(cudaMemcpy(&host, x, sizeof host, cudaMemcpyDeviceToHost), cudaSuccess);
}
static void free_twice(void) {
  float *x = device_array(1);
  CUDA_OK(cudaFree(x));
  CU_ASSERT_EQUAL(cudaFree(x), cudaErrorInvalidValue);
}
static void use_and_free_after_free(void) {
  struct cards_child used = cards_run(one_card, use_freed), copied = cards_run(one_card, copy_freed),
                     freed = cards_run(one_card, free_twice);
  CU_ASSERT(used.passed && copied.passed && freed.passed);
  CARDS_CHECK_CAUGHT(&used, "use-after-free");
  CARDS_CHECK_CAUGHT(&copied, "use-after-free");
  CARDS_CHECK_CAUGHT(&freed, "double-free");
}

static void run_past(void) {
  float *x = device_array(1), *y = device_array(0);
  CUfunction add = add_on(0);
  launch_add(add, NULL, y, x, 4 * ELEMENTS, 1);
  cudaDeviceSynchronize();
}
static void copy_past(void) {
  float *x = device_array(1), host[2 * ELEMENTS];
  CU_ASSERT_NOT_EQUAL(cudaMemcpy(host, x, sizeof host, cudaMemcpyDeviceToHost), cudaSuccess);
}
static void follow(void) {
  volatile float *x = device_array(1);
  x[0] = 2;
}
static void accesses_outside_an_allocation(void) {
  struct cards_child kernel = cards_run(one_card, run_past), copied = cards_run(one_card, copy_past),
                     host = cards_run(one_card, follow);
  CU_ASSERT_EQUAL(kernel.signal, SIGSEGV);
  CARDS_CHECK_CAUGHT(&kernel, "dead-access");
  CARDS_CHECK_CAUGHT(&copied, "overrun");
  CU_ASSERT_EQUAL(host.signal, SIGSEGV);
  CARDS_CHECK_CAUGHT(&host, "host-access");
}

static void give_host_memory(bool pinned) {
  static float host[ELEMENTS];
  float *y = device_array(1);
  CUfunction add = add_on(0);
  if (pinned) CUDA_OK(cudaHostRegister(host, sizeof host, 0));
  for (int i = 0; i < ELEMENTS; i++) host[i] = 5;
  launch_add(add, NULL, y, host, ELEMENTS, 1);
  CU_ASSERT_EQUAL(cudaDeviceSynchronize(), pinned ? cudaSuccess : cudaErrorIllegalAddress);
  if (pinned) check_all(y, 6);
}
static void give_pinned(void) {
  give_host_memory(true);
}
static void give_pageable(void) {
  give_host_memory(false);
}
static void host_memory_must_be_pinned_for_kernels(void) {
  struct cards_child pinned = cards_run(one_card, give_pinned), pageable = cards_run(one_card, give_pageable);
  CARDS_CHECK_CLEAN(&pinned);
  CU_ASSERT(pageable.passed);
  CARDS_CHECK_CAUGHT(&pageable, "unpinned");
}

/* Pages are what is pinned: once each, and what is no longer pinned may be again. */
static void pin_pages(void) {
  static _Alignas(4096) char host[3 * 4096];
  CUDA_OK(cudaHostRegister(host, 4097, 0));
  CU_ASSERT_EQUAL(cudaHostRegister(host + 8000, 100, 0), cudaErrorHostMemoryAlreadyRegistered);
  CU_ASSERT_EQUAL(standin_counts().pinned_now, 1);
  CUDA_OK(cudaHostUnregister(host));
  CUDA_OK(cudaHostRegister(host + 8000, 100, 0));
  CU_ASSERT_EQUAL(cudaHostUnregister(host), cudaErrorHostMemoryNotRegistered);
}
static void pages_are_pinned_once(void) {
  struct cards_child child = cards_run(one_card, pin_pages);
  CARDS_CHECK_CLEAN(&child);
}

/* ---- several cards ----------------------------------------------------------------------------------------------- */

static void use_other_cards_memory(bool ask) {
  int can = -1;
  CUDA_OK(cudaDeviceCanAccessPeer(&can, 0, 1));
  CUDA_OK(cudaSetDevice(1));
  float *x = device_array(2);
  CUDA_OK(cudaSetDevice(0));
  float *y = device_array(1);
  CUfunction add = add_on(0);
  if (ask) CU_ASSERT_EQUAL(cudaDeviceEnablePeerAccess(1, 0), can ? cudaSuccess : cudaErrorPeerAccessUnsupported);
  launch_add(add, NULL, y, x, ELEMENTS, 1);
  CU_ASSERT_EQUAL(cudaDeviceSynchronize(), ask && can ? cudaSuccess : cudaErrorIllegalAddress);
  if (ask && can) check_all(y, 3);
}
static void use_asked(void) {
  use_other_cards_memory(true);
}
static void use_unasked(void) {
  use_other_cards_memory(false);
}
static void another_cards_memory_needs_peer_access(void) {
  struct cards_child asked = cards_run(two_cards, use_asked), unasked = cards_run(two_cards, use_unasked),
                     refused = cards_run(two_islands, use_asked);
  CARDS_CHECK_CLEAN(&asked);
  CU_ASSERT(unasked.passed && refused.passed);
  CARDS_CHECK_CAUGHT(&unasked, "wrong-card");
  CARDS_CHECK_CAUGHT(&refused, "wrong-card");
}

static void copy_between_cards(void) {
  float *y = device_array(1);
  CUDA_OK(cudaSetDevice(1));
  float *x = device_array(2);
  CUDA_OK(cudaMemcpyPeer(y, 0, x, 1, BYTES));
  check_all(x, 2);
  CUDA_OK(cudaSetDevice(0));
  check_all(y, 2);
}
static void peer_copies_need_no_peer_access(void) {
  struct cards_child child = cards_run(two_islands, copy_between_cards);
  CARDS_CHECK_CLEAN(&child);
}

static void launch_elsewhere(void) {
  CUfunction add = add_on(1);
  float *y = device_array(1);
  CU_ASSERT_EQUAL(launch_add(add, NULL, y, y, ELEMENTS, 1), CUDA_ERROR_INVALID_HANDLE);
}
static void a_function_belongs_to_its_card(void) {
  struct cards_child child = cards_run(two_cards, launch_elsewhere);
  CU_ASSERT(child.passed);
  CARDS_CHECK_CAUGHT(&child, "wrong-card");
}

static void keep_failing(void) {
  float *y = device_array(1), host;
  CUfunction add = add_on(0);
  void *memory;
  launch_add(add, NULL, y, (float *)&host, 1, 1);
  cudaDeviceSynchronize();
  CU_ASSERT_EQUAL(cudaMalloc(&memory, 16), cudaErrorIllegalAddress);
  CU_ASSERT_EQUAL(cudaMemcpy(&host, y, sizeof host, cudaMemcpyDeviceToHost), cudaErrorIllegalAddress);
  CU_ASSERT_EQUAL((int)launch_add(add, NULL, y, y, 1, 1), CUDA_ERROR_ILLEGAL_ADDRESS);
  CU_ASSERT_EQUAL(cudaGetLastError(), cudaErrorIllegalAddress);
  CU_ASSERT_EQUAL(cudaGetLastError(), cudaErrorIllegalAddress);
  CUDA_OK(cudaSetDevice(1)); /* the other card knows nothing of it */
  cudaGetLastError();
  check_all(device_array(4), 4);
  CU_ASSERT_EQUAL(cudaSetDevice(0), cudaErrorIllegalAddress); /* chosen, and the error told again */
  CUDA_OK(cudaDeviceReset());
  check_all(device_array(5), 5);
}
static void errors_stick_to_their_card_until_it_is_reset(void) {
  struct cards_child child = cards_run(two_cards, keep_failing);
  CU_ASSERT(child.passed);
  CARDS_CHECK_CAUGHT(&child, "unpinned");
}

static const struct zlg_test_case cases[] = {
    {"kernels_compute", kernels_compute},
    {"new_memory_is_nan", new_memory_is_nan},
    {"memory_is_limited_and_comes_back", memory_is_limited_and_comes_back},
    {"launches_over_a_limit_are_refused", launches_over_a_limit_are_refused},
    {"an_event_the_host_or_a_query_orders_two_streams", an_event_the_host_or_a_query_orders_two_streams},
    {"unordered_accesses_are_found", unordered_accesses_are_found},
    {"two_streams_may_read_the_same", two_streams_may_read_the_same},
    {"blocks_of_columns_side_by_side_do_not_meet", blocks_of_columns_side_by_side_do_not_meet},
    {"stream_0_waits_for_blocking_streams_only", stream_0_waits_for_blocking_streams_only},
    {"destroyed_streams_make_room_and_are_no_streams", destroyed_streams_make_room_and_are_no_streams},
    {"use_and_free_after_free", use_and_free_after_free},
    {"accesses_outside_an_allocation", accesses_outside_an_allocation},
    {"host_memory_must_be_pinned_for_kernels", host_memory_must_be_pinned_for_kernels},
    {"pages_are_pinned_once", pages_are_pinned_once},
    {"another_cards_memory_needs_peer_access", another_cards_memory_needs_peer_access},
    {"peer_copies_need_no_peer_access", peer_copies_need_no_peer_access},
    {"a_function_belongs_to_its_card", a_function_belongs_to_its_card},
    {"errors_stick_to_their_card_until_it_is_reset", errors_stick_to_their_card_until_it_is_reset},
    {NULL, NULL},
};

int main(int argc, char **argv) {
  return zlg_test_main(argc, argv, cases);
}
