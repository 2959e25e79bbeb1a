/* Python's \w, \d, and str.lower(), by utf8proc. */
#include "text/python_text.h"

#include <utf8proc.h>
#include "text/unicode.h"
#include "text/utf8.h"

#define CAPITAL_SIGMA 0x3A3
#define SMALL_SIGMA 0x3C3
#define FINAL_SIGMA 0x3C2
#define CAPITAL_I_WITH_DOT 0x130

bool python_is_word(uint32_t c)
{
	switch (utf8proc_category((utf8proc_int32_t)c)) {
	case UTF8PROC_CATEGORY_LU:
	case UTF8PROC_CATEGORY_LL:
	case UTF8PROC_CATEGORY_LT:
	case UTF8PROC_CATEGORY_LM:
	case UTF8PROC_CATEGORY_LO:
	case UTF8PROC_CATEGORY_ND:
	case UTF8PROC_CATEGORY_NL:
	case UTF8PROC_CATEGORY_NO: return true;
	default: return c == '_';
	}
}

bool python_is_digit(uint32_t c)
{
	return utf8proc_category((utf8proc_int32_t)c) == UTF8PROC_CATEGORY_ND;
}

static void put(struct buffer *out, uint32_t c)
{
	char bytes[4];
	buffer_append(out, bytes, utf8_encode(c, bytes));
}

/* True if the nearest character before `at` (cased_after: from `at` on) that is not case-ignorable is cased. */
static bool cased_before(const char *text, size_t at)
{
	while (at > 0) {
		uint32_t c;
		at -= utf8_decode_last(text, at, &c);
		uint8_t flags = c == UTF8_INVALID ? 0 : unicode_flags(UNICODE_GOOGLE, c);
		if (!(flags & UNICODE_IGNORABLE))
			return flags & UNICODE_CASED;
	}
	return false;
}

static bool cased_after(const char *text, size_t size, size_t at)
{
	while (at < size) {
		uint32_t c;
		at += utf8_decode(text + at, size - at, &c);
		uint8_t flags = c == UTF8_INVALID ? 0 : unicode_flags(UNICODE_GOOGLE, c);
		if (!(flags & UNICODE_IGNORABLE))
			return flags & UNICODE_CASED;
	}
	return false;
}

void python_lower(struct buffer *out, const char *text, size_t size)
{
	for (size_t at = 0, length; at < size; at += length) {
		uint32_t c;
		length = utf8_decode(text + at, size - at, &c);
		if (c == UTF8_INVALID) {
			buffer_append(out, text + at, length);
		} else if (c == CAPITAL_SIGMA) {
			bool final = cased_before(text, at) && !cased_after(text, size, at + length);
			put(out, final ? FINAL_SIGMA : SMALL_SIGMA);
		} else if (c == CAPITAL_I_WITH_DOT) {
			put(out, 'i');
			put(out, 0x307);
		} else {
			put(out, unicode_lowercase(UNICODE_GOOGLE, c));
		}
	}
}
