/* The character map of sentencepiece as a trie, and as a stage of a chain. */
#include "text/tokenizer/charsmap.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>
#include "base/memory.h"
#include "text/tokenizer/chain.h"
#include "text/utf8.h"

/* Of a character. */
enum {
	ALONE = 1, /* it has a replacement */
	JOINS = 2, /* it may be in one grapheme cluster with its neighbors, whichever they are */
};

/* ---- The trie ---- */

static uint32_t unit_offset(uint32_t unit)
{
	return unit >> 10 << ((unit & 1u << 9) >> 6);
}

/* Moves from a node to its child; false if there is none. A node is the place that the labels of its children are added to. */
static bool step(const struct charsmap *map, uint8_t byte, size_t *node, bool *out_ends)
{
	size_t at = *node ^ byte;
	if (at >= map->unit_count)
		return false;
	uint32_t unit = map->units[at];
	if ((unit & (1u << 31 | 0xFF)) != byte)
		return false;
	*node = at ^ unit_offset(unit);
	*out_ends = unit >> 8 & 1;
	return true;
}

/* The replacement of the sequence that ends at a node. NULL in a map that is not well-formed. */
static const char *replacement(const struct charsmap *map, size_t node)
{
	if (node >= map->unit_count)
		return NULL;
	size_t at = map->units[node] & ~(1u << 31);
	return at < map->texts_size && ((uint8_t)map->texts[at] & 0xC0) != 0x80 ? map->texts + at : NULL;
}

const char *charsmap_find(const struct charsmap *map, const char *text, size_t size, bool longest, size_t *out_size)
{
	const char *found = NULL;
	size_t node = 0;
	bool ends;
	if (map->unit_count == 0)
		return NULL;
	node = unit_offset(map->units[0]);
	for (size_t i = 0; i < size && step(map, (uint8_t)text[i], &node, &ends); i++) {
		const char *here = ends ? replacement(map, node) : NULL;
		if (!here)
			continue;
		found = here;
		*out_size = i + 1;
		if (!longest)
			break;
	}
	return found;
}

/* Whether there are characters of any kind before or behind this one that it makes a grapheme cluster with. Syllables of Hangul,
 * and pictures, need particular ones, which have this property themselves. */
static bool joins(uint32_t code_point)
{
	switch (utf8proc_get_property((utf8proc_int32_t)code_point)->boundclass) {
	case UTF8PROC_BOUNDCLASS_OTHER:
	case UTF8PROC_BOUNDCLASS_CONTROL:
	case UTF8PROC_BOUNDCLASS_LF:
	case UTF8PROC_BOUNDCLASS_LV:
	case UTF8PROC_BOUNDCLASS_LVT:
	case UTF8PROC_BOUNDCLASS_EXTENDED_PICTOGRAPHIC: return false;
	default: return true;
	}
}

static uint8_t find_flags(const struct charsmap *map, uint32_t code_point, const char *text, size_t size)
{
	size_t found;
	return (uint8_t)((charsmap_find(map, text, size, false, &found) ? ALONE : 0) | (joins(code_point) ? JOINS : 0));
}

/* The flags of a character, which is text[0, size). */
static inline uint8_t flags_of(const struct charsmap *map, uint32_t code_point, const char *text, size_t size)
{
	return code_point < 0x80 ? map->ascii[code_point] : find_flags(map, code_point, text, size);
}

enum status charsmap_init(struct charsmap *out, const char *name, const void *bytes, size_t size)
{
	uint32_t trie_size = 0;
	enum status status;
	*out = (struct charsmap){.unit_count = 0};
	if (size == 0)
		return OK;
	if (size >= sizeof trie_size)
		memcpy(&trie_size, bytes, sizeof trie_size);
	trie_size = le32toh(trie_size);
	if (trie_size < 4 || trie_size % 4 != 0 || trie_size >= size - sizeof trie_size)
		return error_set(ERR_DATA, "'%s': the character map is not well-formed", name);
	const char *trie = (const char *)bytes + sizeof trie_size, *texts = trie + trie_size;
	out->unit_count = trie_size / 4;
	out->texts_size = size - sizeof trie_size - trie_size;
	if (texts[out->texts_size - 1] != '\0' || utf8_count_invalid(texts, out->texts_size) > 0)
		return error_set(ERR_DATA, "'%s': the replacements of the character map are not UTF-8 text", name);
	TRY_GOTO(memory_new(&out->units, (int64_t)out->unit_count, sizeof *out->units, "character map"), fail);
	TRY_GOTO(memory_new(&out->texts, (int64_t)out->texts_size, 1, "character map"), fail);
	memcpy(out->texts, texts, out->texts_size);
	memcpy(out->units, trie, trie_size);
	for (size_t i = 0; i < out->unit_count; i++)
		out->units[i] = le32toh(out->units[i]);
	for (uint32_t c = 0; c < sizeof out->ascii; c++)
		out->ascii[c] = find_flags(out, c, &(char){(char)c}, 1);
	return OK;
fail:
	charsmap_release(out);
	return status;
}

