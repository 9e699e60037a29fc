/* Kernel products on input that made well-known libraries fail, each with the right answer; the origin stands beside
 * each case. Everything goes through the public interface, as a user's program would. Started with "child" as its first
 * argument, the program computes one product and prints its bits: settings of StarPU are those of a process. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support_product.h"

static const zlg_type types[] = {ZLG_F32, ZLG_F64};

/* --- how the cases are put --- */

static zlg_context *context_with(int64_t tile_rows, int64_t tile_columns) {
  zlg_context_options options;
  zlg_context *context = NULL;
  zlg_test_context_options(&options);
  options.direct_seconds = 0;
  options.tile_rows = tile_rows;
  options.tile_columns = tile_columns;
  ZLG_CHECK_OK(zlg_context_create(&context, &options), NULL);
  if (context == NULL) exit(1);
  return context;
}

/* One kind of worker, where the bits are compared: devices where the mode has them. */
static zlg_context *context_of_one_kind(void) {
  zlg_context_options options;
  zlg_context *context = NULL;
  zlg_test_context_options(&options);
  options.direct_seconds = 0;
  if (zlg_test_opencl_workers() > 0) options.cpu_workers = 0;
  ZLG_CHECK_OK(zlg_context_create(&context, &options), NULL);
  if (context == NULL) exit(1);
  return context;
}

static zlg_kernel_spec spec_of(zlg_kernel_kind kind, const double *lengthscale) {
  zlg_kernel_spec spec;
  zlg_kernel_spec_init(&spec, kind);
  spec.lengthscales = lengthscale;
  return spec;
}

/* Points given as doubles, row by row. */
static struct zlg_test_array points(zlg_type type, int64_t rows, int64_t columns, const double *values) {
  struct zlg_test_array array = zlg_test_array_new(type, rows, columns, ZLG_ROW_MAJOR, 0);
  for (int64_t i = 0; i < rows * columns; i++) zlg_test_array_set(&array, i / columns, i % columns, values[i]);
  return array;
}

static struct zlg_test_array filled(zlg_type type, int64_t rows, int64_t columns, double value) {
  struct zlg_test_array array = zlg_test_array_new(type, rows, columns, ZLG_ROW_MAJOR, 0);
  zlg_test_array_fill(&array, value);
  return array;
}

/* The kernel matrix itself: the product with the identity, which adds zeros to each entry. */
static struct zlg_test_array kernel_matrix(zlg_context *context, const zlg_kernel_spec *spec, struct zlg_test_array *x1,
                                           struct zlg_test_array *x2) {
  struct zlg_test_array identity = zlg_test_array_new(x1->type, x2->rows, x2->rows, ZLG_ROW_MAJOR, 0);
  struct zlg_test_array entries = filled(x1->type, x1->rows, x2->rows, NAN);
  for (int64_t j = 0; j < x2->rows; j++) zlg_test_array_set(&identity, j, j, 1);
  zlg_test_product(context, spec, x1, x2, ZLG_NOTRANS, 1, &identity, 0, &entries);
  zlg_test_array_free(&identity);
  return entries;
}

static void check_symmetric(const struct zlg_test_array *entries) {
  for (int64_t i = 0; i < entries->rows; i++)
    for (int64_t j = 0; j < i; j++)
      zlg_check(zlg_test_array_get(entries, i, j) == zlg_test_array_get(entries, j, i), "the matrix is not symmetric",
                __FILE__, __LINE__);
}

/* --- sums and cancellation --- */

/* 1: KeOps with ranges gives 16777216. A tile of any length, the whole sum as one among them; one column and two. */
static void sum_of_ones(int64_t n, int64_t tile_columns, int64_t columns, zlg_kernel_kind kind) {
  static const double one = 1;
  zlg_context *context = context_with(0, tile_columns);
  struct zlg_test_array x1 = filled(ZLG_F32, 1, 1, 1), x2 = filled(ZLG_F32, n, 1, 1);
  struct zlg_test_array b = filled(ZLG_F32, n, columns, 1), y = filled(ZLG_F32, 1, columns, NAN);
  zlg_kernel_spec spec = spec_of(kind, &one);
  zlg_test_product(context, &spec, &x1, &x2, ZLG_NOTRANS, 1, &b, 0, &y);
  for (int64_t k = 0; k < columns; k++) CU_ASSERT_EQUAL(zlg_test_array_get(&y, 0, k), (double)n);
  zlg_test_array_free(&x1);
  zlg_test_array_free(&x2);
  zlg_test_array_free(&b);
  zlg_test_array_free(&y);
  zlg_context_release(context);
}
static void twenty_million_ones_add_up_in_f32(void) {
  sum_of_ones(20000000, 0, 1, ZLG_LINEAR);
}
static void twenty_million_ones_add_up_in_one_tile(void) {
  sum_of_ones(20000000, 20000000, 1, ZLG_LINEAR);
}
static void twenty_million_ones_add_up_in_each_of_two_columns(void) {
  sum_of_ones(20000000, 0, 2, ZLG_GAUSSIAN);
}

/* 2: the expanded square is 220 % off (Falkon). All terms are positive, so relative errors do not grow in the sum. */
static void points_far_from_the_origin_keep_their_distances(void) {
  static const double sigma = 0.02;
  static const int64_t columns[] = {1, 10};
  zlg_context *context = context_with(0, 0);
  zlg_kernel_spec spec = spec_of(ZLG_GAUSSIAN, &sigma);
  uint64_t state = 2;
  struct zlg_test_array x1 = zlg_test_array_random(ZLG_F32, 200, 3, ZLG_ROW_MAJOR, 0, &state, 1e4, 0.05);
  struct zlg_test_array x2 = zlg_test_array_random(ZLG_F32, 500, 3, ZLG_ROW_MAJOR, 0, &state, 1e4, 0.05);
  struct zlg_test_kernel kernel = zlg_test_kernel_new(&spec, &x1, &x2);
  for (int c = 0; c < 2; c++) {
    struct zlg_test_array b = filled(ZLG_F32, 500, columns[c], 1), y = filled(ZLG_F32, 200, columns[c], NAN);
    zlg_test_product(context, &spec, &x1, &x2, ZLG_NOTRANS, 1, &b, 0, &y);
    for (int64_t i = 0; i < 200; i++) {
      long double want = 0;
      for (int64_t j = 0; j < 500; j++) want += kernel.value[i * 500 + j];
      ZLG_CHECK_CLOSE(zlg_test_array_get(&y, i, columns[c] - 1), want, 1e-5L * want);
    }
    zlg_test_array_free(&b);
    zlg_test_array_free(&y);
  }
  zlg_test_kernel_free(&kernel);
  zlg_test_array_free(&x1);
  zlg_test_array_free(&x2);
  zlg_context_release(context);
}

