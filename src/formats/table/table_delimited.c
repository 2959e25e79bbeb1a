/* Reads tables whose fields are separated by tabs or commas. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/memory.h"
#include "formats/table/table_internal.h"
#include "formats/text_file.h"

/* Terminates the field with a NUL, overwriting the character after it, and turns "" into one quote. */
static const char *end_field(char *text, const struct field_range *field)
{
	size_t to = field->begin;
	for (size_t from = field->begin; from < field->end; from++) {
		text[to++] = text[from];
		from += field->quoted && field->doubled && text[from] == '"';
	}
	text[to] = '\0';
	return text + field->begin;
}

static enum status problem_of(const struct table *table, const struct splitter *splitter)
{
	const char *name = table->name;
	long long line = splitter->record_line, field = splitter->problem_field;
	enum status status = OK;
	if (splitter->problem == RECORD_UNTERMINATED)
		status = error_set(ERR_DATA, "'%s', line %lld: the quote that opens field %lld never ends", name, line, field);
	else if (splitter->problem == RECORD_TRAILING_TEXT)
		status = error_set(ERR_DATA, "'%s', line %lld: text after the quote that closes field %lld", name, line, field);
	if (status != OK)
		error_hint(
			"within a quoted field a quote is written twice (\"\"); or give --on_bad_record skip to leave such rows "
			"out and count them");
	return status;
}

static enum status refuse_field_count(const struct table *table, const struct splitter *splitter, int64_t expected)
{
	enum status status = error_set(ERR_DATA, "'%s', line %lld: %lld field%s where the other rows have %lld", table->name,
				       (long long)splitter->record_line, (long long)splitter->field_count,
				       splitter->field_count == 1 ? "" : "s", (long long)expected);
	char delimiter[4] = {'\'', table->delimiter, '\''};
	error_hint("fields are separated by %s here: is one missing, or one too many? Correct the line, or give --on_bad_record "
		   "skip to leave such rows out and count them",
		   table->delimiter == '\t' ? "tabs" : delimiter);
	return status;
}

static enum status check_record(struct table *table, struct splitter *splitter, size_t begin, int64_t expected, int64_t least)
{
	TRY(text_check(table->name, splitter->record_line, splitter->text + begin, splitter->at - begin));
	TRY(problem_of(table, splitter));
	if (least > 0 && splitter->field_count < least)
		return error_set(ERR_DATA, "'%s', line %lld: %lld field%s where at least %lld are needed", table->name,
				 (long long)splitter->record_line, (long long)splitter->field_count,
				 splitter->field_count == 1 ? "" : "s", (long long)least);
	if (least == 0 && splitter->field_count != expected)
		return refuse_field_count(table, splitter, expected);
	return OK;
}

static enum status add_record(struct table *table, const struct splitter *splitter)
{
	TRY(table_add_row(table, splitter->record_line));
	for (int64_t i = 0; i < splitter->field_count; i++)
		TRY(table_add_field(table, end_field(table->text.data, &splitter->fields[i]), 0));
	return OK;
}

static enum status read_records(struct table *table, struct splitter *splitter, int64_t expected, int64_t least,
				const struct table_options *options)
{
	for (;;) {
		bool end;
		size_t begin = splitter->at;
		TRY(splitter_next(splitter, &end));
		if (end)
			return OK;
		if (splitter->blank && (expected > 1 || options->skips_empty)) {
			table->blank_lines++;
			continue;
		}
		enum status status = check_record(table, splitter, begin, expected, least);
		if (status == OK)
			status = add_record(table, splitter);
		else
			status = bad_record(options->bad, status);
		if (status != OK)
			return status;
		if (splitter->problem != RECORD_FINE)
			splitter_resume(splitter);
	}
}

/* Takes the name of a column from the first row, without the spaces around it. */
static enum status take_name(struct table *table, int64_t column)
{
	const char *name = table->fields[table->rows[0].first_field + column];
	size_t size = strlen(name);
	table_trim_name(&name, &size);
	return string_store_copy(&table->strings, name, size, &table->columns[column]);
}

/* Moves the first rows away. Empty ones in front of a header are no rows. */
static void drop_rows(struct table *table, int64_t count)
{
	table->row_count -= count;
	memmove(table->rows, table->rows + count, (size_t)table->row_count * sizeof *table->rows);
}

/* Whether the first row that is not empty has the names of the columns; it then becomes the first. */
static bool find_header(struct table *table, const struct table_options *options)
{
	struct table below = *table;
	while (below.row_count > 0 && below.rows[0].field_count == 1 && !*below.fields[below.rows[0].first_field]) {
		below.rows++;
		below.row_count--;
	}
	if (options->header == TABLE_NO || below.row_count == 0 ||
	    (options->header == TABLE_DETECT && !table_first_row_is_header(&below, table->hint, options)))
		return false;
	drop_rows(table, table->row_count - below.row_count);
	return true;
}

/* Takes the column names from the first row, or makes them up. */
static enum status name_columns(struct table *table, int64_t count, const struct table_options *options)
{
	char name[32];
	const char *copy;

	for (int64_t i = 0; i < count; i++) {
		snprintf(name, sizeof name, "column %lld", (long long)i + 1);
		TRY(string_store_copy(&table->strings, name, strlen(name), &copy));
		TRY(table_add_column(table, copy));
	}
	table->has_header = find_header(table, options);
	if (!table->has_header) {
		if (options->header == TABLE_DETECT)
			table->odd_name = table_name_in_first_row(table, options->known_names);
		return OK;
	}
	for (int64_t i = 0; i < count && i < table->rows[0].field_count; i++)
		TRY(take_name(table, i));
	drop_rows(table, 1);
	return OK;
}

/* Takes the columns of the first piece, which had the header. */
static enum status take_columns(struct table *table)
{
	for (int64_t i = 0; i < table->like->column_count; i++) {
		const char *copy, *name = table->like->columns[i];
		TRY(string_store_copy(&table->strings, name, strlen(name), &copy));
		TRY(table_add_column(table, copy));
	}
	return OK;
}

enum status table_read_delimited(struct table *table, const struct table_options *options)
{
	int64_t expected = table->like ? table->like->column_count : 0;

	if (!table->like)
		TRY(table_usual_fields(table, &expected));
	int64_t least = table->delimiter == '\t' && options->least_fields <= expected ? options->least_fields : 0;
	struct splitter splitter = {.text = buffer_string(&table->text),
				    .size = table->text.size,
				    .line = table->first_line,
				    .delimiter = table->delimiter,
				    .quoted = table->quoted};
	enum status status = read_records(table, &splitter, expected, least, options);
	splitter_release(&splitter);
	if (status == OK && table->like)
		return take_columns(table);
	if (status == OK)
		status = name_columns(table, expected, options);
	return status;
}
