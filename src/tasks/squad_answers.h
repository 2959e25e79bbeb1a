/* From the logits of windows to answers: write_predictions and get_final_text of Google's run_squad.py, and the answers of
 * transformers' pipeline. */
#ifndef TASKS_SQUAD_ANSWERS_H
#define TASKS_SQUAD_ANSWERS_H

#include <stdbool.h>
#include <stdint.h>
#include "base/buffer.h"
#include "base/error.h"
#include "tasks/squad_features.h"

struct squad_answer_settings {
	int32_t n_best_size;       /* starts and ends of a window that are combined, and answers of a question: 20 */
	int32_t max_answer_length; /* tokens: 30 */
	bool version_2;            /* "no answer" is a candidate */
	double null_threshold;     /* null_score_diff_threshold: "no answer" if it leads the best answer by more than this: 0 */
};

/* One of the best answers. */
struct squad_choice {
	const char *text; /* a stretch of the paragraph, white space as single spaces; "" = no answer */
	double start_logit, end_logit;
	double probability; /* softmax over the choices */
	int64_t begin, end; /* bytes of the paragraph; both 0 if the text is no part of it */
};

/* Valid until the decoder's next question. */
struct squad_result {
	const struct squad_choice *choices; /* [count] best first; never none: Google's "empty" where nothing could be chosen */
	int32_t count;
	const struct squad_choice *best; /* the first with a text from the paragraph; NULL if there is none */
	const char *prediction;
	double null_odds; /* version 2: score of "no answer" less the best answer's */
};

struct squad_decoder;
/* `features` is borrowed, with what it borrows. */
MUST_USE enum status squad_decoder_open(struct squad_decoder **out, const struct squad_features *features,
					const struct squad_answer_settings *settings);
void squad_decoder_close(struct squad_decoder *decoder);
/* Begins a question; then its windows, in order and each once, with the logits of rows 0 to count - 1, `count` being the
 * window's size (rows after it, as of padding, may take part in the choice of the best and are then dropped, as in Google's
 * code); then the result. ERR_NUMERIC: a logit is not finite. ERR_RESOURCE: lack of memory. */
MUST_USE enum status squad_decoder_begin(struct squad_decoder *decoder, int64_t question);
MUST_USE enum status squad_decoder_window(struct squad_decoder *decoder, int64_t window, const double *start, const double *end,
					  int32_t count);
MUST_USE enum status squad_decoder_end(struct squad_decoder *decoder, struct squad_result *out);

/* Result files in the form of run_squad.py, byte for byte: predictions.json, nbest_predictions.json and, for version 2,
 * null_odds.json. Zero-initialise, add the results in the order of the questions, write. */
struct squad_files {
	struct buffer predictions, n_best, null_odds;
};
void squad_files_add(struct squad_files *files, const char *question_id, const struct squad_result *result, bool version_2);
/* Writes into `folder`; `prefix` comes before the names ("" as Google's, "eval_" as Hugging Face's). */
MUST_USE enum status squad_files_write(struct squad_files *files, const char *folder, const char *prefix, bool version_2);
void squad_files_release(struct squad_files *files);

/* Answers as the question-answering pipeline of transformers 4.57 gives them (version 5 has none): softmax over [CLS] and the
 * window's part of the paragraph, for start and end apart; of each window the 12 stretches with the largest products, their ends
 * widened to whole words; the products of equal answers, in whatever case, added up over all windows. (Versions before 4.50
 * did not add up; max_answer_length is 15 there, windows overlap by 128 of 384 tokens.)
 * Zero-initialise, begin a question, give its windows in order, take the answer; release at the end. */
struct squad_pipeline_answer {
	double score;
	int64_t begin, end; /* bytes of the paragraph; both 0: no answer */
};
struct squad_pipeline {
	const struct squad_features *features;
	int64_t paragraph;
	int32_t max_answer_length;
	struct squad_pipeline_answer *answers;
	int64_t count, capacity;
	double null_score; /* smallest product of [CLS] over the windows */
	struct buffer lower, other;
};
void squad_pipeline_begin(struct squad_pipeline *pipeline, const struct squad_features *features, int64_t question,
			  int32_t max_answer_length);
MUST_USE enum status squad_pipeline_window(struct squad_pipeline *pipeline, int64_t window, const double *start,
					   const double *end);
/* The best answer; with `handle_impossible` "no answer" is one, with null_score. */
struct squad_pipeline_answer squad_pipeline_best(const struct squad_pipeline *pipeline, bool handle_impossible);
void squad_pipeline_release(struct squad_pipeline *pipeline);

/* Code points of a paragraph before byte `begin` and before byte `end`. */
void squad_code_points(const struct squad_paragraph *paragraph, int64_t begin, int64_t end, int64_t *out_begin, int64_t *out_end);

#endif
