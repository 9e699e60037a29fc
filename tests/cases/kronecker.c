/* Kronecker products that other libraries got wrong or refused, each with the right answer; the algebra by factor has
 * its own, in kronecker_algebra.c. Numbers are small integers, so that results are exact in both types. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/support_product.h"

static zlg_context *context;

/* A product of integers with its operands; y is checked against the definition, element by element. */
#define MOST 70
struct product {
  zlg_type type;
  int count;
  int64_t rows[MOST], columns[MOST];
  struct zlg_test_array factors[MOST];
  zlg_op ops[MOST]; /* the array is given transposed where ZLG_TRANS */
  bool right;
  zlg_op op;
  int64_t vectors;
};

static void set_shape(struct product *p, int f, int64_t rows, int64_t columns) {
  p->rows[f] = rows, p->columns[f] = columns;
}

static void fill(struct zlg_test_array *array, uint64_t *state) {
  for (int64_t i = 0; i < array->rows; i++)
    for (int64_t k = 0; k < array->columns; k++)
      zlg_test_array_set(array, i, k, (double)(zlg_test_random(state) % 5) - 2);
}

static int64_t extent(const struct product *p, const int64_t *sizes) {
  int64_t all = 1;
  for (int f = 0; f < p->count; f++) all *= sizes[f];
  return all;
}

/* out = (x, seen as lead x in x trail) contracted with factor f: one after the other is the definition. */
static double *contract(const struct product *p, int f, const double *x, int64_t lead, int64_t trail, bool flipped) {
  const bool stored = p->ops[f] == ZLG_TRANS;
  const int64_t in = flipped ? p->rows[f] : p->columns[f], out = flipped ? p->columns[f] : p->rows[f];
  double *y = calloc((size_t)(lead * out * trail), sizeof *y);
  for (int64_t l = 0; l < lead; l++)
    for (int64_t j = 0; j < out; j++)
      for (int64_t i = 0; i < in; i++) {
        const double a =
            flipped != stored ? zlg_test_array_get(&p->factors[f], i, j) : zlg_test_array_get(&p->factors[f], j, i);
        for (int64_t t = 0; t < trail; t++) y[(l * out + j) * trail + t] += a * x[(l * in + i) * trail + t];
      }
  return y;
}

static void check_vector(const struct product *p, const struct zlg_test_array *x, const struct zlg_test_array *y,
                         int64_t v, double alpha) {
  const bool flipped = (p->op == ZLG_TRANS) != p->right;
  const int64_t in = extent(p, flipped ? p->rows : p->columns), out = extent(p, flipped ? p->columns : p->rows);
  double *vector = malloc((size_t)in * sizeof *vector);
  for (int64_t k = 0; k < in; k++) vector[k] = p->right ? zlg_test_array_get(x, v, k) : zlg_test_array_get(x, k, v);
  int64_t lead = 1, trail = in;
  for (int f = 0; f < p->count; f++) {
    trail /= flipped ? p->rows[f] : p->columns[f];
    double *next = contract(p, f, vector, lead, trail, flipped);
    free(vector);
    vector = next;
    lead *= flipped ? p->columns[f] : p->rows[f];
  }
  for (int64_t k = 0; k < out; k++)
    CU_ASSERT_EQUAL(p->right ? zlg_test_array_get(y, v, k) : zlg_test_array_get(y, k, v), alpha * vector[k]);
  free(vector);
}

