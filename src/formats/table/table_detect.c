/* Detects the form of a table: JSON by its first bytes; the delimiter by how many rows have the same number of fields; quoting by
 * features that only quoted text has, since in GLUE's TSV files '"' is an ordinary character. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include "base/json.h"
#include "formats/table/table_internal.h"

/* How much of a file is examined to find its delimiter. */
#define SAMPLE_BYTES ((size_t)1 << 20)

/* The result of splitting the text in one way. */
struct survey {
	int64_t records, usual, usual_records; /* usual: the most frequent number of fields; usual_records have it */
	int64_t least;                         /* the smallest number of fields of any record */
	int64_t first_quoted;                  /* quoted fields in the first record */
	int64_t first_fields, like_first;      /* fields in the first record; records with the same number */
	int64_t doubled;                       /* single-line fields in which "" stands for a quote */
	int64_t embedded;                      /* quoted fields that contain a delimiter */
	int64_t across_lines;                  /* records that span several lines */
	int64_t problems;                      /* unterminated quotes, text after a closing quote */
	int64_t inner;  /* unquoted fields that contain a quote: a program that quotes would have quoted these */
	int64_t always; /* columns that are quoted in every record except the first */
};

static void look_at_field(const struct splitter *splitter, const struct field_range *field, struct survey *survey)
{
	const char *text = splitter->text + field->begin;
	size_t size = field->end - field->begin;
	if (!field->quoted) {
		survey->inner += memchr(text, '"', size) != NULL;
		return;
	}
	bool one_line = memchr(text, '\n', size) == NULL;
	survey->doubled += field->doubled && one_line;
	survey->embedded += memchr(text, splitter->delimiter, size) != NULL;
}

static enum status take_survey(const char *text, size_t size, char delimiter, bool quoted, struct survey *out)
{
	struct splitter splitter = {.text = text, .size = size, .line = 1, .delimiter = delimiter, .quoted = quoted};
	int64_t counts[COUNTED_FIELDS + 1] = {0}, quoted_in[COUNTED_FIELDS + 1] = {0};
	enum status status;
	bool end = false;

	*out = (struct survey){0};
	for (;;) {
		TRY_GOTO(splitter_next(&splitter, &end), done);
		if (end)
			break;
		if (splitter.blank && delimiter)
			continue;
		int64_t fields = splitter.field_count < COUNTED_FIELDS ? splitter.field_count : COUNTED_FIELDS;
		counts[fields]++;
		out->across_lines += splitter.line > splitter.record_line + 1 ||
				     (splitter.at == size && splitter.line > splitter.record_line && text[size - 1] != '\n');
		out->problems += splitter.problem != RECORD_FINE;
		for (int64_t i = 0; i < fields; i++) {
			look_at_field(&splitter, &splitter.fields[i], out);
			if (out->records == 0)
				out->first_quoted += splitter.fields[i].quoted;
			else
				quoted_in[i] += splitter.fields[i].quoted;
		}
		if (out->records == 0)
			out->first_fields = out->least = splitter.field_count;
		if (splitter.field_count < out->least)
			out->least = splitter.field_count;
		out->like_first += splitter.field_count == out->first_fields;
		out->records++;
	}
	for (int64_t i = 1; i <= COUNTED_FIELDS; i++) {
		if (counts[i] > out->usual_records) {
			out->usual = i;
			out->usual_records = counts[i];
		}
		out->always += out->records > 3 && quoted_in[i] == out->records - 1;
	}
	out->always += out->records > 3 && quoted_in[0] == out->records - 1;
done:
	splitter_release(&splitter);
	return status;
}

/* Only whole lines, so that no record is cut. */
static size_t sample_size(const struct table *table)
{
	if (table->text.size <= SAMPLE_BYTES)
		return table->text.size;
	const char *last = memrchr(table->text.data, '\n', SAMPLE_BYTES);
	return last ? (size_t)(last - table->text.data) + 1 : table->text.size;
}

static bool is_nearly_all(const struct survey *survey)
{
	return survey->usual >= 2 && survey->usual_records * 10 >= survey->records * 9;
}

static bool is_all(const struct survey *survey)
{
	return survey->usual >= 2 && survey->usual_records == survey->records;
}

/* Whether '"' quotes fields in this tab-separated text. */
static enum status tabs_are_quoted(const struct table *table, bool *out)
{
	struct survey raw, quoted;

	*out = false;
	if (!memchr(table->text.data, '"', table->text.size))
		return OK;
	TRY(take_survey(table->text.data, table->text.size, '\t', false, &raw));
	TRY(take_survey(table->text.data, table->text.size, '\t', true, &quoted));
	if (quoted.first_quoted == quoted.first_fields)
		*out = true;
	else if (quoted.problems > 0 || quoted.inner > 0)
		*out = false;
	else if (raw.usual_records == raw.records)
		*out = quoted.across_lines == 0 && (quoted.doubled > 0 || quoted.always > 0);
	else
		*out = quoted.usual_records == quoted.records;
	return OK;
}

/* Unless the file name says otherwise, text with commas may be prose, so its first line must look like column names. Letters of
 * two bytes are those of alphabets; scripts without spaces between words have letters of three. */
static bool table_begins_with_names(const char *text, size_t size, char delimiter)
{
	const char *newline = memchr(text, '\n', size);
	size_t end = newline ? (size_t)(newline - text) : size;
	for (size_t i = 0; i < end; i++) {
		unsigned char c = (unsigned char)text[i];
		if (c > 0xC2 && c < 0xE0 && i + 1 < end)
			i++;
		else if (!isalnum(c) && !strchr("_-.\"#\r", c) && text[i] != delimiter)
			return false;
	}
	return end > 0;
}

