/* The benchmark's driver: picks cases, runs each for both types, prints the table and writes the JSON file.
 *
 * usage: zlg-bench [--list] [--only GLOB] [--quick] [--workers N] [--json FILE]
 *
 * doc/benchmarks.md says what the columns mean. A case that fails is marked, the others go on, the exit status is 1. */
#define _GNU_SOURCE
#include <errno.h>
#include <fnmatch.h>
#include <ftw.h>
#include <getopt.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/bench.h"

/* The cases, and the peers that have a column of the table there. */
enum { COLUMNS = 3 };
static const struct area {
  const struct bench_case *cases;
  const char *peers[COLUMNS];
} areas[] = {{bench_kernel_cases, {"keops", "keops-tuned", "blas-tile"}},
             {bench_kron_cases, {"fastkron", "shuffle", "modes"}},
             {bench_kron_grad_cases, {"product"}},
             {bench_overhead_cases, {NULL}},
             {bench_scaling_cases, {NULL}},
             {bench_stream_cases, {NULL}},
             {bench_machine_cases, {NULL}}};
enum { AREAS = sizeof areas / sizeof *areas };

static const char usage[] = "usage: zlg-bench [--list] [--only GLOB] [--quick] [--workers N] [--json FILE]\n"
                            "  --list       the names of the cases\n"
                            "  --only GLOB  only those whose name fits, as in 'kernel/*'; or a Kronecker\n"
                            "               product of any shape, as in kron/mkm/16@8^2,32,5x7\n"
                            "  --quick      short repetitions, no peers that compile\n"
                            "  --workers N  CPU workers, and threads of limits and peers (1)\n"
                            "  --json FILE  the rows as a JSON array\n";

struct arguments {
  bool list, quick;
  const char *only, *json;
  int workers;
};

