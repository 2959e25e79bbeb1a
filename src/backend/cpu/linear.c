/* Linear layers: products by oneDNN on slices of rows, with what follows fused behind them. */
#include "backend/cpu/cpu.h"
#include "backend/cpu/weights.h"
#include "backend/cpu/wgrad.h"

/* A product whose tiles stand alone: task j * slices + s makes tile j of slice s, so that all slices pass a packed
 * block while it is in the cache. */
struct linear_call {
	struct replica *r;
	const struct packing *packing;
	struct tensor x;
	struct linear_rows rows; /* pointers to row 0, column 0 of all; `sums` to the parts */
	void (*finish)(const struct linear_rows *rows);
};

static void linear_tile(void *context, int64_t index, int worker)
{
	const struct linear_call *call = context;
	const struct packing *p = call->packing;
	const struct cpu_scratch *scratch = cpu_scratch(call->r);
	int64_t slices = slice_count(call->x.rows), slice = index % slices, j = index / slices;
	int64_t row = slice * ROW_MULTIPLE, column = j * p->n_width;
	float *tile = scratch->tiles + worker * scratch->tile_floats;
	packing_multiply(p, 0, j, false, tensor_at(&call->x, row, 0), tile, worker);

	struct linear_rows rows = call->rows;
	rows.rows = slice_rows(call->x.rows, slice);
	rows.columns = packing_width(p, j);
	rows.x = tile;
	struct tensor shape = {.dtype = rows.dtype, .columns = rows.stride};
	int64_t offset = (row * shape.columns + column) * (int64_t)dtype_bytes(shape.dtype);
	rows.y = (char *)rows.y + offset;
	if (rows.bias)
		rows.bias += column;
	if (rows.pre)
		rows.pre = (char *)rows.pre + offset;
	if (rows.add)
		rows.add = (const char *)rows.add + offset;
	if (rows.sums)
		rows.sums += slice * p->n + column;
	call->finish(&rows);
}

static void linear_run(struct linear_call *call)
{
	const struct packing *p = call->packing;
	BUG_IF(p->k_blocks != 1 || slice_count(call->x.rows) > cpu_scratch(call->r)->slices);
	pool_run(call->r->backend->pool, slice_count(call->x.rows) * p->n_blocks, linear_tile, call);
}

static const float *bias_of(const struct weight *b)
{
	return b ? b->master.data : NULL;
}

void cpu_linear_fwd(struct replica *r, const struct linear_fwd *a)
{
	struct linear_call call = {
		.r = r,
		.packing = &weight_copy(a->w)->forward,
		.x = a->x,
		.rows = {.stride = a->y.columns,
			 .dtype = a->y.dtype,
			 .activation = a->activation,
			 .bias = bias_of(a->b),
			 .y = a->y.data},
		.finish = cpu_state(r)->kernels->linear_fwd,
	};
	linear_run(&call);
}

void cpu_linear_gelu_fwd(struct replica *r, const struct linear_gelu_fwd *a)
{
	struct linear_call call = {
		.r = r,
		.packing = &weight_copy(a->w)->forward,
		.x = a->x,
		.rows = {.stride = a->y.columns,
			 .dtype = a->y.dtype,
			 .activation = a->activation,
			 .bias = bias_of(a->b),
			 .pre = a->pre.data,
			 .y = a->y.data},
		.finish = cpu_state(r)->kernels->gelu_fwd,
	};
	linear_run(&call);
}

struct tanh_call {
	struct replica *r;
	const struct tensor *dy, *y;
};

static void tanh_slice(void *context, int64_t slice, int worker)
{
	(void)worker;
	const struct tanh_call *call = context;
	int64_t row = slice * ROW_MULTIPLE, rows = slice_rows(call->dy->rows, slice);
	cpu_state(call->r)->kernels->tanh_bwd(tensor_at(call->dy, row, 0), tensor_at(call->y, row, 0),
					      rows * call->dy->columns, call->dy->dtype);
}

void cpu_linear_bwd(struct replica *r, const struct linear_bwd *a)
{
	if (a->tanh_y.data) {
		struct tanh_call call = {r, &a->dy, &a->tanh_y};
		pool_run(r->backend->pool, slice_count(a->dy.rows), tanh_slice, &call);
	}
	if (a->dx.data) {
		int64_t inputs = a->dx.columns;
		const struct cpu_scratch *scratch = cpu_scratch(r);
		BUG_IF(a->producer_bias && inputs > scratch->part_floats);
		struct linear_call call = {
			.r = r,
			.packing = &weight_copy(a->w)->dgrad,
			.x = a->dy,
			.rows = {.stride = inputs,
				 .dtype = a->dx.dtype,
				 .activation = a->pre_activation,
				 .pre = a->pre.data,
				 .add = a->add.data,
				 .y = a->dx.data,
				 .sums = a->producer_bias ? scratch->parts : NULL},
			.finish = cpu_state(r)->kernels->linear_bwd,
		};
		linear_run(&call);
		if (a->producer_bias)
			cpu_add_parts(r, scratch->parts, slice_count(a->dy.rows), inputs, inputs,
				      a->producer_bias->gradient.data, a->overwrite);
	}
	cpu_wgrad(r, &(struct cpu_wgrad){.dy = a->dy,
					 .x = a->x,
					 .dw = a->w->gradient.data,
					 .column_sums = a->b ? a->b->gradient.data : NULL,
					 .overwrite = a->overwrite});
}
