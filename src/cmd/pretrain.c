/* bertc pretrain: from raw text to a trained model folder. The command fills src/run's structs from its options, shows and
 * records the options, and lets the run do the work (run/run.h). */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/duration.h"
#include "base/log.h"
#include "base/memory.h"
#include "cmd/pretrain_phases.h"
#include "cmd/pretrain_settings.h"
#include "cmd/recipes.h"
#include "cmd/settled_options.h"
#include "cmd/training_settings.h"
#include "run/initial_weights.h"

/* Everything the command owns, so that one function can release it. */
struct pretrain {
	struct options *options;
	struct machine machine;
	struct run_settings run_settings;
	struct pretrain_inputs inputs;
	struct pretraining_run_settings settings;
	struct pretrain_phases phases;
	struct pretraining_phase *instances; /* [phases.count] */
	struct run run;
	struct run_record record;
	struct pretraining_run pretraining;
	struct settled_options settled;
	struct settled_options *settled_phases; /* [phases.count] if there are several */
};

/* ---- The settings, shown and recorded ---- */

/* Makes the options that include what the run has chosen so far. */
static enum status settle(struct pretrain *pretrain, const struct run *run)
{
	size_t bytes = sizeof(struct pretrain_settings);
	TRY(settled_options_make(&pretrain->settled, pretrain->options, bytes, &run->choices));
	if (run->phase_count == 1)
		return settled_options_add(&pretrain->settled, &run->phases[0].choices);
	if (!pretrain->settled_phases)
		TRY(memory_new(&pretrain->settled_phases, run->phase_count, sizeof(*pretrain->settled_phases), "phases"));
	for (int64_t i = 0; i < run->phase_count; i++)
		TRY(settled_options_make(&pretrain->settled_phases[i], pretrain->phases.items[i].options, bytes,
					 &run->phases[i].choices));
	return OK;
}

static enum status show_settings(void *context, const struct run *run, struct buffer *out)
{
	struct pretrain *pretrain = context;
	const struct options **phases = NULL;
	TRY(settle(pretrain, run));
	if (run->phase_count == 1) {
		settings_show(&pretrain->settled.options, SCOPE_ALL, out);
		return OK;
	}
	TRY(memory_new(&phases, run->phase_count, sizeof(*phases), "phases"));
	for (int64_t i = 0; i < run->phase_count; i++)
		phases[i] = &pretrain->settled_phases[i].options;
	settings_show(&pretrain->settled.options, SCOPE_GENERAL, out);
	options_section_table(phases, run->phase_count, log_level == LOG_VERBOSE, log_has_colour(), out);
	free(phases);
	return OK;
}

static enum status write_record(void *context, const struct run *run, struct json_writer *writer)
{
	struct pretrain *pretrain = context;
	TRY(settle(pretrain, run));
	if (run->phase_count == 1) {
		options_write_json(&pretrain->settled.options, writer, NULL, SCOPE_ALL);
		return OK;
	}
	json_open(writer, NULL, '{');
	options_write_members(&pretrain->settled.options, writer, SCOPE_GENERAL);
	json_open(writer, "phases", '[');
	for (int64_t i = 0; i < run->phase_count; i++)
		options_write_json(&pretrain->settled_phases[i].options, writer, NULL, SCOPE_SECTION);
	json_close(writer);
	json_close(writer);
	return OK;
}

static enum status report_options(void *context, const struct run *run, const struct options **out)
{
	struct pretrain *pretrain = context;
	TRY(settle(pretrain, run));
	*out = &pretrain->settled.options;
	return OK;
}

/* ---- The run ---- */

