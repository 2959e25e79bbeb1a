/* Pools rows in every mode at once, a few columns at a time. */
#include "model/pooling.h"

#include <math.h>

#include "base/error.h"

/* Columns pooled at a time: their sums stay in registers and the L1 cache. */
#define COLUMNS 64

int pooling_count(unsigned modes)
{
	int count = 0;
	for (int m = 0; m < POOLING_MODES; m++)
		count += modes >> m & 1;
	return count;
}

struct pooled {
	double sum[COLUMNS], weighted[COLUMNS];
	float most[COLUMNS];
};

static void pool_columns(const void *numbers, enum dtype dtype, int64_t rows, int64_t stride, int64_t first_row,
			 int64_t first_column, int count, struct pooled *out)
{
	for (int c = 0; c < count; c++) {
		out->sum[c] = out->weighted[c] = 0;
		out->most[c] = -INFINITY;
	}
	for (int64_t row = first_row; row < rows; row++) {
		/* Weighted by the position in the whole text: rows that are left out have weight 0 but still count as
		 * positions. */
		double weight = (double)(row + 1);
		for (int c = 0; c < count; c++) {
			float x = number_as_float(numbers, dtype, row * stride + first_column + c);
			out->sum[c] += (double)x;
			out->weighted[c] += weight * (double)x;
			out->most[c] = x > out->most[c] || isnan(x) ? x : out->most[c];
		}
	}
}

static float pooled_number(enum pooling_mode mode, const struct pooled *pooled, int c, int64_t first_row, int64_t rows)
{
	double n = (double)(rows - first_row), weights = ((double)first_row + 1 + (double)rows) * n / 2;
	switch (mode) {
	case POOLING_MAX: return pooled->most[c];
	case POOLING_MEAN: return (float)(pooled->sum[c] / n);
	case POOLING_MEAN_SQRT: return (float)(pooled->sum[c] / sqrt(n));
	default: return (float)(pooled->weighted[c] / weights);
	}
}

void pooling_apply(unsigned modes, const void *numbers, enum dtype dtype, int64_t rows, int64_t columns, int64_t left_out,
		   float *out)
{
	BUG_IF(left_out < 0 || left_out >= rows);
	struct pooled pooled;
	for (int64_t first = 0; first < columns; first += COLUMNS) {
		int count = columns - first < COLUMNS ? (int)(columns - first) : COLUMNS;
		float *to = out + first;
		if (modes & (POOLING_MAX | POOLING_MEAN | POOLING_MEAN_SQRT | POOLING_WEIGHTED_MEAN))
			pool_columns(numbers, dtype, rows, columns, left_out, first, count, &pooled);
		for (int m = 0; m < POOLING_MODES; m++) {
			enum pooling_mode mode = (enum pooling_mode)(1 << m);
			int64_t row = mode == POOLING_CLS ? left_out : rows - 1;
			if (!(modes & mode))
				continue;
			for (int c = 0; c < count; c++)
				to[c] = mode == POOLING_CLS || mode == POOLING_LAST
						? number_as_float(numbers, dtype, row * columns + first + c)
						: pooled_number(mode, &pooled, c, left_out, rows);
			to += columns;
		}
	}
}

void pooling_normalize(float *vector, int64_t count)
{
	double squares = 0;
	for (int64_t i = 0; i < count; i++)
		squares += (double)vector[i] * (double)vector[i];
	double length = fmax(sqrt(squares), 1e-12);
	for (int64_t i = 0; i < count; i++)
		vector[i] = (float)((double)vector[i] / length);
}
