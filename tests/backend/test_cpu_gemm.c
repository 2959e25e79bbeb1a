/* Products with packed weights against double loops, at each instruction set level that this machine has. */
#include <math.h>
#include "backend/cpu/gemm.h"
#include "base/rng.h"
#include "each_isa.h"

struct shape {
	int64_t rows, k, n;
};

/* Below, at and above blocks of 32 and runs of 128 and 512 along k. */
static const struct shape shapes[] = {{1, 1, 1},    {32, 32, 32},  {33, 31, 65},   {128, 96, 160},
                                      {7, 129, 64}, {40, 513, 33}, {64, 1100, 31}, {128, 768, 2}};
enum { SHAPE_COUNT = sizeof(shapes) / sizeof(shapes[0]) };

/* Elements beyond a row, which must be neither read nor written. */
enum { GAP = 5 };

static void *allocate(int64_t count, size_t element)
{
	void *memory = malloc((size_t)count * element);
	if (!memory)
		abort();
	return memory;
}

static float as_type(float x, enum dtype dtype)
{
	return dtype == DTYPE_BF16 ? bf16_to_float(float_to_bf16(x)) : x;
}

static float number(struct rng *rng)
{
	return (float)(2 * rng_double(rng) - 1);
}

/* Rows of x, rounded to the type, with NaN in the gaps; `out` holds what the kernel reads. */
static float *random_rows(struct rng *rng, enum dtype dtype, int64_t rows, int64_t columns, void **out)
{
	int64_t stride = columns + GAP;
	float *x = allocate(rows * stride, sizeof(float));
	uint16_t *half = allocate(rows * stride, sizeof(uint16_t));
	for (int64_t i = 0; i < rows * stride; i++) {
		x[i] = i % stride < columns ? as_type(number(rng), dtype) : NAN;
		half[i] = float_to_bf16(x[i]);
	}
	*out = x;
	if (dtype == DTYPE_BF16)
		*out = half;
	else
		free(half);
	return x;
}

static int check_shape(struct rng *rng, enum dtype dtype, struct shape s, bool accumulate, bool k_contiguous)
{
	const struct gemm_kernels *kernels = cpu_gemm_kernels(dtype);
	int64_t k_stride = k_contiguous ? 1 : s.n, n_stride = k_contiguous ? s.k : 1, y_row = s.n + GAP;
	void *x_data;
	float *x = random_rows(rng, dtype, s.rows, s.k, &x_data);
	float *w = allocate(s.k * s.n, sizeof(float)), *y = allocate(s.rows * y_row, sizeof(float));
	float *start = allocate(s.rows * y_row, sizeof(float));
	for (int64_t i = 0; i < s.k * s.n; i++)
		w[i] = number(rng);
	for (int64_t i = 0; i < s.rows * y_row; i++)
		start[i] = y[i] = number(rng);
	size_t bytes = gemm_weight_bytes(kernels, s.k, s.n);
	void *packed = aligned_alloc(64, (bytes + 63) / 64 * 64);
	if (!packed)
		abort();
	memset(packed, 0xff, bytes); /* NaN */
	gemm_weight_pack(kernels, w, s.k, s.n, k_stride, n_stride, packed);
	gemm_rows(kernels, x_data, s.k + GAP, s.rows, s.k, packed, s.n, accumulate, y, y_row);

	int wrong = 0;
	for (int64_t r = 0; r < s.rows; r++) {
		for (int64_t j = 0; j < y_row; j++) {
			double sum = j >= s.n || accumulate ? (double)start[r * y_row + j] : 0,
			       size = fabs(sum);
			for (int64_t i = 0; i < s.k && j < s.n; i++) {
				double term =
				        (double)x[r * (s.k + GAP) + i] *
				        (double)as_type(w[i * k_stride + j * n_stride], kernels->source);
				sum += term;
				size += fabs(term);
			}
			wrong += !(fabs((double)y[r * y_row + j] - sum) <= 1e-6 * size);
		}
	}
	if (wrong)
		fprintf(stderr, "%s %s rows=%ld k=%ld n=%ld accumulate=%d k_contiguous=%d: %d wrong\n",
		        cpu_isa_names[cpu_isa()], dtype == DTYPE_F32 ? "f32" : "bf16", (long)s.rows,
		        (long)s.k, (long)s.n, accumulate, k_contiguous, wrong);
	if (x_data != x)
		free(x_data);
	free(x);
	free(w);
	free(y);
	free(start);
	free(packed);
	return wrong;
}

static int check_all_shapes(void)
{
	enum cpu_isa isa;
	if (cpu_isa_detect(&isa) != OK)
		return LACKING;
	struct rng rng = rng_start(11, RNG_TEST, 0);
	int wrong = 0;
	for (int i = 0; i < SHAPE_COUNT; i++)
		for (int bits = 0; bits < 8; bits++)
			wrong += check_shape(&rng, bits & 1 ? DTYPE_BF16 : DTYPE_F32, shapes[i], bits & 2,
			                     bits & 4);
	return wrong != 0;
}

static void avx2_equals_loops(void **state)
{
	(void)state;
	check_level(CPU_ISA_AVX2, check_all_shapes);
}

static void avx512_equals_loops(void **state)
{
	(void)state;
	check_level(CPU_ISA_AVX512, check_all_shapes);
}

static void avx512_bf16_equals_loops(void **state)
{
	(void)state;
	check_level(CPU_ISA_AVX512_BF16, check_all_shapes);
}

static void amx_equals_loops(void **state)
{
	(void)state;
	check_level(CPU_ISA_AMX, check_all_shapes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(avx2_equals_loops),
	        cmocka_unit_test(avx512_equals_loops),
	        cmocka_unit_test(avx512_bf16_equals_loops),
	        cmocka_unit_test(amx_equals_loops),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
