/* One vector per sequence, and its gradient distributed over the sequence's rows. */
#include "backend/ref/ref.h"

#include <string.h>

void ref_pooling_fwd(struct replica *r, const struct pooling_fwd *a)
{
	(void)r;
	const struct tensor *vectors = a->rows.data ? &a->rows : &a->y;
	for (int64_t s = 0; s < a->batch->sequence_count; s++) {
		int32_t begin = a->batch->starts[s], count = a->batch->starts[s + 1] - begin;
		int32_t pooled = a->first && count > 1 ? 1 : count;
		double *y = ref_row(vectors, s);
		memset(y, 0, (size_t)vectors->columns * sizeof *y);
		for (int32_t t = 0; t < pooled; t++)
			for (int64_t j = 0; j < vectors->columns; j++)
				y[j] += ref_row(&a->x, begin + t)[j] / pooled;
	}
}

void ref_pooling_bwd(struct replica *r, const struct pooling_bwd *a)
{
	double scale = a->drows.data ? 1 : r->scalars->loss_scale;
	const struct tensor *vectors = a->drows.data ? &a->drows : &a->dy;
	for (int64_t s = 0; s < a->batch->sequence_count; s++) {
		int32_t begin = a->batch->starts[s], count = a->batch->starts[s + 1] - begin;
		int32_t pooled = a->first && count > 1 ? 1 : count;
		for (int32_t t = 0; t < count; t++)
			for (int64_t j = 0; j < a->dx.columns; j++)
				ref_row(&a->dx, begin + t)[j] = t < pooled ? ref_row(vectors, s)[j] * scale / pooled : 0;
	}
}
