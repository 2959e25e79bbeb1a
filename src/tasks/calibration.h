/* Calibration of classes and labels: a temperature that makes probabilities match the share of right answers, and the probability
 * that a label must reach to be an answer. Both are found on a dev set and recorded with the model (tasks/record.h). */
#ifndef TASKS_CALIBRATION_H
#define TASKS_CALIBRATION_H

#include "base/json.h"
#include "base/measures.h"
#include "base/option.h"

struct task_state;
struct task_set;
struct task_outputs;

struct calibration_options {
	bool calibrate;         /* find the temperature */
	const char *thresholds; /* what thresholds are chosen for: "f1", or a precision such as "0.95"; NULL: there are none */
	double min_score;       /* answers with a lower probability are not given */
};
extern const struct option calibration_rows[];

/* All zero: answers are the most probable class, or all labels with a probability above 0.5. */
struct calibration {
	double temperature; /* outputs are divided by it; 0: they are not */
	double min_score;
	double *thresholds; /* [count] by label; INFINITY: the label is never an answer; NULL: there are none */
	int64_t count;
	bool divides; /* there are two classes, and the threshold of the second decides between them */
};
void calibration_release(struct calibration *calibration);
/* Checks the options, and whether the task has classes or labels. */
MUST_USE enum status calibration_check(const struct calibration_options *options, const struct task_state *state);

/* The probability of each class or label; out[labels]. */
void task_shares(const struct task_state *state, const float *logits, double *out);
/* The class that is the answer; -1: none is, since its probability is too low. */
int32_t task_class(const struct task_state *state, const float *logits);
/* Is this label an answer? */
bool task_has_label(const struct task_state *state, const float *logits, int64_t label);
/* Whether an answer may be missing, or a label be an answer at a probability other than 0.5. */
bool task_chooses_answers(const struct task_state *state);

/* struct task's tunes() and tune(). */
bool calibration_tunes(const struct task_state *state);
MUST_USE enum status calibration_tune(struct task_state *state, const struct task_set *set, const struct task_outputs *outputs);
/* Adds the measures of a calibration, if there is one: "coverage", the share of examples with an answer; "answered_accuracy", the
 * accuracy of those; "calibrated_loss", the loss with the temperature; and "calibration_error" (struct score_bins). */
MUST_USE enum status calibration_measures(const struct task_state *state, const struct task_set *set,
					  const struct task_outputs *outputs, struct measures *out);
/* Calls take() with each probability and whether it was right: of two classes, the second's; of several, the most probable one's;
 * of labels, each one's. `temperature` replaces the recorded one. */
MUST_USE enum status calibration_examine(const struct task_state *state, const struct task_set *set,
					 const struct task_outputs *outputs, double temperature,
					 void (*take)(void *context, double score, bool right), void *context);
/* The temperature with the lowest loss; 0: the set cannot decide, since every answer is right or the outputs carry no
 * information. */
MUST_USE enum status calibration_temperature(const struct task_state *state, const struct task_set *set,
					     const struct task_outputs *outputs, double *out);

/* The member "calibration" of a record, if there is a calibration. */
void calibration_put_record(const struct calibration *calibration, struct json_writer *writer);
MUST_USE enum status calibration_read_record(const struct json *record, const char *name, struct calibration *out);
/* Once the labels are known: ERR_DATA if a calibration that was read is for other labels. */
MUST_USE enum status calibration_fits(const struct task_state *state);

#endif
