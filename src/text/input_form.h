/* What a file holds, judged from its beginning. */
#ifndef TEXT_INPUT_FORM_H
#define TEXT_INPUT_FORM_H

#include <stddef.h>
#include "base/error.h"

/* What stands around the text of a file; found from its beginning. */
enum input_form {
	INPUT_AUTO,
	INPUT_TEXT,          /* nothing: lines */
	INPUT_GUTENBERG,     /* a Project Gutenberg book: licence before and after it */
	INPUT_WIKI_XML,      /* a MediaWiki export; articles only, markup to text */
	INPUT_CIRRUS,        /* a CirrusSearch dump; articles only */
	INPUT_WIKIEXTRACTOR, /* <doc> elements */
	INPUT_JSON,          /* objects, a line each or in an array, text under a key */
	INPUT_WARC,          /* plain text of a web crawl: WET */
};
extern const char *const input_form_names[];        /* "auto", "text", …; index = enum; ends with NULL */
enum input_form input_form_named(const char *name); /* the name is one of them */

/* Refuses (ERR_DATA) what is no UTF-8 text: binary files, UTF-16, other encodings. */
MUST_USE enum status input_check_encoding(const char *path, const char *text, size_t size);
/* Refuses UTF-16 alone, of lines that may otherwise hold anything. */
MUST_USE enum status input_refuse_utf16(const char *path, const char *text, size_t size);
/* Refuses a page of the web with its markup, which would be noise, and WARC's predecessor. */
MUST_USE enum status input_refuse_markup(const char *path, const char *beginning, size_t size);
/* The form of records it is in, a Gutenberg book, or else lines of text. */
enum input_form input_form_find(const char *beginning, size_t size);

#endif
