/* Between the files of a chain of Kronecker factors: what is left of its factors, and how it is cut. No StarPU here. */
#ifndef ZLG_PLAN_CHAIN_H
#define ZLG_PLAN_CHAIN_H

#include "codelets/kron_factor/args.h"
#include "src/plan/plan.h"

/* The factors that do something: those of 1 x 1 only scale, and neighbours are multiplied together where there are more
 * than a task takes. Link i is the product of the factors [begin[i], begin[i + 1]) that are not 1 x 1; as a contraction
 * it takes p[i] elements to q[i]. */
struct zlg_links {
  int count; /* 1 or more: a chain without any has one of 1 x 1 */
  int32_t p[ZLG_KRON_FACTORS], q[ZLG_KRON_FACTORS];
  int64_t begin[ZLG_KRON_FACTORS + 1];
  int64_t k, l;     /* elements of a vector of x and of y */
  int64_t elements; /* of all links, packed */
};

/* From the shapes of the factors, `most` links at most; k or l is 0 where the product is empty, and there are no links
 * then. ZLG_ENOMEM. */
int zlg_chain_link(const struct zlg_chain *chain, int most, struct zlg_links *links);
/* Reads the factors into `packed` as the codelet wants them; *scale is the product of the 1 x 1 ones. */
int zlg_chain_read(const struct zlg_chain *chain, const struct zlg_links *links, void *packed, double *scale);

/* The order that costs least: of two neighbours in time, a before b where 1/q_a - 1/p_a is the greater (a contraction
 * of p to q costs S q of S elements and leaves S q / p). Among equals the last factor goes first. */
void zlg_chain_turn(struct zlg_kron_factor_args *args);

/* Links [begin, begin + count) as the arguments of a task, in the order that costs least; storage, vectors and scalars
 * are still to come. */
void zlg_chain_args(const struct zlg_chain *chain, const struct zlg_links *links, int begin, int count,
                    struct zlg_kron_factor_args *args);
/* Nominal seconds of a core for a task: a rate that was measured would change blocks from run to run. */
double zlg_chain_seconds(const struct zlg_kron_factor_args *args);

/* As nominal, of a block in memory that the calling thread does by itself: what it reads is likely in caches. */
double zlg_chain_direct_seconds(const struct zlg_kron_factor_args *args);

/* Some of the links, applied to `lines` vectors in tasks of `block`. One stage: the vectors are the caller's columns.
 * Two: a vector is seen as a grid whose rows the leading links run down and whose columns the trailing ones run along;
 * one stage after the other takes the lines of the grid for its vectors. */
struct zlg_chain_stage {
  struct zlg_kron_factor_args args;
  bool leading;
  int64_t factors; /* elements of the packed factors before those of this stage */
  int64_t lines, block, tasks;
  int64_t k, l; /* elements of one of its vectors, before and after */
};

struct zlg_chain_shape {
  struct zlg_links links;
  int stages; /* 0: nothing but y = beta y */
  struct zlg_chain_stage stage[2];
  int64_t together; /* two stages: columns that pass at once, all of them where they lie interleaved, else one */
  int64_t passes;
  int64_t workspace; /* elements between two stages */
  int64_t window;    /* tasks, and their tiles, alive at once */
  int64_t memory_bytes, tasks;
  double flops, seconds, kind_seconds[4];
};

/* Cuts the chain for so many vectors. chain->x and y may be missing. ZLG_ELIMIT, ZLG_EOVERFLOW, ZLG_ENOMEM. */
int zlg_chain_plan(const struct zlg_chain *chain, int64_t vectors, struct zlg_chain_shape *shape);

#endif
