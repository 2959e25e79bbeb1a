/* Layer normalization, after a linear or on its own, and its backward. */
#include "backend/cpu/state.h"
#include "backend/cpu/fp8.h"
#include "backend/cpu/weights.h"

struct norm_call {
	struct replica *r;
	const struct linear_norm_fwd *a;
	struct tensor x;   /* of the product */
	int64_t task_rows; /* for our own products */
};

/* What follows the product, for one slice; without a product, `product` has no data. */
static void norm_slice(const struct norm_call *call, int64_t slice, struct tiles product, int worker)
{
	const struct linear_norm_fwd *a = call->a;
	const struct cpu_scratch *scratch = cpu_scratch(call->r);
	int64_t row = slice * ROW_MULTIPLE;
	struct norm_rows rows = {
		.rows = slice_rows(a->y.rows, slice),
		.columns = a->y.columns,
		.dtype = a->y.dtype,
		.residual = tensor_at(&a->residual, row, 0),
		.gamma = a->gamma->master.data,
		.beta = cpu_vector(a->beta),
		.epsilon = (float)a->epsilon,
		.dropout = cpu_dropout(call->r, &a->dropout, a->batch, row, worker),
		.row = scratch->rows + worker * scratch->row_floats,
		.past = tensor_is_large(&a->y),
		.sum = tensor_at(&a->sum, row, 0),
		.y = tensor_at(&a->y, row, 0),
	};
	if (a->sum.data) {
		rows.mean = (float *)a->mean.data + row;
		rows.rstd = (float *)a->rstd.data + row;
	}
	if (a->w) {
		rows.product = product;
		rows.bias = cpu_vector(a->b);
	} else {
		rows.x = tensor_at(&a->x, row, 0);
	}
	cpu_state(call->r)->kernels->norm_fwd(&rows);
}

static void plain_task(void *context, int64_t slice, int worker)
{
	norm_slice(context, slice, (struct tiles){0}, worker);
}

/* One slice, with oneDNN's product. */
static void library_task(void *context, int64_t slice, int worker)
{
	const struct norm_call *call = context;
	const struct packing *p = &weight_copy(call->a->w)->forward;
	const struct cpu_scratch *scratch = cpu_scratch(call->r);
	float *tiles = scratch->tiles + worker * scratch->tile_floats;
	int64_t tile = p->n_width * ROW_MULTIPLE;
	for (int64_t j = 0; j < p->n_blocks; j++)
		packing_multiply(p, 0, j, false, tensor_at(&call->x, slice * ROW_MULTIPLE, 0), ROW_MULTIPLE, tiles + j * tile,
				 NULL, worker);
	norm_slice(call, slice, (struct tiles){.data = tiles, .width = p->n_width, .tile = tile}, worker);
}

/* Some slices, with our own product. */
static void own_task(void *context, int64_t index, int worker)
{
	const struct norm_call *call = context;
	const struct packing *p = &weight_copy(call->a->w)->forward;
	const struct cpu_scratch *scratch = cpu_scratch(call->r);
	float *tiles = scratch->tiles + worker * scratch->tile_floats;
	int64_t row = index * call->task_rows, left = call->x.rows - row;
	int64_t rows = left < call->task_rows ? left : call->task_rows, tile = round_up(rows, GEMM_BLOCK) * GEMM_GROUP;
	gemm_rows(&(struct row_product){.kernels = p->own,
					.x = tensor_at(&call->x, row, 0),
					.x_row = p->k,
					.rows = rows,
					.k = p->k,
					.n = p->n,
					.packed = p->data,
					.blocks = cpu_blocks(call->r, worker),
					.y = tiles,
					.y_row = GEMM_GROUP,
					.y_group = tile});
	for (int64_t r = 0; r < rows; r += ROW_MULTIPLE)
		norm_slice(call, (row + r) / ROW_MULTIPLE,
			   (struct tiles){.data = tiles + r * GEMM_GROUP, .width = GEMM_GROUP, .tile = tile, .row = GEMM_GROUP},
			   worker);
}

void cpu_linear_norm_fwd(struct replica *r, const struct linear_norm_fwd *a)
{
	struct norm_call call = {.r = r, .a = a};
	struct pool *pool = r->backend->pool;
	int64_t slices = slice_count(a->y.rows);
	BUG_IF(a->y.columns * ROW_MULTIPLE > cpu_scratch(r)->tile_floats);
	if (a->w)
		call.x = cpu_operand(r, a->w, DTYPE_E4M3, &a->x);
	if (!a->w) {
		pool_run(pool, slices, plain_task, &call);
	} else if (!weight_copy(a->w)->forward.own) {
		pool_run(pool, slices, library_task, &call);
	} else {
		/* With a long k, more rows per task pay off, if that leaves enough tasks. */
		const struct packing *p = &weight_copy(a->w)->forward;
		int64_t most = gemm_rows_best(p->own, p->k);
		call.task_rows = slices < 8 * pool_threads(pool) ? ROW_MULTIPLE : most < KEPT_ROWS ? most : KEPT_ROWS;
		pool_run(pool, (a->y.rows + call.task_rows - 1) / call.task_rows, own_task, &call);
	}
}

struct norm_bwd_call {
	struct replica *r;
	const struct norm_bwd *a;
};

static void norm_bwd_slice(void *context, int64_t slice, int worker)
{
	const struct norm_bwd_call *call = context;
	const struct norm_bwd *a = call->a;
	const struct cpu_scratch *scratch = cpu_scratch(call->r);
	int64_t row = slice * ROW_MULTIPLE, width = a->dy.columns;
	bool one_output = !a->dx.data || a->dx.data == a->dresidual.data;
	float *parts = scratch->parts + slice * 3 * width;
	struct norm_bwd_rows rows = {
		.rows = slice_rows(a->dy.rows, slice),
		.columns = width,
		.dtype = a->dy.dtype,
		.activation = a->pre_activation,
		.dy = tensor_at(&a->dy, row, 0),
		.sum = tensor_at(&a->sum, row, 0),
		.pre = tensor_at(&a->pre, row, 0),
		.add = tensor_at(&a->add, row, 0),
		.mean = (const float *)a->mean.data + row,
		.rstd = (const float *)a->rstd.data + row,
		.gamma = a->gamma->master.data,
		.dropout = cpu_dropout(call->r, &a->dropout, a->batch, row, worker),
		.row = scratch->rows + worker * scratch->row_floats,
		.past = tensor_is_large(&a->dresidual),
		.dresidual = tensor_at(&a->dresidual, row, 0),
		.dx = one_output ? NULL : tensor_at(&a->dx, row, 0),
		.dgamma = parts,
		.dbeta = parts + width,
		.dbias = a->bias ? parts + 2 * width : NULL,
	};
	cpu_state(call->r)->kernels->norm_bwd(&rows);
}

void cpu_norm_bwd(struct replica *r, const struct norm_bwd *a)
{
	struct norm_bwd_call call = {r, a};
	const struct cpu_scratch *scratch = cpu_scratch(r);
	int64_t slices = slice_count(a->dy.rows), width = a->dy.columns;
	BUG_IF(3 * width > scratch->part_floats || slices > scratch->slices);
	pool_run(r->backend->pool, slices, norm_bwd_slice, &call);
	const struct weight *targets[3] = {a->gamma, a->beta, a->bias};
	for (int i = 0; i < 3; i++)
		if (targets[i])
			cpu_add_parts(r, scratch->parts + i * width, slices, 3 * width, width, targets[i]->gradient.data,
				      a->overwrite);
}
