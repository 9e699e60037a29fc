/* Kronecker products against the dense matrix in long double: every op, side, storage order and leading dimension, in
 * the calling thread, in tasks over blocks of vectors and in two stages, from memory and files; and what must hold
 * between products whatever the numbers are. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support_product.h"

static const zlg_type types[] = {ZLG_F32, ZLG_F64};
static const zlg_order orders[] = {ZLG_ROW_MAJOR, ZLG_COLUMN_MAJOR};
static zlg_context *context;

struct settings {
  int64_t tile_rows, tile_columns, memory_limit;
  double direct_seconds;
};
static const struct settings at_once = {.direct_seconds = 1}, tasks = {.tile_columns = 3}, stages = {.tile_rows = 1};

static void make_context(const struct settings *settings) {
  zlg_context_options options;
  zlg_test_context_options(&options);
  options.tile_rows = settings->tile_rows;
  options.tile_columns = settings->tile_columns;
  options.memory_limit = settings->memory_limit;
  options.direct_seconds = settings->direct_seconds;
  if (zlg_context_create(&context, &options) == ZLG_OK) return;
  fprintf(stderr, "zlg_context_create: %s\n", zlg_context_message(NULL));
  exit(1);
}

static void with_context(const struct settings *settings, void (*body)(void)) {
  make_context(settings);
  body();
  zlg_context_release(context);
  context = NULL;
}

/* ---- a product with its reference -------------------------------------------------------------------------------- */

#define MOST 8
struct problem {
  zlg_type type;
  int count;
  int64_t rows[MOST], columns[MOST]; /* of op_i(F_i) */
  int transposed;                    /* bit i: F_i is given transposed */
  int by_columns;                    /* bit i: and stored by columns */
  bool right;
  zlg_op op;
  int64_t vectors;
  zlg_order x_order, y_order;
  int64_t gap;
  double alpha, beta;
  bool files;
};

struct operands {
  struct zlg_test_array factors[MOST], x, y, before;
  zlg_matrix *matrices[MOST], *X, *Y;
  zlg_operator *A;
  int64_t rows, columns;
};

static double factor_element(const struct problem *p, const struct operands *o, int f, int64_t i, int64_t j) {
  return p->transposed >> f & 1 ? zlg_test_array_get(&o->factors[f], j, i) : zlg_test_array_get(&o->factors[f], i, j);
}

/* A[i, j] of the product of all op_i(F_i), by the definition. */
static long double element(const struct problem *p, const struct operands *o, int64_t i, int64_t j) {
  long double value = 1;
  for (int f = p->count - 1; f >= 0; f--) {
    value *= (long double)factor_element(p, o, f, i % p->rows[f], j % p->columns[f]);
    i /= p->rows[f], j /= p->columns[f];
  }
  return value;
}

static struct zlg_test_array normal(const struct problem *p, int64_t rows, int64_t columns, zlg_order order,
                                    uint64_t *state) {
  return zlg_test_array_random(p->type, rows, columns, order, p->gap, state, 0.1, 1);
}

static zlg_matrix *operand(const struct problem *p, struct zlg_test_array *array, const char *name) {
  return p->files ? zlg_test_array_file(context, array, ZLG_TEST_NPY, name) : zlg_test_array_wrap(context, array);
}

static void make_factors(const struct problem *p, struct operands *o, uint64_t *state) {
  zlg_op ops[MOST];
  o->rows = o->columns = 1;
  for (int f = 0; f < p->count; f++) {
    const bool flipped = p->transposed >> f & 1;
    char name[32];
    snprintf(name, sizeof name, "factor%d.npy", f);
    o->factors[f] = normal(p, flipped ? p->columns[f] : p->rows[f], flipped ? p->rows[f] : p->columns[f],
                           orders[p->by_columns >> f & 1], state);
    o->matrices[f] = operand(p, &o->factors[f], name);
    ops[f] = flipped ? ZLG_TRANS : ZLG_NOTRANS;
    o->rows *= p->rows[f], o->columns *= p->columns[f];
  }
  ZLG_CHECK_OK(zlg_kron(context, &o->A, p->count, o->matrices, ops), context);
}

