/* Questions about text: its ends (where it ends with a NUL), its characters. */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
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

#endif
