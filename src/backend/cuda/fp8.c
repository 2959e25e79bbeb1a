/* Products in FP8: operands rounded by kernel_fp8 into the scratch (weights into their copies), laid out so that the
 * library has what it multiplies in this type: y = a b' with both rows along the sum. */
#include "backend/cuda/gemm.h"

/* What weight->copy points to: the scale, then w (O,I), then w' (I,O). */
struct weight_parts {
	struct fp8_scale *scale;
	unsigned char *rows, *columns;
};

static struct weight_parts parts_of(const struct weight *weight)
{
	unsigned char *base = weight->copy;
	size_t head = ARENA_ALIGNMENT, elements = (size_t)(weight->master.rows * weight->master.columns);
	return (struct weight_parts){(struct fp8_scale *)(void *)base, base + head,
				     base + head + (size_t)round_up((int64_t)elements, ARENA_ALIGNMENT)};
}

size_t cuda_fp8_copy_bytes(const struct weight *weight)
{
	return ARENA_ALIGNMENT + 2 * (size_t)round_up(weight->master.rows * weight->master.columns, ARENA_ALIGNMENT);
}

void cuda_fp8_refresh(const struct replica *r, struct weight *const *weights, int64_t count)
{
	struct kernel_fp8 rounding = {.dtype = DTYPE_F32, .parts = cuda_scratch(r)->fp8.parts};
	for (int64_t i = 0; i < count; i++) {
		if (!weight_in_fp8(r->backend, weights[i]))
			continue;
		struct weight_parts to = parts_of(weights[i]);
		rounding.matrix[rounding.count++] = (struct kernel_fp8_matrix){.from = weights[i]->master.data,
									       .rows = weights[i]->master.rows,
									       .columns = weights[i]->master.columns,
									       .format = DTYPE_E4M3,
									       .scale = to.scale,
									       .rows_out = to.rows,
									       .columns_out = to.columns};
		if (rounding.count == FP8_MATRICES) {
			cuda_run(r, kernel_fp8(cuda_stream(r), &rounding), "weights_refresh");
			rounding.count = 0;
		}
	}
	cuda_run(r, kernel_fp8(cuda_stream(r), &rounding), "weights_refresh");
}

static int64_t padded_rows(int64_t rows)
{
	return round_up(rows, FP8_MULTIPLE);
}

static void check_room(const struct replica *r, const struct tensor *x)
{
	BUG_IF(padded_rows(x->rows) * x->columns > cuda_scratch(r)->fp8.operand_bytes);
}

struct product cuda_fp8_forward(const struct replica *r, const char *operation, const struct tensor *x, const struct weight *w,
				const void *bias, void *y)
{
	const struct cuda_fp8 *fp8 = &cuda_scratch(r)->fp8;
	int64_t inputs = w->master.columns, outputs = w->master.rows;
	check_room(r, x);
	cuda_run(r,
		 kernel_fp8(cuda_stream(r), &(struct kernel_fp8){.dtype = x->dtype,
								 .count = 1,
								 .parts = fp8->parts,
								 .matrix[0] = {.from = x->data,
									       .rows = x->rows,
									       .columns = inputs,
									       .format = DTYPE_E4M3,
									       .scale = &fp8->scales[0],
									       .rows_out = fp8->rows}}),
		 operation);
	return (struct product){
		.operation = operation,
		.inputs = DTYPE_E4M3,
		.output = x->dtype,
		.rows = padded_rows(x->rows),
		.columns = outputs,
		.depth = inputs,
		.a = fp8->rows,
		.a_stride = inputs,
		.a_inverse = &fp8->scales[0].inverse,
		.b = parts_of(w).rows,
		.b_stride = inputs,
		.b_inverse = &parts_of(w).scale->inverse,
		.b_transposed = true,
		.bias = bias,
		.y = y,
		.y_stride = outputs,
	};
}

void cuda_fp8_backward(const struct replica *r, const char *operation, const struct weight *w, const struct tensor *dy,
		       const struct tensor *x)
{
	const struct cuda_fp8 *fp8 = &cuda_scratch(r)->fp8;
	check_room(r, x);
	check_room(r, dy);
	cuda_run(r,
		 kernel_fp8(cuda_stream(r), &(struct kernel_fp8){.dtype = x->dtype,
								 .count = 2,
								 .parts = fp8->parts,
								 .matrix = {{.from = dy->data,
									     .rows = dy->rows,
									     .columns = w->master.rows,
									     .format = DTYPE_E5M2,
									     .scale = &fp8->scales[1],
									     .rows_out = fp8->rows,
									     .columns_out = fp8->dy_columns},
									    {.from = x->data,
									     .rows = x->rows,
									     .columns = w->master.columns,
									     .format = DTYPE_E4M3,
									     .scale = &fp8->scales[0],
									     .columns_out = fp8->x_columns}}}),
		 operation);
}

void cuda_fp8_wgrad(const struct replica *r, const char *operation, int64_t rows, const struct weight *w, bool overwrite)
{
	const struct cuda_fp8 *fp8 = &cuda_scratch(r)->fp8;
	int64_t inputs = w->master.columns, outputs = w->master.rows, depth = padded_rows(rows);
	cuda_product(r, &(struct product){.operation = operation,
					  .inputs = DTYPE_E4M3,
					  .a_is_gradient = true,
					  .output = DTYPE_F32,
					  .rows = outputs,
					  .columns = inputs,
					  .depth = depth,
					  .a = fp8->dy_columns,
					  .a_stride = depth,
					  .a_inverse = &fp8->scales[1].inverse,
					  .b = fp8->x_columns,
					  .b_stride = depth,
					  .b_inverse = &fp8->scales[0].inverse,
					  .b_transposed = true,
					  .add = overwrite ? NULL : w->gradient.data,
					  .y = w->gradient.data,
					  .y_stride = inputs});
}

struct product cuda_fp8_dgrad(const struct replica *r, const char *operation, int64_t rows, const struct weight *w,
			      const void *add, void *dx)
{
	const struct cuda_fp8 *fp8 = &cuda_scratch(r)->fp8;
	int64_t inputs = w->master.columns, outputs = w->master.rows;
	return (struct product){
		.operation = operation,
		.inputs = DTYPE_E4M3,
		.a_is_gradient = true,
		.output = r->backend->dtype,
		.rows = padded_rows(rows),
		.columns = inputs,
		.depth = outputs,
		.a = fp8->rows,
		.a_stride = outputs,
		.a_inverse = &fp8->scales[1].inverse,
		.b = parts_of(w).columns,
		.b_stride = outputs,
		.b_inverse = &parts_of(w).scale->inverse,
		.b_transposed = true,
		.add = add,
		.y = dx,
		.y_stride = inputs,
	};
}

void cuda_fp8_plain_dgrad(const struct replica *r, const struct weight *w, struct kernel_product *p)
{
	const struct cuda_fp8 *fp8 = &cuda_scratch(r)->fp8;
	p->inputs = DTYPE_E4M3;
	p->a_is_gradient = true;
	p->a = fp8->rows;
	p->a_inverse = &fp8->scales[1].inverse;
	p->b = parts_of(w).columns;
	p->b_inverse = &parts_of(w).scale->inverse;
	p->b_step = 1;
	p->b_column = w->master.rows;
}
