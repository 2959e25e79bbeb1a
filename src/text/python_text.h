/* Text functions that behave like CPython's str, for measures that are defined by Python programs. */
#ifndef TEXT_PYTHON_TEXT_H
#define TEXT_PYTHON_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/buffer.h"

/* str.isspace() of one character: what str.split() and str.strip() remove, and what \s matches. */
static inline bool python_is_space(uint32_t c)
{
	return c == ' ' || (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x1F) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
	       (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

/* True if \w matches it: letters, numbers and the underscore. */
bool python_is_word(uint32_t c);
/* True if \d matches it: decimal digits of any script. */
bool python_is_digit(uint32_t c);

/* Appends str.lower() of the text: Unicode lower case, with U+0130 as two characters and a final sigma at the end of a word. */
void python_lower(struct buffer *out, const char *text, size_t size);

#endif
