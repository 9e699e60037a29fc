/* Numbers as people write and read them: see number.h. */
#include "tools/number.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool parse_int64(const char *text, int64_t *value) {
  char *end;
  errno = 0;
  long long number = strtoll(text, &end, 10);
  if (end == text || *end || errno) return false;
  *value = number;
  return true;
}

bool parse_double(const char *text, double *value) {
  char *end;
  double number = strtod(text, &end);
  if (end == text || *end) return false;
  *value = number;
  return true;
}

bool parse_bytes(const char *text, int64_t *bytes) {
  static const char prefixes[] = "kmgt";
  char *end;
  double number = strtod(text, &end);
  if (end == text || !(number >= 0)) return false;
  const char *prefix = *end ? strchr(prefixes, *end | 0x20) : NULL;
  if (prefix) {
    end++;
    double base = *end == 'i' ? 1024 : 1000;
    end += *end == 'i';
    number *= pow(base, (double)(prefix - prefixes + 1));
  }
  if (*end == 'B') end++;
  if (*end || !(number < 0x1p63)) return false;
  *bytes = (int64_t)number;
  return true;
}

bool parse_shape(const char *text, int64_t *rows, int64_t *columns) {
  const char *cross = strchr(text, 'x');
  char left[24];
  size_t length = cross ? (size_t)(cross - text) : 0;
  if (!length || length >= sizeof left) return false;
  memcpy(left, text, length);
  left[length] = 0;
  int64_t r, c;
  if (!parse_int64(left, &r) || !parse_int64(cross + 1, &c)) return false;
  *rows = r;
  *columns = c;
  return true;
}

double *parse_list(const char *text, size_t *count) {
  size_t items = 1;
  for (const char *p = text; *p; p++) items += *p == ',';
  double *list = malloc(items * sizeof *list);
  *count = 0;
  for (const char *p = text; list && *count < items; p++) {
    char *end;
    list[*count] = strtod(p, &end);
    if (end == p || (*end && *end != ',')) {
      free(list);
      return NULL;
    }
    ++*count;
    p = end;
  }
  return list;
}

/* Three significant digits. */
static struct text three_digits(double value, const char *space, const char *prefix, const char *unit) {
  struct text text;
  int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  snprintf(text.s, sizeof text.s, "%.*f%s%s%s", decimals, value, space, prefix, unit);
  return text;
}

static struct text with_prefix(double value, double base, const char *const *prefixes, const char *unit) {
  if (!isfinite(value)) return (struct text){"unknown"};
  int step = 0;
  while (value >= base * (base == 1000 ? 0.9995 : 1) && prefixes[step + 1]) {
    value /= base;
    step++;
  }
  if (step || value != floor(value)) return three_digits(value, " ", prefixes[step], unit);
  struct text text;
  snprintf(text.s, sizeof text.s, "%.0f%s%s", value, *unit ? " " : "", unit);
  return text;
}

static const char *const decimal[] = {"", "k", "M", "G", "T", "P", "E", NULL};
static const char *const binary[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", NULL};

struct text show_bytes(double bytes) {
  if (bytes >= 1e6 && fmod(bytes, 1e6) == 0) return show_traffic(bytes);
  return with_prefix(bytes, 1024, binary, "B");
}

struct text show_traffic(double bytes) {
  return with_prefix(bytes, 1000, decimal, "B");
}

struct text show_count(double count, const char *unit) {
  return with_prefix(count, 1000, decimal, unit);
}

struct text show_seconds(double seconds) {
  struct text text;
  if (!isfinite(seconds)) return (struct text){"unknown"};
  if (seconds == 0) return (struct text){"0 s"};
  if (seconds < 0.9995e-3) return three_digits(seconds * 1e6, " ", "u", "s");
  if (seconds < 0.9995) return three_digits(seconds * 1e3, " ", "m", "s");
  if (seconds < 59.95) return three_digits(seconds, " ", "", "s");
  double whole = round(seconds);
  if (whole < 3600)
    snprintf(text.s, sizeof text.s, "%.0f min %02.0f s", floor(whole / 60), fmod(whole, 60));
  else
    snprintf(text.s, sizeof text.s, "%.0f h %02.0f min", floor(whole / 3600), floor(fmod(whole, 3600) / 60));
  return text;
}

struct text show_clock(double seconds) {
  struct text text;
  if (!isfinite(seconds)) return (struct text){"--:--"};
  double whole = ceil(seconds);
  if (whole < 3600)
    snprintf(text.s, sizeof text.s, "%.0f:%02.0f", floor(whole / 60), fmod(whole, 60));
  else
    snprintf(text.s, sizeof text.s, "%.0f:%02.0f:%02.0f", floor(whole / 3600), floor(fmod(whole, 3600) / 60),
             fmod(whole, 60));
  return text;
}

struct text show_percent(double fraction) {
  struct text text;
  if (isfinite(fraction))
    snprintf(text.s, sizeof text.s, "%.1f %%", 100 * fraction);
  else
    snprintf(text.s, sizeof text.s, "-");
  return text;
}
