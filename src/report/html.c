/* Writes elements and excerpts of untrusted text as HTML. */
#include "report/html.h"

#include <string.h>

void html_element(struct buffer *out, const char *begin, const char *text, const char *end)
{
	buffer_text(out, begin);
	html_text(out, text);
	buffer_text(out, end);
}

void html_excerpt(struct buffer *out, const char *text, int letters)
{
	char piece[8];
	size_t size = 0;
	bool space = false;
	buffer_text(out, "<bdi>");
	for (; *text && letters > 0; letters--) {
		/* A letter is a byte and the continuation bytes after it; html_text() checks that they are UTF-8. */
		size = 1;
		while (size < 4 && ((unsigned char)text[size] & 0xC0) == 0x80)
			size++;
		bool blank = *text == '\n' || *text == '\r' || *text == '\t' || *text == ' ';
		if (blank && space) {
			letters++;
		} else {
			memcpy(piece, blank ? " " : text, blank ? 1 : size);
			piece[blank ? 1 : size] = 0;
			html_text(out, piece);
		}
		space = blank;
		text += size;
	}
	buffer_text(out, *text ? "\xE2\x80\xA6</bdi>" : "</bdi>");
}
