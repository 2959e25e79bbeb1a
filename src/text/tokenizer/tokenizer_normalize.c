/* Makes the table of what each code point becomes, and handles the stretches where neighbors matter. */
#include "text/tokenizer/tokenizer_normalize.h"

#include <stdlib.h>
#include <string.h>
#include "base/memory.h"
#include "text/utf8.h"

#define CAPITAL_SIGMA 0x3A3
#define SMALL_SIGMA 0x3C3
#define FINAL_SIGMA 0x3C2
#define CAPITAL_I_WITH_DOT 0x130 /* the only code point whose lower case is two code points: i and U+0307 */
#define COMBINING_DOT 0x307

/* What BERT takes as a Chinese character. Hugging Face's list has 2B920 where Google's has 2B820. */
static const struct ideograph_range {
	uint32_t first, last;
	uint32_t columns;
} ideograph_ranges[] = {
	{0x3400, 0x4DBF, 3},   {0x4E00, 0x9FFF, 3},   {0xF900, 0xFAFF, 3},
	{0x20000, 0x2A6DF, 3}, {0x2A700, 0x2B81F, 3}, {0x2B820, 0x2B91F, 1 << UNICODE_GOOGLE},
	{0x2B920, 0x2CEAF, 3}, {0x2F800, 0x2FA1F, 3},
};

static uint32_t make_entry(enum code_point_kind kind, size_t size, size_t offset)
{
	return (uint32_t)kind | (uint32_t)size << 3 | (uint32_t)offset << 8;
}

static int lowercase(enum unicode_column column, uint32_t code_point, uint32_t out[2])
{
	if (code_point == CAPITAL_I_WITH_DOT) {
		out[0] = 'i';
		out[1] = COMBINING_DOT;
		return 2;
	}
	out[0] = unicode_lowercase(column, code_point);
	return 1;
}

/* What a code point that cleaning keeps becomes regardless of its neighbors: 0 to 8 code points. -1: that depends on
 * its neighbors. */
static int normalize_alone(const struct normalizer *n, uint32_t code_point, uint32_t out[8])
{
	const struct tokenizer_settings *settings = &n->settings;
	bool is_google = settings->compat == COMPAT_GOOGLE;
	uint32_t lowered[2] = {code_point};
	int lowered_count = 1, parts = 0, count = 0;

	/* Google lower-cases before stripping accents, Hugging Face after. */
	if (settings->lowercase && is_google) {
		if (code_point == CAPITAL_SIGMA)
			return -1;
		lowered_count = lowercase(n->column, code_point, lowered);
	}
	for (int i = 0; i < lowered_count; i++) {
		uint32_t decomposed[4] = {lowered[i]};
		int decomposed_count = 1;

		if (settings->strip_accents)
			decomposed_count = unicode_decompose(n->column, lowered[i], decomposed);
		parts += decomposed_count;
		for (int j = 0; j < decomposed_count; j++) {
			uint32_t part = decomposed[j];
			uint8_t flags = settings->strip_accents ? unicode_flags(n->column, part) : 0;

			if (flags & UNICODE_MARK)
				continue;
			if (flags & UNICODE_REORDERED)
				return -1; /* a mark that is kept may have to be reordered */
			if (settings->lowercase && !is_google)
				count += lowercase(n->column, part, out + count);
			else
				out[count++] = part;
		}
	}
	/* Punctuation that loses an accent (U+2260 becomes '=') is left to normalize_stretch(), so that here a
	 * punctuation word is always a single character. */
	for (int i = 0; i < count; i++)
		if (parts > 1 && unicode_flags(n->column, out[i]) & UNICODE_PUNCTUATION)
			return -1;
	return count;
}

/* Fills in the entry of a code point that cleaning keeps. */
static enum status set_entry(struct normalizer *n, uint32_t code_point)
{
	bool is_ideograph = entry_kind(n->entries[code_point]) == KIND_IDEOGRAPH;
	uint32_t result[8];
	int count = normalize_alone(n, code_point, result);
	char text[32];
	size_t size = 0;
	enum code_point_kind kind = KIND_REPLACE;