/* 3: gpytorch#438. exp(-0.25 / 2); three roundings of 2^-24. */
static void a_small_distance_beside_a_large_one_is_kept(void) {
  static const double one = 1, values[] = {0, 1e4, 1e4 + 0.5};
  zlg_context *context = context_with(0, 0);
  zlg_kernel_spec spec = spec_of(ZLG_GAUSSIAN, &one);
  struct zlg_test_array x = points(ZLG_F32, 3, 1, values);
  struct zlg_test_array k = kernel_matrix(context, &spec, &x, &x);
  ZLG_CHECK_CLOSE(zlg_test_array_get(&k, 1, 2), expl(-0.125L), 3 * 0x1p-24L);
  ZLG_CHECK_CLOSE(zlg_test_array_get(&k, 2, 1), expl(-0.125L), 3 * 0x1p-24L);
  ZLG_CHECK_CLOSE(zlg_test_array_get(&k, 0, 1), 0, 0);
  zlg_test_array_free(&x);
  zlg_test_array_free(&k);
  zlg_context_release(context);
}

/* 4: gpytorch is 0.29 off. Both clusters in one tile. */
static void two_far_clusters_are_exact_in_themselves(void) {
  static const double tenth = 0.1;
  zlg_context *context = context_with(0, 0);
  zlg_kernel_spec spec = spec_of(ZLG_GAUSSIAN, &tenth);
  uint64_t state = 4;
  struct zlg_test_array x = zlg_test_array_random(ZLG_F32, 60, 3, ZLG_ROW_MAJOR, 0, &state, 0, 0.1);
  for (int64_t i = 0; i < 60; i++)
    for (int64_t k = 0; k < 3; k++) zlg_test_array_set(&x, i, k, zlg_test_array_get(&x, i, k) + (i % 2 ? 100 : -100));
  struct zlg_test_kernel kernel = zlg_test_kernel_new(&spec, &x, &x);
  struct zlg_test_array entries = kernel_matrix(context, &spec, &x, &x);
  for (int64_t i = 0; i < 60; i++)
    for (int64_t j = 0; j < 60; j++)
      ZLG_CHECK_CLOSE(zlg_test_array_get(&entries, i, j), kernel.value[i * 60 + j], 1e-5L);
  zlg_test_kernel_free(&kernel);
  zlg_test_array_free(&x);
  zlg_test_array_free(&entries);
  zlg_context_release(context);
}

/* --- limits of the formulas --- */

/* 5: KeOps#221, tinygp#115. */
static void coincident_points_give_one_and_no_nan(void) {
  static const zlg_kernel_kind kinds[] = {ZLG_MATERN32, ZLG_MATERN52, ZLG_EXPONENTIAL, ZLG_ENERGY, ZLG_GAUSSIAN};
  static const double l = 0.3, values[] = {0.1, -7.7, 1e4, 0.1, -7.7, 1e4};
  zlg_context *context = context_with(0, 0);
  for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++)
    for (size_t t = 0; t < 2; t++) {
      if (zlg_test_mode() != ZLG_TEST_CPU && kind % 2 == t) continue; /* a program of the device for each */
      zlg_kernel_spec spec = spec_of(kinds[kind], &l);
      struct zlg_test_array x = points(types[t], 2, 3, values);
      struct zlg_test_array k = kernel_matrix(context, &spec, &x, &x);
      for (int64_t i = 0; i < 4; i++)
        CU_ASSERT_EQUAL(zlg_test_array_get(&k, i / 2, i % 2), kinds[kind] == ZLG_ENERGY ? 0 : 1);
      zlg_test_array_free(&x);
      zlg_test_array_free(&k);
    }
  zlg_context_release(context);
}

/* 6: GPflow#421. 1 - 5 r^2 / 6 with three units of 2^-53 for the sum of the polynomial and its product with exp. */
static void near_duplicates_are_finite_close_to_one_and_symmetric(void) {
  static const double one = 1, values[] = {31.55437035, 31.55437038,  32.36345678, 31.55437037, 31.55437037,
                                           32.36345679, 31.55437037,  31.55437037, 32.36345679, 28.31802469,
                                           21.84533348, -29.12711068, 28.31802469, 21.84533348, -29.12711111};
  zlg_context *context = context_of_one_kind();
  zlg_kernel_spec spec = spec_of(ZLG_MATERN52, &one);
  struct zlg_test_array x = points(ZLG_F64, 5, 3, values);
  struct zlg_test_array k = kernel_matrix(context, &spec, &x, &x);
  ZLG_CHECK_CLOSE(zlg_test_array_get(&k, 0, 1), 1 - 5e-16L, 3 * 0x1p-53L);
  ZLG_CHECK_CLOSE(zlg_test_array_get(&k, 3, 4), 1 - 1.54e-13L, 1e-15L);
  CU_ASSERT_EQUAL(zlg_test_array_get(&k, 1, 2), 1);
  for (int64_t i = 0; i < 25; i++) CU_ASSERT_TRUE(isfinite(zlg_test_array_get(&k, i / 5, i % 5)));
  check_symmetric(&k);
  zlg_test_array_free(&x);
  zlg_test_array_free(&k);
  zlg_context_release(context);
}

/* 7: gpytorch gives NaN, from inf * 0. */
static void kernels_of_huge_distances_are_zero(void) {
  static const zlg_kernel_kind kinds[] = {ZLG_MATERN32,    ZLG_MATERN52,  ZLG_GAUSSIAN,
                                          ZLG_EXPONENTIAL, ZLG_LAPLACIAN, ZLG_CAUCHY};
  static const double one = 1;
  zlg_context *context = context_with(0, 0);
  for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++)
    for (size_t t = 0; t < 2; t++) {
      if (zlg_test_mode() != ZLG_TEST_CPU && kind % 2 == t) continue;
      zlg_kernel_spec spec = spec_of(kinds[kind], &one);
      const double values[] = {0, types[t] == ZLG_F32 ? 1e30 : 1e200};
      struct zlg_test_array x = points(types[t], 2, 1, values);
      struct zlg_test_array k = kernel_matrix(context, &spec, &x, &x);
      CU_ASSERT_EQUAL(zlg_test_array_get(&k, 0, 1), 0);
      CU_ASSERT_EQUAL(zlg_test_array_get(&k, 1, 0), 0);
      CU_ASSERT_EQUAL(zlg_test_array_get(&k, 1, 1), 1);
      zlg_test_array_free(&x);
      zlg_test_array_free(&k);
    }
  zlg_context_release(context);
}

static double entry(zlg_context *context, const zlg_kernel_spec *spec, int64_t d, const double *x, const double *y) {
  struct zlg_test_array x1 = points(ZLG_F64, 1, d, x), x2 = points(ZLG_F64, 1, d, y);
  struct zlg_test_array k = kernel_matrix(context, spec, &x1, &x2);
  double value = zlg_test_array_get(&k, 0, 0);
  zlg_test_array_free(&x1);
  zlg_test_array_free(&x2);
  zlg_test_array_free(&k);
  return value;
}

/* 8: tinygp#31. */
static void matern_takes_the_l2_distance(void) {
  static const double one = 1, x[] = {1, 1}, y[] = {2, 2};
  zlg_context *context = context_with(0, 0);
  zlg_kernel_spec spec = spec_of(ZLG_MATERN52, &one);
  ZLG_CHECK_CLOSE(entry(context, &spec, 2, x, y), 0.31728336L, 5e-9L);
  zlg_context_release(context);
}

