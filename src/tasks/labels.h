/* The labels of a task: their names, ids and order, and how a cell of a file becomes one label, several labels, or a number. */
#ifndef TASKS_LABELS_H
#define TASKS_LABELS_H

#include <stdbool.h>
#include <stdint.h>
#include "base/buffer.h"
#include "base/error.h"
#include "base/string_index.h"
#include "base/string_store.h"

/* Where the order of labels comes from; the first that applies is used. */
enum label_order {
	LABELS_GIVEN,     /* --labels */
	LABELS_OF_FOLDER, /* id2label of the model's folder, if it has the same labels */
	LABELS_OF_TASK,   /* the order of the published task */
	LABELS_ASCENDING, /* integers */
	LABELS_SORTED,    /* by code point */
};

struct label {
	const char *name;
	int64_t count;    /* number of uses in training; 0: a class without examples */
	const char *file; /* where it was first used; borrowed */
	int64_t line;
};

/* Zero-initialize; call label_set_add() for all labels of training and label_set_order(), then look labels up. */
struct label_set {
	struct label *labels; /* [count] by id once ordered */
	int64_t count;
	enum label_order order;
	/* Private from here. */
	struct string_index ids;
	struct string_store names;
	int64_t capacity;
};

struct label_list {
	const char *const *names;
	int64_t count; /* 0: there is no such list */
};

struct label_rules {
	struct label_list given, folder, task;
	const char *task_name; /* for messages */
	bool allow_one;        /* tagging and multilabel tasks may have a single label */
	bool no_warnings;      /* about classes without examples */
};

/* Counts a use of a label in training. An empty label is ERR_DATA with file and line. `file` is borrowed. */
MUST_USE enum status label_set_add(struct label_set *set, const char *name, const char *file, int64_t line);
/* Gives each label its id. ERR_DATA: there are no labels, or only one; a label that is missing from --labels or from the task;
 * two labels that are the same number ("1", "1.0") or differ only in white space. Warns of a class in --labels without examples,
 * and of labels that differ only in case or look alike (text/look_alike.h). */
MUST_USE enum status label_set_order(struct label_set *set, const struct label_rules *rules);
/* Are all labels numbers, some of them with a fraction, as ratings and similarities are? */
bool label_set_has_amounts(const struct label_set *set);
/* Are there so many labels, all of them whole numbers, that they may be amounts? */
bool label_set_has_many_numbers(const struct label_set *set);
/* Is each label a row of 0 and 1 of one length, such as 110 or "1 1 0", which no number is that begins with 0? */
bool label_set_has_flags(const struct label_set *set);
/* Takes back a use, of an example that is left out; its label stays a class. */
void label_set_drop_use(struct label_set *set, const char *name);
/* The id, or -1. */
int64_t label_set_find(const struct label_set *set, const char *name);
/* The id of a label in another file; ERR_DATA with file and line if the label did not occur in training. */
MUST_USE enum status label_set_id(const struct label_set *set, const char *name, const char *file, int64_t line, int64_t *out);
/* Appends "3 labels: contradiction 1,200, entailment 800, neutral 100 (order of the task)". */
void label_set_describe(const struct label_set *set, struct buffer *out);
void label_set_release(struct label_set *set);

/* Parses the number of a regression example. ERR_DATA with file and line if it is not a number, infinite or NaN, or beyond
 * 1e15, whose squares single precision can still add up. */
MUST_USE enum status label_number(const char *text, const char *file, int64_t line, double *out);

/* 0 or 1 in any way of writing the number, false or true; returns false for anything else. */
bool label_flag(const char *text, bool *out);

/* How cells with several labels separate them: lists (tasks/list_cell.h) of names, or of 0 and 1 for each label in its order. */
enum label_cells { CELLS_COMMA, CELLS_BAR, CELLS_SEMICOLON, CELLS_LIST, CELLS_FLAGS };
/* Detects how the cells of a file separate labels: lists if all nonempty cells are lists; else '|' or ';' if any cell that is no
 * list contains one, else ','. */
MUST_USE enum status label_cells_detect(const char *const *cells, int64_t count, enum label_cells *out);
/* Splits a cell into labels, stripped of white space: *out_names[*out_count] (to be freed), with strings in `store`. An empty
 * cell has no labels; an empty label between separators, or one that is given twice, is ERR_DATA. `names`: those of all labels,
 * for CELLS_FLAGS. */
MUST_USE enum status label_cell_split(const char *cell, enum label_cells form, const struct label_list *names, const char *file,
				      int64_t line, struct string_store *store, const char ***out_names, int64_t *out_count);

/* Splits the value "a,b,c" of --labels at commas; a label given twice is ERR_USAGE. */
MUST_USE enum status labels_parse_option(const char *text, struct string_store *store, const char ***out_names,
					 int64_t *out_count);

#endif
