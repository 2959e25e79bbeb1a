/* Tables in text files: TSV, CSV (RFC 4180), JSON lines and JSON arrays of objects, packed or not. Which of them a file is
 * is detected from its content; its name decides only where the content does not. Fields may also stand between "|||" or two
 * tabs. A file of one text a line is a table of one column. All of a table is in memory, in a constant times the size of the
 * file. */
#ifndef FORMATS_TABLE_H
#define FORMATS_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/buffer.h"
#include "base/error.h"
#include "base/string_store.h"
#include "formats/bad_records.h"

enum table_form { TABLE_DELIMITED, TABLE_JSON_LINES, TABLE_JSON_ARRAY };
enum table_choice { TABLE_DETECT, TABLE_YES, TABLE_NO };

struct table_options {
	enum table_choice header; /* does a delimited file begin with the names of its columns? */
	enum table_choice quotes; /* are fields quoted as RFC 4180 has it, or is '"' a character like others? */
	char delimiter;           /* 0: detect */
	int64_t least_fields;     /* 0: all rows have as many fields as most. Else a row may have more or fewer, but so many */
	const char *const *known_names; /* names that tell a header, in any case of letters; ends with NULL; may be NULL */
	struct bad_records *bad;
};

/* Lines of a file that is read piece by piece. */
struct table_piece {
	const char *name; /* of the file */
	const char *text;
	size_t size;
	int64_t first_line;       /* number of its first line in the file, from 1 */
	const struct table *like; /* the first piece, whose form and columns this one has; NULL: this is it */
};

/* A row: fields [first_field, first_field + field_count) of the table. */
struct table_row {
	int64_t line; /* where it begins, from 1 */
	int64_t first_field;
	int32_t field_count;
};

struct table {
	const char *name; /* of the file, for messages */
	enum table_form form;
	char delimiter;        /* of a delimited file; 0: one column, a line each */
	const char *separator; /* "|||" or two tabs, which stood in place of each tab; NULL: neither */
	bool quoted;           /* fields may be quoted */
	bool has_header;       /* of a delimited file */
	int64_t row_count, column_count;
	const char **columns;   /* [column_count] names; "column 1" and so on without a header. JSON: the keys of all objects in
				   the order in which they are first met, "a.b" for b within a */
	struct table_row *rows; /* [row_count] */
	const char **fields;    /* UTF-8 without NULs. JSON: strings as they are, lists as JSON text, else the literal */
	int32_t *field_columns; /* JSON: the column of each field; NULL: a row has all columns in order */
	bool *field_lists;      /* JSON: is the field a list, not a string that looks like one? NULL: no field is */
	int64_t blank_lines;    /* passed over */
	/* Private from here. */
	struct buffer text;
	struct string_store strings;
	bool is_piece;
	int64_t first_line; /* of the text */
	const struct table *like;
	int64_t field_total, row_capacity, field_capacity, field_column_capacity, field_list_capacity, column_capacity;
};

/* Reads all of `path` ("-": standard input). ERR_DATA names file and line: a row with too few or too many fields, a quote
 * that never ends, text behind a closing quote, damaged JSON, invalid UTF-8, a NUL; such rows are left out and counted under
 * --on_bad_record skip. A table without rows is OK. */
MUST_USE enum status table_read(struct table *out, const char *path, const struct table_options *options);
/* The same of a piece, which begins and ends between rows. One object over several lines and lists of objects cannot be read so:
 * ERR_USAGE. */
MUST_USE enum status table_read_piece(struct table *out, const struct table_piece *piece, const struct table_options *options);
/* A table without rows that has the form and the columns of another: for the pieces after the first. */
MUST_USE enum status table_copy_form(struct table *out, const struct table *of);
void table_release(struct table *table);

/* The field, or NULL if the row has none in this column (JSON: no such key, or null). */
const char *table_field(const struct table *table, int64_t row, int64_t column);
/* Has the row's JSON object no such member? (Rows of other forms that are too short are bad records by themselves.) A column
 * below 0 is lacked by none. */
bool table_lacks(const struct table *table, int64_t row, int64_t column);
/* Does the field hold a list of JSON? */
bool table_field_is_list(const struct table *table, int64_t row, int64_t column);
/* The column of this name (if there is none: of this name but for the case of ASCII letters), or -1. */
int64_t table_find_column(const struct table *table, const char *name);
/* The column that a person means by a name or by a number from 1. Not there: ERR_USAGE with the columns that are. */
MUST_USE enum status table_choose_column(const struct table *table, const char *name_or_number, int64_t *out);
/* Appends what was detected: "TSV with a header, 3 columns (label, sentence1, sentence2), 24,000 rows". */
void table_describe(const struct table *table, struct buffer *out);
/* Appends the names of the columns: "1 label, 2 sentence1, 3 sentence2"; without a header "1 to 3, without names". */
void table_list_columns(const struct table *table, struct buffer *out);

#endif