/* 9: Falkon#57. */
static void laplacian_takes_the_l1_and_exponential_the_l2_distance(void) {
  static const double two = 2, x[] = {0, 0}, y[] = {1, 2};
  zlg_context *context = context_with(0, 0);
  zlg_kernel_spec l1 = spec_of(ZLG_LAPLACIAN, &two), l2 = spec_of(ZLG_EXPONENTIAL, &two);
  ZLG_CHECK_CLOSE(entry(context, &l1, 2, x, y), expl(-1.5L), 8 * 0x1p-53L);
  ZLG_CHECK_CLOSE(entry(context, &l2, 2, x, y), expl(-sqrtl(5) / 2), 8 * 0x1p-53L);
  zlg_context_release(context);
}

/* 10: KeOps#112. A power of a negative number, by multiplication: exact. */
static void an_integer_power_of_a_negative_product_is_exact(void) {
  static const double one = 1;
  zlg_context *context = context_with(0, 0);
  for (size_t t = 0; t < 2; t++) {
    zlg_kernel_spec spec = spec_of(ZLG_POLYNOMIAL, &one);
    spec.offset = 0;
    spec.degree = 2;
    struct zlg_test_array x1 = filled(types[t], 1, 1, -1), x2 = filled(types[t], 2, 1, 1);
    struct zlg_test_array b = filled(types[t], 2, 1, 1), y = filled(types[t], 1, 1, NAN);
    zlg_test_product(context, &spec, &x1, &x2, ZLG_NOTRANS, 1, &b, 0, &y);
    CU_ASSERT_EQUAL(zlg_test_array_get(&y, 0, 0), 2);
    zlg_test_array_free(&x1);
    zlg_test_array_free(&x2);
    zlg_test_array_free(&b);
    zlg_test_array_free(&y);
  }
  zlg_context_release(context);
}

/* 11: KeOps#370. One point is x itself, all others lie where r^2 / 2 = 220. */
static void far_points_underflow_quietly_beside_the_point_itself(void) {
  static const double sigma = 5;
  const int64_t d = 1000, n = zlg_test_mode() == ZLG_TEST_CPU ? 100000 : 10000;
  const double step = sqrt(2 * 220 * 25.0 / 1000);
  zlg_context *context = context_with(0, 0);
  zlg_kernel_spec spec = spec_of(ZLG_GAUSSIAN, &sigma);
  struct zlg_test_array x1 = filled(ZLG_F32, 1, d, 0.5), x2 = filled(ZLG_F32, n, d, 0.5 + step);
  for (int64_t k = 0; k < d; k++) zlg_test_array_set(&x2, 0, k, 0.5);
  struct zlg_test_array b = filled(ZLG_F32, n, 1, 1), y = filled(ZLG_F32, 1, 1, NAN);
  zlg_test_product(context, &spec, &x1, &x2, ZLG_NOTRANS, 1, &b, 0, &y);
  ZLG_CHECK_CLOSE(zlg_test_array_get(&y, 0, 0), 1, 0);
  zlg_test_array_free(&x1);
  zlg_test_array_free(&x2);
  zlg_test_array_free(&b);
  zlg_test_array_free(&y);
  zlg_context_release(context);
}

/* 12: Falkon#20 is slower per dimension; the benchmark compares the times. */
static void equal_lengthscales_per_dimension_are_one_lengthscale(void) {
  double scales[28];
  for (int k = 0; k < 28; k++) scales[k] = 2.8;
  zlg_context *context = context_of_one_kind();
  uint64_t state = 12;
  struct zlg_test_array x = zlg_test_array_random(ZLG_F32, 10000, 28, ZLG_ROW_MAJOR, 0, &state, 0, 1);
  struct zlg_test_array x1 = zlg_test_array_random(ZLG_F32, 50, 28, ZLG_ROW_MAJOR, 0, &state, 0, 1);
  struct zlg_test_array b = zlg_test_array_random(ZLG_F32, 10000, 1, ZLG_ROW_MAJOR, 0, &state, 0, 1);
  struct zlg_test_array one = filled(ZLG_F32, 50, 1, NAN), each = filled(ZLG_F32, 50, 1, NAN);
  zlg_kernel_spec spec = spec_of(ZLG_GAUSSIAN, scales);
  zlg_test_product(context, &spec, &x1, &x, ZLG_NOTRANS, 1, &b, 0, &one);
  spec.lengthscale_count = 28;
  zlg_test_product(context, &spec, &x1, &x, ZLG_NOTRANS, 1, &b, 0, &each);
  CU_ASSERT_TRUE(zlg_test_array_same_bits(&one, &each));
  struct zlg_test_kernel kernel = zlg_test_kernel_new(&spec, &x1, &x);
  ZLG_CHECK_PRODUCT(&kernel, ZLG_NOTRANS, 1, &b, 0, NULL, &each);
  zlg_test_kernel_free(&kernel);
  struct zlg_test_array *made[] = {&x, &x1, &b, &one, &each};
  for (size_t i = 0; i < sizeof made / sizeof *made; i++) zlg_test_array_free(made[i]);
  zlg_context_release(context);
}

/* 13: GPy#461. */
static void the_matrix_of_a_set_with_itself_is_symmetric(void) {
  static const double l = 0.2;
  zlg_context *context = context_of_one_kind();
  zlg_kernel_spec spec = spec_of(ZLG_GAUSSIAN, &l);
  for (size_t t = 0; t < 2; t++) {
    struct zlg_test_array x = zlg_test_array_new(types[t], 500, 1, ZLG_ROW_MAJOR, 0);
    for (int64_t i = 0; i < 500; i++) zlg_test_array_set(&x, i, 0, 0.05 + 0.95 * (double)i / 499);
    struct zlg_test_array k = kernel_matrix(context, &spec, &x, &x);
    check_symmetric(&k);
    zlg_test_array_free(&x);
    zlg_test_array_free(&k);
  }
  zlg_context_release(context);
}

/* Cholesky's factorisation of k + shift: it succeeds where the smallest eigenvalue is above -shift (up to n 2^-53). */
static bool is_above(const struct zlg_test_array *k, double shift) {
  int64_t n = k->rows;
  double *l = malloc((size_t)(n * n) * sizeof *l);
  bool positive = l != NULL;
  for (int64_t j = 0; positive && j < n; j++)
    for (int64_t i = j; positive && i < n; i++) {
      double sum = zlg_test_array_get(k, i, j) + (i == j ? shift : 0);
      for (int64_t q = 0; q < j; q++) sum -= l[i * n + q] * l[j * n + q];
      if (i == j) positive = sum > 0;
      l[i * n + j] = i == j ? sqrt(sum) : sum / l[j * n + j];
    }
  free(l);
  return positive;
}

/* 14: gpytorch#780. */
static void the_matrix_of_close_points_stays_positive(void) {
  static const double one = 1;
  zlg_context *context = context_of_one_kind();
  zlg_kernel_spec spec = spec_of(ZLG_GAUSSIAN, &one);
  struct zlg_test_array x = zlg_test_array_new(ZLG_F32, 513, 1, ZLG_ROW_MAJOR, 0);
  for (int64_t i = 0; i < 513; i++) zlg_test_array_set(&x, i, 0, 500 + (double)i / 512);
  struct zlg_test_array k = kernel_matrix(context, &spec, &x, &x);
  CU_ASSERT_TRUE(is_above(&k, 1e-4));
  zlg_test_array_free(&x);
  zlg_test_array_free(&k);
  zlg_context_release(context);
}

