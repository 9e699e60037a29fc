/* The progress bar: see progress.h. A line is composed for the width at hand, from the richest form down to the
 * percentage. */
#include "tools/progress.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tools/interrupt.h"
#include "tools/number.h"
#include "tools/terminal.h"

enum { LINE = 512 };
static const double patience = 1; /* seconds before a bar is worth it; between lines where there is no terminal */
static const double frame = 0.09; /* seconds between two drawings */

/* How much one line tells. */
enum who { NOBODY, KINDS, WORKERS };
struct form {
  enum who who;
  bool rate, left;
  int least_bar;
};
static const struct form forms[] = {{WORKERS, true, true, 20}, {KINDS, true, true, 16},  {NOBODY, true, true, 10},
                                    {NOBODY, false, true, 6},  {NOBODY, false, true, 0}, {NOBODY, false, false, 0}};

struct line {
  char text[LINE];
  size_t length;
};

static void __attribute__((format(printf, 2, 3))) append(struct line *line, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  int added = vsnprintf(line->text + line->length, LINE - line->length, format, arguments);
  va_end(arguments);
  if (added > 0) line->length += (size_t)added;
  if (line->length >= LINE) line->length = LINE - 1;
}

static void append_workers(struct line *line, const struct progress *progress, const zlg_progress *now) {
  zlg_worker_info worker;
  for (int i = 0; i < now->worker_count; i++) {
    if (zlg_context_worker(progress->context, i, &worker)) continue;
    int shown = (int)strcspn(worker.name, "("); /* "OpenCL 0 (pthread…)": the device's own name is in the last table */
    while (shown > 0 && worker.name[shown - 1] == ' ') shown--;
    append(line, "  %.*s %.0f%%", shown, worker.name, 100 * now->worker_share[i]);
  }
}

static void append_kinds(struct line *line, const struct progress *progress, const zlg_progress *now) {
  int count[4] = {0};
  double share[4] = {0};
  zlg_worker_info worker;
  for (int i = 0; i < now->worker_count; i++) {
    if (zlg_context_worker(progress->context, i, &worker)) continue;
    count[worker.kind]++;
    share[worker.kind] += now->worker_share[i];
  }
  for (int kind = ZLG_WORKER_CPU; kind <= ZLG_WORKER_CUDA; kind++)
    if (count[kind])
      append(line, "  %d %s %.0f%%", count[kind], zlg_worker_kind_name((zlg_worker_kind)kind), 100 * share[kind]);
}

static void compose(struct line *line, const struct form *form, const struct progress *progress,
                    const zlg_progress *now) {
  line->length = 0;
  line->text[0] = 0;
  if (form->rate && now->work_done > 0)
    append(line, "  %s/s", show_count(now->work_done / now->seconds, progress->unit).s);
  if (form->left) append(line, "  %s left", show_clock(now->seconds_left).s);
  if (form->who == WORKERS) append_workers(line, progress, now);
  if (form->who == KINDS) append_kinds(line, progress, now);
}

static double fraction_done(const zlg_progress *now) {
  if (!(now->work_total > 0)) return 0;
  double fraction = now->work_done / now->work_total;
  return fraction > 1 ? 1 : fraction;
}

/* `cells` columns, an eighth of one fine where the characters are there. */
static void append_bar(struct line *line, double fraction, int cells, bool utf8, bool colour) {
  static const char *const eighths[] = {"", "\u258f", "\u258e", "\u258d", "\u258c", "\u258b", "\u258a", "\u2589"};
  int steps = utf8 ? 8 : 1;
  int done = (int)(fraction * cells * steps);
  int full = done / steps;
  append(line, "%s%s", utf8 ? "\u2595" : "[", colour ? "\033[32m" : "");
  for (int i = 0; i < full; i++) append(line, "%s", utf8 ? "\u2588" : "#");
  int rest = done % steps;
  append(line, "%s", eighths[rest]);
  for (int i = full + (rest > 0); i < cells; i++) append(line, "%s", utf8 ? " " : ".");
  append(line, "%s%s", colour ? "\033[0m" : "", utf8 ? "\u258f" : "]");
}

static void put(const struct line *line) {
  ssize_t written = write(STDERR_FILENO, line->text, line->length);
  (void)written; /* a terminal that went away is not the work's concern */
}

