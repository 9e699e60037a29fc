/* Chains of Kronecker factors as StarPU runs them: the same body on every worker of the mode, against long double with
 * a bound. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "codelets/common/codelet.h"
#include "codelets/common/program.h"
#include "codelets/kron_factor/args.h"
#include "tests/support_starpu.h"

/* One task: operands in arrays of their own, with leading dimensions larger than need be and NaN in the gaps. */
struct task {
  struct zlg_kron_factor_args args;
  int64_t k, l, ldx, ldy, factor_elements, y_elements;
  void *x, *factors, *y, *before;
};

struct setting {
  zlg_type type;
  int count, p[12], q[12];
  int turn[12]; /* none: the last factor first */
  zlg_order x_order, y_order;
  double alpha, beta;
};

static void set(zlg_type type, void *data, int64_t i, double value) {
  zlg_test_set(type, ZLG_ROW_MAJOR, 0, data, 0, i, value);
}

static double get(zlg_type type, const void *data, int64_t i) {
  return zlg_test_get(type, ZLG_ROW_MAJOR, 0, data, 0, i);
}

static void *all_nan(zlg_type type, int64_t count) {
  void *data = malloc((size_t)count * zlg_type_size(type));
  for (int64_t i = 0; i < count; i++) set(type, data, i, NAN);
  return data;
}

/* Values that a sum of some thousand products of them holds exactly in either type: -2 … 2, half of the factors' zero.
 */
static double small_integer(uint64_t *state) {
  return floor(5 * zlg_test_uniform(state)) - 2;
}

static void *block(zlg_type type, int64_t vectors, int64_t elements, zlg_order order, int64_t *ld, bool filled,
                   bool integers, uint64_t *state, int64_t *length) {
  const int64_t lines = order == ZLG_ROW_MAJOR ? vectors : elements;
  *ld = (order == ZLG_ROW_MAJOR ? elements : vectors) + 3;
  *length = *ld * (lines > 0 ? lines : 1);
  void *data = all_nan(type, *length);
  for (int64_t v = 0; v < vectors; v++)
    for (int64_t e = 0; filled && e < elements; e++)
      zlg_test_set(type, order, *ld, data, v, e, integers ? small_integer(state) : zlg_test_normal(state));
  return data;
}

static struct task make(const struct setting *set_up, int64_t vectors, bool integers) {
  struct task t = {.k = 1, .l = 1};
  uint64_t state = 1 + (uint64_t)vectors;
  struct zlg_kron_factor_args *args = &t.args;
  *args = (struct zlg_kron_factor_args){.type = set_up->type,
                                        .count = set_up->count,
                                        .vectors = vectors,
                                        .x_order = set_up->x_order ? set_up->x_order : ZLG_ROW_MAJOR,
                                        .y_order = set_up->y_order ? set_up->y_order : ZLG_ROW_MAJOR,
                                        .alpha = set_up->alpha != 0 ? set_up->alpha : 1,
                                        .beta = set_up->beta};
  bool told = false;
  for (int i = 0; i < args->count; i++) told = told || set_up->turn[i] != 0;
  for (int i = 0; i < args->count; i++) {
    args->p[i] = set_up->p[i], args->q[i] = set_up->q[i];
    args->turn[i] = (int8_t)(told ? set_up->turn[i] : args->count - 1 - i);
    t.k *= args->p[i], t.l *= args->q[i], t.factor_elements += (int64_t)args->p[i] * args->q[i];
  }
  int64_t unused;
  t.x = block(args->type, vectors, t.k, args->x_order, &t.ldx, true, integers, &state, &unused);
  t.before = block(args->type, vectors, t.l, args->y_order, &t.ldy, args->beta != 0, integers, &state, &t.y_elements);
  t.y = malloc((size_t)t.y_elements * zlg_type_size(args->type));
  t.factors = all_nan(args->type, t.factor_elements);
  for (int64_t i = 0; i < t.factor_elements; i++)
    set(args->type, t.factors, i, integers ? small_integer(&state) : zlg_test_normal(&state));
  return t;
}

static void unmake(struct task *t) {
  free(t->x), free(t->factors), free(t->y), free(t->before);
}

