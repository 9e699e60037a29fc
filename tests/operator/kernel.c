/* Kernel operators through tasks: every kernel against its formula, every storage order and shape, alpha and beta,
 * files as any operand, and what must hold between products whatever the numbers are. Tiles are small, so that a
 * product is many tasks; nothing runs directly unless a case says so. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support_product.h"

static const zlg_type types[] = {ZLG_F32, ZLG_F64};
static const zlg_order orders[] = {ZLG_ROW_MAJOR, ZLG_COLUMN_MAJOR};
#define KINDS ZLG_SIGMOID

/* A device compiles a program for each kernel, type and storage, for a second or so: with devices, only one in `every`
 * combinations is tried. */
static bool taken(int which, int every) {
  return zlg_test_mode() == ZLG_TEST_CPU || which % every == 0;
}

/* The context of most cases. */
static zlg_context *context;
/* Settings of the context that is there: 0 for what the mode says. */
struct settings {
  int64_t tile_rows, tile_columns;
  double direct_seconds;
  bool one_kind; /* workers of one kind only: devices where the mode has them */
};

static void make_context(const struct settings *settings) {
  zlg_context_options options;
  zlg_test_context_options(&options);
  options.tile_rows = settings->tile_rows;
  options.tile_columns = settings->tile_columns;
  options.direct_seconds = settings->direct_seconds;
  if (settings->one_kind && zlg_test_device_workers() > 0) options.cpu_workers = 0;
  if (zlg_context_create(&context, &options) != ZLG_OK) {
    fprintf(stderr, "zlg_context_create: %s\n", zlg_context_message(NULL));
    exit(1);
  }
}

static const struct settings small_tiles = {.tile_rows = 32, .tile_columns = 32};

static void with_context(const struct settings *settings, void (*body)(void)) {
  make_context(settings);
  body();
  zlg_context_release(context);
  context = NULL;
}

/* Parameters that are not the defaults, lengthscales per dimension or one. */
static zlg_kernel_spec spec_of(zlg_kernel_kind kind, int64_t d, bool per_dimension, double *lengthscales) {
  zlg_kernel_spec spec;
  zlg_kernel_spec_init(&spec, kind);
  for (int64_t k = 0; k < d; k++)
    lengthscales[k] = sqrt((double)d) * (per_dimension ? 0.7 + 0.4 * (double)(k % 5) : 1.1);
  if (d > 0) spec.lengthscales = lengthscales;
  spec.lengthscale_count = per_dimension && d > 0 ? d : 1;
  spec.alpha = 0.7;
  spec.gamma = 0.6;
  spec.offset = 0.3;
  spec.degree = 3;
  return spec;
}

/* One product of normal numbers, checked. */
struct problem {
  zlg_kernel_kind kind;
  zlg_type type;
  bool per_dimension;
  zlg_op op;
  int64_t m, n, d, r;
  zlg_order x1_order, x2_order, b_order, y_order;
  int64_t gap;
  double alpha, beta;
};

static const struct problem usual = {.kind = ZLG_GAUSSIAN,
                                     .type = ZLG_F64,
                                     .op = ZLG_NOTRANS,
                                     .m = 70,
                                     .n = 90,
                                     .d = 3,
                                     .r = 2,
                                     .x1_order = ZLG_ROW_MAJOR,
                                     .x2_order = ZLG_ROW_MAJOR,
                                     .b_order = ZLG_ROW_MAJOR,
                                     .y_order = ZLG_ROW_MAJOR,
                                     .alpha = 1};

/* The operands of a problem; y holds normal numbers, or NaN where beta is 0. */
struct operands {
  zlg_kernel_spec spec;
  double lengthscales[128];
  struct zlg_test_array x1, x2, b, y, before;
};

static void make_operands(const struct problem *p, struct operands *o) {
  uint64_t state = 17 + (uint64_t)p->kind;
  int64_t columns = p->op == ZLG_NOTRANS ? p->n : p->m, rows = p->op == ZLG_NOTRANS ? p->m : p->n;
  o->spec = spec_of(p->kind, p->d, p->per_dimension, o->lengthscales);
  o->x1 = zlg_test_array_random(p->type, p->m, p->d, p->x1_order, p->gap, &state, 0.5, 1);
  o->x2 = zlg_test_array_random(p->type, p->n, p->d, p->x2_order, p->gap, &state, 0.2, 1);
  o->b = zlg_test_array_random(p->type, columns, p->r, p->b_order, p->gap, &state, 0, 1);
  o->y = zlg_test_array_random(p->type, rows, p->r, p->y_order, p->gap, &state, 0, 1);
  if (p->beta == 0) zlg_test_array_fill(&o->y, NAN);
  o->before = zlg_test_array_copy(&o->y, ZLG_ROW_MAJOR, 0);
}

