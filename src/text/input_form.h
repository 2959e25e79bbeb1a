/* The format of an input file, judged from its beginning. */
#ifndef TEXT_INPUT_FORM_H
#define TEXT_INPUT_FORM_H

#include <stddef.h>
#include <stdint.h>
#include "base/error.h"

/* What surrounds the text in a file. */
enum input_form {
	INPUT_AUTO,
	INPUT_TEXT,          /* nothing: just lines of text */
	INPUT_GUTENBERG,     /* a Project Gutenberg book, with the license before and after it */
	INPUT_WIKI_XML,      /* a MediaWiki export; articles only, with markup converted to text */
	INPUT_CIRRUS,        /* a CirrusSearch dump; articles only */
	INPUT_WIKIEXTRACTOR, /* <doc> elements */
	INPUT_JSON,          /* objects, one per line or in an array, with text under a key */
	INPUT_WARC,          /* plain text from a web crawl (WET) */
};
extern const char *const input_form_names[]; /* "auto", "text", …; index = enum; ends with NULL */

#define INPUT_BEGINNING_BYTES ((size_t)1 << 20) /* of a file are examined */
/* Refuses (ERR_DATA) anything that is not UTF-8 text: binary files, UTF-16, other encodings, which are known by many invalid
 * bytes or by single ones within words and hardly any valid character beyond ASCII. UTF-8 with some damage passes. */
MUST_USE enum status input_check_encoding(const char *path, const char *text, size_t size);
/* The same for text that may contain NULs. */
MUST_USE enum status input_check_characters(const char *path, const char *text, size_t size);
/* Refuses only UTF-16, for lines that may otherwise contain anything. */
MUST_USE enum status input_refuse_utf16(const char *path, const char *text, size_t size);
/* Warns that text may be in another encoding if it has more invalid bytes than accidents explain. */
void input_warn_invalid(int64_t invalid, int64_t bytes);
/* Refuses a web page with its markup, which would be noise, and ARC files, the predecessor of WARC. */
MUST_USE enum status input_refuse_markup(const char *path, const char *beginning, size_t size);
/* Detects a form of records or a Gutenberg book; otherwise, lines of text. */
enum input_form input_form_find(const char *beginning, size_t size);

#endif
