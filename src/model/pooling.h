/* One vector from the rows of a text: pooling as in sentence-transformers. */
#ifndef MODEL_POOLING_H
#define MODEL_POOLING_H

#include <stdbool.h>
#include <stdint.h>
#include "backend/tensor.h"

/* Ways of pooling, as a set: of several, the vectors lie one behind another in this order, which is that of
 * sentence-transformers. */
enum pooling_mode {
	POOLING_CLS = 1 << 0,           /* the first row that is not left out */
	POOLING_MAX = 1 << 1,           /* of each column */
	POOLING_MEAN = 1 << 2,          /* sum / n */
	POOLING_MEAN_SQRT = 1 << 3,     /* sum / sqrt(n) */
	POOLING_WEIGHTED_MEAN = 1 << 4, /* sum of i x_i / sum of i, i from 1 */
	POOLING_LAST = 1 << 5,          /* the last row */
};
#define POOLING_MODES 6

/* How many ways a set has. */
int pooling_count(unsigned modes);
/* Pools `rows` rows (rows, columns) of numbers, at least one, into out [pooling_count(modes) * columns]. The first `left_out`
 * rows, fewer than `rows`, belong to a prompt that is not to count. Sums are made in double. */
void pooling_apply(unsigned modes, const void *numbers, enum dtype dtype, int64_t rows, int64_t columns, int64_t left_out,
		   float *out);
/* x / max(|x|, 1e-12) */
void pooling_normalize(float *vector, int64_t count);

#endif
