/* The kernel product as StarPU runs it: the same body on every worker of the mode, against long double with a bound. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codelets/common/codelet.h"
#include "codelets/common/program.h"
#include "codelets/kernel_product/args.h"
#include "tests/support_starpu.h"

/* One product: operands in arrays of their own, with leading dimensions larger than need be and NaN in the gaps. */
struct product {
  struct zlg_kernel_product_args args;
  zlg_kernel_spec spec;
  double *lengthscales, *w, *acc;
  void *x1, *x2, *b;
  int64_t ld1, ld2, ldb;
};

struct setting {
  zlg_kernel_kind kind;
  zlg_type type;
  int64_t m, n, d, r;
  bool per_dimension, add;
  zlg_order x1_order, x2_order, b_order;
  int degree;
  double alpha, gamma, offset, offset_of_points;
};

static void *fill(zlg_type type, int64_t rows, int64_t columns, zlg_order order, int64_t *ld, double shift,
                  double scale, uint64_t *state) {
  const int64_t length = order == ZLG_ROW_MAJOR ? columns : rows, lines = order == ZLG_ROW_MAJOR ? rows : columns;
  *ld = length + 3;
  void *data = malloc((size_t)(*ld * lines + 1) * zlg_type_size(type));
  for (int64_t i = 0; i < *ld * lines; i++) zlg_test_set(type, ZLG_ROW_MAJOR, 0, data, 0, i, NAN);
  for (int64_t i = 0; i < rows; i++)
    for (int64_t k = 0; k < columns; k++)
      zlg_test_set(type, order, *ld, data, i, k, shift + scale * zlg_test_normal(state));
  return data;
}

static struct product make(const struct setting *set) {
  struct product p = {0};
  uint64_t state = 1 + (uint64_t)set->kind + 100 * (uint64_t)set->d;
  zlg_kernel_spec_init(&p.spec, set->kind);
  p.lengthscales = malloc((size_t)set->d * sizeof(double));
  p.w = malloc((size_t)set->d * sizeof(double));
  for (int64_t k = 0; k < set->d; k++) {
    p.lengthscales[k] = sqrt((double)set->d) * (set->per_dimension ? 0.3 + 2 * zlg_test_uniform(&state) : 0.7);
    p.w[k] = 1 / p.lengthscales[k];
  }
  p.spec.lengthscales = p.lengthscales;
  p.spec.lengthscale_count = set->per_dimension ? set->d : 1;
  if (set->alpha != 0) p.spec.alpha = set->alpha;
  if (set->gamma != 0) p.spec.gamma = set->gamma;
  if (set->offset != 0) p.spec.offset = set->offset;
  if (set->kind == ZLG_POLYNOMIAL) p.spec.degree = set->degree;
  p.args = (struct zlg_kernel_product_args){.kind = set->kind,
                                            .type = set->type,
                                            .m = set->m,
                                            .n = set->n,
                                            .d = set->d,
                                            .r = set->r,
                                            .x1_order = set->x1_order ? set->x1_order : ZLG_ROW_MAJOR,
                                            .x2_order = set->x2_order ? set->x2_order : ZLG_ROW_MAJOR,
                                            .b_order = set->b_order ? set->b_order : ZLG_ROW_MAJOR,
                                            .isotropic = !set->per_dimension,
                                            .first = !set->add,
                                            .alpha = p.spec.alpha,
                                            .gamma = p.spec.gamma,
                                            .offset = p.spec.offset,
                                            .degree = p.spec.degree};
  const double shift = set->offset_of_points;
  p.x1 = fill(set->type, set->m, set->d, p.args.x1_order, &p.ld1, shift, 1, &state);
  p.x2 = fill(set->type, set->n, set->d, p.args.x2_order, &p.ld2, shift, 1, &state);
  p.b = fill(set->type, set->n, set->r, p.args.b_order, &p.ldb, 0, 1, &state);
  p.acc = malloc((size_t)(set->m * set->r) * sizeof(double));
  return p;
}

