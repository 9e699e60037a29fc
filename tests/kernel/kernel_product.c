/* The CPU kernels of kernel_product against the long double reference: every kernel, type, storage order, odd size and
 * instruction set of this processor. */
#include <stdio.h>

#include "tests/kernel/reference.h"
#include "tests/support.h"

static void check(const char *what, struct tile *t) {
  tile_lay_out(t);
  reference_product(t);
  const bool whole = tile_run(t);
  const double error = tile_error(t);
  if (!whole || !(error <= 1))
    fprintf(stderr, "%s: %s kind %d type %d m %ld n %ld d %ld r %ld: error / bound %g%s\n", what,
            zlg_isa_name(zlg_isa_current()), t->args.kind, t->args.type, (long)t->args.m, (long)t->args.n,
            (long)t->args.d, (long)t->args.r, error, whole ? "" : ", wrote behind its scratch");
  CU_ASSERT(whole);
  CU_ASSERT(error <= 1);
}

static struct tile new_tile(zlg_kernel_kind kind, zlg_type type, int64_t m, int64_t n, int64_t d, int64_t r) {
  struct tile t = {.args = {.kind = kind,
                            .type = type,
                            .m = m,
                            .n = n,
                            .d = d,
                            .r = r,
                            .x1_order = ZLG_ROW_MAJOR,
                            .x2_order = ZLG_ROW_MAJOR,
                            .b_order = ZLG_ROW_MAJOR,
                            .isotropic = true,
                            .first = true,
                            .alpha = 1.7,
                            .gamma = 0.8,
                            .offset = 0.3,
                            .degree = 3}};
  tile_allocate(&t);
  return t;
}

static void random_case(zlg_kernel_kind kind, zlg_type type, int64_t m, int64_t n, int64_t d, int64_t r, int variant) {
  struct tile t = new_tile(kind, type, m, n, d, r);
  t.args.x1_order = variant & 1 ? ZLG_COLUMN_MAJOR : ZLG_ROW_MAJOR;
  t.args.x2_order = variant & 2 ? ZLG_COLUMN_MAJOR : ZLG_ROW_MAJOR;
  t.args.b_order = variant & 4 ? ZLG_COLUMN_MAJOR : ZLG_ROW_MAJOR;
  t.args.isotropic = !(variant & 8);
  t.pad1 = variant & 3, t.pad2 = variant % 3, t.padb = variant % 5;
  tile_fill(&t, (uint64_t)(m * 31 + n * 7 + d + variant), is_dot(kind) ? 1.2 : 4);
  for (int64_t e = 0; e < m * r; e++) t.acc[e] = NAN; /* first: never read */
  check("random", &t);
  tile_free(&t);
}

static void sizes(void) {
  static const int64_t points[] = {0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 67, 127};
  static const int64_t columns[] = {1, 2, 3, 10, 33};
  int variant = 0;
  for (int64_t k = 0; k < COUNT(all_kinds); k++)
    for (int64_t y = 0; y < COUNT(all_types); y++)
      for (int64_t m = 0; m < COUNT(points); m++)
        for (int64_t n = m % 2; n < COUNT(points); n += 2, variant++)
          random_case(all_kinds[k], all_types[y], points[m], points[n], 1 + variant % 6, columns[variant % 5], variant);
}

static void long_sums_and_dimensions(void) {
  for (int64_t y = 0; y < COUNT(all_types); y++)
    for (int64_t k = 0; k < COUNT(all_kinds); k++) {
      random_case(all_kinds[k], all_types[y], 5, 1031, 3, 1, (int)k);
      random_case(all_kinds[k], all_types[y], 1, 3001, 2, 3, (int)k + 8);
      random_case(all_kinds[k], all_types[y], 97, 523, 131, 1, (int)k);
      random_case(all_kinds[k], all_types[y], 97, 300, 7, 2, (int)k + 8);
    }
  random_case(ZLG_GAUSSIAN, ZLG_F32, 40, 70, 300, 7, 8);
  random_case(ZLG_GAUSSIAN, ZLG_F64, 40, 70, 300, 7, 8);
  random_case(ZLG_GAUSSIAN, ZLG_F32, 3, 300, 9001, 1, 0);
  random_case(ZLG_MATERN32, ZLG_F64, 130, 90, 9001, 2, 0);
}

