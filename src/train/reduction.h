/* The sum of the gradients over the ranks, bucket by bucket: it starts while backward still computes the layers below, and
 * each rank gets the sum of its own share (train/buckets.h). With a single rank there is nothing to do. */
#ifndef TRAIN_REDUCTION_H
#define TRAIN_REDUCTION_H

#include "train/buckets.h"
#include "train/objective.h"

struct reduction {
	const struct buckets *buckets; /* borrowed */
	struct model *model;           /* borrowed */
	enum comm_type wire;           /* the type in which gradients are sent */
	comm_ticket newest;            /* of the operations started */
};

/* `wire`: COMM_F32 stands for the gradients' own type. [all] */
MUST_USE enum status reduction_open(struct reduction *out, const struct buckets *buckets, struct model *model,
				    enum comm_type wire);
/* The hook that objective->gradients is given to have each bucket reduced as soon as it is complete. */
struct layer_hook reduction_hook(struct reduction *reduction);
/* The same for all buckets at once, for a rank without a micro-batch when others have one. */
void reduction_begin_all(struct reduction *reduction);
/* Work queued from now on runs after everything that was started; on CPUs, it is complete on return. */
MUST_USE enum status reduction_finish(struct reduction *reduction);
/* After reduction_finish(): zeroes the gradients outside of this rank's shares, so that the next micro-batch's gradients are
 * reduced onto the sums so far. */
void reduction_keep_own(struct reduction *reduction);

#endif
