/* Writes elements and excerpts of untrusted text as HTML. */
#include "report/html.h"

#include <string.h>

void html_element(struct buffer *out, const char *begin, const char *text, const char *end)
{
	buffer_text(out, begin);
	html_text(out, text);
	buffer_text(out, end);
}

size_t html_part(struct buffer *out, const char *text, size_t size, int *letters)
{
	char piece[8];
	size_t at = 0, length;
	bool space = false;
	for (; at<size && * letters> 0; at += length) {
		/* A letter is a byte and the continuation bytes after it; html_text() checks that they are UTF-8. */
		length = 1;
		while (length < 4 && at + length < size && ((unsigned char)text[at + length] & 0xC0) == 0x80)
			length++;
		bool blank = text[at] == '\n' || text[at] == '\r' || text[at] == '\t' || text[at] == ' ';
		if (!blank || !space) {
			memcpy(piece, blank ? " " : text + at, length);
			piece[blank ? 1 : length] = 0;
			html_text(out, piece);
			--*letters;
		}
		space = blank;
	}
	return at;
}

void html_excerpt(struct buffer *out, const char *text, int letters)
{
	buffer_text(out, "<bdi>");
	size_t taken = html_part(out, text, strlen(text), &letters);
	buffer_text(out, text[taken] ? "\xE2\x80\xA6</bdi>" : "</bdi>");
}
