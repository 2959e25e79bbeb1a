/* Reads files of pairs, triplets, and ranked lists, detecting their form by their columns. */
#include "tasks/ranking_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/memory.h"
#include "tasks/example_columns.h"
#include "tasks/header_hints.h"
#include "tasks/labels.h"

const char *const ranking_form_names[] = {"texts alone", "pairs", "triplets", "scored pairs"};

/* ---- Columns ---- */

static const char *const anchors[] = {"anchor", "query",    "question", "sentence1", "sentence_A", "sentence_1", "question1",
				      "text1",  "text_1",   "text_a",   "sent0",     "sent1",      "premise",    "source",
				      "text",   "sentence", "content",  "title",     NULL};
static const char *const positives[] = {"positive", "positives",  "pos",       "positive_passages", "passage",    "document",
					"answer",   "response",   "sentence2", "sentence_B",        "sentence_2", "question2",
					"text2",    "text_2",     "text_b",    "text_pair",         "pair",       "sent2",
					"sent1",    "hypothesis", "target",    "duplicate",         NULL};
static const char *const negatives[] = {"negative", "negatives",         "neg", "hard_negative", "hard_negatives",
					"hard_neg", "negative_passages", NULL};
static const char *const scores[] = {
	"score",  "similarity", "similarity_score", "relatedness_score", "relevance", "label", "rating", "is_duplicate", "scores",
	"labels", NULL};
static const char *const lists[] = {"documents", "docs", "passages", "candidates", NULL};
/* Additional names by which a header is recognized. */
static const char *const others[] = {"negative1", "negative_1", "id", NULL};

#define NAME_COUNT(names) (sizeof names / sizeof *(names)-1)
#define HEADER_NAMES                                                                                                             \
	(NAME_COUNT(anchors) + NAME_COUNT(positives) + NAME_COUNT(negatives) + NAME_COUNT(scores) + NAME_COUNT(lists) +          \
	 NAME_COUNT(others))

/* All names by which a header is recognized, ending with NULL. */
static void list_header_names(const char *out[HEADER_NAMES + 1])
{
	const char *const *const parts[] = {anchors, positives, negatives, scores, lists, others};
	size_t count = 0;
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		for (const char *const *name = parts[i]; *name; name++)
			out[count++] = *name;
	out[count] = NULL;
}

/* Indices; -1: there is none. */
struct columns {
	int64_t anchor, positive, score, id;
	int64_t *negatives, negative_count, negative_capacity; /* to be freed */
	bool lists;                                            /* `positive` and `score` are lists, with a number for each text */
};

static bool has_names(const struct table *table)
{
	return table->form != TABLE_DELIMITED || table->has_header;
}

/* The column of the first name that exists and is not `other`. */
static int64_t find(const struct table *table, const char *const *names, int64_t other)
{
	for (; *names; names++) {
		int64_t column = table_find_column(table, *names);
		if (column >= 0 && column != other)
			return column;
	}
	return -1;
}

static enum status add_negative(struct columns *columns, int64_t column)
{
	for (int64_t i = 0; i < columns->negative_count; i++)
		if (columns->negatives[i] == column)
			return OK;
	TRY(memory_grow(&columns->negatives, &columns->negative_capacity, columns->negative_count + 1, sizeof *columns->negatives,
			"columns"));
	columns->negatives[columns->negative_count++] = column;
	return OK;
}

/* Whether a column, however it was chosen, is one of `documents` and the like, with lists of texts. */
static bool holds_documents(const struct table *table, int64_t column)
{
	for (const char *const *name = lists; column >= 0 && *name; name++)
		if (table_find_column(table, *name) == column)
			return table_field_kind(table, 0, column) == FIELD_LIST;
	return false;
}

/* "negative", and "negative_1", "negative_2" or "negative1", ... */
static enum status find_negatives(const struct table *table, struct columns *columns)
{
	for (const char *const *name = negatives; *name; name++) {
		int64_t column = table_find_column(table, *name);
		if (column >= 0)
			TRY(add_negative(columns, column));
		for (int number = 0; number < 1000; number++) {
			char numbered[64];
			snprintf(numbered, sizeof numbered, "%s_%d", *name, number);
			column = table_find_column(table, numbered);
			snprintf(numbered, sizeof numbered, "%s%d", *name, number);
			if (column < 0)
				column = table_find_column(table, numbered);
			if (column < 0 && number > 0)
				break;
			if (column >= 0)
				TRY(add_negative(columns, column));
		}
	}
	return OK;
}

