/* Cross-validation: divides the examples of the training files into folds, each of which is the dev set of one run. */
#ifndef TASKS_FOLDS_H
#define TASKS_FOLDS_H

#include <stdint.h>
#include "base/error.h"
#include "base/option.h"

struct task_state;
struct task_set;
struct task_outputs;
struct example_set;

struct fold_options {
	int64_t folds, fold;      /* number of folds, 0: none; the one that a run holds out, from 1, 0: all in turn */
	const char *group_column; /* examples with the same value are in the same fold; NULL: each is on its own */
};
extern const struct option fold_rows[];
/* ERR_USAGE if the options contradict each other or the task's examples cannot be divided. */
MUST_USE enum status folds_check(const struct fold_options *options, const struct task_state *state);
/* Keeps of the training files' examples only those that the run holds out, or only the others. The folds depend on the examples
 * alone: each label is spread evenly, up to one example or, with groups, as evenly as they allow. *out_rows: the place of each
 * that is kept, from 1, to be freed by the caller; NULL: not wanted. */
MUST_USE enum status folds_keep(const struct fold_options *options, const struct task_state *state, struct example_set *set,
				bool held_out, int64_t **out_rows);

/* Writes the answers to a fold that was held out: a line {"row", "fold", "right", "answer"} for each example; `rows` as above. */
MUST_USE enum status folds_write(const struct fold_options *options, const struct task_state *state, const struct task_set *set,
				 const struct task_outputs *outputs, const int64_t *rows, const char *folder);

/* Of a run that holds out a fold, and of all together. */
#define FOLD_PREDICTIONS "fold_predictions.jsonl"
#define FOLD_RESULTS "fold_results.json"

#endif
