/* A compiler of device programs that fails: the request ends with its words before anything is computed, and the next
 * product, with another kernel, is as good as ever. The compiler is in this program's hands: the library, linked in,
 * calls the clBuildProgram() below. */
#define _GNU_SOURCE
#include "config.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "codelets/common/starpu_compat.h"
#include "tests/support_product.h"

#define CHECK(condition) zlg_check((condition), #condition, __FILE__, __LINE__)

enum { ROWS = 100, POINTS = 70, TILE = 32 };

static atomic_int fails;

#ifdef ZLG_WITH_OPENCL
cl_int clBuildProgram(cl_program program, cl_uint devices, const cl_device_id *list, const char *options,
                      void(CL_CALLBACK *notify)(cl_program, void *), void *user) {
  union {
    void *object;
    cl_int (*function)(cl_program, cl_uint, const cl_device_id *, const char *, void(CL_CALLBACK *)(cl_program, void *),
                       void *);
  } real = {dlsym(RTLD_NEXT, "clBuildProgram")};
  if (atomic_load(&fails)) return CL_BUILD_PROGRAM_FAILURE;
  return real.function ? real.function(program, devices, list, options, notify, user) : CL_INVALID_OPERATION;
}
#endif

/* The status of a product of that kernel; Y keeps or gets its numbers. */
static int product(zlg_context *context, zlg_kernel_kind kind, struct zlg_test_array *y) {
  uint64_t state = 7;
  zlg_kernel_spec spec;
  zlg_kernel_spec_init(&spec, kind);
  struct zlg_test_array x1 = zlg_test_array_random(ZLG_F32, ROWS, 3, ZLG_ROW_MAJOR, 0, &state, 0, 1),
                        x2 = zlg_test_array_random(ZLG_F32, POINTS, 3, ZLG_ROW_MAJOR, 0, &state, 0, 1),
                        b = zlg_test_array_random(ZLG_F32, POINTS, 1, ZLG_ROW_MAJOR, 0, &state, 0, 1);
  zlg_matrix *X1 = zlg_test_array_wrap(context, &x1), *X2 = zlg_test_array_wrap(context, &x2),
             *B = zlg_test_array_wrap(context, &b), *Y = zlg_test_array_wrap(context, y);
  zlg_operator *K = NULL;
  ZLG_CHECK_OK(zlg_kernel(context, &K, &spec, X1, X2), context);
  int status = zlg_apply(K, ZLG_NOTRANS, 1, B, 0, Y);
  if (status == ZLG_OK) {
    struct zlg_test_kernel kernel = zlg_test_kernel_new(&spec, &x1, &x2);
    ZLG_CHECK_PRODUCT(&kernel, ZLG_NOTRANS, 1, &b, 0, NULL, y);
    zlg_test_kernel_free(&kernel);
  }
  zlg_operator_release(K);
  zlg_matrix *const matrices[] = {X1, X2, B, Y};
  for (int i = 0; i < 4; i++) zlg_matrix_release(matrices[i]);
  struct zlg_test_array *const arrays[] = {&x1, &x2, &b};
  for (int i = 0; i < 3; i++) zlg_test_array_free(arrays[i]);
  return status;
}

static void a_compiler_that_fails_ends_the_request(void) {
  zlg_context_options options;
  zlg_context *context = NULL;
  zlg_test_context_options(&options);
  options.direct_seconds = 0;
  options.tile_rows = options.tile_columns = TILE;
  ZLG_CHECK_OK(zlg_context_create(&context, &options), NULL);
  struct zlg_test_array y = zlg_test_array_new(ZLG_F32, ROWS, 1, ZLG_ROW_MAJOR, 0),
                        before = zlg_test_array_copy(&y, ZLG_ROW_MAJOR, 0);
  atomic_store(&fails, 1);
  for (int i = 0; i < 2; i++) { /* a failure is remembered, not tried again */
    CHECK(product(context, ZLG_CAUCHY, &y) == ZLG_EDEVICE);
    CHECK(strstr(zlg_context_message(context), "compiling kernel_product") != NULL);
    CHECK(zlg_test_array_same_bits(&y, &before));
    atomic_store(&fails, 0);
  }
  CHECK(product(context, ZLG_GAUSSIAN, &y) == ZLG_OK);
  zlg_test_array_free(&y);
  zlg_test_array_free(&before);
  zlg_context_release(context);
}

int main(int argc, char **argv) {
  static const struct zlg_test_case cases[] = {
      {"a compiler that fails ends the request", a_compiler_that_fails_ends_the_request}, {NULL, NULL}};
  if (zlg_test_opencl_workers() == 0) {
    printf("  (not run: no devices)\n");
    return 0;
  }
  return zlg_test_main(argc, argv, cases);
}