static enum status take_given_negatives(const struct table *table, const char *given, struct columns *columns)
{
	for (const char *at = given; *at;) {
		size_t length = strcspn(at, ",");
		char name[256];
		int64_t column;
		snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : sizeof name - 1), at);
		TRY(table_choose_column(table, name, &column));
		TRY(add_negative(columns, column));
		at += length + (at[length] == ',');
	}
	return OK;
}

static bool is_numeric(const struct table *table, int64_t column)
{
	double value;
	for (int64_t row = 0; row < table->row_count; row++) {
		const char *field = table_field(table, row, column);
		if (!field || label_number(field, "", 0, &value) != OK)
			return false;
	}
	return true;
}

static enum status which(const struct table *table, const char *what, const char *hint)
{
	struct buffer names = {0};
	table_list_columns(table, &names);
	enum status status = error_set(ERR_DATA, "'%s': %s; its columns are %.800s", table->name, what, buffer_string(&names));
	error_hint("%s", hint);
	buffer_release(&names);
	return status;
}

#define NAME_THEM                                                                                                                \
	"name the columns, or give their numbers from 1: --text_column, --pair_column (what belongs to the text), "              \
	"--negative_column, --label_column (a score)"

/* Without a header: one column holds texts, two hold pairs; three hold scored pairs if the last is numeric, else triplets, which
 * may have more negatives. Numbers anywhere else are no texts. */
static enum status guess(const struct table *table, struct columns *columns)
{
	int64_t count = table->column_count;
	bool numeric = count > 1 && is_numeric(table, count - 1), unclear = count > 16;
	for (int64_t c = 0; c + 1 < count && !unclear; c++)
		unclear = is_numeric(table, c);
	if ((numeric && count != 3) || unclear)
		return which(table, "there is no header, and its columns do not say what they are", NAME_THEM);
	columns->anchor = 0;
	if (count > 1)
		columns->positive = 1;
	if (numeric)
		columns->score = 2;
	for (int64_t c = 2; c < count && !numeric; c++)
		TRY(add_negative(columns, c));
	return OK;
}

static enum status take_given(const struct table *table, const char *given, const char *trained, int64_t *column)
{
	if (given)
		return table_choose_column(table, given, column);
	if (trained && has_names(table))
		*column = table_find_column(table, trained);
	return OK;
}

static enum status find_columns(const struct table *table, const struct ranking_options *options, struct columns *out)
{
	const struct column_choice *given = &options->given, *trained = &options->trained;
	*out = (struct columns){.anchor = -1, .positive = -1, .score = -1, .id = -1};
	TRY(take_given(table, given->text, trained->text, &out->anchor));
	TRY(take_given(table, given->pair, trained->pair, &out->positive));
	enum status score_found = take_given(table, given->label, NULL, &out->score);
	if (score_found != OK && (options->needs_scores || out->score >= 0)) /* files to be predicted need not have the column */
		return score_found;
	if (options->layout) {
		struct example_columns named = {.text = out->anchor, .pair = out->positive, .label = out->score, .id = -1};
		example_columns_of_layout(table, options->layout, &named);
		out->anchor = named.text;
		out->positive = named.pair;
		out->score = named.label;
	}
	if (options->negatives)
		TRY(take_given_negatives(table, options->negatives, out));
	if (!has_names(table)) {
		if (out->anchor < 0)
			TRY(guess(table, out));
	} else {
		if (out->anchor < 0)
			out->anchor = find(table, anchors, out->positive);
		if (out->positive < 0)
			out->positive = find(table, positives, out->anchor);
		bool needs_numbers = out->positive < 0;
		if (needs_numbers)
			out->positive = find(table, lists, out->anchor);
		int64_t score = out->score < 0 ? find(table, scores, -1) : out->score;
		out->lists = holds_documents(table, out->positive) && (score >= 0 || needs_numbers);
		if (!options->negatives && out->positive >= 0 && !out->lists)
			TRY(find_negatives(table, out));
		if (out->positive >= 0 && out->negative_count == 0)
			out->score = score;
		if (options->scores_rows && out->negative_count > 0)
			out->score = table_find_column(table, "scores");
		out->id = table_find_column(table, "id");
	}
	if (out->anchor < 0)
		return which(table, "which column has the texts?", NAME_THEM);
	if (out->lists && out->score < 0)
		return which(table, "lists of texts need a list with a number for each (labels)", NAME_THEM);
	const int64_t used[] = {out->anchor, out->positive, out->score};
	const char *const names[] = {given->text, given->pair, given->label};
	for (int i = 0; i < 3; i++)
		if (used[i] >= 0 && !names[i])
			TRY(table_check_name(table, used[i]));
	for (int i = 0; i < 3; i++)
		for (int j = 0; j < i; j++)
			if (used[i] >= 0 && used[i] == used[j])
				return which(table, "one column is used for two purposes", NAME_THEM);
	return OK;
}

