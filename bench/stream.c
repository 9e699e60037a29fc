/* Products of points that stay in their files: 10^7 x 3 from .npy against 1000 centres, beside the same product in
 * memory (its rate is the limit), and the memory that the library needed for it. By the wall clock: waiting for files
 * counts. */
#include <fcntl.h>
#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/product.h"

enum { POINTS = 10000000, CENTRES = 1000, DIMENSION = 3, CHUNK = 100000 };

/* The file is K's rows (a value for each point, written to a file too) or its columns (a sum over the points, whose
 * weights come from a file). */
struct stream_shape {
  bool sum;
};

struct stream_trial {
  const struct stream_shape *shape;
  struct bench_row *row;
  zlg_context *context;
  char points[4096], values[4096], result[4096];
  struct bench_product memory;
  double file_seconds, memory_seconds; /* processor time so far */
};

static int write_normal(zlg_context *context, const char *path, zlg_type type, int64_t columns, double deviation,
                        uint64_t seed, struct bench_row *row) {
  zlg_matrix *matrix = NULL;
  void *chunk = malloc(CHUNK * (size_t)columns * zlg_type_size(type));
  int status = -1;
  if (!chunk) return bench_fail(row, "no memory");
  if (zlg_matrix_create_npy(context, &matrix, path, type, POINTS, columns, ZLG_ROW_MAJOR)) goto failed;
  for (int64_t i = 0; i < POINTS; i += CHUNK) {
    bench_random_normal(type, chunk, CHUNK * columns, deviation, seed + (uint64_t)i);
    if (zlg_matrix_write(matrix, i, CHUNK, 0, columns, ZLG_ROW_MAJOR, columns, chunk)) goto failed;
  }
  if (zlg_matrix_close(matrix) == ZLG_OK) status = 0;
failed:
  if (status) bench_fail(row, "%s: %s", path, zlg_context_message(context));
  zlg_matrix_release(matrix);
  free(chunk);
  return status;
}

/* A line "VmHWM:  1234 kB" of /proc/self/status, in bytes; NaN where the system has none. */
static double process_bytes(const char *key) {
  char line[256];
  double kilobytes = NAN;
  FILE *file = fopen("/proc/self/status", "r");
  if (!file) return NAN;
  while (fgets(line, sizeof line, file))
    if (strncmp(line, key, strlen(key)) == 0) sscanf(line + strlen(key), ": %lf", &kilobytes);
  fclose(file);
  return 1024 * kilobytes;
}

static void peak_restart(void) {
  int file = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
  if (file < 0) return;
  ssize_t written = write(file, "5", 1);
  (void)written;
  close(file);
}

/* One product with the points in their file; the result is finished (on the disk, under its name) outside of the time.
 */
static double file_rate(struct stream_trial *trial) {
  zlg_context *context = trial->context;
  struct bench_product product = trial->memory; /* its centres and small arrays */
  zlg_matrix *file = NULL, *other = NULL;
  zlg_operator *K = NULL;
  bool sum = trial->shape->sum;
  double rate = -1;
  int status = zlg_matrix_open_npy(context, &file, trial->points);
  if (!status && sum) status = zlg_matrix_open_npy(context, &other, trial->values);
  if (!status && !sum)
    status = zlg_matrix_create_npy(context, &other, trial->result, product.type, POINTS, 1, ZLG_ROW_MAJOR);
  if (!status)
    status = bench_product_operator(context, &K, product.kernel, sum ? product.X1 : file, sum ? file : product.X2);
  double start = bench_wall_clock();
  if (!status) status = zlg_apply(K, ZLG_NOTRANS, 1, sum ? other : product.B, 0, sum ? product.Y : other);
  if (!status) rate = 1e-6 * POINTS * CENTRES / (bench_wall_clock() - start);
  if (!status) status = zlg_matrix_close(other);
  if (status) rate = bench_fail(trial->row, "%s", zlg_context_message(context));
  zlg_operator_release(K);
  zlg_matrix_release(file);
  zlg_matrix_release(other);
  return rate;
}

