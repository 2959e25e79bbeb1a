/* Cuts a step into parts (ranks, and the replicas of each) and micro-batches. The result is a pure function of the examples'
 * lengths, the number of parts and the capacity, so every rank computes the whole of it by itself. Internal to src/data. */
#ifndef DATA_STEP_CUT_H
#define DATA_STEP_CUT_H

#include "data/step_reader.h"

struct step_cut {
	const struct step_settings *settings; /* borrowed */
	int32_t parts;                        /* ranks times replicas */
	int64_t part_examples;                /* most examples in a part */
	int32_t longest;                      /* most tokens in an example */
	/* Scratch; only with more than one part. */
	int32_t *by_length;     /* [batch_size] */
	int32_t *part_of;       /* [batch_size] */
	int32_t *counts;        /* [longest + 2] */
	struct part_load *heap; /* [parts] */
};

/* `longest` is an upper bound on the tokens of any example. Call step_cut_release() even if this fails. */
MUST_USE enum status step_cut_open(struct step_cut *cut, const struct step_settings *settings, int32_t longest);
void step_cut_release(struct step_cut *cut);

/* Distributes the examples among the parts: longest first, each to the part that is not full and has the least work so far.
 * order [count] receives the indices of the first part's examples in ascending order, then the second's, ...;
 * ends [parts] receives where each part ends in it. */
void step_cut_parts(struct step_cut *cut, const struct example_plan *plans, int64_t count, int32_t *order, int64_t *ends);

/* Cuts the examples order[begin] to order[end - 1] of one part into micro-batches: as few as the capacity allows (filling them
 * greedily in order gives the fewest), or a given number with equal example counts. Returns their number and, unless `ends` is
 * NULL, stores there where each ends. For labels, it uses the upper bounds in the plans. */
int32_t step_cut_batches(const struct step_settings *settings, const struct example_plan *plans, const int32_t *order,
			 int64_t begin, int64_t end, int32_t *ends);

#endif
