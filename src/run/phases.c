/* Chooses what a phase leaves open, and reads a checkpoint's record to find the phase in which to resume. */
#include "run/phases.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "train/loop.h"

enum status phase_choose_batch(struct run_phase *phase, const struct machine *machine, int64_t usual)
{
	return batch_choose(phase->options, &phase->values->batch, machine->ranks * machine->replicas, usual);
}

enum status phase_choose(struct run_phase *phase, const struct optimizer_options *optimizer)
{
	const struct training_options *training = phase->values;
	const int64_t *const every[] = {&training->saving.save_checkpoints_steps, &training->saving.eval_steps};
	int64_t steps = training->length.num_train_steps, twentieth = steps / 20 > 0 ? steps / 20 : 1;
	const struct rate_facts facts = {
		.steps = steps,
		.batch_size = training->batch.train_batch_size,
		.batch_size_per_gpu = training->batch.train_batch_size_per_gpu,
		.usual_learning_rate = phase->usual_learning_rate,
		.new_layers = phase->new_layers,
	};
	for (size_t i = 0; i < sizeof every / sizeof *every; i++)
		if (options_is_open(phase->options, every[i]))
			TRY(options_choose_integer(phase->options, every[i], twentieth < 5000 ? twentieth : 5000));
	if (training->length.early_stopping_patience > 0 && training->saving.eval_steps == 0)
		log_warning("--early_stopping_patience has no effect: --eval_steps 0 evaluates only at the end");
	return rate_choose(phase->options, &training->rate, optimizer, &facts);
}

struct phase phase_of(const struct run_phase *phase)
{
	const struct length_options *length = &phase->values->length;
	const struct saving_options *saving = &phase->values->saving;
	const struct rate_options *rate = &phase->values->rate;
	return (struct phase){
		.schedule = rate_schedule(rate, length->num_train_steps, phase->values->batch.train_batch_size),
		.steps = length->num_train_steps,
		.seconds = phase->seconds,
		.tokens = length->num_train_tokens,
		.patience = length->early_stopping_patience,
		.patience_margin = length->early_stopping_threshold,
		.save_steps = saving->save_checkpoints_steps,
		.eval_steps = saving->eval_steps,
		.log_steps = saving->log_steps,
		.averaged = rate->average_weights,
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

bool phases_are_halves(const struct json *record)
{
	const struct json *halves = json_member(record, "end_with_pairs");
	return phases_recorded(record) == 2 && halves && halves->kind == JSON_STRING && strcmp(halves->text, "true") == 0;
}

enum status phases_check_record(const struct run_start *start)
{
	const struct json *record = phases_record(start);
	if (!record || phases_recorded(record) < 1 || start->state.phase.index >= phases_recorded(record))
		return error_set(ERR_DATA, "'%s' does not record the run's settings", phases_record_name(start));
	return OK;
}

/* ---- A second phase ---- */

#define ROW(member, role, value) OPTION_ROW(struct second_phase_options, member, role, value)
/* clang-format off */
const struct option second_phase_rows[] = {
	{ROW(phase2, ROLE_ENTRY, NULL), .rare = true, .fallback = "false",
	 .help = "start a second phase from the end of the first, taken from --out or from the checkpoint that --init_checkpoint "
	 "names: weights and moments are kept, schedule and bias correction start over"},
	{ROW(phase1_end_step, ROLE_ENTRY, "N"), .rare = true, .range = "0..", .fallback = "0",
	 .help = "with phase2: the step at which the first phase must have ended; 0 = any"},
	{ROW(resume_phase2, ROLE_PLACE, NULL), .rare = true, .fallback = "false",
	 .help = "resume within the second phase; an error if the run has not reached it"},
	{0},
};
/* clang-format on */

/* --phase2 in a new folder: --init_checkpoint names the first phase's last checkpoint, or its run folder. */
static enum status open_first(struct run_start *start, const char *first, const char *out)
{
	char state[PATH_BYTES];
	if (!first)
		return error_hinted(error_set(ERR_USAGE, "--phase2: '%s' has no checkpoint of a first phase", out),
				    "give the --out of the first phase, or its last checkpoint as --init_checkpoint");
	TRY(path_join(state, first, "training_state.json"));
	bool found = file_exists(state);
	if (found)
		snprintf(start->checkpoint, sizeof start->checkpoint, "%.4000s", first);
	else if (file_is_folder(first))
		TRY(checkpoint_latest(first, start->checkpoint, &found));
	if (!found)
		return error_hinted(
			error_set(ERR_USAGE, "--phase2: '%s' is not a checkpoint of bertc: it has no optimizer moments", first),
			"without --phase2, a new run starts from the weights of --init_checkpoint");
	TRY(checkpoint_verify(start->checkpoint));
	json_release(&start->record);
	start->begun = false;
	start->resumed = true;
	TRY(checkpoint_read_state(start->checkpoint, &start->record, &start->state, &start->data_hash));
	if (json_member(phases_record(start), "task"))
		return error_hinted(error_set(ERR_STATE, "--phase2: '%s' is a run of `bertc finetune`", first),
				    "without --phase2, a new run starts from the weights of --init_checkpoint");
	return phases_check_record(start);
}

enum status phases_begin_second(struct run_start *start, const struct second_phase_options *second, const struct options *options,
				const char *first)
{
	const char *out = ((const struct training_options *)options->settings)->folder.out;
	const struct train_state *state = &start->state;
	if (!second->phase2 && !second->resume_phase2)
		return OK;
	if (options->section_count > 0)
		return error_set(
			ERR_USAGE,
			"--phase2 is for runs without a list of phases; phases of a list follow each other automatically");
	if (second->resume_phase2 && (!start->resumed || state->phase.index == 0))
		return error_hinted(error_set(ERR_STATE, "--resume_phase2: '%s' has not started its second phase", out),
				    "--phase2 alone starts it");
	bool elsewhere = !start->resumed;
	if (elsewhere)
		TRY(open_first(start, first, out));
	if (state->phase.index > 0 && !elsewhere && !phases_are_halves(phases_record(start))) {
		if (second->phase1_end_step > 0 && second->phase1_end_step != state->phase.first_step)
			return error_set(ERR_STATE, "--phase1_end_step is %" PRId64 ", but the phase began at step %" PRId64,
					 second->phase1_end_step, state->phase.first_step);
		return OK;
	}
	if (state->phase.index + 1 < phases_recorded(phases_record(start)))
		return error_set(ERR_STATE, "--phase2: '%s' has a list of phases, which follow each other automatically",
				 start->checkpoint);
	start->begins_phase = true;
	return OK;
}

enum status phases_leave_first(struct run_start *start, const struct length_options *first,
			       const struct second_phase_options *second)
{
	struct train_state *state = &start->state;
	int64_t asked = second->phase1_end_step, end = state->step;
	const struct phase phase = {
		.steps = first->num_train_steps,
		.tokens = first->num_train_tokens,
		.patience = first->early_stopping_patience,
	};
	if (asked > 0 && asked != end)
		return error_hinted(error_set(ERR_STATE, "--phase1_end_step is %" PRId64 ", but '%s' is at step %" PRId64, asked,
					      start->checkpoint, end),
				    "finish the first phase, or give --phase1_end_step %" PRId64 " to leave it here", end);
	if (asked == 0 && !phase_has_ended(&phase, state))
		return error_hinted(error_set(ERR_STATE, "--phase2: the first phase is at step %" PRId64 " of %" PRId64, end,
					      state->phase.first_step + first->num_train_steps),
				    "finish it, or give --phase1_end_step %" PRId64 " to leave it here", end);
	train_state_next_phase(state);
	return OK;
}