static void make_operands(const struct problem *p, struct operands *o) {
  uint64_t state = 5;
  *o = (struct operands){0};
  make_factors(p, o, &state);
  const bool flipped = p->op == ZLG_TRANS;
  const int64_t in = flipped != p->right ? o->rows : o->columns, out = flipped != p->right ? o->columns : o->rows;
  o->x = normal(p, p->right ? p->vectors : in, p->right ? in : p->vectors, p->x_order, &state);
  o->y = normal(p, p->right ? p->vectors : out, p->right ? out : p->vectors, p->y_order, &state);
  if (p->beta == 0) zlg_test_array_fill(&o->y, NAN);
  o->before = zlg_test_array_copy(&o->y, ZLG_ROW_MAJOR, 0);
  o->X = operand(p, &o->x, "x.npy");
  if (!p->files) {
    o->Y = zlg_test_array_wrap(context, &o->y);
    return;
  }
  char *path = zlg_test_path("y.npy");
  ZLG_CHECK_OK(zlg_matrix_create_npy(context, &o->Y, path, p->type, o->y.rows, o->y.columns, p->y_order), context);
  ZLG_CHECK_OK(zlg_matrix_write(o->Y, 0, o->y.rows, 0, o->y.columns, o->y.order, o->y.ld, o->y.memory), context);
  free(path);
}

static void free_operands(const struct problem *p, struct operands *o) {
  zlg_operator_release(o->A);
  zlg_matrix_release(o->X);
  zlg_matrix_release(o->Y);
  for (int f = 0; f < p->count; f++) {
    zlg_matrix_release(o->matrices[f]);
    zlg_test_array_free(&o->factors[f]);
  }
  struct zlg_test_array *arrays[] = {&o->x, &o->y, &o->before};
  for (int i = 0; i < 3; i++) zlg_test_array_free(arrays[i]);
}

static int apply(const struct problem *p, const struct operands *o) {
  return (p->right ? zlg_apply_right : zlg_apply)(o->A, p->op, p->alpha, o->X, p->beta, o->Y);
}

/* A sum of n = in terms, each a product of count factors and x: after count contractions of p_i terms, every term has
 * passed sum p_i + count roundings of products and sums, and some of alpha and beta (Higham, lemma 3.1). Links that are
 * multiplied together first round no more often. */
static void check_result(const struct problem *p, const struct operands *o) {
  const bool by_rows = (p->op == ZLG_TRANS) != p->right; /* sums run over the rows of A */
  const int64_t in = by_rows ? o->rows : o->columns, out = by_rows ? o->columns : o->rows;
  double steps = 8;
  for (int f = 0; f < p->count; f++) steps += (double)(p->rows[f] + p->columns[f]) + 2;
  const long double gamma = zlg_test_gamma(steps, p->type);
  long double *row = malloc((size_t)in * sizeof *row); /* of op(A), or of its transpose from the right */
  for (int64_t i = 0; i < out; i++) {
    for (int64_t k = 0; k < in; k++) row[k] = by_rows ? element(p, o, k, i) : element(p, o, i, k);
    for (int64_t v = 0; v < p->vectors; v++) {
      long double sum = 0, size = 0;
      for (int64_t k = 0; k < in; k++) {
        const double x = p->right ? zlg_test_array_get(&o->x, v, k) : zlg_test_array_get(&o->x, k, v);
        sum += row[k] * (long double)x, size += fabsl(row[k] * (long double)x);
      }
      const int64_t y_row = p->right ? v : i, y_column = p->right ? i : v;
      const long double old =
          p->beta == 0 ? 0 : (long double)(p->beta * zlg_test_array_get(&o->before, y_row, y_column));
      ZLG_CHECK_CLOSE(zlg_test_array_get(&o->y, y_row, y_column), (long double)p->alpha * sum + old,
                      gamma * (fabsl((long double)p->alpha) * size + fabsl(old)));
    }
  }
  free(row);
}

static void check_problem(const struct problem *p) {
  struct operands o;
  make_operands(p, &o);
  ZLG_CHECK_OK(apply(p, &o), context);
  if (p->files) ZLG_CHECK_OK(zlg_matrix_read(o.Y, 0, o.y.rows, 0, o.y.columns, o.y.order, o.y.ld, o.y.memory), context);
  check_result(p, &o);
  CU_ASSERT_TRUE(zlg_test_array_gaps_intact(&o.y));
  free_operands(p, &o);
}

static const struct problem usual = {.type = ZLG_F64,
                                     .count = 3,
                                     .rows = {3, 2, 4},
                                     .columns = {2, 5, 3},
                                     .op = ZLG_NOTRANS,
                                     .vectors = 7,
                                     .x_order = ZLG_ROW_MAJOR,
                                     .y_order = ZLG_ROW_MAJOR,
                                     .alpha = 1};

/* ---- cases --------------------------------------------------------------------------------------------------------
 */