/* Keeps the columns of the first piece for the following ones. */
static enum status keep_columns(struct example_set *set, const struct columns *columns)
{
	example_columns_free(set->found);
	set->found = NULL;
	TRY(memory_new(&set->found, 1, sizeof *set->found, "columns"));
	*set->found = (struct example_columns){.text = columns->anchor,
					       .pair = columns->positive,
					       .label = columns->score,
					       .id = columns->id,
					       .filter = -1,
					       .choice_list = columns->lists ? columns->positive : -1};
	TRY(memory_new(&set->found->choices, columns->negative_count, sizeof *set->found->choices, "columns"));
	for (int64_t i = 0; i < columns->negative_count; i++)
		set->found->choices[i] = columns->negatives[i];
	set->found->choice_count = columns->negative_count;
	return OK;
}

/* Columns without names are the same as in the first piece. In JSON, later pieces may have more keys: those for negatives are
 * accepted, but others must not change how earlier rows were read. */
static enum status settle_columns(struct example_set *set, const struct table *table, const struct ranking_options *options,
				  struct columns *out)
{
	const struct example_columns *first = options->piece ? options->piece->columns : NULL;
	if (first && !has_names(table)) {
		*out = (struct columns){.anchor = first->text, .positive = first->pair, .score = first->label, .id = first->id};
		for (int64_t i = 0; i < first->choice_count; i++)
			TRY(add_negative(out, first->choices[i]));
		return OK;
	}
	TRY(find_columns(table, options, out));
	if (!first)
		return options->piece ? keep_columns(set, out) : OK;
	out->lists = first->choice_list >= 0;
	if (out->anchor == first->text && out->positive == first->pair)
		return OK;
	char what[128];
	snprintf(what, sizeof what, "the keys from line %lld on change which members hold the texts",
		 (long long)table->rows[0].line);
	return which(table, what, NAME_THEM);
}

static enum ranking_form form_of(const struct columns *columns, const struct ranking_options *options)
{
	if (columns->positive < 0)
		return RANKING_TEXTS;
	if (options->scores_all && (columns->negative_count > 0 || columns->score >= 0))
		return RANKING_SCORED;
	if (columns->negative_count > 0 || columns->lists)
		return RANKING_TRIPLETS;
	return columns->score >= 0 ? RANKING_SCORED : RANKING_PAIRS;
}

/* ---- Rows ---- */

static enum status row_error(const struct table *table, int64_t row, const char *what)
{
	return error_set(ERR_DATA, "'%s', line %lld: %s", table->name, (long long)table->rows[row].line, what);
}

static bool is_blank(const char *text)
{
	return text[strspn(text, " \t\r\n")] == '\0';
}

/* The texts of a cell: a single one, or those of a JSON list. */
struct cell {
	const char **texts;
	int64_t count, capacity;
};

static enum status add_text(struct cell *cell, const char *text)
{
	TRY(memory_grow(&cell->texts, &cell->capacity, cell->count + 1, sizeof *cell->texts, "texts of a row"));
	cell->texts[cell->count++] = text;
	return OK;
}

