/* The CPU kernels of kron_factor against a long double reference: random and awkward shapes, both storage orders on
 * either side, every instruction set of this processor. Operands and scratch end at a page that nobody may touch. */
#define _DEFAULT_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "codelets/kron_factor/args.h"
#include "tests/support.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))
enum { UNTOUCHED = 0xa5 };

/* ---- memory between pages that fault ---- */

struct region {
  unsigned char *pages, *data;
  size_t mapped, bytes;
};

/* `bytes` up to the page that faults; all is filled with `fill`. */
static struct region region_of(size_t bytes, int fill) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE), inside = (bytes + page - 1) / page * page;
  struct region r = {.mapped = inside + 2 * page, .bytes = bytes};
  r.pages = mmap(NULL, r.mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (r.pages == MAP_FAILED || mprotect(r.pages, page, PROT_NONE) ||
      mprotect(r.pages + page + inside, page, PROT_NONE)) {
    perror("mmap");
    exit(1);
  }
  r.data = r.pages + page + inside - bytes;
  memset(r.pages + page, fill, inside);
  return r;
}

/* Nothing was written in front of the data. */
static bool region_whole(const struct region *r, int fill) {
  for (const unsigned char *at = r->pages + sysconf(_SC_PAGESIZE); at < r->data; at++)
    if (*at != fill) return false;
  return true;
}

static void region_free(struct region *r) {
  munmap(r->pages, r->mapped);
}

/* ---- blocks ---- */

/* Values are row-major, a vector after the other, and exact in the type. */
struct block {
  struct zlg_kron_factor_args args;
  int64_t in, out, factor_elements, x_ld, y_ld;
  double *x, *factors, *before;
  long double *value, *bound;
  struct region x_data, factor_data;
};

static size_t element_bytes(zlg_type type) {
  return type == ZLG_F32 ? 4 : 8;
}

static double rounded(zlg_type type, double value) {
  return type == ZLG_F32 ? (double)(float)value : value;
}

/* Sizes are "PxQ" or "P", each perhaps "^n", separated by blanks. */
static struct zlg_kron_factor_args args_of(const char *sizes, zlg_type type, int64_t vectors) {
  struct zlg_kron_factor_args args = {
      .type = type, .vectors = vectors, .x_order = ZLG_ROW_MAJOR, .y_order = ZLG_ROW_MAJOR, .alpha = 1};
  while (*sizes) {
    char *end;
    int p = (int)strtol(sizes, &end, 10), q = p, n = 1;
    if (*end == 'x') q = (int)strtol(end + 1, &end, 10);
    if (*end == '^') n = (int)strtol(end + 1, &end, 10);
    for (; n > 0; n--, args.count++) args.p[args.count] = p, args.q[args.count] = q;
    sizes = *end ? end + 1 : end;
  }
  for (int i = 0; i < args.count; i++) args.turn[i] = (int8_t)(args.count - 1 - i);
  return args;
}

/* A factor applied to the tensors of all vectors, in values and in their absolute values. */
static void reference_step(int64_t lead, int64_t p, int64_t q, int64_t trail, const double *factor,
                           const long double *x, const long double *ax, long double *y, long double *ay) {
  memset(y, 0, (size_t)(lead * q * trail) * sizeof *y);
  memset(ay, 0, (size_t)(lead * q * trail) * sizeof *ay);
  for (int64_t l = 0; l < lead; l++)
    for (int64_t j = 0; j < q; j++)
      for (int64_t i = 0; i < p; i++) {
        const long double f = factor[i * q + j], af = fabsl(f);
        const int64_t to = (l * q + j) * trail, from = (l * p + i) * trail;
        for (int64_t t = 0; t < trail; t++) y[to + t] += f * x[from + t], ay[to + t] += af * ax[from + t];
      }
}

/* value = alpha X F + beta Y. Each factor is a sum of p products, so that the chain is off by at most gamma_(p_1 + …)
 * of the same product of absolute values; alpha and beta, rounded to the type, and their sum add four roundings. */
