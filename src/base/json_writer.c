#include "base/json.h"

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
			buffer_text(out, "\xEF\xBF\xBD");     /* U+FFFD: what we write is always valid */
		else if (text_is_control(at, length, &shown)) /* of which JSON asks for those below U+0020 */
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

/* Comma, line break and key before a value. */
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

/* The fewest digits that read back as the same double, or (is_float) the same float. */
static void put_number(struct json_writer *writer, const char *key, double value, bool is_float)
{
	if (!isfinite(value)) {
		json_put_null(writer, key);
		return;
	}
	locale_t before = uselocale(json_locale());
	char text[40];
	for (int digits = 1; digits <= 17; digits++) {
		snprintf(text, sizeof text, "%.*g", digits, value);
		if (is_float ? strtof(text, NULL) == (float)value : strtod(text, NULL) == value)
			break;
	}
	uselocale(before);
	member_begin(writer, key);
	buffer_text(writer->out, text);
	if (!strpbrk(text, ".e")) /* a reader with types should see a fraction, not an integer */
		buffer_text(writer->out, ".0");
}

void json_put_double(struct json_writer *writer, const char *key, double value)
{
	put_number(writer, key, value, false);
}

void json_put_decimal(struct json_writer *writer, const char *key, double value)
{
	if (!isfinite(value)) {
		json_put_null(writer, key);
		return;
	}
	member_begin(writer, key);
	buffer_double(writer->out, value);
}

void json_put_float(struct json_writer *writer, const char *key, float value)
{
	put_number(writer, key, value, true);
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

void json_put_written(struct json_writer *writer, const char *key, const char *value)
{
	member_begin(writer, key);
	buffer_text(writer->out, value);
}
