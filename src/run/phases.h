/* The phases of a run: what is chosen for each, and how a checkpoint's place among them determines where a run
 * resumes. Most runs have one phase. */
#ifndef RUN_PHASES_H
#define RUN_PHASES_H

#include "data/step_reader.h"
#include "run/recipe.h"
#include "run/run_folder.h"
#include "model/waves.h"
#include "run/training_options.h"
#include "train/phase.h"

/* A phase of the run. Zero-initialize. */
struct run_phase {
	struct options *options; /* the run's own if it has one phase, else `own`: as given, and with what was chosen */
	const struct training_options *values;
	struct options own;
	double seconds; /* ends at this time of the run (struct phase); num_train_steps is then an estimate. 0 = no such limit */
	/* What is chosen if the learning rate is open, and what the warm-up of a new model depends on (run/recipe.h): */
	double usual_learning_rate;
	int64_t new_layers;
	uint64_t data_hash; /* of its training data; recorded by the checkpoints made in it */
	/* How much is computed at a time (run/shapes.h): */
	struct step_settings steps;
	struct batch_capacity evaluation_capacity;
	/* What its micro-batches were optimized for, if their size was left to us and there is a GPU; else work.most is 0. */
	struct wave_model waves;
	struct wave_work work;
};

/* Chooses the batch size if it is open: for each rank and replica as said, or `usual`. */
MUST_USE enum status phase_choose_batch(struct run_phase *phase, const struct machine *machine, int64_t usual);
/* Once batch size and number of steps are known: chooses when the phase saves and evaluates, and its learning rate. */
MUST_USE enum status phase_choose(struct run_phase *phase, const struct optimizer_options *optimizer);
/* The phase in the form that the loop takes. */
struct phase phase_of(const struct run_phase *phase);

/* ---- What a checkpoint records about phases ---- */

/* The settings with which the checkpoint was made, or those of a run that was started but has no checkpoint; NULL if there is
 * neither or none are recorded. phases_check_record() returns ERR_DATA then, and if the state's phase is not among the recorded
 * ones. */
const struct json *phases_record(const struct run_start *start);
/* The file they were read from, for messages. */
const char *phases_record_name(const struct run_start *start);
int64_t phases_recorded(const struct json *record);
const struct json *phases_recorded_at(const struct json *record, int64_t index);
/* Are they the halves of one run (--end_with_pairs)? */
bool phases_are_halves(const struct json *record);
MUST_USE enum status phases_check_record(const struct run_start *start);

struct second_phase_options {
	bool phase2, resume_phase2;
	int64_t phase1_end_step;
};
extern const struct option second_phase_rows[];

/* Checks these options, and the run's, against the checkpoint. `first` is where the first phase is, if not in the run folder; or
 * NULL: there the checkpoint is looked up. Sets start->begins_phase. */
MUST_USE enum status phases_begin_second(struct run_start *start, const struct second_phase_options *second,
					 const struct options *options, const char *first);
/* Verifies that the first phase, as recorded, is at its end, which its settings or --phase1_end_step say, and moves the state on
 * to the phase after it. */
MUST_USE enum status phases_leave_first(struct run_start *start, const struct length_options *first,
					const struct second_phase_options *second);

#endif
