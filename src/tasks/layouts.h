/* Published tasks as a table of data: which columns their files have, in which order their labels stand, how their files and
 * submissions are called, which measures are reported. Sources: the processors of google-research/bert and of transformers 4,
 * GLUE's and SciBERT's distributions. */
#ifndef TASKS_LAYOUTS_H
#define TASKS_LAYOUTS_H

#include <stdbool.h>
#include <stdint.h>

/* What an example of a table is made of, and what is asked of it; TARGET_PARTS: something of parts of a text, which no table
 * says. */
enum task_input { TASK_INPUT_TEXT, TASK_INPUT_PAIR, TASK_INPUT_CHOICES, TASK_INPUT_DIALOGUE };
enum task_target { TARGET_CLASS, TARGET_NUMBER, TARGET_CLASSES, TARGET_CHOICE, TARGET_PARTS };

#define LAYOUT_NAMES 4

/* Columns of a file without a header, from 1; 0: there is none. */
struct layout_positions {
	int column_count; /* of the files that this is about; 0: the end of the list */
	int text, pair, label, id;
};

/* A set of examples beside the training set. */
struct layout_set {
	const char *name;                /* "mismatched"; "" for the only or first one */
	const char *files[LAYOUT_NAMES]; /* names in --data_dir, the first that is there; ends with NULL */
	const char *submission;          /* name of the file that is submitted; NULL: none */
};

struct layout {
	const char *name, *alias; /* of --task, in small letters; alias may be NULL */
	enum task_input input;
	enum task_target target;
	/* Names of columns, the first that is there; each list ends with NULL. TASK_INPUT_CHOICES: `text` is what all choices
	 * share, `pair` the beginning of each; choices are numbered columns or a list. */
	const char *text[LAYOUT_NAMES], *pair[LAYOUT_NAMES], *label[LAYOUT_NAMES], *id[LAYOUT_NAMES];
	struct layout_positions positions[4];
	bool relates;      /* each text has two mentions that are marked: the label says how they are related */
	int least_columns; /* rows may have more or fewer columns than most, but not fewer than this; 0: none may */
	const char *labels[LAYOUT_NAMES]; /* in Google's order; none: as label_set_order() finds it */
	const char *renamed[2];           /* a label that the training file writes otherwise, and what it means */
	const char *only_where[2];        /* rows that have another value in this column are not part of the task */
	const char *train[LAYOUT_NAMES];
	struct layout_set dev[2], test[2];
	const char *measures[3]; /* the first chooses the best checkpoint */
};

/* Are two names of tasks the same, but for capitals, '-' and '_'? `a` may be NULL. */
bool layout_same_name(const char *a, const char *b);
/* The layout of a task's name, '_' and '-' and capitals alike; NULL: no published task. */
const struct layout *layout_find(const char *name);
/* All layouts, `*count` of them. */
const struct layout *layouts_all(int *count);

/* What files call the columns where no task is named. */
struct column_names {
	const char *text, *pair; /* pair NULL: a text alone */
};
extern const struct column_names generic_pairs[]; /* both of them must be there; ends with text NULL */
extern const char *const generic_texts[], *const generic_labels[], *const generic_scores[], *const generic_ids[];
extern const char *const generic_words[]; /* lists of words */
extern const char *const generic_contexts[],
	*const generic_stems[], *const generic_choice_lists[], *const generic_choices[], *const generic_choice_labels[];
/* Of texts that are rewritten: the text, what it becomes, and what was said before, in a column or a numbered column each. */
extern const char *const generic_sources[], *const generic_targets[], *const generic_dialogues[], *const generic_turns[];
/* All names by which a header is recognized; ends with NULL. */
extern const char *const header_names[];

#endif
