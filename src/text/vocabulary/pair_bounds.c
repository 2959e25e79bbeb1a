/* The memory of the count-min sketch, and its highest bound. */
#include "text/vocabulary/pair_bounds.h"

#include <stdlib.h>
#include "base/memory.h"

enum status pair_bounds_create(struct pair_bounds *bounds, int64_t bytes)
{
	*bounds = (struct pair_bounds){.row = 16};
	/* at most 2^28: the second row is indexed by the upper 28 bits of the hash */
	while (bounds->row < 1 << 28 && bounds->row * 2 * 2 * (int64_t)sizeof *bounds->sums <= bytes)
		bounds->row *= 2;
	return memory_new(&bounds->sums, 2 * bounds->row, sizeof *bounds->sums, "pair counts");
}

int64_t pair_bounds_highest(const struct pair_bounds *bounds)
{
	int64_t highest = 0;
	for (int64_t i = 0; i < bounds->row; i++)
		if (bounds->sums[i] > highest)
			highest = bounds->sums[i];
	return highest;
}

void pair_bounds_release(struct pair_bounds *bounds)
{
	free(bounds->sums);
	*bounds = (struct pair_bounds){0};
}
