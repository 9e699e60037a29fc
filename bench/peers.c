/* Other people's software, run in the same minutes as ours: one helper process a peer (bench/peers.py in the
 * environment that bench/peers.sh made), which prepares a problem and does one repetition of it on command over a pipe.
 * A peer that is not installed, does not know the problem or dies is left out. */
#define _GNU_SOURCE
#include "bench/bench.h"

#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SETUP_MILLISECONDS = 300000, ONCE_MILLISECONDS = 60000 };

struct helper {
  const char *name;
  bool compiles; /* seconds per problem: not in a quick run */
  bool tried;
  pid_t process; /* 0: none */
  int threads;
  int to, from;
};

static struct helper helpers[] = {
    {.name = "keops", .compiles = true},
    {.name = "keops-tuned", .compiles = true},
    {.name = "blas-tile"},
    {.name = "fastkron"},
};
enum { HELPERS = sizeof helpers / sizeof *helpers };

/* Set by the driver where the user did not. */
static const char *home(void) {
  const char *given = getenv("ZLG_BENCH_PEERS");
  return given ? given : "";
}

/* It ends by itself when its input does, and saves what it compiled; one that is stuck is killed. */
static void helper_stop(struct helper *helper) {
  if (!helper->process) return;
  close(helper->to);
  for (int t = 0; t < 50 && helper->process; t++) {
    if (waitpid(helper->process, NULL, WNOHANG) != 0)
      helper->process = 0;
    else
      usleep(100000);
  }
  if (helper->process) {
    kill(helper->process, SIGKILL);
    waitpid(helper->process, NULL, 0);
    helper->process = 0;
  }
  close(helper->from);
}

/* In the child: becomes the helper, or ends. */
static void helper_become(const struct helper *helper, const char *python, int in, int out) {
  char threads[16], folder[4200];
  snprintf(threads, sizeof threads, "%d", helper->threads);
  snprintf(folder, sizeof folder, "%s/cache-%s", home(), helper->name);
  if (dup2(in, 0) < 0 || dup2(out, 1) < 0) _exit(127);
  setenv("OMP_NUM_THREADS", threads, 1);
  setenv("MALLOC_MMAP_THRESHOLD_", "1073741824",
         1); /* NumPy's temporaries are not given back to the system each time */
  setenv("MALLOC_TRIM_THRESHOLD_", "1073741824", 1);
  setenv("KEOPS_CACHE_FOLDER", folder, 1);
  if (strcmp(helper->name, "keops-tuned") == 0)
    setenv("CXXFLAGS", "-march=native -ffast-math", 1);
  else
    unsetenv("CXXFLAGS");
  execl(python, python, ZLG_BENCH_DIR "/peers.py", helper->name, threads, (char *)NULL);
  _exit(127);
}

static void helper_start(struct helper *helper, int threads) {
  char python[4200];
  int in[2], out[2];
  if (helper->process && helper->threads != threads) helper_stop(helper), helper->tried = false;
  if (helper->tried) return;
  helper->tried = true;
  helper->threads = threads;
  snprintf(python, sizeof python, "%s/venv/bin/python", home());
  if (access(python, X_OK)) return;
  if (pipe2(in, O_CLOEXEC)) return;
  if (pipe2(out, O_CLOEXEC)) {
    close(in[0]), close(in[1]);
    return;
  }
  helper->process = fork();
  if (helper->process == 0) helper_become(helper, python, in[0], out[1]);
  close(in[0]), close(out[1]);
  helper->to = in[1], helper->from = out[0];
  if (helper->process > 0) return;
  helper->process = 0;
  close(helper->to), close(helper->from);
}

/* Sends a line, waits for a line. False where the helper is gone or silent: it is ended then. */
static bool helper_ask(struct helper *helper, const char *question, int milliseconds, char *answer, size_t bytes) {
  size_t used = 0;
  if (!helper->process) return false;
  if (dprintf(helper->to, "%s\n", question) < 0) goto gone;
  while (used + 1 < bytes) {
    struct pollfd wait = {.fd = helper->from, .events = POLLIN};
    if (poll(&wait, 1, milliseconds) <= 0 || read(helper->from, answer + used, 1) != 1) goto gone;
    if (answer[used] == '\n') break;
    used++;
  }
  answer[used] = 0;
  return true;
gone:
  bench_say("  peer %s went away: %s", helper->name, question);
  helper_stop(helper);
  helper->tried = false; /* another problem may not end it */
  return false;
}

/* A peer that dies in the middle of a case reads as a figure of its own kind (NaN), not as our failure. */
static double helper_once(void *state) {
  char answer[256];
  double rate;
  if (!helper_ask(state, "once", ONCE_MILLISECONDS, answer, sizeof answer)) return INFINITY;
  return sscanf(answer, "rate %lf", &rate) == 1 ? rate : INFINITY;
}

int bench_peers(const struct bench_settings *settings, const char *problem, struct bench_meter *meters) {
  char question[512], answer[256];
  int count = 0;
  signal(SIGPIPE, SIG_IGN);
  for (int k = 0; k < HELPERS; k++) {
    if (helpers[k].compiles && settings->quick) continue;
    helper_start(&helpers[k], settings->workers);
    snprintf(question, sizeof question, "setup %g %s", settings->seconds, problem);
    if (!helper_ask(&helpers[k], question, SETUP_MILLISECONDS, answer, sizeof answer)) continue;
    if (strcmp(answer, "ready") == 0)
      meters[count++] = (struct bench_meter){.name = helpers[k].name, .once = helper_once, .state = &helpers[k]};
    else if (strncmp(answer, "absent", 6) != 0)
      bench_say("  peer %s: %s", helpers[k].name, answer);
  }
  return count;
}

void bench_peers_close(void) {
  for (int k = 0; k < HELPERS; k++) helper_stop(&helpers[k]);
}