static void unmake(struct product *p) {
  free(p->lengthscales), free(p->w), free(p->acc), free(p->x1), free(p->x2), free(p->b);
}

static void register_matrix(starpu_data_handle_t *handle, void *data, int64_t rows, int64_t columns, zlg_order order,
                            int64_t ld, zlg_type type) {
  const int64_t nx = order == ZLG_ROW_MAJOR ? columns : rows, ny = order == ZLG_ROW_MAJOR ? rows : columns;
  starpu_matrix_data_register(handle, STARPU_MAIN_RAM, (uintptr_t)data, (uint32_t)ld, (uint32_t)nx, (uint32_t)ny,
                              zlg_type_size(type));
}

/* Runs the product on that StarPU worker; acc is taken over and given back. */
static void run_on(struct product *p, int worker) {
  char message[1024] = "";
  int prepared = zlg_kernel_product_prepare(&p->args, message, sizeof message);
  zlg_check(prepared == ZLG_OK, message, __FILE__, __LINE__);
  if (prepared != ZLG_OK) return;
  struct zlg_kernel_product_args *args = &p->args;
  starpu_data_handle_t handles[5];
  register_matrix(&handles[0], p->x1, args->m, args->d, args->x1_order, p->ld1, args->type);
  const int64_t n = args->n > 0 ? args->n : 1; /* StarPU's devices have no empty buffers */
  register_matrix(&handles[1], p->x2, n, args->d, args->x2_order, p->ld2, args->type);
  register_matrix(&handles[2], p->b, n, args->r, args->b_order, p->ldb, args->type);
  starpu_vector_data_register(&handles[3], STARPU_MAIN_RAM, (uintptr_t)p->w, (uint32_t)args->d, sizeof(double));
  starpu_vector_data_register(&handles[4], STARPU_MAIN_RAM, (uintptr_t)p->acc, (uint32_t)(args->m * args->r),
                              sizeof(double));
  const enum starpu_data_access_mode modes[] = {STARPU_R, STARPU_R, STARPU_R, STARPU_R,
                                                args->first ? STARPU_W : STARPU_RW};
  zlg_test_starpu_run(zlg_codelet_kernel_product.codelet, &args->head, worker, handles, modes, 5);
  for (int i = 0; i < 5; i++) starpu_data_unregister(handles[i]);
}

/* |k computed - k| for one pair. The sum of squares (absolute values) of differences of exact data, each scaled by a
 * rounded weight, carries a relative error of at most gamma_{d+8}; it reaches k through |q k'(q)| (`reach`), written
 * below per kernel; the function itself adds a few roundings, the more the larger the argument of its exponential. A
 * sum of products carries gamma_{d+4} sum |u_k v_k|. Results below the least normal number may be flushed to 0. */
static long double pair_error(const struct product *p, long double k, long double r2, long double r1,
                              long double absolute) {
  const zlg_type type = p->args.type;
  const long double g = zlg_test_gamma((double)p->args.d + 8, type), u = zlg_test_roundoff(type);
  const long double tiny = type == ZLG_F32 ? FLT_MIN : DBL_MIN;
  const long double r = sqrtl(r2), s3 = sqrtl(3) * r, s5 = sqrtl(5) * r, a = p->spec.alpha, size = fabsl(k);
  const long double base = p->spec.gamma * absolute + fabsl(p->spec.offset);
  switch (p->spec.kind) {
  case ZLG_GAUSSIAN:
    return size * (g * r2 / 2 + 4 * u) + tiny;
  case ZLG_MATERN12:
  case ZLG_EXPONENTIAL:
    return size * (g * r + 4 * u) + tiny;
  case ZLG_LAPLACIAN:
    return size * (g * r1 + 4 * u) + tiny;
  case ZLG_MATERN32:
    return size * ((g + 2 * u) * s3 + 8 * u) + tiny;
  case ZLG_MATERN52:
    return size * ((g + 2 * u) * s5 + 10 * u) + tiny;
  case ZLG_RATIONAL_QUADRATIC:
    return size * (g * fminl(r2 / 2, a) + 8 * u * (1 + fabsl(logl(size))) + 2 * a * u) + tiny;
  case ZLG_INVERSE_MULTIQUADRIC:
  case ZLG_CAUCHY:
    return size * (g + 8 * u);
  case ZLG_ENERGY:
    return r * (g + 4 * u);
  case ZLG_LINEAR:
    return g * absolute + 2 * u * size;
  case ZLG_POLYNOMIAL:
    return powl(base, p->spec.degree) * (powl(1 + g + 2 * u, p->spec.degree) * (1 + 2 * p->spec.degree * u) - 1);
  case ZLG_SIGMOID:
    return g * base + 6 * u;
  }
  return NAN;
}

