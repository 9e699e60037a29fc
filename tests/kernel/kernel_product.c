/* The CPU kernels of kernel_product against the long double reference: every kernel, type, storage order, odd size and
 * instruction set of this processor. */
#include <stdio.h>

#include "tests/kernel/reference.h"
#include "tests/support.h"

static void check(const char *what, struct tile *t) {
  tile_lay_out(t);
  reference_product(t);
  const bool whole = tile_run(t);
  const double error = tile_error(t);
  if (!whole || !(error <= 1))
    fprintf(stderr, "%s: %s kind %d type %d m %ld n %ld d %ld r %ld: error / bound %g%s\n", what,
            zlg_isa_name(zlg_isa_current()), t->args.kind, t->args.type, (long)t->args.m, (long)t->args.n,
            (long)t->args.d, (long)t->args.r, error, whole ? "" : ", wrote behind its scratch");
  CU_ASSERT(whole);
  CU_ASSERT(error <= 1);
}

static struct tile new_tile(zlg_kernel_kind kind, zlg_type type, int64_t m, int64_t n, int64_t d, int64_t r) {
  struct tile t = {.args = {.kind = kind,
                            .type = type,
                            .m = m,
                            .n = n,
                            .d = d,
                            .r = r,
                            .x1_order = ZLG_ROW_MAJOR,
                            .x2_order = ZLG_ROW_MAJOR,
                            .b_order = ZLG_ROW_MAJOR,
                            .isotropic = true,
                            .first = true,
                            .alpha = 1.7,
                            .gamma = 0.8,
                            .offset = 0.3,
                            .degree = 3}};
  tile_allocate(&t);
  return t;
}

static void random_case(zlg_kernel_kind kind, zlg_type type, int64_t m, int64_t n, int64_t d, int64_t r, int variant) {
  struct tile t = new_tile(kind, type, m, n, d, r);
  t.args.x1_order = variant & 1 ? ZLG_COLUMN_MAJOR : ZLG_ROW_MAJOR;
  t.args.x2_order = variant & 2 ? ZLG_COLUMN_MAJOR : ZLG_ROW_MAJOR;
  t.args.b_order = variant & 4 ? ZLG_COLUMN_MAJOR : ZLG_ROW_MAJOR;
  t.args.isotropic = !(variant & 8);
  t.pad1 = variant & 3, t.pad2 = variant % 3, t.padb = variant % 5;
  tile_fill(&t, (uint64_t)(m * 31 + n * 7 + d + variant), is_dot(kind) ? 1.2 : 4);
  for (int64_t e = 0; e < m * r; e++) t.acc[e] = NAN; /* first: never read */
  check("random", &t);
  tile_free(&t);
}

static void sizes(void) {
  static const int64_t points[] = {0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 67, 127};
  static const int64_t columns[] = {1, 2, 3, 10, 33};
  int variant = 0;
  for (int64_t k = 0; k < COUNT(all_kinds); k++)
    for (int64_t y = 0; y < COUNT(all_types); y++)
      for (int64_t m = 0; m < COUNT(points); m++)
        for (int64_t n = m % 2; n < COUNT(points); n += 2, variant++)
          random_case(all_kinds[k], all_types[y], points[m], points[n], 1 + variant % 6, columns[variant % 5], variant);
}

static void long_sums_and_dimensions(void) {
  for (int64_t y = 0; y < COUNT(all_types); y++)
    for (int64_t k = 0; k < COUNT(all_kinds); k++) {
      random_case(all_kinds[k], all_types[y], 5, 1031, 3, 1, (int)k);
      random_case(all_kinds[k], all_types[y], 1, 3001, 2, 3, (int)k + 8);
      random_case(all_kinds[k], all_types[y], 97, 523, 131, 1, (int)k);
      random_case(all_kinds[k], all_types[y], 97, 300, 7, 2, (int)k + 8);
    }
  random_case(ZLG_GAUSSIAN, ZLG_F32, 40, 70, 300, 7, 8);
  random_case(ZLG_GAUSSIAN, ZLG_F64, 40, 70, 300, 7, 8);
}

static void all(void) {
  sizes();
  long_sums_and_dimensions();
}
static void random_tiles_within_bound(void) {
  each_isa(all);
}

int main(int argc, char **argv) {
  static const struct zlg_test_case cases[] = {
      {"random tiles within the bound", random_tiles_within_bound},
      {NULL, NULL},
  };
  return zlg_test_main(argc, argv, cases);
}
