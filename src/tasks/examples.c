/* Turns the rows of a table into examples. */
#include "tasks/examples.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/memory.h"
#include "tasks/example_columns.h"
#include "tasks/header_hints.h"
#include "tasks/labels.h"

static enum status copy(struct example_set *set, const char *text, size_t size, const char **out)
{
	return string_store_copy(&set->strings, text, size, out);
}

static enum status row_error(const struct table *table, int64_t row, const char *what)
{
	return error_set(ERR_DATA, "'%s', line %lld: %s", table->name, (long long)table->rows[row].line, what);
}

static bool is_blank(const char *text)
{
	return text[strspn(text, " \t\r\n")] == '\0';
}

/* A text of the row; "" if there is none. */
static const char *text_at(const struct table *table, int64_t row, int64_t column)
{
	const char *text = column < 0 ? NULL : table_field(table, row, column);
	return text ? text : "";
}

/* "the beginning" + " " + "of a choice". */
static enum status add_choice(struct example_set *set, struct example_text *example, const char *stem, const char *choice)
{
	struct buffer text = {0};
	buffer_format(&text, "%s%s%s", stem, *stem && *choice ? " " : "", choice);
	enum status status = buffer_status(&text);
	if (status == OK)
		status =
			memory_grow(&set->choices, &set->choice_capacity, set->choice_count + 1, sizeof *set->choices, "choices");
	if (status == OK)
		status = copy(set, buffer_string(&text), text.size, &set->choices[set->choice_count]);
	if (status == OK) {
		set->choice_count++;
		example->choice_count++;
	}
	buffer_release(&text);
	return status;
}

static enum status bad_list(const struct table *table, int64_t row, const char *before, const char *what, const char *behind)
{
	char text[64];
	snprintf(text, sizeof text, "%s %s%s", before, what, behind);
	return row_error(table, row, text);
}

/* The choices of a list: ["a", "b"], or [{"text": "a", "label": "A"}, ...]. */
static enum status add_list(struct example_set *set, struct example_text *example, const char *stem, const char *what,
			    const char *list, const struct table *table, int64_t row)
{
	struct json_document document = {0};
	enum status status = json_parse(&document, table->name, list, strlen(list));
	if (status != OK || document.root->kind != JSON_ARRAY) {
		json_release(&document);
		status = bad_list(table, row, "the", what, "s are not a list");
		error_hint("write them as JSON, such as [\"a\", \"b\"], or give each a column of its own: %s0, %s1, ...", what,
			   what);
		return status;
	}
	for (const struct json *item = document.root->first_child; item && status == OK; item = item->next) {
		const struct json *text = item->kind == JSON_OBJECT ? json_member(item, "text") : item;
		if (!text || (text->kind != JSON_STRING && text->kind != JSON_NUMBER) || strlen(text->text) != text->text_size)
			status = bad_list(table, row, "a", what, " is not a string");
		else
			status = add_choice(set, example, stem, text->text);
	}
	json_release(&document);
	return status;
}

/* The choices of several columns. Only the last ones may be missing: behind a gap, a label would mean another choice. */
static enum status add_columns(struct example_set *set, struct example_text *example, const char *stem,
			       const struct example_columns *columns, const struct table *table, int64_t row)
{
	const char *gap = NULL;
	for (int64_t i = 0; i < columns->choice_count; i++) {
		const char *choice = table_field(table, row, columns->choices[i]), *name = table->columns[columns->choices[i]];
		char what[256];
		if (!choice) {
			gap = gap ? gap : name;
			continue;
		}
		if (gap) {
			snprintf(what, sizeof what, "the row has '%.80s', but no '%.80s': only the last choices may be missing",
				 name, gap);
			return row_error(table, row, what);
		}
		TRY(add_choice(set, example, stem, choice));
	}
	return OK;
}

static enum status take_choices(struct example_set *set, const struct example_columns *columns, const struct table *table,
				int64_t row, struct example_text *example)
{
	const char *stem = text_at(table, row, columns->pair);

	example->first_choice = set->choice_count;
	if (columns->choice_list >= 0) {
		TRY(add_list(set, example, stem, "choice", text_at(table, row, columns->choice_list), table, row));
	} else {
		TRY(add_columns(set, example, stem, columns, table, row));
	}
	if (example->choice_count < 2)
		return row_error(table, row, "there are fewer than two choices");
	for (int32_t i = 0; i < example->choice_count; i++)
		if (is_blank(set->choices[example->first_choice + i]))
			return row_error(table, row, "a choice is empty");
	return OK;
}

