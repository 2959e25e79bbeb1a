/* Normalisation of text before WordPiece, in two speeds that agree.
 *
 * Nearly always what becomes of a code point depends on nothing but itself: a table made for the settings
 * holds it. Where neighbours matter (marks that survive and must be sorted, final sigma) a stretch of text
 * goes through the steps of the original algorithm one after the other.
 */
#ifndef TEXT_TOKENIZER_NORMALIZE_H
#define TEXT_TOKENIZER_NORMALIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "text/tokenizer.h"
#include "text/unicode.h"

/* What a code point does to the word before it and becomes itself. */
enum code_point_kind {
	KIND_KEEP,        /* part of a word, as it is */
	KIND_REPLACE,     /* part of a word, as the entry's text */
	KIND_DROP,        /* removed; the word continues */
	KIND_SPACE,       /* nothing, and the word ends */
	KIND_PUNCTUATION, /* a word of its own (the entry's text, or itself if that is empty) */
	KIND_IDEOGRAPH,   /* the same, with spaces around it */
	KIND_CONTEXT,     /* depends on its neighbours: normalize_stretch() */
};

struct normalizer {
	struct tokenizer_settings settings;
	enum unicode_column column;
	uint32_t *entries; /* [UNICODE_LIMIT] kind in bits 0 to 2, size of the text in bits 3 to 7, its offset
			      above */
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

/* A normalised character and the bytes of the text that it stands for. */
struct character {
	uint32_t code_point;
	uint32_t begin, end;
	uint8_t combining_class;
	bool is_inserted; /* a further part of a decomposition */
	int64_t order;    /* place before sorting */
};

/* Grown as needed, reused from call to call. */
struct stretch {
	struct character *characters; /* the result */
	int64_t count, capacity;
	struct character *work;
	int64_t work_capacity;
	int64_t invalid_bytes; /* of the last call */
};

/* Normalises text[from, end), which no space or ideograph parts but at its ends; text[context, from) belongs
 * to the same run without spaces and has been treated before. */
MUST_USE enum status normalize_stretch(const struct normalizer *normalizer, const char *text, size_t context, size_t from,
				       size_t end, struct stretch *out);
void stretch_release(struct stretch *stretch);

#endif
