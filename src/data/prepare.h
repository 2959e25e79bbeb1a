/* A corpus to token shards, on all cores. */
#ifndef DATA_PREPARE_H
#define DATA_PREPARE_H

#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"
#include "base/pool.h"
#include "data/shard.h"
#include "text/corpus.h"
#include "text/tokenizer.h"

struct prepare_settings {
	const char *prefix;          /* training documents */
	const char *held_out_prefix; /* NULL: nothing is held out */
	double held_out_fraction; /* a document is held out if its hash, as a fraction of 2^64, is below this;
	                             at least one (the smallest hash) when there are two or more documents */
};

struct prepare_report {
	struct shard_description train, held_out;
	struct corpus_counts counts;
	int64_t empty_sentences, empty_documents; /* left out: no token was left of them */
	int64_t text_bytes;                       /* of the sentences that were encoded */
	int64_t invalid_bytes;                    /* of these, not UTF-8 */
	enum text_form form;                      /* of most documents */
	char form_reason[256];                    /* of the first document of that form */
	bool mixed_forms;                         /* files differ in form */
	double seconds;
};

/* Reads `corpus` to its end, in a pipeline on the pool: one task reads, one writes, the others encode. Memory
 * depends on the longest document, not on the corpus, but for the shards' index (shard.h). The result does
 * not depend on threads. Warns when more than 5 % of the tokens are [UNK]. No usable document is ERR_DATA; a
 * stop request leaves nothing behind and is STOPPED. */
MUST_USE enum status prepare_corpus(struct corpus *corpus, const struct tokenizer *tokenizer,
                                    struct pool *pool, const struct prepare_settings *settings,
                                    struct prepare_report *report);

#endif