/* 23: gpytorch's polynomial: 0 * inf where the base is 0. Values only: the gradients are another operator. */
static void a_power_of_zero_is_zero_or_one(void) {
  static const double one = 1, x[] = {2, 1}, z[] = {-1, 1.5};
  zlg_context *context = context_with(0, 0);
  zlg_kernel_spec spec = spec_of(ZLG_POLYNOMIAL, &one);
  spec.offset = 0.5; /* x.z + 1/2 = 0, exactly */
  for (spec.degree = 0; spec.degree < 3; spec.degree++)
    CU_ASSERT_EQUAL(entry(context, &spec, 2, x, z), spec.degree == 0 ? 1 : 0);
  spec.kind = ZLG_LINEAR;
  CU_ASSERT_EQUAL(entry(context, &spec, 2, x, z), 0);
  zlg_context_release(context);
}

/* --- refusals --- */

static bool says(const zlg_context *context, const char *words) {
  bool found = strstr(zlg_context_message(context), words) != NULL;
  if (!found) printf("\"%s\" does not say \"%s\"\n", zlg_context_message(context), words);
  return found;
}

/* 15: KeOps reads out of bounds or returns 0. */
static void shapes_and_types_that_do_not_fit_are_refused(void) {
  static const double one = 1;
  zlg_context *context = context_with(0, 0);
  zlg_kernel_spec spec = spec_of(ZLG_GAUSSIAN, &one);
  struct zlg_test_array x1 = filled(ZLG_F32, 1, 2, 0), x2 = filled(ZLG_F32, 9, 2, 0), b = filled(ZLG_F32, 10, 1, 1);
  struct zlg_test_array y = filled(ZLG_F32, 1, 1, 7), flat = filled(ZLG_F32, 9, 1, 0), wide = filled(ZLG_F64, 9, 2, 0);
  zlg_matrix *X1 = zlg_test_array_wrap(context, &x1), *X2 = zlg_test_array_wrap(context, &x2);
  zlg_matrix *B = zlg_test_array_wrap(context, &b), *Y = zlg_test_array_wrap(context, &y);
  zlg_matrix *Flat = zlg_test_array_wrap(context, &flat), *Wide = zlg_test_array_wrap(context, &wide);
  zlg_operator *A = NULL, *none = NULL;
  ZLG_CHECK_OK(zlg_kernel(context, &A, &spec, X1, X2), context);
  ZLG_CHECK_STATUS(zlg_apply(A, ZLG_NOTRANS, 1, B, 0, Y), ZLG_ESHAPE, context);
  CU_ASSERT_TRUE(says(context, "X is 10 x 1") && says(context, "9 rows"));
  CU_ASSERT_EQUAL(zlg_test_array_get(&y, 0, 0), 7);
  ZLG_CHECK_STATUS(zlg_kernel(context, &none, &spec, X1, Flat), ZLG_ESHAPE, context);
  CU_ASSERT_TRUE(says(context, "X1 has 2") && says(context, "X2 has 1"));
  ZLG_CHECK_STATUS(zlg_kernel(context, &none, &spec, X1, Wide), ZLG_ETYPE, context);
  CU_ASSERT_TRUE(says(context, "X1 is f32") && says(context, "X2 is f64"));
  CU_ASSERT_PTR_NULL(none);
  zlg_operator_release(A);
  zlg_matrix *matrices[] = {X1, X2, B, Y, Flat, Wide};
  for (size_t i = 0; i < 6; i++) zlg_matrix_release(matrices[i]);
  struct zlg_test_array *made[] = {&x1, &x2, &b, &y, &flat, &wide};
  for (size_t i = 0; i < 6; i++) zlg_test_array_free(made[i]);
  zlg_context_release(context);
}

/* 16: KeOps kills the process. Each wrong output, and its contents untouched. */
static void an_output_that_does_not_fit_is_refused_untouched(void) {
  static const double one = 1;
  zlg_context *context = context_with(0, 0);
  zlg_kernel_spec spec = spec_of(ZLG_GAUSSIAN, &one);
  struct zlg_test_array x = filled(ZLG_F32, 8, 1, 0.5), b = filled(ZLG_F32, 8, 1, 1), y = filled(ZLG_F32, 8, 1, 7);
  struct zlg_test_array wide = filled(ZLG_F64, 8, 1, 7);
  zlg_matrix *X = zlg_test_array_wrap(context, &x), *B = zlg_test_array_wrap(context, &b), *small, *constant, *shifted;
  zlg_matrix *Wide = zlg_test_array_wrap(context, &wide);
  zlg_operator *A = NULL;
  ZLG_CHECK_OK(zlg_kernel(context, &A, &spec, X, X), context);
  ZLG_CHECK_OK(zlg_matrix_wrap(context, &small, ZLG_F32, 7, 1, ZLG_ROW_MAJOR, 1, y.memory), context);
  ZLG_CHECK_OK(zlg_matrix_wrap_const(context, &constant, ZLG_F32, 8, 1, ZLG_ROW_MAJOR, 1, y.memory), context);
  ZLG_CHECK_OK(zlg_matrix_wrap(context, &shifted, ZLG_F32, 8, 1, ZLG_ROW_MAJOR, 1, x.memory), context);
  ZLG_CHECK_STATUS(zlg_apply(A, ZLG_NOTRANS, 1, B, 0, small), ZLG_ESHAPE, context);
  CU_ASSERT_TRUE(says(context, "Y is 7 x 1") && says(context, "needs 8 x 1"));
  ZLG_CHECK_STATUS(zlg_apply(A, ZLG_NOTRANS, 1, B, 0, Wide), ZLG_ETYPE, context);
  CU_ASSERT_TRUE(says(context, "Y is f64"));
  ZLG_CHECK_STATUS(zlg_apply(A, ZLG_NOTRANS, 1, B, 0, constant), ZLG_EREADONLY, context);
  CU_ASSERT_TRUE(says(context, "Y is read-only"));
  ZLG_CHECK_STATUS(zlg_apply(A, ZLG_NOTRANS, 1, B, 0, B), ZLG_EOVERLAP, context);
  CU_ASSERT_TRUE(says(context, "Y overlaps X"));
  ZLG_CHECK_STATUS(zlg_apply(A, ZLG_NOTRANS, 1, B, 0, shifted), ZLG_EOVERLAP, context);
  CU_ASSERT_TRUE(says(context, "Y overlaps the data of A"));
  for (int64_t i = 0; i < 8; i++) {
    CU_ASSERT_EQUAL(zlg_test_array_get(&y, i, 0), 7);
    CU_ASSERT_EQUAL(zlg_test_array_get(&wide, i, 0), 7);
    CU_ASSERT_EQUAL(zlg_test_array_get(&b, i, 0), 1);
    CU_ASSERT_EQUAL(zlg_test_array_get(&x, i, 0), 0.5);
  }
  zlg_operator_release(A);
  zlg_matrix *matrices[] = {X, B, small, constant, shifted, Wide};
  for (size_t i = 0; i < 6; i++) zlg_matrix_release(matrices[i]);
  struct zlg_test_array *made[] = {&x, &b, &y, &wide};
  for (size_t i = 0; i < 4; i++) zlg_test_array_free(made[i]);
  zlg_context_release(context);
}

