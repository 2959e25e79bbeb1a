/* Inference's products and attention with AMX's tiles, whose instructions are emulated, against those with VNNI and
 * vdpbf16ps: the same sums in int8, the same numbers up to rounding in bf16, and nothing touched outside the operands. Needs
 * a processor with AVX-512 VNNI and BF16. */
#include <immintrin.h>
#include <math.h>
#include "amx_emulation.h"
#include "test.h"
#include "backend/cpu/isa.h"
#include "base/rng.h"

#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c,bmi2,avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512vnni,avx512bf16")
#undef _tile_loadconfig
#undef _tile_release
#undef _tile_zero
#undef _tile_loadd
#undef _tile_stored
#undef _tile_dpbusd
#undef _tile_dpbf16ps
#define _tile_loadconfig(config) emulated_loadconfig(config)
#define _tile_release() emulated_release()
#define _tile_zero(t) emulated_zero(t)
#define _tile_loadd(t, base, stride) emulated_loadd(t, base, stride)
#define _tile_stored(t, base, stride) emulated_stored(t, base, stride)
#define _tile_dpbusd(out, a, b) emulated_dpbusd(out, a, b)
#define _tile_dpbf16ps(out, a, b) emulated_dpbf16ps(out, a, b)
#define ISA amx_emulated
#define ISA_amx
#define inference_quantize_amx_emulated inference_quantize_avx512_bf16
#define inference_pack_amx_emulated inference_pack_avx512_bf16
#include "backend/cpu/kernels/inference_attention.c"
#include "backend/cpu/kernels/inference_product.c"
#pragma GCC pop_options

enum { MOST_ROWS = 70, MOST_INPUTS = 320 };

static void allow(int i, const void *memory, size_t bytes)
{
	emulated_first[i] = memory;
	emulated_last[i] = (const char *)memory + bytes;
}

/* What follows a product: copies of its sums, in ascending order. */
struct copied {
	float (*sums)[PANEL_MOST + 8], (*copy)[PANEL_MOST + 8];
	int64_t rows;
};

static void copy_rows(const void *context, int64_t row, int64_t rows)
{
	struct copied *copied = *(struct copied *const *)context;
	assert_int_equal(row, copied->rows);
	memcpy(copied->copy[row], copied->sums[row], (size_t)rows * sizeof copied->copy[0]);
	copied->rows += rows;
}

/* Buffers have their exact sizes, so that an access one step too far is out of bounds. */
static void check_shape(enum dtype type, int64_t rows, int64_t inputs, struct rng *rng)
{
	const struct inference_kernels *tiles = &inference_kernels_amx_emulated,
				       *plain = cpu_levels[CPU_ISA_AVX512_BF16].inference;
	int64_t panel = panel_bytes(plain, type, inputs), row_bytes = int8_row_bytes(plain, inputs);
	static float weights[PANEL_MOST * MOST_INPUTS];
	static uint16_t numbers[MOST_ROWS * MOST_INPUTS];
	float scales[PANEL_MOST], y[2][MOST_ROWS][PANEL_MOST + 8], copy[MOST_ROWS][PANEL_MOST + 8];
	int32_t sums[PANEL_MOST];
	for (int64_t i = 0; i < PANEL_MOST * inputs; i++)
		weights[i] = (float)rng_truncated_normal(rng);
	for (int64_t i = 0; i < rows * inputs; i++)
		numbers[i] = float_to_bf16((float)rng_truncated_normal(rng));
	char *packed = calloc(1, (size_t)panel + 64), *x = malloc((size_t)(rows * row_bytes));
	assert_true(packed && x);
	memset(y, 0xff, sizeof y);
	plain->pack(&(struct panel_pack){.count = PANEL_MOST,
					 .inputs = inputs,
					 .from = DTYPE_F32,
					 .rows = weights,
					 .type = type,
					 .panel = packed,
					 .scales = scales,
					 .sums = sums});
	plain->quantize(numbers, DTYPE_BF16, rows, inputs, x, row_bytes);
	struct inference_product a = {.rows = rows,
				      .inputs = inputs,
				      .x = type == DTYPE_S8 ? (void *)(x + INT8_ROW_HEADER) : (void *)numbers,
				      .x_row = type == DTYPE_S8 ? row_bytes : 2 * inputs,
				      .panel = packed,
				      .scales = scales,
				      .sums = sums,
				      .y_row = PANEL_MOST + 8};
	allow(0, type == DTYPE_S8 ? (void *)x : (void *)numbers, (size_t)(rows * (type == DTYPE_S8 ? row_bytes : 2 * inputs)));
	allow(1, packed, (size_t)panel);
	allow(2, y[1], (size_t)rows * sizeof y[1][0] - 8 * sizeof(float));
	for (int i = 0; i < 2; i++) {
		struct copied copied = {y[i], copy, 0}, *address = &copied;
		a.y = y[i][0];
		a.end = (struct product_end){copy_rows, &address};
		const struct inference_kernels *kernels = i ? tiles : plain;
		(type == DTYPE_S8 ? kernels->multiply_s8 : kernels->multiply_bf16)(&a);
		assert_int_equal(copied.rows, rows);
		assert_memory_equal(copy, y[i], (size_t)rows * sizeof copy[0]);
	}
	for (int64_t r = 0; r < MOST_ROWS; r++) {
		for (int64_t c = 0; c < PANEL_MOST + 8; c++) {
			if (r >= rows || c >= PANEL_MOST)
				assert_true(isnan(y[1][r][c])); /* not written */
			else if (type == DTYPE_S8)
				assert_true(y[0][r][c] == y[1][r][c]);
			else
				assert_true(fabsf(y[0][r][c] - y[1][r][c]) < 1e-5f * sqrtf((float)inputs));
		}
	}
	free(packed);
	free(x);
}

