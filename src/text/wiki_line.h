/* The last step through wiki markup: its lines, without tags, templates and links, to paragraphs. */
#ifndef TEXT_WIKI_LINE_H
#define TEXT_WIKI_LINE_H

#include "base/buffer.h"
#include "base/error.h"

/* Appends the paragraphs to `out`, one a line. Headings, lists, rests of tables and what is no running text
 * go. `line` is scratch memory. */
MUST_USE enum status wiki_lines(const char *text, size_t size, struct buffer *line, struct buffer *out);

#endif
