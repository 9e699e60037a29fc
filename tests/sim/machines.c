/* Products on described machines: how long they take beside what the slowest resource allows, how they scale, what goes
 * over links, that memory limits are kept and the window is, and that the same simulation says the same again. A number
 * here is simulated: it depends on the task graph, the scheduler and the models alone, not on the machine that runs the
 * test. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codelets/common/model.h"
#include "codelets/kernel_product/args.h"
#include "tests/sim/simulated.h"

#define CHECK(condition) zlg_check((condition), #condition, __FILE__, __LINE__)

static double most(double a, double b) {
  return a > b ? a : b;
}

static struct sim_outcome simulate(const zlg_platform *machine, const struct sim_product *product) {
  struct sim_outcome outcome = sim_run(machine, product);
  CHECK(outcome.status == ZLG_OK);
  CHECK(outcome.seconds > 0);
  return outcome;
}

/* The task graph's own bound on tasks under way. */
static int64_t window_of(const struct sim_outcome *o) {
  return 128 + 64 * o->workers;
}

/* 10^14 pairs. The matrices would take 204 GB; the process takes what SimGrid and StarPU do. */
static void a_billion_points_from_memory(void) {
  const zlg_platform machine = sim_machine("a100-nvlink");
  const struct sim_product product = sim_product(100000, 1000000000);
  const struct sim_outcome o = simulate(&machine, &product);
  CHECK(o.seconds <= 1.10 * most(o.compute, o.over_busiest));
  CHECK(o.resident_bytes < INT64_C(1) << 30);
  CHECK(o.under_way > machine.gpus && o.under_way <= window_of(&o));
  /* The points go to each GPU once at most, a group of rows sharing a pass over them, and accumulators are small. */
  CHECK(o.into_gpus < 1.5 * machine.gpus * 204e9);
}

/* From 20 GB/s computing is what takes long, from 0.5 GB/s reading is: each within a tenth of its bound. */
static void a_billion_points_from_disk(void) {
  zlg_platform machine = sim_machine("a100-nvlink");
  struct sim_product product = sim_product(100000, 1000000000);
  product.storage = ZLG_ON_DISK;
  const struct sim_outcome fast = simulate(&machine, &product);
  CHECK(fast.read >= 204e9 && fast.read / machine.disk_read < 0.1 * fast.compute);
  CHECK(fast.seconds <= 1.10 * fast.compute);
  machine.disk_read = 0.5e9;
  const struct sim_outcome slow = simulate(&machine, &product);
  CHECK(slow.read / machine.disk_read > 2 * slow.compute);
  CHECK(slow.seconds >= slow.read / machine.disk_read);
  CHECK(slow.seconds <= 1.10 * slow.read / machine.disk_read);
  CHECK(slow.resident_bytes < INT64_C(1) << 30);
}

/* Cards alone, so that eight of them are eight times the machine that one is. */
static void check_scaling(const char *name) {
  zlg_platform machine = sim_machine(name);
  struct sim_product product = sim_product(100000, 100000000);
  product.cpu_workers = 0;
  product.tile_rows = 20000, product.tile_columns = 100000; /* 5000 tasks, a quarter of what there would be */
  const struct sim_outcome eight = simulate(&machine, &product);
  machine.gpus = 1;
  const struct sim_outcome one = simulate(&machine, &product);
  CHECK(one.seconds / (8 * eight.seconds) >= 0.95);
  CHECK(one.seconds / eight.seconds <= 8.01); /* no time is made of nothing */
  CHECK(eight.seconds <= 1.10 * eight.compute);
}

static void eight_gpus_scale_over_nvlink(void) {
  check_scaling("a100-nvlink");
}

static void eight_gpus_scale_over_pcie(void) {
  check_scaling("a100-pcie");
}

