/* Gathers rows, and adds their gradients back. */
#include "backend/cuda/state.h"

void cuda_gather_fwd(struct replica *r, const struct gather_fwd *a)
{
	BUG_IF(a->count != a->y.rows);
	cuda_run(r, kernel_gather(cuda_stream(r), a->x.dtype, a->x.data, a->rows, a->count, a->x.columns, a->y.data),
		 "gather_fwd");
}

void cuda_gather_bwd(struct replica *r, const struct gather_bwd *a)
{
	BUG_IF(a->count != a->dy.rows);
	size_t bytes = (size_t)(a->dx.rows * a->dx.columns) * dtype_bytes(a->dx.dtype);
	if (a->overwrite && bytes > 0)
		cuda_run(r, cudaMemsetAsync(a->dx.data, 0, bytes, cuda_stream(r)), "gather_bwd");
	cuda_run(r, kernel_scatter_add(cuda_stream(r), a->dx.dtype, a->dy.data, a->rows, a->count, a->dx.columns, a->dx.data),
		 "gather_bwd");
}
