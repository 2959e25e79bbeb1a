/* One run of `bertc finetune`, from its options to its results: alone, or as one of a sweep (finetune_sweep.h). */
#ifndef CMD_FINETUNE_FINETUNE_RUN_H
#define CMD_FINETUNE_FINETUNE_RUN_H

#include "cmd/finetune/finetune_options.h"
#include "run/labeled_run.h"

/* Everything a run owns. Zero-initialize except for the borrowed members. */
struct finetune {
	struct options *options; /* borrowed, as is the machine */
	struct machine *machine;
	bool in_sweep; /* a run of a sweep */
	bool brief;    /* the table of settings has already been shown */
	struct run_folder_settings folder;
	struct run run;
	struct labeled_run labeled;
};

/* The folder that the options name. */
struct run_folder_settings finetune_folder(const struct options *options);
/* Opens the folder and the device, reads the model and the files, and settles what was left open. [all] */
MUST_USE enum status finetune_prepare(struct finetune *finetune);
/* After that: plan, training, and results. [all] */
MUST_USE enum status finetune_train(struct finetune *finetune);
/* Closes a run that ended with `status`, and returns it with the error that was set. */
MUST_USE enum status finetune_close(struct finetune *finetune, enum status status);

#endif
