/* Divides the examples of a step among parts by weight, and each part into micro-batches. */
#include "data/step_cut.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/numbers.h"

/* A part, with the work and the number of examples assigned to it so far. */
struct part_load {
	int64_t work, examples;
	int32_t part;
};

static int32_t part_count(const struct step_settings *settings)
{
	int32_t ranks = settings->ranks > 0 ? settings->ranks : 1;
	return ranks * (settings->replicas > 0 ? settings->replicas : 1);
}

int64_t step_part_examples(const struct step_settings *settings)
{
	int32_t parts = part_count(settings);
	return (settings->batch_size + parts - 1) / parts;
}

enum status step_cut_open(struct step_cut *cut, const struct step_settings *settings, int32_t longest)
{
	*cut = (struct step_cut){
		.settings = settings,
		.parts = part_count(settings),
		.part_examples = step_part_examples(settings),
		.longest = longest,
	};
	if (cut->parts == 1)
		return OK;
	TRY(memory_new(&cut->by_length, settings->batch_size, sizeof *cut->by_length, "step"));
	TRY(memory_new(&cut->part_of, settings->batch_size, sizeof *cut->part_of, "step"));
	TRY(memory_new(&cut->counts, (int64_t)longest + 2, sizeof *cut->counts, "step"));
	return memory_new(&cut->heap, cut->parts, sizeof *cut->heap, "step");
}

void step_cut_release(struct step_cut *cut)
{
	free(cut->by_length);
	free(cut->part_of);
	free(cut->counts);
	free(cut->heap);
	*cut = (struct step_cut){0};
}

/* Sorts indices by decreasing length; examples of equal length keep their order. */
static void sort_by_length(struct step_cut *cut, const struct example_plan *plans, int64_t count)
{
	int32_t *starts = cut->counts, sum = 0;
	memset(starts, 0, ((size_t)cut->longest + 2) * sizeof *starts);
	for (int64_t i = 0; i < count; i++) {
		BUG_IF(plans[i].tokens < 0 || plans[i].tokens > cut->longest);
		starts[plans[i].tokens]++;
	}
	for (int32_t length = cut->longest; length >= 0; length--) {
		int32_t here = starts[length];
		starts[length] = sum;
		sum += here;
	}
	for (int64_t i = 0; i < count; i++)
		cut->by_length[starts[plans[i].tokens]++] = (int32_t)i;
}

static bool is_lighter(const struct part_load *a, const struct part_load *b)
{
	return a->work != b->work ? a->work < b->work : a->part < b->part;
}

/* Restores the heap of `count` parts, lightest on top, after its top has changed. */
static void sift(struct part_load *heap, int32_t count)
{
	struct part_load moved = heap[0];
	int32_t at = 0;
	for (;;) {
		int32_t child = 2 * at + 1;
		if (child >= count)
			break;
		if (child + 1 < count && is_lighter(&heap[child + 1], &heap[child]))
			child++;
		if (!is_lighter(&heap[child], &moved))
			break;
		heap[at] = heap[child];
		at = child;
	}
	heap[at] = moved;
}

/* Fills part_of. */
static void share_out(struct step_cut *cut, const struct example_plan *plans, int64_t count)
{
	struct part_load *heap = cut->heap;
	int32_t open = cut->parts;
	for (int32_t part = 0; part < open; part++)
		heap[part] = (struct part_load){.part = part};
	for (int64_t i = 0; i < count; i++) {
		int32_t example = cut->by_length[i];
		cut->part_of[example] = heap[0].part;
		heap[0].work += plans[example].tokens * cut->settings->linear_work + plans[example].squares;
		if (++heap[0].examples == cut->part_examples)
			heap[0] = heap[--open];
		sift(heap, open);
	}
}

