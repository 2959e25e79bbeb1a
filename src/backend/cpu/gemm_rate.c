/* The rate of matrix products on this machine: the denominator of "share of the GEMM rate" in a run's report. */
#include "backend/cpu/state.h"

#include <stdlib.h>

#include "backend/cpu/onednn.h"
#include "backend/cpu/rate.h"
#include "backend/cpu/weights.h"
#include "base/memory.h"

/* A product of BERT-base's shape, (SLICES * 128, DEPTH) x (DEPTH, WIDTH): large enough to be representative, small enough to
 * finish at once. */
#define SLICES 16
#define DEPTH 768
#define WIDTH 768

struct measure {
	const struct product *product; /* oneDNN's, or, without it: */
	const struct packing *own;
	unsigned char *blocks; /* GEMM_ROWS_BYTES per worker */
	size_t element;
	char *x;
	void *packed;
	float *y; /* (128, WIDTH) per worker */
};

static void measure_slice(void *context, int64_t slice, int worker)
{
	const struct measure *measure = context;
	const char *x = measure->x + (size_t)slice * ROW_MULTIPLE * DEPTH * measure->element;
	float *y = measure->y + (int64_t)worker * ROW_MULTIPLE * WIDTH;
	if (measure->own)
		packing_multiply(measure->own, 0, 0, false, x, ROW_MULTIPLE, y, measure->blocks + worker * GEMM_ROWS_BYTES,
				 worker);
	else
		product_run(measure->product, false, x, measure->packed, y, worker);
}

double cpu_gemm_rate(struct backend *be)
{
	struct cpu_state *state = be->state;
	struct measure measure = {.element = dtype_bytes(be->dtype)};
	struct backend plain = *be;
	struct weight weight = {.use = WEIGHT_LINEAR, .master = {.dtype = DTYPE_F32, .rows = WIDTH, .columns = DEPTH}};
	plain.fp8 = false;
	if (state->dnnl)
		measure.product = onednn_product(
			state->dnnl,
			&(struct product_shape){.n = WIDTH, .k = DEPTH, .dtype = be->dtype, .k_stride = 1, .n_stride = DEPTH});
	size_t x_bytes = SLICES * ROW_MULTIPLE * DEPTH * measure.element;
	size_t packed_bytes = state->dnnl ? product_packed_bytes(measure.product) : cpu_weight_copy_bytes(&plain, &weight);
	size_t blocks_bytes = state->dnnl ? 0 : (size_t)pool_threads(be->pool) * GEMM_ROWS_BYTES;
	size_t y_bytes = (size_t)pool_threads(be->pool) * ROW_MULTIPLE * WIDTH * sizeof(float);
	struct arena arena;
	if (arena_create(&arena,
			 x_bytes + packed_bytes + blocks_bytes + y_bytes + DEPTH * WIDTH * sizeof(float) + 5 * ARENA_ALIGNMENT,
			 "measuring products") != OK)
		return 0;
	measure.x = arena_take(&arena, x_bytes);
	measure.packed = arena_take(&arena, packed_bytes);
	measure.blocks = arena_take(&arena, blocks_bytes);
	measure.y = arena_take(&arena, y_bytes);
	float *master = arena_take(&arena, DEPTH * WIDTH * sizeof(float));
	for (int64_t i = 0; i < DEPTH * WIDTH; i++)
		master[i] = (float)((i * 2654435761u >> 8) % 1000) * 1e-3f - 0.5f;
	/* Realistic magnitudes in x: some machines process denormals or zeros at a different speed. */
	for (int64_t i = 0; i < SLICES * ROW_MULTIPLE * DEPTH; i++) {
		float value = (float)((i * 40503u >> 4) % 1000) * 1e-3f - 0.5f;
		if (be->dtype == DTYPE_F32)
			((float *)measure.x)[i] = value;
		else
			((uint16_t *)measure.x)[i] = float_to_bf16(value);
	}
	if (state->dnnl) {
		product_pack(measure.product, master, measure.packed, 0);
	} else {
		struct replica replica = {.backend = &plain};
		weight.master.data = master;
		weight.copy = measure.packed;
		cpu_weights_refresh(&replica, &(struct weight *){&weight}, 1);
		measure.own = &weight_copy(&weight)->forward;
	}
	double rate = measured_rate(be->pool, SLICES, measure_slice, &measure, 2.0 * ROW_MULTIPLE * DEPTH * WIDTH);
	arena_release(&arena);
	return rate;
}
