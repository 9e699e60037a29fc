/* Requests: waiting, testing, cancelling, progress, and a report whose sums agree. */
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support_product.h"

#define CHECK(condition) zlg_check((condition), #condition, __FILE__, __LINE__)

/* A product of ones: Y = n where all points are one. Long enough to be cancelled in the middle, or short. */
struct product {
  zlg_context *context;
  int64_t points;
  struct zlg_test_array x, b, y;
  zlg_matrix *X, *B, *Y;
  zlg_operator *A;
};

static struct product product_new(int64_t points, int64_t tile, zlg_progress_fn progress, void *user) {
  struct product p = {.points = points};
  zlg_context_options options;
  zlg_kernel_spec spec;
  zlg_test_context_options(&options);
  options.tile_rows = options.tile_columns = tile;
  options.direct_seconds = 0;
  options.progress = progress;
  options.progress_user = user;
  ZLG_CHECK_OK(zlg_context_create(&p.context, &options), NULL);
  if (p.context == NULL) exit(1);
  zlg_kernel_spec_init(&spec, ZLG_RATIONAL_QUADRATIC);
  p.x = zlg_test_array_new(ZLG_F64, points, 3, ZLG_ROW_MAJOR, 0);
  p.b = zlg_test_array_new(ZLG_F64, points, 1, ZLG_ROW_MAJOR, 0);
  p.y = zlg_test_array_new(ZLG_F64, points, 1, ZLG_ROW_MAJOR, 0);
  zlg_test_array_fill(&p.b, 1);
  zlg_test_array_fill(&p.y, -1);
  p.X = zlg_test_array_wrap(p.context, &p.x);
  p.B = zlg_test_array_wrap(p.context, &p.b);
  p.Y = zlg_test_array_wrap(p.context, &p.y);
  ZLG_CHECK_OK(zlg_kernel(p.context, &p.A, &spec, p.X, p.X), p.context);
  return p;
}

static void product_free(struct product *p) {
  zlg_operator_release(p->A);
  zlg_matrix_release(p->X);
  zlg_matrix_release(p->B);
  zlg_matrix_release(p->Y);
  zlg_test_array_free(&p->x);
  zlg_test_array_free(&p->b);
  zlg_test_array_free(&p->y);
  zlg_context_release(p->context);
}

static zlg_request *start(struct product *p) {
  zlg_request *request = NULL;
  ZLG_CHECK_OK(zlg_apply_async(p->A, ZLG_NOTRANS, 1, p->B, 0, p->Y, &request), p->context);
  return request;
}

static bool is_complete(const struct product *p) {
  for (int64_t i = 0; i < p->points; i++)
    if (zlg_test_array_get(&p->y, i, 0) != (double)p->points) return false;
  return true;
}

/* A row is as it was or finished. */
static bool is_whole_rows(const struct product *p) {
  for (int64_t i = 0; i < p->points; i++) {
    double value = zlg_test_array_get(&p->y, i, 0);
    if (value != -1 && value != (double)p->points) return false;
  }
  return true;
}

/* Some seconds of work, so that a test has the time to interfere: never finished. */
#define LONG 200000
#define LONG_TILE 512

static void waiting_twice_gives_the_same_answer(void) {
  struct product p = product_new(500, 100, NULL, NULL);
  zlg_request *request = start(&p);
  ZLG_CHECK_OK(zlg_request_wait(request), p.context);
  CHECK(is_complete(&p));
  ZLG_CHECK_OK(zlg_request_wait(request), p.context);
  int done = -1;
  ZLG_CHECK_OK(zlg_request_test(request, &done), p.context);
  CHECK(done == 1);
  CHECK(strcmp(zlg_request_message(request), "") == 0);
  zlg_request_release(request);
  product_free(&p);
}

static void testing_until_done_needs_no_wait(void) {
  struct product p = product_new(500, 100, NULL, NULL);
  zlg_request *request = start(&p);
  int done = 0;
  for (int i = 0; !done && i < 60000; i++) {
    ZLG_CHECK_OK(zlg_request_test(request, &done), p.context);
    usleep(1000);
  }
  CHECK(done == 1 && is_complete(&p));
  zlg_request_release(request);
  product_free(&p);
}

static void releasing_a_request_waits_for_it(void) {
  struct product p = product_new(1000, 100, NULL, NULL);
  zlg_request_release(start(&p));
  CHECK(is_complete(&p));
  product_free(&p);
}