static void reference(struct block *b) {
  const struct zlg_kron_factor_args *a = &b->args;
  int64_t extent[ZLG_KRON_FACTORS], size = a->vectors * b->in, widest = size;
  double terms = 4;
  for (int i = 0; i < a->count; i++) extent[i] = a->p[i], terms += a->p[i];
  for (int i = 0; i < a->count; i++) {
    size = size / a->p[a->turn[i]] * a->q[a->turn[i]];
    widest = size > widest ? size : widest;
  }
  long double *room = malloc(4 * (size_t)widest * sizeof *room), *x = room, *y = room + 2 * widest;
  for (int64_t e = 0; e < a->vectors * b->in; e++) x[e] = b->x[e], x[widest + e] = fabs(b->x[e]);
  for (int i = 0; i < a->count; i++) {
    const int f = a->turn[i];
    const double *factor = b->factors;
    int64_t lead = a->vectors, trail = 1;
    for (int e = 0; e < f; e++) factor += a->p[e] * a->q[e], lead *= extent[e];
    for (int e = f + 1; e < a->count; e++) trail *= extent[e];
    reference_step(lead, a->p[f], a->q[f], trail, factor, x, x + widest, y, y + widest);
    extent[f] = a->q[f];
    long double *last = x;
    x = y, y = last;
  }
  const long double gamma = zlg_test_gamma(terms, a->type);
  for (int64_t e = 0; e < a->vectors * b->out; e++) {
    const long double y0 = a->beta != 0 ? b->before[e] : 0;
    b->value[e] = a->alpha * x[e] + a->beta * y0;
    b->bound[e] = gamma * (fabsl(a->alpha) * x[widest + e] + fabsl(a->beta * y0));
  }
  free(room);
}

/* Room for a block and random values; `pad` is what the leading dimensions have beyond the least. */
static struct block new_block(struct zlg_kron_factor_args args, uint64_t seed, int64_t pad) {
  struct block b = {.args = args, .in = 1, .out = 1};
  for (int i = 0; i < args.count; i++)
    b.in *= args.p[i], b.out *= args.q[i], b.factor_elements += (int64_t)args.p[i] * args.q[i];
  b.x_ld = (args.x_order == ZLG_ROW_MAJOR ? b.in : args.vectors) + pad;
  b.y_ld = (args.y_order == ZLG_ROW_MAJOR ? b.out : args.vectors) + pad;
  b.x = malloc((size_t)(args.vectors * b.in) * sizeof *b.x);
  b.factors = malloc((size_t)b.factor_elements * sizeof *b.factors);
  b.before = malloc((size_t)(args.vectors * b.out) * sizeof *b.before);
  b.value = malloc((size_t)(args.vectors * b.out) * sizeof *b.value);
  b.bound = malloc((size_t)(args.vectors * b.out) * sizeof *b.bound);
  for (int64_t e = 0; e < args.vectors * b.in; e++) b.x[e] = rounded(args.type, zlg_test_uniform(&seed) - 0.4);
  for (int64_t e = 0; e < b.factor_elements; e++) b.factors[e] = rounded(args.type, zlg_test_uniform(&seed) - 0.4);
  for (int64_t i = 0, e = 0; i < args.count; e += (int64_t)args.p[i] * args.q[i], i++)
    if (args.p[i] * args.q[i] == 1) b.factors[e] = b.factors[e] < 0 ? -1 : 1; /* many of them leave f32's range else */
  for (int64_t e = 0; e < args.vectors * b.out; e++) b.before[e] = rounded(args.type, zlg_test_uniform(&seed) - 0.5);
  return b;
}

static size_t matrix_bytes(const struct block *b, zlg_order order, int64_t elements, int64_t ld) {
  const int64_t lines = order == ZLG_ROW_MAJOR ? b->args.vectors : elements;
  const int64_t length = order == ZLG_ROW_MAJOR ? elements : b->args.vectors;
  return (size_t)((lines - 1) * ld + length) * element_bytes(b->args.type);
}

