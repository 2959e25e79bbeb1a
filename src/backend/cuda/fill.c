#include "backend/cuda/fill.h"

#include "backend/tensor.h"

/* Shorter ones are no work for a GPU. */
#define SHORTEST 16
/* Sequences are as long as a multiple of this. */
#define LENGTH_STEP 64

/* Sizes come in classes: so many an octave, but steps no smaller than these. */
#define CLASSES 64
#define TOKEN_STEP 32
#define SEQUENCE_STEP 1
#define PREDICTION_STEP 16

static int32_t class_step(int64_t size, int32_t least)
{
	int64_t octave = 1;
	while (2 * octave <= size)
		octave *= 2;
	return octave / CLASSES > least ? (int32_t)(octave / CLASSES) : least;
}

static int32_t class_of(int64_t size, int32_t least)
{
	return (int32_t)round_up(size, class_step(size, least));
}

static int32_t smaller(int32_t a, int32_t b)
{
	return a < b ? a : b;
}

/* Inert sequences that the inert tokens need, none being longer than `longest`. There are fewer tokens than a step of their
 * class, which is at most twice that of the batch, and a token for each sequence. */
static int32_t sequences_needed(int32_t tokens, int32_t longest)
{
	int32_t most = 2 * class_step(tokens, TOKEN_STEP);
	return (most + longest - 3) / (longest - 1);
}

void fill_shape(struct batch *shape, int32_t limit)
{
	int32_t tokens = shape->token_count, sequences = shape->sequence_count;
	if (tokens == 0 || limit < SHORTEST)
		return;
	shape->longest = smaller((int32_t)round_up(shape->longest, LENGTH_STEP), limit);
	if (class_of(tokens, TOKEN_STEP) != tokens || class_of(sequences, SEQUENCE_STEP) != sequences) {
		int32_t needed = sequences_needed(tokens, shape->longest);
		shape->sequence_count = class_of((int64_t)sequences + needed, SEQUENCE_STEP);
		/* Each sequence has a token. */
		shape->token_count = class_of((int64_t)tokens + shape->sequence_count - sequences, TOKEN_STEP);
	}
	if (shape->prediction_count > 0)
		shape->prediction_count = smaller(class_of(shape->prediction_count, PREDICTION_STEP), shape->token_count);
}

int32_t fill_count(int32_t tokens, int32_t sequences, int32_t longest)
{
	struct batch shape = {.token_count = tokens, .sequence_count = sequences, .longest = longest};
	fill_shape(&shape, longest);
	return shape.token_count;
}

struct batch_capacity fill_room(struct batch_capacity capacity)
{
	int64_t sequences = capacity.sequences + (int64_t)sequences_needed(capacity.tokens, SHORTEST);
	int64_t inert = sequences - capacity.sequences + class_step(sequences, SEQUENCE_STEP);
	return (struct batch_capacity){
		.tokens = class_of(capacity.tokens + inert, TOKEN_STEP),
		.sequences = class_of(sequences, SEQUENCE_STEP),
		.predictions = class_of(capacity.predictions, PREDICTION_STEP),
	};
}

/* The inert tokens are spread evenly over the inert sequences. Their word is the last in id_order, so that they stand at its
 * end. */
static void fill_tokens(const struct batch *batch, const struct batch *own)
{
	int32_t tokens = own->token_count, count = batch->sequence_count - own->sequence_count;
	int32_t inert = batch->token_count - tokens;
	int32_t id = batch->ids[batch->id_order[tokens - 1]];
	for (int32_t i = 0; i < count; i++) {
		int32_t sequence = own->sequence_count + i;
		int32_t begin = tokens + (int32_t)((int64_t)inert * i / count),
			end = tokens + (int32_t)((int64_t)inert * (i + 1) / count);
		batch->starts[sequence] = begin;
		batch->starts[sequence + 1] = end;
		batch->samples[sequence] = 0;
		batch->next_labels[sequence] = -1;
		for (int32_t t = begin; t < end; t++) {
			batch->ids[t] = id;
			batch->types[t] = 0;
			batch->positions[t] = t - begin;
			batch->token_samples[t] = 0;
			batch->id_order[t] = t;
		}
	}
}

/* Inert predictions take rows from the end that no other has. */
static void fill_predictions(const struct batch *batch, const struct batch *own)
{
	int32_t *rows = batch->prediction_rows, taken = own->prediction_count - 1;
	for (int32_t p = own->prediction_count, row = batch->token_count - 1; p < batch->prediction_count; row--) {
		if (taken >= 0 && rows[taken] == row) {
			taken--;
			continue;
		}
		rows[p] = row;
		batch->prediction_labels[p] = 0;
		batch->prediction_weights[p++] = 0;
	}
}

void fill_batch(const struct batch *batch, const struct batch *own)
{
	if (batch->token_count > own->token_count)
		fill_tokens(batch, own);
	fill_predictions(batch, own);
}
