/* Every device text, specialised as for a GPU, compiled for sm_80 (A100) and sm_90 (H100) by NVRTC, as CUDA workers
 * will do it: an error or a register spilled to memory fails; registers are printed. Without NVRTC the test is skipped.
 * With arguments it serves tests/codelet/nvcc.sh: `--list` prints "text options" lines, `--source TEXT` a text with its
 * vocabulary. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codelets/accumulate/args.h"
#include "codelets/common/device.h"
#include "codelets/kernel_product/args.h"
#include "codelets/kron_factor/args.h"
#include "tests/support.h"

struct specialisation {
  const char *text;
  char options[1024];
};
static struct specialisation list[160];
static int listed;

static void add_product(struct zlg_kernel_product_args args) {
  struct specialisation *next = &list[listed++];
  args.x1_order = args.x2_order = args.b_order = ZLG_ROW_MAJOR;
  if (args.alpha == 0) args.alpha = 1;
  args.degree = 3;
  next->text = "kernel_product";
  zlg_kernel_product_options(&args, &zlg_device_gpu, next->options, sizeof next->options);
}

/* Every launch of `count` equal factors p x q over many vectors. */
static void add_chain(zlg_type type, int count, int p, int q, zlg_order x_order, zlg_order y_order) {
  struct zlg_kron_factor_args args = {
      .type = type, .count = count, .vectors = 4096, .x_order = x_order, .y_order = y_order, .alpha = 1};
  for (int i = 0; i < count; i++) args.p[i] = p, args.q[i] = q, args.turn[i] = (int8_t)(count - 1 - i);
  for (int i = 0; i < count; i++) {
    const struct zlg_kron_factor_launch launch = {&args, i};
    struct specialisation *next = &list[listed];
    next->text = "kron_factor";
    zlg_kron_factor_options(&launch, &zlg_device_gpu, next->options, sizeof next->options);
    bool seen = false;
    for (int k = 0; k < listed; k++) seen = seen || strcmp(list[k].options, next->options) == 0;
    listed += !seen;
  }
}

/* Small factors, several a launch, and large ones, one a launch, that end and that do not end in the last index; ragged
 * ones; columns, and a block turned round. */
static void add_chains(zlg_type type) {
  static const int sizes[][3] = {{9, 2, 2},     {5, 8, 8},   {4, 16, 16}, {3, 32, 32},
                                 {2, 128, 128}, {5, 10, 10}, {2, 70, 9}};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    add_chain(type, sizes[i][0], sizes[i][1], sizes[i][2], ZLG_ROW_MAJOR, ZLG_ROW_MAJOR);
  add_chain(type, 2, 16, 16, ZLG_COLUMN_MAJOR, ZLG_COLUMN_MAJOR);
  add_chain(type, 2, 8, 8, ZLG_ROW_MAJOR, ZLG_COLUMN_MAJOR);
}

/* Every kernel in three dimensions; then what changes the code: dimension, right-hand sides, few rows, type,
 * lengthscales. */
static void fill_list(void) {
  static const int64_t dimensions[] = {1, 10, 16, 32, 100}, rights[] = {2, 4, 8, 100};
  for (int type = ZLG_F32; type <= ZLG_F64; type++) {
    const struct zlg_kernel_product_args plain = {
        .type = (zlg_type)type, .kind = ZLG_GAUSSIAN, .m = 4096, .n = 8192, .d = 3, .r = 1, .isotropic = true};
    struct zlg_kernel_product_args args = plain;
    for (int kind = ZLG_GAUSSIAN; kind <= ZLG_SIGMOID; kind++)
      if (kind != ZLG_MATERN12) args.kind = (zlg_kernel_kind)kind, add_product(args);
    args.kind = ZLG_RATIONAL_QUADRATIC, args.alpha = 0.3, add_product(args);
    args = plain, args.isotropic = false, add_product(args);
    for (size_t i = 0; i < sizeof dimensions / sizeof *dimensions; i++)
      args = plain, args.d = dimensions[i], add_product(args);
    for (size_t i = 0; i < sizeof rights / sizeof *rights; i++) args = plain, args.r = rights[i], add_product(args);
    args = plain, args.m = 1, add_product(args);
    args = plain, args.m = 8, args.r = 8, add_product(args);
    args = plain, args.d = 100, args.r = 8, add_product(args);
    const struct zlg_accumulate_args sums = {.type = (zlg_type)type, .y_order = ZLG_ROW_MAJOR};
    list[listed].text = "accumulate";
    zlg_accumulate_options(&sums, &zlg_device_gpu, list[listed].options, sizeof list[listed].options);
    listed++;
    add_chains((zlg_type)type);
  }
}

/* The five calls of NVRTC that are needed; the library is looked for at run time, so that building needs no CUDA. */
static struct {
  int (*create)(void **program, const char *source, const char *name, int, const char *const *, const char *const *);
  int (*compile)(void *program, int count, const char *const *options);
  int (*log_size)(void *program, size_t *bytes);
  int (*log)(void *program, char *text);
  int (*destroy)(void **program);
} nvrtc;

