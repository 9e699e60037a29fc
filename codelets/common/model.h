/* Calibrated models: what was measured of one family of tasks, its file, and the table that predictions look into.
 *
 * A family is a set of tasks that differ in size only (a kernel, a type, a dimension, a number of columns). Each has a
 * file of its own in StarPU's format and directory, so that StarPU's tools show it; what StarPU has no place for stands
 * in comments at its head, and only those are read back, strictly: StarPU's own reader aborts on damage. */
#ifndef ZLG_COMMON_MODEL_H
#define ZLG_COMMON_MODEL_H

#include <stdbool.h>
#include <stddef.h>

#include "codelets/common/codelet.h"
#include "zellige/machine.h"
#include "zellige/simulation.h"

#define ZLG_CURVE_POINTS 16
#define ZLG_CURVE_UNSEEN 8
#define ZLG_MODEL_KINDS 3
#define ZLG_MODEL_FILE_BYTES 65536 /* no model file is longer */

/* One worker kind's measurements, by growing size: the curve's points, and those that only check it. */
struct zlg_curve {
  zlg_worker_kind kind;
  int count, unseen_count;
  zlg_model_point points[ZLG_CURVE_POINTS], unseen[ZLG_CURVE_UNSEEN];
};

struct zlg_model {
  char codelet[32], label[64], host[65], instructions[16];
  struct zlg_family family;
  int curve_count;
  struct zlg_curve curves[ZLG_MODEL_KINDS];
};

/* The least-squares curve a n^b + c through the points, in relative error; NaN where there are fewer than three. */
struct zlg_fit {
  double a, b, c;
  double error; /* median of |fit / measured - 1| */
};
struct zlg_fit zlg_curve_fit(const struct zlg_curve *curve);

/* The name StarPU gives this machine, which ends the names of its files. */
void zlg_model_host(char *host, size_t bytes);
/* "DIRECTORY/codelets/45/zlg_CODELET-LABEL.HOST" */
void zlg_model_path(const struct zlg_model *model, const char *directory, char *path, size_t bytes);

/* Reads one file. ZLG_OK; ZLG_ENOENT, ZLG_EIO; ZLG_EFORMAT (damaged, of another version) with a reason in `message`. */
int zlg_model_read(const char *path, struct zlg_model *model, char *message, size_t message_bytes);
/* Writes it into its directory, which is made; another process sees the whole file or the old one. */
int zlg_model_write(const char *directory, const struct zlg_model *model, char *message, size_t message_bytes);

/* Calls `found` for each file of ours in the directory (host NULL: of any machine): with the model, or, where it cannot
 * be used, NULL and the reason. A directory that is not there has none. */
typedef void zlg_model_found_fn(void *user, const char *path, const struct zlg_model *model, const char *reason);
void zlg_model_scan(const char *directory, const char *host, zlg_model_found_fn *found, void *user);

/* The table. Its curves are in force for every prediction of this process from then on. */
void zlg_model_use(const struct zlg_model *model);
void zlg_model_forget(void);
/* Empties the table and fills it with the host's models from the directory (NULL: this machine's). `warning` names what
 * was skipped, "" if nothing was. */
void zlg_model_load(const char *directory, const char *host, char *warning, size_t warning_bytes);
/* The workers of a kind are those of a described machine: these rates take the place of the nominal ones and of every
 * calibrated curve. Before the first prediction. */
void zlg_model_set_rates(zlg_worker_kind kind, const zlg_rates *rates);
bool zlg_model_is_calibrated(const struct zlg_codelet *codelet);
/* The prediction without what was learned by running: curves where there are some, else nominal rates. */
double zlg_model_base(const struct zlg_codelet *codelet, const void *args, zlg_worker_kind kind);
/* Whether that is from a curve, of this family or of one near it. */
bool zlg_model_has_curve(const struct zlg_codelet *codelet, zlg_worker_kind kind);

#endif