static void check_exact(struct product *p) {
  uint64_t state = 11;
  zlg_matrix *matrices[MOST], *X, *Y;
  zlg_operator *A;
  for (int f = 0; f < p->count; f++) {
    const bool stored = p->ops[f] == ZLG_TRANS;
    if (p->ops[f] == 0) p->ops[f] = ZLG_NOTRANS;
    p->factors[f] =
        zlg_test_array_new(p->type, stored ? p->columns[f] : p->rows[f], stored ? p->rows[f] : p->columns[f],
                           f % 2 ? ZLG_COLUMN_MAJOR : ZLG_ROW_MAJOR, 0);
    fill(&p->factors[f], &state);
    if (p->rows[f] == 1 && p->columns[f] == 1) zlg_test_array_set(&p->factors[f], 0, 0, f % 3 ? 1 : -1);
    matrices[f] = zlg_test_array_wrap(context, &p->factors[f]);
  }
  if (p->op == 0) p->op = ZLG_NOTRANS;
  const bool flipped = (p->op == ZLG_TRANS) != p->right;
  const int64_t in = extent(p, flipped ? p->rows : p->columns), out = extent(p, flipped ? p->columns : p->rows);
  struct zlg_test_array x =
      zlg_test_array_new(p->type, p->right ? p->vectors : in, p->right ? in : p->vectors, ZLG_ROW_MAJOR, 0);
  struct zlg_test_array y =
      zlg_test_array_new(p->type, p->right ? p->vectors : out, p->right ? out : p->vectors, ZLG_ROW_MAJOR, 1);
  fill(&x, &state);
  zlg_test_array_fill(&y, NAN);
  X = zlg_test_array_wrap(context, &x), Y = zlg_test_array_wrap(context, &y);
  ZLG_CHECK_OK(zlg_kron(context, &A, p->count, matrices, p->ops), context);
  ZLG_CHECK_OK((p->right ? zlg_apply_right : zlg_apply)(A, p->op, 2, X, 0, Y), context);
  for (int64_t v = 0; v < p->vectors; v++) check_vector(p, &x, &y, v, 2);
  CU_ASSERT_TRUE(zlg_test_array_gaps_intact(&y));
  zlg_operator_release(A);
  zlg_matrix_release(X);
  zlg_matrix_release(Y);
  zlg_test_array_free(&x);
  zlg_test_array_free(&y);
  for (int f = 0; f < p->count; f++) zlg_matrix_release(matrices[f]), zlg_test_array_free(&p->factors[f]);
}

/* Columns of the identity show A itself. */
static void small_dense(void) {
  double a[] = {1, 0, 1, 1}, b[] = {1, 0, 0, 1}, identity[16] = {0}, y[16];
  static const double want[] = {1, 0, 0, 0, 0, 1, 0, 0, 1, 0, 1, 0, 0, 1, 0, 1};
  for (int i = 0; i < 4; i++) identity[5 * i] = 1;
  zlg_matrix *factors[2], *X, *Y;
  zlg_operator *A;
  ZLG_CHECK_OK(zlg_matrix_wrap(context, &factors[0], ZLG_F64, 2, 2, ZLG_ROW_MAJOR, 2, a), context);
  ZLG_CHECK_OK(zlg_matrix_wrap(context, &factors[1], ZLG_F64, 2, 2, ZLG_ROW_MAJOR, 2, b), context);
  ZLG_CHECK_OK(zlg_matrix_wrap(context, &X, ZLG_F64, 4, 4, ZLG_ROW_MAJOR, 4, identity), context);
  ZLG_CHECK_OK(zlg_matrix_wrap(context, &Y, ZLG_F64, 4, 4, ZLG_ROW_MAJOR, 4, y), context);
  ZLG_CHECK_OK(zlg_kron(context, &A, 2, factors, NULL), context);
  ZLG_CHECK_OK(zlg_apply(A, ZLG_NOTRANS, 1, X, 0, Y), context);
  CU_ASSERT_EQUAL(memcmp(y, want, sizeof want), 0);
  /* 2 (A x B): alpha once, from either side. */
  ZLG_CHECK_OK(zlg_apply_right(A, ZLG_NOTRANS, 2, X, 0, Y), context);
  for (int i = 0; i < 16; i++) CU_ASSERT_EQUAL(y[i], 2 * want[i]);
  zlg_operator_release(A);
  zlg_matrix *all[] = {factors[0], factors[1], X, Y};
  for (int i = 0; i < 4; i++) zlg_matrix_release(all[i]);
}

static void sixty_five_factors(void) {
  struct product p = {.type = ZLG_F64, .count = 65, .vectors = 3};
  for (int f = 0; f < 65; f++) set_shape(&p, f, f % 6 == 0 ? 2 : 1, f % 6 == 0 ? 2 : 1);
  check_exact(&p);
}

/* More factors that do something than a task takes: rows and columns in turn, multiplied together until they fit. The
 * vectors are too long to apply; the query plans them. */
static void many_factors_are_planned(void) {
  enum { COUNT = 70 };
  double row[] = {1, 2};
  zlg_matrix *matrices[COUNT];
  zlg_operator *A;
  for (int f = 0; f < COUNT; f++)
    ZLG_CHECK_OK(zlg_matrix_wrap(context, &matrices[f], ZLG_F64, f % 2 ? 2 : 1, f % 2 ? 1 : 2, ZLG_ROW_MAJOR,
                                 f % 2 ? 1 : 2, row),
                 context);
  ZLG_CHECK_OK(zlg_kron(context, &A, COUNT, matrices, NULL), context);
  zlg_operator_info info;
  ZLG_CHECK_OK(zlg_operator_get_info(A, &info), context);
  CU_ASSERT(info.rows == INT64_C(1) << 35 && info.columns == INT64_C(1) << 35);
  zlg_cost cost;
  ZLG_CHECK_STATUS(zlg_operator_cost(A, ZLG_NOTRANS, 1, &cost), ZLG_ELIMIT, context);
  zlg_operator_release(A);
  for (int f = 0; f < COUNT; f++) zlg_matrix_release(matrices[f]);
}

