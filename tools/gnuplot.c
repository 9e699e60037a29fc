/* Pictures by gnuplot: see gnuplot.h. */
#define _GNU_SOURCE
#include "tools/gnuplot.h"

#include <errno.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/tool.h"

extern char **environ;

static const char *terminal_of(const char *output) {
  const char *dot = strrchr(output, '.');
  return dot && !strcmp(dot, ".svg") ? "svg" : dot && !strcmp(dot, ".png") ? "pngcairo" : NULL;
}

bool gnuplot_knows(const char *output) {
  return terminal_of(output) != NULL;
}

/* Runs gnuplot on the script in `file`. */
static int run_gnuplot(const char *file) {
  char *line[] = {(char *)"gnuplot", (char *)file, NULL};
  pid_t child;
  int status, error = posix_spawnp(&child, "gnuplot", NULL, NULL, line, environ);
  if (error == ENOENT) {
    tool_error("gnuplot is not installed, and plots need it (Debian: apt-get install gnuplot-nox)");
    return TOOL_FAILED;
  }
  if (error) {
    tool_error("gnuplot: %s", strerror(error));
    return TOOL_FAILED;
  }
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return TOOL_OK;
  tool_error("gnuplot failed on the plot");
  return TOOL_FAILED;
}

static void write_head(FILE *to, const char *output, int width, int height) {
  fprintf(to, "set terminal %s size %d,%d\nset output '", terminal_of(output), width, height);
  for (const char *c = output; *c; c++) fputs(*c == '\'' ? "''" : (char[]){*c, 0}, to);
  fputs("'\n", to);
}

int gnuplot_draw(const char *output, int width, int height, void (*write)(FILE *, void *), void *user) {
  char *script = NULL;
  const char *folder = getenv("TMPDIR");
  if (asprintf(&script, "%s/zellige-plot-XXXXXX", folder && *folder ? folder : "/tmp") < 0) return TOOL_FAILED;
  int descriptor = mkstemp(script), code = TOOL_FAILED;
  FILE *file = descriptor >= 0 ? fdopen(descriptor, "w") : NULL;
  if (!file) {
    tool_error("%s: %s", script, strerror(errno));
  } else {
    write_head(file, output, width, height);
    write(file, user);
    bool bad = ferror(file);
    if (fclose(file) || bad)
      tool_error("%s: %s", script, strerror(errno));
    else
      code = run_gnuplot(script);
    unlink(script);
  }
  free(script);
  return code;
}