static void the_callers_references_may_go_before_the_request_ends(void) {
  struct product p = product_new(1000, 100, NULL, NULL);
  zlg_request *request = start(&p);
  zlg_operator_release(p.A);
  zlg_matrix_release(p.X);
  zlg_matrix_release(p.B);
  zlg_matrix_release(p.Y);
  zlg_context_release(p.context);
  ZLG_CHECK_OK(zlg_request_wait(request), NULL);
  CHECK(is_complete(&p));
  zlg_request_release(request);
  zlg_test_array_free(&p.x);
  zlg_test_array_free(&p.b);
  zlg_test_array_free(&p.y);
}

/* The report and the trace belong to the end. */
static void a_report_before_the_end_is_refused(void) {
  struct product p = product_new(LONG, LONG_TILE, NULL, NULL);
  zlg_request *request = start(&p);
  zlg_report report;
  int64_t count;
  const zlg_trace_entry *entries;
  ZLG_CHECK_STATUS(zlg_request_report(request, &report), ZLG_ESTATE, p.context);
  CHECK(strstr(zlg_context_message(p.context), "still under way") != NULL);
  ZLG_CHECK_STATUS(zlg_request_trace(request, &count, &entries), ZLG_ESTATE, p.context);
  zlg_request_cancel(request);
  ZLG_CHECK_STATUS(zlg_request_wait(request), ZLG_ECANCELED, p.context);
  ZLG_CHECK_OK(zlg_request_report(request, &report), p.context);
  zlg_request_release(request);
  product_free(&p);
}

/* The file is finished by whoever waits for its writers, and not before. */
static void an_output_is_not_closed_while_a_request_writes_it(void) {
  struct product p = product_new(LONG, LONG_TILE, NULL, NULL);
  char *path = zlg_test_path("written.npy");
  zlg_matrix *Y = NULL;
  zlg_request *request = NULL;
  ZLG_CHECK_OK(zlg_matrix_create_npy(p.context, &Y, path, ZLG_F64, LONG, 1, ZLG_ROW_MAJOR), p.context);
  ZLG_CHECK_OK(zlg_apply_async(p.A, ZLG_NOTRANS, 1, p.B, 0, Y, &request), p.context);
  ZLG_CHECK_STATUS(zlg_matrix_close(Y), ZLG_ESTATE, p.context);
  CHECK(strstr(zlg_context_message(p.context), "zlg_matrix_close: 1 request still writes") != NULL);
  CHECK(access(path, F_OK) != 0);
  zlg_request_cancel(request);
  ZLG_CHECK_STATUS(zlg_request_wait(request), ZLG_ECANCELED, p.context);
  zlg_request_release(request);
  ZLG_CHECK_OK(zlg_apply(p.A, ZLG_NOTRANS, 0, p.B, 0, Y), p.context);
  ZLG_CHECK_OK(zlg_matrix_close(Y), p.context);
  CHECK(access(path, F_OK) == 0);
  zlg_matrix_release(Y);
  product_free(&p);
  free(path);
}

/* --- cancelling --- */

static void wait_for_a_task(zlg_request *request) {
  zlg_progress progress = {0};
  for (int i = 0; progress.tasks_done == 0 && i < 60000; i++) {
    zlg_request_progress(request, &progress);
    usleep(1000);
  }
}

static void *cancel_in_a_while(void *request) {
  wait_for_a_task(request);
  zlg_request_cancel(request);
  return NULL;
}

static void check_cancelled(struct product *p, zlg_request *request) {
  ZLG_CHECK_STATUS(zlg_request_wait(request), ZLG_ECANCELED, p->context);
  ZLG_CHECK_STATUS(zlg_request_wait(request), ZLG_ECANCELED, p->context);
  CHECK(strstr(zlg_request_message(request), "cancelled") != NULL);
  CHECK(strstr(zlg_context_message(p->context), "cancelled") != NULL);
  CHECK(!is_complete(p) && is_whole_rows(p));
}