/* What was said before the text: one column each, any of which may hold a list. Empty ones are left out. */
static enum status take_contexts(struct example_set *set, const struct example_columns *columns, const struct table *table,
				 int64_t row, struct example_text *example)
{
	example->first_choice = set->choice_count;
	for (int64_t i = 0; i < columns->choice_count; i++) {
		const char *context = text_at(table, row, columns->choices[i]);
		if (table_field_kind(table, row, columns->choices[i]) == FIELD_LIST)
			TRY(add_list(set, example, "", "context", context, table, row));
		else if (!is_blank(context))
			TRY(add_choice(set, example, "", context));
	}
	return OK;
}

/* The names of the columns that have a 1, as a list. */
static enum status take_flags(struct example_set *set, const struct example_columns *columns, const struct table *table,
			      int64_t row, struct example_text *example)
{
	struct buffer list = {0};
	struct json_writer writer = {.out = &list};
	enum status status = OK;
	json_open(&writer, NULL, '[');
	for (int64_t i = 0; i < columns->flag_count && status == OK; i++) {
		const char *name = table->columns[columns->flags[i]], *field = table_field(table, row, columns->flags[i]);
		bool flag;
		if (!field || !label_flag(field, &flag))
			status = error_set(ERR_DATA, "'%s', line %lld: column '%.100s' has '%.40s', neither 0 nor 1", table->name,
					   (long long)table->rows[row].line, name, field ? field : "");
		else if (flag)
			json_put_string(&writer, NULL, name);
	}
	json_close(&writer);
	if (status == OK)
		status = buffer_status(&list);
	if (status == OK)
		status = copy(set, buffer_string(&list), list.size, &example->label);
	example->lists_labels = true;
	buffer_release(&list);
	return status;
}

static enum status take_label(struct example_set *set, const struct example_options *options,
			      const struct example_columns *columns, const struct table *table, int64_t row,
			      struct example_text *example)
{
	char what[256];
	if (columns->flag_count > 0)
		return example_drop_label(set, example, options->needs_labels, take_flags(set, columns, table, row, example));
	example->label = columns->label < 0 ? NULL : table_field(table, row, columns->label);
	example->lists_labels = example->label && table_field_kind(table, row, columns->label) == FIELD_LIST;
	bool none_is_fine = options->target == TARGET_CLASSES && example->label; /* no label applies */
	if (example->label && !*example->label && !none_is_fine)
		example->label = NULL;
	if (!example->label && options->needs_labels) {
		snprintf(what, sizeof what, "the row has no %s (column '%.150s')",
			 options->input == TASK_INPUT_DIALOGUE ? "rewritten text" : "label", table->columns[columns->label]);
		return row_error(table, row, what);
	}
	const struct layout *layout = options->layout;
	if (example->label && layout && layout->renamed[0] && strcmp(example->label, layout->renamed[0]) == 0)
		example->label = layout->renamed[1];
	return OK;
}

/* A text of the row. An empty text may be allowed, but a row without this field is an error: its JSON object has other
 * members. */
static enum status take_text(const struct example_options *options, const struct table *table, int64_t row, int64_t column,
			     const char *which, const char **out)
{
	char what[256];
	*out = text_at(table, row, column);
	if (table_lacks(table, row, column)) {
		snprintf(what, sizeof what, "the row has no '%.150s', which holds the %s", table->columns[column], which);
		return row_error(table, row, what);
	}
	snprintf(what, sizeof what, "the %s is empty", which);
	return options->allows_empty || !is_blank(*out) ? OK : row_error(table, row, what);
}

static enum status take_row(struct example_set *set, const struct example_options *options, const struct example_columns *columns,
			    const struct table *table, int64_t row, struct example_text *example)
{
	*example = (struct example_text){
		.file = table->name, .line = table->rows[row].line, .table = set->table_count - 1, .row = row, .text = ""};
	if (columns->id >= 0)
		example->id = table_field(table, row, columns->id);
	example->id_is_number = example->id && table_field_kind(table, row, columns->id) == FIELD_NUMBER;
	if (columns->text >= 0)
		TRY(take_text(options, table, row, columns->text, "text", &example->text));
	if (options->input == TASK_INPUT_CHOICES) {
		TRY(take_choices(set, columns, table, row, example));
	} else if (options->input == TASK_INPUT_DIALOGUE) {
		TRY(take_contexts(set, columns, table, row, example));
	} else if (columns->pair >= 0) {
		TRY(take_text(options, table, row, columns->pair, "second text", &example->pair));
	}
	return take_label(set, options, columns, table, row, example);
}

