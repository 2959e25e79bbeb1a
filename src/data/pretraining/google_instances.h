/* Instances exactly as Google's create_pretraining_data.py makes them (google-research/bert; the algorithm is in
 * docs/developers/math.md, "Instances"): a single random number generator, CPython's, drives the order of documents, the walk,
 * the masks and the final shuffle, so every draw must be made in the same order as in the script. */
#ifndef DATA_PRETRAINING_GOOGLE_INSTANCES_H
#define DATA_PRETRAINING_GOOGLE_INSTANCES_H

#include "data/pretraining/instances.h"
#include "data/pretraining/static_instances.h"
#include "text/vocab.h"

struct google_settings {
	int64_t seed;
	int32_t max_seq_length, max_predictions_per_seq, dupe_factor;
	double masked_lm_prob, short_seq_prob;
	bool whole_word_mask;
	const struct vocab *vocab;
};

/* Walks the documents of `shard` and adds every instance to `writer`, not yet shuffled. *out_order [count], allocated
 * here, is the final shuffle: place i belongs to instance (*out_order)[i] of the writer. */
MUST_USE enum status google_instances(const struct shard *shard, const struct google_settings *settings,
				      struct static_writer *writer, int64_t **out_order);

#endif
