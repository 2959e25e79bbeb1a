/* Decides which columns of a table hold texts, labels, and choices: as given, as recorded, by name, or by content. */
#include "tasks/example_columns.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "base/memory.h"
#include "base/string_index.h"
#include "tasks/labels.h"

#define ROW(name, member) OPTION_AS(name, struct column_choice, member, ROLE_RESULT, "COLUMN")

const struct option column_rows[] = {
	{ROW("text_column", text), .help = "column of the text, by name or by number from 1"},
	{ROW("pair_column", pair), .help = "column of the second text of a pair"},
	{ROW("label_column", label), .help = "column of the label"},
	{0},
};

/* A column with more distinct values does not hold labels. */
#define LABELS_MOST 200

static bool has_names(const struct table *table)
{
	return table->form != TABLE_DELIMITED || table->has_header;
}

/* The column of the first name that exists; -1: none does. */
static int64_t find_first(const struct table *table, const char *const *names, int most)
{
	for (int i = 0; i < most && names[i]; i++) {
		int64_t column = table_find_column(table, names[i]);
		if (column >= 0)
			return column;
	}
	return -1;
}

static int64_t find_generic(const struct table *table, const char *const *names)
{
	return find_first(table, names, INT32_MAX);
}

static void take(int64_t *column, int64_t found)
{
	if (*column < 0)
		*column = found;
}

static enum status take_given(const struct table *table, const char *given, int64_t *column)
{
	return given ? table_choose_column(table, given, column) : OK;
}

static void take_named(const struct table *table, const char *name, int64_t *column)
{
	if (name)
		take(column, table_find_column(table, name));
}

void example_columns_of_layout(const struct table *table, const struct layout *layout, struct example_columns *columns)
{
	if (has_names(table)) {
		take(&columns->text, find_first(table, layout->text, LAYOUT_NAMES));
		take(&columns->pair, find_first(table, layout->pair, LAYOUT_NAMES));
		take(&columns->label, find_first(table, layout->label, LAYOUT_NAMES));
		take(&columns->id, find_first(table, layout->id, LAYOUT_NAMES));
		return;
	}
	for (int i = 0; i < 4 && layout->positions[i].column_count > 0; i++) {
		const struct layout_positions *positions = &layout->positions[i];
		if (positions->column_count != table->column_count &&
		    !(layout->least_columns == positions->column_count && table->column_count > positions->column_count &&
		      i + 1 < 4 && layout->positions[i + 1].column_count == 0))
			continue;
		take(&columns->text, positions->text - 1);
		take(&columns->pair, positions->pair - 1);
		take(&columns->label, positions->label - 1);
		take(&columns->id, positions->id - 1);
		return;
	}
}

/* Takes columns by names that are commonly used. `alone`: the training examples are single texts. */
static void take_generic(const struct table *table, const struct example_options *options, bool alone,
			 struct example_columns *columns)
{
	if (options->input == TASK_INPUT_DIALOGUE) {
		take(&columns->text, find_generic(table, generic_sources));
		take(&columns->label, find_generic(table, generic_targets));
	} else if (options->input == TASK_INPUT_CHOICES) {
		take(&columns->text, find_generic(table, generic_contexts));
		int64_t stem = find_generic(table, generic_stems);
		if (stem != columns->text) /* a question without context was the text in training */
			take(&columns->pair, stem);
		take(&columns->label, find_generic(table, generic_choice_labels));
	} else if (columns->text < 0 && columns->pair < 0) {
		for (const struct column_names *names = generic_pairs; !alone && names->text && columns->pair < 0; names++) {
			int64_t text = table_find_column(table, names->text), pair = table_find_column(table, names->pair);
			if (text < 0 || pair < 0)
				continue;
			columns->text = text;
			columns->pair = pair;
		}
		if (options->input == TASK_INPUT_TEXT)
			take(&columns->text, find_generic(table, generic_texts));
		if (options->relates)
			take(&columns->text, find_generic(table, generic_words));
	}
	if (options->input != TASK_INPUT_DIALOGUE)
		take(&columns->label, find_generic(table, options->target == TARGET_NUMBER ? generic_scores : generic_labels));
	take(&columns->id, find_generic(table, generic_ids));
}