static void register_block(starpu_data_handle_t *handle, void *data, int64_t vectors, int64_t elements, zlg_order order,
                           int64_t ld, zlg_type type) {
  if (vectors == 0) vectors = 1; /* StarPU's devices have no empty buffers */
  const int64_t nx = order == ZLG_ROW_MAJOR ? elements : vectors, ny = order == ZLG_ROW_MAJOR ? vectors : elements;
  starpu_matrix_data_register(handle, STARPU_MAIN_RAM, (uintptr_t)data, (uint32_t)ld, (uint32_t)nx, (uint32_t)ny,
                              zlg_type_size(type));
}

/* Y as it was, then the task on that StarPU worker. */
static void run_on(struct task *t, int worker) {
  char message[1024] = "";
  struct zlg_kron_factor_args *args = &t->args;
  int prepared =
      zlg_codelet_kron_factor.prepare ? zlg_codelet_kron_factor.prepare(args, message, sizeof message) : ZLG_OK;
  zlg_check(prepared == ZLG_OK, message, __FILE__, __LINE__);
  if (prepared != ZLG_OK) return;
  memcpy(t->y, t->before, (size_t)t->y_elements * zlg_type_size(args->type));
  starpu_data_handle_t handles[3];
  register_block(&handles[0], t->x, args->vectors, t->k, args->x_order, t->ldx, args->type);
  starpu_vector_data_register(&handles[1], STARPU_MAIN_RAM, (uintptr_t)t->factors, (uint32_t)t->factor_elements,
                              zlg_type_size(args->type));
  register_block(&handles[2], t->y, args->vectors, t->l, args->y_order, t->ldy, args->type);
  const enum starpu_data_access_mode modes[] = {STARPU_R, STARPU_R,
                                                args->beta != 0 || args->vectors == 0 ? STARPU_RW : STARPU_W};
  zlg_test_starpu_run(zlg_codelet_kron_factor.codelet, &args->head, worker, handles, modes, 3);
  for (int i = 0; i < 3; i++) starpu_data_unregister(handles[i]);
}

/* One vector contracted with the factors (or with their absolute values), in long double; the caller's to free. */
static long double *contracted(const struct task *t, int64_t vector, bool absolute) {
  const struct zlg_kron_factor_args *args = &t->args;
  long double *from = malloc((size_t)t->k * sizeof *from);
  for (int64_t e = 0; e < t->k; e++) {
    from[e] = zlg_test_get(args->type, args->x_order, t->ldx, t->x, vector, e);
    if (absolute) from[e] = fabsl(from[e]);
  }
  int64_t lead = 1, trail = t->k, factor = 0;
  for (int i = 0; i < args->count; i++) {
    const int64_t p = args->p[i], q = args->q[i];
    trail /= p;
    long double *to = calloc((size_t)(lead * q * trail), sizeof *to);
    for (int64_t a = 0; a < lead; a++)
      for (int64_t r = 0; r < p; r++)
        for (int64_t j = 0; j < q; j++) {
          const long double f = get(args->type, t->factors, factor + r * q + j);
          for (int64_t b = 0; b < trail; b++)
            to[(a * q + j) * trail + b] += (absolute ? fabsl(f) : f) * from[(a * p + r) * trail + b];
        }
    free(from);
    from = to, lead *= q, factor += p * q;
  }
  return from;
}

/* |y computed - y|. Contracting p elements makes a relative error of at most gamma_p of the same sum of absolute
 * values, and one contraction after the other the sum of theirs. Factors multiplied together first have a rounding more
 * and a longer sum; alpha and beta add three roundings. */
static void check_vector(const struct task *t, int64_t vector) {
  const struct zlg_kron_factor_args *args = &t->args;
  long double *want = contracted(t, vector, false), *sizes = contracted(t, vector, true);
  double terms = args->count + 16;
  for (int i = 0; i < args->count; i++) terms += args->p[i];
  const long double gamma = zlg_test_gamma(terms, args->type), u = zlg_test_roundoff(args->type);
  for (int64_t e = 0; e < t->l; e++) {
    const long double before =
        args->beta != 0 ? args->beta * zlg_test_get(args->type, args->y_order, t->ldy, t->before, vector, e) : 0;
    const double found = zlg_test_get(args->type, args->y_order, t->ldy, t->y, vector, e);
    ZLG_CHECK_CLOSE(found, args->alpha * want[e] + before,
                    gamma * fabsl(args->alpha) * sizes[e] + 3 * u * fabsl(before));
  }
  free(want), free(sizes);
}

