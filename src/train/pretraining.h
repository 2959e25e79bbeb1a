/* The pre-training objective: masked words and next sentences. */
#ifndef TRAIN_PRETRAINING_H
#define TRAIN_PRETRAINING_H

#include "comm/comm.h"
#include "data/pretraining/instances.h"
#include "train/objective.h"

/* Held-out text; `name` is NULL for documents held out of the training text. */
struct evaluation_set {
	const char *name;
	struct instances *instances;
	bool whole; /* score all of it, whatever evaluation_instances says */
};

struct pretraining_settings {
	const struct model *model;       /* borrowed */
	struct activations *activations; /* borrowed; must be for training if steps are asked for */
	struct comm *comm;               /* borrowed; NULL: a single rank */
	struct instances *train;         /* borrowed; NULL: only evaluation, or steps from elsewhere */
	struct step_settings steps;
	const struct evaluation_set *evaluation_sets; /* [evaluation_count] borrowed */
	int64_t evaluation_count;
	int64_t evaluation_instances;              /* maximum per set; 0 = all */
	struct batch_capacity evaluation_capacity; /* within that of `activations` */
};

MUST_USE enum status pretraining_create(struct objective **out, const struct pretraining_settings *settings);

/* Scores `instances` (the first `limit` of epoch 0; 0 = all of them) without dropout: loss mlm_loss mlm_perplexity
 * mlm_accuracy nsp_loss nsp_accuracy predictions instances. Uses the replica's accumulators and the activations. The ranks of
 * `comm` (NULL: a single rank) share the work, and all get the result. */
MUST_USE enum status pretraining_score(const struct model *model, struct activations *activations, struct replica *replica,
				       struct comm *comm, struct instances *instances, int64_t limit,
				       struct batch_capacity capacity, struct measures *out);

#endif
