/* The objective of any labeled task: it connects an entry of the task table (tasks/task.h) to the training loop. */
#ifndef TRAIN_LABELED_H
#define TRAIN_LABELED_H

#include "comm/comm.h"
#include "data/step_reader.h"
#include "report/preview.h"
#include "tasks/task.h"
#include "train/objective.h"

struct labeled_settings {
	const struct task_state *task; /* borrowed, like all pointers below */
	const struct model *model;
	struct activations *activations;
	struct comm *comm; /* NULL: a single rank */
	struct instances *train;
	const struct task_set *train_set; /* what `train` was made from */
	struct step_settings steps;
	struct task_set *evaluation; /* [evaluation_count] labeled sets */
	int64_t evaluation_count;
	struct batch_capacity evaluation_capacity; /* within that of `activations` */
	int32_t vocab_size;
	struct task_preview *preview; /* of the first evaluation set; NULL: not wanted */
};

MUST_USE enum status labeled_objective_create(struct objective **out, const struct labeled_settings *settings);

/* Scores a set: computes its outputs (which the caller releases) and measures, the first of which is "loss". [all] */
MUST_USE enum status labeled_score(const struct labeled_settings *settings, struct replica *replica, struct task_set *set,
				   struct task_outputs *outputs, struct measures *out);

/* The measures that labeled_score() will have, with the values that outputs of zeros give them: known before there is a model.
 */
MUST_USE enum status labeled_measures(const struct task_state *task, const struct head *head, const struct task_set *set,
				      struct measures *out);

#endif
