/* bertc pretrain: from raw text to a trained model folder. The command completes its options and lets the run do the
 * work (run/run.h). */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/duration.h"
#include "base/log.h"
#include "base/memory.h"
#include "cmd/pretrain/pretrain_halves.h"
#include "cmd/pretrain/pretrain_options.h"
#include "cmd/recipes.h"
#include "cmd/training_notes.h"
#include "run/pretraining_run.h"

/* ---- The phases ---- */

/* The options of each phase come from the config file, the command line, and the record of the checkpoint that the run resumes
 * from. A phase that is over stays as it was; the current one and later ones are compared with their record; more phases may be
 * added at the end. */

/* Zero-initialize; close even after a failure. */
struct pretrain_phases {
	struct options **options; /* [count]: of a single phase the run's, else `own` */
	struct options *own;      /* [count] */
	int64_t count;
};

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
	if (listed > 0 && listed < recorded)
		return error_hinted(error_set(ERR_STATE, "%" PRId64 " phases are listed, but '%s' was made with %" PRId64, listed,
					      phases_record_name(start), recorded),
				    "to resume that run, give the same list or none; otherwise choose another --out");
	for (int64_t i = 1; i < listed; i++) /* the first one may have what is given for all */
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
	if (!settings->second.phase2)
		return OK;
	TRY(options_resume(options, record, start->settings, SCOPE_GENERAL));
	return options_resume(options, phases_recorded_at(record, phases_recorded(record) - 1), start->settings, SCOPE_SECTION);
}

/* Takes over what `start` records into `options` and those of the phases. --phase2 moves `start` on to a phase of its own. */
static enum status phases_open(struct pretrain_phases *out, struct options *options, struct run_start *start)
{
	const struct pretraining_options *settings = options->settings;
	TRY(begin_again(options, start));
	TRY(phases_begin_second(start, &settings->second, options, settings->initial.init_checkpoint));
	TRY(training_note_finished(options, start, settings->training.folder.out, "init_checkpoint"));
	const struct json *record = phases_record(start);
	int64_t recorded = record ? phases_recorded(record) : 0, listed = options->section_count;
	if (record)
		TRY(options_resume(options, record, phases_record_name(start), SCOPE_GENERAL));
	TRY(training_note_edits(options, start, settings->training.folder.out));
	if (start->resumed && !start->begins_phase)
		TRY(options_resume_start(options, record, start->checkpoint, true));
	if (start->begins_phase) /* what follows the halves of a run is neither of them */
		options_forget(options, "end_with_pairs");
	TRY(halves_split(options, record));
	listed = options->section_count;
	TRY(check_listed(options, start, recorded));
	TRY(options_join_section(options));
	int64_t count = listed > 0 ? listed : recorded + start->begins_phase;
	struct opening from = {.options = options, .start = start};
	count = count > 0 ? count : 1;
	TRY(memory_new(&out->options, count, sizeof *out->options, "phases"));
	TRY(memory_new(&out->own, count, sizeof *out->own, "phases"));
	out->count = count;
	for (int64_t i = 0; i < out->count; i++) {
		enum status status = open_phase(out, i, &from, i < recorded ? phases_recorded_at(record, i) : NULL);
		if (status == ERR_STATE && settings->end_with_pairs)
			error_hint("each half of such a run (--end_with_pairs) has half of the length given");
		TRY(status);
	}
	if (!start->begins_phase)
		return OK;
	const struct training_options *first = out->options[recorded - 1]->settings;
	return phases_leave_first(start, &first->length, &settings->second);
}

static void phases_close(struct pretrain_phases *phases)
{
	for (int64_t i = 0; i < phases->count; i++)
		options_release(&phases->own[i]);
	free(phases->own);
	free(phases->options);
	*phases = (struct pretrain_phases){0};
}

/* ---- The run ---- */

/* Everything the command owns, so that one function can release it. */
struct pretrain {
	struct options *options;
	struct machine machine;
	struct run_folder_settings folder;
	struct pretrain_phases phases;
	struct run run;
	struct pretraining_run pretraining;
};

/* When each phase ends, if --time says so. */
static enum status take_times(struct run *run)
{
	double end = 0;
	for (int64_t i = 0; i < run->phase_count; i++) {
		const char *time = ((const struct pretraining_options *)run->phases[i].options->settings)->time;
		double seconds = 0;
		if (time)
			TRY(duration_parse(time, &seconds));
		if (!time && i == run->start.state.phase.index) /* those before it are over, whatever time they had */
			end = 0;
		if (i > 0 && (seconds > 0) != (end > 0))
			return error_set(ERR_USAGE, "phase %" PRId64 " has %s time: give all phases one, or none", i + 1,
					 time ? "a" : "no");
		end += seconds;
		run->phases[i].seconds = end;
	}
	return OK;
}

