/* One vector per sequence, and its gradient distributed over the sequence's rows: one task per sequence. */
#include <string.h>
#include "backend/cpu/state.h"

struct pooling_call {
	struct replica *r;
	const struct batch *batch;
	bool first;
	const struct tensor *rows, *vectors;
	bool scaled; /* the loss scale has been applied */
};

/* The number of the sequence's rows that its vector is computed from. */
static int32_t pooled_rows(const struct pooling_call *call, int32_t count)
{
	return call->first && count > 1 ? 1 : count;
}

static void pool_sequence(void *context, int64_t s, int worker)
{
	const struct pooling_call *call = context;
	int32_t begin = call->batch->starts[s], pooled = pooled_rows(call, call->batch->starts[s + 1] - begin);
	int64_t columns = call->vectors->columns;
	const struct cpu_scratch *scratch = cpu_scratch(call->r);
	bool rounds = call->vectors->dtype == DTYPE_BF16;
	float *sum = rounds ? scratch->rows + worker * scratch->row_floats : tensor_at(call->vectors, s, 0);
	memset(sum, 0, (size_t)columns * sizeof *sum);
	for (int32_t t = 0; t < pooled; t++)
		cpu_state(call->r)->kernels->add_row(sum, tensor_at(call->rows, begin + t, 0), columns, call->rows->dtype);
	for (int64_t j = 0; j < columns && pooled > 1; j++)
		sum[j] /= (float)pooled;
	for (int64_t j = 0; j < columns && rounds; j++)
		((uint16_t *)tensor_at(call->vectors, s, 0))[j] = float_to_bf16(sum[j]);
}

void cpu_pooling_fwd(struct replica *r, const struct pooling_fwd *a)
{
	struct pooling_call call = {r, a->batch, a->first, &a->x, a->rows.data ? &a->rows : &a->y, false};
	pool_run(r->backend->pool, a->batch->sequence_count, pool_sequence, &call);
}

/* All rows that a vector was computed from get the same gradient. */
static void spread_vector(void *context, int64_t s, int worker)
{
	(void)worker;
	const struct pooling_call *call = context;
	int32_t begin = call->batch->starts[s], count = call->batch->starts[s + 1] - begin, pooled = pooled_rows(call, count);
	const void *vector = tensor_at(call->vectors, s, 0);
	float scale = call->scaled ? 1 : (float)call->r->scalars->loss_scale;
	int64_t columns = call->rows->columns;
	size_t bytes = (size_t)columns * dtype_bytes(call->rows->dtype);
	if (count == 0)
		return;
	void *row = tensor_at(call->rows, begin, 0);
	for (int64_t j = 0; j < columns; j++) {
		bool rounded = call->vectors->dtype == DTYPE_BF16;
		float value = rounded ? bf16_to_float(((const uint16_t *)vector)[j]) : ((const float *)vector)[j];
		if (call->rows->dtype == DTYPE_BF16)
			((uint16_t *)row)[j] = float_to_bf16(value * scale / (float)pooled);
		else
			((float *)row)[j] = value * scale / (float)pooled;
	}
	for (int32_t t = 1; t < pooled; t++)
		memcpy(tensor_at(call->rows, begin + t, 0), row, bytes);
	if (pooled < count)
		memset(tensor_at(call->rows, begin + pooled, 0), 0, (size_t)(count - pooled) * bytes);
}

void cpu_pooling_bwd(struct replica *r, const struct pooling_bwd *a)
{
	struct pooling_call call = {r, a->batch, a->first, &a->dx, a->drows.data ? &a->drows : &a->dy, a->drows.data};
	pool_run(r->backend->pool, a->batch->sequence_count, spread_vector, &call);
}
