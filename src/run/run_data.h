/* The text of a run: vocabulary and token shards under `<run folder>/data`, made on the first start, then checked and reused. */
#ifndef RUN_RUN_DATA_H
#define RUN_RUN_DATA_H

#include "base/error.h"
#include "base/option.h"
#include "base/pool.h"
#include "data/shard.h"
#include "data/shard_check.h"
#include "text/corpus.h"
#include "text/tokenizer.h"
#include "text/vocab_learn.h"
#include "run/run_static.h"

/* The text of a run, and how it becomes a vocabulary and shards. */
struct text_options {
	struct option_list corpus;     /* patterns of text files; empty: shards are given, or were made */
	struct option_list data;       /* shard prefixes instead of text; "PREFIX:WEIGHT" mixes them by weight */
	struct option_list input_file; /* files of static instances instead of text */
	struct input_options input;
	bool drop_copied_documents; /* leave out documents of the corpus that are copies of earlier ones */
	double held_out_fraction;   /* share of the corpus's documents, unless an evaluation set is given */
	/* In place of held-out documents. "NAME=PATH" begins a set of that name, to which the following values without a name
	 * belong, too; values before the first name belong to a set without a name. */
	struct option_list eval_corpus, eval_data, eval_file;
	int64_t vocab_size; /* of a vocabulary to learn; 0 = chosen from the amount of text */
	int64_t min_frequency;
	enum vocab_type vocab_type; /* VOCAB_OPEN: WordPiece */
	bool cased;                 /* used when nothing else says; if it was given, whatever contradicts it is refused */
};
extern const struct option text_rows[], vocabulary_rows[]; /* up to the evaluation sets, and the rest */

struct run_data_settings {
	const struct text_options *text;
	const struct options *options; /* which tell whether --cased was said, and what comes from a resumed run's record */
	const char *folder;            /* made if missing */
	struct corpus_settings input;  /* text->input, and by how many threads */
	const char *vocab_file;        /* NULL: the folder's, or one learned from the corpus */
	int32_t pair_length, pair_predictions; /* for pairs to be rewritten, as in struct instance_demands */
	bool first_rank; /* makes the folder, and compares the tokens of shards with their checksums; the others find it made */
	struct pool *pool;
	bool resumed; /* keep the folder as it is, as a checkpoint does; else a folder made with other settings is made again */
};

/* An evaluation set, which has a curve of its own. */
struct run_data_set {
	char name[64]; /* "" for documents held out of the training text, and for an evaluation set without a name */
	struct shard *shards;
	int64_t shard_count;
	struct static_file *files; /* instead of shards */
	int64_t file_count;
};

struct run_data {
	struct vocab vocab;
	struct tokenizer_settings tokenizer;
	struct shard *train;
	int64_t train_count;
	double *weights;                 /* [train_count] for a mixture; NULL: all text once per epoch */
	struct static_file *train_files; /* instead of shards */
	int64_t train_file_count;
	struct run_data_set *evaluation; /* [evaluation_count] */
	int64_t evaluation_count;
	uint64_t hash;       /* of vocabulary and training data: a checkpoint records it */
	uint64_t dated_hash; /* the same, as older checkpoints recorded it */
	struct shard_check *check;
};

/* ERR_STATE: a corpus that has changed since the shards were made; shards of another vocabulary, or of text that was split
 * differently (casing). ERR_DATA: shards whose tokens do not match their checksums. Large shards report that later, through
 * shard_check_status(out->check) and shard_check_wait(). */
MUST_USE enum status run_data_open(struct run_data *out, const struct run_data_settings *settings);
void run_data_close(struct run_data *data);

/* Opens further static instances for the vocabulary of `data`. To be closed by run_static_close(). */
MUST_USE enum status run_data_static(const struct run_data *data, const struct run_data_settings *settings,
				     const struct option_list *files, struct static_file **out, int64_t *out_count);

/* Turns text into shards PREFIX with a given vocabulary (and held-out shards PREFIX.held_out), unless shards of the same text are
 * there already. */
MUST_USE enum status run_data_shards(const struct option_list *corpus, const struct corpus_settings *input,
				     const struct tokenizer *tokenizer, struct pool *pool, const char *prefix,
				     double held_out_fraction, bool drop_copies);

#endif
