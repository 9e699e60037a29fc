/* Pictures: a script for gnuplot, SVG or PNG by the file's name. */
#ifndef ZLG_TOOL_GNUPLOT_H
#define ZLG_TOOL_GNUPLOT_H

#include <stdbool.h>
#include <stdio.h>

/* True for FILE.svg and FILE.png. */
bool gnuplot_knows(const char *output);
/* Draws into `output`, which gnuplot_knows(), what write(script, user) says; width and height in pixels. TOOL_OK, or
 * TOOL_FAILED after a message. */
int gnuplot_draw(const char *output, int width, int height, void (*write)(FILE *script, void *user), void *user);

#endif