static void free_operands(struct operands *o) {
  struct zlg_test_array *arrays[] = {&o->x1, &o->x2, &o->b, &o->y, &o->before};
  for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) zlg_test_array_free(arrays[i]);
}

static void check_problem(const struct problem *p) {
  struct operands o;
  make_operands(p, &o);
  zlg_test_product(context, &o.spec, &o.x1, &o.x2, p->op, p->alpha, &o.b, p->beta, &o.y);
  struct zlg_test_kernel kernel = zlg_test_kernel_new(&o.spec, &o.x1, &o.x2);
  ZLG_CHECK_PRODUCT(&kernel, p->op, p->alpha, &o.b, p->beta, &o.before, &o.y);
  zlg_test_kernel_free(&kernel);
  free_operands(&o);
}

/* --- every kernel, order, shape --- */

static void check_kinds(zlg_op op) {
  for (int kind = ZLG_GAUSSIAN; kind <= (int)KINDS; kind++)
    for (size_t t = 0; t < 2; t++)
      for (int per_dimension = 0; per_dimension < 2; per_dimension++) {
        if (!taken(kind + per_dimension + 2 * (int)t, 8)) continue;
        struct problem p = usual;
        p.kind = (zlg_kernel_kind)kind;
        p.type = types[t];
        p.per_dimension = per_dimension;
        p.op = op;
        check_problem(&p);
      }
}

static void kinds_plain(void) {
  check_kinds(ZLG_NOTRANS);
}
static void kinds_transposed(void) {
  check_kinds(ZLG_TRANS);
}
static void every_kernel_is_its_formula(void) {
  with_context(&small_tiles, kinds_plain);
}
static void every_transposed_kernel_is_its_formula(void) {
  with_context(&small_tiles, kinds_transposed);
}

/* Bits of `which`: the orders of X1, X2, B, Y, gaps or none, the operation. */
static struct problem stored(int which, zlg_kernel_kind kind, zlg_type type) {
  struct problem p = usual;
  p.kind = kind;
  p.type = type;
  p.x1_order = orders[which & 1];
  p.x2_order = orders[which >> 1 & 1];
  p.b_order = orders[which >> 2 & 1];
  p.y_order = orders[which >> 3 & 1];
  p.gap = which >> 4 & 1 ? 5 : 0;
  p.op = which >> 5 & 1 ? ZLG_TRANS : ZLG_NOTRANS;
  p.beta = which & 1 ? -0.5 : 0;
  return p;
}

static void all_orders(void) {
  for (int which = 0; which < 64; which++)
    for (size_t t = 0; t < 2; t++) {
      if (!taken(2 * which + (int)t, 43)) continue;
      struct problem p = stored(which, ZLG_GAUSSIAN, types[t]);
      p.r = 3;
      if (taken(which, 2)) check_problem(&p);
      p.r = 12; /* the form for many right-hand sides */
      p.d = 5;
      if (taken(which + 1, 2)) check_problem(&p);
    }
}
static void operands_lie_in_any_order_with_any_stride(void) {
  with_context(&small_tiles, all_orders);
}

static const int64_t lengths[] = {0, 1, 2, 31, 32, 33, 100};
#define LENGTHS (sizeof lengths / sizeof *lengths)

static void all_rows_and_columns(void) {
  for (size_t i = 0; i < LENGTHS; i++)
    for (size_t j = 0; j < LENGTHS; j++)
      for (size_t t = 0; t < 2; t++) {
        if (!taken((int)(i + 2 * j + 3 * t), 15)) continue;
        struct problem p = usual;
        p.type = types[t];
        p.op = (i + j) % 2 ? ZLG_TRANS : ZLG_NOTRANS;
        p.m = lengths[i];
        p.n = lengths[j];
        p.beta = i % 2 ? 0.5 : 0;
        check_problem(&p);
      }
}
static void any_number_of_points_is_right(void) {
  with_context(&small_tiles, all_rows_and_columns);
}

