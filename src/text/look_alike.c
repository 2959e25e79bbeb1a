/* Finds texts that look alike, with the compatibility forms of Unicode and the letters that scripts share. */
#include "text/look_alike.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>
#include "text/utf8.h"

#define POINTS_SHOWN 12

/* Letters of Greek, Cyrillic, and Armenian that no typeface tells from the Latin one, and quotes that editors put in place of ".
 */
static const struct {
	uint16_t letter;
	char latin;
} twins[] = {
	{0x391, 'A'}, {0x392, 'B'}, {0x395, 'E'}, {0x396, 'Z'}, {0x397, 'H'},  {0x399, 'I'},  {0x39A, 'K'},
	{0x39C, 'M'}, {0x39D, 'N'}, {0x39F, 'O'}, {0x3A1, 'P'}, {0x3A4, 'T'},  {0x3A5, 'Y'},  {0x3A7, 'X'},
	{0x3BF, 'o'}, {0x3BD, 'v'}, {0x410, 'A'}, {0x412, 'B'}, {0x415, 'E'},  {0x405, 'S'},  {0x406, 'I'},
	{0x408, 'J'}, {0x41A, 'K'}, {0x41C, 'M'}, {0x41D, 'H'}, {0x41E, 'O'},  {0x420, 'P'},  {0x421, 'C'},
	{0x422, 'T'}, {0x423, 'Y'}, {0x425, 'X'}, {0x430, 'a'}, {0x435, 'e'},  {0x43E, 'o'},  {0x440, 'p'},
	{0x441, 'c'}, {0x443, 'y'}, {0x445, 'x'}, {0x455, 's'}, {0x456, 'i'},  {0x458, 'j'},  {0x4BB, 'h'},
	{0x501, 'd'}, {0x570, 'h'}, {0x57D, 'u'}, {0x585, 'o'}, {0x201C, '"'}, {0x201D, '"'}, {0x201E, '"'},
};

/* The Latin letter that looks like this one, in a character's place; 0: none. */
static char latin_twin(uint32_t c)
{
	for (size_t i = 0; i < sizeof twins / sizeof *twins; i++)
		if (twins[i].letter == c)
			return twins[i].latin;
	return 0;
}

void look_alike_form(const char *text, struct buffer *out)
{
	utf8proc_uint8_t *form;
	const utf8proc_option_t options =
		UTF8PROC_STABLE | UTF8PROC_COMPAT | UTF8PROC_DECOMPOSE | UTF8PROC_IGNORE | UTF8PROC_LUMP | UTF8PROC_STRIPCC;
	utf8proc_ssize_t size = utf8proc_map((const utf8proc_uint8_t *)text, (utf8proc_ssize_t)strlen(text), &form, options);
	if (size < 0) {
		buffer_text(out, text);
		return;
	}
	size_t begin = 0, end = (size_t)size;
	utf8_trim((const char *)form, &begin, &end);
	for (size_t i = begin, next; i < end; i = next) {
		uint32_t c;
		next = i + utf8_decode((const char *)form + i, end - i, &c);
		char twin = latin_twin(c);
		if (twin)
			buffer_char(out, twin);
		else if (c != ' ' || form[i - 1] != ' ')
			buffer_append(out, form + i, next - i);
	}
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
