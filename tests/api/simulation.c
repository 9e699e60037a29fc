/* Descriptions of machines are read and refused with words, and a library that computes says that it cannot simulate.
 * What simulations do is in tests/sim. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support.h"

#define CHECK(condition) zlg_check((condition), #condition, __FILE__, __LINE__)

static zlg_platform shipped(const char *name) {
  char path[1024];
  zlg_platform platform;
  const char *source = getenv("ZLG_SRCDIR");
  snprintf(path, sizeof path, "%s/perfmodels/machines/%s.machine", source ? source : ".", name);
  ZLG_CHECK_OK(zlg_platform_read(path, &platform), NULL);
  return platform;
}

static void shipped_machines_can_be_read(void) {
  static const char *const names[] = {"a100-nvlink", "a100-pcie", "h100-nvlink"};
  for (int i = 0; i < 3; i++) {
    const zlg_platform p = shipped(names[i]);
    CHECK(strcmp(p.name, names[i]) == 0);
    CHECK(p.sockets == 2 && p.cores == 64 && p.gpus == 8);
    CHECK(p.memory_bytes == 512e9 && p.gpu_memory_bytes == 80e9);
    CHECK((p.peer_bandwidth > 0) == (strstr(names[i], "nvlink") != NULL));
    CHECK(p.gpu.multiply_adds[0] > 10 * p.cpu.multiply_adds[0]);
    CHECK(p.gpu.specials[0] > 0 && p.gpu.specials[1] == 0 && p.gpu.special_slots[1] > 0);
    CHECK(p.disk_read > 0 && !p.cpu.calibrated && !p.gpu.calibrated);
  }
}

static const char good[] = "title = two cores\n"
                           "cores = 2 # no more\n"
                           "\n"
                           "memory = 1e9\n"
                           "cpu.fma.f32 = 1e10\n"
                           "cpu.fma.f64=5e9\n"
                           "cpu.bytes = 1e9\n";

static int read_text(const char *text, zlg_platform *platform) {
  char *path = zlg_test_path("odd name.machine");
  FILE *file = fopen(path, "w");
  CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0);
  int status = zlg_platform_read(path, platform);
  free(path);
  return status;
}

static void a_small_description_is_enough(void) {
  zlg_platform p;
  ZLG_CHECK_OK(read_text(good, &p), NULL);
  CHECK(strcmp(p.name, "odd-name") == 0 && strcmp(p.title, "two cores") == 0);
  CHECK(p.cores == 2 && p.gpus == 0 && p.sockets == 1 && p.cpu.multiply_adds[1] == 5e9 && p.disk_read == 0);
}

static void mistakes_are_named(void) {
  static const struct {
    const char *more, *words;
  } bad[] = {{"cores = 3\n", "line 8: a second 'cores'"},
             {"core = 3\n", "line 8: no key 'core'"},
             {"gpus\n", "line 8: 'gpus'; expected key = value"},
             {"gpus = few\n", "gpus = 'few'; expected a whole number"},
             {"gpus = 1.5\n", "expected a whole number"},
             {"gpus = -1\n", "expected a whole number"},
             {"link.bandwidth = nan\n", "expected a number, 0 or more"},
             {"link.bandwidth = 1e9x\n", "expected a number, 0 or more"},
             {"cpu.calibrated = maybe\n", "expected yes or no"},
             {"calibration.host =\n", "expected a text"},
             {"gpus = 1\n", "no 'gpu.memory'"},
             {"gpus = 1\ngpu.memory = 1e9\n", "no 'link.bandwidth'"},
             {"gpus = 1\ngpu.memory = 1e9\nlink.bandwidth = 1e9\n", "no 'gpu.fma.f32'"},
             {"gpus = 2\ngpu.memory = 1e9\nlink.bandwidth = 1e9\n", "each GPU keeps a core busy"}};
  zlg_platform p;
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    char text[1024];
    snprintf(text, sizeof text, "%s%s", good, bad[i].more);
    ZLG_CHECK_STATUS(read_text(text, &p), ZLG_EFORMAT, NULL);
    const char *message = zlg_context_message(NULL);
    if (!strstr(message, bad[i].words)) fprintf(stderr, "\"%s\" has no \"%s\"\n", message, bad[i].words);
    CHECK(strstr(message, bad[i].words) != NULL);
  }
  ZLG_CHECK_STATUS(read_text("cores = 2\nmemory = 1e9\n", &p), ZLG_EFORMAT, NULL);
  CHECK(strstr(zlg_context_message(NULL), "no 'cpu.fma.f32'") != NULL);
  ZLG_CHECK_OK(read_text("cores = 2\nmemory = 1e9\ncpu.calibrated = yes\n", &p), NULL);
  ZLG_CHECK_STATUS(zlg_platform_read("nonesuch.machine", &p), ZLG_ENOENT, NULL);
  ZLG_CHECK_STATUS(zlg_platform_read(NULL, &p), ZLG_EINVAL, NULL);
}

static int nothing(void *user) {
  (void)user;
  return 0;
}

static void a_library_that_computes_says_so(void) {
  zlg_platform p = shipped("a100-pcie");
  zlg_context *context = zlg_test_context();
  zlg_matrix *matrix = NULL;
  zlg_link_traffic link;
  int result = 0;
  CHECK(!zlg_simulation_available());
  ZLG_CHECK_STATUS(zlg_platform_install(&p, ".", NULL), ZLG_ENOTSUP, NULL);
  CHECK(strstr(zlg_context_message(NULL), "./bootstrap simgrid") != NULL);
  ZLG_CHECK_STATUS(zlg_simulate(nothing, NULL, &result), ZLG_ENOTSUP, NULL);
  ZLG_CHECK_STATUS(zlg_matrix_simulated(context, &matrix, ZLG_F32, 10, 10, ZLG_ROW_MAJOR, ZLG_IN_MEMORY), ZLG_ENOTSUP,
                   context);
  CHECK(matrix == NULL);
  ZLG_CHECK_STATUS(zlg_simulation_link(context, -1, &link), ZLG_EINVAL, context);
  ZLG_CHECK_STATUS(zlg_simulation_link(context, 1 << 20, &link), ZLG_EINVAL, context);
  ZLG_CHECK_STATUS(zlg_simulation_link(NULL, 0, &link), ZLG_EINVAL, NULL);
  ZLG_CHECK_STATUS(zlg_simulation_peaks(context, NULL, NULL), ZLG_EINVAL, context);
  zlg_context_release(context);
}

int main(int argc, char **argv) {
  static const struct zlg_test_case cases[] = {{"shipped machines can be read", shipped_machines_can_be_read},
                                               {"a small description is enough", a_small_description_is_enough},
                                               {"mistakes are named", mistakes_are_named},
                                               {"a library that computes says so", a_library_that_computes_says_so},
                                               {NULL, NULL}};
  return zlg_test_main(argc, argv, cases);
}