static void all_dimensions(void) {
  static const int64_t dimensions[] = {0, 1, 2, 4, 7, 8, 16, 17, 64, 100};
  static const zlg_kernel_kind kinds[] = {ZLG_EXPONENTIAL, ZLG_LAPLACIAN, ZLG_POLYNOMIAL};
  for (size_t i = 0; i < sizeof dimensions / sizeof *dimensions; i++)
    for (size_t t = 0; t < 2; t++) {
      if (!taken((int)(i + 4 * t), 9)) continue;
      struct problem p = usual;
      p.type = types[t];
      p.kind = kinds[i % 3];
      p.d = dimensions[i];
      p.per_dimension = i % 2;
      check_problem(&p);
      p.op = ZLG_TRANS;
      p.beta = 2;
      p.x1_order = ZLG_COLUMN_MAJOR;
      check_problem(&p);
    }
}
static void any_dimension_is_right(void) {
  with_context(&small_tiles, all_dimensions);
}

static void all_right_hand_sides(void) {
  static const int64_t columns[] = {0, 1, 3, 4, 5, 8, 10, 17, 33, 300};
  for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
    for (size_t t = 0; t < 2; t++) {
      if (!taken((int)(i + 4 * t), 9)) continue;
      struct problem p = usual;
      p.type = types[t];
      p.r = columns[i];
      p.b_order = orders[i % 2];
      p.y_order = orders[i / 2 % 2];
      check_problem(&p);
    }
}
static void any_number_of_right_hand_sides_is_right(void) {
  with_context(&small_tiles, all_right_hand_sides);
}

/* In no dimension all points are one: the kernel at distance 0 and product 0. */
static void no_dimension(void) {
  for (int kind = ZLG_GAUSSIAN; kind <= (int)KINDS; kind++)
    for (size_t t = 0; t < 2; t++) {
      if (!taken(kind + (int)t, 9)) continue;
      struct problem p = usual;
      p.kind = (zlg_kernel_kind)kind;
      p.type = types[t];
      p.d = 0;
      p.op = kind % 2 ? ZLG_TRANS : ZLG_NOTRANS;
      p.beta = 1.5;
      check_problem(&p);
    }
}
static void points_in_no_dimension_are_one_point(void) {
  with_context(&small_tiles, no_dimension);
}

static void one_tile(void) {
  struct problem p = usual;
  p.m = 200;
  p.n = 300;
  for (size_t t = 0; t < 2; t++) {
    p.type = types[t];
    if (taken((int)t, 2)) check_problem(&p);
  }
}
static void tiles_chosen_by_the_library_are_right(void) {
  static const struct settings chosen = {.direct_seconds = 0};
  with_context(&chosen, one_tile);
}

/* --- alpha, beta, NaN --- */

static void all_factors(void) {
  static const double factors[] = {0, 1, -1, 0.3};
  for (size_t i = 0; i < 4; i++)
    for (size_t j = 0; j < 4; j++)
      for (int which = 0; which < 4; which++) {
        struct problem p = usual;
        p.alpha = factors[i];
        p.beta = factors[j];
        p.type = types[which & 1];
        p.op = which & 2 ? ZLG_TRANS : ZLG_NOTRANS;
        check_problem(&p);
      }
}
static void alpha_and_beta_scale_the_product_and_y(void) {
  with_context(&small_tiles, all_factors);
}

static void nothing_read(void) {
  for (size_t t = 0; t < 2; t++)
    for (int beta = 0; beta < 2; beta++) {
      struct problem p = usual;
      p.type = types[t];
      p.alpha = 0;
      p.beta = beta ? 0.5 : 0;
      struct operands o;
      make_operands(&p, &o);
      zlg_test_array_fill(&o.x1, NAN);
      zlg_test_array_fill(&o.x2, NAN);
      zlg_test_array_fill(&o.b, NAN);
      zlg_test_product(context, &o.spec, &o.x1, &o.x2, p.op, 0, &o.b, p.beta, &o.y);
      for (int64_t i = 0; i < o.y.rows; i++)
        for (int64_t k = 0; k < o.y.columns; k++) {
          double want = beta ? 0.5 * zlg_test_array_get(&o.before, i, k) : 0;
          ZLG_CHECK_CLOSE(zlg_test_array_get(&o.y, i, k), want, zlg_test_gamma(1, p.type) * fabs(want));
        }
      free_operands(&o);
    }
}
static void alpha_zero_reads_neither_the_points_nor_x(void) {
  with_context(&small_tiles, nothing_read);
}

