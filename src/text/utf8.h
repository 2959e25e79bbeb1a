/* UTF-8, one character at a time. */
#ifndef TEXT_UTF8_H
#define TEXT_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/text.h"

#define UTF8_INVALID UINT32_MAX

/* Reads the character at the start of `text` (size > 0) into *out and returns its size in bytes. Invalid UTF-8
 * gives UTF8_INVALID and the size of the maximal invalid part (WHATWG: the longest prefix of a valid character,
 * else one byte), so that each such part becomes one U+FFFD. Surrogates, overlong forms
 * and anything above U+10FFFF are invalid. */
static inline size_t utf8_decode(const char *text, size_t size, uint32_t *out)
{
	const unsigned char *s = (const unsigned char *)text;
	unsigned char first = s[0], low = 0x80, high = 0xBF; /* bounds of the second byte */
	size_t length;

	if (first < 0x80) {
		*out = first;
		return 1;
	}
	*out = UTF8_INVALID;
	if (first < 0xC2 || first > 0xF4)
		return 1;
	if (first < 0xE0) {
		length = 2;
	} else if (first < 0xF0) {
		length = 3;
		low = first == 0xE0 ? 0xA0 : 0x80;
		high = first == 0xED ? 0x9F : 0xBF;
	} else {
		length = 4;
		low = first == 0xF0 ? 0x90 : 0x80;
		high = first == 0xF4 ? 0x8F : 0xBF;
	}
	uint32_t character = first & (0x7Fu >> length);
	for (size_t i = 1; i < length; i++) {
		if (i >= size || s[i] < low || s[i] > high)
			return i;
		low = 0x80;
		high = 0xBF;
		character = character << 6 | (s[i] & 0x3F);
	}
	*out = character;
	return length;
}

/* The same for the last character of `text` (size > 0); an invalid byte counts by itself. */
static inline size_t utf8_decode_last(const char *text, size_t size, uint32_t *out)
{
	for (size_t length = 1; length <= 4 && length <= size; length++) {
		const char *start = text + size - length;
		if (((unsigned char)*start & 0xC0) == 0x80)
			continue;
		if (utf8_decode(start, length, out) == length && *out != UTF8_INVALID)
			return length;
		break;
	}
	*out = UTF8_INVALID;
	return 1;
}

/* Number of characters in valid UTF-8. */
size_t utf8_length(const char *text, size_t size);

/* A place in valid UTF-8 that moves forward, so that many places in a long text are numbered in one pass. Begin with
 * {.text = TEXT}. */
struct utf8_place {
	const char *text;
	size_t byte, character;
};
/* Moves to `byte` and returns the number of characters before it. Going back works, too, but counts from the start again. */
size_t utf8_place_at(struct utf8_place *place, size_t byte);

/* Offset of the byte at which character number `index` (from 0) begins: `size` for the one after the last, -1 beyond that. */
int64_t utf8_offset(const char *text, size_t size, int64_t index);

/* White space that is trimmed: Unicode's, and the byte order mark and zero-width space that editors
 * leave behind. */
static inline bool utf8_is_space(uint32_t c)
{
	return c == ' ' || (c >= '\t' && c <= '\r') || c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200B) ||
	       c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000 || c == 0xFEFF;
}

/* Ideographs, which are words by themselves in text without spaces. (BERT's own list of them is in tokenizer_normalize.c.) */
static inline bool utf8_is_ideograph(uint32_t c)
{
	return (c >= 0x3400 && c <= 0x9FFF) || (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x20000 && c <= 0x3FFFF);
}

/* East Asian writing without spaces between words: ideographs, kana, and their marks, but not Hangul. */
static inline bool utf8_is_unspaced(uint32_t c)
{
	return (c >= 0x2E80 && c <= 0xA4CF && !(c >= 0x3130 && c <= 0x318F)) || (c >= 0xF900 && c <= 0xFAFF) ||
	       (c >= 0xFE30 && c <= 0xFE4F) || (c >= 0xFF00 && c <= 0xFF9F) || (c >= 0x20000 && c <= 0x3FFFF);
}

/* Moves begin and end inwards past white space. */
void utf8_trim(const char *text, size_t *begin, size_t *end);

/* Number of bytes that do not belong to any valid character. */
int64_t utf8_count_invalid(const char *text, size_t size);

#endif
