/* Gradients of Kronecker factors on the CPU. As many vectors as stay in the second cache with all that lies between
 * their factors are taken at once, rows; contractions are codelets/common/contract.h's, one factor at a time.
 *
 * A factor's gradient is a product of two matrices that lie as tensors, x (lead, p, trail) and g (lead, q, trail), over
 * lead and trail. Lanes are trailing elements where they fill registers; where there is no trail, columns of g, each
 * with an element of x for all. Where the factors that are applied first are too small for either, they form a group:
 * lines of all its elements are transposed in registers, and go through the group, forward and back, as lanes of
 * panels. Sums end across lanes, in binary64, sixteen at a time.
 *
 * Count, per vector and step of lead x p x q x trail: one multiply-add forward, one backward, one for dF; eight loads
 * for sixteen of the last. */
#include "codelets/common/simd.h"
#include "codelets/kron_gradients/args.h"

#ifndef REAL /* this file includes itself, once per element type */

#include <stdbool.h>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function" /* chains of groups are not wanted here */
#define ZLG_BITS 32
#include "codelets/common/contract.h"
#define ZLG_BITS 64
#include "codelets/common/contract.h"
#pragma GCC diagnostic pop

#define FACTORS ZLG_KRON_GRADIENTS_FACTORS
#define CHUNK 256                 /* products that are added in the type of the vectors */
#define CHUNK_LEAST 16            /* registers of each sum, so that its end does not show */
#define CHUNK_BYTES (320 << 10)   /* of both operands, passed once for every four rows of one of them */
#define VECTORS_BYTES (512 << 10) /* of all tensors of the vectors at once */
#define LINES_BYTES (1536 << 10)  /* of the longest vectors that are lines, a register's lanes of them */
#define GROUP_MOST 1024           /* elements of a line that goes through a group of factors */
#define PANELS_BYTES (128 << 10)  /* of all its panels */
#define PANELS_MOST 16
#define BLOCK 4 /* sums in a block: BLOCK x BLOCK */

/* Elements of a vector before each step and after the last; returns the most. */
static int64_t sizes_of(const struct zlg_kron_gradients_args *args, int64_t *sizes) {
  int64_t most = 1;
  sizes[0] = 1;
  for (int i = 0; i < args->count; i++) sizes[0] *= args->p[i];
  for (int s = 0; s < args->count; s++) sizes[s + 1] = sizes[s] / args->p[args->turn[s]] * args->q[args->turn[s]];
  for (int s = 0; s <= args->count; s++) most = sizes[s] > most ? sizes[s] : most;
  return most;
}

/* A step: the factor, and its place among the elements of a vector. */
struct step {
  int64_t lead, p, q, trail;
  int64_t at; /* of the factor among all */
};

static void steps_of(const struct zlg_kron_gradients_args *args, struct step *steps) {
  int32_t extent[FACTORS];
  for (int i = 0; i < args->count; i++) extent[i] = args->p[i];
  for (int s = 0; s < args->count; s++) {
    const int f = args->turn[s];
    struct step step = {.lead = 1, .p = args->p[f], .q = args->q[f], .trail = 1};
    for (int i = 0; i < f; i++) step.lead *= extent[i], step.at += (int64_t)args->p[i] * args->q[i];
    for (int i = f + 1; i < args->count; i++) step.trail *= extent[i];
    extent[f] = args->q[f];
    steps[s] = step;
  }
}

static int64_t larger(int64_t a, int64_t b) {
  return a > b ? a : b;
}
static int64_t smaller(int64_t a, int64_t b) {
  return a < b ? a : b;
}

/* Registers of a panel that one factor is applied to. */
static int panel_vectors(int64_t widest) {
  const int64_t fit = ZLG_PANEL_BYTES / (widest * ZLG_VECTOR_BYTES), most = ZLG_VECTOR_BYTES == 64 ? 4 : 2;
  return (int)smaller(most, larger(fit, 2));
}

/* The factors that are applied first, to lanes of lines: steps 0 to count - 1, over the last indices. Their steps have
 * the line's own lead. */
struct group {
  int count;
  int64_t in, out, widest; /* elements of a line: before, after, at most */
  int64_t lead;            /* lines of a vector */
  int64_t panels;          /* lanes of lines that are worked on together */
  int64_t tensors;         /* elements of a line before each step, and of two more for what goes back */
};

