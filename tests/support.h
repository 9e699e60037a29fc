/* What every test program shares: the mode it runs in, its private directory, the list of its cases, random numbers
 * that are the same everywhere, and references in long double with the bounds that go with them. No StarPU here. */
#ifndef ZLG_TESTS_SUPPORT_H
#define ZLG_TESTS_SUPPORT_H

#include <stdbool.h>
#include <stdint.h>

#include <CUnit/CUnit.h>

#include "zellige.h"

/* The workers a test runs on, from ZLG_TEST_MODE (tests/run-test sets it; unset: cpu). */
enum zlg_test_mode {
  ZLG_TEST_CPU,     /* 2 CPU workers */
  ZLG_TEST_OPENCL,  /* 1 CPU worker, 1 OpenCL device (PoCL) */
  ZLG_TEST_OPENCL3, /* 1 CPU worker, 3 OpenCL devices (PoCL) */
  ZLG_TEST_CUDA,    /* 1 CPU worker, 1 pretended card (tests/cuda/standin) */
  ZLG_TEST_CUDA3,   /* 1 CPU worker, 3 pretended cards */
  ZLG_TEST_CUDA8    /* 1 CPU worker, 8 pretended cards */
};
enum zlg_test_mode zlg_test_mode(void);
int zlg_test_cpu_workers(void);
int zlg_test_opencl_workers(void);
int zlg_test_cuda_workers(void);
/* True where these CUDA workers are pretended cards (tests/run-test), whose groups of threads PoCL runs slowly; false
 * on a card (tests/device/run). */
bool zlg_test_pretended_cards(void);
/* A mode has devices of one kind at most: their number and kind. */
int zlg_test_device_workers(void);
zlg_worker_kind zlg_test_device_kind(void);

/* Context options for the mode: OWN, the workers above and no others, a scheduler that uses every one of them. */
void zlg_test_context_options(zlg_context_options *options);
/* A context with these options; ends the program with the message where there is none. */
zlg_context *zlg_test_context(void);

/* Ends the program as skipped (exit status 77), with the reason. CI fails on a skip that its machine could have run. */
_Noreturn void zlg_test_skip(const char *reason, ...) __attribute__((format(printf, 1, 2)));

/* A directory that only this process uses; removed by tests/run-test. `file` is joined to it; the result is the
 * caller's to free. */
char *zlg_test_path(const char *file);

/* The cases of a program; a row with a NULL name ends the table. Each runs as a CUnit test of its name; the program's
 * arguments, if any, are glob patterns of names to run. Returns the exit status. */
struct zlg_test_case {
  const char *name;
  void (*run)(void);
};
int zlg_test_main(int argc, char **argv, const struct zlg_test_case *cases);

/* Fails the running case with `text` unless `passed`; after ten failures a case tells no more of them. */
void zlg_check(bool passed, const char *text, const char *file, int line);
/* Fails the running case unless |got - want| <= bound, and says by how much; a NaN anywhere fails. */
void zlg_check_close(long double got, long double want, long double bound, const char *file, int line);
#define ZLG_CHECK_CLOSE(got, want, bound) zlg_check_close((got), (want), (bound), __FILE__, __LINE__)
/* Fails unless the call returned `status`; prints both names and the context's message. */
void zlg_check_status(int got, int want, const zlg_context *context, const char *call, const char *file, int line);
#define ZLG_CHECK_STATUS(call, want, context) zlg_check_status((call), (want), (context), #call, __FILE__, __LINE__)
#define ZLG_CHECK_OK(call, context) ZLG_CHECK_STATUS(call, ZLG_OK, context)

/* splitmix64: the same numbers on every machine. uniform in [0, 1); normal by Box and Muller. */
uint64_t zlg_test_random(uint64_t *state);
double zlg_test_uniform(uint64_t *state);
double zlg_test_normal(uint64_t *state);

/* Unit roundoff of a type, and gamma_n = n u / (1 - n u) (Higham, Accuracy and Stability, 2nd ed., lemma 3.1). */
long double zlg_test_roundoff(zlg_type type);
long double zlg_test_gamma(double n, zlg_type type);

/* Element (i, k) of a matrix in memory. */
double zlg_test_get(zlg_type type, zlg_order order, int64_t ld, const void *data, int64_t i, int64_t k);
void zlg_test_set(zlg_type type, zlg_order order, int64_t ld, void *data, int64_t i, int64_t k, double value);

/* k(x, y) of zellige/kernel.h in long double, by the formula's text: x and y of d coordinates, `step` elements apart.
 */
long double zlg_reference_kernel(const zlg_kernel_spec *spec, int64_t d, zlg_type type, const void *x, int64_t x_step,
                                 const void *y, int64_t y_step);
/* The same from r^2, r1 and p themselves; the kernels of r alone. */
long double zlg_reference_of(const zlg_kernel_spec *spec, long double r2, long double r1, long double p);
long double zlg_reference_radial(const zlg_kernel_spec *spec, long double r2, long double r1);

#endif
