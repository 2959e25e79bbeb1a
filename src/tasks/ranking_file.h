/* Files of --task embedding and reranking: which texts belong to a text, and how much. Tables (formats/table.h) in these forms,
 * recognized by their columns:
 *
 *   texts         one text a row
 *   pairs         a text and what belongs to it (its positive)
 *   triplets      the same with one text or more that do not belong to it (negatives)
 *   scored pairs  two texts and a number
 *   lists         JSON: a text, a list of texts, and a list with a number for each; or lists of positives and of negatives
 *
 * Lists become pairs, triplets or scored pairs, whichever the task needs. */
#ifndef TASKS_RANKING_FILE_H
#define TASKS_RANKING_FILE_H

#include "tasks/examples.h"

enum ranking_form { RANKING_TEXTS, RANKING_PAIRS, RANKING_TRIPLETS, RANKING_SCORED };
extern const char *const ranking_form_names[]; /* "texts alone", "pairs", ... */

struct ranking_options {
	struct column_choice given;   /* by options: text, pair (the positive) and label (the score) */
	struct column_choice trained; /* of the training set: used if a file has them */
	const struct layout *layout;  /* a published task on pairs, whose labels are scores; NULL: none */
	const char *negatives;        /* names or numbers of columns, separated by commas; NULL: found automatically */
	/* Every pair becomes an example with a score, 1 for positives and 0 for negatives. Otherwise each positive becomes an
	 * example, with the negatives of its row. */
	bool scores_all;
	bool scores_rows;  /* with scores_all: a row's list of "scores" has one for each of its positives and negatives */
	int64_t first;     /* number of the set's first example in the list: sets before it may have another form */
	bool allows_texts; /* texts alone are an accepted form */
	bool needs_scores; /* a pair without a score is a bad record where the file has scores; with scores_all, so are pairs
			      without any */
	bool allows_empty; /* an empty text is not a bad record: for predictions */
	struct bad_records *bad;
	const struct example_piece *piece; /* read only this part of the file; NULL: all of it */
};

/* Reads a file and appends its examples to `set`: text; pair and label, NULL if there is none; negatives as choices. Logs what
 * was found. All files of a set must have the same form. ERR_DATA or ERR_USAGE, with the columns, if the form cannot be
 * determined; a row that lacks one of its texts or its score is a bad record. */
MUST_USE enum status ranking_file_read(struct example_set *set, const char *path, const struct ranking_options *options,
				       enum ranking_form *form);

#endif
