/* Learns a WordPiece vocabulary: pair merging by count over the words of a corpus, as Hugging Face's
 * BertWordPieceTokenizer trainer does, but with 64-bit counts, ties by bytes (so the result does not depend
 * on threads or the order of files), and an alphabet without a cap. */
#ifndef TEXT_VOCAB_LEARN_H
#define TEXT_VOCAB_LEARN_H

#include "base/error.h"
#include "base/pool.h"
#include "base/spill.h"
#include "text/corpus.h"
#include "text/tokenizer.h"
#include "text/vocab.h"
#include "text/word_counts.h"

/* Memory: some 150 bytes a distinct word, or what `spill` (NULL: any) allows; the rest lies in temporary files, and no word is
 * pruned. */
struct vocab_learner;
MUST_USE enum status vocab_learner_create(struct vocab_learner **out, const struct tokenizer_settings *settings,
					  const struct spill_settings *spill);
void vocab_learner_free(struct vocab_learner *learner); /* NULL is fine */
/* Counts the words of every document, on all threads of the pool (may be NULL), with a progress bar. Words
 * longer than the tokenizer takes are left out. May be called for several corpora. */
MUST_USE enum status vocab_learner_count(struct vocab_learner *learner, struct corpus *corpus, struct pool *pool);

/* Visits each distinct word that was counted, in no order that means anything. */
MUST_USE enum status vocab_learner_visit(struct vocab_learner *learner, word_counts_visitor *visit, void *context);

/* The size chosen where none is asked for, by words counted (a mark is a word, a Chinese character is one):
 *     under 400 thousand (about 2 MB of English)   4,000
 *     under 2 million (10 MB)                      8,000
 *     under 20 million (100 MB)                   16,000
 *     else                                        30,522, BERT's own
 * and, where the alphabet is large (Chinese), at least twice its entries, up to 30,522. A small text cannot
 * fill a large vocabulary with entries that are seen often enough to be learned. */
int32_t vocab_default_size(const struct vocab_learner *learner);

struct vocab_learn_report {
	int64_t words, distinct_words; /* counted */
	int64_t long_words;            /* left out: longer than the tokenizer takes */
	int64_t alphabet;              /* characters that the vocabulary has */
	int64_t alphabet_dropped;      /* rarer ones that did not fit */
	int64_t merges;                /* entries of two characters or more */
	int64_t rare_merges;           /* of these, used less than 10 times in the text: too few to be learned well */
	double tokens_per_word;        /* of the counted text under the learned vocabulary */
	double unknown_words;          /* share of its words that are [UNK] */
	double coverage;               /* share of its characters that are in the alphabet kept */
};
struct vocab_learn_settings {
	int32_t size;                  /* entries, all of them */
	int64_t min_frequency;         /* merges seen less often are not made */
	int32_t unused;                /* entries [unused0] [unused1] ... for words to come */
	const char *const *user_words; /* whole words that are entries whatever the text says */
	int32_t user_word_count;
};

/* Entries: [PAD] [UNK] [CLS] [SEP] [MASK], [unusedN], the user's words, the alphabet (by bytes), "##" alphabet (of the
 * characters seen within words), then merges in order, less those that the text uses least once longer ones exist. A size
 * smaller than specials + alphabet keeps the most frequent characters. Merges seen less than min_frequency
 * times are not made: the vocabulary may be smaller than `size`. Both are said. No words at all is ERR_DATA; a user's
 * word that the tokenizer cuts or changes is ERR_USAGE that shows what becomes of it.
 */
MUST_USE enum status vocab_learner_finish(struct vocab_learner *learner, const struct vocab_learn_settings *settings,
					  struct vocab *out, struct vocab_learn_report *report);

#endif
