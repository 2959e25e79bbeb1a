/* Splits delimited text into records and fields, either only at delimiters and line ends or with quotes as in RFC 4180. Lines end
 * with LF, and any CRs before it. */
#include <stdlib.h>
#include <string.h>
#include "base/memory.h"
#include "formats/table/table_internal.h"

static enum status add_field(struct splitter *splitter, struct field_range field)
{
	TRY(memory_grow(&splitter->fields, &splitter->field_capacity, splitter->field_count + 1, sizeof *splitter->fields,
			"fields of a row"));
	splitter->fields[splitter->field_count++] = field;
	return OK;
}

static bool ends_field(const struct splitter *splitter, size_t at)
{
	if (at < splitter->size && splitter->delimiter && splitter->text[at] == splitter->delimiter)
		return true;
	while (at < splitter->size && splitter->text[at] == '\r')
		at++;
	return at == splitter->size || splitter->text[at] == '\n';
}

/* Where the field goes on to from `at`. A run of CRs is passed at once, whether it ends the line or is part of the field. */
static size_t find_end(const struct splitter *splitter, size_t at)
{
	while (!ends_field(splitter, at))
		for (at++; at < splitter->size && splitter->text[at - 1] == '\r' && splitter->text[at] == '\r';)
			at++;
	return at;
}

/* Moves *at past the closing quote of the field whose text begins there; false if there is none. */
static bool pass_quoted(struct splitter *splitter, size_t *at, struct field_range *field)
{
	for (;;) {
		const char *quote = memchr(splitter->text + *at, '"', splitter->size - *at);
		size_t end = quote ? (size_t)(quote - splitter->text) : splitter->size;
		for (const char *p = splitter->text + *at; (p = memchr(p, '\n', (size_t)(splitter->text + end - p))); p++) {
			splitter->line++;
			if (!splitter->second_line)
				splitter->second_line = (size_t)(p - splitter->text) + 1;
		}
		*at = end;
		if (!quote)
			return false;
		*at += 1;
		if (*at == splitter->size || splitter->text[*at] != '"') {
			field->end = end;
			return true;
		}
		field->doubled = true;
		*at += 1;
	}
}

/* Takes one field, from *at to the delimiter or line end that follows it. */
static enum status take_field(struct splitter *splitter, size_t *at)
{
	struct field_range field = {.begin = *at};
	if (splitter->quoted && *at < splitter->size && splitter->text[*at] == '"') {
		field.quoted = true;
		field.begin = ++*at;
		if (!pass_quoted(splitter, at, &field)) {
			splitter->problem = RECORD_UNTERMINATED;
			splitter->problem_field = splitter->field_count + 1;
			field.end = *at;
			return add_field(splitter, field);
		}
		if (!ends_field(splitter, *at) && splitter->problem == RECORD_FINE) {
			splitter->problem = RECORD_TRAILING_TEXT;
			splitter->problem_field = splitter->field_count + 1;
		}
	}
	*at = find_end(splitter, *at);
	if (!field.quoted)
		field.end = *at;
	return add_field(splitter, field);
}

enum status splitter_next(struct splitter *splitter, bool *out_end)
{
	size_t at = splitter->at;

	*out_end = at >= splitter->size;
	if (*out_end)
		return OK;
	splitter->field_count = 0;
	splitter->record_line = splitter->line;
	splitter->problem = RECORD_FINE;
	splitter->second_line = 0;
	splitter->blank = ends_field(splitter, at) && splitter->text[at] != splitter->delimiter;
	for (;;) {
		TRY(take_field(splitter, &at));
		if (at == splitter->size || splitter->text[at] != splitter->delimiter || !splitter->delimiter)
			break;
		at++;
	}
	while (at < splitter->size && splitter->text[at] == '\r')
		at++;
	if (at < splitter->size) {
		at++;
		splitter->line++;
	}
	if (!splitter->second_line)
		splitter->second_line = at;
	splitter->at = at;
	return OK;
}

void splitter_resume(struct splitter *splitter)
{
	splitter->at = splitter->second_line;
	splitter->line = splitter->record_line + 1;
}

void splitter_release(struct splitter *splitter)
{
	free(splitter->fields);
	splitter->fields = NULL;
}