/* One, two and four cards with the other cores beside them. */
static void gpus_scale_beside_cores(void) {
  double before = 0;
  for (int gpus = 1; gpus <= 4; gpus *= 2) {
    zlg_platform machine = sim_machine("a100-pcie");
    const struct sim_product product = sim_product(100000, 30000000);
    machine.gpus = gpus;
    const struct sim_outcome o = simulate(&machine, &product);
    CHECK(o.seconds <= 1.10 * o.compute);
    /* Sixty cores are half a card, and do their part: chains enough are ready for a core to be given one in time. */
    CHECK(o.cpu_share > 0.25 / gpus);
    /* Tiles depend on sizes. */
    CHECK(o.shape[0] == 12544 && o.shape[1] == 13568);
    if (gpus > 1) CHECK(before / o.seconds >= 1.5);
    before = o.seconds;
  }
}

/* Less memory on the card than the data of the tasks under way: slower perhaps, never more than there is. */
static void memory_of_gpus_is_kept_to(void) {
  const double sizes[] = {4e9, 256e6, 64e6};
  double roomy = 0;
  for (int i = 0; i < 3; i++) {
    zlg_platform machine = sim_machine("a100-pcie");
    struct sim_product product = sim_product(200000, 4000000);
    machine.gpus = 2;
    machine.gpu_memory_bytes = sizes[i];
    product.cpu_workers = 1;
    product.tile_rows = product.tile_columns = 20000; /* 4 MB a tile */
    const struct sim_outcome o = simulate(&machine, &product);
    CHECK((double)o.gpu_bytes <= sizes[i]);
    CHECK(o.gpu_bytes > 8000000); /* the two tiles of a task, at least */
    if (i == 0) roomy = o.seconds;
    CHECK(o.seconds <= 1.5 * roomy);
  }
}

/* A narrow link: the same work, and time is the link's. */
static void a_narrow_link_is_what_takes_long(void) {
  zlg_platform machine = sim_machine("a100-pcie");
  struct sim_product product = sim_product(4000, 20000000);
  machine.gpus = 1;
  machine.link_bandwidth = 0.5e9;
  product.cpu_workers = 0;
  const struct sim_outcome o = simulate(&machine, &product);
  CHECK(o.over_busiest > 1.5 * o.compute);
  CHECK(o.seconds >= o.over_busiest);
  CHECK(o.seconds <= 1.10 * o.over_busiest);
}

static void every_scheduler_finishes(void) {
  zlg_platform machine = sim_machine("a100-nvlink");
  struct sim_product product = sim_product(100000, 10000000);
  machine.gpus = 2;
  product.cpu_workers = 4;
  product.tile_rows = 20000, product.tile_columns = 100000;
  int count = 0;
  for (; sim_scheduler(count); count++) {
    product.scheduler = sim_scheduler(count);
    printf(" %s", product.scheduler);
    const struct sim_outcome o = simulate(&machine, &product);
    CHECK(o.tasks == 505);
    if (strcmp(product.scheduler, "dmdas") == 0) CHECK(o.seconds <= 1.05 * o.compute);
  }
  CHECK(count > 20);
}

static void a_small_product_is_simulated_as_tasks(void) {
  const zlg_platform machine = sim_machine("a100-pcie");
  const struct sim_product product = sim_product(100, 100);
  const struct sim_outcome o = simulate(&machine, &product);
  CHECK(o.tasks == 2);
  CHECK(o.seconds < 0.1); /* two allocations on a card, as StarPU simulates them */
  /* The machine that a context tells of is the described one, not the one that simulates. */
  CHECK(o.cores == machine.cores && o.memory == (int64_t)machine.memory_bytes);
  CHECK(strcmp(o.cpu_name, machine.title) == 0);
}

static void the_window_does_not_grow(void) {
  zlg_platform machine = sim_machine("a100-pcie");
  struct sim_product product = sim_product(1000000, 100000);
  machine.gpus = 0;
  for (int i = 0; i < 2; i++) {
    product.n = i ? 1000000 : 100000;
    product.cpu_workers = 8;
    product.tile_rows = product.tile_columns = 20000;
    const struct sim_outcome o = simulate(&machine, &product);
    CHECK(o.tasks > 200);
    CHECK(o.under_way <= 32 + 16 * 8);
    CHECK(o.seconds <= 1.10 * o.compute);
  }
}

