/* The mean of the weights over the end of a phase, which takes their place when the phase ends (Izmailov et al. 2018; Kaddour
 * 2022: the latest weights of one run). Weights that wander about a minimum have it in their middle, so that a mean does at once
 * what a falling learning rate does slowly.
 *
 * All ranks have the same weights: the mean is the first rank's, in host memory, of the masters' type. It is taken of up to
 * AVERAGE_SNAPSHOTS states at equal distances, the last of which is the phase's last. A checkpoint holds it as
 * "average.<parameter>". */
#ifndef TRAIN_AVERAGE_H
#define TRAIN_AVERAGE_H

#include "comm/comm.h"
#include "model/model.h"

#define AVERAGE_SNAPSHOTS 50

struct average {
	struct model *model;
	struct comm *comm;
	void *mean; /* [slab_count] on the host; NULL in the other ranks, and where nothing is averaged */
};

/* Takes the memory; zero-initialised, and released after a failure, too. */
MUST_USE enum status average_open(struct average *average, struct model *model, struct comm *comm);
void average_release(struct average *average);
/* Memory of the first rank. */
size_t average_bytes(const struct model *model);

/* Is a snapshot due after update `place` (from 1, maybe between two where the clock decides) of a phase of `steps`, whose last
 * `share` is averaged? `taken`: snapshots so far. */
bool average_is_due(double share, int64_t steps, double place, int64_t taken);
/* Adds the weights, as a further snapshot, to the mean of those taken; all updates must have ended. [all] */
MUST_USE enum status average_add(struct average *average, int64_t taken);
/* The mean becomes the weights. [all] */
MUST_USE enum status average_use(struct average *average, struct replica *replica);

#endif
