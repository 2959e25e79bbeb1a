/* The rates of a device, derived from the operations of a training step on it. */
#ifndef CMD_PLAN_PROFILE_H
#define CMD_PLAN_PROFILE_H

#include "cmd/plan.h"

/* Sets the plan's rates from the operations of a training step: as `bertc bench --json` wrote them, or as measured now on the
 * plan's back end with micro-batches like those of the first phase. */
MUST_USE enum status plan_read_profile(struct plan *plan, const char *path);
MUST_USE enum status plan_measure(struct plan *plan);

#endif
