/* Assembles the options of every phase from config file, command line, and checkpoint. */
#include "cmd/pretrain/pretrain_phases.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/memory.h"
#include "cmd/training_notes.h"
#include "run/phases.h"

/* What the phases are opened from. */
struct opening {
	struct options *options;
	const struct run_start *start;
};

static enum status open_phase(struct pretrain_phases *phases, int64_t index, const struct opening *from,
			      const struct json *record)
{
	const struct run_start *start = from->start;
	struct options *own = &phases->own[index];
	phases->options[index] = phases->count == 1 ? from->options : own;
	if (phases->count > 1) {
		/* A phase that is over: its record is all that counts. */
		if (record && (index < start->state.phase.index || start->begins_phase)) {
			TRY(options_init_as(own, from->options, NULL));
			return options_resume(own, record, phases_record_name(start), SCOPE_SECTION);
		}
		TRY(options_derive(own, from->options, index, NULL));
	}
	TRY(training_settle(phases->options[index]));
	return record ? options_resume(phases->options[index], record, phases_record_name(start), SCOPE_SECTION) : OK;
}

static enum status check_listed(const struct options *options, const struct run_start *start, int64_t recorded)
{
	int64_t listed = options->section_count;
	if (listed > 0 && listed < recorded) {
		enum status status = error_set(ERR_STATE, "%" PRId64 " phases are listed, but '%s' was made with %" PRId64,
					       listed, phases_record_name(start), recorded);
		error_hint("to resume that run, give the same list or none; otherwise choose another --out");
		return status;
	}
	for (int64_t i = 0; i < listed; i++)
		if (options->sections[i].count == 0)
			return error_set(ERR_USAGE, "phase %" PRId64 " of %" PRId64 " has no settings of its own", i + 1, listed);
	return OK;
}

/* A run that started but has no checkpoint yet starts again in the same way. If it had a second phase, the last phase in
 * settings.json has that phase's settings, and the first phase is in the checkpoint that --init_checkpoint names. */
static enum status begin_again(struct options *options, const struct run_start *start)
{
	const struct pretraining_options *settings = options->settings;
	const struct json *record = phases_record(start);
	if (!start->begun)
		return OK;
	TRY(options_resume_start(options, record, start->settings, false));
	if (!settings->phase2)
		return OK;
	TRY(options_resume(options, record, start->settings, SCOPE_GENERAL));
	return options_resume(options, phases_recorded_at(record, phases_recorded(record) - 1), start->settings, SCOPE_SECTION);
}

enum status pretrain_phases_open(struct pretrain_phases *out, struct options *options, struct run_start *start)
{
	const struct pretraining_options *settings = options->settings;
	TRY(begin_again(options, start));
	const struct second_phase_settings second = {
		.begins = settings->phase2,
		.resumes = settings->resume_phase2,
		.first_end_step = settings->phase1_end_step,
		.out = settings->training.folder.out,
		.first = settings->initial.init_checkpoint,
		.listed = options->section_count > 0,
	};
	TRY(phases_begin_second(start, &second));
	TRY(training_note_finished(options, start, settings->training.folder.out, "init_checkpoint"));
	const struct json *record = phases_record(start);
	int64_t recorded = record ? phases_recorded(record) : 0, listed = options->section_count;
	if (record)
		TRY(options_resume(options, record, phases_record_name(start), SCOPE_GENERAL));
	TRY(training_note_edits(options, start, settings->training.folder.out));
	if (start->resumed && !start->begins_phase)
		TRY(options_resume_start(options, record, start->checkpoint, true));
	TRY(check_listed(options, start, recorded));
	TRY(options_join_section(options));
	int64_t count = listed > 0 ? listed : recorded + start->begins_phase;
	struct opening from = {.options = options, .start = start};
	count = count > 0 ? count : 1;
	TRY(memory_new(&out->options, count, sizeof *out->options, "phases"));
	TRY(memory_new(&out->own, count, sizeof *out->own, "phases"));
	out->count = count;
	for (int64_t i = 0; i < out->count; i++)
		TRY(open_phase(out, i, &from, i < recorded ? phases_recorded_at(record, i) : NULL));
	if (!start->begins_phase)
		return OK;
	const struct training_options *first = out->options[recorded - 1]->settings;
	return phases_leave_first(start, &first->length, &second);
}

void pretrain_phases_close(struct pretrain_phases *phases)
{
	for (int64_t i = 0; i < phases->count; i++)
		options_release(&phases->own[i]);
	free(phases->own);
	free(phases->options);
	*phases = (struct pretrain_phases){0};
}
