/* The phases of a run: what is given for each, what is chosen, and how a checkpoint's place in them decides where a run resumes.
 * A run of one phase is the usual case. */
#ifndef RUN_PHASES_H
#define RUN_PHASES_H

#include "data/step_reader.h"
#include "run/recipe.h"
#include "run/run_folder.h"
#include "run/waves.h"
#include "train/phase.h"

/* What is open is 0, but -1 where 0 has a meaning of its own. */
struct phase_settings {
	int64_t num_train_steps;
	int64_t num_train_tokens; /* it ends with the step that has seen so many; 0 = no such end */
	double num_train_epochs;
	double seconds;   /* of the run's time, at which it ends instead; num_train_steps is then an estimate. 0 = no such end */
	int64_t patience; /* evaluations in a row without a better one that end it; 0 = none do */
	double patience_margin;
	int64_t train_batch_size, train_batch_size_per_gpu;
	int64_t gradient_accumulation_steps; /* 0 = as few as micro_batch_tokens allows */
	int64_t micro_batch_tokens;
	int64_t save_steps, eval_steps; /* -1 is open; 0 = only at the end */
	int64_t log_steps;
	double averaged; /* share of its end over which weights are averaged; 0 = none */
	int64_t max_seq_length;
	struct rate_settings rate;
};

/* A phase of the run. Zero-initialise; choices are released. */
struct run_phase {
	struct phase_settings settings; /* with what was chosen */
	struct choices choices;
	uint64_t data_hash; /* of what it trains on: a checkpoint made in it records this */
	/* How much is computed at a time (run/shapes.h): */
	struct step_settings steps;
	struct batch_capacity evaluation_capacity;
	/* What its micro-batches were chosen for, if that was left to us and there is a GPU; else work.most is 0. */
	struct wave_model waves;
	struct wave_work work;
};

/* The batch, where the phase says how much each rank and replica has. A resumed run keeps its batch on any number of
 * devices. `usual`: the batch if nothing is given. */
MUST_USE enum status phase_choose_batch(struct run_phase *phase, const struct machine *machine, int64_t usual);
/* With batch and number of steps known: when it saves and evaluates, and its learning rate. */
MUST_USE enum status phase_choose(struct run_phase *phase, const struct recipe *recipe);
/* The phase as the loop wants it. */
struct phase phase_of(const struct phase_settings *settings);

/* ---- What a checkpoint records of them ---- */

/* The settings it was made with, or those of a run that has begun and has no checkpoint; NULL if there is none of both, or it
 * records none, or a phase that is not among its phases: ERR_DATA by phases_check_record(). */
const struct json *phases_record(const struct run_start *start);
/* Where they stand, for messages. */
const char *phases_record_name(const struct run_start *start);
int64_t phases_recorded(const struct json *record);
const struct json *phases_recorded_at(const struct json *record, int64_t index);
MUST_USE enum status phases_check_record(const struct run_start *start);

/* --phase2 and what belongs to it. */
struct second_phase_settings {
	bool begins, resumes;   /* --phase2, --resume_phase2 */
	int64_t first_end_step; /* --phase1_end_step */
	const char *out;        /* the run folder */
	const char *first;      /* --init_checkpoint: where the first phase lies, unless in the run folder; or NULL */
	bool listed;            /* phases are listed: a list is gone through by itself */
};
/* Compares them with the checkpoint, which is found if it lies elsewhere. Sets start->begins_phase. */
MUST_USE enum status phases_begin_second(struct run_start *start, const struct second_phase_settings *settings);
/* The first phase, as recorded, is where it may be left: its settings say so, or --phase1_end_step does. The state moves on to
 * the phase after it. */
MUST_USE enum status phases_leave_first(struct run_start *start, const struct phase_settings *first,
					const struct second_phase_settings *settings);

#endif
