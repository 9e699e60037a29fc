/* The progress bar on a pseudo-terminal of several widths: one line that fits, says the truth, and takes itself away.
 */
#include <locale.h>
#include <pty.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support.h"
#include "tools/interrupt.h"
#include "tools/progress.h"

#define CHECK(what) zlg_check((what), #what, __FILE__, __LINE__)

/* A machine of our own, in place of the library's: 64 cores and 2 devices. */
enum { CORES = 64, WORKERS = CORES + 2 };

int zlg_context_worker(const zlg_context *context, int index, zlg_worker_info *info) {
  static char names[WORKERS][32];
  (void)context;
  snprintf(names[index], sizeof names[index], index < CORES ? "CPU %d" : "CUDA %d (a card, 80 GiB)", index % CORES);
  *info = (zlg_worker_info){index < CORES ? ZLG_WORKER_CPU : ZLG_WORKER_CUDA, index, 0, names[index]};
  return ZLG_OK;
}

static zlg_progress half_done(int workers) {
  static double shares[WORKERS];
  for (int i = 0; i < workers; i++) shares[i] = 1.0 / workers;
  return (zlg_progress){.work_done = 24.9e9,
                        .work_total = 50e9,
                        .tasks_done = 249,
                        .tasks_total = 500,
                        .seconds = 20,
                        .seconds_left = 20.2,
                        .worker_count = workers,
                        .worker_share = shares};
}

/* What `draw` writes to a terminal of that width. */
struct screen {
  char text[4096];
};

static struct screen on_terminal(int columns, const char *term, void (*draw)(void)) {
  struct screen screen = {""};
  struct winsize size = {.ws_col = (unsigned short)columns, .ws_row = 24};
  int master;
  fflush(stdout);
  pid_t child = forkpty(&master, NULL, NULL, &size);
  if (child == 0) {
    setenv("TERM", term, 1);
    draw();
    _exit(0);
  }
  size_t length = 0;
  ssize_t got;
  while ((got = read(master, screen.text + length, sizeof screen.text - 1 - length)) > 0) length += (size_t)got;
  screen.text[length] = 0;
  waitpid(child, NULL, 0);
  close(master);
  return screen;
}

/* Columns of the longest line, without what moves the cursor or colours. */
static int columns_used(const char *text) {
  int columns = 0, most = 0;
  for (const char *p = text; *p; p++) {
    if (*p == '\033') {
      while (*p && !strchr("Km", *p)) p++;
      continue;
    }
    if (*p == '\r' || *p == '\n')
      columns = 0;
    else if ((*p & 0xc0) != 0x80)
      columns++;
    if (columns > most) most = columns;
  }
  return most;
}

static int test_workers;

static void draw_half(void) {
  struct progress progress = {.mode = PROGRESS_AUTO, .unit = "pair"};
  zlg_progress now = half_done(test_workers);
  progress_report(&progress, &now);
}

static void draw_and_clear(void) {
  struct progress progress = {.mode = PROGRESS_AUTO, .unit = "pair"};
  zlg_progress now = half_done(2);
  progress_report(&progress, &now);
  progress_clear(&progress);
}

static void draw_early(void) {
  struct progress progress = {.mode = PROGRESS_AUTO, .unit = "pair"};
  zlg_progress now = half_done(2);
  now.seconds = 0.9;
  progress_report(&progress, &now);
}

static void draw_first(void) {
  struct progress progress = {.mode = PROGRESS_AUTO, .unit = "pair"};
  zlg_progress now = half_done(2);
  now.work_done = 0;
  now.seconds_left = 0.0 / 0.0;
  progress_report(&progress, &now);
}

static void a_wide_terminal_gets_everything(void) {
  test_workers = 2;
  struct screen screen = on_terminal(120, "xterm", draw_half);
  CHECK(strstr(screen.text, " 49%"));
  CHECK(strstr(screen.text, "1.25 Gpair/s"));
  CHECK(strstr(screen.text, "0:21 left"));
  CHECK(strstr(screen.text, "CPU 0 50%"));
  CHECK(strstr(screen.text, "CPU 1 50%"));
}

static void many_workers_are_told_by_kind(void) {
  test_workers = WORKERS;
  struct screen screen = on_terminal(120, "xterm", draw_half);
  CHECK(strstr(screen.text, "64 cpu 97%"));
  CHECK(strstr(screen.text, "2 cuda 3%"));
}

