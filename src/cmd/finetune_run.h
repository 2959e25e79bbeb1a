/* One run of `bertc finetune`, from its options to its results: alone, or as one of a sweep (finetune_sweep.h). */
#ifndef CMD_FINETUNE_RUN_H
#define CMD_FINETUNE_RUN_H

#include "cmd/finetune_options.h"
#include "cmd/settled_options.h"
#include "run/labelled_run.h"

/* Everything a run owns. Zero-initialise but for what is borrowed. */
struct finetune {
	struct options *options; /* borrowed, as the machine */
	struct machine *machine;
	bool in_sweep; /* one of its runs */
	bool brief;    /* the table of settings has been shown before */
	const char *paths[5];
	const struct option_list *patterns[3];
	struct run_settings run_settings;
	struct labelled_run_settings settings;
	struct run run;
	struct run_record record;
	struct labelled_run labelled;
	struct settled_options settled;
};

/* Fills the structs of the run from the options as they are now. */
void finetune_fill(struct finetune *finetune);
/* Opens folder and device, reads model and files, and chooses what is open. [all] */
MUST_USE enum status finetune_prepare(struct finetune *finetune);
/* After that: plan, training, results. [all] */
MUST_USE enum status finetune_train(struct finetune *finetune);
/* Returns `status`, how it ended, with the error that was set. */
MUST_USE enum status finetune_close(struct finetune *finetune, enum status status);

#endif
