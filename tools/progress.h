/* The progress bar: percent, bar, rate, time left, who computes. On stderr, where that is a terminal and the work is
 * long. */
#ifndef ZLG_TOOL_PROGRESS_H
#define ZLG_TOOL_PROGRESS_H

#include <pthread.h>
#include <stdbool.h>

#include "zellige.h"

enum progress_mode { PROGRESS_AUTO = 0, PROGRESS_ALWAYS, PROGRESS_NEVER };

struct progress {
  enum progress_mode mode;
  const char *unit;               /* of work, singular: "pair" */
  const zlg_context *context;     /* whose workers are named; set once it exists */
  double drawn_at;                /* seconds of the request when it was last drawn */
  bool ended;                     /* all work was done when it was last asked */
  struct progress_notice *notice; /* between progress_wait() and progress_waited() */
  int drawn_columns;              /* what stands in the terminal's line now */
};

/* For zlg_context_options.progress, with a struct progress as its user. Also looks after the interrupt handlers, and
 * cancels after an interrupt. */
int progress_report(void *progress, const zlg_progress *now);
/* Around what tells no progress of its own and may last: after a second a terminal is told that `what` is under way. */
void progress_wait(struct progress *progress, const char *what);
void progress_waited(struct progress *progress);

/* Takes the bar away. */
void progress_clear(struct progress *progress);

#endif
