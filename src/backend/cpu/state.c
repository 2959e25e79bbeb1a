/* Helpers for several operations of the CPU back end: dropout of rows, sums of parts in order, zeroing. */
#include "backend/cpu/state.h"

#include <string.h>
#include "backend/dropout.h"

struct dropout_rows cpu_dropout(const struct replica *r, const struct dropout *dropout, const struct batch *batch,
				int64_t first_row, int worker)
{
	uint32_t threshold = dropout_threshold(dropout->p);
	if (threshold == 0)
		return (struct dropout_rows){0};
	const struct cpu_scratch *scratch = cpu_scratch(r);
	return (struct dropout_rows){.threshold = threshold,
				     .scale = (float)dropout_scale(dropout->p),
				     .site = dropout->site,
				     .seed = r->scalars->seed,
				     .positions = batch->positions + first_row,
				     .samples = batch->token_samples + first_row,
				     .bits = scratch->bits + worker * scratch->bits_bytes};
}

/* Columns per task when partial sums are added. */
#define PART_COLUMNS 256

struct parts_call {
	const float *parts;
	int64_t slices, stride, columns;
	float *out;
	bool overwrite;
};

static void add_parts(void *context, int64_t block, int worker)
{
	(void)worker;
	const struct parts_call *call = context;
	int64_t first = block * PART_COLUMNS, columns = call->columns - first;
	columns = columns < PART_COLUMNS ? columns : PART_COLUMNS;
	float sum[PART_COLUMNS] = {0}, *out = call->out + first;
	for (int64_t slice = 0; slice < call->slices; slice++) {
		const float *part = call->parts + slice * call->stride + first;
		for (int64_t c = 0; c < columns; c++)
			sum[c] += part[c];
	}
	for (int64_t c = 0; c < columns; c++)
		out[c] = (call->overwrite ? 0 : out[c]) + sum[c];
}

void cpu_add_parts(struct replica *r, const float *parts, int64_t slices, int64_t stride, int64_t columns, float *out,
		   bool overwrite)
{
	struct parts_call call = {parts, slices, stride, columns, out, overwrite};
	pool_run(r->backend->pool, (columns + PART_COLUMNS - 1) / PART_COLUMNS, add_parts, &call);
}

#define ZERO_BYTES ((size_t)1 << 20)

struct zero_call {
	char *memory;
	size_t bytes;
};

static void zero_part(void *context, int64_t index, int worker)
{
	(void)worker;
	const struct zero_call *call = context;
	size_t first = (size_t)index * ZERO_BYTES, left = call->bytes - first;
	memset(call->memory + first, 0, left < ZERO_BYTES ? left : ZERO_BYTES);
}

void cpu_zero(struct replica *r, void *memory, size_t bytes)
{
	struct zero_call call = {memory, bytes};
	pool_run(r->backend->pool, (int64_t)((bytes + ZERO_BYTES - 1) / ZERO_BYTES), zero_part, &call);
}
