/* How running text is laid out in lines. */
#ifndef TEXT_TEXT_FORM_H
#define TEXT_TEXT_FORM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"

/* What a line of text is; the last ones are found forms of files that are not lines of text (enum
 * input_form). */
enum text_form {
	TEXT_FORM_AUTO,
	TEXT_FORM_SENTENCES,  /* one sentence per line, a blank line between documents */
	TEXT_FORM_PARAGRAPHS, /* running text, a paragraph a line, a blank line between documents */
	TEXT_FORM_WRAPPED,    /* running text broken at a column; a blank line between paragraphs; a file is a
				 document, or each part of it that ends with three blank lines or more (the
				 chapters of a book) */
	TEXT_FORM_DOCUMENTS,  /* one document per line */
	TEXT_FORM_GUTENBERG,
	TEXT_FORM_WIKI_XML,
	TEXT_FORM_CIRRUS,
	TEXT_FORM_WIKIEXTRACTOR,
	TEXT_FORM_JSON,
	TEXT_FORM_WARC,
	TEXT_FORM_COUNT
};
extern const char *const text_form_names[];       /* "auto", "sentences", …; index = enum; ends with NULL */
enum text_form text_form_named(const char *name); /* the name is one of them */

/* Are the lines of this text broken at a column? */
MUST_USE enum status text_is_wrapped(const char *text, size_t size, bool *out);
/* Finds the form of a text from its beginning. `whole`: the text ends there; `file_count`: files of the
 * corpus (a small file among many is taken for one document). The reason goes into `reason`. The rules stand
 * in text_form.c. */
#define TEXT_FORM_REASON_BYTES 160
MUST_USE enum status text_form_detect(const char *text, size_t size, bool whole, int64_t file_count, enum text_form *out,
				      char reason[TEXT_FORM_REASON_BYTES]);

#endif
