#include "data/unigram.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"

#define TOKENS_COUNTED ((int64_t)32 << 20)
#define BLOCK 4096 /* sentences: pages are read whole anyway */

/* Adds the tokens of a block of sentences, through a buffer that grows to the longest. */
static enum status count_block(const struct shard *shard, int64_t first, int64_t end, int32_t vocab_size, int64_t *counts,
                               int32_t **ids, int64_t *capacity)
{
	for (int64_t sentence = first; sentence < end; sentence++) {
		int32_t length = shard_length(shard, sentence);
		TRY(memory_grow(ids, capacity, length, sizeof **ids, "tokens of a sentence"));
		TRY(shard_tokens(shard, sentence, 0, length, vocab_size, *ids));
		for (int32_t i = 0; i < length; i++)
			counts[(*ids)[i]]++;
	}
	return OK;
}

enum status unigram_measure(const struct shard *shards, int64_t shard_count, int32_t vocab_size, struct unigram *out)
{
	int64_t tokens = 0, *counts = NULL, capacity = 0;
	int32_t *ids = NULL;
	enum status status = OK;
	*out = (struct unigram){.entropy = NAN, .frequent_share = NAN, .frequent_id = -1};
	for (int64_t s = 0; s < shard_count; s++)
		tokens += shards[s].token_count;
	int64_t stride = tokens / TOKENS_COUNTED + 1;
	TRY(memory_new(&counts, vocab_size, sizeof *counts, "token counts"));
	for (int64_t s = 0; s < shard_count; s++)
		for (int64_t first = 0; first < shards[s].sentence_count; first += stride * BLOCK) {
			int64_t end = first + BLOCK < shards[s].sentence_count ? first + BLOCK : shards[s].sentence_count;
			TRY_GOTO(count_block(&shards[s], first, end, vocab_size, counts, &ids, &capacity), done);
		}
	int64_t most = 0;
	for (int32_t id = 0; id < vocab_size; id++) {
		out->counted += counts[id];
		if (counts[id] > most) {
			most = counts[id];
			out->frequent_id = id;
		}
	}
	if (out->counted == 0)
		goto done;
	out->entropy = 0;
	for (int32_t id = 0; id < vocab_size; id++) {
		double share = (double)counts[id] / (double)out->counted;
		if (share > 0)
			out->entropy -= share * log(share);
	}
	out->frequent_share = (double)most / (double)out->counted;
done:
	free(ids);
	free(counts);
	return status;
}
