/* Hashes the texts of examples and compares them, sorted. */
#include "data/row_hashes.h"

#include <stdlib.h>
#include "base/hash.h"
#include "base/memory.h"

static uint64_t text_hash(const struct labeled_set *set, int64_t example)
{
	uint64_t hash = 0;
	for (int64_t s = set->examples[example]; s < set->examples[example + 1]; s++) {
		size_t count = (size_t)(set->sequences[s + 1] - set->sequences[s]);
		hash = hash64_combine(hash, hash64(set->ids + set->sequences[s], count * sizeof *set->ids));
		hash = hash64_combine(hash, (uint64_t)set->seconds[s]);
	}
	return hash;
}

static uint64_t label_hash(const struct labeled_set *set, int64_t example)
{
	uint64_t hash = 0;
	for (int h = 0; h < BATCH_HEADS; h++) {
		const struct labeled_items *items = &set->items[h];
		if (!items->starts)
			continue;
		int64_t first = items->starts[example], count = items->starts[example + 1] - first, width = items->width;
		if (items->rows && count > 0)
			hash = hash64_combine(hash, hash64(items->rows + first * items->row_width,
							   (size_t)(count * items->row_width) * sizeof *items->rows));
		if (count > 0)
			hash = hash64_combine(hash, items->values ? hash64(items->numbers + first * width,
									   (size_t)(count * width) * sizeof *items->numbers)
								  : hash64(items->classes + first * width,
									   (size_t)(count * width) * sizeof *items->classes));
	}
	return hash;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

enum status row_hashes_make(struct row_hashes *out, const struct labeled_set *set, int64_t most)
{
	int64_t kept = 0;
	*out = (struct row_hashes){.limit = UINT64_MAX};
	TRY(memory_new(&out->hashes, set->example_count, sizeof *out->hashes, "hashes of examples"));
	for (int64_t e = 0; e < set->example_count; e++)
		out->hashes[e] = text_hash(set, e);
	qsort(out->hashes, (size_t)set->example_count, sizeof *out->hashes, by_value);
	for (int64_t e = 0; e < set->example_count; e++)
		if (kept == 0 || out->hashes[kept - 1] != out->hashes[e])
			out->hashes[kept++] = out->hashes[e];
	out->count = kept;
	if (most > 0 && kept > most) {
		out->count = most;
		out->limit = out->hashes[most - 1];
	}
	return OK;
}

void row_hashes_release(struct row_hashes *hashes)
{
	free(hashes->hashes);
	*hashes = (struct row_hashes){.count = 0};
}

int64_t row_hashes_count(const struct row_hashes *hashes, const struct labeled_set *set, int64_t *out_examined)
{
	int64_t found = 0;
	*out_examined = 0;
	for (int64_t e = 0; e < set->example_count; e++) {
		uint64_t hash = text_hash(set, e);
		if (hash > hashes->limit)
			continue;
		++*out_examined;
		found +=
			hashes->count > 0 && bsearch(&hash, hashes->hashes, (size_t)hashes->count, sizeof hash, by_value) != NULL;
	}
	return found;
}

struct row_pair {
	uint64_t text, labels;
};

static int by_pair(const void *a, const void *b)
{
	const struct row_pair *x = a, *y = b;
	int order = by_value(&x->text, &y->text);
	return order ? order : by_value(&x->labels, &y->labels);
}

enum status row_repeats_count(struct row_repeats *out, const struct labeled_set *set)
{
	struct row_pair *pairs;
	int64_t count = set->example_count;
	*out = (struct row_repeats){.repeated = 0};
	TRY(memory_new(&pairs, count, sizeof *pairs, "hashes of examples"));
	for (int64_t e = 0; e < count; e++)
		pairs[e] = (struct row_pair){text_hash(set, e), label_hash(set, e)};
	qsort(pairs, (size_t)count, sizeof *pairs, by_pair);
	for (int64_t begin = 0, end; begin < count; begin = end) {
		for (end = begin + 1; end < count && pairs[end].text == pairs[begin].text;)
			end++;
		for (int64_t e = begin + 1; e < end; e++)
			out->repeated += pairs[e].labels == pairs[e - 1].labels;
		if (pairs[end - 1].labels != pairs[begin].labels)
			out->contradicted += end - begin;
	}
	free(pairs);
	return OK;
}
