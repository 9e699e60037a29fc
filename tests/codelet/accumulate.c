/* The end of tiled sums as StarPU runs it: the same body on every worker of the mode, against long double with a bound.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "codelets/accumulate/args.h"
#include "codelets/common/codelet.h"
#include "codelets/common/program.h"
#include "tests/support_starpu.h"

#define PARTS_LARGEST 11 /* more than StarPU keeps in a task itself, and more than one launch takes */

struct setting {
  zlg_type type;
  int64_t m, r;
  zlg_order order;
  int parts;
  double alpha, beta, filling; /* filling: what Y holds before */
};

struct sum {
  struct zlg_accumulate_args args;
  int64_t ld, lines;
  void *y, *before;
  double *parts[PARTS_LARGEST];
};

static struct sum make(const struct setting *set) {
  struct sum s = {.args = {.type = set->type,
                           .m = set->m,
                           .r = set->r,
                           .y_order = set->order,
                           .parts = set->parts,
                           .alpha = set->alpha,
                           .beta = set->beta}};
  uint64_t state = 3;
  s.ld = (set->order == ZLG_ROW_MAJOR ? set->r : set->m) + 2;
  s.lines = set->order == ZLG_ROW_MAJOR ? set->m : set->r;
  const size_t bytes = (size_t)(s.ld * s.lines) * zlg_type_size(set->type);
  s.y = malloc(bytes), s.before = malloc(bytes);
  for (int64_t i = 0; i < s.ld * s.lines; i++)
    zlg_test_set(set->type, ZLG_ROW_MAJOR, 0, s.before, 0, i, isnan(set->filling) ? NAN : zlg_test_normal(&state));
  for (int p = 0; p < set->parts; p++) {
    s.parts[p] = malloc((size_t)(set->m * set->r) * sizeof(double));
    for (int64_t i = 0; i < set->m * set->r; i++) s.parts[p][i] = zlg_test_normal(&state);
  }
  return s;
}

static void unmake(struct sum *s) {
  free(s->y), free(s->before);
  for (int p = 0; p < s->args.parts; p++) free(s->parts[p]);
}

/* Runs on copies of the accumulators, whose first may be overwritten. */
static void run_on(struct sum *s, int worker) {
  char message[1024] = "";
  struct zlg_accumulate_args *args = &s->args;
  const int64_t elements = args->m * args->r, lines = s->lines;
  int prepared = zlg_accumulate_prepare(args, message, sizeof message);
  zlg_check(prepared == ZLG_OK, message, __FILE__, __LINE__);
  if (prepared != ZLG_OK) return;
  memcpy(s->y, s->before, (size_t)(s->ld * lines) * zlg_type_size(args->type));
  starpu_data_handle_t handles[PARTS_LARGEST + 1];
  enum starpu_data_access_mode modes[PARTS_LARGEST + 1];
  double *copies[PARTS_LARGEST];
  starpu_matrix_data_register(&handles[0], STARPU_MAIN_RAM, (uintptr_t)s->y, (uint32_t)s->ld, (uint32_t)s->ld - 2,
                              (uint32_t)lines, zlg_type_size(args->type));
  modes[0] = args->beta == 0 ? STARPU_W : STARPU_RW;
  for (int p = 0; p < args->parts; p++) {
    copies[p] = malloc((size_t)elements * sizeof(double));
    memcpy(copies[p], s->parts[p], (size_t)elements * sizeof(double));
    starpu_vector_data_register(&handles[1 + p], STARPU_MAIN_RAM, (uintptr_t)copies[p], (uint32_t)elements,
                                sizeof(double));
    modes[1 + p] = p == 0 ? STARPU_RW : STARPU_R;
  }
  zlg_test_starpu_run(zlg_codelet_accumulate.codelet, &args->head, worker, handles, modes, args->parts + 1);
  for (int i = 0; i <= args->parts; i++) starpu_data_unregister(handles[i]);
  for (int p = 0; p < args->parts; p++) free(copies[p]);
}

/* Sum of `parts` terms, times alpha, plus beta Y, all in binary64, then one rounding to Y's type. */
static void check_against_reference(const struct sum *s) {
  const struct zlg_accumulate_args *args = &s->args;
  for (int64_t i = 0; i < args->m; i++)
    for (int64_t c = 0; c < args->r; c++) {
      long double sum = 0, absolute = 0;
      for (int p = 0; p < args->parts; p++) {
        sum += s->parts[p][i * args->r + c];
        absolute += fabsl((long double)s->parts[p][i * args->r + c]);
      }
      const long double y =
          args->beta == 0 ? 0
                          : args->beta * (long double)zlg_test_get(args->type, args->y_order, s->ld, s->before, i, c);
      const long double want = args->alpha * sum + y;
      const long double bound = zlg_test_gamma(args->parts + 3, ZLG_F64) * (fabsl(args->alpha) * absolute + fabsl(y)) +
                                zlg_test_roundoff(args->type) * fabsl(want) * 1.0000001L;
      ZLG_CHECK_CLOSE(zlg_test_get(args->type, args->y_order, s->ld, s->y, i, c), want, bound);
    }
}

/* What lies between the lines of Y belongs to others. */
static void check_gaps(const struct sum *s) {
  const size_t size = zlg_type_size(s->args.type), used = (size_t)s->ld - 2;
  for (int64_t line = 0; line < s->lines; line++) {
    const size_t at = ((size_t)(line * s->ld) + used) * size;
    CU_ASSERT_EQUAL(memcmp((char *)s->y + at, (char *)s->before + at, 2 * size), 0);
  }
}

static void check_sum(const struct setting *set) {
  struct sum s = make(set);
  for (int index = 0, worker; (worker = zlg_test_starpu_each(index)) >= 0; index++) {
    run_on(&s, worker);
    check_against_reference(&s);
    check_gaps(&s);
  }
  unmake(&s);
}

static const zlg_type types[] = {ZLG_F32, ZLG_F64};
static const zlg_order orders[] = {ZLG_ROW_MAJOR, ZLG_COLUMN_MAJOR};

static void every_number_of_parts(void) {
  for (int parts = 0; parts <= PARTS_LARGEST; parts++)
    check_sum(&(struct setting){types[parts % 2], 70, 3, orders[parts / 2 % 2], parts, -1.5, 0.25, 0});
}

static void every_shape(void) {
  static const int64_t sizes[] = {1, 2, 63, 64, 65};
  for (int t = 0; t < 2; t++)
    for (int o = 0; o < 2; o++)
      for (int i = 0; i < 5; i++)
        for (int j = 0; j < 5; j++) check_sum(&(struct setting){types[t], sizes[i], sizes[j], orders[o], 2, 2, -1, 0});
}

/* beta = 0 does not read Y: a NaN there does not survive. */
static void beta_zero_overwrites_nan(void) {
  for (int t = 0; t < 2; t++)
    for (int parts = 0; parts < 3; parts++) check_sum(&(struct setting){types[t], 20, 5, orders[t], parts, 3, 0, NAN});
}

static const struct zlg_test_case cases[] = {
    {"every_number_of_parts", every_number_of_parts},
    {"every_shape", every_shape},
    {"beta_zero_overwrites_nan", beta_zero_overwrites_nan},
    {NULL, NULL},
};

int main(int argc, char **argv) {
  zlg_test_starpu_init();
  starpu_profiling_status_set(STARPU_PROFILING_ENABLE);
  int status = zlg_test_main(argc, argv, cases);
#ifdef ZLG_WITH_DEVICES
  zlg_device_release();
#endif
  starpu_shutdown();
  return status;
}
