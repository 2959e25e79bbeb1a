/* Learns a WordPiece vocabulary: pair merging by count over the words of a corpus, as Hugging Face's
 * BertWordPieceTokenizer trainer does, but with 64-bit counts, ties by bytes (so the result does not depend on
 * threads or the order of files), and an alphabet without a cap. */
#ifndef TEXT_VOCAB_LEARN_H
#define TEXT_VOCAB_LEARN_H

#include "base/error.h"
#include "base/pool.h"
#include "text/corpus.h"
#include "text/tokenizer.h"
#include "text/vocab.h"

struct vocab_learner; /* word counts */
MUST_USE enum status vocab_learner_create(struct vocab_learner **out, const struct tokenizer_settings *settings);
void vocab_learner_free(struct vocab_learner *learner);
/* Counts the words of every document, on all threads of the pool (may be NULL), with a progress bar. */
MUST_USE enum status vocab_learner_count(struct vocab_learner *learner, struct corpus *corpus, struct pool *pool);

struct vocab_learn_report {
	int64_t words, distinct_words, alphabet, merges;
	double tokens_per_word; /* of the counted text under the learned vocabulary */
	double coverage;        /* share of characters in the alphabet kept */
};
/* Entries: [PAD] [UNK] [CLS] [SEP] [MASK], the alphabet (by bytes), "##" alphabet, then merges in order. A
 * `size` smaller than specials + alphabet keeps the most frequent characters and says so. */
MUST_USE enum status vocab_learner_finish(struct vocab_learner *learner, int32_t size, int64_t min_frequency,
					  struct vocab *out, struct vocab_learn_report *report);

#endif