	if (count <= 0) {
		n->entries[code_point] = make_entry(count < 0 ? KIND_CONTEXT : KIND_DROP, 0, 0);
		return OK;
	}
	if (is_ideograph)
		kind = KIND_IDEOGRAPH;
	else if (unicode_flags(n->column, result[0]) & UNICODE_PUNCTUATION)
		kind = KIND_PUNCTUATION;
	else if (count == 1 && result[0] == code_point)
		kind = KIND_KEEP;
	if (count == 1 && result[0] == code_point) {
		n->entries[code_point] = make_entry(kind, 0, 0);
		return OK;
	}
	for (int i = 0; i < count; i++)
		size += utf8_encode(result[i], text + size);
	TRY(memory_grow(&n->texts, &n->texts_capacity, n->texts_size + (int64_t)size, 1, "normalization table"));
	memcpy(n->texts + n->texts_size, text, size);
	n->entries[code_point] = make_entry(kind, size, (size_t)n->texts_size);
	n->texts_size += (int64_t)size;
	return OK;
}

static void fill(struct normalizer *n, uint32_t first, uint32_t last, enum code_point_kind kind)
{
	for (uint32_t c = first; c <= last; c++)
		n->entries[c] = make_entry(kind, 0, 0);
}

/* A code point without a row in any table is kept unchanged: entry 0. */
static enum status fill_table(struct normalizer *n)
{
	const uint32_t column_bit = 1u << n->column;

	if (n->settings.split_chinese)
		for (size_t i = 0; i < sizeof ideograph_ranges / sizeof ideograph_ranges[0]; i++)
			if (ideograph_ranges[i].columns & column_bit)
				fill(n, ideograph_ranges[i].first, ideograph_ranges[i].last, KIND_IDEOGRAPH);
	for (int i = 0; n->settings.strip_accents && i < unicode_decomposition_row_count; i++)
		for (uint32_t c = unicode_decomposition_rows[i].first; c <= unicode_decomposition_rows[i].last; c++)
			TRY(set_entry(n, c));
	for (int i = 0; i < unicode_lowercase_row_count; i++) {
		const struct unicode_lowercase_row *row = &unicode_lowercase_rows[i];

		for (uint32_t c = row->first; c <= row->last; c += (uint32_t)row->step)
			TRY(set_entry(n, c));
	}
	TRY(set_entry(n, CAPITAL_I_WITH_DOT));
	for (int i = 0; i < unicode_property_row_count; i++) {
		const struct unicode_property_row *row = &unicode_property_rows[i];
		uint8_t flags = row->flags[n->column];

		if (flags & UNICODE_DROPPED)
			fill(n, row->first, row->last, KIND_DROP);
		else if (flags & UNICODE_SPACE)
			fill(n, row->first, row->last, KIND_SPACE);
		else if (flags & (UNICODE_MARK | UNICODE_PUNCTUATION | UNICODE_REORDERED))
			for (uint32_t c = row->first; c <= row->last; c++)
				TRY(set_entry(n, c));
	}
	return OK;
}

enum status normalizer_init(struct normalizer *normalizer, const struct tokenizer_settings *settings)
{
	enum status status;

	*normalizer = (struct normalizer){.settings = *settings};
	normalizer->column = settings->compat == COMPAT_GOOGLE ? UNICODE_GOOGLE : UNICODE_HUGGINGFACE;
	TRY(memory_new(&normalizer->entries, UNICODE_LIMIT, sizeof *normalizer->entries, "normalization table"));
	status = fill_table(normalizer);
	if (status != OK)
		normalizer_release(normalizer);
	return status;
}

void normalizer_release(struct normalizer *normalizer)
{
	free(normalizer->entries);
	free(normalizer->texts);
	*normalizer = (struct normalizer){.texts_size = 0};
}

static enum status append(struct stretch *out, struct character character)
{
	TRY(memory_grow(&out->characters, &out->capacity, out->count + 1, sizeof *out->characters, "text to normalize"));
	out->characters[out->count++] = character;
	return OK;
}

/* Makes the result of the last step the input of the next: each reads `work` and appends to `characters`. */
static void next_step(struct stretch *stretch, int64_t *out_count)
{
	struct character *characters = stretch->work;
	int64_t capacity = stretch->work_capacity;

	stretch->work = stretch->characters;
	stretch->work_capacity = stretch->capacity;
	stretch->characters = characters;
	stretch->capacity = capacity;
	*out_count = stretch->count;
	stretch->count = 0;
}