/* Checks acc against `before` + K b. Sums of at most 256 terms in the operands' type, then binary64. */
static void check_against(const struct product *p, const double *before, const double *acc) {
  const struct zlg_kernel_product_args *args = &p->args;
  const size_t size = zlg_type_size(args->type);
  const int64_t step1 = args->x1_order == ZLG_ROW_MAJOR ? 1 : p->ld1,
                row1 = args->x1_order == ZLG_ROW_MAJOR ? p->ld1 : 1;
  const int64_t step2 = args->x2_order == ZLG_ROW_MAJOR ? 1 : p->ld2,
                row2 = args->x2_order == ZLG_ROW_MAJOR ? p->ld2 : 1;
  const long double summed =
      zlg_test_gamma(fmin((double)args->n, 256) + 1, args->type) + zlg_test_gamma((double)args->n + 4, ZLG_F64);
  long double *k = malloc((size_t)args->n * sizeof *k), *error = malloc((size_t)args->n * sizeof *error);
  zlg_kernel_spec l1 = p->spec, l2 = p->spec;
  l1.kind = ZLG_LAPLACIAN, l2.kind = ZLG_ENERGY;
  for (int64_t i = 0; i < args->m; i++) {
    for (int64_t j = 0; j < args->n; j++) {
      const char *x = (const char *)p->x1 + (size_t)(i * row1) * size,
                 *y = (const char *)p->x2 + (size_t)(j * row2) * size;
      const long double r = -zlg_reference_kernel(&l2, args->d, args->type, x, step1, y, step2);
      const long double r1 = -logl(zlg_reference_kernel(&l1, args->d, args->type, x, step1, y, step2));
      long double absolute = 0;
      for (int64_t c = 0; c < args->d; c++)
        absolute += fabsl((long double)zlg_test_get(args->type, ZLG_ROW_MAJOR, 0, x, 0, c * step1) *
                          zlg_test_get(args->type, ZLG_ROW_MAJOR, 0, y, 0, c * step2)) *
                    p->w[c] * p->w[c];
      k[j] = zlg_reference_kernel(&p->spec, args->d, args->type, x, step1, y, step2);
      error[j] = pair_error(p, k[j], r * r, r1, absolute);
    }
    for (int64_t c = 0; c < args->r; c++) {
      long double sum = before ? before[i * args->r + c] : 0, bound = fabsl(sum) * 0x1p-52L;
      for (int64_t j = 0; j < args->n; j++) {
        const long double b = zlg_test_get(args->type, args->b_order, p->ldb, p->b, j, c);
        sum += k[j] * b;
        bound += (error[j] * (1 + summed) + summed * fabsl(k[j])) * fabsl(b);
      }
      ZLG_CHECK_CLOSE(acc[i * args->r + c], sum, bound);
    }
  }
  free(k), free(error);
}

