/* What CPython's str does with text, for measures that are defined by Python programs. */
#ifndef TEXT_PYTHON_TEXT_H
#define TEXT_PYTHON_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/buffer.h"

/* str.isspace() of one character: what str.split() and str.strip() take away, and \s matches. */
static inline bool python_is_space(uint32_t c)
{
	return c == ' ' || (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x1F) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
	       (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

/* Does \w match it: letters, numbers and the underscore. */
bool python_is_word(uint32_t c);
/* Does \d match it: decimal digits of any script. */
bool python_is_digit(uint32_t c);

/* Appends str.lower() of the text: Unicode's lower case, U+0130 as two characters, the sigma that ends a word as such. */
void python_lower(struct buffer *out, const char *text, size_t size);

#endif
