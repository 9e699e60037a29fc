/* Clocks, medians, the context in use, and the interleaved comparison that every row of figures comes from. The machine
 * is shared and its speed wanders: single figures mean little, ratios taken within one repetition carry over. */
#include "bench/bench.h"

#include <dirent.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double seconds_of(clockid_t clock) {
  struct timespec now = {0, 0};
  clock_gettime(clock, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

double bench_wall_clock(void) {
  return seconds_of(CLOCK_MONOTONIC);
}

/* The kernel adds a running thread's time to its process at the scheduler's tick only, some milliseconds late; asking
 * for the thread's own clock brings it up to date. */
static double process_seconds(void) {
  DIR *threads = opendir("/proc/self/task");
  for (struct dirent *entry; threads && (entry = readdir(threads));) {
    clockid_t id = (clockid_t)strtol(entry->d_name, NULL, 10);
    if (id > 0) seconds_of((clockid_t)(~(unsigned)id << 3 | 6)); /* what pthread_getcpuclockid() makes of a thread */
  }
  if (threads) closedir(threads);
  return seconds_of(CLOCK_PROCESS_CPUTIME_ID);
}

double bench_clock(int workers) {
  return workers == 1 ? process_seconds() : bench_wall_clock();
}

static int ascending(const void *left, const void *right) {
  double a = *(const double *)left, b = *(const double *)right;
  return (a > b) - (a < b);
}

double bench_median(const double *values, int count) {
  double sorted[BENCH_MEDIAN];
  if (count < 1 || count > BENCH_MEDIAN) return NAN;
  memcpy(sorted, values, (size_t)count * sizeof *sorted);
  qsort(sorted, (size_t)count, sizeof *sorted, ascending);
  return 0.5 * (sorted[(count - 1) / 2] + sorted[count / 2]);
}

int bench_fail(struct bench_row *row, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(row->note, sizeof row->note, format, arguments);
  va_end(arguments);
  return -1;
}

void bench_note(struct bench_row *row, const char *format, ...) {
  size_t used = strlen(row->note);
  if (used > 0 && used + 2 < sizeof row->note) {
    memcpy(row->note + used, "; ", 3);
    used += 2;
  }
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(row->note + used, sizeof row->note - used, format, arguments);
  va_end(arguments);
}

void bench_say(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vfprintf(stderr, format, arguments);
  va_end(arguments);
  fputc('\n', stderr);
}

static zlg_context *context;
static int context_workers;

void bench_context_close(void) {
  zlg_context_release(context);
  context = NULL;
}

zlg_context *bench_context(int workers, struct bench_row *row) {
  if (context && context_workers == workers) return context;
  bench_context_close();
  zlg_context_options options;
  zlg_context_options_init(&options);
  options.mode = ZLG_RUNTIME_OWN;
  options.cpu_workers = workers;
  options.opencl_workers = options.cuda_workers = 0;
  if (zlg_context_create(&context, &options)) {
    context = NULL;
    bench_fail(row, "no context of %d workers: %s", workers, zlg_context_message(NULL));
    return NULL;
  }
  context_workers = workers;
  int obtained = zlg_context_worker_count(context);
  if (obtained != workers) {
    bench_fail(row, "asked for %d CPU workers, the runtime gave %d", workers, obtained);
    bench_context_close();
  }
  return context;
}

static int sample(struct bench_meter *meter, struct bench_row *row, double *value) {
  *value = meter->once(meter->state);
  if (*value >= 0) return 0;
  return row->note[0] ? -1 : bench_fail(row, "%s failed", meter->name);
}

/* One repetition: values[0] ours, values[1] the limit around it, then the others. */
static int repetition(struct bench_row *row, struct bench_meter *ours, struct bench_meter *limit,
                      struct bench_meter *others, int other_count, double *values) {
  double before = NAN, after = NAN;
  if (limit && sample(limit, row, &before)) return -1;
  if (sample(ours, row, &values[0])) return -1;
  if (limit && sample(limit, row, &after)) return -1;
  values[1] = 0.5 * (before + after);
  for (int k = 0; k < other_count; k++)
    if (sample(&others[k], row, &values[2 + k])) return -1;
  return 0;
}

int bench_compare(const struct bench_settings *settings, struct bench_row *row, struct bench_meter *ours,
                  struct bench_meter *limit, struct bench_meter *others, int other_count) {
  double values[2 + BENCH_PEERS][BENCH_REPETITIONS], ratios[2 + BENCH_PEERS][BENCH_REPETITIONS];
  for (int t = 0; t < settings->repetitions; t++) {
    double now[2 + BENCH_PEERS];
    if (repetition(row, ours, limit, others, other_count, now)) return -1;
    for (int k = 0; k < 2 + other_count; k++) {
      values[k][t] = now[k];
      ratios[k][t] = now[0] / now[k];
    }
  }
  row->ours = ours->median = bench_median(values[0], settings->repetitions);
  if (limit) {
    row->limit = limit->median = bench_median(values[1], settings->repetitions);
    row->fraction = limit->relative = bench_median(ratios[1], settings->repetitions);
  }
  for (int k = 0; k < other_count; k++) {
    others[k].median = bench_median(values[2 + k], settings->repetitions);
    others[k].relative = bench_median(ratios[2 + k], settings->repetitions);
  }
  return 0;
}

void bench_row_peers(struct bench_row *row, const struct bench_meter *meters, int count) {
  for (int k = 0; k < count; k++) {
    if (!isfinite(meters[k].median)) continue; /* went away */
    row->peers[row->peer_count].name = meters[k].name;
    row->peers[row->peer_count++].value = meters[k].median;
  }
}
