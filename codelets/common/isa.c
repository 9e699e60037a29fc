/* Which instruction set the CPU kernels use: what the processor has, lowered by ZLG_ISA or by a test. */
#include "codelets/common/isa.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[] = {"baseline", "avx2", "avx512"};
static atomic_int current = -1;

static enum zlg_isa processor_isa(void) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
  bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
  if (avx2 && avx512) return ZLG_ISA_AVX512;
  if (avx2) return ZLG_ISA_AVX2;
#endif
  return ZLG_ISA_BASELINE;
}

enum zlg_isa zlg_isa_detect(void) {
  enum zlg_isa best = processor_isa();
  const char *wanted = getenv("ZLG_ISA");
  for (int i = 0; wanted && i < (int)best; i++)
    if (!strcmp(wanted, names[i])) return (enum zlg_isa)i;
  return best;
}

enum zlg_isa zlg_isa_current(void) {
  int isa = atomic_load_explicit(&current, memory_order_relaxed);
  if (isa < 0) {
    isa = (int)zlg_isa_detect();
    atomic_store(&current, isa); /* an exchange, which helgrind takes for atomic */
  }
  return (enum zlg_isa)isa;
}

enum zlg_isa zlg_isa_force(enum zlg_isa isa) {
  if (isa >= ZLG_ISA_BASELINE && isa <= processor_isa())
    atomic_store_explicit(&current, (int)isa, memory_order_relaxed);
  return zlg_isa_current();
}

const char *zlg_isa_name(enum zlg_isa isa) {
  return isa <= ZLG_ISA_AVX512 ? names[isa] : "unknown";
}
