/* The code of published regular expressions. */
#include "text/tokenizer/patterns.h"

#include <endian.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include "text/tokenizer/character_classes.h"
#include "text/utf8.h"

#define LONG_S 0x17F /* equals s when case does not matter */

/* The classes of the character at text[at], and its size; the text is known to be valid. */
static inline uint8_t class_at(const char *text, size_t at, size_t *length)
{
	const unsigned char *s = (const unsigned char *)text + at;
	*length = 1;
	if (s[0] < 0x80)
		return character_classes[s[0]];
	*length = s[0] < 0xE0 ? 2 : s[0] < 0xF0 ? 3 : 4;
	uint32_t c = s[0] & (0x7Fu >> *length);
	for (size_t i = 1; i < *length; i++)
		c = c << 6 | (s[i] & 0x3F);
	return character_classes[c];
}

/* Letters, numbers, white space, or anything else. */
static inline uint8_t kind_of(uint8_t classes)
{
	return classes & (CLASS_LETTER | CLASS_NUMBER | CLASS_SPACE);
}

/* How many ASCII letters a text begins with, unless it ends soon after them. Eight are looked at together: a loop over them would
 * end at a place that is hard to predict. Adding 0x80 - c to a byte below 0x80 sets its high bit exactly if it is at least c. */
static inline size_t ascii_letters(const char *text, size_t size)
{
	const uint64_t ones = 0x0101010101010101u, high = 0x80 * ones;
	size_t at = 0;
	for (uint64_t eight; size - at >= sizeof eight; at += sizeof eight) {
		memcpy(&eight, text + at, sizeof eight);
		eight = le64toh(eight);
		uint64_t lower = (eight & ~high) | 0x20 * ones;
		uint64_t letters = (lower + (0x80 - 'a') * ones) & ~(lower + (0x80 - 'z' - 1) * ones) & ~eight & high;
		if (letters != high)
			return at + (size_t)__builtin_ctzll(letters ^ high) / 8;
	}
	return at;
}

/* The end of the run of characters of one kind, of at most `most` characters. */
static inline size_t run_end(const char *text, size_t size, size_t at, uint8_t kind, size_t most)
{
	size_t length;
	if (kind == CLASS_LETTER)
		at += ascii_letters(text + at, size - at);
	for (; most > 0 && at < size && kind_of(class_at(text, at, &length)) == kind; most--)
		at += length;
	return at;
}

size_t end_of_kind(const char *text, size_t size, size_t at)
{
	size_t length;
	uint8_t kind = kind_of(class_at(text, at, &length));
	return run_end(text, size, at + length, kind, SIZE_MAX);
}

/* White space from `at` on: \s+(?!\S)|\s+ leaves the last character to the word behind it, if there are several. */
static size_t match_space(const char *text, size_t size, size_t at)
{
	size_t end = at, last = at, length;
	for (; end < size && class_at(text, end, &length) & CLASS_SPACE; end += length)
		last = end;
	return end < size && last > at ? last : end;
}

/* The size of 's, 't, 're, 've, 'm, 'll or 'd at text[at], or 0. */
static size_t contraction(const char *text, size_t size, size_t at, bool any_case)
{
	char a = at + 1 < size ? text[at + 1] : '\0', b = at + 2 < size ? text[at + 2] : '\0';
	uint32_t c;
	if (any_case && size - at > 2 && utf8_decode(text + at + 1, size - at - 1, &c) == 2 && c == LONG_S)
		return 3;
	if (any_case) {
		a = a >= 'A' && a <= 'Z' ? (char)(a + 'a' - 'A') : a;
		b = b >= 'A' && b <= 'Z' ? (char)(b + 'a' - 'A') : b;
	}
	if (a == 's' || a == 't' || a == 'm' || a == 'd')
		return 2;
	return (b == 'e' && (a == 'r' || a == 'v')) || (a == 'l' && b == 'l') ? 3 : 0;
}

