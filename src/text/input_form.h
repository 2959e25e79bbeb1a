/* What a file holds, judged from its beginning. Inside src/text. */
#ifndef TEXT_INPUT_FORM_H
#define TEXT_INPUT_FORM_H

#include "text/corpus.h"

/* Refuses (ERR_DATA) what is no UTF-8 text: binary files, UTF-16, other encodings. */
MUST_USE enum status input_check_encoding(const char *path, const char *text, size_t size);
/* Refuses a page of the web with its markup, which would be noise, and WARC's predecessor. */
MUST_USE enum status input_refuse_markup(const char *path, const char *beginning, size_t size);
/* The form of records it is in, a Gutenberg book, or else lines of text. */
enum input_form input_form_find(const char *beginning, size_t size);

#endif