/* On each worker, against the reference; all devices of a kind must give the same bits. */
static void check_product(const struct setting *set) {
  struct product p = make(set);
  const size_t count = (size_t)(set->m * set->r);
  double *before = malloc(count * sizeof(double)), *device = malloc(count * sizeof(double));
  uint64_t state = 7;
  for (size_t i = 0; i < count; i++) before[i] = set->add ? zlg_test_normal(&state) : NAN;
  for (int index = 0, worker; (worker = zlg_test_starpu_each(index)) >= 0; index++) {
    memcpy(p.acc, before, count * sizeof(double));
    run_on(&p, worker);
    if (index > 0 && index < zlg_test_device_workers()) {
      CU_ASSERT_EQUAL(memcmp(device, p.acc, count * sizeof(double)), 0);
    } else {
      check_against(&p, set->add ? before : NULL, p.acc);
    }
    if (index == 0) memcpy(device, p.acc, count * sizeof(double));
  }
  free(before), free(device);
  unmake(&p);
}

static const zlg_type types[] = {ZLG_F32, ZLG_F64};

/* A second each to compile on PoCL, so a lengthscale per dimension is tried once per kind of distance. */
static void every_kernel(void) {
  for (int t = 0; t < 2; t++)
    for (int kind = ZLG_GAUSSIAN; kind <= ZLG_SIGMOID; kind++)
      if (kind != ZLG_MATERN12) /* is ZLG_EXPONENTIAL by the time it is a task */
        check_product(&(struct setting){
            .kind = (zlg_kernel_kind)kind, .type = types[t], .m = 37, .n = 131, .d = 2, .r = 1, .degree = 3});
}

static void lengthscale_per_dimension(void) {
  static const zlg_kernel_kind kinds[] = {ZLG_MATERN32, ZLG_LAPLACIAN, ZLG_POLYNOMIAL};
  for (int t = 0; t < 2; t++)
    for (int i = 0; i < 3; i++)
      check_product(&(struct setting){.kind = kinds[i],
                                      .type = types[t],
                                      .m = 37,
                                      .n = 131,
                                      .d = 3,
                                      .r = 1,
                                      .per_dimension = true,
                                      .add = true,
                                      .degree = 3});
}

static void every_dimension(void) {
  static const int64_t dimensions[] = {1, 10, 16, 17, 32, 33, 64, 65, 130};
  static const zlg_kernel_kind kinds[] = {ZLG_GAUSSIAN, ZLG_LAPLACIAN, ZLG_LINEAR};
  for (size_t i = 0; i < sizeof dimensions / sizeof *dimensions; i++)
    for (int t = 0; t < (dimensions[i] == 130 ? 2 : 1); t++)
      check_product(&(struct setting){.kind = kinds[i % 3],
                                      .type = types[(i + (size_t)t) % 2],
                                      .m = 35,
                                      .n = 70,
                                      .d = dimensions[i],
                                      .r = 1,
                                      .per_dimension = i % 2 == 0});
}

/* More dimensions than a GPU's local memory holds at once. */
static void chunks_of_dimensions(void) {
  for (int t = 0; t < 2; t++)
    check_product(&(struct setting){.kind = ZLG_GAUSSIAN, .type = types[t], .m = 35, .n = 70, .d = 35, .r = 2});
}

static void edges_of_tiles(void) {
  static const int64_t ms[] = {1, 2, 3, 8, 9, 31, 32, 33, 257, 513}, ns[] = {1, 63, 64, 65, 129, 255, 257, 5};
  for (size_t i = 0; i < sizeof ms / sizeof *ms; i++)
    for (size_t j = 0; j < sizeof ns / sizeof *ns; j++)
      check_product(&(struct setting){.kind = ZLG_CAUCHY, .type = ZLG_F32, .m = ms[i], .n = ns[j], .d = 3, .r = 1});
}

