/* What BERT's tokenizers know about each code point.
 *
 * Two columns, because the two tokenizers that we reproduce use different Unicode versions: Hugging Face's Rust crates (mixed,
 * some as old as Unicode 8) and Google's Python (Unicode 14). What changes from version to version is compiled in
 * (unicode_tables.c, made by dev/unicode_tables.py); decompositions and combining classes, which an assigned code point never
 * changes, are utf8proc's, for the code points that the tables name. So ids do not depend on the library's version.
 */
#ifndef TEXT_UNICODE_H
#define TEXT_UNICODE_H

#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>
#include "text/utf8.h"

#define UNICODE_LIMIT 0x110000 /* one more than the last code point */

enum unicode_column { UNICODE_HUGGINGFACE, UNICODE_GOOGLE, UNICODE_COLUMNS };

/* Flags of a code point. CASED and IGNORABLE are set in Google's column only: Python's str.lower() uses them to
 * recognize a final sigma; a code point that is both is listed as ignorable. ACCENT is set in Hugging Face's only. */
enum {
	UNICODE_DROPPED = 1,     /* cleaning drops it: control, format, U+FFFD; for Hugging Face also private use */
	UNICODE_SPACE = 2,       /* separates words */
	UNICODE_MARK = 4,        /* nonspacing mark (Mn): removed when accents are stripped */
	UNICODE_PUNCTUATION = 8, /* a word of its own */
	UNICODE_CASED = 16,
	UNICODE_IGNORABLE = 32,
	UNICODE_REORDERED = 64, /* its combining class is not 0 */
	UNICODE_ACCENT = 128,   /* mark (Mn, Mc, Me): removed by StripAccents */
};

/* Rows of the tables, sorted; a code point without a row has no property. */
struct unicode_property_row {
	uint32_t first, last;
	uint8_t flags[UNICODE_COLUMNS];
};
struct unicode_lowercase_row {
	uint32_t first, last; /* every `step`-th code point from first to last becomes itself + delta */
	int32_t step, delta;
	uint32_t columns; /* bit mask of the columns that have it */
};
struct unicode_decomposition_row {
	uint32_t first, last; /* in this range, code points are decomposed as utf8proc does */
	uint32_t columns;
};
extern const struct unicode_property_row unicode_property_rows[];
extern const struct unicode_lowercase_row unicode_lowercase_rows[];
extern const struct unicode_decomposition_row unicode_decomposition_rows[];
extern const int unicode_property_row_count, unicode_lowercase_row_count, unicode_decomposition_row_count;

/* White space as Rust's char::is_whitespace() sees it. */
static inline bool unicode_is_space(uint32_t c)
{
	return c != 0x200B && c != 0xFEFF && utf8_is_space(c);
}

uint8_t unicode_flags(enum unicode_column column, uint32_t code_point);
/* Canonical combining class; 0 = a starter. */
uint8_t unicode_combining_class(enum unicode_column column, uint32_t code_point);
/* Simple lower case; the code point itself if it has none. U+0130, the only one that becomes two, is left to the caller. */
uint32_t unicode_lowercase(enum unicode_column column, uint32_t code_point);
/* Full canonical decomposition; returns the number of parts, 1 (the code point itself) if it has none. */
int unicode_decompose(enum unicode_column column, uint32_t code_point, uint32_t out[4]);

#endif
