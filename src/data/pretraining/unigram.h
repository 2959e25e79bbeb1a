/* Word frequencies of the training text: what a model that has learned nothing else can reach. */
#ifndef DATA_PRETRAINING_UNIGRAM_H
#define DATA_PRETRAINING_UNIGRAM_H

#include <stdint.h>
#include "base/error.h"
#include "data/shard.h"
#include "data/pretraining/static_instances.h"

struct unigram {
	double entropy;        /* nats: masked-word loss of predicting every token by its frequency */
	double frequent_share; /* of the most frequent token: accuracy of always predicting it */
	int32_t frequent_id;
	int64_t counted; /* tokens looked at */
};

/* Counts the tokens of all shards, or of blocks of sentences spread evenly over them when there are more than 32
 * million: the entropy is then good to about 0.001. */
MUST_USE enum status unigram_measure(const struct shard *shards, int64_t shard_count, int32_t vocab_size, struct unigram *out);

/* The same of the masked words of static instances: all, or every so-manyth of more than 256 thousand. */
MUST_USE enum status unigram_measure_static(const struct static_file *files, int64_t file_count, int32_t vocab_size,
					    struct unigram *out);

#endif