/* No group. */
static const struct group alone = {.in = 1, .out = 1, .widest = 1, .lead = 1};

static struct group all_of(const struct zlg_kron_gradients_args *args, const int64_t *sizes, int64_t most) {
  return (struct group){.count = args->count, .in = sizes[0], .out = sizes[args->count], .widest = most, .lead = 1};
}

/* The last indices' factors, from the last on, until their lines fill registers. */
static struct group small_ones(const struct zlg_kron_gradients_args *args, const struct step *steps, int64_t lanes) {
  struct group g = alone;
  if (4 * steps[0].q >= 3 * lanes || steps[0].trail != 1) return alone;
  while (g.count < args->count && g.out < 2 * lanes) {
    const int f = args->turn[g.count];
    const int64_t in = g.in * args->p[f], out = g.out * args->q[f];
    const int64_t widest = larger(larger(g.widest * args->p[f], out), in);
    if (f != args->count - 1 - g.count || widest > GROUP_MOST) break;
    g.in = in, g.out = out, g.widest = widest, g.count++;
  }
  for (int f = 0; f < args->count - g.count; f++) g.lead *= args->p[f];
  return g.count == 0 || 2 * g.lead * args->vectors < lanes ? alone : g;
}

/* All factors where whole vectors are short enough to be lines, else the small ones. */
static struct group group_of(const struct zlg_kron_gradients_args *args, const struct step *steps, const int64_t *sizes,
                             int64_t most) {
  const int64_t lanes = ZLG_VECTOR_BYTES / (args->type == ZLG_F32 ? 4 : 8);
  const bool short_ones = most * ZLG_VECTOR_BYTES <= LINES_BYTES && 2 * args->vectors >= lanes;
  struct group g = short_ones ? all_of(args, sizes, most) : small_ones(args, steps, lanes);
  int64_t size = g.in;
  for (int s = 0; s < g.count; s++) {
    g.tensors += size;
    size = size / steps[s].p * steps[s].q;
  }
  g.tensors += 2 * g.widest;
  g.panels = larger(1, smaller(PANELS_MOST, PANELS_BYTES / (g.tensors * ZLG_VECTOR_BYTES)));
  return g;
}

#define PAD(elements) (((elements) + 31) / 16 * 16)

/* The scratch in elements: vectors that are taken at once, and each part of it. */
struct layout {
  int64_t vectors, factors, tensor[FACTORS + 1], widest, panel, lines, zeros, all;
  struct group group;
};

static struct layout layout_of(const struct zlg_kron_gradients_args *args, const struct step *steps,
                               const int64_t *sizes, int64_t most) {
  const int64_t element = args->type == ZLG_F32 ? 4 : 8;
  const int64_t lanes = ZLG_VECTOR_BYTES / element;
  struct layout l = {.panel = 2 * ZLG_PANEL_BYTES / element, .group = group_of(args, steps, sizes, most)};
  const bool turned = args->x_order != ZLG_ROW_MAJOR; /* x needs a tensor of rows */
  int64_t vector = 2 * most + (turned ? sizes[0] : 0);
  for (int s = larger(l.group.count, 1); s < args->count; s++) vector += sizes[s];
  l.vectors = l.group.count == args->count ? lanes * l.group.panels : larger(1, VECTORS_BYTES / element / vector);
  l.vectors = smaller(args->vectors, l.vectors);
  for (int s = 0; s < args->count; s++) {
    const int64_t wide = larger(steps[s].p, steps[s].q);
    l.factors += steps[s].p * steps[s].q;
    l.tensor[s] = (s == 0 && turned) || (s > 0 && s >= l.group.count) ? PAD(l.vectors * sizes[s]) : 0;
    l.panel = larger(l.panel, wide * panel_vectors(wide) * lanes);
  }
  l.lines = PAD(l.group.panels * l.group.tensors * lanes), l.zeros = PAD(l.group.widest);
  l.factors = PAD(l.factors), l.panel = PAD(l.panel);
  l.widest = PAD(l.vectors * most);
  l.all = l.factors + 2 * l.widest + 3 * l.panel + l.lines + l.zeros;
  for (int s = 0; s < args->count; s++) l.all += l.tensor[s];
  return l;
}

