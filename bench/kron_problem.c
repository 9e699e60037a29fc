/* Kronecker products as problems; see kron.h. */
#include "bench/kron.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/product.h"

static bool take_number(const char **text, int64_t *value) {
  char *end;
  if (!isdigit((unsigned char)**text)) return false;
  *value = strtoll(*text, &end, 10);
  *text = end;
  return *value >= 1 && *value <= INT32_MAX;
}

/* One item of the list: P[xQ][^N]. */
static bool take_factors(struct kron_shape *shape, const char **text) {
  int64_t p, q, times = 1;
  if (!take_number(text, &p)) return false;
  q = p;
  if (**text == 'x' && (++*text, !take_number(text, &q))) return false;
  if (**text == '^' && (++*text, !take_number(text, &times))) return false;
  for (int64_t t = 0; t < times; t++) {
    if (shape->count == KRON_FACTORS) return false;
    shape->p[shape->count] = p;
    shape->q[shape->count++] = q;
  }
  return true;
}

bool kron_shape_parse(struct kron_shape *shape, const char *text) {
  shape->count = 0;
  do {
    if (!take_factors(shape, &text)) return false;
  } while (*text++ == ',');
  return text[-1] == 0;
}

void kron_shape_name(const struct kron_shape *shape, char *name, size_t bytes) {
  size_t used = 0;
  name[0] = 0;
  for (int i = 0, next; i < shape->count && used < bytes; i = next) {
    for (next = i; next < shape->count && shape->p[next] == shape->p[i] && shape->q[next] == shape->q[i];) next++;
    used += (size_t)snprintf(name + used, bytes - used, "%s%lld", i ? "," : "", (long long)shape->p[i]);
    if (shape->q[i] != shape->p[i] && used < bytes)
      used += (size_t)snprintf(name + used, bytes - used, "x%lld", (long long)shape->q[i]);
    if (next > i + 1 && used < bytes) used += (size_t)snprintf(name + used, bytes - used, "^%d", next - i);
  }
}

int64_t kron_rows_in(const struct kron_shape *shape) {
  int64_t size = 1;
  for (int i = 0; i < shape->count; i++) size *= shape->p[i];
  return size;
}

int64_t kron_rows_out(const struct kron_shape *shape) {
  int64_t size = 1;
  for (int i = 0; i < shape->count; i++) size *= shape->q[i];
  return size;
}

int64_t kron_widest(const struct kron_shape *shape) {
  int64_t down = kron_rows_in(shape), up = down, most = down;
  for (int i = 0; i < shape->count; i++) {
    const int last = shape->count - 1 - i;
    down = down / shape->p[last] * shape->q[last];
    up = up / shape->p[i] * shape->q[i];
    if (down > most) most = down;
    if (up > most) most = up;
  }
  return most;
}

double kron_flops(const struct kron_shape *shape) {
  double size = (double)kron_rows_in(shape), flops = 0;
  for (int i = shape->count - 1; i >= 0; i--) {
    size = size / (double)shape->p[i] * (double)shape->q[i];
    flops += 2 * size * (double)shape->p[i] * (double)shape->m;
  }
  return flops;
}

static double get(zlg_type type, const void *values, int64_t index) {
  return type == ZLG_F32 ? (double)((const float *)values)[index] : ((const double *)values)[index];
}

/* Zeros that begin with a line of the cache: ours and the peers' alike. */
static void *lines_of(size_t bytes) {
  const size_t whole = (bytes + 63) / 64 * 64;
  void *memory = aligned_alloc(64, whole);
  if (memory) memset(memory, 0, whole);
  return memory;
}

/* count values of N(0, deviation^2), the first million again and again: a gigabyte of them is made in a second. */
static void *normal_array(zlg_type type, int64_t count, double deviation, uint64_t seed) {
  const int64_t period = 1000003;
  size_t size = zlg_type_size(type);
  char *values = lines_of((size_t)count * size + 64);
  if (!values) return NULL;
  bench_random_normal(type, values, count < period ? count : period, deviation, seed);
  for (int64_t done = period; done < count; done += period)
    memcpy(values + (size_t)done * size, values, (size_t)(count - done < period ? count - done : period) * size);
  return values;
}

/* Bytes that can be had without swapping; a guess where the system does not say. */
static double free_memory(void) {
  char line[128];
  double kilobytes = 4e6;
  FILE *from = fopen("/proc/meminfo", "r");
  while (from && fgets(line, sizeof line, from))
    if (sscanf(line, "MemAvailable: %lf", &kilobytes) == 1) break;
  if (from) fclose(from);
  return 1024 * kilobytes;
}

