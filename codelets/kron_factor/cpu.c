/* Kronecker factors on the CPU: which factors are applied together, in which order, through how much scratch; the
 * arithmetic is codelets/common/contract.h's.
 *
 * A vector goes through all its factors before the next one is read. Neighbouring factors are applied as a group to
 * panels that stay in the first cache. A vector (of column-major blocks: a few side by side) that does not stay in the
 * second cache is cut along its leading indices: the trailing factors are applied to one piece after the other, then
 * the leading ones, as one group, to the pieces side by side; between the two it passes through memory once. */
#include <stdbool.h>

#include "codelets/common/simd.h"
#include "codelets/kron_factor/args.h"

#define ZLG_BITS 32
#include "codelets/common/contract.h"
#define ZLG_BITS 64
#include "codelets/common/contract.h"

#define VECTORS_BYTES (128 << 10)                /* of short vectors that are worked on together */
#define TENSOR_BYTES (8 << 20)                   /* of columns that go through the factors side by side */
#define LONG_LINES (512 / ZLG_VECTOR_BYTES)      /* vectors of the processor, of columns that no cache holds */
#define PIECE_BYTES (450 << 10)                  /* of the largest vector that is not cut */
#define STREAM_BYTES (4 << 20)                   /* of the least Y that is written past the caches */
#define TURNED_MOST 64                           /* columns of a factor that turns vectors into rows */
#define PREFIX_MOST 1024                         /* elements of a lane in the prefix's panels */
#define GROUP_MOST (128 * 64 / ZLG_VECTOR_BYTES) /* elements of a lane in the others'; twice that for two factors */
#define LONG_TRAIL 32                            /* vectors of the processor, of which partial ones do not show */
#define PANEL_VECTORS (ZLG_VECTOR_BYTES == 64 ? 4 : 2)
/* From the last to the first, neighbours form groups and nothing is strided: worth more multiplications than the least.
 */
#define BACKWARDS_MOST 1.5
#define SPARE 192 /* bytes between two parts of the scratch, so that they do not fall on each other in a cache */

static int64_t larger(int64_t a, int64_t b) {
  return a > b ? a : b;
}
/* zlg_type_size is the library's; kernels stand alone. */
static int64_t element_bytes(zlg_type type) {
  return type == ZLG_F32 ? 4 : 8;
}
static size_t padded(int64_t bytes) {
  return ((size_t)bytes + 63) / 64 * 64 + SPARE;
}

/* ---- the order of the work --------------------------------------------------------------------------------------- */

/* The factor of turn i: as told, or from the last to the first. */
static int factor_at(const struct zlg_kron_factor_args *args, bool backwards, int i) {
  return backwards ? args->count - 1 - i : args->turn[i];
}

/* Square factors cost the same in every order. */
static bool all_square(const struct zlg_kron_factor_args *args) {
  for (int i = 0; i < args->count; i++)
    if (args->p[i] != args->q[i]) return false;
  return true;
}

static double multiplications(const struct zlg_kron_factor_args *args, bool backwards) {
  double size = 1, sum = 0;
  for (int i = 0; i < args->count; i++) size *= args->p[i];
  for (int i = 0; i < args->count; i++) {
    const int f = factor_at(args, backwards, i);
    size = size / args->p[f] * args->q[f];
    sum += size * args->p[f];
  }
  return sum;
}

/* Factors lo to hi, in the order of `members`. */
struct span {
  int lo, hi, count;
  int64_t in, out, widest;
  int members[ZLG_KRON_FACTORS];
};

static struct span span_of(const struct zlg_kron_factor_args *args, int f) {
  return (struct span){.lo = f,
                       .hi = f,
                       .count = 1,
                       .in = args->p[f],
                       .out = args->q[f],
                       .widest = larger(args->p[f], args->q[f]),
                       .members = {f}};
}

/* Takes the next factor in, where it is adjacent and a lane keeps to `most` elements. */
static bool take_in(const struct zlg_kron_factor_args *args, struct span *span, int f, int64_t most) {
  const int64_t out = span->out * args->q[f], widest = larger(span->widest * args->p[f], out);
  if ((f != span->lo - 1 && f != span->hi + 1) || widest > most) return false;
  if (f < span->lo)
    span->lo = f;
  else
    span->hi = f;
  span->in *= args->p[f];
  span->out = out;
  span->widest = widest;
  span->members[span->count++] = f;
  return true;
}

