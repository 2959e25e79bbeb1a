/* Cuts running text into words where the tokenizer's tokens allow it. */
#include "tasks/tagging/tag_words.h"

#include <stdlib.h>

#include "base/memory.h"
#include "text/unicode.h"

/* Is the character never part of a longer word? */
static bool stands_alone(uint32_t c)
{
	return utf8_is_space(c) || utf8_is_ideograph(c) ||
	       (c < UNICODE_LIMIT && (unicode_flags(UNICODE_HUGGINGFACE, c) & UNICODE_PUNCTUATION));
}

/* May a word begin at byte `at`, going by the characters on both sides? */
static bool is_border(const char *text, size_t size, size_t at)
{
	uint32_t before, behind;
	if (at == 0)
		return true;
	utf8_decode_last(text, at, &before);
	utf8_decode(text + at, size - at, &behind);
	return stands_alone(before) || stands_alone(behind);
}

static enum status add_word(struct tag_cutter *cutter, struct tag_word word)
{
	TRY(memory_grow(&cutter->words, &cutter->capacity, cutter->count + 1, sizeof *cutter->words, "words"));
	cutter->words[cutter->count++] = word;
	return OK;
}

static enum status cut_characters(struct tag_cutter *cutter, const char *text, size_t size)
{
	for (size_t at = 0, next; at < size; at = next) {
		uint32_t c;
		next = at + utf8_decode(text + at, size - at, &c);
		if (!utf8_is_space(c))
			TRY(add_word(cutter, (struct tag_word){at, next, -1}));
	}
	return OK;
}

/* A token may consist of the space before a word alone: it is then the word's first. */
static enum status group_tokens(struct tag_cutter *cutter, const char *text, size_t size)
{
	const struct tokens *tokens = &cutter->tokens;
	const struct vocab *vocab = tokenizer_vocab(cutter->tokenizer);
	int64_t blank = -1;
	for (int64_t t = 0; t < tokens->count; t++) {
		size_t begin = tokens->begin[t], end = tokens->end[t];
		utf8_trim(text, &begin, &end);
		if (begin == end) {
			blank = t;
			continue;
		}
		struct tag_word *last = cutter->count > 0 ? &cutter->words[cutter->count - 1] : NULL;
		bool begins = vocab->prefix[0] ? !vocab->is_continuation[tokens->ids[t]] : is_border(text, size, begin);
		bool follows = blank == t - 1 && t > 0 && tokens->end[blank] == begin && tokens->begin[t] == begin;
		if (last && (begin < last->end || !begins))
			last->end = end > last->end ? end : last->end;
		else
			TRY(add_word(cutter, (struct tag_word){begin, end, follows ? blank : t}));
	}
	return OK;
}

enum status tag_words_cut(struct tag_cutter *cutter, const char *text, size_t size)
{
	cutter->count = 0;
	tokens_clear(&cutter->tokens);
	if (cutter->kind == WORDS_CHARACTERS)
		return cut_characters(cutter, text, size);
	TRY(tokenizer_encode(cutter->tokenizer, text, size, &cutter->tokens));
	return group_tokens(cutter, text, size);
}

void tag_cutter_release(struct tag_cutter *cutter)
{
	free(cutter->words);
	tokens_release(&cutter->tokens);
	*cutter = (struct tag_cutter){.kind = cutter->kind};
}
