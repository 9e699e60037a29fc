/* Zellige: structured linear operators applied to vectors and matrices that may be far larger than memory.
 * This header is the whole public interface; it mentions no type of StarPU, CUDA or BLAS and is clean C99 and C++.
 *
 * Five objects: a context (the runtime), matrices (views of memory or of files), operators (immutable), reductions (to
 * come) and requests (one application under way). One verb: Y = alpha op(A) X + beta Y.
 *
 * Every function that can fail returns an int: ZLG_OK (0) or a negative zlg_status; zlg_context_message() then names
 * the argument, what it was and what was expected. Nothing here prints, exits or aborts. */
#ifndef ZELLIGE_H
#define ZELLIGE_H

#include "zellige/context.h"
#include "zellige/kernel.h"
#include "zellige/kron.h"
#include "zellige/machine.h"
#include "zellige/matrix.h"
#include "zellige/operator.h"
#include "zellige/request.h"
#include "zellige/simulation.h"
#include "zellige/status.h"
#include "zellige/types.h"
#include "zellige/version.h"

#endif