size_t ZLG_ISA_FN(zlg_kron_gradients_scratch)(const struct zlg_kron_gradients_args *args) {
  struct step steps[FACTORS];
  int64_t sizes[FACTORS + 1];
  const int64_t most = sizes_of(args, sizes);
  steps_of(args, steps);
  const struct layout layout = layout_of(args, steps, sizes, most);
  return ((size_t)layout.all * (args->type == ZLG_F32 ? sizeof(float) : sizeof(double)) + 63) / 64 * 64;
}

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
#define FN(name) PASTE(PASTE(name, _), BITS)
#define VECTOR PASTE(zlg_v, BITS)
#define LANES (ZLG_VECTOR_BYTES / (int)sizeof(REAL))

#define REAL float
#define BITS 32
#include "codelets/kron_gradients/cpu.c"
#undef REAL
#undef BITS
#define REAL double
#define BITS 64
#include "codelets/kron_gradients/cpu.c"
#undef REAL
#undef BITS

void ZLG_ISA_FN(zlg_kron_gradients_cpu)(const struct zlg_kron_gradients_args *args,
                                        const struct zlg_kron_gradients_operands *operands, void *scratch) {
  if (args->type == ZLG_F32)
    run_32(args, operands, scratch);
  else
    run_64(args, operands, scratch);
}

#else /* one element type */

typedef double FN(wide) __attribute__((vector_size(LANES * sizeof(double))));

/* to += sum, in binary64. */
ZLG_INLINE void FN(add)(double *to, VECTOR sum) {
  FN(wide) was;
  memcpy(&was, to, sizeof was);
  was += __builtin_convertvector(sum, FN(wide));
  memcpy(to, &was, sizeof was);
}

ZLG_INLINE VECTOR FN(load)(const REAL *from) {
  VECTOR v;
  memcpy(&v, from, sizeof v);
  return v;
}

/* ---- one contraction -------------------------------------------------------------------------------------------- */

/* y = x f for n tensors, x_apart and y_apart elements from one to the next; f is p x q. */
static void FN(contract)(const REAL *x, int64_t x_apart, const REAL *f, REAL *y, int64_t y_apart, int64_t n,
                         int64_t lead, int64_t p, int64_t q, int64_t trail, const struct FN(zlg_end) * end,
                         REAL *const *panels) {
  const struct zlg_group_step step = {.factor = 0, .p = p, .q = q, .lead = 1, .trail = 1};
  const struct zlg_group group = {.step = &step,
                                  .steps = 1,
                                  .vectors = panel_vectors(larger(p, q)),
                                  .in = p,
                                  .out = q,
                                  .widest = larger(p, q),
                                  .lead = lead,
                                  .trail = trail};
  FN(zlg_pass)(&group, &f, n, 1, x, x_apart, 1, 0, y, y_apart, 1, end, panels, false);
}

/* The same for tensors of lanes, one behind the other: lead in all of them. Neighbours along the trail are further
 * lanes.
 */
static void FN(contract_lanes)(const REAL *x, const REAL *f, REAL *y, int64_t lead, int64_t p, int64_t q,
                               int64_t trail) {
  static const struct FN(zlg_end) plain = {ZLG_STORE, 1, 0};
  const int most = ZLG_VECTOR_BYTES == 64 ? 4 : 2;
  int nv = 1;
  while (2 * nv <= most && trail % (2 * nv) == 0) nv *= 2;
  const struct FN(zlg_step) step = {.lead = lead,
                                    .p = p,
                                    .q = q,
                                    .trail = trail / nv,
                                    .factor = f,
                                    .x = x,
                                    .xs = nv * LANES,
                                    .y = y,
                                    .ys = nv * LANES,
                                    .end = &plain};
  FN(zlg_contract)(&step, nv);
}

/* ---- one factor's gradient -------------------------------------------------------------------------------------- */

/* Tensors of n vectors, one behind the other or where the caller has them. */
struct FN(tensors) {
  const REAL *data;
  int64_t apart;
};

/* Two tensors of n vectors and where their sums go. */
struct FN(pair) {
  const REAL *x, *g;
  int64_t x_apart, g_apart; /* from vector to vector */
  int64_t n, lead, p, q, trail;
  double *acc;
};

