/* Appending to growing byte strings, with a single allocation function that remembers failures. */
#include "base/buffer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* Makes room for `count` more bytes and the NUL. */
static bool buffer_reserve(struct buffer *buffer, size_t count)
{
	size_t needed;
	if (buffer->failed || __builtin_add_overflow(buffer->size, count, &needed) ||
	    __builtin_add_overflow(needed, (size_t)1, &needed)) {
		buffer->failed = true;
		return false;
	}
	if (needed <= buffer->capacity)
		return true;
	/* Doubling: n one-byte appends copy fewer than 2 n bytes in total. */
	size_t capacity = buffer->capacity < 64 ? 64 : buffer->capacity;
	while (capacity < needed)
		capacity = capacity > SIZE_MAX / 2 ? needed : capacity * 2;
	size_t added = capacity - buffer->capacity;
	char *data = memory_has_room(added) ? realloc(buffer->data, capacity) : NULL;
	if (!data) {
		buffer->failed = true;
		return false;
	}
	data[buffer->size] = '\0';
	buffer->data = data;
	buffer->capacity = capacity;
	return true;
}

void buffer_append(struct buffer *buffer, const void *bytes, size_t count)
{
	if (!buffer_reserve(buffer, count))
		return;
	if (count)
		memcpy(buffer->data + buffer->size, bytes, count);
	buffer->size += count;
	buffer->data[buffer->size] = '\0';
}

char *buffer_room(struct buffer *buffer, size_t count)
{
	return buffer_reserve(buffer, count) ? buffer->data + buffer->size : NULL;
}

void buffer_advance(struct buffer *buffer, size_t count)
{
	BUG_IF(count >= buffer->capacity - buffer->size);
	buffer->size += count;
	buffer->data[buffer->size] = '\0';
}

void buffer_text(struct buffer *buffer, const char *text)
{
	buffer_append(buffer, text, strlen(text));
}

void buffer_char(struct buffer *buffer, char c)
{
	buffer_append(buffer, &c, 1);
}

void buffer_format(struct buffer *buffer, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	int needed = vsnprintf(NULL, 0, format, arguments); /* measure first, so that any length fits */
	va_end(arguments);
	if (needed < 0) {
		buffer->failed = true;
		return;
	}
	if (!buffer_reserve(buffer, (size_t)needed))
		return;
	va_start(arguments, format);
	vsnprintf(buffer->data + buffer->size, (size_t)needed + 1, format, arguments);
	va_end(arguments);
	buffer->size += (size_t)needed;
}

void buffer_clear(struct buffer *buffer)
{
	buffer->size = 0;
	buffer->failed = false;
	if (buffer->data)
		buffer->data[0] = '\0';
}

void buffer_release(struct buffer *buffer)
{
	free(buffer->data);
	*buffer = (struct buffer){0};
}

enum status buffer_status(const struct buffer *buffer)
{
	if (!buffer->failed)
		return OK;
	return error_set(ERR_RESOURCE, "not enough memory to grow a text of %zu bytes", buffer->size);
}

const char *buffer_string(const struct buffer *buffer)
{
	return buffer->data ? buffer->data : "";
}

void buffer_double(struct buffer *buffer, double value)
{
	char text[40], digits[24];
	for (int precision = 0; precision < 17; precision++) {
		snprintf(text, sizeof text, "%.*e", precision, value);
		if (strtod(text, NULL) == value)
			break;
	}
	const char *mark = strchr(text, 'e'); /* only the digits are taken, whatever the locale's decimal point */
	int exponent = (int)strtol(mark + 1, NULL, 10), count = 0;
	for (const char *p = text; p < mark; p++)
		if (*p >= '0' && *p <= '9')
			digits[count++] = *p;
	digits[count] = 0;
	if (text[0] == '-')
		buffer_char(buffer, '-');
	if (exponent < -4 || exponent >= 16)
		buffer_format(buffer, "%c%s%se%c%02d", digits[0], count > 1 ? "." : "", digits + 1, exponent < 0 ? '-' : '+',
			      abs(exponent));
	else if (exponent < 0)
		buffer_format(buffer, "0.%.*s%s", -exponent - 1, "0000", digits);
	else if (count <= exponent + 1)
		buffer_format(buffer, "%s%.*s.0", digits, exponent + 1 - count, "0000000000000000");
	else
		buffer_format(buffer, "%.*s.%s", exponent + 1, digits, digits + exponent + 1);
}
