/* One run of `bertc finetune`: completes the options and lets the run do the work (run/run.h, run/labeled_run.h). */
#include "cmd/finetune/finetune_run.h"

#include <string.h>

#include "cmd/training_notes.h"

struct run_folder_settings finetune_folder(const struct options *options)
{
	const struct finetune_settings *settings = options->settings;
	return (struct run_folder_settings){
		.command = "finetune",
		.usage = "bertc finetune --task NAME --model FOLDER --train FILE --out FOLDER",
		.has_task = true,
		.given = &settings->training.folder,
		.sweep = finetune_has_runs(settings),
		.options = options,
	};
}

bool finetune_has_runs(const struct finetune_settings *settings)
{
	const struct fold_options *folds = &settings->labeled.folds;
	return settings->sweep.count > 0 || (folds->folds > 0 && folds->fold == 0);
}

/* ---- The run ---- */

/* Options for learning from a teacher require one. */
static enum status check_teacher(const struct options *options)
{
	static const char *const names[] = {"distill_alpha", "distill_temperature", "distill_layers", "distill_hidden_weight"};
	const struct finetune_settings *settings = options->settings;
	for (size_t i = 0; !settings->distillation.teacher && i < sizeof names / sizeof names[0]; i++) {
		if (!options_said(options, names[i]))
			continue;
		return error_hinted(error_set(ERR_USAGE, "--%s has no effect without --teacher", names[i]),
				    "name the folder of a model that was fine-tuned for this task");
	}
	return OK;
}

/* Some options of a task are refused for others, except for those that the run on pairs of --few_shot obeys. */
static enum status check_exclusive(const struct options *options, const char *name)
{
	static const char *const of_pairs[] = {"temperature",        "pooling", "score_loss", "matryoshka_dims",
					       "matryoshka_weights", NULL};
	const struct finetune_settings *settings = options->settings;
	const struct task *task;
	const struct layout *layout;
	TRY(task_find(name, &task, &layout));
	return task_options_check(options, task, settings->labeled.own.classification.few_shot ? of_pairs : NULL);
}

/* --out alone resumes a run, if there is one; otherwise the task must be given. */
static enum status check_task(const struct finetune *finetune)
{
	const struct finetune_settings *settings = finetune->options->settings;
	if (settings->labeled.task)
		return check_exclusive(finetune->options, settings->labeled.task);
	const char *folder =
		settings->training.folder.out ? settings->training.folder.out : settings->training.folder.resume_from;
	return error_hinted(error_set(ERR_USAGE, "there is nothing to resume in '%s', and --task is missing", folder),
			    "name the task, the model, and the training data: %s", finetune->folder.usage);
}

enum status finetune_prepare(struct finetune *finetune)
{
	struct run *run = &finetune->run;
	const struct finetune_settings *settings = finetune->options->settings;
	labeled_run_begin(&finetune->labeled, run);
	TRY(training_settle(finetune->options));
	finetune->folder = finetune_folder(finetune->options);
	finetune->folder.in_sweep = finetune->in_sweep;
	TRY(run_open(run, &finetune->folder, finetune->machine, &finetune->labeled.task));
	/* The options are completed by the record of a checkpoint, or by that of a run that has no checkpoint yet. */
	const struct json *record = phases_record(&run->start);
	if (record) {
		const char *name = phases_record_name(&run->start);
		TRY(training_note_finished(finetune->options, &run->start, settings->training.folder.out, "model"));
		TRY(options_resume(finetune->options, record, name, SCOPE_ALL));
		TRY(options_resume_start(finetune->options, record, name, false));
		TRY(training_note_edits(finetune->options, &run->start, settings->training.folder.out));
	}
	TRY(check_task(finetune));
	TRY(check_teacher(finetune->options));
	machine_resume(finetune->machine, &settings->training);
	TRY(run_take_options(run, finetune->options, &finetune->options, 1));
	run->brief = finetune->brief;
	TRY(run_open_device(run));
	const struct finetune_settings *of_run = run->options.settings;
	return labeled_run_prepare(&finetune->labeled, &of_run->labeled, &of_run->distillation);
}

enum status finetune_train(struct finetune *finetune)
{
	TRY(run_plan(&finetune->run));
	if (finetune->run.values->folder.plan)
		return OK;
	TRY(run_train(&finetune->run));
	return labeled_run_finish(&finetune->labeled);
}

enum status finetune_close(struct finetune *finetune, enum status status)
{
	struct error error = *error_last();
	run_close(&finetune->run, status);
	labeled_run_release(&finetune->labeled);
	return status == OK ? OK : error_restore(&error);
}
