/* Questions about text: its ends (where it ends with a NUL), its characters. */
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

/* Does it end with one of `count` ends, and is longer? */
static inline bool text_has_ending(const char *text, const char *const *ends, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (text_ends_with(text, ends[i]) && strlen(text) > strlen(ends[i]))
			return true;
	return false;
}

/* Bytes of the UTF-8 sequence at p (at least one byte is there), or 0 if it is not valid: overlong, a surrogate, above
 * U+10FFFF, cut off. */
size_t text_utf8_length(const unsigned char *p, size_t left);
/* Of the valid sequence at p, or of a single byte. */
uint32_t text_code_point(const unsigned char *p, size_t size);
/* Does the character at p do something to a terminal or a page rather than stand in it? Control characters, bytes that are no
 * UTF-8, and Unicode's marks that turn the direction of text round or end a line. *out_size: its bytes. */
bool text_is_control(const unsigned char *p, size_t left, size_t *out_size);
/* Copies text with such characters written out, "\\x1b" and "\\u202e", so that a name or label from a file can be shown to a
 * person. '\n' and '\t' stay if `lines`. Cut to `capacity` (at least 1) with its NUL; returns out. */
const char *text_escape(char *out, size_t capacity, const char *text, bool lines);
/* A name from a file, as it is shown to a person on standard output: cut after a thousand bytes, valid to the end of the block.
 */
#define TEXT_SHOWN(text) text_escape((char[1024]){0}, 1024, text, false)

#endif
