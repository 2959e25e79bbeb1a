/* What learners of all kinds of vocabularies share: the counted words. */
#ifndef TEXT_VOCABULARY_LEARNER_H
#define TEXT_VOCABULARY_LEARNER_H

#include "text/tokenizer/chain.h"
#include "text/vocab_learn.h"
#include "text/vocabulary/word_merge.h"

struct vocab_learner {
	enum vocab_type type;
	struct tokenizer_settings settings;
	struct chain chain; /* VOCAB_BPE: what divides texts into words */
	struct word_counts *counts;
	struct spill_settings counts_spill, merging_spill;
	int64_t words, long_words;
};

/* Merges the words that `words` holds, with a progress bar. */
MUST_USE enum status vocab_learner_merge(struct word_merger *words, struct pair_merger *merger, int32_t size,
					 int64_t min_frequency);

/* vocab_learner_finish() of VOCAB_BPE. */
MUST_USE enum status bpe_learner_finish(struct vocab_learner *learner, const struct vocab_learn_settings *settings,
					struct vocab *out, struct vocab_learn_report *report);
/* What divides texts into words. */
MUST_USE enum status bpe_words_open(struct chain *out);
/* Calls visit(context, word, bytes) for each word of a text of lines. `run` keeps memory between calls. */
MUST_USE enum status bpe_words(const struct chain *chain, struct chain_run *run, const char *text, size_t size,
			       enum status (*visit)(void *context, const char *word, size_t bytes), void *context);

#endif