static int base64_digit(char c)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *found = c ? strchr(digits, c) : NULL;
	return found ? (int)(found - digits) : -1;
}

/* The same from base64. */
static enum status charsmap_init_base64(struct charsmap *out, const char *name, const char *text, size_t size)
{
	struct buffer bytes = {0};
	uint32_t bits = 0;
	*out = (struct charsmap){.unit_count = 0};
	for (int i = 0; i < 2 && size > 0 && text[size - 1] == '='; i++)
		size--;
	for (size_t i = 0; i < size; i++) {
		int digit = base64_digit(text[i]);
		if (digit < 0 || size % 4 == 1) {
			buffer_release(&bytes);
			return error_set(ERR_DATA, "'%s': the character map is not base64", name);
		}
		bits = bits << 6 | (uint32_t)digit;
		if (i % 4 > 0)
			buffer_char(&bytes, (char)(bits >> (6 - 2 * (i % 4))));
	}
	enum status status = buffer_status(&bytes);
	if (status == OK)
		status = charsmap_init(out, name, bytes.data, bytes.size);
	buffer_release(&bytes);
	return status;
}

void charsmap_release(struct charsmap *map)
{
	free(map->units);
	free(map->texts);
	*map = (struct charsmap){.unit_count = 0};
}

/* ---- As a stage: Hugging Face's "Precompiled" ---- */

/* A character of the result that is yet to be written, since more may be left out after it. */
struct pending {
	struct rewriting rewriting;
	uint32_t code_point;
	int64_t change;
	bool exists;
};

static enum status put(struct pending *pending, uint32_t code_point, int64_t change)
{
	if (pending->exists)
		TRY(rewriting_put(&pending->rewriting, pending->code_point, pending->change));
	pending->code_point = code_point;
	pending->change = change;
	pending->exists = true;
	return OK;
}

/* Puts `text` in place of `old_count` characters. */
static enum status put_replacement(struct pending *pending, const char *text, int64_t old_count)
{
	size_t size = strlen(text);
	int64_t count = (int64_t)utf8_length(text, size), i = 0;
	for (size_t at = 0; at < size; i++) {
		uint32_t code_point;
		at += utf8_decode(text + at, size - at, &code_point);
		TRY(put(pending, code_point, i >= old_count));
	}
	/* As there, what is left out before anything was written still counts as a part of the text, and places shift by it. */
	if (count < old_count && pending->exists)
		pending->change += count - old_count;
	return OK;
}

/* The size of the grapheme cluster at text[at], and the number of its characters. */
static size_t cluster_size(const char *text, size_t size, size_t at, int64_t *out_count)
{
	uint32_t code_point, next;
	utf8proc_int32_t state = 0;
	size_t end = at + utf8_decode(text + at, size - at, &code_point);
	*out_count = 1;
	for (size_t length; end < size; end += length) {
		length = utf8_decode(text + end, size - end, &next);
		if (code_point < 0x80 && next < 0x80 && !(code_point == '\r' && next == '\n'))
			break;
		if (utf8proc_grapheme_break_stateful((utf8proc_int32_t)code_point, (utf8proc_int32_t)next, &state))
			break;
		code_point = next;
		++*out_count;
	}
	return end - at;
}

/* Clusters of fewer than 6 bytes are looked up as a whole, and replaced as a whole by what replaces their beginning; the
 * characters of the others one by one. */
