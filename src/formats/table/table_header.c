/* Tells whether the first row of a table has the names of its columns. A usual name ("text", "question") may also be a label or a
 * text of a table without a header, so one such name counts only if nothing else in the table says that the row is data. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "formats/table/table_internal.h"

/* In a column of labels, a value of the first row comes again. A text that happens to be the column's name is rarer than this. */
#define ROWS_PER_REPEAT 1000
#define NAME_MOST 40        /* characters */
#define SENTENCE_WORDS 6    /* names of columns have fewer words */
#define SENTENCE_LETTERS 60 /* and fewer characters */

void table_trim_name(const char **begin, size_t *size)
{
	while (*size > 0 && (**begin == ' ' || **begin == '\r')) {
		++*begin;
		--*size;
	}
	while (*size > 0 && ((*begin)[*size - 1] == ' ' || (*begin)[*size - 1] == '\r'))
		--*size;
}

bool table_is_listed(const char *field, size_t size, const char *const *names)
{
	table_trim_name(&field, &size);
	for (; names && *names; names++)
		if (strlen(*names) == size && strncasecmp(*names, field, size) == 0)
			return true;
	return false;
}

static bool is_listed(const char *field, const char *const *names)
{
	return table_is_listed(field, strlen(field), names);
}

/* A decimal comma marks a number, too: whether such numbers can be used is not decided here. */
static bool is_number(const char *text)
{
	char *end;
	if (!*text || isspace((unsigned char)*text))
		return false;
	(void)strtod(text, &end);
	if (*end == ',' && end > text && end[1])
		end += 1 + strspn(end + 1, "0123456789");
	return *end == '\0';
}

static int64_t count_letters(const char *text)
{
	int64_t count = 0;
	for (; *text; text++)
		count += ((unsigned char)*text & 0xC0) != 0x80;
	return count;
}

/* Full stops, question and exclamation marks, and commas of Chinese and Japanese. */
static const char *const wide_marks[] = {"。", "！", "？", "，"};
#define WIDE_MARKS (sizeof wide_marks / sizeof *wide_marks)

/* Whether the field looks like a column name: short, begins with a letter, and has no sentence punctuation. */
static bool is_like_a_name(const char *field)
{
	size_t size = strlen(field);
	table_trim_name(&field, &size);
	if (size == 0 || !(isalpha((unsigned char)*field) || *field == '_' || *field == '#' || (unsigned char)*field >= 0x80))
		return false;
	for (const char *p = field; p < field + size; p++)
		if (!isalnum((unsigned char)*p) && !strchr("_-.# ", *p) && (unsigned char)*p < 0x80)
			return false;
	for (size_t i = 0; i < WIDE_MARKS; i++)
		if (strstr(field, wide_marks[i]))
			return false;
	return count_letters(field) <= NAME_MOST;
}

static bool is_like_a_sentence(const char *field)
{
	size_t size = strlen(field);
	int64_t words = 0;
	table_trim_name(&field, &size);
	for (size_t i = 0; i < size; i++)
		words += field[i] != ' ' && (i == 0 || field[i - 1] == ' ');
	for (size_t i = 0; i < WIDE_MARKS; i++)
		if (strstr(field, wide_marks[i]))
			return true;
	bool ends = words > 1 && size > 0 && strchr(".!?", field[size - 1]);
	return ends || words >= SENTENCE_WORDS || count_letters(field) > SENTENCE_LETTERS;
}

static const char *field_at(const struct table *table, int64_t row, int64_t column)
{
	const struct table_row *at = &table->rows[row];
	return column < at->field_count ? table->fields[at->first_field + column] : "";
}

/* Files that were joined repeat their header. */
static bool is_first_row_again(const struct table *table, int64_t row)
{
	bool same = table->rows[row].field_count == table->rows[0].field_count;
	for (int64_t column = 0; column < table->rows[0].field_count && same; column++)
		same = strcmp(field_at(table, row, column), field_at(table, 0, column)) == 0;
	return same;
}

/* Whether what the first row has in this column is a value of other rows, too. */
static bool is_repeated(const struct table *table, int64_t column)
{
	int64_t repeats = 0;
	for (int64_t row = 1; row < table->row_count; row++)
		repeats +=
			strcmp(field_at(table, row, column), field_at(table, 0, column)) == 0 && !is_first_row_again(table, row);
	return repeats > 0 && repeats * ROWS_PER_REPEAT >= table->row_count;
}

/* A column of numbers below a word. */
static bool has_name_above_numbers(const struct table *table)
{
	for (int64_t column = 0; column < table->rows[0].field_count; column++) {
		const char *name = field_at(table, 0, column);
		int64_t numbers = 0, others = !*name || is_number(name);
		for (int64_t row = 1; row < table->row_count && others == 0; row++) {
			bool number = is_number(field_at(table, row, column));
			numbers += number;
			others += !number && !is_first_row_again(table, row);
		}
		if (numbers > 0 && others == 0)
			return true;
	}
	return false;
}

/* Whether the line below a name is a text of several words: in a list of words, the name is one of them. Later lines have no say,
 * since they may not have arrived yet. */
static bool is_text_below(const struct table *table)
{
	const char *text = table->row_count > 1 ? field_at(table, 1, 0) : "";
	bool ascii = true;
	for (const char *p = text; *p && ascii; p++)
		ascii = (unsigned char)*p < 0x80;
	return !ascii || strchr(text, ' ');
}

/* What the fields of the first row are. */
struct first_row {
	int64_t count, known, repeated, names, empty, doubled, data;
};

static struct first_row look_at_first_row(const struct table *table, const char *const *known_names)
{
	struct first_row row = {.count = table->rows[0].field_count};
	for (int64_t i = 0; i < row.count; i++) {
		const char *field = field_at(table, 0, i);
		bool known = is_listed(field, known_names), doubled = false;
		for (int64_t j = 0; j < i && j < COUNTED_FIELDS && *field && !doubled; j++)
			doubled = strcmp(field, field_at(table, 0, j)) == 0;
		row.doubled += doubled;
		row.known += known;
		row.repeated += known && is_repeated(table, i);
		row.empty += !*field;
		row.names += is_like_a_name(field);
		row.data += !known && (is_number(field) || is_like_a_sentence(field));
	}
	return row;
}

bool table_first_row_is_header(const struct table *table, enum table_hint hint, const struct table_options *options)
{
	if (table->row_count == 0)
		return false;
	for (int64_t i = 0; i < table->rows[0].field_count; i++)
		if (is_listed(field_at(table, 0, i), options->given_names))
			return true;
	struct first_row row = look_at_first_row(table, options->known_names);
	/* An index column without a name, as written by spreadsheets and pandas, is one of the names. */
	bool names = row.count > 1 && row.names + row.empty == row.count && row.empty <= 1 && row.doubled == 0;
	if ((names || row.known > 0) && has_name_above_numbers(table))
		return true;
	if (row.known == row.repeated) /* there is no known name, or none that is not also a value */
		return false;
	if (row.known > 1)
		return true;
	if (row.count == 1)
		return hint != HINT_NONE || (!options->rather_no_header && is_text_below(table));
	return row.data == 0 && !options->rather_no_header;
}

const char *table_name_in_first_row(const struct table *table, const char *const *known_names)
{
	int64_t count = table->row_count > 0 ? table->rows[0].field_count : 0;
	for (int64_t i = 0; i < count; i++)
		if (is_listed(field_at(table, 0, i), known_names))
			return field_at(table, 0, i);
	return NULL;
}
