/* An application that runs StarPU itself and calls the library from inside (mode SHARED): the library takes a reference
 * to the StarPU that runs, waits for its own tasks only, and leaves everything as it was. The application's own task is
 * submitted first and held back by a tag until the product has ended: a library that waited for "all tasks" would wait
 * for ever here. */
#include <math.h>
#include <starpu.h>
#include <stdint.h>
#include <stdio.h>
#include <zellige.h>

enum { M = 500, N = 20000 };
static double x[M], y[N], b[N], sum[M];

/* The application's task: halves a vector. */
static void halve(void *buffers[], void *arguments) {
  double *v = (double *)STARPU_VECTOR_GET_PTR(buffers[0]);
  (void)arguments;
  for (unsigned i = 0; i < STARPU_VECTOR_GET_NX(buffers[0]); i++) v[i] /= 2;
}
static struct starpu_perfmodel model = {.type = STARPU_HISTORY_BASED, .symbol = "example_halve"};
static struct starpu_codelet codelet = {.cpu_funcs = {halve}, .nbuffers = 1, .modes = {STARPU_RW}, .model = &model};

/* Submits the task; it may not start before tag 1 is given. */
static int submit_held_back(starpu_data_handle_t handle) {
  struct starpu_task *task = starpu_task_create();
  task->cl = &codelet;
  task->handles[0] = handle;
  task->use_tag = 1;
  task->tag_id = 2;
  starpu_tag_declare_deps(task->tag_id, 1, (starpu_tag_t)1);
  return starpu_task_submit(task);
}

/* sum += K b with the energy kernel -|x - y|; sum held N before, so that sum[i]/N is the mean of 1 - |x_i - y_j|. */
static int product(zlg_context *context) {
  zlg_matrix *X = NULL, *Y = NULL, *B = NULL, *Sum = NULL;
  zlg_operator *K = NULL;
  zlg_kernel_spec spec;
  zlg_kernel_spec_init(&spec, ZLG_ENERGY);
  int status = zlg_matrix_wrap_const(context, &X, ZLG_F64, M, 1, ZLG_ROW_MAJOR, 1, x);
  if (!status) status = zlg_matrix_wrap_const(context, &Y, ZLG_F64, N, 1, ZLG_ROW_MAJOR, 1, y);
  if (!status) status = zlg_matrix_wrap_const(context, &B, ZLG_F64, N, 1, ZLG_ROW_MAJOR, 1, b);
  if (!status) status = zlg_matrix_wrap(context, &Sum, ZLG_F64, M, 1, ZLG_ROW_MAJOR, 1, sum);
  if (!status) status = zlg_kernel(context, &K, &spec, X, Y);
  if (!status) status = zlg_apply(K, ZLG_NOTRANS, 1.0, B, 1.0, Sum);
  zlg_operator_release(K);
  zlg_matrix *matrices[] = {X, Y, B, Sum};
  for (int k = 0; k < 4; k++) zlg_matrix_release(matrices[k]);
  return status;
}

int main(void) {
  struct starpu_conf conf;
  zlg_context *context = NULL;
  zlg_context_options options;
  starpu_data_handle_t handle;
  double other[2] = {4, 6}, mean = 0;

  for (int i = 0; i < M; i++) x[i] = (i + 0.5) / M, sum[i] = N;
  for (int j = 0; j < N; j++) y[j] = (j + 0.5) / N, b[j] = 1;
  starpu_conf_init(&conf);
  if (starpu_init(&conf) != 0) return fputs("shared: StarPU does not start\n", stderr), 1;
  starpu_vector_data_register(&handle, STARPU_MAIN_RAM, (uintptr_t)other, 2, sizeof other[0]);
  if (submit_held_back(handle) != 0) return fputs("shared: no worker for the application's task\n", stderr), 1;

  zlg_context_options_init(&options);
  options.mode = ZLG_RUNTIME_SHARED;
  int status = zlg_context_create(&context, &options);
  if (!status) status = product(context);
  if (status)
    fprintf(stderr, "shared: %s\n", zlg_context_message(NULL));
  else
    printf("product done, the application's own task not yet: %g %g\n", other[0], other[1]);
  zlg_context_release(context);

  starpu_tag_notify_from_apps(1);
  starpu_data_unregister(handle); /* waits for the application's task */
  printf("StarPU still runs: %s; the application's task: %g %g\n", starpu_is_initialized() ? "yes" : "no", other[0],
         other[1]);
  for (int i = 0; i < M; i++) mean += sum[i] / M / N;
  printf("mean of 1 - |x - y|: %.6f, known 2/3\n", mean);
  starpu_shutdown();
  return status != ZLG_OK;
}
