/* Files of calibrated models (model.h): StarPU's format for its tools, our own comments and a checksum for us. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "codelets/common/isa.h"
#include "codelets/common/model.h"
#include "zellige/status.h"

#define OUR_VERSION 1
#define FOLDER "codelets/45" /* StarPU's: the version of its format */
#define PREFIX "zlg_"

/* ---- the fitted curve ------------------------------------------------------------------------------------------- */

/* a and c of a n^b + c for a given b, weighted so that errors are relative; the sum of their squares. */
static double fit_linear(const struct zlg_curve *curve, double b, struct zlg_fit *fit) {
  double xx = 0, xw = 0, ww = 0, x1 = 0, w1 = 0;
  for (int i = 0; i < curve->count; i++) {
    double w = 1 / curve->points[i].seconds, x = pow(curve->points[i].size, b) * w;
    xx += x * x, xw += x * w, ww += w * w, x1 += x, w1 += w;
  }
  double determinant = xx * ww - xw * xw;
  fit->b = b;
  fit->a = determinant > 0 ? (x1 * ww - w1 * xw) / determinant : 0;
  fit->c = determinant > 0 ? (w1 * xx - x1 * xw) / determinant : 0;
  if (fit->c < 0 || determinant <= 0) fit->a = x1 / xx, fit->c = 0;
  if (fit->a < 0) fit->a = 0, fit->c = w1 / ww;
  double sum = 0;
  for (int i = 0; i < curve->count; i++) {
    double error = (fit->a * pow(curve->points[i].size, b) + fit->c) / curve->points[i].seconds - 1;
    sum += error * error;
  }
  return sum;
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

struct zlg_fit zlg_curve_fit(const struct zlg_curve *curve) {
  struct zlg_fit best = {NAN, NAN, NAN, NAN}, fit;
  double least = INFINITY, errors[ZLG_CURVE_POINTS];
  if (curve->count < 3) return best;
  for (int step = 10; step <= 250; step++) {
    double sum = fit_linear(curve, step / 100.0, &fit);
    if (sum < least) least = sum, best = fit;
  }
  for (int i = 0; i < curve->count; i++)
    errors[i] = fabs((best.a * pow(curve->points[i].size, best.b) + best.c) / curve->points[i].seconds - 1);
  qsort(errors, (size_t)curve->count, sizeof *errors, by_value);
  best.error = errors[curve->count / 2];
  return best;
}

/* ---- names ------------------------------------------------------------------------------------------------------ */

void zlg_model_host(char *host, size_t bytes) {
  const char *given = getenv("STARPU_HOSTNAME");
  if (given) {
    snprintf(host, bytes, "%s", given);
    return;
  }
  if (gethostname(host, bytes) != 0) snprintf(host, bytes, "unknown");
  host[bytes - 1] = '\0';
  host[strcspn(host, ".")] = '\0';
}

void zlg_model_path(const struct zlg_model *model, const char *directory, char *path, size_t bytes) {
  snprintf(path, bytes, "%s/" FOLDER "/" PREFIX "%s-%s.%s", directory, model->codelet, model->label, model->host);
}

static uint32_t checksum(const char *text, size_t length) {
  uint32_t hash = ZLG_HASH_SEED;
  for (size_t i = 0; i < length; i++) hash = (hash ^ (unsigned char)text[i]) * 16777619u;
  return hash;
}

/* ---- writing ---------------------------------------------------------------------------------------------------- */

struct text {
  char *start;
  size_t length, space;
};

static void __attribute__((format(printf, 2, 3))) add(struct text *text, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  int added = vsnprintf(text->start + text->length, text->space - text->length, format, arguments);
  va_end(arguments);
  if (added > 0) text->length += (size_t)added;
  if (text->length >= text->space) text->length = text->space - 1;
}

static void add_own_point(struct text *text, const char *word, const zlg_model_point *p) {
  add(text, "# %s %.17g %.17g %.17g %.17g %.17g %.17g %.17g %" PRId64 " %" PRId64 "\n", word, p->size, p->seconds,
      p->deviation, p->mean, p->spread, p->flops, p->bytes, p->samples, p->outliers);
}

static void add_own_head(struct text *text, const struct zlg_model *model) {
  const struct zlg_family *f = &model->family;
  add(text, "# codelet %s\n# label %s\n# instructions %s\n", model->codelet, model->label, model->instructions);
  add(text, "# family %d %d %d %" PRId64 " %" PRId64 "\n", f->what[0], f->what[1], f->what[2], f->width[0],
      f->width[1]);
  add(text, "# curves %d\n", model->curve_count);
  for (int i = 0; i < model->curve_count; i++) {
    const struct zlg_curve *curve = &model->curves[i];
    add(text, "# curve %d %d %d\n", (int)curve->kind, curve->count, curve->unseen_count);
    for (int k = 0; k < curve->count; k++) add_own_point(text, "point", &curve->points[k]);
    for (int k = 0; k < curve->unseen_count; k++) add_own_point(text, "unseen", &curve->unseen[k]);
  }
}

/* StarPU's numbers for kinds of workers are ours less one: 0 CPU, 1 CUDA, 2 OpenCL. */
static int starpu_kind(zlg_worker_kind kind) {
  return kind == ZLG_WORKER_CPU ? 0 : kind == ZLG_WORKER_CUDA ? 1 : 2;
}

static void add_starpu_curve(struct text *text, const struct zlg_curve *curve, int index) {
  static const char *const names[] = {"cpu0", "cuda0", "opencl0"};
  struct zlg_fit fit = zlg_curve_fit(curve);
  int kind = starpu_kind(curve->kind);
  add(text, "####################\n# COMB_%d\n# number of types devices\n1\n", index);
  add(text, "####################\n# DEV_0\n# device type (CPU - 0, CUDA - 1, OPENCL - 2)\n%d\n", kind);
  add(text, "####################\n# DEV_0\n# device id\n0\n");
  add(text, "####################\n# DEV_0\n# number of cores\n1\n");
  add(text, "##########\n# number of implementations\n1\n#####\n# Model for %s_impl0 (Comb%d)\n", names[kind], index);
  add(text, "# number of entries\n%d\n", curve->count);
  add(text, "# sumlnx\tsumlnx2\t\tsumlny\t\tsumlnxlny\talpha\t\tbeta\t\tn\tminx\t\tmaxx\n");
  add(text, "%-15e\t%-15e\t%-15e\t%-15e\t%-15e\t%-15e\t%d\t%-15d\t%-15d\n", 0., 0., 0., 0., NAN, NAN, 0, 0, 0);
  add(text, "# a\t\tb\t\tc\n%-15e\t%-15e\t%-15e\n", 1e6 * fit.a, fit.b, 1e6 * fit.c);
  add(text, "# not multiple-regression-base\n0\n");
  add(text, "# hash\t\tsize\t\tflops\t\tmean (us)\tdev (us)\tsum\t\tsum2\t\tn\n");
  for (int k = 0; k < curve->count; k++) {
    const zlg_model_point *p = &curve->points[k];
    double n = (double)p->samples, mean = 1e6 * p->mean, spread = 1e6 * p->spread;
    add(text, "%08" PRIx32 "\t%-15" PRIu64 "\t%-15e\t%-15e\t%-15e\t%-15e\t%-15e\t%" PRId64 "\n",
        zlg_hash_u64(ZLG_HASH_SEED, (uint64_t)p->size), (uint64_t)p->size, p->flops, mean, spread, n * mean,
        n * (mean * mean + spread * spread), p->samples);
  }
  add(text, "\n");
}

static void add_starpu_part(struct text *text, const struct zlg_model *model) {
  add(text, "##################\n# Performance Model Version\n45\n\n");
  add(text, "####################\n# COMBs\n# number of combinations\n%d\n", model->curve_count);
  for (int i = 0; i < model->curve_count; i++) add_starpu_curve(text, &model->curves[i], i);
}

static int failed(char *message, size_t bytes, const char *path) {
  int status = errno == ENOSPC ? ZLG_ENOSPC : errno == ENOENT ? ZLG_ENOENT : ZLG_EIO;
  snprintf(message, bytes, "%s: %s", path, strerror(errno));
  return status;
}

static int write_whole(int file, const char *text, size_t length) {
  while (length > 0) {
    ssize_t put = write(file, text, length);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return -1;
    text += put, length -= (size_t)put;
  }
  return 0;
}

static int make_folder(const char *directory, char *message, size_t bytes) {
  static const char *const parts[] = {"", "/codelets", "/" FOLDER};
  char path[1024];
  for (int i = 0; i < 3; i++) {
    snprintf(path, sizeof path, "%s%s", directory, parts[i]);
    if (mkdir(path, 0777) != 0 && errno != EEXIST) return failed(message, bytes, path);
  }
  return ZLG_OK;
}

int zlg_model_write(const char *directory, const struct zlg_model *model, char *message, size_t message_bytes) {
  char buffer[ZLG_MODEL_FILE_BYTES], path[1024], part[1024], head[64];
  struct text text = {buffer, 0, sizeof buffer};
  add_own_head(&text, model);
  add_starpu_part(&text, model);
  int head_length =
      snprintf(head, sizeof head, "# zellige model %d %08" PRIx32 "\n", OUR_VERSION, checksum(buffer, text.length));
  int status = make_folder(directory, message, message_bytes);
  if (status != ZLG_OK) return status;
  zlg_model_path(model, directory, path, sizeof path);
  snprintf(part, sizeof part, "%s/" FOLDER "/.zlg-XXXXXX", directory);
  int file = mkostemp(part, O_CLOEXEC);
  if (file < 0) return failed(message, message_bytes, path);
  bool good = write_whole(file, head, (size_t)head_length) == 0 && write_whole(file, buffer, text.length) == 0 &&
              fchmod(file, 0644) == 0 && fsync(file) == 0;
  if (!good) status = failed(message, message_bytes, path);
  close(file);
  if (good && rename(part, path) != 0) status = failed(message, message_bytes, path);
  if (status != ZLG_OK) unlink(part);
  return status;
}

/* ---- reading ---------------------------------------------------------------------------------------------------- */

/* The rest of the text, taken line by line. The first thing that is not as expected ends it. */
struct reader {
  char *at;
  bool failed;
};

/* The next line without its end, which must start with "# WORD "; what follows that. */
static char *take(struct reader *in, const char *word) {
  char *line = in->at, *end = line ? strchr(line, '\n') : NULL;
  size_t length = strlen(word);
  if (in->failed || !end || strncmp(line, "# ", 2) != 0 || strncmp(line + 2, word, length) != 0 ||
      line[2 + length] != ' ') {
    in->failed = true;
    return (char *)"";
  }
  *end = '\0';
  in->at = end + 1;
  return line + 2 + length + 1;
}

static void take_word(struct reader *in, const char *word, char *to, size_t bytes) {
  const char *found = take(in, word);
  size_t length = strlen(found);
  if (length == 0 || length >= bytes || strspn(found, "abcdefghijklmnopqrstuvwxyz0123456789_-") != length)
    in->failed = true;
  else
    memcpy(to, found, length + 1);
}

static int64_t whole(struct reader *in, char **at, int64_t least, int64_t most) {
  char *end;
  errno = 0;
  long long value = strtoll(*at, &end, 10);
  if (end == *at || errno || value < least || value > most) in->failed = true;
  *at = end;
  return value;
}

static double real(struct reader *in, char **at, double least) {
  char *end;
  double value = strtod(*at, &end);
  if (end == *at || !isfinite(value) || value < least) in->failed = true;
  *at = end;
  return value;
}

static void line_ends(struct reader *in, const char *at) {
  if (*at) in->failed = true;
}

static void take_point(struct reader *in, const char *word, zlg_model_point *p, double larger_than) {
  char *at = take(in, word);
  p->size = real(in, &at, 1);
  p->seconds = real(in, &at, 1e-12);
  p->deviation = real(in, &at, 0);
  p->mean = real(in, &at, 1e-12);
  p->spread = real(in, &at, 0);
  p->flops = real(in, &at, 0);
  p->bytes = real(in, &at, 0);
  p->samples = whole(in, &at, 1, INT64_MAX);
  p->outliers = whole(in, &at, 0, INT64_MAX);
  line_ends(in, at);
  if (!(p->size > larger_than) || p->flops + p->bytes <= 0) in->failed = true;
}

static void take_curve(struct reader *in, struct zlg_curve *curve) {
  char *at = take(in, "curve");
  curve->kind = (zlg_worker_kind)whole(in, &at, ZLG_WORKER_CPU, ZLG_WORKER_CUDA);
  curve->count = (int)whole(in, &at, 1, ZLG_CURVE_POINTS);
  curve->unseen_count = (int)whole(in, &at, 0, ZLG_CURVE_UNSEEN);
  line_ends(in, at);
  for (int i = 0; !in->failed && i < curve->count; i++)
    take_point(in, "point", &curve->points[i], i ? curve->points[i - 1].size : 0);
  for (int i = 0; !in->failed && i < curve->unseen_count; i++)
    take_point(in, "unseen", &curve->unseen[i], i ? curve->unseen[i - 1].size : 0);
}

static bool parse(char *text, struct zlg_model *model) {
  struct reader in = {.at = text};
  struct zlg_family *f = &model->family;
  take_word(&in, "codelet", model->codelet, sizeof model->codelet);
  take_word(&in, "label", model->label, sizeof model->label);
  take_word(&in, "instructions", model->instructions, sizeof model->instructions);
  char *at = take(&in, "family");
  for (int i = 0; i < 3; i++) f->what[i] = (int32_t)whole(&in, &at, INT32_MIN, INT32_MAX);
  for (int i = 0; i < 2; i++) f->width[i] = whole(&in, &at, 0, INT64_MAX - 1);
  line_ends(&in, at);
  at = take(&in, "curves");
  model->curve_count = (int)whole(&in, &at, 1, ZLG_MODEL_KINDS);
  line_ends(&in, at);
  for (int i = 0; !in.failed && i < model->curve_count; i++) take_curve(&in, &model->curves[i]);
  return !in.failed;
}

static int check_first_line(const char *text, size_t length, size_t *rest, char *message, size_t bytes) {
  int version = 0, used = 0;
  uint32_t sum = 0;
  if (sscanf(text, "# zellige model %d %8" SCNx32 "%n", &version, &sum, &used) != 2 || text[used] != '\n') {
    snprintf(message, bytes, "damaged: it does not begin as a model of zellige does");
    return ZLG_EFORMAT;
  }
  if (version != OUR_VERSION) {
    snprintf(message, bytes, "of version %d; this library reads version %d", version, OUR_VERSION);
    return ZLG_EFORMAT;
  }
  *rest = (size_t)used + 1;
  char again[64]; /* one way to write it, so that no byte can differ unseen */
  snprintf(again, sizeof again, "# zellige model %d %08" PRIx32 "\n", version, sum);
  if (checksum(text + *rest, length - *rest) == sum && strncmp(again, text, *rest) == 0) return ZLG_OK;
  snprintf(message, bytes, "damaged: its checksum does not fit what it holds");
  return ZLG_EFORMAT;
}

static int load_text(const char *path, char *text, size_t space, size_t *length, char *message, size_t bytes) {
  struct stat about;
  int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), status = ZLG_OK;
  if (file < 0) return failed(message, bytes, path);
  *length = 0;
  if (fstat(file, &about) != 0 || !S_ISREG(about.st_mode)) {
    errno = EINVAL;
    status = failed(message, bytes, path);
  }
  for (ssize_t got = 1; status == ZLG_OK && got > 0 && *length + 1 < space; *length += (size_t)(got > 0 ? got : 0)) {
    got = read(file, text + *length, space - 1 - *length);
    if (got < 0) status = failed(message, bytes, path);
  }
  close(file);
  text[*length] = '\0';
  return status;
}

