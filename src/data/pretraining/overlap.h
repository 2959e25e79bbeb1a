/* Instances of two texts that share some of their words (--next_sentence overlap): the second is mixed from words of the first
 * and of another text, and its label says how much they share. Internal to src/data. */
#ifndef DATA_PRETRAINING_OVERLAP_H
#define DATA_PRETRAINING_OVERLAP_H

#include "base/rng.h"
#include "data/pretraining/instances.h"

/* How much a token says about a text: weights[id] = log((tokens + 1) / (occurrences of id + 1))^2 in these shards. The caller
 * frees *weights. */
MUST_USE enum status overlap_weights(float **weights, const struct shard *shards, int64_t shard_count,
				     const struct instance_settings *settings);

/* Replaces the `count_b` tokens of b, a text of its own, by a mixture of them and of words of the first text, a[count_a]; words
 * that are taken keep their pieces. Returns the label: 0 with the probability of the two texts' similarity, else 1. The
 * similarity is the cosine of their words with `weights`, those of b's own words counting as not shared; `scratch` has room for
 * count_a + count_b tokens. */
int32_t overlap_mix(const struct instance_settings *settings, const float *weights, struct rng *rng, const int32_t *a,
		    int64_t count_a, int32_t *b, int64_t count_b, int32_t *scratch);

#endif
