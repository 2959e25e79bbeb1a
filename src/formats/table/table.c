/* Reads tables of any form into one block of fields, and answers questions about rows and columns. */
#include "formats/table.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "base/log.h"
#include "base/memory.h"
#include "base/option.h"
#include "base/text.h"
#include "formats/table/table_internal.h"
#include "formats/text_file.h"

static enum table_hint hint_of(const char *path)
{
	static const char *const packings[] = {".gz", ".bz2", ".zst", ".xz", ""};
	static const struct {
		const char *end;
		enum table_hint hint;
	} ends[] = {{".tsv", HINT_TSV}, {".tab", HINT_TSV}, {".csv", HINT_CSV}};
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
		for (size_t j = 0; j < sizeof packings / sizeof *packings; j++) {
			char end[16];
			snprintf(end, sizeof end, "%s%s", ends[i].end, packings[j]);
			size_t size = strlen(path), end_size = strlen(end);
			if (size > end_size && strcasecmp(path + size - end_size, end) == 0)
				return ends[i].hint;
		}
	}
	return HINT_NONE;
}

static enum status take_form(struct table *table)
{
	table->form = table->like->form;
	table->delimiter = table->like->delimiter;
	table->quoted = table->like->quoted;
	table->separator = table->like->separator;
	if (table->separator)
		table_replace_separator(table);
	table->has_header = table->like->has_header;
	return OK;
}

/* Reads a table whose text and name are already set. */
static enum status read_text(struct table *out, const char *path, const struct table_options *options)
{
	out->hint = hint_of(path);
	enum status status = out->like ? take_form(out) : table_detect(out, out->hint, options);
	if (status == OK)
		status = out->form == TABLE_DELIMITED ? table_read_delimited(out, options) : table_read_json(out, options);
	return status;
}

enum status table_read(struct table *out, const char *path, const struct table_options *options)
{
	struct text_file file;

	*out = (struct table){.first_line = 1};
	TRY(text_file_read(&file, path, TEXT_FILE_LIMIT));
	out->text = file.text;
	enum status status = string_store_copy(&out->strings, file.name, strlen(file.name), &out->name);
	if (status == OK)
		status = read_text(out, path, options);
	if (status != OK)
		table_release(out);
	return status;
}

enum status table_read_piece(struct table *out, const struct table_piece *piece, const struct table_options *options)
{
	*out = (struct table){.is_piece = true, .first_line = piece->first_line, .like = piece->like};
	buffer_append(&out->text, piece->text, piece->size);
	enum status status = buffer_status(&out->text);
	if (status == OK)
		status = string_store_copy(&out->strings, piece->name, strlen(piece->name), &out->name);
	if (status == OK)
		status = read_text(out, piece->name, options);
	if (status == OK && out->form == TABLE_JSON_ARRAY) {
		status =
			error_set(ERR_USAGE, "'%s' holds a list of JSON objects, which cannot be read line by line", piece->name);
		error_hint("write one object per line");
	}
	out->like = NULL;
	if (status != OK)
		table_release(out);
	return status;
}

enum status table_copy_form(struct table *out, const struct table *of)
{
	*out = (struct table){.form = of->form,
			      .delimiter = of->delimiter,
			      .separator = of->separator,
			      .quoted = of->quoted,
			      .has_header = of->has_header};
	enum status status = string_store_copy(&out->strings, of->name, strlen(of->name), &out->name);
	for (int64_t i = 0; i < of->column_count && status == OK; i++) {
		const char *copy;
		status = string_store_copy(&out->strings, of->columns[i], strlen(of->columns[i]), &copy);
		if (status == OK)
			status = table_add_column(out, copy);
	}
	if (status != OK)
		table_release(out);
	return status;
}

void table_release(struct table *table)
{
	free(table->columns);
	free(table->rows);
	free(table->fields);
	free(table->field_columns);
	free(table->field_kinds);
	buffer_release(&table->text);
	string_store_release(&table->strings);
	*table = (struct table){0};
}

/* The index of the field, or -1. */
static int64_t find_field(const struct table *table, int64_t row, int64_t column)
{
	const struct table_row *at = &table->rows[row];
	BUG_IF(row < 0 || row >= table->row_count || column < 0 || column >= table->column_count);
	if (!table->field_columns)
		return column < at->field_count ? at->first_field + column : -1;
	for (int32_t i = 0; i < at->field_count; i++)
		if (table->field_columns[at->first_field + i] == column)
			return at->first_field + i;
	return -1;
}

const char *table_field(const struct table *table, int64_t row, int64_t column)
{
	int64_t field = find_field(table, row, column);
	return field < 0 ? NULL : table->fields[field];
}

