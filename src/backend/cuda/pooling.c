/* One vector per sequence, and its gradient distributed over the sequence's rows. */
#include "backend/cuda/state.h"

static struct kernel_pooling pooling_of(const struct replica *r, const struct batch *batch, bool first, const struct tensor *rows,
					const struct tensor *vectors)
{
	return (struct kernel_pooling){.dtype = rows->dtype,
				       .first = first,
				       .sequences = batch->sequence_count,
				       .vectors_dtype = vectors->dtype,
				       .columns = (int)rows->columns,
				       .starts = batch->starts,
				       .scalars = r->scalars,
				       .rows = rows->data,
				       .vectors = vectors->data};
}

void cuda_pooling_fwd(struct replica *r, const struct pooling_fwd *a)
{
	struct kernel_pooling pooling = pooling_of(r, a->batch, a->first, &a->x, a->rows.data ? &a->rows : &a->y);
	cuda_run(r, kernel_pooling_fwd(cuda_stream(r), &pooling), "pooling_fwd");
}

void cuda_pooling_bwd(struct replica *r, const struct pooling_bwd *a)
{
	struct kernel_pooling pooling = pooling_of(r, a->batch, a->first, &a->dx, a->drows.data ? &a->drows : &a->dy);
	pooling.scaled = a->drows.data;
	cuda_run(r, kernel_pooling_bwd(cuda_stream(r), &pooling), "pooling_bwd");
}
