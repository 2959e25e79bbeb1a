/* From the logits of windows to answers: as write_predictions and get_final_text of Google's run_squad.py, and as transformers'
 * pipeline. */
#ifndef TASKS_SQUAD_SQUAD_ANSWERS_H
#define TASKS_SQUAD_SQUAD_ANSWERS_H

#include <stdbool.h>
#include <stdint.h>
#include "base/buffer.h"
#include "base/error.h"
#include "tasks/squad/squad_features.h"

struct squad_answer_settings {
	int32_t n_best_size;       /* number of starts and ends combined per window, and of answers per question: 20 */
	int32_t max_answer_length; /* tokens: 30 */
	bool version_2;            /* "no answer" is a candidate */
	double null_threshold;     /* null_score_diff_threshold: "no answer" if it leads the best answer by more than this: 0 */
};

/* One of the best answers. */
struct squad_choice {
	const char *text; /* a span of the paragraph, its white space turned into single spaces; "" = no answer */
	double start_logit, end_logit;
	double probability; /* softmax over the choices */
	int64_t begin, end; /* bytes of the paragraph; both 0 if the text is not part of it */
};

/* Valid until the decoder's next question. */
struct squad_result {
	const struct squad_choice *choices; /* [count] best first; never empty: Google's "empty" if nothing could be chosen */
	int32_t count;
	const struct squad_choice *best; /* the first with a text from the paragraph; NULL if there is none */
	const char *prediction;
	double null_odds; /* version 2: score of "no answer" minus the best answer's */
};

struct squad_decoder;
/* `features` is borrowed, and so is what it borrows. */
MUST_USE enum status squad_decoder_open(struct squad_decoder **out, const struct squad_features *features,
					const struct squad_answer_settings *settings);
void squad_decoder_close(struct squad_decoder *decoder);
/* Order of calls: begin a question; then give each of its windows once, in order, with the logits of rows 0 to count - 1, where
 * `count` is the window's size (further rows, as of padding, may take part in choosing the best and are then dropped, as in
 * Google's code); then get the result. ERR_NUMERIC: a logit is not finite. ERR_RESOURCE: out of memory. */
MUST_USE enum status squad_decoder_begin(struct squad_decoder *decoder, int64_t question);
MUST_USE enum status squad_decoder_window(struct squad_decoder *decoder, int64_t window, const double *start, const double *end,
					  int32_t count);
MUST_USE enum status squad_decoder_end(struct squad_decoder *decoder, struct squad_result *out);

/* Result files in the form of run_squad.py, byte for byte: predictions.json, nbest_predictions.json and, for version 2,
 * null_odds.json. Zero-initialize, add the results in the order of the questions, then write. */
struct squad_files {
	struct buffer predictions, n_best, null_odds;
};
void squad_files_add(struct squad_files *files, const char *question_id, const struct squad_result *result, bool version_2);
/* Writes into `folder`; `prefix` comes before the names ("" as in Google's, "eval_" as in Hugging Face's). */
MUST_USE enum status squad_files_write(struct squad_files *files, const char *folder, const char *prefix, bool version_2);
void squad_files_release(struct squad_files *files);

/* Answers as the question-answering pipeline of transformers 4.57 gives them (version 5 has none): softmax over [CLS] and the
 * window's part of the paragraph, separately for start and end; the 12 spans of each window with the largest products, widened to
 * whole words; the products of answers that are equal but for case are added up over all windows. (Versions before 4.50 did not
 * add them up. There, max_answer_length is 15, and windows of 384 tokens overlap by 128.) Zero-initialize, begin a question, give
 * its windows in order, take the answer; release at the end. */
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
	double null_score; /* smallest product for [CLS] among the windows */
	struct buffer lower, other;
};
void squad_pipeline_begin(struct squad_pipeline *pipeline, const struct squad_features *features, int64_t question,
			  int32_t max_answer_length);
MUST_USE enum status squad_pipeline_window(struct squad_pipeline *pipeline, int64_t window, const double *start,
					   const double *end);
/* The best answer; with `handle_impossible`, "no answer" is a candidate with score null_score. */
struct squad_pipeline_answer squad_pipeline_best(const struct squad_pipeline *pipeline, bool handle_impossible);
void squad_pipeline_release(struct squad_pipeline *pipeline);

/* The numbers of code points of a paragraph before byte `begin` and before byte `end`. */
void squad_code_points(const struct squad_paragraph *paragraph, int64_t begin, int64_t end, int64_t *out_begin, int64_t *out_end);

#endif
