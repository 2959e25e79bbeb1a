/* Converts a corpus to token shards, on all cores. */
#ifndef DATA_PREPARE_H
#define DATA_PREPARE_H

#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"
#include "base/pool.h"
#include "data/shard.h"
#include "text/corpus.h"
#include "text/tokenizer.h"

/* What to leave out; a zero field disables its filter. A copy is a document or sentence with the same text as an earlier one in
 * the same shard; copies are counted even if they are kept. */
struct prepare_filters {
	int64_t min_document_tokens, max_document_tokens;
	double max_unknown_share; /* share of [UNK] among a document's tokens */
	bool drop_copied_documents, drop_copied_sentences;
};

struct prepare_settings {
	const char *prefix;          /* training documents */
	const char *held_out_prefix; /* NULL: nothing is held out */
	double held_out_fraction;    /* a document is held out if its hash, as a fraction of 2^64, is below this; with
					two or more documents, at least the one with the smallest hash */
	struct prepare_filters filters;
	const struct corpus_settings *input; /* how the corpus is read; must be the same for a run to be resumed */
	double save_seconds;                 /* time between saves of the work so far; 0 = 30 */
};

enum prepare_drop {
	PREPARE_SHORT,
	PREPARE_LONG,
	PREPARE_UNKNOWN,
	PREPARE_COPIED_DOCUMENT,
	PREPARE_COPIED_SENTENCE, /* in documents that are not copies themselves */
	PREPARE_DROPS
};

#define PREPARE_SAMPLES 5
#define PREPARE_SAMPLE_BYTES 240
struct prepare_dropped {
	int64_t count, tokens; /* found */
	bool left_out;         /* whether what was found was left out */
	int sample_count;
	char samples[PREPARE_SAMPLES][PREPARE_SAMPLE_BYTES]; /* beginnings of the first ones */
};

struct prepare_report {
	struct shard_description train, held_out;
	struct corpus_counts counts;
	struct prepare_dropped dropped[PREPARE_DROPS];
	int64_t resumed_documents;                /* done by an earlier run that was interrupted */
	int64_t empty_sentences, empty_documents; /* left out because they yielded no tokens */
	int64_t text_bytes;                       /* of the encoded sentences */
	int64_t invalid_bytes;                    /* of these, bytes that are not valid UTF-8 */
	enum text_form form;                      /* the form of most documents */
	char form_reason[256];                    /* why the first document of that form was taken to have it */
	bool mixed_forms;                         /* files differ in form */
	double seconds;
};

/* Reads `corpus` to its end, in a pipeline on the pool: one task reads, one writes, the others encode. Memory depends on
 * the longest document, not on the size of the corpus. The result does not depend on the number of threads. Warns if more than
 * 5 % of the tokens are [UNK]; more than 90 % is ERR_STATE. No usable document is ERR_DATA. Unfinished shards are saved
 * periodically: a run that was stopped (STOPPED) or killed is resumed by the next call with the same corpus and settings. Nothing
 * is saved while standard input is read, nor (if documents are held out) until one has fallen below held_out_fraction. */
MUST_USE enum status prepare_corpus(struct corpus *corpus, const struct tokenizer *tokenizer, struct pool *pool,
				    const struct prepare_settings *settings, struct prepare_report *report);

/* Writes PREFIX.html: counts, histograms of lengths, and what was left out or found twice, with samples. For people to read;
 * needs no network. */
MUST_USE enum status prepare_write_report(const struct prepare_settings *settings, const struct prepare_report *report);

#endif