static void all(void) {
  sizes();
  long_sums_and_dimensions();
}
static void random_tiles_within_bound(void) {
  each_isa(all);
}

/* ---- cases with known answers ---- */

/* K itself, m x n: B is the identity. The result stays in t->acc. */
static struct tile entries(zlg_kernel_kind kind, zlg_type type, int64_t m, const double *x1, int64_t n,
                           const double *x2, int64_t d, double lengthscale) {
  struct tile t = new_tile(kind, type, m, n, d, n);
  t.args.gamma = 1, t.args.offset = 0, t.args.alpha = 1;
  memcpy(t.x1, x1, (size_t)(m * d) * sizeof *x1);
  memcpy(t.x2, x2, (size_t)(n * d) * sizeof *x2);
  for (int64_t j = 0; j < n; j++) t.b[j * n + j] = 1;
  for (int64_t k = 0; k < d; k++) t.w[k] = 1 / lengthscale;
  tile_lay_out(&t);
  CU_ASSERT(tile_run(&t));
  return t;
}

static double entry(zlg_kernel_kind kind, zlg_type type, const double *x, const double *y, int64_t d,
                    double lengthscale) {
  struct tile t = entries(kind, type, 1, x, 1, y, d, lengthscale);
  const double value = t.acc[0];
  tile_free(&t);
  return value;
}

/* 2e7 ones, in batches that add to one accumulator, for lanes over j (m = 1, 5) and over i (m = 70). */
static void count_body(void) {
  static const int64_t rows[] = {1, 5, 70};
  for (int64_t e = 0; e < COUNT(rows); e++) {
    struct tile t = new_tile(ZLG_LINEAR, ZLG_F32, rows[e], 100000, 1, 1);
    t.args.offset = 0;
    for (int64_t i = 0; i < rows[e]; i++) t.x1[i] = 1;
    for (int64_t j = 0; j < t.args.n; j++) t.x2[j] = t.b[j] = 1;
    tile_lay_out(&t);
    for (int batch = 0; batch < 200; batch++) {
      t.args.first = batch == 0;
      CU_ASSERT(tile_run(&t));
    }
    for (int64_t i = 0; i < rows[e]; i++) CU_ASSERT(t.acc[i] == 2e7);
    tile_free(&t);
  }
}
static void f32_sum_of_2e7_ones(void) {
  each_isa(count_body);
}

/* f32 far from the origin: distances of near points are exact. */
static void far_points_body(void) {
  struct tile t = new_tile(ZLG_GAUSSIAN, ZLG_F32, 90, 200, 3, 1);
  tile_fill(&t, 3, 0.05);
  for (int64_t e = 0; e < 90 * 3; e++) t.x1[e] += 1e4;
  for (int64_t e = 0; e < 200 * 3; e++) t.x2[e] += 1e4;
  for (int64_t j = 0; j < 200; j++) t.b[j] = fabs(t.b[j]);
  for (int k = 0; k < 3; k++) t.w[k] = 1 / 0.02;
  tile_lay_out(&t);
  reference_product(&t);
  CU_ASSERT(tile_run(&t));
  for (int64_t i = 0; i < 90; i++) ZLG_CHECK_CLOSE(t.acc[i], t.value[i], 1e-5L * t.value[i]);
  tile_free(&t);

  const double line[] = {0, 1e4, 1e4 + 0.5};
  t = entries(ZLG_GAUSSIAN, ZLG_F32, 3, line, 3, line, 1, 1);
  ZLG_CHECK_CLOSE(t.acc[1 * 3 + 2], expl(-0.125L), 2e-7L);
  CU_ASSERT(t.acc[0 * 3 + 1] == 0);
  tile_free(&t);

  double cluster[60 * 3]; /* two clusters at +-(100, 100, 100) */
  uint64_t state = 11;
  for (int e = 0; e < 60 * 3; e++) cluster[e] = (e < 90 ? 100 : -100) + 0.1 * zlg_test_normal(&state);
  t = entries(ZLG_GAUSSIAN, ZLG_F32, 60, cluster, 60, cluster, 3, 0.1);
  reference_product(&t);
  for (int64_t e = 0; e < 60 * 60; e++) ZLG_CHECK_CLOSE(t.acc[e], t.value[e], 1e-5L);
  tile_free(&t);
}
static void f32_far_from_the_origin(void) {
  each_isa(far_points_body);
}

