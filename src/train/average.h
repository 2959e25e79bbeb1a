/* The mean of the weights over the end of a phase, which replaces the weights when the phase ends (Izmailov et al. 2018;
 * Kaddour 2022: the latest weights of a single run). Weights that wander around a minimum have it near their center, so
 * averaging does at once what a falling learning rate does slowly.
 *
 * All ranks have the same weights; the first rank keeps the mean, in host memory, in the masters' type. It is taken over up to
 * AVERAGE_SNAPSHOTS states at equal intervals, the last of which is the end of the phase. A checkpoint stores it as
 * "average.<parameter>". */
#ifndef TRAIN_AVERAGE_H
#define TRAIN_AVERAGE_H

#include "comm/comm.h"
#include "model/model.h"

#define AVERAGE_SNAPSHOTS 50

struct average {
	struct model *model;
	struct comm *comm;
	void *mean; /* [slab_count] on the host; NULL in the other ranks, and if nothing is averaged */
};

/* Allocates the memory. Zero-initialize `average` first; release it after a failure, too. */
MUST_USE enum status average_open(struct average *average, struct model *model, struct comm *comm);
void average_release(struct average *average);
/* Bytes of the first rank's memory. */
size_t average_bytes(const struct model *model);

/* Is a snapshot due after update `place` (from 1; it may lie between two updates if the clock decides) of a phase of `steps`
 * updates, the last `share` of which is averaged? `taken`: number of snapshots so far. */
bool average_is_due(double share, int64_t steps, double place, int64_t taken);
/* Adds the weights to the mean as a further snapshot, after `taken` of them; all updates must have ended. [all] */
MUST_USE enum status average_add(struct average *average, int64_t taken);
/* Replaces the weights with the mean. [all] */
MUST_USE enum status average_use(struct average *average, struct replica *replica);

#endif