int zlg_model_read(const char *path, struct zlg_model *model, char *message, size_t message_bytes) {
  char text[ZLG_MODEL_FILE_BYTES];
  size_t length = 0, rest = 0;
  *model = (struct zlg_model){.curve_count = 0};
  const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path, *dot = strchr(name, '.');
  int status = load_text(path, text, sizeof text, &length, message, message_bytes);
  if (status == ZLG_OK) status = check_first_line(text, length, &rest, message, message_bytes);
  if (status != ZLG_OK) return status;
  if (!dot || strlen(dot + 1) >= sizeof model->host || !parse(text + rest, model)) {
    snprintf(message, message_bytes, "damaged: it is not laid out as a model of zellige is");
    return ZLG_EFORMAT;
  }
  snprintf(model->host, sizeof model->host, "%s", dot + 1);
  char expected[128];
  snprintf(expected, sizeof expected, PREFIX "%s-%s.", model->codelet, model->label);
  if (strncmp(name, expected, strlen(expected)) == 0) return ZLG_OK;
  snprintf(message, message_bytes, "it holds the model of %s-%s, which is not its name", model->codelet, model->label);
  return ZLG_EFORMAT;
}

/* ---- directories ------------------------------------------------------------------------------------------------ */

static bool is_model_of(const char *name, const char *host) {
  const char *dot = strchr(name, '.');
  return strncmp(name, PREFIX, strlen(PREFIX)) == 0 && dot && (!host || strcmp(dot + 1, host) == 0);
}