static void check_usable(struct product *p) {
  double x = 0, one = 1, y = 0;
  zlg_matrix *X = NULL, *B = NULL, *Y = NULL;
  zlg_operator *A = NULL;
  zlg_kernel_spec spec;
  zlg_kernel_spec_init(&spec, ZLG_GAUSSIAN);
  ZLG_CHECK_OK(zlg_matrix_wrap(p->context, &X, ZLG_F64, 1, 1, ZLG_ROW_MAJOR, 1, &x), p->context);
  ZLG_CHECK_OK(zlg_matrix_wrap(p->context, &B, ZLG_F64, 1, 1, ZLG_ROW_MAJOR, 1, &one), p->context);
  ZLG_CHECK_OK(zlg_matrix_wrap(p->context, &Y, ZLG_F64, 1, 1, ZLG_ROW_MAJOR, 1, &y), p->context);
  ZLG_CHECK_OK(zlg_kernel(p->context, &A, &spec, X, X), p->context);
  ZLG_CHECK_OK(zlg_test_apply(A, ZLG_NOTRANS, 3, B, 0, Y), p->context);
  CHECK(y == 3);
  zlg_operator_release(A);
  zlg_matrix_release(X);
  zlg_matrix_release(B);
  zlg_matrix_release(Y);
}

static void another_thread_cancels(void) {
  struct product p = product_new(LONG, LONG_TILE, NULL, NULL);
  zlg_request *request = start(&p);
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, cancel_in_a_while, request) == 0);
  check_cancelled(&p, request);
  pthread_join(thread, NULL);
  zlg_request_release(request);
  check_usable(&p);
  product_free(&p);
}

static zlg_request *volatile interrupted;
static void on_alarm(int number) {
  (void)number;
  zlg_request_cancel(interrupted);
}

static void a_signal_handler_cancels(void) {
  struct sigaction action = {.sa_handler = on_alarm}, kept;
  struct product p = product_new(LONG, LONG_TILE, NULL, NULL);
  zlg_request *request = start(&p);
  interrupted = request;
  sigaction(SIGALRM, &action, &kept);
  wait_for_a_task(request);
  alarm(1);
  check_cancelled(&p, request);
  sigaction(SIGALRM, &kept, NULL);
  zlg_request_release(request);
  check_usable(&p);
  product_free(&p);
}

static void a_request_cancelled_after_its_end_is_complete(void) {
  struct product p = product_new(500, 100, NULL, NULL);
  zlg_request *request = start(&p);
  ZLG_CHECK_OK(zlg_request_wait(request), p.context);
  zlg_request_cancel(request);
  ZLG_CHECK_OK(zlg_request_wait(request), p.context);
  CHECK(is_complete(&p));
  zlg_request_release(request);
  product_free(&p);
}

/* --- progress --- */

struct watch {
  int calls, cancel_at;
  bool consistent, last_is_end;
  pthread_t thread;
  double last_work;
};

static int watch_progress(void *user, const zlg_progress *progress) {
  struct watch *watch = user;
  double shares = 0;
  for (int i = 0; i < progress->worker_count; i++) shares += progress->worker_share[i];
  watch->calls++;
  watch->consistent = watch->consistent && pthread_equal(watch->thread, pthread_self()) &&
                      progress->work_done >= watch->last_work && progress->work_done <= progress->work_total &&
                      progress->tasks_done <= progress->tasks_total && progress->seconds >= 0 &&
                      (progress->work_done == 0 ? isnan(progress->seconds_left) || progress->tasks_done > 0
                                                : progress->seconds_left >= 0 && fabs(shares - 1) < 1e-9);
  watch->last_work = progress->work_done;
  watch->last_is_end = progress->work_done == progress->work_total && progress->seconds_left == 0;
  return watch->calls == watch->cancel_at;
}

static void progress_is_told_by_the_thread_that_waits_and_at_the_end(void) {
  struct watch watch = {.consistent = true, .thread = pthread_self()};
  struct product p = product_new(6000, 300, watch_progress, &watch);
  zlg_request *request = start(&p);
  ZLG_CHECK_OK(zlg_request_wait(request), p.context);
  CHECK(watch.calls >= 1 && watch.consistent && watch.last_is_end);
  zlg_request_release(request);
  watch = (struct watch){.consistent = true, .thread = pthread_self()};
  ZLG_CHECK_OK(zlg_apply(p.A, ZLG_NOTRANS, 1, p.B, 0, p.Y), p.context);
  CHECK(watch.calls >= 1 && watch.consistent && watch.last_is_end);
  CHECK(is_complete(&p));
  product_free(&p);
}