/* Every gap of Y is as it was. */
static bool gaps_untouched(const struct task *t) {
  const struct zlg_kron_factor_args *args = &t->args;
  const int64_t length = args->y_order == ZLG_ROW_MAJOR ? t->l : args->vectors;
  for (int64_t i = 0; i < t->y_elements; i++)
    if (i % t->ldy >= length && !isnan(get(args->type, t->y, i))) return false;
  return true;
}

/* On each worker: the first, a middle and the last vectors against the reference; all devices of a kind must give the
 * same bits, and so they do for the vectors in between. */
static void check_task(const struct setting *set_up, int64_t vectors) {
  struct task t = make(set_up, vectors, false);
  const size_t bytes = (size_t)t.y_elements * zlg_type_size(set_up->type);
  void *device = malloc(bytes);
  for (int index = 0, worker; (worker = zlg_test_starpu_each(index)) >= 0; index++) {
    run_on(&t, worker);
    CU_ASSERT(gaps_untouched(&t));
    if (index > 0 && index < zlg_test_device_workers()) {
      CU_ASSERT_EQUAL(memcmp(device, t.y, bytes), 0);
      continue;
    }
    for (int64_t v = 0; v < vectors; v += v < 2 || v >= vectors - 3 || vectors < 20 ? 1 : (vectors - 5) / 3 + 1)
      check_vector(&t, v);
    memcpy(device, t.y, bytes);
  }
  free(device);
  unmake(&t);
}

static void check_shape(const struct setting *set_up) {
  static const int64_t vectors[] = {1, 3, 40};
  for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) check_task(set_up, vectors[i]);
}

/* A second each to compile on PoCL, so each setting has several things to show. */
static void equal_factors(void) {
  check_shape(&(struct setting){.type = ZLG_F32, .count = 3, .p = {8, 8, 8}, .q = {8, 8, 8}});
}

static void ragged_factors(void) {
  check_shape(&(struct setting){.type = ZLG_F64, .count = 4, .p = {5, 3, 4, 1}, .q = {7, 2, 1, 6}, .beta = 1});
  check_shape(&(struct setting){.type = ZLG_F32,
                                .count = 3,
                                .p = {12, 5, 9},
                                .q = {10, 11, 3},
                                .turn = {1, 0, 2},
                                .x_order = ZLG_COLUMN_MAJOR,
                                .y_order = ZLG_COLUMN_MAJOR,
                                .alpha = 0.5});
}

/* The block is turned round by the launch with the last factor: the first of two here, and the only one below. */
static void rows_to_columns(void) {
  check_shape(&(struct setting){.type = ZLG_F32,
                                .count = 3,
                                .p = {20, 33, 6},
                                .q = {17, 34, 5},
                                .turn = {2, 0, 1},
                                .x_order = ZLG_ROW_MAJOR,
                                .y_order = ZLG_COLUMN_MAJOR,
                                .beta = -2});
}

static void columns_to_rows(void) {
  check_shape(&(struct setting){.type = ZLG_F64,
                                .count = 2,
                                .p = {16, 16},
                                .q = {16, 16},
                                .x_order = ZLG_COLUMN_MAJOR,
                                .y_order = ZLG_ROW_MAJOR,
                                .alpha = -1.5,
                                .beta = 0.75});
}

/* Too large for a GPU's local memory, one factor at a time: the last one, and one before a short trail. */
static void large_factors(void) {
  check_shape(&(struct setting){.type = ZLG_F64,
                                .count = 2,
                                .p = {65, 36},
                                .q = {70, 75},
                                .x_order = ZLG_COLUMN_MAJOR,
                                .y_order = ZLG_ROW_MAJOR,
                                .beta = 1});
}

