/* JSON as the command prints it: see json.h. */
#include "tools/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/tool.h"

json_t *number_json(double value) {
  return isfinite(value) ? json_real(value) : json_null();
}

json_t *bytes_json(int64_t bytes) {
  return bytes >= 0 ? json_integer((json_int_t)bytes) : json_null();
}

json_t *text_json(const char *text) {
  if (!text) return json_null();
  json_t *string = json_string(text);
  char *copy = string ? NULL : strdup(text);
  if (!copy) return string;
  for (char *p = copy; *p; p++)
    if (*p & 0x80) *p = '?';
  string = json_string(copy);
  free(copy);
  return string;
}

json_t *worker_json(const zlg_worker_info *worker) {
  return json_pack("{s:o, s:s, s:i, s:i}", "name", text_json(worker->name), "kind", zlg_worker_kind_name(worker->kind),
                   "id", worker->id, "memory_node", worker->memory_node);
}

int print_json(json_t *object) {
  if (!object) {
    tool_error("out of memory");
    return TOOL_FAILED;
  }
  int failed = json_dumpf(object, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(12));
  json_decref(object);
  if (!failed) putchar('\n');
  return tool_finish(TOOL_OK);
}
