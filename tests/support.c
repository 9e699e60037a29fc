/* What every test program shares: see the header. */
#include "tests/support.h"

#include <CUnit/Basic.h>
#include <fnmatch.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Failures told in one case; a wrong array would fill the log. */
#define TOLD_FAILURES 10
static int failures_in_case;

/* By enum zlg_test_mode. */
static const struct {
  const char *name;
  int cpu, opencl, cuda; /* workers */
} modes[] = {{"cpu", 2, 0, 0},  {"opencl", 1, 1, 0}, {"opencl3", 1, 3, 0},
             {"cuda", 1, 0, 1}, {"cuda3", 1, 0, 3},  {"cuda8", 1, 0, 8}};

enum zlg_test_mode zlg_test_mode(void) {
  const char *mode = getenv("ZLG_TEST_MODE");
  if (mode == NULL) return ZLG_TEST_CPU;
  for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
    if (strcmp(mode, modes[i].name) == 0) return (enum zlg_test_mode)i;
  fprintf(stderr, "ZLG_TEST_MODE=%s; expected cpu, opencl, opencl3, cuda, cuda3 or cuda8\n", mode);
  exit(1);
}

int zlg_test_cpu_workers(void) {
  return modes[zlg_test_mode()].cpu;
}

int zlg_test_opencl_workers(void) {
  return modes[zlg_test_mode()].opencl;
}

int zlg_test_cuda_workers(void) {
  return modes[zlg_test_mode()].cuda;
}

bool zlg_test_pretended_cards(void) {
  return zlg_test_cuda_workers() > 0 && getenv("ZLG_CARDS") != NULL;
}

int zlg_test_device_workers(void) {
  return zlg_test_opencl_workers() + zlg_test_cuda_workers();
}

zlg_worker_kind zlg_test_device_kind(void) {
  return zlg_test_cuda_workers() > 0 ? ZLG_WORKER_CUDA : ZLG_WORKER_OPENCL;
}

void zlg_test_skip(const char *reason, ...) {
  va_list arguments;
  va_start(arguments, reason);
  fputs("SKIP: ", stdout);
  vprintf(reason, arguments);
  putchar('\n');
  va_end(arguments);
  fflush(stdout);
  _exit(77);
}

char *zlg_test_path(const char *file) {
  const char *directory = getenv("ZLG_TEST_DIR");
  if (directory == NULL) {
    fputs("ZLG_TEST_DIR is not set: run the test through tests/run-test\n", stderr);
    exit(1);
  }
  size_t bytes = strlen(directory) + strlen(file) + 2;
  char *path = malloc(bytes);
  if (path == NULL) abort();
  snprintf(path, bytes, "%s/%s", directory, file);
  return path;
}

static bool wanted(int argc, char **argv, const char *name) {
  if (argc < 2) return true;
  for (int i = 1; i < argc; i++)
    if (fnmatch(argv[i], name, 0) == 0) return true;
  return false;
}

static void case_begins(const CU_pTest test, const CU_pSuite suite) {
  (void)suite;
  failures_in_case = 0;
  printf("  %s\n", test->pName);
  fflush(stdout);
}

int zlg_test_main(int argc, char **argv, const struct zlg_test_case *cases) {
  if (CU_initialize_registry() != CUE_SUCCESS) return 1;
  CU_pSuite suite = CU_add_suite(argv[0], NULL, NULL);
  int count = 0;
  for (const struct zlg_test_case *row = cases; row->name != NULL; row++)
    if (wanted(argc, argv, row->name)) {
      if (CU_add_test(suite, row->name, row->run) == NULL) return 1;
      count++;
    }
  if (count == 0) {
    fputs("no case of that name\n", stderr);
    return 1;
  }
  CU_set_test_start_handler(case_begins);
  CU_run_all_tests();
  unsigned failed = CU_get_number_of_failures();
  for (CU_pFailureRecord record = CU_get_failure_list(); record != NULL; record = record->pNext)
    printf("%s:%u: %s: %s\n", record->strFileName, record->uiLineNumber,
           record->pTest != NULL ? record->pTest->pName : "?", record->strCondition);
  printf("%d cases, %u assertions, %u failures\n", count, CU_get_number_of_asserts(), failed);
  CU_cleanup_registry();
  return failed != 0;
}

void zlg_check(bool passed, const char *text, const char *file, int line) {
  if (!passed && ++failures_in_case > TOLD_FAILURES) return;
  CU_assertImplementation(passed ? CU_TRUE : CU_FALSE, (unsigned)line, text, file, "", CU_FALSE);
}