/* Is the row part of the task? */
static bool is_wanted(const struct example_columns *columns, const struct table *table, int64_t row)
{
	return columns->filter < 0 || strcmp(text_at(table, row, columns->filter), columns->only) == 0;
}

static enum status take_rows(struct example_set *set, const struct example_options *options,
			     const struct example_columns *columns, const struct table *table)
{
	TRY(memory_grow(&set->examples, &set->capacity, set->count + table->row_count, sizeof *set->examples, "examples"));
	int64_t left_out = 0;
	char count[FORMAT_BYTES];
	for (int64_t row = 0; row < table->row_count; row++) {
		int64_t choices = set->choice_count;
		bool wanted = is_wanted(columns, table, row);
		if (!wanted && !columns->filters_labels) {
			left_out++;
			continue;
		}
		enum status status = take_row(set, options, columns, table, row, &set->examples[set->count]);
		if (status == OK) {
			if (!wanted)
				set->examples[set->count].label = NULL;
			set->count++;
			continue;
		}
		set->choice_count = choices;
		TRY(bad_record(options->bad, status));
	}
	if (left_out > 0 && !options->piece)
		log_note("'%s': %s left out, whose '%s' is not '%s'", table->name, format_counted(count, left_out, "row", "rows"),
			 table->columns[columns->filter], columns->only);
	return OK;
}

static void log_file(const struct table *table, const struct example_set *set, const struct example_columns *columns,
		     const struct example_options *options)
{
	struct buffer text = {0};
	table_describe(table, &text);
	header_hints_describe(table, &text);
	if (set->columns.text)
		buffer_format(&text, "; text: %s", set->columns.text);
	const bool by_turns = options->input == TASK_INPUT_DIALOGUE;
	if (set->columns.pair)
		buffer_format(&text, "; %s: %s",
			      options->input == TASK_INPUT_CHOICES ? "beginning of the choices"
			      : by_turns                           ? "said before"
								   : "second text",
			      set->columns.pair);
	buffer_format(&text, "; %s: %s", by_turns ? "rewritten" : "label", set->columns.label ? set->columns.label : "none");
	if (columns->filter >= 0 && !columns->filters_labels)
		buffer_format(&text, "; only rows whose '%s' is '%s'", table->columns[columns->filter], columns->only);
	log_note("'%s': %s", table->name, buffer_string(&text));
	buffer_release(&text);
}

static const char *name_of(const struct table *table, int64_t column)
{
	return column < 0 ? NULL : table->columns[column];
}

/* Joins the names of several columns, of labels or contexts, for the record: "a,b,c". */
static enum status join_names(struct example_set *set, const struct table *table, const int64_t *columns, int64_t count,
			      const char **out)
{
	struct buffer names = {0};
	for (int64_t i = 0; i < count; i++)
		buffer_format(&names, "%s%s", i > 0 ? "," : "", table->columns[columns[i]]);
	enum status status = buffer_status(&names);
	if (status == OK)
		status = copy(set, buffer_string(&names), names.size, out);
	buffer_release(&names);
	return status;
}

/* Finds the columns of a file or of its first piece; later pieces have the same. */
static enum status settle_columns(struct example_set *set, const struct table *table, const struct example_options *options,
				  const struct example_columns **out)
{
	const struct example_piece *piece = options->piece;
	*out = piece ? piece->columns : NULL;
	if (*out)
		return OK;
	example_columns_free(set->found);
	set->found = NULL;
	TRY(memory_new(&set->found, 1, sizeof *set->found, "columns"));
	*out = set->found;
	return example_columns_find(set->found, table, options, set->columns.text ? &set->columns : NULL);
}

static enum status open_table(struct table *table, const char *path, const struct example_options *options)
{
	struct table_options form = {.header = options->header,
				     .delimiter = options->delimiter,
				     .least_fields = options->layout ? options->layout->least_columns : 0,
				     .skips_empty = !options->allows_empty,
				     .bad = options->bad};
	struct header_hints hints = {0};
	const struct example_piece *piece = options->piece;
	enum status status = header_hints_find(&hints, &options->given, &options->trained, NULL, header_names, &form);
	if (status == OK)
		status = piece ? table_read_piece(table, &piece->table, &form) : table_read(table, path, &form);
	header_hints_release(&hints);
	return status;
}

