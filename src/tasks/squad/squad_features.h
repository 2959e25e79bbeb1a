/* Questions and paragraphs as windows of tokens, as Google's run_squad.py makes them (convert_examples_to_features):
 *
 * [CLS] question [SEP] a span of the paragraph [SEP]
 *
 * A paragraph is split into words at white space, and each word separately into pieces. A paragraph too long for one window gets
 * several, doc_stride tokens apart. Everything is stored once: a paragraph's tokens serve all of its questions, and a window is a
 * range of them. Time and memory are linear in the text. */
#ifndef TASKS_SQUAD_SQUAD_FEATURES_H
#define TASKS_SQUAD_SQUAD_FEATURES_H

#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"
#include "tasks/squad/squad_file.h"
#include "text/tokenizer.h"

struct squad_feature_settings {
	int32_t max_seq_length;   /* tokens of a window, including [CLS] and both [SEP] */
	int32_t max_query_length; /* a question is cut to this many tokens */
	int32_t doc_stride;       /* a window begins this many tokens after the previous one (Google) */
	bool stride_is_overlap;   /* instead, two windows share doc_stride tokens (Hugging Face) */
	bool whole_words;  /* ideographs do not separate words, so that words are exactly Google's. Otherwise each is a word: the
			      tokens are the same, but an answer in Chinese text, which has no spaces, is looked for where it is,
			      not in the whole paragraph, where Google's code takes the first equal text */
	bool find_targets; /* training: find the rows of the first answer of each question */
};

/* Rows are counted from the window's [CLS]. Targets are 0 (the [CLS]) unless the window contains the whole answer. */
struct squad_window {
	int64_t question;
	int32_t first, length; /* range of the paragraph's tokens, counted from its beginning */
	int32_t start_row, end_row;
};

/* In the arrays of tokens, paragraph p has token_starts[p] to token_starts[p + 1]; in those of words, word_starts[p] to
 * word_starts[p + 1]. Bytes and words are counted from the beginning of the paragraph. */
struct squad_features {
	const struct squad_set *set; /* borrowed, as is the tokenizer */
	const struct tokenizer *tokenizer;
	struct squad_feature_settings settings;
	int64_t *token_starts, *word_starts; /* [paragraphs + 1] */
	int32_t *token_ids, *token_words;    /* [tokens]; [tokens] the word that a token belongs to */
	uint32_t *token_begins, *token_ends; /* [tokens] bytes */
	uint32_t *word_begins, *word_ends;   /* [words] bytes */
	int64_t *query_starts;               /* [questions + 1] */
	int32_t *query_ids;                  /* tokens of question q: query_starts[q] to query_starts[q + 1] */
	int64_t *window_starts;              /* [questions + 1] windows of question q */
	struct squad_window *windows;        /* [window_starts[questions]] in the order of the questions */
	int64_t cut_questions;               /* number of questions longer than max_query_length */
	int64_t empty_paragraphs;            /* number of questions about a paragraph without tokens, which have no window */
	int64_t outside_answers;             /* with targets: number of answers that no window contains whole */
};

/* Makes the windows of all questions. The tokenizer must treat "[MASK]" and the like as text (special_tokens false). Fails for
 * lack of memory, and with ERR_USAGE if max_seq_length leaves no room for a paragraph after the question. */
MUST_USE enum status squad_features_make(struct squad_features *out, const struct squad_set *set,
					 const struct tokenizer *tokenizer, const struct squad_feature_settings *settings);
/* Logs how many questions were cut, paragraphs empty and answers lost, if any. */
void squad_features_log(const struct squad_features *features, const char *name);
void squad_features_release(struct squad_features *features);

/* Number of tokens in a window: question + paragraph + 3. */
int32_t squad_window_size(const struct squad_features *features, int64_t window);
/* Writes ids and segments (0 up to the first [SEP], then 1), squad_window_size() of each. */
void squad_window_fill(const struct squad_features *features, int64_t window, int32_t *ids, int32_t *segments);
/* The paragraph's token in a row, or -1 for [CLS], [SEP] and the question. */
int32_t squad_row_token(const struct squad_features *features, int64_t window, int32_t row);
/* Of the windows that contain a token of the paragraph, is this the one in which it is farthest from both ends? True of exactly
 * one window, the first of equal ones. */
bool squad_is_max_context(const struct squad_features *features, int64_t window, int32_t token);

#endif