void zlg_check_close(long double got, long double want, long double bound, const char *file, int line) {
  long double error = fabsl(got - want);
  if (error <= bound) {
    zlg_check(true, "", file, line);
    return;
  }
  char text[256];
  snprintf(text, sizeof text, "got %.18Lg, expected %.18Lg: off by %.3Lg, allowed %.3Lg", got, want, error, bound);
  zlg_check(false, text, file, line);
}

uint64_t zlg_test_random(uint64_t *state) {
  uint64_t z = (*state += UINT64_C(0x9E3779B97F4A7C15));
  z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
  return z ^ (z >> 31);
}

double zlg_test_uniform(uint64_t *state) {
  return (double)(zlg_test_random(state) >> 11) * 0x1p-53;
}

double zlg_test_normal(uint64_t *state) {
  double u = 1.0 - zlg_test_uniform(state), v = zlg_test_uniform(state);
  return sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v);
}

long double zlg_test_roundoff(zlg_type type) {
  return type == ZLG_F32 ? 0x1p-24L : 0x1p-53L;
}

long double zlg_test_gamma(double n, zlg_type type) {
  long double nu = n * zlg_test_roundoff(type);
  return nu / (1.0L - nu);
}

static int64_t place(zlg_order order, int64_t ld, int64_t i, int64_t k) {
  return order == ZLG_ROW_MAJOR ? i * ld + k : i + k * ld;
}

double zlg_test_get(zlg_type type, zlg_order order, int64_t ld, const void *data, int64_t i, int64_t k) {
  int64_t at = place(order, ld, i, k);
  return type == ZLG_F32 ? (double)((const float *)data)[at] : ((const double *)data)[at];
}

void zlg_test_set(zlg_type type, zlg_order order, int64_t ld, void *data, int64_t i, int64_t k, double value) {
  int64_t at = place(order, ld, i, k);
  if (type == ZLG_F32)
    ((float *)data)[at] = (float)value;
  else
    ((double *)data)[at] = value;
}

long double zlg_reference_radial(const zlg_kernel_spec *spec, long double r2, long double r1) {
  long double r = sqrtl(r2), s;
  switch (spec->kind) {
  case ZLG_GAUSSIAN:
    return expl(-r2 / 2);
  case ZLG_EXPONENTIAL:
  case ZLG_MATERN12:
    return expl(-r);
  case ZLG_LAPLACIAN:
    return expl(-r1);
  case ZLG_MATERN32:
    s = sqrtl(3.0L) * r;
    return isinf(s) ? 0 : (1 + s) * expl(-s);
  case ZLG_MATERN52:
    s = sqrtl(5.0L) * r;
    return isinf(s) ? 0 : (1 + s + s * s / 3) * expl(-s);
  case ZLG_RATIONAL_QUADRATIC:
    return powl(1 + r2 / (2 * (long double)spec->alpha), -(long double)spec->alpha);
  case ZLG_INVERSE_MULTIQUADRIC:
    return 1 / sqrtl(1 + r2);
  case ZLG_CAUCHY:
    return 1 / (1 + r2);
  case ZLG_ENERGY:
    return -r;
  default:
    return NAN;
  }
}

long double zlg_reference_of(const zlg_kernel_spec *spec, long double r2, long double r1, long double p) {
  if (spec->kind == ZLG_LINEAR) return p + spec->offset;
  if (spec->kind == ZLG_SIGMOID) return tanhl(spec->gamma * p + spec->offset);
  if (spec->kind != ZLG_POLYNOMIAL) return zlg_reference_radial(spec, r2, r1);
  long double base = spec->gamma * p + spec->offset, power = 1;
  for (int n = 0; n < spec->degree; n++) power *= base;
  return power;
}

long double zlg_reference_kernel(const zlg_kernel_spec *spec, int64_t d, zlg_type type, const void *x, int64_t x_step,
                                 const void *y, int64_t y_step) {
  long double r2 = 0, r1 = 0, p = 0;
  for (int64_t k = 0; k < d; k++) {
    long double l = spec->lengthscales[spec->lengthscale_count == 1 ? 0 : k];
    long double u = zlg_test_get(type, ZLG_ROW_MAJOR, 0, x, 0, k * x_step) / l;
    long double v = zlg_test_get(type, ZLG_ROW_MAJOR, 0, y, 0, k * y_step) / l;
    r2 += (u - v) * (u - v);
    r1 += fabsl(u - v);
    p += u * v;
  }
  return zlg_reference_of(spec, r2, r1, p);
}
