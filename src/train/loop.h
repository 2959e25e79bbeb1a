/* The training loop: batch, forward, backward, update, log, evaluate, save. Read loop.c first. */
#ifndef TRAIN_LOOP_H
#define TRAIN_LOOP_H

#include "train/checkpoint.h"
#include "train/objective.h"
#include "train/optimizer.h"
#include "train/report.h"
#include "train/schedule.h"

struct loop_settings {
	uint64_t seed;
	int64_t total_steps;
	int64_t stop_at_step;                      /* save and stop there as if asked to; 0 = never */
	int64_t save_steps, eval_steps, log_steps; /* every so many; 0 = only at the end */
};

/* Everything a training run is made of; built by the command, borrowed by the loop. */
struct training {
	struct loop_settings settings;
	struct schedule schedule;
	struct objective *objective;
	struct model *model;
	struct replica *replica;
	struct optimizer *optimizer;
	struct checkpoint_context checkpoints;
	struct report report;
	struct train_state state;                  /* where to begin; advanced by the loop */
	/* The cursor of the data for a checkpoint: epoch of sample `samples` and the epoch's first sample. */
	enum status (*locate)(void *context, struct train_state *state);
	void *locate_context;
};

/* Trains from state.step to total_steps, evaluates and saves at the end too. STOPPED (saved) when a signal or
 * stop_at_step asked for it; ERR_NUMERIC when gradients stay non-finite. */
MUST_USE enum status train(struct training *training);

#endif
