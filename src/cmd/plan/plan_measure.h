/* The rates of CPUs, derived from the operations of a training step. */
#ifndef CMD_PLAN_PLAN_MEASURE_H
#define CMD_PLAN_PLAN_MEASURE_H

#include "cmd/plan/plan.h"

/* Sets the plan's rates from steps measured now on its back end, with micro-batches like those of the first phase. */
MUST_USE enum status plan_measure(struct plan *plan);

#endif
