/* A pre-training run: what is chosen from its text and its model where the user left it open, and the objective of each phase. */
#ifndef RUN_PRETRAINING_RUN_H
#define RUN_PRETRAINING_RUN_H

#include "report/samples.h"
#include "run/initial_weights.h"
#include "run/pretraining_data.h"
#include "run/run.h"

struct pretraining_run_settings {
	const char *model; /* a size, a configuration or weights; NULL: from the initial weights, or the amount of text */
	struct model_sizes sizes; /* of a new model: others than those of `model` */
	struct initial_settings initial;
	struct pretraining_data_settings data;
	double hidden_dropout_prob, attention_probs_dropout_prob; /* negative: the configuration's */
};

/* Zero-initialise; released also after a failure. */
struct pretraining_run {
	const struct pretraining_run_settings *settings; /* borrowed */
	struct run *run;                                 /* borrowed, with its phases */
	struct run_task task;
	struct initial_weights initial;
	struct pretraining_data data;
	struct samples samples;
	double budget; /* of a new run with a time to end by: its floating-point operations; else 0 */
};

/* Makes out->task: that of `run`, which is opened with it. */
void pretraining_run_begin(struct pretraining_run *out, struct run *run);
/* After run_open_device(): opens text and chooses all that is left open up to run_plan(). `phases` [run->phase_count] are as
 * given and borrowed. [all] */
MUST_USE enum status pretraining_run_prepare(struct pretraining_run *run, const struct pretraining_run_settings *settings,
					     struct pretraining_phase *phases);
/* Before run_close(): what lies on the device. */
void pretraining_run_leave_device(struct pretraining_run *run);
/* After it: the rest. */
void pretraining_run_release(struct pretraining_run *run);

#endif
