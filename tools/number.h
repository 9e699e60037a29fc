/* Numbers as people write and read them. */
#ifndef ZLG_TOOL_NUMBER_H
#define ZLG_TOOL_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Each takes the whole text and returns false where it is no such number; nothing else is changed then. */
bool parse_int64(const char *text, int64_t *value);
bool parse_double(const char *text, double *value); /* nan and inf are numbers here: the library judges them */
/* "500M", "2Gi", "1.5GB", "4096": powers of 1000 (k M G T), or of 1024 with an i. Not negative. */
bool parse_bytes(const char *text, int64_t *bytes);
/* "ROWSxCOLUMNS". */
bool parse_shape(const char *text, int64_t *rows, int64_t *columns);
/* "1,2.5,3": a list in memory for free(); NULL where an item is no number (*count is then its index) or memory is out.
 */
double *parse_list(const char *text, size_t *count);

/* A short text, passed by value so that several stand in one printf. */
struct text {
  char s[32];
};
struct text show_bytes(double bytes);   /* "1.50 GiB", memory and caches; "500 MB" where it is round so */
struct text show_traffic(double bytes); /* "12.0 MB", files and transfers: powers of 1000 */
struct text show_count(double count, const char *unit); /* "1.25 Gpair" */
struct text show_seconds(double seconds);               /* "820 us", "12.3 ms", "1.95 s", "4 min 05 s", "2 h 07 min" */
struct text show_clock(double seconds);                 /* "0:07", "1:02:03" */
struct text show_percent(double fraction);              /* "50.3 %" */

#endif