/* The total of each of so many registers, added to acc[i][j] of a block. */
ZLG_INLINE void FN(add_totals)(VECTOR (*sum)[BLOCK], double *acc, int64_t q, const int I, const int J) {
  VECTOR all[BLOCK * BLOCK];
#pragma GCC unroll 16
  for (int k = 0; k < BLOCK * BLOCK; k++)
    all[k] = k / BLOCK < I && k % BLOCK < J ? sum[k / BLOCK][k % BLOCK] : (VECTOR){0};
#pragma GCC unroll 4
  for (int first = 0; first < BLOCK * BLOCK; first += LANES) {
    double total[LANES] = {0};
    FN(zlg_transpose)(all + first);
#pragma GCC unroll 16
    for (int c = 0; c < LANES; c++) FN(add)(total, all[first + c]);
    for (int k = 0; k < LANES; k++)
      if ((first + k) / BLOCK < I && (first + k) % BLOCK < J)
        acc[(first + k) / BLOCK * q + (first + k) % BLOCK] += total[k];
  }
}

/* Slices that a block of sums runs over: `leads` of them, each of `registers` registers and `tail` lanes of one more;
 * rows are `row` elements apart. */
struct FN(slices) {
  const REAL *x, *g;
  int64_t x_slice, g_slice, row, leads, registers;
  int tail;
};

typedef void FN(outer_fn)(const struct FN(slices) *, double *, int64_t);
#define OUTER(I, J)                                                                                                    \
  static __attribute__((noinline)) void FN(outer_##I##_##J)(const struct FN(slices) * s, double *acc, int64_t q) {     \
    FN(outer_block)(s, acc, q, I, J);                                                                                  \
  }
#define OUTERS(X)                                                                                                      \
  X(1, 1)                                                                                                              \
  X(1, 2)                                                                                                              \
  X(1, 3) X(1, 4) X(2, 1) X(2, 2) X(2, 3) X(2, 4) X(3, 1) X(3, 2) X(3, 3) X(3, 4) X(4, 1) X(4, 2) X(4, 3) X(4, 4)

/* acc[i][j] += the sum of x[i] g[j] over the slices, for I x J values of (i, j). */
ZLG_INLINE void FN(outer_block)(const struct FN(slices) * s, double *acc, int64_t q, const int I, const int J) {
  VECTOR sum[BLOCK][BLOCK], u[BLOCK], v[BLOCK];
#pragma GCC unroll 4
  for (int i = 0; i < I; i++)
#pragma GCC unroll 4
    for (int j = 0; j < J; j++) sum[i][j] = (VECTOR){0};
  for (int64_t l = 0; l < s->leads; l++) {
    const REAL *a = s->x + l * s->x_slice, *b = s->g + l * s->g_slice;
    for (int64_t r = 0; r < s->registers; r++, a += LANES, b += LANES) {
#pragma GCC unroll 4
      for (int i = 0; i < I; i++) u[i] = FN(load)(a + i * s->row);
#pragma GCC unroll 4
      for (int j = 0; j < J; j++) v[j] = FN(load)(b + j * s->row);
#pragma GCC unroll 4
      for (int i = 0; i < I; i++)
#pragma GCC unroll 4
        for (int j = 0; j < J; j++) sum[i][j] += u[i] * v[j];
    }
    if (s->tail == 0) continue;
#pragma GCC unroll 4
    for (int i = 0; i < I; i++) u[i] = FN(zlg_load_part)(a + i * s->row, s->tail);
#pragma GCC unroll 4
    for (int j = 0; j < J; j++) v[j] = FN(zlg_load_part)(b + j * s->row, s->tail);
#pragma GCC unroll 4
    for (int i = 0; i < I; i++)
#pragma GCC unroll 4
      for (int j = 0; j < J; j++) sum[i][j] += u[i] * v[j];
  }
  FN(add_totals)(sum, acc, q, I, J);
}
OUTERS(OUTER)
#define ENTRY(I, J) [I - 1][J - 1] = FN(outer_##I##_##J),
static FN(outer_fn) *const FN(outers)[BLOCK][BLOCK] = {OUTERS(ENTRY)};

