/* What a pre-training run reads: vocabulary and text, or static instances, and the instances of each of its phases. */
#ifndef RUN_PRETRAINING_DATA_H
#define RUN_PRETRAINING_DATA_H

#include "run/pretraining_options.h"
#include "run/run.h"
#include "train/pretraining.h"

/* The part of a phase that struct run_phase does not have. */
struct pretraining_phase {
	struct option_list input_file; /* static instances, as given; borrowed */
	struct instance_settings training, evaluation;
	struct instances *source;  /* opened when needed, closed with the phase */
	struct static_file *files; /* static instances: the run's, an earlier phase's, or its own */
	int64_t file_count;
	bool owns_files;
};

/* Zero-initialize; released also after a failure. */
struct pretraining_data {
	struct run *run;                       /* the run that the data belongs to */
	const struct initial_weights *initial; /* borrowed, like run */
	struct pretraining_phase *phases;      /* [phase_count] */
	int64_t phase_count;
	struct run_data data;
	struct evaluation_set *evaluation_sets; /* [evaluation_count] of the open phase */
	int64_t evaluation_count;
};

/* Before anything is opened: what the options of the run and its phases say. */
MUST_USE enum status pretraining_data_begin(struct pretraining_data *data, struct run *run,
					    const struct initial_weights *initial);
/* Whether nobody has said how long the phase's sequences are: then static instances decide. */
bool pretraining_length_is_open(const struct run_phase *phase);
/* Opens vocabulary and text, making them in the run's folder if they are missing: the first rank first, then the others, who find
 * them there. Sets everything that a task has to set in its run, except for the configuration. */
MUST_USE enum status pretraining_data_open(struct pretraining_data *data);
void pretraining_data_close(struct pretraining_data *data);

/* Number of tokens in the training text. */
int64_t pretraining_data_tokens(const struct pretraining_data *data);

/* Once the phase's length is known: fills in its instances' settings. */
void pretraining_set_instances(struct pretraining_data *data, int64_t phase);
/* Opens the phase's training instances if they are not open. */
MUST_USE enum status pretraining_open_instances(struct pretraining_data *data, int64_t phase);
/* Opens the evaluation sets as the phase sees them. */
MUST_USE enum status pretraining_open_evaluation(struct pretraining_data *data, int64_t phase);
/* Closes both. */
void pretraining_close_instances(struct pretraining_data *data, int64_t phase);

#endif
