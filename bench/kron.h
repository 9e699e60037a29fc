/* Kronecker products as problems: a shape and its name, the arrays, our operator on them, the two algorithms on
 * OpenBLAS that serve as peers, and the check that what is timed is right. Shared by the cases of single shapes, the
 * random sweep and the scaling of workers. */
#ifndef ZLG_BENCH_KRON_H
#define ZLG_BENCH_KRON_H

#include "bench/bench.h"

enum { KRON_FACTORS = 16 };

/* M vectors of K = p_1 … p_n elements become vectors of L = q_1 … q_n. */
struct kron_shape {
  int count;
  int64_t p[KRON_FACTORS], q[KRON_FACTORS];
  int64_t m;
  bool left;             /* KMM: Y = A X, X is K x M, F_i is q_i x p_i; else MKM: Y = X A, X is M x K, F_i p_i x q_i */
  bool x_trans, f_trans; /* X, the factors are stored transposed (everything is row-major) */
};

/* Reads factors: P, PxQ or either with ^N, between commas: "8^5", "8,32,5x7,12". False: it is no such thing. */
bool kron_shape_parse(struct kron_shape *shape, const char *text);
/* "8^5", "3x5,70x2": what kron_shape_parse() reads. */
void kron_shape_name(const struct kron_shape *shape, char *name, size_t bytes);
/* Elements of a vector before and after the factors, and at most on the way from either end. */
int64_t kron_rows_in(const struct kron_shape *shape);
int64_t kron_rows_out(const struct kron_shape *shape);
int64_t kron_widest(const struct kron_shape *shape);
/* 2 K_{i+1} P_i M summed over the factors, the last applied first: what GF/s are counted by, for ours and the peers. */
double kron_flops(const struct kron_shape *shape);

/* y: ours. peer_y, scratch: of the algorithms on OpenBLAS, which do peer_m of the M vectors: all of them, or as many as
 * there is memory for. */
struct kron_problem {
  struct kron_shape shape;
  zlg_type type;
  int64_t k, l, widest, peer_m;
  void *x, *y, *peer_y, *scratch[2];
  void *factors[KRON_FACTORS];
  zlg_matrix *X, *Y, *F[KRON_FACTORS];
  zlg_operator *A;
};

/* The problem is zeroed first. On failure everything is given back and the reason is in the row. Where memory is short
 * (or the run is a quick one), fewer vectors than the shape's are taken. */
int kron_problem_open(struct kron_problem *problem, zlg_context *context, const struct bench_settings *settings,
                      const struct kron_shape *shape, zlg_type type, struct bench_row *row);
void kron_problem_close(struct kron_problem *problem);
int kron_problem_apply(struct kron_problem *problem, zlg_context *context, struct bench_row *row);
/* Compares some elements of `y` (of m vectors) with binary64 sums; fails where they are further off than rounding
 * explains. */
int kron_problem_check(const struct kron_problem *problem, const void *y, int64_t m, const char *who,
                       struct bench_row *row);
/* All that the peers made with ours, roughly. */
int kron_problem_agree(const struct kron_problem *problem, const char *who, struct bench_row *row);

/* The peers, `calls` products into peer_y, by so many threads. Shuffle: one matrix product over all vectors and a
 * transposition of each vector, factor by factor (what GPyTorch does). Modes: per factor a batch of matrix products
 * over its index where it lies, no transposition. */
void kron_shuffle(const struct kron_problem *problem, int threads, int calls);
void kron_modes(const struct kron_problem *problem, int threads, int calls);

/* A problem under way with its meters: ours, and in `others` every peer that is there, all of them checked. */
struct kron_trial {
  const struct bench_settings *settings;
  struct bench_row *row;
  zlg_context *context;
  struct kron_problem problem;
  double flops;                              /* of a call of ours */
  int our_calls, shuffle_calls, modes_calls; /* in one repetition */
  struct bench_meter ours, others[BENCH_PEERS];
  int other_count;
};
int kron_trial_open(struct kron_trial *trial, const struct bench_settings *settings, const struct kron_shape *shape,
                    zlg_type type, struct bench_row *row);
void kron_trial_close(struct kron_trial *trial);

int kron_run_sweep(const struct bench_case *self, const struct bench_settings *settings, struct bench_row *row);

#endif
