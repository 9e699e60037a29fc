/* The CUDA runtime that StarPU calls: cards, memory, copies, streams, events. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "standin.h"

/* ---- cards and errors -------------------------------------------------------------------------------------------- */

static _Thread_local int chosen_card, remembered;
static struct {
  pthread_mutex_t lock;
  int error[CARDS_MOST];
  bool peer[CARDS_MOST][CARDS_MOST];
} cards = {.lock = PTHREAD_MUTEX_INITIALIZER};

int current_card(void) {
  return chosen_card;
}
void set_current_card(int card) {
  chosen_card = card;
}

void peer_enable(int from, int to) {
  pthread_mutex_lock(&cards.lock);
  cards.peer[from][to] = true;
  pthread_mutex_unlock(&cards.lock);
}

bool peer_enabled(int from, int to) {
  pthread_mutex_lock(&cards.lock);
  bool enabled = cards.peer[from][to];
  pthread_mutex_unlock(&cards.lock);
  return enabled;
}

void card_error_set(int card, int error) {
  pthread_mutex_lock(&cards.lock);
  if (!cards.error[card]) cards.error[card] = error;
  pthread_mutex_unlock(&cards.lock);
}

int card_error(int card) {
  pthread_mutex_lock(&cards.lock);
  int error = cards.error[card];
  pthread_mutex_unlock(&cards.lock);
  return error;
}

void card_reset(int card) {
  card_wait(card);
  memory_free_card(card);
  pthread_mutex_lock(&cards.lock);
  cards.error[card] = cudaSuccess;
  memset(cards.peer[card], 0, sizeof cards.peer[card]);
  pthread_mutex_unlock(&cards.lock);
}

int remember(int error) {
  if (!error) error = card_error(chosen_card); /* an error of the card comes up in whatever call is next */
  if (error && error != cudaErrorNotReady) remembered = error;
  return error;
}

int last_error(void) {
  int error = remembered;
  remembered = card_error(chosen_card);
  return error;
}

#define CHECK_CARD(card)                                                                                               \
  do {                                                                                                                 \
    if ((card) < 0 || (card) >= card_count())                                                                          \
      return remember(card_count() ? cudaErrorInvalidDevice : cudaErrorNoDevice);                                      \
  } while (0)

