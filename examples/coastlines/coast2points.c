/* Turns the world's coastlines into points on the unit sphere: reads GSHHG as GMT packs it (Debian's gmt-gshhg-full and
 * gmt-gshhg-high, netCDF-4 and so HDF5 files) and writes two .npy files, the points (n x 3) and the kilometres of coast
 * that each stands for (n x 1), so that a sum over points is a sum over kilometres of coast.
 *
 * What is in a file (said by its variables' names and units; checked by drawing it). The globe is cut into square bins
 * of Bin_size_in_minutes, numbered from the north-west: east first, from Greenwich, then south. A bin holds segments,
 * pieces of shoreline that lie inside it: closed rings (islands, first point = last point) or lines from border to
 * border. Segments lie in the order of their bins, points in the order of their segments. A segment packs its number of
 * points (from bit 9), its level (bits 6 to 8: 1 ocean shore, the Antarctic ice front among them, 2 lake, 3 island in a
 * lake, 4 pond on it, 6 Antarctic grounding line) and the sides where it enters and leaves the bin, which do not matter
 * here. A point's coordinates are unsigned 16-bit numbers, stored as signed ones: 65535ths of the bin from its
 * south-west corner. */
#include <hdf5.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "zellige.h"

#define EARTH_KM 6371.0088 /* IUGG mean radius */
#define BLOCK 65536        /* points converted and written at a time */

/* Says "coast2points: WHAT: why" and ends the program. */
static void fail(const char *what, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fprintf(stderr, "coast2points: %s: ", what);
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
  va_end(arguments);
  exit(1);
}

/* The packed shorelines of one file. */
struct shores {
  double bin_degrees;
  long bins_around; /* bins in 360 degrees of longitude */
  long bins, segments, points;
  short *bin_segments; /* segments in each bin */
  int *packed;         /* points and level of each segment */
  short *east, *north; /* position in the bin; unsigned numbers in signed storage */
};

/* Reads a whole variable of one dimension; HDF5 converts its numbers to the type asked for. */
static void *read_variable(const char *path, hid_t file, const char *name, hid_t type, long *count) {
  hid_t set = H5Dopen2(file, name, H5P_DEFAULT);
  if (set < 0) fail(path, "no variable %s: not a GSHHG shoreline file of GMT", name);
  hid_t space = H5Dget_space(set);
  *count = (long)H5Sget_simple_extent_npoints(space);
  void *values = *count > 0 ? malloc((size_t)*count * H5Tget_size(type)) : NULL;
  if (!values) fail(path, "variable %s is empty, or too large for this machine's memory", name);
  if (H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0) fail(path, "variable %s cannot be read", name);
  H5Sclose(space);
  H5Dclose(set);
  return values;
}

static long read_number(const char *path, hid_t file, const char *name) {
  long count;
  int *value = read_variable(path, file, name, H5T_NATIVE_INT, &count);
  long number = value[0];
  free(value);
  return number;
}

static long segment_points(const struct shores *s, long segment) {
  return s->packed[segment] >> 9;
}
static int segment_level(const struct shores *s, long segment) {
  return (s->packed[segment] >> 6) & 7;
}

/* The counts must agree with each other, or every position after the first disagreement would be wrong. */
static void check_counts(const char *path, const struct shores *s) {
  long segments = 0, points = 0;
  for (long b = 0; b < s->bins; b++) segments += s->bin_segments[b];
  for (long k = 0; k < s->segments; k++) points += segment_points(s, k);
  if (segments != s->segments || points != s->points || s->bins % s->bins_around != 0)
    fail(path, "bins, segments and points do not add up");
}

static struct shores read_shores(const char *path) {
  struct shores s;
  long north_points;
  H5Eset_auto2(H5E_DEFAULT, NULL, NULL); /* we say ourselves what went wrong */
  hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
  if (file < 0) fail(path, "cannot be opened as a netCDF-4 (HDF5) file; Debian: apt-get install gmt-gshhg-full");
  s.bin_degrees = (double)read_number(path, file, "Bin_size_in_minutes") / 60;
  s.bins_around = read_number(path, file, "N_bins_in_360_longitude_range");
  s.bin_segments = read_variable(path, file, "N_segments_in_a_bin", H5T_NATIVE_SHORT, &s.bins);
  s.packed = read_variable(path, file, "Embedded_npts_levels_exit_entry_for_a_segment", H5T_NATIVE_INT, &s.segments);
  s.east = read_variable(path, file, "Relative_longitude_from_SW_corner_of_bin", H5T_NATIVE_SHORT, &s.points);
  s.north = read_variable(path, file, "Relative_latitude_from_SW_corner_of_bin", H5T_NATIVE_SHORT, &north_points);
  H5Fclose(file);
  if (north_points != s.points || s.bins_around < 1) fail(path, "bins, segments and points do not add up");
  check_counts(path, &s);
  return s;
}

