/* The models of a directory, read for people who look at them: zlg_models. */
#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "perfmodels/perfmodels.h"
#include "src/core/error.h"
#include "src/core/memory.h"
#include "src/core/runtime.h"

struct entry { /* one curve of a model, or a file that was skipped */
  char *path, *reason;
  struct zlg_model *model; /* shared by its curves; owned by the first */
  int curve;
  struct zlg_fit fit;
};

struct list {
  struct entry *entries;
  int count, space;
};

struct zlg_models {
  char *directory;
  struct list found, skipped;
  bool failed; /* memory ran out while reading */
};

static struct entry *append(zlg_models *models, struct list *list, const char *path) {
  if (list->count == list->space) {
    int space = list->space ? 2 * list->space : 16;
    struct entry *longer = zlg_realloc(list->entries, (size_t)space * sizeof *longer);
    if (!longer) {
      models->failed = true;
      return NULL;
    }
    list->entries = longer;
    list->space = space;
  }
  char *kept = zlg_strdup(path);
  if (!kept) {
    models->failed = true;
    return NULL;
  }
  list->entries[list->count] = (struct entry){.path = kept};
  return &list->entries[list->count++];
}

static void add_skipped(zlg_models *models, const char *path, const char *reason) {
  struct entry *entry = append(models, &models->skipped, path);
  if (entry && !(entry->reason = zlg_strdup(reason))) models->failed = true;
}

static void add_model(zlg_models *models, const char *path, const struct zlg_model *model) {
  struct zlg_model *kept = zlg_malloc(sizeof *kept);
  if (!kept) {
    models->failed = true;
    return;
  }
  *kept = *model;
  for (int i = 0; i < model->curve_count; i++) {
    struct entry *entry = append(models, &models->found, path);
    if (!entry) {
      if (i == 0) zlg_free(kept);
      return;
    }
    entry->model = kept;
    entry->curve = i;
    entry->fit = zlg_curve_fit(&kept->curves[i]);
  }
}

static void add(void *user, const char *path, const struct zlg_model *model, const char *reason) {
  if (model)
    add_model(user, path, model);
  else
    add_skipped(user, path, reason);
}

/* By codelet and label, then host and kind: directories are in no order. */
static int compare(const struct entry *a, const struct entry *b) {
  int order = strcmp(a->path, b->path);
  return order ? order : a->curve - b->curve;
}

static void sort(struct list *list) {
  for (int i = 1; i < list->count; i++) {
    struct entry moved = list->entries[i];
    int at = i;
    for (; at > 0 && compare(&moved, &list->entries[at - 1]) < 0; at--) list->entries[at] = list->entries[at - 1];
    list->entries[at] = moved;
  }
}

static void free_list(struct list *list) {
  for (int i = 0; i < list->count; i++) {
    zlg_free(list->entries[i].path);
    zlg_free(list->entries[i].reason);
    if (list->entries[i].curve == 0) zlg_free(list->entries[i].model);
  }
  zlg_free(list->entries);
}

void zlg_models_release(zlg_models *models) {
  if (!models) return;
  free_list(&models->found);
  free_list(&models->skipped);
  zlg_free(models->directory);
  zlg_free(models);
  zlg_allocator_lock(-1);
}

int zlg_models_open(zlg_models **models, const char *directory) {
  if (!models) return zlg_fail(NULL, ZLG_EINVAL, "models is NULL, expected where to put them");
  *models = NULL;
  char usual[512];
  if (!directory) {
    zlg_runtime_model_directory(usual, sizeof usual);
    directory = usual;
  }
  struct stat about;
  int error = stat(directory, &about) != 0 ? errno : S_ISDIR(about.st_mode) ? 0 : ENOTDIR;
  if (error) return zlg_fail(NULL, ZLG_ENOENT, "%s: %s", directory, strerror(error));
  zlg_allocator_lock(+1);
  zlg_models *made = zlg_calloc(1, sizeof *made);
  if (!made) {
    zlg_allocator_lock(-1);
    return zlg_fail(NULL, ZLG_ENOMEM, "no memory for a list of models");
  }
  made->directory = zlg_strdup(directory);
  if (made->directory) zlg_model_scan(directory, NULL, add, made);
  if (made->failed || !made->directory) {
    zlg_models_release(made);
    return zlg_fail(NULL, ZLG_ENOMEM, "no memory for the models of %s", directory);
  }
  sort(&made->found);
  sort(&made->skipped);
  *models = made;
  return ZLG_OK;
}

const char *zlg_models_directory(const zlg_models *models) {
  return models ? models->directory : "";
}

int zlg_models_count(const zlg_models *models) {
  return models ? models->found.count : 0;
}

int zlg_models_get(const zlg_models *models, int index, zlg_model_info *info) {
  if (!models || !info) return zlg_fail(NULL, ZLG_EINVAL, "%s is NULL", models ? "info" : "models");
  if (index < 0 || index >= models->found.count)
    return zlg_fail(NULL, ZLG_EINVAL, "model index = %d, expected 0 to %d", index, models->found.count - 1);
  const struct entry *entry = &models->found.entries[index];
  const struct zlg_model *model = entry->model;
  const struct zlg_curve *curve = &model->curves[entry->curve];
  *info = (zlg_model_info){.codelet = model->codelet,
                           .label = model->label,
                           .host = model->host,
                           .instruction_set = model->instructions,
                           .path = entry->path,
                           .kind = curve->kind,
                           .point_count = curve->count,
                           .points = curve->points,
                           .unseen_count = curve->unseen_count,
                           .unseen = curve->unseen,
                           .a = entry->fit.a,
                           .b = entry->fit.b,
                           .c = entry->fit.c,
                           .fit_error = entry->fit.error};
  return ZLG_OK;
}

int zlg_models_skipped(const zlg_models *models, int index, const char **path, const char **reason) {
  if (!models || !path || !reason)
    return zlg_fail(NULL, ZLG_EINVAL, "%s is NULL", !models ? "models" : !path ? "path" : "reason");
  if (index < 0 || index >= models->skipped.count)
    return zlg_fail(NULL, ZLG_EINVAL, "skipped index = %d, expected 0 to %d", index, models->skipped.count - 1);
  *path = models->skipped.entries[index].path;
  *reason = models->skipped.entries[index].reason;
  return ZLG_OK;
}
