/* Labelled examples out of tables (formats/table.h): which columns hold what, and a row as an example. */
#ifndef TASKS_EXAMPLES_H
#define TASKS_EXAMPLES_H

#include <stdbool.h>
#include <stdint.h>
#include "base/buffer.h"
#include "base/error.h"
#include "base/string_store.h"
#include "formats/bad_records.h"
#include "formats/table.h"
#include "tasks/layouts.h"

/* Strings belong to the set. */
struct example_text {
	const char *text;
	const char *pair;  /* NULL: a text alone */
	const char *label; /* as in the file; NULL: it has none */
	const char *id;    /* NULL: it has none */
	const char *file;
	int64_t line;
	/* TASK_INPUT_CHOICES: in `choices`; sequence i is text, choices[first_choice + i]. TASK_INPUT_DIALOGUE: what was said
	 * before the text, the oldest first. */
	int64_t first_choice;
	int32_t choice_count;
	int64_t table, row; /* private: where it comes from */
};

/* Columns as a person names them: in an option, or in what was recorded of training. NULL: none. */
struct column_choice {
	const char *text, *pair, *label, *id; /* TASK_INPUT_DIALOGUE: pair is a list, commas between */
};

struct example_options {
	enum task_input input; /* TASK_INPUT_TEXT: two columns are taken too where generic_pairs finds both */
	enum task_target target;
	const struct layout *layout;  /* NULL: no published task */
	struct column_choice given;   /* by options: names, or numbers from 1; must be there */
	struct column_choice trained; /* of the training set: taken before those of the layout if the file has them */
	bool needs_labels;            /* a file or a row without is ERR_DATA */
	bool relates;                 /* texts are never pairs; a list of words ("tokens") may stand in place of one */
	bool allows_empty;            /* a row without text is an example (predictions), not a bad record */
	enum table_choice header;
	char delimiter; /* 0: detect */
	struct bad_records *bad;
	const struct example_piece *piece; /* read instead of the file; NULL: the whole file */
};

struct example_columns;
/* Lines of a file that is read piece by piece. */
struct example_piece {
	struct table_piece table;
	const struct example_columns *columns; /* of the first piece, if this is another */
};

/* Zero-initialise; release when done. */
struct example_set {
	struct example_text *examples; /* [count] in the order of the files and their rows */
	int64_t count;
	const char **choices; /* [choice_count] the second text of each, the beginning they share in front; or contexts */
	int64_t choice_count;
	bool has_pairs, has_labels, has_ids; /* of the last file that was read; files of one set should agree */
	/* What the last file called them ("column 2" without a header); NULL: there was none. For what is recorded of training.
	 */
	struct column_choice columns;
	int64_t filtered; /* rows of other parts of a published file (another language) */
	/* Private from here. */
	struct example_columns *found; /* of the last file: whoever reads on piece by piece may take them */
	struct table *tables;
	int64_t table_count, table_capacity, capacity, choice_capacity;
	struct string_store strings;
};

/* Reads a file and appends its examples. Says in the log what was detected and which columns are used. Errors, beside those of
 * table_read(): ERR_DATA or ERR_USAGE if a column is missing, with those that are there; a row without text, or without label
 * where it needs one. A file without a header after one that was read takes the same columns. */
MUST_USE enum status example_set_read(struct example_set *set, const char *path, const struct example_options *options);
/* Appends an example from a request, which the set borrows. `pair` NULL: a text alone. */
MUST_USE enum status example_set_add(struct example_set *set, const char *text, const char *pair);
void example_set_release(struct example_set *set);
void example_columns_free(struct example_columns *columns); /* NULL is fine */

/* What the example's row has in a column of this name; NULL: nothing. JSON's lists are text. */
const char *example_field(const struct example_set *set, int64_t example, const char *column);

/* The right choice of an example, from 0: its label is the name that a choice has in the file ({"label": "1", "text": ...}), a
 * number from 0, a letter from A, or the text of one choice. Anything else is ERR_DATA with file and line. */
MUST_USE enum status example_right_choice(const struct example_set *set, int64_t example, int32_t *out);

/* The file of a published task in `folder`: the first of the names that is there, with or without ".gz" and the like, into out
 * (char[PATH_BYTES]); *out_found false: none is. */
MUST_USE enum status layout_find_file(const char *folder, const char *const *names, char *out, bool *out_found);

#endif