static void right_hand_sides(void) {
  static const int64_t rs[] = {3, 10, 16, 17, 40};
  for (size_t i = 0; i < sizeof rs / sizeof *rs; i++)
    for (int few = 0; few < 2; few++)
      check_product(&(struct setting){
          .kind = ZLG_GAUSSIAN, .type = types[i % 2], .m = few ? 2 : 40, .n = 67, .d = 2, .r = rs[i], .add = true});
}

static void storage_orders(void) {
  for (int mask = 1; mask < 8; mask += mask < 4 ? mask : 3) /* each operand alone, then all three */
    check_product(&(struct setting){.kind = ZLG_GAUSSIAN,
                                    .type = types[mask % 2],
                                    .m = 19,
                                    .n = 33,
                                    .d = 3,
                                    .r = 3,
                                    .x1_order = mask & 1 ? ZLG_COLUMN_MAJOR : ZLG_ROW_MAJOR,
                                    .x2_order = mask & 2 ? ZLG_COLUMN_MAJOR : ZLG_ROW_MAJOR,
                                    .b_order = mask & 4 ? ZLG_COLUMN_MAJOR : ZLG_ROW_MAJOR});
}

static void many_points_few_rows(void) {
  for (int t = 0; t < 2; t++)
    for (int add = 0; add < 2; add++) {
      check_product(
          &(struct setting){.kind = ZLG_EXPONENTIAL, .type = types[t], .m = 1, .n = 20011, .d = 3, .r = 1, .add = add});
      check_product(
          &(struct setting){.kind = ZLG_EXPONENTIAL, .type = types[t], .m = 20, .n = 9001, .d = 3, .r = 2, .add = add});
    }
}

static void powers_and_shape_parameters(void) {
  static const int degrees[] = {0, 1, 2, 5};
  static const double alphas[] = {0.5, 1.5, 2, 0.3, 7.7, 50};
  for (size_t i = 0; i < sizeof degrees / sizeof *degrees; i++)
    check_product(&(struct setting){.kind = ZLG_POLYNOMIAL,
                                    .type = types[i % 2],
                                    .m = 20,
                                    .n = 30,
                                    .d = 2,
                                    .r = 1,
                                    .degree = degrees[i],
                                    .gamma = 0.5,
                                    .offset = -0.25});
  for (size_t i = 0; i < sizeof alphas / sizeof *alphas; i++)
    check_product(&(struct setting){
        .kind = ZLG_RATIONAL_QUADRATIC, .type = types[i % 2], .m = 20, .n = 30, .d = 2, .r = 1, .alpha = alphas[i]});
}

/* A cluster far from the origin: the differences are small and must be exact (shared/cases/kernel-products, 2 to 4). */
static void points_far_from_the_origin(void) {
  for (int per = 0; per < 2; per++)
    check_product(&(struct setting){.kind = ZLG_GAUSSIAN,
                                    .type = ZLG_F32,
                                    .m = 40,
                                    .n = 80,
                                    .d = 3,
                                    .r = 1,
                                    .per_dimension = per,
                                    .offset_of_points = 1e4});
}

/* Fills an array with one value. */
static void set_all(zlg_type type, void *data, int64_t count, double value) {
  for (int64_t i = 0; i < count; i++) zlg_test_set(type, ZLG_ROW_MAJOR, 0, data, 0, i, value);
}

static void on_each_worker(struct product *p, void (*check)(const struct product *p)) {
  for (int index = 0, worker; (worker = zlg_test_starpu_each(index)) >= 0; index++) {
    if (p->args.first) set_all(ZLG_F64, p->acc, p->args.m * p->args.r, NAN);
    run_on(p, worker);
    check(p);
  }
}

static void is_limit_at_zero(const struct product *p) {
  const double want = p->spec.kind == ZLG_ENERGY ? 0 : 1;
  for (int64_t i = 0; i < p->args.m; i++) CU_ASSERT_EQUAL(p->acc[i], want);
}