static enum status read_table(struct example_set *set, struct table *table, const char *path,
			      const struct example_options *options)
{
	const struct example_columns *columns;
	const struct example_piece *piece = options->piece;
	const bool goes_on = piece && piece->table.like;
	int64_t before = set->count;

	TRY(open_table(table, path, options));
	set->table_count++;
	if (goes_on && table->row_count == 0)
		return OK;
	if (table->row_count == 0)
		return error_set(ERR_DATA, "'%s': there are no rows in it%s", table->name,
				 options->bad->count > 0 ? " that can be used" : "");
	TRY(settle_columns(set, table, options, &columns));
	set->columns = (struct column_choice){name_of(table, columns->text), name_of(table, columns->pair),
					      name_of(table, columns->label), name_of(table, columns->id)};
	set->has_pairs = columns->pair >= 0;
	set->has_labels = columns->label >= 0 || columns->flag_count > 0;
	set->has_ids = columns->id >= 0;
	if (columns->flag_count > 0)
		TRY(join_names(set, table, columns->flags, columns->flag_count, &set->columns.label));
	if (options->input == TASK_INPUT_DIALOGUE && columns->choice_count > 0)
		TRY(join_names(set, table, columns->choices, columns->choice_count, &set->columns.pair));
	if (!goes_on)
		log_file(table, set, columns, options);
	TRY(take_rows(set, options, columns, table));
	if (set->count == before && !goes_on)
		return error_set(ERR_DATA, "'%s': none of its rows can be used", table->name);
	return OK;
}

void example_columns_free(struct example_columns *columns)
{
	if (columns) {
		free(columns->choices);
		free(columns->flags);
	}
	free(columns);
}

enum status example_set_read(struct example_set *set, const char *path, const struct example_options *options)
{
	TRY(memory_grow(&set->tables, &set->table_capacity, set->table_count + 1, sizeof *set->tables, "tables"));
	return read_table(set, &set->tables[set->table_count], path, options);
}

enum status example_set_add(struct example_set *set, const char *text, const char *pair)
{
	TRY(memory_grow(&set->examples, &set->capacity, set->count + 1, sizeof *set->examples, "examples"));
	set->examples[set->count] = (struct example_text){.text = text, .pair = pair, .line = set->count + 1};
	set->count++;
	return OK;
}

enum status example_drop_label(struct example_set *set, struct example_text *example, bool needs_labels, enum status status)
{
	if (status != ERR_DATA || needs_labels)
		return status;
	example->label = NULL;
	set->unread.skip = true;
	return bad_record(&set->unread, status);
}

void example_log_unread(const struct bad_records *unread, const char *path)
{
	char count[FORMAT_BYTES];
	if (unread->count > 0)
		log_note("'%s': %s taken as absent, since %s cannot be read%s: %s", path,
			 format_counted(count, unread->count, "label is", "labels are"), unread->count == 1 ? "it" : "they",
			 unread->count == 1 ? "" : "; the first because", unread->first.message);
}

int64_t example_texts(const struct example_set *set, int64_t number, const char **out)
{
	const struct example_text *example = &set->examples[number];
	int64_t count = 0;
	out[count++] = example->text;
	if (example->pair)
		out[count++] = example->pair;
	for (int32_t k = 0; k < example->choice_count; k++)
		out[count++] = set->choices[example->first_choice + k];
	return count;
}

void example_set_release(struct example_set *set)
{
	for (int64_t i = 0; i < set->table_count; i++)
		table_release(&set->tables[i]);
	example_columns_free(set->found);
	free(set->tables);
	free(set->examples);
	free(set->choices);
	string_store_release(&set->strings);
	*set = (struct example_set){0};
}

void example_put_id(const struct example_set *set, int64_t example, struct json_writer *writer)
{
	const struct example_text *one = &set->examples[example];
	if (!set->has_ids || !one->id)
		return;
	(one->id_is_number ? json_put_written : json_put_string)(writer, "id", one->id);
}

bool example_may_be_header(const struct example_set *set, int64_t example)
{
	const struct example_text *at = &set->examples[example];
	if (set->table_count == 0 || at->row > 0 || (at->label && strspn(at->label, "+-.,0123456789") > 0))
		return false;
	const struct table *table = &set->tables[at->table];
	return table->form == TABLE_DELIMITED && !table->has_header && !table->is_piece && table->column_count > 1;
}

/* "--text_column Comment --label_column Mark" */
static void name_by_options(const struct example_text *example, char *out, size_t size)
{
	int length = snprintf(out, size, "--text_column '%.60s'", example->text);
	if (example->pair)
		length += snprintf(out + length, size - (size_t)length, " --pair_column '%.60s'", example->pair);
	if (example->label)
		snprintf(out + length, size - (size_t)length, " --label_column '%.60s'", example->label);
}

void example_hint_at_header(const struct example_set *set, int64_t example)
{
	char options[320];
	name_by_options(&set->examples[example], options, sizeof options);
	error_hint("the file is read as having no header; if its first line is one, name the columns: %s", options);
}