/* The number of distinct values in a column, counted up to LABELS_MOST + 1. */
static enum status count_values(const struct table *table, int64_t column, int64_t *out)
{
	struct string_index values = {0};
	enum status status = OK;
	int64_t known;
	for (int64_t row = 0; row < table->row_count && values.count <= LABELS_MOST && status == OK; row++) {
		const char *field = table_field(table, row, column);
		status = field ? string_index_add(&values, field, 0, &known) : OK;
	}
	*out = values.count;
	string_index_release(&values);
	return status;
}

/* "0,96" */
static bool has_decimal_comma(const char *field)
{
	field += *field == '-' || *field == '+';
	size_t whole = strspn(field, "0123456789");
	if (whole == 0 || field[whole] != ',')
		return false;
	size_t decimals = strspn(field + whole + 1, "0123456789");
	return decimals > 0 && field[whole + 1 + decimals] == '\0';
}

/* Whether a column is meant to be numbers: a decimal comma is refused where they are read, with the reason. */
static bool is_numeric(const struct table *table, int64_t column)
{
	double value;
	for (int64_t row = 0; row < table->row_count; row++) {
		const char *field = table_field(table, row, column);
		if (!field || (label_number(field, "", 0, &value) != OK && !has_decimal_comma(field)))
			return false;
	}
	return true;
}

/* Without a header: a single column is the text. Of two columns (three for pairs), if exactly one looks like labels, the others
 * are the texts, in order. */
static enum status guess(const struct table *table, const struct example_options *options, struct example_columns *columns)
{
	int64_t texts = options->input == TASK_INPUT_PAIR ? 2 : 1, labels = 0, label = -1, found[3], next = 0;

	if (table->column_count == texts && options->input != TASK_INPUT_CHOICES && !options->needs_labels) {
		take(&columns->text, 0);
		if (texts == 2)
			take(&columns->pair, 1);
		return OK;
	}
	if (table->column_count != texts + 1 || options->input == TASK_INPUT_CHOICES)
		return OK;
	for (int64_t i = 0; i < table->column_count; i++) {
		int64_t values;
		TRY(count_values(table, i, &values));
		bool is_label = options->target == TARGET_NUMBER ? is_numeric(table, i)
								 : values <= LABELS_MOST && values * 2 <= table->row_count;
		labels += is_label;
		if (is_label)
			label = i;
	}
	if (labels != 1 || (columns->label >= 0 && columns->label != label))
		return OK;
	for (int64_t i = 0; i < table->column_count; i++)
		if (i != label)
			found[next++] = i;
	take(&columns->label, label);
	take(&columns->text, found[0]);
	if (texts == 2)
		take(&columns->pair, found[1]);
	return OK;
}

/* Adds the columns that consist of this name and a number, in ascending order: "ending" for ending0, ending1, ... */
static enum status find_numbered(const struct table *table, const char *name, struct example_columns *columns)
{
	int64_t capacity = 0;
	for (int number = 0; number < 1000; number++) {
		char numbered[64];
		snprintf(numbered, sizeof numbered, "%.40s%d", name, number);
		int64_t column = table_find_column(table, numbered);
		for (const char *between = "_ "; column < 0 && *between; between++) {
			snprintf(numbered, sizeof numbered, "%.40s%c%d", name, *between, number);
			column = table_find_column(table, numbered);
		}
		if (column < 0 && number > 0)
			break;
		if (column < 0)
			continue;
		TRY(memory_grow(&columns->choices, &capacity, columns->choice_count + 1, sizeof *columns->choices, "choices"));
		columns->choices[columns->choice_count++] = column;
	}
	return OK;
}

/* Columns A, B, ... */
static enum status find_lettered(const struct table *table, struct example_columns *columns)
{
	int64_t capacity = 0, column;
	columns->choice_count = 0;
	for (char letter[2] = "A"; *letter <= 'Z' && (column = table_find_column(table, letter)) >= 0; ++*letter) {
		TRY(memory_grow(&columns->choices, &capacity, columns->choice_count + 1, sizeof *columns->choices, "choices"));
		columns->choices[columns->choice_count++] = column;
	}
	return OK;
}

