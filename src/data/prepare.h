/* A corpus to token shards, on all cores. */
#ifndef DATA_PREPARE_H
#define DATA_PREPARE_H

#include "base/error.h"
#include "base/pool.h"
#include "data/shard.h"
#include "text/corpus.h"
#include "text/tokenizer.h"

struct prepare_settings {
	const char *prefix;          /* training documents */
	const char *held_out_prefix; /* NULL: nothing is held out */
	double held_out_fraction;    /* a document is held out if its hash, as a fraction of 2^64, is below this; at
	                                least one (the smallest hash) when there are two or more documents */
};

struct prepare_report {
	struct shard_description train, held_out;
	struct corpus_counts counts;
	enum text_form form;
	double seconds;
};

/* Reads `corpus` to its end. No usable document is ERR_DATA. The result does not depend on threads. */
MUST_USE enum status prepare_corpus(struct corpus *corpus, const struct tokenizer *tokenizer, struct pool *pool,
				    const struct prepare_settings *settings, struct prepare_report *report);

#endif
