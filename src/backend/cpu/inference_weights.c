/* Weights packed for inference: panels for products, rows for lookups, vectors as they are. */
#include <string.h>

#include "backend/cpu/inference.h"
#include "backend/cpu/isa.h"

const struct inference_kernels *inference_kernels(void)
{
	return cpu_level()->inference;
}

static bool is_multiplied(const struct weight *weight)
{
	return weight->use != WEIGHT_VECTOR && weight->use != WEIGHT_TABLE;
}

static bool has_rows(const struct weight *weight)
{
	return weight->use == WEIGHT_VECTOR || weight->use == WEIGHT_TABLE || weight->use == WEIGHT_TIED;
}

static enum dtype rows_type(const struct backend *be, const struct weight *weight)
{
	return weight->use == WEIGHT_VECTOR ? DTYPE_F32 : be->dtype;
}

/* Lays out the pieces after the struct at `base` (NULL: only measures); returns the total in bytes. */
static size_t describe(struct packed_weight *out, struct backend *be, const struct weight *weight, void *base)
{
	const struct inference_kernels *kernels = inference_kernels();
	struct arena arena = {.base = base, .capacity = SIZE_MAX / 4};
	arena_take(&arena, sizeof *out);
	*out = (struct packed_weight){.dtype = weight_in_int8(be, weight) ? DTYPE_S8 : be->dtype,
				      .outputs = weight->master.rows,
				      .inputs = weight->master.columns};
	if (is_multiplied(weight)) {
		int64_t panels = (out->outputs + kernels->panel - 1) / kernels->panel;
		out->panel_bytes = panel_bytes(kernels, out->dtype, out->inputs);
		out->panels = arena_take(&arena, (size_t)(panels * out->panel_bytes));
		if (out->dtype == DTYPE_S8) {
			out->scales = arena_take(&arena, (size_t)(panels * kernels->panel) * sizeof(float));
			out->sums = arena_take(&arena, (size_t)(panels * kernels->panel) * sizeof(int32_t));
		}
	}
	if (has_rows(weight))
		out->rows = arena_take(&arena, (size_t)(out->outputs * out->inputs) * dtype_bytes(rows_type(be, weight)));
	return arena.used;
}

size_t inference_weight_bytes(struct backend *be, const struct weight *weight)
{
	struct packed_weight measured;
	struct weight in_int8 = *weight;
	in_int8.unquantized = false;
	/* A weight excluded from int8 may still be packed in int8 as a trial. For a narrow weight that takes more memory,
	 * because its rows are padded. */
	size_t bytes = describe(&measured, be, weight, NULL), other = describe(&measured, be, &in_int8, NULL);
	return bytes > other ? bytes : other;
}

struct pack_call {
	const struct packed_weight *weight;
	const struct weight_rows *rows;
	enum dtype to; /* type of `rows` */
	int64_t panel; /* outputs per panel */
	int64_t first; /* first panel */
};

static const char *source_row(const struct pack_call *call, int64_t row)
{
	return (const char *)call->rows->data +
	       (size_t)((row - call->rows->first) * call->weight->inputs) * dtype_bytes(call->rows->dtype);
}

static void pack_panel(void *context, int64_t index, int worker)
{
	(void)worker;
	const struct pack_call *call = context;
	const struct packed_weight *w = call->weight;
	int64_t panel = call->first + index, begin = panel * call->panel, end = begin + call->panel;
	int64_t first = begin > call->rows->first ? begin : call->rows->first, last = call->rows->first + call->rows->count;
	last = last < end ? last : end;
	inference_kernels()->pack(&(struct panel_pack){
		.first = first - begin,
		.count = last - first,
		.inputs = w->inputs,
		.from = call->rows->dtype,
		.rows = source_row(call, first),
		.row_scales = call->rows->scales ? call->rows->scales + (first - call->rows->first) : NULL,
		.type = w->dtype,
		.panel = w->panels + panel * w->panel_bytes,
		.scales = w->dtype == DTYPE_S8 ? w->scales + begin : NULL,
		.sums = w->dtype == DTYPE_S8 ? w->sums + begin : NULL,
	});
}

static float number_at(const char *row, enum dtype dtype, float scale, int64_t i)
{
	switch (dtype) {
	case DTYPE_F32: return ((const float *)(const void *)row)[i];
	case DTYPE_BF16: return bf16_to_float(((const uint16_t *)(const void *)row)[i]);
	case DTYPE_F16: return f16_to_float(((const uint16_t *)(const void *)row)[i]);
	default: return (float)((const int8_t *)row)[i] * scale;
	}
}

/* Rows per task. */
enum { COPY_ROWS = 64 };

static void copy_rows(void *context, int64_t index, int worker)
{
	(void)worker;
	const struct pack_call *call = context;
	int64_t columns = call->weight->inputs, begin = index * COPY_ROWS, end = begin + COPY_ROWS;
	end = end < call->rows->count ? end : call->rows->count;
	for (int64_t i = begin; i < end; i++) {
		int64_t at = (call->rows->first + i) * columns;
		const char *from = source_row(call, call->rows->first + i);
		float scale = call->rows->scales ? call->rows->scales[i] : 1;
		if (call->to == call->rows->dtype)
			memcpy((char *)call->weight->rows + (size_t)at * dtype_bytes(call->to), from,
			       (size_t)columns * dtype_bytes(call->to));
		else if (call->to == DTYPE_F32)
			for (int64_t c = 0; c < columns; c++)
				((float *)call->weight->rows)[at + c] = number_at(from, call->rows->dtype, scale, c);
		else if (call->rows->dtype == DTYPE_F32) /* the usual case, without a type switch for each number */
			for (int64_t c = 0; c < columns; c++)
				((uint16_t *)call->weight->rows)[at + c] = float_to_bf16(((const float *)(const void *)from)[c]);
		else
			for (int64_t c = 0; c < columns; c++)
				((uint16_t *)call->weight->rows)[at + c] =
					float_to_bf16(number_at(from, call->rows->dtype, scale, c));
	}
}

void inference_weight_pack(struct backend *be, struct weight *weight, const struct weight_rows *rows)
{
	struct packed_weight *w = weight->copy;
	BUG_IF(rows->first < 0 || rows->count < 0 || rows->first + rows->count > weight->master.rows);
	describe(w, be, weight, weight->copy);
	struct pack_call call = {.weight = w, .rows = rows, .to = rows_type(be, weight), .panel = inference_kernels()->panel};
	call.first = rows->first / call.panel;
	if (rows->count > 0 && is_multiplied(weight))
		pool_run(be->pool, (rows->first + rows->count - 1) / call.panel - call.first + 1, pack_panel, &call);
	if (has_rows(weight))
		pool_run(be->pool, (rows->count + COPY_ROWS - 1) / COPY_ROWS, copy_rows, &call);
}

void inference_weights_refresh(struct replica *replica, struct weight *const *weights, int64_t count)
{
	for (int64_t i = 0; i < count; i++)
		inference_weight_pack(replica->backend, weights[i],
				      &(struct weight_rows){.count = weights[i]->master.rows,
							    .dtype = DTYPE_F32,
							    .data = weights[i]->master.data});
}
