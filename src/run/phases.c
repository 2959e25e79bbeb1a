#include "run/phases.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "train/loop.h"

enum status phase_choose_batch(struct run_phase *phase, const struct machine *machine, int64_t usual)
{
	struct phase_settings *settings = &phase->settings;
	int64_t parts = machine->ranks * machine->replicas, all = settings->train_batch_size_per_gpu * parts;
	if (all > 0 && settings->train_batch_size == 0)
		return choose_integer(&phase->choices, "train_batch_size", all, &settings->train_batch_size);
	if (all > 0 && settings->train_batch_size != all)
		log_note("batch: %" PRId64 " instances an update, as this run began, not %" PRId64
			 " (--train_batch_size_per_gpu %" PRId64 " times %" PRId64 ")",
			 settings->train_batch_size, all, settings->train_batch_size_per_gpu, parts);
	if (settings->train_batch_size == 0)
		return choose_integer(&phase->choices, "train_batch_size", usual, &settings->train_batch_size);
	return OK;
}

enum status phase_choose(struct run_phase *phase, const struct recipe *recipe)
{
	struct phase_settings *settings = &phase->settings;
	struct choices *choices = &phase->choices;
	int64_t steps = settings->num_train_steps, twentieth = steps / 20 > 0 ? steps / 20 : 1;
	int64_t usual = twentieth < 5000 ? twentieth : 5000;
	struct rate_batch batch = {settings->train_batch_size, settings->train_batch_size_per_gpu};
	if (settings->save_steps < 0)
		TRY(choose_integer(choices, "save_checkpoints_steps", usual, &settings->save_steps));
	if (settings->eval_steps < 0)
		TRY(choose_integer(choices, "eval_steps", usual, &settings->eval_steps));
	return rate_choose(&settings->rate, recipe, steps, batch, choices);
}

struct phase phase_of(const struct phase_settings *settings)
{
	return (struct phase){
		.schedule = rate_schedule(&settings->rate, settings->num_train_steps, settings->train_batch_size),
		.steps = settings->num_train_steps,
		.seconds = settings->seconds,
		.tokens = settings->num_train_tokens,
		.patience = settings->patience,
		.patience_margin = settings->patience_margin,
		.save_steps = settings->save_steps,
		.eval_steps = settings->eval_steps,
		.log_steps = settings->log_steps,
		.averaged = settings->averaged,
	};
}

/* ---- What a checkpoint records about phases ---- */

const struct json *phases_record(const struct run_start *start)
{
	return start->begun ? start->record.root : start->resumed ? json_member(start->record.root, "settings") : NULL;
}

const char *phases_record_name(const struct run_start *start)
{
	return start->begun ? start->settings : start->checkpoint;
}

int64_t phases_recorded(const struct json *record)
{
	const struct json *phases = json_member(record, "phases");
	return phases ? phases->child_count : 1;
}

const struct json *phases_recorded_at(const struct json *record, int64_t index)
{
	const struct json *phases = json_member(record, "phases");
	const struct json *phase = phases ? phases->first_child : record;
	for (; phases && phase && index > 0; index--)
		phase = phase->next;
	return phase;
}

enum status phases_check_record(const struct run_start *start)
{
	const struct json *record = phases_record(start);
	if (!record || phases_recorded(record) < 1 || start->state.phase.index >= phases_recorded(record))
		return error_set(ERR_DATA, "'%s' does not record the run's settings", phases_record_name(start));
	return OK;
}

/* ---- A second phase ---- */

/* --phase2 in a new folder: --init_checkpoint names the first phase's last checkpoint, or its run folder. */
static enum status open_first(struct run_start *start, const struct second_phase_settings *settings)
{
	char state[PATH_BYTES];
	enum status status;
	if (!settings->first) {
		status = error_set(ERR_USAGE, "--phase2: '%s' has no checkpoint of a first phase", settings->out);
		error_hint("give the --out of the first phase, or its last checkpoint as --init_checkpoint");
		return status;
	}
	TRY(path_join(state, settings->first, "training_state.json"));
	bool found = file_exists(state);
	if (found)
		snprintf(start->checkpoint, sizeof(start->checkpoint), "%.4000s", settings->first);
	else if (file_is_folder(settings->first))
		TRY(checkpoint_latest(settings->first, start->checkpoint, &found));
	if (!found) {
		status = error_set(ERR_USAGE, "--phase2: '%s' is not a checkpoint of bertc: it has no optimizer moments",
				   settings->first);
		error_hint("without --phase2, a new run starts from the weights of --init_checkpoint");
		return status;
	}
	TRY(checkpoint_verify(start->checkpoint));
	json_release(&start->record);
	start->begun = false;
	start->resumed = true;
	TRY(checkpoint_read_state(start->checkpoint, &start->record, &start->state, &start->data_hash));
	return phases_check_record(start);
}

enum status phases_begin_second(struct run_start *start, const struct second_phase_settings *settings)
{
	const struct train_state *state = &start->state;
	enum status status;
	if (!settings->begins && !settings->resumes)
		return OK;
	if (settings->listed)
		return error_set(
			ERR_USAGE,
			"--phase2 is for runs without a list of phases; phases of a list follow each other automatically");
	if (settings->resumes && (!start->resumed || state->phase.index == 0)) {
		status = error_set(ERR_STATE, "--resume_phase2: '%s' has not started its second phase", settings->out);
		error_hint("--phase2 alone starts it");
		return status;
	}
	bool elsewhere = !start->resumed;
	if (elsewhere)
		TRY(open_first(start, settings));
	if (state->phase.index > 0 && !elsewhere) {
		if (settings->first_end_step > 0 && settings->first_end_step != state->phase.first_step)
			return error_set(ERR_STATE, "--phase1_end_step is %" PRId64 ", but the phase began at step %" PRId64,
					 settings->first_end_step, state->phase.first_step);
		return OK;
	}
	if (state->phase.index + 1 < phases_recorded(phases_record(start)))
		return error_set(ERR_STATE, "--phase2: '%s' has a list of phases, which follow each other automatically",
				 start->checkpoint);
	start->begins_phase = true;
	return OK;
}

enum status phases_leave_first(struct run_start *start, const struct phase_settings *first,
			       const struct second_phase_settings *settings)
{
	struct train_state *state = &start->state;
	int64_t asked = settings->first_end_step, end = state->step;
	const struct phase phase = {
		.steps = first->num_train_steps,
		.tokens = first->num_train_tokens,
		.patience = first->patience,
	};
	enum status status;
	if (asked > 0 && asked != end) {
		status = error_set(ERR_STATE, "--phase1_end_step is %" PRId64 ", but '%s' is at step %" PRId64, asked,
				   start->checkpoint, end);
		error_hint("finish the first phase, or give --phase1_end_step %" PRId64 " to leave it here", end);
		return status;
	}
	if (asked == 0 && !phase_has_ended(&phase, state)) {
		status = error_set(ERR_STATE, "--phase2: the first phase is at step %" PRId64 " of %" PRId64, end,
				   first->num_train_steps);
		error_hint("finish it, or give --phase1_end_step %" PRId64 " to leave it here", end);
		return status;
	}
	train_state_next_phase(state);
	return OK;
}