static void the_same_again_takes_the_same_time(void) {
  zlg_platform machine = sim_machine("h100-nvlink");
  const struct sim_product product = sim_product(100000, 5000000);
  machine.gpus = 4;
  const struct sim_outcome once = simulate(&machine, &product), again = simulate(&machine, &product);
  CHECK(once.seconds == again.seconds);
  CHECK(once.into_gpus == again.into_gpus && once.cpu_share == again.cpu_share);
  machine.gpu.multiply_adds[0] *= 0.99;
  const struct sim_outcome other = simulate(&machine, &product);
  CHECK(other.seconds > once.seconds);
}

/* Models decide: where the description says that cards are as slow as cores, the cores do most of the work. */
static void rates_move_the_work(void) {
  zlg_platform machine = sim_machine("a100-nvlink");
  struct sim_product product = sim_product(100000, 3000000);
  machine.gpus = 2;
  product.tile_rows = product.tile_columns = 10000;
  const struct sim_outcome fast = simulate(&machine, &product);
  machine.gpu.multiply_adds[0] = machine.cpu.multiply_adds[0];
  const struct sim_outcome slow = simulate(&machine, &product);
  CHECK(fast.cpu_share < 0.5);
  CHECK(slow.cpu_share > 0.9);
  CHECK(slow.seconds > 3 * fast.seconds);
}

/* A Kronecker product on 1 to 8 cards: a task does some hundred operations a byte that it moves, so that the links are
 * what takes long, each way by itself, and each vector is moved to one card once. The first tiles have nothing to hide
 * behind, nor have the last: the more cards, the fewer tiles each has. */
static void check_kron(int factors, int64_t size, int64_t vectors) {
  double one = 0;
  const double bytes = 4 * pow((double)size, factors) * (double)vectors;
  for (int gpus = 1; gpus <= 8; gpus *= 2) {
    zlg_platform machine = sim_machine("a100-nvlink");
    const struct sim_product product = sim_kron(factors, size, vectors);
    machine.gpus = gpus;
    const struct sim_outcome o = simulate(&machine, &product);
    CHECK(o.into_gpus >= bytes && o.into_gpus <= 1.01 * bytes);
    CHECK(o.over_busiest >= o.compute && o.seconds >= o.over_busiest);
    CHECK(o.seconds <= (1 + 0.07 * gpus) * o.over_busiest);
    CHECK((double)o.gpu_bytes <= machine.gpu_memory_bytes);
    if (gpus == 1) one = o.seconds;
    CHECK(one / o.seconds >= 0.7 * gpus && one / o.seconds <= 1.01 * gpus);
  }
}

static void factors_of_128_cubed_scale(void) {
  check_kron(3, 128, 4096);
}

static void factors_of_64_to_the_fourth_scale(void) {
  check_kron(4, 64, 1024);
}

/* binary64 takes longer by its own rates. */
static void types_have_rates_of_their_own(void) {
  zlg_platform machine = sim_machine("a100-nvlink");
  struct sim_product product = sim_product(100000, 3000000);
  product.tile_rows = product.tile_columns = 20000;
  product.cpu_workers = 0;
  const struct sim_outcome single = simulate(&machine, &product);
  product.type = ZLG_F64;
  const struct sim_outcome twice = simulate(&machine, &product);
  CHECK(twice.seconds > 1.9 * single.seconds && twice.seconds < 2.6 * single.seconds);
}

/* One curve of another machine: a task of 10^8 pairs takes a core there half a second. */
static void write_model(const char *directory) {
  struct zlg_model model = {.codelet = "kernel_product", .label = "test", .host = "elsewhere", .instructions = "avx2"};
  const struct zlg_kernel_product_args args = {
      .kind = ZLG_GAUSSIAN, .type = ZLG_F32, .m = 10000, .n = 10000, .d = 50, .r = 1, .isotropic = true};
  struct zlg_count count;
  char message[256];
  zlg_kernel_product_count(&args, &count);
  zlg_kernel_product_family(&args, &model.family);
  model.curve_count = 1;
  model.curves[0] = (struct zlg_curve){.kind = ZLG_WORKER_CPU, .count = 1};
  model.curves[0].points[0] = (zlg_model_point){.size = model.family.size,
                                                .seconds = 0.5,
                                                .deviation = 0.01,
                                                .mean = 0.5,
                                                .spread = 0.01,
                                                .flops = count.flops,
                                                .bytes = count.bytes,
                                                .samples = 25};
  CHECK(zlg_model_write(directory, &model, message, sizeof message) == ZLG_OK);
}

