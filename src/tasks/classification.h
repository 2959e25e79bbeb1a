/* What tasks of one answer a text share: classes, numbers, several labels, relations. */
#ifndef TASKS_CLASSIFICATION_H
#define TASKS_CLASSIFICATION_H

#include "tasks/task.h"

/* An example as tokens; `ids` is borrowed from the encoder until its next call. */
struct encoded_example {
	const int32_t *ids;
	int32_t count, second; /* tokens; of segment 0 */
	int32_t cut;           /* tokens cut off */
	int32_t rows[2];       /* that the head reads, of a head that reads chosen rows */
};

/* Makes tokens of example `number`. An example that cannot be encoded is ERR_DATA with file and line. */
typedef enum status example_encoder(void *context, const struct task_state *state, const struct example_set *examples,
				    int64_t number, struct encoded_example *out);

/* Reads tables; TASK_TRAIN also counts the labels and gives them their order. */
MUST_USE enum status classification_read(struct task_state *state, struct task_set *set, const char *const *paths, int64_t count);
/* Makes set->encoded, an item each, whose head reads `row_width` chosen rows (0: the first row). Bad records are left out of
 * set->examples, too, unless they are to be predicted. */
MUST_USE enum status classification_encode(struct task_state *state, struct task_set *set, int32_t row_width,
					   example_encoder *encode, void *context);
/* Of classes: accuracy, F1 and the like; settings.negative_label is left out of f1_micro. */
MUST_USE enum status classification_score(const struct task_state *state, const struct task_set *set,
					  const struct task_outputs *outputs, struct measures *out);
/* test_results.tsv, of classes predict.txt, and what GLUE's server takes. */
MUST_USE enum status classification_write(const struct task_state *state, const struct task_set *set,
					  const struct task_outputs *outputs, const char *folder);
/* {"label", "probabilities"}, {"value"} or {"labels", "probabilities"}. */
MUST_USE enum status classification_put(const struct task_state *state, const struct task_set *set,
					const struct task_outputs *outputs, int64_t example, struct buffer *out);
/* [{"label", "score"}] of the best label, or of the number under the name that a label without one has. */
MUST_USE enum status classification_put_pipeline(const struct task_state *state, const struct task_set *set,
						 const struct task_outputs *outputs, int64_t example, struct buffer *out);

#endif
