/* Rates of a device from the operations of a training step on it. */
#ifndef CMD_PLAN_PROFILE_H
#define CMD_PLAN_PROFILE_H

#include "cmd/plan.h"

/* Rates from the operations of a training step, as `bertc bench --json` wrote them, or measured now on
 * the plan's back end with micro-batches like the first phase's. */
MUST_USE enum status plan_read_profile(struct plan *plan, const char *path);
MUST_USE enum status plan_measure(struct plan *plan);

#endif
