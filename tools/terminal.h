/* What the terminal behind a descriptor can show. */
#ifndef ZLG_TOOL_TERMINAL_H
#define ZLG_TOOL_TERMINAL_H

#include <stdbool.h>

bool terminal_is(int descriptor);
bool terminal_foreground(int descriptor); /* this process may write to it: a job in the background should not */
int terminal_width(int descriptor);       /* columns, 80 where unknown; COLUMNS is for what is no terminal */
bool terminal_utf8(void);                 /* the locale's characters */
bool terminal_moves(int descriptor);      /* cursor movements and erasing work: TERM is set and not "dumb" */
bool terminal_colour(int descriptor);     /* and colours are wanted: NO_COLOR is unset or empty */

#endif
