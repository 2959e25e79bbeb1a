/* Result files in the formats of the programs that users migrate from: evaluation results, classes, probabilities, tags,
 * submissions. All are written under a temporary name first (base/file.h). */
#ifndef TASKS_RESULTS_H
#define TASKS_RESULTS_H

#include <stdbool.h>
#include <stdint.h>
#include "base/buffer.h"
#include "base/error.h"
#include "base/measures.h"
#include "base/json.h"
#include "formats/conll.h"
#include "tasks/measures.h"

/* An evaluation of one set of examples. */
struct result_set {
	const char *name; /* "" for the first, whose measures are eval_NAME; those of others are eval_SET_NAME */
	const struct measures *measures;
	const struct class_scores *classes; /* NULL: unknown */
};

struct result_facts {
	const struct result_set *sets;
	int count;
	const char *kind;        /* "eval" or "test" */
	int64_t global_step;     /* negative: nothing was trained, so neither step nor loss is written */
	double loss;             /* of training; NaN: unknown, written as null */
	const char *selected_on; /* the set whose measure selected the step; NULL: it is the last step */
};

/* What one set scored. Zero-initialize, and release `classes`. */
struct set_scores {
	struct measures measures;
	struct class_scores classes;
};
/* Prints the measures as results of the run, each after the set's name ("": none). */
void results_log(const char *set, const struct measures *measures);

/* Writes FOLDER/eval_results.json (one object, sorted keys, indented by four spaces) and eval_results.txt (sorted lines "key =
 * value", as in Google's run_classifier.py): eval_ measures, global_step, loss, and in the JSON file the scores by class and
 * selected_on. Undefined values are null. The kind "test" writes test_results and test_ measures. */
MUST_USE enum status results_write_evaluation(const char *folder, const struct result_facts *facts);

/* Removes what an earlier evaluation of this kind left in the folder. */
MUST_USE enum status results_remove_evaluation(const char *folder, const char *kind);
/* Removes the answers to an earlier test set, and their scores. */
MUST_USE enum status results_remove_test(const char *folder);
/* Puts the member {"LABEL": {"precision", "recall", "f1", "support"}, ...} into the open object; nothing without scores. */
void results_put_classes(struct json_writer *writer, const char *key, const struct class_scores *classes);

/* Is this the name of a result file, written by this module or by a task's own? A run with --fresh removes them, and the best run
 * of a sweep passes them on. */
bool results_is_file(const char *name);

/* Writes one class id per line: bert-ad's predict.txt. */
MUST_USE enum status results_write_classes(const char *path, const int32_t *classes, int64_t count);
/* Appends numbers with tabs between them, each the shortest text that reads back equal, in Python's notation. */
void results_put_values(struct buffer *out, const float *values, int64_t count);
/* Appends text, with spaces for tabs and line ends. */
void results_put_cell(struct buffer *out, const char *text);
/* Writes values[count][width] separated by tabs, one row per line: Google's test_results.tsv. Each value is the shortest text
 * that reads back equal, in Python's notation. */
MUST_USE enum status results_write_values(const char *path, const float *values, int64_t count, int64_t width);
/* Writes a submission to GLUE: "index<TAB>prediction", then one row per example: its index (ids[i], or i if ids is NULL) and the
 * label's name. */
MUST_USE enum status results_write_submission(const char *path, const char *const *ids, const char *const *labels, int64_t count);
/* The same with numbers, to three decimal places (STS-B). */
MUST_USE enum status results_write_submitted_numbers(const char *path, const char *const *ids, const float *values,
						     int64_t count);
/* Writes the columns of a file of tagged words and one more, the predicted tag: tags[token]. Sentences and documents are
 * separated as in the file. Tabs and line ends within a word, as JSON may have, become spaces. */
MUST_USE enum status results_write_tags(const char *path, const struct conll *conll, const char *const *tags);

/* Appends a number as Python prints a numpy.float32: "0.33333334", "1e-05", "16777216.0" (NumPy 2 writes the last
 * as 1.6777216e+07). */
void results_put_float(struct buffer *out, float value);

#endif