/* Adds an item of a list: a text, a number, or an object with the text ({"docid": ..., "text": ...}). */
static enum status add_item(struct example_set *set, struct cell *cell, const struct json *item, const struct table *table,
			    int64_t row)
{
	const struct json *text = item->kind == JSON_OBJECT ? json_member(item, "text") : item;
	const char *copy;
	if (!text || (text->kind != JSON_STRING && text->kind != JSON_NUMBER) || strlen(text->text) != text->text_size)
		return row_error(table, row, "an item of a list is not text");
	TRY(string_store_copy(&set->strings, text->text, text->text_size, &copy));
	return add_text(cell, copy);
}

static enum status take_cell(struct example_set *set, struct cell *cell, const struct table *table, int64_t row, int64_t column)
{
	const char *field = column < 0 ? NULL : table_field(table, row, column);
	struct json_document document;
	if (!field)
		return OK;
	if (table_field_kind(table, row, column) != FIELD_LIST) /* a plain text may look like a list */
		return add_text(cell, field);
	TRY(json_parse(&document, table->name, field, strlen(field)));
	enum status status = OK;
	for (const struct json *item = document.root->first_child; item && status == OK; item = item->next)
		status = add_item(set, cell, item, table, row);
	json_release(&document);
	return status;
}

static enum status check_texts(const struct cell *cell, const char *what, const struct table *table, int64_t row)
{
	char text[128];
	for (int64_t i = 0; i < cell->count; i++) {
		if (!is_blank(cell->texts[i]))
			continue;
		snprintf(text, sizeof text, "%s is empty", what);
		return row_error(table, row, text);
	}
	return OK;
}

struct row {
	const char *anchor, *id;
	bool id_is_number;
	struct cell positives, negatives, scores;
};

static void row_clear(struct row *row)
{
	row->positives.count = row->negatives.count = row->scores.count = 0;
}

static void row_release(struct row *row)
{
	free(row->positives.texts);
	free(row->negatives.texts);
	free(row->scores.texts);
}

static enum status take_row(struct example_set *set, const struct columns *columns, const struct ranking_options *options,
			    const struct table *table, int64_t number, struct row *row)
{
	row_clear(row);
	row->anchor = table_field(table, number, columns->anchor);
	row->id = columns->id < 0 ? NULL : table_field(table, number, columns->id);
	row->id_is_number = row->id && table_field_kind(table, number, columns->id) == FIELD_NUMBER;
	bool lacks_anchor = table_lacks(table, number, columns->anchor);
	if (lacks_anchor || (options->allows_empty && table_lacks(table, number, columns->positive))) {
		char what[256];
		snprintf(what, sizeof what, "the row has no '%.150s'",
			 table->columns[lacks_anchor ? columns->anchor : columns->positive]);
		return row_error(table, number, what);
	}
	if (!row->anchor)
		row->anchor = "";
	TRY(take_cell(set, &row->positives, table, number, columns->positive));
	for (int64_t i = 0; i < columns->negative_count; i++)
		TRY(take_cell(set, &row->negatives, table, number, columns->negatives[i]));
	TRY(take_cell(set, &row->scores, table, number, columns->score));
	if (options->allows_empty) {
		if (columns->positive >= 0 && row->positives.count == 0 && !columns->lists)
			TRY(add_text(&row->positives, ""));
	} else {
		if (is_blank(row->anchor))
			return row_error(table, number, "the text is empty");
		if (columns->positive >= 0 && row->positives.count == 0)
			return row_error(table, number, "there is no second text");
		TRY(check_texts(&row->positives, "the second text", table, number));
		/* Cells are empty in tables whose rows have different numbers of negatives. */
		int64_t kept = 0;
		for (int64_t i = 0; i < row->negatives.count; i++)
			if (!is_blank(row->negatives.texts[i]))
				row->negatives.texts[kept++] = row->negatives.texts[i];
		row->negatives.count = kept;
	}
	if (columns->score < 0)
		return OK;
	for (int64_t i = 0; i < row->scores.count; i++)
		if (is_blank(row->scores.texts[i]))
			row->scores.count = 0;
	if (options->needs_scores && row->scores.count == 0)
		return row_error(table, number, "the pair has no score");
	int64_t scored = row->positives.count + (options->scores_rows ? row->negatives.count : 0);
	if (row->scores.count > 0 && row->scores.count != scored)
		return row_error(table, number, "there are not as many scores as texts");
	return OK;
}

