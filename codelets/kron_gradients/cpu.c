/* Gradients of Kronecker factors on the CPU. As many vectors as a register has lanes are taken at once and stored
 * element by element, so that every contraction, however small its factor, is over whole registers: y[l, j, t] += F[i,
 * j] x[l, i, t] with t over trailing elements and lanes. Few vectors are taken one by one.
 *
 * Count, per vector and step of lead x p x q x trail: one multiply-add forward, one backward, one for dF each; two
 * registers of x and eight broadcasts for sixteen of the first two kinds, eight registers for sixteen of the third. */
#include "codelets/common/simd.h"
#include "codelets/kron_gradients/args.h"

#ifndef REAL /* this file includes itself, once per element type */

#include <stdbool.h>

#define FACTORS ZLG_KRON_GRADIENTS_FACTORS
#define CHUNK 256 /* products that are added in the type of the vectors */

/* Vectors that are taken at once. */
static int64_t lanes_of(const struct zlg_kron_gradients_args *args) {
  const int64_t lanes = args->type == ZLG_F32 ? ZLG_L32 : ZLG_L64;
  return 2 * args->vectors > lanes ? lanes : 1;
}

/* Elements of a vector before each step and after the last; returns the most. */
static int64_t sizes_of(const struct zlg_kron_gradients_args *args, int64_t *sizes) {
  int64_t most = 1;
  sizes[0] = 1;
  for (int i = 0; i < args->count; i++) sizes[0] *= args->p[i];
  for (int s = 0; s < args->count; s++) sizes[s + 1] = sizes[s] / args->p[args->turn[s]] * args->q[args->turn[s]];
  for (int s = 0; s <= args->count; s++) most = sizes[s] > most ? sizes[s] : most;
  return most;
}

