/* Writes JSON into a buffer, with numbers in the fewest digits that read back as the same value. */
#include "base/json.h"

#include <float.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/json_internal.h"
#include "base/text.h"

static void put_quoted(struct buffer *out, const char *text, size_t size)
{
	buffer_char(out, '"');
	for (size_t i = 0; i < size;) {
		const unsigned char *at = (const unsigned char *)text + i;
		unsigned char c = *at;
		size_t length = text_utf8_length(at, size - i), shown;
		if (c == '"' || c == '\\')
			buffer_format(out, "\\%c", c);
		else if (c == '\n')
			buffer_text(out, "\\n");
		else if (c == '\t')
			buffer_text(out, "\\t");
		else if (length == 0)
			buffer_text(out, "\xEF\xBF\xBD");     /* U+FFFD: the output is always valid UTF-8 */
		else if (text_is_control(at, length, &shown)) /* JSON requires this only below U+0020 */
			buffer_format(out, "\\u%04x", (unsigned)text_code_point(at, length));
		else
			buffer_append(out, text + i, length);
		i += length ? length : 1;
	}
	buffer_char(out, '"');
}

static void line_break(struct json_writer *writer)
{
	if (writer->indent == 0)
		return;
	buffer_char(writer->out, '\n');
	for (int i = 0; i < writer->depth * writer->indent; i++)
		buffer_char(writer->out, ' ');
}

/* Writes the comma, line break, and key before a value. */
static void member_begin(struct json_writer *writer, const char *key)
{
	if (writer->depth == 0)
		return;
	int level = writer->depth - 1;
	BUG_IF((writer->kind[level] == '{') != (key != NULL));
	if (writer->has_member[level])
		buffer_char(writer->out, ',');
	writer->has_member[level] = true;
	line_break(writer);
	if (key) {
		put_quoted(writer->out, key, strlen(key));
		buffer_text(writer->out, writer->indent ? ": " : ":");
	}
}

void json_open(struct json_writer *writer, const char *key, char bracket)
{
	BUG_IF(bracket != '{' && bracket != '[');
	BUG_IF(writer->depth == (int)sizeof writer->kind);
	member_begin(writer, key);
	buffer_char(writer->out, bracket);
	writer->kind[writer->depth] = bracket;
	writer->has_member[writer->depth] = false;
	writer->depth++;
}

void json_close(struct json_writer *writer)
{
	BUG_IF(writer->depth == 0);
	writer->depth--;
	if (writer->has_member[writer->depth])
		line_break(writer);
	buffer_char(writer->out, writer->kind[writer->depth] == '{' ? '}' : ']');
}

void json_put_string(struct json_writer *writer, const char *key, const char *value)
{
	json_put_text(writer, key, value, strlen(value));
}

void json_put_text(struct json_writer *writer, const char *key, const char *bytes, size_t size)
{
	member_begin(writer, key);
	put_quoted(writer->out, bytes, size);
}

void json_put_integer(struct json_writer *writer, const char *key, int64_t value)
{
	member_begin(writer, key);
	buffer_format(writer->out, "%" PRId64, value);
}

/* Writes a number of `count` digits, the first of which is worth 10^exponent, as Python does: in exponential notation below 1e-4
 * and from 1e16 on, and always with a fraction or an exponent, so that a typed reader does not take it for an integer. */
static void put_digits(struct buffer *out, bool negative, int64_t number, int count, int exponent)
{
	char digits[16], text[32], *to = text;
	for (int i = count; i-- > 0; number /= 10)
		digits[i] = (char)('0' + number % 10);
	if (negative)
		*to++ = '-';
	bool has_exponent = exponent < -4 || exponent >= 16;
	int whole = has_exponent ? 1 : exponent + 1; /* digits before the point */
	if (whole <= 0) {
		*to++ = '0';
		*to++ = '.';
		for (int i = whole; i < 0; i++)
			*to++ = '0';
	}
	for (int i = 0; i < count || i < whole; i++) {
		if (i == whole && i > 0)
			*to++ = '.';
		*to++ = i < count ? digits[i] : '0';
	}
	if (has_exponent) {
		*to++ = 'e';
		*to++ = exponent < 0 ? '-' : '+';
		*to++ = (char)('0' + abs(exponent) / 10);
		*to++ = (char)('0' + abs(exponent) % 10);
	} else if (whole >= count) {
		*to++ = '.';
		*to++ = '0';
	}
	buffer_append(out, text, (size_t)(to - text));
}

