/* Questions and paragraphs as windows of tokens, as Google's run_squad.py makes them (convert_examples_to_features):
 *
 *   [CLS] question [SEP] a stretch of the paragraph [SEP]
 *
 * A paragraph is cut into words at white space, each word into pieces by itself. A paragraph too long for one window gets
 * several, doc_stride tokens apart. Everything is kept once: a paragraph's tokens serve all of its questions, and a window is
 * a place in them. Time and memory are linear in the text. */
#ifndef TASKS_SQUAD_FEATURES_H
#define TASKS_SQUAD_FEATURES_H

#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"
#include "tasks/squad_file.h"
#include "text/tokenizer.h"

struct squad_feature_settings {
	int32_t max_seq_length;   /* tokens of a window, with [CLS] and both [SEP] */
	int32_t max_query_length; /* a question is cut to so many tokens */
	int32_t doc_stride;       /* a window begins so many tokens after the one before (Google) */
	bool stride_is_overlap;   /* instead, two windows share doc_stride tokens (Hugging Face) */
	bool whole_words;         /* ideographs do not part words, so that these are Google's exactly. Otherwise each is a word:
				     the tokens are the same, but an answer in Chinese text, which has no spaces, is looked for
				     where it stands instead of in the whole paragraph, where Google's code takes the first
				     text that is equal */
	bool find_targets;        /* training: find the rows of the first answer of each question */
};

/* Rows are counted from the window's [CLS]. Targets are 0 (that [CLS]) unless the window holds the whole answer. */
struct squad_window {
	int64_t question;
	int32_t first, length; /* tokens of the paragraph, counted from its beginning */
	int32_t start_row, end_row;
};

/* The tokens of paragraph p are token_starts[p] to token_starts[p + 1] in the arrays of tokens, its words word_starts[p] to
 * word_starts[p + 1] in those of words; bytes and words are counted from the beginning of the paragraph. */
struct squad_features {
	const struct squad_set *set; /* borrowed, as is the tokenizer */
	const struct tokenizer *tokenizer;
	struct squad_feature_settings settings;
	int64_t *token_starts, *word_starts; /* [paragraphs + 1] */
	int32_t *token_ids, *token_words;    /* [tokens]; the word that a token is of */
	uint32_t *token_begins, *token_ends; /* [tokens] bytes */
	uint32_t *word_begins, *word_ends;   /* [words] bytes */
	int64_t *query_starts;               /* [questions + 1] */
	int32_t *query_ids;                  /* tokens of question q: query_starts[q] to query_starts[q + 1] */
	int64_t *window_starts;              /* [questions + 1] windows of question q */
	struct squad_window *windows;        /* [window_starts[questions]], in the order of the questions */
	int64_t cut_questions;               /* longer than max_query_length */
	int64_t empty_paragraphs;            /* questions about a paragraph without tokens: they have no window */
	int64_t outside_answers;             /* with targets: answers that no window holds whole */
};

/* Makes the windows of all questions. The tokenizer must take "[MASK]" and the like as text (special_tokens false). Fails for
 * lack of memory, and with ERR_USAGE if max_seq_length leaves no room beside a question. */
MUST_USE enum status squad_features_make(struct squad_features *out, const struct squad_set *set,
					 const struct tokenizer *tokenizer, const struct squad_feature_settings *settings);
/* Says in the log how many questions were cut, paragraphs empty and answers lost, if there were any. */
void squad_features_log(const struct squad_features *features, const char *name);
void squad_features_release(struct squad_features *features);

/* Tokens of a window: question + paragraph + 3. */
int32_t squad_window_size(const struct squad_features *features, int64_t window);
/* Writes ids and segments (0 up to the first [SEP], then 1), squad_window_size() of each. */
void squad_window_fill(const struct squad_features *features, int64_t window, int32_t *ids, int32_t *segments);
/* The paragraph's token that stands in a row, or -1: [CLS], [SEP] or the question. */
int32_t squad_row_token(const struct squad_features *features, int64_t window, int32_t row);
/* Of the windows that hold a token of the paragraph, is this the one where it stands farthest from both ends? Exactly one
 * is, the first of equal ones. */
bool squad_is_max_context(const struct squad_features *features, int64_t window, int32_t token);

#endif