static int64_t factor_elements(const struct zlg_kron_gradients_args *args) {
  int64_t elements = 0;
  for (int i = 0; i < args->count; i++) elements += (int64_t)args->p[i] * args->q[i];
  return elements;
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

#define PAD(elements) (((elements) + 15) / 16 * 16)

size_t ZLG_ISA_FN(zlg_kron_gradients_scratch)(const struct zlg_kron_gradients_args *args) {
  int64_t sizes[FACTORS + 1], lanes = lanes_of(args), all = PAD(factor_elements(args));
  const int64_t most = sizes_of(args, sizes);
  for (int s = 0; s < args->count; s++) all += PAD(sizes[s] * lanes);
  return (size_t)(all + 2 * PAD(most * lanes)) * (args->type == ZLG_F32 ? sizeof(float) : sizeof(double));
}

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
#define FN(name) PASTE(PASTE(name, _), BITS)
#define VECTOR PASTE(zlg_v, BITS)
#define INDEX PASTE(zlg_i, BITS)
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

ZLG_INLINE VECTOR FN(load)(const REAL *from) {
  VECTOR v;
  memcpy(&v, from, sizeof v);
  return v;
}
ZLG_INLINE void FN(store)(REAL *to, VECTOR v) {
  memcpy(to, &v, sizeof v);
}

/* ---- between the caller's blocks and lanes ---------------------------------------------------------------------- */

/* LANES x LANES elements transposed in registers, by exchanging ever smaller halves. */
ZLG_INLINE void FN(transpose)(VECTOR *rows) {
  INDEX lane;
  for (int c = 0; c < LANES; c++) lane[c] = c;
#pragma GCC unroll 4
  for (int half = LANES / 2; half > 0; half /= 2) {
    const INDEX upper = (lane & half) != 0;
    const INDEX low = lane + (upper & (LANES - half)), high = lane + (~upper & half) + (upper & LANES);
#pragma GCC unroll 16
    for (int i = 0; i < LANES; i++)
      if (!(i & half)) {
        const VECTOR a = rows[i], b = rows[i + half];
        rows[i] = __builtin_shuffle(a, b, low);
        rows[i + half] = __builtin_shuffle(a, b, high);
      }
  }
}

/* `used` vectors of `size` elements into lanes: to[k * lanes + v]; lanes without a vector get zeros. */
static void FN(gather)(const REAL *x, int64_t ld, zlg_order order, int64_t size, int64_t used, int64_t lanes,
                       REAL *to) {
  int64_t k = 0;
  if (order == ZLG_ROW_MAJOR && used == LANES && lanes == LANES)
    for (; k + LANES <= size; k += LANES) {
      VECTOR rows[LANES];
      for (int v = 0; v < LANES; v++) rows[v] = FN(load)(x + v * ld + k);
      FN(transpose)(rows);
      for (int v = 0; v < LANES; v++) FN(store)(to + (k + v) * lanes, rows[v]);
    }
  for (; k < size; k++) {
    for (int64_t v = 0; v < used; v++) to[k * lanes + v] = order == ZLG_ROW_MAJOR ? x[v * ld + k] : x[k * ld + v];
    for (int64_t v = used; v < lanes; v++) to[k * lanes + v] = 0;
  }
}

ZLG_INLINE void FN(put)(REAL *to, REAL value, REAL beta) {
  *to = beta == 0 ? value : value + beta * *to;
}

/* Back: x = alpha from + beta x. */
static void FN(scatter)(const REAL *from, int64_t size, int64_t used, int64_t lanes, REAL alpha, REAL beta, REAL *x,
                        int64_t ld, zlg_order order) {
  int64_t k = 0;
  if (order == ZLG_ROW_MAJOR && used == LANES && lanes == LANES)
    for (; k + LANES <= size; k += LANES) {
      VECTOR rows[LANES];
      for (int v = 0; v < LANES; v++) rows[v] = alpha * FN(load)(from + (k + v) * lanes);
      FN(transpose)(rows);
      for (int v = 0; v < LANES; v++) {
        REAL *to = x + v * ld + k;
        FN(store)(to, beta == 0 ? rows[v] : rows[v] + beta * FN(load)(to));
      }
    }
  for (; k < size; k++)
    for (int64_t v = 0; v < used; v++)
      FN(put)(order == ZLG_ROW_MAJOR ? x + v * ld + k : x + k * ld + v, alpha * from[k * lanes + v], beta);
}

/* ---- one contraction -------------------------------------------------------------------------------------------- */

/* y[j, t] for J values of j and T registers of t: x is p x trail, f row-major with q columns, both at the first j and
 * t. */
ZLG_INLINE void FN(contract_block)(const REAL *x, const REAL *f, REAL *y, int64_t p, int64_t q, int64_t trail, int J,
                                   int T) {
  VECTOR sum[8][2];
#pragma GCC unroll 8
  for (int j = 0; j < J; j++)
#pragma GCC unroll 2
    for (int t = 0; t < T; t++) sum[j][t] = (VECTOR){0};
  for (int64_t i = 0; i < p; i++) {
    VECTOR v[2];
#pragma GCC unroll 2
    for (int t = 0; t < T; t++) v[t] = FN(load)(x + i * trail + t * LANES);
#pragma GCC unroll 8
    for (int j = 0; j < J; j++)
#pragma GCC unroll 2
      for (int t = 0; t < T; t++) sum[j][t] += f[i * q + j] * v[t];
  }
#pragma GCC unroll 8
  for (int j = 0; j < J; j++)
#pragma GCC unroll 2
    for (int t = 0; t < T; t++) FN(store)(y + j * trail + t * LANES, sum[j][t]);
}

/* All j of T registers. */
ZLG_INLINE void FN(contract_registers)(const REAL *x, const REAL *f, REAL *y, int64_t p, int64_t q, int64_t trail,
                                       int T) {
  int64_t j = 0;
  for (; j + 8 <= q; j += 8) FN(contract_block)(x, f + j, y + j * trail, p, q, trail, 8, T);
  if (j + 4 <= q) FN(contract_block)(x, f + j, y + j * trail, p, q, trail, 4, T), j += 4;
  if (j + 2 <= q) FN(contract_block)(x, f + j, y + j * trail, p, q, trail, 2, T), j += 2;
  if (j < q) FN(contract_block)(x, f + j, y + j * trail, p, q, trail, 1, T);
}

static void FN(contract)(const REAL *x, const REAL *f, REAL *y, int64_t lead, int64_t p, int64_t q, int64_t trail) {
  for (int64_t l = 0; l < lead; l++, x += p * trail, y += q * trail) {
    int64_t t = 0;
    for (; t + 2 * LANES <= trail; t += 2 * LANES) FN(contract_registers)(x + t, f, y + t, p, q, trail, 2);
    if (t + LANES <= trail) FN(contract_registers)(x + t, f, y + t, p, q, trail, 1), t += LANES;
    for (; t < trail; t++)
      for (int64_t j = 0; j < q; j++) {
        REAL sum = 0;
        for (int64_t i = 0; i < p; i++) sum += f[i * q + j] * x[i * trail + t];
        y[j * trail + t] = sum;
      }
  }
}

/* ---- one factor's gradient -------------------------------------------------------------------------------------- */

ZLG_INLINE double FN(total)(VECTOR v) {
  double sum = 0;
#pragma GCC unroll 16
  for (int c = 0; c < LANES; c++) sum += (double)v[c];
  return sum;
}

/* acc[i, j] += sum of x[l, i, t] g[l, j, t] for I x J values of (i, j) over `leads` slices of `registers` registers. */
ZLG_INLINE void FN(outer_block)(const REAL *x, int64_t x_slice, const REAL *g, int64_t g_slice, int64_t leads,
                                int64_t registers, int64_t trail, double *acc, int64_t q, int I, int J) {
  VECTOR sum[4][4];
#pragma GCC unroll 4
  for (int i = 0; i < I; i++)
#pragma GCC unroll 4
    for (int j = 0; j < J; j++) sum[i][j] = (VECTOR){0};
  for (int64_t l = 0; l < leads; l++)
    for (int64_t r = 0; r < registers; r++) {
      const REAL *a = x + l * x_slice + r * LANES, *b = g + l * g_slice + r * LANES;
      VECTOR u[4], v[4];
#pragma GCC unroll 4
      for (int i = 0; i < I; i++) u[i] = FN(load)(a + i * trail);
#pragma GCC unroll 4
      for (int j = 0; j < J; j++) v[j] = FN(load)(b + j * trail);
#pragma GCC unroll 4
      for (int i = 0; i < I; i++)
#pragma GCC unroll 4
        for (int j = 0; j < J; j++) sum[i][j] += u[i] * v[j];
    }
#pragma GCC unroll 4
  for (int i = 0; i < I; i++)
#pragma GCC unroll 4
    for (int j = 0; j < J; j++) acc[i * q + j] += FN(total)(sum[i][j]);
}

#define OUTER(I, J)                                                                                                    \
  FN(outer_block)(x + i * trail, p * trail, g + j * trail, q * trail, leads, registers, trail, acc + i * q + j, q, I, J)

/* Of all (i, j), in blocks of 4 x 4 and less at the ends. */
static void FN(outer_slices)(const REAL *x, const REAL *g, int64_t leads, int64_t registers, int64_t p, int64_t q,
                             int64_t trail, double *acc) {
  int64_t i = 0, j;
  for (; i + 4 <= p; i += 4) {
    for (j = 0; j + 4 <= q; j += 4) OUTER(4, 4);
    for (; j < q; j++) OUTER(4, 1);
  }
  for (; i < p; i++) {
    for (j = 0; j + 4 <= q; j += 4) OUTER(1, 4);
    for (; j < q; j++) OUTER(1, 1);
  }
}

static void FN(outer)(const REAL *x, const REAL *g, int64_t lead, int64_t p, int64_t q, int64_t trail, double *acc) {
  const int64_t whole = trail / LANES;
  const int64_t some = whole > CHUNK ? CHUNK : whole, leads = whole > 0 && whole < CHUNK ? CHUNK / whole : 1;
  for (int64_t l = 0; l < lead && whole > 0; l += leads)
    for (int64_t r = 0; r < whole; r += some) FN(outer_slices)
  (x + l * p * trail + r * LANES, g + l * q * trail + r * LANES, lead - l < leads ? lead - l : leads,
   whole - r < some ? whole - r : some, p, q, trail, acc);
  for (int64_t t = whole * LANES; t < trail; t++)
    for (int64_t l = 0; l < lead; l++)
      for (int64_t i = 0; i < p; i++)
        for (int64_t j = 0; j < q; j++)
          acc[i * q + j] += (double)(x[(l * p + i) * trail + t] * g[(l * q + j) * trail + t]);
}

/* ---- all of it -------------------------------------------------------------------------------------------------- */

static void FN(turn_over)(const REAL *f, int64_t p, int64_t q, REAL *to) {
  for (int64_t i = 0; i < p; i++)
    for (int64_t j = 0; j < q; j++) to[j * p + i] = f[i * q + j];
}

static void FN(run)(const struct zlg_kron_gradients_args *args, const struct zlg_kron_gradients_operands *at,
                    void *scratch) {
  struct step steps[FACTORS];
  int64_t sizes[FACTORS + 1];
  const int64_t lanes = lanes_of(args), elements = factor_elements(args), most = PAD(sizes_of(args, sizes) * lanes);
  const int count = args->count;
  const REAL *factors = at->factors;
  REAL *turned = scratch, *v[FACTORS], *next = turned + PAD(elements);
  for (int s = 0; s < count; s++) v[s] = next, next += PAD(sizes[s] * lanes);
  steps_of(args, steps);
  for (int s = 0; s < count; s++) FN(turn_over)(factors + steps[s].at, steps[s].p, steps[s].q, turned + steps[s].at);
  if (args->first)
    for (int64_t e = 0; e < elements; e++) at->acc[e] = 0;
  for (int64_t vector = 0; vector < args->vectors; vector += lanes) {
    const int64_t used = args->vectors - vector < lanes ? args->vectors - vector : lanes;
    REAL *g = next, *other = next + most;
    FN(gather)
    ((const REAL *)at->x + vector * (args->x_order == ZLG_ROW_MAJOR ? at->ldx : 1), at->ldx, args->x_order, sizes[0],
     used, lanes, v[0]);
    FN(gather)
    ((const REAL *)at->dy + vector * (args->dy_order == ZLG_ROW_MAJOR ? at->lddy : 1), at->lddy, args->dy_order,
     sizes[count], used, lanes, g);
    for (int s = 0; s + 1 < count; s++) FN(contract)
    (v[s], factors + steps[s].at, v[s + 1], steps[s].lead, steps[s].p, steps[s].q, steps[s].trail * lanes);
    for (int s = count - 1; s >= 0; s--) {
      const struct step *step = &steps[s];
      FN(outer)(v[s], g, step->lead, step->p, step->q, step->trail * lanes, at->acc + step->at);
      if (s == 0 && !args->wants_dx) break;
      FN(contract)(g, turned + step->at, other, step->lead, step->q, step->p, step->trail * lanes);
      REAL *kept = g;
      g = other, other = kept;
    }
    if (args->wants_dx) FN(scatter)
    (g, sizes[0], used, lanes, (REAL)args->alpha, (REAL)args->beta,
     (REAL *)at->dx + vector * (args->dx_order == ZLG_ROW_MAJOR ? at->lddx : 1), at->lddx, args->dx_order);
  }
}

#undef OUTER
#endif
