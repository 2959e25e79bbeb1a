/* What tasks with one answer per text share: classes, numbers, several labels, relations. */
#ifndef TASKS_CLASSIFICATION_H
#define TASKS_CLASSIFICATION_H

#include "base/option.h"
#include "tasks/list_cell.h"
#include "tasks/task.h"

/* What the head of a text's classes or labels reads. */
enum classifier_pooling { CLASSIFIER_OPEN, CLASSIFIER_POOLER, CLASSIFIER_MEAN, CLASSIFIER_CLS }; /* open: the pooler */

/* The settings of classification and of tasks with several labels. */
struct classification_settings {
	bool few_shot;
	enum classifier_pooling classifier_pooling;
	enum label_cells cells; /* no option; several labels: how cells separate them: found in training, recorded for later */
};

extern const struct option classification_rows[];

/* An example as tokens; `ids` is borrowed from the encoder until its next call. */
struct encoded_example {
	const int32_t *ids;
	int32_t count, second; /* number of tokens; of those, in segment 0 */
	int32_t cut;           /* number of tokens cut off */
	int64_t windows;       /* number of windows that the text is read in; 0: one */
	int32_t rows[2];       /* the rows that the head reads, if it reads chosen rows */
};

/* Tokenizes example `number`; if it is read in windows, `window` of them, after those before it. An example that cannot be
 * encoded is ERR_DATA with file and line. */
typedef enum status example_encoder(void *context, const struct task_state *state, const struct example_set *examples,
				    int64_t number, int64_t window, struct encoded_example *out);

/* Reads tables; for TASK_TRAIN also counts the labels and puts them in order. */
MUST_USE enum status classification_read(struct task_state *state, struct task_set *set, const char *const *paths, int64_t count);
/* Makes set->encoded with one item per example, whose head reads `row_width` chosen rows (0: the first row). Bad records are also
 * left out of set->examples, unless they are for prediction. */
MUST_USE enum status classification_encode(struct task_state *state, struct task_set *set, int32_t row_width,
					   example_encoder *encode, void *context);
/* For classes: accuracy, F1 and so on; settings.negative_label is left out of f1_micro. */
MUST_USE enum status classification_score(const struct task_state *state, const struct task_set *set,
					  const struct task_outputs *outputs, struct measures *out);
/* For classes: precision, recall, and F1 of each. To be released. */
MUST_USE enum status classification_score_classes(const struct task_state *state, const struct task_set *set,
						  const struct task_outputs *outputs, struct class_scores *out);
/* Writes test_results.tsv, for classes predict.txt, and the files that GLUE's server accepts. */
MUST_USE enum status classification_write(const struct task_state *state, const struct task_set *set,
					  const struct task_outputs *outputs, const char *folder);
/* Appends {"label", "probabilities"}, {"value"} or {"labels", "probabilities"}; the label is null if none is the answer. */
MUST_USE enum status classification_put(const struct task_state *state, const struct task_set *set,
					const struct task_outputs *outputs, int64_t example, struct buffer *out);
/* Appends the probability of each class or label in their order, or the number: a row of test_results.tsv. */
MUST_USE enum status classification_put_tsv(const struct task_state *state, const struct task_set *set,
					    const struct task_outputs *outputs, int64_t example, struct buffer *out);
/* Appends [{"label", "score"}] with the best label, or with the number under the name that unnamed labels have; with thresholds
 * or a least score, only labels that are answers. */
MUST_USE enum status classification_put_pipeline(const struct task_state *state, const struct task_set *set,
						 const struct task_outputs *outputs, int64_t example, struct buffer *out);

#endif
