/* Hashes the texts of examples and compares them, sorted. */
#include "data/row_hashes.h"

#include <stdlib.h>
#include "base/buffer.h"
#include "base/hash.h"
#include "base/memory.h"

static uint64_t sequence_hash(const struct labeled_set *set, int64_t sequence, uint64_t before)
{
	size_t count = (size_t)(set->sequences[sequence + 1] - set->sequences[sequence]);
	uint64_t hash = hash64_combine(before, hash64(set->ids + set->sequences[sequence], count * sizeof *set->ids));
	return hash64_combine(hash, (uint64_t)set->seconds[sequence]);
}

static uint64_t text_hash(const struct labeled_set *set, int64_t example)
{
	uint64_t hash = 0;
	for (int64_t s = set->examples[example]; s < set->examples[example + 1]; s++)
		hash = sequence_hash(set, s, hash);
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

/* Puts the sequence [CLS] A [SEP] B [SEP] (or with other special tokens) as that of B and A into `out`; 0: it has one text. */
static int32_t swap_texts(const struct labeled_set *set, int64_t sequence, struct buffer *out)
{
	const int32_t *ids = set->ids + set->sequences[sequence];
	int32_t count = (int32_t)(set->sequences[sequence + 1] - set->sequences[sequence]), second = set->seconds[sequence];
	int32_t end = second, begin = second, last = count - 1;
	if (second >= count || second < 2)
		return 0;
	while (end > 1 && ids[end - 1] == ids[last])
		end--;
	while (begin < last && ids[begin] == ids[last])
		begin++;
	buffer_clear(out);
	buffer_append(out, ids, sizeof *ids);
	buffer_append(out, ids + begin, (size_t)(last - begin) * sizeof *ids);
	buffer_append(out, ids + end, (size_t)(begin - end) * sizeof *ids);
	buffer_append(out, ids + 1, (size_t)(end - 1) * sizeof *ids);
	buffer_append(out, ids + last, sizeof *ids);
	return 1 + (last - begin) + (second - end);
}

/* The hash of a pair of texts in the other order, whether they are in one sequence or in two; 0: it is no such pair. */
static enum status swapped_hash(const struct labeled_set *set, int64_t example, struct buffer *buffer, uint64_t *out)
{
	int64_t first = set->examples[example], count = set->examples[example + 1] - first;
	*out = 0;
	if (count == 1) {
		int32_t second = swap_texts(set, first, buffer);
		TRY(buffer_status(buffer));
		if (second > 0)
			*out = hash64_combine(hash64_combine(0, hash64(buffer->data, buffer->size)), (uint64_t)second);
	} else if (count == 2) {
		*out = sequence_hash(set, first, sequence_hash(set, first + 1, 0));
	}
	return OK;
}

static bool is_known(const struct row_hashes *hashes, uint64_t hash)
{
	return hashes->count > 0 && bsearch(&hash, hashes->hashes, (size_t)hashes->count, sizeof hash, by_value) != NULL;
}

enum status row_hashes_count(struct row_matches *out, const struct row_hashes *hashes, const struct labeled_set *set)
{
	struct buffer buffer = {0};
	enum status status = OK;
	*out = (struct row_matches){.found = 0};
	for (int64_t e = 0; e < set->example_count && status == OK; e++) {
		uint64_t hash = text_hash(set, e), swapped;
		bool known = hash <= hashes->limit && is_known(hashes, hash);
		out->examined += hash <= hashes->limit;
		out->found += known;
		status = swapped_hash(set, e, &buffer, &swapped);
		if (status != OK || swapped == 0 || swapped > hashes->limit)
			continue;
		out->swap_examined++;
		out->swapped += !known && is_known(hashes, swapped);
	}
	buffer_release(&buffer);
	return status;
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
