/* Layer normalisation, behind a linear or alone. */
#include "backend/cuda/gemm.h"

void cuda_linear_norm_fwd(struct replica *r, const struct linear_norm_fwd *a)
{
	/* y is the product's place until the norm is written over it. */
	if (a->w)
		cuda_product_forward(r, "linear_norm_fwd", &a->x, a->w, NULL, a->y.data);
	struct kernel_norm_fwd norm = {
		.dtype = a->y.dtype,
		.rows = a->y.rows,
		.columns = a->y.columns,
		.x = a->w ? a->y.data : a->x.data,
		.residual = a->residual.data,
		.bias = a->w ? a->b->master.data : NULL,
		.gamma = a->gamma->master.data,
		.beta = a->beta->master.data,
		.epsilon = (float)a->epsilon,
		.dropout = cuda_dropout(r, &a->dropout, a->batch),
		.sum = a->sum.data,
		.y = a->y.data,
		.mean = a->sum.data ? a->mean.data : NULL,
		.rstd = a->sum.data ? a->rstd.data : NULL,
	};
	cuda_run(r, kernel_norm_fwd(cuda_stream(r), &norm), "linear_norm_fwd");
}