static void thin_factors(void) {
  static const int64_t shapes[][4] = {{1, 1, 1, 7}, {5, 1, 1, 7}, {1, 7, 1, 1}, {6, 4, 1, 1}};
  for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
    for (int which = 0; which < 4; which++) {
      struct product p = {.type = which & 1 ? ZLG_F32 : ZLG_F64, .count = 2, .vectors = 3, .right = which >> 1};
      set_shape(&p, 0, shapes[s][0], shapes[s][1]);
      set_shape(&p, 1, shapes[s][2], shapes[s][3]);
      check_exact(&p);
      p.count = 1;
      check_exact(&p);
    }
}

static void no_factor(void) {
  double x[] = {3, 4}, y[2] = {NAN, NAN};
  zlg_matrix *X, *Y;
  zlg_operator *A;
  ZLG_CHECK_OK(zlg_matrix_wrap(context, &X, ZLG_F64, 1, 2, ZLG_ROW_MAJOR, 2, x), context);
  ZLG_CHECK_OK(zlg_matrix_wrap(context, &Y, ZLG_F64, 1, 2, ZLG_ROW_MAJOR, 2, y), context);
  ZLG_CHECK_OK(zlg_kron(context, &A, 0, NULL, NULL), context);
  ZLG_CHECK_OK(zlg_apply(A, ZLG_NOTRANS, 1, X, 0, Y), context);
  CU_ASSERT(y[0] == 3 && y[1] == 4);
  zlg_operator_release(A);
  zlg_matrix_release(X);
  zlg_matrix_release(Y);
}

static void every_size(void) {
  static const int64_t sizes[] = {1, 2, 3, 5, 7, 8, 13, 31, 33, 50, 128, 200}, vectors[] = {1, 3, 16, 20};
  for (int i = 0; i < 12; i++)
    for (int which = 0; which < 16; which++) {
      struct product p = {.type = which & 1 ? ZLG_F32 : ZLG_F64, .count = 2, .vectors = vectors[(i + which) % 4]};
      set_shape(&p, 0, sizes[i], sizes[(i + 1) % 12]);
      set_shape(&p, 1, sizes[(i + which) % 5], sizes[(i + 2) % 6]);
      p.right = which >> 1 & 1, p.op = which >> 2 & 1 ? ZLG_TRANS : ZLG_NOTRANS;
      p.ops[0] = which >> 3 & 1 ? ZLG_TRANS : ZLG_NOTRANS, p.ops[1] = which & 1 ? ZLG_TRANS : ZLG_NOTRANS;
      if (zlg_test_mode() == ZLG_TEST_CPU || (i + which) % 13 == 0) check_exact(&p);
    }
}

/* A product of each type after the other, and a clean one after one that is full of NaN. */
static void nothing_is_kept(void) {
  for (int round = 0; round < 2; round++) {
    struct product p = {.type = round ? ZLG_F32 : ZLG_F64, .count = 4, .vectors = 16};
    const int64_t size = round ? 5 : 8;
    for (int f = 0; f < 4; f++) set_shape(&p, f, size, size);
    check_exact(&p);
    if (round) continue;
    struct zlg_test_array f = zlg_test_array_new(ZLG_F64, 8, 8, ZLG_ROW_MAJOR, 0);
    struct zlg_test_array x = zlg_test_array_new(ZLG_F64, 16, 4096, ZLG_ROW_MAJOR, 0);
    struct zlg_test_array y = zlg_test_array_new(ZLG_F64, 16, 4096, ZLG_ROW_MAJOR, 0);
    zlg_test_array_fill(&f, NAN);
    zlg_matrix *F = zlg_test_array_wrap(context, &f), *X = zlg_test_array_wrap(context, &x),
               *Y = zlg_test_array_wrap(context, &y);
    zlg_operator *A;
    ZLG_CHECK_OK(zlg_kron(context, &A, 4, (zlg_matrix *[]){F, F, F, F}, NULL), context);
    ZLG_CHECK_OK(zlg_apply_right(A, ZLG_NOTRANS, 1, X, 0, Y), context);
    for (int64_t k = 0; k < 4096; k++) CU_ASSERT(isnan(zlg_test_array_get(&y, 7, k)));
    zlg_operator_release(A);
    zlg_matrix *all[] = {F, X, Y};
    for (int i = 0; i < 3; i++) zlg_matrix_release(all[i]);
    zlg_test_array_free(&f);
    zlg_test_array_free(&x);
    zlg_test_array_free(&y);
  }
}