/* extent: of every index before the group is applied, from `first` on; after it on return. */
static struct zlg_group group_of(const struct zlg_kron_factor_args *args, const struct span *span, int first,
                                 int64_t *extent, int64_t panel_bytes, struct zlg_group_step *steps) {
  const int64_t vectors = panel_bytes / (span->widest * ZLG_VECTOR_BYTES),
                least = panel_bytes > ZLG_PANEL_BYTES ? 1 : 2;
  struct zlg_group group = {.step = steps,
                            .steps = span->count,
                            .vectors = (int)(vectors > PANEL_VECTORS ? PANEL_VECTORS : larger(vectors, least)),
                            .in = span->in,
                            .out = span->out,
                            .widest = span->widest,
                            .lead = 1,
                            .trail = 1};
  for (int e = first; e < span->lo; e++) group.lead *= extent[e];
  for (int e = span->hi + 1; e < args->count; e++) group.trail *= extent[e];
  for (int k = 0; k < span->count; k++) {
    const int f = span->members[k];
    steps[k] = (struct zlg_group_step){.factor = f, .p = args->p[f], .q = args->q[f], .lead = 1, .trail = 1};
    for (int e = span->lo; e < f; e++) steps[k].lead *= extent[e];
    for (int e = f + 1; e <= span->hi; e++) steps[k].trail *= extent[e];
    extent[f] = args->q[f];
  }
  return group;
}

/* The groups of the factors from `first` on; returns the step after theirs. */
static struct zlg_group_step *make_groups(const struct zlg_kron_factor_args *args, bool backwards, int first,
                                          int64_t most, int64_t *extent, struct zlg_chain *chain) {
  const int64_t lanes = ZLG_VECTOR_BYTES / element_bytes(args->type);
  const bool rows = (args->x_order == ZLG_ROW_MAJOR || args->y_order == ZLG_ROW_MAJOR) && !chain->turned;
  struct zlg_group_step *steps = chain->step;
  int64_t size = 1;
  for (int e = first; e < args->count; e++) size *= extent[e];
  chain->piece_in = chain->piece_widest = size;
  for (int i = 0; i < args->count - first;) {
    struct span span = span_of(args, factor_at(args, backwards, i));
    /* A last factor of whole vectors goes over rows as they lie, and takes no other in. */
    const bool alone = rows && i == 0 && span.hi == args->count - 1 && args->q[span.hi] % lanes == 0;
    int64_t trail = 1;
    for (int e = span.hi + 1; e < args->count; e++) trail *= extent[e];
    /* Many short lines that share cache lines are no place for a wide pair. */
    const bool smooth = trail == 1 || trail % lanes == 0 || trail >= LONG_TRAIL * lanes;
    const int64_t pair = most < GROUP_MOST ? most : smooth ? 2 * most : most + most / 4;
    for (i++; i < args->count - first && !alone; i++)
      if (!take_in(args, &span, factor_at(args, backwards, i), span.count == 1 ? pair : most)) break;
    chain->group[chain->groups++] = group_of(args, &span, first, extent, ZLG_PANEL_BYTES, steps);
    steps += span.count;
    size = size / span.in * span.out;
    chain->piece_widest = larger(chain->piece_widest, size);
  }
  chain->piece_out = size;
  return steps;
}

/* How many leading factors to leave to the prefix, so that a piece keeps to PIECE_BYTES; their span. */
static int prefix_of(const struct zlg_kron_factor_args *args, int64_t side_bytes, struct span *span) {
  int64_t in = 1, out = 1;
  for (int i = 0; i < args->count; i++) in *= args->p[i], out *= args->q[i];
  int count = 0;
  while (count < args->count - 1 && larger(in, out) * side_bytes > PIECE_BYTES) {
    if (count == 0)
      *span = span_of(args, 0);
    else if (!take_in(args, span, count, PREFIX_MOST))
      break;
    if (span->widest > PREFIX_MOST) break;
    in /= args->p[count];
    out /= args->q[count];
    count++;
  }
  /* The last index of the prefix first, as everywhere from the last to the first. */
  for (int i = 0; i < count; i++) span->members[i] = count - 1 - i;
  return count;
}

/* Vectors that go through the factors side by side, where a block is column-major on one side at least: as many as lie
 * in a panel's lanes; fewer where that makes more than TENSOR_BYTES of them, but where they leave the caches anyway, as
 * many as make long lines. Of those that are turned into rows as many as one vector's lanes; of row-major blocks that
 * are cut one. */
static int64_t side_by_side(const struct zlg_kron_factor_args *args, bool turned, int64_t in, int64_t out) {
  if ((args->x_order == ZLG_ROW_MAJOR || args->y_order == ZLG_ROW_MAJOR) && !turned) return 1;
  const int64_t lanes = ZLG_VECTOR_BYTES / element_bytes(args->type);
  const int64_t line = larger(in, out) * ZLG_VECTOR_BYTES, fit = TENSOR_BYTES / line;
  int64_t count = fit >= PANEL_VECTORS ? PANEL_VECTORS : fit >= 2 ? fit : LONG_LINES;
  if (turned && args->y_order == ZLG_ROW_MAJOR) count = 1;
  count *= lanes;
  return count < args->vectors ? count : args->vectors;
}