/* Vectors that fit: X and Y in a share of the memory, what the peers keep (FastKron in its own process too) in another.
 */
static void fit_memory(struct kron_problem *problem, const struct bench_settings *settings) {
  double vector = (double)problem->widest * (double)zlg_type_size(problem->type), memory = free_memory();
  double ours = settings->quick ? fmin(0x1p31, 0.4 * memory) : 0.4 * memory;
  int64_t *m = &problem->shape.m;
  while (*m > 1 && 2 * vector * (double)*m > ours) *m = (*m + 1) / 2;
  problem->peer_m = *m;
  while (problem->peer_m > 1 && 7 * vector * (double)problem->peer_m > 0.4 * memory)
    problem->peer_m = (problem->peer_m + 1) / 2;
  if (problem->shape.left || problem->shape.x_trans) *m = problem->peer_m;
}

static bool allocate(struct kron_problem *problem) {
  const struct kron_shape *shape = &problem->shape;
  size_t size = zlg_type_size(problem->type), part = (size_t)(problem->peer_m * problem->widest) * size + 64;
  problem->x = normal_array(problem->type, shape->m * problem->k, 1, 1);
  problem->y = lines_of(((size_t)(shape->m * problem->l) + 8) * size);
  problem->peer_y = lines_of((size_t)(problem->peer_m * problem->l) * size + 64);
  bool whole = problem->x && problem->y && problem->peer_y;
  for (int k = 0; k < 2; k++) whole &= (problem->scratch[k] = lines_of(part)) != NULL;
  for (int i = 0; i < shape->count; i++) {
    double deviation = 1 / sqrt((double)shape->p[i]);
    problem->factors[i] = normal_array(problem->type, shape->p[i] * shape->q[i], deviation, 2 + (uint64_t)i);
    whole &= problem->factors[i] != NULL;
  }
  return whole;
}

static int make_operator(struct kron_problem *problem, zlg_context *context) {
  const struct kron_shape *shape = &problem->shape;
  int64_t m = shape->m, k = problem->k, l = problem->l;
  zlg_op ops[KRON_FACTORS];
  for (int i = 0; i < shape->count; i++) {
    bool in_first = shape->left == shape->f_trans; /* stored p x q */
    int64_t rows = in_first ? shape->p[i] : shape->q[i], columns = in_first ? shape->q[i] : shape->p[i];
    ops[i] = shape->f_trans ? ZLG_TRANS : ZLG_NOTRANS;
    int status = zlg_matrix_wrap_const(context, &problem->F[i], problem->type, rows, columns, ZLG_ROW_MAJOR, columns,
                                       problem->factors[i]);
    if (status) return status;
  }
  int64_t x_rows = shape->left ? k : m, x_columns = shape->left ? m : k;
  zlg_order x_order = shape->x_trans ? ZLG_COLUMN_MAJOR : ZLG_ROW_MAJOR;
  int status = zlg_matrix_wrap_const(context, &problem->X, problem->type, x_rows, x_columns, x_order,
                                     shape->x_trans ? x_rows : x_columns, problem->x);
  if (!status)
    status = zlg_matrix_wrap(context, &problem->Y, problem->type, shape->left ? l : m, shape->left ? m : l,
                             ZLG_ROW_MAJOR, shape->left ? m : l, problem->y);
  return status ? status : zlg_kron(context, &problem->A, shape->count, problem->F, ops);
}

int kron_problem_open(struct kron_problem *problem, zlg_context *context, const struct bench_settings *settings,
                      const struct kron_shape *shape, zlg_type type, struct bench_row *row) {
  *problem = (struct kron_problem){.shape = *shape, .type = type};
  problem->k = kron_rows_in(shape), problem->l = kron_rows_out(shape), problem->widest = kron_widest(shape);
  fit_memory(problem, settings);
  if (!allocate(problem)) {
    kron_problem_close(problem);
    return bench_fail(row, "no memory for %lld vectors of %lld", (long long)shape->m, (long long)problem->k);
  }
  if (make_operator(problem, context) == ZLG_OK) return 0;
  bench_fail(row, "%s", zlg_context_message(context));
  kron_problem_close(problem);
  return -1;
}

void kron_problem_close(struct kron_problem *problem) {
  zlg_operator_release(problem->A);
  zlg_matrix_release(problem->X);
  zlg_matrix_release(problem->Y);
  for (int i = 0; i < KRON_FACTORS; i++) {
    zlg_matrix_release(problem->F[i]);
    free(problem->factors[i]);
  }
  free(problem->x);
  free(problem->y);
  free(problem->peer_y);
  free(problem->scratch[0]);
  free(problem->scratch[1]);
  memset(problem, 0, sizeof *problem);
}

