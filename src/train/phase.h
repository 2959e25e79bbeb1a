/* A phase: a part of a run with its own data shape, schedule, and end, such as BERT's 128 tokens followed by 512. Weights,
 * moments, step, samples, and tokens continue from phase to phase; schedule and bias correction start again, and the data with
 * a new epoch. */
#ifndef TRAIN_PHASE_H
#define TRAIN_PHASE_H

#include <stdbool.h>
#include <stdint.h>
#include "train/schedule.h"

/* What a phase is and when it ends: after `steps` at the latest, and earlier at any of the other ends that are not 0. */
struct phase {
	struct schedule schedule; /* over the phase's own steps, from 1 */
	int64_t steps;
	double seconds;   /* if not 0: when the run's time reaches this, phase and schedule end, after however many steps; `steps`
			     is then only the scale of the schedule. Either all phases have one, or none. What came before the
			     run's first step is taken from all of them in proportion */
	int64_t tokens;   /* it ends with the step that reaches this many tokens */
	int64_t patience; /* ... or after this many evaluations in a row without a better score */
	double patience_margin; /* a score is better if it is better by more than this */
	double averaged; /* share of its updates, at its end, whose mean replaces the weights; 0 = none (train/average.h) */
	int64_t save_steps, eval_steps, log_steps; /* every this many steps of the run; 0 = only at the end */
};

/* Where a run stands in its phases. All zero at the beginning of the first. */
struct phase_state {
	int64_t index;                                 /* from 0 */
	int64_t first_step, first_sample, first_token; /* the run's counts when the phase began */
	bool time_is_up;                               /* the newest step was the phase's last one */
	int64_t averaged;                              /* snapshots in the mean of the weights, until it replaces them */
	int64_t evaluations, stalled;                  /* evaluations in this phase; those since its best score */
	double best_score;                             /* the best of them, by the deciding measure */
	int64_t best_step;                             /* its step; 0 also in checkpoints from before it was recorded */
};

#endif