/* NaN in one entry of B reaches all rows of its column and no other; NaN in one point of X1 one row, of X2 all. */
static void nan_in(int operand) {
  for (size_t t = 0; t < 2; t++) {
    struct problem p = usual;
    p.type = types[t];
    struct operands o;
    make_operands(&p, &o);
    struct zlg_test_array *const arrays[] = {&o.b, &o.x1, &o.x2};
    zlg_test_array_set(arrays[operand], 41, 1, NAN);
    zlg_test_product(context, &o.spec, &o.x1, &o.x2, p.op, 1, &o.b, 0, &o.y);
    for (int64_t i = 0; i < o.y.rows; i++)
      for (int64_t k = 0; k < o.y.columns; k++) {
        bool met = operand == 0 ? k == 1 : operand == 1 ? i == 41 : true;
        zlg_check(isnan(zlg_test_array_get(&o.y, i, k)) == met, "NaN where the sum does not meet it, or lost", __FILE__,
                  __LINE__);
      }
    free_operands(&o);
  }
}
static void nans(void) {
  for (int operand = 0; operand < 3; operand++) nan_in(operand);
}
static void nan_is_where_the_sum_meets_it(void) {
  with_context(&small_tiles, nans);
}

/* --- files --- */

enum storage { MEMORY, NPY_C, NPY_F, RAW, STORAGES };

static zlg_matrix *store(struct zlg_test_array *array, enum storage storage, const char *name) {
  if (storage == MEMORY) return zlg_test_array_wrap(context, array);
  zlg_order order = storage == NPY_F ? ZLG_COLUMN_MAJOR : ZLG_ROW_MAJOR;
  struct zlg_test_array turned = zlg_test_array_copy(array, order, 0);
  zlg_matrix *matrix = zlg_test_array_file(context, &turned, storage == RAW ? ZLG_TEST_RAW : ZLG_TEST_NPY, name);
  zlg_test_array_free(&turned);
  return matrix;
}

static zlg_matrix *output(const struct zlg_test_array *array, enum storage storage, const char *path) {
  zlg_matrix *matrix = NULL;
  zlg_order order = storage == NPY_F ? ZLG_COLUMN_MAJOR : ZLG_ROW_MAJOR;
  if (storage == RAW)
    ZLG_CHECK_OK(zlg_matrix_create_raw(context, &matrix, path, array->type, array->rows, array->columns, order),
                 context);
  else
    ZLG_CHECK_OK(zlg_matrix_create_npy(context, &matrix, path, array->type, array->rows, array->columns, order),
                 context);
  return matrix;
}

/* A product into a file: what was there before is written first where beta reads it; the file is read back into y. */
static void product_into_file(zlg_operator *A, const struct problem *p, zlg_matrix *B, enum storage storage,
                              struct zlg_test_array *y) {
  char *path = zlg_test_path("y");
  zlg_matrix *Y = output(y, storage, path);
  if (p->beta != 0) ZLG_CHECK_OK(zlg_matrix_write(Y, 0, y->rows, 0, y->columns, y->order, y->ld, y->memory), context);
  ZLG_CHECK_OK(zlg_test_apply(A, p->op, p->alpha, B, p->beta, Y), context);
  ZLG_CHECK_OK(zlg_matrix_close(Y), context);
  ZLG_CHECK_OK(zlg_matrix_read(Y, 0, y->rows, 0, y->columns, y->order, y->ld, y->memory), context);
  zlg_matrix_release(Y);
  remove(path);
  free(path);
}

static void check_files(zlg_operator *A, const struct problem *p, const struct zlg_test_kernel *kernel,
                        struct operands *o, zlg_matrix *B, enum storage y_storage) {
  struct zlg_test_array y = zlg_test_array_copy(&o->before, p->y_order, p->gap);
  if (y_storage == MEMORY) {
    zlg_matrix *Y = zlg_test_array_wrap(context, &y);
    ZLG_CHECK_OK(zlg_test_apply(A, p->op, p->alpha, B, p->beta, Y), context);
    zlg_matrix_release(Y);
  } else {
    product_into_file(A, p, B, y_storage, &y);
  }
  ZLG_CHECK_PRODUCT(kernel, p->op, p->alpha, &o->b, p->beta, &o->before, &y);
  zlg_test_array_free(&y);
}

