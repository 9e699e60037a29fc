/* The runtime as the command line asks for it: options shared by every subcommand that starts workers. */
#ifndef ZLG_TOOL_RUNTIME_H
#define ZLG_TOOL_RUNTIME_H

#include <argp.h>
#include <jansson.h>
#include <stdbool.h>

#include "tools/progress.h"
#include "zellige.h"

struct runtime {
  zlg_context_options options;
  bool quiet; /* no warning about missing workers */
};

void runtime_init(struct runtime *runtime);
/* --workers, --opencl, --cuda, --sched, --memory; its input is a struct runtime. */
extern const struct argp runtime_argp;

/* Starts it, in this process's environment made fit for a command (a quiet StarPU); TOOL_OK, or TOOL_FAILED after a
 * message. Fewer devices than asked for is an error, fewer CPU workers a warning. */
int runtime_start(struct runtime *runtime, struct progress *progress, zlg_context **context);

/* Workers of a kind that the context has. */
int runtime_count(const zlg_context *context, zlg_worker_kind kind);
/* "2 CPU workers and 1 OpenCL worker", for free(). */
char *runtime_describe(const zlg_context *context);
/* The JSON object that `info` and `product` share. */
json_t *runtime_json(const zlg_context *context);

#endif
