/* Counts tokens of the training text and derives the loss and accuracy of guessing by frequency. */
#include "data/pretraining/token_frequencies.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"

#define TOKENS_COUNTED ((int64_t)32 << 20)
#define INSTANCES_COUNTED ((int64_t)256 << 10)
#define BLOCK 4096 /* sentences per block; whole memory pages are read anyway */

/* Counts the tokens of a block of sentences, using a buffer that grows to the longest sentence. */
static enum status count_block(const struct shard *shard, int64_t first, int64_t end, int32_t vocab_size, bool segmented_words,
			       int64_t *counts, int32_t **ids, int64_t *capacity)
{
	for (int64_t sentence = first; sentence < end; sentence++) {
		int32_t length = shard_length(shard, sentence);
		TRY(memory_grow(ids, capacity, length, sizeof **ids, "tokens of a sentence"));
		TRY(shard_tokens(shard, sentence, 0, length, vocab_size * (segmented_words ? 2 : 1), *ids));
		for (int32_t i = 0; i < length; i++)
			counts[(*ids)[i] % vocab_size]++;
	}
	return OK;
}

static void conclude(const int64_t *counts, int32_t vocab_size, struct token_frequencies *out)
{
	int64_t most = 0;
	*out = (struct token_frequencies){.entropy = NAN, .frequent_share = NAN, .frequent_id = -1};
	for (int32_t id = 0; id < vocab_size; id++) {
		out->counted += counts[id];
		if (counts[id] > most) {
			most = counts[id];
			out->frequent_id = id;
		}
	}
	if (out->counted == 0)
		return;
	out->entropy = 0;
	for (int32_t id = 0; id < vocab_size; id++) {
		double share = (double)counts[id] / (double)out->counted;
		if (share > 0)
			out->entropy -= share * log(share);
	}
	out->frequent_share = (double)most / (double)out->counted;
}

enum status token_counts(const struct shard *shards, int64_t shard_count, int32_t vocab_size, bool segmented_words,
			 int64_t *counts)
{
	int64_t tokens = 0, capacity = 0;
	int32_t *ids = NULL;
	enum status status = OK;
	for (int64_t s = 0; s < shard_count; s++)
		tokens += shards[s].token_count;
	int64_t stride = tokens / TOKENS_COUNTED + 1;
	for (int64_t s = 0; s < shard_count; s++)
		for (int64_t first = 0; first < shards[s].sentence_count; first += stride * BLOCK) {
			int64_t end = first + BLOCK < shards[s].sentence_count ? first + BLOCK : shards[s].sentence_count;
			TRY_GOTO(count_block(&shards[s], first, end, vocab_size, segmented_words, counts, &ids, &capacity), done);
		}
done:
	free(ids);
	return status;
}

enum status token_frequencies_measure(const struct shard *shards, int64_t shard_count, int32_t vocab_size,
				      struct token_frequencies *out)
{
	int64_t *counts = NULL;
	TRY(memory_new(&counts, vocab_size, sizeof *counts, "token counts"));
	enum status status = token_counts(shards, shard_count, vocab_size, false, counts);
	if (status == OK)
		conclude(counts, vocab_size, out);
	free(counts);
	return status;
}

/* Counts the labels of every `stride`-th instance of a file. */
static enum status count_labels(const struct static_file *file, int64_t stride, int32_t vocab_size, int64_t *counts)
{
	struct instance instance = {0};
	enum status status;
	TRY_GOTO(memory_new(&instance.ids, file->summary.max_length, sizeof *instance.ids, "instance"), done);
	TRY_GOTO(memory_new(&instance.types, file->summary.max_length, sizeof *instance.types, "instance"), done);
	TRY_GOTO(memory_new(&instance.prediction_positions, file->summary.max_predictions, sizeof *instance.prediction_positions,
			    "instance"),
		 done);
	TRY_GOTO(memory_new(&instance.prediction_labels, file->summary.max_predictions, sizeof *instance.prediction_labels,
			    "instance"),
		 done);
	for (int64_t i = 0; i < file->summary.count; i += stride) {
		TRY_GOTO(static_file_read(file, i, vocab_size, &instance), done);
		for (int32_t p = 0; p < instance.prediction_count; p++)
			counts[instance.prediction_labels[p]]++;
	}
done:
	free(instance.ids);
	free(instance.types);
	free(instance.prediction_positions);
	free(instance.prediction_labels);
	return status;
}

enum status token_frequencies_measure_static(const struct static_file *files, int64_t file_count, int32_t vocab_size,
					     struct token_frequencies *out)
{
	int64_t instances = 0, *counts = NULL;
	enum status status = OK;
	for (int64_t f = 0; f < file_count; f++)
		instances += files[f].summary.count;
	TRY(memory_new(&counts, vocab_size, sizeof *counts, "token counts"));
	for (int64_t f = 0; f < file_count; f++)
		TRY_GOTO(count_labels(&files[f], instances / INSTANCES_COUNTED + 1, vocab_size, counts), done);
	conclude(counts, vocab_size, out);
done:
	free(counts);
	return status;
}