/* 24: Falkon#34, #52. 128 rows of f64 accumulators are the least that 4000 x 4000 points are cut to. */
static void limited(int64_t limit, bool enough) {
  static const double one = 1;
  zlg_context_options options;
  zlg_context *context = NULL;
  zlg_test_context_options(&options);
  options.memory_limit = limit;
  options.direct_seconds = 0;
  ZLG_CHECK_OK(zlg_context_create(&context, &options), NULL);
  zlg_kernel_spec spec = spec_of(ZLG_GAUSSIAN, &one);
  struct zlg_test_array x = filled(ZLG_F64, 4000, 1, 0), b = filled(ZLG_F64, 4000, 1, 1),
                        y = filled(ZLG_F64, 4000, 1, 7);
  zlg_matrix *X = zlg_test_array_wrap(context, &x), *B = zlg_test_array_wrap(context, &b);
  zlg_matrix *Y = zlg_test_array_wrap(context, &y);
  zlg_operator *A = NULL;
  zlg_cost cost = {0};
  ZLG_CHECK_OK(zlg_kernel(context, &A, &spec, X, X), context);
  ZLG_CHECK_STATUS(zlg_operator_cost(A, ZLG_NOTRANS, 1, &cost), enough ? ZLG_OK : ZLG_ELIMIT, context);
  ZLG_CHECK_STATUS(zlg_apply(A, ZLG_NOTRANS, 1, B, 0, Y), enough ? ZLG_OK : ZLG_ELIMIT, context);
  if (!enough) CU_ASSERT_TRUE(says(context, "need 1024 bytes") && says(context, "limit is 1000 bytes"));
  CU_ASSERT_TRUE(cost.memory_bytes <= limit);
  for (int64_t i = 0; i < 4000; i++) CU_ASSERT_EQUAL(zlg_test_array_get(&y, i, 0), enough ? 4000 : 7);
  zlg_operator_release(A);
  zlg_matrix_release(X);
  zlg_matrix_release(B);
  zlg_matrix_release(Y);
  zlg_test_array_free(&x);
  zlg_test_array_free(&b);
  zlg_test_array_free(&y);
  zlg_context_release(context);
}
static void work_beyond_the_memory_limit_is_refused_with_the_sizes(void) {
  limited(1000, false);
}
static void work_keeps_to_the_memory_limit(void) {
  limited(20000, true);
}

/* 26. */
static void lengthscales_that_are_none_are_named_with_their_value(void) {
  static const struct {
    double value;
    const char *words;
  } wrong[] = {{0, "lengthscales[1] = 0,"},
               {-2.5, "lengthscales[1] = -2.5,"},
               {INFINITY, "lengthscales[1] = inf,"},
               {NAN, "lengthscales[1] = nan,"},
               {-INFINITY, "lengthscales[1] = -inf,"}};
  zlg_context *context = context_with(0, 0);
  struct zlg_test_array x = filled(ZLG_F32, 3, 3, 0);
  zlg_matrix *X = zlg_test_array_wrap(context, &x);
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    const double scales[] = {1, wrong[i].value, 2};
    zlg_kernel_spec spec = spec_of(ZLG_GAUSSIAN, scales);
    spec.lengthscale_count = 3;
    zlg_operator *A = NULL;
    ZLG_CHECK_STATUS(zlg_kernel(context, &A, &spec, X, X), ZLG_EINVAL, context);
    CU_ASSERT_TRUE(says(context, wrong[i].words));
    spec.lengthscale_count = 1;
    spec.lengthscales = scales + 1;
    ZLG_CHECK_STATUS(zlg_kernel(context, &A, &spec, X, X), ZLG_EINVAL, context);
    CU_ASSERT_TRUE(says(context, "lengthscales[0] = "));
  }
  zlg_matrix_release(X);
  zlg_test_array_free(&x);
  zlg_context_release(context);
}

/* --- shapes --- */

/* 17: KeOps overflows the stack. */
static void half_a_million_columns_work(void) {
  static const double one = 1;
  const int64_t columns = 500000;
  zlg_context *context = context_with(0, 0);
  zlg_kernel_spec spec = spec_of(ZLG_GAUSSIAN, &one);
  uint64_t state = 17;
  struct zlg_test_array x1 = zlg_test_array_random(ZLG_F32, 3, 2, ZLG_ROW_MAJOR, 0, &state, 0, 1);
  struct zlg_test_array x2 = zlg_test_array_random(ZLG_F32, 4, 2, ZLG_ROW_MAJOR, 0, &state, 0, 1);
  struct zlg_test_array b = zlg_test_array_new(ZLG_F32, 4, columns, ZLG_ROW_MAJOR, 0);
  struct zlg_test_array y = zlg_test_array_new(ZLG_F32, 3, columns, ZLG_ROW_MAJOR, 0);
  for (int64_t i = 0; i < 4 * columns; i++) ((float *)b.memory)[i] = (float)(i % 1021) - 510;
  zlg_test_product(context, &spec, &x1, &x2, ZLG_NOTRANS, 1, &b, 0, &y);
  struct zlg_test_kernel kernel = zlg_test_kernel_new(&spec, &x1, &x2);
  ZLG_CHECK_PRODUCT(&kernel, ZLG_NOTRANS, 1, &b, 0, NULL, &y);
  zlg_test_kernel_free(&kernel);
  struct zlg_test_array *made[] = {&x1, &x2, &b, &y};
  for (size_t i = 0; i < 4; i++) zlg_test_array_free(made[i]);
  zlg_context_release(context);
}

/* Workers that had a tenth of the tasks of an even share, over a few products: a busy machine may delay one. */
static bool all_share(zlg_context *context, zlg_operator *A, zlg_matrix *B, zlg_matrix *Y) {
  int workers = zlg_context_worker_count(context), sharing = 0;
  int64_t tasks[16] = {0}, total = 0;
  for (int attempt = 0; attempt < 10 && sharing < workers; attempt++) {
    zlg_request *request = NULL;
    zlg_report report;
    ZLG_CHECK_OK(zlg_apply_async(A, ZLG_NOTRANS, 1, B, 0, Y, &request), context);
    ZLG_CHECK_OK(zlg_request_wait(request), context);
    ZLG_CHECK_OK(zlg_request_report(request, &report), context);
    CU_ASSERT_EQUAL(report.worker_count, workers);
    for (int i = 0; i < workers; i++) {
      tasks[i] += report.workers[i].tasks;
      total += report.workers[i].tasks;
      zlg_test_tasks[report.workers[i].worker.kind] += report.workers[i].tasks;
    }
    zlg_request_release(request);
    sharing = 0;
    for (int i = 0; i < workers; i++) sharing += tasks[i] * 10 * workers >= total;
  }
  return sharing == workers;
}

