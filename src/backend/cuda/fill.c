/* Rounds the sizes of a batch up to shape classes and appends the inert tokens, sequences, and items that fill them. */
#include "backend/cuda/fill.h"

#include "backend/tensor.h"
#include "base/numbers.h"

/* With a shorter limit on lengths, batches are not worth padding. */
#define SHORTEST 16
/* The longest length is padded to a multiple of this. */
#define LENGTH_STEP 64

/* Sizes are rounded to classes: up to CLASSES per octave, with steps no smaller than these. */
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

/* Inert sequences needed for the inert tokens, if none is longer than `longest`. The number of inert tokens is less than one
 * step of their class, which is at most twice that of the batch, plus one token per sequence. */
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
	BUG_IF(shape->longest > limit); /* attention would leave out the rows beyond the limit */
	shape->longest = smaller((int32_t)round_up(shape->longest, LENGTH_STEP), limit);
	if (class_of(tokens, TOKEN_STEP) != tokens || class_of(sequences, SEQUENCE_STEP) != sequences) {
		int32_t needed = sequences_needed(tokens, shape->longest);
		shape->sequence_count = class_of((int64_t)sequences + needed, SEQUENCE_STEP);
		/* Each sequence has at least one token. */
		shape->token_count = class_of((int64_t)tokens + shape->sequence_count - sequences, TOKEN_STEP);
	}
	/* Each inert sequence is an example of its own. */
	if (shape->example_count > 0)
		shape->example_count += shape->sequence_count - sequences;
	for (int h = 0; h < BATCH_HEADS; h++) {
		struct batch_labels *labels = &shape->labels[h];
		if (labels->count == 0)
			continue;
		if (labels->rows)
			labels->count = smaller(class_of(labels->count, PREDICTION_STEP), shape->token_count / labels->row_width);
		else
			labels->count += shape->sequence_count - sequences;
	}
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
	struct batch_capacity room = capacity; /* keeps the kinds of labels */
	room.tokens = class_of(capacity.tokens + inert, TOKEN_STEP);
	room.sequences = class_of(sequences, SEQUENCE_STEP);
	room.examples = capacity.examples + room.sequences - capacity.sequences;
	for (int h = 0; h < BATCH_HEADS; h++) {
		struct label_capacity *labels = &room.labels[h];
		if (labels->width > 0)
			labels->count = labels->row_width > 0 ? class_of(labels->count, PREDICTION_STEP)
							      : labels->count + room.sequences - capacity.sequences;
	}
	return room;
}

/* Spreads the inert tokens evenly over the inert sequences. They repeat the last word of id_order, so that they can be
 * appended to it. */
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
		for (int32_t t = begin; t < end; t++) {
			batch->ids[t] = id;
			batch->types[t] = 0;
			batch->positions[t] = t - begin;
			batch->token_samples[t] = 0;
			batch->id_order[t] = t;
		}
	}
}

/* The next row, from `row` downwards, that belongs to no item. Rows are ascending, except within an item that has several. */
static int32_t free_row(const struct batch_labels *labels, int32_t *taken, int32_t row)
{
	if (labels->row_width == 1) {
		for (; *taken >= 0 && labels->rows[*taken] == row; row--)
			--*taken;
		return row;
	}
	for (int32_t i = *taken; i >= 0; i--) {
		if (labels->rows[i] == row) {
			row--;
			i = *taken + 1;
		}
	}
	return row;
}

/* Inert items have weight 0; if items have rows, inert ones take unused rows from the end. */
static void fill_labels(const struct batch *batch, const struct batch_labels *labels, int32_t own)
{
	int32_t taken = own * labels->row_width - 1, row = batch->token_count - 1;
	for (int32_t i = own; i < labels->count; i++) {
		for (int32_t k = 0; k < labels->row_width; k++) {
			row = free_row(labels, &taken, row);
			labels->rows[i * labels->row_width + k] = row--;
		}
		labels->weights[i] = 0;
		for (int32_t k = 0; k < labels->width; k++) {
			if (labels->classes)
				labels->classes[i * labels->width + k] = labels->rows ? 0 : -1;
			else
				labels->values[i * labels->width + k] = 0;
		}
	}
}

void fill_batch(const struct batch *batch, const struct batch *own)
{
	if (batch->token_count > own->token_count)
		fill_tokens(batch, own);
	for (int32_t e = own->example_count; own->example_count > 0 && e < batch->example_count; e++)
		batch->example_starts[e + 1] = batch->example_starts[e] + 1;
	for (int h = 0; h < BATCH_HEADS; h++)
		if (batch->labels[h].count > own->labels[h].count)
			fill_labels(batch, &batch->labels[h], own->labels[h].count);
}