static void the_progress_function_cancels(void) {
  for (int plain = 0; plain < 2; plain++) {
    struct watch watch = {.consistent = true, .thread = pthread_self(), .cancel_at = 2};
    struct product p = product_new(LONG, LONG_TILE, watch_progress, &watch);
    if (plain) {
      ZLG_CHECK_STATUS(zlg_apply(p.A, ZLG_NOTRANS, 1, p.B, 0, p.Y), ZLG_ECANCELED, p.context);
      CHECK(!is_complete(&p) && is_whole_rows(&p));
    } else {
      zlg_request *request = start(&p);
      check_cancelled(&p, request);
      zlg_request_release(request);
    }
    CHECK(watch.calls >= 2);
    product_free(&p);
  }
}

/* --- reports --- */

static void check_trace(zlg_request *request, const zlg_report *report, const zlg_context *context) {
  int64_t count = 0;
  const zlg_trace_entry *entries = NULL;
  double work = 0, previous = 0;
  ZLG_CHECK_OK(zlg_request_trace(request, &count, &entries), context);
  CHECK(count == report->tasks);
  for (int64_t i = 0; i < count; i++) {
    CHECK(entries[i].worker >= 0 && entries[i].worker < report->worker_count);
    CHECK(entries[i].codelet != NULL && *entries[i].codelet != '\0');
    CHECK(entries[i].start >= 0 && entries[i].start <= entries[i].end && entries[i].end <= report->seconds);
    CHECK(entries[i].end >= previous);
    previous = entries[i].end;
    work += entries[i].work;
  }
  CHECK(work == report->work);
}

static void the_sums_of_a_report_agree(void) {
  struct product p = product_new(6000, 300, NULL, NULL);
  zlg_request *request = start(&p);
  zlg_report report;
  ZLG_CHECK_OK(zlg_request_wait(request), p.context);
  ZLG_CHECK_OK(zlg_request_report(request, &report), p.context);
  CHECK(report.direct == 0 && report.tile_rows == 300 && report.tile_columns == 300);
  CHECK(report.tasks == 20 * 20 + 20);
  CHECK(report.work == 36e6 && strcmp(report.work_unit, "pairs") == 0);
  CHECK(report.flops > report.work && report.seconds > 0 && report.predicted_seconds > 0);
  CHECK(report.bytes_read == 0 && report.bytes_written == 0);
  CHECK(report.worker_count == zlg_context_worker_count(p.context));
  int64_t tasks = 0;
  double work = 0;
  for (int i = 0; i < report.worker_count; i++) {
    const zlg_worker_report *worker = &report.workers[i];
    tasks += worker->tasks;
    work += worker->work;
    CHECK(worker->busy >= 0 && worker->busy <= report.seconds * 1.1);
    CHECK((worker->tasks > 0) == (worker->busy > 0));
    if (worker->worker.memory_node == 0) CHECK(worker->bytes_in == 0 && worker->bytes_out == 0);
    if (worker->worker.memory_node > 0 && worker->tasks > 0) CHECK(worker->bytes_in > 0);
    zlg_test_tasks[worker->worker.kind] += worker->tasks;
  }
  CHECK(tasks == report.tasks && work == report.work);
  check_trace(request, &report, p.context);
  zlg_request_release(request);
  product_free(&p);
}

/* Every device gets all columns and a part of the rows, and gives sums back; without devices there is no bus. */
static void a_plan_says_what_passes_the_buses(void) {
  struct product p = product_new(6000, 300, NULL, NULL);
  zlg_cost cost;
  const double columns = 6000 * (3 + 1) * 8, rows = 6000 * 3 * 8, sums = 6000 * 8, devices = zlg_test_device_workers();
  ZLG_CHECK_OK(zlg_operator_cost(p.A, ZLG_NOTRANS, 1, &cost), p.context);
  if (devices == 0) {
    CHECK(cost.bytes_to_devices == 0 && cost.bytes_from_devices == 0);
  } else {
    /* 20 tiles of columns: sums change their worker at most as often. */
    CHECK(cost.bytes_to_devices > devices * columns && cost.bytes_from_devices > 0);
    CHECK(cost.bytes_to_devices < devices * (columns + rows) + 20 * sums && cost.bytes_from_devices <= 20 * sums);
  }
  product_free(&p);
}

