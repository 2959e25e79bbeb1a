/* Rewriting, beyond what the row of the table says. */
#ifndef TASKS_REWRITING_H
#define TASKS_REWRITING_H

#include "tasks/task.h"

/* Adds the measures (copy_bleu_4, ...) of leaving each text of a set of task_rewriting as it is. The set is encoded and has
 * targets. */
MUST_USE enum status rewriting_measure_copies(const struct task_set *set, struct measures *out);

#endif
