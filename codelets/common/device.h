/* The way to a device: texts that travel inside the library, specialised by -D options, compiled at run time for the
 * device that is there, kept in memory and on disk. Used by codelet.c files; nothing here knows a codelet. */
#ifndef ZLG_COMMON_DEVICE_H
#define ZLG_COMMON_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "zellige/types.h"

/* The embedded texts (embed.sh): the vocabulary that goes before each, and a table by codelet name, ended by NULL. */
struct zlg_device_text {
  const char *name, *text;
};
extern const char zlg_device_vocabulary[];
extern const struct zlg_device_text zlg_device_texts[];
/* NULL for a name that has no text. */
const char *zlg_device_text(const char *name);

/* What a text is specialised for. */
struct zlg_device_profile {
  bool processor;           /* OpenCL on CPU cores: vectors inside a thread, few threads a group */
  int lanes_f32, lanes_f64; /* native vector width; 1 on a GPU */
  size_t local_bytes;       /* local memory of a group */
};
/* The profile of every CUDA card, and of OpenCL GPUs. */
extern const struct zlg_device_profile zlg_device_gpu;

/* Options of NVRTC and nvcc beside the architecture. Roots and divisions of binary32 to 1 and 2 ulp (NVIDIA's
 * programming guide) instead of rounded correctly, and no subnormal results: one special function each, and within
 * every bound that tests state. */
#define ZLG_CUDA_OPTIONS "-std=c++14", "--ftz=true", "--prec-div=false", "--prec-sqrt=false"

/* True where StarPU would find an OpenCL device (CPUs count where its environment says so) or may find a CUDA card. */
bool zlg_devices_present(bool opencl, bool cuda);

/* Compiled programs on disk: $XDG_CACHE_HOME/zellige, else ~/.cache/zellige. A key names what was compiled, for what,
 * by what. Every failure (no home, no space, a damaged or foreign file) only means compiling again. The environment's
 * ZLG_DEVICE_CACHE says when: never; always; unset or anything else: where the driver does not keep finished code
 * itself (driver_keeps). */
bool zlg_device_cache_wanted(bool driver_keeps);
struct zlg_device_key {
  uint64_t words[2];
};
#define ZLG_DEVICE_KEY_SEED                                                                                            \
  {                                                                                                                    \
    { 0xcbf29ce484222325u, 0x84222325cbf29ce4u }                                                                       \
  }
void zlg_device_key_add(struct zlg_device_key *key, const char *text);
/* The stored bytes (the caller's to zlg_free), NULL where there are none that are whole. */
void *zlg_device_cache_load(const struct zlg_device_key *key, size_t *bytes);
/* Atomic: another process sees the whole file or none. */
void zlg_device_cache_store(const struct zlg_device_key *key, const void *data, size_t bytes);

#endif
