/* JSON as the command prints it: one object on stdout, raw numbers, null for what is not known. */
#ifndef ZLG_TOOL_JSON_H
#define ZLG_TOOL_JSON_H

#include <jansson.h>

#include "zellige.h"

/* A number; null for NaN and infinity, which JSON has not. */
json_t *number_json(double value);
/* Bytes; null where negative, which means unknown. */
json_t *bytes_json(int64_t bytes);
/* Text that need not be UTF-8, such as a file's name: other bytes become '?'. NULL is null. */
json_t *text_json(const char *text);
json_t *worker_json(const zlg_worker_info *worker);

/* Prints and gives back `object`; NULL is memory that ran out. Returns TOOL_OK or, after a message, TOOL_FAILED. */
int print_json(json_t *object);

#endif
