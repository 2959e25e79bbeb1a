/* The parts of `bertc finetune`: what to do with which files, one run from its options to its results, and sweeps. */
#ifndef CMD_FINETUNE_FINETUNE_RUN_H
#define CMD_FINETUNE_FINETUNE_RUN_H

#include "cmd/finetune/finetune_options.h"
#include "run/labeled_run.h"
#include "run/sweep.h"

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

/* Are there several runs, of a sweep or of --folds? */
bool finetune_has_runs(const struct finetune_settings *settings);
/* The folder that the options name. */
struct run_folder_settings finetune_folder(const struct options *options);
/* Opens the folder and the device, reads the model and the files, and settles what was left open. [all] */
MUST_USE enum status finetune_prepare(struct finetune *finetune);
/* After that: plan, training, and results. [all] */
MUST_USE enum status finetune_train(struct finetune *finetune);
/* Closes a run that ended with `status`, and returns it with the error that was set. */
MUST_USE enum status finetune_close(struct finetune *finetune, enum status status);

/* finetune_sweep.c: makes the runs of a sweep, one after another in this process (and its ranks). `options` are the command's.
 * [all] */
MUST_USE enum status finetune_sweep(struct options *options, struct machine *machine);
/* finetune_folds.c: the value of --sweep that stands for all folds, "fold=1,2,3". */
MUST_USE enum status finetune_folds_setting(int64_t folds, struct buffer *out);
/* Once all runs have ended: puts their answers into one file, in the order of the training files, and writes and logs the mean
 * and the deviation of each measure. */
MUST_USE enum status finetune_folds_finish(const struct sweep *sweep);

/* finetune_few_shot.c: a run on pairs of the examples, in OUT/pairs, and the head that is fitted after it. */
MUST_USE enum status finetune_few_shot(struct options *options, struct machine *machine);

/* finetune_inputs.c and finetune_score.c. */
/* Records what is missing from the options, or contradictory, as problems (command.h). */
MUST_USE enum status finetune_check(struct options *options);
/* Settles --task, --train, --dev, and --test: files that are not named are taken from --data_dir, and sets that are not wanted
 * are dropped. *out_train false: the model is only used for evaluation and prediction. ERR_USAGE: there is nothing to do, or
 * something to be used is missing. */
MUST_USE enum status finetune_inputs(struct options *options, bool *out_train);
/* Evaluates the dev sets and predicts the test sets with the model as it is, and writes the results into the run folder. */
MUST_USE enum status finetune_score(struct options *options);

#endif
