/* The phases of `bertc pretrain`: the options of each, from config file, command line and the record of the checkpoint
 * that a run goes on from. A phase that is over is as it was; the one a run is in, and those to come, are compared with
 * their record; further ones may be added at the end. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cmd/pretrain.h"
#include "train/checkpoint.h"
#include "run/run_static.h"

/* The recorded settings: of the run, and of its phases; a run of one phase has both in one object. */
static const struct json *record_settings(const struct pretrain *run)
{
	return json_member(run->record.root, "settings");
}

static int64_t recorded_count(const struct json *record)
{
	const struct json *phases = json_member(record, "phases");
	return phases ? phases->child_count : 1;
}

static const struct json *recorded_phase(const struct json *record, int64_t index)
{
	const struct json *phases = json_member(record, "phases");
	const struct json *phase = phases ? phases->first_child : record;
	for (; phases && phase && index > 0; index--)
		phase = phase->next;
	return phase;
}

static enum status check_record(const struct pretrain *run)
{
	const struct json *record = record_settings(run);
	if (!record || recorded_count(record) < 1 || run->training.state.phase.index >= recorded_count(record))
		return error_set(ERR_DATA, "'%s': training_state.json does not record its settings", run->checkpoint);
	return OK;
}

/* --phase2 in a new folder: --init_checkpoint names the first phase's last checkpoint, or its run folder. */
static enum status open_first_phase(struct pretrain *run)
{
	const char *source = run->settings->init_checkpoint;
	char state[PATH_BYTES];
	enum status status;
	if (!source) {
		status = error_set(ERR_USAGE, "--phase2: '%s' holds no checkpoint of a first phase", run->settings->out);
		error_hint("give the --out of the first phase, or name its last checkpoint with --init_checkpoint");
		return status;
	}
	TRY(path_join(state, source, "training_state.json"));
	bool found = file_exists(state);
	if (found)
		snprintf(run->checkpoint, sizeof(run->checkpoint), "%.4000s", source);
	else if (file_is_folder(source))
		TRY(checkpoint_latest(source, run->checkpoint, &found));
	if (!found) {
		status = error_set(ERR_USAGE, "--phase2: '%s' is no checkpoint of bertc, it has no moments", source);
		error_hint("without --phase2 a run begins anew with the weights of --init_checkpoint");
		return status;
	}
	TRY(checkpoint_verify(run->checkpoint));
	run->resumed = true;
	TRY(checkpoint_read_state(run->checkpoint, &run->record, &run->training.state, &run->recorded_data_hash));
	return check_record(run);
}

/* Where the first phase ended: asked for, or where its settings say. */
static enum status check_end_of_first(const struct pretrain *run, const struct pretrain_settings *first)
{
	const struct train_state *state = &run->training.state;
	int64_t asked = run->settings->phase1_end_step, end = state->step;
	const struct phase phase = {
		.steps = first->num_train_steps,
		.tokens = first->num_train_tokens,
		.patience = first->early_stopping_patience,
	};
	enum status status;
	if (asked > 0 && asked != end) {
		status = error_set(ERR_STATE, "--phase1_end_step is %" PRId64 ", but '%s' is at step %" PRId64, asked,
				   run->checkpoint, end);
		error_hint("finish the first phase, or give --phase1_end_step %" PRId64 " to leave it here", end);
		return status;
	}
	if (asked == 0 && !phase_has_ended(&phase, state)) {
		status = error_set(ERR_STATE, "--phase2: the first phase is at step %" PRId64 " of %" PRId64, end,
				   first->num_train_steps);
		error_hint("finish it, or give --phase1_end_step %" PRId64 " to leave it here", end);
		return status;
	}
	return OK;
}

/* --phase2, --resume_phase2, --phase1_end_step against what the checkpoint is. Sets begins_phase. */
static enum status check_second_phase(struct pretrain *run)
{
	const struct pretrain_settings *settings = run->settings;
	const struct train_state *state = &run->training.state;
	enum status status;
	if (!settings->phase2 && !settings->resume_phase2)
		return OK;
	if (run->options->section_count > 0)
		return error_set(ERR_USAGE, "--phase2 is for runs without a list of phases; a list is gone through by itself");
	if (settings->resume_phase2 && (!run->resumed || state->phase.index == 0)) {
		status = error_set(ERR_STATE, "--resume_phase2: '%s' has not begun its second phase", settings->out);
		error_hint("--phase2 alone begins it");
		return status;
	}
	bool elsewhere = !run->resumed;
	if (elsewhere)
		TRY(open_first_phase(run));
	if (state->phase.index > 0 && !elsewhere) {
		if (settings->phase1_end_step > 0 && settings->phase1_end_step != state->phase.first_step)
			return error_set(ERR_STATE, "--phase1_end_step is %" PRId64 ", but the phase began at step %" PRId64,
					 settings->phase1_end_step, state->phase.first_step);
		return OK;
	}
	if (state->phase.index + 1 < recorded_count(record_settings(run)))
		return error_set(ERR_STATE, "--phase2: '%s' has a list of phases and goes through them by itself",
				 run->checkpoint);
	run->begins_phase = true;
	return OK;
}