static enum status replace_cluster(const struct charsmap *map, const char *text, size_t size, int64_t count,
				   struct pending *pending)
{
	enum { SHORT_CLUSTER = 6 };
	uint32_t code_point;
	size_t length = utf8_decode(text, size, &code_point), found;
	const char *replaced = NULL;
	if (size < SHORT_CLUSTER)
		replaced = charsmap_find(map, text, size, false, &found);
	if (replaced)
		return put_replacement(pending, replaced, count);
	for (size_t at = 0; at < size; at += length) {
		length = utf8_decode(text + at, size - at, &code_point);
		replaced = charsmap_find(map, text + at, length, false, &found);
		TRY(replaced ? put_replacement(pending, replaced, 1) : put(pending, code_point, 0));
	}
	return OK;
}

/* The size of what stays as it is from text[at] on: clusters of one character that has no replacement. The last of them, in
 * *out_last. */
static size_t unchanged_size(const struct charsmap *map, const struct word *word, size_t at, uint32_t *out_last)
{
	const char *text = word->text;
	size_t end = at, length = 0, next_length;
	uint8_t flags = 0;
	for (uint32_t code_point = 0, next; end < word->size; code_point = next, length = next_length) {
		size_t behind = end + length;
		next_length = behind < word->size ? utf8_decode(text + behind, word->size - behind, &next) : 0;
		uint8_t next_flags = next_length > 0 ? flags_of(map, next, text + behind, next_length) : 0;
		if (length > 0 && (flags & (ALONE | JOINS) || next_flags & JOINS))
			break;
		if (length > 0)
			*out_last = code_point;
		end = behind;
		flags = next_flags;
	}
	return end - at;
}

/* Puts word[at, at + size), which ends with the character `last`. */
static enum status put_unchanged(struct pending *pending, size_t at, size_t size, uint32_t last)
{
	struct rewriting *rewriting = &pending->rewriting;
	const struct word *word = rewriting->from;
	if (pending->exists)
		TRY(rewriting_put(rewriting, pending->code_point, pending->change));
	pending->exists = false;
	size_t end = at + size, length;
	char bytes[4];
	if (rewriting->at == at) { /* unless places have shifted */
		TRY(rewriting_copy(rewriting, size - utf8_encode(last, bytes)));
		return put(pending, last, 0);
	}
	for (uint32_t code_point; at < end; at += length) {
		length = utf8_decode(word->text + at, end - at, &code_point);
		TRY(put(pending, code_point, 0));
	}
	return OK;
}

static enum status run_precompiled(const struct stage *stage, struct chain_run *run, const struct word *word)
{
	const struct charsmap *map = stage->own;
	struct pending pending = {.exists = false};
	uint32_t last;
	if (map->unit_count == 0 || unchanged_size(map, word, 0, &last) == word->size)
		return chain_next(run, stage, word);
	pending.rewriting = rewriting_begin(run, stage, word);
	for (size_t at = 0, size; at < word->size; at += size) {
		int64_t count;
		size = unchanged_size(map, word, at, &last);
		if (size > 0) {
			TRY(put_unchanged(&pending, at, size, last));
			continue;
		}
		size = cluster_size(word->text, word->size, at, &count);
		TRY(replace_cluster(map, word->text + at, size, count, &pending));
	}
	if (pending.exists)
		TRY(rewriting_put(&pending.rewriting, pending.code_point, pending.change));
	struct word result = word_of_buffer(pending.rewriting.out);
	return chain_next(run, stage, &result);
}

static enum status open_precompiled(struct stage *stage, const struct part *part)
{
	const struct json *map = json_member(part->object, "precompiled_charsmap");
	TRY(memory_new(&stage->own, 1, sizeof(struct charsmap), "character map"));
	if (map && map->kind == JSON_NULL)
		return OK;
	if (!map || map->kind != JSON_STRING)
		return error_set(ERR_DATA, "'%s': a \"Precompiled\" %s without \"precompiled_charsmap\"", part->path, part->role);
	return charsmap_init_base64(stage->own, part->path, map->text, map->text_size);
}

static void close_precompiled(struct stage *stage)
{
	if (stage->own)
		charsmap_release(stage->own);
	free(stage->own);
}

static const char *const members[] = {"precompiled_charsmap", NULL};

const struct stage_kind stage_precompiled = {
	.type = "Precompiled",
	.members = members,
	.open = open_precompiled,
	.run = run_precompiled,
	.close = close_precompiled,
};