static void every_storage(int every) {
  for (int which = 0; which < 512; which += every) {
    struct problem p = usual;
    p.type = types[which & 1];
    p.right = which >> 1 & 1;
    p.op = which >> 2 & 1 ? ZLG_TRANS : ZLG_NOTRANS;
    p.x_order = orders[which >> 3 & 1], p.y_order = orders[which >> 4 & 1];
    p.gap = which >> 5 & 1 ? 3 : 0;
    p.transposed = which >> 6;
    p.by_columns = (which >> 6) ^ (which & 7);
    p.alpha = which % 3 == 0 ? 1 : -0.7, p.beta = which % 5 < 2 ? 0 : 0.5;
    if (zlg_test_mode() == ZLG_TEST_CPU || which % 37 == 0) check_problem(&p);
  }
}
static void all_storages(void) {
  every_storage(1);
}
static void some_storages(void) {
  every_storage(3);
}
static void at_once_every_storage(void) {
  with_context(&at_once, all_storages);
}
static void tasks_every_storage(void) {
  with_context(&tasks, some_storages);
}
static void stages_every_storage(void) {
  with_context(&stages, some_storages);
}

static void every_shape(void) {
  static const struct {
    int count;
    int64_t rows[MOST], columns[MOST];
  } shapes[] = {{1, {5}, {7}},
                {1, {1}, {1}},
                {2, {1, 6}, {4, 1}},
                {2, {1, 1}, {1, 1}},
                {3, {1, 3, 1}, {1, 3, 1}},
                {4, {1, 33, 1, 2}, {1, 31, 5, 1}},
                {2, {13, 50}, {8, 31}},
                {6, {2, 2, 2, 2, 2, 2}, {2, 2, 2, 2, 2, 2}},
                {5, {3, 1, 4, 1, 5}, {1, 5, 2, 6, 1}},
                {8, {2, 1, 3, 1, 2, 2, 1, 2}, {1, 3, 1, 2, 2, 1, 2, 2}}};
  static const int64_t vectors[] = {1, 3, 16, 20};
  for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
    for (int which = 0; which < 16; which++) {
      struct problem p = usual;
      p.count = shapes[s].count;
      memcpy(p.rows, shapes[s].rows, sizeof p.rows);
      memcpy(p.columns, shapes[s].columns, sizeof p.columns);
      p.type = types[which & 1], p.vectors = vectors[which >> 2], p.right = which >> 1 & 1;
      p.x_order = p.y_order = orders[(which >> 1 & 1) ^ 1];
      if (zlg_test_mode() == ZLG_TEST_CPU || which % 11 == 0) check_problem(&p);
    }
}
static void at_once_every_shape(void) {
  with_context(&at_once, every_shape);
}
static void tasks_every_shape(void) {
  with_context(&tasks, every_shape);
}
static void stages_every_shape(void) {
  with_context(&stages, every_shape);
}

static void files(void) {
  for (int which = 0; which < 32; which++) {
    struct problem p = usual;
    p.files = true;
    p.type = types[which & 1], p.right = which >> 1 & 1, p.op = which >> 2 & 1 ? ZLG_TRANS : ZLG_NOTRANS;
    p.x_order = orders[which >> 3 & 1], p.y_order = orders[which >> 4 & 1];
    p.beta = which % 3 ? 0.5 : 0;
    p.by_columns = which & 7;
    if (zlg_test_mode() == ZLG_TEST_CPU || which % 7 == 0) check_problem(&p);
  }
}
static void tasks_on_files(void) {
  with_context(&tasks, files);
}
static void stages_on_files(void) {
  with_context(&stages, files);
}

/* The same bits at once, in tasks of any size, whatever the workers and, where factors are square, in two stages: none
 * of them changes a sum. */
static struct zlg_test_array result_of(const struct problem *p, const struct settings *settings) {
  struct operands o;
  make_context(settings);
  make_operands(p, &o);
  ZLG_CHECK_OK(apply(p, &o), context);
  const struct zlg_test_array result = zlg_test_array_copy(&o.y, ZLG_ROW_MAJOR, 0);
  free_operands(p, &o);
  zlg_context_release(context);
  context = NULL;
  return result;
}

static void check_same_bits(const struct problem *p, const struct settings *all, int count) {
  struct zlg_test_array first = result_of(p, &all[0]);
  for (int i = 1; i < count; i++) {
    struct zlg_test_array other = result_of(p, &all[i]);
    CU_ASSERT_TRUE(zlg_test_array_same_bits(&first, &other));
    zlg_test_array_free(&other);
  }
  zlg_test_array_free(&first);
}