/* Two ways to say one thing. Of a config file's and the command line's, the latter counts. */
static enum status settle(struct options *options, const char *one, const char *other)
{
	if (!options_given(options, one) || !options_given(options, other))
		return OK;
	enum option_origin first = options_origin(options, one), second = options_origin(options, other);
	if (first == second)
		return error_set(ERR_USAGE, "--%s and --%s: give one of them", one, other);
	options_forget(options, first < second ? one : other);
	return OK;
}

/* A phase that is over: its record alone. */
static enum status open_past_phase(struct pretrain *run, struct pretrain_phase *phase, const struct json *record)
{
	TRY(options_init(&phase->own, run->options->table, phase->settings));
	phase->options = &phase->own;
	return options_resume(&phase->own, record, run->checkpoint, SCOPE_SECTION);
}

static enum status open_phase(struct pretrain *run, int64_t index, const struct json *record)
{
	struct pretrain_phase *phase = &run->phases[index];
	if (run->phase_count == 1) {
		phase->options = run->options;
		phase->settings = run->settings;
	} else {
		TRY(memory_new(&phase->settings, 1, sizeof(*phase->settings), "settings"));
		bool over = record && (index < run->training.state.phase.index || run->begins_phase);
		if (over)
			return open_past_phase(run, phase, record);
		TRY(options_derive(&phase->own, run->options, index, phase->settings));
		phase->options = &phase->own;
	}
	TRY(settle(phase->options, "num_train_steps", "num_train_epochs"));
	TRY(settle(phase->options, "train_batch_size", "train_batch_size_per_gpu"));
	TRY(settle(phase->options, "num_warmup_steps", "warmup_proportion"));
	return record ? options_resume(phase->options, record, run->checkpoint, SCOPE_SECTION) : OK;
}

enum status pretrain_open_phases(struct pretrain *run)
{
	struct options *options = run->options;
	if (run->resumed)
		TRY(check_record(run));
	TRY(check_second_phase(run));
	const struct json *record = run->resumed ? record_settings(run) : NULL;
	int64_t recorded = record ? recorded_count(record) : 0, listed = options->section_count;
	if (record)
		TRY(options_resume(options, record, run->checkpoint, SCOPE_GENERAL));
	if (listed > 0 && listed < recorded) {
		enum status status = error_set(ERR_STATE, "%" PRId64 " phases are listed, but '%s' was made with %" PRId64,
					       listed, run->checkpoint, recorded);
		error_hint("give the same list or none to go on with that run, or choose another --out");
		return status;
	}
	run->phase_count = listed > 0 ? listed : recorded + run->begins_phase;
	if (run->phase_count == 0)
		run->phase_count = 1;
	for (int64_t i = 0; i < listed; i++)
		if (options->sections[i].count == 0)
			return error_set(ERR_USAGE, "phase %" PRId64 " of %" PRId64 " has no setting of its own", i + 1, listed);
	TRY(memory_new(&run->phases, run->phase_count, sizeof(*run->phases), "phases"));
	for (int64_t i = 0; i < run->phase_count; i++)
		TRY(open_phase(run, i, i < recorded ? recorded_phase(record, i) : NULL));
	if (run->begins_phase) {
		TRY(check_end_of_first(run, run->phases[recorded - 1].settings));
		train_state_next_phase(&run->training.state);
	}
	return OK;
}

void pretrain_write_record(const struct pretrain *run, struct json_writer *writer)
{
	if (run->phase_count == 1) {
		options_write_json(run->options, writer, NULL, SCOPE_ALL);
		return;
	}
	json_open(writer, NULL, '{');
	options_write_members(run->options, writer, SCOPE_GENERAL);
	json_open(writer, "phases", '[');
	for (int64_t i = 0; i < run->phase_count; i++)
		options_write_json(run->phases[i].options, writer, NULL, SCOPE_SECTION);
	json_close(writer);
	json_close(writer);
}

void pretrain_close_phases(struct pretrain *run)
{
	for (int64_t i = 0; i < run->phase_count && run->phases; i++) {
		struct pretrain_phase *phase = &run->phases[i];
		instances_close(phase->instances);
		if (phase->owns_files)
			run_static_close(phase->files, phase->file_count);
		if (phase->options == &phase->own)
			options_release(&phase->own);
		if (phase->settings != run->settings)
			free(phase->settings);
	}
	free(run->phases);
	run->phases = NULL;
}
