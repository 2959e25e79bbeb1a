/* Finds texts that look alike, with the compatibility forms of Unicode. */
#include "text/look_alike.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>
#include "text/utf8.h"

#define POINTS_SHOWN 12

void look_alike_form(const char *text, struct buffer *out)
{
	utf8proc_uint8_t *form;
	const utf8proc_option_t options =
		UTF8PROC_STABLE | UTF8PROC_COMPAT | UTF8PROC_COMPOSE | UTF8PROC_IGNORE | UTF8PROC_LUMP | UTF8PROC_STRIPCC;
	utf8proc_ssize_t size = utf8proc_map((const utf8proc_uint8_t *)text, (utf8proc_ssize_t)strlen(text), &form, options);
	if (size < 0) {
		buffer_text(out, text);
		return;
	}
	size_t begin = 0, end = (size_t)size;
	utf8_trim((const char *)form, &begin, &end);
	for (size_t i = begin; i < end; i++)
		if (form[i] != ' ' || form[i - 1] != ' ')
			buffer_char(out, (char)form[i]);
	free(form);
}

static bool continues(char c)
{
	return ((unsigned char)c & 0xC0) == 0x80;
}

void look_alike_difference(const char *text, const char *other, struct buffer *out)
{
	size_t size = strlen(text), other_size = strlen(other), begin = 0, end = size;
	while (begin < size && begin < other_size && text[begin] == other[begin])
		begin++;
	while (begin > 0 && continues(text[begin]))
		begin--;
	while (end > begin && other_size - (size - end) > begin && text[end - 1] == other[other_size - (size - end) - 1])
		end--;
	while (end < size && continues(text[end]))
		end++;
	if (begin >= end)
		buffer_text(out, "nothing");
	for (int shown = 0; begin < end && shown < POINTS_SHOWN; shown++) {
		uint32_t c;
		begin += utf8_decode(text + begin, size - begin, &c);
		buffer_format(out, "%sU+%04X", shown ? " " : "", (unsigned)c);
	}
}
