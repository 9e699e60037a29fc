/* StarPU's own start in tests: see the header. */
#include "tests/support_starpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void zlg_test_starpu_conf(struct starpu_conf *conf) {
  starpu_conf_init(conf);
  conf->precedence_over_environment_variables = 1;
  conf->ncpus = zlg_test_cpu_workers();
  conf->nopencl = zlg_test_opencl_workers();
  conf->ncuda = zlg_test_cuda_workers();
#ifdef HAVE_STRUCT_STARPU_CONF_CATCH_SIGNALS
  conf->catch_signals = 0;
#endif
}

void zlg_test_starpu_init(void) {
  struct starpu_conf conf;
  zlg_test_starpu_conf(&conf);
  int status = starpu_init(&conf);
  if (status != 0) {
    fprintf(stderr, "starpu_init returned %d\n", status);
    exit(1);
  }
  unsigned cpus = starpu_cpu_worker_get_count(),
           devices = starpu_opencl_worker_get_count() + starpu_cuda_worker_get_count();
  if (cpus != (unsigned)zlg_test_cpu_workers() || devices != (unsigned)zlg_test_device_workers()) {
    fprintf(stderr, "this mode wants %d CPU and %d device workers and StarPU gave %u and %u\n", zlg_test_cpu_workers(),
            zlg_test_device_workers(), cpus, devices);
    exit(1);
  }
}

int zlg_test_starpu_worker(zlg_worker_kind kind, int index) {
  enum starpu_worker_archtype type = kind == ZLG_WORKER_OPENCL ? STARPU_OPENCL_WORKER
                                     : kind == ZLG_WORKER_CUDA ? STARPU_CUDA_WORKER
                                                               : STARPU_CPU_WORKER;
  return starpu_worker_get_by_type(type, index);
}

int zlg_test_starpu_each(int index) {
  const int devices = zlg_test_device_workers();
  return index < devices    ? zlg_test_starpu_worker(zlg_test_device_kind(), index)
         : index == devices ? zlg_test_starpu_worker(ZLG_WORKER_CPU, 0)
                            : -1;
}

void zlg_test_starpu_run(struct starpu_codelet *codelet, struct zlg_task_head *head, int worker,
                         const starpu_data_handle_t *handles, const enum starpu_data_access_mode *modes, int count) {
  struct starpu_task *task = starpu_task_create();
  const size_t all = (size_t)count;
  task->cl = codelet;
  task->cl_arg = head;
  task->nbuffers = count;
  if (count > STARPU_NMAXBUFS) { /* StarPU gives these back */
    task->dyn_handles = malloc(all * sizeof *handles);
    task->dyn_modes = malloc(all * sizeof *modes);
  }
  memcpy(task->dyn_handles ? task->dyn_handles : task->handles, handles, all * sizeof *handles);
  memcpy(task->dyn_modes ? task->dyn_modes : task->modes, modes, all * sizeof *modes);
  task->execute_on_a_specific_worker = 1;
  task->workerid = (unsigned)worker;
  task->detach = 0;
  task->destroy = 0;
  *head = (struct zlg_task_head){0};
  CU_ASSERT_EQUAL(starpu_task_submit(task), 0);
  CU_ASSERT_EQUAL(starpu_task_wait(task), 0);
  CU_ASSERT_EQUAL(task->profiling_info->workerid, worker);
  CU_ASSERT_EQUAL(head->status, ZLG_OK);
  CU_ASSERT(head->start > 0);
  starpu_task_destroy(task);
}
