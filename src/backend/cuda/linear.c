/* Linear layers with their activations, forward and backward. */
#include "backend/cuda/weight_products.h"

void cuda_linear_fwd(struct replica *r, const struct linear_fwd *a)
{
	cuda_product_forward(r, "linear_fwd", &a->x, a->w, a->b, a->y.data);
	if (a->activation == ACTIVATION_TANH)
		cuda_run(r, kernel_tanh(cuda_stream(r), a->y.dtype, a->y.rows * a->y.columns, a->y.data), "linear_fwd");
}

void cuda_linear_gelu_fwd(struct replica *r, const struct linear_gelu_fwd *a)
{
	cuda_product_gelu(r, "linear_gelu_fwd", a->activation, &a->x, a->w, a->b, a->pre.data, &a->y);
}

void cuda_gated_fwd(struct replica *r, const struct gated_fwd *a)
{
	struct kernel_gated gated = {.dtype = a->y.dtype,
				     .activation = a->activation,
				     .rows = a->y.rows,
				     .columns = (int)a->y.columns,
				     .dropout = cuda_dropout(r, &a->dropout, a->batch),
				     .pre = a->pre.data,
				     .y = a->y.data};
	cuda_run(r, kernel_gated(cuda_stream(r), &gated), "gated_fwd");
	cuda_largest_pass(r, "gated_fwd", &a->y);
}

void cuda_gated_bwd(struct replica *r, const struct gated_bwd *a)
{
	struct kernel_gated gated = {.dtype = a->dy.dtype,
				     .activation = a->activation,
				     .rows = a->dy.rows,
				     .columns = (int)a->dy.columns,
				     .dropout = cuda_dropout(r, &a->dropout, a->batch),
				     .pre = a->pre.data,
				     .dy = a->dy.data,
				     .dpre = a->dpre.data};
	cuda_run(r, kernel_gated(cuda_stream(r), &gated), "gated_bwd");
	cuda_largest_pass(r, "gated_bwd", &a->dpre);
}

void cuda_add_parts(const struct replica *r, const float *parts, int64_t count, int64_t columns, float *out, bool overwrite,
		    const char *operation)
{
	struct kernel_add_parts sums = {
		.parts = parts,
		.part_count = count,
		.stride = columns,
		.columns = columns,
		.out = {out},
		.overwrite = overwrite,
	};
	cuda_run(r, kernel_add_parts(cuda_stream(r), &sums), operation);
}

/* The number of parts that rows are divided into for column sums: as many as there is memory for. */
static int64_t sum_parts(const struct replica *r, int64_t rows, int64_t columns)
{
	int64_t parts = row_parts(rows), most = ROW_PARTS * cuda_scratch(r)->part_floats / columns;
	BUG_IF(most < 1);
	return parts < most ? parts : most;
}

void cuda_column_sums(const struct replica *r, const struct kernel_columns *pass, const struct weight *bias, bool overwrite,
		      const char *operation)
{
	struct kernel_columns own = *pass;
	own.part_count = sum_parts(r, pass->rows, pass->columns);
	own.parts = bias ? cuda_scratch(r)->parts : NULL;
	cuda_run(r, kernel_columns(cuda_stream(r), &own), operation);
	if (bias)
		cuda_add_parts(r, own.parts, own.part_count, pass->columns, bias->gradient.data, overwrite, operation);
}

/* dx = dy w * gelu'(pre) + add, by the plain kernel. */
static void product_gelu_add(const struct replica *r, const struct linear_bwd *a)
{
	int64_t inputs = a->dx.columns, outputs = a->dy.columns;
	struct kernel_product p = {.inputs = a->dy.dtype,
				   .output = a->dx.dtype,
				   .rows = a->dx.rows,
				   .columns = inputs,
				   .depth = outputs,
				   .a = a->dy.data,
				   .a_row = outputs,
				   .a_step = 1,
				   .b_step = inputs,
				   .b_column = 1,
				   .pre = a->pre.data,
				   .activation = a->pre_activation,
				   .add = a->add.data,
				   .y = a->dx.data,
				   .y_stride = inputs};
	if (weight_in_fp8(r->backend, a->w))
		cuda_fp8_plain_dgrad(r, &a->dy, a->w, &p);
	else
		p.b = cuda_weight_operand(r, a->w);
	cuda_run(r, kernel_product(cuda_stream(r), &p), "linear_bwd");
}

/* dx, and its column sums. */
static void input_gradient(const struct replica *r, const struct linear_bwd *a)
{
	struct kernel_columns pass = {.dtype = a->dx.dtype, .rows = a->dx.rows, .columns = a->dx.columns, .dx = a->dx.data};
	if (a->pre.data && a->add.data) {
		/* No layer of a BERT needs both; add may be dx, so there is no separate place for the product. */
		product_gelu_add(r, a);
	} else if (!a->pre.data ||
		   !cuda_product_dgelu(r, "linear_bwd", a->pre_activation, &a->dy, a->w, a->pre.data, a->dx.data)) {
		cuda_product_dgrad(r, "linear_bwd", &a->dy, a->w, a->add.data, a->dx.data);
		pass.pre = a->pre.data;
		pass.activation = a->pre_activation;
	}
	if (pass.pre || a->producer_bias)
		cuda_column_sums(r, &pass, a->producer_bias, a->overwrite, "linear_bwd");
}

/* dx = dx gelu'(pre) for an FP8 product, and its column sums; nothing else reads it. In place of dy, so after wgrad. */
static void rounded_input_gradient(const struct replica *r, const struct linear_bwd *a)
{
	struct kernel_fp8_gelu gelu = {.activation = a->pre_activation,
				       .rows = a->dx.rows,
				       .columns = a->dx.columns,
				       .part_count = sum_parts(r, a->dx.rows, a->dx.columns),
				       .x = a->dx.data,
				       .pre = a->pre.data,
				       .parts = a->producer_bias ? cuda_scratch(r)->parts : NULL,
				       .y = cuda_fp8_dx(r, a)};
	BUG_IF(!a->pre.data || a->add.data || !weight_in_fp8(r->backend, a->w));
	cuda_run(r, kernel_fp8_gelu(cuda_stream(r), &gelu), "linear_bwd");
	if (a->producer_bias)
		cuda_add_parts(r, gelu.parts, gelu.part_count, gelu.columns, a->producer_bias->gradient.data, a->overwrite,
			       "linear_bwd");
}

void cuda_linear_bwd(struct replica *r, const struct linear_bwd *a)
{
	if (a->tanh_y.data)
		cuda_run(
			r,
			kernel_tanh_backward(cuda_stream(r), a->dy.dtype, a->dy.rows * a->dy.columns, a->tanh_y.data, a->dy.data),
			"linear_bwd");
	cuda_product_backward(r, "linear_bwd", a->w, &a->dy);
	if (a->dx.twin)
		cuda_product_dgrad(r, "linear_bwd", &a->dy, a->w, NULL, a->dx.data);
	else if (a->dx.data)
		input_gradient(r, a);
	if (a->w->gradient.data)
		cuda_product_wgrad(r, "linear_bwd", &a->dy, &a->x, a->w, a->overwrite);
	if (a->dx.twin)
		rounded_input_gradient(r, a);
	if (a->b && a->w->gradient.data)
		cuda_column_sums(r,
				 &(struct kernel_columns){
					 .dtype = a->dy.dtype, .rows = a->dy.rows, .columns = a->dy.columns, .dx = a->dy.data},
				 a->b, a->overwrite, "linear_bwd");
}