/* The operands in memory; between the lines of X lie NaN. */
static void lay_out(struct block *b) {
  const struct zlg_kron_factor_args *a = &b->args;
  b->x_data = region_of(matrix_bytes(b, a->x_order, b->in, b->x_ld), 0xff);
  b->factor_data = region_of((size_t)b->factor_elements * element_bytes(a->type), 0xff);
  for (int64_t v = 0; v < a->vectors; v++)
    for (int64_t k = 0; k < b->in; k++)
      zlg_test_set(a->type, a->x_order, b->x_ld, b->x_data.data, v, k, b->x[v * b->in + k]);
  for (int64_t e = 0; e < b->factor_elements; e++)
    zlg_test_set(a->type, ZLG_ROW_MAJOR, b->factor_elements, b->factor_data.data, 0, e, b->factors[e]);
}

static void free_block(struct block *b) {
  free(b->x), free(b->factors), free(b->before), free(b->value), free(b->bound);
  region_free(&b->x_data), region_free(&b->factor_data);
}

/* Vectors first to first + count of the block, as a task of their own; the result, a vector after the other, is the
 * caller's to free. With beta = 0, Y holds NaN. */
static double *run_part(const struct block *b, int64_t first, int64_t count) {
  struct zlg_kron_factor_args a = b->args;
  a.vectors = count;
  const struct block part = {.args = a};
  const size_t size = element_bytes(a.type);
  const int64_t y_ld = a.y_order == ZLG_ROW_MAJOR ? b->y_ld : b->y_ld - b->args.vectors + count;
  struct region y = region_of(matrix_bytes(&part, a.y_order, b->out, y_ld), UNTOUCHED);
  for (int64_t v = 0; v < count; v++)
    for (int64_t k = 0; k < b->out; k++)
      zlg_test_set(a.type, a.y_order, y_ld, y.data, v, k, a.beta != 0 ? b->before[(first + v) * b->out + k] : NAN);
  struct region scratch = region_of(ZLG_CPU(zlg_kron_factor_scratch)(&a), 0xff);
  CU_ASSERT(scratch.bytes % 64 == 0);
  const struct zlg_kron_factor_operands operands = {
      .x = b->x_data.data + (size_t)(a.x_order == ZLG_ROW_MAJOR ? first * b->x_ld : first) * size,
      .ldx = b->x_ld,
      .factors = b->factor_data.data,
      .y = y.data,
      .ldy = y_ld};
  ZLG_CPU(zlg_kron_factor_cpu)(&a, &operands, scratch.data);
  double *result = malloc((size_t)(count * b->out) * sizeof *result);
  for (int64_t v = 0; v < count; v++)
    for (int64_t k = 0; k < b->out; k++) result[v * b->out + k] = zlg_test_get(a.type, a.y_order, y_ld, y.data, v, k);
  /* What lies between the lines, and in front of all. */
  const int64_t length = a.y_order == ZLG_ROW_MAJOR ? b->out : count;
  int64_t written = 0;
  for (size_t at = 0; at < y.bytes; at++)
    if ((int64_t)(at / size) % y_ld >= length) written += y.data[at] != UNTOUCHED;
  CU_ASSERT(written == 0);
  CU_ASSERT(region_whole(&y, UNTOUCHED));
  CU_ASSERT(region_whole(&scratch, 0xff));
  region_free(&y), region_free(&scratch);
  return result;
}

static double *run(const struct block *b) {
  return run_part(b, 0, b->args.vectors);
}

static void describe(const struct block *b, const char *what) {
  const struct zlg_kron_factor_args *a = &b->args;
  fprintf(stderr, "%s: %s type %d orders %d %d vectors %ld alpha %g beta %g:", zlg_isa_name(zlg_isa_current()), what,
          a->type, a->x_order, a->y_order, (long)a->vectors, a->alpha, a->beta);
  for (int i = 0; i < a->count; i++) fprintf(stderr, " %dx%d (%d)", a->p[i], a->q[i], a->turn[i]);
  fprintf(stderr, "\n");
}

