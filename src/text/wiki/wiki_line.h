/* The last step of converting wiki markup: makes paragraphs of lines from which tags, templates, and links are gone. */
#ifndef TEXT_WIKI_WIKI_LINE_H
#define TEXT_WIKI_WIKI_LINE_H

#include "base/buffer.h"
#include "base/error.h"

/* Appends the paragraphs to `out`, one per line. Headings, lists, remains of tables and anything else that is not running text
 * are dropped. `line` is scratch memory. */
MUST_USE enum status wiki_lines(const char *text, size_t size, struct buffer *line, struct buffer *out);

#endif
