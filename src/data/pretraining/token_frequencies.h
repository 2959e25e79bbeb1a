/* Token frequencies of the training text: the performance of a model that has learned nothing else. */
#ifndef DATA_PRETRAINING_TOKEN_FREQUENCIES_H
#define DATA_PRETRAINING_TOKEN_FREQUENCIES_H

#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"
#include "data/shard.h"
#include "data/pretraining/static_instances.h"

struct token_frequencies {
	double entropy;        /* in nats: masked-word loss when every token is predicted by its frequency */
	double frequent_share; /* share of the most frequent token: the accuracy of always predicting it */
	int32_t frequent_id;
	int64_t counted; /* tokens counted */
};

/* Adds the occurrences of each entry of the vocabulary to counts[vocab_size]: of all shards, or, if they have more than 32
 * million tokens, of blocks of sentences spread evenly over them. With `segmented_words`, entries may be marked as in
 * instance_settings. */
MUST_USE enum status token_counts(const struct shard *shards, int64_t shard_count, int32_t vocab_size, bool segmented_words,
				  int64_t *counts);

/* Counts the tokens of all shards; if there are more than 32 million, only those in blocks of sentences spread evenly over
 * the shards, which gives the entropy to about 0.001. */
MUST_USE enum status token_frequencies_measure(const struct shard *shards, int64_t shard_count, int32_t vocab_size,
					       struct token_frequencies *out);

/* The same for the masked words of static instances: of all instances, or of every n-th if there are more than 256 Ki. */
MUST_USE enum status token_frequencies_measure_static(const struct static_file *files, int64_t file_count, int32_t vocab_size,
						      struct token_frequencies *out);

#endif
