/* Published tasks as a table: which columns their files have, the order of their labels, the names of their files and
 * submissions, and which measures are reported. Sources: the processors of google-research/bert and of transformers 4; the
 * distributions of GLUE and SciBERT. */
#ifndef TASKS_LAYOUTS_H
#define TASKS_LAYOUTS_H

#include <stdbool.h>
#include <stdint.h>

/* What an example in a table consists of, and what to predict. TARGET_PARTS: something about parts of a text, which
 * tables do not have. */
enum task_input { TASK_INPUT_TEXT, TASK_INPUT_PAIR, TASK_INPUT_CHOICES, TASK_INPUT_DIALOGUE };
enum task_target { TARGET_CLASS, TARGET_NUMBER, TARGET_CLASSES, TARGET_CHOICE, TARGET_PARTS };

#define LAYOUT_NAMES 4

/* Columns of a file without a header, from 1; 0: there is none. */
struct layout_positions {
	int column_count; /* columns in the files that this applies to; 0: end of the list */
	int text, pair, label, id;
};

/* A set of examples other than the training set. */
struct layout_set {
	const char *name;                /* "mismatched"; "" for the only or first one */
	const char *files[LAYOUT_NAMES]; /* possible names in --data_dir, the first that exists is used; ends with NULL */
	const char *submission;          /* name of the file to be submitted; NULL: none */
};

struct layout {
	const char *name, *alias; /* of --task, in lower case; alias may be NULL */
	enum task_input input;
	enum task_target target;
	/* Names of columns, of which the first that exists is used; each list ends with NULL. TASK_INPUT_CHOICES: `text` is what
	 * all choices share, `pair` is how each begins; choices are numbered columns or a list. */
	const char *text[LAYOUT_NAMES], *pair[LAYOUT_NAMES], *label[LAYOUT_NAMES], *id[LAYOUT_NAMES];
	struct layout_positions positions[4];
	bool relates;      /* each text has two marked mentions, and the label says how they are related */
	int least_columns; /* rows may have more or fewer columns than most, but not fewer than this; 0: none may */
	const char *labels[LAYOUT_NAMES]; /* in Google's order; none: label_set_order() finds the order */
	const char *renamed[2];           /* a label that the training file spells differently, and the label meant */
	const char *only_where[2];        /* a column and its value; rows with another value are not part of the task */
	const char *train[LAYOUT_NAMES];
	struct layout_set dev[2], test[2];
	const char *measures[3]; /* the first chooses the best checkpoint */
};

/* Are two task names the same, ignoring case and treating '-' and '_' alike? `a` may be NULL. */
bool layout_same_name(const char *a, const char *b);
/* The layout for a task's name, compared by layout_same_name(); NULL: not a published task. */
const struct layout *layout_find(const char *name);
/* All layouts, `*count` of them. */
const struct layout *layouts_all(int *count);

/* What files call their columns, used when no published task is named. */
struct column_names {
	const char *text, *pair; /* pair NULL: a text alone */
};
extern const struct column_names generic_pairs[]; /* both must exist; ends with text NULL */
extern const char *const generic_texts[], *const generic_labels[], *const generic_scores[], *const generic_ids[];
extern const char *const generic_words[]; /* lists of words */
extern const char *const generic_contexts[],
	*const generic_stems[], *const generic_choice_lists[], *const generic_choices[], *const generic_choice_labels[];
/* For rewriting: the text, what it becomes, and what was said before it, in one column or in numbered columns. */
extern const char *const generic_sources[], *const generic_targets[], *const generic_dialogues[], *const generic_turns[];
/* All names by which a header is recognized; ends with NULL. */
extern const char *const header_names[];

#endif