/* alpha = 0: the last task of each block of rows is all there is to do. */
static void a_scaling_reports_no_pairs(void) {
  struct product p = product_new(1000, 100, NULL, NULL);
  zlg_request *request = NULL;
  zlg_report report;
  ZLG_CHECK_OK(zlg_apply_async(p.A, ZLG_NOTRANS, 0, p.B, 2, p.Y, &request), p.context);
  ZLG_CHECK_OK(zlg_request_wait(request), p.context);
  ZLG_CHECK_OK(zlg_request_report(request, &report), p.context);
  CHECK(report.tasks == 10 && report.work == 0);
  zlg_progress progress;
  ZLG_CHECK_OK(zlg_request_progress(request, &progress), p.context);
  CHECK(progress.tasks_done == progress.tasks_total && progress.work_done == progress.work_total);
  for (int64_t i = 0; i < p.points; i++) CHECK(zlg_test_array_get(&p.y, i, 0) == -2);
  zlg_request_release(request);
  product_free(&p);
}

static void a_direct_product_reports_no_worker(void) {
  zlg_context_options options;
  zlg_context *context = NULL;
  double x[10] = {0}, b[10], y[10];
  zlg_matrix *X = NULL, *B = NULL, *Y = NULL;
  zlg_operator *A = NULL;
  zlg_kernel_spec spec;
  zlg_request *request = NULL;
  zlg_report report;
  for (int i = 0; i < 10; i++) b[i] = 1;
  zlg_test_context_options(&options);
  ZLG_CHECK_OK(zlg_context_create(&context, &options), NULL);
  zlg_kernel_spec_init(&spec, ZLG_GAUSSIAN);
  ZLG_CHECK_OK(zlg_matrix_wrap(context, &X, ZLG_F64, 10, 1, ZLG_ROW_MAJOR, 1, x), context);
  ZLG_CHECK_OK(zlg_matrix_wrap(context, &B, ZLG_F64, 10, 1, ZLG_ROW_MAJOR, 1, b), context);
  ZLG_CHECK_OK(zlg_matrix_wrap(context, &Y, ZLG_F64, 10, 1, ZLG_ROW_MAJOR, 1, y), context);
  ZLG_CHECK_OK(zlg_kernel(context, &A, &spec, X, X), context);
  ZLG_CHECK_OK(zlg_apply_async(A, ZLG_NOTRANS, 1, B, 0, Y, &request), context);
  int done = 0;
  ZLG_CHECK_OK(zlg_request_test(request, &done), context);
  CHECK(done == 1 && y[0] == 10);
  ZLG_CHECK_OK(zlg_request_wait(request), context);
  ZLG_CHECK_OK(zlg_request_report(request, &report), context);
  CHECK(report.direct == 1 && report.worker_count == 0 && report.tasks == 0 && report.work == 100);
  zlg_request_release(request);
  zlg_operator_release(A);
  zlg_matrix_release(X);
  zlg_matrix_release(B);
  zlg_matrix_release(Y);
  zlg_context_release(context);
}

int main(int argc, char **argv) {
  static const struct zlg_test_case cases[] = {
      {"waiting_twice_gives_the_same_answer", waiting_twice_gives_the_same_answer},
      {"testing_until_done_needs_no_wait", testing_until_done_needs_no_wait},
      {"releasing_a_request_waits_for_it", releasing_a_request_waits_for_it},
      {"the_callers_references_may_go_before_the_request_ends", the_callers_references_may_go_before_the_request_ends},
      {"a_report_before_the_end_is_refused", a_report_before_the_end_is_refused},
      {"an_output_is_not_closed_while_a_request_writes_it", an_output_is_not_closed_while_a_request_writes_it},
      {"another_thread_cancels", another_thread_cancels},
      {"a_signal_handler_cancels", a_signal_handler_cancels},
      {"a_request_cancelled_after_its_end_is_complete", a_request_cancelled_after_its_end_is_complete},
      {"progress_is_told_by_the_thread_that_waits_and_at_the_end",
       progress_is_told_by_the_thread_that_waits_and_at_the_end},
      {"the_progress_function_cancels", the_progress_function_cancels},
      {"the_sums_of_a_report_agree", the_sums_of_a_report_agree},
      {"a_plan_says_what_passes_the_buses", a_plan_says_what_passes_the_buses},
      {"a_scaling_reports_no_pairs", a_scaling_reports_no_pairs},
      {"a_direct_product_reports_no_worker", a_direct_product_reports_no_worker},
      {"devices_ran_tasks", zlg_test_devices_ran_tasks},
      {NULL, NULL}};
  return zlg_test_main(argc, argv, cases);
}