static void the_line_fits_every_width(void) {
  for (int workers = 0; workers <= WORKERS; workers += 33)
    for (int columns = 5; columns <= 200; columns += 3) {
      test_workers = workers;
      struct screen screen = on_terminal(columns, "xterm", draw_half);
      char text[64];
      snprintf(text, sizeof text, "%d columns used of %d", columns_used(screen.text), columns);
      zlg_check(columns_used(screen.text) < columns, text, __FILE__, __LINE__);
      CHECK(strstr(screen.text, "49%"));
    }
}

static void it_takes_itself_away(void) {
  struct screen screen = on_terminal(80, "xterm", draw_and_clear);
  size_t length = strlen(screen.text);
  CHECK(length > 4 && !strcmp(screen.text + length - 4, "\r\033[K"));
  screen = on_terminal(80, "dumb", draw_and_clear);
  CHECK(!strchr(screen.text, '\033'));
  length = strlen(screen.text);
  CHECK(length > 60 && screen.text[length - 1] == '\r' && screen.text[length - 2] == ' ');
}

static void short_work_shows_none(void) {
  CHECK(*on_terminal(80, "xterm", draw_early).text == 0);
}

static void before_the_first_task_the_time_left_is_open(void) {
  struct screen screen = on_terminal(80, "xterm", draw_first);
  CHECK(strstr(screen.text, "  0%"));
  CHECK(strstr(screen.text, "--:-- left"));
  CHECK(!strstr(screen.text, "pair/s"));
}

static void draw_notice(void) {
  struct progress progress = {.mode = PROGRESS_AUTO};
  progress_wait(&progress, "starting the workers");
  sleep(2);
  progress_waited(&progress);
}

static void draw_short_notice(void) {
  struct progress progress = {.mode = PROGRESS_AUTO};
  progress_wait(&progress, "starting the workers");
  progress_waited(&progress);
}

static void a_long_wait_is_told_and_taken_away(void) {
  CHECK(!strcmp(on_terminal(80, "xterm", draw_notice).text, "\rstarting the workers\r\033[K"));
  CHECK(!strcmp(on_terminal(10, "xterm", draw_notice).text, "\rstarting \r\033[K"));
  CHECK(*on_terminal(80, "xterm", draw_short_notice).text == 0);
}

static void colour_is_left_out_where_it_is_not_wanted(void) {
  test_workers = 2;
  CHECK(strstr(on_terminal(80, "xterm", draw_half).text, "\033[32m"));
  setenv("NO_COLOR", "1", 1);
  CHECK(!strstr(on_terminal(80, "xterm", draw_half).text, "\033[32m"));
  unsetenv("NO_COLOR");
}

static void the_bar_speaks_the_locale(void) {
  test_workers = 2;
  setlocale(LC_ALL, "C");
  CHECK(strstr(on_terminal(80, "xterm", draw_half).text, "#"));
  if (!setlocale(LC_CTYPE, "C.UTF-8")) return;
  struct screen screen = on_terminal(80, "xterm", draw_half);
  CHECK(strstr(screen.text, "\u2588") && !strchr(screen.text, '#'));
  CHECK(columns_used(screen.text) < 80);
  setlocale(LC_ALL, "C");
}

static const struct zlg_test_case cases[] = {
    {"a_wide_terminal_gets_everything", a_wide_terminal_gets_everything},
    {"many_workers_are_told_by_kind", many_workers_are_told_by_kind},
    {"the_line_fits_every_width", the_line_fits_every_width},
    {"it_takes_itself_away", it_takes_itself_away},
    {"short_work_shows_none", short_work_shows_none},
    {"before_the_first_task_the_time_left_is_open", before_the_first_task_the_time_left_is_open},
    {"a_long_wait_is_told_and_taken_away", a_long_wait_is_told_and_taken_away},
    {"colour_is_left_out_where_it_is_not_wanted", colour_is_left_out_where_it_is_not_wanted},
    {"the_bar_speaks_the_locale", the_bar_speaks_the_locale},
    {NULL, NULL}};

int main(int argc, char **argv) {
  unsetenv("NO_COLOR");
  return zlg_test_main(argc, argv, cases);
}
