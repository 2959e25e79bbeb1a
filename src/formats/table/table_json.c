/* Tables of JSON objects, one per line or in one list. Each object is parsed separately, so that an error in one is reported with
 * its line and does not affect the others. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/json.h"
#include "base/memory.h"
#include "base/string_index.h"
#include "formats/table/table_internal.h"
#include "formats/text_file.h"

struct json_reader {
	struct table *table;
	struct bad_records *bad;
	struct string_index columns;
	int64_t object;       /* its number, from 1 */
	int64_t *last_object; /* [column_count] number of the last object that had the column: no object may have one twice */
	int64_t last_object_capacity;
	struct buffer path, list;
	int64_t line; /* first line of the object */
};

static enum status find_column(struct json_reader *reader, const char *name, int64_t *out)
{
	struct table *table = reader->table;
	const char *copy;

	*out = string_index_find(&reader->columns, name);
	if (*out >= 0)
		return OK;
	if (table->column_count == INT32_MAX)
		return error_set(ERR_DATA, "'%s', line %lld: too many different keys", table->name, (long long)reader->line);
	TRY(string_store_copy(&table->strings, name, strlen(name), &copy));
	TRY(memory_grow(&reader->last_object, &reader->last_object_capacity, table->column_count + 1, sizeof *reader->last_object,
			"columns of a table"));
	reader->last_object[table->column_count] = 0;
	TRY(table_add_column(table, copy));
	return string_index_add(&reader->columns, copy, table->column_count - 1, out);
}

/* Writes a value back as JSON text: lists are kept in that form. */
static void write_value(struct json_writer *writer, const struct json *value)
{
	switch (value->kind) {
	case JSON_NULL: json_put_null(writer, value->key); break;
	case JSON_BOOL: json_put_bool(writer, value->key, value->boolean); break;
	case JSON_NUMBER:
		if (value->is_integer)
			json_put_integer(writer, value->key, value->integer);
		else
			json_put_double(writer, value->key, value->number);
		break;
	case JSON_STRING: json_put_text(writer, value->key, value->text, value->text_size); break;
	default:
		json_open(writer, value->key, value->kind == JSON_OBJECT ? '{' : '[');
		for (const struct json *child = value->first_child; child; child = child->next)
			write_value(writer, child);
		json_close(writer);
	}
}

static enum status text_of(struct json_reader *reader, const struct json *value, const char **out, size_t *out_size)
{
	switch (value->kind) {
	case JSON_BOOL: *out = value->boolean ? "true" : "false"; break;
	case JSON_ARRAY: {
		struct json_writer writer = {.out = &reader->list};
		struct json unnamed = *value;
		unnamed.key = NULL;
		buffer_clear(&reader->list);
		write_value(&writer, &unnamed);
		TRY(buffer_status(&reader->list));
		*out = buffer_string(&reader->list);
		break;
	}
	default:
		if (strlen(value->text) != value->text_size)
			return error_set(ERR_DATA, "'%s', line %lld: the text of \"%.200s\" has a NUL in it", reader->table->name,
					 (long long)reader->line, buffer_string(&reader->path));
		*out = value->text;
	}
	*out_size = strlen(*out);
	return OK;
}

static enum status take_value(struct json_reader *reader, const struct json *value)
{
	int64_t column;
	const char *text = "", *copy;
	size_t size = 0;

	TRY(buffer_status(&reader->path));
	TRY(find_column(reader, buffer_string(&reader->path), &column));
	if (reader->last_object[column] == reader->object)
		return error_set(ERR_DATA, "'%s', line %lld: \"%.200s\" stands for two values", reader->table->name,
				 (long long)reader->line, buffer_string(&reader->path));
	reader->last_object[column] = reader->object;
	if (value->kind == JSON_NULL)
		return OK;
	TRY(text_of(reader, value, &text, &size));
	TRY(string_store_copy(&reader->table->strings, text, size, &copy));
	TRY(table_add_field(reader->table, copy, (int32_t)column));
	reader->table->field_kinds[reader->table->field_total - 1] = value->kind == JSON_ARRAY    ? FIELD_LIST
								     : value->kind == JSON_NUMBER ? FIELD_NUMBER
												  : FIELD_TEXT;
	return OK;
}

/* The recursion depth is bounded by the parser. */
static enum status take_members(struct json_reader *reader, const struct json *object)
{
	size_t size = reader->path.size;
	for (const struct json *member = object->first_child; member; member = member->next) {
		reader->path.size = size;
		if (size > 0)
			buffer_char(&reader->path, '.');
		buffer_text(&reader->path, member->key);
		TRY(member->kind == JSON_OBJECT ? take_members(reader, member) : take_value(reader, member));
	}
	reader->path.size = size;
	return OK;
}

static enum status take_root(struct json_reader *reader, const struct json *root)
{
	struct table *table = reader->table;

	if (root->kind != JSON_OBJECT)
		return error_set(ERR_DATA, "'%s', line %lld: not a JSON object", table->name, (long long)reader->line);
	int64_t fields = table->row_count > 0
				 ? table->rows[table->row_count - 1].first_field + table->rows[table->row_count - 1].field_count
				 : 0;
	TRY(table_add_row(table, reader->line));
	buffer_clear(&reader->path);
	enum status status = take_members(reader, root);
	if (status != OK) {
		table->row_count--;
		table->field_total = fields;
	}
	return status;
}

