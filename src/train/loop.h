/* The training loop: batch, forward, backward, update, log, evaluate, save; one phase after another. Read loop.c first. */
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
	int64_t stop_at_step; /* save and stop there, as if asked to; 0 = never */
	bool save_best;       /* also save whenever an evaluation is the best so far */
	int64_t best_set;     /* the evaluation set whose measure is a checkpoint's score and can end a phase */
	/* With several ranks: */
	bool reduce_every_batch;       /* reduce gradients after every micro-batch, not only after the step's last */
	enum comm_type wire;           /* the type in which gradients are sent: the masters', BF16, or F16 */
	int64_t compare_weights_steps; /* compare weights every this many steps, and before each save; 0 = never */
};

/* Everything that makes up a training run; built by the command, borrowed by the loop. */
struct training {
	struct loop_settings settings;
	const struct phase *phases; /* [phase_count] */
	int64_t phase_count;
	/* Opens the data of state.phase and closes the previous phase's; *out is the objective from then on. */
	enum status (*open_phase)(void *context, const struct train_state *state, struct objective **out);
	struct objective *objective; /* of the current phase; set by open_phase */
	struct comm *comm;           /* NULL: a single rank */
	struct model *model;
	struct replica *replica;
	struct optimizer *optimizer;
	struct average *average; /* NULL if no phase averages */
	struct checkpoint_context checkpoints;
	struct guard_settings guard;
	int64_t saved_step;               /* step of the folder's newest checkpoint if it holds `state`, otherwise -1 */
	struct checkpoint_writer *writer; /* private to the loop */
	struct report report;
	struct reduction reduction;   /* private to the loop, like all up to `exposed` except `started` */
	struct step whole;            /* the current step, with the counts of all ranks */
	bool stop;                    /* the ranks agreed in the newest step to stop after it */
	struct rank_times times;      /* since they were last reported */
	struct moment window;         /* when the newest step's computation began */
	double started;               /* clock_seconds() when this process began, minus the time that earlier ones used */
	double share_of_time;         /* used so far of the time from the first step on, from 0 to 1 */
	double longest_evaluation;    /* longest so far, in seconds */
	double communicated, exposed; /* the comm's seconds when times were last reported */
	struct train_state state;     /* where to start; advanced by the loop */
	/* Sets the data cursor for a checkpoint: the epoch of sample `samples`, and the epoch's first sample. */
	enum status (*locate)(void *context, struct train_state *state);
	void *context; /* of both functions */
};

/* `state` in the report's terms. */
struct report_progress train_progress(const struct train_state *state);
/* Finds the measure by which the best checkpoint is chosen. ERR_USAGE lists those that an evaluation has. */
MUST_USE enum status loop_deciding_measure(const char *name, const struct measures *measures, struct measure *decides);
/* Has `phase`, the current phase of `state`, reached one of its ends? */
bool phase_has_ended(const struct phase *phase, const struct train_state *state);
/* Has the deciding measure ended it, before any of its other ends? */
bool phase_ended_early(const struct phase *phase, const struct train_state *state);
/* Starts the next phase where `state` stands; optimizer_restart() must be called, too. */
void train_state_next_phase(struct train_state *state);
/* Makes evaluations so far no longer count, neither for the best checkpoint nor for patience. */
void train_state_forget_scores(struct train_state *state);

/* Trains from where `state` stands to the end of the last phase; evaluates and saves at the end of each phase. STOPPED (and
 * saved) if a signal, the time limit, or stop_at_step asked for it; ERR_NUMERIC if numbers keep being non-finite
 * (train/guard.h). */
MUST_USE enum status train(struct training *training);

#endif
