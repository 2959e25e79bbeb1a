/* NFC, NFD, NFKC, and NFKD of a tokenizer.json. */
#include "text/tokenizer/unicode_forms.h"

#include <stdlib.h>
#include <utf8proc.h>
#include "base/memory.h"
#include "text/tokenizer/chain.h"
#include "text/unicode.h"
#include "text/utf8.h"

#define LONGEST_DECOMPOSITION 18

/* A character, and how it relates to those of the piece, as rewriting_put() takes it. */
struct form_character {
	uint32_t code_point;
	int64_t change, order;
	uint8_t class;
};
struct characters {
	struct form_character *items;
	int64_t count, capacity;
};

static enum status append(struct characters *out, uint32_t code_point, int64_t change)
{
	TRY(memory_grow(&out->items, &out->capacity, out->count + 1, sizeof *out->items, "text to normalize"));
	uint8_t class = code_point < 0x300 ? 0 : unicode_combining_class(UNICODE_HUGGINGFACE, code_point);
	out->items[out->count] = (struct form_character){code_point, change, out->count, class};
	out->count++;
	return OK;
}

/* Blocks of characters with a decomposition that were assigned after Unicode 9, at which Hugging Face's table of compatibility
 * decompositions stopped. */
static const struct {
	uint32_t first, last;
} newer[] = {
	{0x32FF, 0x32FF},   {0xA7F1, 0xA7F4},   {0xAB69, 0xAB69},   {0x105C9, 0x105E4}, {0x10781, 0x107BA},
	{0x11383, 0x113C8}, {0x11938, 0x11938}, {0x16121, 0x16128}, {0x16D68, 0x16D6A}, {0x1CCD6, 0x1CCF9},
	{0x1E030, 0x1E06D}, {0x1F16C, 0x1F16C}, {0x1FBF0, 0x1FBF9},
};

static int decompose_compatible(uint32_t code_point, uint32_t *out)
{
	int class = 0;
	out[0] = code_point;
	for (size_t i = 0; i < sizeof newer / sizeof *newer; i++)
		if (code_point >= newer[i].first && code_point <= newer[i].last)
			return 1;
	return (int)utf8proc_decompose_char((utf8proc_int32_t)code_point, (utf8proc_int32_t *)out, LONGEST_DECOMPOSITION,
					    UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT, &class);
}

static enum status decompose(const struct word *word, bool compatible, struct characters *out)
{
	for (size_t at = 0; at < word->size;) {
		uint32_t code_point, parts[LONGEST_DECOMPOSITION];
		at += utf8_decode(word->text + at, word->size - at, &code_point);
		int count = compatible ? decompose_compatible(code_point, parts)
				       : unicode_decompose(UNICODE_HUGGINGFACE, code_point, parts);
		for (int i = 0; i < count; i++)
			TRY(append(out, parts[i], i > 0));
	}
	return OK;
}

static int compare_marks(const void *left, const void *right)
{
	const struct form_character *a = left, *b = right;
	if (a->class != b->class)
		return a->class < b->class ? -1 : 1;
	return (a->order > b->order) - (a->order < b->order);
}

/* Sorts each run of non-starters by combining class; equal ones keep their order. */
static void sort_marks(struct characters *characters)
{
	struct form_character *items = characters->items;
	for (int64_t begin = 0, end; begin < characters->count; begin = end + 1) {
		bool is_sorted = true;
		for (end = begin; end < characters->count && items[end].class != 0; end++)
			is_sorted = is_sorted && (end == begin || items[end - 1].class <= items[end].class);
		if (!is_sorted)
			qsort(items + begin, (size_t)(end - begin), sizeof *items, compare_marks);
	}
}

/* The character that two together are, or 0. */
static uint32_t compose_pair(uint32_t first, uint32_t second)
{
	utf8proc_int32_t pair[2] = {(utf8proc_int32_t)first, (utf8proc_int32_t)second};
	return utf8proc_normalize_utf32(pair, 2, UTF8PROC_STABLE | UTF8PROC_COMPOSE) == 1 ? (uint32_t)pair[0] : 0;
}

/* Composes each starter with the marks that no other separates from it. */
static void compose(struct characters *characters)
{
	struct form_character *items = characters->items;
	int64_t kept = 0, starter = -1;
	for (int64_t i = 0; i < characters->count; i++) {
		struct form_character c = items[i];
		bool adjoins = starter >= 0 && (kept == starter + 1 || items[kept - 1].class < c.class);
		uint32_t composed = adjoins && c.code_point >= 0x300 ? compose_pair(items[starter].code_point, c.code_point) : 0;
		if (composed) {
			items[starter].code_point = composed;
			items[starter].change += c.change - 1;
			continue;
		}
		if (c.class == 0)
			starter = kept;
		items[kept++] = c;
	}
	characters->count = kept;
}

static enum status normalize(const struct stage *stage, struct chain_run *run, const struct word *word, bool compatible,
			     bool composed)
{
	struct rewriting rewriting = rewriting_begin(run, stage, word);
	struct characters characters = {.count = 0};
	enum status status;
	TRY_GOTO(decompose(word, compatible, &characters), out);
	sort_marks(&characters);
	if (composed)
		compose(&characters);
	for (int64_t i = 0; i < characters.count; i++)
		TRY_GOTO(rewriting_put(&rewriting, characters.items[i].code_point, characters.items[i].change), out);
out:
	free(characters.items);
	if (status != OK)
		return status;
	struct word result = word_of_buffer(rewriting.out);
	return chain_next(run, stage, &result);
}

/* Whether all characters are below `limit`, and so unchanged. */
static bool all_below(const struct word *word, uint32_t limit)
{
	for (size_t at = 0; at < word->size;) {
		uint32_t code_point;
		at += utf8_decode(word->text + at, word->size - at, &code_point);
		if (code_point >= limit)
			return false;
	}
	return true;
}

static enum status run_nfc(const struct stage *stage, struct chain_run *run, const struct word *word)
{
	return all_below(word, 0x300) ? chain_next(run, stage, word) : normalize(stage, run, word, false, true);
}

static enum status run_nfd(const struct stage *stage, struct chain_run *run, const struct word *word)
{
	return all_below(word, 0xC0) ? chain_next(run, stage, word) : normalize(stage, run, word, false, false);
}

static enum status run_nfkc(const struct stage *stage, struct chain_run *run, const struct word *word)
{
	return all_below(word, 0xA0) ? chain_next(run, stage, word) : normalize(stage, run, word, true, true);
}

static enum status run_nfkd(const struct stage *stage, struct chain_run *run, const struct word *word)
{
	return all_below(word, 0xA0) ? chain_next(run, stage, word) : normalize(stage, run, word, true, false);
}

const struct stage_kind stage_nfc = {.type = "NFC", .run = run_nfc};
const struct stage_kind stage_nfd = {.type = "NFD", .run = run_nfd};
const struct stage_kind stage_nfkc = {.type = "NFKC", .run = run_nfkc};
const struct stage_kind stage_nfkd = {.type = "NFKD", .run = run_nfkd};