EXPORT cudaError_t cudaGetDeviceCount(int *count) {
  *count = card_count();
  return remember(*count ? cudaSuccess : cudaErrorNoDevice);
}
EXPORT cudaError_t cudaSetDevice(int card) {
  CHECK_CARD(card);
  chosen_card = card;
  return remember(cudaSuccess);
}
EXPORT cudaError_t cudaGetDevice(int *card) {
  *card = chosen_card;
  return remember(cudaSuccess);
}
EXPORT cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int card) {
  CHECK_CARD(card);
  memset(properties, 0, sizeof *properties);
  snprintf(properties->name, sizeof properties->name, "pretended card %d", card);
  size_t available;
  memory_info(card, &available, &properties->totalGlobalMem);
  properties->sharedMemPerBlock = 48 << 10;
  properties->maxThreadsPerBlock = 1024;
  properties->major = 9;
  properties->warpSize = 32;
  properties->multiProcessorCount = 4;
  properties->pciBusID = card + 1;
  properties->concurrentKernels = 1;
  properties->asyncEngineCount = 2;
  properties->unifiedAddressing = 1;
  properties->canMapHostMemory = 1;
  return remember(cudaSuccess);
}
EXPORT cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int card) {
  CHECK_CARD(card);
  switch (attribute) {
  case cudaDevAttrComputeMode:
    *value = cudaComputeModeDefault;
    break;
  case cudaDevAttrComputeCapabilityMajor:
    *value = 9;
    break;
  case cudaDevAttrUnifiedAddressing:
  case cudaDevAttrConcurrentKernels:
  case cudaDevAttrCanMapHostMemory:
    *value = 1;
    break;
  case cudaDevAttrPciBusId:
    *value = card + 1;
    break;
  case cudaDevAttrMaxThreadsPerBlock:
    *value = 1024;
    break;
  case cudaDevAttrMaxSharedMemoryPerBlock:
    *value = 48 << 10;
    break;
  default:
    *value = 0;
  }
  return remember(cudaSuccess);
}
EXPORT cudaError_t cudaDeviceReset(void) {
  card_reset(chosen_card);
  return cudaSuccess;
}
EXPORT cudaError_t cudaDeviceSynchronize(void) {
  card_wait(chosen_card);
  return remember(cudaSuccess);
}
EXPORT cudaError_t cudaDeviceCanAccessPeer(int *can, int card, int peer) {
  CHECK_CARD(card);
  CHECK_CARD(peer);
  *can = card != peer && peer_possible();
  return remember(cudaSuccess);
}
EXPORT cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  (void)flags;
  CHECK_CARD(peer);
  if (!peer_possible()) return remember(cudaErrorPeerAccessUnsupported);
  if (peer_enabled(chosen_card, peer)) return remember(cudaErrorPeerAccessAlreadyEnabled);
  peer_enable(chosen_card, peer);
  return remember(cudaSuccess);
}
EXPORT cudaError_t cudaGetLastError(void) {
  return last_error();
}
EXPORT cudaError_t cudaPeekAtLastError(void) {
  return remembered ? remembered : card_error(chosen_card);
}
EXPORT const char *cudaGetErrorString(cudaError_t error) {
  switch (error) {
  case cudaSuccess:
    return "no error";
  case cudaErrorMemoryAllocation:
    return "out of memory";
  case cudaErrorIllegalAddress:
    return "an illegal memory access was encountered";
  case cudaErrorNoDevice:
    return "no CUDA-capable device is detected";
  default:
    return "an error of the stand-in";
  }
}
EXPORT const char *cudaGetErrorName(cudaError_t error) {
  return error ? "cudaError" : "cudaSuccess";
}
EXPORT cudaError_t cudaDriverGetVersion(int *version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
EXPORT cudaError_t cudaRuntimeGetVersion(int *version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

EXPORT cudaError_t cudaMalloc(void **address, size_t bytes) {
  CHECK_CARD(chosen_card);
  if (card_error(chosen_card)) return remember(cudaSuccess);
  struct allocation *made = memory_new(chosen_card, bytes);
  if (!made) return remember(cudaErrorMemoryAllocation);
  *address = (void *)made->base;
  return remember(cudaSuccess);
}
EXPORT cudaError_t cudaFree(void *address) {
  if (!address) return remember(cudaSuccess);
  card_wait(chosen_card); /* freeing waits for the card, as the real one does */
  return remember(memory_free(chosen_card, (uintptr_t)address));
}
EXPORT cudaError_t cudaMemGetInfo(size_t *available, size_t *total) {
  CHECK_CARD(chosen_card);
  memory_info(chosen_card, available, total);
  return remember(cudaSuccess);
}
EXPORT cudaError_t cudaHostAlloc(void **memory, size_t bytes, unsigned flags) {
  (void)flags;
  memory_start();
  if (posix_memalign(memory, 4096, bytes ? bytes : 1) != 0) return remember(cudaErrorMemoryAllocation);
  host_register(*memory, bytes);
  return remember(cudaSuccess);
}
EXPORT cudaError_t cudaMallocHost(void **memory, size_t bytes) {
  return cudaHostAlloc(memory, bytes, 0);
}
EXPORT cudaError_t cudaFreeHost(void *memory) {
  if (memory && !host_unregister(memory)) {
    violation("bad-free", "%p is no pinned memory", memory);
    return remember(cudaErrorInvalidValue);
  }
  free(memory);
  return remember(cudaSuccess);
}
EXPORT cudaError_t cudaHostRegister(void *memory, size_t bytes, unsigned flags) {
  (void)flags;
  memory_start();
  if (!pinning_possible()) return remember(cudaErrorNotSupported);
  if (!host_register(memory, bytes)) return remember(cudaErrorHostMemoryAlreadyRegistered);
  COUNT(registered, 1);
  COUNT(pinned_now, 1);
  return remember(cudaSuccess);
}
EXPORT cudaError_t cudaHostUnregister(void *memory) {
  if (!host_unregister(memory)) return remember(cudaErrorHostMemoryNotRegistered);
  COUNT(unregistered, 1);
  COUNT(pinned_now, -1);
  return remember(cudaSuccess);
}
EXPORT cudaError_t cudaHostGetDevicePointer(void **device, void *memory, unsigned flags) {
  (void)flags;
  if (!host_find((uintptr_t)memory)) return remember(cudaErrorInvalidValue);
  *device = memory;
  return remember(cudaSuccess);
}
EXPORT cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *pointer) {
  memset(attributes, 0, sizeof *attributes);
  struct allocation *device = memory_find((uintptr_t)pointer), *host = host_find((uintptr_t)pointer);
  attributes->type = device ? cudaMemoryTypeDevice : host ? cudaMemoryTypeHost : cudaMemoryTypeUnregistered;
  attributes->device = device ? device->card : chosen_card;
  attributes->devicePointer = device || host ? (void *)pointer : NULL;
  attributes->hostPointer = device ? NULL : (void *)pointer;
  return remember(cudaSuccess);
}

/* ---- copies ------------------------------------------------------------------------------------------------------ */

/* Where an end of a copy really is; a device address must be that of a live allocation that holds all of it, on this
 * card or on one that may be reached. */
static int resolve(struct stream *stream, uintptr_t address, size_t pitch, size_t width, size_t height, bool write,
                   bool any_card, const char *what, uintptr_t *place) {
  const size_t span = (height - 1) * pitch + width;
  struct allocation *device = memory_find(address);
  struct allocation *host = device ? NULL : host_find(address), *found = device ? device : host;
  const size_t low = found ? address - found->base : 0;
  const struct extent extent = {low, low + span, height > 1 && pitch > width ? pitch : 0, width};
  if (!device) {
    if (host) order_access(stream, host, &extent, write, what);
    *place = address;
    return cudaSuccess;
  }
  if (!device->live || address - device->base + span > device->bytes) {
    violation(device->live ? "overrun" : "use-after-free", "%s of %zu bytes on card %d", what, span, device->card);
    return cudaErrorInvalidValue;
  }
  if (!any_card && device->card != stream->card && !peer_enabled(stream->card, device->card)) {
    violation("wrong-card", "%s on a stream of card %d of memory of card %d", what, stream->card, device->card);
    return cudaErrorIllegalAddress;
  }
  order_access(stream, device, &extent, write, what);
  *place = (uintptr_t)memory_backing(address);
  return cudaSuccess;
}

static void run_copy(struct operation *o) {
  for (size_t row = 0; row < o->height; row++)
    memmove((char *)o->to + row * o->to_pitch, (const char *)o->from + row * o->from_pitch, o->width);
}

static void run_set(struct operation *o) {
  memset((void *)o->to, o->value, o->bytes);
}

static void count_copy(uintptr_t to, uintptr_t from, size_t bytes, bool at_once) {
  const bool to_card = memory_find(to) != NULL, from_card = memory_find(from) != NULL;
  if (to_card && from_card)
    COUNT(between, bytes);
  else if (to_card)
    COUNT(to_card, bytes);
  else if (from_card)
    COUNT(to_host, bytes);
  if (at_once || to_card == from_card) return;
  if (host_find(to_card ? from : to))
    COUNT(pinned, bytes);
  else
    COUNT(pageable, bytes);
}

static int copy(void *stream_handle, void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                size_t height, bool any_card, const char *what) {
  int error;
  struct stream *stream = stream_of(stream_handle, &error);
  if (!stream) return error;
  if (card_error(stream->card)) return card_error(stream->card);
  if (width == 0 || height == 0) return cudaSuccess;
  struct operation *operation = calloc(1, sizeof *operation);
  *operation = (struct operation){
      .run = run_copy, .what = what, .to_pitch = to_pitch, .from_pitch = from_pitch, .width = width, .height = height};
  error = resolve(stream, (uintptr_t)to, to_pitch, width, height, true, any_card, what, &operation->to);
  if (!error)
    error = resolve(stream, (uintptr_t)from, from_pitch, width, height, false, any_card, what, &operation->from);
  if (error) {
    free(operation);
    card_error_set(stream->card, error == cudaErrorIllegalAddress ? error : cudaSuccess);
    return error;
  }
  count_copy((uintptr_t)to, (uintptr_t)from, width * height, !stream_handle);
  stream_submit(stream, operation);
  return cudaSuccess;
}

static int copy_now(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                    bool any_card) {
  int error, bad;
  error = copy(NULL, to, to_pitch, from, from_pitch, width, height, any_card, "copy");
  struct stream *stream = stream_of(NULL, &bad);
  if (!error) stream_wait(stream);
  return error;
}

EXPORT cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind) {
  (void)kind;
  return remember(copy_now(to, bytes, from, bytes, bytes, 1, false));
}
EXPORT cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                                   cudaStream_t stream) {
  (void)kind;
  return remember(copy(stream, to, bytes, from, bytes, bytes, 1, false, "copy"));
}
EXPORT cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                                size_t height, enum cudaMemcpyKind kind) {
  (void)kind;
  return remember(copy_now(to, to_pitch, from, from_pitch, width, height, false));
}
EXPORT cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                                     size_t height, enum cudaMemcpyKind kind, cudaStream_t stream) {
  (void)kind;
  return remember(copy(stream, to, to_pitch, from, from_pitch, width, height, false, "2D copy"));
}
EXPORT cudaError_t cudaMemcpyPeer(void *to, int to_card, const void *from, int from_card, size_t bytes) {
  (void)to_card, (void)from_card;
  return remember(copy_now(to, bytes, from, bytes, bytes, 1, true));
}
EXPORT cudaError_t cudaMemcpyPeerAsync(void *to, int to_card, const void *from, int from_card, size_t bytes,
                                       cudaStream_t stream) {
  (void)to_card, (void)from_card;
  return remember(copy(stream, to, bytes, from, bytes, bytes, 1, true, "peer copy"));
}
static int copy_3d(const struct cudaMemcpy3DPeerParms *p, void *stream) {
  for (size_t z = 0; z < p->extent.depth; z++) {
    char *to = (char *)p->dstPtr.ptr + (p->dstPos.z + z) * p->dstPtr.pitch * p->dstPtr.ysize +
               p->dstPos.y * p->dstPtr.pitch + p->dstPos.x;
    char *from = (char *)p->srcPtr.ptr + (p->srcPos.z + z) * p->srcPtr.pitch * p->srcPtr.ysize +
                 p->srcPos.y * p->srcPtr.pitch + p->srcPos.x;
    int error = copy(stream, to, p->dstPtr.pitch, from, p->srcPtr.pitch, p->extent.width, p->extent.height, true,
                     "3D peer copy");
    if (error) return error;
  }
  return cudaSuccess;
}
EXPORT cudaError_t cudaMemcpy3DPeerAsync(const struct cudaMemcpy3DPeerParms *parameters, cudaStream_t stream) {
  return remember(copy_3d(parameters, stream));
}
EXPORT cudaError_t cudaMemcpy3DPeer(const struct cudaMemcpy3DPeerParms *parameters) {
  int bad, error = copy_3d(parameters, NULL);
  stream_wait(stream_of(NULL, &bad));
  return remember(error);
}
static int set(void *to, int value, size_t bytes, void *handle) {
  int error;
  struct stream *stream = stream_of(handle, &error);
  if (!stream) return error;
  struct operation *operation = calloc(1, sizeof *operation);
  *operation = (struct operation){.run = run_set, .what = "fill", .bytes = bytes, .value = value};
  error = resolve(stream, (uintptr_t)to, bytes, bytes, 1, true, false, "fill", &operation->to);
  if (error) {
    free(operation);
    return error;
  }
  stream_submit(stream, operation);
  return cudaSuccess;
}
EXPORT cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream) {
  return remember(set(to, value, bytes, stream));
}
EXPORT cudaError_t cudaMemset(void *to, int value, size_t bytes) {
  int bad, error = set(to, value, bytes, NULL);
  stream_wait(stream_of(NULL, &bad));
  return remember(error);
}

