/* Instruction sets of the CPU kernels. Every cpu.c is compiled once per set and reached through ZLG_CPU(). No StarPU
 * here: the kernel tests and the benchmark call kernels with plain pointers. */
#ifndef ZLG_COMMON_ISA_H
#define ZLG_COMMON_ISA_H

enum zlg_isa { ZLG_ISA_BASELINE = 0, ZLG_ISA_AVX2 = 1, ZLG_ISA_AVX512 = 2 };

/* The best set this processor and this build have; the environment's ZLG_ISA=baseline|avx2|avx512 lowers it (never
 * raises). */
enum zlg_isa zlg_isa_detect(void);
/* The set in use, detected at the first call; zlg_isa_force() is for tests and benchmarks (a set that the processor
 * lacks is ignored; returns the one now in use). */
enum zlg_isa zlg_isa_current(void);
enum zlg_isa zlg_isa_force(enum zlg_isa isa);
const char *zlg_isa_name(enum zlg_isa isa);

/* Inside cpu.c: the name of the function for the set being compiled, ZLG_ISA_FN(zlg_x_cpu) = zlg_x_cpu_avx2. The build
 * defines ZLG_ISA_SUFFIX as baseline, avx2 or avx512. */
#define ZLG_ISA_PASTE_(a, b) a##_##b
#define ZLG_ISA_PASTE(a, b) ZLG_ISA_PASTE_(a, b)
#ifdef ZLG_ISA_SUFFIX
#define ZLG_ISA_FN(name) ZLG_ISA_PASTE(name, ZLG_ISA_SUFFIX)
#endif

/* In args.h: declares the implementations; at the call: ZLG_CPU(zlg_x_cpu)(args, …). */
#if defined(__x86_64__)
#define ZLG_CPU_DECLARE(name, fn_type) extern fn_type name##_baseline, name##_avx2, name##_avx512
#define ZLG_CPU(name)                                                                                                  \
  (zlg_isa_current() == ZLG_ISA_AVX512 ? name##_avx512                                                                 \
   : zlg_isa_current() == ZLG_ISA_AVX2 ? name##_avx2                                                                   \
                                       : name##_baseline)
#else
#define ZLG_CPU_DECLARE(name, fn_type) extern fn_type name##_baseline
#define ZLG_CPU(name) (name##_baseline)
#endif

#endif
