/* Converts text to ids. A vocabulary of BERT's kind: BasicTokenizer (cleaning, CJK spacing, lower case, accents, punctuation)
 * and greedy longest-match WordPiece; the ids equal those of Hugging Face's fast BERT tokenizer, or with COMPAT_GOOGLE those
 * of Google's. A vocabulary from a tokenizer.json with other parts: these parts, with the ids and offsets of Hugging Face's
 * tokenizers. Added tokens (vocab.h) are found first.
 *
 * Invalid UTF-8: each maximal invalid part is taken as one U+FFFD (the WHATWG rule), which cleaning then drops; its
 * bytes are counted.
 */
#ifndef TEXT_TOKENIZER_H
#define TEXT_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "text/vocab.h"

enum tokenizer_compat { COMPAT_HUGGINGFACE, COMPAT_GOOGLE };

struct tokenizer_settings {
	bool lowercase;
	bool strip_accents;
	bool split_chinese;  /* each CJK ideograph is a word of its own */
	bool special_tokens; /* "[MASK]" in the text is the special token (tokenize, fill); false for
				corpora, where it is ordinary text */
	enum tokenizer_compat compat;
	int max_word_characters; /* longer words are [UNK]: 100 Hugging Face, 200 Google */
};

/* Hugging Face's defaults for an uncased or cased model; no special tokens. */
struct tokenizer_settings tokenizer_defaults(bool cased);
/* Reads do_lower_case, strip_accents and tokenize_chinese_chars into *settings from a tokenizer_config.json beside the
 * vocabulary `vocab_path`, or their equivalents from a tokenizer.json there; *out_found: whether either was found. Absent keys
 * leave a setting unchanged, except that strip_accents then follows the case, as it does if null. A malformed file is
 * ERR_DATA. */
MUST_USE enum status tokenizer_settings_read(const char *vocab_path, struct tokenizer_settings *settings, bool *out_found);

struct tokenizer; /* immutable once opened; may be shared by threads */
/* `vocab` is borrowed. */
MUST_USE enum status tokenizer_open(struct tokenizer **out, const struct vocab *vocab, const struct tokenizer_settings *settings);
void tokenizer_close(struct tokenizer *tokenizer);
const struct vocab *tokenizer_vocab(const struct tokenizer *tokenizer);

/* What precedes a word within a text, for words that are encoded by themselves: " " if tokens include the space before a word,
 * else "". */
const char *tokenizer_word_prefix(const struct tokenizer *tokenizer);
const struct tokenizer_settings *tokenizer_settings_of(const struct tokenizer *tokenizer);

/* The tokens of a text; grown as needed and reused from call to call. */
struct tokens {
	int32_t *ids;
	uint32_t *begin, *end; /* byte offsets into the text */
	int64_t count, capacity;
	int64_t invalid_bytes; /* running count of bytes that were not UTF-8 */
	int64_t unknown;       /* running count of [UNK] */
	void *scratch;         /* owned by the tokenizer's encoder */
	char apart[64];        /* keeps the counts of an array's elements, one per thread, in separate cache lines */
};
/* Appends the tokens of a text (no [CLS] or [SEP]). Fails only for lack of memory or if the text has 4 GiB or more
 * (ERR_DATA). A struct tokens belongs to one thread; it may be used with several tokenizers, but caches
 * the words of only one at a time. */
MUST_USE enum status tokenizer_encode(const struct tokenizer *tokenizer, const char *text, size_t size, struct tokens *out);
void tokens_clear(struct tokens *tokens); /* count = 0; the running counts stay */
void tokens_release(struct tokens *tokens);

/* The words of a text before WordPiece, for learning a vocabulary: calls visit(context, word, bytes) for
 * each normalized word (no special tokens). `scratch` keeps the tables for these settings between calls. */
MUST_USE enum status tokenizer_words(const struct tokenizer_settings *settings, const char *text, size_t size,
				     struct tokens *scratch, enum status (*visit)(void *context, const char *word, size_t bytes),
				     void *context);

/* Writes (or replaces) vocab.txt, tokenizer.json, tokenizer_config.json and special_tokens_map.json in `folder`, as
 * AutoTokenizer reads them. */
MUST_USE enum status tokenizer_write_folder(const struct vocab *vocab, const struct tokenizer_settings *settings,
					    int64_t max_length, const char *folder);

#endif
