/* The objective of any labelled task: what a row of the table of tasks (tasks/task.h) is to the loop. */
#ifndef TRAIN_LABELLED_H
#define TRAIN_LABELLED_H

#include "comm/comm.h"
#include "data/step_reader.h"
#include "report/preview.h"
#include "report/task.h"
#include "tasks/task.h"
#include "train/objective.h"

struct labelled_settings {
	const struct task_state *task; /* borrowed, as all that follows */
	const struct model *model;
	struct activations *activations;
	struct comm *comm; /* NULL: one rank */
	struct instances *train;
	const struct task_set *train_set; /* what `train` is made of */
	struct step_settings steps;
	struct task_set *evaluation; /* [evaluation_count] sets with labels */
	int64_t evaluation_count;
	struct batch_capacity evaluation_capacity; /* within that of activations */
	int32_t vocab_size;
	struct task_preview *preview; /* of the first set; NULL: none is wanted */
};

MUST_USE enum status labelled_objective_create(struct objective **out, const struct labelled_settings *settings);

/* Scores a set: its outputs (released by the caller), and measures, of which the first is "loss". [all] */
MUST_USE enum status labelled_score(const struct labelled_settings *settings, struct replica *replica, struct task_set *set,
				    struct task_outputs *outputs, struct measures *out);

/* What a report needs to know about the task, from the labels of its training set and of the first set that it is evaluated on
 * (NULL: none is). */
MUST_USE enum status labelled_report(const struct task_state *task, const struct task_set *train, const struct task_set *dev,
				     struct task_preview *preview, struct report_task *out);

#endif
