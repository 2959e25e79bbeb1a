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

/* The answer of transformers 4's question-answering pipeline (version 5 has none): softmax over [CLS] and the window's part of
 * the paragraph, for start and end apart; the best product over all windows; its ends widened to whole words. */
struct squad_pipeline_answer {
	double score, null_score; /* null_score: smallest product of [CLS] over the windows; 1 before the first window */
	int64_t begin, end;       /* bytes of the paragraph; equal: none yet */
};
#define SQUAD_PIPELINE_EMPTY ((struct squad_pipeline_answer){.null_score = 1})
/* Takes one window of the question into account. max_answer_length: 15 in transformers. */
void squad_pipeline_window(struct squad_pipeline_answer *answer, const struct squad_features *features, int64_t window,
			   const double *start, const double *end, int32_t max_answer_length);

/* Code points of a paragraph before byte `begin` and before byte `end`. */
void squad_code_points(const struct squad_paragraph *paragraph, int64_t begin, int64_t end, int64_t *out_begin, int64_t *out_end);

#endif