/* 18: KeOps uses one thread. */
static void one_row_of_ten_million_points_is_shared_by_all_workers(void) {
  static const double one = 1;
  const int64_t n = 10000000;
  zlg_context *context = context_with(0, 0);
  zlg_kernel_spec spec = spec_of(ZLG_RATIONAL_QUADRATIC, &one);
  struct zlg_test_array x1 = filled(ZLG_F32, 1, 2, 0), x2 = filled(ZLG_F32, n, 2, 1);
  struct zlg_test_array b = filled(ZLG_F32, n, 1, 1), y = filled(ZLG_F32, 1, 1, NAN);
  zlg_matrix *X1 = zlg_test_array_wrap(context, &x1), *X2 = zlg_test_array_wrap(context, &x2);
  zlg_matrix *B = zlg_test_array_wrap(context, &b), *Y = zlg_test_array_wrap(context, &y);
  zlg_operator *A = NULL;
  ZLG_CHECK_OK(zlg_kernel(context, &A, &spec, X1, X2), context);
  CU_ASSERT_TRUE(all_share(context, A, B, Y));
  /* r^2 = 2 in all terms: 1 / (1 + 1), ten million of them in binary64 sums of f32 blocks. */
  ZLG_CHECK_CLOSE(zlg_test_array_get(&y, 0, 0), 5e6L, 5e6L * 64 * 0x1p-24L);
  zlg_operator_release(A);
  zlg_matrix *matrices[] = {X1, X2, B, Y};
  struct zlg_test_array *made[] = {&x1, &x2, &b, &y};
  for (size_t i = 0; i < 4; i++) {
    zlg_matrix_release(matrices[i]);
    zlg_test_array_free(made[i]);
  }
  zlg_context_release(context);
}

/* 19: gpytorch raises. No column points, no rows, no dimension. */
static void empty_sums_are_beta_y_and_empty_outputs_are_nothing(void) {
  static const double one = 1;
  zlg_context *context = context_with(0, 0);
  zlg_kernel_spec spec = spec_of(ZLG_GAUSSIAN, &one);
  struct zlg_test_array x1 = filled(ZLG_F64, 5, 3, 0), none = filled(ZLG_F64, 0, 3, 0), b = filled(ZLG_F64, 0, 2, 0);
  struct zlg_test_array y = filled(ZLG_F64, 5, 2, 3), clear = filled(ZLG_F64, 5, 2, NAN),
                        weights = filled(ZLG_F64, 5, 2, 1);
  struct zlg_test_array no_rows = filled(ZLG_F64, 0, 2, 0), flat = filled(ZLG_F64, 5, 0, 0),
                        ones = filled(ZLG_F64, 5, 2, 1);
  zlg_test_product(context, &spec, &x1, &none, ZLG_NOTRANS, 1, &b, 2, &y);
  zlg_test_product(context, &spec, &x1, &none, ZLG_NOTRANS, 1, &b, 0, &clear);
  zlg_test_product(context, &spec, &none, &x1, ZLG_NOTRANS, 1, &weights, 2, &no_rows);
  zlg_test_product(context, &spec, &flat, &flat, ZLG_NOTRANS, 1, &weights, 1, &ones);
  for (int64_t i = 0; i < 10; i++) {
    CU_ASSERT_EQUAL(zlg_test_array_get(&y, i / 2, i % 2), 6);
    CU_ASSERT_EQUAL(zlg_test_array_get(&clear, i / 2, i % 2), 0);
    CU_ASSERT_EQUAL(zlg_test_array_get(&ones, i / 2, i % 2), 6);
  }
  struct zlg_test_array *made[] = {&x1, &none, &b, &y, &clear, &weights, &no_rows, &flat, &ones};
  for (size_t i = 0; i < sizeof made / sizeof *made; i++) zlg_test_array_free(made[i]);
  zlg_context_release(context);
}