static double once_file(void *state) {
  struct stream_trial *trial = state;
  double start = bench_clock(1), rate = file_rate(trial);
  trial->file_seconds += bench_clock(1) - start;
  return rate;
}

static double once_memory(void *state) {
  struct stream_trial *trial = state;
  double start = bench_wall_clock(), processor = bench_clock(1);
  if (bench_product_apply(&trial->memory, trial->context, trial->row)) return -1;
  double rate = 1e-6 * POINTS * CENTRES / (bench_wall_clock() - start);
  trial->memory_seconds += bench_clock(1) - processor;
  return rate;
}

static int make_files(struct stream_trial *trial, const char *folder) {
  zlg_type type = trial->row->type;
  snprintf(trial->points, sizeof trial->points, "%s/points.npy", folder);
  snprintf(trial->values, sizeof trial->values, "%s/values.npy", folder);
  snprintf(trial->result, sizeof trial->result, "%s/result.npy", folder);
  if (write_normal(trial->context, trial->points, type, DIMENSION, 1 / sqrt(DIMENSION), 7, trial->row)) return -1;
  return trial->shape->sum ? write_normal(trial->context, trial->values, type, 1, 1, 11, trial->row) : 0;
}

/* The library's memory at its peak above what the process held once the context stood, in MB. */
static int measure_peak(struct stream_trial *trial, double *megabytes) {
  malloc_trim(0);
  peak_restart();
  double before = process_bytes("VmRSS");
  if (file_rate(trial) < 0) return -1;
  *megabytes = 1e-6 * (process_bytes("VmHWM") - before);
  return 0;
}

static int run_stream(const struct bench_case *self, const struct bench_settings *settings, struct bench_row *row) {
  const struct bench_kernel kernel = {ZLG_GAUSSIAN, DIMENSION, 1, false, 0, 0};
  struct stream_trial trial = {.shape = self->shape, .row = row};
  struct bench_meter ours = {"from files", once_file, &trial, 0, 0}, limit = {"from memory", once_memory, &trial, 0, 0};
  struct bench_settings fewer = *settings;
  const char *temporary = getenv("TMPDIR");
  char folder[3072];
  double megabytes;
  int status = -1;
  row->unit = "Mpair/s";
  if (fewer.repetitions > 5) fewer.repetitions = 5;
  snprintf(folder, sizeof folder, "%s/zlg-bench-XXXXXX", temporary && *temporary ? temporary : "/tmp");
  if (!mkdtemp(folder)) return bench_fail(row, "%s cannot be made", folder);
  bench_context_close();
  trial.context = bench_context(settings->workers, row);
  if (!trial.context || make_files(&trial, folder)) goto cleanup;
  if (bench_product_open(&trial.memory, trial.context, kernel, row->type, trial.shape->sum ? CENTRES : POINTS,
                         trial.shape->sum ? POINTS : CENTRES, row))
    goto cleanup;
  if (measure_peak(&trial, &megabytes)) goto cleanup;
  trial.file_seconds = trial.memory_seconds = 0;
  if (bench_compare(&fewer, row, &ours, &limit, NULL, 0)) goto cleanup;
  /* The limit is measured twice a repetition. */
  bench_note(row, "limit: from memory; %.2f of its processor time", 2 * trial.file_seconds / trial.memory_seconds);
  bench_note(row, "peak %.0f MB above the start, 200 allowed", megabytes);
  status = 0;
cleanup:
  bench_product_close(&trial.memory);
  unlink(trial.points);
  unlink(trial.values);
  unlink(trial.result);
  rmdir(folder);
  return status;
}

const struct bench_case bench_stream_cases[] = {
    {"stream/kernel/d3-1e7", run_stream, &(const struct stream_shape){.sum = false}, 0, 0},
    {"stream/kernel/d3-1e7-sum", run_stream, &(const struct stream_shape){.sum = true}, 0, 0},
    {NULL, NULL, NULL, 0, 0},
};
