/* What is said before and after a request: the plan and the report, as text for people and as JSON for programs. */
#ifndef ZLG_TOOL_REPORT_H
#define ZLG_TOOL_REPORT_H

#include <jansson.h>
#include <stdbool.h>

#include "zellige.h"

/* `unit`: of work, singular. `right`: X stands left of A. */
void plan_print(const zlg_context *context, const zlg_operator *A, zlg_op op, bool right, const zlg_matrix *X,
                const char *title, const zlg_cost *cost, const char *unit);
json_t *cost_json(const zlg_cost *cost);

void report_print(const zlg_report *report, const char *output);
json_t *report_json(const zlg_report *report);

#endif