/* One run within `times` the bound (0: exact). */
static void check_run(const struct block *b, long double times) {
  double *result = run(b);
  int64_t wrong = 0;
  for (int64_t e = 0; e < b->args.vectors * b->out; e++)
    wrong += !(fabsl(result[e] - b->value[e]) <= times * b->bound[e]);
  if (wrong > 0) describe(b, "outside the bound");
  CU_ASSERT(wrong == 0);
  free(result);
}

/* Calls the body once per instruction set that this processor has; references are computed once for all. */
static void each_isa(void (*body)(const struct block *b, long double number), const struct block *b,
                     long double number) {
  const enum zlg_isa detected = zlg_isa_detect();
  for (int isa = ZLG_ISA_BASELINE; isa <= (int)detected; isa++)
    if (zlg_isa_force((enum zlg_isa)isa) == (enum zlg_isa)isa) body(b, number);
  zlg_isa_force(detected);
}

/* variant: storage orders in bits 0 and 1, alpha and beta in bits 2 and 3. */
static void set_variant(struct zlg_kron_factor_args *args, int variant) {
  args->x_order = variant & 1 ? ZLG_COLUMN_MAJOR : ZLG_ROW_MAJOR;
  args->y_order = variant & 2 ? ZLG_COLUMN_MAJOR : ZLG_ROW_MAJOR;
  args->alpha = variant & 4 ? 1.7 : 1;
  args->beta = variant & 8 ? -0.3 : 0;
}

static void random_values(struct zlg_kron_factor_args args, int variant, uint64_t seed, int64_t pad) {
  set_variant(&args, variant);
  struct block b = new_block(args, seed, pad);
  lay_out(&b);
  reference(&b);
  each_isa(check_run, &b, 1);
  free_block(&b);
}

/* ---- cases ---- */

/* Multiply-adds of a whole block in the order of its turns. */
static double work_of(const struct zlg_kron_factor_args *args) {
  double size = (double)args->vectors, sum = 0;
  for (int i = 0; i < args->count; i++) size *= args->p[i];
  for (int i = 0; i < args->count; i++) {
    size = size / args->p[args->turn[i]] * args->q[args->turn[i]];
    sum += size * args->p[args->turn[i]];
  }
  return sum;
}

/* 1 to 8 factors of 1 to 70 rows and columns, up to 70 vectors, in any order of the factors. */
static struct zlg_kron_factor_args random_args(uint64_t *state, zlg_type type) {
  struct zlg_kron_factor_args args;
  do {
    args = (struct zlg_kron_factor_args){.type = type, .count = 1 + (int)(zlg_test_random(state) % 8)};
    args.vectors = (int64_t)exp(zlg_test_uniform(state) * log(71));
    for (int i = 0; i < args.count; i++) {
      const double most = args.count < 3 || zlg_test_random(state) % 2 ? 71 : 8;
      args.p[i] = (int32_t)exp(zlg_test_uniform(state) * log(most));
      args.q[i] = (int32_t)exp(zlg_test_uniform(state) * log(most));
      args.turn[i] = (int8_t)i;
    }
    for (int i = args.count - 1; i > 0; i--) {
      const int k = (int)(zlg_test_random(state) % (uint64_t)(i + 1));
      const int8_t turn = args.turn[i];
      args.turn[i] = args.turn[k], args.turn[k] = turn;
    }
  } while (work_of(&args) > 3e5);
  return args;
}

static void random_shapes(void) {
  uint64_t state = 5;
  for (int i = 0; i < 480; i++) {
    const struct zlg_kron_factor_args args = random_args(&state, i % 2 ? ZLG_F64 : ZLG_F32);
    random_values(args, i / 2 % 16, (uint64_t)i, i % 3 * 5);
  }
}

/* Numbers of vectors around whole panels, and trailing extents a little beyond one vector. */
static void ragged_panels(void) {
  static const char *const sizes[] = {"3", "5x2 5", "4x3 17", "3x5 5x7", "2^5", "8x1 1x9", "1x6 2"};
  static const int64_t vectors[] = {1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 47, 49, 63, 64, 65, 129};
  for (int i = 0; i < COUNT(sizes); i++)
    for (int k = 0; k < COUNT(vectors); k++)
      for (int variant = 0; variant < 4; variant++)
        random_values(args_of(sizes[i], (i + k) % 2 ? ZLG_F32 : ZLG_F64, vectors[k]), variant + (i + k) % 4 * 4,
                      (uint64_t)(i * 16 + k), k % 2);
}

