/* What the lines of a table say before the rest of it is known. */
#include <string.h>
#include "formats/table/table_internal.h"

void table_look_at_first_line(struct table_start *out, const char *line, size_t size, const char *const *known_names,
			      const char *const *given_names)
{
	static const char delimiters[] = {'\t', ',', ';', '|'};
	const struct table_options options = {.known_names = known_names, .given_names = given_names};
	*out = (struct table_start){.delimiter = 0};
	for (size_t i = 0; i < sizeof delimiters && !out->delimiter; i++) {
		if (!memchr(line, delimiters[i], size))
			continue;
		bool names = table_names_of_line(line, size, delimiters[i], &options).may_be_header;
		if (i > 0 && !names)
			continue;
		out->delimiter = delimiters[i];
		out->may_be_header = names;
	}
	for (size_t i = 0; i < size; i++)
		out->delimiters += out->delimiter && line[i] == out->delimiter;
	struct table_names names = table_names_of_line(line, size, out->delimiter, &options);
	out->may_be_header = out->may_be_header || names.known + names.given > 0;
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
