/* Prints a plan for people. */
#ifndef CMD_PLAN_PLAN_PRINT_H
#define CMD_PLAN_PLAN_PRINT_H

#include "cmd/plan/plan_result.h"

enum status plan_show(const struct plan *plan, const struct plan_result *results, int64_t wanted_devices, double wanted_seconds);

#endif
