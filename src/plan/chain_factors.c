/* The factors of a chain: which of them a task has to apply, in which order, and how they get into its buffer. */
#include <string.h>

#include "src/core/error.h"
#include "src/core/memory.h"
#include "src/plan/chain.h"

/* Elements that factor i takes from, and gives. */
struct sides {
  int64_t p, q;
};

static bool is_transposed(const struct zlg_chain *chain, int64_t i) {
  return (chain->ops[i] == ZLG_TRANS) != chain->transposed;
}

static struct sides sides_of(const struct zlg_chain *chain, int64_t i) {
  const zlg_matrix *factor = chain->factors[i];
  return is_transposed(chain, i) ? (struct sides){factor->rows, factor->columns}
                                 : (struct sides){factor->columns, factor->rows};
}

static bool only_scales(struct sides s) {
  return s.p == 1 && s.q == 1;
}

/* ---- which ------------------------------------------------------------------------------------------------------ */

/* Links while there may be more of them than a task takes. */
struct draft {
  int64_t begin;
  struct sides sides;
};

static int64_t draft_links(const struct zlg_chain *chain, struct draft *draft) {
  int64_t count = 0;
  for (int64_t i = 0; i < chain->count; i++) {
    const struct sides s = sides_of(chain, i);
    if (!only_scales(s)) draft[count++] = (struct draft){i, s};
  }
  return count;
}

/* The two neighbours whose product is smallest become one. */
static void merge_smallest(struct draft *draft, int64_t count) {
  int64_t best = 0;
  double least = 0;
  for (int64_t i = 0; i + 1 < count; i++) {
    const struct sides a = draft[i].sides, b = draft[i + 1].sides;
    const double size = (double)a.p * (double)b.p * (double)a.q * (double)b.q;
    if (i == 0 || size < least) best = i, least = size;
  }
  draft[best].sides.p *= draft[best + 1].sides.p;
  draft[best].sides.q *= draft[best + 1].sides.q;
  memmove(draft + best + 1, draft + best + 2, (size_t)(count - best - 2) * sizeof *draft);
}

/* Empty products have no elements on one side at least; the other does not matter, and may be too large to say. */
static bool is_empty(const struct zlg_chain *chain, struct zlg_links *links) {
  for (int64_t i = 0; i < chain->count; i++) {
    const struct sides s = sides_of(chain, i);
    if (s.p == 0) links->k = 0;
    if (s.q == 0) links->l = 0;
  }
  return links->k == 0 || links->l == 0;
}

static void set_links(const struct zlg_chain *chain, const struct draft *draft, int64_t count,
                      struct zlg_links *links) {
  for (int64_t i = 0; i < count; i++) {
    links->p[i] = (int32_t)draft[i].sides.p, links->q[i] = (int32_t)draft[i].sides.q;
    links->begin[i] = draft[i].begin;
  }
  links->count = (int)count;
  if (count == 0) links->count = 1, links->p[0] = links->q[0] = 1, links->begin[0] = 0;
  links->begin[links->count] = chain->count;
  for (int i = 0; i < links->count; i++) {
    links->k *= links->p[i], links->l *= links->q[i];
    links->elements += (int64_t)links->p[i] * links->q[i];
  }
}

int zlg_chain_link(const struct zlg_chain *chain, int most, struct zlg_links *links) {
  links->count = 0;
  links->k = links->l = 1;
  links->elements = 0;
  if (is_empty(chain, links)) return ZLG_OK;
  struct draft few[ZLG_KRON_FACTORS], *draft = few;
  if (chain->count > ZLG_KRON_FACTORS) {
    draft = zlg_malloc((size_t)chain->count * sizeof *draft);
    if (!draft)
      return zlg_fail(chain->context, ZLG_ENOMEM, "no memory for a list of %lld factors", (long long)chain->count);
  }
  int64_t count = draft_links(chain, draft);
  for (; count > most; count--) merge_smallest(draft, count);
  set_links(chain, draft, count, links);
  if (draft != few) zlg_free(draft);
  return ZLG_OK;
}

/* ---- reading ---------------------------------------------------------------------------------------------------- */

/* Factor i as p x q, row-major: the transpose of op_i(F_i), since a product with vectors on the right takes columns. */
static int read_factor(const struct zlg_chain *chain, int64_t i, void *to) {
  const zlg_matrix *factor = chain->factors[i];
  return zlg_matrix_read(factor, 0, factor->rows, 0, factor->columns,
                         is_transposed(chain, i) ? ZLG_ROW_MAJOR : ZLG_COLUMN_MAJOR, sides_of(chain, i).q, to);
}