static void limits_body(void) {
  const double x[] = {0.3, -1.7, 12.5}, far_x[] = {-INFINITY, 0, 0};
  for (int64_t y = 0; y < COUNT(all_types); y++)
    for (int64_t k = 0; k < COUNT(all_kinds); k++) {
      const zlg_kernel_kind kind = all_kinds[k];
      if (is_dot(kind)) continue;
      CU_ASSERT(entry(kind, all_types[y], x, x, 3, 0.7) == (kind == ZLG_ENERGY ? 0 : 1));
      CU_ASSERT(entry(kind, all_types[y], far_x, x, 3, 0.7) == (kind == ZLG_ENERGY ? -INFINITY : 0));
    }
  /* r = 1e200 and 1e30, whose squares overflow. */
  const double zero = 0, far64 = 1e200, far32 = 1e30;
  static const zlg_kernel_kind decaying[] = {ZLG_GAUSSIAN, ZLG_EXPONENTIAL, ZLG_LAPLACIAN, ZLG_MATERN32, ZLG_MATERN52};
  for (int64_t k = 0; k < COUNT(decaying); k++) {
    CU_ASSERT(entry(decaying[k], ZLG_F64, &far64, &zero, 1, 1) == 0);
    CU_ASSERT(entry(decaying[k], ZLG_F32, &far32, &zero, 1, 1) == 0);
    /* The same through an extreme lengthscale, and a large distance that such a lengthscale makes an ordinary one. */
    CU_ASSERT(entry(decaying[k], ZLG_F32, x, x + 1, 1, 1e-30) == 0);
    CU_ASSERT(entry(decaying[k], ZLG_F32, x, x, 1, 1e-30) == 1);
    CU_ASSERT(entry(decaying[k], ZLG_F64, x, x, 1, 1e-300) == 1);
    CU_ASSERT(entry(decaying[k], ZLG_F64, x, x + 1, 1, 1e300) == 1);
  }
  ZLG_CHECK_CLOSE(entry(ZLG_GAUSSIAN, ZLG_F32, &far32, &zero, 1, 1e30), expl(-0.5L), 2e-6L);
}
static void coincident_and_infinitely_far(void) {
  each_isa(limits_body);
}

static void values_body(void) {
  const double a[] = {1, 1}, b[] = {2, 2}, o[] = {0, 0}, p[] = {1, 2};
  for (int64_t y = 0; y < COUNT(all_types); y++) {
    const zlg_type type = all_types[y];
    const long double u = 16 * unit_roundoff(type);
    ZLG_CHECK_CLOSE(entry(ZLG_MATERN52, type, a, b, 2, 1), 0.317283369L, 1e-8L + u); /* L2, not L1 */
    ZLG_CHECK_CLOSE(entry(ZLG_LAPLACIAN, type, o, p, 2, 2), expl(-1.5L), u);
    ZLG_CHECK_CLOSE(entry(ZLG_EXPONENTIAL, type, o, p, 2, 2), expl(-sqrtl(5) / 2), u);
    ZLG_CHECK_CLOSE(entry(ZLG_CAUCHY, type, o, p, 2, 1), 1 / 6.0L, u);
    ZLG_CHECK_CLOSE(entry(ZLG_INVERSE_MULTIQUADRIC, type, o, p, 2, 1), 1 / sqrtl(6), u);
    ZLG_CHECK_CLOSE(entry(ZLG_RATIONAL_QUADRATIC, type, o, p, 2, 1), 1 / 3.5L, u);
  }
  /* Near-duplicates of GPflow#421. */
  const double near[] = {31.55437035, 31.55437038,  32.36345678, 31.55437037, 31.55437037,
                         32.36345679, 31.55437037,  31.55437037, 32.36345679, 28.31802469,
                         21.84533348, -29.12711068, 28.31802469, 21.84533348, -29.12711111};
  struct tile t = entries(ZLG_MATERN52, ZLG_F64, 5, near, 5, near, 3, 1);
  for (int i = 0; i < 25; i++) CU_ASSERT(isfinite(t.acc[i]) && t.acc[i] == t.acc[i % 5 * 5 + i / 5]);
  ZLG_CHECK_CLOSE(t.acc[1], 1 - 5e-16L, 5e-16L);
  ZLG_CHECK_CLOSE(t.acc[3 * 5 + 4], 1 - 1.54e-13L, 2e-15L);
  tile_free(&t);
}
static void known_values(void) {
  each_isa(values_body);
}

