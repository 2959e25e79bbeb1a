/* The text side of a run, once: vocabulary and token shards under `<run folder>/data`, made on the first start,
 * checked and used again on the next. */
#ifndef RUN_RUN_DATA_H
#define RUN_RUN_DATA_H

#include "base/error.h"
#include "base/option.h"
#include "base/pool.h"
#include "data/shard.h"
#include "data/shard_check.h"
#include "text/corpus.h"
#include "text/tokenizer.h"
#include "run/run_static.h"

struct run_data_settings {
	const char *folder;                   /* made if missing */
	const struct option_list *corpus;     /* patterns of text; empty: shards are given, or lie in `folder` */
	const struct option_list *data;       /* shard prefixes instead of text; "PREFIX:WEIGHT" mixes them by weight */
	const struct option_list *input_file; /* files of static instances instead of text */
	/* Instead of held-out documents: "NAME=PATH" begins a set of that name, to which values without a name belong that
	 * follow; before the first name, to one without a name. */
	const struct option_list *eval_corpus, *eval_data, *eval_file;
	bool corpus_recorded, eval_recorded; /* the lists are a resumed run's record: needed only where shards are not */
	struct corpus_settings input;
	bool drop_copies;                      /* documents of the corpus that are copies of earlier ones are left out */
	double held_out_fraction;              /* of the corpus' documents, unless an evaluation set is given */
	const char *vocab_file;                /* NULL: the folder's, or learned from the corpus */
	int64_t vocab_size, min_frequency;     /* to learn; size 0 = chosen from the amount of text */
	bool cased;                            /* when nothing else says: see cased_given */
	bool cased_given;                      /* `cased` is what a person asked for: what contradicts it is refused */
	int32_t pair_length, pair_predictions; /* of pairs to rewrite, as in struct instance_demands */
	bool verify_contents;                  /* compare the tokens of shards with their checksums: one rank does */
	struct pool *pool;
	bool resumed; /* a checkpoint resumes with the folder as it is; without one, a folder made
			 with other settings is made again */
};

/* Held-out text with a curve of its own. */
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
	double *weights;                 /* [train_count] of a mixture; NULL: all text once an epoch */
	struct static_file *train_files; /* instead of shards */
	int64_t train_file_count;
	struct run_data_set *evaluation; /* [evaluation_count] */
	int64_t evaluation_count;
	uint64_t hash;       /* of vocabulary and training data: a checkpoint records it */
	uint64_t older_hash; /* the same without the tokens' own checksums, as older programs recorded it */
	struct shard_check *check;
};

/* A corpus that has changed since the shards were made, or shards of another vocabulary or of text that was split otherwise
 * (casing), are ERR_STATE. Shards whose tokens are not those of their checksums are ERR_DATA, here or, where they are large,
 * from shard_check_status(out->check) and shard_check_wait(). */
MUST_USE enum status run_data_open(struct run_data *out, const struct run_data_settings *settings);
void run_data_close(struct run_data *data);

/* Further static instances for the vocabulary of `data`; run_static_close() closes them. */
MUST_USE enum status run_data_static(const struct run_data *data, const struct run_data_settings *settings,
				     const struct option_list *files, struct static_file **out, int64_t *out_count);

/* Text to shards PREFIX with a given vocabulary (and held-out shards PREFIX.held_out), unless shards of the same text
 * lie there already. */
MUST_USE enum status run_data_shards(const struct option_list *corpus, const struct corpus_settings *input,
				     const struct tokenizer *tokenizer, struct pool *pool, const char *prefix,
				     double held_out_fraction, bool drop_copies);

#endif
