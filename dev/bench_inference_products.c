/* Inference's products with one panel of weights, from the caches: operations per second on one core, by number of rows
 * and type.
 *
 *   make build/dev/bench_inference_products && build/dev/bench_inference_products [inputs]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "backend/cpu/inference.h"
#include "backend/cpu/isa.h"

static double seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int main(int argc, char **argv)
{
	int64_t inputs = argc > 1 ? atol(argv[1]) : 768;
	const struct inference_kernels *k = inference_kernels();
	static const enum dtype types[] = {DTYPE_F32, DTYPE_BF16, DTYPE_S8};
	static const int64_t heights[] = {1, 4, 8, 10, 12, 20, 24, 36, 120};
	printf("%s, %lld inputs: GOP/s of one core\nrows", cpu_isa_names[cpu_isa()], (long long)inputs);
	for (size_t i = 0; i < sizeof(heights) / sizeof(*heights); i++)
		printf(" %7lld", (long long)heights[i]);
	printf("\n");
	for (int t = 0; t < 3; t++) {
		void (*multiply)(const struct inference_product *a) = t == 0   ? k->multiply_f32
								      : t == 1 ? k->multiply_bf16
									       : k->multiply_s8;
		if (!multiply)
			continue;
		int64_t panel = panel_bytes(k, types[t], inputs);
		int64_t row = types[t] == DTYPE_S8 ? int8_row_bytes(k, inputs) : inputs * (int64_t)dtype_bytes(types[t]);
		char *x = aligned_alloc(256, (size_t)round_up(120 * row + 4096, 256)),
		     *w = aligned_alloc(256, (size_t)round_up(panel * 2, 256));
		float *y = aligned_alloc(256, 120 * PANEL_MOST * sizeof(float)), scales[PANEL_MOST] = {0};
		int32_t sums[PANEL_MOST] = {0};
		memset(x, 0, (size_t)(120 * row + 4096));
		memset(w, 0, (size_t)(2 * panel));
		printf("%-4s", dtype_names[types[t]]);
		for (size_t i = 0; i < sizeof(heights) / sizeof(*heights); i++) {
			struct inference_product a = {.rows = heights[i],
						      .inputs = inputs,
						      .x = x + (types[t] == DTYPE_S8 ? INT8_ROW_HEADER : 0),
						      .x_row = row,
						      .panel = w,
						      .next = w + panel,
						      .scales = scales,
						      .sums = sums,
						      .y = y,
						      .y_row = k->panel};
			double best = 0, work = 2.0 * (double)(heights[i] * inputs * k->panel);
			int64_t calls = (int64_t)(2e8 / work) + 1;
			for (int round = 0; round < 15; round++) {
				double started = seconds();
				for (int64_t c = 0; c < calls; c++)
					multiply(&a);
				double rate = work * (double)calls / (seconds() - started);
				best = rate > best ? rate : best;
			}
			printf(" %7.1f", best * 1e-9);
		}
		printf("\n");
		free(x);
		free(w);
		free(y);
	}
	return 0;
}