static enum status clean_step(const struct normalizer *n, const char *text, size_t begin, size_t from, size_t end,
			      struct stretch *out)
{
	while (begin < end) {
		struct character character = {.begin = (uint32_t)begin};
		size_t length = utf8_decode(text + begin, end - begin, &character.code_point);

		if (character.code_point == UTF8_INVALID) {
			if (begin >= from)
				out->invalid_bytes += (int64_t)length;
		} else if (!(unicode_flags(n->column, character.code_point) & UNICODE_DROPPED)) {
			character.end = (uint32_t)(begin + length);
			TRY(append(out, character));
		}
		begin += length;
	}
	return OK;
}

/* Python's rule: preceded by a cased letter and not followed by one, disregarding case-ignorable characters. */
static bool sigma_is_final(const struct normalizer *n, const struct character *characters, int64_t count, int64_t index)
{
	int64_t i = index - 1;

	while (i >= 0 && unicode_flags(n->column, characters[i].code_point) & UNICODE_IGNORABLE)
		i--;
	if (i < 0 || !(unicode_flags(n->column, characters[i].code_point) & UNICODE_CASED))
		return false;
	i = index + 1;
	while (i < count && unicode_flags(n->column, characters[i].code_point) & UNICODE_IGNORABLE)
		i++;
	return i == count || !(unicode_flags(n->column, characters[i].code_point) & UNICODE_CASED);
}

static enum status lowercase_step(const struct normalizer *n, struct stretch *out)
{
	bool is_google = n->settings.compat == COMPAT_GOOGLE;
	int64_t count;

	next_step(out, &count);
	for (int64_t i = 0; i < count; i++) {
		struct character character = out->work[i];
		uint32_t lowered[2] = {0};
		int lowered_count = lowercase(n->column, character.code_point, lowered);

		if (is_google && character.code_point == CAPITAL_SIGMA)
			lowered[0] = sigma_is_final(n, out->work, count, i) ? FINAL_SIGMA : SMALL_SIGMA;
		for (int j = 0; j < lowered_count; j++) {
			character.code_point = lowered[j];
			TRY(append(out, character));
		}
	}
	return OK;
}

static int compare_marks(const void *left, const void *right)
{
	const struct character *a = left, *b = right;

	if (a->combining_class != b->combining_class)
		return a->combining_class < b->combining_class ? -1 : 1;
	return (a->order > b->order) - (a->order < b->order);
}

/* Canonical ordering: sorts each run of non-starters by combining class; equal ones keep their order. */
static void sort_marks(struct character *characters, int64_t count)
{
	for (int64_t begin = 0; begin < count;) {
		int64_t end = begin;
		bool is_sorted = true;

		while (end < count && characters[end].combining_class != 0) {
			if (end > begin && characters[end].combining_class < characters[end - 1].combining_class)
				is_sorted = false;
			end++;
		}
		if (!is_sorted)
			qsort(characters + begin, (size_t)(end - begin), sizeof *characters, compare_marks);
		begin = end > begin ? end : begin + 1;
	}
}

static enum status strip_accents_step(const struct normalizer *n, struct stretch *out)
{
	int64_t count, kept = 0, origin = -1;

	next_step(out, &count);
	for (int64_t i = 0; i < count; i++) {
		struct character character = out->work[i];
		uint32_t parts[4];
		int part_count = unicode_decompose(n->column, character.code_point, parts);

		for (int j = 0; j < part_count; j++) {
			character.code_point = parts[j];
			character.combining_class = unicode_combining_class(n->column, parts[j]);
			character.is_inserted = j > 0;
			character.order = out->count;
			TRY(append(out, character));
		}
	}
	sort_marks(out->characters, out->count);
	/* As in Hugging Face's offsets, the sorted characters take the places of the originals in succession, instead of
	 * each keeping its own. */
	for (int64_t i = 0; i < out->count; i++) {
		struct character *character = &out->characters[i];

		if (!character->is_inserted)
			origin++;
		character->begin = out->work[origin].begin;
		character->end = out->work[origin].end;
		if (!(unicode_flags(n->column, character->code_point) & UNICODE_MARK))
			out->characters[kept++] = *character;
	}
	out->count = kept;
	return OK;
}

