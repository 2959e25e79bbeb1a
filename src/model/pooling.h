/* Pools the rows of a text to one vector, as in sentence-transformers. */
#ifndef MODEL_POOLING_H
#define MODEL_POOLING_H

#include <stdbool.h>
#include <stdint.h>
#include "backend/tensor.h"

/* Pooling modes, which can be combined: the vectors of several modes are concatenated in this order, which is that of
 * sentence-transformers. */
enum pooling_mode {
	POOLING_CLS = 1 << 0,           /* the first row that is not left out */
	POOLING_MAX = 1 << 1,           /* maximum of each column */
	POOLING_MEAN = 1 << 2,          /* sum / n */
	POOLING_MEAN_SQRT = 1 << 3,     /* sum / sqrt(n) */
	POOLING_WEIGHTED_MEAN = 1 << 4, /* sum of i x_i / sum of i, i from 1 */
	POOLING_LAST = 1 << 5,          /* the last row */
};
#define POOLING_MODES 6
/* Not a mode of these: a text's weights over the vocabulary, from the masked-word head (SPLADE, Formal et al. 2021). */
#define POOLING_SPLADE (1u << POOLING_MODES)

/* The number of modes in a set. */
int pooling_count(unsigned modes);
/* Pools a matrix (rows, columns) of numbers, with at least one row, into out [pooling_count(modes) * columns]. The first
 * `left_out` rows, fewer than `rows`, belong to a prompt and are not pooled. Sums are computed in double precision. */
void pooling_apply(unsigned modes, const void *numbers, enum dtype dtype, int64_t rows, int64_t columns, int64_t left_out,
		   float *out);
/* x / max(|x|, 1e-12) */
void pooling_normalize(float *vector, int64_t count);

#endif
