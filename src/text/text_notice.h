/* Text files that are something else besides running text. */
#ifndef TEXT_TEXT_NOTICE_H
#define TEXT_TEXT_NOTICE_H

#include <stddef.h>
#include "base/error.h"

/* Writes into `out` what a reader of the file should know before its lines are taken for text: that it is a table (CSV, TSV),
 * whose separators and other columns would be text, too, or that it has headings between equals signs, as WikiText does. With
 * advice; "" if there is nothing to say. `beginning` [size] is the first of the file. */
#define TEXT_NOTICE_BYTES 768
MUST_USE enum status text_notice(const char *path, const char *beginning, size_t size, char out[TEXT_NOTICE_BYTES]);

#endif