/* Columns of the line in `columns`. The bar takes what the words leave, at most 40. */
static struct line draw(const struct progress *progress, const zlg_progress *now, int width, int *columns) {
  const double fraction = fraction_done(now);
  const int percent_columns = 4;
  struct line words, line = {.length = 0};
  const struct form *form = forms;
  int room;
  for (;; form++) {
    compose(&words, form, progress, now);
    room = width - 1 - percent_columns - (int)words.length;
    bool last = form == &forms[sizeof forms / sizeof forms[0] - 1];
    if (last || room >= (form->least_bar ? form->least_bar + 3 : 0)) break;
  }
  append(&line, "%3.0f%%", floor(100 * fraction));
  int cells = form->least_bar ? room - 3 : 0;
  if (cells > 40) cells = 40;
  if (cells > 0) {
    append(&line, " ");
    append_bar(&line, fraction, cells, terminal_utf8(), terminal_colour(STDERR_FILENO));
  }
  append(&line, "%s", words.text);
  *columns = percent_columns + (cells > 0 ? cells + 3 : 0) + (int)words.length;
  return line;
}

static void redraw(struct progress *progress, const zlg_progress *now) {
  int columns;
  struct line line = draw(progress, now, terminal_width(STDERR_FILENO), &columns);
  struct line out = {.length = 0};
  append(&out, "\r%s", line.text);
  if (terminal_moves(STDERR_FILENO))
    append(&out, "\033[K");
  else
    append(&out, "%*s", columns < progress->drawn_columns ? progress->drawn_columns - columns : 0, "");
  put(&out);
  progress->drawn_columns = columns;
}

/* Where there is no terminal and progress is wanted: plain lines. */
static void print_line(struct progress *progress, const zlg_progress *now) {
  struct line words, out = {.length = 0};
  compose(&words, &forms[0], progress, now);
  append(&out, "%3.0f%%%s\n", floor(100 * fraction_done(now)), words.text);
  put(&out);
}

/* Whether now is the time to show something, and it should be. */
static bool due(const struct progress *progress, const zlg_progress *now, bool terminal) {
  if (progress->mode == PROGRESS_NEVER || (progress->mode == PROGRESS_AUTO && !terminal)) return false;
  if (!terminal && now->work_done >= now->work_total) return !progress->ended; /* a log gets its last line */
  bool started = progress->drawn_at > 0 || progress->mode == PROGRESS_ALWAYS;
  if (now->seconds - progress->drawn_at < (terminal && started ? frame : patience)) return false;
  return terminal_foreground(STDERR_FILENO);
}

int progress_report(void *user, const zlg_progress *now) {
  struct progress *progress = user;
  bool terminal = terminal_is(STDERR_FILENO);
  interrupt_catch();
  if (due(progress, now, terminal)) {
    progress->drawn_at = now->seconds;
    if (terminal)
      redraw(progress, now);
    else
      print_line(progress, now);
  }
  progress->ended = now->work_done >= now->work_total;
  return interrupt_signal() != 0;
}

/* A thread that speaks when a second has passed and nobody has taken the notice down. */
struct progress_notice {
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t down;
  bool is_down;
  const char *what;
  int drawn_columns;
};

static void *wait_and_speak(void *argument) {
  struct progress_notice *notice = argument;
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += (time_t)patience;
  pthread_mutex_lock(&notice->lock);
  int error = 0;
  while (!notice->is_down && !error) error = pthread_cond_timedwait(&notice->down, &notice->lock, &until);
  if (!notice->is_down && terminal_foreground(STDERR_FILENO)) {
    struct line line = {.length = 0};
    append(&line, "\r%.*s", terminal_width(STDERR_FILENO) - 1, notice->what);
    put(&line);
    notice->drawn_columns = (int)line.length - 1;
  }
  pthread_mutex_unlock(&notice->lock);
  return NULL;
}

void progress_wait(struct progress *progress, const char *what) {
  progress->notice = NULL;
  if (progress->mode == PROGRESS_NEVER || !terminal_is(STDERR_FILENO)) return;
  struct progress_notice *notice = calloc(1, sizeof *notice);
  if (!notice) return;
  notice->what = what;
  pthread_mutex_init(&notice->lock, NULL);
  pthread_cond_init(&notice->down, NULL);
  if (pthread_create(&notice->thread, NULL, wait_and_speak, notice))
    free(notice);
  else
    progress->notice = notice;
}

void progress_waited(struct progress *progress) {
  struct progress_notice *notice = progress->notice;
  if (!notice) return;
  pthread_mutex_lock(&notice->lock);
  notice->is_down = true;
  pthread_cond_signal(&notice->down);
  pthread_mutex_unlock(&notice->lock);
  pthread_join(notice->thread, NULL);
  progress->drawn_columns = notice->drawn_columns;
  progress->notice = NULL;
  pthread_cond_destroy(&notice->down);
  pthread_mutex_destroy(&notice->lock);
  free(notice);
  progress_clear(progress);
}

void progress_clear(struct progress *progress) {
  if (!progress->drawn_columns) return;
  struct line out = {.length = 0};
  if (terminal_moves(STDERR_FILENO))
    append(&out, "\r\033[K");
  else
    append(&out, "\r%*s\r", progress->drawn_columns, "");
  put(&out);
  progress->drawn_columns = 0;
}
