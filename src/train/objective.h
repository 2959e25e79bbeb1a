/* The training loop's interface to a task: next step, forward and loss, backward, metrics, evaluation. Pre-training
 * (pretraining.c) is one objective; fine-tuning tasks provide others. */
#ifndef TRAIN_OBJECTIVE_H
#define TRAIN_OBJECTIVE_H

#include <stdbool.h>
#include <stddef.h>
#include "backend/ops.h"
#include "base/error.h"
#include "base/measures.h"
#include "data/step_reader.h"
#include "model/model.h"

/* Called when a layer's gradients of a batch are complete, as model_backward() describes. */
struct layer_hook {
	void (*done)(void *context, int32_t layer); /* NULL: not needed */
	void *context;
};

struct objective {
	const char *name; /* "pretraining" */
	void *state;
	/* The next step: this rank's batches, and the counts; NULL after the last. */
	enum status (*next_step)(struct objective *objective, const struct step **out);
	/* For losses over a whole step at a time. begin_step prepares what must be known before `gradients` is called for this
	 * rank's first batch (`step` has the counts of all ranks); begin_batch puts what micro-batch `number` needs on the
	 * device before `gradients` is called for it. Neither is called while operations are recorded. NULL: nothing to do.
	 * [all] */
	enum status (*begin_step)(struct objective *objective, struct replica *replica, const struct step *step);
	enum status (*begin_batch)(struct objective *objective, struct replica *replica, int32_t number,
				   const struct batch *batch);
	bool forwarded; /* begin_step has left the forward pass of the step's only batch, so `gradients` need only do backward */
	/* Forward, losses, and backward of a batch. `first`: the first of a step, so gradients are overwritten, not added to. */
	void (*gradients)(struct objective *objective, struct replica *replica, const struct batch *batch, bool first,
			  struct layer_hook hook);
	/* FLOPs of `gradients` beyond those of training the model (model/flops.h), for the batch on the host. NULL: none. */
	double (*more_flops)(const struct objective *objective, const struct batch *batch);
	/* Turns the accumulated sums of a step over all ranks into metrics; the first one is "loss". */
	void (*metrics)(struct objective *objective, const struct step *step, const struct accumulators *sums,
			struct measures *out);
	/* Held-out sets, each scored separately, and their names (NULL for documents held out of the training text). Scoring a
	 * set overwrites the replica's accumulators; its first metric is "loss". Several ranks share the work, and all get the
	 * result. */
	int64_t evaluation_count;
	const char *const *evaluation_names;
	enum status (*evaluate)(struct objective *objective, struct replica *replica, int64_t set, struct measures *out);
	/* Names the first place with non-finite numbers, after forward and backward of a batch; false if there is none. May be
	 * NULL. */
	bool (*locate_not_finite)(struct objective *objective, bool loss_is_finite, char *out, size_t size);
	/* The name of the training set that a step takes its examples from; NULL: there is one set. May be NULL. */
	const char *(*training_set)(const struct objective *objective, const struct step *step);
	double (*waited)(const struct objective *objective); /* seconds that next_step has waited for data so far; may be NULL */
	void (*close)(struct objective *objective);
};

#endif
