/* How running text is laid out in lines. */
#ifndef TEXT_TEXT_FORM_H
#define TEXT_TEXT_FORM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"

/* What a line of text is. The forms from TEXT_FORM_GUTENBERG on are not for lines; they name the detected format of a file
 * (enum input_form). */
enum text_form {
	TEXT_FORM_AUTO,
	TEXT_FORM_SENTENCES,  /* one sentence per line, a blank line between documents */
	TEXT_FORM_PARAGRAPHS, /* running text, one paragraph per line, a blank line between documents */
	TEXT_FORM_WRAPPED,    /* running text wrapped at a column, a blank line between paragraphs; a file is one
				 document, or several if separated by three or more blank lines (the chapters of
				 a book) */
	TEXT_FORM_DOCUMENTS,  /* one document per line */
	TEXT_FORM_GUTENBERG,
	TEXT_FORM_WIKI_XML,
	TEXT_FORM_CIRRUS,
	TEXT_FORM_WIKIEXTRACTOR,
	TEXT_FORM_JSON,
	TEXT_FORM_WARC,
	TEXT_FORM_COUNT
};
extern const char *const text_form_names[]; /* "auto", "sentences", …; index = enum; ends with NULL */

/* *out: whether the lines of this text are wrapped at a column. */
MUST_USE enum status text_is_wrapped(const char *text, size_t size, bool *out);
/* Detects the form of a text from its beginning. `whole`: this is the entire text; `file_count`: number of files in the
 * corpus (a small file among many is taken as one document). `reason` receives the reason. The rules are
 * in text_form.c. */
#define TEXT_FORM_REASON_BYTES 160
MUST_USE enum status text_form_detect(const char *text, size_t size, bool whole, int64_t file_count, enum text_form *out,
				      char reason[TEXT_FORM_REASON_BYTES]);

#endif
