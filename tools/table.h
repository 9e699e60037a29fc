/* Tables on a terminal: columns as wide as needed, the first one cut where the line would not fit. */
#ifndef ZLG_TOOL_TABLE_H
#define ZLG_TOOL_TABLE_H

#include <stdbool.h>
#include <stdio.h>

struct table;

/* `headers`: the columns' titles, NULL-terminated; one that starts with '>' is right-aligned. NULL where memory is out.
 */
struct table *table_new(const char *const *headers);
/* One text a column, copied; rows are printed in the order given. */
void table_add(struct table *table, const char *const *cells);
/* Prints it, indented by two, not wider than `width` (0: any) as far as the first column can give way; then frees it.
 */
void table_print(struct table *table, FILE *to, int width);

#endif
