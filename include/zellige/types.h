/* Element types, storage orders and operations: the few words shared by all objects. */
#ifndef ZELLIGE_TYPES_H
#define ZELLIGE_TYPES_H

#include <stddef.h>
#include <stdint.h>

#include "zellige/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum zlg_type {
  ZLG_F32 = 1, /* IEEE 754 binary32 */
  ZLG_F64 = 2  /* IEEE 754 binary64 */
} zlg_type;

/* Where element (i, k) of a matrix lies: ROW_MAJOR at i*ld + k (ld >= columns), COLUMN_MAJOR at i + k*ld (ld >= rows).
 */
typedef enum zlg_order { ZLG_ROW_MAJOR = 1, ZLG_COLUMN_MAJOR = 2 } zlg_order;

/* op(A): A itself or its transpose. */
typedef enum zlg_op { ZLG_NOTRANS = 1, ZLG_TRANS = 2 } zlg_op;

/* Kinds of workers: StarPU's CPU cores, OpenCL devices, CUDA devices. */
typedef enum zlg_worker_kind { ZLG_WORKER_CPU = 1, ZLG_WORKER_OPENCL = 2, ZLG_WORKER_CUDA = 3 } zlg_worker_kind;

/* Bytes of one element; 0 for a value that is no type. */
ZLG_API size_t zlg_type_size(zlg_type type);
/* "f32", "f64"; NULL for a value that is no type. */
ZLG_API const char *zlg_type_name(zlg_type type);
/* "cpu", "opencl", "cuda"; NULL for a value that is no kind. */
ZLG_API const char *zlg_worker_kind_name(zlg_worker_kind kind);

/* All memory of the library comes from these three (StarPU's own and the drivers' excepted). Each gets the caller's
 * pointer back; NULL members or a NULL table mean malloc, realloc, free. To be set before the first context is made. */
typedef struct zlg_allocator {
  void *(*allocate)(void *user, size_t bytes);
  void *(*reallocate)(void *user, void *old, size_t bytes);
  void (*release)(void *user, void *memory);
  void *user;
} zlg_allocator;
/* Returns ZLG_ESTATE while a context exists, ZLG_EINVAL where only some of the three functions are given. */
ZLG_API int zlg_set_allocator(const zlg_allocator *allocator);

#ifdef __cplusplus
}
#endif
#endif