/* Every storage of X1, X2, B and Y with every other. */
static void files_of(zlg_type type, zlg_op op, double beta) {
  struct problem p = usual;
  p.type = type;
  p.op = op;
  p.beta = beta;
  struct operands o;
  make_operands(&p, &o);
  struct zlg_test_kernel kernel = zlg_test_kernel_new(&o.spec, &o.x1, &o.x2);
  zlg_matrix *X1[STORAGES], *X2[STORAGES], *B[STORAGES];
  for (int s = 0; s < STORAGES; s++) {
    char name[32];
    snprintf(name, sizeof name, "x1-%d", s);
    X1[s] = store(&o.x1, (enum storage)s, name);
    snprintf(name, sizeof name, "x2-%d", s);
    X2[s] = store(&o.x2, (enum storage)s, name);
    snprintf(name, sizeof name, "b-%d", s);
    B[s] = store(&o.b, (enum storage)s, name);
  }
  for (int which = 0; which < STORAGES * STORAGES; which++) {
    if (!taken(which, 5)) continue; /* the two in the same storage */
    zlg_operator *A = NULL;
    ZLG_CHECK_OK(zlg_kernel(context, &A, &o.spec, X1[which % STORAGES], X2[which / STORAGES]), context);
    for (int s = 0; s < STORAGES * STORAGES; s++)
      check_files(A, &p, &kernel, &o, B[s % STORAGES], (enum storage)(s / STORAGES));
    zlg_operator_release(A);
  }
  for (int s = 0; s < STORAGES; s++) {
    zlg_matrix_release(X1[s]);
    zlg_matrix_release(X2[s]);
    zlg_matrix_release(B[s]);
  }
  zlg_test_kernel_free(&kernel);
  free_operands(&o);
}

static void files_written(void) {
  files_of(ZLG_F32, ZLG_NOTRANS, 0);
}
static void files_updated(void) {
  files_of(ZLG_F64, ZLG_TRANS, -0.5);
}
static void any_operand_may_be_a_file(void) {
  with_context(&small_tiles, files_written);
}
static void a_file_may_be_updated(void) {
  with_context(&small_tiles, files_updated);
}

/* A limit that leaves room for few tiles: they are closed and opened again all the time. */
static void files_under_a_small_limit(void) {
  zlg_context_options options;
  zlg_test_context_options(&options);
  options.tile_rows = options.tile_columns = 32;
  options.direct_seconds = 0;
  options.memory_limit = 32 * 1024;
  if (zlg_context_create(&context, &options) != ZLG_OK) {
    zlg_check(false, zlg_context_message(NULL), __FILE__, __LINE__);
    return;
  }
  files_of(ZLG_F64, ZLG_NOTRANS, 0.5);
  zlg_context_release(context);
}

/* --- what holds between products --- */

/* Both keep to the bound of the product, so they differ by twice of it at most. */
static void many_tiles_and_one_tile_agree(void) {
  static const struct settings settings[] = {{.tile_rows = 7, .tile_columns = 13},
                                             {.tile_rows = 70, .tile_columns = 90}};
  for (size_t t = 0; t < 2; t++) {
    if (!taken((int)t, 2)) continue;
    struct problem p = usual;
    p.type = types[t];
    struct operands o;
    make_operands(&p, &o);
    struct zlg_test_array results[2];
    for (int s = 0; s < 2; s++) {
      results[s] = zlg_test_array_new(p.type, p.m, p.r, ZLG_ROW_MAJOR, 0);
      make_context(&settings[s]);
      zlg_test_product(context, &o.spec, &o.x1, &o.x2, p.op, 1, &o.b, 0, &results[s]);
      zlg_context_release(context);
    }
    struct zlg_test_kernel kernel = zlg_test_kernel_new(&o.spec, &o.x1, &o.x2);
    ZLG_CHECK_PRODUCT(&kernel, p.op, 1, &o.b, 0, NULL, &results[0]);
    ZLG_CHECK_PRODUCT(&kernel, p.op, 1, &o.b, 0, NULL, &results[1]);
    zlg_test_kernel_free(&kernel);
    zlg_test_array_free(&results[0]);
    zlg_test_array_free(&results[1]);
    free_operands(&o);
  }
}

/* |A(x + 2 z) - A x - 2 A z| for |K| <= 1: three sums of n terms, each good to 2 gamma_{n+20} of its absolute values,
 * and the roundings of x + 2 z, n of them, which are no greater. */
