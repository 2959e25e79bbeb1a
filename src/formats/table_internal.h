/* What the files of formats/table.h share. */
#ifndef FORMATS_TABLE_INTERNAL_H
#define FORMATS_TABLE_INTERNAL_H

#include "formats/table.h"

/* What the end of a file's name suggests, compression left out. */
enum table_hint { HINT_NONE, HINT_TSV, HINT_CSV };

/* A field of a record within the text; of a quoted one without its quotes. */
struct field_range {
	size_t begin, end;
	bool quoted, doubled; /* doubled: it holds "" for a quote */
};

enum record_problem { RECORD_FINE, RECORD_UNTERMINATED, RECORD_TRAILING_TEXT };

/* Records of a delimited text, one after the other. Nothing is changed. */
struct splitter {
	const char *text;
	size_t size, at; /* at: of the next record */
	int64_t line;    /* of the next record */
	char delimiter;
	bool quoted;
	/* The record. */
	struct field_range *fields;
	int64_t field_count, field_capacity;
	int64_t record_line;
	bool blank; /* an empty line */
	enum record_problem problem;
	int64_t problem_field; /* from 1 */
	size_t second_line;    /* where the line after the record's first begins */
};
/* Finds the next record; *out_end at the end of the text. */
MUST_USE enum status splitter_next(struct splitter *splitter, bool *out_end);
/* Goes on at the record's second line: after a record whose end is doubtful. */
void splitter_resume(struct splitter *splitter);
void splitter_release(struct splitter *splitter);

/* Makes separators of several characters tabs; notes them in table->separator. */
void table_unify_separators(struct table *table);
/* Puts a tab where table->separator stands, spaces around it included. */
void table_replace_separator(struct table *table);
/* Sets form, delimiter and quoted of a table whose text has been read; options decide first. */
MUST_USE enum status table_detect(struct table *table, enum table_hint hint, const struct table_options *options);
/* The number of fields that most rows of a delimited text have; the first row's if there is no clear majority. */
MUST_USE enum status table_usual_fields(const struct table *table, int64_t *out);
/* Does the text begin as a header does? Called with all rows read, of which the first is in question. */
bool table_first_row_is_header(const struct table *table, const char *const *known_names);

MUST_USE enum status table_read_delimited(struct table *table, const struct table_options *options);
MUST_USE enum status table_read_json(struct table *table, const struct table_options *options);

/* Adds a row, to which fields are then added. */
MUST_USE enum status table_add_row(struct table *table, int64_t line);
/* Adds a field to the last row; `column` is for JSON alone. */
MUST_USE enum status table_add_field(struct table *table, const char *text, int32_t column);
MUST_USE enum status table_add_column(struct table *table, const char *name);

#endif
