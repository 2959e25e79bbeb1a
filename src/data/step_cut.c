#include "data/step_cut.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* A part with the work and the instances it has so far. */
struct part_load {
	int64_t work, instances;
	int32_t part;
};

static int32_t part_count(const struct step_settings *settings)
{
	int32_t ranks = settings->ranks > 0 ? settings->ranks : 1;
	return ranks * (settings->replicas > 0 ? settings->replicas : 1);
}

int64_t step_part_instances(const struct step_settings *settings)
{
	int32_t parts = part_count(settings);
	return (settings->batch_size + parts - 1) / parts;
}

enum status step_cut_open(struct step_cut *cut, const struct step_settings *settings, int32_t longest)
{
	*cut = (struct step_cut){
		.settings = settings,
		.parts = part_count(settings),
		.part_instances = step_part_instances(settings),
		.longest = longest,
	};
	if (cut->parts == 1)
		return OK;
	TRY(memory_new(&cut->by_length, settings->batch_size, sizeof(*cut->by_length), "step"));
	TRY(memory_new(&cut->part_of, settings->batch_size, sizeof(*cut->part_of), "step"));
	TRY(memory_new(&cut->counts, (int64_t)longest + 2, sizeof(*cut->counts), "step"));
	return memory_new(&cut->heap, cut->parts, sizeof(*cut->heap), "step");
}

void step_cut_release(struct step_cut *cut)
{
	free(cut->by_length);
	free(cut->part_of);
	free(cut->counts);
	free(cut->heap);
	*cut = (struct step_cut){0};
}

/* Indices by falling length; equal lengths in their order. */
static void sort_by_length(struct step_cut *cut, const struct pick *picks, int64_t count)
{
	int32_t *starts = cut->counts, sum = 0;
	memset(starts, 0, ((size_t)cut->longest + 2) * sizeof(*starts));
	for (int64_t i = 0; i < count; i++) {
		BUG_IF(picks[i].length < 0 || picks[i].length > cut->longest);
		starts[picks[i].length]++;
	}
	for (int32_t length = cut->longest; length >= 0; length--) {
		int32_t here = starts[length];
		starts[length] = sum;
		sum += here;
	}
	for (int64_t i = 0; i < count; i++)
		cut->by_length[starts[picks[i].length]++] = (int32_t)i;
}

static bool is_lighter(const struct part_load *a, const struct part_load *b)
{
	return a->work != b->work ? a->work < b->work : a->part < b->part;
}

/* Moves the top of a heap of `count`, whose lightest part is on top, to where it belongs. */
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
static void share_out(struct step_cut *cut, const struct pick *picks, int64_t count)
{
	struct part_load *heap = cut->heap;
	int32_t open = cut->parts;
	for (int32_t part = 0; part < open; part++)
		heap[part] = (struct part_load){.part = part};
	for (int64_t i = 0; i < count; i++) {
		int32_t instance = cut->by_length[i];
		int64_t length = picks[instance].length;
		cut->part_of[instance] = heap[0].part;
		heap[0].work += length * (cut->settings->linear_work + length);
		if (++heap[0].instances == cut->part_instances)
			heap[0] = heap[--open];
		sift(heap, open);
	}
}

void step_cut_parts(struct step_cut *cut, const struct pick *picks, int64_t count, int32_t *order, int64_t *ends)
{
	if (cut->parts == 1) {
		for (int64_t i = 0; i < count; i++)
			order[i] = (int32_t)i;
		ends[0] = count;
		return;
	}
	sort_by_length(cut, picks, count);
	share_out(cut, picks, count);
	memset(ends, 0, (size_t)cut->parts * sizeof(*ends));
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

int32_t step_cut_batches(const struct step_settings *settings, const struct pick *picks, const int32_t *order, int64_t begin,
			 int64_t end, int32_t *ends)
{
	if (begin == end)
		return 0;
	if (settings->accumulation_steps > 0)
		return cut_equally(settings->accumulation_steps, begin, end, ends);
	struct batch_capacity used = {0};
	int32_t batches = 0;
	for (int64_t i = begin; i < end; i++) {
		int32_t tokens = picks[order[i]].length, predictions = picks[order[i]].predictions;
		if (used.sequences + 1 > settings->capacity.sequences || tokens > settings->capacity.tokens - used.tokens ||
		    predictions > settings->capacity.predictions - used.predictions) {
			if (ends)
				ends[batches] = (int32_t)i;
			batches++;
			used = (struct batch_capacity){0};
		}
		used.tokens += tokens;
		used.predictions += predictions;
		used.sequences++;
	}
	if (ends)
		ends[batches] = (int32_t)end;
	return batches + 1;
}
