/* Names and texts of the public enumerations: one place that turns codes, types and kinds into words. */
#include "config.h"

#include "zellige.h"

const char *zlg_strerror(int status) {
  switch (status) {
#define STATUS_TEXT(name, value, text)                                                                                 \
  case value:                                                                                                          \
    return text;
    ZLG_STATUS_MAP(STATUS_TEXT)
#undef STATUS_TEXT
  default:
    return "unknown status";
  }
}

const char *zlg_status_name(int status) {
  switch (status) {
#define STATUS_NAME(name, value, text)                                                                                 \
  case value:                                                                                                          \
    return "ZLG_" #name;
    ZLG_STATUS_MAP(STATUS_NAME)
#undef STATUS_NAME
  default:
    return "ZLG_UNKNOWN";
  }
}

size_t zlg_type_size(zlg_type type) {
  switch (type) {
  case ZLG_F32:
    return 4;
  case ZLG_F64:
    return 8;
  default:
    return 0;
  }
}

const char *zlg_type_name(zlg_type type) {
  switch (type) {
  case ZLG_F32:
    return "f32";
  case ZLG_F64:
    return "f64";
  default:
    return NULL;
  }
}

const char *zlg_worker_kind_name(zlg_worker_kind kind) {
  switch (kind) {
  case ZLG_WORKER_CPU:
    return "cpu";
  case ZLG_WORKER_OPENCL:
    return "opencl";
  case ZLG_WORKER_CUDA:
    return "cuda";
  default:
    return NULL;
  }
}

const char *zlg_version(void) {
  return ZLG_VERSION;
}
