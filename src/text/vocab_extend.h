/* Adds words to a vocabulary: those words of a text that it cuts into several pieces and that cost the most tokens. Existing
 * entries keep their ids, so that the embeddings of a trained model remain valid. */
#ifndef TEXT_VOCAB_EXTEND_H
#define TEXT_VOCAB_EXTEND_H

#include "text/vocab_learn.h"

struct vocab_extend_report {
	int64_t words, distinct_words;        /* words counted in the text */
	int32_t added;                        /* entries added */
	int64_t least_count;                  /* lowest count of an added word */
	double tokens_before, tokens_after;   /* tokens per word with the old vocabulary and with the new one */
	double unknown_before, unknown_after; /* share of words that are [UNK] */
};

/* Adds up to `most` of the whole words that `learner` has counted at least `min_frequency` times, beginning with those that save
 * the most tokens: the count of a word times its number of pieces minus one, where a word that was [UNK] counts as two pieces.
 * Ties are broken by bytes, so that the result depends on the text alone. The words follow `vocab`'s entries in this order. No
 * new words at all is ERR_DATA. */
MUST_USE enum status vocab_extend(struct vocab_learner *learner, const struct vocab *vocab, int32_t most, int64_t min_frequency,
				  struct vocab *out, struct vocab_extend_report *report);

#endif
