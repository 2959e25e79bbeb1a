/* Warnings about text files that are not just running text. */
#ifndef TEXT_TEXT_NOTICE_H
#define TEXT_TEXT_NOTICE_H

#include <stddef.h>
#include "base/error.h"

/* Writes to `out` what the user should know before the lines of the file are taken as text, with advice: that it is a table (CSV,
 * TSV), whose separators and other columns would become text, too, or that it has headings between equals signs, as in WikiText.
 * "" if there is nothing to say. `beginning` [size] is the first part of the file. */
#define TEXT_NOTICE_BYTES 768
MUST_USE enum status text_notice(const char *path, const char *beginning, size_t size, char out[TEXT_NOTICE_BYTES]);

/* If the text is a table with several columns, describes it in `out`: "CSV, columns 1 id, 2 text"; otherwise "". */
#define TEXT_TABLE_BYTES 224
MUST_USE enum status text_find_table(const char *path, const char *beginning, size_t size, char out[TEXT_TABLE_BYTES]);

#endif
