/* The rate of inference's products on this machine: many rows and a weight that stays in the caches, on all threads. */
#include "backend/cpu/inference.h"

#include <stdlib.h>
#include <string.h>

#include "backend/cpu/rate.h"

enum { TASKS = 16, ROWS = 120, WIDTH = 768 };

struct measure {
	const struct packed_weight *weight;
	const char *x;
	int64_t row_bytes;
	float *y; /* (ROWS, WIDTH) per worker */
};

static void measure_task(void *context, int64_t index, int worker)
{
	(void)index;
	const struct measure *measure = context;
	int64_t width = inference_kernels()->panel;
	struct product_rows x = {.x = measure->x, .row_bytes = measure->row_bytes, .rows = ROWS};
	float *y = measure->y + (int64_t)worker * ROWS * WIDTH;
	for (int64_t panel = 0; panel < WIDTH / width; panel++)
		inference_multiply(measure->weight, &x, 0, ROWS, panel, y + panel * width, WIDTH);
}

/* Numbers of realistic magnitude: some machines process zeros and denormals at a different speed. */
static float made_up(int64_t i)
{
	return (float)((uint64_t)i * 40503u >> 4 & 1023) * 1e-3f - 0.5f;
}

double inference_gemm_rate(struct backend *be)
{
	struct weight weight = {.use = WEIGHT_LINEAR, .master = {.rows = WIDTH, .columns = WIDTH}};
	size_t element = dtype_bytes(be->dtype), y_bytes = (size_t)pool_threads(be->pool) * ROWS * WIDTH * sizeof(float);
	int64_t int8_row = int8_row_bytes(inference_kernels(), WIDTH);
	size_t weight_bytes = inference_weight_bytes(be, &weight);
	struct arena arena;
	if (arena_create(&arena,
			 weight_bytes + WIDTH * WIDTH * sizeof(float) + ROWS * WIDTH * element + (size_t)(ROWS * int8_row) +
				 y_bytes + 8 * ARENA_ALIGNMENT,
			 "measuring products") != OK)
		return 0;
	float *master = arena_take(&arena, WIDTH * WIDTH * sizeof(float));
	char *x = arena_take(&arena, ROWS * WIDTH * element), *rows = arena_take(&arena, (size_t)(ROWS * int8_row));
	struct measure measure = {.x = x, .row_bytes = WIDTH * (int64_t)element};
	measure.y = arena_take(&arena, y_bytes);
	weight.copy = arena_take(&arena, weight_bytes);
	for (int64_t i = 0; i < WIDTH * WIDTH; i++)
		master[i] = made_up(i * 2654435761);
	for (int64_t i = 0; i < ROWS * WIDTH; i++) {
		if (be->dtype == DTYPE_F32)
			((float *)(void *)x)[i] = made_up(i);
		else
			((uint16_t *)(void *)x)[i] = float_to_bf16(made_up(i));
	}
	inference_weight_pack(be, &weight, &(struct weight_rows){.count = WIDTH, .dtype = DTYPE_F32, .data = master});
	measure.weight = packed(&weight);
	if (be->int8) {
		inference_kernels()->quantize(x, be->dtype, ROWS, WIDTH, rows, int8_row);
		measure.x = rows;
		measure.row_bytes = int8_row;
	}
	double rate = measured_rate(be->pool, TASKS, measure_task, &measure, 2.0 * ROWS * WIDTH * WIDTH);
	arena_release(&arena);
	return rate;
}