/* What the library has allocated, and the most of it. */
static size_t allocated, most_allocated;
static void *count_allocate(void *user, size_t bytes) {
  (void)user;
  size_t *memory = malloc(bytes + 64);
  if (memory == NULL) return NULL;
  *memory = bytes;
  size_t now = __atomic_add_fetch(&allocated, bytes, __ATOMIC_RELAXED);
  size_t most = __atomic_load_n(&most_allocated, __ATOMIC_RELAXED);
  while (now > most && !__atomic_compare_exchange_n(&most_allocated, &most, now, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
    ;
  return (char *)memory + 64;
}
static void count_release(void *user, void *memory) {
  (void)user;
  size_t *start = (size_t *)(void *)((char *)memory - 64);
  __atomic_sub_fetch(&allocated, *start, __ATOMIC_RELAXED);
  free(start);
}
static void *count_reallocate(void *user, void *old, size_t bytes) {
  void *memory = count_allocate(user, bytes);
  size_t size = *(size_t *)(void *)((char *)old - 64);
  if (memory != NULL) {
    memcpy(memory, old, size < bytes ? size : bytes);
    count_release(user, old);
  }
  return memory;
}

/* 20: KeOps#149, gpytorch#1885. X2 is a transposed, strided window into a larger array, B a column-major one. */
static void views_are_used_where_they_lie(void) {
  static const zlg_allocator counting = {count_allocate, count_reallocate, count_release, NULL};
  static const double one = 1;
  const int64_t n = 300000, ld = n + 1000;
  CU_ASSERT_EQUAL(zlg_set_allocator(&counting), ZLG_OK);
  zlg_context *context = context_with(0, 0);
  zlg_kernel_spec spec = spec_of(ZLG_GAUSSIAN, &one);
  uint64_t state = 20;
  float *large = malloc((size_t)(4 * ld) * sizeof *large);
  for (int64_t i = 0; i < 4 * ld; i++) large[i] = (float)zlg_test_uniform(&state);
  struct zlg_test_array x1 = zlg_test_array_random(ZLG_F32, 4, 3, ZLG_COLUMN_MAJOR, 1, &state, 0.5, 0.3);
  struct zlg_test_array y = filled(ZLG_F32, 4, 1, NAN);
  zlg_matrix *X1 = zlg_test_array_wrap(context, &x1), *X2 = NULL, *B = NULL, *Y = zlg_test_array_wrap(context, &y);
  zlg_operator *A = NULL;
  ZLG_CHECK_OK(zlg_matrix_wrap_const(context, &X2, ZLG_F32, n, 3, ZLG_COLUMN_MAJOR, ld, large + 500), context);
  ZLG_CHECK_OK(zlg_matrix_wrap_const(context, &B, ZLG_F32, n, 1, ZLG_COLUMN_MAJOR, ld, large + 3 * ld + 500), context);
  ZLG_CHECK_OK(zlg_kernel(context, &A, &spec, X1, X2), context);
  ZLG_CHECK_OK(zlg_test_apply(A, ZLG_NOTRANS, 1, B, 0, Y), context);
  CU_ASSERT_TRUE(most_allocated > 0 && most_allocated < (size_t)n * sizeof(float)); /* of one column */
  for (int64_t i = 0; i < 4; i++) {
    long double want = 0;
    for (int64_t j = 0; j < n; j++) {
      long double r2 = 0;
      for (int64_t k = 0; k < 3; k++) {
        long double difference = zlg_test_array_get(&x1, i, k) - (long double)large[k * ld + 500 + j];
        r2 += difference * difference;
      }
      want += expl(-r2 / 2) * large[3 * ld + 500 + j];
    }
    /* Positive terms; the relative error of each is a few roundings, that of a block of some hundred a hundred more. */
    ZLG_CHECK_CLOSE(zlg_test_array_get(&y, i, 0), want, zlg_test_gamma(300, ZLG_F32) * want);
  }
  zlg_operator_release(A);
  zlg_matrix *matrices[] = {X1, X2, B, Y};
  for (size_t i = 0; i < 4; i++) zlg_matrix_release(matrices[i]);
  zlg_test_array_free(&x1);
  zlg_test_array_free(&y);
  free(large);
  zlg_context_release(context);
  CU_ASSERT_EQUAL(zlg_set_allocator(NULL), ZLG_OK);
}

/* 21. */
static void nan_in_b_stays_in_its_column_and_none_survives_in_y(void) {
  static const double one = 1;
  zlg_context *context = context_with(0, 0);
  zlg_kernel_spec spec = spec_of(ZLG_GAUSSIAN, &one);
  for (size_t t = 0; t < 2; t++) {
    struct zlg_test_array x = filled(types[t], 20, 2, 0.5), b = filled(types[t], 20, 3, 1),
                          y = filled(types[t], 20, 3, NAN);
    zlg_test_array_set(&b, 7, 1, NAN);
    zlg_test_product(context, &spec, &x, &x, ZLG_NOTRANS, 1, &b, 0, &y);
    for (int64_t i = 0; i < 20; i++) {
      CU_ASSERT_EQUAL(zlg_test_array_get(&y, i, 0), 20);
      CU_ASSERT_TRUE(isnan(zlg_test_array_get(&y, i, 1)));
      CU_ASSERT_EQUAL(zlg_test_array_get(&y, i, 2), 20);
    }
    zlg_test_array_free(&x);
    zlg_test_array_free(&b);
    zlg_test_array_free(&y);
  }
  zlg_context_release(context);
}

/* --- the same bits; two at once: children --- */

static uint64_t hash_bytes(const void *memory, size_t bytes) {
  uint64_t hash = UINT64_C(14695981039346656037);
  for (size_t i = 0; i < bytes; i++) hash = (hash ^ ((const unsigned char *)memory)[i]) * UINT64_C(1099511628211);
  return hash;
}

/* child CPU OPENCL SCHEDULER TILE_ROWS TILE_COLUMNS: prints a hash of the product's bits. */
static int child(char **argv) {
  static const double l = 1.3;
  zlg_context_options options;
  zlg_context *context = NULL;
  zlg_context_options_init(&options);
  options.mode = ZLG_RUNTIME_OWN;
  options.cpu_workers = atoi(argv[0]);
  options.opencl_workers = atoi(argv[1]);
  options.cuda_workers = 0;
  options.scheduler = strcmp(argv[2], "default") == 0 ? NULL : argv[2];
  options.tile_rows = atoi(argv[3]);
  options.tile_columns = atoi(argv[4]);
  options.direct_seconds = 0;
  if (zlg_context_create(&context, &options) != ZLG_OK) {
    fprintf(stderr, "zlg_context_create: %s\n", zlg_context_message(NULL));
    return 1;
  }
  uint64_t state = 22;
  struct zlg_test_array x1 = zlg_test_array_random(ZLG_F32, 960, 3, ZLG_ROW_MAJOR, 0, &state, 0, 1);
  struct zlg_test_array x2 = zlg_test_array_random(ZLG_F32, 1100, 3, ZLG_ROW_MAJOR, 0, &state, 0, 1);
  struct zlg_test_array b = zlg_test_array_random(ZLG_F32, 1100, 2, ZLG_ROW_MAJOR, 0, &state, 0, 1);
  struct zlg_test_array y = filled(ZLG_F32, 960, 2, NAN);
  zlg_kernel_spec spec = spec_of(ZLG_GAUSSIAN, &l);
  zlg_matrix *X1 = zlg_test_array_wrap(context, &x1), *X2 = zlg_test_array_wrap(context, &x2);
  zlg_matrix *B = zlg_test_array_wrap(context, &b), *Y = zlg_test_array_wrap(context, &y);
  zlg_operator *A = NULL;
  int status = zlg_kernel(context, &A, &spec, X1, X2);
  if (status == ZLG_OK) status = zlg_apply(A, ZLG_NOTRANS, 1, B, 0, Y);
  if (status == ZLG_OK)
    printf("%016" PRIx64 "\n", hash_bytes(y.memory, y.bytes));
  else
    fprintf(stderr, "%s\n", zlg_context_message(context));
  zlg_operator_release(A);
  zlg_matrix *matrices[] = {X1, X2, B, Y};
  struct zlg_test_array *made[] = {&x1, &x2, &b, &y};
  for (size_t i = 0; i < 4; i++) {
    zlg_matrix_release(matrices[i]);
    zlg_test_array_free(made[i]);
  }
  zlg_context_release(context);
  return status != ZLG_OK;
}

struct child {
  pid_t pid;
  int output;
};

/* `home`: where all that StarPU and the devices keep on disk goes; NULL: as for this process. */
static struct child start_child(int cpu, int opencl, const char *scheduler, int tile_rows, int tile_columns,
                                const char *home) {
  char numbers[4][16], *const arguments[] = {"kernel_products", "child",    numbers[0], numbers[1],
                                             (char *)scheduler, numbers[2], numbers[3], NULL};
  const int values[] = {cpu, opencl, tile_rows, tile_columns};
  for (int i = 0; i < 4; i++) snprintf(numbers[i], sizeof numbers[i], "%d", values[i]);
  int ends[2];
  if (pipe(ends) != 0) exit(1);
  struct child made = {fork(), ends[0]};
  if (made.pid == 0) {
    dup2(ends[1], 1);
    close(ends[0]);
    close(ends[1]);
    if (home != NULL) {
      setenv("STARPU_HOME", home, 1);
      setenv("XDG_CACHE_HOME", home, 1);
      setenv("HOME", home, 1);
      setenv("POCL_CACHE_DIR", home, 1);
    }
    execv("/proc/self/exe", arguments);
    _exit(127);
  }
  close(ends[1]);
  return made;
}

/* What it printed, 0 where it failed. */
static uint64_t end_child(struct child *made) {
  char text[64] = "";
  size_t used = 0;
  ssize_t got;
  while (used < sizeof text - 1 && (got = read(made->output, text + used, sizeof text - 1 - used)) > 0)
    used += (size_t)got;
  close(made->output);
  int status = -1;
  waitpid(made->pid, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? strtoull(text, NULL, 16) : 0;
}

static uint64_t bits(int cpu, int opencl, const char *scheduler, int tile_rows, int tile_columns) {
  struct child made = start_child(cpu, opencl, scheduler, tile_rows, tile_columns, NULL);
  return end_child(&made);
}

/* The names in the message about one that is none. */
static int predefined_schedulers(char names[][64], int most) {
  zlg_context_options options;
  zlg_context *context = NULL;
  zlg_test_context_options(&options);
  options.scheduler = "none";
  ZLG_CHECK_STATUS(zlg_context_create(&context, &options), ZLG_EINVAL, NULL);
  const char *at = strstr(zlg_context_message(NULL), "known: ");
  int count = 0;
  for (at = at != NULL ? at + strlen("known: ") : ""; *at != '\0' && count < most; count++) {
    size_t length = strcspn(at, " ");
    snprintf(names[count], sizeof names[count], "%.*s", (int)length, at);
    at += length + (at[length] == ' ');
  }
  return count;
}

static int cores(void) {
  zlg_machine_info machine;
  zlg_context *context = zlg_test_context();
  ZLG_CHECK_OK(zlg_context_machine(context, &machine), context);
  int most = machine.cores < machine.cpu_worker_limit ? machine.cores : machine.cpu_worker_limit;
  zlg_context_release(context);
  return most;
}

/* 22, workers of one kind: CPU cores in mode cpu, devices in the others. */
static void the_bits_do_not_depend_on_the_number_of_workers(void) {
  int most = zlg_test_opencl_workers() > 0 ? zlg_test_opencl_workers() : cores() < 4 ? cores() : 4;
  bool devices = zlg_test_opencl_workers() > 0;
  uint64_t one = bits(devices ? 0 : 1, devices ? 1 : 0, "default", 64, 64);
  CU_ASSERT_NOT_EQUAL(one, 0);
  for (int workers = 1; workers <= most; workers++) /* 1: repeated */
    CU_ASSERT_EQUAL(bits(devices ? 0 : workers, devices ? workers : 0, "default", 64, 64), one);
}

static void the_bits_do_not_depend_on_the_scheduler(void) {
  static char names[64][64];
  int count = predefined_schedulers(names, 64);
  CU_ASSERT_TRUE(count >= 10);
  bool devices = zlg_test_opencl_workers() > 0;
  uint64_t first = bits(devices ? 0 : 2, zlg_test_opencl_workers(), "default", 64, 64);
  for (int i = 0; i < count; i++) {
    if (devices && i % 5 != 0) continue; /* devices start slowly; mode cpu tries all */
    uint64_t other = bits(devices ? 0 : 2, zlg_test_opencl_workers(), names[i], 64, 64);
    if (other != first) printf("scheduler %s: %016" PRIx64 ", expected %016" PRIx64 "\n", names[i], other, first);
    CU_ASSERT_EQUAL(other, first);
  }
}

/* One tile of columns and equal tiles of rows: the order of additions is the kernel's, the same for each of its rows.
 */
static void the_bits_do_not_depend_on_how_the_rows_are_cut(void) {
  bool devices = zlg_test_opencl_workers() > 0;
  static const int rows[] = {64, 192, 320, 960};
  uint64_t first = bits(devices ? 0 : 1, devices ? 1 : 0, "default", rows[0], 2000);
  CU_ASSERT_NOT_EQUAL(first, 0);
  for (size_t i = 1; i < sizeof rows / sizeof *rows; i++)
    CU_ASSERT_EQUAL(bits(devices ? 0 : 1, devices ? 1 : 0, "default", rows[i], 2000), first);
}

/* 25: KeOps#168. */
static void two_processes_start_at_once_with_nothing_on_disk(void) {
  char *home = zlg_test_path("empty");
  for (int attempt = 0; attempt < (zlg_test_mode() == ZLG_TEST_CPU ? 3 : 1); attempt++) {
    char command[4200];
    snprintf(command, sizeof command, "rm -rf '%s' && mkdir '%s'", home, home);
    CU_ASSERT_EQUAL(system(command), 0);
    struct child children[2];
    for (int i = 0; i < 2; i++) children[i] = start_child(1, zlg_test_opencl_workers() > 0, "default", 64, 64, home);
    uint64_t one = end_child(&children[0]), other = end_child(&children[1]);
    CU_ASSERT_NOT_EQUAL(one, 0);
    CU_ASSERT_NOT_EQUAL(other, 0);
    if (zlg_test_opencl_workers() == 0) CU_ASSERT_EQUAL(one, other);
  }
  free(home);
}

int main(int argc, char **argv) {
  static const struct zlg_test_case cases[] = {
      {"twenty_million_ones_add_up_in_f32", twenty_million_ones_add_up_in_f32},
      {"twenty_million_ones_add_up_in_one_tile", twenty_million_ones_add_up_in_one_tile},
      {"twenty_million_ones_add_up_in_each_of_two_columns", twenty_million_ones_add_up_in_each_of_two_columns},
      {"points_far_from_the_origin_keep_their_distances", points_far_from_the_origin_keep_their_distances},
      {"a_small_distance_beside_a_large_one_is_kept", a_small_distance_beside_a_large_one_is_kept},
      {"two_far_clusters_are_exact_in_themselves", two_far_clusters_are_exact_in_themselves},
      {"coincident_points_give_one_and_no_nan", coincident_points_give_one_and_no_nan},
      {"near_duplicates_are_finite_close_to_one_and_symmetric", near_duplicates_are_finite_close_to_one_and_symmetric},
      {"kernels_of_huge_distances_are_zero", kernels_of_huge_distances_are_zero},
      {"matern_takes_the_l2_distance", matern_takes_the_l2_distance},
      {"laplacian_takes_the_l1_and_exponential_the_l2_distance",
       laplacian_takes_the_l1_and_exponential_the_l2_distance},
      {"an_integer_power_of_a_negative_product_is_exact", an_integer_power_of_a_negative_product_is_exact},
      {"far_points_underflow_quietly_beside_the_point_itself", far_points_underflow_quietly_beside_the_point_itself},
      {"equal_lengthscales_per_dimension_are_one_lengthscale", equal_lengthscales_per_dimension_are_one_lengthscale},
      {"the_matrix_of_a_set_with_itself_is_symmetric", the_matrix_of_a_set_with_itself_is_symmetric},
      {"the_matrix_of_close_points_stays_positive", the_matrix_of_close_points_stays_positive},
      {"shapes_and_types_that_do_not_fit_are_refused", shapes_and_types_that_do_not_fit_are_refused},
      {"an_output_that_does_not_fit_is_refused_untouched", an_output_that_does_not_fit_is_refused_untouched},
      {"half_a_million_columns_work", half_a_million_columns_work},
      {"one_row_of_ten_million_points_is_shared_by_all_workers",
       one_row_of_ten_million_points_is_shared_by_all_workers},
      {"empty_sums_are_beta_y_and_empty_outputs_are_nothing", empty_sums_are_beta_y_and_empty_outputs_are_nothing},
      {"views_are_used_where_they_lie", views_are_used_where_they_lie},
      {"nan_in_b_stays_in_its_column_and_none_survives_in_y", nan_in_b_stays_in_its_column_and_none_survives_in_y},
      {"the_bits_do_not_depend_on_the_number_of_workers", the_bits_do_not_depend_on_the_number_of_workers},
      {"the_bits_do_not_depend_on_the_scheduler", the_bits_do_not_depend_on_the_scheduler},
      {"the_bits_do_not_depend_on_how_the_rows_are_cut", the_bits_do_not_depend_on_how_the_rows_are_cut},
      {"a_power_of_zero_is_zero_or_one", a_power_of_zero_is_zero_or_one},
      {"work_beyond_the_memory_limit_is_refused_with_the_sizes",
       work_beyond_the_memory_limit_is_refused_with_the_sizes},
      {"work_keeps_to_the_memory_limit", work_keeps_to_the_memory_limit},
      {"two_processes_start_at_once_with_nothing_on_disk", two_processes_start_at_once_with_nothing_on_disk},
      {"lengthscales_that_are_none_are_named_with_their_value", lengthscales_that_are_none_are_named_with_their_value},
      {"devices_ran_tasks", zlg_test_devices_ran_tasks},
      {NULL, NULL}};
  if (argc == 7 && strcmp(argv[1], "child") == 0) return child(argv + 2);
  return zlg_test_main(argc, argv, cases);
}
