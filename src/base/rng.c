/* Permutations of any size as functions of (seed, purpose, round, index). */
#include "base/rng.h"

#include "base/error.h"

#define FEISTEL_ROUNDS 8 /* six rounds are visibly uneven for a handful of values */

uint64_t rng_permute(uint64_t seed, enum rng_purpose purpose, uint32_t round, uint64_t count, uint64_t index)
{
	BUG_IF(index >= count);
	/* The network permutes numbers of 2 * half bits: at most four times `count` of them (or 4 for tiny counts). Walking along
	 * the cycle until the value is below `count` makes it a permutation of 0..count-1. */
	int half = 1;
	while (half < 32 && (uint64_t)1 << (2 * half) < count)
		half++;
	uint32_t mask = half == 32 ? UINT32_MAX : ((uint32_t)1 << half) - 1;
	uint64_t value = index;
	do {
		uint32_t left = (uint32_t)(value >> half), right = (uint32_t)value & mask;
		for (uint32_t i = 1; i <= FEISTEL_ROUNDS; i++) {
			/* Purposes are below 2^16, and streams have no round in the upper bits, so no counter is shared with
			 * them. */
			struct philox random = philox4x32(seed, right, (uint32_t)purpose | i << 16, round, 0, 10);
			uint32_t swapped = (left ^ random.word[0]) & mask;
			left = right;
			right = swapped;
		}
		value = (uint64_t)left << half | right;
	} while (value >= count);
	return value;
}
