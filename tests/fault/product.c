/* Products when something fails in the middle: a read, a write, an allocation, or the caller who changes his mind. Each
 * must end with its own code, leave nothing that looks complete, and leave the context good for the next product.
 *
 * The kernel is 1 everywhere and B is 1, so that every element of Y = K B is the number of columns, exactly. */
#include "tests/fault/system.h"
#include "tests/support.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(condition) zlg_check((condition), #condition, __FILE__, __LINE__)

enum { SIZE = 640, TILE = 64 }; /* 10 x 10 tiles */

static zlg_context *context;

/* --- memory: counted, and refused on demand, from any thread --- */

static atomic_llong heap_live;
static atomic_llong heap_allowed = -1; /* allocations still granted; negative: any number */

static bool granted(void) {
  long long left = atomic_load(&heap_allowed);
  while (left > 0 && !atomic_compare_exchange_weak(&heap_allowed, &left, left - 1)) {
  }
  return left != 0;
}
static void *heap_allocate(void *user, size_t bytes) {
  (void)user;
  if (!granted()) return NULL;
  atomic_fetch_add(&heap_live, 1);
  return malloc(bytes);
}
static void *heap_reallocate(void *user, void *old, size_t bytes) {
  (void)user;
  return granted() ? realloc(old, bytes) : NULL;
}
static void heap_release(void *user, void *memory) {
  (void)user;
  atomic_fetch_sub(&heap_live, 1);
  free(memory);
}

/* --- one product --- */

static zlg_context_options options_here(void) {
  zlg_context_options options;
  zlg_test_context_options(&options);
  options.tile_rows = options.tile_columns = TILE;
  options.direct_seconds = 0;
  return options;
}

/* Operands: points all zero, K = 0 + 1. In memory (static) or files, written once. */
static double zeros[SIZE], ones[SIZE], result[SIZE];
static char *points_path, *ones_path, *out_path;

static int make_file(const char *path, const double *data) {
  zlg_matrix *m = NULL;
  int status = zlg_matrix_create_npy(context, &m, path, ZLG_F64, SIZE, 1, ZLG_ROW_MAJOR);
  if (status == ZLG_OK) status = zlg_matrix_write(m, 0, SIZE, 0, 1, ZLG_ROW_MAJOR, 1, data);
  if (status == ZLG_OK) status = zlg_matrix_close(m);
  zlg_matrix_release(m);
  return status;
}

struct product {
  zlg_matrix *points, *b, *y;
  zlg_operator *K;
};

static void give_back(struct product *p) {
  zlg_operator_release(p->K);
  zlg_matrix_release(p->points);
  zlg_matrix_release(p->b);
  zlg_matrix_release(p->y);
}

/* Everything there, or nothing and the status. */
static int make_product(struct product *p, bool files_in, bool file_out) {
  memset(p, 0, sizeof *p);
  memset(result, 0, sizeof result);
  zlg_kernel_spec spec;
  zlg_kernel_spec_init(&spec, ZLG_LINEAR);
  spec.offset = 1;
  int status = files_in ? zlg_matrix_open_npy(context, &p->points, points_path)
                        : zlg_matrix_wrap_const(context, &p->points, ZLG_F64, SIZE, 1, ZLG_ROW_MAJOR, 1, zeros);
  if (status == ZLG_OK)
    status = files_in ? zlg_matrix_open_npy(context, &p->b, ones_path)
                      : zlg_matrix_wrap_const(context, &p->b, ZLG_F64, SIZE, 1, ZLG_ROW_MAJOR, 1, ones);
  if (status == ZLG_OK)
    status = file_out ? zlg_matrix_create_npy(context, &p->y, out_path, ZLG_F64, SIZE, 1, ZLG_ROW_MAJOR)
                      : zlg_matrix_wrap(context, &p->y, ZLG_F64, SIZE, 1, ZLG_ROW_MAJOR, 1, result);
  if (status == ZLG_OK) status = zlg_kernel(context, &p->K, &spec, p->points, p->points);
  if (status != ZLG_OK) give_back(p);
  return status;
}

static bool all_are(const double *values, double wanted) {
  for (int i = 0; i < SIZE; i++)
    if (!(values[i] == wanted)) return false;
  return true;
}