int kron_problem_apply(struct kron_problem *problem, zlg_context *context, struct bench_row *row) {
  int status = problem->shape.left ? zlg_apply(problem->A, ZLG_NOTRANS, 1, problem->X, 0, problem->Y)
                                   : zlg_apply_right(problem->A, ZLG_NOTRANS, 1, problem->X, 0, problem->Y);
  return status ? bench_fail(row, "%s", zlg_context_message(context)) : 0;
}

/* Element (v, j) of the result and the sum of its terms' magnitudes: the last index is contracted with its factor's
 * column, then the one before it, …; `sums` has room for 2 K / p_n values. */
static void element(const struct kron_problem *problem, int64_t v, int64_t j, double *sums, double *exact,
                    double *magnitude) {
  const struct kron_shape *shape = &problem->shape;
  const bool side_by_side = shape->left == shape->x_trans, in_first = shape->left == shape->f_trans;
  int64_t size = problem->k;
  double *value = sums, *absolute = sums + problem->k / shape->p[shape->count - 1];
  for (int f = shape->count - 1; f >= 0; f--) {
    int64_t p = shape->p[f], q = shape->q[f], column = j % q;
    j /= q;
    size /= p;
    for (int64_t s = 0; s < size; s++) {
      double sum = 0, total = 0;
      for (int64_t i = 0; i < p; i++) {
        double factor = get(problem->type, problem->factors[f], in_first ? i * q + column : column * p + i);
        int64_t at = s * p + i;
        bool first = f == shape->count - 1;
        double x =
            !first ? value[at] : get(problem->type, problem->x, side_by_side ? v * problem->k + at : at * shape->m + v);
        sum += factor * x;
        total += fabs(factor) * (first ? fabs(x) : absolute[at]);
      }
      value[s] = sum, absolute[s] = total;
    }
  }
  *exact = value[0], *magnitude = absolute[0];
}

int kron_problem_check(const struct kron_problem *problem, const void *y, int64_t m, const char *who,
                       struct bench_row *row) {
  enum { ELEMENTS = 4 };
  const struct kron_shape *shape = &problem->shape;
  double *sums = malloc(2 * (size_t)(problem->k / shape->p[shape->count - 1]) * sizeof *sums);
  if (!sums) return bench_fail(row, "no memory for the check");
  double terms = 8;
  for (int i = 0; i < shape->count; i++) terms += (double)shape->p[i] + 2;
  int status = 0;
  for (int64_t t = 0; t < ELEMENTS && !status; t++) {
    int64_t v = t * (m - 1) / (ELEMENTS - 1),
            j = (int64_t)((uint64_t)(t + 1) * 0x9e3779b97f4a7c15u % (uint64_t)problem->l);
    double exact, magnitude;
    element(problem, v, j, sums, &exact, &magnitude);
    /* Higham: gamma of the roundings along one term, times the magnitudes; the factor 2 pays for the check's own, and
     * for factors multiplied together first. */
    double bound = 2 * terms * (problem->type == ZLG_F32 ? 0x1p-24 : 0x1p-53) * magnitude;
    double off = fabs(get(problem->type, y, shape->left ? j * m + v : v * problem->l + j) - exact);
    if (!(off <= bound))
      status = bench_fail(row, "%s is wrong: element %lld of vector %lld is off by %.2g, more than %.2g", who,
                          (long long)j, (long long)v, off, bound);
  }
  free(sums);
  return status;
}

/* Each is close to the exact sums where kron_problem_check() looked. Elsewhere a wrong element would differ from its
 * twin by as much as elements are large, so that a coarse tolerance tells. */
int kron_problem_agree(const struct kron_problem *problem, const char *who, struct bench_row *row) {
  const int64_t count = problem->peer_m * problem->l;
  double square = 0;
  for (int64_t i = 0; i < count; i++) square += pow(get(problem->type, problem->y, i), 2);
  double tolerance = (problem->type == ZLG_F32 ? 1e-2 : 1e-8) * sqrt(square / (double)count);
  for (int64_t i = 0; i < count; i++)
    if (!(fabs(get(problem->type, problem->y, i) - get(problem->type, problem->peer_y, i)) <= tolerance))
      return bench_fail(row, "ours and %s differ at element %lld", who, (long long)i);
  return 0;
}
