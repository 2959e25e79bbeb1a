/* bertc finetune: from a pre-trained model and the files of a labeled task to a model for that task. */
#include "cmd/finetune/finetune_run.h"
#include "cmd/training_notes.h"

static enum status train_one(struct options *options, struct machine *machine)
{
	struct finetune finetune = {.options = options, .machine = machine};
	enum status status = finetune_prepare(&finetune);
	if (status == OK)
		status = finetune_train(&finetune);
	comm_fail(machine->comm, status);
	return finetune_close(&finetune, status);
}

static enum status run_finetune(struct options *options)
{
	const struct finetune_settings *settings = options->settings;
	const struct run_folder_settings folder = finetune_folder(options);
	struct machine machine = {0};
	bool trains;
	TRY(finetune_inputs(options, &trains));
	if (!trains)
		return finetune_score(options);
	run_stop_before_training();
	training_note_shared(options, "train", "dev");
	training_note_shared(options, "train", "test");
	enum status status = machine_find(&machine, &settings->training);
	if (status == OK && machine_launches(&machine) && !settings->training.folder.plan && settings->training.folder.out)
		status = run_folder_launch(&folder, &machine);
	else if (status == OK && settings->labeled.own.classification.few_shot)
		status = finetune_few_shot(options, &machine);
	else if (status == OK && finetune_has_runs(settings))
		status = finetune_sweep(options, &machine);
	else if (status == OK)
		status = train_one(options, &machine);
	struct error error = *error_last();
	machine_close(&machine);
	return status == OK ? OK : error_restore(&error);
}

const struct command command_finetune = {
	.text = &finetune_text,
	.options = finetune_options,
	.foreign = finetune_foreign,
	.settings_bytes = sizeof(struct finetune_settings),
	.check = finetune_check,
	.run = run_finetune,
};
