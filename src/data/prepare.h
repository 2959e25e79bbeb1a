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

/* Documents to leave out, all on request; zero: none. A copy is what has the same text as something earlier in the same
 * shard; which copies there are is counted in any case. */
struct prepare_filters {
	int64_t min_document_tokens, max_document_tokens;
	double max_unknown_share; /* of a document's tokens, [UNK] */
	bool drop_copied_documents, drop_copied_sentences;
};

struct prepare_settings {
	const char *prefix;          /* training documents */
	const char *held_out_prefix; /* NULL: nothing is held out */
	double held_out_fraction;    /* a document is held out if its hash, as a fraction of 2^64, is below this;
					at least one (the smallest hash) when there are two or more documents */
	struct prepare_filters filters;
	const struct corpus_settings *input; /* how the corpus is read: part of what a resumed run must agree in */
	double save_seconds;                 /* between saves of what is done so far; 0 = 30 */
};

enum prepare_drop {
	PREPARE_SHORT,
	PREPARE_LONG,
	PREPARE_UNKNOWN,
	PREPARE_COPIED_DOCUMENT,
	PREPARE_COPIED_SENTENCE, /* in documents that are no copies */
	PREPARE_DROPS
};

#define PREPARE_SAMPLES 5
#define PREPARE_SAMPLE_BYTES 240
struct prepare_dropped {
	int64_t count, tokens; /* found */
	bool left_out;         /* and left out */
	int sample_count;
	char samples[PREPARE_SAMPLES][PREPARE_SAMPLE_BYTES]; /* how the first ones begin */
};

struct prepare_report {
	struct shard_description train, held_out;
	struct corpus_counts counts;
	struct prepare_dropped dropped[PREPARE_DROPS];
	int64_t resumed_documents;                /* done by an earlier run that was stopped */
	int64_t empty_sentences, empty_documents; /* left out: no token was left of them */
	int64_t text_bytes;                       /* of the sentences that were encoded */
	int64_t invalid_bytes;                    /* of these, not UTF-8 */
	enum text_form form;                      /* of most documents */
	char form_reason[256];                    /* of the first document of that form */
	bool mixed_forms;                         /* files differ in form */
	double seconds;
};

/* Reads `corpus` to its end, in a pipeline on the pool: one task reads, one writes, the others encode. Memory depends on
 * the longest document, not on the corpus. The result does not depend on threads. Warns when more than 5 % of the
 * tokens are [UNK]. No usable document is ERR_DATA. Half-made shards are saved every so often: a run that was stopped
 * (STOPPED) or killed is resumed by the next call with the same corpus and settings, unless it reads standard input. */
MUST_USE enum status prepare_corpus(struct corpus *corpus, const struct tokenizer *tokenizer, struct pool *pool,
				    const struct prepare_settings *settings, struct prepare_report *report);

/* PREFIX.html: counts, histograms of lengths, what was left out or found twice, with samples. For a person; opens
 * without a network. */
MUST_USE enum status prepare_write_report(const struct prepare_settings *settings, const struct prepare_report *report);

#endif
