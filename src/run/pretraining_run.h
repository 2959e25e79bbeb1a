/* A pre-training run: what is chosen, from its text and its model, where the user left it open, and the objective of each
 * phase. */
#ifndef RUN_PRETRAINING_RUN_H
#define RUN_PRETRAINING_RUN_H

#include "report/samples.h"
#include "run/pretraining_data.h"
#include "run/run.h"

/* Zero-initialize; released also after a failure. */
struct pretraining_run {
	struct run *run; /* borrowed, with its phases */
	struct run_task task;
	struct initial_weights initial;
	struct pretraining_data data;
	struct samples samples;
	double budget; /* of a new run with a time limit: its floating-point operations; else 0 */
};

/* Fills in out->task, with which `run` is then opened. */
void pretraining_run_begin(struct pretraining_run *out, struct run *run);
/* Call it after run_open_device(). Opens the text and chooses whatever must be settled before run_plan(). The settings of the
 * run's options are a struct pretraining_options. [all] */
MUST_USE enum status pretraining_run_prepare(struct pretraining_run *run);
/* Releases what is on the device; before run_close(). */
void pretraining_run_leave_device(struct pretraining_run *run);
/* Releases the rest; after run_close(). */
void pretraining_run_release(struct pretraining_run *run);

#endif
