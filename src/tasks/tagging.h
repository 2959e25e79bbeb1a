/* The tagging task: functions beyond its entry in the table of tasks. */
#ifndef TASKS_TAGGING_H
#define TASKS_TAGGING_H

#include "tasks/measures.h"
#include "tasks/task.h"

/* The scores by entity type for a set of task_tagging that has labels; empty for plain tags. The names live as long as the set;
 * to be released by entity_scores_release(). */
MUST_USE enum status tagging_entity_scores(const struct task_state *state, const struct task_set *set,
					   const struct task_outputs *outputs, struct entity_scores *out);

#endif
