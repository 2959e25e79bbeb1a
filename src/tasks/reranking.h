/* Rerankers, beyond what the row of the table says. */
#ifndef TASKS_RERANKING_H
#define TASKS_RERANKING_H

#include "tasks/task.h"

/* Adds the measures of a set of task_reranking as they are on average if the texts of each query are put in a random order; none
 * where no query has several. The set is encoded and has scores. */
MUST_USE enum status reranking_measure_random(const struct task_set *set, struct measures *out);

#endif
