/* A phase: a stretch of a run with its own shape of data, schedule and end, as BERT's 128 tokens and then 512. Weights,
 * moments, step, samples and tokens run on from phase to phase; schedule and bias correction begin again, and the data
 * with a new epoch. */
#ifndef TRAIN_PHASE_H
#define TRAIN_PHASE_H

#include <stdbool.h>
#include <stdint.h>
#include "train/schedule.h"

/* What a phase is and when it ends: after `steps` at the latest, and earlier by the other ends that are not 0. */
struct phase {
	struct schedule schedule; /* over the phase's own steps, from 1 */
	int64_t steps;
	double seconds;   /* not 0: of the run's time, at whose end phase and schedule end, however many steps that makes; `steps`
			     is what   the schedule divides it into */
	int64_t tokens;   /* it ends with the step that has seen so many tokens */
	int64_t patience; /* ... with so many evaluations in a row without a better score */
	double patience_margin; /* better is better by more than this */
	double averaged; /* share of its updates, at its end, whose mean the weights become; 0 = they stay (train/average.h) */
	int64_t save_steps, eval_steps, log_steps; /* every so many of the run's steps; 0 = only at the end */
};

/* Where a run stands in its phases. Zero is the beginning of the first. */
struct phase_state {
	int64_t index;                                 /* from 0 */
	int64_t first_step, first_sample, first_token; /* the run's counts when the phase began */
	bool time_is_up;                               /* the newest step was its last */
	int64_t averaged;                              /* snapshots in the mean of the weights, until that takes their place */
	int64_t evaluations, stalled;                  /* evaluations in this phase; those since the best */
	double best_score;                             /* of them, by the measure that decides */
};

#endif