static void same_bits(void) {
  if (zlg_test_device_workers() > 0) return; /* another kind of worker may round otherwise */
  static const struct settings all[] = {
      {.direct_seconds = 1}, {.tile_columns = 1}, {.tile_columns = 5}, {0}, {.tile_rows = 96}};
  enum { ALL = sizeof all / sizeof *all };
  struct problem p = usual;
  p.type = ZLG_F32;
  p.rows[0] = p.columns[0] = 8, p.rows[1] = 7, p.columns[1] = 9, p.rows[2] = p.columns[2] = 16;
  p.vectors = 37;
  check_same_bits(&p, all, ALL - 1);
  p.rows[0] = p.columns[0] = 9, p.rows[1] = p.columns[1] = 7;
  for (int which = 0; which < 16; which++) {
    p.type = types[which & 1];
    p.right = which >> 1 & 1;
    p.x_order = orders[which >> 2 & 1], p.y_order = orders[which >> 3 & 1];
    check_same_bits(&p, all, ALL);
  }
}

/* A vector that is long enough by itself: (2^6)^4 elements in two stages, against one factor after the other. */
static void long_vector(void) {
  enum { P = 40, N = 4, K = P * P * P * P };
  struct problem p = usual;
  p.count = N, p.vectors = 1, p.x_order = p.y_order = ZLG_COLUMN_MAJOR;
  for (int f = 0; f < N; f++) p.rows[f] = p.columns[f] = P;
  struct operands o;
  make_operands(&p, &o);
  zlg_cost cost;
  ZLG_CHECK_OK(zlg_operator_cost(o.A, ZLG_NOTRANS, 1, &cost), context);
  CU_ASSERT(cost.tasks > 4);
  CU_ASSERT(cost.memory_bytes >= (int64_t)K * 8);
  ZLG_CHECK_OK(apply(&p, &o), context);
  double *from = malloc(K * sizeof *from), *to = malloc(K * sizeof *to);
  memcpy(from, o.x.memory, K * sizeof *from);
  for (int f = 0, lead = 1, trail = K / P; f < N; f++, lead *= P, trail /= P) {
    for (int l = 0; l < lead; l++)
      for (int i = 0; i < P; i++) {
        double *line = to + ((size_t)l * P + (size_t)i) * (size_t)trail;
        memset(line, 0, (size_t)trail * sizeof *line);
        for (int k = 0; k < P; k++) {
          const double a = factor_element(&p, &o, f, i, k), *x = from + ((size_t)l * P + (size_t)k) * (size_t)trail;
          for (int t = 0; t < trail; t++) line[t] += a * x[t];
        }
      }
    double *swap = from;
    from = to, to = swap;
  }
  double worst = 0, largest = 0;
  for (int i = 0; i < K; i++) {
    worst = fmax(worst, fabs(from[i] - ((double *)o.y.memory)[i]));
    largest = fmax(largest, fabs(from[i]));
    if (isnan(((double *)o.y.memory)[i])) worst = NAN;
  }
  /* Each side errs by gamma_(4 P + 4) of the sums of absolute values, which are at most (sum |a|)^4 max |x|: about 35^4
   * and 5 sigma; the largest element is about P^2. */
  ZLG_CHECK_CLOSE(worst, 0, 2 * zlg_test_gamma(4 * P + 4, ZLG_F64) * 1e3 * largest);
  free(from);
  free(to);
  free_operands(&p, &o);
}
static void few_long_vectors(void) {
  with_context(&(struct settings){.direct_seconds = -1}, long_vector);
}

/* (A x B)(C x D) = AC x BD, of integers: exactly. */
static void mixed_product(void) {
  double a[6], b[6], c[6], d[6], ac[4] = {0}, bd[9] = {0}, x[6], middle[6], left[6], whole[6];
  for (int i = 0; i < 6; i++) a[i] = i - 2, b[i] = 3 - i, c[i] = i * i - 4, d[i] = 2 * i - 5, x[i] = i + 1;
  for (int i = 0; i < 2; i++)
    for (int j = 0; j < 2; j++)
      for (int k = 0; k < 3; k++) ac[2 * i + j] += a[3 * i + k] * c[2 * k + j];
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 3; j++)
      for (int k = 0; k < 2; k++) bd[3 * i + j] += b[2 * i + k] * d[3 * k + j];
  const struct {
    int64_t rows, columns;
    double *data;
  } all[] = {{2, 3, a}, {3, 2, b}, {3, 2, c}, {2, 3, d}, {2, 2, ac}, {3, 3, bd}};
  zlg_matrix *m[6], *X, *Z, *Y[2];
  zlg_operator *A[3];
  for (int i = 0; i < 6; i++)
    ZLG_CHECK_OK(zlg_matrix_wrap(context, &m[i], ZLG_F64, all[i].rows, all[i].columns, ZLG_ROW_MAJOR, all[i].columns,
                                 all[i].data),
                 context);
  double *vectors[] = {x, middle, left, whole};
  zlg_matrix **views[] = {&X, &Z, &Y[0], &Y[1]};
  for (int i = 0; i < 4; i++)
    ZLG_CHECK_OK(zlg_matrix_wrap(context, views[i], ZLG_F64, 6, 1, ZLG_COLUMN_MAJOR, 6, vectors[i]), context);
  for (int i = 0; i < 3; i++) ZLG_CHECK_OK(zlg_kron(context, &A[i], 2, m + 2 * i, NULL), context);
  ZLG_CHECK_OK(zlg_apply(A[1], ZLG_NOTRANS, 1, X, 0, Z), context);
  ZLG_CHECK_OK(zlg_apply(A[0], ZLG_NOTRANS, 1, Z, 0, Y[0]), context);
  ZLG_CHECK_OK(zlg_apply(A[2], ZLG_NOTRANS, 1, X, 0, Y[1]), context);
  for (int i = 0; i < 6; i++) CU_ASSERT_EQUAL(left[i], whole[i]);
  for (int i = 0; i < 3; i++) zlg_operator_release(A[i]);
  for (int i = 0; i < 6; i++) zlg_matrix_release(m[i]);
  for (int i = 0; i < 4; i++) zlg_matrix_release(*views[i]);
}
static void mixed_products(void) {
  with_context(&at_once, mixed_product);
  with_context(&tasks, mixed_product);
}