static void equal_first_factors(void) {
  for (int which = 0; which < 2; which++) {
    struct product p = {.type = ZLG_F32, .count = 3, .vectors = 16, .right = which};
    set_shape(&p, 0, 8, 8);
    set_shape(&p, 1, 32, 32);
    set_shape(&p, 2, 4, 4);
    check_exact(&p);
  }
}

/* A NaN in a factor reaches the rows that it belongs to, and no others. */
static void nan_where_it_belongs(void) {
  double a[] = {1, NAN, 1, 1}, b[] = {1, 2, 3, 4}, x[] = {1, 1, 1, 1}, y[4];
  zlg_matrix *factors[2], *X, *Y;
  zlg_operator *A;
  ZLG_CHECK_OK(zlg_matrix_wrap(context, &factors[0], ZLG_F64, 2, 2, ZLG_ROW_MAJOR, 2, a), context);
  ZLG_CHECK_OK(zlg_matrix_wrap(context, &factors[1], ZLG_F64, 2, 2, ZLG_ROW_MAJOR, 2, b), context);
  ZLG_CHECK_OK(zlg_matrix_wrap(context, &X, ZLG_F64, 4, 1, ZLG_ROW_MAJOR, 1, x), context);
  ZLG_CHECK_OK(zlg_matrix_wrap(context, &Y, ZLG_F64, 4, 1, ZLG_ROW_MAJOR, 1, y), context);
  ZLG_CHECK_OK(zlg_kron(context, &A, 2, factors, NULL), context);
  ZLG_CHECK_OK(zlg_apply(A, ZLG_NOTRANS, 1, X, 0, Y), context);
  CU_ASSERT(isnan(y[0]) && isnan(y[1]) && y[2] == 6 && y[3] == 14);
  /* alpha = 0 reads neither X nor A; beta = 0 does not read Y. */
  for (int i = 0; i < 4; i++) x[i] = INFINITY, y[i] = i;
  ZLG_CHECK_OK(zlg_apply(A, ZLG_NOTRANS, 0, X, 3, Y), context);
  for (int i = 0; i < 4; i++) CU_ASSERT_EQUAL(y[i], 3 * i);
  y[1] = NAN;
  ZLG_CHECK_OK(zlg_apply(A, ZLG_NOTRANS, 0, X, 0, Y), context);
  for (int i = 0; i < 4; i++) CU_ASSERT_EQUAL(y[i], 0);
  zlg_operator_release(A);
  zlg_matrix *all[] = {factors[0], factors[1], X, Y};
  for (int i = 0; i < 4; i++) zlg_matrix_release(all[i]);
}

/* 32 x 1 and 1 x 32: the one that shrinks a vector goes first, 32 + 32 multiply-adds instead of 32 32 + 32 32. */
static void shrinks_first(void) {
  double data[32] = {0};
  zlg_matrix *factors[2];
  zlg_operator *A;
  ZLG_CHECK_OK(zlg_matrix_wrap(context, &factors[0], ZLG_F64, 32, 1, ZLG_ROW_MAJOR, 1, data), context);
  ZLG_CHECK_OK(zlg_matrix_wrap(context, &factors[1], ZLG_F64, 1, 32, ZLG_ROW_MAJOR, 32, data), context);
  for (int order = 0; order < 2; order++) {
    ZLG_CHECK_OK(zlg_kron(context, &A, 2, (zlg_matrix *[]){factors[order], factors[!order]}, NULL), context);
    for (int op = ZLG_NOTRANS; op <= ZLG_TRANS; op++) {
      zlg_cost cost;
      ZLG_CHECK_OK(zlg_operator_cost(A, (zlg_op)op, 5, &cost), context);
      CU_ASSERT_EQUAL(cost.flops, 5 * 2 * 64);
    }
    zlg_operator_release(A);
  }
  zlg_matrix_release(factors[0]);
  zlg_matrix_release(factors[1]);
}