static enum status find_choices(const struct table *table, struct example_columns *columns)
{
	columns->choice_list = find_generic(table, generic_choice_lists);
	for (int i = 0; columns->choice_list < 0 && columns->choice_count < 2 && generic_choices[i]; i++) {
		columns->choice_count = 0;
		TRY(find_numbered(table, generic_choices[i], columns));
	}
	return columns->choice_list < 0 && columns->choice_count < 2 ? find_lettered(table, columns) : OK;
}

/* ---- Rewriting ---- */

static enum status add_context(struct example_columns *columns, int64_t column)
{
	int64_t capacity = columns->choice_count;
	TRY(memory_grow(&columns->choices, &capacity, columns->choice_count + 1, sizeof *columns->choices, "contexts"));
	columns->choices[columns->choice_count++] = column;
	return OK;
}

/* The columns of "a,b,c", all of which must exist if the user named them (`required`). Otherwise, none are taken unless all
 * exist. */
static enum status find_listed_contexts(const struct table *table, const char *names, bool required,
					struct example_columns *columns)
{
	for (const char *at = names; *at;) {
		size_t length = strcspn(at, ",");
		char name[256];
		snprintf(name, sizeof name, "%.*s", (int)length, at);
		int64_t column = table_find_column(table, name);
		if (column < 0 && !required) {
			columns->choice_count = 0;
			return OK;
		}
		if (required)
			TRY(table_choose_column(table, name, &column));
		TRY(add_context(columns, column));
		at += length + (at[length] == ',');
	}
	return OK;
}

static int64_t count_listed(const char *names)
{
	int64_t count = names != NULL;
	for (; names && *names; names++)
		count += *names == ',';
	return count;
}

/* Without a header: source and target are the last columns, preceded by what was said before. A file to be predicted has a target
 * if it has as many columns as the training file. */
static enum status guess_dialogue(const struct table *table, const struct example_options *options,
				  const struct column_choice *kin, struct example_columns *columns)
{
	bool has_target = options->needs_labels || (kin && kin->text && table->column_count == count_listed(kin->pair) + 2);
	int64_t last = table->column_count - 1;
	if (columns->text < 0 && last >= has_target) {
		columns->text = last - has_target;
		if (has_target)
			take(&columns->label, last);
	}
	bool alone = kin && kin->text && !kin->pair;
	for (int64_t i = 0, count = columns->choice_count; !alone && count == 0 && i < columns->text; i++)
		if (i != columns->label)
			TRY(add_context(columns, i));
	return OK;
}

static enum status find_contexts(const struct table *table, const struct example_options *options,
				 const struct column_choice *kin, struct example_columns *columns)
{
	if (options->given.pair)
		TRY(find_listed_contexts(table, options->given.pair, true, columns));
	else if (kin && kin->pair && (has_names(table) || columns->text >= 0))
		TRY(find_listed_contexts(table, kin->pair, false, columns));
	if (columns->choice_count > 0 && columns->text >= 0)
		return OK;
	if (!has_names(table))
		return guess_dialogue(table, options, kin, columns);
	int64_t whole = find_generic(table, generic_dialogues);
	if (columns->choice_count == 0 && whole >= 0 && whole != columns->text)
		return add_context(columns, whole);
	for (int i = 0; columns->choice_count == 0 && generic_turns[i]; i++)
		TRY(find_numbered(table, generic_turns[i], columns));
	return OK;
}

static bool has_flags(const struct table *table, int64_t column)
{
	bool flag;
	for (int64_t row = 0; row < table->row_count; row++) {
		const char *field = table_field(table, row, column);
		if (!field || !label_flag(field, &flag))
			return false;
	}
	return table->row_count > 0;
}

static enum status add_flag(struct example_columns *columns, int64_t column)
{
	int64_t capacity = columns->flag_count;
	TRY(memory_grow(&columns->flags, &capacity, columns->flag_count + 1, sizeof *columns->flags, "columns of labels"));
	columns->flags[columns->flag_count++] = column;
	return OK;
}

/* The columns of "a,b,c"; *out_missing: the first that the table lacks (char[256]), or "". */
static enum status find_listed_flags(const struct table *table, const char *names, struct example_columns *columns,
				     char *out_missing)
{
	*out_missing = '\0';
	for (const char *at = names; *at;) {
		size_t length = strcspn(at, ",");
		char name[256];
		snprintf(name, sizeof name, "%.*s", (int)length, at);
		int64_t column = table_find_column(table, name);
		if (column >= 0)
			TRY(add_flag(columns, column));
		else if (!*out_missing)
			memcpy(out_missing, name, sizeof name);
		at += length + (at[length] == ',');
	}
	return OK;
}

