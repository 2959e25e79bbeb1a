/* The sum of the gradients over ranks, bucket by bucket: begun while backward still computes the layers below, each rank
 * getting the sum of its own share (train/buckets.h). Of one rank there is nothing to do. */
#ifndef TRAIN_REDUCTION_H
#define TRAIN_REDUCTION_H

#include "train/buckets.h"
#include "train/objective.h"

struct reduction {
	const struct buckets *buckets; /* borrowed */
	struct model *model;           /* borrowed */
	enum comm_type wire;           /* gradients travel in this type */
	comm_ticket newest;            /* of what was begun */
};

/* `wire`: COMM_F32 is the type of the gradients themselves. [all] */
MUST_USE enum status reduction_open(struct reduction *out, const struct buckets *buckets, struct model *model,
				    enum comm_type wire);
/* What objective->backward is given to have each bucket reduced once it is complete. */
struct layer_hook reduction_hook(struct reduction *reduction);
/* The same for all buckets at once, for a rank that has no micro-batch while others have. */
void reduction_begin_all(struct reduction *reduction);
/* What is queued from now on comes after all that was begun; on CPUs it is done. */
MUST_USE enum status reduction_finish(struct reduction *reduction);
/* After that: zeroes the gradients outside of this rank's shares, so that what the next micro-batch adds is reduced onto
 * the sums so far. */
void reduction_keep_own(struct reduction *reduction);

#endif
