/* NVRTC: keeps the text and its options; checking is PoCL's business when the module is loaded. Where ZLG_CARD_NVRTC
 * names the real library, the text is first compiled by that for sm_90, so that CUDA's own front end has seen it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <nvrtc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "standin.h"
#include "text.h"

struct _nvrtcProgram {
  char *source, *binary, *log;
};

char *text_split(const char *text, const char **source) {
  if (strncmp(text, TEXT_MARK, strlen(TEXT_MARK)) != 0) return NULL;
  const char *begin = text + strlen(TEXT_MARK), *end = strstr(begin, "\n\n");
  if (!end) return NULL;
  char *options = NULL;
  if (asprintf(&options, "-cl-std=CL1.2 -cl-kernel-arg-info %.*s", (int)(end - begin), begin) < 0) return NULL;
  for (char *c = options; *c; c++)
    if (*c == '\n') *c = ' ';
  *source = end + 2;
  return options;
}

EXPORT nvrtcResult nvrtcVersion(int *major, int *minor) {
  *major = CUDA_VERSION / 1000;
  *minor = CUDA_VERSION % 1000 / 10;
  return NVRTC_SUCCESS;
}
EXPORT const char *nvrtcGetErrorString(nvrtcResult result) {
  return result == NVRTC_SUCCESS ? "success" : "compilation error";
}

EXPORT nvrtcResult nvrtcCreateProgram(nvrtcProgram *program, const char *source, const char *name, int headers,
                                      const char *const *header_texts, const char *const *header_names) {
  (void)name, (void)headers, (void)header_texts, (void)header_names;
  *program = calloc(1, sizeof **program);
  (*program)->source = strdup(source);
  return NVRTC_SUCCESS;
}

/* The real compiler, in a name space of its own. */
static nvrtcResult check_with(const char *library, struct _nvrtcProgram *program, int count,
                              const char *const *options) {
  void *real = dlmopen(LM_ID_NEWLM, library, RTLD_NOW | RTLD_LOCAL);
  if (!real) {
    program->log = strdup(dlerror());
    return NVRTC_ERROR_INTERNAL_ERROR;
  }
  nvrtcResult (*create)(nvrtcProgram *, const char *, const char *, int, const char *const *, const char *const *) =
      dlsym(real, "nvrtcCreateProgram");
  nvrtcResult (*compile)(nvrtcProgram, int, const char *const *) = dlsym(real, "nvrtcCompileProgram");
  nvrtcResult (*log_size)(nvrtcProgram, size_t *) = dlsym(real, "nvrtcGetProgramLogSize");
  nvrtcResult (*log)(nvrtcProgram, char *) = dlsym(real, "nvrtcGetProgramLog");
  nvrtcProgram twin;
  nvrtcResult result = create(&twin, program->source, "text", 0, NULL, NULL);
  if (result == NVRTC_SUCCESS) result = compile(twin, count, options);
  size_t bytes = 0;
  if (result != NVRTC_SUCCESS && log_size(twin, &bytes) == NVRTC_SUCCESS) {
    program->log = calloc(1, bytes + 1);
    log(twin, program->log);
  }
  return result;
}

EXPORT nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int count, const char *const *options) {
  const char *real = getenv("ZLG_CARD_NVRTC");
  if (real && *real) {
    nvrtcResult result = check_with(real, program, count, options);
    if (result != NVRTC_SUCCESS) return result;
  }
  size_t bytes = strlen(TEXT_MARK) + strlen(program->source) + 8;
  for (int i = 0; i < count; i++) bytes += strlen(options[i]) + 1;
  program->binary = calloc(1, bytes);
  strcat(program->binary, TEXT_MARK);
  for (int i = 0; i < count; i++)
    if (strncmp(options[i], "-D", 2) == 0) {
      strcat(program->binary, options[i]);
      strcat(program->binary, "\n");
    }
  strcat(program->binary, "\n");
  strcat(program->binary, program->source);
  return NVRTC_SUCCESS;
}
EXPORT nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram program, size_t *bytes) {
  *bytes = program->log ? strlen(program->log) + 1 : 1;
  return NVRTC_SUCCESS;
}
EXPORT nvrtcResult nvrtcGetProgramLog(nvrtcProgram program, char *log) {
  strcpy(log, program->log ? program->log : "");
  return NVRTC_SUCCESS;
}
EXPORT nvrtcResult nvrtcGetCUBINSize(nvrtcProgram program, size_t *bytes) {
  *bytes = strlen(program->binary) + 1;
  return NVRTC_SUCCESS;
}
EXPORT nvrtcResult nvrtcGetCUBIN(nvrtcProgram program, char *cubin) {
  strcpy(cubin, program->binary);
  return NVRTC_SUCCESS;
}
EXPORT nvrtcResult nvrtcGetPTXSize(nvrtcProgram program, size_t *bytes) {
  return nvrtcGetCUBINSize(program, bytes);
}
EXPORT nvrtcResult nvrtcGetPTX(nvrtcProgram program, char *ptx) {
  return nvrtcGetCUBIN(program, ptx);
}
EXPORT nvrtcResult nvrtcDestroyProgram(nvrtcProgram *program) {
  free((*program)->source);
  free((*program)->binary);
  free((*program)->log);
  free(*program);
  *program = NULL;
  return NVRTC_SUCCESS;
}
