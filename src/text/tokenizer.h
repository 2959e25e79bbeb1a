/* Text to WordPiece ids: BasicTokenizer (clean, CJK spacing, lower case, accents, punctuation) and greedy
 * longest-match WordPiece. Ids equal Hugging Face's fast BERT tokenizer, or Google's with COMPAT_GOOGLE.
 *
 * Invalid UTF-8: each maximal invalid part is one U+FFFD (the WHATWG rule), which cleaning then drops; its
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
	bool split_chinese;  /* spaces around CJK ideographs */
	bool special_tokens; /* "[MASK]" written in the text is the control token (tokenize, fill); false for
				corpora, where such words are text */
	enum tokenizer_compat compat;
	int max_word_characters; /* longer words are [UNK]: 100 Hugging Face, 200 Google */
};

/* Hugging Face's defaults for an uncased or cased model; no special tokens. */
struct tokenizer_settings tokenizer_defaults(bool cased);
/* Reads do_lower_case, strip_accents, tokenize_chinese_chars from a tokenizer_config.json beside the
 * vocabulary `vocab_path`, or what a tokenizer.json there says of them, into *settings; *out_found says whether there
 * is one of the two. Absent keys leave what is
 * there, but strip_accents then follows the case, as with null. A file that is no such JSON is ERR_DATA. */
MUST_USE enum status tokenizer_settings_read(const char *vocab_path, struct tokenizer_settings *settings, bool *out_found);

struct tokenizer; /* immutable after opening; shared by threads */
/* `vocab` is borrowed. */
MUST_USE enum status tokenizer_open(struct tokenizer **out, const struct vocab *vocab, const struct tokenizer_settings *settings);
void tokenizer_close(struct tokenizer *tokenizer);
const struct vocab *tokenizer_vocab(const struct tokenizer *tokenizer);
const struct tokenizer_settings *tokenizer_settings_of(const struct tokenizer *tokenizer);

/* The ids of one piece of text; grown as needed and reused from call to call. */
struct tokens {
	int32_t *ids;
	uint32_t *begin, *end; /* byte offsets into the text */
	int64_t count, capacity;
	int64_t invalid_bytes; /* running count of bytes that were not UTF-8 */
	int64_t unknown;       /* running count of [UNK] */
	void *scratch;         /* owned by the tokenizer's encoder */
	char apart[64];        /* threads' counts of an array of these lie in cache lines of their own */
};
/* Appends the tokens of text (no [CLS]/[SEP]). Only lack of memory fails, and a text of 4 GiB or more
 * (ERR_DATA). A struct tokens belongs to one thread; it may be used with several tokenizers, but remembers
 * the words of one. */
MUST_USE enum status tokenizer_encode(const struct tokenizer *tokenizer, const char *text, size_t size, struct tokens *out);
void tokens_clear(struct tokens *tokens); /* count = 0 */
void tokens_release(struct tokens *tokens);

/* The words (before WordPiece) of a text, for learning a vocabulary: calls visit(context, word, bytes) for
 * each normalised word (no special tokens). `scratch` keeps the tables for these settings between calls. */
MUST_USE enum status tokenizer_words(const struct tokenizer_settings *settings, const char *text, size_t size,
				     struct tokens *scratch, enum status (*visit)(void *context, const char *word, size_t bytes),
				     void *context);

/* Replaces vocab.txt, tokenizer.json, tokenizer_config.json, special_tokens_map.json into `folder`, as
 * AutoTokenizer reads them. */
MUST_USE enum status tokenizer_write_folder(const struct vocab *vocab, const struct tokenizer_settings *settings,
					    int64_t max_length, const char *folder);

#endif
