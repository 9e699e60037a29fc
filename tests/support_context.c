/* The part of the tests' support that calls the library; kernel tests link without it. */
#include "tests/support.h"

#include <stdio.h>
#include <stdlib.h>

void zlg_test_context_options(zlg_context_options *options) {
  zlg_context_options_init(options);
  options->mode = ZLG_RUNTIME_OWN;
  options->cpu_workers = zlg_test_cpu_workers();
  options->opencl_workers = zlg_test_opencl_workers();
  options->cuda_workers = zlg_test_cuda_workers();
  options->bind_workers = 0;
  /* dmda may rightly leave a slow device idle; a test of it wants every worker to compute. */
  options->scheduler = "lws";
}

zlg_context *zlg_test_context(void) {
  zlg_context_options options;
  zlg_context *context = NULL;
  zlg_test_context_options(&options);
  int status = zlg_context_create(&context, &options);
  if (status != ZLG_OK) {
    fprintf(stderr, "zlg_context_create: %s: %s\n", zlg_status_name(status), zlg_context_message(NULL));
    exit(1);
  }
  return context;
}

void zlg_check_status(int got, int want, const zlg_context *context, const char *call, const char *file, int line) {
  if (got == want) {
    zlg_check(true, "", file, line);
    return;
  }
  char text[1024];
  snprintf(text, sizeof text, "%.200s returned %s, expected %s; message: %.500s", call, zlg_status_name(got),
           zlg_status_name(want), zlg_context_message(context));
  zlg_check(false, text, file, line);
}