/* Vectors that leave the second cache, factors that leave the first, and as many factors as a task takes. */
static void large_shapes(void) {
  static const struct {
    const char *sizes;
    int64_t vectors;
    int variant;
  } cases[] = {{"8^6", 1, 0},         {"8^6", 1, 9},         {"70x33 64 31", 1, 0},   {"33 64x70 64", 1, 12},
               {"8^5", 17, 3},        {"8^5", 17, 1},        {"2^17", 1, 0},          {"2^14", 9, 3},
               {"1000x900", 3, 0},    {"900x1000", 2, 15},   {"5000x3", 17, 3},       {"3x5000", 17, 0},
               {"300x2 2x300", 5, 0}, {"2x300 300x2", 5, 3}, {"128^2", 2, 0},         {"200^2", 1, 8},
               {"1^52 2^11 3", 3, 0}, {"1^63 70", 2, 3},     {"4096x2 2 40x3", 1, 0}, {"52x50 50", 9, 2}};
  for (int i = 0; i < COUNT(cases); i++)
    for (int type = 0; type < 2; type++)
      random_values(args_of(cases[i].sizes, type ? ZLG_F64 : ZLG_F32, cases[i].vectors), cases[i].variant, (uint64_t)i,
                    0);
}

static void integers_are_exact(void) {
  static const char *const sizes[] = {"7", "2^9", "5x6 3 4", "3^5", "70x2 1x8", "17 4"};
  for (int i = 0; i < COUNT(sizes); i++)
    for (int variant = 0; variant < 16; variant++) {
      struct zlg_kron_factor_args args = args_of(sizes[i], variant % 2 ^ i % 2 ? ZLG_F32 : ZLG_F64, 19);
      set_variant(&args, variant);
      args.alpha = variant & 4 ? -3 : 1, args.beta = variant & 8 ? 2 : 0;
      struct block b = new_block(args, 1, 1);
      for (int64_t e = 0; e < args.vectors * b.in; e++) b.x[e] = (double)(e % 5 - 2);
      for (int64_t e = 0; e < b.factor_elements; e++) b.factors[e] = (double)(e % 7 % 4 - 1);
      for (int64_t e = 0; e < args.vectors * b.out; e++) b.before[e] = (double)(e % 9 - 4);
      lay_out(&b);
      reference(&b);
      each_isa(check_run, &b, 0);
      free_block(&b);
    }
}

/* Factors with one power of two in each column: every result is one element of X, scaled without rounding. */
static void powers_of_two_are_exact(void) {
  static const char *const sizes[] = {"64^2", "33x20 21", "8^4", "10x12 5x7 3", "2^10"};
  for (int i = 0; i < COUNT(sizes); i++)
    for (int variant = 0; variant < 8; variant++) {
      struct zlg_kron_factor_args args = args_of(sizes[i], variant / 4 ? ZLG_F32 : ZLG_F64, 18);
      set_variant(&args, variant % 4);
      struct block b = new_block(args, 3, 0);
      double *factor = b.factors;
      memset(factor, 0, (size_t)b.factor_elements * sizeof *factor);
      for (int f = 0; f < args.count; f++, factor += args.p[f - 1] * args.q[f - 1])
        for (int j = 0; j < args.q[f]; j++)
          factor[(j * 3 + f) % args.p[f] * args.q[f] + j] = ldexp(j % 3 ? 1 : -1, j % 7 - 3);
      lay_out(&b);
      reference(&b);
      each_isa(check_run, &b, 0);
      free_block(&b);
    }
}

