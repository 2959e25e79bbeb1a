/* Files of results, as the programs that people come from write them: numbers of evaluations, classes, probabilities, tags,
 * submissions. All are written under a temporary name first (base/file.h). */
#ifndef TASKS_RESULTS_H
#define TASKS_RESULTS_H

#include <stdbool.h>
#include <stdint.h>
#include "base/buffer.h"
#include "base/error.h"
#include "base/measures.h"
#include "formats/conll.h"

/* An evaluation of one set of examples. */
struct result_set {
	const char *name; /* "" for the first: its measures are eval_NAME; those of others eval_SET_NAME */
	const struct measures *measures;
};

struct result_facts {
	const struct result_set *sets;
	int count;
	int64_t global_step;     /* negative: nothing was trained, neither step nor loss are written */
	double loss;             /* of training; NaN: unknown, written as null */
	const char *selected_on; /* the set whose measure chose the step; NULL: it is the last one */
};

/* FOLDER/eval_results.json (one object, sorted keys, four spaces) and eval_results.txt (lines "key = value", sorted, as
 * Google's run_classifier.py): eval_ measures, global_step, loss, and in the JSON selected_on. Undefined values are null. */
MUST_USE enum status results_write_evaluation(const char *folder, const struct result_facts *facts);

/* Is this the name of a file that a task's results lie in, here or in its file of the table of tasks? A run that begins afresh
 * removes them, and the best run of a sweep hands them on. */
bool results_is_file(const char *name);

/* A class id a line: bert-ad's predict.txt. */
MUST_USE enum status results_write_classes(const char *path, const int32_t *classes, int64_t count);
/* values[count][width], tabs between, one row per line: Google's test_results.tsv. Shortest text that reads back equal, in
 * Python's form. */
MUST_USE enum status results_write_values(const char *path, const float *values, int64_t count, int64_t width);
/* GLUE's submission: "index<TAB>prediction", then a row each: its index (ids[i], or i if ids is NULL) and the label's name. */
MUST_USE enum status results_write_submission(const char *path, const char *const *ids, const char *const *labels, int64_t count);
/* The same with numbers, three places after the point (STS-B). */
MUST_USE enum status results_write_submitted_numbers(const char *path, const char *const *ids, const float *values,
						     int64_t count);
/* The columns of a file of tagged words with one more, the predicted tag: tags[token]. Sentences are separated and documents
 * begin as in the file. */
MUST_USE enum status results_write_tags(const char *path, const struct conll *conll, const char *const *tags);

/* Appends a number as Python prints a numpy.float32: "0.33333334", "1e-05", "16777216.0" (NumPy 2 writes the last
 * as 1.6777216e+07). */
void results_put_float(struct buffer *out, float value);

#endif
