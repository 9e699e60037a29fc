/* The globe as a regular grid of longitudes and latitudes, for maps of anything known at points of the unit sphere.
 *   globe grid COLUMNS ROWS GRID.npy      writes the centres of the cells as points on the sphere (f32, COLUMNS*ROWS x
 * 3), from west to east (-180 to 180), then from south to north globe total COLUMNS ROWS DENSITY.npy  integrates a
 * density per unit of area, given at those centres, over the Earth (km^2 times the density's unit, hence km for km of
 * coast per km^2) */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "zellige.h"

#define EARTH_KM 6371.0088 /* IUGG mean radius */

static zlg_context *context;

static void fail(const char *why) {
  fprintf(stderr, "globe: %s\n", why);
  exit(1);
}

static void check(int status) {
  if (status != ZLG_OK) fail(zlg_context_message(context));
}

/* Reading and writing files needs no more than one worker. */
static void open_context(void) {
  zlg_context_options options;
  zlg_context_options_init(&options);
  options.cpu_workers = 1;
  options.opencl_workers = options.cuda_workers = 0;
  check(zlg_context_create(&context, &options));
}

static void *row_buffer(size_t bytes) {
  void *row = malloc(bytes);
  if (!row) fail("out of memory");
  return row;
}

static void write_grid(long columns, long rows, const char *path) {
  zlg_matrix *grid;
  float(*row)[3] = row_buffer((size_t)columns * sizeof *row);
  check(zlg_matrix_create_npy(context, &grid, path, ZLG_F32, (int64_t)columns * rows, 3, ZLG_ROW_MAJOR));
  for (long j = 0; j < rows; j++) {
    double phi = (((double)j + 0.5) / (double)rows - 0.5) * M_PI;
    for (long i = 0; i < columns; i++) {
      double lambda = (((double)i + 0.5) / (double)columns - 0.5) * 2 * M_PI;
      row[i][0] = (float)(cos(phi) * cos(lambda));
      row[i][1] = (float)(cos(phi) * sin(lambda));
      row[i][2] = (float)sin(phi);
    }
    check(zlg_matrix_write(grid, (int64_t)j * columns, columns, 0, 3, ZLG_ROW_MAJOR, 3, row));
  }
  check(zlg_matrix_close(grid));
  zlg_matrix_release(grid);
  free(row);
}

/* A cell between two parallels has the area R^2 (sin north - sin south) (east - west). */
static double total(long columns, long rows, const char *path) {
  zlg_matrix *density;
  zlg_matrix_info info;
  float *row = row_buffer((size_t)columns * sizeof *row);
  double sum = 0;
  check(zlg_matrix_open_npy(context, &density, path));
  check(zlg_matrix_get_info(density, &info));
  if (info.type != ZLG_F32 || info.rows != (int64_t)columns * rows || info.columns != 1)
    fail("the density must be f32 and have one column and COLUMNS*ROWS rows");
  for (long j = 0; j < rows; j++) {
    double south = ((double)j / (double)rows - 0.5) * M_PI, north = ((double)(j + 1) / (double)rows - 0.5) * M_PI;
    double area = EARTH_KM * EARTH_KM * (sin(north) - sin(south)) * 2 * M_PI / (double)columns;
    check(zlg_matrix_read(density, (int64_t)j * columns, columns, 0, 1, ZLG_ROW_MAJOR, 1, row));
    for (long i = 0; i < columns; i++) sum += area * row[i];
  }
  zlg_matrix_release(density);
  free(row);
  return sum;
}

int main(int argc, char **argv) {
  long columns = argc == 5 ? atol(argv[2]) : 0, rows = argc == 5 ? atol(argv[3]) : 0;
  int grid = argc == 5 && strcmp(argv[1], "grid") == 0;
  if (columns < 1 || rows < 1 || columns > 1000000 || rows > 1000000 || (!grid && strcmp(argv[1], "total") != 0)) {
    fputs("usage: globe grid COLUMNS ROWS GRID.npy | globe total COLUMNS ROWS DENSITY.npy\n", stderr);
    return 2;
  }
  open_context();
  if (grid)
    write_grid(columns, rows, argv[4]);
  else
    printf("%.0f\n", total(columns, rows, argv[4]));
  zlg_context_release(context);
  return 0;
}
