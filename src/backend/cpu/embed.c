/* Embeddings: the sum of three rows, layer norm, dropout; and gradient sums for each row of the tables. */
#include <string.h>
#include "backend/cpu/state.h"

struct embed_call {
	struct replica *r;
	const struct embed_fwd *a;
};

static void embed_slice(void *context, int64_t slice, int worker)
{
	const struct embed_call *call = context;
	const struct embed_fwd *a = call->a;
	const struct cpu_scratch *scratch = cpu_scratch(call->r);
	int64_t row = slice * ROW_MULTIPLE;
	struct embed_rows rows = {
		.rows = slice_rows(a->y.rows, slice),
		.columns = a->y.columns,
		.dtype = a->y.dtype,
		.tables = DTYPE_F32,
		.ids = a->batch->ids + row,
		.positions = a->batch->positions + row,
		.types = a->batch->types + row,
		.word = a->word->master.data,
		.position = cpu_vector(a->position),
		.type = cpu_vector(a->type),
		.gamma = a->gamma->master.data,
		.beta = cpu_vector(a->beta),
		.epsilon = (float)a->epsilon,
		.dropout = cpu_dropout(call->r, &a->dropout, a->batch, row, worker),
		.row = scratch->rows + worker * scratch->row_floats,
		.sum = tensor_at(&a->sum, row, 0),
		.y = tensor_at(&a->y, row, 0),
	};
	if (a->sum.data) {
		rows.mean = (float *)a->mean.data + row;
		rows.rstd = (float *)a->rstd.data + row;
	}
	cpu_state(call->r)->kernels->embed_fwd(&rows);
}

void cpu_embed_fwd(struct replica *r, const struct embed_fwd *a)
{
	struct embed_call call = {r, a};
	pool_run(r->backend->pool, slice_count(a->y.rows), embed_slice, &call);
}

struct embed_bwd_call {
	struct replica *r;
	const struct embed_bwd *a;
};

/* dy becomes the gradient of the sum of the three rows, in place. */
static void embed_bwd_slice(void *context, int64_t slice, int worker)
{
	const struct embed_bwd_call *call = context;
	const struct embed_bwd *a = call->a;
	const struct cpu_scratch *scratch = cpu_scratch(call->r);
	int64_t row = slice * ROW_MULTIPLE, width = a->dy.columns;
	float *parts = scratch->parts + slice * 2 * width;
	struct norm_bwd_rows rows = {
		.rows = slice_rows(a->dy.rows, slice),
		.columns = width,
		.dtype = a->dy.dtype,
		.dropout_first = true,
		.dy = tensor_at(&a->dy, row, 0),
		.sum = tensor_at(&a->sum, row, 0),
		.mean = (const float *)a->mean.data + row,
		.rstd = (const float *)a->rstd.data + row,
		.gamma = a->gamma->master.data,
		.dropout = cpu_dropout(call->r, &a->dropout, a->batch, row, worker),
		.row = scratch->rows + worker * scratch->row_floats,
		.dresidual = tensor_at(&a->dy, row, 0),
		.dgamma = parts,
		.dbeta = parts + width,
	};
	cpu_state(call->r)->kernels->norm_bwd(&rows);
}

/* Words whose first entry in id_order is in this part: each table row is summed by one task, in order. */
static void word_part(void *context, int64_t part, int worker)
{
	const struct embed_bwd_call *call = context;
	const struct embed_bwd *a = call->a;
	const struct cpu_kernels *kernels = cpu_state(call->r)->kernels;
	const struct cpu_scratch *scratch = cpu_scratch(call->r);
	const int32_t *order = a->batch->id_order, *ids = a->batch->ids;
	float *sum = scratch->rows + worker * scratch->row_floats;
	int64_t tokens = a->dy.rows, width = a->dy.columns, i = part * ROW_MULTIPLE;
	int64_t end = i + slice_rows(tokens, part);
	while (i > 0 && i < end && ids[order[i]] == ids[order[i - 1]]) /* belongs to the previous part */
		i++;
	while (i < end) {
		int32_t id = ids[order[i]];
		memset(sum, 0, (size_t)width * sizeof *sum);
		for (; i < tokens && ids[order[i]] == id; i++)
			kernels->add_row(sum, tensor_at(&a->dy, order[i], 0), width, a->dy.dtype);
		kernels->add_row((float *)a->word->gradient.data + id * width, sum, width, DTYPE_F32);
	}
}

static void position_row(void *context, int64_t position, int worker)
{
	(void)worker;
	const struct embed_bwd_call *call = context;
	const struct embed_bwd *a = call->a;
	const struct batch *batch = a->batch;
	int64_t width = a->dy.columns;
	float *sum = (float *)a->position->gradient.data + position * width;
	if (a->overwrite)
		memset(sum, 0, (size_t)width * sizeof *sum);
	for (int32_t s = 0; position < batch->longest && s < batch->sequence_count; s++)
		if (batch->starts[s] + position < batch->starts[s + 1])
			cpu_state(call->r)->kernels->add_row(sum, tensor_at(&a->dy, batch->starts[s] + position, 0), width,
							     a->dy.dtype);
}

/* Few rows with many tokens each: a task sums all tokens for a block of columns, slice by slice. */
#define TYPE_COLUMNS 64

static void type_columns(void *context, int64_t block, int worker)
{
	(void)worker;
	const struct embed_bwd_call *call = context;
	const struct embed_bwd *a = call->a;
	int64_t first = block * TYPE_COLUMNS, columns = a->dy.columns - first;
	if (columns > TYPE_COLUMNS)
		columns = TYPE_COLUMNS;
	for (int64_t type = 0; type < a->type->master.rows; type++) {
		float *out = (float *)a->type->gradient.data + type * a->dy.columns + first;
		if (a->overwrite)
			memset(out, 0, (size_t)columns * sizeof *out);
		for (int64_t row = 0; row < a->dy.rows; row += ROW_MULTIPLE) {
			float sum[TYPE_COLUMNS] = {0};
			for (int64_t t = row; t < a->dy.rows && t < row + ROW_MULTIPLE; t++)
				if (a->batch->types[t] == type)
					cpu_state(call->r)->kernels->add_row(sum, tensor_at(&a->dy, t, first), columns,
									     a->dy.dtype);
			for (int64_t c = 0; c < columns; c++)
				out[c] += sum[c];
		}
	}
}

void cpu_embed_bwd(struct replica *r, const struct embed_bwd *a)
{
	struct embed_bwd_call call = {r, a};
	struct pool *pool = r->backend->pool;
	const struct cpu_scratch *scratch = cpu_scratch(r);
	int64_t slices = slice_count(a->dy.rows), width = a->dy.columns;
	BUG_IF(2 * width > scratch->part_floats || slices > scratch->slices);
	pool_run(pool, slices, embed_bwd_slice, &call);
	cpu_add_parts(r, scratch->parts, slices, 2 * width, width, a->gamma->gradient.data, a->overwrite);
	if (a->beta)
		cpu_add_parts(r, scratch->parts + width, slices, 2 * width, width, a->beta->gradient.data, a->overwrite);
	if (a->overwrite_word)
		cpu_zero(r, a->word->gradient.data, (size_t)(a->word->master.rows * width) * sizeof(float));
	pool_run(pool, slices, word_part, &call);
	if (a->position)
		pool_run(pool, a->position->master.rows, position_row, &call);
	if (a->type)
		pool_run(pool, (width + TYPE_COLUMNS - 1) / TYPE_COLUMNS, type_columns, &call);
}