/* Small integers: no rounding anywhere, the result is exact. */
static void integers_body(void) {
  for (int64_t y = 0; y < COUNT(all_types); y++)
    for (int degree = 0; degree <= 3; degree++)
      for (int64_t m = 1; m <= 71; m += 35) {
        struct tile t = new_tile(degree == 1 ? ZLG_LINEAR : ZLG_POLYNOMIAL, all_types[y], m, 37, 5, 3);
        t.args.gamma = 1, t.args.offset = degree == 3 ? 0 : 2, t.args.degree = degree;
        for (int64_t e = 0; e < m * 5; e++) t.x1[e] = (double)(e % 5 - 2);
        for (int64_t e = 0; e < 37 * 5; e++) t.x2[e] = (double)(e % 7 - 3);
        for (int64_t e = 0; e < 37 * 3; e++) t.b[e] = (double)(e % 3 - 1);
        tile_lay_out(&t);
        reference_product(&t);
        CU_ASSERT(tile_run(&t));
        for (int64_t e = 0; e < m * 3; e++) CU_ASSERT(t.acc[e] == (double)t.value[e]);
        tile_free(&t);
      }
  /* (x.y)^2 with x = -1 and y = 1 twice; x.z + c = 0 to the powers 0 and 1. */
  struct tile t = new_tile(ZLG_POLYNOMIAL, ZLG_F32, 1, 2, 1, 1);
  t.args.gamma = 1, t.args.offset = 0, t.args.degree = 2;
  t.x1[0] = -1, t.x2[0] = t.x2[1] = t.b[0] = t.b[1] = 1;
  tile_lay_out(&t);
  CU_ASSERT(tile_run(&t) && t.acc[0] == 2);
  t.args.offset = 1, t.args.degree = 1;
  CU_ASSERT(tile_run(&t) && t.acc[0] == 0);
  t.args.degree = 0;
  CU_ASSERT(tile_run(&t) && t.acc[0] == 2);
  tile_free(&t);
}
static void integers_are_exact(void) {
  each_isa(integers_body);
}

/* exp(-220) and less in f32: the terms underflow quietly. */
static void underflow_body(void) {
  enum { D = 1000, N = 700 };
  struct tile t = new_tile(ZLG_GAUSSIAN, ZLG_F32, 1, N, D, 1);
  uint64_t state = 5;
  for (int64_t e = 0; e < N * D; e++) t.x2[e] = 2.1 * zlg_test_normal(&state);
  for (int k = 0; k < D; k++) t.x1[k] = t.x2[k], t.w[k] = 1 / 5.;
  for (int j = 0; j < N; j++) t.b[j] = 1;
  tile_lay_out(&t);
  CU_ASSERT(tile_run(&t));
  ZLG_CHECK_CLOSE(t.acc[0], 1, 1e-30L);
  tile_free(&t);
}
static void underflow_is_quiet(void) {
  each_isa(underflow_body);
}

static void symmetry_body(void) {
  enum { N = 150, D = 5 };
  double points[N * D], line[500];
  uint64_t state = 17;
  for (int e = 0; e < N * D; e++) points[e] = 30 * zlg_test_normal(&state);
  for (int i = 0; i < 500; i++) line[i] = 0.05 + 0.95 * i / 499;
  for (int64_t y = 0; y < COUNT(all_types); y++)
    for (int64_t k = 0; k < COUNT(all_kinds); k++) {
      struct tile t = entries(all_kinds[k], all_types[y], N, points, N, points, D, 9);
      for (int ard = 0; ard < 2; ard++) {
        int64_t differ = 0;
        for (int64_t i = 0; i < N; i++)
          for (int64_t j = 0; j < i; j++) differ += t.acc[i * N + j] != t.acc[j * N + i];
        CU_ASSERT(differ == 0);
        t.args.isotropic = false;
        for (int e = 0; e < D; e++) t.w[e] = 1. / (1 + e);
        CU_ASSERT(tile_run(&t));
      }
      tile_free(&t);
    }
  struct tile t = entries(ZLG_GAUSSIAN, ZLG_F64, 500, line, 500, line, 1, 0.2);
  int64_t differ = 0;
  for (int64_t e = 0; e < 500 * 500; e++) differ += t.acc[e] != t.acc[e % 500 * 500 + e / 500];
  CU_ASSERT(differ == 0);
  tile_free(&t);
}
static void symmetric_bitwise(void) {
  each_isa(symmetry_body);
}