static bool find_nvrtc(void) {
  static const char *const names[] = {"libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12"};
  const char *home = getenv("CUDA_HOME");
  void *library = NULL;
  for (int place = 0; place < 3 && !library; place++)
    for (int i = 0; i < 3 && !library; i++) {
      char path[1024];
      snprintf(path, sizeof path, "%s%s%s",
               place == 0   ? ""
               : place == 1 ? (home ? home : "/nonexistent")
                            : "/usr/local/cuda",
               place == 0 ? "" : "/lib64/", names[i]);
      library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    }
  if (!library) return false;
  *(void **)&nvrtc.create = dlsym(library, "nvrtcCreateProgram");
  *(void **)&nvrtc.compile = dlsym(library, "nvrtcCompileProgram");
  *(void **)&nvrtc.log_size = dlsym(library, "nvrtcGetProgramLogSize");
  *(void **)&nvrtc.log = dlsym(library, "nvrtcGetProgramLog");
  *(void **)&nvrtc.destroy = dlsym(library, "nvrtcDestroyProgram");
  return nvrtc.create && nvrtc.compile && nvrtc.log_size && nvrtc.log && nvrtc.destroy;
}

static char *source_of(const char *text) {
  size_t bytes = strlen(zlg_device_vocabulary) + strlen(zlg_device_text(text)) + 1;
  char *source = malloc(bytes);
  snprintf(source, bytes, "%s%s", zlg_device_vocabulary, zlg_device_text(text));
  return source;
}

/* Reads "N registers" and "N bytes spill stores" of each entry function out of ptxas' words. */
static void check_log(const struct specialisation *s, const char *architecture, char *log) {
  char kernel[64] = "?";
  int entries = 0;
  for (char *line = strtok(log, "\n"); line; line = strtok(NULL, "\n")) {
    int stores, loads, registers;
    char *at = strstr(line, "entry function '");
    if (at) sscanf(at, "entry function '%63[^']", kernel);
    if ((at = strstr(line, "bytes stack frame,")) &&
        sscanf(at, "bytes stack frame, %d bytes spill stores, %d bytes spill loads", &stores, &loads) == 2) {
      zlg_check(stores == 0 && loads == 0, s->options, __FILE__, __LINE__);
      if (stores || loads)
        printf("    %s %s: %d, %d bytes spilled: %s\n", architecture, kernel, stores, loads, s->options);
    }
    if ((at = strstr(line, "Used ")) && sscanf(at, "Used %d registers", &registers) == 1) {
      entries++;
      printf("    %s %-14s %3d registers  %s\n", architecture, kernel, registers, s->options);
    }
  }
  const int kernels = strcmp(s->text, "kron_factor") == 0 ? 1 : 2;
  zlg_check(entries == kernels, "ptxas told of every kernel of a text", __FILE__, __LINE__);
}

static const char *const same_options[] = {ZLG_CUDA_OPTIONS};
#define SAME_OPTIONS (sizeof same_options / sizeof *same_options)

static void print_list(void) {
  for (int i = 0; i < listed; i++) {
    printf("%s %s", list[i].text, list[i].options);
    for (size_t k = 0; k < SAME_OPTIONS; k++) printf(" %s", same_options[k]);
    printf("\n");
  }
}

static void compile(const struct specialisation *s, const char *architecture) {
  char words[sizeof s->options], target[64];
  const char *options[64];
  int count = 0;
  snprintf(words, sizeof words, "%s", s->options);
  snprintf(target, sizeof target, "--gpu-architecture=%s", architecture);
  options[count++] = target;
  options[count++] = "--ptxas-options=-v";
  for (size_t k = 0; k < SAME_OPTIONS; k++) options[count++] = same_options[k];
  for (char *word = strtok(words, " "); word && count < 64; word = strtok(NULL, " ")) options[count++] = word;
  char *source = source_of(s->text);
  void *program = NULL;
  size_t bytes = 0;
  int made = nvrtc.create(&program, source, s->text, 0, NULL, NULL);
  int status = made == 0 ? nvrtc.compile(program, count, options) : made;
  if (made == 0) nvrtc.log_size(program, &bytes);
  char *log = calloc(bytes + 1, 1);
  if (made == 0) nvrtc.log(program, log);
  zlg_check(status == 0, log, __FILE__, __LINE__);
  if (status == 0)
    check_log(s, architecture, log);
  else
    printf("%s %s\n%s\n", architecture, s->options, log);
  if (made == 0) nvrtc.destroy(&program);
  free(log), free(source);
}

static void compiles_without_spills(void) {
  for (int i = 0; i < listed; i++) {
    compile(&list[i], "sm_80");
    compile(&list[i], "sm_90");
  }
}

static const struct zlg_test_case cases[] = {
    {"compiles_without_spills", compiles_without_spills},
    {NULL, NULL},
};

int main(int argc, char **argv) {
  fill_list();
  if (argc == 2 && strcmp(argv[1], "--list") == 0) {
    print_list();
    return 0;
  }
  if (argc == 3 && strcmp(argv[1], "--source") == 0) {
    char *source = source_of(argv[2]);
    fputs(source, stdout);
    free(source);
    return 0;
  }
  if (!find_nvrtc()) zlg_test_skip("no NVRTC library here");
  return zlg_test_main(argc, argv, cases);
}
