/* Products in FP8: kernel_fp8 rounds operands and lays them out in the only form that the library multiplies in FP8: y = a b'
 * with the rows of both along the sum. Weights are rounded into their copies on refresh; x and dy into the scratch, for the
 * running product; and x' into x's twin, where it stays for wgrad. */
#include "backend/cuda/weight_products.h"

/* The contents of weight->copy: the head, then w (O,I), then w' (I,O). */
struct weight_parts {
	struct fp8_head *head;
	unsigned char *rows, *columns;
};

static struct weight_parts parts_of(const struct weight *weight)
{
	unsigned char *base = weight->copy, *rows = base + sizeof(struct fp8_head);
	return (struct weight_parts){weight->copy, rows,
				     rows + round_up(weight->master.rows * weight->master.columns, ARENA_ALIGNMENT)};
}

const struct fp8_sizes *cuda_fp8_sizes(const struct weight *weight)
{
	return &((const struct fp8_head *)weight->copy)->sizes;
}

size_t cuda_fp8_copy_bytes(const struct weight *weight)
{
	return sizeof(struct fp8_head) + 2 * (size_t)round_up(weight->master.rows * weight->master.columns, ARENA_ALIGNMENT);
}

void cuda_fp8_refresh(const struct replica *r, struct weight *const *weights, int64_t count)
{
	struct kernel_fp8 rounding = {.dtype = DTYPE_F32};
	for (int64_t i = 0; r->backend->fp8 && i < count; i++) {
		bool rounds = weight_in_fp8(r->backend, weights[i]);
		bool bounds = weights[i]->use == WEIGHT_VECTOR && weights[i]->master.columns % FP8_MULTIPLE == 0;
		if (!rounds && !bounds)
			continue;
		struct weight_parts to = parts_of(weights[i]);
		rounding.matrix[rounding.count++] = (struct kernel_fp8_matrix){.from = weights[i]->master.data,
									       .rows = weights[i]->master.rows,
									       .columns = weights[i]->master.columns,
									       .format = DTYPE_E4M3,
									       .largest = to.head->largest,
									       .scale = &to.head->scale,
									       .sizes = &to.head->sizes,
									       .rows_out = rounds ? to.rows : NULL,
									       .columns_out = rounds ? to.columns : NULL};
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

size_t cuda_twin_bytes(struct backend *be, int64_t rows, int64_t columns, bool gradient)
{
	return be->fp8 ? sizeof(struct fp8_head) + (gradient ? 0 : (size_t)(padded_rows(rows) * columns)) : 0;
}

/* x' of an x that has a twin. */
static unsigned char *twin_columns(const struct tensor *x)
{
	return (unsigned char *)x->twin + sizeof(struct fp8_head);
}

uint32_t *cuda_largest(const struct tensor *tensor)
{
	return tensor->twin ? ((struct fp8_head *)tensor->twin)->largest : NULL;
}

void cuda_largest_pass(const struct replica *r, const char *operation, const struct tensor *tensor)
{
	struct kernel_fp8 pass = {
		.dtype = tensor->dtype,
		.count = 1,
		.matrix[0] = {
			.from = tensor->data, .rows = tensor->rows, .columns = tensor->columns, .largest = cuda_largest(tensor)}};
	if (tensor->twin)
		cuda_run(r, kernel_fp8_largest(cuda_stream(r), &pass), operation);
}

static struct fp8_head *head_of(const struct replica *r, const struct tensor *operand, enum dtype format)
{
	const struct cuda_fp8 *fp8 = &cuda_scratch(r)->fp8;
	return operand->twin ? operand->twin : format == DTYPE_E4M3 ? fp8->x : fp8->dy;
}

struct kernel_fp8_output cuda_fp8_output(const struct replica *r, const struct tensor *tensor, enum dtype format)
{
	struct cuda_fp8 *fp8 = &cuda_scratch(r)->fp8;
	struct fp8_head *head = tensor->twin;
	BUG_IF(padded_rows(tensor->rows) * tensor->columns > fp8->operand_bytes);
	fp8->written = head;
	return (struct kernel_fp8_output){.format = format,
					  .rows = fp8->rows,
					  .columns = format == DTYPE_E4M3 ? twin_columns(tensor) : fp8->dy_columns,
					  .bound = &head->bound,
					  .scale = &head->scale};
}

/* Whether the operand's producer has rounded it. */
static bool is_written(const struct replica *r, const struct tensor *operand)
{
	struct cuda_fp8 *fp8 = &cuda_scratch(r)->fp8;
	bool written = operand->twin && fp8->written == operand->twin;
	fp8->written = NULL;
	return written;
}

/* Rounds x (E4M3) or dy (E5M2), as rows, transposed, or both. */
static void round_operand(const struct replica *r, const char *operation, const struct tensor *from, enum dtype format,
			  unsigned char *rows, unsigned char *columns)
{
	struct fp8_head *head = head_of(r, from, format);
	BUG_IF(padded_rows(from->rows) * from->columns > cuda_scratch(r)->fp8.operand_bytes);
	cuda_run(r,
		 kernel_fp8(cuda_stream(r), &(struct kernel_fp8){.dtype = from->dtype,
								 .count = 1,
								 .matrix[0] = {.from = from->data,
									       .rows = from->rows,
									       .columns = from->columns,
									       .format = format,
									       .known = from->twin != NULL,
									       .largest = head->largest,
									       .scale = &head->scale,
									       .rows_out = rows,
									       .columns_out = columns}}),
		 operation);
}

struct product cuda_fp8_forward(const struct replica *r, const char *operation, const struct tensor *x, const struct weight *w,
				const void *bias, void *y)
{
	const struct cuda_fp8 *fp8 = &cuda_scratch(r)->fp8;
	int64_t inputs = w->master.columns, outputs = w->master.rows;
	if (!is_written(r, x))
		round_operand(r, operation, x, DTYPE_E4M3, fp8->rows, x->twin ? twin_columns(x) : NULL);
	return (struct product){
		.operation = operation,
		.inputs = DTYPE_E4M3,
		.output = x->dtype,
		.rows = padded_rows(x->rows),
		.columns = outputs,
		.depth = inputs,
		.a = fp8->rows,
		.a_stride = inputs,
		.a_inverse = &head_of(r, x, DTYPE_E4M3)->scale.inverse,
		.b = parts_of(w).rows,
		.b_stride = inputs,
		.b_inverse = &parts_of(w).head->scale.inverse,
		.b_transposed = true,
		.bias = bias,
		.y = y,
		.y_stride = outputs,
	};
}

void cuda_fp8_backward(const struct replica *r, const char *operation, const struct tensor *dy)
{
	if (!is_written(r, dy))
		round_operand(r, operation, dy, DTYPE_E5M2, cuda_scratch(r)->fp8.rows, cuda_scratch(r)->fp8.dy_columns);
}

void cuda_fp8_wgrad(const struct replica *r, const char *operation, const struct tensor *dy, const struct tensor *x,
		    const struct weight *w, bool overwrite)
{
	const struct cuda_fp8 *fp8 = &cuda_scratch(r)->fp8;
	int64_t inputs = w->master.columns, outputs = w->master.rows, depth = padded_rows(dy->rows);
	if (!x->twin)
		round_operand(r, operation, x, DTYPE_E4M3, NULL, fp8->rows); /* overwrites dy, which dgrad has already read */
	cuda_product(r, &(struct product){.operation = operation,
					  .inputs = DTYPE_E4M3,
					  .a_is_gradient = true,
					  .output = DTYPE_F32,
					  .rows = outputs,
					  .columns = inputs,
					  .depth = depth,
					  .a = fp8->dy_columns,
					  .a_stride = depth,
					  .a_inverse = &head_of(r, dy, DTYPE_E5M2)->scale.inverse,
					  .b = x->twin ? twin_columns(x) : fp8->rows,
					  .b_stride = depth,
					  .b_inverse = &head_of(r, x, DTYPE_E4M3)->scale.inverse,
					  .b_transposed = true,
					  .add = overwrite ? NULL : w->gradient.data,
					  .y = w->gradient.data,
					  .y_stride = inputs});
}

struct product cuda_fp8_dgrad(const struct replica *r, const char *operation, const struct tensor *dy, const struct weight *w,
			      const void *add, void *dx)
{
	int64_t inputs = w->master.columns, outputs = w->master.rows;
	return (struct product){
		.operation = operation,
		.inputs = DTYPE_E4M3,
		.a_is_gradient = true,
		.output = r->backend->dtype,
		.rows = padded_rows(dy->rows),
		.columns = inputs,
		.depth = outputs,
		.a = cuda_scratch(r)->fp8.rows,
		.a_stride = outputs,
		.a_inverse = &head_of(r, dy, DTYPE_E5M2)->scale.inverse,
		.b = parts_of(w).columns,
		.b_stride = outputs,
		.b_inverse = &parts_of(w).head->scale.inverse,
		.b_transposed = true,
		.add = add,
		.y = dx,
		.y_stride = inputs,
	};
}

/* No element of dy w exceeds the length of its sum times the largest elements, which are 57344 and 448 inverse scales at most;
 * and gelu' does not exceed 1.13. */
struct kernel_fp8_output cuda_fp8_dx(const struct replica *r, const struct linear_bwd *a)
{
	struct kernel_fp8_output out = cuda_fp8_output(r, &a->dx, DTYPE_E5M2);
	out.factor = 1.13f * (float)a->dy.columns * fp8_largest(DTYPE_E5M2) * fp8_largest(DTYPE_E4M3);
	out.a = &head_of(r, &a->dy, DTYPE_E5M2)->scale.inverse;
	out.b = &parts_of(a->w).head->scale.inverse;
	return out;
}

void cuda_fp8_plain_dgrad(const struct replica *r, const struct tensor *dy, const struct weight *w, struct kernel_product *p)
{
	p->inputs = DTYPE_E4M3;
	p->a_is_gradient = true;
	p->a = cuda_scratch(r)->fp8.rows;
	p->a_inverse = &head_of(r, dy, DTYPE_E5M2)->scale.inverse;
	p->b = parts_of(w).columns;
	p->b_inverse = &parts_of(w).head->scale.inverse;
	p->b_step = 1;
	p->b_column = w->master.rows;
}