static void linear_in_x(void) {
  for (size_t t = 0; t < 2; t++) {
    struct problem p = usual;
    p.type = types[t];
    p.r = 1;
    struct operands o;
    make_operands(&p, &o);
    uint64_t state = 5;
    struct zlg_test_array z = zlg_test_array_random(p.type, p.n, 1, ZLG_ROW_MAJOR, 0, &state, 0, 1);
    struct zlg_test_array sum = zlg_test_array_copy(&o.b, ZLG_ROW_MAJOR, 0);
    struct zlg_test_array yx = zlg_test_array_copy(&o.y, ZLG_ROW_MAJOR, 0),
                          yz = zlg_test_array_copy(&yx, ZLG_ROW_MAJOR, 0);
    long double weight = 0;
    for (int64_t j = 0; j < p.n; j++) {
      double x = zlg_test_array_get(&o.b, j, 0), twice = 2 * zlg_test_array_get(&z, j, 0);
      zlg_test_array_set(&sum, j, 0, x + twice);
      weight += fabs(x) + fabs(twice);
    }
    zlg_test_product(context, &o.spec, &o.x1, &o.x2, p.op, 1, &o.b, 0, &yx);
    zlg_test_product(context, &o.spec, &o.x1, &o.x2, p.op, 2, &z, 0, &yz);
    zlg_test_product(context, &o.spec, &o.x1, &o.x2, p.op, 1, &sum, 0, &o.y);
    for (int64_t i = 0; i < p.m; i++)
      ZLG_CHECK_CLOSE(zlg_test_array_get(&o.y, i, 0), zlg_test_array_get(&yx, i, 0) + zlg_test_array_get(&yz, i, 0),
                      6 * zlg_test_gamma((double)p.n + 20, p.type) * weight);
    struct zlg_test_array *made[] = {&z, &sum, &yx, &yz};
    for (size_t i = 0; i < 4; i++) zlg_test_array_free(made[i]);
    free_operands(&o);
  }
}
static void products_are_linear_in_x(void) {
  with_context(&small_tiles, linear_in_x);
}

static long double dot(const struct zlg_test_array *a, const struct zlg_test_array *b, long double *magnitude) {
  long double sum = 0;
  *magnitude = 0;
  for (int64_t i = 0; i < a->rows; i++) {
    long double term = (long double)zlg_test_array_get(a, i, 0) * zlg_test_array_get(b, i, 0);
    sum += term;
    *magnitude += fabsl(term);
  }
  return sum;
}

static long double sum_of_magnitudes(const struct zlg_test_array *a) {
  long double sum = 0;
  for (int64_t i = 0; i < a->rows; i++) sum += fabs(zlg_test_array_get(a, i, 0));
  return sum;
}

/* <A x, y> = <x, A' y>: with |K| <= 1 each side is good to 2 gamma of sum |x| sum |y|. */
static void adjoint(void) {
  for (int kind = ZLG_GAUSSIAN; kind <= (int)ZLG_CAUCHY; kind++)
    for (size_t t = 0; t < 2; t++) {
      if (!taken(kind + (int)t, 9)) continue;
      struct problem p = usual;
      p.type = types[t];
      p.kind = (zlg_kernel_kind)kind;
      p.r = 1;
      p.per_dimension = true;
      struct operands o;
      make_operands(&p, &o);
      uint64_t state = 6;
      struct zlg_test_array y = zlg_test_array_random(p.type, p.m, 1, ZLG_ROW_MAJOR, 0, &state, 0, 1);
      struct zlg_test_array back = zlg_test_array_new(p.type, p.n, 1, ZLG_ROW_MAJOR, 0);
      zlg_test_product(context, &o.spec, &o.x1, &o.x2, ZLG_NOTRANS, 1, &o.b, 0, &o.y);
      zlg_test_product(context, &o.spec, &o.x1, &o.x2, ZLG_TRANS, 1, &y, 0, &back);
      long double one, other, left = dot(&o.y, &y, &one), right = dot(&o.b, &back, &other);
      ZLG_CHECK_CLOSE(left, right,
                      4 * zlg_test_gamma((double)(p.m + p.n) + 20, p.type) * sum_of_magnitudes(&o.b) *
                          sum_of_magnitudes(&y));
      zlg_test_array_free(&y);
      zlg_test_array_free(&back);
      free_operands(&o);
    }
}
static void the_transpose_is_the_adjoint(void) {
  with_context(&small_tiles, adjoint);
}

