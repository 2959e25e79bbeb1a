/* Collects the names by which a header is recognized. */
#include "tasks/header_hints.h"

#include <stdlib.h>
#include <string.h>
#include "base/memory.h"
#include "base/numbers.h"

/* Training records the columns of a file without a header by this name and their number. */
#define UNNAMED "column "

static bool is_number(const char *text, size_t size)
{
	return size > 0 && strspn(text, "-0123456789") >= size;
}

static bool is_unnamed(const char *text, size_t size)
{
	size_t skip = strlen(UNNAMED);
	return size > skip && memcmp(text, UNNAMED, skip) == 0 && is_number(text + skip, size - skip);
}

static enum status add(struct header_hints *hints, const char *name, size_t size)
{
	if (size == 0 || is_number(name, size) || is_unnamed(name, size))
		return OK;
	TRY(memory_grow(&hints->given, &hints->capacity, hints->count + 2, sizeof *hints->given, "names of columns"));
	TRY(string_store_copy(&hints->strings, name, size, &hints->given[hints->count]));
	hints->given[++hints->count] = NULL;
	return OK;
}

/* A comma may also be part of a name. */
static enum status add_all(struct header_hints *hints, const char *names)
{
	if (!names)
		return OK;
	if (strchr(names, ','))
		TRY(add(hints, names, strlen(names)));
	for (const char *at = names; *at;) {
		size_t length = strcspn(at, ",");
		TRY(add(hints, at, length));
		at += length + (at[length] == ',');
	}
	return OK;
}

/* The last of the columns given; 0: there are none, or some are not numbers from 1. */
static int64_t last_number(const char *const *given, size_t count)
{
	int64_t last = 0;
	for (size_t i = 0; i < count; i++) {
		for (const char *at = given[i]; at && *at; at += *at == ',') {
			char *end;
			long long number = strtoll(at, &end, 10);
			if (end == at || number < 1 || (*end != '\0' && *end != ','))
				return 0;
			last = larger(last, number);
			at = end;
		}
	}
	return last;
}

enum status header_hints_find(struct header_hints *hints, const struct column_choice *given, const struct column_choice *trained,
			      const char *more, const char *const *usual, struct table_options *out)
{
	const char *const names[] = {given->text,   given->pair,    given->label, given->id, trained->text,
				     trained->pair, trained->label, trained->id,  more};
	const char *const asked_for[] = {given->text, given->pair, given->label, given->id, more};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		TRY(add_all(hints, names[i]));
	if (out->least_fields == 0)
		out->least_fields = last_number(asked_for, sizeof asked_for / sizeof *asked_for);
	out->known_names = usual;
	out->given_names = hints->given;
	out->rather_no_header = trained->text && is_unnamed(trained->text, strlen(trained->text));
	return OK;
}

void header_hints_release(struct header_hints *hints)
{
	free(hints->given);
	string_store_release(&hints->strings);
	*hints = (struct header_hints){0};
}

void header_hints_describe(const struct table *table, struct buffer *out)
{
	int64_t longer = 0;
	for (int64_t i = 0; i < table->row_count && table->form == TABLE_DELIMITED; i++)
		longer += table->rows[i].field_count > table->column_count;
	if (longer > 0)
		buffer_format(out, "; %lld row%s more fields, which are not used", (long long)longer,
			      longer == 1 ? " has" : "s have");
	if (table->odd_name)
		buffer_format(out, "; the first line, %s'%.60s', is taken as %s, not as a header",
			      table->column_count > 1 ? "with " : "", table->odd_name,
			      table->column_count > 1 ? "a row" : "a text");
	else if (table->has_header && table->column_count == 1)
		buffer_format(out, "; the first line, '%.60s', is taken as a header", table->columns[0]);
}