/* Of all (i, j), in blocks as alike as can be. */
static void FN(outer_slices)(struct FN(slices) s, int64_t p, int64_t q, double *acc) {
  const REAL *x = s.x, *g = s.g;
  const int64_t rows = (p + BLOCK - 1) / BLOCK, columns = (q + BLOCK - 1) / BLOCK;
  for (int64_t b = 0, i = 0; b < rows; b++) {
    const int64_t I = p * (b + 1) / rows - i;
    for (int64_t c = 0, j = 0; c < columns; c++) {
      const int64_t J = q * (c + 1) / columns - j;
      s.x = x + i * s.row, s.g = g + j * s.row;
      FN(outers)[I - 1][J - 1](&s, acc + i * q + j, q);
      j += J;
    }
    i += I;
  }
}

/* Lanes are trailing elements. */
static void FN(outer_by_trail)(const struct FN(pair) * t) {
  const int64_t fit = CHUNK_BYTES / ((t->p + t->q) * ZLG_VECTOR_BYTES);
  const int64_t chunk = smaller(CHUNK, larger(fit, CHUNK_LEAST)), whole = t->trail / LANES;
  const int64_t registers = (t->trail + LANES - 1) / LANES;
  const int64_t some = larger(1, smaller(chunk, whole)), leads = larger(1, chunk / registers);
  for (int64_t v = 0; v < t->n; v++)
    for (int64_t l = 0; l < t->lead; l += leads)
      for (int64_t r = 0; r == 0 || r < whole; r += some) {
        const int64_t offset = r * LANES;
        const bool last = r + some >= whole;
        FN(outer_slices)
        ((struct FN(slices)){.x = t->x + v * t->x_apart + l * t->p * t->trail + offset,
                             .g = t->g + v * t->g_apart + l * t->q * t->trail + offset,
                             .x_slice = t->p * t->trail,
                             .g_slice = t->q * t->trail,
                             .row = t->trail,
                             .leads = smaller(leads, t->lead - l),
                             .registers = smaller(some, whole - r),
                             .tail = last ? (int)(t->trail % LANES) : 0},
         t->p, t->q, t->acc);
      }
}

/* acc[i][j] += x[l][i] g[l][j] for I rows i and V registers of columns j over `lines` lines, without a trail; of the
 * last register `tail` lanes are there, if not 0. */
ZLG_INLINE void FN(columns_block)(const REAL *x, const REAL *g, int64_t lines, int64_t p, int64_t q, int tail,
                                  double *acc, const int I, const int V) {
  VECTOR sum[BLOCK][BLOCK];
#pragma GCC unroll 4
  for (int i = 0; i < I; i++)
#pragma GCC unroll 4
    for (int v = 0; v < V; v++) sum[i][v] = (VECTOR){0};
  for (int64_t l = 0; l < lines; l++, x += p, g += q) {
    VECTOR in[BLOCK];
#pragma GCC unroll 4
    for (int v = 0; v < V; v++)
      in[v] = v == V - 1 && tail ? FN(zlg_load_part)(g + v * LANES, tail) : FN(load)(g + v * LANES);
#pragma GCC unroll 4
    for (int i = 0; i < I; i++)
#pragma GCC unroll 4
      for (int v = 0; v < V; v++) sum[i][v] += x[i] * in[v];
  }
#pragma GCC unroll 4
  for (int i = 0; i < I; i++)
#pragma GCC unroll 4
    for (int v = 0; v < V; v++) {
      double *to = acc + i * q + v * LANES;
      if (v < V - 1 || !tail) FN(add)(to, sum[i][v]);
      for (int k = 0; k < tail && v == V - 1; k++) to[k] += (double)sum[i][v][k];
    }
}

typedef void FN(columns_fn)(const REAL *, const REAL *, int64_t, int64_t, int64_t, int, double *);
#define COLUMNS(I, V)                                                                                                  \
  static __attribute__((noinline)) void FN(columns_##I##_##V)(const REAL *x, const REAL *g, int64_t lines, int64_t p,  \
                                                              int64_t q, int tail, double *acc) {                      \
    FN(columns_block)(x, g, lines, p, q, tail, acc, I, V);                                                             \
  }