static void large_query(void) {
  float data[64] = {0};
  zlg_matrix *F;
  zlg_operator *A;
  ZLG_CHECK_OK(zlg_matrix_wrap(context, &F, ZLG_F32, 8, 8, ZLG_ROW_MAJOR, 8, data), context);
  ZLG_CHECK_OK(zlg_kron(context, &A, 7, (zlg_matrix *[]){F, F, F, F, F, F, F}, NULL), context);
  zlg_cost cost;
  ZLG_CHECK_OK(zlg_operator_cost(A, ZLG_NOTRANS, 4096, &cost), context);
  CU_ASSERT_EQUAL(cost.bytes_written, 4 * 4096.0 * 2097152);
  CU_ASSERT(cost.flops == 2 * 4096.0 * 2097152 * 56);
  CU_ASSERT(cost.memory_bytes < INT64_C(1) << 32);
  ZLG_CHECK_STATUS(zlg_operator_cost(A, ZLG_NOTRANS, INT64_C(1) << 60, &cost), ZLG_EOVERFLOW, context);
  zlg_operator_release(A);
  zlg_matrix *many[21];
  for (int i = 0; i < 21; i++) many[i] = F;
  ZLG_CHECK_STATUS(zlg_kron(context, &A, 21, many, NULL), ZLG_EOVERFLOW, context);
  zlg_matrix_release(F);
}

/* Rows that lie 2^31 + 3 elements apart, in memory and in a sparse file: the third begins past 2^32. And the shape of
 * 1 x 65536 twice, a vector of 2^32 elements, as the query plans it. */
static void past_2_to_the_32(void) {
  enum { ROWS = 4, K = 9, SIDE = 1 << 16 };
  const int64_t ld = (INT64_C(1) << 31) + 3;
  const size_t bytes = (size_t)(ROWS * ld) * sizeof(float);
  float *x = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  CU_ASSERT_FATAL(x != MAP_FAILED);
  float f[] = {1, 2, 0, 0, 1, 3, 1, 0, 1}, in[K], y[ROWS][K], from_file[ROWS][K];
  char *path = zlg_test_path("sparse.raw");
  FILE *file = fopen(path, "wb");
  for (int64_t v = 0; v < ROWS; v++) {
    for (int64_t k = 0; k < K; k++) in[k] = (float)(v * 7 + k);
    memcpy(x + v * ld, in, sizeof in);
    CU_ASSERT_EQUAL(fseeko(file, (off_t)(v * ld) * (off_t)sizeof(float), SEEK_SET), 0);
    CU_ASSERT_EQUAL(fwrite(in, sizeof in, 1, file), 1);
  }
  fclose(file);
  zlg_matrix *F, *X[2], *Y[2], *line;
  zlg_operator *A;
  ZLG_CHECK_OK(zlg_matrix_wrap(context, &F, ZLG_F32, 3, 3, ZLG_ROW_MAJOR, 3, f), context);
  ZLG_CHECK_OK(zlg_kron(context, &A, 2, (zlg_matrix *[]){F, F}, NULL), context);
  ZLG_CHECK_OK(zlg_matrix_wrap(context, &X[0], ZLG_F32, ROWS, K, ZLG_ROW_MAJOR, ld, x), context);
  ZLG_CHECK_OK(zlg_matrix_open_raw(context, &X[1], path, ZLG_F32, ROWS, K, ZLG_ROW_MAJOR, ld, 0), context);
  float *const results[] = {&y[0][0], &from_file[0][0]};
  for (int i = 0; i < 2; i++) {
    ZLG_CHECK_OK(zlg_matrix_wrap(context, &Y[i], ZLG_F32, ROWS, K, ZLG_ROW_MAJOR, K, results[i]), context);
    ZLG_CHECK_OK(zlg_apply_right(A, ZLG_NOTRANS, 1, X[i], 0, Y[i]), context);
  }
  CU_ASSERT_EQUAL(memcmp(y, from_file, sizeof y), 0);
  for (int v = 0; v < ROWS; v++)
    for (int j = 0; j < K; j++) {
      float sum = 0;
      for (int k = 0; k < K; k++) sum += (float)(v * 7 + k) * f[k / 3 * 3 + j / 3] * f[k % 3 * 3 + j % 3];
      CU_ASSERT_EQUAL(y[v][j], sum);
    }
  zlg_operator_release(A);
  ZLG_CHECK_OK(zlg_matrix_wrap(context, &line, ZLG_F32, 1, SIDE, ZLG_ROW_MAJOR, SIDE, x), context);
  ZLG_CHECK_OK(zlg_kron(context, &A, 2, (zlg_matrix *[]){line, line}, NULL), context);
  zlg_cost cost;
  ZLG_CHECK_OK(zlg_operator_cost(A, ZLG_NOTRANS, 1, &cost), context);
  CU_ASSERT_EQUAL(cost.bytes_read, 4 * (4294967296.0 + 2 * SIDE));
  CU_ASSERT(cost.tasks > 1 && cost.memory_bytes < INT64_C(1) << 30);
  zlg_operator_release(A);
  zlg_matrix *all[] = {F, X[0], X[1], Y[0], Y[1], line};
  for (int i = 0; i < 6; i++) zlg_matrix_release(all[i]);
  munmap(x, bytes);
  free(path);
}

