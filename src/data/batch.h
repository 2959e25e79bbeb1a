/* One micro-batch: packed rows without padding, and the labels that each head of a model is trained on. Independent of any task.
 *
 * An example is the unit that a label belongs to: one sequence (a text, a pair, a masked pre-training pair) or several (the
 * choices of a question, the sides of a contrastive pair). Its sequences are always in the same micro-batch, side by side.
 */
#ifndef DATA_BATCH_H
#define DATA_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"

/* Most heads that a model can have at once. */
#define BATCH_HEADS 4

/* The labels of one head: either classes or values, never both. */
struct batch_labels {
	int32_t count, width; /* N items of `width` numbers each; with N = 0 this batch trains nothing in the head */
	int32_t row_width;    /* token rows per item; 0: implied by the kind of head (first row of each sequence, or all rows) */
	int32_t *rows;        /* [N * row_width] the token rows that the head reads, all distinct; or NULL */
	int32_t *classes;     /* [N * width]; -1 = none */
	float *values;        /* [N * width] */
	float *weights;       /* [N] weight in the loss; 0 = ignored */
};

/* Capacity for one head's labels. */
struct label_capacity {
	int32_t count, width; /* width 0: there is no such head */
	int32_t row_width;
	bool values; /* labels are values instead of classes */
};

struct batch_capacity {
	int32_t tokens, sequences, examples;
	struct label_capacity labels[BATCH_HEADS];
};

/* Number of items of the head with the most. */
static inline int32_t most_labels(const struct batch_capacity *capacity)
{
	int32_t most = 0;
	for (int h = 0; h < BATCH_HEADS; h++)
		most = capacity->labels[h].count > most ? capacity->labels[h].count : most;
	return most;
}

/* T tokens in B sequences of E examples, laid end to end. Arrays are as large as the capacity, rounded up to a multiple of
 * 128; entries beyond T, B, E and N are zero and have no effect. On a GPU a twin of this struct holds device pointers. */
struct batch {
	int32_t token_count, sequence_count, example_count; /* T, B, E */
	int32_t longest;                                    /* tokens of the longest sequence */
	int32_t *ids, *types;                               /* [T] token ids; segment 0 or 1 */
	int32_t *positions;                                 /* [T] position within the sequence, from 0 */
	uint32_t *token_samples; /* [T] sample number of the token's sequence, modulo 2^32: the key for dropout */
	int32_t *starts;         /* [B+1] first token of each sequence, and T */
	uint32_t *samples;       /* [B] sample number of each sequence, unique within the run */
	int32_t *example_starts; /* [E+1] first sequence of each example, and B */
	struct batch_labels labels[BATCH_HEADS];
	const int32_t *host_starts; /* batch on a GPU: host-readable copy of `starts`; else NULL */
	int32_t *id_order;          /* [T] token indices sorted by (id, index), so that embed_bwd adds each row once */
	int32_t *own_tokens;        /* [1] batch on a GPU: number of tokens before the fill-up tokens; else NULL */
	int32_t *length_order;      /* [B] sequences from longest to shortest, made on the way to a GPU; else NULL */
};

/* batch_create allocates the arrays of a batch for a capacity, zeroed, in one block of batch_bytes bytes that begins at `ids`;
 * batch_release frees it. */
size_t batch_bytes(const struct batch_capacity *capacity);
MUST_USE enum status batch_create(struct batch *out, const struct batch_capacity *capacity);
void batch_release(struct batch *batch);
/* The smallest capacity that holds the batch. */
struct batch_capacity batch_capacity_of(const struct batch *batch);
/* Enlarges `all` so that it also holds whatever `one` holds. */
void batch_capacity_grow(struct batch_capacity *all, const struct batch_capacity *one);
/* True if whatever fits `one` also fits `all`. */
bool batch_capacity_holds(const struct batch_capacity *all, const struct batch_capacity *one);
/* True if the batch fits the capacity. */
bool batch_fits(const struct batch *batch, const struct batch_capacity *capacity);

#endif