void example_warn_of_header(const struct example_set *set, int64_t example)
{
	const struct example_text *at = &set->examples[example];
	char options[320];
	name_by_options(at, options, sizeof options);
	log_warning(
		"'%s', line %lld: no other row has the label '%.100s', which becomes a class; if this first line is a header, "
		"name the columns: %s",
		at->file, (long long)at->line, at->label, options);
}

const char *example_field(const struct example_set *set, int64_t example, const char *column)
{
	const struct example_text *at = &set->examples[example];
	if (set->table_count == 0) /* examples from a request */
		return NULL;
	const struct table *table = &set->tables[at->table];
	int64_t index = table_find_column(table, column);
	return index < 0 ? NULL : table_field(table, at->row, index);
}

enum status example_chosen_field(const struct example_set *set, int64_t example, const char *name_or_number, const char **out)
{
	const struct example_text *at = &set->examples[example];
	int64_t column;
	TRY(table_choose_column(&set->tables[at->table], name_or_number, &column));
	*out = table_field(&set->tables[at->table], at->row, column);
	return OK;
}

/* The names of the choices in their file, as JSON: ["A", "B"], or the list of objects with a "label" each; NULL: none. */
static const char *choice_names(const struct example_set *set, int64_t example)
{
	for (int i = 0; generic_choice_lists[i]; i++) {
		const char *list = example_field(set, example, generic_choice_lists[i]);
		if (list && strcmp(generic_choice_lists[i], "choices.text") == 0)
			return example_field(set, example, "choices.label");
		if (list)
			return list;
	}
	return NULL;
}

/* Finds the choice whose name is the label; *out -1: none. *out_numbers: the choices' names are numbers, so a number is not an
 * index. */
static enum status find_named_choice(const struct example_set *set, int64_t example, int32_t *out, bool *out_numbers)
{
	const struct example_text *at = &set->examples[example];
	const char *names = choice_names(set, example);
	struct json_document document;
	int32_t index = 0;

	*out = -1;
	*out_numbers = false;
	if (!names)
		return OK;
	TRY(json_parse(&document, at->file, names, strlen(names)));
	bool of_objects = document.root->first_child && document.root->first_child->kind == JSON_OBJECT;
	bool by_names = names == example_field(set, example, "choices.label");
	for (const struct json *item = document.root->first_child; item; item = item->next, index++) {
		const struct json *name = of_objects ? json_member(item, "label") : item;
		if (!name || !name->text || (!of_objects && !by_names))
			continue;
		*out_numbers |= isdigit((unsigned char)name->text[0]) != 0;
		if (strcmp(name->text, at->label) == 0)
			*out = index;
	}
	json_release(&document);
	return OK;
}

enum status example_right_choice(const struct example_set *set, int64_t example, int32_t *out)
{
	const struct example_text *at = &set->examples[example];
	bool numbers;
	char *end;

	BUG_IF(!at->label);
	/* The file's own names take precedence: ARC calls some choices 1 to 4. */
	TRY(find_named_choice(set, example, out, &numbers));
	if (*out >= 0 && *out < at->choice_count)
		return OK;
	/* A number is never a choice's text: in another row of the file, the same would be a choice's number. */
	long long number = strtoll(at->label, &end, 10);
	bool is_number = !numbers && *at->label && *end == '\0';
	if (is_number && number >= 0 && number < at->choice_count) {
		*out = (int32_t)number;
		return OK;
	}
	if (isupper((unsigned char)at->label[0]) && at->label[1] == '\0' && at->label[0] - 'A' < at->choice_count) {
		*out = at->label[0] - 'A';
		return OK;
	}
	int32_t found = 0;
	size_t shortest = SIZE_MAX;
	for (int32_t i = 0; i < at->choice_count && !is_number; i++) {
		const char *choice = set->choices[at->first_choice + i];
		size_t size = strlen(choice), label_size = strlen(at->label);
		/* The beginning that the choices share precedes it, and nothing else. */
		if (size <= shortest && size >= label_size && strcmp(choice + size - label_size, at->label) == 0 &&
		    (size == label_size || choice[size - label_size - 1] == ' ')) {
			found = size < shortest ? 1 : found + 1;
			shortest = size;
			*out = i;
		}
	}
	if (found == 1)
		return OK;
	*out = -1; /* what was found is beyond the row's choices, or one of several with the same text */
	return error_hinted(error_set(ERR_DATA, "'%s', line %lld: the label '%.100s' is not one of the row's %d choices",
				      at->file, (long long)at->line, at->label, (int)at->choice_count),
			    "a label is a number from 0, a letter from A, or the text of the right choice");
}
