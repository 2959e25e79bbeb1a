/* What the lines of a table say before the rest of it is known. */
#include <string.h>
#include <strings.h>
#include "formats/table_internal.h"

bool table_line_has_known_name(const char *line, size_t size, char delimiter, const char *const *known_names)
{
	struct splitter splitter = {.text = line, .size = size, .delimiter = delimiter, .quoted = true};
	bool end, known = false;
	if (splitter_next(&splitter, &end) == OK && !end)
		for (int64_t i = 0; i < splitter.field_count && !known; i++) {
			size_t length = splitter.fields[i].end - splitter.fields[i].begin;
			for (const char *const *name = known_names; name && *name && !known; name++)
				known = strlen(*name) == length &&
					strncasecmp(*name, line + splitter.fields[i].begin, length) == 0;
		}
	splitter_release(&splitter);
	return known;
}

void table_look_at_first_line(struct table_start *out, const char *line, size_t size, const char *const *known_names)
{
	static const char delimiters[] = {'\t', ',', ';', '|'};
	*out = (struct table_start){.delimiter = 0};
	for (size_t i = 0; i < sizeof(delimiters) && !out->delimiter; i++) {
		bool names = table_begins_with_names(line, size, delimiters[i]);
		if (!memchr(line, delimiters[i], size) || (i > 0 && !names))
			continue;
		out->delimiter = delimiters[i];
		out->may_be_header = names;
	}
	for (size_t i = 0; i < size; i++)
		out->delimiters += out->delimiter && line[i] == out->delimiter;
	out->may_be_header = out->may_be_header || table_line_has_known_name(line, size, out->delimiter, known_names);
}

bool table_ends_within_row(const struct table_start *start, const char *text, size_t size)
{
	struct splitter splitter = {.text = text, .size = size, .delimiter = start->delimiter, .quoted = true};
	bool end = !start->delimiter || !memchr(text, '"', size);
	size_t row = 0; /* where the last one begins */
	while (!end) {
		size_t begin = splitter.at;
		if (splitter_next(&splitter, &end) != OK)
			break;
		row = end ? row : begin;
	}
	bool open = splitter.problem == RECORD_UNTERMINATED;
	splitter_release(&splitter);
	if (!open || start->delimiter != '\t')
		return open;
	/* Between tabs, quotes may be ordinary characters: then the line is a row if it has all its fields. */
	const char *newline = memchr(text + row, '\n', size - row), *limit = newline ? newline : text + size;
	int64_t delimiters = 0;
	for (const char *at = text + row; at < limit; at++)
		delimiters += *at == '\t';
	return delimiters < start->delimiters;
}
