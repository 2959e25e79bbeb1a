/* The official measures of answers: SQuAD 1.1 and 2.0 (evaluate-v1.1.py, evaluate-v2.0.py), CMRC 2018 (cmrc2018_evaluate.py). */
#ifndef TASKS_SQUAD_SQUAD_SCORE_H
#define TASKS_SQUAD_SQUAD_SCORE_H

#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"
#include "base/json.h"
#include "base/measures.h"
#include "tasks/squad/squad_file.h"

/* ---- Files ---- */

/* {question id: answer}, as in predictions.json. */
struct squad_predictions {
	const char **texts;    /* [questions of the set] NULL: no prediction */
	int64_t missing_count; /* number of the set's questions without a prediction */
	int64_t unknown_count; /* number of ids that are not in the set: ignored, as in the official scripts */
	int64_t list_count;    /* number of entries that were n-best lists */
	struct json_document document;
};
/* Reads answers to the set's questions. From a file of n-best lists ({id: [{"text", ...}, ...]}, nbest_predictions.json) takes
 * the first answer that is not "". */
MUST_USE enum status squad_predictions_read(struct squad_predictions *out, const char *path, const struct squad_set *set);
void squad_predictions_release(struct squad_predictions *predictions);

/* {question id: number}: probabilities or log-odds that there is no answer, in the order of the file, on which the official
 * search for a threshold depends. */
struct squad_null_scores {
	int64_t count;
	int64_t *questions;  /* [count] index in the set */
	double *scores;      /* [count] */
	double *by_question; /* [questions of the set] NaN: no score */
};
/* ERR_DATA names the questions that have no score. */
MUST_USE enum status squad_null_scores_read(struct squad_null_scores *out, const char *path, const struct squad_set *set);
/* The same from numbers, one per question. */
MUST_USE enum status squad_null_scores_make(struct squad_null_scores *out, const double *scores, int64_t questions);
void squad_null_scores_release(struct squad_null_scores *scores);

/* ---- Measures ---- */

/* texts[questions] are the predictions, NULL where there is none. */

/* Adds exact_match and f1, in points. A question without a prediction scores 0, which is logged; one without an answer in the set
 * is ERR_DATA. */
MUST_USE enum status squad_score_1(const struct squad_set *set, const char *const *texts, struct measures *out);

/* Adds exact, f1, total; the same with the prefixes HasAns_ and NoAns_ if there are such questions; with `null_scores` (may be
 * NULL) best_exact, best_exact_thresh, best_f1, best_f1_thresh. An answer whose null score is above `threshold` counts as "".
 * Questions without a prediction are ERR_DATA, and the message lists the first ones (the official script crashes at the
 * second). */
MUST_USE enum status squad_score_2(const struct squad_set *set, const char *const *texts,
				   const struct squad_null_scores *null_scores, double threshold, struct measures *out);

/* CMRC 2018 and DRCD: adds exact_match, f1, average (of both), total and skip (questions without a prediction, which score 0). */
MUST_USE enum status squad_score_chinese(const struct squad_set *set, const char *const *texts, struct measures *out);

/* Are the set's answers mostly Chinese, so that counting words makes no sense? */
bool squad_is_chinese(const struct squad_set *set);

/* Finds the threshold on null scores (answer where the score is at most this) with which texts[questions], the best answers other
 * than "", reach the highest measure; and that measure, in points. Equal null scores are treated together, and the threshold may
 * be negative, unlike best_exact_thresh and best_f1_thresh. */
struct squad_thresholds {
	double exact, exact_threshold, f1, f1_threshold;
};
MUST_USE enum status squad_find_thresholds(const struct squad_set *set, const char *const *texts, const double *null_scores,
					   struct squad_thresholds *out);

#endif
