/* Finds added tokens with a sorted list of patterns. */
#include "text/tokenizer/added_tokens.h"

#include <stdlib.h>
#include <string.h>
#include "base/memory.h"
#include "text/tokenizer/chain.h"
#include "text/tokenizer/character_classes.h"
#include "text/utf8.h"

/* ---- Patterns ---- */

static int compare_patterns(const void *left, const void *right)
{
	const struct added_pattern *a = left, *b = right;
	int order = memcmp(a->text, b->text, a->size < b->size ? a->size : b->size);
	if (order == 0)
		order = (a->size > b->size) - (a->size < b->size);
	return order != 0 ? order : (a->token.id > b->token.id) - (a->token.id < b->token.id);
}

static void index_patterns(struct added_patterns *patterns)
{
	int32_t i = 0;
	if (patterns->count > 0)
		qsort(patterns->items, (size_t)patterns->count, sizeof *patterns->items, compare_patterns);
	for (int byte = 0; byte <= 256; byte++) {
		while (i < patterns->count && (uint8_t)patterns->items[i].text[0] < byte)
			i++;
		patterns->first[byte] = i;
	}
}

/* Appends the normalized text of a token. */
static enum status normalize(const struct chain *chain, const struct normalizer *normalizer, const char *text, size_t size,
			     struct buffer *out)
{
	struct normalized_text normalized = {.size = 0};
	if (chain)
		return chain_normalize(chain, text, size, out);
	enum status status = normalized_text_make(&normalized, normalizer, text, 0, size);
	if (status == OK)
		buffer_append(out, normalized.text, (size_t)normalized.size);
	normalized_text_release(&normalized);
	return status;
}

enum status added_tokens_init(struct added_tokens *out, const struct vocab *vocab, const struct chain *chain,
			      const struct normalizer *normalizer, bool special_tokens)
{
	enum { SPECIAL_TOKENS = 5 };
	const int32_t special[SPECIAL_TOKENS] = {vocab->pad, vocab->unk, vocab->cls, vocab->sep, vocab->mask};
	enum status status = OK;
	*out = (struct added_tokens){.plain = {.count = 0}};
	if (vocab->added_count == 0 && !chain)
		return OK;
	character_classes_prepare();
	TRY_GOTO(memory_new(&out->plain.items, vocab->added_count + SPECIAL_TOKENS, sizeof *out->plain.items, "added tokens"),
		 done);
	TRY_GOTO(memory_new(&out->normalized.items, vocab->added_count, sizeof *out->normalized.items, "added tokens"), done);
	for (int32_t i = 0; i < vocab->added_count; i++) {
		const struct added_token *token = &vocab->added[i];
		const char *text = vocab->text[token->id];
		size_t size = vocab->size[token->id];
		if (vocab_is_special(vocab, token->id) && !special_tokens)
			continue;
		if (token->normalized) {
			size_t before = out->texts.size;
			TRY_GOTO(normalize(chain, normalizer, text, size, &out->texts), done);
			size = out->texts.size - before;
		}
		struct added_patterns *patterns = token->normalized ? &out->normalized : &out->plain;
		if (size > 0)
			patterns->items[patterns->count++] = (struct added_pattern){text, size, *token};
	}
	/* In a tokenizer.json they are listed with their attributes; vocab.txt has no list. */
	for (int i = 0; i < SPECIAL_TOKENS && special_tokens && !chain; i++)
		out->plain.items[out->plain.count++] = (struct added_pattern){
			vocab->text[special[i]], vocab->size[special[i]], {.id = special[i], .special = true}};
	TRY_GOTO(buffer_status(&out->texts), done);
	const char *text = out->texts.data;
	for (int32_t i = 0; i < out->normalized.count; i++) {
		out->normalized.items[i].text = text;
		text += out->normalized.items[i].size;
	}
	index_patterns(&out->plain);
	index_patterns(&out->normalized);
done:
	if (status != OK)
		added_tokens_release(out);
	return status;
}

void added_tokens_release(struct added_tokens *added)
{
	free(added->plain.items);
	free(added->normalized.items);
	buffer_release(&added->texts);
	*added = (struct added_tokens){.plain = {.count = 0}};
}

/* ---- Matches ---- */

/* Index of the first item of [low, high), all with the same `depth` first bytes, whose next byte is at least `byte`. */
static int32_t lower_bound(const struct added_pattern *items, int32_t low, int32_t high, size_t depth, int byte)
{
	while (low < high) {
		int32_t middle = low + (high - low) / 2;
		if ((uint8_t)items[middle].text[depth] < byte)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The longest pattern that the text begins with, or NULL. */
static const struct added_pattern *longest_at(const struct added_patterns *patterns, const char *text, size_t size)
{
	uint8_t byte = (uint8_t)text[0];
	int32_t low = patterns->first[byte], high = patterns->first[byte + 1];
	const struct added_pattern *found = NULL;
	for (size_t depth = 1; low < high; depth++) {
		for (; low < high && patterns->items[low].size == depth; low++)
			found = &patterns->items[low];
		if (depth == size)
			break;
		byte = (uint8_t)text[depth];
		low = lower_bound(patterns->items, low, high, depth, byte);
		high = lower_bound(patterns->items, low, high, depth, byte + 1);
	}
	return found;
}

static bool has_class(uint32_t c, uint8_t class)
{
	return c != UTF8_INVALID && character_classes[c] & class;
}

static bool word_before(const char *text, size_t at)
{
	uint32_t c;
	return at > 0 && utf8_decode_last(text, at, &c) > 0 && has_class(c, CLASS_WORD);
}

static bool word_after(const char *text, size_t size, size_t at)
{
	uint32_t c;
	return at < size && utf8_decode(text + at, size - at, &c) > 0 && has_class(c, CLASS_WORD);
}

static size_t skip_space_before(const char *text, size_t at, size_t from)
{
	uint32_t c;
	for (size_t length; at > from; at -= length) {
		length = utf8_decode_last(text + from, at - from, &c);
		if (!has_class(c, CLASS_SPACE))
			break;
	}
	return at;
}

static size_t skip_space_after(const char *text, size_t size, size_t at)
{
	uint32_t c;
	for (size_t length; at < size; at += length) {
		length = utf8_decode(text + at, size - at, &c);
		if (!has_class(c, CLASS_SPACE))
			break;
	}
	return at;
}

bool added_tokens_next(const struct added_patterns *patterns, const char *text, size_t size, size_t *at, size_t from,
		       struct added_match *out)
{
	for (;;) {
		while (*at < size && patterns->first[(uint8_t)text[*at]] == patterns->first[(uint8_t)text[*at] + 1])
			++*at;
		if (*at == size)
			return false;
		const struct added_pattern *pattern = longest_at(patterns, text + *at, size - *at);
		size_t begin = *at, end = begin + (pattern ? pattern->size : 1);
		*at = end;
		if (!pattern)
			continue;
		const struct added_token *token = &pattern->token;
		if (token->single_word && (word_before(text, begin) || word_after(text, size, end)))
			continue;
		if (end <= from) /* white space that the token before has taken */
			continue;
		if (begin < from) /* the token before has taken the white space that this one begins with */
			begin = from;
		*out = (struct added_match){
			.id = token->id,
			.begin = token->lstrip ? skip_space_before(text, begin, from) : begin,
			.end = token->rstrip ? skip_space_after(text, size, end) : end,
		};
		return true;
	}
}