static enum status pretrain_phases(struct pretrain *pretrain)
{
	struct run *run = &pretrain->run;
	const struct pretraining_options *settings = pretrain->options->settings;
	TRY(phases_open(&pretrain->phases, pretrain->options, &run->start));
	machine_resume(&pretrain->machine, &settings->training);
	TRY(run_take_options(run, pretrain->options, pretrain->phases.options, pretrain->phases.count));
	return take_times(run);
}

/* A plan needs the vocabulary and the tokens. Making them again could take hours, so they are kept. */
static void note_leftovers(const struct run *run)
{
	char mark[PATH_BYTES];
	if (path_join(mark, run->folder.path, RUN_FOLDER_MARK) == OK && file_exists(mark))
		log_note("nothing was trained; the prepared text stays in '%s/data', so the same command without --plan starts "
			 "at once",
			 run->folder.path);
}

/* The longest run, in tokens, for which docs/quality.md shows what the recipe `fast` and Nomic BERT's form gain. */
#define SHORT_RUN_TOKENS 1e8

/* Has anybody, or --time, chosen a recipe, a part of one, or data that leave no choice? */
static bool has_chosen_recipe(const struct options *options)
{
	static const char *const choosing[] = {"recipe", "init_attention", "next_sentence", "init_checkpoint", "input_file"};
	for (size_t i = 0; i < sizeof choosing / sizeof *choosing; i++)
		if (options_origin(options, choosing[i]) != ORIGIN_DEFAULT)
			return true;
	return false;
}

/* In a short run BERT's own recipe does not get far, and another form of the encoder gets farther. */
static void note_choice(const struct pretrain *pretrain)
{
	const struct pretraining_options *settings = pretrain->options->settings;
	const struct run *run = &pretrain->run;
	char count[FORMAT_BYTES];
	struct model_config named;
	bool fast = run->values->recipe == RECIPE_FAST;
	double tokens = 0;
	if (!is_first_rank(pretrain->machine.comm) || run->start.resumed || settings->initial.init_checkpoint ||
	    initial_weights_named(settings->initial.model))
		return;
	for (int64_t i = 0; i < run->phase_count; i++) {
		const struct training_options *phase = run->phases[i].values;
		if (!fast && has_chosen_recipe(pretrain->phases.options[i]))
			return;
		tokens += (double)phase->length.num_train_steps * (double)phase->batch.train_batch_size *
			  (double)phase->max_seq_length;
	}
	if (tokens > SHORT_RUN_TOKENS)
		return;
	if (!fast)
		log_note("BERT's original recipe is used, which learns little from as few as %s tokens: --recipe fast learns far "
			 "more (docs/quality.md)",
			 format_count(count, (int64_t)tokens));
	else if (!settings->sizes.form && (!settings->initial.model || model_config_named(&named, settings->initial.model) == OK))
		log_note("form: BERT's, which most programs read; --form nomic_bert learns more in the same time "
			 "(docs/quality.md)");
}

static enum status pretrain_run_folder(struct pretrain *pretrain)
{
	struct run *run = &pretrain->run;
	pretraining_run_begin(&pretrain->pretraining, run);
	TRY(run_open(run, &pretrain->folder, &pretrain->machine, &pretrain->pretraining.task));
	TRY(pretrain_phases(pretrain));
	TRY(run_open_device(run));
	TRY(pretraining_run_prepare(&pretrain->pretraining));
	TRY(run_plan(run));
	note_choice(pretrain);
	if (!run->values->folder.plan)
		return run_train(run);
	note_leftovers(run);
	return OK;
}

static void release(struct pretrain *pretrain, enum status status)
{
	pretraining_run_leave_device(&pretrain->pretraining);
	run_close(&pretrain->run, status);
	pretraining_run_release(&pretrain->pretraining);
	phases_close(&pretrain->phases);
	machine_close(&pretrain->machine);
}

static enum status run_pretrain(struct options *options)
{
	const struct pretraining_options *settings = options->settings;
	struct pretrain pretrain = {.options = options,
				    .folder = {.command = "pretrain",
					       .usage = "bertc pretrain --corpus PATH --out FOLDER",
					       .given = &settings->training.folder,
					       .options = options}};
	run_stop_before_training();
	training_note_shared(options, "corpus", "eval_corpus");
	enum status status = machine_find(&pretrain.machine, &settings->training);
	if (status == OK && machine_launches(&pretrain.machine) && !settings->training.folder.plan &&
	    settings->training.folder.out)
		status = run_folder_launch(&pretrain.folder, &pretrain.machine);
	else if (status == OK)
		status = pretrain_run_folder(&pretrain);
	comm_fail(pretrain.machine.comm, status);
	struct error error = *error_last();
	release(&pretrain, status);
	return status == OK ? OK : error_restore(&error);
}

