/* Linear layers: products on slices of rows, by oneDNN or our own kernels, fused with what follows them. */
#include "backend/cpu/state.h"
#include "backend/cpu/fp8.h"
#include "backend/cpu/weights.h"
#include "backend/cpu/wgrad.h"

/* A product, and what follows it for each slice. */
struct linear_call {
	struct replica *r;
	const struct packing *packing;
	struct tensor x;
	struct linear_rows rows; /* pointers to row 0, column 0 of everything; `sums` points to the parts */
	void (*finish)(const struct linear_rows *rows);
	int64_t task_rows, task_columns; /* for our own products */
	const struct cpu_wgrad *wgrad;   /* optional: receives x, too */
};

/* Applies what follows the product to `columns` columns from `column` on of one slice. */
static void finish_slice(const struct linear_call *call, int64_t slice, int64_t column, int64_t columns, const float *x,
			 int64_t x_row)
{
	struct linear_rows rows = call->rows;
	int64_t offset = (slice * ROW_MULTIPLE * rows.stride + column) * (int64_t)dtype_bytes(rows.dtype);
	rows.rows = slice_rows(call->x.rows, slice);
	rows.columns = columns;
	rows.x = x;
	rows.x_row = x_row;
	rows.y = (char *)rows.y + offset;
	if (rows.bias)
		rows.bias += column;
	if (rows.pre)
		rows.pre = (char *)rows.pre + offset;
	if (rows.add)
		rows.add = (const char *)rows.add + offset;
	if (rows.sums)
		rows.sums += slice * call->packing->n + column;
	call->finish(&rows);
}

/* Task j * slices + s computes tile j of slice s with oneDNN, so that all slices use a packed block while it is in the cache. */
static void library_task(void *context, int64_t index, int worker)
{
	const struct linear_call *call = context;
	const struct packing *p = call->packing;
	const struct cpu_scratch *scratch = cpu_scratch(call->r);
	int64_t slices = slice_count(call->x.rows), slice = index % slices, j = index / slices;
	float *tile = scratch->tiles + worker * scratch->tile_floats;
	packing_multiply(p, 0, j, false, tensor_at(&call->x, slice * ROW_MULTIPLE, 0), ROW_MULTIPLE, tile, NULL, worker);
	finish_slice(call, slice, j * p->n_width, packing_width(p, j), tile, packing_width(p, j));
}

/* One of our own products: some slices and some columns. */
struct own_product {
	const struct linear_call *call;
	struct row_product product;
	int64_t row, column; /* origin of the product within y */
};

static void finish_group(void *context, int64_t column, int64_t columns)
{
	const struct own_product *own = context;
	const float *tile = own->product.y + column / GEMM_GROUP * own->product.y_group;
	for (int64_t r = 0; r < own->product.rows; r += ROW_MULTIPLE)
		finish_slice(own->call, (own->row + r) / ROW_MULTIPLE, own->column + column, columns, tile + r * GEMM_GROUP,
			     GEMM_GROUP);
}

static void hand_over(void *context, int64_t column, int64_t columns)
{
	const struct own_product *own = context;
	cpu_wgrad_take_dy(own->call->r, own->call->wgrad, own->row, own->product.rows, column, columns);
}

static void own_task(void *context, int64_t index, int worker)
{
	const struct linear_call *call = context;
	const struct packing *p = call->packing;
	const struct cpu_scratch *scratch = cpu_scratch(call->r);
	int64_t chunks = (p->n + call->task_columns - 1) / call->task_columns;
	struct own_product own = {
		.call = call, .row = index / chunks * call->task_rows, .column = index % chunks * call->task_columns};
	int64_t rows = call->x.rows - own.row, columns = p->n - own.column;
	rows = rows < call->task_rows ? rows : call->task_rows;
	own.product = (struct row_product){
		.kernels = p->own,
		.x = tensor_at(&call->x, own.row, 0),
		.x_row = p->k,
		.rows = rows,
		.k = p->k,
		.n = columns < call->task_columns ? columns : call->task_columns,
		.packed = p->data + (size_t)(own.column * round_up(p->k, GEMM_BLOCK)) * dtype_bytes(call->x.dtype),
		.blocks = cpu_blocks(call->r, worker),
		.y = scratch->tiles + worker * scratch->tile_floats,
		.y_row = GEMM_GROUP,
		.y_group = p->k > GEMM_PART ? round_up(rows, GEMM_BLOCK) * GEMM_GROUP : 0,
		.finish = finish_group,
		.has_read = call->wgrad && own.column == 0 ? hand_over : NULL,
		.context = &own,
	};
	gemm_rows(&own.product);
}

