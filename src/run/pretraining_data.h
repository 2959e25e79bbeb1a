/* What a pre-training run reads: vocabulary and text, or static instances, and the instances of each of its phases. */
#ifndef RUN_PRETRAINING_DATA_H
#define RUN_PRETRAINING_DATA_H

#include "run/initial_weights.h"
#include "run/run.h"
#include "run/run_data.h"
#include "train/pretraining.h"

/* Lists are borrowed. Those of a resumed run's record that have given way to others are empty. */
struct pretraining_data_settings {
	const struct option_list *corpus, *data, *eval_corpus, *eval_data, *eval_file;
	bool corpus_recorded, eval_recorded; /* the lists are a resumed run's record */
	struct corpus_settings input;        /* `threads` is the machine's */
	bool drop_copies;
	double held_out_fraction;
	int64_t vocab_size, min_frequency; /* of a vocabulary to learn; size 0 = open */
	int cased;                         /* -1 = open */
	bool cased_given;                  /* by a person: what contradicts it is refused */
	bool shuffle;
};

/* A phase's, beside struct run_phase. */
struct pretraining_phase {
	/* As given: */
	const struct option_list *input_file; /* static instances; borrowed */
	struct instance_settings instances;   /* without seed, length and vocabulary, which are the run's */
	bool length_open;                     /* max_seq_length is nobody's wish: static instances decide */
	int64_t eval_instances;               /* scored, of each evaluation set */
	bool eval_whole;                      /* ... but all of static instances */
	/* What follows: */
	struct instance_settings training, evaluation;
	struct instances *source;  /* opened once they are needed, closed with the phase */
	struct static_file *files; /* static instances: the run's, an earlier phase's, or its own */
	int64_t file_count;
	bool owns_files;
};

/* Zero-initialise; released also after a failure. */
struct pretraining_data {
	const struct pretraining_data_settings *settings;
	struct run *run;                       /* whose data they are */
	const struct initial_weights *initial; /* borrowed, as settings and run */
	struct pretraining_phase *phases;      /* [phase_count], the run's; borrowed */
	int64_t phase_count;
	struct run_data data;
	int cased;                              /* with what the initial weights ask for */
	struct evaluation_set *evaluation_sets; /* [evaluation_count] of the open phase */
	int64_t evaluation_count;
};

/* Vocabulary and text, made in the run's folder where they are not there: the first rank first, then the others, who find them.
 * Sets what a task is to set of its run, but for the configuration. */
MUST_USE enum status pretraining_data_open(struct pretraining_data *data);
void pretraining_data_close(struct pretraining_data *data);

/* Tokens of the training text. */
int64_t pretraining_data_tokens(const struct pretraining_data *data);

/* With the phase's length known: its instances' settings. */
void pretraining_set_instances(struct pretraining_data *data, int64_t phase);
/* Its training instances, opened if they are not. */
MUST_USE enum status pretraining_open_instances(struct pretraining_data *data, int64_t phase);
/* The evaluation sets as the phase sees them. */
MUST_USE enum status pretraining_open_evaluation(struct pretraining_data *data, int64_t phase);
/* Closes both. */
void pretraining_close_instances(struct pretraining_data *data, int64_t phase);

#endif
