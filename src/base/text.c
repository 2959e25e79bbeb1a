/* Examines characters and escapes those that could control a terminal. */
#include "base/text.h"

#include <stdint.h>
#include <stdio.h>

size_t text_utf8_length(const unsigned char *p, size_t left)
{
	if (p[0] < 0x80)
		return 1;
	size_t length = p[0] >= 0xC2 && p[0] <= 0xDF ? 2 : (p[0] & 0xF0) == 0xE0 ? 3 : p[0] >= 0xF0 && p[0] <= 0xF4 ? 4 : 0;
	if (length == 0 || length > left)
		return 0;
	for (size_t i = 1; i < length; i++) {
		if ((p[i] & 0xC0) != 0x80)
			return 0;
	}
	if ((p[0] == 0xE0 && p[1] < 0xA0) || (p[0] == 0xED && p[1] > 0x9F) || (p[0] == 0xF0 && p[1] < 0x90) ||
	    (p[0] == 0xF4 && p[1] > 0x8F))
		return 0;
	return length;
}

bool text_is_control(const unsigned char *p, size_t left, size_t *out_size)
{
	size_t size = *out_size = text_utf8_length(p, left);
	if (size == 0) {
		*out_size = 1;
		return true;
	}
	if (size == 1)
		return *p < 0x20 || *p == 0x7F;
	if (size == 2) /* U+0080 to U+009F, U+061C */
		return (p[0] == 0xC2 && p[1] < 0xA0) || (p[0] == 0xD8 && p[1] == 0x9C);
	/* U+200E, U+200F, U+2028 to U+202E, U+2066 to U+2069 */
	return size == 3 && p[0] == 0xE2 &&
	       ((p[1] == 0x80 && (p[2] == 0x8E || p[2] == 0x8F || (p[2] >= 0xA8 && p[2] <= 0xAE))) ||
		(p[1] == 0x81 && p[2] >= 0xA6 && p[2] <= 0xA9));
}

size_t utf8_encode(uint32_t code_point, char out[4])
{
	if (code_point < 0x80) {
		out[0] = (char)code_point;
		return 1;
	}
	if (code_point < 0x800) {
		out[0] = (char)(0xC0 | code_point >> 6);
		out[1] = (char)(0x80 | (code_point & 0x3F));
		return 2;
	}
	if (code_point < 0x10000) {
		out[0] = (char)(0xE0 | code_point >> 12);
		out[1] = (char)(0x80 | (code_point >> 6 & 0x3F));
		out[2] = (char)(0x80 | (code_point & 0x3F));
		return 3;
	}
	out[0] = (char)(0xF0 | code_point >> 18);
	out[1] = (char)(0x80 | (code_point >> 12 & 0x3F));
	out[2] = (char)(0x80 | (code_point >> 6 & 0x3F));
	out[3] = (char)(0x80 | (code_point & 0x3F));
	return 4;
}

uint32_t text_code_point(const unsigned char *p, size_t size)
{
	uint32_t code = size == 1 ? p[0] : p[0] & (0xFFu >> (size + 1));
	for (size_t i = 1; i < size; i++)
		code = code << 6 | (p[i] & 0x3Fu);
	return code;
}

const char *text_escape(char *out, size_t capacity, const char *text, bool lines)
{
	size_t used = 0, left = strlen(text), size;
	for (const unsigned char *p = (const unsigned char *)text; left > 0; p += size, left -= size) {
		char escaped[8];
		const char *piece = (const char *)p;
		bool control = text_is_control(p, left, &size) && !(lines && (*p == '\n' || *p == '\t'));
		size_t length = size;
		if (control) {
			uint32_t c = text_code_point(p, size);
			length = (size_t)(size == 1 ? snprintf(escaped, sizeof escaped, "\\x%02x", c)
						    : snprintf(escaped, sizeof escaped, "\\u%04x", c));
			piece = escaped;
		}
		if (length >= capacity - used)
			break;
		memcpy(out + used, piece, length);
		used += length;
	}
	out[used] = '\0';
	return out;
}
