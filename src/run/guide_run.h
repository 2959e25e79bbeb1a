/* Vectors of a training set's texts by a model that is not trained: the guide of embeddings (--guide). */
#ifndef RUN_GUIDE_RUN_H
#define RUN_GUIDE_RUN_H

#include "run/run.h"
#include "tasks/task.h"

/* Has the task get such vectors, if its options name a model for that: from the run's device, in its precision. Not for a plan.
 * *hash: folded into it is the identity of that model. */
MUST_USE enum status guide_run_prepare(const struct run *run, const struct task_state *state, struct task_set *train,
				       uint64_t *hash);

#endif
