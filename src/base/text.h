/* Text: its endings (of NUL-terminated text) and its characters. */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline bool text_ends_with(const char *text, const char *end)
{
	size_t size = strlen(text), end_size = strlen(end);
	return size >= end_size && strcmp(text + size - end_size, end) == 0;
}

/* Whether the text ends with one of `count` endings and is longer than it. */
static inline bool text_has_ending(const char *text, const char *const *ends, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (text_ends_with(text, ends[i]) && strlen(text) > strlen(ends[i]))
			return true;
	return false;
}

/* Length in bytes of the UTF-8 sequence at p (left >= 1), or 0 if it is invalid: overlong, a surrogate, above U+10FFFF, or
 * truncated. */
size_t text_utf8_length(const unsigned char *p, size_t left);
/* Writes a code point as 1 to 4 bytes and returns their number. */
size_t utf8_encode(uint32_t code_point, char out[4]);
/* The code point of the valid sequence at p, or the value of a single byte. */
uint32_t text_code_point(const unsigned char *p, size_t size);
/* Whether the character at p affects a terminal or a page rather than being displayed: control characters, bytes that are not
 * UTF-8, and Unicode characters that change the direction of text or end a line. *out_size: its length in bytes. */
bool text_is_control(const unsigned char *p, size_t left, size_t *out_size);
/* Copies text with such characters escaped as "\x1b" or "\u202e", so that a name or label from a file can be shown to a person.
 * '\n' and '\t' are kept if `lines`. Truncated to `capacity` bytes (at least 1), including the NUL; returns out. */
const char *text_escape(char *out, size_t capacity, const char *text, bool lines);
/* A name from a file, as shown to a person on standard output: truncated after about a thousand bytes, valid until the end of the
 * block. */
#define TEXT_SHOWN(text) text_escape((char[1024]){0}, 1024, text, false)

#endif
