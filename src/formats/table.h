/* Tables in text files: TSV, CSV (RFC 4180), JSON lines, and JSON arrays of objects, compressed or not. The format is detected
 * from the content; the name decides only if the content does not. Fields may also be separated by "|||" or two tabs. A file with
 * one text per line is a table of one column, in which an empty line is a row; between rows of several columns it is skipped. The
 * whole table is in memory, which takes a constant times the size of the file. */
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
/* What a field of a JSON file was written as, whatever it looks like. */
enum table_field_kind { FIELD_TEXT, FIELD_LIST, FIELD_NUMBER };

struct table_options {
	enum table_choice header; /* whether a delimited file begins with the names of its columns */
	enum table_choice quotes; /* whether fields are quoted as in RFC 4180, or '"' is an ordinary character */
	char delimiter;           /* 0: detect */
	/* Rows of a table with tabs may differ in their number of fields if most have at least this many, and then all must.
	 * Otherwise, with 0, and with commas (which an unquoted text may contain), every row must have as many as most rows. */
	int64_t least_fields;
	/* Names of columns, ignoring case; both lists end with NULL, and may be NULL. */
	const char *const *known_names; /* usual names, which show a header unless the table shows that they are data */
	const char *const *given_names; /* by the user or recorded in training: a row that has one is a header */
	bool skips_empty;               /* pass over empty lines of a single column, too, where each is a row otherwise */
	bool rather_no_header;          /* similar files have none: then one usual name does not show a header */
	struct bad_records *bad;
};

/* Some lines of a file that is read piece by piece. */
struct table_piece {
	const char *name; /* of the file */
	const char *text;
	size_t size;
	int64_t first_line;       /* number of its first line in the file, from 1 */
	const struct table *like; /* the first piece, whose form and columns this one has; NULL: this is the first */
};

/* A row: fields [first_field, first_field + field_count) of the table. */
struct table_row {
	int64_t line; /* number of its first line, from 1 */
	int64_t first_field;
	int32_t field_count;
};

struct table {
	const char *name; /* of the file, for messages */
	enum table_form form;
	char delimiter;        /* of a delimited file; 0: one column, one line each */
	const char *separator; /* "|||" or two tabs, which tabs have replaced; NULL: neither */
	bool quoted;           /* fields may be quoted */
	bool has_header;       /* of a delimited file */
	const char *odd_name;  /* a usual name in the first row, which was not taken as a header; NULL: there is none */
	int64_t row_count, column_count;
	const char **columns;   /* [column_count] names; without a header "column 1" and so on. JSON: the keys of all objects in
				   order of first occurrence, "a.b" for b within a */
	struct table_row *rows; /* [row_count] */
	const char **fields;    /* UTF-8 without NULs. JSON: strings as they are, lists as JSON text, others as the literal */
	int32_t *field_columns; /* JSON: the column of each field; NULL: a row has all columns in order */
	unsigned char *field_kinds; /* JSON: enum table_field_kind of each field; NULL: all are text */
	int64_t blank_lines;        /* skipped */
	/* Private from here. */
	struct buffer text;
	struct string_store strings;
	int hint; /* what the file's name says of its form */
	bool is_piece;
	int64_t first_line; /* line number at which the text begins */
	const struct table *like;
	int64_t field_total, row_capacity, field_capacity, field_column_capacity, field_kind_capacity, column_capacity;
};

/* Reads all of `path` ("-": standard input). ERR_DATA, naming file and line: a row with too few or too many fields, an
 * unterminated quote, text after a closing quote, damaged JSON, invalid UTF-8, or a NUL; under --on_bad_record skip, such rows
 * are skipped and counted. A table without rows is OK. */
MUST_USE enum status table_read(struct table *out, const char *path, const struct table_options *options);
/* The same for a piece, which must begin and end between rows. Lists of JSON objects cannot be read this way: ERR_USAGE. */
MUST_USE enum status table_read_piece(struct table *out, const struct table_piece *piece, const struct table_options *options);
/* Makes a table without rows that has the form and columns of another, for reading the pieces after the first. */
MUST_USE enum status table_copy_form(struct table *out, const struct table *of);
void table_release(struct table *table);

/* What a file's first line shows before its other lines are known. */
struct table_start {
	char delimiter;     /* 0: none, so that each line is a text */
	int64_t delimiters; /* in the line */
	bool may_be_header; /* it has a known name or words between delimiters: only the next line shows whether it is a row */
};
/* The names are those of struct table_options. */
void table_look_at_first_line(struct table_start *out, const char *line, size_t size, const char *const *known_names,
			      const char *const *given_names);
/* Whether the last of these lines of such a file ends within a quoted field, so that its row goes on. */
bool table_ends_within_row(const struct table_start *start, const char *text, size_t size);

/* The field, or NULL if the row has none in this column (JSON: no such key, or null). */
const char *table_field(const struct table *table, int64_t row, int64_t column);
/* Whether the row's JSON object lacks such a member or has null there. (In other forms, rows that are too short are bad records
 * anyway.) False if column < 0. */
bool table_lacks(const struct table *table, int64_t row, int64_t column);
/* FIELD_TEXT in tables that are not JSON. */
enum table_field_kind table_field_kind(const struct table *table, int64_t row, int64_t column);
/* The column with this name (if there is none, ignoring the case of ASCII letters), or -1. */
int64_t table_find_column(const struct table *table, const char *name);
/* The column that a user specifies by name or by number, from 1. If there is none, or there are several of that name, ERR_USAGE
 * listing the columns that exist. */
MUST_USE enum status table_choose_column(const struct table *table, const char *name_or_number, int64_t *out);
/* Refuses to use a column by a name that other columns have as well: ERR_USAGE, listing the columns. */
MUST_USE enum status table_check_name(const struct table *table, int64_t column);
/* Appends what was detected: "TSV with a header, 3 columns (label, sentence1, sentence2), 24,000 rows". */
void table_describe(const struct table *table, struct buffer *out);
/* Appends the names of the columns: "1 label, 2 sentence1, 3 sentence2"; without a header "1 to 3, without names". */
void table_list_columns(const struct table *table, struct buffer *out);

#endif
