/* The `zellige` command: finds the subcommand and hands over. For people at a terminal with files on disk, and for
 * scripts. */
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/interrupt.h"
#include "tools/tool.h"

struct command {
  const char *name, *summary;
  tool_command_fn *run;
};

static const struct command commands[] = {
#define ZLG_COMMAND(name, summary) {#name, summary, command_##name},
#include "tools/commands.def"
#undef ZLG_COMMAND
};
enum { KEY_USAGE = 0x1000 };
static const size_t command_count = sizeof commands / sizeof commands[0];

static const struct command *current; /* the subcommand that runs: messages name it */

static const struct command *find_command(const char *name) {
  for (size_t i = 0; i < command_count; i++)
    if (strcmp(commands[i].name, name) == 0) return &commands[i];
  return NULL;
}

static void say(const char *kind, const char *format, va_list arguments) {
  flockfile(stderr);
  fprintf(stderr, "zellige: ");
  if (current) fprintf(stderr, "%s: ", current->name);
  fprintf(stderr, "%s", kind);
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
  funlockfile(stderr);
}

void tool_error(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  say("", format, arguments);
  va_end(arguments);
}

void tool_warning(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  say("warning: ", format, arguments);
  va_end(arguments);
}

static void __attribute__((noreturn)) try_help(void) {
  fprintf(stderr, "Try 'zellige %s --help' for more information.\n", current->name);
  exit(TOOL_USAGE);
}

void tool_usage_error(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  say("", format, arguments);
  va_end(arguments);
  try_help();
}

void tool_library_error(const zlg_context *context, int status, const char *what) {
  const char *message = zlg_context_message(context);
  if (!message || !*message) message = zlg_strerror(status);
  if (what && !strstr(message, what))
    tool_error("%s: %s", what, message);
  else
    tool_error("%s", message);
}

int tool_finish(int code) {
  if (fflush(stdout) == 0 && !ferror(stdout)) return code;
  tool_error("standard output: %s", errno ? strerror(errno) : "write error");
  return TOOL_FAILED;
}

/* Stands around a subcommand's argp: --help and --usage with the two-word name, and errors whose first line getopt
 * printed. */
static error_t parse_common(int key, char *argument, struct argp_state *state) {
  (void)argument;
  char name[64];
  snprintf(name, sizeof name, "zellige %s", current->name);
  switch (key) {
  case ARGP_KEY_INIT:
    state->err_stream = NULL; /* its "Try" line would show argv[0], which is the prefix of getopt's messages */
    state->child_inputs[0] = state->input;
    return 0;
  case '?':
    argp_help(state->root_argp, stdout, ARGP_HELP_STD_HELP & ~ARGP_HELP_EXIT_OK, name);
    exit(tool_finish(TOOL_OK));
  case KEY_USAGE:
    argp_help(state->root_argp, stdout, ARGP_HELP_USAGE, name);
    exit(tool_finish(TOOL_OK));
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

void tool_parse(const struct argp *argp, int argc, char **argv, void *input) {
  static const struct argp_option options[] = {{"help", '?', NULL, 0, "Give this help list", -1},
                                               {"usage", KEY_USAGE, NULL, 0, "Give a short usage message", -1},
                                               {0}};
  const struct argp_child children[] = {{argp, 0, NULL, 0}, {0}};
  const struct argp common = {options, parse_common, NULL, NULL, children, NULL, NULL};
  char prefix[64];
  snprintf(prefix, sizeof prefix, "zellige: %s", current->name);
  char *name = argv[0];
  argv[0] = prefix;
  error_t error = argp_parse(&common, argc, argv, ARGP_NO_HELP, NULL, input);
  argv[0] = name;
  if (error == EINVAL) try_help();
  if (error) {
    tool_error("%s", strerror(error));
    exit(TOOL_FAILED);
  }
}

static void print_help(FILE *to) {
  fputs("Usage: zellige COMMAND [OPTION...] [ARGUMENT...]\n"
        "Structured linear operators applied to data that may be far larger than memory.\n\nCommands:\n",
        to);
  for (size_t i = 0; i < command_count; i++) fprintf(to, "  %-10s %s\n", commands[i].name, commands[i].summary);
  fputs("  help       show the help of a command\n"
        "\n"
        "  -?, --help     give this list\n"
        "  -V, --version  print the version\n"
        "\n"
        "'zellige COMMAND --help' tells a command's options; the manual is zellige(1).\n",
        to);
}

static int print_version(void) {
  printf("zellige %s\n", zlg_version());
  if (strcmp(zlg_version(), ZLG_VERSION) != 0) printf("(the command was built for library %s)\n", ZLG_VERSION);
  return tool_finish(TOOL_OK);
}

static int unknown_command(const char *name) {
  tool_error(*name == '-' ? "unrecognized option '%s'" : "no command '%s'", name);
  fprintf(stderr, "Try 'zellige --help' for the list of commands.\n");
  return TOOL_USAGE;
}

static int run_command(const struct command *command, int argc, char **argv) {
  current = command;
  return command->run(argc, argv);
}

static int run_help(int argc, char **argv) {
  if (argc < 2) {
    print_help(stdout);
    return tool_finish(TOOL_OK);
  }
  const struct command *command = find_command(argv[1]);
  if (!command) return unknown_command(argv[1]);
  char *help[] = {argv[1], (char *)"--help", NULL};
  return run_command(command, 2, help);
}

/* Where a standard descriptor is closed, the next file opened would take its number and get the report's text into it.
 * Opened the wrong way round, it gives an error to whoever uses it. */
static void fill_standard_descriptors(void) {
  for (int descriptor = STDIN_FILENO; descriptor <= STDERR_FILENO; descriptor++)
    if (fcntl(descriptor, F_GETFD) < 0 && errno == EBADF) {
      int filler = open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY);
      (void)filler; /* the lowest free number: this one */
    }
}

int main(int argc, char **argv) {
  fill_standard_descriptors();
  setlocale(LC_CTYPE, "");  /* which bar the terminal can show; numbers stay as programs read them */
  signal(SIGPIPE, SIG_IGN); /* a closed pipe is a write error: an unfinished output is then removed as for any other */
  interrupt_remember();
  if (argc < 2) {
    print_help(stderr);
    return TOOL_USAGE;
  }
  const char *name = argv[1];
  if (!strcmp(name, "--help") || !strcmp(name, "-?") || !strcmp(name, "-h")) return run_help(1, argv);
  if (!strcmp(name, "help")) return run_help(argc - 1, argv + 1);
  if (!strcmp(name, "--version") || !strcmp(name, "-V")) return print_version();
  const struct command *command = find_command(name);
  if (!command) return unknown_command(name);
  return run_command(command, argc - 1, argv + 1);
}
