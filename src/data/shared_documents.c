/* Compares documents by the lengths of their sentences, then by their tokens. */
#include "data/shared_documents.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/memory.h"

struct fingerprint {
	uint64_t lengths, tokens;
	bool shared;
};

static uint64_t hash_lengths(const struct shard *shard, int64_t document)
{
	int64_t first = shard_document(shard, document);
	return hash64(shard->lengths + first * 4, (size_t)(shard_document(shard, document + 1) - first) * 4);
}

static uint64_t hash_tokens(const struct shard *shard, int64_t document)
{
	size_t width = shard->wide ? 4 : 2;
	uint64_t hash = 0;
	/* In another program's shards, a document's sentences need not follow one another. */
	for (int64_t s = shard_document(shard, document); s < shard_document(shard, document + 1); s++)
		hash = hash64_combine(hash, hash64((const unsigned char *)shard->ids + shard_byte_offset(shard, s),
						   (size_t)shard_length(shard, s) * width));
	return hash;
}

static bool is_empty(const struct shard *shard, int64_t document)
{
	return shard_document(shard, document) == shard_document(shard, document + 1);
}

static int compare(const void *left, const void *right)
{
	const struct fingerprint *a = left, *b = right;
	if (a->lengths != b->lengths)
		return a->lengths < b->lengths ? -1 : 1;
	return a->tokens < b->tokens ? -1 : a->tokens > b->tokens;
}

/* The first of the sorted fingerprints that is not before `wanted`. */
static int64_t find(const struct fingerprint *all, int64_t count, const struct fingerprint *wanted)
{
	int64_t low = 0, high = count;
	while (low < high) {
		int64_t middle = low + (high - low) / 2;
		if (compare(&all[middle], wanted) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

enum status shared_documents_count(const struct shard *shards, int64_t count, const struct shard *others, int64_t other_count,
				   int64_t *out, int64_t *out_all)
{
	struct fingerprint *all;
	int64_t documents = 0, filled = 0;
	for (int64_t s = 0; s < count; s++)
		documents += shards[s].document_count;
	TRY(memory_new(&all, documents, sizeof *all, "documents"));
	for (int64_t s = 0; s < count; s++)
		for (int64_t d = 0; d < shards[s].document_count; d++)
			if (!is_empty(&shards[s], d))
				all[filled++] =
					(struct fingerprint){hash_lengths(&shards[s], d), hash_tokens(&shards[s], d), false};
	qsort(all, (size_t)filled, sizeof *all, compare);
	for (int64_t s = 0; s < other_count; s++)
		for (int64_t d = 0; d < others[s].document_count; d++) {
			struct fingerprint own = {.lengths = hash_lengths(&others[s], d)};
			int64_t at = find(all, filled, &own);
			if (at == filled || all[at].lengths != own.lengths || is_empty(&others[s], d))
				continue;
			own.tokens = hash_tokens(&others[s], d);
			for (at = find(all, filled, &own); at < filled && compare(&all[at], &own) == 0 && !all[at].shared; at++)
				all[at].shared = true;
		}
	*out = 0;
	for (int64_t i = 0; i < filled; i++)
		*out += all[i].shared;
	*out_all = filled;
	free(all);
	return OK;
}