static void leave_out_before(struct stretch *stretch, size_t from)
{
	int64_t kept = 0;

	for (int64_t i = 0; i < stretch->count; i++)
		if (stretch->characters[i].begin >= from)
			stretch->characters[kept++] = stretch->characters[i];
	stretch->count = kept;
}

enum status normalize_stretch(const struct normalizer *normalizer, const char *text, size_t context, size_t from, size_t end,
			      struct stretch *out)
{
	const struct tokenizer_settings *settings = &normalizer->settings;

	out->count = 0;
	out->invalid_bytes = 0;
	if (settings->compat == COMPAT_GOOGLE) {
		TRY(clean_step(normalizer, text, context, from, end, out));
		if (settings->lowercase)
			TRY(lowercase_step(normalizer, out));
		leave_out_before(out, from);
		if (settings->strip_accents)
			TRY(strip_accents_step(normalizer, out));
	} else {
		TRY(clean_step(normalizer, text, from, from, end, out));
		if (settings->strip_accents)
			TRY(strip_accents_step(normalizer, out));
		if (settings->lowercase)
			TRY(lowercase_step(normalizer, out));
	}
	return OK;
}

void stretch_release(struct stretch *stretch)
{
	free(stretch->characters);
	free(stretch->work);
	*stretch = (struct stretch){.count = 0};
}

/* ---- Text that is not divided into words ---- */

/* The run of text without spaces and ideographs that contains a character which depends on its neighbors. */
static enum status append_run(struct normalized_text *out, const struct normalizer *normalizer, const char *text, size_t begin,
			      size_t end)
{
	TRY(normalize_stretch(normalizer, text, begin, begin, end, &out->stretch));
	for (int64_t i = 0; i < out->stretch.count; i++) {
		const struct character *c = &out->stretch.characters[i];
		char bytes[4];
		TRY(normalized_text_append(out, bytes, utf8_encode(c->code_point, bytes), c->begin, c->end));
	}
	return OK;
}

enum status normalized_text_make(struct normalized_text *out, const struct normalizer *normalizer, const char *text, size_t begin,
				 size_t end)
{
	size_t run = begin;       /* where the current run without spaces and ideographs began, */
	int64_t run_size = 0;     /* how much was normalized before it, */
	bool has_context = false; /* and whether it has a character that depends on its neighbors */
	out->size = 0;
	for (size_t at = begin, length = 0; at <= end; at += length) {
		uint32_t code_point = ' ';
		length = at < end ? utf8_decode(text + at, end - at, &code_point) : 1;
		uint32_t entry = code_point == UTF8_INVALID ? KIND_DROP : normalizer->entries[code_point];
		enum code_point_kind kind = entry_kind(entry);
		bool ends_run = at == end || kind == KIND_SPACE || kind == KIND_IDEOGRAPH;
		if (ends_run && has_context) {
			out->size = run_size;
			TRY(append_run(out, normalizer, text, run, at));
		}
		if (at == end)
			break;
		if (kind == KIND_IDEOGRAPH)
			TRY(normalized_text_append(out, " ", 1, at, at));
		if (kind == KIND_SPACE)
			TRY(normalized_text_append(out, " ", 1, at, at + length));
		else if (kind != KIND_DROP && kind != KIND_CONTEXT && entry_size(entry) > 0)
			TRY(normalized_text_append(out, entry_text(normalizer, entry), entry_size(entry), at, at + length));
		else if (kind != KIND_DROP && kind != KIND_CONTEXT)
			TRY(normalized_text_append(out, text + at, length, at, at + length));
		if (kind == KIND_IDEOGRAPH)
			TRY(normalized_text_append(out, " ", 1, at + length, at + length));
		has_context = !ends_run && (has_context || kind == KIND_CONTEXT);
		if (ends_run) {
			run = at + length;
			run_size = out->size;
		}
	}
	return OK;
}

void normalized_text_release(struct normalized_text *text)
{
	free(text->text);
	free(text->begins);
	free(text->ends);
	stretch_release(&text->stretch);
	*text = (struct normalized_text){.size = 0};
}