OUTERS(COLUMNS)
#define COLUMNS_ENTRY(I, V) [I - 1][V - 1] = FN(columns_##I##_##V),
static FN(columns_fn) *const FN(columns_of)[BLOCK][BLOCK] = {OUTERS(COLUMNS_ENTRY)};

/* Lanes are columns of g: no trail. */
static void FN(outer_by_columns)(const struct FN(pair) * t) {
  const int64_t fit = CHUNK_BYTES / ((t->p + t->q) * (int64_t)sizeof(REAL));
  const int64_t chunk = smaller(CHUNK, larger(fit, CHUNK_LEAST)), registers = (t->q + LANES - 1) / LANES;
  const int64_t rows = (t->p + BLOCK - 1) / BLOCK, columns = (registers + BLOCK - 1) / BLOCK;
  for (int64_t v = 0; v < t->n; v++)
    for (int64_t l = 0; l < t->lead; l += chunk)
      for (int64_t b = 0, i = 0; b < rows; b++) {
        const int64_t I = t->p * (b + 1) / rows - i, lines = smaller(chunk, t->lead - l);
        const REAL *x = t->x + v * t->x_apart + l * t->p + i, *g = t->g + v * t->g_apart + l * t->q;
        for (int64_t c = 0, r = 0; c < columns; c++) {
          const int64_t V = registers * (c + 1) / columns - r;
          const int tail = c == columns - 1 ? (int)(t->q % LANES) : 0;
          FN(columns_of)[I - 1][V - 1](x, g + r * LANES, lines, t->p, t->q, tail, t->acc + i * t->q + r * LANES);
          r += V;
        }
        i += I;
      }
}

/* ---- a group of small factors over lines ------------------------------------------------------------------------- */

/* Lines [at, at + LANES) of n tensors of `lead` lines each; those that are not there are zeros. */
static int FN(find_lines)(const struct FN(tensors) * t, int64_t n, int64_t lead, int64_t size, int64_t at, REAL *zeros,
                          REAL **lines) {
  const int64_t there = smaller(LANES, n * lead - at);
  for (int k = 0; k < LANES; k++) {
    const int64_t v = (at + k) / lead, l = (at + k) % lead;
    lines[k] = k < there ? (REAL *)(uintptr_t)t->data + v * t->apart + l * size : zeros;
  }
  return (int)there;
}

/* Lines of `size` elements into up to `panels` panels from line `at` on; returns how many. */
static int64_t FN(lines_in)(const struct FN(tensors) * t, int64_t n, int64_t lead, int64_t size, int64_t at,
                            int64_t panels, REAL *zeros, REAL *to) {
  int64_t count = 0;
  for (; count < panels && at + count * LANES < n * lead; count++) {
    REAL *lines[LANES];
    FN(find_lines)(t, n, lead, size, at + count * LANES, zeros, lines);
    FN(zlg_transpose_in)(lines, size, to + count * size * LANES, LANES, false);
  }
  return count;
}

static void FN(lines_out)(const REAL *from, int64_t panels, const struct FN(tensors) * t, int64_t n, int64_t lead,
                          int64_t size, int64_t at, REAL *zeros, const struct FN(zlg_end) * end) {
  for (int64_t k = 0; k < panels; k++) {
    REAL *lines[LANES];
    const int there = FN(find_lines)(t, n, lead, size, at + k * LANES, zeros, lines);
    FN(zlg_transpose_out)(from + k * size * LANES, LANES, size, lines, there, end);
  }
}

/* What a group works on: lines of x, of what comes out of it or goes back into it, and of dx. */
struct FN(lines) {
  const struct group *group;
  const struct step *steps;
  const REAL *factors, *turned;
  int64_t n;
  REAL *room, *zeros;
};

/* x through the first `steps` of the group's, in panels: v[0] is there, v[1], … come behind it. */
static REAL *FN(group_forward)(const struct FN(lines) * t, int64_t panels, int steps, REAL **v) {
  int64_t size = t->group->in;
  for (int s = 0; s < steps; s++) {
    const struct step *step = &t->steps[s];
    const int64_t lead = size / step->p / step->trail;
    v[s + 1] = v[s] + t->group->panels * size * LANES;
    FN(contract_lanes)(v[s], t->factors + step->at, v[s + 1], panels * lead, step->p, step->q, step->trail);
    size = size / step->p * step->q;
  }
  return v[steps];
}