void zlg_model_scan(const char *directory, const char *host, zlg_model_found_fn *found, void *user) {
  char path[1024], message[256];
  snprintf(path, sizeof path, "%s/" FOLDER, directory);
  DIR *folder = opendir(path);
  if (!folder) return;
  for (struct dirent *entry; (entry = readdir(folder));) {
    if (!is_model_of(entry->d_name, host)) continue;
    struct zlg_model model;
    snprintf(path, sizeof path, "%s/" FOLDER "/%s", directory, entry->d_name);
    bool good = zlg_model_read(path, &model, message, sizeof message) == ZLG_OK;
    found(user, path, good ? &model : NULL, good ? NULL : message);
  }
  closedir(folder);
}

struct skipped {
  bool of_other; /* another machine's models: whatever kernels it has */
  int count;
  char first[512];
};

static void use_found(void *user, const char *path, const struct zlg_model *model, const char *reason) {
  struct skipped *skipped = user;
  const char *present = zlg_isa_name(zlg_isa_current());
  char other[96];
  if (model && !skipped->of_other && strcmp(model->instructions, present) != 0) {
    snprintf(other, sizeof other, "measured with %s kernels; these are %s", model->instructions, present);
    reason = other;
  }
  if (!reason)
    zlg_model_use(model);
  else if (skipped->count++ == 0)
    snprintf(skipped->first, sizeof skipped->first, "%s: %s", path, reason);
}

void zlg_model_load(const char *directory, const char *of, char *warning, size_t warning_bytes) {
  struct skipped skipped = {.of_other = of != NULL};
  char host[65];
  zlg_model_host(host, sizeof host);
  zlg_model_forget();
  zlg_model_scan(directory, of ? of : host, use_found, &skipped);
  *warning = '\0';
  if (skipped.count)
    snprintf(warning, warning_bytes, "%d performance model%s skipped, the first one %s", skipped.count,
             skipped.count == 1 ? " was" : "s were", skipped.first);
}