/* The calling thread computes on the CPU: compared with tasks of CPU workers. */
static void a_direct_product_has_the_bits_of_its_one_tile(void) {
  if (zlg_test_mode() != ZLG_TEST_CPU) return;
  for (int which = 0; which < 52; which++) {
    struct problem p = usual;
    p.kind = (zlg_kernel_kind)(ZLG_GAUSSIAN + which / 4);
    p.type = types[which & 1];
    p.op = which & 2 ? ZLG_TRANS : ZLG_NOTRANS;
    p.d = which % 5;
    p.beta = 0.25;
    p.b_order = orders[which / 8 % 2];
    struct operands o;
    make_operands(&p, &o);
    struct zlg_test_array by_task = zlg_test_array_copy(&o.before, ZLG_ROW_MAJOR, 0);
    const struct settings direct = {.direct_seconds = 1}, task = {.tile_rows = 1000, .tile_columns = 1000};
    int64_t before = zlg_test_tasks[ZLG_WORKER_CPU];
    make_context(&direct);
    zlg_test_product(context, &o.spec, &o.x1, &o.x2, p.op, 1.5, &o.b, p.beta, &o.y);
    zlg_context_release(context);
    CU_ASSERT_EQUAL(zlg_test_tasks[ZLG_WORKER_CPU], before);
    make_context(&task);
    zlg_test_product(context, &o.spec, &o.x1, &o.x2, p.op, 1.5, &o.b, p.beta, &by_task);
    zlg_context_release(context);
    CU_ASSERT_EQUAL(zlg_test_tasks[ZLG_WORKER_CPU], before + 2);
    CU_ASSERT_TRUE(zlg_test_array_same_bits(&o.y, &by_task));
    zlg_test_array_free(&by_task);
    free_operands(&o);
  }
}

static void repeated(void) {
  for (int kind = ZLG_GAUSSIAN; kind <= (int)KINDS; kind++) {
    if (!taken(kind, 5)) continue;
    struct problem p = usual;
    p.kind = (zlg_kernel_kind)kind;
    p.type = types[kind % 2];
    p.m = 300;
    p.n = 400;
    struct operands o;
    make_operands(&p, &o);
    struct zlg_test_array again = zlg_test_array_copy(&o.y, ZLG_ROW_MAJOR, 0);
    zlg_test_product(context, &o.spec, &o.x1, &o.x2, p.op, 1, &o.b, 0, &o.y);
    for (int repeat = 0; repeat < 3; repeat++) {
      zlg_test_product(context, &o.spec, &o.x1, &o.x2, p.op, 1, &o.b, 0, &again);
      CU_ASSERT_TRUE(zlg_test_array_same_bits(&o.y, &again));
    }
    zlg_test_array_free(&again);
    free_operands(&o);
  }
}
static void a_product_repeated_on_one_kind_of_worker_has_the_same_bits(void) {
  static const struct settings settings = {.tile_rows = 64, .tile_columns = 32, .one_kind = true};
  with_context(&settings, repeated);
}

/* --- what an operator says of itself --- */

static void information(void) {
  struct problem p = usual;
  struct operands o;
  make_operands(&p, &o);
  zlg_matrix *X1 = zlg_test_array_wrap(context, &o.x1), *X2 = zlg_test_array_wrap(context, &o.x2);
  zlg_operator *A = NULL;
  zlg_operator_info info;
  ZLG_CHECK_OK(zlg_kernel(context, &A, &o.spec, X1, X2), context);
  ZLG_CHECK_OK(zlg_operator_get_info(A, &info), context);
  CU_ASSERT_STRING_EQUAL(info.kind, "kernel");
  CU_ASSERT_EQUAL(info.type, ZLG_F64);
  CU_ASSERT_EQUAL(info.rows, 70);
  CU_ASSERT_EQUAL(info.columns, 90);
  CU_ASSERT_EQUAL(info.tileable, 1);
  zlg_cost cost;
  ZLG_CHECK_OK(zlg_operator_cost(A, ZLG_TRANS, 2, &cost), context);
  CU_ASSERT_EQUAL(cost.work, 70 * 90);
  CU_ASSERT_EQUAL(cost.tile_rows, 32);
  CU_ASSERT_EQUAL(cost.tile_columns, 32);
  CU_ASSERT_EQUAL(cost.tasks, 3 * 3 + 3); /* tiles of 90 x 70, and a last task for each block of rows */
  CU_ASSERT_TRUE(cost.flops > cost.work && cost.seconds > 0 && cost.memory_bytes > 0);
  zlg_operator_release(A);
  zlg_matrix_release(X1);
  zlg_matrix_release(X2);
  free_operands(&o);
}
static void an_operator_tells_its_shape_and_cost(void) {
  with_context(&small_tiles, information);
}