bool table_lacks(const struct table *table, int64_t row, int64_t column)
{
	bool is_json = table->form == TABLE_JSON_LINES || table->form == TABLE_JSON_ARRAY;
	return is_json && column >= 0 && !table_field(table, row, column);
}

enum table_field_kind table_field_kind(const struct table *table, int64_t row, int64_t column)
{
	int64_t field = find_field(table, row, column);
	return field >= 0 && table->field_kinds ? (enum table_field_kind)table->field_kinds[field] : FIELD_TEXT;
}

int64_t table_find_column(const struct table *table, const char *name)
{
	for (int64_t i = 0; i < table->column_count; i++)
		if (strcmp(table->columns[i], name) == 0)
			return i;
	for (int64_t i = 0; i < table->column_count; i++)
		if (strcasecmp(table->columns[i], name) == 0)
			return i;
	return -1;
}

enum status table_check_name(const struct table *table, int64_t column)
{
	const char *name = table->columns[column];
	int64_t count = 0;
	for (int64_t i = 0; i < table->column_count; i++)
		count += strcmp(table->columns[i], name) == 0;
	if (count < 2)
		return OK;
	struct buffer columns = {0};
	table_list_columns(table, &columns);
	char often[32] = "twice";
	if (count > 2)
		snprintf(often, sizeof often, "%lld times", (long long)count);
	enum status status = error_set(ERR_USAGE, "'%s': column '%.200s' occurs %s; give its number: its columns are %.800s",
				       table->name, name, often, buffer_string(&columns));
	buffer_release(&columns);
	return status;
}

/* Whether columns have names; without a header, they only have numbers. */
static bool has_names(const struct table *table)
{
	return table->form != TABLE_DELIMITED || table->has_header;
}

enum status table_choose_column(const struct table *table, const char *name_or_number, int64_t *out)
{
	struct buffer columns = {0};
	char *end;

	*out = table_find_column(table, name_or_number);
	if (*out >= 0)
		return table_check_name(table, *out);
	errno = 0;
	long long number = strtoll(name_or_number, &end, 10);
	if (errno == 0 && *end == '\0' && number >= 1 && number <= table->column_count) {
		*out = number - 1;
		return OK;
	}
	table_list_columns(table, &columns);
	enum status status = error_set(ERR_USAGE, "'%s' has no column '%.200s'; its columns are %.800s", table->name,
				       name_or_number, buffer_string(&columns));
	const char *near = *end ? nearest_name(name_or_number, table->columns, table->column_count) : NULL;
	if (!has_names(table))
		error_hint("no header was found in the file: name a column by its number, from 1");
	else if (near)
		error_hint("did you mean %s?", near);
	buffer_release(&columns);
	return status;
}

void table_list_columns(const struct table *table, struct buffer *out)
{
	if (table->column_count == 0)
		buffer_text(out, "none");
	else if (!has_names(table))
		buffer_format(out, "1 to %lld, without names", (long long)table->column_count);
	for (int64_t i = 0; i < table->column_count && has_names(table); i++)
		buffer_format(out, "%s%lld %s", i ? ", " : "", (long long)i + 1, table->columns[i]);
}

void table_describe(const struct table *table, struct buffer *out)
{
	char count[FORMAT_BYTES];
	const char *form = table->form == TABLE_JSON_LINES   ? "JSON lines"
			   : table->form == TABLE_JSON_ARRAY ? "a JSON list of objects"
			   : table->separator ? table->separator[0] == '|' ? "fields between '|||'" : "fields between two tabs"
			   : table->delimiter == '\t' ? "TSV"
			   : table->delimiter == ','  ? "CSV"
			   : table->delimiter         ? "fields"
						      : "one text a line";
	buffer_text(out, form);
	if (table->form == TABLE_DELIMITED) {
		if (table->delimiter && table->delimiter != '\t' && table->delimiter != ',')
			buffer_format(out, " between '%c'", table->delimiter);
		buffer_text(out, table->has_header ? " with a header" : " without a header");
		if (table->delimiter == '\t' && table->quoted)
			buffer_text(out, ", fields quoted");
	}
	buffer_format(out, ", %s", format_counted(count, table->column_count, "column", "columns"));
	if (has_names(table)) {
		for (int64_t i = 0; i < table->column_count && i < 12; i++)
			buffer_format(out, "%s%.60s", i ? ", " : " (", table->columns[i]);
		buffer_text(out, table->column_count > 12 ? ", ...)" : table->column_count > 0 ? ")" : "");
	}
	if (table->is_piece) /* the total number of rows is not known yet */
		return;
	buffer_format(out, ", %s", format_counted(count, table->row_count, "row", "rows"));
	if (table->blank_lines > 0)
		buffer_format(out, ", %s skipped", format_counted(count, table->blank_lines, "empty line", "empty lines"));
}
