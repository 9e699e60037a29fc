/* How a chain is cut, and what it costs. */
#include <math.h>
#include <string.h>

#include "src/core/error.h"
#include "src/plan/chain.h"

int zlg_chain_cost(const struct zlg_chain *chain, int64_t vectors, zlg_cost *cost) {
  struct zlg_links links;
  int status = zlg_chain_link(chain, ZLG_KRON_FACTORS, &links);
  if (status != ZLG_OK) return status;
  *cost = (zlg_cost){.tile_rows = 1, .tile_columns = 1, .bound = "memory"};
  if (links.count == 0 || vectors == 0) return ZLG_OK;
  struct zlg_kron_factor_args args = {.type = chain->type, .count = links.count, .vectors = vectors, .alpha = 1};
  memcpy(args.p, links.p, sizeof args.p);
  memcpy(args.q, links.q, sizeof args.q);
  zlg_chain_turn(&args);
  struct zlg_count count = {0};
  zlg_codelet_kron_factor.count(&args, &count);
  cost->flops = cost->work = count.flops;
  return ZLG_OK;
}
