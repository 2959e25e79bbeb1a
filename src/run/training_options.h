/* What all training commands ask, as groups of options. The settings of such a command begin with a struct training_options. */
#ifndef RUN_TRAINING_OPTIONS_H
#define RUN_TRAINING_OPTIONS_H

#include "base/option.h"
#include "infer/device_options.h"
#include "run/batch_options.h"
#include "train/optimizer_options.h"
#include "train/rate_options.h"

/* The run folder, and how to start in it. */
struct folder_options {
	const char *out;
	bool fresh; /* remove what an earlier run left */
	const char *resume_from;
	int64_t resume_step; /* -1: the newest */
	bool plan;           /* nothing is trained */
};
extern const struct option folder_rows[];

/* When to stop before the end, in this invocation. */
struct stopping_options {
	int64_t stop_at_step;   /* 0 = at the end */
	const char *max_time;   /* NULL: no limit */
	int64_t steps_this_run; /* 0 or less: at the end */
};
extern const struct option stopping_rows[];

/* How long a phase is: as one of these says, whichever comes first. */
struct length_options {
	int64_t num_train_steps;
	double num_train_epochs;
	int64_t early_stopping_patience; /* evaluations in a row without improvement; 0 = no such limit */
	double early_stopping_threshold;
	int64_t num_train_tokens; /* ends with the step by which this many were seen; 0 = no such limit */
};
extern const struct option length_rows[];

/* When to save and to evaluate, and what to keep. */
struct saving_options {
	int64_t save_checkpoints_steps, keep_checkpoints, eval_steps, log_steps;
	bool save_best;
	const char *best_by; /* the evaluation set that decides which checkpoint is best; NULL: the first */
};
extern const struct option saving_rows[];

/* The processes of a run, and how they work together. */
struct ranks_options {
	int64_t ranks, n_gpus; /* 0 = not given */
	double watchdog_seconds;
	int64_t max_restarts;
	int64_t replicas_per_gpu; /* parts of the batch that a rank computes one after the other */
	bool allreduce_post_accumulation, allreduce_post_accumulation_fp16, allreduce_post_accumulation_bf16;
	int64_t check_weights_steps;
};
extern const struct option ranks_rows[];

/* Safeguards for the numbers of training: spikes and the loss scale. */
struct safeguard_options {
	double skip_spikes;     /* skips updates this many standard deviations above the window; 0 = none */
	double loss_scale;      /* factor of the loss before backward; 0 = dynamic */
	double init_loss_scale; /* of a dynamic one */
};
extern const struct option safeguard_rows[];

/* The words of --recipe, in their order. */
enum recipe_name { RECIPE_ORIGINAL, RECIPE_FAST };

struct training_options {
	struct folder_options folder;
	struct stopping_options stopping;
	struct length_options length;
	struct batch_options batch;
	struct saving_options saving;
	struct ranks_options ranks;
	struct safeguard_options numbers;
	struct optimizer_options optimizer;
	struct rate_options rate;
	struct device_options device;
	int64_t seed, max_seq_length;
	double hidden_dropout_prob, attention_probs_dropout_prob; /* in place of the model's own */
	enum recipe_name recipe;
};
extern const struct option training_rows[]; /* of the last three lines */

/* Records as problems what is wrong with a command line of any training command. */
MUST_USE enum status training_check(struct options *options);
/* Settles options that are two ways to say the same thing: steps and epochs, the batch in total and per device, warm-up as steps
 * and as a share. Giving both in one place is an error; if one is in the config file and the other on the command line, the
 * latter wins. */
MUST_USE enum status training_settle(struct options *phase);

#endif