/* After a status other than ZLG_OK the output must not appear; after ZLG_OK it must be whole. */
static void check_output(struct product *p, int status) {
  if (status == ZLG_OK) {
    zlg_matrix *m = NULL;
    ZLG_CHECK_OK(zlg_matrix_close(p->y), context);
    ZLG_CHECK_OK(zlg_matrix_open_npy(context, &m, out_path), context);
    ZLG_CHECK_OK(zlg_matrix_read(m, 0, SIZE, 0, 1, ZLG_ROW_MAJOR, 1, result), context);
    CHECK(all_are(result, SIZE));
    zlg_matrix_release(m);
    CHECK(unlink(out_path) == 0);
  }
  give_back(p);
  CHECK(access(out_path, F_OK) != 0);
}

static void check_all_is_well(void) {
  struct product p;
  ZLG_CHECK_OK(make_product(&p, true, true), context);
  int status = zlg_apply(p.K, ZLG_NOTRANS, 1, p.b, 0, p.y);
  ZLG_CHECK_OK(status, context);
  check_output(&p, status);
}

/* --- failing files --- */

static void every_failing_read_ends_the_product(void) {
  static const struct {
    int error;
    int64_t truncated;
    const char *word;
  } rows[] = {{EIO, -1, "Input/output error"}, {0, 200, "truncated while it was read"}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    for (int at = 1;; at++) {
      struct product p;
      ZLG_CHECK_OK(make_file(points_path, zeros), context);
      ZLG_CHECK_OK(make_file(ones_path, ones), context);
      ZLG_CHECK_OK(make_product(&p, true, true), context);
      zlg_arm(ZLG_CALL_PREAD, at, rows[i].error, 0, rows[i].truncated);
      int status = zlg_apply(p.K, ZLG_NOTRANS, 1, p.b, 0, p.y);
      zlg_disarm();
      bool struck = zlg_struck() > 0;
      /* A file that is cut after its last reading goes unnoticed, and rightly so. */
      if (struck && !(rows[i].error == 0 && status == ZLG_OK)) {
        ZLG_CHECK_STATUS(status, ZLG_EIO, context);
        CHECK(strstr(zlg_context_message(context), rows[i].word) != NULL);
      }
      check_output(&p, status);
      if (!struck) {
        CHECK(status == ZLG_OK && at > 20);
        break;
      }
    }
  ZLG_CHECK_OK(make_file(points_path, zeros), context);
  ZLG_CHECK_OK(make_file(ones_path, ones), context);
  check_all_is_well();
}

static void every_failing_write_ends_the_product(void) {
  for (int at = 1;; at++) {
    struct product p;
    ZLG_CHECK_OK(make_product(&p, false, true), context);
    zlg_arm(ZLG_CALL_PWRITE, at, ENOSPC, 0, -1);
    int status = zlg_apply(p.K, ZLG_NOTRANS, 1, p.b, 0, p.y);
    zlg_disarm();
    if (!zlg_struck()) {
      check_output(&p, status);
      CHECK(status == ZLG_OK && at > SIZE / TILE);
      break;
    }
    ZLG_CHECK_STATUS(status, ZLG_ENOSPC, context);
    CHECK(strstr(zlg_context_message(context), "No space left") != NULL);
    ZLG_CHECK_STATUS(zlg_matrix_close(p.y), ZLG_ENOSPC, context);
    check_output(&p, status);
  }
  check_all_is_well();
}

/* alpha = 0 reads neither A nor X, beta = 0 does not read Y: no call to the system may be made for them. */
static void what_is_not_needed_is_not_read(void) {
  struct product p;
  ZLG_CHECK_OK(make_product(&p, true, false), context);
  for (int i = 0; i < SIZE; i++) result[i] = i;
  zlg_arm(ZLG_CALL_PREAD, 0, EIO, 0, -1);
  ZLG_CHECK_OK(zlg_apply(p.K, ZLG_NOTRANS, 0, p.b, 2, p.y), context);
  zlg_disarm();
  CHECK(zlg_struck() == 0);
  for (int i = 0; i < SIZE; i++) CHECK(result[i] == 2.0 * i);
  give_back(&p);
  ZLG_CHECK_OK(make_product(&p, false, true), context);
  zlg_arm(ZLG_CALL_PREAD, 0, EIO, 0, -1);
  int status = zlg_apply(p.K, ZLG_NOTRANS, 1, p.b, 0, p.y);
  zlg_disarm();
  CHECK(zlg_struck() == 0);
  check_output(&p, status);
}

/* --- cancelling --- */

static _Atomic(zlg_request *) to_cancel;
static atomic_int writes_left;

/* In the driver's thread, before each block is written: the last one that is let through cancels. */
static void count_writes(void) {
  if (atomic_fetch_sub(&writes_left, 1) != 1) return;
  zlg_request *request;
  while (!(request = atomic_load(&to_cancel))) usleep(100);
  zlg_request_cancel(request);
}

static void a_product_cancelled_while_it_writes_is_cancelled_or_complete(void) {
  int cancelled = 0, complete = 0;
  for (int after = 1; after <= SIZE / TILE + 1; after++) {
    struct product p;
    zlg_request *request = NULL;
    ZLG_CHECK_OK(make_product(&p, false, true), context);
    atomic_store(&to_cancel, NULL);
    atomic_store(&writes_left, after);
    zlg_before_pwrite = count_writes;
    ZLG_CHECK_OK(zlg_apply_async(p.K, ZLG_NOTRANS, 1, p.b, 0, p.y, &request), context);
    atomic_store(&to_cancel, request);
    int status = zlg_request_wait(request);
    zlg_before_pwrite = NULL;
    CHECK(status == ZLG_OK || status == ZLG_ECANCELED);
    if (status == ZLG_ECANCELED) CHECK(strstr(zlg_request_message(request), "cancelled") != NULL);
    status == ZLG_OK ? complete++ : cancelled++;
    zlg_request_release(request);
    check_output(&p, status);
  }
  CHECK(cancelled >= SIZE / TILE - 1 && complete >= 1);
  check_all_is_well();
}

/* --- memory that runs out --- */

static int in_memory(void) {
  struct product p;
  int status = make_product(&p, false, false);
  if (status != ZLG_OK) return status;
  status = zlg_apply(p.K, ZLG_NOTRANS, 1, p.b, 0, p.y);
  if (status == ZLG_OK) CHECK(all_are(result, SIZE));
  give_back(&p);
  return status;
}

static int on_files(void) {
  struct product p;
  int status = make_product(&p, true, true);
  if (status != ZLG_OK) return status;
  status = zlg_apply(p.K, ZLG_TRANS, 1, p.b, 0, p.y);
  atomic_store(&heap_allowed, -1);
  check_output(&p, status);
  return status;
}

static int asynchronously(void) {
  struct product p;
  zlg_request *request = NULL;
  int status = make_product(&p, false, false);
  if (status != ZLG_OK) return status;
  status = zlg_apply_async(p.K, ZLG_NOTRANS, 1, p.b, 0, p.y, &request);
  CHECK((status == ZLG_OK) == (request != NULL));
  if (status == ZLG_OK) status = zlg_request_wait(request);
  if (status == ZLG_OK) CHECK(all_are(result, SIZE));
  zlg_request_release(request);
  give_back(&p);
  return status;
}

/* Workers keep scratch memory for the next task, one buffer each: with `kept` of them the count may go up and down. */
static void check_each_allocation(int (*run)(void), int least, int kept) {
  CHECK(run() == ZLG_OK);
  long long before = atomic_load(&heap_live);
  for (int allowed = 0;; allowed++) {
    atomic_store(&heap_allowed, allowed);
    int status = run();
    bool ran_out = atomic_exchange(&heap_allowed, -1) == 0;
    CHECK(llabs(atomic_load(&heap_live) - before) <= kept);
    if (status == ZLG_OK && !ran_out) {
      CHECK(allowed > least);
      break;
    }
    if (status == ZLG_OK) continue; /* the last one that was needed; or only what a report can do without */
    ZLG_CHECK_STATUS(status, ZLG_ENOMEM, context);
    CHECK(strlen(zlg_context_message(context)) > 0);
  }
  check_all_is_well();
}

static void products_survive_without_memory(void) {
  int workers = zlg_context_worker_count(context);
  check_each_allocation(in_memory, 100, workers);
  check_each_allocation(on_files, 100, workers);
  check_each_allocation(asynchronously, 100, workers);
}

static void contexts_survive_without_memory(void) {
  zlg_context_options options = options_here();
  for (int allowed = 0;; allowed++) {
    zlg_context *made = (zlg_context *)zeros; /* anything but NULL */
    long long before = atomic_load(&heap_live);
    atomic_store(&heap_allowed, allowed);
    int status = zlg_context_create(&made, &options);
    atomic_store(&heap_allowed, -1);
    if (status == ZLG_OK) {
      zlg_context_release(made);
      CHECK(atomic_load(&heap_live) == before);
      CHECK(allowed >= 3);
      break;
    }
    CHECK(status == ZLG_ENOMEM && made == NULL);
    CHECK(strstr(zlg_context_message(NULL), "memory") != NULL);
    CHECK(atomic_load(&heap_live) == before);
  }
  check_all_is_well();
}

/* What this thread keeps for direct products goes with the last context, although the thread lives on: the allocator
 * may be another one next time. */
static void the_last_context_gives_everything_back(void) {
  zlg_context_options options = options_here();
  double y = 0;
  zlg_context_release(context);
  CHECK(atomic_load(&heap_live) == 0);
  options.direct_seconds = INFINITY;
  for (int round = 0; round < 2; round++) {
    zlg_matrix *point = NULL, *one = NULL, *out = NULL;
    zlg_operator *K = NULL;
    zlg_kernel_spec spec;
    zlg_kernel_spec_init(&spec, ZLG_GAUSSIAN);
    CHECK(zlg_context_create(&context, &options) == ZLG_OK);
    ZLG_CHECK_OK(zlg_matrix_wrap_const(context, &point, ZLG_F64, 1, 1, ZLG_ROW_MAJOR, 1, zeros), context);
    ZLG_CHECK_OK(zlg_matrix_wrap_const(context, &one, ZLG_F64, 1, 1, ZLG_ROW_MAJOR, 1, ones), context);
    ZLG_CHECK_OK(zlg_matrix_wrap(context, &out, ZLG_F64, 1, 1, ZLG_ROW_MAJOR, 1, &y), context);
    ZLG_CHECK_OK(zlg_kernel(context, &K, &spec, point, point), context);
    ZLG_CHECK_OK(zlg_apply(K, ZLG_NOTRANS, 1, one, 0, out), context);
    CHECK(y == 1);
    zlg_operator_release(K);
    zlg_matrix_release(point);
    zlg_matrix_release(one);
    zlg_matrix_release(out);
    zlg_context_release(context);
    CHECK(atomic_load(&heap_live) == 0);
    CHECK(zlg_set_allocator(NULL) == ZLG_OK); /* the second round's scratch is another allocator's */
  }
  const zlg_allocator counting = {heap_allocate, heap_reallocate, heap_release, NULL};
  CHECK(zlg_set_allocator(&counting) == ZLG_OK);
  options = options_here();
  CHECK(zlg_context_create(&context, &options) == ZLG_OK);
  check_all_is_well();
}

int main(int argc, char **argv) {
  static const struct zlg_test_case cases[] = {
      {"every failing read ends the product", every_failing_read_ends_the_product},
      {"every failing write ends the product", every_failing_write_ends_the_product},
      {"what is not needed is not read", what_is_not_needed_is_not_read},
      {"a product cancelled while it writes is cancelled or complete",
       a_product_cancelled_while_it_writes_is_cancelled_or_complete},
      {"products survive without memory", products_survive_without_memory},
      {"contexts survive without memory", contexts_survive_without_memory},
      {"the last context gives everything back", the_last_context_gives_everything_back},
      {NULL, NULL}};
  const zlg_allocator counting = {heap_allocate, heap_reallocate, heap_release, NULL};
  if (zlg_set_allocator(&counting) != ZLG_OK) return 1;
  for (int i = 0; i < SIZE; i++) ones[i] = 1;
  points_path = zlg_test_path("points.npy");
  ones_path = zlg_test_path("ones.npy");
  out_path = zlg_test_path("out.npy");
  zlg_context_options options = options_here();
  if (zlg_context_create(&context, &options) != ZLG_OK || make_file(points_path, zeros) != ZLG_OK ||
      make_file(ones_path, ones) != ZLG_OK) {
    fprintf(stderr, "%s\n", zlg_context_message(NULL));
    return 1;
  }
  int status = zlg_test_main(argc, argv, cases);
  zlg_context_release(context);
  free(points_path);
  free(ones_path);
  free(out_path);
  long long left = atomic_load(&heap_live);
  if (left != 0) printf("%lld allocations are left\n", left);
  return status || left != 0;
}
