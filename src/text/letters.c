/* Counts ideographs and other letters. */
#include "text/letters.h"

#include "text/python_text.h"
#include "text/utf8.h"

void text_letters_count(const char *text, size_t size, struct text_letters *sum)
{
	for (size_t at = 0; at < size;) {
		uint32_t c;
		at += utf8_decode(text + at, size - at, &c);
		if (utf8_is_ideograph(c))
			sum->ideographs++;
		else if (c != UTF8_INVALID && python_is_word(c) && !python_is_digit(c))
			sum->others++;
	}
}