/* a x b x c of distinct factors, and (I x A)(I x B) of two that do not commute. */
static void never_reversed(void) {
  struct product p = {.type = ZLG_F64, .count = 3, .vectors = 2};
  set_shape(&p, 0, 2, 3);
  set_shape(&p, 1, 4, 2);
  set_shape(&p, 2, 3, 5);
  check_exact(&p);
  double i2[] = {1, 0, 0, 1}, a[] = {1, 2, 0, 1}, b[] = {0, 1, 1, 3}, x[] = {1, 2, 3, 4}, z[4], y[4], want[4];
  zlg_matrix *m[3], *V[3];
  double *data[] = {i2, a, b}, *vectors[] = {x, z, y};
  zlg_operator *A, *B;
  for (int i = 0; i < 3; i++) {
    ZLG_CHECK_OK(zlg_matrix_wrap(context, &m[i], ZLG_F64, 2, 2, ZLG_ROW_MAJOR, 2, data[i]), context);
    ZLG_CHECK_OK(zlg_matrix_wrap(context, &V[i], ZLG_F64, 4, 1, ZLG_ROW_MAJOR, 1, vectors[i]), context);
  }
  ZLG_CHECK_OK(zlg_kron(context, &A, 2, (zlg_matrix *[]){m[0], m[1]}, NULL), context);
  ZLG_CHECK_OK(zlg_kron(context, &B, 2, (zlg_matrix *[]){m[0], m[2]}, NULL), context);
  ZLG_CHECK_OK(zlg_apply(B, ZLG_NOTRANS, 1, V[0], 0, V[1]), context);
  ZLG_CHECK_OK(zlg_apply(A, ZLG_NOTRANS, 1, V[1], 0, V[2]), context);
  for (int h = 0; h < 2; h++) { /* A B = [[2, 7], [1, 3]] */
    want[2 * h] = 2 * x[2 * h] + 7 * x[2 * h + 1];
    want[2 * h + 1] = x[2 * h] + 3 * x[2 * h + 1];
  }
  CU_ASSERT_EQUAL(memcmp(y, want, sizeof want), 0);
  zlg_operator_release(A);
  zlg_operator_release(B);
  for (int i = 0; i < 3; i++) zlg_matrix_release(m[i]), zlg_matrix_release(V[i]);
}

/* Sizes on both sides of any threshold. */
static void beside_each_other(void) {
  static const int64_t sizes[] = {799, 801, 701};
  for (int i = 0; i < 3; i++) {
    struct product p = {.type = ZLG_F32, .count = 2, .vectors = 3};
    set_shape(&p, 0, 2, 2);
    set_shape(&p, 1, sizes[i], sizes[i]);
    check_exact(&p);
  }
}

int main(int argc, char **argv) {
  static const struct zlg_test_case cases[] = {{"1, 24: a small dense one, twice", small_dense},
                                               {"5: 65 factors of 1 x 1 and 2 x 2", sixty_five_factors},
                                               {"5: 70 rows and columns", many_factors_are_planned},
                                               {"6: rows, columns, a single factor", thin_factors},
                                               {"6: no factor", no_factor},
                                               {"7, 25: past 2^32 elements", past_2_to_the_32},
                                               {"10, 16: NaN, Inf, alpha and beta", nan_where_it_belongs},
                                               {"13: every size and transpose", every_size},
                                               {"14: nothing is kept", nothing_is_kept},
                                               {"15: equal first factors", equal_first_factors},
                                               {"17: shrinks first", shrinks_first},
                                               {"18: a large query", large_query},
                                               {"20: never reversed", never_reversed},
                                               {"26: beside each other", beside_each_other},
                                               {NULL, NULL}};
  context = zlg_test_context();
  int status = zlg_test_main(argc, argv, cases);
  zlg_context_release(context);
  return status;
}