static void coincident_points(void) {
  for (int t = 0; t < 2; t++)
    for (int kind = ZLG_GAUSSIAN; kind <= ZLG_ENERGY; kind++) {
      if (kind == ZLG_MATERN12) continue;
      struct product p =
          make(&(struct setting){.kind = (zlg_kernel_kind)kind, .type = types[t], .m = 20, .n = 1, .d = 3, .r = 1});
      set_all(types[t], p.x1, p.ld1 * 20, 0.3);
      set_all(types[t], p.x2, p.ld2, 0.3);
      set_all(types[t], p.b, 1, 1);
      on_each_worker(&p, is_limit_at_zero);
      unmake(&p);
    }
}

static void is_zero(const struct product *p) {
  for (int64_t i = 0; i < p->args.m; i++) CU_ASSERT(fabs(p->acc[i]) <= 1e-9);
}

/* r = 1e30 in f32, 1e200 in f64: the squares overflow, the kernels are 0 and not NaN. */
static void points_at_a_huge_distance(void) {
  for (int t = 0; t < 2; t++)
    for (int kind = ZLG_GAUSSIAN; kind < ZLG_ENERGY; kind++) {
      if (kind == ZLG_MATERN12) continue;
      struct product p =
          make(&(struct setting){.kind = (zlg_kernel_kind)kind, .type = types[t], .m = 20, .n = 3, .d = 2, .r = 1});
      set_all(types[t], p.x1, p.ld1 * 20, t ? 1e200 : 1e30);
      set_all(types[t], p.b, p.ldb * 3, 1);
      on_each_worker(&p, is_zero);
      unmake(&p);
    }
}

static void has_nan_in_column_one(const struct product *p) {
  for (int64_t i = 0; i < p->args.m; i++) {
    CU_ASSERT(isfinite(p->acc[2 * i]));
    CU_ASSERT(isnan(p->acc[2 * i + 1]));
  }
}

static void nan_stays_in_its_column(void) {
  for (int t = 0; t < 2; t++) {
    struct product p =
        make(&(struct setting){.kind = ZLG_MATERN52, .type = types[t], .m = 20, .n = 70, .d = 2, .r = 2});
    zlg_test_set(types[t], ZLG_ROW_MAJOR, p.ldb, p.b, 69, 1, NAN);
    on_each_worker(&p, has_nan_in_column_one);
    unmake(&p);
  }
}

static void has_infinite_first_row(const struct product *p) {
  CU_ASSERT(isinf(p->acc[0]) && p->acc[0] < 0);
  for (int64_t i = 1; i < p->args.m; i++) CU_ASSERT(isfinite(p->acc[i]));
}

/* -r overflows in f32 for one point: -inf, not the NaN that the filling of a tile would make of it. */
static void overflow_is_infinite(void) {
  static const int64_t ms[] = {2, 20};
  for (int i = 0; i < 2; i++) {
    struct product p = make(&(struct setting){.kind = ZLG_ENERGY, .type = ZLG_F32, .m = ms[i], .n = 3, .d = 2, .r = 1});
    zlg_test_set(ZLG_F32, ZLG_ROW_MAJOR, p.ld1, p.x1, 0, 0, 1e30);
    set_all(ZLG_F32, p.b, p.ldb * 3, 1);
    on_each_worker(&p, has_infinite_first_row);
    unmake(&p);
  }
}

static void is_twenty_million(const struct product *p) {
  for (int64_t i = 0; i < p->args.m; i++) CU_ASSERT_EQUAL(p->acc[i], 2e7);
}

static void sum_of_twenty_million_ones_in_f32(void) {
  const int64_t n = 20000000;
  for (int m = 1; m < 18; m += 16) {
    struct product p =
        make(&(struct setting){.kind = ZLG_LINEAR, .type = ZLG_F32, .m = m, .n = 1, .d = 1, .r = 1, .offset = 1});
    p.args.n = n;
    free(p.x2), free(p.b);
    p.ld2 = p.ldb = 1;
    p.x2 = calloc((size_t)n, sizeof(float));
    p.b = malloc((size_t)n * sizeof(float));
    set_all(ZLG_F32, p.b, n, 1);
    on_each_worker(&p, is_twenty_million);
    unmake(&p);
  }
}

