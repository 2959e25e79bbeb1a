/* Shared by the writers of pages in this folder. */
#ifndef REPORT_HTML_H
#define REPORT_HTML_H

#include "formats/chart.h"

/* Appends `begin`, the escaped text, and `end`. */
void html_element(struct buffer *out, const char *begin, const char *text, const char *end);
/* Appends text[0, size), a part of an excerpt, and counts *letters down; at 0 it stops. Returns the number of bytes taken. */
size_t html_part(struct buffer *out, const char *text, size_t size, int *letters);
/* Appends at most `letters` code points of a text of any writing direction, with an ellipsis if it was cut. Runs of white space
 * become a single space. */
void html_excerpt(struct buffer *out, const char *text, int letters);

#endif
