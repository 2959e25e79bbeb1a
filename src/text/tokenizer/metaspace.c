/* The Metaspace and WhitespaceSplit pre-tokenizers. Metaspace is sentencepiece's way: a mark (U+2581) takes the place of each
 * space and belongs to the word behind it. */
#include "text/tokenizer/tokenizer_parts.h"

#include <stdlib.h>
#include <string.h>
#include "base/memory.h"
#include "text/unicode.h"
#include "text/utf8.h"

enum prepend_scheme { PREPEND_ALWAYS, PREPEND_FIRST, PREPEND_NEVER };
static const char *const scheme_names[] = {"always", "first", "never"};

struct metaspace {
	char mark[4];
	size_t mark_size;
	enum prepend_scheme scheme;
	bool split;
};

static enum status read_metaspace(struct metaspace *own, const struct part *part)
{
	const char *mark = "\xE2\x96\x81", *scheme = NULL;
	bool add_prefix_space = true;
	uint32_t code_point;
	own->split = true;
	TRY(json_get_string(part->object, part->path, "replacement", &mark));
	TRY(json_get_string(part->object, part->path, "prepend_scheme", &scheme));
	TRY(json_get_bool(part->object, part->path, "add_prefix_space", &add_prefix_space));
	TRY(json_get_bool(part->object, part->path, "split", &own->split));
	own->mark_size = strlen(mark);
	if (own->mark_size == 0 || utf8_decode(mark, own->mark_size, &code_point) != own->mark_size)
		return part_refuse(part, "replacement");
	memcpy(own->mark, mark, own->mark_size);
	for (own->scheme = PREPEND_ALWAYS; scheme && strcmp(scheme_names[own->scheme], scheme) != 0; own->scheme++)
		if (own->scheme == PREPEND_NEVER)
			return part_refuse(part, "prepend_scheme");
	if (add_prefix_space)
		return OK;
	if (scheme && own->scheme != PREPEND_NEVER)
		return part_refuse(part, "add_prefix_space");
	own->scheme = PREPEND_NEVER;
	return OK;
}

static enum status open_metaspace(struct stage *stage, const struct part *part)
{
	TRY(memory_new(&stage->own, 1, sizeof(struct metaspace), "tokenizer"));
	return read_metaspace(stage->own, part);
}

/* The size of the space or mark at text[at], 0: neither is there. */
static inline size_t mark_at(const struct metaspace *own, const struct word *word, size_t at)
{
	if (word->text[at] == ' ')
		return 1;
	if (word->text[at] != own->mark[0] || word->size - at < own->mark_size ||
	    memcmp(word->text + at, own->mark, own->mark_size) != 0)
		return 0;
	return own->mark_size;
}

static enum status pass(const struct stage *stage, struct chain_run *run, struct normalized_text *out)
{
	struct word piece = word_of_buffer(out);
	TRY(chain_next(run, stage, &piece));
	out->size = 0;
	return OK;
}

static enum status run_metaspace(const struct stage *stage, struct chain_run *run, const struct word *word)
{
	const struct metaspace *own = stage->own;
	struct normalized_text *out = chain_buffer(run, stage);
	size_t at = 0, length;
	uint32_t code_point, begin, end;
	if (mark_at(own, word, 0) == 0 && (own->scheme == PREPEND_ALWAYS || (own->scheme == PREPEND_FIRST && word->begin == 0))) {
		word_place(word, 0, &begin, &end);
		TRY(normalized_text_append(out, own->mark, own->mark_size, begin, end));
	}
	for (; at < word->size; at += length) {
		length = mark_at(own, word, at);
		if (length > 0 && own->split && out->size > 0)
			TRY(pass(stage, run, out));
		if (length > 0) {
			word_place(word, at + length - 1, &begin, &end);
			TRY(normalized_text_append(out, own->mark, own->mark_size, begin, end));
			continue;
		}
		length = utf8_decode(word->text + at, word->size - at, &code_point);
		if (word->begins) {
			begin = word->begins[at];
			end = word->ends[at];
		} else {
			begin = word->begin + (uint32_t)at;
			end = begin + (uint32_t)length;
		}
		TRY(normalized_text_append(out, word->text + at, length, begin, end));
	}
	return pass(stage, run, out);
}

static const char *const members[] = {"replacement", "prepend_scheme", "add_prefix_space", "split", "str_rep", NULL};

const struct stage_kind stage_metaspace = {
	.type = "Metaspace",
	.members = members,
	.open = open_metaspace,
	.run = run_metaspace,
};

static enum status run_whitespace_split(const struct stage *stage, struct chain_run *run, const struct word *word)
{
	size_t begin = 0;
	for (size_t at = 0, length; at < word->size; at += length) {
		uint32_t code_point;
		length = utf8_decode(word->text + at, word->size - at, &code_point);
		if (!unicode_is_space(code_point))
			continue;
		struct word before = word_part(word, begin, at);
		TRY(chain_next(run, stage, &before));
		begin = at + length;
	}
	struct word rest = word_part(word, begin, word->size);
	return chain_next(run, stage, &rest);
}

const struct stage_kind stage_whitespace_split = {.type = "WhitespaceSplit", .run = run_whitespace_split};