static enum status pretrain_phases(struct pretrain *pretrain)
{
	struct run *run = &pretrain->run;
	const struct pretrain_settings *settings = pretrain->options->settings;
	TRY(pretrain_phases_open(&pretrain->phases, pretrain->options, &run->start));
	TRY(run_set_phases(run, pretrain->phases.count));
	TRY(memory_new(&pretrain->instances, run->phase_count, sizeof(*pretrain->instances), "phases"));
	for (int64_t i = 0; i < run->phase_count; i++) {
		const struct options *phase = pretrain->phases.items[i].options;
		run->phases[i].settings = pretrain_phase(phase);
		if (settings->time && run->phase_count == 1)
			TRY(duration_parse(settings->time, &run->phases[i].settings.seconds));
		pretrain->instances[i] = pretrain_instances(pretrain->options, phase);
	}
	return OK;
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

/* The longest run, in tokens, for which docs/quality.md shows what the recipe `fast` gains. */
#define SHORT_RUN_TOKENS 1e8

/* Has anybody, or --time, chosen a recipe, a part of one, or data that leave no choice? */
static bool has_chosen_recipe(const struct options *options)
{
	static const char *const choosing[] = {"recipe", "init_attention", "next_sentence", "init_checkpoint", "input_file"};
	for (size_t i = 0; i < sizeof(choosing) / sizeof(*choosing); i++)
		if (options_origin(options, choosing[i]) != ORIGIN_DEFAULT)
			return true;
	return false;
}

/* In a short run BERT's own recipe does not get far. */
static void note_recipe(const struct pretrain *pretrain)
{
	const struct pretrain_settings *settings = pretrain->options->settings;
	const struct run *run = &pretrain->run;
	char count[FORMAT_BYTES];
	double tokens = 0;
	if (!is_first_rank(pretrain->machine.comm) || run->start.resumed || initial_weights_named(settings->model))
		return;
	for (int64_t i = 0; i < run->phase_count; i++) {
		const struct phase_settings *phase = &run->phases[i].settings;
		if (has_chosen_recipe(pretrain->phases.items[i].options))
			return;
		tokens += (double)phase->num_train_steps * (double)phase->train_batch_size * (double)phase->max_seq_length;
	}
	if (tokens <= SHORT_RUN_TOKENS)
		log_note("BERT's original recipe is used, which learns little from as few as %s tokens: --recipe fast learns far "
			 "more (docs/quality.md)",
			 format_count(count, (int64_t)tokens));
}

static enum status pretrain_run_folder(struct pretrain *pretrain)
{
	struct run *run = &pretrain->run;
	const struct pretrain_settings *settings = pretrain->options->settings;
	pretrain->record = (struct run_record){
		.context = pretrain,
		.write = write_record,
		.show = show_settings,
		.options = report_options,
	};
	pretraining_run_begin(&pretrain->pretraining, run);
	pretrain->run_settings = pretrain_run(pretrain->options, &pretrain->inputs);
	TRY(run_open(run, &pretrain->run_settings, &pretrain->machine, &pretrain->pretraining.task, &pretrain->record));
	TRY(pretrain_phases(pretrain));
	/* A checkpoint's record may have completed the options. */
	const struct machine_settings machine = training_machine(&settings->training);
	machine_resume(&pretrain->machine, &machine);
	pretrain->run_settings = pretrain_run(pretrain->options, &pretrain->inputs);
	pretrain->settings = pretrain_pretraining(pretrain->options);
	TRY(run_open_device(run));
	TRY(pretraining_run_prepare(&pretrain->pretraining, &pretrain->settings, pretrain->instances));
	TRY(run_plan(run));
	note_recipe(pretrain);
	if (!pretrain->run_settings.folder.plan)
		return run_train(run);
	note_leftovers(run);
	return OK;
}

static void release(struct pretrain *pretrain, enum status status)
{
	pretraining_run_leave_device(&pretrain->pretraining);
	run_close(&pretrain->run, status);
	pretraining_run_release(&pretrain->pretraining);
	settled_options_release(&pretrain->settled);
	for (int64_t i = 0; pretrain->settled_phases && i < pretrain->phases.count; i++)
		settled_options_release(&pretrain->settled_phases[i]);
	free(pretrain->settled_phases);
	free(pretrain->instances);
	pretrain_phases_close(&pretrain->phases);
	machine_close(&pretrain->machine);
}

static enum status run_pretrain(struct options *options)
{
	struct pretrain pretrain = {.options = options};
	const struct pretrain_settings *settings = options->settings;
	const struct machine_settings machine = training_machine(&settings->training);
	run_stop_before_training();
	training_note_shared(options, "corpus", "eval_corpus");
	enum status status = machine_find(&pretrain.machine, &machine);
	if (status == OK && machine_launches(&pretrain.machine) && !settings->training.plan && settings->training.out) {
		pretrain.run_settings = pretrain_run(options, &pretrain.inputs);
		status = run_folder_launch(&pretrain.run_settings.folder, &pretrain.machine);
	} else if (status == OK) {
		status = pretrain_run_folder(&pretrain);
	}
	comm_fail(pretrain.machine.comm, status);
	struct error error = *error_last();
	release(&pretrain, status);
	return status == OK ? OK : error_restore(&error);
}

/* --time asks for the best model, not for the original BERT. Weights that are already trained keep their attention, whatever the
 * recipe says about new models. */
static enum status complete_pretrain(struct options *options)
{
	const struct pretrain_settings *settings = options->settings;
	if (options_given(options, "time") && !options_given(options, "recipe"))
		TRY(options_set(options, "recipe", "fast", ORIGIN_CHOSEN));
	TRY(recipes_read(options));
	bool trained = settings->init_checkpoint || initial_weights_named(settings->model);
	if (trained && options_origin(options, "init_attention") == ORIGIN_RECIPE)
		options_forget(options, "init_attention");
	return OK;
}

/* By the rules for times, "--time 3" means three seconds, which is hardly what was intended. */
static enum status check_unit(const char *time, double seconds)
{
	if (seconds >= 60 || time[strspn(time, "0123456789.")] != '\0')
		return OK;
	enum status status = error_set(ERR_USAGE, "--time %s means seconds, too few to train a model", time);
	error_hint("give a unit: %sh, %sm, or %ss if seconds are meant", time, time, time);
	return status;
}

/* --time determines the length of the run, so nothing else may. */
static enum status check_time(const struct options *options)
{
	static const char *const others[] = {"num_train_steps", "num_train_epochs", "num_train_tokens"};
	const struct pretrain_settings *settings = options->settings;
	double seconds;
	if (!options_given(options, "time"))
		return OK;
	TRY(duration_parse(settings->time, &seconds));
	TRY(check_unit(settings->time, seconds));
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		if (options_given(options, others[i]))
			return error_set(ERR_USAGE, "give either --time or --%s, not both", others[i]);
	if (options->section_count == 0 && !settings->phase2)
		return OK;
	enum status status = error_set(ERR_USAGE, "--time is for runs without a list of phases");
	error_hint("give each phase its num_train_steps instead");
	return status;
}

/* Text is required unless the folder may contain a run to resume, or the phases bring their own. */
static enum status check_pretrain(struct options *options)
{
	const struct pretrain_settings *settings = options->settings;
	const struct training_settings *training = &settings->training;
	TRY(training_check(options));
	TRY(options_blame(options, check_time(options)));
	bool recorded = (training->out && file_exists(training->out)) || training->resume_from;
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
	.settings_bytes = sizeof(struct pretrain_settings),
	.check = check_pretrain,
	.complete = complete_pretrain,
	.run = run_pretrain,
};