static double first_element(zlg_type type, const void *data) {
  return type == ZLG_F32 ? *(const float *)data : *(const double *)data;
}

/* product = a x b, row-major. */
#define DEFINE_MULTIPLY(name, real)                                                                                    \
  static void name(const real *a, struct sides as, const real *b, struct sides bs, real *product) {                    \
    for (int64_t i = 0; i < as.p; i++)                                                                                 \
      for (int64_t k = 0; k < bs.p; k++)                                                                               \
        for (int64_t j = 0; j < as.q; j++)                                                                             \
          for (int64_t l = 0; l < bs.q; l++) *product++ = a[i * as.q + j] * b[k * bs.q + l];                           \
  }
DEFINE_MULTIPLY(multiply_f32, float)
DEFINE_MULTIPLY(multiply_f64, double)

/* Several factors as one: each is read behind what there is and multiplied on, between two buffers of the whole. */
static int read_product(const struct zlg_chain *chain, int64_t begin, int64_t end, int64_t elements, void *to,
                        double *scale) {
  const size_t size = zlg_type_size(chain->type);
  char *work = zlg_malloc(2 * (size_t)elements * size), *product = work, *factor = work + (size_t)elements * size;
  if (!work) return zlg_fail(chain->context, ZLG_ENOMEM, "no memory for a product of small factors");
  struct sides so_far = {0, 0};
  int status = ZLG_OK;
  for (int64_t i = begin; i < end && status == ZLG_OK; i++) {
    const struct sides s = sides_of(chain, i);
    status = read_factor(chain, i, only_scales(s) || so_far.p > 0 ? factor : product);
    if (status != ZLG_OK) break;
    if (only_scales(s)) {
      *scale *= first_element(chain->type, factor);
    } else if (so_far.p == 0) {
      so_far = s;
    } else {
      if (chain->type == ZLG_F32)
        multiply_f32((const float *)product, so_far, (const float *)factor, s, to);
      else
        multiply_f64((const double *)product, so_far, (const double *)factor, s, to);
      so_far = (struct sides){so_far.p * s.p, so_far.q * s.q};
      memcpy(product, to, (size_t)(so_far.p * so_far.q) * size);
    }
  }
  zlg_free(work);
  return status;
}

static int64_t doers(const struct zlg_chain *chain, int64_t begin, int64_t end) {
  int64_t count = 0;
  for (int64_t i = begin; i < end; i++) count += !only_scales(sides_of(chain, i));
  return count;
}

int zlg_chain_read(const struct zlg_chain *chain, const struct zlg_links *links, void *packed, double *scale) {
  const size_t size = zlg_type_size(chain->type);
  char *to = packed;
  double unit[1];
  *scale = 1;
  if (chain->type == ZLG_F32)
    *(float *)packed = 1;
  else
    *(double *)packed = 1; /* what a chain without links is */
  int status = ZLG_OK;
  for (int64_t i = 0; i < links->begin[0] && status == ZLG_OK; i++) {
    status = read_factor(chain, i, unit);
    *scale *= first_element(chain->type, unit);
  }
  for (int link = 0; link < links->count && status == ZLG_OK; link++) {
    const int64_t begin = links->begin[link], end = links->begin[link + 1];
    const int64_t elements = (int64_t)links->p[link] * links->q[link];
    if (doers(chain, begin, end) > 1) {
      status = read_product(chain, begin, end, elements, to, scale);
    } else {
      for (int64_t i = begin; i < end && status == ZLG_OK; i++) {
        const bool scales = only_scales(sides_of(chain, i));
        status = read_factor(chain, i, scales ? unit : (void *)to);
        if (scales) *scale *= first_element(chain->type, unit);
      }
    }
    to += (size_t)elements * size;
  }
  return status;
}

/* ---- in which order --------------------------------------------------------------------------------------------- */

void zlg_chain_turn(struct zlg_kron_factor_args *args) {
  double gain[ZLG_KRON_FACTORS];
  for (int i = 0; i < args->count; i++) gain[i] = 1.0 / args->q[i] - 1.0 / args->p[i];
  for (int i = 0; i < args->count; i++) { /* insertion, the last factor first: stable */
    const int factor = args->count - 1 - i;
    int at = i;
    for (; at > 0 && gain[args->turn[at - 1]] < gain[factor]; at--) args->turn[at] = args->turn[at - 1];
    args->turn[at] = (int8_t)factor;
  }
}