/* K(X,X) of 513 points in [500, 501] in f32, l = 1: the error's row sums bound how far an eigenvalue may fall below 0.
 */
static void definiteness_body(void) {
  enum { N = 513 };
  double *x = malloc(N * sizeof *x);
  for (int i = 0; i < N; i++) x[i] = to_type(ZLG_F32, 500 + i / 512.);
  struct tile t = entries(ZLG_GAUSSIAN, ZLG_F32, N, x, N, x, 1, 1);
  for (int64_t i = 0; i < N; i++) {
    long double sum = 0;
    for (int64_t j = 0; j < N; j++) sum += fabsl(t.acc[i * N + j] - expl(-(x[i] - x[j]) * (x[i] - x[j]) / 2));
    CU_ASSERT(sum < 1e-4L);
  }
  tile_free(&t);
  free(x);
}
static void errors_keep_definiteness(void) {
  each_isa(definiteness_body);
}

static double quiet_nan_with_payload(void) {
  const uint64_t bits = 0x7ff80000000007a2; /* R's missing value */
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* A NaN reaches exactly the sums that meet it, whatever its payload. */
static void nan_body(void) {
  for (int64_t y = 0; y < COUNT(all_types); y++)
    for (int64_t k = 0; k < COUNT(all_kinds); k++)
      for (int64_t m = 2; m <= 70; m += 68) {
        struct tile t = new_tile(all_kinds[k], all_types[y], m, 40, 3, 2);
        tile_fill(&t, 23, 1);
        t.b[7 * 2 + 1] = NAN;
        t.x1[1 * 3 + 2] = quiet_nan_with_payload();
        for (int64_t e = 0; e < m * 2; e++) t.acc[e] = NAN;
        tile_lay_out(&t);
        if (all_types[y] == ZLG_F64) ((double *)t.x1_data)[5] = quiet_nan_with_payload();
        if (all_types[y] == ZLG_F32) ((uint32_t *)t.x1_data)[5] = 0x7fc007a3;
        CU_ASSERT(tile_run(&t));
        int64_t wrong = 0;
        for (int64_t i = 0; i < m; i++)
          for (int64_t c = 0; c < 2; c++) wrong += !!isnan(t.acc[i * 2 + c]) != (c == 1 || i == 1);
        CU_ASSERT(wrong == 0);
        tile_free(&t);
      }
}
static void nan_goes_where_it_belongs(void) {
  each_isa(nan_body);
}

/* Bits depend on the values only: not on where operands lie, nor on which scratch is used. */
static void alignment_body(void) {
  for (int64_t y = 0; y < COUNT(all_types); y++)
    for (int64_t m = 3; m <= 131; m += 64) {
      struct tile t = new_tile(ZLG_MATERN32, all_types[y], m, 301, 4, 3), s = t;
      tile_fill(&t, 31, 2);
      tile_lay_out(&t);
      CU_ASSERT(tile_run(&t));
      s = t;
      s.acc = calloc((size_t)(m * 3), sizeof(double));
      const size_t size = all_types[y] == ZLG_F32 ? 4 : 8;
      char *moved[3];
      void *const from[] = {t.x1_data, t.x2_data, t.b_data};
      const int64_t elements[] = {m * 4, 301 * 4, 301 * 3};
      for (int o = 0; o < 3; o++) {
        moved[o] = malloc((size_t)(elements[o] + 3) * size);
        memcpy(moved[o] + size * (size_t)(o + 1), from[o], (size_t)elements[o] * size);
      }
      s.x1_data = moved[0] + size, s.x2_data = moved[1] + 2 * size, s.b_data = moved[2] + 3 * size;
      CU_ASSERT(tile_run(&s));
      CU_ASSERT(!memcmp(s.acc, t.acc, (size_t)(m * 3) * sizeof(double)));
      for (int o = 0; o < 3; o++) free(moved[o]);
      free(s.acc);
      tile_free(&t);
    }
}
static void bits_do_not_depend_on_alignment(void) {
  each_isa(alignment_body);
}

/* Equal lengthscales given one per dimension are one lengthscale. */
static void equal_lengthscales_body(void) {
  for (int64_t y = 0; y < COUNT(all_types); y++) {
    struct tile t = new_tile(ZLG_GAUSSIAN, all_types[y], 100, 90, 28, 1);
    tile_fill(&t, 41, 9);
    for (int k = 0; k < 28; k++) t.w[k] = 1 / 2.8;
    tile_lay_out(&t);
    double one[100];
    CU_ASSERT(tile_run(&t));
    memcpy(one, t.acc, sizeof one);
    t.args.isotropic = false;
    CU_ASSERT(tile_run(&t));
    CU_ASSERT(!memcmp(one, t.acc, sizeof one));
    tile_free(&t);
  }
}
static void equal_lengthscales_are_one(void) {
  each_isa(equal_lengthscales_body);
}

/* Several lengthscales with coordinates that cannot be packed scaled (too far apart), and those that can once centred.
 */
static void scaled_body(void) {
  for (int64_t y = 0; y < COUNT(all_types); y++)
    for (int far = 0; far < 2; far++)
      for (int64_t k = 0; k < COUNT(all_kinds); k++) {
        if (is_dot(all_kinds[k])) continue;
        struct tile t = new_tile(all_kinds[k], all_types[y], 75, 60, 4, 2);
        t.args.isotropic = false;
        tile_fill(&t, 43, 3);
        for (int64_t e = 0; e < 75 * 4; e++) t.x1[e] += far && e >= 150 ? 5e4 : 2e4;
        for (int64_t e = 0; e < 60 * 4; e++) t.x2[e] += far && e >= 120 ? 5e4 : 2e4;
        check(far ? "far" : "centred", &t);
        tile_free(&t);
      }
}
static void several_lengthscales_far_from_the_origin(void) {
  each_isa(scaled_body);
}

/* As many right-hand sides as anyone has (KeOps overflows its stack at 5e5), with every column's sum checked. */
static void columns_body(void) {
  struct tile t = new_tile(ZLG_LINEAR, ZLG_F32, 3, 2, 1, 500000);
  t.args.offset = 0;
  for (int i = 0; i < 3; i++) t.x1[i] = i + 1;
  t.x2[0] = 1, t.x2[1] = 2;
  for (int64_t c = 0; c < t.args.r; c++) t.b[c] = (double)(c % 1000), t.b[t.args.r + c] = 1;
  tile_lay_out(&t);
  CU_ASSERT(tile_run(&t));
  int64_t wrong = 0;
  for (int64_t i = 0; i < 3; i++)
    for (int64_t c = 0; c < t.args.r; c++) wrong += t.acc[i * t.args.r + c] != (double)((i + 1) * (c % 1000 + 2));
  CU_ASSERT(wrong == 0);
  tile_free(&t);
}
static void half_a_million_columns(void) {
  each_isa(columns_body);
}

int main(int argc, char **argv) {
  static const struct zlg_test_case cases[] = {
      {"random tiles within the bound", random_tiles_within_bound},
      {"f32 sum of 2e7 ones", f32_sum_of_2e7_ones},
      {"f32 far from the origin", f32_far_from_the_origin},
      {"several lengthscales far from the origin", several_lengthscales_far_from_the_origin},
      {"equal lengthscales are one", equal_lengthscales_are_one},
      {"coincident points and infinitely far ones", coincident_and_infinitely_far},
      {"known values", known_values},
      {"integers are exact", integers_are_exact},
      {"underflow is quiet", underflow_is_quiet},
      {"K(X, X) is symmetric bitwise", symmetric_bitwise},
      {"errors keep K(X, X) definite", errors_keep_definiteness},
      {"NaN goes where it belongs", nan_goes_where_it_belongs},
      {"bits do not depend on alignment", bits_do_not_depend_on_alignment},
      {"half a million columns", half_a_million_columns},
      {NULL, NULL},
  };
  return zlg_test_main(argc, argv, cases);
}
