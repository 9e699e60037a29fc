/* Writes a GSHHG file in miniature, laid out as coast2points reads it, with a coast of known length: a quarter of a
 * meridian from the equator to the north pole at 180 degrees, then, in another bin, one from the south pole to the
 * equator at 270 degrees; beside them a lake. Bins of 90 degrees. make_shores FILE [wrong]     wrong: the counts do not
 * add up */
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BINS = 8, AROUND = 4, SEGMENTS = 3, QUARTER = 10, LAKE = 3, POINTS = 2 * QUARTER + LAKE };

static void put(hid_t file, const char *name, hid_t file_type, hid_t memory_type, hsize_t count, const void *values) {
  hid_t space = H5Screate_simple(1, &count, NULL);
  hid_t set = H5Dcreate2(file, name, file_type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  if (set < 0 || H5Dwrite(set, memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0) exit(1);
  H5Dclose(set);
  H5Sclose(space);
}

static void put_ints(hid_t file, const char *name, hsize_t count, const int *values) {
  put(file, name, H5T_STD_I32LE, H5T_NATIVE_INT, count, values);
}

static void put_shorts(hid_t file, const char *name, hsize_t count, const short *values) {
  put(file, name, H5T_STD_I16LE, H5T_NATIVE_SHORT, count, values);
}

/* Points, level, and closed-ring marks as the real files have them. */
static int pack(int points, int level) {
  return points << 9 | level << 6 | 4 << 3 | 4;
}

int main(int argc, char **argv) {
  if (argc < 2) return 2;
  short in_bin[BINS] = {0}, east[POINTS], north[POINTS];
  in_bin[1] = 2;          /* 90 to 180 E, northern hemisphere */
  in_bin[AROUND + 2] = 1; /* 180 to 270 E, southern hemisphere */
  int packed[SEGMENTS] = {pack(QUARTER, 1), pack(LAKE, 2), pack(QUARTER, 1)};
  for (int i = 0; i < QUARTER; i++) {
    int along = 65535 * i / (QUARTER - 1); /* unsigned 16-bit numbers in signed storage */
    east[i] = east[QUARTER + LAKE + i] = (short)65535;
    north[i] = north[QUARTER + LAKE + i] = (short)along;
  }
  for (int i = 0; i < LAKE; i++) east[QUARTER + i] = (short)(100 * i), north[QUARTER + i] = (short)(50 * i);
  if (argc > 2 && strcmp(argv[2], "wrong") == 0) in_bin[0] = 1;

  hid_t file = H5Fcreate(argv[1], H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  if (file < 0) return 1;
  put_ints(file, "Bin_size_in_minutes", 1, &(int){90 * 60});
  put_ints(file, "N_bins_in_360_longitude_range", 1, &(int){AROUND});
  put_shorts(file, "N_segments_in_a_bin", BINS, in_bin);
  put_ints(file, "Embedded_npts_levels_exit_entry_for_a_segment", SEGMENTS, packed);
  put_shorts(file, "Relative_longitude_from_SW_corner_of_bin", POINTS, east);
  put_shorts(file, "Relative_latitude_from_SW_corner_of_bin", POINTS, north);
  return H5Fclose(file) < 0;
}
