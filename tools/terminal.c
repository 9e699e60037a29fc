/* What the terminal can show: see terminal.h. */
#include "tools/terminal.h"

#include <langinfo.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tools/number.h"

bool terminal_is(int descriptor) {
  return isatty(descriptor) == 1;
}

bool terminal_foreground(int descriptor) {
  pid_t group = tcgetpgrp(descriptor);
  return group < 0 || group == getpgrp();
}

int terminal_width(int descriptor) {
  struct winsize size;
  if (ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  const char *columns = getenv("COLUMNS");
  int64_t width;
  if (columns && parse_int64(columns, &width) && width > 0 && width < 10000) return (int)width;
  return 80;
}

bool terminal_utf8(void) {
  return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

bool terminal_moves(int descriptor) {
  const char *term = getenv("TERM");
  return terminal_is(descriptor) && term && *term && strcmp(term, "dumb") != 0;
}

bool terminal_colour(int descriptor) {
  const char *no = getenv("NO_COLOR");
  return terminal_moves(descriptor) && !(no && *no);
}
