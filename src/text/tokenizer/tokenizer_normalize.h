/* Normalization of text before WordPiece, in a fast way and a slow way with the same result.
 *
 * Nearly always, what a code point becomes depends only on itself and is found in a table made for the settings.
 * If neighbors matter (marks that are kept and must be sorted, final sigma), a stretch of text
 * goes through the steps of the original algorithm one after the other.
 */
#ifndef TEXT_TOKENIZER_TOKENIZER_NORMALIZE_H
#define TEXT_TOKENIZER_TOKENIZER_NORMALIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "base/memory.h"
#include "text/tokenizer.h"
#include "text/unicode.h"

/* What a code point becomes, and what it does to the word before it. */
enum code_point_kind {
	KIND_KEEP,        /* part of a word, unchanged */
	KIND_REPLACE,     /* part of a word, replaced by the entry's text */
	KIND_DROP,        /* removed; the word continues */
	KIND_SPACE,       /* removed; the word ends */
	KIND_PUNCTUATION, /* a word of its own (the entry's text, or itself if that is empty) */
	KIND_IDEOGRAPH,   /* the same, with spaces around it */
	KIND_CONTEXT,     /* depends on its neighbors: normalize_stretch() */
};

struct normalizer {
	struct tokenizer_settings settings;
	enum unicode_column column;
	uint32_t *entries; /* [UNICODE_LIMIT] kind in bits 0 to 2, size of the text in bits 3 to 7, its offset
			      in bits 8 to 31 */
	char *texts;       /* UTF-8 of all replacements */
	int64_t texts_size, texts_capacity;
};

static inline enum code_point_kind entry_kind(uint32_t entry)
{
	return (enum code_point_kind)(entry & 7);
}

static inline size_t entry_size(uint32_t entry)
{
	return entry >> 3 & 31;
}

static inline const char *entry_text(const struct normalizer *normalizer, uint32_t entry)
{
	return normalizer->texts + (entry >> 8);
}

/* Makes the table (a few milliseconds). */
MUST_USE enum status normalizer_init(struct normalizer *normalizer, const struct tokenizer_settings *settings);
void normalizer_release(struct normalizer *normalizer);

/* A normalized character, and the bytes of the text that it comes from. */
struct character {
	uint32_t code_point;
	uint32_t begin, end;
	uint8_t combining_class;
	bool is_inserted; /* a part of a decomposition other than the first */
	int64_t order;    /* position before sorting */
};

/* Grown as needed and reused from call to call. */
struct stretch {
	struct character *characters; /* the result */
	int64_t count, capacity;
	struct character *work;
	int64_t work_capacity;
	int64_t invalid_bytes; /* found by the last call */
};

/* Normalizes text[from, end), which contains no spaces or ideographs; text[context, from) belongs
 * to the same run and has already been processed. */
MUST_USE enum status normalize_stretch(const struct normalizer *normalizer, const char *text, size_t context, size_t from,
				       size_t end, struct stretch *out);
void stretch_release(struct stretch *stretch);

/* Normalized text, such as a word under construction, and for each of its bytes the place in the source. */
struct normalized_text {
	char *text;
	uint32_t *begins, *ends;
	int64_t size;
	int64_t text_capacity, begins_capacity, ends_capacity;
	struct stretch stretch; /* scratch memory */
};

/* Makes room for `needed` bytes. */
static inline enum status normalized_text_grow(struct normalized_text *out, int64_t needed)
{
	if (needed <= out->text_capacity && needed <= out->begins_capacity && needed <= out->ends_capacity)
		return OK;
	TRY(memory_grow(&out->text, &out->text_capacity, needed, 1, "normalized text"));
	TRY(memory_grow(&out->begins, &out->begins_capacity, needed, sizeof *out->begins, "normalized text"));
	return memory_grow(&out->ends, &out->ends_capacity, needed, sizeof *out->ends, "normalized text");
}

/* Appends bytes that come from the bytes [begin, end) of the source. */
static inline enum status normalized_text_append(struct normalized_text *out, const char *text, size_t count, size_t begin,
						 size_t end)
{
	TRY(normalized_text_grow(out, out->size + (int64_t)count));
	for (size_t i = 0; i < count; i++) {
		out->text[out->size] = text[i];
		out->begins[out->size] = (uint32_t)begin;
		out->ends[out->size] = (uint32_t)end;
		out->size++;
	}
	return OK;
}

/* Normalizes text[begin, end), which is not divided into words. Every space becomes ' ', and ideographs get one on each side. */
MUST_USE enum status normalized_text_make(struct normalized_text *out, const struct normalizer *normalizer, const char *text,
					  size_t begin, size_t end);
void normalized_text_release(struct normalized_text *text);

#endif
