/* Adds words to a vocabulary: those of a text that it cuts into several pieces and that cost it the most tokens. Its own entries
 * keep their ids, so that the embeddings of a trained model still belong to them. */
#ifndef TEXT_VOCAB_EXTEND_H
#define TEXT_VOCAB_EXTEND_H

#include "text/vocab_learn.h"

struct vocab_extend_report {
	int64_t words, distinct_words;        /* counted */
	int32_t added;                        /* entries */
	int64_t least_count;                  /* of an added word */
	double tokens_before, tokens_after;   /* a word, with the old vocabulary and the new one */
	double unknown_before, unknown_after; /* share of the words that are [UNK] */
};

/* Whole words that `learner` has counted at least `min_frequency` times, at most `most` of them, those first that save most
 * tokens: how often a word occurs times its pieces less one; a word that was [UNK] counts as two pieces. Ties by bytes, so that
 * the result depends on the text alone. They follow `vocab`'s entries in this order. None at all is ERR_DATA. */
MUST_USE enum status vocab_extend(struct vocab_learner *learner, const struct vocab *vocab, int32_t most, int64_t min_frequency,
				  struct vocab *out, struct vocab_extend_report *report);

#endif
