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

#endif
