/* The benchmark's own contract: settings, rows, cases, meters. One driver (zlg-bench.c) runs the cases; an area is one
 * file with a table of cases (kernel.c, overhead.c, …); what they share is here: machine limits (rates.c), peers
 * (peers.c), kernel products as problems (product.c), the interleaved comparison (measure.c). Serves who tunes a kernel
 * and who wants to know what a figure in the documentation came from. */
#ifndef ZLG_BENCH_H
#define ZLG_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "zellige.h"

enum { BENCH_PEERS = 8, BENCH_REPETITIONS = 15, BENCH_MEDIAN = 512 };

struct bench_settings {
  bool quick;
  int workers;     /* CPU workers of the context, and threads of the limits and the peers */
  int repetitions; /* of everything, interleaved */
  double seconds;  /* that one repetition should last */
};

/* One line of the table and of the JSON file. Figures that do not exist are NaN. */
struct bench_row {
  const char *name;
  zlg_type type;
  int workers;
  double ours;
  const char *unit;
  int peer_count;
  struct {
    const char *name;
    double value;
  } peers[BENCH_PEERS];
  double limit, fraction;
  char note[256];
};

/* A case runs once per type and fills its row in; it returns 0, or -1 with the reason in row->note (bench_fail()). */
struct bench_case {
  const char *name; /* area/what/shape; NULL ends a table */
  int (*run)(const struct bench_case *self, const struct bench_settings *settings, struct bench_row *row);
  const void *shape; /* the area's own */
  int least_workers; /* 0, or the workers that the case cannot do without */
  zlg_type only;     /* 0: a row for each type */
};

extern const struct bench_case bench_machine_cases[], bench_kernel_cases[], bench_overhead_cases[],
    bench_scaling_cases[], bench_stream_cases[], bench_kron_cases[], bench_kron_grad_cases[];
/* A Kronecker product of any shape as a case, by its name (kron.c says how names are made), for --only; NULL: it is
 * none. Lives until the next call. */
const struct bench_case *bench_kron_case(const char *name);

int bench_fail(struct bench_row *row, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Appends to row->note, after a "; " where there is something already. */
void bench_note(struct bench_row *row, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A line on stderr. */
void bench_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Seconds: with one worker the processor time of this process, of all its threads, so that other people's load on the
 * machine does not enter (what the runtime costs does: its workers poll, and that is counted); with several, the wall
 * clock. */
double bench_clock(int workers);
double bench_wall_clock(void);
/* Of at most BENCH_MEDIAN values. */
double bench_median(const double *values, int count);

/* The context of that many CPU workers: made at the first call, kept until another number is asked for or
 * bench_context_close(). NULL: failed, the reason is in the row. */
zlg_context *bench_context(int workers, struct bench_row *row);
void bench_context_close(void);

/* What is measured side by side. `once` does one repetition and returns its figure (a rate); negative: it failed. */
struct bench_meter {
  const char *name;
  double (*once)(void *state);
  void *state;
  double median;
  double relative; /* median over the repetitions of ours / this */
};
/* Repeats: the limit, ours, the limit, every other meter. Fills ours, limit and fraction of the row (fraction: the
 * median of each repetition's ratio to the limit around it) and the medians of the others. `limit` may be NULL. */
int bench_compare(const struct bench_settings *settings, struct bench_row *row, struct bench_meter *ours,
                  struct bench_meter *limit, struct bench_meter *others, int other_count);

/* Rates of the hardware in this very moment, by `threads` threads at once; each call takes some 10 ms (20 for memory).
 * rate: operations on one element a second, by every vector register of the instruction set in use, independent chains.
 * triad: bytes a second of a[i] = b[i] + s c[i], out of caches, the write-allocate counted (4 streams).
 * gemm: multiply-adds a second of OpenBLAS, in a product of 512 x 512 matrices each (peak: one of 2048 x 2048 together,
 * which takes a tenth of a second). Negative: no memory. */
enum bench_operation { BENCH_FMA, BENCH_DIVIDE, BENCH_ROOT, BENCH_FMA_BESIDE_DIVIDE, BENCH_FMA_BESIDE_ROOT };
double bench_rate(enum bench_operation operation, zlg_type type, int threads);
/* Multiplier slots that one division or root (BENCH_FMA_BESIDE_…) takes, beside its time in the divider: measured. */
double bench_issue_slots(enum bench_operation operation, zlg_type type);
double bench_triad_rate(int threads);
double bench_gemm_rate(zlg_type type, int threads);
double bench_gemm_peak(zlg_type type, int threads);
const char *bench_gemm_kernel(void);

/* Peers that are installed (bench/peers.sh) and know the problem: fills in meters, rates in the unit of the problem,
 * and returns how many (at most BENCH_PEERS). `problem` is a line of words that bench/peers.py understands. Peers that
 * compile are left out in a quick run. The meters live until the next call. */
int bench_peers(const struct bench_settings *settings, const char *problem, struct bench_meter *meters);
void bench_peers_close(void);
/* Copies the medians of meters into the row's peers. */
void bench_row_peers(struct bench_row *row, const struct bench_meter *meters, int count);

#endif