/* Takes one object of the text; `line` is the line in which it begins. */
static enum status take_object(struct json_reader *reader, const char *text, size_t size, int64_t line)
{
	struct json_document document;
	const char *name = reader->table->name;

	reader->line = line;
	reader->object++;
	enum status status = text_check(name, line, text, size);
	if (status == OK)
		status = json_parse(&document, "", text, size);
	else
		return bad_record(reader->bad, status);
	if (status == ERR_DATA) {
		const char *reason = strstr(error_last()->message, "JSON: ");
		char copy[512];
		snprintf(copy, sizeof copy, "%.500s", reason ? reason : error_last()->message);
		return bad_record(reader->bad, error_set(ERR_DATA, "'%s', line %lld: %s of it", name, (long long)line, copy));
	}
	TRY(status);
	status = take_root(reader, document.root);
	json_release(&document);
	return status == OK ? OK : bad_record(reader->bad, status);
}

/* Objects of JSON text sequences (RFC 7464) begin with RS. */
static bool is_white(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\x1E';
}

/* A file that contains one object spread over several lines is not a table. */
static enum status refuse_one_object(const struct table *table)
{
	struct json_document document;
	if (json_parse(&document, table->name, buffer_string(&table->text), table->text.size) != OK)
		return OK;
	json_release(&document);
	return error_hinted(error_set(ERR_DATA, "'%s': this is one JSON object over several lines, not a table", table->name),
			    "write one object per line, or a list of objects: [{...}, {...}]");
}

static enum status read_lines(struct json_reader *reader)
{
	const char *text = buffer_string(&reader->table->text);
	size_t size = reader->table->text.size;
	int64_t line = reader->table->first_line;
	bool first = true;

	for (size_t at = 0; at < size; line++) {
		const char *newline = memchr(text + at, '\n', size - at);
		size_t end = newline ? (size_t)(newline - text) : size, begin = at;
		at = end + 1;
		while (begin < end && is_white(text[begin]))
			begin++;
		while (end > begin && is_white(text[end - 1]))
			end--;
		if (begin == end) {
			reader->table->blank_lines++;
			continue;
		}
		if (first && text[end - 1] != '}') /* "{" and no more? */
			TRY(refuse_one_object(reader->table));
		first = false;
		TRY(take_object(reader, text + begin, end - begin, line));
	}
	return OK;
}

/* The end of the value that begins at `at`: the comma or bracket that follows it, ignoring those in strings. */
static size_t end_of_value(const char *text, size_t size, size_t at)
{
	int64_t depth = 0;
	for (; at < size; at++) {
		char c = text[at];
		if (c == '"') {
			for (at++; at < size && text[at] != '"' && text[at] != '\n'; at++)
				at += text[at] == '\\';
		} else if (c == '{' || c == '[') {
			depth++;
		} else if (depth == 0 && (c == ',' || c == ']' || c == '}')) {
			return at;
		} else if (c == '}' || c == ']') {
			depth--;
		}
	}
	return size;
}

static size_t skip_white(const char *text, size_t size, size_t at, int64_t *line)
{
	for (; at < size && (is_white(text[at]) || text[at] == '\n'); at++)
		*line += text[at] == '\n';
	return at;
}

static enum status list_error(const struct table *table, int64_t line, const char *reason)
{
	return error_hinted(error_set(ERR_DATA, "'%s', line %lld: %s", table->name, (long long)line, reason),
			    "the file is read as a list of JSON objects: [{...}, {...}]; make it again");
}

static enum status read_array(struct json_reader *reader)
{
	const char *text = buffer_string(&reader->table->text);
	size_t size = reader->table->text.size;
	int64_t line = 1;
	size_t at = skip_white(text, size, 0, &line) + 1; /* after the bracket */

	at = skip_white(text, size, at, &line);
	if (at < size && text[at] == ']')
		return OK;
	for (;;) {
		size_t end = end_of_value(text, size, at);
		if (end >= size)
			return list_error(reader->table, line, "the list of objects has no end; the last of them begins here");
		TRY(take_object(reader, text + at, end - at, line));
		for (size_t i = at; i < end; i++)
			line += text[i] == '\n';
		if (text[end] != ',')
			return text[end] == ']' && skip_white(text, size, end + 1, &line) == size
				       ? OK
				       : list_error(reader->table, line, "more text after the list of objects");
		at = skip_white(text, size, end + 1, &line);
	}
}

enum status table_read_json(struct table *table, const struct table_options *options)
{
	struct json_reader reader = {.table = table, .bad = options->bad};
	enum status status = OK;
	for (int64_t i = 0, at; table->like && i < table->like->column_count && status == OK; i++)
		status = find_column(&reader, table->like->columns[i], &at);
	if (status == OK)
		status = table->form == TABLE_JSON_LINES ? read_lines(&reader) : read_array(&reader);
	string_index_release(&reader.columns);
	free(reader.last_object);
	buffer_release(&reader.path);
	buffer_release(&reader.list);
	buffer_release(&table->text); /* all strings were copied */
	return status;
}
