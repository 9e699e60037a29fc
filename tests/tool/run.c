/* The command as a child: see run.h. */
#include "tests/tool/run.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

char zlg_program[1000], zlg_out_text[1 << 16], zlg_err_text[1 << 14];

bool zlg_tool_begin(void) {
  const char *build = getenv("ZLG_BUILDDIR");
  char *directory = zlg_test_path("");
  if (!build || chdir(directory)) {
    fputs("ZLG_BUILDDIR or ZLG_TEST_DIR is not set: run the test through tests/run-test\n", stderr);
    return false;
  }
  snprintf(zlg_program, sizeof zlg_program, "%s/tools/zellige", build);
  free(directory);
  signal(SIGPIPE, SIG_DFL);
  /* A shell's background jobs start with the interrupt ignored, those of nohup with the hangup. */
  signal(SIGINT, SIG_DFL);
  signal(SIGHUP, SIG_DFL);
  signal(SIGTERM, SIG_DFL);
  return true;
}

const char *zlg_tool_workers(void) {
  static const char *const options[] = {"-w 2 --opencl 0", "-w 1 --opencl 1 --sched lws",
                                        "-w 1 --opencl 3 --sched lws"};
  return options[zlg_test_mode()];
}

void zlg_check_says(const char *text, const char *part, const char *where, const char *file, int line) {
  char message[1500];
  snprintf(message, sizeof message, "%s has no \"%s\": \"%.900s\"", where, part, text);
  zlg_check(strstr(text, part) != NULL, message, file, line);
}

void zlg_slurp(const char *path, char *text, size_t bytes) {
  text[zlg_read_file(path, text, bytes - 1)] = 0;
}

static int run(const char *line) {
  char command[4000];
  snprintf(command, sizeof command, "z='%s'; { %s\n} > out.txt 2> err.txt", zlg_program, line);
  int status = system(command);
  zlg_slurp("out.txt", zlg_out_text, sizeof zlg_out_text);
  zlg_slurp("err.txt", zlg_err_text, sizeof zlg_err_text);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void zlg_check_run(const char *line, int want, const char *file, int at) {
  int got = run(line);
  char message[2500];
  snprintf(message, sizeof message, "%.600s: exit %d, want %d; stderr: %.900s", line, got, want, zlg_err_text);
  zlg_check(got == want, message, file, at);
}

bool zlg_exists(const char *path) {
  return access(path, F_OK) == 0;
}

long zlg_size_of(const char *path) {
  struct stat status;
  return stat(path, &status) ? -1 : (long)status.st_size;
}

int zlg_files_like(const char *pattern) {
  char line[300];
  snprintf(line, sizeof line, "ls -A | grep -c -- '%s'", pattern);
  run(line);
  return atoi(zlg_out_text);
}

void zlg_write_file(const char *path, const void *data, size_t bytes) {
  FILE *file = fopen(path, "w");
  if (!file || fwrite(data, 1, bytes, file) != bytes || fclose(file)) {
    perror(path);
    exit(1);
  }
}

size_t zlg_read_file(const char *path, void *data, size_t bytes) {
  FILE *file = fopen(path, "r");
  size_t got = file ? fread(data, 1, bytes, file) : 0;
  if (file) fclose(file);
  return got;
}

/* ---- long work ---- */

void zlg_pause(double seconds) {
  struct timespec t = {(time_t)seconds, (long)(1e9 * (seconds - floor(seconds)))};
  nanosleep(&t, NULL);
}

pid_t zlg_start_long(const char *line, const char *output) {
  char command[4000];
  snprintf(command, sizeof command, "z='%s'; %s > long.out 2> long.err", zlg_program, line);
  remove(output);
  pid_t child = fork();
  if (child == 0) {
    execl("/bin/sh", "sh", "-c", command, (char *)NULL);
    _exit(127);
  }
  for (int i = 0; i < 300 && zlg_files_like(output) == 0; i++) zlg_pause(0.1);
  zlg_pause(0.5);
  CHECK(zlg_files_like(output) == 1);
  CHECK(!zlg_exists(output));
  return child;
}

void zlg_check_dies_cleanly(pid_t child, int signal_number, const char *output, const char *says) {
  int status = 0;
  kill(child, signal_number);
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status) && WTERMSIG(status) == signal_number);
  CHECK(zlg_files_like(output) == 0);
  zlg_slurp("long.err", zlg_err_text, sizeof zlg_err_text);
  CHECK_COMPLAINS(says);
}
