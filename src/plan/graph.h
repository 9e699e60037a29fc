/* Between the files of this room: tiles as StarPU knows them, tasks under way. Operators see plan.h only, and no
 * StarPU. */
#ifndef ZLG_PLAN_GRAPH_H
#define ZLG_PLAN_GRAPH_H

#include "codelets/accumulate/args.h"
#include "codelets/common/starpu_compat.h"
#include "src/plan/plan.h"

static inline int64_t min64(int64_t a, int64_t b) {
  return a < b ? a : b;
}
static inline int64_t max64(int64_t a, int64_t b) {
  return a > b ? a : b;
}
static inline int64_t ceil_div(int64_t a, int64_t b) {
  return a / b + (a % b != 0);
}

/* A tile of a matrix as StarPU knows it: in place where the matrix lies in memory, else staged through a buffer.
 * `pending` counts the tasks under way that use it, under the request's lock. */
struct zlg_tile {
  starpu_data_handle_t handle; /* NULL: empty slot */
  int64_t index;
  struct zlg_buffer buffer;
  int64_t row, rows, column, columns;
  int pending;
};

enum zlg_tile_use { ZLG_TILE_READ, ZLG_TILE_WRITE, ZLG_TILE_UPDATE };

/* Registers the block in this slot, reading it first where it is staged and used (READ, UPDATE). */
int zlg_tile_open(zlg_request *request, struct zlg_tile *tile, zlg_matrix *matrix, enum zlg_tile_use use, int64_t row,
                  int64_t rows, int64_t column, int64_t columns);
/* Waits for its tasks and unregisters; with `write` a staged tile goes to its file. The slot is empty after, whatever
 * the status. The buffer stays for the next. */
int zlg_tile_close(zlg_request *request, struct zlg_tile *tile, zlg_matrix *matrix, bool write);
void zlg_tile_free(zlg_request *request, struct zlg_tile *tile);
/* True where the matrix cannot be handed to StarPU where it lies. */
bool zlg_tile_is_staged(const zlg_matrix *matrix);

/* A task under way: lives until its end. */
#define ZLG_TASK_TILES 4
struct zlg_task {
  zlg_request *request;
  const struct zlg_codelet *codelet;
  int *pending[ZLG_TASK_TILES]; /* counters of what it uses */
  double work;
  _Alignas(16) unsigned char args[]; /* starts with struct zlg_task_head */
};
struct zlg_task *zlg_task_new(zlg_request *request, const struct zlg_codelet *codelet, const void *args, size_t bytes);
/* Waits for room in the window and submits; gives `task` back in every case. handles and modes: `count` of each. */
int zlg_task_submit(struct zlg_task *task, int64_t window, const starpu_data_handle_t *handles,
                    const enum starpu_data_access_mode *modes, int count);
/* Waits until no task of the request is under way. */
void zlg_tasks_drain(zlg_request *request);

/* The sum without tasks, in the calling thread. */
int zlg_sum_direct(const struct zlg_sum *sum, zlg_request *request);

#endif
