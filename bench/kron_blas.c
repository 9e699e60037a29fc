/* The two ways to a Kronecker product with nothing but a BLAS, as peers: one team of threads that share each factor's
 * work, OpenBLAS itself on one thread (the driver sets that).
 *
 * Vectors lie either with their elements side by side (inner = 1, a vector each M) or element by element (inner = M):
 * the state is a tensor outer x K x inner with outer inner = M, and a factor meets it as (outer lead) x p x (trail
 * inner). */
#include <cblas.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "bench/kron.h"

struct team;
typedef void algorithm_fn(struct team *team, int rank);

/* threads: 0 until all are there. */
struct team {
  const struct kron_problem *problem;
  algorithm_fn *algorithm;
  int calls;
  atomic_int threads, arrived, round;
};

struct member {
  struct team *team;
  int rank;
};

/* Everybody's work before it is done when anybody goes on. */
static void meet(struct team *team) {
  if (team->threads == 1) return;
  int round = atomic_load(&team->round);
  if (atomic_fetch_add(&team->arrived, 1) == team->threads - 1) {
    atomic_store(&team->arrived, 0);
    atomic_store(&team->round, round + 1);
  } else {
    while (atomic_load(&team->round) == round)
      ;
  }
}

static void *member_run(void *argument) {
  struct member *self = argument;
  while (!atomic_load(&self->team->threads))
    ;
  for (int k = 0; k < self->team->calls; k++) {
    self->team->algorithm(self->team, self->rank);
    meet(self->team);
  }
  return NULL;
}

/* The team is as large as threads could be had. */
static void team_run(const struct kron_problem *problem, algorithm_fn *algorithm, int threads, int calls) {
  enum { MOST = 64 };
  struct team team = {.problem = problem, .algorithm = algorithm, .calls = calls};
  struct member members[MOST];
  pthread_t ids[MOST];
  int started = 1;
  for (int k = 0; k < MOST; k++) members[k] = (struct member){&team, k};
  while (started < threads && started < MOST && pthread_create(&ids[started], NULL, member_run, &members[started]) == 0)
    started++;
  atomic_store(&team.threads, started); /* they start */
  member_run(&members[0]);
  for (int k = 1; k < started; k++) pthread_join(ids[k], NULL);
}

/* This member's share of [0, count). */
static void share(const struct team *team, int rank, int64_t count, int64_t *from, int64_t *to) {
  *from = count * rank / team->threads;
  *to = count * (rank + 1) / team->threads;
}

static void *at(const struct kron_problem *problem, const void *base, int64_t index) {
  return (char *)(uintptr_t)base + index * (int64_t)zlg_type_size(problem->type);
}

/* C (m x n) = op(A) op(B), all row-major. */
static void gemm(const struct kron_problem *problem, bool a_trans, bool b_trans, int64_t m, int64_t n, int64_t k,
                 const void *a, int64_t lda, const void *b, int64_t ldb, void *c, int64_t ldc) {
  if (m == 0 || n == 0) return;
  CBLAS_TRANSPOSE ta = a_trans ? CblasTrans : CblasNoTrans, tb = b_trans ? CblasTrans : CblasNoTrans;
  if (problem->type == ZLG_F32)
    cblas_sgemm(CblasRowMajor, ta, tb, (blasint)m, (blasint)n, (blasint)k, 1, a, (blasint)lda, b, (blasint)ldb, 0, c,
                (blasint)ldc);
  else
    cblas_dgemm(CblasRowMajor, ta, tb, (blasint)m, (blasint)n, (blasint)k, 1, a, (blasint)lda, b, (blasint)ldb, 0, c,
                (blasint)ldc);
}

/* to[j, i] = from[i, j] for i < rows, j < columns, in blocks that the first cache holds. */
#define TRANSPOSE(real)                                                                                                \
  static void transpose_##real(const real *restrict from, int64_t ld_from, real *restrict to, int64_t ld_to,           \
                               int64_t rows, int64_t columns) {                                                        \
    enum { BLOCK = 16 };                                                                                               \
    for (int64_t i = 0; i < rows; i += BLOCK)                                                                          \
      for (int64_t j = 0; j < columns; j += BLOCK) {                                                                   \
        int64_t i_end = i + BLOCK < rows ? i + BLOCK : rows, j_end = j + BLOCK < columns ? j + BLOCK : columns;        \
        for (int64_t b = j; b < j_end; b++)                                                                            \
          for (int64_t a = i; a < i_end; a++) to[b * ld_to + a] = from[a * ld_from + b];                               \
      }                                                                                                                \
  }
TRANSPOSE(float)
TRANSPOSE(double)

static void transpose(const struct kron_problem *problem, const void *from, int64_t ld_from, void *to, int64_t ld_to,
                      int64_t rows, int64_t columns) {
  if (problem->type == ZLG_F32)
    transpose_float(from, ld_from, to, ld_to, rows, columns);
  else
    transpose_double(from, ld_from, to, ld_to, rows, columns);
}

/* X where the algorithm wants it: in place, or transposed into `to` where it is stored the other way. */
static const void *prepared(struct team *team, int rank, void *to) {
  const struct kron_problem *problem = team->problem;
  const struct kron_shape *shape = &problem->shape;
  if (!shape->x_trans) return problem->x;
  int64_t rows = shape->left ? shape->m : problem->k, columns = shape->left ? problem->k : shape->m, from, end;
  share(team, rank, rows, &from, &end);
  transpose(problem, at(problem, problem->x, from * columns), columns, at(problem, to, from), rows, end - from,
            columns);
  meet(team);
  return to;
}

