/* Prints a plan as JSON, for programs. */
#ifndef CMD_PLAN_PLAN_JSON_H
#define CMD_PLAN_PLAN_JSON_H

#include "cmd/plan/plan_result.h"

enum status plan_show_json(const struct plan *plan, const struct plan_result *results, int64_t wanted_devices,
			   double wanted_seconds);

#endif