/* 100 tasks on 10 cores: by the description's rates, then by the other machine's curve. */
static void calibrated_models_serve_where_asked_for(void) {
  zlg_platform machine = sim_machine("a100-pcie");
  struct sim_product product = sim_product(100000, 100000);
  char *directory = zlg_test_path("models");
  write_model(directory);
  machine.gpus = 0;
  product.cpu_workers = 10;
  product.tile_rows = product.tile_columns = 10000;
  product.models = directory;
  const struct sim_outcome described = simulate(&machine, &product);
  CHECK(!described.cpu_calibrated && described.seconds < 3);
  machine.cpu.calibrated = 1;
  snprintf(machine.calibration_host, sizeof machine.calibration_host, "elsewhere");
  const struct sim_outcome calibrated = simulate(&machine, &product);
  CHECK(calibrated.cpu_calibrated);
  CHECK(calibrated.seconds > 4.99 && calibrated.seconds < 5.1);
  snprintf(machine.calibration_host, sizeof machine.calibration_host, "nowhere");
  const struct sim_outcome missing = simulate(&machine, &product);
  CHECK(!missing.cpu_calibrated && missing.seconds == described.seconds);
  memset(machine.cpu.multiply_adds, 0, sizeof machine.cpu.multiply_adds);
  const struct sim_outcome neither = sim_run(&machine, &product);
  CHECK(neither.status == ZLG_ENOENT && strstr(neither.message, "no calibrated model of nowhere"));
  free(directory);
}

static void limits_and_mistakes_are_told(void) {
  zlg_platform machine = sim_machine("a100-pcie");
  struct sim_product product = sim_product(100000, 1000000);
  product.scheduler = "nonesuch";
  struct sim_outcome o = sim_run(&machine, &product);
  CHECK(o.status == ZLG_EINVAL && strstr(o.message, "nonesuch"));
  product.scheduler = NULL;
  product.storage = ZLG_ON_DISK;
  machine.disk_read = 0;
  o = sim_run(&machine, &product);
  CHECK(o.status == ZLG_EINVAL && strstr(o.message, "no disk"));
  product.storage = ZLG_IN_MEMORY;
  machine.cores = 4000;
  o = sim_run(&machine, &product);
  CHECK(o.status == ZLG_EINVAL && strstr(o.message, "4000 cores"));
  machine.cores = 64;
  product.memory_limit = 100;
  o = sim_run(&machine, &product);
  CHECK(o.status == ZLG_ELIMIT);
}

int main(int argc, char **argv) {
  static const struct zlg_test_case cases[] = {
      {"a billion points from memory", a_billion_points_from_memory},
      {"a billion points from disk", a_billion_points_from_disk},
      {"eight GPUs scale over NVLink", eight_gpus_scale_over_nvlink},
      {"eight GPUs scale over PCIe", eight_gpus_scale_over_pcie},
      {"GPUs scale beside cores", gpus_scale_beside_cores},
      {"memory of GPUs is kept to", memory_of_gpus_is_kept_to},
      {"a narrow link is what takes long", a_narrow_link_is_what_takes_long},
      {"every scheduler finishes", every_scheduler_finishes},
      {"a small product is simulated as tasks", a_small_product_is_simulated_as_tasks},
      {"the window does not grow", the_window_does_not_grow},
      {"the same again takes the same time", the_same_again_takes_the_same_time},
      {"rates move the work", rates_move_the_work},
      {"factors of 128^3 scale", factors_of_128_cubed_scale},
      {"factors of 64^4 scale", factors_of_64_to_the_fourth_scale},
      {"types have rates of their own", types_have_rates_of_their_own},
      {"calibrated models serve where asked for", calibrated_models_serve_where_asked_for},
      {"limits and mistakes are told", limits_and_mistakes_are_told},
      {NULL, NULL}};
  return zlg_test_main(argc, argv, cases);
}
