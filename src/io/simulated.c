/* Matrices without data, for simulations: in memory a stretch of addresses that nothing lies behind, on disk a store
 * that takes the described disk's time and touches nothing. */
#include "config.h"

#include <string.h>
#include <sys/mman.h>

#include "src/core/error.h"
#include "src/core/matrix.h"
#include "src/core/memory.h"
#include "src/core/simulation.h"
#include "zellige/simulation.h"

static int pass_read(const zlg_matrix *matrix, int64_t offset, int64_t bytes, void *to) {
  (void)matrix, (void)offset, (void)to;
  zlg_simulated_sleep((double)bytes / zlg_simulated_machine.disk_read);
  return ZLG_OK;
}

static int pass_write(zlg_matrix *matrix, int64_t offset, int64_t bytes, const void *from) {
  (void)matrix, (void)offset, (void)from;
  zlg_simulated_sleep((double)bytes / zlg_simulated_machine.disk_write);
  return ZLG_OK;
}

static void release_disk(zlg_matrix *matrix) {
  (void)matrix;
}

/* What sets two of them apart, as the number of its file does for others. */
static uint64_t next_number(void) {
  static uint64_t number;
  return ++number;
}

static const struct zlg_store_ops disk_ops = {.read = pass_read, .write = pass_write, .release = release_disk};

static int put_on_disk(zlg_matrix *matrix) {
  if (!(zlg_simulated_machine.disk_read > 0 && zlg_simulated_machine.disk_write > 0))
    return zlg_fail(matrix->context, ZLG_EINVAL, "zlg_matrix_simulated: the described machine has no disk");
  matrix->ops = &disk_ops;
  matrix->inode = next_number();
  matrix->path = "the simulated disk";
  return ZLG_OK;
}

/* Reserved addresses take no memory, are nobody else's, and whoever follows one by mistake is stopped. */
static void release_memory(zlg_matrix *matrix) {
  if (matrix->store) munmap(matrix->store, (size_t)zlg_matrix_span(matrix));
}

static int nothing_there(const zlg_matrix *matrix) {
  return zlg_fail(matrix->context, ZLG_ENOTSUP, "this matrix is simulated: it holds no data");
}

static int refuse_read(const zlg_matrix *matrix, int64_t offset, int64_t bytes, void *to) {
  (void)offset, (void)bytes, (void)to;
  return nothing_there(matrix);
}

static int refuse_write(zlg_matrix *matrix, int64_t offset, int64_t bytes, const void *from) {
  (void)offset, (void)bytes, (void)from;
  return nothing_there(matrix);
}

static const struct zlg_store_ops memory_ops = {.read = refuse_read, .write = refuse_write, .release = release_memory};

static int put_in_memory(zlg_matrix *matrix) {
  int64_t span = zlg_matrix_span(matrix);
  if (span == 0) return ZLG_OK;
  void *reserved = mmap(NULL, (size_t)span, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED)
    return zlg_fail(matrix->context, ZLG_ENOMEM, "zlg_matrix_simulated: no %lld bytes of addresses are left",
                    (long long)span);
  matrix->store = matrix->data = reserved;
  matrix->ops = &memory_ops;
  matrix->inode = next_number();
  return ZLG_OK;
}

int zlg_matrix_simulated(zlg_context *context, zlg_matrix **matrix, zlg_type type, int64_t rows, int64_t columns,
                         zlg_order order, zlg_storage storage) {
  static const char what[] = "zlg_matrix_simulated";
  zlg_matrix *made = NULL;
  if (matrix) *matrix = NULL;
  if (!ZLG_SIMULATED)
    return zlg_fail(context, ZLG_ENOTSUP, "%s: this library computes; one built by ./bootstrap simgrid simulates",
                    what);
  if (storage != ZLG_IN_MEMORY && storage != ZLG_ON_DISK)
    return zlg_fail(context, ZLG_EINVAL, "%s: storage = %d; expected ZLG_IN_MEMORY or ZLG_ON_DISK", what, (int)storage);
  int64_t ld = zlg_matrix_least_ld(rows, columns, order);
  int status = zlg_matrix_new(context, what, matrix ? &made : NULL, type, rows, columns, order, ld);
  if (status != ZLG_OK) return status;
  status = storage == ZLG_ON_DISK ? put_on_disk(made) : put_in_memory(made);
  if (status != ZLG_OK) {
    zlg_matrix_release(made);
    return status;
  }
  made->writable = true;
  *matrix = made;
  return ZLG_OK;
}