/* --time asks for the best model, not for the original BERT. Weights that are already trained keep their attention, whatever the
 * recipe says about new models. */
static enum status complete_pretrain(struct options *options)
{
	const struct pretraining_options *settings = options->settings;
	if (options_given(options, "time") && !options_given(options, "recipe"))
		TRY(options_set(options, "recipe", "fast", ORIGIN_CHOSEN));
	TRY(recipes_read(options));
	bool trained = settings->initial.init_checkpoint || initial_weights_named(settings->initial.model);
	if (trained && options_origin(options, "init_attention") == ORIGIN_RECIPE)
		options_forget(options, "init_attention");
	return halves_settle(options);
}

/* By the rules for times, "--time 3" means three seconds, which is hardly what was intended. */
static enum status check_unit(const char *time, double seconds)
{
	if (seconds >= 60 || time[strspn(time, "0123456789.")] != '\0')
		return OK;
	return error_hinted(error_set(ERR_USAGE, "--time %s means seconds, too few to train a model", time),
			    "add a unit: %sh, %sm, or %ss if you do mean seconds", time, time, time);
}

/* --time determines the length of the run or phase, so nothing else may. */
static enum status check_time_alone(const struct options *options)
{
	static const char *const others[] = {"num_train_steps", "num_train_epochs", "num_train_tokens"};
	const char *time = ((const struct pretraining_options *)options->settings)->time;
	double seconds;
	if (!options_given(options, "time"))
		return OK;
	TRY(duration_parse(time, &seconds));
	TRY(check_unit(time, seconds));
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		if (options_given(options, others[i]))
			return error_set(ERR_USAGE, "give either --time or --%s, not both", others[i]);
	return OK;
}

/* Instances that are made already are not made in another way, nor is text that is tokenized already read in another. Options for
 * that are refused, unless there is a text (or shards) to evaluate on, to which they apply. */
static enum status check_ready(const struct options *options)
{
	static const char *const names[] = {"held_out_fraction", "drop_copied_documents", /* of text to train on */
					    "input_form",        "text_form",
					    "text_key", /* of any text */
					    "min_seq_length",    "masked_lm_prob",
					    "short_seq_prob",    "whole_word_mask",
					    "max_ngram",         "next_sentence",
					    "running_text_share"};
	bool instances = options_given(options, "input_file"), text = options_given(options, "eval_corpus");
	bool shards = text || !instances || options_given(options, "eval_data");
	size_t count = text ? 2 : shards ? 5 : sizeof names / sizeof *names;
	if (!instances && !options_given(options, "data"))
		return OK;
	for (size_t i = 0; i < count; i++)
		if (options_asked(options, names[i]))
			return error_hinted(error_set(ERR_USAGE, "--%s has no effect on --%s, which is prepared already",
						      names[i], instances ? "input_file" : "data"),
					    "leave it out, or give the text itself as --corpus");
	return OK;
}

static enum status check_phases(const struct options *options)
{
	const struct pretraining_options *settings = options->settings;
	if (options_given(options, "time") && options->section_count > 1)
		return error_hinted(error_set(ERR_USAGE, "--time does not say how much of it each phase gets"),
				    "give each phase its own: --phase1.time, --phase2.time, ...");
	if (options_given(options, "time") && settings->second.phase2)
		return error_hinted(error_set(ERR_USAGE, "--time does not apply to --phase2"),
				    "give the second phase its num_train_steps instead");
	TRY(check_time_alone(options));
	TRY(check_ready(options));
	for (int64_t i = 0; i < options->section_count; i++) {
		struct options phase;
		TRY(options_derive(&phase, options, i, NULL));
		enum status status = check_time_alone(&phase);
		if (status == OK)
			status = check_ready(&phase);
		options_release(&phase);
		TRY(status);
	}
	return OK;
}

/* Text is required unless the folder may contain a run to resume, or the phases bring their own. */
static enum status check_pretrain(struct options *options)
{
	const struct pretraining_options *settings = options->settings;
	const struct folder_options *folder = &settings->training.folder;
	TRY(training_check(options));
	TRY(options_blame(options, check_phases(options)));
	bool recorded = (folder->out && file_exists(folder->out)) || folder->resume_from;
	bool given = options_given(options, "data") || options_given(options, "input_file") || options->section_count > 0;
	if (recorded || given || options_given(options, "corpus"))
		return OK;
	return options_require(options, "corpus",
			       "give the text to train on, or --data with prepared shards, or --input_file with instances");
}

const struct command command_pretrain = {
	.text = &pretrain_text,
	.options = pretrain_options,
	.foreign = pretrain_foreign,
	.settings_bytes = sizeof(struct pretraining_options),
	.check = check_pretrain,
	.complete = complete_pretrain,
	.run = run_pretrain,
};
