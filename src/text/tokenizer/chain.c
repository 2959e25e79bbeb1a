/* Passes pieces of text through the stages of a chain, keeping the place of every byte in the source. */
#include "text/tokenizer/chain.h"

#include <stdlib.h>
#include <string.h>
#include "base/memory.h"
#include "text/utf8.h"

#define REPLACEMENT_CHARACTER 0xFFFD

/* ---- Pieces of text ---- */

void word_place(const struct word *word, size_t at, uint32_t *begin, uint32_t *end)
{
	if (word->begins) {
		*begin = word->begins[at];
		*end = word->ends[at];
		return;
	}
	size_t first = at, last = at + 1;
	while (first > 0 && ((unsigned char)word->text[first] & 0xC0) == 0x80)
		first--;
	while (last < word->size && ((unsigned char)word->text[last] & 0xC0) == 0x80)
		last++;
	*begin = word->begin + (uint32_t)first;
	*end = word->begin + (uint32_t)last;
}

struct word word_of_buffer(const struct normalized_text *buffer)
{
	struct word word = {.text = buffer->text, .size = (size_t)buffer->size, .begins = buffer->begins, .ends = buffer->ends};
	if (word.size > 0) {
		word.begin = word.begins[0];
		word.end = word.ends[word.size - 1];
	}
	return word;
}

/* ---- Changing them ---- */

struct normalized_text *chain_buffer(struct chain_run *run, const struct stage *stage)
{
	struct normalized_text *buffer = &run->buffers[stage->index];
	buffer->size = 0;
	return buffer;
}

struct rewriting rewriting_begin(struct chain_run *run, const struct stage *stage, const struct word *word)
{
	return (struct rewriting){.from = word, .out = chain_buffer(run, stage)};
}

void rewriting_skip(struct rewriting *rewriting, int64_t count)
{
	const struct word *from = rewriting->from;
	uint32_t code_point;
	for (; count > 0 && rewriting->at < from->size; count--)
		rewriting->at += utf8_decode(from->text + rewriting->at, from->size - rewriting->at, &code_point);
}

enum status rewriting_put(struct rewriting *rewriting, uint32_t code_point, int64_t change)
{
	size_t at = rewriting->at;
	uint32_t begin = rewriting->from->begin, end = begin;
	char bytes[4];
	if (change <= 0)
		word_place(rewriting->from, at, &begin, &end);
	else if (at > 0)
		word_place(rewriting->from, at - 1, &begin, &end);
	if (change <= 0)
		rewriting_skip(rewriting, 1 - change);
	return normalized_text_append(rewriting->out, bytes, utf8_encode(code_point, bytes), begin, end);
}

enum status rewriting_copy(struct rewriting *rewriting, size_t size)
{
	const struct word *from = rewriting->from;
	struct normalized_text *out = rewriting->out;
	size_t at = rewriting->at;
	if (size == 0)
		return OK;
	TRY(normalized_text_grow(out, out->size + (int64_t)size));
	uint32_t *begins = out->begins + out->size, *ends = out->ends + out->size;
	memcpy(out->text + out->size, from->text + at, size);
	if (from->begins) {
		memcpy(begins, from->begins + at, size * sizeof *begins);
		memcpy(ends, from->ends + at, size * sizeof *ends);
	}
	for (size_t i = 0; !from->begins && i < size;) {
		uint32_t code_point, begin = from->begin + (uint32_t)(at + i);
		size_t next = i + utf8_decode(from->text + at + i, size - i, &code_point);
		for (uint32_t end = from->begin + (uint32_t)(at + next); i < next; i++) {
			begins[i] = begin;
			ends[i] = end;
		}
	}
	out->size += (int64_t)size;
	rewriting->at += size;
	return OK;
}

/* ---- Running ---- */

/* Passes on normalized text, except the added tokens in it. */
static enum status pass_between_tokens(struct chain_run *run, const struct word *word)
{
	const struct stage last = {.index = run->chain->normalizer_count - 1};
	const struct added_patterns *added = run->added;
	struct added_match match;
	size_t done = 0;
	enum status status = OK;
	run->added = NULL;
	for (size_t at = 0; added_tokens_next(added, word->text, word->size, &at, done, &match); done = match.end) {
		struct word before = word_part(word, done, match.begin), token = word_part(word, match.begin, match.end);
		TRY_GOTO(chain_next(run, &last, &before), out);
		TRY_GOTO(run->token(run->context, match.id, &token), out);
	}
	struct word rest = word_part(word, done, word->size);
	status = chain_next(run, &last, &rest);
out:
	run->added = added;
	return status;
}