/* Adds an example from the row: a pair with a score, or a text with its positive and negatives. */
static enum status add_example(struct example_set *set, const struct table *table, int64_t number, const struct row *row,
			       const char *pair, const char *score, const struct cell * not )
{
	TRY(memory_grow(&set->examples, &set->capacity, set->count + 1, sizeof *set->examples, "examples"));
	struct example_text *example = &set->examples[set->count];
	*example = (struct example_text){.text = row->anchor,
					 .pair = pair,
					 .label = score,
					 .id = row->id,
					 .id_is_number = row->id_is_number,
					 .file = table->name,
					 .line = table->rows[number].line,
					 .first_choice = set->choice_count,
					 .table = set->table_count - 1,
					 .row = number};
	for (int64_t i = 0; not &&i < not ->count; i++) {
		TRY(memory_grow(&set->choices, &set->choice_capacity, set->choice_count + 1, sizeof *set->choices, "negatives"));
		set->choices[set->choice_count++] = not ->texts[i];
		example->choice_count++;
	}
	set->count++;
	return OK;
}

/* Divides a list's texts: those with a number above 0 belong to the anchor. Without numbers, as in a set to predict, all do. */
static enum status divide_list(const struct table *table, int64_t number, const struct row *row, struct cell parts[2])
{
	for (int64_t i = 0; i < row->positives.count; i++) {
		double score = 1;
		if (row->scores.count > 0)
			TRY(label_number(row->scores.texts[i], table->name, table->rows[number].line, &score));
		TRY(add_text(&parts[score > 0 ? 0 : 1], row->positives.texts[i]));
	}
	return OK;
}

static enum status add_list(struct example_set *set, const struct table *table, int64_t number, const struct row *row)
{
	struct cell parts[2] = {{0}};
	enum status status = divide_list(table, number, row, parts);
	if (status == OK && parts[0].count == 0)
		status = row_error(table, number, "none of the list's texts has a number above 0");
	for (int64_t i = 0; status == OK && i < parts[0].count; i++)
		status = add_example(set, table, number, row, parts[0].texts[i], NULL, &parts[1]);
	free(parts[0].texts);
	free(parts[1].texts);
	return status;
}

static enum status add_row(struct example_set *set, const struct columns *columns, const struct ranking_options *options,
			   const struct table *table, int64_t number, const struct row *row)
{
	bool scored = row->scores.count > 0;
	if (columns->positive < 0)
		return add_example(set, table, number, row, NULL, NULL, NULL);
	if (columns->lists && !options->scores_all)
		return add_list(set, table, number, row);
	for (int64_t i = 0; i < row->positives.count; i++) {
		const char *score = scored                                               ? row->scores.texts[i]
				    : options->scores_all && columns->negative_count > 0 ? "1"
											 : NULL;
		TRY(add_example(set, table, number, row, row->positives.texts[i], score,
				options->scores_all ? NULL : &row->negatives));
	}
	for (int64_t i = 0; options->scores_all && i < row->negatives.count; i++)
		TRY(add_example(set, table, number, row, row->negatives.texts[i],
				scored && options->scores_rows ? row->scores.texts[row->positives.count + i] : "0", NULL));
	return OK;
}

static enum status take_rows(struct example_set *set, const struct columns *columns, const struct ranking_options *options,
			     const struct table *table)
{
	struct row row = {0};
	enum status status = OK;
	for (int64_t number = 0; number < table->row_count && status == OK; number++) {
		int64_t count = set->count, choices = set->choice_count;
		status = take_row(set, columns, options, table, number, &row);
		if (status == OK)
			status = add_row(set, columns, options, table, number, &row);
		if (status != OK) {
			set->count = count;
			set->choice_count = choices;
			status = bad_record(options->bad, status);
		}
	}
	row_release(&row);
	return status;
}

/* ---- Files ---- */

static const char *name_of(const struct table *table, int64_t column)
{
	return column < 0 ? NULL : table->columns[column];
}