/* All lines of x through the group, to `to`. */
static void FN(group_through)(const struct FN(lines) * t, const struct FN(tensors) * x, const struct FN(tensors) * to) {
  static const struct FN(zlg_end) plain = {ZLG_STORE, 1, 0};
  const struct group *g = t->group;
  REAL *v[FACTORS + 1] = {t->room};
  for (int64_t at = 0; at < t->n * g->lead; at += g->panels * LANES) {
    const int64_t panels = FN(lines_in)(x, t->n, g->lead, g->in, at, g->panels, t->zeros, v[0]);
    const REAL *out = FN(group_forward)(t, panels, g->count, v);
    FN(lines_out)(out, panels, to, t->n, g->lead, g->out, at, t->zeros, &plain);
  }
}

/* The group's factors' gradients, and dx where it is wanted: lines of x and of g. */
static void FN(group_back)(const struct FN(lines) * t, const struct FN(tensors) * x, const struct FN(tensors) * g,
                           const struct FN(tensors) * dx, const struct FN(zlg_end) * end, double *acc) {
  const struct group *group = t->group;
  REAL *v[FACTORS + 1] = {t->room};
  const int64_t wide = group->panels * group->widest * LANES;
  for (int64_t at = 0; at < t->n * group->lead; at += group->panels * LANES) {
    const int64_t panels = FN(lines_in)(x, t->n, group->lead, group->in, at, group->panels, t->zeros, v[0]);
    FN(group_forward)(t, panels, group->count - 1, v);
    REAL *back = t->room + (group->tensors - 2 * group->widest) * group->panels * LANES, *other = back + wide;
    FN(lines_in)(g, t->n, group->lead, group->out, at, group->panels, t->zeros, back);
    int64_t size = group->out;
    for (int s = group->count - 1; s >= 0; s--) {
      const struct step *step = &t->steps[s];
      const int64_t lead = size / step->q / step->trail;
      const struct FN(pair) pair = {.x = v[s],
                                    .g = back,
                                    .n = 1,
                                    .lead = panels * lead,
                                    .p = step->p,
                                    .q = step->q,
                                    .trail = step->trail * LANES,
                                    .acc = acc + step->at};
      FN(outer_by_trail)(&pair);
      if (s == 0 && !dx) break;
      FN(contract_lanes)(back, t->turned + step->at, other, panels * lead, step->q, step->p, step->trail);
      REAL *kept = back;
      back = other, other = kept;
      size = size / step->q * step->p;
    }
    if (dx) FN(lines_out)(back, panels, dx, t->n, group->lead, group->in, at, t->zeros, end);
  }
}

/* ---- all of it -------------------------------------------------------------------------------------------------- */

static void FN(turn_over)(const REAL *f, int64_t p, int64_t q, REAL *to) {
  for (int64_t i = 0; i < p; i++)
    for (int64_t j = 0; j < q; j++) to[j * p + i] = f[i * q + j];
}

/* The caller's block as rows: as it lies, or turned into `to`. */
static struct FN(tensors)
    FN(as_rows)(const void *block, int64_t ld, zlg_order order, int64_t first, int64_t n, int64_t size, REAL *to) {
  static const struct FN(zlg_end) plain = {ZLG_STORE, 1, 0};
  const REAL *from = (const REAL *)block + (order == ZLG_ROW_MAJOR ? first * ld : first);
  if (order == ZLG_ROW_MAJOR) return (struct FN(tensors)){from, ld};
  FN(zlg_convert)(size, n, from, ld, 1, to, 1, size, &plain);
  return (struct FN(tensors)){to, size};
}