/* A NaN and an infinity fill their own vectors and leave all others as they were. */
static void check_nan(const struct block *b, long double nan_vector) {
  double *result = run(b);
  int64_t wrong = 0;
  for (int64_t v = 0; v < b->args.vectors; v++)
    for (int64_t k = 0; k < b->out; k++) {
      const int64_t e = v * b->out + k;
      wrong += v == (int64_t)nan_vector ? !isnan(result[e]) : !(fabsl(result[e] - b->value[e]) <= b->bound[e]);
    }
  if (wrong > 0) describe(b, "NaN in the wrong place");
  CU_ASSERT(wrong == 0);
  free(result);
}

static void nan_stays_in_its_vector(void) {
  static const char *const sizes[] = {"5", "3x4 6", "8^3", "2^7", "33x3 2", "8^5"};
  for (int i = 0; i < COUNT(sizes); i++)
    for (int variant = 0; variant < 8; variant++)
      for (int64_t vectors = 2; vectors <= 37; vectors += 35) {
        if (i == 5 && vectors > 2) continue;
        struct zlg_kron_factor_args args = args_of(sizes[i], variant / 4 ? ZLG_F32 : ZLG_F64, vectors);
        set_variant(&args, variant % 4);
        struct block b = new_block(args, 7, 2);
        reference(&b);
        const int64_t at = vectors == 2 ? 1 : 20;
        b.x[at * b.in + b.in / 2] = NAN;
        lay_out(&b);
        each_isa(check_nan, &b, (long double)at);
        free_block(&b);
      }
}

/* The plan may cut a product into tasks as it likes: bits are those of the whole. */
static void check_parts(const struct block *b, long double unused) {
  (void)unused;
  static const int64_t parts[][2] = {{0, 1}, {1, 1}, {3, 2}, {5, 11}, {2, 16}, {9, 17}, {20, 33}, {0, 48}, {52, 1}};
  double *whole = run(b);
  for (int i = 0; i < COUNT(parts); i++) {
    if (parts[i][0] + parts[i][1] > b->args.vectors) continue;
    double *part = run_part(b, parts[i][0], parts[i][1]);
    const bool equal = memcmp(part, whole + parts[i][0] * b->out, (size_t)(parts[i][1] * b->out) * sizeof *part) == 0;
    if (!equal) {
      describe(b, "bits depend on the neighbours");
      fprintf(stderr, "  vectors %ld to %ld\n", (long)parts[i][0], (long)(parts[i][0] + parts[i][1]));
    }
    CU_ASSERT(equal);
    free(part);
  }
  free(whole);
}

static void bits_do_not_depend_on_neighbours(void) {
  static const char *const sizes[] = {"5",        "16",     "3x4 6",       "8^3",       "2^7",
                                      "33x3 2x9", "7x5 25", "50x3 3x50 2", "1x70 70x1", "4^6"};
  for (int i = 0; i < COUNT(sizes); i++)
    for (int variant = 0; variant < 16; variant++) {
      struct zlg_kron_factor_args args = args_of(sizes[i], variant % 2 ^ i % 2 ? ZLG_F64 : ZLG_F32, 53);
      set_variant(&args, variant);
      struct block b = new_block(args, (uint64_t)i, 3);
      lay_out(&b);
      each_isa(check_parts, &b, 0);
      free_block(&b);
    }
  /* Vectors of column-major blocks that are cut where they lie side by side, and not where one lies alone. */
  for (int variant = 0; variant < 16; variant += 5) {
    struct zlg_kron_factor_args args = args_of("20 15x16 21", variant % 2 ? ZLG_F64 : ZLG_F32, 18);
    set_variant(&args, variant);
    struct block b = new_block(args, 1, 0);
    lay_out(&b);
    each_isa(check_parts, &b, 0);
    free_block(&b);
  }
}

int main(int argc, char **argv) {
  static const struct zlg_test_case cases[] = {
      {"random shapes within the bound", random_shapes},
      {"ragged panels", ragged_panels},
      {"large shapes", large_shapes},
      {"integers are exact", integers_are_exact},
      {"powers of two are exact", powers_of_two_are_exact},
      {"NaN stays in its vector", nan_stays_in_its_vector},
      {"bits do not depend on neighbours", bits_do_not_depend_on_neighbours},
      {NULL, NULL},
  };
  return zlg_test_main(argc, argv, cases);
}
