/* Describes the forward, dgrad, and wgrad products of a linear layer, and passes them to the library or to kernels of ours.
 * */
#include "backend/cuda/weight_products.h"

static struct product forward_product(const struct replica *r, const char *operation, const struct tensor *x,
				      const struct weight *w, const struct weight *b, void *y)
{
	if (weight_in_fp8(r->backend, w))
		return cuda_fp8_forward(r, operation, x, w, b ? cuda_weight_operand(r, b) : NULL, y);
	int64_t inputs = w->master.columns, outputs = w->master.rows;
	return (struct product){
		.operation = operation,
		.inputs = x->dtype,
		.output = x->dtype,
		.rows = x->rows,
		.columns = outputs,
		.depth = inputs,
		.a = x->data,
		.a_stride = inputs,
		.b = cuda_weight_operand(r, w),
		.b_stride = inputs,
		.b_transposed = true,
		.bias = b ? cuda_weight_operand(r, b) : NULL,
		.y = y,
		.y_stride = outputs,
	};
}

void cuda_product_forward(const struct replica *r, const char *operation, const struct tensor *x, const struct weight *w,
			  const struct weight *b, void *y)
{
	struct product p = forward_product(r, operation, x, w, b, y);
	cuda_product(r, &p);
}

void cuda_product_gelu(const struct replica *r, const char *operation, enum activation activation, const struct tensor *x,
		       const struct weight *w, const struct weight *b, void *pre, const struct tensor *y)
{
	struct product p = forward_product(r, operation, x, w, b, y->data);
	p.epilogue = PRODUCT_GELU;
	p.pre = pre;
	if (!y->twin && cuda_product_fused(r, &p, activation))
		return;
	p = product_without_epilogue(&p);
	cuda_product(r, &p);
	if (!y->twin) {
		cuda_run(r, kernel_gelu(cuda_stream(r), x->dtype, activation, x->rows * p.columns, p.y, y->data), operation);
		return;
	}
	struct kernel_fp8_gelu gelu = {.activation = activation, .rows = y->rows, .columns = y->columns, .pre = p.y};
	BUG_IF(!x->twin || !weight_in_fp8(r->backend, w));
	gelu.y = cuda_fp8_output(r, y, DTYPE_E4M3);
	gelu.y.factor = 1;
	gelu.y.a = &((const struct fp8_head *)x->twin)->bound;
	gelu.y.b = &cuda_fp8_sizes(w)->norm;
	gelu.y.add = &cuda_fp8_sizes(b)->largest;
	cuda_run(r, kernel_fp8_gelu(cuda_stream(r), &gelu), operation);
}

void cuda_product_backward(const struct replica *r, const char *operation, const struct weight *w, const struct tensor *dy)
{
	if (weight_in_fp8(r->backend, w))
		cuda_fp8_backward(r, operation, dy);
}

static struct product dgrad_product(const struct replica *r, const char *operation, const struct tensor *dy,
				    const struct weight *w, const void *add, void *dx)
{
	if (weight_in_fp8(r->backend, w))
		return cuda_fp8_dgrad(r, operation, dy, w, add, dx);
	int64_t inputs = w->master.columns, outputs = w->master.rows;
	return (struct product){
		.operation = operation,
		.inputs = dy->dtype,
		.output = dy->dtype,
		.rows = dy->rows,
		.columns = inputs,
		.depth = outputs,
		.a = dy->data,
		.a_stride = outputs,
		.b = cuda_weight_operand(r, w),
		.b_stride = inputs,
		.add = add,
		.y = dx,
		.y_stride = inputs,
	};
}

void cuda_product_dgrad(const struct replica *r, const char *operation, const struct tensor *dy, const struct weight *w,
			const void *add, void *dx)
{
	struct product p = dgrad_product(r, operation, dy, w, add, dx);
	cuda_product(r, &p);
}

bool cuda_product_dgelu(const struct replica *r, const char *operation, enum activation activation, const struct tensor *dy,
			const struct weight *w, void *pre, void *dx)
{
	struct product p = dgrad_product(r, operation, dy, w, NULL, dx);
	p.epilogue = PRODUCT_DGELU;
	p.pre = pre;
	return cuda_product_fused(r, &p, activation);
}

void cuda_product_wgrad(const struct replica *r, const char *operation, const struct tensor *dy, const struct tensor *x,
			const struct weight *w, bool overwrite)
{
	if (weight_in_fp8(r->backend, w)) {
		cuda_fp8_wgrad(r, operation, dy, x, w, overwrite);
		return;
	}
	int64_t inputs = w->master.columns, outputs = w->master.rows;
	cuda_product(r, &(struct product){.operation = operation,
					  .inputs = x->dtype,
					  .output = DTYPE_F32,
					  .rows = outputs,
					  .columns = inputs,
					  .depth = x->rows,
					  .a = dy->data,
					  .a_stride = outputs,
					  .a_transposed = true,
					  .b = x->data,
					  .b_stride = inputs,
					  .add = overwrite ? NULL : w->gradient.data,
					  .y = w->gradient.data,
					  .y_stride = inputs});
}