enum status chain_next(struct chain_run *run, const struct stage *stage, const struct word *word)
{
	const struct chain *chain = run->chain;
	int next = stage->index + 1;
	if (word->size == 0)
		return OK;
	if (next == chain->normalizer_count && run->added)
		return pass_between_tokens(run, word);
	if (next == chain->count)
		return run->word(run->context, word);
	return chain->stages[next].kind->run(&chain->stages[next], run, word);
}

/* The text with U+FFFD for each part that is not UTF-8, in the last buffer. */
static enum status replace_invalid(struct chain_run *run, const char *text, size_t begin, size_t end, struct word *out)
{
	struct normalized_text *buffer = &run->buffers[CHAIN_STAGES];
	buffer->size = 0;
	for (size_t length; begin < end; begin += length) {
		uint32_t code_point;
		char bytes[4];
		length = utf8_decode(text + begin, end - begin, &code_point);
		if (code_point == UTF8_INVALID) {
			run->invalid_bytes += (int64_t)length;
			code_point = REPLACEMENT_CHARACTER;
		}
		TRY(normalized_text_append(buffer, bytes, utf8_encode(code_point, bytes), begin, begin + length));
	}
	*out = word_of_buffer(buffer);
	return OK;
}

static bool is_valid(const char *text, size_t size)
{
	for (size_t at = 0; at < size;) {
		uint64_t eight;
		uint32_t code_point;
		if (size - at >= sizeof eight) {
			memcpy(&eight, text + at, sizeof eight);
			if (!(eight & 0x8080808080808080u)) {
				at += sizeof eight;
				continue;
			}
		}
		at += utf8_decode(text + at, size - at, &code_point);
		if (code_point == UTF8_INVALID)
			return false;
	}
	return true;
}

enum status chain_run_text(struct chain_run *run, const char *text, size_t begin, size_t end)
{
	struct word word = {.text = text + begin, .size = end - begin, .begin = (uint32_t)begin, .end = (uint32_t)end};
	if (!is_valid(word.text, word.size))
		TRY(replace_invalid(run, text, begin, end, &word));
	return chain_next(run, &(const struct stage){.index = -1}, &word);
}

static enum status take_normalized(void *context, const struct word *word)
{
	buffer_append(context, word->text, word->size);
	return OK;
}

enum status chain_normalize(const struct chain *chain, const char *text, size_t size, struct buffer *out)
{
	struct chain normalizers = *chain;
	normalizers.count = chain->normalizer_count;
	struct chain_run run = {.chain = &normalizers, .word = take_normalized, .context = out};
	enum status status = chain_run_text(&run, text, 0, size);
	chain_run_release(&run);
	return status == OK ? buffer_status(out) : status;
}

void chain_run_release(struct chain_run *run)
{
	for (size_t i = 0; i < sizeof run->buffers / sizeof *run->buffers; i++)
		normalized_text_release(&run->buffers[i]);
}

void chain_release(struct chain *chain)
{
	for (int i = 0; i < chain->count; i++) {
		struct stage *stage = &chain->stages[i];
		if (stage->own && stage->kind->close) /* without, it could not be opened */
			stage->kind->close(stage);
		else
			free(stage->own);
	}
	if (chain->model)
		chain->model->close(chain->model_own);
	free(chain->trimming.spaces);
	buffer_release(&chain->json);
	buffer_release(&chain->config);
	buffer_release(&chain->special_tokens);
	*chain = (struct chain){.count = 0};
}

/* ---- A model's pieces ---- */

enum status pieces_grow(struct pieces *pieces)
{
	return memory_grow(&pieces->items, &pieces->capacity, pieces->capacity + 1, sizeof *pieces->items, "pieces of a word");
}

enum status pieces_work(struct pieces *pieces, int64_t bytes, void *out)
{
	TRY(memory_grow(&pieces->work, &pieces->work_capacity, bytes, 1, "pieces of a word"));
	*(void **)out = pieces->work;
	return OK;
}

void pieces_release(struct pieces *pieces)
{
	free(pieces->items);
	free(pieces->work);
	*pieces = (struct pieces){.count = 0};
}