/* Several labels with a column each: those that `given` (by option) or else `trained` lists (a single name is that of a column
 * with all labels), or all that contain only 0 and 1. If only some of the listed ones exist, a label without a column would count
 * as absent from every example: a set that needs labels is refused, and another has none. */
static enum status find_flags(const struct table *table, const char *given, const char *trained, bool needs_labels,
			      struct example_columns *columns)
{
	const char *names = given ? given : trained;
	char missing[256] = "";
	if (names && strchr(names, ','))
		TRY(find_listed_flags(table, names, columns, missing));
	if (*missing && (given || columns->flag_count > 0)) {
		columns->flag_count = 0;
		if (!needs_labels)
			return OK;
		return error_hinted(error_set(ERR_DATA, "'%s' has no column '%s', which is one of the columns of labels: %.500s",
					      table->name, missing, names),
				    "add the column; --label_column names the columns of labels, separated by commas");
	}
	if (columns->flag_count > 0 || columns->label >= 0)
		return OK;
	for (int64_t i = 0; i < table->column_count; i++)
		if (i != columns->text && i != columns->pair && i != columns->id && has_flags(table, i))
			TRY(add_flag(columns, i));
	if (columns->flag_count < 2)
		columns->flag_count = 0;
	return OK;
}

/* The error for a column that was not found. */
static enum status missing(const struct table *table, const struct example_options *options, const char *what, const char *option)
{
	struct buffer columns = {0};
	table_list_columns(table, &columns);
	enum status status =
		options->layout ? error_set(ERR_DATA, "'%s' has no column of %s as the files of %s have; its columns are %.800s",
					    table->name, what, options->layout->name, buffer_string(&columns))
				: error_set(ERR_DATA, "'%s': which column has %s? Its columns are %.800s", table->name, what,
					    buffer_string(&columns));
	const char *first = table->row_count > 0 && table->column_count > 0 ? table_field(table, 0, 0) : NULL;
	if (first && strncmp(first, "__label__", 9) == 0)
		error_hint("these are fastText's lines; put a tab between label and text: sed 's/^__label__\\([^ ]*\\) /\\1\\t/' "
			   "FILE");
	else if (option)
		error_hint("name it, or give its number from 1: --%s%s", option,
			   has_names(table) ? "" : " (no header was found in the file)");
	buffer_release(&columns);
	return status;
}

/* `paired`: the training examples are pairs. */
static enum status check(const struct table *table, const struct example_options *options, bool paired,
			 const struct example_columns *columns)
{
	bool by_choices = options->input == TASK_INPUT_CHOICES, by_turns = options->input == TASK_INPUT_DIALOGUE;
	if (by_choices && columns->choice_list < 0 && columns->choice_count < 2) {
		enum status status = missing(table, options, "the choices", NULL);
		error_hint("name them in the file: a list called choices, or columns choice0, choice1, ... or A, B, ...");
		return status;
	}
	if (columns->text < 0 && !(by_choices && columns->pair >= 0))
		return missing(table, options,
			       options->input == TASK_INPUT_PAIR ? "the first texts"
			       : by_turns                        ? "the texts to be rewritten"
								 : "the texts",
			       "text_column");
	if ((options->input == TASK_INPUT_PAIR || (paired && !by_choices && !by_turns)) && columns->pair < 0)
		return missing(table, options, "the second texts", "pair_column");
	if (options->needs_labels && columns->label < 0 && columns->flag_count == 0)
		return missing(table, options,
			       options->input == TASK_INPUT_DIALOGUE ? "the rewritten texts"
			       : options->target == TARGET_NUMBER    ? "the numbers to learn"
								     : "the labels",
			       "label_column");
	for (int64_t i = 0; options->input == TASK_INPUT_DIALOGUE && i < columns->choice_count; i++)
		if (columns->choices[i] == columns->text || columns->choices[i] == columns->label)
			return error_set(ERR_USAGE,
					 "'%s': column '%.200s' is used both as a context and as something else "
					 "(--pair_column, --text_column, --label_column)",
					 table->name, table->columns[columns->choices[i]]);
	const int64_t used[] = {columns->text, columns->pair, columns->label};
	const char *const given[] = {options->given.text, options->given.pair, options->given.label};
	for (int i = 0; i < 3; i++)
		if (used[i] >= 0 && !given[i])
			TRY(table_check_name(table, used[i]));
	for (int i = 0; i < 3; i++)
		for (int j = 0; j < i; j++)
			if (used[i] >= 0 && used[i] == used[j])
				return error_set(ERR_USAGE,
						 "'%s': column '%.200s' is given for two of --text_column, --pair_column, and "
						 "--label_column",
						 table->name, table->columns[used[i]]);
	return OK;
}

