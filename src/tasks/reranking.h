/* The reranking task: functions beyond its entry in the table of tasks. */
#ifndef TASKS_RERANKING_H
#define TASKS_RERANKING_H

#include "tasks/task.h"

/* Adds the expected measures of a set of task_reranking if the texts of each query are ranked at random; adds none if no query
 * has several texts. The set is encoded and has scores. */
MUST_USE enum status reranking_measure_random(const struct task_set *set, struct measures *out);

#endif
