/* Finds texts that look alike, with the compatibility forms of Unicode and the letters that scripts share. */
#include "text/look_alike.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>
#include "text/utf8.h"

#define POINTS_SHOWN 12

/* Letters of Greek, Cyrillic, Armenian, Cherokee, Coptic, Lisu, and of alphabets with a dotless i, that many typefaces hardly
 * tell from a Latin one or a digit (as Unicode's confusables.txt has it), and quotes that editors put in place of " and '. */
static const struct {
	uint16_t letter;
	char latin;
} twins[] = {
	{0x131, 'i'},  {0x237, 'j'},   {0x251, 'a'},   {0x261, 'g'},  {0x37F, 'J'},  {0x391, 'A'},  {0x392, 'B'},  {0x395, 'E'},
	{0x396, 'Z'},  {0x397, 'H'},   {0x399, 'I'},   {0x39A, 'K'},  {0x39C, 'M'},  {0x39D, 'N'},  {0x39F, 'O'},  {0x3A1, 'P'},
	{0x3A4, 'T'},  {0x3A5, 'Y'},   {0x3A7, 'X'},   {0x3B1, 'a'},  {0x3B3, 'y'},  {0x3B9, 'i'},  {0x3BD, 'v'},  {0x3BF, 'o'},
	{0x3C1, 'p'},  {0x3C3, 'o'},   {0x3C5, 'u'},   {0x3F2, 'c'},  {0x3F3, 'j'},  {0x3F9, 'C'},  {0x405, 'S'},  {0x406, 'I'},
	{0x408, 'J'},  {0x410, 'A'},   {0x412, 'B'},   {0x415, 'E'},  {0x417, '3'},  {0x41A, 'K'},  {0x41C, 'M'},  {0x41D, 'H'},
	{0x41E, 'O'},  {0x420, 'P'},   {0x421, 'C'},   {0x422, 'T'},  {0x423, 'Y'},  {0x425, 'X'},  {0x42C, 'b'},  {0x430, 'a'},
	{0x435, 'e'},  {0x43E, 'o'},   {0x440, 'p'},   {0x441, 'c'},  {0x443, 'y'},  {0x445, 'x'},  {0x455, 's'},  {0x456, 'i'},
	{0x458, 'j'},  {0x461, 'w'},   {0x474, 'V'},   {0x475, 'v'},  {0x4AE, 'Y'},  {0x4AF, 'y'},  {0x4BB, 'h'},  {0x4BD, 'e'},
	{0x4C0, 'I'},  {0x4CF, 'l'},   {0x501, 'd'},   {0x50C, 'G'},  {0x51A, 'Q'},  {0x51B, 'q'},  {0x51C, 'W'},  {0x51D, 'w'},
	{0x54D, 'U'},  {0x54F, 'S'},   {0x555, 'O'},   {0x561, 'w'},  {0x563, 'q'},  {0x566, 'q'},  {0x570, 'h'},  {0x578, 'n'},
	{0x57C, 'n'},  {0x57D, 'u'},   {0x581, 'g'},   {0x584, 'f'},  {0x585, 'o'},  {0x13A0, 'D'}, {0x13A1, 'R'}, {0x13A2, 'T'},
	{0x13A5, 'i'}, {0x13AA, 'A'},  {0x13AB, 'J'},  {0x13AC, 'E'}, {0x13B3, 'W'}, {0x13B7, 'M'}, {0x13BB, 'H'}, {0x13C0, 'G'},
	{0x13C3, 'Z'}, {0x13CF, 'b'},  {0x13D9, 'V'},  {0x13DA, 'S'}, {0x13DE, 'L'}, {0x13DF, 'C'}, {0x13E2, 'P'}, {0x13E6, 'K'},
	{0x13F4, 'B'}, {0x2018, '\''}, {0x2019, '\''}, {0x201C, '"'}, {0x201D, '"'}, {0x201E, '"'}, {0x2C8E, 'H'}, {0x2C92, 'I'},
	{0x2C94, 'K'}, {0x2C98, 'M'},  {0x2C9A, 'N'},  {0x2C9E, 'O'}, {0x2C9F, 'o'}, {0x2CA2, 'P'}, {0x2CA3, 'p'}, {0x2CA4, 'C'},
	{0x2CA5, 'c'}, {0x2CA6, 'T'},  {0x2CAC, 'X'},  {0xA4D0, 'B'}, {0xA4D1, 'P'}, {0xA4D3, 'D'}, {0xA4D4, 'T'}, {0xA4D6, 'G'},
	{0xA4D7, 'K'}, {0xA4D9, 'J'},  {0xA4DA, 'C'},  {0xA4DC, 'Z'}, {0xA4DD, 'F'}, {0xA4DF, 'M'}, {0xA4E0, 'N'}, {0xA4E1, 'L'},
	{0xA4E2, 'S'}, {0xA4E3, 'R'},  {0xA4E6, 'V'},  {0xA4E7, 'H'}, {0xA4EA, 'W'}, {0xA4EB, 'X'}, {0xA4EC, 'Y'}, {0xA4EE, 'A'},
	{0xA4F0, 'E'}, {0xA4F2, 'I'},  {0xA4F3, 'O'},  {0xA4F4, 'U'},
};

/* The Latin letter that looks like this one, in a character's place; 0: none. */
static char latin_twin(uint32_t c)
{
	for (size_t i = 0; i < sizeof twins / sizeof *twins; i++)
		if (twins[i].letter == c)
			return twins[i].latin;
	return 0;
}

/* A comma, space, or apostrophe between the thousands of a number. */
static bool is_group_mark(const char *text, size_t begin, size_t at, size_t end)
{
	size_t next = at + 1;
	while (next < end && isdigit((unsigned char)text[next]))
		next++;
	return strchr(", '", text[at]) && at > begin && isdigit((unsigned char)text[at - 1]) && next == at + 4;
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
		else if (is_group_mark((const char *)form, begin, i, end))
			continue;
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