/* ---- streams and events ------------------------------------------------------------------------------------------ */

EXPORT cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags) {
  CHECK_CARD(chosen_card);
  *stream = (cudaStream_t)stream_new(chosen_card, !(flags & cudaStreamNonBlocking));
  return remember(cudaSuccess);
}
EXPORT cudaError_t cudaStreamCreate(cudaStream_t *stream) {
  return cudaStreamCreateWithFlags(stream, 0);
}
EXPORT cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  int error;
  struct stream *stream = stream_of(handle, &error);
  if (stream) stream_destroy(stream);
  return remember(error);
}
EXPORT cudaError_t cudaStreamQuery(cudaStream_t handle) {
  int error;
  struct stream *stream = stream_of(handle, &error);
  if (!stream) return remember(error);
  return remember(stream_idle(stream) ? cudaSuccess : cudaErrorNotReady);
}
EXPORT cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  int error;
  struct stream *stream = stream_of(handle, &error);
  if (stream) stream_wait(stream);
  return remember(error);
}
EXPORT cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event, unsigned flags) {
  (void)flags;
  int error;
  struct stream *stream = stream_of(handle, &error);
  if (stream) stream_wait_event(stream, (struct event *)event);
  return remember(error);
}
EXPORT cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags) {
  (void)flags;
  CHECK_CARD(chosen_card);
  *event = (cudaEvent_t)event_new();
  return remember(cudaSuccess);
}
EXPORT cudaError_t cudaEventCreate(cudaEvent_t *event) {
  return cudaEventCreateWithFlags(event, 0);
}
EXPORT cudaError_t cudaEventDestroy(cudaEvent_t event) {
  event_free((struct event *)event);
  return remember(cudaSuccess);
}
EXPORT cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t handle) {
  int error;
  struct stream *stream = stream_of(handle, &error);
  if (stream) event_record((struct event *)event, stream);
  return remember(error);
}
EXPORT cudaError_t cudaEventQuery(cudaEvent_t event) {
  return remember(event_done((struct event *)event) ? cudaSuccess : cudaErrorNotReady);
}
EXPORT cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  event_wait((struct event *)event);
  return remember(cudaSuccess);
}
