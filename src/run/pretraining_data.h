/* What a pre-training run reads: vocabulary and text, or static instances, and the instances of each of its phases. */
#ifndef RUN_PRETRAINING_DATA_H
#define RUN_PRETRAINING_DATA_H

#include "run/initial_weights.h"
#include "run/run.h"
#include "run/run_data.h"
#include "train/pretraining.h"

/* Lists are borrowed. Lists from a resumed run's record that others have replaced are empty. */
struct pretraining_data_settings {
	const struct option_list *corpus, *data, *eval_corpus, *eval_data, *eval_file;
	bool corpus_recorded, eval_recorded; /* the lists come from a resumed run's record */
	const struct text_options *text;
	int cased;        /* -1 = open */
	bool cased_given; /* by the user: whatever contradicts it is refused */
	bool shuffle;
};

/* The part of a phase that struct run_phase does not have. */
struct pretraining_phase {
	/* As given: */
	const struct option_list *input_file; /* static instances; borrowed */
	struct instance_settings instances;   /* except for seed, length and vocabulary, which are the run's */
	bool length_open;                     /* nobody set max_seq_length: static instances decide */
	int64_t eval_instances;               /* instances of each evaluation set that are scored */
	bool eval_whole;                      /* ... except that static instances are all scored */
	/* Derived from those: */
	struct instance_settings training, evaluation;
	struct instances *source;  /* opened when needed, closed with the phase */
	struct static_file *files; /* static instances: the run's, an earlier phase's, or its own */
	int64_t file_count;
	bool owns_files;
};

/* Zero-initialize; released also after a failure. */
struct pretraining_data {
	const struct pretraining_data_settings *settings;
	struct run *run;                       /* the run that the data belongs to */
	const struct initial_weights *initial; /* borrowed, like settings and run */
	struct pretraining_phase *phases;      /* [phase_count], the run's; borrowed */
	int64_t phase_count;
	struct run_data data;
	int cased;                              /* including what the initial weights ask for */
	struct evaluation_set *evaluation_sets; /* [evaluation_count] of the open phase */
	int64_t evaluation_count;
};

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