static void free_shores(struct shores *s) {
  free(s->bin_segments);
  free(s->packed);
  free(s->east);
  free(s->north);
}

/* Point `point` of bin `bin` on the unit sphere; longitude and latitude (degrees) on the way. */
static void place(const struct shores *s, long bin, long point, double *longitude, double *latitude, double xyz[3]) {
  double unit = s->bin_degrees / 65535;
  *longitude = (double)(bin % s->bins_around) * s->bin_degrees + (unsigned short)s->east[point] * unit;
  *latitude = 90 - (double)(bin / s->bins_around + 1) * s->bin_degrees + (unsigned short)s->north[point] * unit;
  double lambda = *longitude * M_PI / 180, phi = *latitude * M_PI / 180;
  xyz[0] = cos(phi) * cos(lambda);
  xyz[1] = cos(phi) * sin(lambda);
  xyz[2] = sin(phi);
}

/* Where the points go: files of the final size, filled block by block. */
struct output {
  zlg_context *context;
  zlg_matrix *points, *lengths; /* lengths may be NULL */
  zlg_type type;
  int64_t written, pending;
  double xyz[BLOCK][3], km[BLOCK];
  float xyz32[BLOCK][3], km32[BLOCK];
};

static void check(struct output *out, int status) {
  if (status != ZLG_OK) fail("writing", "%s", zlg_context_message(out->context));
}

static void flush(struct output *out) {
  int64_t n = out->pending;
  const void *xyz = out->xyz, *km = out->km;
  if (out->type == ZLG_F32) {
    for (int64_t i = 0; i < n; i++) {
      for (int k = 0; k < 3; k++) out->xyz32[i][k] = (float)out->xyz[i][k];
      out->km32[i] = (float)out->km[i];
    }
    xyz = out->xyz32, km = out->km32;
  }
  if (n > 0) {
    check(out, zlg_matrix_write(out->points, out->written, n, 0, 3, ZLG_ROW_MAJOR, 3, xyz));
    if (out->lengths) check(out, zlg_matrix_write(out->lengths, out->written, n, 0, 1, ZLG_ROW_MAJOR, 1, km));
  }
  out->written += n;
  out->pending = 0;
}

/* One point for a run of links: their centre of gravity, put back on the sphere, and their length. */
static void emit(struct output *out, const double moment[3], double km) {
  double norm = sqrt(moment[0] * moment[0] + moment[1] * moment[1] + moment[2] * moment[2]);
  for (int k = 0; k < 3; k++) out->xyz[out->pending][k] = moment[k] / norm;
  out->km[out->pending] = km;
  if (++out->pending == BLOCK) flush(out);
}

/* Range and sum of what was used, for the summary. */
struct summary {
  long segments;
  double km, west, east, south, north;
};

static void widen(struct summary *sum, double longitude, double latitude) {
  sum->west = fmin(sum->west, longitude), sum->east = fmax(sum->east, longitude);
  sum->south = fmin(sum->south, latitude), sum->north = fmax(sum->north, latitude);
}

/* Cuts a segment into runs of `stride` links (the last may be shorter) and emits a point for each. Links of no length
 * (a point given twice) still count, with the least weight that keeps their centre defined. */
static void convert_segment(const struct shores *s, long bin, long first, long points, long stride, struct output *out,
                            struct summary *sum) {
  double a[3], b[3], longitude, latitude, moment[3] = {0, 0, 0}, km = 0;
  place(s, bin, first, &longitude, &latitude, a);
  widen(sum, longitude, latitude);
  for (long link = 1; link < points; link++, memcpy(a, b, sizeof a)) {
    place(s, bin, first + link, &longitude, &latitude, b);
    double chord = sqrt((b[0] - a[0]) * (b[0] - a[0]) + (b[1] - a[1]) * (b[1] - a[1]) + (b[2] - a[2]) * (b[2] - a[2]));
    double length = 2 * asin(chord / 2) * EARTH_KM;
    for (int k = 0; k < 3; k++) moment[k] += (length + 1e-9) * (a[k] + b[k]) / 2;
    km += length;
    widen(sum, longitude, latitude);
    if (link % stride == 0 || link == points - 1) {
      emit(out, moment, km);
      sum->km += km;
      moment[0] = moment[1] = moment[2] = km = 0;
    }
  }
}

/* A segment of n points has n - 1 links. */
static int64_t count_points(const struct shores *s, const char *levels, long stride) {
  int64_t count = 0;
  for (long k = 0; k < s->segments; k++)
    if (strchr(levels, '0' + segment_level(s, k))) count += (segment_points(s, k) - 1 + stride - 1) / stride;
  return count;
}

/* The least stride that gives no more than `most` points. A segment gives at least one, so very small numbers cannot be
 * met; beyond a stride of 1000 nothing changes any more. */
