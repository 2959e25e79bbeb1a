/* Layer normalization, after a linear or on its own. */
#include "backend/cuda/weight_products.h"

#include <math.h>

void cuda_linear_norm_fwd(struct replica *r, const struct linear_norm_fwd *a)
{
	/* y holds the product until the norm overwrites it. */
	if (a->w)
		cuda_product_forward(r, "linear_norm_fwd", &a->x, a->w, NULL, a->y.data);
	struct kernel_norm_fwd norm = {
		.dtype = a->y.dtype,
		.rows = a->y.rows,
		.columns = a->y.columns,
		.x = a->w ? a->y.data : a->x.data,
		.residual = a->residual.data,
		.bias = cuda_vector(a->b),
		.gamma = a->gamma->master.data,
		.beta = cuda_vector(a->beta),
		.epsilon = (float)a->epsilon,
		.dropout = cuda_dropout(r, &a->dropout, a->batch),
		.sum = a->sum.data,
		.y = a->y.data,
		.mean = a->sum.data ? a->mean.data : NULL,
		.rstd = a->sum.data ? a->rstd.data : NULL,
	};
	if (a->y.twin) {
		norm.fp8 = cuda_fp8_output(r, &a->y, DTYPE_E4M3);
		norm.fp8.factor = sqrtf((float)a->y.columns);
		norm.fp8.a = &cuda_fp8_sizes(a->gamma)->largest;
		norm.fp8.add = a->beta ? &cuda_fp8_sizes(a->beta)->norm : NULL;
	}
	cuda_run(r, kernel_norm_fwd(cuda_stream(r), &norm), "linear_norm_fwd");
}

void cuda_norm_backward(const struct replica *r, const char *operation, const struct weight *gamma, const struct weight *beta,
			const struct weight *bias, bool overwrite, const struct kernel_norm_bwd *a)
{
	struct kernel_norm_bwd norm = *a;
	int64_t stride = 3 * a->columns;
	norm.parts = cuda_scratch(r)->parts;
	norm.sums_bias = bias != NULL;
	BUG_IF(stride > cuda_scratch(r)->part_floats);
	cuda_run(r, kernel_norm_bwd(cuda_stream(r), &norm), operation);
	struct kernel_add_parts sums = {
		.parts = norm.parts,
		.part_count = row_parts(a->rows),
		.stride = stride,
		.columns = a->columns,
		.out = {gamma->gradient.data, beta ? beta->gradient.data : NULL, bias ? bias->gradient.data : NULL},
		.overwrite = overwrite,
	};
	cuda_run(r, kernel_add_parts(cuda_stream(r), &sums), operation);
}

void cuda_norm_bwd(struct replica *r, const struct norm_bwd *a)
{
	bool one_output = a->dx.data == NULL || a->dx.data == a->dresidual.data;
	cuda_norm_backward(r, "norm_bwd", a->gamma, a->beta, a->bias, a->overwrite,
			   &(struct kernel_norm_bwd){
				   .dtype = a->dy.dtype,
				   .rows = a->dy.rows,
				   .columns = a->dy.columns,
				   .dy = a->dy.data,
				   .sum = a->sum.data,
				   .pre = a->pre.data,
				   .add = a->add.data,
				   .mean = a->mean.data,
				   .rstd = a->rstd.data,
				   .gamma = a->gamma->master.data,
				   .pre_activation = a->pre_activation,
				   .dropout = cuda_dropout(r, &a->dropout, a->batch),
				   .dresidual = a->dresidual.data,
				   .dx = one_output ? NULL : a->dx.data,
				   .largest = cuda_largest(&a->dx),
			   });
}
