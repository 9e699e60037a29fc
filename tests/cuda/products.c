/* Products by the public interface on pretended cards, in many worlds: schedulers, memories that hold a part of the
 * operands only, cards that reach one another and cards that do not, streams that run late. Each world is a process;
 * right numbers and an empty report are wanted of all. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/cuda/child.h"
#include "tests/cuda/standin/counts.h"
#include "tests/support_product.h"

/* Of the stand-in, as an application would call CUDA's. */
int cudaHostRegister(void *memory, size_t bytes, unsigned flags);
int cudaHostUnregister(void *memory);
#define PORTABLE 1

#define BETA -0.5
#define MOST_PRODUCTS 100

enum files { NOTHING, POINTS, EVERYTHING }; /* in files */

/* What the next child runs. */
static struct world {
  const char *scheduler;
  int cards, cpus, repeat;
  int64_t m, n, d, r, tile_rows, tile_columns;
  enum files files;
  bool some_cards, pinned_by_caller, two_at_once;
  void (*check)(const struct standin_counts *before, const struct standin_counts *after);
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

/* Which cards have run tasks, over all products of a world. */
static uint64_t cards_seen;

static void note_cards(zlg_request *request) {
  zlg_report report;
  ZLG_CHECK_OK(zlg_request_report(request, &report), NULL);
  for (int i = 0; i < report.worker_count; i++)
    if (report.workers[i].worker.kind == ZLG_WORKER_CUDA && report.workers[i].tasks > 0) cards_seen |= (uint64_t)1 << i;
}

/* Every card has done some of it, or some card where a scheduler may rightly leave others idle. */
static bool cards_took_part(void) {
  return __builtin_popcountll(cards_seen) >= (world.some_cards ? 1 : world.cards);
}

static zlg_matrix *operand(zlg_context *context, struct zlg_test_array *array, enum files from, const char *name) {
  return world.files >= from ? zlg_test_array_file(context, array, ZLG_TEST_NPY, name)
                             : zlg_test_array_wrap(context, array);
}

static void apply(zlg_context *context, zlg_operator *A, zlg_matrix *B, zlg_matrix *Y, double beta) {
  zlg_request *request = NULL;
  ZLG_CHECK_OK(zlg_apply_async(A, ZLG_NOTRANS, 1.5, B, beta, Y, &request), context);
  ZLG_CHECK_OK(zlg_request_wait(request), context);
  note_cards(request);
  zlg_request_release(request);
}

/* Two requests that use the same operands at the same time. */
static void apply_twice(zlg_context *context, zlg_operator *A, zlg_matrix *B, zlg_matrix *Y, zlg_matrix *other) {
  zlg_request *requests[2] = {NULL, NULL};
  ZLG_CHECK_OK(zlg_apply_async(A, ZLG_NOTRANS, 1.5, B, BETA, Y, &requests[0]), context);
  ZLG_CHECK_OK(zlg_apply_async(A, ZLG_NOTRANS, 1.5, B, BETA, other, &requests[1]), context);
  for (int i = 0; i < 2; i++) {
    ZLG_CHECK_OK(zlg_request_wait(requests[i]), context);
    note_cards(requests[i]);
    zlg_request_release(requests[i]);
  }
}

/* Into memory that holds something, or into a new file. */
static void apply_and_fetch(zlg_context *context, zlg_operator *A, zlg_matrix *B, struct zlg_test_array *y,
                            const struct zlg_test_array *before) {
  const bool file = world.files == EVERYTHING;
  char *path = zlg_test_path("y.npy");
  zlg_matrix *Y = NULL;
  zlg_test_array_free(y);
  *y = zlg_test_array_copy(before, ZLG_ROW_MAJOR, 1);
  if (file)
    ZLG_CHECK_OK(zlg_matrix_create_npy(context, &Y, path, y->type, y->rows, y->columns, ZLG_ROW_MAJOR), context);
  else
    Y = zlg_test_array_wrap(context, y);
  if (world.two_at_once) {
    struct zlg_test_array second = zlg_test_array_copy(before, ZLG_ROW_MAJOR, 1);
    zlg_matrix *other = zlg_test_array_wrap(context, &second);
    apply_twice(context, A, B, Y, other);
    zlg_matrix_release(other);
    zlg_test_array_free(&second);
  } else {
    apply(context, A, B, Y, file ? 0 : BETA);
  }
  if (file) {
    ZLG_CHECK_OK(zlg_matrix_close(Y), context);
    zlg_matrix_release(Y);
    ZLG_CHECK_OK(zlg_matrix_open_npy(context, &Y, path), context);
    ZLG_CHECK_OK(zlg_matrix_read(Y, 0, y->rows, 0, y->columns, ZLG_ROW_MAJOR, y->ld, y->memory), context);
  }
  zlg_matrix_release(Y);
  free(path);
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
  struct zlg_test_array before = zlg_test_array_random(ZLG_F64, world.m, world.r, ZLG_ROW_MAJOR, 0, &state, 0, 1);
  struct zlg_test_array y = zlg_test_array_copy(&before, ZLG_ROW_MAJOR, 0);
  zlg_context *context = start();
  zlg_matrix *X1 = operand(context, &x1, EVERYTHING, "x1.npy"), *X2 = operand(context, &x2, POINTS, "x2.npy");
  zlg_matrix *B = operand(context, &b, EVERYTHING, "b.npy");
  zlg_operator *A = NULL;
  ZLG_CHECK_OK(zlg_kernel(context, &A, &spec, X1, X2), context);
  struct zlg_test_kernel kernel = zlg_test_kernel_new(&spec, &x1, &x2);
  if (world.pinned_by_caller) CU_ASSERT_EQUAL(cudaHostRegister(x2.memory, x2.bytes, PORTABLE), 0);
  /* Products this small may be over before a card has woken: they are repeated until the cards have met one. */
  for (int i = 0; i <= world.repeat || (!cards_took_part() && i < MOST_PRODUCTS); i++) {
    const struct standin_counts earlier = standin_counts();
    apply_and_fetch(context, A, B, &y, &before);
    const struct standin_counts now = standin_counts();
    ZLG_CHECK_PRODUCT(&kernel, ZLG_NOTRANS, 1.5, &b, world.files == EVERYTHING ? 0 : BETA, &before, &y);
    if (world.check) world.check(&earlier, &now);
  }
  char text[256];
  snprintf(text, sizeof text, "%s, %d processors: cards that ran tasks: 0x%llx of %d", world.scheduler, world.cpus,
           (unsigned long long)cards_seen, world.cards);
  zlg_check(cards_took_part(), text, __FILE__, __LINE__);
  if (world.files == NOTHING) CU_ASSERT_EQUAL(standin_counts().pinned_now, world.pinned_by_caller);
  if (world.pinned_by_caller) CU_ASSERT_EQUAL(cudaHostUnregister(x2.memory), 0);
  zlg_test_kernel_free(&kernel);
  zlg_operator_release(A);
  zlg_matrix *views[] = {X1, X2, B};
  for (int i = 0; i < 3; i++) zlg_matrix_release(views[i]);
  zlg_context_release(context);
  CU_ASSERT_EQUAL(standin_counts().pinned_now, 0);
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

/* ---- what is pinned ---------------------------------------------------------------------------------------------- */

static uint64_t operand_bytes(void) {
  return (uint64_t)((world.m + world.n) * (world.d + world.r)) * sizeof(double);
}

/* A kernel's constants, once for each card, are all that comes from memory that is not pinned. */
static bool copies_are_pinned(const struct standin_counts *before, const struct standin_counts *after) {
  printf("    copied by the cards: %llu bytes of pinned memory, %llu of other\n",
         (unsigned long long)(after->pinned - before->pinned),
         (unsigned long long)(after->pageable - before->pageable));
  return after->pageable - before->pageable <= (uint64_t)(world.cards * world.d) * sizeof(double);
}

/* The second product finds the buffers of the first. */
static void check_pinned(const struct standin_counts *before, const struct standin_counts *after) {
  static int products;
  CU_ASSERT(copies_are_pinned(before, after));
  CU_ASSERT(after->pinned - before->pinned >= operand_bytes() / 2);
  if (products++ == 0)
    CU_ASSERT(after->registered - before->registered >= 4)
  else
    CU_ASSERT_EQUAL(after->registered, before->registered)
}
static void tiles_of_files_are_pinned_once(void) {
  struct world w = usual;
  w.files = EVERYTHING;
  w.repeat = 1;
  w.check = check_pinned;
  check_world(&w, NULL);
}

/* The fault that the case before looks for, seeded: it would be seen. The numbers are right all the same. */
static void check_unpinned(const struct standin_counts *before, const struct standin_counts *after) {
  CU_ASSERT_FALSE(copies_are_pinned(before, after));
}
static void buffers_that_cannot_be_pinned(void) {
  static const char *const refused[] = {"ZLG_CARD_PIN", "0", NULL};
  struct world w = usual;
  w.files = EVERYTHING;
  w.check = check_unpinned;
  check_world(&w, refused);
}

/* The caller's own memory: points of 4 MB, which every card wants, are pinned while a request works on them. The rest
 * is small, and copied from where it lies. */
static const struct world callers = {
    .scheduler = "lws", .m = 48, .n = 8192, .d = 64, .r = 2, .tile_rows = 8, .tile_columns = 1024};

static uint64_t points_bytes(void) {
  return (uint64_t)(world.n * world.d) * sizeof(double);
}

static void check_callers(const struct standin_counts *before, const struct standin_counts *after) {
  copies_are_pinned(before, after);
  CU_ASSERT_EQUAL(after->registered - before->registered, 1);
  CU_ASSERT_EQUAL(after->unregistered - before->unregistered, 1);
  CU_ASSERT(after->pinned - before->pinned >= points_bytes());
  CU_ASSERT(after->pageable - before->pageable < points_bytes() / 2);
}
/* It is the caller's to unpin. */
static void check_pinned_by_caller(const struct standin_counts *before, const struct standin_counts *after) {
  CU_ASSERT_EQUAL(after->registered, before->registered);
  CU_ASSERT_EQUAL(after->unregistered, before->unregistered);
  CU_ASSERT(after->pinned - before->pinned >= points_bytes());
}
/* One registers it for both, or each in its turn. */
static void check_two(const struct standin_counts *before, const struct standin_counts *after) {
  CU_ASSERT(after->registered - before->registered >= 1 && after->registered - before->registered <= 2);
  CU_ASSERT_EQUAL(after->unregistered - before->unregistered, after->registered - before->registered);
  CU_ASSERT(after->pageable - before->pageable < points_bytes());
}
static void check_refused(const struct standin_counts *before, const struct standin_counts *after) {
  CU_ASSERT_EQUAL(after->registered, before->registered);
  CU_ASSERT(after->pageable - before->pageable >= points_bytes());
}
/* One card that has room for all takes everything once: pinning would take as long. */
static void check_once(const struct standin_counts *before, const struct standin_counts *after) {
  CU_ASSERT_EQUAL(after->registered, before->registered);
}

static void memory_of_the_caller_is_pinned_meanwhile(void) {
  static const char *const refused[] = {"ZLG_CARD_PIN", "0", NULL};
  struct world w = callers;
  w.repeat = 1;
  w.check = check_callers;
  check_world(&w, NULL);
  w.two_at_once = true;
  w.check = check_two;
  check_world(&w, NULL);
  w.two_at_once = false;
  w.check = check_refused;
  check_world(&w, refused);
  w.pinned_by_caller = true;
  w.check = check_pinned_by_caller;
  check_world(&w, NULL);
  w.pinned_by_caller = false;
  w.cards = 1;
  w.check = check_once;
  check_world(&w, NULL);
}

/* ---- more data than memory --------------------------------------------------------------------------------------- */

/* Points of 4 MB, which every group of blocks of rows needs once more: where a card has room they come once. */
static const struct world points = {
    .scheduler = "lws", .m = 96, .n = 8192, .d = 64, .r = 2, .tile_rows = 2, .tile_columns = 512};
static const char *const two_mb[] = {"ZLG_CARD_MB", "2", NULL}, *const ample[] = {"ZLG_CARD_MB", "64", NULL};
static const char *const two_mb_islands[] = {"ZLG_CARD_MB", "2", "ZLG_CARD_PEER", "0", NULL};

static bool came_again(const struct standin_counts *before, const struct standin_counts *after) {
  const uint64_t came = after->to_card - before->to_card + after->between - before->between;
  printf("    cards took %.1f MB of %.1f MB, gave %.1f MB; most in use %.1f MB\n", 1e-6 * (double)came,
         1e-6 * (double)operand_bytes(), 1e-6 * (double)(after->to_host - before->to_host), 1e-6 * (double)after->most);
  return (double)came > 1.1 * (double)world.cards * (double)operand_bytes();
}
static void check_eviction(const struct standin_counts *before, const struct standin_counts *after) {
  CU_ASSERT(came_again(before, after));
  CU_ASSERT(after->most <= 2 << 20);
}
static void check_no_eviction(const struct standin_counts *before, const struct standin_counts *after) {
  CU_ASSERT_FALSE(came_again(before, after));
}

static void tiles_leave_and_come_again(void) {
  struct world w = points;
  w.check = check_eviction;
  check_world(&w, two_mb);
  check_world(&w, two_mb_islands);
  w.check = check_no_eviction;
  check_world(&w, ample);
  w.check = NULL; /* it may take nearly all of the work */
  w.cpus = 1;
  w.some_cards = true;
  check_world(&w, two_mb);
}

/* More came than all cards together hold. */
static void check_departures(const struct standin_counts *before, const struct standin_counts *after) {
  came_again(before, after);
  CU_ASSERT(after->to_card - before->to_card + after->between - before->between > ((uint64_t)world.cards * 2) << 20);
}
/* A card holds a dozen of tiles. With three or four, eight cards that fetch from one another could each wait for room
 * that another's copy holds: StarPU then tries for ever. */
static void tiles_leave_many_cards(void) {
  struct world w = points;
  w.m = 32;
  w.tile_columns = 256;
  w.check = check_departures;
  check_world(&w, two_mb_islands);
}

static void tiles_leave_under_every_scheduler(void) {
  static const char *const names[] = {"eager", "ws", "dmda", "dmdas"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    struct world w = points;
    w.scheduler = names[i];
    w.cards = 1;
    w.check = check_eviction;
    check_world(&w, two_mb);
  }
}

static void tiles_of_files_leave(void) {
  struct world w = points;
  w.cards = 1;
  w.files = EVERYTHING;
  check_world(&w, two_mb);
}

/* Sums under way that are more than the card holds: they are written back, and come again for their next task. */
static bool sums_went(const struct standin_counts *before, const struct standin_counts *after) {
  return (double)(after->to_host - before->to_host) > 1.1 * (double)(world.m * world.r) * sizeof(double);
}
static void check_sums_went(const struct standin_counts *before, const struct standin_counts *after) {
  CU_ASSERT(came_again(before, after));
  CU_ASSERT(sums_went(before, after));
}
static void check_sums_stayed(const struct standin_counts *before, const struct standin_counts *after) {
  CU_ASSERT_FALSE(sums_went(before, after));
}
static void sums_leave_and_come_again(void) {
  struct world w = points;
  w.cards = 1;
  w.m = 96;
  w.n = 512;
  w.d = 4;
  w.r = 1024;
  w.tile_rows = 8;
  w.tile_columns = 16;
  w.check = check_sums_went;
  check_world(&w, two_mb);
  w.check = check_sums_stayed;
  check_world(&w, ample);
}

static const struct zlg_test_case cases[] = {
    {"every_card_computes", every_card_computes},
    {"every_scheduler", every_scheduler},
    {"cards_that_do_not_reach_one_another", cards_that_do_not_reach_one_another},
    {"streams_that_run_late", streams_that_run_late},
    {"tiles_of_files_are_pinned_once", tiles_of_files_are_pinned_once},
    {"buffers_that_cannot_be_pinned", buffers_that_cannot_be_pinned},
    {"memory_of_the_caller_is_pinned_meanwhile", memory_of_the_caller_is_pinned_meanwhile},
    {"tiles_leave_and_come_again", tiles_leave_and_come_again},
    {"tiles_leave_under_every_scheduler", tiles_leave_under_every_scheduler},
    {"tiles_of_files_leave", tiles_of_files_leave},
    {"sums_leave_and_come_again", sums_leave_and_come_again},
    {NULL, NULL},
};
/* StarPU's threads for eight cards are many for a small machine: a few worlds are enough there. */
static const struct zlg_test_case many_cards[] = {
    {"every_card_computes", every_card_computes},
    {"tiles_leave_many_cards", tiles_leave_many_cards},
    {NULL, NULL},
};

int main(int argc, char **argv) {
  return zlg_test_main(argc, argv, zlg_test_mode() == ZLG_TEST_CUDA8 ? many_cards : cases);
}
