/* bertc finetune: a pre-trained model and a labelled task's files to a model that answers the task. The command fills src/run's
 * structs from its options, shows and records them, and lets the run do the work (run/run.h, run/labelled_run.h). */
#include "base/log.h"
#include "cmd/finetune_inputs.h"
#include "cmd/finetune_options.h"
#include "cmd/settled_options.h"
#include "cmd/training_settings.h"
#include "run/labelled_run.h"

/* Everything the command owns. */
struct finetune {
	struct options *options;
	struct machine machine;
	const char *paths[2];
	const struct option_list *patterns[3];
	struct run_settings run_settings;
	struct labelled_run_settings settings;
	struct run run;
	struct run_record record;
	struct labelled_run labelled;
	struct settled_options settled;
};

static enum marker_tokens marker_tokens(const char *name)
{
	return name[0] == 'v' ? MARKERS_VOCABULARY : name[0] == 't' ? MARKERS_TEXT : MARKERS_AUTO;
}

static void fill_run(struct finetune *finetune)
{
	const struct options *options = finetune->options;
	const struct finetune_settings *settings = options->settings;
	const struct training_settings *training = &settings->training;
	finetune->paths[0] = settings->model;
	finetune->paths[1] = training->resume_from;
	finetune->patterns[0] = &settings->train;
	finetune->patterns[1] = &settings->dev;
	finetune->patterns[2] = &settings->test;
	finetune->run_settings = training_run(options, training);
	struct run_folder_settings *folder = &finetune->run_settings.folder;
	folder->command = "finetune";
	folder->usage = "bertc finetune --task NAME --model FOLDER --train FILE --out FOLDER";
	folder->paths = finetune->paths;
	folder->path_count = sizeof(finetune->paths) / sizeof(*finetune->paths);
	folder->patterns = finetune->patterns;
	folder->pattern_count = sizeof(finetune->patterns) / sizeof(*finetune->patterns);
	finetune->settings = (struct labelled_run_settings){
		.task = settings->task,
		.model = settings->model,
		.config_file = settings->config_file,
		.vocab_file = settings->vocab_file,
		.cased = settings->cased,
		.cased_is_given = options_given(options, "cased"),
		.train = &settings->train,
		.dev = &settings->dev,
		.test = &settings->test,
		.columns = {.text = settings->text_column, .pair = settings->pair_column, .label = settings->label_column},
		.labels = settings->labels,
		.class_weights = settings->class_weights,
		.metric = settings->metric,
		.negative_label = settings->negative_label,
		.relation = {.markers = settings->markers,
			     .tokens = marker_tokens(settings->marker_tokens),
			     .reads_markers = settings->relation_head[0] == 'm'},
		.squad = squad_options_given(options, &settings->squad),
		.skip_bad = settings->on_bad_record[1] == 'k',
		.shuffle = settings->shuffle,
		.save_best = training->save_best,
		.hidden_dropout_prob = training_number(options, "hidden_dropout_prob", training->hidden_dropout_prob),
		.attention_probs_dropout_prob =
			training_number(options, "attention_probs_dropout_prob", training->attention_probs_dropout_prob),
	};
	finetune->settings.squad.find_threshold = settings->find_threshold;
}

/* ---- The settings, shown and recorded ---- */

static enum status settle(struct finetune *finetune, const struct run *run)
{
	TRY(settled_options_make(&finetune->settled, finetune->options, sizeof(struct finetune_settings), &run->choices));
	return settled_options_add(&finetune->settled, &run->phases[0].choices);
}

static enum status show_settings(void *context, const struct run *run, struct buffer *out)
{
	struct finetune *finetune = context;
	TRY(settle(finetune, run));
	options_settings_table(&finetune->settled.options, SCOPE_ALL, log_has_colour(), out);
	return OK;
}

static enum status write_record(void *context, const struct run *run, struct json_writer *writer)
{
	struct finetune *finetune = context;
	TRY(settle(finetune, run));
	options_write_json(&finetune->settled.options, writer, NULL, SCOPE_ALL);
	return OK;
}

static enum status report_options(void *context, const struct run *run, const struct options **out)
{
	struct finetune *finetune = context;
	TRY(settle(finetune, run));
	*out = &finetune->settled.options;
	return OK;
}

/* ---- The run ---- */

static enum status train_in_folder(struct finetune *finetune)
{
	struct run *run = &finetune->run;
	const struct finetune_settings *settings = finetune->options->settings;
	finetune->record =
		(struct run_record){.context = finetune, .write = write_record, .show = show_settings, .options = report_options};
	labelled_run_begin(&finetune->labelled, run);
	fill_run(finetune);
	TRY(training_settle(finetune->options));
	TRY(run_open(run, &finetune->run_settings, &finetune->machine, &finetune->labelled.task, &finetune->record));
	/* The record of a checkpoint, or of a run that has none yet, completes the options. */
	const struct json *record = phases_record(&run->start);
	if (record) {
		const char *name = phases_record_name(&run->start);
		TRY(options_resume(finetune->options, record, name, SCOPE_ALL));
		TRY(options_resume_start(finetune->options, record, name, run->start.resumed));
	}
	const struct machine_settings machine = training_machine(&settings->training);
	machine_resume(&finetune->machine, &machine);
	fill_run(finetune);
	TRY(run_set_phases(run, 1));
	run->phases[0].settings = training_phase(finetune->options, &settings->training);
	TRY(run_open_device(run));
	TRY(labelled_run_prepare(&finetune->labelled, &finetune->settings));
	TRY(run_plan(run));
	if (finetune->run_settings.folder.plan)
		return OK;
	TRY(run_train(run));
	return labelled_run_finish(&finetune->labelled);
}

static enum status run_finetune(struct options *options)
{
	struct finetune finetune = {.options = options};
	const struct finetune_settings *settings = options->settings;
	const struct machine_settings machine = training_machine(&settings->training);
	bool trains;
	TRY(finetune_inputs(options, &trains));
	if (!trains)
		return finetune_score(options);
	run_stop_before_training();
	enum status status = machine_find(&finetune.machine, &machine);
	if (status == OK && machine_launches(&finetune.machine) && !settings->training.plan && settings->training.out) {
		fill_run(&finetune);
		status = run_folder_launch(&finetune.run_settings.folder, &finetune.machine);
	} else if (status == OK) {
		status = train_in_folder(&finetune);
	}
	comm_fail(finetune.machine.comm, status);
	struct error error = *error_last();
	run_close(&finetune.run, status);
	labelled_run_release(&finetune.labelled);
	settled_options_release(&finetune.settled);
	machine_close(&finetune.machine);
	return status == OK ? OK : error_restore(&error);
}

const struct command command_finetune = {
	.text = &finetune_text,
	.options = finetune_options,
	.foreign = finetune_foreign,
	.settings_bytes = sizeof(struct finetune_settings),
	.run = run_finetune,
};