static void is_before(const struct product *p) {
  for (int64_t i = 0; i < p->args.m; i++) CU_ASSERT_EQUAL(p->acc[i], p->args.first ? 0 : 2.5);
}

static void no_points(void) {
  for (int add = 0; add < 2; add++) {
    struct product p =
        make(&(struct setting){.kind = ZLG_GAUSSIAN, .type = ZLG_F32, .m = 20, .n = 1, .d = 2, .r = 1, .add = add});
    p.args.n = 0;
    for (int index = 0, worker; (worker = zlg_test_starpu_each(index)) >= 0; index++) {
      set_all(ZLG_F64, p.acc, 20, add ? 2.5 : NAN);
      run_on(&p, worker);
      is_before(&p);
    }
    unmake(&p);
  }
}

static void kernel_matrix_is_symmetric_to_the_bit(void) {
  const int n = 100;
  for (int t = 0; t < 2; t++) {
    struct product p = make(&(struct setting){.kind = ZLG_GAUSSIAN, .type = types[t], .m = n, .n = n, .d = 3, .r = n});
    for (int i = 0; i < n; i++)
      for (int k = 0; k < 3; k++) {
        const double value = zlg_test_get(types[t], ZLG_ROW_MAJOR, p.ld1, p.x1, i, k);
        zlg_test_set(types[t], ZLG_ROW_MAJOR, p.ld2, p.x2, i, k, value);
      }
    for (int i = 0; i < n; i++)
      for (int j = 0; j < n; j++) zlg_test_set(types[t], ZLG_ROW_MAJOR, p.ldb, p.b, i, j, i == j);
    for (int index = 0, worker; (worker = zlg_test_starpu_each(index)) >= 0; index++) {
      run_on(&p, worker);
      for (int i = 0; i < n; i++)
        for (int j = 0; j <= i; j++) CU_ASSERT_EQUAL(p.acc[i * n + j], p.acc[j * n + i]);
    }
    unmake(&p);
  }
}

static const struct zlg_test_case cases[] = {
    {"every_kernel", every_kernel},
    {"lengthscale_per_dimension", lengthscale_per_dimension},
    {"every_dimension", every_dimension},
    {"chunks_of_dimensions", chunks_of_dimensions},
    {"edges_of_tiles", edges_of_tiles},
    {"right_hand_sides", right_hand_sides},
    {"storage_orders", storage_orders},
    {"many_points_few_rows", many_points_few_rows},
    {"powers_and_shape_parameters", powers_and_shape_parameters},
    {"points_far_from_the_origin", points_far_from_the_origin},
    {"coincident_points", coincident_points},
    {"points_at_a_huge_distance", points_at_a_huge_distance},
    {"nan_stays_in_its_column", nan_stays_in_its_column},
    {"overflow_is_infinite", overflow_is_infinite},
    {"sum_of_twenty_million_ones_in_f32", sum_of_twenty_million_ones_in_f32},
    {"no_points", no_points},
    {"kernel_matrix_is_symmetric_to_the_bit", kernel_matrix_is_symmetric_to_the_bit},
    {NULL, NULL},
};

/* On pretended cards, whose groups of 256 threads PoCL runs slowly: every operand, argument and launch once. */
static const struct zlg_test_case card_cases[] = {
    {"every_kernel", every_kernel},
    {"lengthscale_per_dimension", lengthscale_per_dimension},
    {"chunks_of_dimensions", chunks_of_dimensions},
    {"right_hand_sides", right_hand_sides},
    {"storage_orders", storage_orders},
    {"many_points_few_rows", many_points_few_rows},
    {"no_points", no_points},
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
