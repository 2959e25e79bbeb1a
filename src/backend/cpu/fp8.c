/* Rounds operands to simulated FP8 on all cores, and sums the columns of rounded gradients. */
#include "backend/cpu/fp8.h"

#include <string.h>
#include "backend/fp8.h"

/* Minimum number of elements per task. */
#define PART_ELEMENTS (1 << 15)
#define PARTS 4096 /* maximum number of tasks: tasks grow beyond it */

size_t cpu_fp8_operand_bytes(const struct backend *be, const struct shape_limits *limits)
{
	if (!be->fp8)
		return 0;
	int64_t rows = limits->batch.tokens, columns = 3 * (int64_t)widest_norm(limits);
	columns = columns > limits->intermediate ? columns : limits->intermediate;
	return (size_t)(round_up(rows, ROW_MULTIPLE) * columns) * dtype_bytes(be->dtype);
}

struct rounding {
	enum dtype format, dtype; /* format: E4M3 or E5M2; dtype of from and to: BF16 or F32 */
	const void *from;
	void *to;
	int64_t count, part;
	struct fp8_scale scale;
	uint32_t largest[PARTS];
};

static void find_largest(void *context, int64_t index, int worker)
{
	(void)worker;
	struct rounding *call = context;
	int64_t first = index * call->part, end = first + call->part < call->count ? first + call->part : call->count;
	uint32_t largest = 0;
	if (call->dtype == DTYPE_BF16) {
		const uint16_t *x = call->from;
		uint16_t most = 0;
		for (int64_t i = first; i < end; i++) {
			uint16_t magnitude = x[i] & 0x7fffu;
			most = magnitude > most ? magnitude : most;
		}
		largest = (uint32_t)most << 16;
	} else {
		const float *x = call->from;
		for (int64_t i = first; i < end; i++) {
			uint32_t magnitude = fp8_bits_of(x[i]) & 0x7fffffffu;
			largest = magnitude > largest ? magnitude : largest;
		}
	}
	call->largest[index] = largest;
}

/* Inlined for each format, so that the loops have no branches and can be vectorized. */
static inline __attribute__((always_inline)) void round_format(const struct rounding *call, enum dtype format, int64_t first,
							       int64_t end)
{
	float scale = call->scale.scale, inverse = call->scale.inverse;
	if (call->dtype == DTYPE_BF16) {
		const uint16_t *from = call->from;
		uint16_t *to = call->to;
		/* No rounding needed: the result has at most three fraction bits. */
		for (int64_t i = first; i < end; i++)
			to[i] = (uint16_t)(fp8_bits_of(fp8_rounded(format, bf16_to_float(from[i]) * scale) * inverse) >> 16);
	} else {
		const float *from = call->from;
		float *to = call->to;
		for (int64_t i = first; i < end; i++)
			to[i] = fp8_rounded(format, from[i] * scale) * inverse;
	}
}

static void round_part(void *context, int64_t index, int worker)
{
	(void)worker;
	const struct rounding *call = context;
	int64_t first = index * call->part, end = first + call->part < call->count ? first + call->part : call->count;
	if (call->format == DTYPE_E4M3)
		round_format(call, DTYPE_E4M3, first, end);
	else
		round_format(call, DTYPE_E5M2, first, end);
}

static void round_all(struct replica *r, struct rounding *call)
{
	struct pool *pool = r->backend->pool;
	call->part = (call->count + PARTS - 1) / PARTS;
	call->part = call->part > PART_ELEMENTS ? call->part : PART_ELEMENTS;
	int64_t parts = (call->count + call->part - 1) / call->part;
	pool_run(pool, parts, find_largest, call);
	uint32_t largest = 0;
	for (int64_t i = 0; i < parts; i++)
		largest = call->largest[i] > largest ? call->largest[i] : largest;
	call->scale = fp8_scale_of(call->format, largest);
	pool_run(pool, parts, round_part, call);
}

struct tensor cpu_operand(struct replica *r, const struct weight *weight, enum dtype format, const struct tensor *x)
{
	struct tensor out = *x;
	if (!weight_in_fp8(r->backend, weight))
		return out;
	const struct cpu_scratch *scratch = cpu_scratch(r);
	BUG_IF((size_t)(round_up(x->rows, ROW_MULTIPLE) * x->columns) * dtype_bytes(x->dtype) > scratch->operand_bytes);
	out.data = scratch->operands + (format == DTYPE_E5M2 ? scratch->operand_bytes : 0);
	struct rounding call = {
		.format = format, .dtype = x->dtype, .from = x->data, .to = out.data, .count = x->rows * x->columns};
	round_all(r, &call);
	return out;
}

void cpu_fp8_round_master(struct replica *r, const struct tensor *master, float *out)
{
	struct rounding call = {.format = DTYPE_E4M3,
				.dtype = DTYPE_F32,
				.from = master->data,
				.to = out,
				.count = master->rows * master->columns};
	round_all(r, &call);
}

void cpu_fp8_column_sums(struct replica *r, const struct tensor *x, float *gradient, bool overwrite)
{
	const struct cpu_scratch *scratch = cpu_scratch(r);
	int64_t slices = slice_count(x->rows);
	BUG_IF(x->columns > scratch->part_floats || slices > scratch->slices);
	for (int64_t slice = 0; slice < slices; slice++) {
		float *sums = scratch->parts + slice * x->columns;
		memset(sums, 0, (size_t)x->columns * sizeof *sums);
		for (int64_t row = 0; row < slice_rows(x->rows, slice); row++)
			cpu_state(r)->kernels->add_row(sums, tensor_at(x, slice * ROW_MULTIPLE + row, 0), x->columns, x->dtype);
	}
	cpu_add_parts(r, scratch->parts, slices, x->columns, x->columns, gradient, overwrite);
}