void step_cut_parts(struct step_cut *cut, const struct example_plan *plans, int64_t count, int32_t *order, int64_t *ends)
{
	if (cut->parts == 1) {
		for (int64_t i = 0; i < count; i++)
			order[i] = (int32_t)i;
		ends[0] = count;
		return;
	}
	sort_by_length(cut, plans, count);
	share_out(cut, plans, count);
	memset(ends, 0, (size_t)cut->parts * sizeof *ends);
	for (int64_t i = 0; i < count; i++)
		ends[cut->part_of[i]]++;
	int64_t sum = 0;
	for (int32_t part = 0; part < cut->parts; part++) {
		int64_t here = ends[part];
		ends[part] = sum;
		sum += here;
	}
	for (int64_t i = 0; i < count; i++)
		order[ends[cut->part_of[i]]++] = (int32_t)i;
}

static int32_t cut_equally(int32_t pieces, int64_t begin, int64_t end, int32_t *ends)
{
	int64_t count = end - begin, at = begin;
	pieces = pieces < count ? pieces : (int32_t)count;
	for (int32_t i = 0; i < pieces; i++) {
		at += count / pieces + (i < count % pieces);
		if (ends)
			ends[i] = (int32_t)at;
	}
	return pieces;
}

/* True if the example still fits the micro-batch after what is in it. */
static bool fits_behind(const struct batch_capacity *used, const struct example_plan *plan, const struct batch_capacity *capacity)
{
	bool fits = plan->sequences <= capacity->sequences - used->sequences && used->examples < capacity->examples &&
		    plan->tokens <= capacity->tokens - used->tokens;
	for (int h = 0; h < BATCH_HEADS; h++)
		fits = fits && plan->labels[h] <= capacity->labels[h].count - used->labels[h].count;
	return fits;
}

int32_t step_cut_batches(const struct step_settings *settings, const struct example_plan *plans, const int32_t *order,
			 int64_t begin, int64_t end, int32_t *ends)
{
	if (begin == end)
		return 0;
	if (settings->accumulation_steps > 0)
		return cut_equally(settings->accumulation_steps, begin, end, ends);
	struct batch_capacity used = {0};
	int32_t batches = 0;
	for (int64_t i = begin; i < end; i++) {
		const struct example_plan *plan = &plans[order[i]];
		if (!fits_behind(&used, plan, &settings->capacity)) {
			if (ends)
				ends[batches] = (int32_t)i;
			batches++;
			used = (struct batch_capacity){0};
		}
		used.tokens += plan->tokens;
		used.sequences += plan->sequences;
		used.examples++;
		for (int h = 0; h < BATCH_HEADS; h++)
			used.labels[h].count += plan->labels[h];
	}
	if (ends)
		ends[batches] = (int32_t)end;
	return batches + 1;
}

/* Mean tokens per sequence that a capacity given in tokens is laid out for; shorter sequences exhaust the sequence
 * capacity first. */
#define TOKENS_PER_SEQUENCE 16

struct batch_capacity batch_capacity_for(const struct example_bounds *bounds, int64_t batch_size, int32_t accumulation_steps,
					 int64_t token_limit)
{
	int64_t full = example_tokens(bounds), micro = batch_size;
	if (accumulation_steps > 0)
		micro = (batch_size + accumulation_steps - 1) / accumulation_steps;
	int64_t tokens = smaller(micro, INT32_MAX / 2 / full) * full;
	int64_t examples = tokens / full;
	if (token_limit > 0 && tokens > token_limit) {
		tokens = token_limit > full ? token_limit : full;
		int64_t spread = tokens / TOKENS_PER_SEQUENCE / bounds->sequences;
		examples = smaller(micro, spread > 0 ? spread : 1);
	}
	struct batch_capacity capacity = {
		.tokens = (int32_t)tokens, .sequences = (int32_t)(examples * bounds->sequences), .examples = (int32_t)examples};
	for (int h = 0; h < BATCH_HEADS; h++) {
		const struct label_bounds *labels = &bounds->labels[h];
		int64_t most = examples * labels->most;
		/* An example of n tokens has at most n * p + 1 items. */
		if (labels->per_token > 0)
			most = smaller(most, (int64_t)ceil((double)tokens * labels->per_token) + examples);
		if (labels->most > 0)
			capacity.labels[h] = (struct label_capacity){.count = (int32_t)most,
								     .width = labels->width,
								     .row_width = labels->row_width,
								     .values = labels->values};
	}
	return capacity;
}