struct table_names table_names_of_line(const char *line, size_t size, char delimiter, const struct table_options *options)
{
	struct splitter splitter = {.text = line, .size = size, .delimiter = delimiter, .quoted = true};
	struct table_names names = {0};
	bool end;
	if (splitter_next(&splitter, &end) == OK && !end)
		for (; names.fields < splitter.field_count; names.fields++) {
			const struct field_range *field = &splitter.fields[names.fields];
			names.known += table_is_listed(line + field->begin, field->end - field->begin, options->known_names);
			names.given += table_is_listed(line + field->begin, field->end - field->begin, options->given_names);
		}
	splitter_release(&splitter);
	names.may_be_header = names.given > 0 || (names.fields > 0 && names.known == names.fields) ||
			      table_begins_with_names(line, size, delimiter);
	return names;
}

/* Whether each comma is between two digits, as in "0,96". */
static bool commas_are_decimal(const char *text, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (text[i] == ',' &&
		    !(i > 0 && i + 1 < size && isdigit((unsigned char)text[i - 1]) && isdigit((unsigned char)text[i + 1])))
			return false;
	return true;
}

/* In a file that is a table with commas or the like by its name: the delimiter by which all rows have as many fields as the
 * first, or else nearly all; 0: none. */
static enum status detect_in_csv(const char *text, size_t size, const char *delimiters, char *out)
{
	struct survey surveys[4];
	*out = 0;
	for (size_t i = 0; delimiters[i]; i++)
		TRY(take_survey(text, size, delimiters[i], true, &surveys[i]));
	bool decimal = commas_are_decimal(text, size);
	for (int pass = 0; pass < 3 && !*out; pass++)
		for (size_t i = 0; delimiters[i] && !*out; i++) {
			bool fits = pass < 2 ? is_all(&surveys[i]) && surveys[i].problems == 0 : is_nearly_all(&surveys[i]);
			if (fits && !(pass == 0 && delimiters[i] == ',' && decimal))
				*out = delimiters[i];
		}
	return OK;
}

static enum status detect_delimiter(const struct table *table, enum table_hint hint, const struct table_options *options,
				    char *out)
{
	static const char others[] = ",;|";
	struct survey tabs, quoted;
	size_t size = sample_size(table);
	const char *text = table->text.data;

	*out = '\t';
	TRY(take_survey(text, size, '\t', false, &tabs));
	TRY(take_survey(text, size, '\t', true, &quoted));
	if (is_nearly_all(&tabs) || is_nearly_all(&quoted) || (hint == HINT_TSV && tabs.first_fields > 1))
		return OK;
	if (hint == HINT_CSV) {
		TRY(detect_in_csv(text, size, others, out));
		if (*out)
			return OK;
	}
	size_t blank = strspn(text, "\r\n");
	for (size_t i = 0; others[i] && hint != HINT_CSV; i++) {
		TRY(take_survey(text, size, others[i], true, &quoted));
		*out = others[i];
		struct table_names names = table_names_of_line(text + blank, size - blank, others[i], options);
		/* A single row may be the header of a table without rows. */
		if (is_all(&quoted) && quoted.problems == 0 && names.may_be_header &&
		    (quoted.records >= 2 || names.known + names.given > 0))
			return OK;
	}
	/* Rows of different lengths with tabs in every one; or a damaged file, which is read as its name suggests, so that errors
	 * tell where the damage is. */
	bool tabs_everywhere = tabs.least >= 2 && tabs.records >= 2;
	*out = hint == HINT_TSV || tabs_everywhere ? '\t' : hint == HINT_CSV ? ',' : 0;
	return OK;
}

enum status table_usual_fields(const struct table *table, int64_t *out)
{
	struct survey survey;
	TRY(take_survey(buffer_string(&table->text), table->text.size, table->delimiter, table->quoted, &survey));
	bool first = survey.usual == COUNTED_FIELDS || survey.usual_records <= survey.like_first;
	*out = first ? survey.first_fields : survey.usual;
	return OK;
}

/* Whether the text begins with '{' and a key, or '[' and an object. */
static bool begins_as_json(const char *text, size_t size, char bracket)
{
	static const char white[] = " \t\r\n\x1E";
	size_t at = 0;
	while (at < size && strchr(white, text[at]) && text[at])
		at++;
	if (at == size || text[at] != bracket)
		return false;
	for (at++; at < size && text[at] && strchr(white, text[at]);)
		at++;
	return at < size && (bracket == '{' ? text[at] == '"' || text[at] == '}' : text[at] == '{' || text[at] == ']');
}

enum status table_detect(struct table *table, enum table_hint hint, const struct table_options *options)
{
	if (!options->delimiter && !begins_as_json(buffer_string(&table->text), table->text.size, '{') &&
	    !begins_as_json(buffer_string(&table->text), table->text.size, '['))
		table_unify_separators(table);
	const char *text = buffer_string(&table->text);
	size_t size = table->text.size;

	table->form = TABLE_DELIMITED;
	table->delimiter = options->delimiter;
	table->quoted = options->quotes == TABLE_YES;
	if (!options->delimiter && begins_as_json(text, size, '{'))
		table->form = TABLE_JSON_LINES;
	else if (!options->delimiter && begins_as_json(text, size, '['))
		table->form = TABLE_JSON_ARRAY;
	if (table->form != TABLE_DELIMITED || size == 0)
		return OK;
	if (!options->delimiter)
		TRY(detect_delimiter(table, hint, options, &table->delimiter));
	if (options->quotes != TABLE_DETECT || table->delimiter == 0)
		return OK;
	if (table->delimiter == '\t')
		return tabs_are_quoted(table, &table->quoted);
	table->quoted = true;
	return OK;
}