/* Chooses the best number of rows, unless that leaves too few tasks for the threads. No result depends on this choice. */
static void choose_tasks(struct linear_call *call, int threads)
{
	enum { TASKS = 4 }; /* per thread, so that threads finish at about the same time */
	int64_t n = call->packing->n, rows = call->x.rows, least = (int64_t)TASKS * threads, chunks;
	call->task_rows = gemm_rows_best(call->packing->own, call->packing->k);
	while (call->task_rows > ROW_MULTIPLE && (rows + call->task_rows - 1) / call->task_rows < least)
		call->task_rows = call->task_rows / 2 / ROW_MULTIPLE * ROW_MULTIPLE;
	int64_t blocks = (rows + call->task_rows - 1) / call->task_rows;
	chunks = call->packing->k > GEMM_PART ? (n + KEPT_COLUMNS - 1) / KEPT_COLUMNS : 1;
	while (blocks * chunks < least && n / (chunks + 1) >= 4 * GEMM_GROUP)
		chunks++;
	call->task_columns = round_up((n + chunks - 1) / chunks, GEMM_GROUP);
}

static void linear_run(struct linear_call *call)
{
	const struct packing *p = call->packing;
	struct pool *pool = call->r->backend->pool;
	int64_t slices = slice_count(call->x.rows);
	BUG_IF(p->k_blocks != 1 || slices > cpu_scratch(call->r)->slices);
	if (!p->own) {
		pool_run(pool, slices * p->n_blocks, library_task, call);
		return;
	}
	choose_tasks(call, pool_threads(pool));
	int64_t blocks = (call->x.rows + call->task_rows - 1) / call->task_rows;
	pool_run(pool, blocks * ((p->n + call->task_columns - 1) / call->task_columns), own_task, call);
}

