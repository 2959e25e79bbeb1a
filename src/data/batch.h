/* One micro-batch: packed rows without padding, and what each head of a model is to say of them. Names no task.
 *
 * An example is what a label belongs to: one sequence (a text, a pair, a masked pair of pre-training) or several (the
 * choices of a question, the sides of a contrastive pair). Its sequences are always in one micro-batch, side by side.
 */
#ifndef DATA_BATCH_H
#define DATA_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"

/* Heads that a model can have at a time. */
#define BATCH_HEADS 4

/* What one head is to say. Either classes or values are there. */
struct batch_labels {
	int32_t count, width; /* N items, each of so many numbers; without items the head has nothing to learn here */
	int32_t row_width;    /* token rows an item; 0: they follow from the head's kind (the first row of each sequence, all) */
	int32_t *rows;        /* [N * row_width] the token rows that the head reads, all distinct; or NULL */
	int32_t *classes;     /* [N * width]; -1 = none */
	float *values;        /* [N * width] */
	float *weights;       /* [N] share in the loss; 0 = none */
};

/* Sizes of one head's labels. */
struct label_capacity {
	int32_t count, width; /* width 0: there is no such head */
	int32_t row_width;
	bool values; /* labels are values instead of classes */
};

struct batch_capacity {
	int32_t tokens, sequences, examples;
	struct label_capacity labels[BATCH_HEADS];
};

/* Items of the head that has most. */
static inline int32_t most_labels(const struct batch_capacity *capacity)
{
	int32_t most = 0;
	for (int h = 0; h < BATCH_HEADS; h++)
		most = capacity->labels[h].count > most ? capacity->labels[h].count : most;
	return most;
}

/* T tokens in B sequences of E examples, laid end to end. Arrays have the capacities' sizes, rounded up to a multiple of
 * 128; what lies beyond T, B, E, N is zero and inert. On a GPU a twin of this struct holds device pointers. */
struct batch {
	int32_t token_count, sequence_count, example_count; /* T, B, E */
	int32_t longest;                                    /* tokens of the longest sequence */
	int32_t *ids, *types;                               /* [T] token ids; segment 0 or 1 */
	int32_t *positions;                                 /* [T] position within the sequence, from 0 */
	uint32_t *token_samples; /* [T] sample number of the token's sequence, modulo 2^32: dropout's key */
	int32_t *starts;         /* [B+1] first token of each sequence, and T */
	uint32_t *samples;       /* [B] sample number of each sequence: of no other in the run */
	int32_t *example_starts; /* [E+1] first sequence of each example, and B */
	struct batch_labels labels[BATCH_HEADS];
	const int32_t *host_starts; /* of a batch on a GPU: `starts` where the host can read it; else NULL */
	int32_t *id_order;          /* [T] token indices sorted by (id, index): embed_bwd adds each row once */
	int32_t *own_tokens;        /* [1] of a batch on a GPU: tokens before those that it was filled up with; else NULL */
	int32_t *length_order;      /* [B] sequences from the longest to the shortest: made on the way to a GPU, else NULL */
};

/* Allocates the arrays of a batch for a capacity, zeroed, in one block that begins at `ids`; batch_release
 * frees it. */
size_t batch_bytes(const struct batch_capacity *capacity);
MUST_USE enum status batch_create(struct batch *out, const struct batch_capacity *capacity);
void batch_release(struct batch *batch);
/* The capacity that just holds it. */
struct batch_capacity batch_capacity_of(const struct batch *batch);
/* Makes `all` hold what `one` does, too. */
void batch_capacity_grow(struct batch_capacity *all, const struct batch_capacity *one);
/* Does what fits `one` fit `all`? */
bool batch_capacity_holds(const struct batch_capacity *all, const struct batch_capacity *one);
/* Does the batch fit? */
bool batch_fits(const struct batch *batch, const struct batch_capacity *capacity);

#endif