static void log_file(const struct table *table, const struct columns *columns, enum ranking_form form)
{
	struct buffer text = {0};
	table_describe(table, &text);
	header_hints_describe(table, &text);
	buffer_format(&text, "; taken as %s: %s", ranking_form_names[form], name_of(table, columns->anchor));
	/* With negatives, positives have the score 1. */
	bool scored = form == RANKING_SCORED && columns->negative_count == 0;
	if (columns->positive >= 0)
		buffer_format(&text, "; %s: %s", scored ? "second text" : "what belongs to it",
			      name_of(table, columns->positive));
	for (int64_t i = 0; i < columns->negative_count; i++)
		buffer_format(&text, "%s%s", i == 0 ? "; what does not: " : ", ", table->columns[columns->negatives[i]]);
	if (columns->score >= 0)
		buffer_format(&text, "; score: %s", name_of(table, columns->score));
	log_note("'%s': %s", table->name, buffer_string(&text));
	buffer_release(&text);
}

static enum status check_form(const struct table *table, const struct ranking_options *options, enum ranking_form form)
{
	if (form == RANKING_TEXTS && !options->allows_texts)
		return which(table, "there is one text a row where two are needed", NAME_THEM);
	if (options->needs_scores && options->scores_all && form == RANKING_PAIRS)
		return which(table, "there are pairs, but neither a score nor texts that do not belong to the first", NAME_THEM);
	return OK;
}

static enum status open_table(struct table *table, const char *path, const struct ranking_options *options)
{
	const char *names[HEADER_NAMES + 1];
	struct table_options how = {.skips_empty = !options->allows_empty,
				    .least_fields = options->layout ? options->layout->least_columns : 0,
				    .bad = options->bad};
	struct header_hints hints = {0};
	const struct example_piece *piece = options->piece;
	list_header_names(names);
	enum status status = header_hints_find(&hints, &options->given, &options->trained, options->negatives, names, &how);
	if (status == OK)
		status = piece ? table_read_piece(table, &piece->table, &how) : table_read(table, path, &how);
	header_hints_release(&hints);
	return status;
}

static enum status read_table(struct example_set *set, struct table *table, const char *path,
			      const struct ranking_options *options, enum ranking_form *form)
{
	struct columns columns = {0};
	const struct example_piece *piece = options->piece;
	const bool goes_on = piece && piece->table.like;
	int64_t before = set->count;
	bool first = before == options->first;
	TRY(open_table(table, path, options));
	set->table_count++;
	if (goes_on && table->row_count == 0)
		return OK;
	if (table->row_count == 0)
		return error_set(ERR_DATA, "'%s': there are no rows in it%s", table->name,
				 options->bad->count > 0 ? " that can be used" : "");
	enum status status = settle_columns(set, table, options, &columns);
	enum ranking_form own = form_of(&columns, options);
	if (status == OK)
		status = check_form(table, options, own);
	if (status == OK && !first && own != *form)
		status = error_set(ERR_DATA,
				   "'%s' has %s, the file before it %s: all files of a set must have the same "
				   "form",
				   table->name, ranking_form_names[own], ranking_form_names[*form]);
	if (status == OK) {
		*form = own;
		set->columns = (struct column_choice){name_of(table, columns.anchor), name_of(table, columns.positive),
						      name_of(table, columns.score), name_of(table, columns.id)};
		set->has_pairs = columns.positive >= 0;
		set->has_labels = own == RANKING_SCORED;
		set->has_ids = columns.id >= 0;
		if (!goes_on)
			log_file(table, &columns, own);
		status = take_rows(set, &columns, options, table);
	}
	free(columns.negatives);
	if (status == OK && set->count == before && !goes_on)
		status = error_set(ERR_DATA, "'%s': none of its rows can be used", table->name);
	return status;
}

enum status ranking_file_read(struct example_set *set, const char *path, const struct ranking_options *options,
			      enum ranking_form *form)
{
	TRY(memory_grow(&set->tables, &set->table_capacity, set->table_count + 1, sizeof *set->tables, "tables"));
	return read_table(set, &set->tables[set->table_count], path, options, form);
}
