/* The trace of a request as a file: see trace.h. */
#define _GNU_SOURCE
#include "tools/trace.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/tool.h"

struct trace {
  FILE *file;
  char *path;
  char *part; /* where it is written; NULL: at its own name, a device or a pipe */
};

static int failed(const char *path) {
  tool_error("%s: %s", path, strerror(errno));
  return TOOL_FAILED;
}

struct trace *trace_open(const char *path) {
  struct trace *trace = calloc(1, sizeof *trace);
  struct stat old;
  bool special = stat(path, &old) == 0 && !S_ISREG(old.st_mode);
  if (!trace || !(trace->path = strdup(path))) goto error;
  if (!special && asprintf(&trace->part, "%s.%ld.part", path, (long)getpid()) < 0) {
    trace->part = NULL;
    goto error;
  }
  trace->file = fopen(special ? path : trace->part, "w");
  if (trace->file) return trace;
error:
  failed(path);
  trace_close(trace);
  return NULL;
}

int trace_write(struct trace *trace, const zlg_context *context, zlg_request *request) {
  int64_t count;
  const zlg_trace_entry *entries;
  zlg_worker_info worker;
  int status = zlg_request_trace(request, &count, &entries);
  if (status) {
    tool_library_error(context, status, trace->path);
    return TOOL_FAILED;
  }
  fputs("worker\tkind\tcodelet\tstart\tend\twork\tindex\n", trace->file);
  for (int64_t i = 0; i < count; i++) {
    const zlg_trace_entry *e = &entries[i];
    if (zlg_context_worker(context, e->worker, &worker)) continue;
    fprintf(trace->file, "%s\t%s\t%s\t%.9f\t%.9f\t%.17g\t%d\n", worker.name, zlg_worker_kind_name(worker.kind),
            e->codelet, e->start, e->end, e->work, e->worker);
  }
  int bad = ferror(trace->file);
  if (fclose(trace->file)) bad = 1;
  trace->file = NULL;
  if (bad || (trace->part && rename(trace->part, trace->path))) return failed(trace->path);
  free(trace->part);
  trace->part = NULL;
  return TOOL_OK;
}

void trace_close(struct trace *trace) {
  if (!trace) return;
  if (trace->file) fclose(trace->file);
  if (trace->part) unlink(trace->part);
  free(trace->part);
  free(trace->path);
  free(trace);
}
