/* Layout and capacity of a micro-batch's arrays. */
#include "data/batch.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define ROUNDING 128

static int64_t rounded(int64_t count)
{
	return (count + ROUNDING - 1) / ROUNDING * ROUNDING;
}

/* Hands out arrays of 32-bit numbers; with base == NULL it only counts. */
struct arrays {
	int32_t *base;
	int64_t used;
};

static void *take(struct arrays *arrays, int64_t count)
{
	int32_t *taken = arrays->base ? arrays->base + arrays->used : NULL;
	arrays->used += rounded(count);
	return taken;
}

static void lay_out(struct batch *batch, const struct batch_capacity *capacity, struct arrays *arrays)
{
	batch->ids = take(arrays, capacity->tokens);
	batch->types = take(arrays, capacity->tokens);
	batch->positions = take(arrays, capacity->tokens);
	batch->id_order = take(arrays, capacity->tokens);
	batch->token_samples = take(arrays, capacity->tokens);
	batch->starts = take(arrays, (int64_t)capacity->sequences + 1);
	batch->samples = take(arrays, (int64_t)capacity->sequences + 1);
	batch->example_starts = take(arrays, (int64_t)capacity->examples + 1);
	for (int h = 0; h < BATCH_HEADS; h++) {
		const struct label_capacity *room = &capacity->labels[h];
		struct batch_labels *labels = &batch->labels[h];
		labels->width = room->width;
		if (room->width == 0)
			continue;
		labels->row_width = room->row_width;
		labels->rows = room->row_width > 0 ? take(arrays, (int64_t)room->count * room->row_width) : NULL;
		labels->weights = take(arrays, room->count);
		if (room->values)
			labels->values = take(arrays, (int64_t)room->count * room->width);
		else
			labels->classes = take(arrays, (int64_t)room->count * room->width);
	}
}

size_t batch_bytes(const struct batch_capacity *capacity)
{
	struct batch batch = {0};
	struct arrays arrays = {0};
	lay_out(&batch, capacity, &arrays);
	return (size_t)arrays.used * sizeof(int32_t);
}

enum status batch_create(struct batch *out, const struct batch_capacity *capacity)
{
	struct arrays arrays = {0};
	memset(out, 0, sizeof *out);
	TRY(memory_new(&arrays.base, (int64_t)(batch_bytes(capacity) / sizeof(int32_t)), sizeof(int32_t), "micro-batch"));
	lay_out(out, capacity, &arrays);
	return OK;
}

void batch_release(struct batch *batch)
{
	free(batch->ids);
	memset(batch, 0, sizeof *batch);
}

bool batch_fits(const struct batch *batch, const struct batch_capacity *capacity)
{
	bool fits = batch->token_count <= capacity->tokens && batch->sequence_count <= capacity->sequences &&
		    batch->example_count <= capacity->examples;
	for (int h = 0; h < BATCH_HEADS; h++)
		fits = fits && (batch->labels[h].width == 0 || batch->labels[h].count <= capacity->labels[h].count);
	return fits;
}

struct batch_capacity batch_capacity_of(const struct batch *batch)
{
	struct batch_capacity capacity = {
		.tokens = batch->token_count, .sequences = batch->sequence_count, .examples = batch->example_count};
	for (int h = 0; h < BATCH_HEADS; h++) {
		const struct batch_labels *labels = &batch->labels[h];
		capacity.labels[h] = (struct label_capacity){.count = labels->count,
							     .width = labels->width,
							     .row_width = labels->row_width,
							     .values = labels->values != NULL};
	}
	return capacity;
}

void batch_capacity_grow(struct batch_capacity *all, const struct batch_capacity *one)
{
	all->tokens = one->tokens > all->tokens ? one->tokens : all->tokens;
	all->sequences = one->sequences > all->sequences ? one->sequences : all->sequences;
	all->examples = one->examples > all->examples ? one->examples : all->examples;
	for (int h = 0; h < BATCH_HEADS; h++) {
		int32_t count = all->labels[h].count;
		if (one->labels[h].width == 0)
			continue;
		all->labels[h] = one->labels[h];
		all->labels[h].count = one->labels[h].count > count ? one->labels[h].count : count;
	}
}

bool batch_capacity_holds(const struct batch_capacity *all, const struct batch_capacity *one)
{
	bool holds = all->tokens >= one->tokens && all->sequences >= one->sequences && all->examples >= one->examples;
	for (int h = 0; h < BATCH_HEADS; h++)
		holds = holds && all->labels[h].count >= one->labels[h].count;
	return holds;
}
