/* NFC, NFD, NFKC, and NFKD of a tokenizer.json. */
#include "text/tokenizer/tokenizer_parts.h"

#include <stdlib.h>
#include <utf8proc.h>
#include "base/memory.h"
#include "text/tokenizer/plain_characters.h"
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

static enum status append_decomposed(uint32_t code_point, bool compatible, struct characters *out)
{
	uint32_t parts[LONGEST_DECOMPOSITION];
	int count =
		compatible ? decompose_compatible(code_point, parts) : unicode_decompose(UNICODE_HUGGINGFACE, code_point, parts);
	for (int i = 0; i < count; i++)
		TRY(append(out, parts[i], i > 0));
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

/* ---- The stages ---- */

struct form {
	bool compatible, composed;
	struct plain_characters plain; /* neither they nor what is before them changes because of them */
};

/* Normalizes the bytes [rewriting->at, end) of the piece. */
static enum status normalize_part(const struct form *form, struct rewriting *rewriting, size_t end, struct characters *characters)
{
	characters->count = 0;
	for (size_t at = rewriting->at; at < end;) {
		uint32_t code_point;
		at += utf8_decode(rewriting->from->text + at, end - at, &code_point);
		TRY(append_decomposed(code_point, form->compatible, characters));
	}
	sort_marks(characters);
	if (form->composed)
		compose(characters);
	for (int64_t i = 0; i < characters->count; i++)
		TRY(rewriting_put(rewriting, characters->items[i].code_point, characters->items[i].change));
	return OK;
}

/* Normalizes the parts of a piece that are not plain, each with the character before it, which may be composed with it. */
static enum status normalize_others(const struct form *form, struct rewriting *rewriting, struct characters *characters)
{
	const struct word *word = rewriting->from;
	while (rewriting->at < word->size) {
		size_t end = plain_run_end(&form->plain, word->text, word->size, rewriting->at), begin = end;
		uint32_t code_point;
		if (end < word->size && end > rewriting->at)
			begin -= utf8_decode_last(word->text + rewriting->at, end - rewriting->at, &code_point);
		TRY(rewriting_copy(rewriting, begin - rewriting->at));
		for (size_t length; end < word->size; end += length) {
			length = utf8_decode(word->text + end, word->size - end, &code_point);
			if (plain_has(&form->plain, code_point))
				break;
		}
		TRY(normalize_part(form, rewriting, end, characters));
	}
	return OK;
}

static enum status run_form(const struct stage *stage, struct chain_run *run, const struct word *word)
{
	const struct form *form = stage->own;
	if (plain_run_end(&form->plain, word->text, word->size, 0) == word->size)
		return chain_next(run, stage, word);
	struct rewriting rewriting = rewriting_begin(run, stage, word);
	struct characters characters = {.count = 0};
	enum status status = normalize_others(form, &rewriting, &characters);
	free(characters.items);
	if (status != OK)
		return status;
	struct word result = word_of_buffer(rewriting.out);
	return chain_next(run, stage, &result);
}

/* The characters with which one before them can be composed. */
static void find_seconds(struct plain_characters *seconds)
{
	for (uint32_t c = 0; c < PLAIN_LIMIT; c++) {
		int class = 0;
		utf8proc_int32_t parts[LONGEST_DECOMPOSITION];
		utf8proc_ssize_t count =
			utf8proc_decompose_char((utf8proc_int32_t)c, parts, LONGEST_DECOMPOSITION, UTF8PROC_DECOMPOSE, &class);
		if (count > 1 && parts[count - 1] < PLAIN_LIMIT)
			plain_add(seconds, (uint32_t)parts[count - 1]);
	}
}

/* Plain are starters that are their own normal form, and begin with a character that is not composed with one before it. */
static enum status find_plain(struct form *form)
{
	struct characters characters = {.count = 0};
	struct plain_characters seconds = {.bits = {0}};
	enum status status = OK;
	find_seconds(&seconds);
	for (uint32_t c = 0; c < PLAIN_LIMIT; c++) {
		characters.count = 0;
		TRY_GOTO(append_decomposed(c, form->compatible, &characters), out);
		const struct form_character first = characters.items[0];
		if (first.class != 0 || plain_has(&seconds, first.code_point))
			continue;
		if (form->composed && characters.count > 1) {
			sort_marks(&characters);
			compose(&characters);
		}
		if (characters.count == 1 && characters.items[0].code_point == c)
			plain_add(&form->plain, c);
	}
out:
	free(characters.items);
	return status;
}

static enum status open_form(struct stage *stage, bool compatible, bool composed)
{
	struct form *form;
	TRY(memory_new(&form, 1, sizeof *form, "tokenizer"));
	form->compatible = compatible;
	form->composed = composed;
	stage->own = form;
	return find_plain(form);
}

static enum status open_nfc(struct stage *stage, const struct part *part)
{
	(void)part;
	return open_form(stage, false, true);
}

static enum status open_nfd(struct stage *stage, const struct part *part)
{
	(void)part;
	return open_form(stage, false, false);
}

static enum status open_nfkc(struct stage *stage, const struct part *part)
{
	(void)part;
	return open_form(stage, true, true);
}

static enum status open_nfkd(struct stage *stage, const struct part *part)
{
	(void)part;
	return open_form(stage, true, false);
}

const struct stage_kind stage_nfc = {.type = "NFC", .open = open_nfc, .run = run_form};
const struct stage_kind stage_nfd = {.type = "NFD", .open = open_nfd, .run = run_form};
const struct stage_kind stage_nfkc = {.type = "NFKC", .open = open_nfkc, .run = run_form};
const struct stage_kind stage_nfkd = {.type = "NFKD", .open = open_nfkd, .run = run_form};
