/* What every subcommand shares: how the command speaks (messages, exit codes) and how a subcommand is declared. A
 * subcommand is one file with command_<name>() in it and one row in commands.def. */
#ifndef ZLG_TOOL_H
#define ZLG_TOOL_H

#include <argp.h>
#include <stdbool.h>

#include "zellige.h"

/* Exit codes: 0 done, 1 something went wrong, 2 the command line was wrong. */
enum { TOOL_OK = 0, TOOL_FAILED = 1, TOOL_USAGE = 2 };

/* argv[0] is the subcommand's name. Returns the exit code. */
typedef int tool_command_fn(int argc, char **argv);

#define ZLG_COMMAND(name, summary) tool_command_fn command_##name;
#include "tools/commands.def"
#undef ZLG_COMMAND

/* Parses a subcommand's line; a wrong one ends the program with TOOL_USAGE, --help and --usage with TOOL_OK. */
void tool_parse(const struct argp *argp, int argc, char **argv, void *input);
/* "zellige: product: <text>" and the line that says where help is; ends the program with TOOL_USAGE. */
void tool_usage_error(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* "zellige: product: <text>" on stderr. */
void tool_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* "zellige: product: warning: <text>" on stderr. */
void tool_warning(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The library's message for a status, behind `what` (a file or an argument) where that is not NULL and not named in it.
 */
void tool_library_error(const zlg_context *context, int status, const char *what);

/* Flushes stdout; TOOL_FAILED with a message where it could not be written (a full disk, a closed pipe), else `code`.
 */
int tool_finish(int code);

#endif