static long fit_stride(const struct shores *s, const char *levels, int64_t most) {
  long stride = 1;
  while (stride < 1000 && count_points(s, levels, stride) > most) stride++;
  return stride;
}

static struct summary convert(const struct shores *s, const char *levels, long stride, struct output *out) {
  struct summary sum = {0, 0, INFINITY, -INFINITY, INFINITY, -INFINITY};
  long segment = 0, first = 0;
  for (long bin = 0; bin < s->bins; bin++)
    for (long end = segment + s->bin_segments[bin]; segment < end; segment++) {
      if (strchr(levels, '0' + segment_level(s, segment))) {
        convert_segment(s, bin, first, segment_points(s, segment), stride, out, &sum);
        sum.segments++;
      }
      first += segment_points(s, segment);
    }
  flush(out);
  return sum;
}

/* Writing files needs no more than one worker. */
static zlg_context *open_context(void) {
  zlg_context *context;
  zlg_context_options options;
  zlg_context_options_init(&options);
  options.cpu_workers = 1;
  options.opencl_workers = options.cuda_workers = 0;
  if (zlg_context_create(&context, &options) != ZLG_OK) fail("starting", "%s", zlg_context_message(NULL));
  return context;
}

/* `lengths` may be NULL: then only the points are written. */
static void write_points(const struct shores *s, const char *levels, long stride, zlg_type type, const char *points,
                         const char *lengths) {
  struct output *out = calloc(1, sizeof *out);
  if (!out) fail("starting", "out of memory");
  int64_t count = count_points(s, levels, stride);
  out->context = open_context();
  out->type = type;
  check(out, zlg_matrix_create_npy(out->context, &out->points, points, type, count, 3, ZLG_ROW_MAJOR));
  if (lengths) check(out, zlg_matrix_create_npy(out->context, &out->lengths, lengths, type, count, 1, ZLG_ROW_MAJOR));
  struct summary sum = convert(s, levels, stride, out);
  check(out, zlg_matrix_close(out->points));
  if (out->lengths) check(out, zlg_matrix_close(out->lengths));
  zlg_matrix_release(out->points);
  zlg_matrix_release(out->lengths);
  zlg_context_release(out->context);
  free(out);
  printf("%lld points, one for %ld links of the shoreline: %.0f km of coast in %ld segments, longitude %.2f to %.2f, "
         "latitude %.2f to %.2f\n",
         (long long)count, stride, sum.km, sum.segments, sum.west, sum.east, sum.south, sum.north);
}

static const char usage[] =
    "usage: coast2points [--stride N | --at-most N] [--levels DIGITS] [--type f32|f64] FILE.nc POINTS.npy "
    "[LENGTHS.npy]\n"
    "  --stride N       one point for every N links of the shoreline (default 1)\n"
    "  --at-most N      the least stride that gives no more than N points\n"
    "  --levels DIGITS  1 ocean shore, 2 lakes, 3 islands in lakes, 4 ponds on them, 6 Antarctic grounding line (1)\n"
    "  --type f32|f64   element type of the files (f32)\n";

static void refuse(const char *what) {
  fprintf(stderr, "coast2points: %s\n%s", what, usage);
  exit(2);
}

struct choice {
  long stride, most; /* most: 0 where the stride is given */
  const char *levels;
  zlg_type type;
};

/* Takes one option with its value; 0 where it is unknown or the value wrong. */
static int take_option(struct choice *c, const char *option, const char *value) {
  if (strcmp(option, "--stride") == 0) return (c->stride = atol(value)) >= 1;
  if (strcmp(option, "--at-most") == 0) return (c->most = atol(value)) >= 1;
  if (strcmp(option, "--levels") == 0) return *(c->levels = value) && strspn(value, "12346") == strlen(value);
  if (strcmp(option, "--type") != 0) return 0;
  c->type = strcmp(value, "f32") == 0 ? ZLG_F32 : ZLG_F64;
  return strcmp(value, "f32") == 0 || strcmp(value, "f64") == 0;
}

int main(int argc, char **argv) {
  struct choice c = {1, 0, "1", ZLG_F32};
  int i = 1;
  for (; i < argc && strncmp(argv[i], "--", 2) == 0; i += 2) {
    if (strcmp(argv[i], "--help") == 0) return fputs(usage, stdout) < 0;
    if (!take_option(&c, argv[i], i + 1 < argc ? argv[i + 1] : "")) refuse("an option is unknown or its value wrong");
  }
  if (argc - i != 2 && argc - i != 3) refuse("two or three files are expected");
  struct shores s = read_shores(argv[i]);
  if (c.most > 0) c.stride = fit_stride(&s, c.levels, c.most);
  write_points(&s, c.levels, c.stride, c.type, argv[i + 1], argv[i + 2]); /* argv ends with NULL */
  free_shores(&s);
  return 0;
}