size_t match_gpt2(const char *text, size_t size, size_t at)
{
	size_t begin = at, length;
	if (text[at] == '\'') {
		size_t short_form = contraction(text, size, at, false);
		if (short_form > 0)
			return at + short_form;
	}
	if (text[at] == ' ' && at + 1 < size)
		begin = at + 1;
	uint8_t kind = kind_of(class_at(text, begin, &length));
	return kind == CLASS_SPACE ? match_space(text, size, at) : run_end(text, size, begin + length, kind, SIZE_MAX);
}

static bool is_line_end(char c)
{
	return c == '\r' || c == '\n';
}

/* That of OpenAI's cl100k: a word may follow any one character, numbers have at most `digits` digits, and line ends end white
 * space. */
static size_t match_cl100k(const char *text, size_t size, size_t at, size_t digits)
{
	size_t length, next;
	uint8_t kind = kind_of(class_at(text, at, &length));
	if (text[at] == '\'') {
		size_t short_form = contraction(text, size, at, true);
		if (short_form > 0)
			return at + short_form;
	}
	if (kind == CLASS_LETTER)
		return run_end(text, size, at, CLASS_LETTER, SIZE_MAX);
	if (kind == CLASS_NUMBER)
		return run_end(text, size, at, CLASS_NUMBER, digits);
	if (!is_line_end(text[at]) && at + length < size && kind_of(class_at(text, at + length, &next)) == CLASS_LETTER)
		return run_end(text, size, at + length, CLASS_LETTER, SIZE_MAX);
	size_t begin = text[at] == ' ' ? at + 1 : at, end = run_end(text, size, begin, 0, SIZE_MAX);
	if (end > begin) {
		while (end < size && is_line_end(text[end]))
			end++;
		return end;
	}
	size_t space = run_end(text, size, at, CLASS_SPACE, SIZE_MAX);
	for (end = space; end > at; end--)
		if (is_line_end(text[end - 1]))
			return end;
	return match_space(text, size, at);
}

static size_t match_three_digits(const char *text, size_t size, size_t at)
{
	return match_cl100k(text, size, at, 3);
}

static size_t match_one_digit(const char *text, size_t size, size_t at)
{
	return match_cl100k(text, size, at, 1);
}

static size_t match_spaces(const char *text, size_t size, size_t at)
{
	return run_end(text, size, at, CLASS_SPACE, SIZE_MAX);
}

static size_t match_number(const char *text, size_t size, size_t at)
{
	return run_end(text, size, at, CLASS_NUMBER, 1);
}

static size_t match_numbers(const char *text, size_t size, size_t at)
{
	return run_end(text, size, at, CLASS_NUMBER, SIZE_MAX);
}

static size_t match_three_numbers(const char *text, size_t size, size_t at)
{
	return run_end(text, size, at, CLASS_NUMBER, 3);
}

static size_t match_several_blanks(const char *text, size_t size, size_t at)
{
	size_t end = at;
	while (end < size && text[end] == ' ')
		end++;
	return end - at >= 2 ? end : at;
}

pattern_match *pattern_find(const char *expression)
{
	/* clang-format off */
	static const struct {
		const char *expression;
		pattern_match *match;
	} patterns[] = {
		{"'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+", match_gpt2},
		{"'(?:[sdmt]|ll|ve|re)| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+", match_gpt2},
		{"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|"
		 "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+", match_three_digits},
		{"'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*|\\s*[\\r\\n]|"
		 "\\s+(?!\\S)|\\s+", match_three_digits},
		{"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|"
		 "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+", match_one_digit},
		{"\\s+", match_spaces},
		{"\\p{N}", match_number},
		{"\\p{N}+", match_numbers},
		{"\\p{N}{1,3}", match_three_numbers},
		{" {2,}", match_several_blanks},
	};
	/* clang-format on */
	for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++)
		if (strcmp(patterns[i].expression, expression) == 0)
			return patterns[i].match;
	return NULL;
}
