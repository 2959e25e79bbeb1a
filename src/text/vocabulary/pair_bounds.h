/* Upper bounds on how often pairs of symbols are adjacent, for texts with more distinct pairs than fit in memory (a
 * count-min sketch, Cormode and Muthukrishnan 2005). A pair adds its count to one sum in each of two rows; the lesser of the two
 * is an upper bound on its count, and a close one unless the pair is rare. */
#ifndef TEXT_VOCABULARY_PAIR_BOUNDS_H
#define TEXT_VOCABULARY_PAIR_BOUNDS_H

#include <stdint.h>
#include "base/error.h"

struct pair_bounds {
	int64_t *sums; /* [2 * row], a power of two each */
	int64_t row;
};

/* Creates as many sums as fit `bytes`, but at least 32. */
MUST_USE enum status pair_bounds_create(struct pair_bounds *bounds, int64_t bytes);
/* An upper bound on the count of any pair. */
int64_t pair_bounds_highest(const struct pair_bounds *bounds);
void pair_bounds_release(struct pair_bounds *bounds); /* zeroed is fine */

static inline uint64_t pair_hash(int32_t left, int32_t right)
{
	uint64_t key = ((uint64_t)(uint32_t)left << 32 | (uint32_t)right) * UINT64_C(0x9E3779B97F4A7C15);
	return key ^ key >> 29;
}

static inline void pair_bounds_add(struct pair_bounds *bounds, int32_t left, int32_t right, int64_t count)
{
	uint64_t hash = pair_hash(left, right), mask = (uint64_t)bounds->row - 1;
	bounds->sums[hash & mask] += count;
	bounds->sums[(uint64_t)bounds->row + (hash >> 36 & mask)] += count;
}

static inline int64_t pair_bounds_get(const struct pair_bounds *bounds, int32_t left, int32_t right)
{
	uint64_t hash = pair_hash(left, right), mask = (uint64_t)bounds->row - 1;
	int64_t a = bounds->sums[hash & mask], b = bounds->sums[(uint64_t)bounds->row + (hash >> 36 & mask)];
	return a < b ? a : b;
}

#endif