/* y^T (A x) = (A^T y)^T x. */
static void adjoint(void) {
  struct problem p = usual, q;
  struct operands o, t;
  p.vectors = 1;
  q = p;
  q.op = ZLG_TRANS;
  make_operands(&p, &o);
  make_operands(&q, &t);
  ZLG_CHECK_OK(apply(&p, &o), context);
  ZLG_CHECK_OK(apply(&q, &t), context);
  long double one = 0, other = 0, size = 0;
  for (int64_t i = 0; i < o.rows; i++)
    one += (long double)(zlg_test_array_get(&o.y, i, 0) * zlg_test_array_get(&t.x, i, 0));
  for (int64_t i = 0; i < o.columns; i++)
    other += (long double)(zlg_test_array_get(&t.y, i, 0) * zlg_test_array_get(&o.x, i, 0));
  for (int64_t i = 0; i < o.rows; i++)
    for (int64_t j = 0; j < o.columns; j++)
      size +=
          fabsl(element(&p, &o, i, j) * (long double)(zlg_test_array_get(&t.x, i, 0) * zlg_test_array_get(&o.x, j, 0)));
  ZLG_CHECK_CLOSE(one, other, 2 * zlg_test_gamma(40, ZLG_F64) * size);
  free_operands(&p, &o);
  free_operands(&q, &t);
}
static void adjoint_dot_test(void) {
  with_context(&tasks, adjoint);
}

/* Each request keeps to a limit, and says how much is enough where it is too small. */
static void limited(void) {
  struct problem p = usual;
  p.count = 2, p.rows[0] = p.columns[0] = p.rows[1] = p.columns[1] = 64, p.vectors = 40;
  p.files = true;
  struct operands o;
  make_operands(&p, &o);
  zlg_cost cost;
  ZLG_CHECK_OK(zlg_operator_cost(o.A, ZLG_NOTRANS, p.vectors, &cost), context);
  CU_ASSERT(cost.memory_bytes > 0 && cost.memory_bytes <= 1 << 20);
  ZLG_CHECK_OK(apply(&p, &o), context);
  ZLG_CHECK_OK(zlg_matrix_read(o.Y, 0, o.y.rows, 0, o.y.columns, o.y.order, o.y.ld, o.y.memory), context);
  for (int64_t v = 0; v < p.vectors; v++) CU_ASSERT(!isnan(zlg_test_array_get(&o.y, 4095, v)));
  free_operands(&p, &o);
}
static void memory_limits(void) {
  with_context(&(struct settings){.memory_limit = 1 << 20}, limited);
  make_context(&(struct settings){.memory_limit = 40000});
  struct problem p = usual;
  p.count = 2, p.rows[0] = p.columns[0] = p.rows[1] = p.columns[1] = 64, p.vectors = 2;
  struct operands o;
  make_operands(&p, &o);
  ZLG_CHECK_STATUS(apply(&p, &o), ZLG_ELIMIT, context);
  CU_ASSERT(strstr(zlg_context_message(context), "bytes at least and the memory limit is 40000 bytes") != NULL);
  free_operands(&p, &o);
  zlg_context_release(context);
}

