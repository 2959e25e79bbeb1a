/* Where the lines of a text end. */
#include "formats/line_ends.h"

#include <string.h>
#include "base/log.h"

/* Passes over a run of CRs. */
static size_t pass_returns(const char *text, size_t size, size_t at)
{
	while (at < size && text[at] == '\r')
		at++;
	return at;
}

int64_t line_ends_stray(const char *text, size_t size)
{
	int64_t count = 0;
	for (const char *at = text; size > 0 && (at = memchr(at, '\r', size - (size_t)(at - text))) != NULL;) {
		size_t begin = (size_t)(at - text), end = pass_returns(text, size, begin);
		if (end < size && text[end] != '\n')
			count += (int64_t)(end - begin);
		at = text + end;
	}
	return count;
}

bool line_ends_are_cr(const char *text, size_t size, bool whole)
{
	if (size >= LINE_ENDS_BYTES) {
		size = LINE_ENDS_BYTES;
		whole = false;
	}
	const char *newline = size > 0 ? memchr(text, '\n', size) : NULL;
	size_t end = newline ? (size_t)(newline - text) : size;
	if (!newline && whole)
		return size > 0 && memchr(text, '\r', size);
	return line_ends_stray(text, end) > 1;
}

void line_ends_mend(char *text, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (text[i] == '\r' && (i + 1 == size || text[i + 1] != '\n'))
			text[i] = '\n';
}

size_t line_ends_trim(const char *line, size_t size)
{
	while (size > 0 && line[size - 1] == '\r')
		size--;
	return size;
}

void line_ends_warn(const char *name, int64_t stray)
{
	char count[FORMAT_BYTES];
	if (stray > 0)
		log_warning("'%s': %s within lines, which end in LF: taken as white space; write LF where a line is to end", name,
			    format_counted(count, stray, "CR", "CRs"));
}