static void names_of_kernels_go_both_ways(void) {
  for (int kind = ZLG_GAUSSIAN; kind <= (int)KINDS; kind++)
    CU_ASSERT_EQUAL(zlg_kernel_from_name(zlg_kernel_name((zlg_kernel_kind)kind)), (zlg_kernel_kind)kind);
  CU_ASSERT_PTR_NULL(zlg_kernel_name((zlg_kernel_kind)0));
  CU_ASSERT_PTR_NULL(zlg_kernel_name((zlg_kernel_kind)(KINDS + 1)));
  CU_ASSERT_EQUAL(zlg_kernel_from_name("Gaussian"), 0);
  CU_ASSERT_EQUAL(zlg_kernel_from_name(NULL), 0);
}

int main(int argc, char **argv) {
  static const struct zlg_test_case cases[] = {
      {"every_kernel_is_its_formula", every_kernel_is_its_formula},
      {"every_transposed_kernel_is_its_formula", every_transposed_kernel_is_its_formula},
      {"operands_lie_in_any_order_with_any_stride", operands_lie_in_any_order_with_any_stride},
      {"any_number_of_points_is_right", any_number_of_points_is_right},
      {"any_dimension_is_right", any_dimension_is_right},
      {"any_number_of_right_hand_sides_is_right", any_number_of_right_hand_sides_is_right},
      {"points_in_no_dimension_are_one_point", points_in_no_dimension_are_one_point},
      {"tiles_chosen_by_the_library_are_right", tiles_chosen_by_the_library_are_right},
      {"alpha_and_beta_scale_the_product_and_y", alpha_and_beta_scale_the_product_and_y},
      {"alpha_zero_reads_neither_the_points_nor_x", alpha_zero_reads_neither_the_points_nor_x},
      {"nan_is_where_the_sum_meets_it", nan_is_where_the_sum_meets_it},
      {"any_operand_may_be_a_file", any_operand_may_be_a_file},
      {"a_file_may_be_updated", a_file_may_be_updated},
      {"files_under_a_small_limit", files_under_a_small_limit},
      {"many_tiles_and_one_tile_agree", many_tiles_and_one_tile_agree},
      {"products_are_linear_in_x", products_are_linear_in_x},
      {"the_transpose_is_the_adjoint", the_transpose_is_the_adjoint},
      {"a_direct_product_has_the_bits_of_its_one_tile", a_direct_product_has_the_bits_of_its_one_tile},
      {"a_product_repeated_on_one_kind_of_worker_has_the_same_bits",
       a_product_repeated_on_one_kind_of_worker_has_the_same_bits},
      {"an_operator_tells_its_shape_and_cost", an_operator_tells_its_shape_and_cost},
      {"names_of_kernels_go_both_ways", names_of_kernels_go_both_ways},
      {"devices_ran_tasks", zlg_test_devices_ran_tasks},
      {NULL, NULL}};
  /* On pretended cards, whose groups of 256 threads PoCL runs slowly: what differs in the glue. */
  static const struct zlg_test_case card_cases[] = {
      {"every_kernel_is_its_formula", every_kernel_is_its_formula},
      {"every_transposed_kernel_is_its_formula", every_transposed_kernel_is_its_formula},
      {"tiles_chosen_by_the_library_are_right", tiles_chosen_by_the_library_are_right},
      {"operands_lie_in_any_order_with_any_stride", operands_lie_in_any_order_with_any_stride},
      {"any_number_of_right_hand_sides_is_right", any_number_of_right_hand_sides_is_right},
      {"points_in_no_dimension_are_one_point", points_in_no_dimension_are_one_point},
      {"alpha_and_beta_scale_the_product_and_y", alpha_and_beta_scale_the_product_and_y},
      {"alpha_zero_reads_neither_the_points_nor_x", alpha_zero_reads_neither_the_points_nor_x},
      {"any_operand_may_be_a_file", any_operand_may_be_a_file},
      {"a_file_may_be_updated", a_file_may_be_updated},
      {"a_product_repeated_on_one_kind_of_worker_has_the_same_bits",
       a_product_repeated_on_one_kind_of_worker_has_the_same_bits},
      {"devices_ran_tasks", zlg_test_devices_ran_tasks},
      {NULL, NULL}};
  return zlg_test_main(argc, argv, zlg_test_pretended_cards() ? card_cases : cases);
}
