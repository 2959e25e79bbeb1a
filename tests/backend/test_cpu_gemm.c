/* Products with packed weights against loops in double, at each instruction set level that has kernels of its own. */
#include <math.h>
#include "backend/cpu/gemm.h"
#include "backend/cpu/kernels.h"
#include "base/rng.h"
#include "each_isa.h"

struct shape {
	int64_t rows, k, n;
};

/* Below, at and above blocks of 32, groups of 64 columns, runs of 512 and parts of 1024 along k. */
static const struct shape shapes[] = {{1, 1, 1},     {32, 32, 32},    {33, 31, 65},   {128, 96, 160},
				      {7, 129, 64},  {40, 513, 33},   {64, 1100, 31}, {128, 768, 2},
				      {512, 64, 80}, {256, 2100, 66}, {384, 1024, 97}};
enum { SHAPE_COUNT = sizeof shapes / sizeof shapes[0] };

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

/* Checks that `finish` is called in order, each time when its group is complete. */
struct groups {
	int64_t next;
	int wrong;
};

static void finish(void *context, int64_t column, int64_t columns)
{
	struct groups *groups = context;
	groups->wrong += column != groups->next || columns > GEMM_GROUP;
	groups->next = column + columns;
}

static int check_shape(struct rng *rng, enum dtype dtype, struct shape s, bool accumulate, bool k_contiguous)
{
	const struct gemm_kernels *kernels = cpu_gemm_kernels(dtype);
	int64_t k_stride = k_contiguous ? 1 : s.n, n_stride = k_contiguous ? s.k : 1, y_row = s.n + GAP;
	int64_t k_padded = round_up(s.k, GEMM_BLOCK), n_padded = round_up(s.n, GEMM_BLOCK);
	int64_t y_rows = round_up(s.rows, GEMM_BLOCK);
	void *x_data;
	float *x = random_rows(rng, dtype, s.rows, s.k, &x_data);
	float *w = allocate(s.k * s.n, sizeof(float)), *y = allocate(y_rows * y_row, sizeof(float));
	float *start = allocate(y_rows * y_row, sizeof(float));
	for (int64_t i = 0; i < s.k * s.n; i++)
		w[i] = number(rng);
	for (int64_t i = 0; i < y_rows * y_row; i++)
		start[i] = y[i] = number(rng);
	void *packed = aligned_alloc(64, (size_t)(k_padded * n_padded) * dtype_bytes(dtype));
	void *blocks = aligned_alloc(64, GEMM_ROWS_BYTES);
	if (!packed || !blocks)
		abort();
	memset(packed, 0xff, (size_t)(k_padded * n_padded) * dtype_bytes(dtype)); /* NaN */
	memset(blocks, 0xff, GEMM_ROWS_BYTES);
	cpu_kernels()->pack(&(struct pack_piece){.k = s.k,
						 .n = s.n,
						 .k_stride = k_stride,
						 .n_stride = n_stride,
						 .k_padded = k_padded,
						 .panel = 16,
						 .panel_stride = 16 * k_padded,
						 .pairs = dtype == DTYPE_BF16,
						 .master = w,
						 .packed = packed});
	struct groups groups = {0};
	gemm_rows(&(struct row_product){.kernels = kernels,
					.x = x_data,
					.x_row = s.k + GAP,
					.rows = s.rows,
					.k = s.k,
					.n = s.n,
					.packed = packed,
					.blocks = blocks,
					.accumulate = accumulate,
					.y = y,
					.y_row = y_row,
					.y_group = GEMM_GROUP,
					.finish = finish,
					.context = &groups});

	int wrong = groups.wrong + (groups.next != s.n);
	for (int64_t r = 0; r < s.rows; r++) {
		for (int64_t j = 0; j < y_row; j++) {
			double sum = j >= s.n || accumulate ? (double)start[r * y_row + j] : 0, size = fabs(sum);
			for (int64_t i = 0; i < s.k && j < s.n; i++) {
				double term =
					(double)x[r * (s.k + GAP) + i] * (double)as_type(w[i * k_stride + j * n_stride], dtype);
				sum += term;
				size += fabs(term);
			}
			wrong += !(fabs((double)y[r * y_row + j] - sum) <= 1e-6 * size);
		}
	}
	if (wrong)
		fprintf(stderr, "%s %s rows=%ld k=%ld n=%ld accumulate=%d k_contiguous=%d: %d wrong\n", cpu_level()->name,
			dtype_names[dtype], (long)s.rows, (long)s.k, (long)s.n, accumulate, k_contiguous, wrong);
	if (x_data != x)
		free(x_data);
	free(x);
	free(w);
	free(y);
	free(start);
	free(packed);
	free(blocks);
	return wrong;
}

static int check_all_shapes(void)
{
	enum cpu_isa isa;
	if (cpu_isa_detect(&isa) != OK)
		return LACKING;
	struct rng rng = rng_start(11, RNG_TEST, 0);
	int wrong = 0, checked = 0;
	for (int type = 0; type < 2; type++) {
		enum dtype dtype = type ? DTYPE_BF16 : DTYPE_F32;
		if (!cpu_gemm_kernels(dtype)->multiply_panel)
			continue;
		for (int i = 0; i < SHAPE_COUNT; i++) {
			struct shape s = shapes[i];
			int64_t most = gemm_rows_best(cpu_gemm_kernels(dtype), s.k);
			s.rows = s.rows < most ? s.rows : most;
			for (int bits = 0; bits < 4; bits++, checked++)
				wrong += check_shape(&rng, dtype, s, bits & 1, bits & 2);
		}
	}
	return checked == 0 ? LACKING : wrong != 0;
}

/* Of x86-64's levels, only the last has products of its own. */
static void each_level_equals_loops(void **state)
{
	int passed = 0;
	for (int isa = 0; isa < CPU_ISA_COUNT; isa++) {
		int result = in_child(cpu_levels[isa].name, check_all_shapes);
		if (result != LACKING)
			assert_int_equal(result, 0);
		passed += result == 0;
	}
	if (passed == 0)
		skip();
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(each_level_equals_loops)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