static struct problem shared_problem;
static struct operands shared;
static void *apply_often(void *argument) {
  double *y = argument;
  zlg_matrix *Y;
  ZLG_CHECK_OK(zlg_matrix_wrap(context, &Y, ZLG_F64, shared.rows, shared_problem.vectors, ZLG_ROW_MAJOR,
                               shared_problem.vectors, y),
               context);
  for (int i = 0; i < 20; i++) ZLG_CHECK_OK(zlg_apply(shared.A, ZLG_NOTRANS, 1, shared.X, 0, Y), context);
  zlg_matrix_release(Y);
  return NULL;
}

static void threads(void) {
  enum { THREADS = 4 };
  shared_problem = usual;
  make_operands(&shared_problem, &shared);
  ZLG_CHECK_OK(apply(&shared_problem, &shared), context);
  double *y[THREADS];
  pthread_t thread[THREADS];
  for (int i = 0; i < THREADS; i++) {
    y[i] = malloc((size_t)(shared.rows * shared_problem.vectors) * sizeof *y[i]);
    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread[i], NULL, apply_often, y[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) {
    pthread_join(thread[i], NULL);
    for (int64_t k = 0; k < shared.rows * shared_problem.vectors; k++)
      ZLG_CHECK_CLOSE(y[i][k], ((double *)shared.y.memory)[k], 1e-13L * fabsl((long double)y[i][k]) + 1e-13L);
    free(y[i]);
  }
  free_operands(&shared_problem, &shared);
}
static void one_operator_many_threads(void) {
  with_context(&at_once, threads);
  with_context(&tasks, threads);
}

/* What the caller can get wrong, in the caller's words. */
static void refusals(void) {
  make_context(&at_once);
  struct problem p = usual;
  struct operands o;
  make_operands(&p, &o);
  struct zlg_test_array single = zlg_test_array_new(ZLG_F32, 30, 7, ZLG_ROW_MAJOR, 0);
  zlg_matrix *f32 = zlg_test_array_wrap(context, &single);
  ZLG_CHECK_STATUS(zlg_apply(o.A, ZLG_NOTRANS, 1, f32, 0, o.Y), ZLG_ETYPE, context);
  ZLG_CHECK_STATUS(zlg_apply(o.A, ZLG_NOTRANS, 1, o.X, 1, NULL), ZLG_EINVAL, context);
  ZLG_CHECK_STATUS(zlg_apply(o.A, ZLG_NOTRANS, NAN, o.X, 1, o.Y), ZLG_EINVAL, context);
  ZLG_CHECK_STATUS(zlg_apply_right(o.A, ZLG_NOTRANS, 1, o.X, 0, o.Y), ZLG_ESHAPE, context);
  CU_ASSERT_STRING_EQUAL(zlg_context_message(context), "X is 30 x 7 and A is 24 x 30: X needs 24 columns");
  zlg_matrix *mixed[] = {o.matrices[0], f32}, *missing[] = {o.matrices[0], NULL};
  zlg_operator *none;
  ZLG_CHECK_STATUS(zlg_kron(context, &none, 2, mixed, NULL), ZLG_ETYPE, context);
  ZLG_CHECK_STATUS(zlg_kron(context, &none, 2, missing, NULL), ZLG_EINVAL, context);
  ZLG_CHECK_STATUS(zlg_kron(context, &none, -1, mixed, NULL), ZLG_EINVAL, context);
  ZLG_CHECK_STATUS(zlg_kron(context, &none, 1, o.matrices, &(zlg_op){0}), ZLG_EINVAL, context);
  zlg_matrix *overlapping;
  ZLG_CHECK_OK(zlg_matrix_wrap(context, &overlapping, ZLG_F64, 24, 7, ZLG_ROW_MAJOR, 7, o.x.memory), context);
  ZLG_CHECK_STATUS(zlg_apply(o.A, ZLG_NOTRANS, 1, o.X, 0, overlapping), ZLG_EOVERLAP, context);
  zlg_matrix_release(overlapping);
  zlg_matrix_release(f32);
  zlg_test_array_free(&single);
  free_operands(&p, &o);
  zlg_context_release(context);
}

/* Views by transposition: of memory and of a file, which stays the matrix's to close. */
static void transposed_views(void) {
  make_context(&at_once);
  char *path = zlg_test_path("view.npy");
  zlg_matrix *file, *view, *back;
  ZLG_CHECK_OK(zlg_matrix_create_npy(context, &file, path, ZLG_F64, 2, 3, ZLG_ROW_MAJOR), context);
  ZLG_CHECK_OK(zlg_matrix_transpose(file, &view), context);
  ZLG_CHECK_OK(zlg_matrix_transpose(view, &back), context);
  const double block[] = {1, 2, 3, 4, 5, 6};
  ZLG_CHECK_OK(zlg_matrix_write(view, 0, 3, 0, 2, ZLG_COLUMN_MAJOR, 3, block), context);
  double read[6] = {0};
  ZLG_CHECK_OK(zlg_matrix_read(back, 0, 2, 0, 3, ZLG_ROW_MAJOR, 3, read), context);
  CU_ASSERT_EQUAL(memcmp(read, block, sizeof read), 0);
  zlg_matrix_info info;
  ZLG_CHECK_OK(zlg_matrix_get_info(view, &info), context);
  CU_ASSERT(info.rows == 3 && info.columns == 2 && info.order == ZLG_COLUMN_MAJOR && info.writable);
  ZLG_CHECK_OK(zlg_matrix_close(view), context);
  ZLG_CHECK_OK(zlg_matrix_write(view, 0, 1, 0, 1, ZLG_COLUMN_MAJOR, 1, block), context);
  ZLG_CHECK_OK(zlg_matrix_close(file), context);
  ZLG_CHECK_STATUS(zlg_matrix_write(view, 0, 1, 0, 1, ZLG_COLUMN_MAJOR, 1, block), ZLG_EREADONLY, context);
  zlg_matrix_release(file);
  ZLG_CHECK_OK(zlg_matrix_read(view, 0, 3, 0, 2, ZLG_COLUMN_MAJOR, 3, read), context);
  CU_ASSERT_EQUAL(memcmp(read, block, sizeof read), 0);
  zlg_matrix *none = view;
  ZLG_CHECK_STATUS(zlg_matrix_transpose(NULL, &none), ZLG_EINVAL, NULL);
  CU_ASSERT_PTR_NULL(none);
  zlg_matrix_release(back);
  zlg_matrix_release(view);
  free(path);
  zlg_context_release(context);
}

/* From the right, kernels too. */
static void kernel_from_the_right(void) {
  make_context(&at_once);
  uint64_t state = 3;
  struct zlg_test_array x1 = zlg_test_array_random(ZLG_F64, 9, 2, ZLG_ROW_MAJOR, 1, &state, 0, 1);
  struct zlg_test_array x2 = zlg_test_array_random(ZLG_F64, 11, 2, ZLG_COLUMN_MAJOR, 0, &state, 0, 1);
  struct zlg_test_array b = zlg_test_array_random(ZLG_F64, 4, 9, ZLG_ROW_MAJOR, 2, &state, 0, 1);
  struct zlg_test_array y = zlg_test_array_new(ZLG_F64, 4, 11, ZLG_COLUMN_MAJOR, 1);
  zlg_kernel_spec spec;
  zlg_kernel_spec_init(&spec, ZLG_GAUSSIAN);
  zlg_matrix *X1 = zlg_test_array_wrap(context, &x1), *X2 = zlg_test_array_wrap(context, &x2),
             *B = zlg_test_array_wrap(context, &b), *Y = zlg_test_array_wrap(context, &y);
  zlg_operator *K;
  zlg_request *request;
  ZLG_CHECK_OK(zlg_kernel(context, &K, &spec, X1, X2), context);
  ZLG_CHECK_OK(zlg_apply_right_async(K, ZLG_NOTRANS, 2, B, 0, Y, &request), context);
  ZLG_CHECK_OK(zlg_request_wait(request), context);
  zlg_request_release(request);
  struct zlg_test_kernel kernel = zlg_test_kernel_new(&spec, &x1, &x2);
  for (int64_t v = 0; v < 4; v++)
    for (int64_t j = 0; j < 11; j++) {
      long double sum = 0, error = 0;
      for (int64_t i = 0; i < 9; i++) {
        sum += 2 * kernel.value[i * 11 + j] * (long double)zlg_test_array_get(&b, v, i);
        error += 2 * (kernel.error[i * 11 + j] + 20 * zlg_test_roundoff(ZLG_F64)) *
                 fabsl((long double)zlg_test_array_get(&b, v, i));
      }
      ZLG_CHECK_CLOSE(zlg_test_array_get(&y, v, j), sum, error);
    }
  zlg_test_kernel_free(&kernel);
  zlg_operator_release(K);
  zlg_matrix *matrices[] = {X1, X2, B, Y};
  struct zlg_test_array *arrays[] = {&x1, &x2, &b, &y};
  for (int i = 0; i < 4; i++) zlg_matrix_release(matrices[i]), zlg_test_array_free(arrays[i]);
  zlg_context_release(context);
}

/* Batches against one product each: factors shared, of their own, and one of each; vectors that join and that do not.
 */
static void batch(bool right, zlg_order order, int64_t gap, const int64_t *strides, int64_t vectors) {
  enum { BATCH = 5, IN = 6, OUT = 6 };
  double f[BATCH * 6 + 6], g[BATCH * 6 + 6], x[BATCH * 60], y[BATCH * 60], want[BATCH * 60];
  for (int i = 0; i < BATCH * 6 + 6; i++) f[i] = i % 7 - 3, g[i] = i % 5 - 2;
  for (int i = 0; i < BATCH * 60; i++) x[i] = i % 11 - 5, y[i] = want[i] = i % 3;
  const int64_t rows = right ? vectors : IN, columns = right ? IN : vectors;
  const int64_t ld = order == ZLG_ROW_MAJOR ? columns : rows, stride = rows * columns + gap;
  for (int b = -1; b < BATCH; b++) { /* -1: all at once, into y */
    const int64_t at = b < 0 ? 0 : b, moved[] = {strides ? strides[0] * at : 0, strides ? strides[1] * at : 0};
    zlg_matrix *F[2], *X, *Y;
    zlg_operator *A;
    ZLG_CHECK_OK(zlg_matrix_wrap(context, &F[0], ZLG_F64, 2, 3, ZLG_ROW_MAJOR, 3, f + moved[0]), context);
    ZLG_CHECK_OK(zlg_matrix_wrap(context, &F[1], ZLG_F64, 3, 2, ZLG_ROW_MAJOR, 2, g + moved[1]), context);
    ZLG_CHECK_OK(zlg_matrix_wrap(context, &X, ZLG_F64, rows, columns, order, ld, x + at * stride), context);
    ZLG_CHECK_OK(zlg_matrix_wrap(context, &Y, ZLG_F64, rows, columns, order, ld, (b < 0 ? y : want) + at * stride),
                 context);
    ZLG_CHECK_OK(zlg_kron(context, &A, 2, F, NULL), context);
    if (b < 0)
      ZLG_CHECK_OK((right ? zlg_kron_apply_right_batched : zlg_kron_apply_batched)(A, ZLG_TRANS, BATCH, strides, 2, X,
                                                                                   stride, -1, Y, stride),
                   context);
    else
      ZLG_CHECK_OK((right ? zlg_apply_right : zlg_apply)(A, ZLG_TRANS, 2, X, -1, Y), context);
    if (b < 0) {
      ZLG_CHECK_STATUS(zlg_kron_apply_batched(A, ZLG_TRANS, -1, strides, 2, right ? F[0] : X, stride, -1, Y, stride),
                       right ? ZLG_ESHAPE : ZLG_EINVAL, context);
      if (!right)
        ZLG_CHECK_STATUS(zlg_kron_apply_batched(A, ZLG_TRANS, 2, strides, 2, X, stride, -1, Y, 0), ZLG_EOVERLAP,
                         context);
    }
    zlg_operator_release(A);
    zlg_matrix *all[] = {F[0], F[1], X, Y};
    for (int i = 0; i < 4; i++) zlg_matrix_release(all[i]);
  }
  CU_ASSERT_EQUAL(memcmp(y, want, sizeof want), 0);
}

static void all_batches(void) {
  static const int64_t own[] = {6, 6}, one[] = {0, 6};
  for (int which = 0; which < 24; which++)
    batch(which & 1, orders[which >> 1 & 1], which >> 2 & 1 ? 4 : 0,
          which / 8 == 0   ? NULL
          : which / 8 == 1 ? own
                           : one,
          which & 3 ? 3 : 1);
}
static void batches(void) {
  with_context(&at_once, all_batches);
  with_context(&tasks, all_batches);
}

int main(int argc, char **argv) {
  static const struct zlg_test_case cases[] = {{"at once, every storage", at_once_every_storage},
                                               {"in tasks, every storage", tasks_every_storage},
                                               {"in two stages, every storage", stages_every_storage},
                                               {"at once, every shape", at_once_every_shape},
                                               {"in tasks, every shape", tasks_every_shape},
                                               {"in two stages, every shape", stages_every_shape},
                                               {"files, in tasks", tasks_on_files},
                                               {"files, in two stages", stages_on_files},
                                               {"the same bits in blocks of any size", same_bits},
                                               {"one vector of 40^4 elements", few_long_vectors},
                                               {"mixed products", mixed_products},
                                               {"adjoint", adjoint_dot_test},
                                               {"memory limits", memory_limits},
                                               {"one operator, many threads", one_operator_many_threads},
                                               {"batches", batches},
                                               {"refusals", refusals},
                                               {"transposed views", transposed_views},
                                               {"a kernel from the right", kernel_from_the_right},
                                               {NULL, NULL}};
  return zlg_test_main(argc, argv, cases);
}
