/* Tables on a terminal: see table.h. */
#include "tools/table.h"

#include <stdlib.h>
#include <string.h>

enum { GAP = 2, NARROWEST = 8 };

struct table {
  int columns, rows, capacity;
  bool failed; /* memory ran out: nothing is printed */
  bool *right;
  char **cells; /* rows x columns, the titles first */
};

static void table_free(struct table *table) {
  for (int i = 0; i < table->rows * table->columns; i++) free(table->cells[i]);
  free(table->cells);
  free(table->right);
  free(table);
}

struct table *table_new(const char *const *headers) {
  struct table *table = calloc(1, sizeof *table);
  if (!table) return NULL;
  while (headers[table->columns]) table->columns++;
  const char **titles = calloc((size_t)table->columns, sizeof *titles);
  table->right = calloc((size_t)table->columns, sizeof *table->right);
  if (!titles || !table->right) {
    free(titles);
    table_free(table);
    return NULL;
  }
  for (int i = 0; i < table->columns; i++) {
    table->right[i] = *headers[i] == '>';
    titles[i] = headers[i] + table->right[i];
  }
  table_add(table, titles);
  free(titles);
  return table;
}

void table_add(struct table *table, const char *const *cells) {
  if (!table) return;
  if (table->rows == table->capacity) {
    int capacity = table->capacity ? 2 * table->capacity : 8;
    char **longer = realloc(table->cells, (size_t)capacity * (size_t)table->columns * sizeof *longer);
    if (!longer) {
      table->failed = true;
      return;
    }
    table->cells = longer;
    table->capacity = capacity;
  }
  char **row = &table->cells[table->rows++ * table->columns];
  for (int i = 0; i < table->columns; i++) {
    row[i] = strdup(cells[i]);
    table->failed |= !row[i];
  }
}

static void print_cell(const char *text, int width, bool right, bool last, FILE *to) {
  int length = (int)strlen(text);
  if (length > width) {
    fprintf(to, "%.*s..", width - 2, text);
  } else if (right) {
    fprintf(to, "%*s", width, text);
  } else {
    fprintf(to, "%-*s", last ? 0 : width, text);
  }
  if (!last) fprintf(to, "%*s", GAP, "");
}

void table_print(struct table *table, FILE *to, int width) {
  if (!table) return;
  int *widths = table->failed ? NULL : calloc((size_t)table->columns, sizeof *widths);
  if (!widths) {
    table_free(table);
    return;
  }
  int total = 0;
  for (int c = 0; c < table->columns; c++) {
    for (int r = 0; r < table->rows; r++) {
      int length = (int)strlen(table->cells[r * table->columns + c]);
      if (length > widths[c]) widths[c] = length;
    }
    total += GAP + widths[c];
  }
  if (width > 0 && total >= width) {
    int narrower = widths[0] - (total - width + 1);
    if (narrower < NARROWEST) narrower = NARROWEST;
    if (narrower < widths[0]) widths[0] = narrower;
  }
  for (int r = 0; r < table->rows; r++) {
    fprintf(to, "%*s", GAP, "");
    for (int c = 0; c < table->columns; c++)
      print_cell(table->cells[r * table->columns + c], widths[c], table->right[c], c == table->columns - 1, to);
    fputc('\n', to);
  }
  free(widths);
  table_free(table);
}
