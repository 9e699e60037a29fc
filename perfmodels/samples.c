/* What the samples of one task say. The task takes its own time and what a busy machine adds: so the undisturbed ones
 * are the least, and lie close together. Delays may lie closer still, since an operating system hands out its time in
 * slices: a device's thread that waits for a core returns after eight milliseconds, to the microsecond. */
#include <math.h>
#include <stdlib.h>

#include "perfmodels/perfmodels.h"

#define CALM 0.1 /* relative width of samples that were not disturbed */
#define LOW 1.25 /* and how far above the least of all they may begin */

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Of sorted values. */
static double median_of(const double *values, int count) {
  return count % 2 ? values[count / 2] : 0.5 * (values[count / 2 - 1] + values[count / 2]);
}

/* The lowest calm run of `wanted` sorted times begins at *first. False where there is none, or others were faster: then
 * the least of all are nearest to the truth. */
static bool find_calm(const double *times, int count, int wanted, int *first) {
  for (*first = 0; *first + wanted <= count; ++*first)
    if (times[*first + wanted - 1] <= (1 + CALM) * times[*first]) {
      if (times[*first] <= LOW * times[count / 50]) return true;
      break;
    }
  *first = 0;
  return false;
}

/* Half of the sorted times lie closer to their median than this: the median deviation, to one sample. */
static double deviation_of(const double *times, int count) {
  double middle = median_of(times, count);
  int low = 0, high = count - 1;
  while (high - low > count / 2)
    if (middle - times[low] > times[high] - middle)
      low++;
    else
      high--;
  return fmax(middle - times[low], times[high] - middle);
}

/* Beside those `wanted`, what lies within six deviations of them around their median (or five percent, where it is
 * calm). Returns how many, from *first on. */
static int accept(const double *times, int count, int wanted, int *first) {
  int begin = *first, end = *first + wanted;
  double median = median_of(times + begin, wanted);
  double most = fmax(6 * deviation_of(times + begin, wanted), 0.05 * median);
  while (begin > 0 && times[begin - 1] >= median - most) begin--;
  while (end < count && times[end] <= median + most) end++;
  *first = begin;
  return end - begin;
}

bool zlg_samples_summarise(double *times, int measured, int wanted, zlg_model_point *point) {
  int first = 0;
  double sum = 0, away = 0, squares = 0;
  qsort(times, (size_t)measured, sizeof *times, by_value);
  bool calm = find_calm(times, measured, wanted, &first);
  int count = calm ? accept(times, measured, wanted, &first) : wanted;
  const double *accepted = times + first;
  point->seconds = median_of(accepted, count);
  for (int i = 0; i < count; i++) sum += accepted[i], away += fabs(accepted[i] - point->seconds);
  point->mean = sum / count;
  point->deviation = away / count;
  for (int i = 0; i < count; i++) squares += (accepted[i] - point->mean) * (accepted[i] - point->mean);
  point->spread = sqrt(squares / count);
  point->samples = count;
  point->outliers = measured - count;
  return calm;
}
