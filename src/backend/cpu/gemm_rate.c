/* The rate of matrix products on this machine: the denominator of "share of the GEMM rate" in a run's report. */
#include "backend/cpu/state.h"

#include <stdlib.h>

#include "backend/cpu/onednn.h"
#include "backend/cpu/rate.h"
#include "base/memory.h"

/* A product of BERT-base's shape, (SLICES * 128, DEPTH) x (DEPTH, WIDTH): large enough to be representative, small enough to
 * finish at once. */
#define SLICES 16
#define DEPTH 768
#define WIDTH 768

struct measure {
	const struct product *product;
	size_t element;
	char *x;
	void *packed;
	float *y; /* (128, WIDTH) per worker */
};

static void measure_slice(void *context, int64_t slice, int worker)
{
	const struct measure *measure = context;
	const char *x = measure->x + (size_t)slice * ROW_MULTIPLE * DEPTH * measure->element;
	product_run(measure->product, false, x, measure->packed, measure->y + (int64_t)worker * ROW_MULTIPLE * WIDTH, worker);
}

double cpu_gemm_rate(struct backend *be)
{
	struct cpu_state *state = be->state;
	struct measure measure = {.element = dtype_bytes(be->dtype)};
	measure.product = onednn_product(
		state->dnnl,
		&(struct product_shape){.n = WIDTH, .k = DEPTH, .dtype = be->dtype, .k_stride = 1, .n_stride = DEPTH});
	size_t x_bytes = SLICES * ROW_MULTIPLE * DEPTH * measure.element;
	size_t packed_bytes = product_packed_bytes(measure.product);
	size_t y_bytes = (size_t)pool_threads(be->pool) * ROW_MULTIPLE * WIDTH * sizeof(float);
	struct arena arena;
	if (arena_create(&arena, x_bytes + packed_bytes + y_bytes + DEPTH * WIDTH * sizeof(float) + 4 * ARENA_ALIGNMENT,
			 "measuring products") != OK)
		return 0;
	measure.x = arena_take(&arena, x_bytes);
	measure.packed = arena_take(&arena, packed_bytes);
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
	product_pack(measure.product, master, measure.packed, 0);
	double rate = measured_rate(be->pool, SLICES, measure_slice, &measure, 2.0 * ROW_MULTIPLE * DEPTH * WIDTH);
	arena_release(&arena);
	return rate;
}