static void tiles_multiply_as_vectors_do(void **state)
{
	enum cpu_isa isa;
	if (cpu_isa_detect(&isa) != OK || isa < CPU_ISA_AVX512_BF16)
		skip();
	static const int64_t heights[] = {1, 2, 15, 16, 17, 20, 31, 32, 33, 48, 49, 64, 70},
			     inputs[] = {1, 31, 32, 64, 96, 130, 320};
	struct rng rng = rng_start(5, RNG_TEST, 0);
	for (size_t i = 0; i < sizeof heights / sizeof heights[0]; i++)
		for (size_t j = 0; j < sizeof inputs / sizeof inputs[0]; j++) {
			check_shape(DTYPE_S8, heights[i], inputs[j], &rng);
			check_shape(DTYPE_BF16, heights[i], inputs[j], &rng);
		}
}

/* y of one head: rows of three parts of `size` numbers, in memory that ends with the last of them. */
static void check_attention(int64_t length, int64_t size, struct rng *rng)
{
	const struct inference_kernels *kernels[] = {cpu_levels[CPU_ISA_AVX512_BF16].inference, &inference_kernels_amx_emulated};
	static uint16_t y[2][ATTENTION_LENGTH + 1][64];
	static _Alignas(64) char scratch[ATTENTION_BYTES];
	const size_t bytes = (size_t)(length * 3 * size) * sizeof(uint16_t);
	uint16_t *qkv = malloc(bytes);
	assert_non_null(qkv);
	for (int64_t i = 0; i < length * 3 * size; i++)
		qkv[i] = float_to_bf16(2 * (float)rng_truncated_normal(rng));
	memset(y, 0xff, sizeof y);
	allow(0, qkv, bytes);
	allow(1, scratch, sizeof scratch);
	allow(2, NULL, 0);
	for (int i = 0; i < 2; i++) {
		memset(scratch, 0xff, sizeof scratch);
		kernels[i]->attend(&(struct inference_attention){.length = length,
								 .size = size,
								 .query = qkv,
								 .key = qkv + size,
								 .value = qkv + 2 * size,
								 .row = 3 * size,
								 .scale = 1 / sqrtf((float)size),
								 .scratch = scratch,
								 .y = y[i][0],
								 .y_row = 64});
	}
	for (int64_t row = 0; row <= ATTENTION_LENGTH; row++)
		for (int64_t c = 0; c < 64; c++) {
			float vectors = bf16_to_float(y[0][row][c]), tiles = bf16_to_float(y[1][row][c]);
			if (row >= length || c >= size)
				assert_true(isnan(tiles)); /* not written */
			else
				assert_true(fabsf(vectors - tiles) <= 0x1p-7f * fabsf(vectors) + 0x1p-10f);
		}
	free(qkv);
}

static void tiles_attend_as_vectors_do(void **state)
{
	enum cpu_isa isa;
	if (cpu_isa_detect(&isa) != OK || isa < CPU_ISA_AVX512_BF16)
		skip();
	static const int64_t lengths[] = {1, 2, 15, 16, 17, 31, 32, 33, 48, 63, 65, 96, 128, 200, 512};
	struct rng rng = rng_start(6, RNG_TEST, 0);
	for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
		check_attention(lengths[i], 32, &rng);
		check_attention(lengths[i], 64, &rng);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(tiles_multiply_as_vectors_do),
					   cmocka_unit_test(tiles_attend_as_vectors_do)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