static void *other(const struct kron_problem *problem, const void *than) {
  return problem->scratch[than == problem->scratch[1] ? 0 : 1];
}

/* MKM: slices of p elements side by side, times F, and each vector's S x q turned into q x S. */
static void shuffle_right(struct team *team, int rank) {
  const struct kron_problem *problem = team->problem;
  const struct kron_shape *shape = &problem->shape;
  int64_t size = problem->k, from, end;
  const void *in = prepared(team, rank, problem->scratch[0]);
  for (int f = shape->count - 1; f >= 0; f--) {
    int64_t p = shape->p[f], q = shape->q[f], slices = size / p;
    void *product = f == 0 && slices == 1 ? problem->peer_y : other(problem, in);
    void *turned = f == 0 ? problem->peer_y : other(problem, product);
    share(team, rank, problem->peer_m * slices, &from, &end);
    gemm(problem, false, shape->f_trans, end - from, q, p, at(problem, in, from * p), p, problem->factors[f],
         shape->f_trans ? p : q, at(problem, product, from * q), q);
    meet(team); /* `turned` may be what others still read */
    size = slices * q;
    in = product;
    if (slices == 1) continue;
    for (int64_t v = from / slices; v * slices < end; v++) {
      int64_t first = from > v * slices ? from - v * slices : 0;
      int64_t stop = end - v * slices < slices ? end - v * slices : slices;
      transpose(problem, at(problem, product, (v * slices + first) * q), q, at(problem, turned, v * size + first),
                slices, stop - first, q);
    }
    in = turned;
    meet(team);
  }
}

/* KMM: F times all of p x (S M), and q x S runs of M turned into S x q. */
static void shuffle_left(struct team *team, int rank) {
  const struct kron_problem *problem = team->problem;
  const struct kron_shape *shape = &problem->shape;
  const int64_t m = shape->m;
  const size_t run = (size_t)m * zlg_type_size(problem->type);
  int64_t size = problem->k, from, end;
  const void *in = prepared(team, rank, problem->scratch[0]);
  for (int f = 0; f < shape->count; f++) {
    int64_t p = shape->p[f], q = shape->q[f], slices = size / p;
    bool last = f == shape->count - 1;
    void *product = last && slices == 1 ? problem->peer_y : other(problem, in);
    void *turned = last ? problem->peer_y : other(problem, product);
    share(team, rank, slices * m, &from, &end);
    gemm(problem, shape->f_trans, false, q, end - from, p, problem->factors[f], shape->f_trans ? q : p,
         at(problem, in, from), slices * m, at(problem, product, from), slices * m);
    meet(team);
    size = slices * q;
    in = product;
    if (slices == 1) continue;
    share(team, rank, slices, &from, &end);
    for (int64_t s = from; s < end; s++)
      for (int64_t j = 0; j < q; j++)
        memcpy(at(problem, turned, (s * q + j) * m), at(problem, product, (j * slices + s) * m), run);
    in = turned;
    meet(team);
  }
}

static void shuffle(struct team *team, int rank) {
  if (team->problem->shape.left)
    shuffle_left(team, rank);
  else
    shuffle_right(team, rank);
}

/* One factor over its index in place: `lead` matrices of p x trail become q x trail, shared by matrices where there are
 * enough of them and by columns else. With trail = 1 all matrices are one of lead x p. */
static void mode(struct team *team, int rank, int f, int64_t lead, int64_t trail, const void *in, void *out) {
  const struct kron_problem *problem = team->problem;
  const struct kron_shape *shape = &problem->shape;
  const bool in_first = shape->left == shape->f_trans; /* stored p x q */
  const int64_t p = shape->p[f], q = shape->q[f], ld = in_first ? q : p;
  const void *factor = problem->factors[f];
  int64_t from, end, first = 0, stop = trail;
  if (trail == 1) {
    share(team, rank, lead, &from, &end);
    gemm(problem, false, !in_first, end - from, q, p, at(problem, in, from * p), p, factor, ld,
         at(problem, out, from * q), q);
    return;
  }
  if (lead >= team->threads) {
    share(team, rank, lead, &from, &end);
  } else {
    from = 0, end = lead;
    share(team, rank, trail, &first, &stop);
  }
  for (int64_t k = from; k < end; k++)
    gemm(problem, in_first, false, q, stop - first, p, factor, ld, at(problem, in, k * p * trail + first), trail,
         at(problem, out, k * q * trail + first), trail);
}

static void modes(struct team *team, int rank) {
  const struct kron_problem *problem = team->problem;
  const struct kron_shape *shape = &problem->shape;
  int64_t lead = shape->left ? 1 : problem->peer_m, trail = shape->left ? shape->m : 1;
  const void *in = prepared(team, rank, problem->scratch[0]);
  for (int i = 0; i < shape->count; i++) lead *= shape->p[i];
  for (int f = shape->count - 1; f >= 0; f--) {
    void *out = f == 0 ? problem->peer_y : other(problem, in);
    lead /= shape->p[f];
    mode(team, rank, f, lead, trail, in, out);
    meet(team);
    trail *= shape->q[f];
    in = out;
  }
}

void kron_shuffle(const struct kron_problem *problem, int threads, int calls) {
  team_run(problem, shuffle, threads, calls);
}

void kron_modes(const struct kron_problem *problem, int threads, int calls) {
  team_run(problem, modes, threads, calls);
}
