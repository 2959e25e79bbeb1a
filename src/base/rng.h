/* Counter-based random numbers: everything random is a function of (seed, purpose, index).
 *
 * There is no generator state, so resuming is exact, and any split into ranks, threads, or micro-batches sees the same numbers.
 */
#ifndef BASE_RNG_H
#define BASE_RNG_H

#include <stdint.h>
#include "base/philox.h"

/* What a random number is for; part of the counter, so that no two uses ever share a stream. */
enum rng_purpose {
	RNG_WEIGHTS = 1,      /* index: parameter number, element */
	RNG_DOCUMENT = 2,     /* index: epoch, document: cutting a document into instances */
	RNG_SHUFFLE = 3,      /* index: epoch: order of instances */
	RNG_MASK = 4,         /* index: sample: masked positions */
	RNG_TEST = 5,         /* test inputs */
	RNG_DEMO = 6,         /* the demo's world */
	RNG_MIXTURE = 7,      /* index: block of samples: which source provides which sample */
	RNG_SPAN = 8,         /* index: epoch, pair: the masked span of a rewriting */
	RNG_NEGATIVES = 9,    /* index: query: which candidates become hard negatives */
	RNG_SAMPLE = 20,      /* sentences and blanks in a report */
	RNG_CALIBRATION = 22, /* index: sequence: vocabulary entries on which int8 layers are tried */
};

/* Held-out instances, and the sentences that a report shows, are drawn from this seed regardless of the run's: every evaluation
 * of every run on the same shards sees the same instances with the same masks. */
#define EVALUATION_SEED 0x6265727463ull

/* A stream of random numbers for one (seed, purpose, index): local to the decision it serves, never stored. */
struct rng {
	uint64_t seed;
	uint32_t purpose, index_low, index_high, block;
	struct philox words;
	int left;
};

static inline struct rng rng_start(uint64_t seed, enum rng_purpose purpose, uint64_t index)
{
	return (struct rng){
		.seed = seed, .purpose = (uint32_t)purpose, .index_low = (uint32_t)index, .index_high = (uint32_t)(index >> 32)};
}

static inline uint32_t rng_u32(struct rng *rng)
{
	if (rng->left == 0) {
		rng->words = philox4x32(rng->seed, rng->block++, rng->purpose, rng->index_low, rng->index_high, 10);
		rng->left = 4;
	}
	return rng->words.word[4 - rng->left--];
}

/* Uniform in [0, 1) with 53 bits. */
static inline double rng_double(struct rng *rng)
{
	uint64_t high = rng_u32(rng) >> 5, low = rng_u32(rng) >> 6;
	return (double)((high << 26) | low) * 0x1p-53;
}

/* Uniform in [0, bound), bound > 0, without bias (Lemire's rejection). */
static inline uint32_t rng_below(struct rng *rng, uint32_t bound)
{
	uint64_t product = (uint64_t)rng_u32(rng) * bound;
	if ((uint32_t)product < bound) {
		uint32_t threshold = (uint32_t)(-bound) % bound;
		while ((uint32_t)product < threshold)
			product = (uint64_t)rng_u32(rng) * bound;
	}
	return (uint32_t)(product >> 32);
}

/* A standard normal number, redrawn if outside [-2, 2] (the "truncated normal" of BERT's initialization). */
double rng_truncated_normal(struct rng *rng);
/* The first `count` results of rng_truncated_normal on a fresh stream, computed many times faster. The bits are the same on every
 * processor: both functions compute logarithms and angles themselves (rng_normal.c). */
void rng_truncated_normals(const struct rng *start, double *out, int64_t count);

/* A pseudo-random permutation of 0..count-1 evaluated at one point (Feistel network with cycle walking): a
 * shuffle without an array. */
uint64_t rng_permute(uint64_t seed, enum rng_purpose purpose, uint32_t round, uint64_t count, uint64_t index);

#endif
