/* A step's cut into parts (ranks, and the replicas of each) and micro-batches. A pure function of the examples' lengths,
 * the number of parts and the capacity, so that every rank knows the whole of it. Internal to src/data. */
#ifndef DATA_STEP_CUT_H
#define DATA_STEP_CUT_H

#include "data/step_reader.h"

struct step_cut {
	const struct step_settings *settings; /* borrowed */
	int32_t parts;                        /* ranks times replicas */
	int64_t part_examples;                /* most examples of a part */
	int32_t longest;                      /* tokens of an example */
	/* Scratch, with more than one part. */
	int32_t *by_length;     /* [batch_size] */
	int32_t *part_of;       /* [batch_size] */
	int32_t *counts;        /* [longest + 2] */
	struct part_load *heap; /* [parts] */
};

/* `longest` bounds the lengths of all examples. Zero-initialise; released also after a failure. */
MUST_USE enum status step_cut_open(struct step_cut *cut, const struct step_settings *settings, int32_t longest);
void step_cut_release(struct step_cut *cut);

/* Shares out examples among parts: the longest first, each to the part that has the least work so far and is not full.
 * `order` (count) gets the indices of the first part's examples, ascending, then the second's, ...;
 * `ends` (parts) where each part ends in it. */
void step_cut_parts(struct step_cut *cut, const struct example_plan *plans, int64_t count, int32_t *order, int64_t *ends);

/* Cuts the examples order[begin] to order[end - 1] of one part into micro-batches: as few as the capacity allows (greedy
 * in order is fewest), or a given number of equal example counts. Returns how many; where each ends goes into `ends`,
 * unless that is NULL. Of labels the plans know how many there are at most. */
int32_t step_cut_batches(const struct step_settings *settings, const struct example_plan *plans, const int32_t *order,
			 int64_t begin, int64_t end, int32_t *ends);

#endif
