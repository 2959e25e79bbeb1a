/* Labeled examples from tables (formats/table.h): which columns hold what, and rows as examples. */
#ifndef TASKS_EXAMPLES_H
#define TASKS_EXAMPLES_H

#include <stdbool.h>
#include <stdint.h>
#include "base/buffer.h"
#include "base/error.h"
#include "base/json.h"
#include "base/option.h"
#include "base/string_store.h"
#include "formats/bad_records.h"
#include "formats/table.h"
#include "tasks/layouts.h"

/* Strings belong to the set. */
struct example_text {
	const char *text;
	const char *pair;  /* NULL: a text alone */
	const char *label; /* as in the file; NULL: it has none, or it is to be predicted and its label could not be read */
	bool lists_labels; /* `label` is a list in JSON: it was one in a JSON file, or was made from columns of 0 and 1 */
	const char *id;    /* NULL: it has none */
	bool id_is_number; /* it was a number in JSON */
	const char *file;  /* NULL: a text in memory, whose number is `line` */
	int64_t line;
	/* Range of `choices`. TASK_INPUT_CHOICES: sequence i consists of text and choices[first_choice + i]. TASK_INPUT_DIALOGUE:
	 * what was said before the text, oldest first. */
	int64_t first_choice;
	int32_t choice_count;
	int64_t table, row; /* private: where it came from */
};

/* Columns as named by an option or in the record of training. NULL: none. */
struct column_choice {
	const char *text, *pair, *label, *id; /* TASK_INPUT_DIALOGUE: pair is a list separated by commas */
};
extern const struct option column_rows[]; /* --text_column, --pair_column, --label_column */

struct example_options {
	enum task_input input; /* TASK_INPUT_TEXT: a second column is taken, too, where generic_pairs finds both */
	enum task_target target;
	const struct layout *layout;  /* NULL: not a published task */
	struct column_choice given;   /* by options: names, or numbers from 1; they must exist */
	struct column_choice trained; /* of the training set: take precedence over the layout's if the file has them */
	bool needs_labels;            /* a file or a row without labels is ERR_DATA */
	bool relates;                 /* texts are never pairs; a list of words ("tokens") may take the place of a text */
	bool allows_empty;            /* a row without text is an example (for predictions), not a bad record */
	enum table_choice header;
	char delimiter; /* 0: detect */
	struct bad_records *bad;
	const struct example_piece *piece; /* read only this part of the file; NULL: all of it */
};

struct example_columns;
/* Some lines of a file that is read in pieces. */
struct example_piece {
	struct table_piece table;
	const struct example_columns *columns; /* of the first piece, if this is a later one */
};

/* Zero-initialize; release when done. */
struct example_set {
	struct example_text *examples; /* [count] in the order of files and rows */
	int64_t count;
	const char **choices; /* [choice_count] the second text of each choice, with the shared beginning; or contexts */
	int64_t choice_count;
	bool has_pairs, has_labels, has_ids; /* of the last file read; the files of one set should agree */
	/* What the last file called them ("column 2" without a header); NULL: there was none. To be recorded by training. */
	struct column_choice columns;
	struct bad_records unread; /* labels of rows to be predicted that could not be read (example_drop_label()) */
	/* Private from here. */
	struct example_columns *found; /* of the last file; a caller that reads in pieces may take them over */
	struct table *tables;
	int64_t table_count, table_capacity, capacity, choice_capacity;
	struct string_store strings;
};

/* Reads a file and appends its examples. Logs what was detected and which columns are used. Errors besides those of table_read():
 * ERR_DATA or ERR_USAGE if a column is missing, listing the existing ones; a row without text, or without a label where it needs
 * one. A file without a header that follows another file uses the same columns. */
MUST_USE enum status example_set_read(struct example_set *set, const char *path, const struct example_options *options);
/* Appends an example from a request; the set borrows its strings. `pair` NULL: a text alone. */
MUST_USE enum status example_set_add(struct example_set *set, const char *text, const char *pair);
/* Call this with the status of reading an example's label, which is returned. But if labels are not needed, ERR_DATA is counted
 * and OK returned: the example then has none, since files to be predicted often have placeholders such as -1. */
MUST_USE enum status example_drop_label(struct example_set *set, struct example_text *example, bool needs_labels,
					enum status status);
/* Logs how many labels of `path` could not be read, if any. */
void example_log_unread(const struct bad_records *unread, const char *path);
/* The texts of an example, the first text first, in `out`; returns their number. */
int64_t example_texts(const struct example_set *set, int64_t number, const char **out);
void example_set_release(struct example_set *set);
void example_columns_free(struct example_columns *columns); /* NULL is fine */

/* Writes the example's id, if it has one, as the member "id": a number if it was one. */
void example_put_id(const struct example_set *set, int64_t example, struct json_writer *writer);

/* Whether the example is the first row of a table in which no header was found, and its label may be a column's name. */
bool example_may_be_header(const struct example_set *set, int64_t example);
/* Adds to an error that the example's row may be a header: the options that name its columns. */
void example_hint_at_header(const struct example_set *set, int64_t example);
/* Warns that the row may be a header, since no other has its label. */
void example_warn_of_header(const struct example_set *set, int64_t example);

/* The field in the example's row under this column name; NULL: none. JSON lists are text. */
const char *example_field(const struct example_set *set, int64_t example, const char *column);
/* The same for a column that a user specifies, as table_choose_column() finds it. */
MUST_USE enum status example_chosen_field(const struct example_set *set, int64_t example, const char *name_or_number,
					  const char **out);

/* The right choice of an example, counted from 0. Its label is the name of a choice in the file ({"label": "1", "text": ...}), a
 * number from 0, a letter from A, or the text of one choice. Anything else is ERR_DATA with file and line, and *out -1. */
MUST_USE enum status example_right_choice(const struct example_set *set, int64_t example, int32_t *out);

#endif