/* Too large for a processor's share of local memory too. */
static void a_huge_factor(void) {
  check_task(&(struct setting){.type = ZLG_F32, .count = 2, .p = {1, 261}, .q = {2, 259}, .alpha = 3}, 37);
}

/* More factors than a launch takes, and more vectors than go through the launches at once. */
static void many_factors_and_vectors(void) {
  const struct setting set_up = {
      .type = ZLG_F32, .count = 11, .p = {2, 2, 2, 3, 2, 2, 2, 2, 2, 2, 1}, .q = {2, 2, 2, 2, 2, 3, 2, 2, 2, 1, 2}};
  check_task(&set_up, 1);
  check_task(&set_up, 400);
}

/* Small integers: exact, so that a product missed, doubled or misplaced cannot hide behind a bound. */
static void integers_are_exact(void) {
  const struct setting set_up = {.type = ZLG_F32, .count = 3, .p = {8, 8, 8}, .q = {8, 8, 8}};
  struct task t = make(&set_up, 9, true);
  for (int index = 0, worker; (worker = zlg_test_starpu_each(index)) >= 0; index++) {
    run_on(&t, worker);
    for (int64_t v = 0; v < 9; v++) {
      long double *want = contracted(&t, v, false);
      for (int64_t e = 0; e < t.l; e++)
        ZLG_CHECK_CLOSE(zlg_test_get(ZLG_F32, t.args.y_order, t.ldy, t.y, v, e), want[e], 0);
      free(want);
    }
  }
  unmake(&t);
}

static void nan_stays_in_its_vector(void) {
  const struct setting set_up = {.type = ZLG_F32, .count = 3, .p = {8, 8, 8}, .q = {8, 8, 8}};
  struct task t = make(&set_up, 40, false);
  zlg_test_set(ZLG_F32, t.args.x_order, t.ldx, t.x, 17, 300, NAN);
  for (int index = 0, worker; (worker = zlg_test_starpu_each(index)) >= 0; index++) {
    run_on(&t, worker);
    for (int64_t v = 0; v < 40; v++)
      for (int64_t e = 0; e < t.l; e++)
        zlg_check(!isnan(zlg_test_get(ZLG_F32, t.args.y_order, t.ldy, t.y, v, e)) == (v != 17), "NaN elsewhere",
                  __FILE__, __LINE__);
  }
  unmake(&t);
}

static void no_vectors(void) {
  const struct setting set_up = {.type = ZLG_F32, .count = 3, .p = {8, 8, 8}, .q = {8, 8, 8}};
  struct task t = make(&set_up, 0, false);
  for (int index = 0, worker; (worker = zlg_test_starpu_each(index)) >= 0; index++) {
    run_on(&t, worker);
    for (int64_t i = 0; i < t.y_elements; i++) CU_ASSERT(isnan(get(ZLG_F32, t.y, i)));
  }
  unmake(&t);
}

static const struct zlg_test_case cases[] = {
    {"equal_factors", equal_factors},
    {"ragged_factors", ragged_factors},
    {"rows_to_columns", rows_to_columns},
    {"columns_to_rows", columns_to_rows},
    {"large_factors", large_factors},
    {"a_huge_factor", a_huge_factor},
    {"many_factors_and_vectors", many_factors_and_vectors},
    {"integers_are_exact", integers_are_exact},
    {"nan_stays_in_its_vector", nan_stays_in_its_vector},
    {"no_vectors", no_vectors},
    {NULL, NULL},
};

/* On pretended cards, whose groups of 128 threads and more PoCL takes seconds to compile: every argument and kind of
 * launch once. */
static const struct zlg_test_case card_cases[] = {
    {"large_factors", large_factors},
    {"integers_are_exact", integers_are_exact},
    {"nan_stays_in_its_vector", nan_stays_in_its_vector},
    {"no_vectors", no_vectors},
    {NULL, NULL},
};

int main(int argc, char **argv) {
  zlg_test_starpu_init();
  starpu_profiling_status_set(STARPU_PROFILING_ENABLE);
  int status = zlg_test_main(argc, argv, zlg_test_pretended_cards() ? card_cases : cases);
#ifdef ZLG_WITH_DEVICES
  zlg_device_release();
#endif
  starpu_shutdown();
  return status;
}
