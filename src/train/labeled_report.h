/* What a report shows of a labeled task, which its row says (task.view): the answers to the newest evaluation, and what losses
 * and scores are compared with. */
#ifndef TRAIN_LABELED_REPORT_H
#define TRAIN_LABELED_REPORT_H

#include "report/task.h"
#include "train/labeled.h"

/* Puts the answers to a labeled set into settings->preview, in place of those of an earlier step. */
MUST_USE enum status labeled_show(const struct labeled_settings *settings, int64_t step, const struct task_set *set,
				  const struct task_outputs *outputs);

/* What a report needs to know about the task, from the labels of the training set and of the first evaluation set (NULL: there
 * is none). */
MUST_USE enum status labeled_report(const struct task_state *task, const struct task_set *train, const struct task_set *dev,
				    struct task_preview *preview, struct report_task *out);

#endif
