/* The pre-training objective: masked words and next sentences. */
#ifndef TRAIN_PRETRAINING_H
#define TRAIN_PRETRAINING_H

#include "comm/comm.h"
#include "data/pretraining/instances.h"
#include "train/objective.h"

/* Held-out text; name NULL for documents held out of the training text. */
struct evaluation_set {
	const char *name;
	struct instances *instances;
	bool whole; /* all of it, whatever evaluation_instances says */
};

struct pretraining_settings {
	const struct model *model;       /* borrowed */
	struct activations *activations; /* borrowed; of `training` kind when steps are asked for */
	struct comm *comm;               /* borrowed; NULL: one rank */
	struct instances *train;         /* borrowed; NULL: evaluation, and steps that others make */
	struct step_settings steps;
	const struct evaluation_set *evaluation_sets; /* [evaluation_count] borrowed */
	int64_t evaluation_count;
	int64_t evaluation_instances;              /* at most, of each; 0 = all */
	struct batch_capacity evaluation_capacity; /* within that of activations */
};

MUST_USE enum status pretraining_create(struct objective **out, const struct pretraining_settings *settings);

/* Scores `instances` (the first `limit` of epoch 0; 0 = all of it) without dropout:
 * loss mlm_loss mlm_perplexity mlm_accuracy nsp_loss nsp_accuracy predictions instances. Uses replica's
 * accumulators and the activations. The ranks of `comm` (NULL: one) share the work, and all get the result. */
MUST_USE enum status pretraining_score(const struct model *model, struct activations *activations, struct replica *replica,
				       struct comm *comm, struct instances *instances, int64_t limit,
				       struct batch_capacity capacity, struct measures *out);

/* Seconds the loop waited for data so far. */
double pretraining_waited(const struct objective *objective);

#endif