static void FN(run)(const struct zlg_kron_gradients_args *args, const struct zlg_kron_gradients_operands *at,
                    void *scratch) {
  static const struct FN(zlg_end) plain = {ZLG_STORE, 1, 0};
  struct step steps[FACTORS];
  int64_t sizes[FACTORS + 1], elements = 0;
  const int64_t most = sizes_of(args, sizes);
  const int count = args->count;
  steps_of(args, steps);
  const struct layout layout = layout_of(args, steps, sizes, most);
  const REAL *factors = at->factors;
  REAL *turned = scratch, *room = turned + layout.factors, *tensor[FACTORS], *g_room[2], *panels[3];
  for (int s = 0; s < count; s++) tensor[s] = room, room += layout.tensor[s];
  for (int k = 0; k < 2; k++) g_room[k] = room, room += layout.widest;
  for (int k = 0; k < 3; k++) panels[k] = room, room += layout.panel;
  REAL *lines = room, *zeros = room + layout.lines;
  for (int s = 0; s < count; s++) {
    FN(turn_over)(factors + steps[s].at, steps[s].p, steps[s].q, turned + steps[s].at);
    elements += steps[s].p * steps[s].q;
  }
  for (int64_t e = 0; e < layout.group.widest; e++) zeros[e] = 0;
  if (args->first)
    for (int64_t e = 0; e < elements; e++) at->acc[e] = 0;
  const struct FN(zlg_end) end = {args->beta != 0    ? ZLG_ADD
                                  : args->alpha != 1 ? ZLG_SCALE
                                                     : ZLG_STORE,
                                  (REAL)args->alpha, (REAL)args->beta};
  const int group = layout.group.count;
  for (int64_t first = 0, n; first < args->vectors; first += n) {
    n = smaller(layout.vectors, args->vectors - first);
    struct FN(tensors) v[FACTORS + 1];
    const struct FN(lines) through = {&layout.group, steps, factors, turned, n, lines, zeros};
    v[0] = FN(as_rows)(at->x, at->ldx, args->x_order, first, n, sizes[0], tensor[0]);
    struct FN(tensors) g = FN(as_rows)(at->dy, at->lddy, args->dy_order, first, n, sizes[count], g_room[count & 1]);
    if (group > 0 && group < count) {
      v[group] = (struct FN(tensors)){tensor[group], sizes[group]};
      FN(group_through)(&through, &v[0], &v[group]);
    }
    for (int s = group; s + 1 < count; s++) {
      const struct step *step = &steps[s];
      v[s + 1] = (struct FN(tensors)){tensor[s + 1], sizes[s + 1]};
      FN(contract)
      (v[s].data, v[s].apart, factors + step->at, tensor[s + 1], sizes[s + 1], n, step->lead, step->p, step->q,
       step->trail, &plain, panels);
    }
    const bool at_once = args->dx_order == ZLG_ROW_MAJOR;
    struct FN(tensors) dx = {at_once ? (REAL *)at->dx + first * at->lddx : g_room[0], at_once ? at->lddx : sizes[0]};
    const struct FN(zlg_end) *dx_end = at_once ? &end : &plain;
    for (int s = count - 1; s >= group; s--) {
      const struct step *step = &steps[s];
      const struct FN(pair) pair = {.x = v[s].data,
                                    .g = g.data,
                                    .x_apart = v[s].apart,
                                    .g_apart = g.apart,
                                    .n = n,
                                    .lead = step->lead,
                                    .p = step->p,
                                    .q = step->q,
                                    .trail = step->trail,
                                    .acc = at->acc + step->at};
      if (step->trail == 1 && 4 * step->q >= LANES)
        FN(outer_by_columns)(&pair);
      else
        FN(outer_by_trail)(&pair);
      if (s == 0 && !args->wants_dx) break;
      const struct FN(tensors) to = s == 0 ? dx : (struct FN(tensors)){g_room[s & 1], sizes[s]};
      FN(contract)
      (g.data, g.apart, turned + step->at, (REAL *)(uintptr_t)to.data, to.apart, n, step->lead, step->q, step->p,
       step->trail, s == 0 ? dx_end : &plain, panels);
      g = to;
    }
    if (group > 0) {
      if (group % 2 == 0) dx.data = at_once ? dx.data : g_room[1]; /* not where g lies */
      FN(group_back)(&through, &v[0], &g, args->wants_dx ? &dx : NULL, dx_end, at->acc);
    }
    if (args->wants_dx && !at_once)
      FN(zlg_convert)(sizes[0], n, dx.data, 1, sizes[0], (REAL *)at->dx + first, at->lddx, 1, &end);
  }
}

#undef OUTER
#undef OUTERS
#undef ENTRY
#undef COLUMNS
#undef COLUMNS_ENTRY
#endif
