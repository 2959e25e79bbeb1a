/* The result files of a labeled run in its folder: who wrote them, and what happens to those of an earlier start. */
#ifndef RUN_RUN_RESULTS_H
#define RUN_RUN_RESULTS_H

#include "run/run.h"
#include "tasks/task.h"

/* ERR_USAGE if a file that bertc did not write has the name of a result, in the run's folder or in those of its test sets.
 * Nothing is wrong with a plan. [all] */
MUST_USE enum status run_results_check(const struct run *run, const struct task_set *tests, int64_t count);
/* The same; then removes the results that are about to be computed, those of the dev sets if `evaluated`: a run that is stopped
 * while it answers must not leave the answers to other files behind. [all] */
MUST_USE enum status run_results_clear(const struct run *run, bool evaluated, const struct task_set *tests, int64_t count);
/* Returns `status`. STOPPED gets a message that says what is missing, since the model is already published. */
MUST_USE enum status run_results_stopped(enum status status);

#endif
