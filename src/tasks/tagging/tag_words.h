/* Finds the words of running text. They are those of the model's tokenizer, as in transformers' pipeline: a word begins at a
 * token that does not continue one ("##" in WordPiece). Other tokenizers have no such mark; there, words end at white space, at
 * punctuation, and around ideographs, wherever a token begins. So "(ASA)" is three words for all tokenizers that have tokens for
 * its brackets. */
#ifndef TASKS_TAGGING_TAG_WORDS_H
#define TASKS_TAGGING_TAG_WORDS_H

#include "text/tokenizer.h"

enum tag_words {
	WORDS_TOKENS,     /* the tokenizer's */
	WORDS_CHARACTERS, /* each character is a word, as in the files that the model was trained on */
};

struct tag_word {
	size_t begin, end; /* bytes of the text */
	int64_t first;     /* its first token, from which its tag is read; WORDS_CHARACTERS: -1 */
};

/* Set `kind` and `tokenizer` (borrowed), the rest to zero; reused from text to text. */
struct tag_cutter {
	enum tag_words kind;
	const struct tokenizer *tokenizer;
	struct tokens tokens; /* of the latest text; WORDS_CHARACTERS: none */
	struct tag_word *words;
	int64_t count, capacity; /* words */
};
/* Finds the words of a text, in order. None is empty, and they do not overlap. */
MUST_USE enum status tag_words_cut(struct tag_cutter *cutter, const char *text, size_t size);
void tag_cutter_release(struct tag_cutter *cutter);

#endif