/* Does the table say what an annotator thought of each row, as Prodigy's do? Labels that were rejected or skipped are no labels.
 */
static bool has_answers(const struct table *table, const struct example_columns *columns)
{
	int64_t answer = table->form == TABLE_DELIMITED ? -1 : table_find_column(table, "answer");
	if (answer < 0 || answer == columns->text || answer == columns->pair || answer == columns->label ||
	    columns->choice_count > 0)
		return false;
	for (int64_t row = 0; row < table->row_count; row++) {
		const char *field = table_field(table, row, answer);
		if (!field || (strcmp(field, "accept") && strcmp(field, "reject") && strcmp(field, "ignore")))
			return false;
	}
	return table->row_count > 0;
}

enum status example_columns_find(struct example_columns *out, const struct table *table, const struct example_options *options,
				 const struct column_choice *before)
{
	const struct layout *layout = options->layout;

	*out = (struct example_columns){.text = -1, .pair = -1, .label = -1, .id = -1, .filter = -1, .choice_list = -1};
	TRY(take_given(table, options->given.text, &out->text));
	const bool by_turns = options->input == TASK_INPUT_DIALOGUE; /* for which `pair` is a list of columns */
	if (!by_turns)
		TRY(take_given(table, options->given.pair, &out->pair));
	bool listed = options->target == TARGET_CLASSES && options->given.label && strchr(options->given.label, ',');
	enum status label = listed ? OK : take_given(table, options->given.label, &out->label);
	if (label != OK && (options->needs_labels || out->label >= 0)) /* files to be predicted need not have the column */
		return label;
	TRY(take_given(table, options->given.id, &out->id));
	bool text_is_given = out->text >= 0;
	/* The columns of the training examples or of the previous file. */
	const struct column_choice *kin = options->trained.text ? &options->trained : before;
	for (int i = 0; i < 2; i++) {
		/* A file without a header names its columns like the one before: "column 2". */
		const struct column_choice *names = i == 0 ? &options->trained : before;
		if (!names)
			continue;
		/* "column 1" of a file with fewer columns is a different one. */
		if (i == 0 && !has_names(table) && names->text && table_find_column(table, names->text) < 0)
			continue;
		take_named(table, names->text, &out->text);
		if (!by_turns)
			take_named(table, names->pair, &out->pair);
		take_named(table, names->label, &out->label);
		take_named(table, names->id, &out->id);
	}
	if (layout)
		example_columns_of_layout(table, layout, out);
	if (layout && layout->only_where[0] && has_names(table)) {
		out->filter = table_find_column(table, layout->only_where[0]);
		out->only = layout->only_where[1];
	}
	if (has_names(table))
		take_generic(table, options, options->relates || (kin && !kin->pair), out);
	else if (!text_is_given && !by_turns)
		TRY(guess(table, options, out));
	if (by_turns)
		TRY(find_contexts(table, options, kin, out));
	if (options->input == TASK_INPUT_CHOICES)
		TRY(find_choices(table, out));
	if (options->target == TARGET_CLASSES && has_names(table))
		TRY(find_flags(table, listed ? options->given.label : NULL, kin ? kin->label : NULL, options->needs_labels, out));
	if (out->filter < 0 && has_answers(table, out)) {
		out->filter = table_find_column(table, "answer");
		out->only = "accept";
		out->filters_labels = !options->needs_labels;
	}
	if (out->text < 0 && options->input == TASK_INPUT_CHOICES) { /* no context: the question is what the choices share */
		out->text = out->pair;
		out->pair = -1;
	}
	return check(table, options, kin && kin->pair, out);
}
