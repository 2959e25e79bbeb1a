/* What others know of the task of questions about paragraphs; the rest is in tasks/squad/. */
#ifndef TASKS_SQUAD_H
#define TASKS_SQUAD_H

#include "base/measures.h"
#include "base/option.h"

enum squad_scorer {
	SQUAD_SCORER_AUTO,  /* depends on the script of the answers */
	SQUAD_SCORER_SQUAD, /* evaluate-v1.1.py, evaluate-v2.0.py */
	SQUAD_SCORER_CMRC,  /* cmrc2018_evaluate.py */
};

/* 0 and false: open, so that Google's defaults (in parentheses) apply. */
struct squad_settings {
	bool version_2_with_negative;     /* a paragraph may have no answer: SQuAD 2.0 */
	int64_t doc_stride;               /* tokens from the beginning of a window to that of the next (128) */
	int64_t max_query_length;         /* tokens of a question (64) */
	int64_t n_best_size;              /* (20) */
	int64_t max_answer_length;        /* tokens (30) */
	double null_score_diff_threshold; /* "no answer" if it leads the best answer by more than this (0) */
	enum squad_scorer scorer;
	bool find_threshold; /* find the threshold after training, on the first dev set */
};

/* Of training; and those that also apply to a finished model, where they override what was recorded. */
extern const struct option squad_rows[], squad_answer_rows[];

/* Scores of answers that are in a file. */
struct squad_prediction_settings {
	const char *predictions;  /* the file: an object with an answer for each id; NULL: none */
	bool find_threshold;      /* adds the best thresholds for na_prob_file */
	const char *na_prob_file; /* SQuAD 2.0: how probable no answer is; NULL: not known */
	double na_prob_thresh;
};
/* Adds the official measures of the answers to the questions of the file `test`. */
MUST_USE enum status squad_score_predictions(const struct squad_prediction_settings *settings, const struct squad_settings *squad,
					     const char *test, struct measures *out);

#endif