/* Whether the first group turns vectors. It must be the last factors', and a few vectors would leave lanes empty. Into
 * rows: large factors are faster over rows as they lie, and then a pass over what they take to turn it does not show.
 * Into columns: those are written line by line in many places, which is slow unless they go past the caches as whole
 * lines; vectors that shrink are better turned at the end. */
static bool turns(const struct zlg_kron_factor_args *args, const struct zlg_chain *chain, bool backwards) {
  const int last = args->count - 1;
  const int64_t lanes = ZLG_VECTOR_BYTES / element_bytes(args->type);
  if (args->x_order == args->y_order || factor_at(args, backwards, 0) != last || 2 * args->vectors < lanes)
    return false;
  if (args->y_order == ZLG_ROW_MAJOR) return args->q[last] < TURNED_MOST;
  return args->alpha == 1 && args->beta == 0 && args->vectors % lanes == 0 && chain->in <= chain->out;
}

static void make_chain(const struct zlg_kron_factor_args *args, struct zlg_chain *chain) {
  const bool backwards =
      all_square(args) || multiplications(args, true) <= BACKWARDS_MOST * multiplications(args, false);
  const int64_t element = element_bytes(args->type), lanes = ZLG_VECTOR_BYTES / element;
  int64_t extent[ZLG_KRON_FACTORS];
  chain->groups = 0;
  chain->in = chain->out = 1;
  for (int i = 0; i < args->count; i++) {
    extent[i] = args->p[i];
    chain->in *= args->p[i];
    chain->out *= args->q[i];
  }
  struct span span;
  chain->turned = turns(args, chain, backwards);
  const int64_t beside = side_by_side(args, chain->turned, chain->in, chain->out);
  const int cut = backwards ? prefix_of(args, beside * element, &span) : 0;
  /* Few elements: groups so small that all lanes of a panel are in use. */
  const int64_t fill = args->vectors * chain->in / lanes;
  const int64_t most = fill >= GROUP_MOST ? GROUP_MOST : larger(fill, 4);
  struct zlg_group_step *steps = make_groups(args, backwards, cut, most, extent, chain);
  chain->split = cut > 0;
  if (cut > 0) {
    span.count = cut;
    chain->prefix = group_of(args, &span, 0, extent, 4 * ZLG_PANEL_BYTES, steps);
  }
}

/* ---- scratch ----------------------------------------------------------------------------------------------------- */

/* Vectors worked on together, and bytes of each part of the scratch: two pieces, what lies between pieces and prefix, a
 * block whose order changes, three panels. */
struct layout {
  int64_t vectors;
  size_t piece, pieces, turned, panel;
};

static struct layout layout_of(const struct zlg_kron_factor_args *args, const struct zlg_chain *chain) {
  const int64_t element = element_bytes(args->type), lanes = ZLG_VECTOR_BYTES / element;
  const bool converted = args->x_order != args->y_order && !chain->turned;
  int64_t vectors = side_by_side(args, chain->turned, chain->in, chain->out);
  if (vectors == 1 && !chain->split) vectors = larger(1, VECTORS_BYTES / (chain->piece_widest * element));
  if (converted) vectors = vectors < lanes ? lanes : vectors > 4 * lanes ? 4 * lanes : vectors;
  if (vectors > args->vectors) vectors = args->vectors;
  struct layout layout = {.vectors = vectors,
                          .piece = padded(vectors * (chain->piece_widest * element + ZLG_PIECE_PAD(char)))};
  int64_t panel = 2 * ZLG_PANEL_BYTES;
  for (int i = 0; i < chain->groups; i++)
    panel = larger(panel, chain->group[i].widest * chain->group[i].vectors * ZLG_VECTOR_BYTES);
  if (chain->split) {
    panel = larger(panel, chain->prefix.widest * chain->prefix.vectors * ZLG_VECTOR_BYTES);
    layout.pieces = padded(chain->prefix.in * vectors * (chain->piece_out * element + ZLG_PIECE_PAD(char)));
  }
  if (converted) layout.turned = padded(vectors * (larger(chain->in, chain->out) * element + ZLG_PIECE_PAD(char)));
  layout.panel = padded(panel);
  return layout;
}

size_t ZLG_ISA_FN(zlg_kron_factor_scratch)(const struct zlg_kron_factor_args *args) {
  struct zlg_chain chain;
  make_chain(args, &chain);
  const struct layout layout = layout_of(args, &chain);
  return 2 * layout.piece + layout.pieces + layout.turned + 3 * layout.panel;
}

/* Where Y is larger than what a cache would keep for its reader, and consists of whole lines wherever the last factors
 * write: then it need not be read before it is written. */
