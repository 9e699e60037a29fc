/* Bringing up a machine: calibration measures every codelet on every kind of worker; the models it writes tell the
 * scheduler where a task runs how fast. */
#ifndef ZELLIGE_MACHINE_H
#define ZELLIGE_MACHINE_H

#include "zellige/context.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- calibration ---- */

/* Where a calibration stands; strings live during the call. */
typedef struct zlg_calibration_progress {
  int64_t points_done, points_total; /* a point: one task, on one kind of worker, measured some dozens of times */
  double seconds, seconds_left;      /* left: an estimate, NaN before the first point */
  const char *codelet, *label; /* what is measured now: a codelet of zlg_context_codelet(), "gaussian-f32-d3-r1" */
  zlg_worker_kind kind;
} zlg_calibration_progress;

/* Called from the calling thread after each point. A return other than 0 ends the calibration with ZLG_ECANCELED; what
 * was measured so far is kept. */
typedef int (*zlg_calibration_fn)(void *user, const zlg_calibration_progress *progress);

typedef struct zlg_calibration_options {
  size_t struct_size;    /* set by zlg_calibration_options_init() */
  const char *only;      /* glob over "CODELET/LABEL", such as "*gaussian-*"; NULL: all */
  const char *directory; /* where models go; NULL: the context's model directory */
  int samples;           /* accepted measurements a point, at least 25 */
  int short_run;         /* 1: a few families only, for a first look and for tests */
  int resume;            /* 1: points that are in the directory already are kept, not measured again */
  zlg_calibration_fn progress;
  void *progress_user;
} zlg_calibration_options;

/* Fills in the defaults: everything, 25 samples, resuming. */
ZLG_API void zlg_calibration_options_init(zlg_calibration_options *options);

/* How good the models of one worker kind are, checked after calibration. */
typedef struct zlg_calibration_check {
  zlg_worker_kind kind;
  int64_t points, samples, outliers; /* measured now or kept; outliers were measured and not accepted */
  int64_t not_monotone;              /* points faster than a smaller one of their family by more than noise */
  int64_t far_off;                   /* points a thousand times slower or faster than another kind of worker */
  int64_t unseen;                    /* tasks of sizes that no curve has as a point, measured to check predictions */
  double median_error, worst_error;  /* of those predictions, relative; NaN where there are none */
} zlg_calibration_check;

/* What the machine itself does at best, one core alone and all together. */
typedef struct zlg_machine_limits {
  double fma_f32, fma_f64; /* multiply-adds a second, of one core */
  double triad, triad_all; /* bytes a second, a[i] = b[i] + s c[i]: one core, all cores */
} zlg_machine_limits;

/* A link between memory nodes, as StarPU's own benchmark of the bus found it. */
typedef struct zlg_link_info {
  int from, to; /* memory nodes */
  double bytes_per_second;
  double latency; /* seconds */
} zlg_link_info;

typedef struct zlg_calibration zlg_calibration;

/* Measures, writes models, checks them and puts them in force. Long: minutes for everything, seconds for a short run.
 * The context must have nothing under way, or measures what is left of the machine. *result is the caller's to release,
 * also where the status is ZLG_ECANCELED.
 * Errors: ZLG_EINVAL, ZLG_EIO (a model cannot be written; the message names it), ZLG_ENOENT (`only` matches nothing),
 * ZLG_ENODEV, ZLG_EDEVICE, ZLG_ENOMEM, ZLG_ECANCELED. */
ZLG_API int zlg_calibrate(zlg_context *context, const zlg_calibration_options *options, zlg_calibration **result);
ZLG_API void zlg_calibration_release(zlg_calibration *calibration);

typedef struct zlg_calibration_info {
  double seconds;
  int64_t points_measured, points_kept;
  int64_t points_left_out; /* one such task would take over 0.15 seconds, or the device lacks what it needs */
  zlg_machine_limits limits;
  int check_count; /* worker kinds */
  const zlg_calibration_check *checks;
  int link_count;
  const zlg_link_info *links;
} zlg_calibration_info;
/* Pointers live as long as the calibration. */
ZLG_API int zlg_calibration_get_info(const zlg_calibration *calibration, zlg_calibration_info *info);

/* ---- models ---- */

typedef struct zlg_model_point {
  double size;               /* pairs for kernel products, elements for sums */
  double seconds;            /* median of the accepted samples */
  double deviation;          /* mean absolute deviation from it, seconds */
  double mean, spread;       /* mean and standard deviation, seconds: what StarPU's tools show */
  double flops, bytes;       /* of one task */
  int64_t samples, outliers; /* accepted, and measured but not accepted */
} zlg_model_point;

/* One family of tasks on one kind of worker of one machine. */
typedef struct zlg_model_info {
  const char *codelet, *label, *host, *instruction_set;
  const char *path; /* of the file it is from */
  zlg_worker_kind kind;
  int point_count;
  const zlg_model_point *points; /* by growing size */
  int unseen_count;
  const zlg_model_point *unseen; /* measured to check the curve, and no part of it */
  double a, b, c;   /* seconds = a size^b + c, fitted in relative error; NaN with fewer than three points */
  double fit_error; /* median relative error of that at the points */
} zlg_model_info;

typedef struct zlg_models zlg_models;

/* Reads all models of a directory. Files that are damaged or of another version are not an error: they are skipped, and
 * listed as such. directory NULL: where StarPU's environment says that models are, as for every context; no context is
 * needed. Errors: ZLG_EINVAL, ZLG_ENOENT (no such directory), ZLG_ENOMEM; messages are those of a NULL context. */
ZLG_API int zlg_models_open(zlg_models **models, const char *directory);
ZLG_API void zlg_models_release(zlg_models *models);
/* Where they were read from. */
ZLG_API const char *zlg_models_directory(const zlg_models *models);
ZLG_API int zlg_models_count(const zlg_models *models);
/* Pointers live as long as `models`. ZLG_EINVAL past the last. */
ZLG_API int zlg_models_get(const zlg_models *models, int index, zlg_model_info *info);
/* The files that were skipped, and why; ZLG_EINVAL past the last. */
ZLG_API int zlg_models_skipped(const zlg_models *models, int index, const char **path, const char **reason);

#ifdef __cplusplus
}
#endif
#endif