void cpu_linear_fwd(struct replica *r, const struct linear_fwd *a)
{
	struct linear_call call = {
		.r = r,
		.packing = &weight_copy(a->w)->forward,
		.x = cpu_operand(r, a->w, DTYPE_E4M3, &a->x),
		.rows = {.stride = a->y.columns,
			 .dtype = a->y.dtype,
			 .activation = a->activation,
			 .past = tensor_is_large(&a->y),
			 .bias = cpu_vector(a->b),
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
		.x = cpu_operand(r, a->w, DTYPE_E4M3, &a->x),
		.rows = {.stride = a->y.columns,
			 .dtype = a->y.dtype,
			 .activation = a->activation,
			 .past = tensor_is_large(&a->y),
			 .bias = cpu_vector(a->b),
			 .pre = a->pre.data,
			 .y = a->y.data},
		.finish = cpu_state(r)->kernels->gelu_fwd,
	};
	linear_run(&call);
}

struct gated_call {
	struct replica *r;
	struct gated_rows rows; /* pointers to row 0 */
	const struct batch *batch;
	const struct dropout *dropout;
	int64_t count;
};

static void gated_slice(void *context, int64_t slice, int worker)
{
	const struct gated_call *call = context;
	struct gated_rows rows = call->rows;
	int64_t row = slice * ROW_MULTIPLE, offset = row * rows.columns * (int64_t)dtype_bytes(rows.dtype);
	rows.rows = slice_rows(call->count, slice);
	rows.dropout = cpu_dropout(call->r, call->dropout, call->batch, row, worker);
	rows.pre = (const char *)rows.pre + 2 * offset;
	if (rows.dpre) {
		rows.dy = (const char *)rows.dy + offset;
		rows.dpre = (char *)rows.dpre + 2 * offset;
	} else {
		rows.y = (char *)rows.y + offset;
	}
	cpu_state(call->r)->kernels->gated(&rows);
}

void cpu_gated_fwd(struct replica *r, const struct gated_fwd *a)
{
	struct gated_call call = {.r = r, .batch = a->batch, .dropout = &a->dropout, .count = a->y.rows};
	call.rows = (struct gated_rows){
		.columns = a->y.columns, .dtype = a->y.dtype, .activation = a->activation, .pre = a->pre.data, .y = a->y.data};
	pool_run(r->backend->pool, slice_count(a->y.rows), gated_slice, &call);
}

void cpu_gated_bwd(struct replica *r, const struct gated_bwd *a)
{
	struct gated_call call = {.r = r, .batch = a->batch, .dropout = &a->dropout, .count = a->dy.rows};
	call.rows = (struct gated_rows){.columns = a->dy.columns,
					.dtype = a->dy.dtype,
					.activation = a->activation,
					.pre = a->pre.data,
					.dy = a->dy.data,
					.dpre = a->dpre.data};
	pool_run(r->backend->pool, slice_count(a->dy.rows), gated_slice, &call);
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
	cpu_state(call->r)->kernels->tanh_bwd(tensor_at(call->dy, row, 0), tensor_at(call->y, row, 0), rows * call->dy->columns,
					      call->dy->dtype);
}

void cpu_linear_bwd(struct replica *r, const struct linear_bwd *a)
{
	const struct cpu_scratch *scratch = cpu_scratch(r);
	if (a->tanh_y.data) {
		struct tanh_call call = {r, &a->dy, &a->tanh_y};
		pool_run(r->backend->pool, slice_count(a->dy.rows), tanh_slice, &call);
	}
	struct tensor dy = cpu_operand(r, a->w, DTYPE_E5M2, &a->dy);
	bool is_rounded = dy.data != a->dy.data;
	struct cpu_wgrad wgrad = {.dy = dy,
				  .x = cpu_operand(r, a->w, DTYPE_E4M3, &a->x),
				  .dw = a->w->gradient.data,
				  .column_sums = a->b && !is_rounded ? a->b->gradient.data : NULL,
				  .overwrite = a->overwrite,
				  .offset = scratch->bytes};
	if (a->dx.data) {
		int64_t inputs = a->dx.columns;
		BUG_IF(a->producer_bias && inputs > scratch->part_floats);
		struct linear_call call = {
			.r = r,
			.packing = &weight_copy(a->w)->dgrad,
			.x = dy,
			.rows = {.stride = inputs,
				 .dtype = a->dx.dtype,
				 .activation = a->pre_activation,
				 .past = tensor_is_large(&a->dx),
				 .pre = a->pre.data,
				 .add = a->add.data,
				 .y = a->dx.data,
				 .sums = a->producer_bias ? scratch->parts : NULL},
			.finish = cpu_state(r)->kernels->linear_bwd,
		};
		wgrad.has_dy = wgrad.dw && call.packing->own && a->dy.rows > 0 && cpu_wgrad_takes_dy(&wgrad);
		if (wgrad.has_dy)
			call.wgrad = &wgrad;
		linear_run(&call);
		if (a->producer_bias)
			cpu_add_parts(r, scratch->parts, slice_count(a->dy.rows), inputs, inputs, a->producer_bias->gradient.data,
				      a->overwrite);
	}
	if (!wgrad.dw)
		return;
	cpu_wgrad(r, &wgrad);
	if (a->b && is_rounded)
		cpu_fp8_column_sums(r, &a->dy, a->b->gradient.data, a->overwrite);
}
