/* Shared by the files that implement formats/table.h. */
#ifndef FORMATS_TABLE_TABLE_INTERNAL_H
#define FORMATS_TABLE_TABLE_INTERNAL_H

#include "formats/table.h"

/* Tables with more columns are recognized as if they had this many. */
#define COUNTED_FIELDS 1024

/* What the suffix of a file name suggests, ignoring that of compression. */
enum table_hint { HINT_NONE, HINT_TSV, HINT_CSV };

/* The place of a field in the text, without quotes if it is quoted. */
struct field_range {
	size_t begin, end;
	bool quoted, doubled; /* doubled: it contains "", which stands for a quote */
};

enum record_problem { RECORD_FINE, RECORD_UNTERMINATED, RECORD_TRAILING_TEXT };

/* Iterates over the records of a delimited text, which it does not modify. */
struct splitter {
	const char *text;
	size_t size, at; /* at: offset of the next record */
	int64_t line;    /* of the next record */
	char delimiter;
	bool quoted;
	/* The current record. */
	struct field_range *fields;
	int64_t field_count, field_capacity;
	int64_t record_line;
	bool blank; /* an empty line */
	enum record_problem problem;
	int64_t problem_field; /* from 1 */
	size_t second_line;    /* offset of the line after the record's first */
};
/* Finds the next record; *out_end is true at the end of the text. */
MUST_USE enum status splitter_next(struct splitter *splitter, bool *out_end);
/* Continues at the record's second line; used after a record whose end is doubtful. */
void splitter_resume(struct splitter *splitter);
void splitter_release(struct splitter *splitter);

/* Detects a separator of several characters, stores it in table->separator, and replaces it with tabs. */
void table_unify_separators(struct table *table);
/* Replaces table->separator, with any spaces around it, by a tab. */
void table_replace_separator(struct table *table);
/* Sets form, delimiter, and quoted of a table whose text has been read; options take precedence. */
MUST_USE enum status table_detect(struct table *table, enum table_hint hint, const struct table_options *options);
/* The number of fields that most rows of a delimited text have; that of the first row if no number is more frequent. */
MUST_USE enum status table_usual_fields(const struct table *table, int64_t *out);
/* Drops spaces around a name. */
void table_trim_name(const char **begin, size_t *size);
/* Whether a field is one of these names, ignoring case and spaces around it. */
bool table_is_listed(const char *field, size_t size, const char *const *names);
/* How many fields of the first line are known names, and names that were given. */
struct table_names {
	int64_t fields, known, given;
	bool may_be_header; /* it looks like names of columns */
};
struct table_names table_names_of_line(const char *line, size_t size, char delimiter, const struct table_options *options);
/* Whether the first row is a header. Called when all rows have been read. */
bool table_first_row_is_header(const struct table *table, enum table_hint hint, const struct table_options *options);
/* The first field of the first row that is a known name; NULL: there is none. */
const char *table_name_in_first_row(const struct table *table, const char *const *known_names);

MUST_USE enum status table_read_delimited(struct table *table, const struct table_options *options);
MUST_USE enum status table_read_json(struct table *table, const struct table_options *options);

/* Adds a row, to which fields are then added. */
MUST_USE enum status table_add_row(struct table *table, int64_t line);
/* Adds a field to the last row; `column` is used only for JSON. */
MUST_USE enum status table_add_field(struct table *table, const char *text, int32_t column);
MUST_USE enum status table_add_column(struct table *table, const char *name);

#endif
