/* What a plan computes with: back end, rates of the device, and links, each noted with its source. */
#ifndef CMD_PLAN_PLAN_MACHINE_H
#define CMD_PLAN_PLAN_MACHINE_H

#include "cmd/plan/plan.h"

MUST_USE enum status plan_open_machine(struct plan *plan);

#endif
