/* Learns a vocabulary: pair merging by count over the words of a corpus.
 * WordPiece: as in the trainer of Hugging Face's BertWordPieceTokenizer, but with 64-bit counts, ties broken by bytes (so the
 * result does not depend on threads or the order of files), and no limit on the alphabet. Byte-level BPE: the words of the
 * ByteLevel pre-tokenizer with add_prefix_space, one text a sentence; the entries and merges of Hugging Face's BpeTrainer for the
 * same words, ties included. */
#ifndef TEXT_VOCAB_LEARN_H
#define TEXT_VOCAB_LEARN_H

#include "base/error.h"
#include "base/pool.h"
#include "base/spill.h"
#include "text/corpus.h"
#include "text/tokenizer.h"
#include "text/vocab.h"
#include "text/vocabulary/word_counts.h"

enum vocab_type { VOCAB_OPEN, VOCAB_WORDPIECE, VOCAB_BPE }; /* VOCAB_OPEN: nobody chose */
struct vocab_learner;
/* Byte-level BPE ignores `settings`. Memory: some 150 bytes per distinct word, or what `spill` (NULL: no limit) allows; the rest
 * goes to temporary files. No word is pruned. */
MUST_USE enum status vocab_learner_create(struct vocab_learner **out, enum vocab_type type,
					  const struct tokenizer_settings *settings, const struct spill_settings *spill);
void vocab_learner_free(struct vocab_learner *learner); /* NULL is fine */
/* Counts the words of every document, on all threads of the pool (may be NULL), with a progress bar. Words
 * longer than the tokenizer's limit are left out. May be called for several corpora. */
MUST_USE enum status vocab_learner_count(struct vocab_learner *learner, struct corpus *corpus, struct pool *pool);

/* Visits each distinct word that was counted, in no particular order. */
MUST_USE enum status vocab_learner_visit(struct vocab_learner *learner, word_counts_visitor *visit, void *context);

/* The default size, by the number of words counted (punctuation marks and Chinese characters count as words):
 *     under 400 thousand (about 2 MB of English)   4,000
 *     under 2 million (10 MB)                      8,000
 *     under 20 million (100 MB)                   16,000
 *     otherwise                                   30,522, as in BERT
 * but at least twice the entries of a large alphabet (Chinese), up to 30,522. A small text cannot fill a large vocabulary with
 * entries that occur often enough to be learned. */
int32_t vocab_default_size(const struct vocab_learner *learner);

struct vocab_learn_report {
	int64_t words, distinct_words; /* words counted */
	int64_t long_words;            /* left out: longer than the tokenizer's limit */
	int64_t alphabet;              /* characters in the vocabulary */
	int64_t alphabet_dropped;      /* rarer ones that did not fit */
	int64_t merges;                /* entries of two characters or more */
	int64_t rare_merges;           /* of these, used fewer than 10 times in the text: too rarely to be learned well */
	double tokens_per_word;        /* of the counted words under the learned vocabulary */
	double unknown_words;          /* share of them that are [UNK] */
	double coverage;               /* share of their characters that are in the alphabet kept */
};
struct vocab_learn_settings {
	int32_t size;                  /* total number of entries */
	int64_t min_frequency;         /* pairs seen less often are not merged */
	int32_t unused;                /* number of entries [unused0] [unused1] ..., for later additions */
	const char *const *user_words; /* whole words that become entries regardless of the text */
	int32_t user_word_count;
};

/* Entries: [PAD] [UNK] [CLS] [SEP] [MASK], [unusedN], the user's words, the alphabet (by bytes), "##" + alphabet (for
 * characters seen within words), then merges in order, without those that the text uses least once longer ones exist. If the
 * size is too small for the whole alphabet, the most frequent characters are kept. Pairs seen less than min_frequency
 * times are not merged, so the vocabulary may be smaller than `size`. Both cases are logged. No words at all is ERR_DATA; a
 * user's word that the tokenizer would cut or change is ERR_USAGE.
 *
 * Byte-level BPE: <s> <pad> </s> <unk> <mask>, the 256 bytes, then merges; no [unusedN] and no user's words. The vocabulary comes
 * with RoBERTa's template, and tokenizer_write_folder() writes its files.
 */
MUST_USE enum status vocab_learner_finish(struct vocab_learner *learner, const struct vocab_learn_settings *settings,
					  struct vocab *out, struct vocab_learn_report *report);

#endif
