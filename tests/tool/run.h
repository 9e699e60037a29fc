/* The command as a child: a shell line is run, what it says is kept and compared. For the tests in this folder. */
#ifndef ZLG_TEST_TOOL_RUN_H
#define ZLG_TEST_TOOL_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "tests/support.h"

#define CHECK(what) zlg_check((what), #what, __FILE__, __LINE__)
#define CHECK_SAYS(part) zlg_check_says(zlg_out_text, (part), "stdout", __FILE__, __LINE__)
#define CHECK_COMPLAINS(part) zlg_check_says(zlg_err_text, (part), "stderr", __FILE__, __LINE__)
/* Runs a shell line in which `$z` is the command; its outputs go to zlg_out_text and zlg_err_text. Checks the exit
 * status. */
#define RUN(line, want) zlg_check_run((line), (want), __FILE__, __LINE__)

extern char zlg_program[1000], zlg_out_text[1 << 16], zlg_err_text[1 << 14];

/* Goes to the test's directory and finds the command; false after a message. */
bool zlg_tool_begin(void);
/* The options that give the mode's workers. */
const char *zlg_tool_workers(void);
void zlg_check_says(const char *text, const char *part, const char *where, const char *file, int line);
void zlg_check_run(const char *line, int want, const char *file, int at);

bool zlg_exists(const char *path);
long zlg_size_of(const char *path);
/* Files in the directory whose name starts so: a temporary left behind is one too many. */
int zlg_files_like(const char *pattern);
void zlg_write_file(const char *path, const void *data, size_t bytes);
/* Bytes read; 0 where there is no such file. */
size_t zlg_read_file(const char *path, void *data, size_t bytes);
/* Starts a shell line that ends in long work of the command (`$z`) on `output`; returns when it is at work. */
pid_t zlg_start_long(const char *line, const char *output);
/* The signal ends it, by that signal, with this on stderr, and nothing is left of the output. */
void zlg_check_dies_cleanly(pid_t child, int signal_number, const char *output, const char *says);
void zlg_pause(double seconds);
/* As a string. */
void zlg_slurp(const char *path, char *text, size_t bytes);

#endif
