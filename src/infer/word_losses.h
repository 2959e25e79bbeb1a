/* How well a masked-word model predicts each token of a text from all the others: every token, or every whole word, is masked in
 * turn, and its loss is the -log of the probability the model gives it. */
#ifndef INFER_WORD_LOSSES_H
#define INFER_WORD_LOSSES_H

#include "infer/encoder.h"
#include "infer/text_chunk.h"

/* The losses of one text. */
struct text_losses {
	int64_t first; /* index of its first token in word_losses */
	int64_t count; /* number of tokens, without [CLS] and [SEP] */
	int64_t units; /* number of masked units: tokens or words */
};

/* Zero-initialize; can be reused for further calls. */
struct word_losses {
	struct text_losses *texts; /* [text_count] */
	int64_t text_count;
	int32_t *tokens; /* ids of all texts in order */
	double *losses;  /* -log of each token's probability */
	int64_t token_count;
	/* Private from here. */
	struct encoder_answers answers;
	struct buffer room; /* ids, rows, and words of the copies */
	struct encoder_text *copies;
	int64_t *targets; /* where each copy's losses go */
	int64_t text_capacity, token_capacity, loss_capacity, copy_capacity, target_capacity;
};

/* Computes the losses for all texts of a chunk. In a text split into windows, a token is scored in the window that gives it the
 * most context on its shorter side, the first of equals. `whole_words`: the pieces of a word ("un", "##able") are masked
 * together. */
MUST_USE enum status word_losses_compute(struct word_losses *out, struct encoder *encoder, const struct text_chunk *texts,
					 const struct vocab *vocab, bool whole_words);
void word_losses_release(struct word_losses *losses);

#endif
