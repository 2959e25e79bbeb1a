/* The rewriting task: functions beyond its entry in the table of tasks. */
#ifndef TASKS_REWRITING_H
#define TASKS_REWRITING_H

#include "tasks/task.h"

/* Adds the measures (copy_bleu_4, ...) that leaving every text of a set of task_rewriting unchanged would get. The set is encoded
 * and has targets. */
MUST_USE enum status rewriting_measure_copies(const struct task_set *set, struct measures *out);

#endif