static bool past_caches(const struct zlg_kron_factor_args *args, const struct zlg_chain *chain,
                        const struct zlg_kron_factor_operands *at) {
  const int64_t element = element_bytes(args->type), lanes = ZLG_VECTOR_BYTES / element;
  const struct zlg_group *last = chain->split ? &chain->prefix : &chain->group[chain->groups - 1];
  const int64_t run = args->y_order == ZLG_ROW_MAJOR ? last->trail : args->vectors;
  return (args->x_order == args->y_order || chain->turned) && args->alpha == 1 && args->beta == 0 &&
         (args->y_bytes ? args->y_bytes : args->vectors * chain->out * element) >= STREAM_BYTES &&
         (uintptr_t)at->y % ZLG_VECTOR_BYTES == 0 && at->ldy % lanes == 0 &&
         (run % lanes == 0 || (run == 1 && last->out % lanes == 0));
}

/* ---- a block ----------------------------------------------------------------------------------------------------- */

/* Blocks of one order go through the chain as they lie; else the first group turns vectors, or where it cannot, each
 * few of them are turned into rows before or after. */
#define BLOCK(bits, real)                                                                                              \
  static void block_##bits(const struct zlg_kron_factor_args *args, const struct zlg_kron_factor_operands *at,         \
                           char *scratch) {                                                                            \
    struct zlg_chain chain;                                                                                            \
    make_chain(args, &chain);                                                                                          \
    const struct layout layout = layout_of(args, &chain);                                                              \
    const real *factors[ZLG_KRON_FACTORS], *factor = at->factors;                                                      \
    for (int i = 0; i < args->count; i++) factors[i] = factor, factor += (int64_t)args->p[i] * args->q[i];             \
    real *panels[3], *tensors[3], *turned;                                                                             \
    for (int i = 0; i < 3; i++) panels[i] = (real *)(void *)(scratch + (size_t)i * layout.panel);                      \
    scratch += 3 * layout.panel;                                                                                       \
    for (int i = 0; i < 3; i++) tensors[i] = (real *)(void *)(scratch + (size_t)i * layout.piece);                     \
    turned = (real *)(void *)(scratch + 2 * layout.piece + layout.pieces);                                             \
    static const struct zlg_end_##bits plain = {ZLG_STORE, 1, 0};                                                      \
    const bool stream = past_caches(args, &chain, at);                                                                 \
    const struct zlg_end_##bits end = {args->beta != 0    ? ZLG_ADD                                                    \
                                       : args->alpha != 1 ? ZLG_SCALE                                                  \
                                       : stream           ? ZLG_STREAM                                                 \
                                                          : ZLG_STORE,                                                           \
                                       (real)args->alpha, (real)args->beta};                                           \
    const bool x_rows = args->x_order == ZLG_ROW_MAJOR, y_rows = args->y_order == ZLG_ROW_MAJOR;                       \
    for (int64_t v = 0, n; v < args->vectors; v += n) {                                                                \
      n = args->vectors - v < layout.vectors ? args->vectors - v : layout.vectors;                                     \
      const real *x = (const real *)at->x + (x_rows ? v * at->ldx : v);                                                \
      real *y = (real *)at->y + (y_rows ? v * at->ldy : v);                                                            \
      if (x_rows == y_rows) {                                                                                          \
        zlg_whole_##bits(&chain, factors, n, x_rows, x, at->ldx, y, at->ldy, &end, tensors, panels);                   \
      } else if (chain.turned) {                                                                                       \
        zlg_turned_##bits(&chain, factors, n, x_rows, x, at->ldx, y, at->ldy, &end, tensors, panels);                  \
      } else if (x_rows) {                                                                                             \
        zlg_whole_##bits(&chain, factors, n, true, x, at->ldx, turned, chain.out + ZLG_PIECE_PAD(real), &plain,        \
                         tensors, panels);                                                                             \
        zlg_convert_##bits(chain.out, n, turned, 1, chain.out + ZLG_PIECE_PAD(real), y, at->ldy, 1, &end);             \
      } else {                                                                                                         \
        zlg_convert_##bits(chain.in, n, x, at->ldx, 1, turned, 1, chain.in + ZLG_PIECE_PAD(real), &plain);             \
        zlg_whole_##bits(&chain, factors, n, true, turned, chain.in + ZLG_PIECE_PAD(real), y, at->ldy, &end, tensors,  \
                         panels);                                                                                      \
      }                                                                                                                \
    }                                                                                                                  \
    if (stream) zlg_stream_end();                                                                                      \
  }
BLOCK(32, float)
BLOCK(64, double)

void ZLG_ISA_FN(zlg_kron_factor_cpu)(const struct zlg_kron_factor_args *args,
                                     const struct zlg_kron_factor_operands *operands, void *scratch) {
  if (args->type == ZLG_F32)
    block_32(args, operands, scratch);
  else
    block_64(args, operands, scratch);
}
