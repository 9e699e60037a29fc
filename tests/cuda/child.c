/* Children of tests on pretended cards: see the header. */
#include "tests/cuda/child.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support.h"

static _Noreturn void be_child(const char *const *environment, const char *report, void (*body)(void)) {
  for (; environment && environment[0]; environment += 2) setenv(environment[0], environment[1], 1);
  setenv("ZLG_CARD_REPORT", report, 1);
  unsigned before = CU_get_number_of_failures();
  body();
  unsigned failed = CU_get_number_of_failures() - before;
  for (CU_pFailureRecord record = CU_get_failure_list(); record != NULL; record = record->pNext)
    if (before > 0) /* the parent's own */
      before--;
    else
      printf("    %s:%u: %s\n", record->strFileName, record->uiLineNumber, record->strCondition);
  fflush(NULL);
  _exit(failed != 0);
}

static void read_report(const char *path, char *text, size_t bytes) {
  FILE *file = fopen(path, "r");
  size_t got = file ? fread(text, 1, bytes - 1, file) : 0;
  text[got] = '\0';
  if (file) fclose(file);
  unlink(path);
}

struct cards_child cards_run(const char *const *environment, void (*body)(void)) {
  struct cards_child child = {.passed = false};
  char *report = zlg_test_path("child-report");
  int status = 0;
  fflush(NULL);
  pid_t pid = fork();
  if (pid == 0) be_child(environment, report, body);
  if (pid > 0 && waitpid(pid, &status, 0) == pid) {
    child.passed = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    child.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  }
  read_report(report, child.reported, sizeof child.reported);
  free(report);
  return child;
}

bool cards_reported(const struct cards_child *child, const char *word) {
  const size_t length = strlen(word);
  for (const char *line = child->reported; line && *line; line = strchr(line, '\n'), line += line != NULL)
    if (strncmp(line, word, length) == 0 && line[length] == ':') return true;
  return false;
}

void cards_check_clean(const struct cards_child *child, const char *file, int line) {
  char text[512];
  snprintf(text, sizeof text, "the child %s (signal %d); cards reported: %.400s", child->passed ? "passed" : "failed",
           child->signal, child->reported);
  zlg_check(child->passed && child->reported[0] == '\0', text, file, line);
}

void cards_check_caught(const struct cards_child *child, const char *word, const char *file, int line) {
  char text[512];
  snprintf(text, sizeof text, "\"%s\" was not caught; signal %d, cards reported: %.300s", word, child->signal,
           child->reported);
  zlg_check(cards_reported(child, word), text, file, line);
}
