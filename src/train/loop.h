/* The training loop: batch, forward, backward, update, log, evaluate, save; phase after phase. Read loop.c first. */
#ifndef TRAIN_LOOP_H
#define TRAIN_LOOP_H

#include "train/average.h"
#include "train/checkpoint.h"
#include "train/objective.h"
#include "train/optimizer.h"
#include "train/phase.h"
#include "train/ranks.h"
#include "train/reduction.h"
#include "report/report.h"
#include "train/schedule.h"

struct loop_settings {
	uint64_t seed;
	int64_t stop_at_step; /* save and stop there as if asked to; 0 = never */
	bool save_best;       /* save also where only an evaluation is the best so far */
	int64_t best_set;     /* the evaluation set whose loss is a checkpoint's score and ends a phase */
	/* Of many ranks: */
	bool reduce_every_batch;       /* gradients after every micro-batch, not once at the step's last */
	enum comm_type wire;           /* in which type gradients travel: the masters', BF16 or F16 */
	int64_t compare_weights_steps; /* weights are compared every so many steps, and before each save; 0 = never */
};

/* Everything a training run is made of; built by the command, borrowed by the loop. */
struct training {
	struct loop_settings settings;
	const struct phase *phases; /* [phase_count] */
	int64_t phase_count;
	/* Opens the data of state.phase and closes those of the one before; *out is the objective from now on. */
	enum status (*open_phase)(void *context, const struct train_state *state, struct objective **out);
	struct objective *objective; /* of the phase; set by open_phase */
	struct comm *comm;           /* NULL: one rank */
	struct model *model;
	struct replica *replica;
	struct optimizer *optimizer;
	struct average *average; /* NULL where no phase averages */
	struct checkpoint_context checkpoints;
	struct guard_settings guard;
	int64_t saved_step;               /* of the newest checkpoint in the folder, if it is of `state`; else -1 */
	struct checkpoint_writer *writer; /* the loop's own */
	struct report report;
	struct reduction reduction;   /* the loop's own, as the next five */
	struct step whole;            /* the current step with the counts of all ranks */
	bool stop;                    /* what the ranks agreed on in the newest step: stop after it */
	struct rank_times times;      /* since the newest report of them */
	struct moment window;         /* when the newest step began to compute */
	double started;               /* clock_seconds() when this process began, less what earlier ones had of the time */
	double share_of_time;         /* that has gone, of what there is for steps */
	double longest_evaluation;    /* seconds so far */
	double communicated, exposed; /* the comm's seconds at that time */
	struct train_state state;     /* where to begin; advanced by the loop */
	/* The cursor of the data for a checkpoint: epoch of sample `samples` and the epoch's first sample. */
	enum status (*locate)(void *context, struct train_state *state);
	void *context; /* of both */
};

/* Where `state` stands, in the report's terms. */
struct report_progress train_progress(const struct train_state *state);
/* Has the phase, in which `state` is, reached one of its ends? */
bool phase_has_ended(const struct phase *phase, const struct train_state *state);
/* The next phase begins where `state` is; optimizer_restart() belongs to it. */
void train_state_next_phase(struct train_state *state);
/* Evaluations so far count no longer, neither for the best checkpoint nor for patience. */
void train_state_forget_scores(struct train_state *state);

/* Trains from where `state` is to the end of the last phase; evaluates and saves at the end of each. STOPPED (saved)
 * when a signal, the time limit or stop_at_step asked for it; ERR_NUMERIC when numbers stay non-finite (train/guard.h).
 */
MUST_USE enum status train(struct training *training);

#endif