/* Writes the fewest digits that read back as the same float, if its first nine digits are the integer part of an exact product
 * with a power of ten (24 bits times 5^17 fit in 64); otherwise returns false. Vectors are written as thousands of numbers, and
 * trying each number of digits with the C library takes many times as long. */
static bool put_float_digits(struct buffer *out, float value)
{
	static const long double powers[] = {1e0L, 1e1L,  1e2L,  1e3L,  1e4L,  1e5L,  1e6L,  1e7L,  1e8L,
					     1e9L, 1e10L, 1e11L, 1e12L, 1e13L, 1e14L, 1e15L, 1e16L, 1e17L};
	float size = fabsf(value);
	int exponent = 8, binary;
	if (LDBL_MANT_DIG < 64 || size < 1e-9L || size >= 1e8f) /* 1e-9f is a little less than 1e-9 */
		return false;
	while (size < 1e8L / powers[8 - exponent])
		exponent--;
	long double scale = powers[8 - exponent], exact = size * scale;
	float fraction = frexpf(size, &binary);
	/* Half the distance to the floats above and below: a number closer than that reads back as this one, and one exactly
	 * there does if this float is even. Below a power of two the distance is half as large. */
	long double above = ldexpl(scale, binary - 25), below = fraction == 0.5f ? above / 2 : above;
	bool even = ((int32_t)ldexpf(fraction, 24) & 1) == 0;
	for (int count = 1; count <= 9; count++) {
		int64_t unit = (int64_t)powers[9 - count], number = (int64_t)rintl(exact / (long double)unit);
		long double difference = (long double)(number * unit) - exact;
		if (difference > above || -difference > below || (!even && (difference == above || -difference == below)))
			continue;
		bool carries = number == (int64_t)powers[count];
		put_digits(out, signbit(value), carries ? number / 10 : number, count, exponent + carries);
		return true;
	}
	return false;
}

void json_put_double(struct json_writer *writer, const char *key, double value)
{
	if (!isfinite(value)) {
		json_put_null(writer, key);
		return;
	}
	member_begin(writer, key);
	buffer_double(writer->out, value);
}

/* Like put_float_digits, but for any float. So few digits are also the shortest form of the nearest double. */
static void put_any_float(struct buffer *out, float value)
{
	char text[40];
	for (int precision = 0; precision < 9; precision++) {
		snprintf(text, sizeof text, "%.*e", precision, (double)value);
		if (strtof(text, NULL) == value)
			break;
	}
	buffer_double(out, strtod(text, NULL));
}

void json_put_float(struct json_writer *writer, const char *key, float value)
{
	if (!isfinite(value)) {
		json_put_null(writer, key);
		return;
	}
	member_begin(writer, key);
	if (!put_float_digits(writer->out, value))
		put_any_float(writer->out, value);
}

void json_put_bool(struct json_writer *writer, const char *key, bool value)
{
	member_begin(writer, key);
	buffer_text(writer->out, value ? "true" : "false");
}

void json_put_null(struct json_writer *writer, const char *key)
{
	member_begin(writer, key);
	buffer_text(writer->out, "null");
}

void json_put_again(struct json_writer *writer, const char *key, const struct json *value)
{
	if (value && value->kind == JSON_STRING)
		json_put_text(writer, key, value->text, value->text_size);
	else if (value && value->kind == JSON_NUMBER)
		json_put_written(writer, key, value->text);
}

void json_put_written(struct json_writer *writer, const char *key, const char *value)
{
	member_begin(writer, key);
	buffer_text(writer->out, value);
}
