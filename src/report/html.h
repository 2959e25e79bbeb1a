/* What the writers of pages in this folder share. */
#ifndef REPORT_HTML_H
#define REPORT_HTML_H

#include "formats/chart.h"

/* `begin`, the text escaped, `end`. */
void html_element(struct buffer *out, const char *begin, const char *text, const char *end);
/* At most `letters` code points of a text in any writing direction, and an ellipsis where it was cut; line breaks are spaces. */
void html_excerpt(struct buffer *out, const char *text, int letters);

#endif