static int parse(struct arguments *arguments, int argc, char **argv) {
  static const struct option options[] = {{"list", no_argument, NULL, 'l'},
                                          {"only", required_argument, NULL, 'o'},
                                          {"quick", no_argument, NULL, 'q'},
                                          {"workers", required_argument, NULL, 'w'},
                                          {"json", required_argument, NULL, 'j'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
  *arguments = (struct arguments){.only = "*", .workers = 1};
  for (int letter; (letter = getopt_long(argc, argv, "h", options, NULL)) != -1;) {
    char *end = NULL;
    switch (letter) {
    case 'l':
      arguments->list = true;
      break;
    case 'o':
      arguments->only = optarg;
      break;
    case 'q':
      arguments->quick = true;
      break;
    case 'j':
      arguments->json = optarg;
      break;
    case 'w':
      arguments->workers = (int)strtol(optarg, &end, 10);
      if (*end || end == optarg || arguments->workers < 1 || arguments->workers > 1024) {
        fprintf(stderr, "zlg-bench: --workers %s: a number from 1 on is wanted\n", optarg);
        return 2;
      }
      break;
    case 'h':
      fputs(usage, stdout);
      exit(0);
    default:
      fputs(usage, stderr);
      return 2;
    }
  }
  if (optind == argc) return 0;
  fprintf(stderr, "zlg-bench: %s: unexpected\n%s", argv[optind], usage);
  return 2;
}

/* OpenBLAS reads its environment when it is loaded, so the program starts itself anew with one that neither forces
 * another processor's kernels on it nor lets it start threads. */
static void clean_environment(char **argv) {
  const char *threads = getenv("OPENBLAS_NUM_THREADS");
  if (threads && strcmp(threads, "1") == 0 && !getenv("OPENBLAS_CORETYPE") && !getenv("OPENBLAS_L2_SIZE")) return;
  unsetenv("OPENBLAS_CORETYPE");
  unsetenv("OPENBLAS_L2_SIZE");
  setenv("OPENBLAS_NUM_THREADS", "1", 1);
  execv("/proc/self/exe", argv);
}

static char runtime_home[] = "/tmp/zlg-bench-starpu-XXXXXX";
static bool runtime_home_made;

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *where) {
  (void)status, (void)kind, (void)where;
  return remove(path);
}

/* Where bench/peers.sh installs, as it decides itself. */
static void peers_environment(void) {
  char path[4096];
  const char *cache = getenv("XDG_CACHE_HOME"), *user = getenv("HOME");
  if (cache && *cache)
    snprintf(path, sizeof path, "%s/zellige-peers", cache);
  else
    snprintf(path, sizeof path, "%s/.cache/zellige-peers", user ? user : "");
  setenv("ZLG_BENCH_PEERS", path, 0);
}

/* StarPU's models of this run stay out of the user's: every run starts from the same state. (It asks for XDG_CACHE_HOME
 * first.) */
static void runtime_environment(void) {
  setenv("STARPU_SILENT", "1", 0);
  if (getenv("STARPU_HOME") || !mkdtemp(runtime_home)) return;
  runtime_home_made = true;
  unsetenv("XDG_CACHE_HOME");
  setenv("STARPU_HOME", runtime_home, 1);
}

static void list_cases(const char *glob) {
  for (int a = 0; a < AREAS; a++)
    for (const struct bench_case *item = areas[a].cases; item->name; item++)
      if (fnmatch(glob, item->name, 0) == 0) puts(item->name);
}

static json_t *number(double value) {
  return isfinite(value) ? json_real(value) : json_null();
}

static json_t *row_json(const struct bench_row *row) {
  json_t *peers = json_object();
  for (int k = 0; k < row->peer_count; k++) json_object_set_new(peers, row->peers[k].name, number(row->peers[k].value));
  return json_pack("{s:s, s:s, s:i, s:o, s:s, s:o, s:o, s:o, s:s}", "case", row->name, "type", zlg_type_name(row->type),
                   "workers", row->workers, "ours", number(row->ours), "unit", row->unit, "peers", peers, "limit",
                   number(row->limit), "fraction", number(row->fraction), "note", row->note);
}

static void print_cell(double value, int width) {
  if (!isfinite(value))
    printf(" %*s", width, "-");
  else
    printf(" %*.*f", width, fabs(value) >= 100 ? 0 : fabs(value) >= 10 ? 1 : 2, value);
}

static void print_header(const struct area *area) {
  printf("%-34s %-4s %7s %9s %-7s", "case", "type", "workers", "ours", "unit");
  for (int k = 0; k < COLUMNS && area->peers[k]; k++) printf(" %11s", area->peers[k]);
  printf(" %9s %8s  %s\n", "limit", "fraction", "note");
}

static double peer_value(const struct bench_row *row, const char *name) {
  for (int k = 0; k < row->peer_count; k++)
    if (strcmp(row->peers[k].name, name) == 0) return row->peers[k].value;
  return NAN;
}

static void print_row(const struct area *area, const struct bench_row *row, bool failed) {
  printf("%-34s %-4s %7d", row->name, zlg_type_name(row->type), row->workers);
  if (failed) {
    printf(" FAILED: %s\n", row->note);
  } else {
    print_cell(row->ours, 9);
    printf(" %-7s", row->unit);
    for (int k = 0; k < COLUMNS && area->peers[k]; k++) print_cell(peer_value(row, area->peers[k]), 11);
    print_cell(row->limit, 9);
    print_cell(row->fraction, 8);
    printf("  %s\n", row->note);
  }
  fflush(stdout);
}

/* One row; returns whether it failed. */
static bool run_type(const struct area *area, const struct bench_case *item, zlg_type type,
                     const struct arguments *arguments, json_t *rows) {
  struct bench_settings settings = {.quick = arguments->quick,
                                    .workers = arguments->workers,
                                    .repetitions = arguments->quick ? 3 : 7,
                                    .seconds = arguments->quick ? 0.05 : 0.25};
  if (settings.workers < item->least_workers) settings.workers = item->least_workers;
  struct bench_row row = {.name = item->name, .type = type, .workers = settings.workers, .unit = ""};
  row.ours = row.limit = row.fraction = NAN;
  bench_say("%s %s", item->name, zlg_type_name(type));
  bool failed = item->run(item, &settings, &row) != 0;
  if (failed) row.ours = row.limit = row.fraction = NAN;
  print_row(area, &row, failed);
  json_array_append_new(rows, row_json(&row));
  return failed;
}

static bool run_case(const struct area *area, const struct bench_case *item, const struct arguments *arguments,
                     json_t *rows) {
  bool failed = false;
  for (int t = ZLG_F32; t <= ZLG_F64; t++)
    if (!item->only || item->only == (zlg_type)t) failed |= run_type(area, item, (zlg_type)t, arguments, rows);
  return failed;
}

static bool run_matching(const struct arguments *arguments, json_t *rows) {
  bool failed = false;
  for (int a = 0; a < AREAS; a++) {
    bool headed = false;
    for (const struct bench_case *item = areas[a].cases; item->name; item++) {
      if (fnmatch(arguments->only, item->name, 0) != 0) continue;
      if (!headed) print_header(&areas[a]);
      headed = true;
      failed |= run_case(&areas[a], item, arguments, rows);
    }
  }
  return failed;
}

/* The name itself says what is wanted. */
static bool run_named(const struct arguments *arguments, json_t *rows) {
  const struct bench_case *item = bench_kron_case(arguments->only);
  if (!item) return false;
  const struct area *area = areas;
  while (area->cases != bench_kron_cases) area++;
  print_header(area);
  return run_case(area, item, arguments, rows);
}

int main(int argc, char **argv) {
  struct arguments arguments;
  int status = parse(&arguments, argc, argv);
  if (status) return status;
  if (arguments.list) {
    list_cases(arguments.only);
    return 0;
  }
  clean_environment(argv);
  peers_environment();
  runtime_environment();
  json_t *rows = json_array();
  status = run_matching(&arguments, rows) ? 1 : 0;
  if (json_array_size(rows) == 0) status = run_named(&arguments, rows) ? 1 : 0;
  if (json_array_size(rows) == 0) {
    fprintf(stderr, "zlg-bench: no case fits %s\n", arguments.only);
    status = 2;
  }
  if (arguments.json && json_dump_file(rows, arguments.json, JSON_INDENT(1) | JSON_REAL_PRECISION(6))) {
    fprintf(stderr, "zlg-bench: %s cannot be written: %s\n", arguments.json, strerror(errno));
    status = 1;
  }
  json_decref(rows);
  bench_context_close();
  bench_peers_close();
  if (runtime_home_made) nftw(runtime_home, remove_one, 16, FTW_DEPTH | FTW_PHYS);
  return status;
}
