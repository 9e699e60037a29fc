/* One job of the command: an operator applied to X, the result in a file. What every subcommand that does so shares:
 * its options, interrupts, progress, the plan beforehand and the report afterwards. The subcommand makes A and X. */
#ifndef ZLG_TOOL_JOB_H
#define ZLG_TOOL_JOB_H

#include <jansson.h>

#include "tools/filespec.h"
#include "tools/progress.h"
#include "tools/runtime.h"

struct job {
  struct runtime runtime;
  struct progress progress;
  struct filespec output, y0; /* path NULL: not given */
  const char *trace;          /* NULL: none */
  double scale, beta;         /* beta NaN: not given */
  zlg_op op;
  bool right; /* X stands left of A */
  bool explain, dry_run, json, quiet;
  /* For the report. */
  const char *title;    /* "gaussian kernel" */
  const char *operands; /* lines that say what the inputs are, shown behind an error of shapes or types; may be NULL */
  /* Made by job_start() and by the subcommand; given back by job_end(). */
  zlg_context *context;
  zlg_operator *A;
  zlg_matrix *X;
};

/* -o, --transpose, --scale, --beta, --y0, --tile, the report's options and those of the runtime; its input is a struct
 * job. */
extern const struct argp job_argp;

void job_init(struct job *job);
/* The runtime. TOOL_OK, or TOOL_FAILED after a message. */
int job_start(struct job *job);
/* Does it and reports. `about` (given away): the subcommand's own members of the JSON object, and the plan and report
 * are added to it. Returns the exit code; after an interrupt it does not return. */
int job_run(struct job *job, json_t *about);
void job_end(struct job *job);

/* Lines that say what matrices are, "  X1 is points.npy, 1000 x 3 f32", for `operands`; those not opened are left out,
 * and one without a file is `constant`. The caller's to free; NULL: no memory. */
char *job_describe(int count, const char *const *names, zlg_matrix *const *matrices, const char *constant);
/* A library error on this job's context, with the operands where shapes or types are the matter. Returns TOOL_FAILED.
 */
int job_failed(const struct job *job, int status);

/* {"path", "rows", "columns", "type", "order"} */
json_t *matrix_json(const zlg_matrix *matrix);

#endif
