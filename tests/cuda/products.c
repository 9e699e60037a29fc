/* Products by the public interface on pretended cards, in many worlds: schedulers, memories that hold a part of the
 * operands only, cards that reach one another and cards that do not, streams that run late. Each world is a process;
 * right numbers and an empty report are wanted of all. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/cuda/child.h"
#include "tests/support_product.h"

/* What the next child runs. */
static struct world {
  const char *scheduler;
  int cards, cpus;
  int64_t m, n, d, r, tile_rows, tile_columns;
  bool files, some_cards;
} world;

static const struct world usual = {
    .scheduler = "lws", .m = 200, .n = 230, .d = 3, .r = 2, .tile_rows = 32, .tile_columns = 64};

static zlg_context *start(void) {
  zlg_context_options options;
  zlg_context *context = NULL;
  zlg_test_context_options(&options);
  options.cpu_workers = world.cpus;
  options.cuda_workers = world.cards;
  options.scheduler = world.scheduler;
  options.direct_seconds = 0;
  options.tile_rows = world.tile_rows;
  options.tile_columns = world.tile_columns;
  if (zlg_context_create(&context, &options) == ZLG_OK) return context;
  fprintf(stderr, "zlg_context_create: %s\n", zlg_context_message(NULL));
  exit(1);
}

/* Every card did some of it, or some card where a scheduler may rightly leave others idle. */
static void check_report(zlg_request *request) {
  zlg_report report;
  ZLG_CHECK_OK(zlg_request_report(request, &report), NULL);
  int cards = 0;
  long tasks = 0;
  for (int i = 0; i < report.worker_count; i++) {
    const bool busy = report.workers[i].worker.kind == ZLG_WORKER_CUDA && report.workers[i].tasks > 0;
    cards += busy;
    tasks += busy ? (long)report.workers[i].tasks : 0;
  }
  char text[256];
  snprintf(text, sizeof text, "%s, %d processors: %d of %d cards ran %ld tasks", world.scheduler, world.cpus, cards,
           world.cards, tasks);
  zlg_check(cards >= (world.some_cards ? 1 : world.cards), text, __FILE__, __LINE__);
}

static void product(void) {
  uint64_t state = 5;
  zlg_kernel_spec spec;
  zlg_kernel_spec_init(&spec, ZLG_GAUSSIAN);
  double lengthscale = (double)world.d;
  spec.lengthscales = &lengthscale;
  spec.lengthscale_count = 1;
  struct zlg_test_array x1 = zlg_test_array_random(ZLG_F64, world.m, world.d, ZLG_ROW_MAJOR, 0, &state, 0, 1);
  struct zlg_test_array x2 = zlg_test_array_random(ZLG_F64, world.n, world.d, ZLG_ROW_MAJOR, 0, &state, 0, 1);
  struct zlg_test_array b = zlg_test_array_random(ZLG_F64, world.n, world.r, ZLG_ROW_MAJOR, 1, &state, 0, 1);
  struct zlg_test_array y = zlg_test_array_random(ZLG_F64, world.m, world.r, ZLG_ROW_MAJOR, 1, &state, 0, 1);
  struct zlg_test_array before = zlg_test_array_copy(&y, ZLG_ROW_MAJOR, 0);
  zlg_context *context = start();
  zlg_matrix *X1 = zlg_test_array_wrap(context, &x1);
  zlg_matrix *X2 =
      world.files ? zlg_test_array_file(context, &x2, ZLG_TEST_NPY, "x2.npy") : zlg_test_array_wrap(context, &x2);
  zlg_matrix *B = zlg_test_array_wrap(context, &b), *Y = zlg_test_array_wrap(context, &y);
  zlg_operator *A = NULL;
  zlg_request *request = NULL;
  ZLG_CHECK_OK(zlg_kernel(context, &A, &spec, X1, X2), context);
  ZLG_CHECK_OK(zlg_apply_async(A, ZLG_NOTRANS, 1.5, B, -0.5, Y, &request), context);
  ZLG_CHECK_OK(zlg_request_wait(request), context);
  check_report(request);
  struct zlg_test_kernel kernel = zlg_test_kernel_new(&spec, &x1, &x2);
  ZLG_CHECK_PRODUCT(&kernel, ZLG_NOTRANS, 1.5, &b, -0.5, &before, &y);
  zlg_test_kernel_free(&kernel);
  zlg_request_release(request);
  zlg_operator_release(A);
  zlg_matrix *views[] = {X1, X2, B, Y};
  for (int i = 0; i < 4; i++) zlg_matrix_release(views[i]);
  zlg_context_release(context);
  struct zlg_test_array *arrays[] = {&x1, &x2, &b, &y, &before};
  for (int i = 0; i < 5; i++) zlg_test_array_free(arrays[i]);
}

static void check_world(const struct world *what, const char *const *environment) {
  world = *what;
  if (world.cards == 0) world.cards = zlg_test_cuda_workers();
  struct cards_child child = cards_run(environment, product);
  CARDS_CHECK_CLEAN(&child);
}

static void every_card_computes(void) {
  check_world(&usual, NULL);
}

/* Those that ask models would leave all to a processor beside these cards: they have cards only. */
static void every_scheduler(void) {
  static const char *const names[] = {"eager", "prio", "random", "ws", "dm", "dmda", "dmdar", "dmdas"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    struct world w = usual;
    w.scheduler = names[i];
    w.cpus = names[i][0] != 'd';
    w.some_cards = true;
    check_world(&w, NULL);
  }
}

static void cards_that_do_not_reach_one_another(void) {
  static const char *const islands[] = {"ZLG_CARD_PEER", "0", NULL};
  check_world(&usual, islands);
}

static void streams_that_run_late(void) {
  static const char *const slow[] = {"ZLG_CARD_DELAY_US", "3000", "ZLG_CARD_SEED", "77", NULL};
  check_world(&usual, slow);
}

static void operands_in_files(void) {
  struct world w = usual;
  w.files = true;
  check_world(&w, NULL);
}

/* The points alone are more than the cards hold: tiles must go to make room for others, and Y's must come back whole.
 */
static void more_data_than_memory(void) {
  static const char *const two[] = {"ZLG_CARD_MB", "2", NULL}, *const four[] = {"ZLG_CARD_MB", "4", NULL};
  struct world w = usual;
  w.d = 64;
  w.n = 8192;
  w.m = 48;
  w.tile_columns = 256;
  CU_ASSERT(w.n * w.d * 8 >= 4 << 20);
  w.cards = 1;
  check_world(&w, two);
  check_world(&w, four);
  w.files = true;
  check_world(&w, two);
}

static const struct zlg_test_case cases[] = {
    {"every_card_computes", every_card_computes},
    {"every_scheduler", every_scheduler},
    {"cards_that_do_not_reach_one_another", cards_that_do_not_reach_one_another},
    {"streams_that_run_late", streams_that_run_late},
    {"operands_in_files", operands_in_files},
    {"more_data_than_memory", more_data_than_memory},
    {NULL, NULL},
};
/* StarPU's threads for eight cards are many for a small machine: one world is enough there. */
static const struct zlg_test_case many_cards[] = {{"every_card_computes", every_card_computes}, {NULL, NULL}};

int main(int argc, char **argv) {
  return zlg_test_main(argc, argv, zlg_test_mode() == ZLG_TEST_CUDA8 ? many_cards : cases);
}
