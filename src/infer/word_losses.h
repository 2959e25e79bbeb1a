/* How well a masked-word model foretells each token of a text from all others: every token, or every whole word, is hidden in
 * turn, and what the model says of it is its loss. */
#ifndef INFER_WORD_LOSSES_H
#define INFER_WORD_LOSSES_H

#include "infer/encoder.h"
#include "infer/text_chunk.h"

/* The losses of one text. */
struct text_losses {
	int64_t first; /* of its tokens in word_losses */
	int64_t count; /* tokens; special ones, [CLS] and [SEP], are not among them */
	int64_t units; /* times that something was hidden: tokens or words */
};

/* Zero-initialise; used again from call to call. */
struct word_losses {
	struct text_losses *texts; /* [text_count] */
	int64_t text_count;
	int32_t *tokens; /* ids, text after text */
	double *losses;  /* of each, -log of its probability */
	int64_t token_count;
	/* Private from here. */
	struct encoder_answers answers;
	struct buffer room; /* of the copies */
	struct encoder_text *copies;
	int64_t *targets; /* where the losses of a copy go */
	int64_t text_capacity, token_capacity, loss_capacity, copy_capacity, target_capacity;
};

/* Computes them for all texts of a chunk. Of a text in windows a token counts in the window where it has most context on both
 * sides, the first of equal ones. `whole_words`: the pieces of a word ("un", "##able") are hidden together. */
MUST_USE enum status word_losses_compute(struct word_losses *out, struct encoder *encoder, const struct text_chunk *texts,
					 const struct vocab *vocab, bool whole_words);
void word_losses_release(struct word_losses *losses);

#endif
