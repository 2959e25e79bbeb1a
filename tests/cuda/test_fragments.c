/* The emulated matrix instructions hold a warp's elements where NVIDIA's own layouts have them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "test.h"
#include "backend/tensor.h"
#include "fragment_layouts.h"
#include "fragments.h"
#include "tensor_core.h"

enum { LANES = 32, ROWS = 16, COLUMNS = 8, DEPTH_MOST = 16 };

static cudaStream_t stream;

static void *on_device(const void *host, size_t bytes)
{
	void *memory;
	assert_int_equal(cudaMalloc(&memory, bytes), cudaSuccess);
	assert_int_equal(cudaMemcpy(memory, host, bytes, cudaMemcpyHostToDevice), cudaSuccess);
	return memory;
}

static void from_device(void *host, void *memory, size_t bytes)
{
	assert_int_equal(cudaStreamSynchronize(stream), cudaSuccess);
	assert_int_equal(cudaMemcpy(host, memory, bytes, cudaMemcpyDeviceToHost), cudaSuccess);
	assert_int_equal(cudaFree(memory), cudaSuccess);
}

static int set_up(void **state)
{
	return cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess;
}

static int tear_down(void **state)
{
	return cudaStreamDestroy(stream) != cudaSuccess;
}

/* Stores element `value` of a lane whose registers begin at `at`. tf32 gets 13 more bits, which the instruction ignores. */
static void put(uint32_t *at, enum fragment_type type, int value, float number)
{
	uint32_t bits;
	memcpy(&bits, &number, sizeof bits);
	if (type == FRAGMENT_TF32)
		at[value] = bits | 0x1abc;
	else
		at[value / 2] |= (uint32_t)(type == FRAGMENT_BF16 ? float_to_bf16(number) : float_to_f16(number))
				 << 16 * (value % 2);
}

/* Whole numbers, with no two rows or columns alike: products and sums are exact. */
static float number(int i, int j)
{
	return (float)((i * 7 + j * j * 5 + i * j * 3) % 31 - 15);
}

static void mma_multiplies_where_cutlass_says(void **state)
{
	const struct {
		enum fragment_type type;
		int depth;
		const struct fragment_layout *a, *b;
	} cases[] = {
		{FRAGMENT_BF16, 16, &FRAGMENT_A_16X8X16, &FRAGMENT_B_16X8X16},
		{FRAGMENT_F16, 16, &FRAGMENT_A_16X8X16, &FRAGMENT_B_16X8X16},
		{FRAGMENT_TF32, 8, &FRAGMENT_A_16X8X8_TF32, &FRAGMENT_B_16X8X8_TF32},
	};
	for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
		int depth = cases[n].depth;
		uint32_t a[LANES * 4] = {0}, b[LANES * 2] = {0};
		float c[LANES * 4];
		for (int lane = 0; lane < LANES; lane++) {
			for (int i = 0; i < ROWS * depth / LANES; i++) {
				int place = fragment_place(cases[n].a, lane, i);
				put(a + 4 * lane, cases[n].type, i, number(place % ROWS, place / ROWS));
			}
			for (int i = 0; i < COLUMNS * depth / LANES; i++) {
				int place = fragment_place(cases[n].b, lane, i);
				put(b + 2 * lane, cases[n].type, i, number(place / COLUMNS + 3, place % COLUMNS));
			}
			for (int i = 0; i < 4; i++)
				c[4 * lane + i] = (float)(1000 * fragment_place(&FRAGMENT_C_16X8, lane, i));
		}
		uint32_t *on_a = on_device(a, sizeof a), *on_b = on_device(b, sizeof b);
		float *on_c = on_device(c, sizeof c);
		assert_int_equal(fragment_mma(stream, cases[n].type, on_a, on_b, on_c), cudaSuccess);
		from_device(c, on_c, sizeof c);
		from_device(a, on_a, sizeof a);
		from_device(b, on_b, sizeof b);
		for (int lane = 0; lane < LANES; lane++) {
			for (int i = 0; i < 4; i++) {
				int place = fragment_place(&FRAGMENT_C_16X8, lane, i);
				float sum = (float)(1000 * place);
				for (int k = 0; k < depth; k++)
					sum += number(place % ROWS, k) * number(k + 3, place / ROWS);
				assert_float_equal(c[4 * lane + i], sum, 0);
			}
		}
	}
}

/* For f16 before sm_80, mma16 consists of two instructions of half the depth, on halves of the same registers. */
static void two_halves_are_one(void **state)
{
	for (int lane = 0; lane < LANES; lane++) {
		for (int i = 0; i < 8; i++)
			assert_int_equal(fragment_place(&FRAGMENT_A_16X8X16, lane, i),
					 fragment_place(&FRAGMENT_A_16X8X8, lane, i % 4) + i / 4 * 8 * ROWS);
		for (int i = 0; i < 4; i++)
			assert_int_equal(fragment_place(&FRAGMENT_B_16X8X16, lane, i),
					 fragment_place(&FRAGMENT_B_16X8X8, lane, i % 2) + i / 2 * 8 * COLUMNS);
	}
}

static void ldmatrix_loads_what_cutlass_says(void **state)
{
	for (int n = 0; n < 4; n++) {
		int count = n % 2 ? 4 : 2, transposed = n / 2;
		uint16_t matrices[4 * 64];
		uint32_t out[LANES * 4] = {0};
		for (int i = 0; i < 4 * 64; i++)
			matrices[i] = (uint16_t)(0x4100 + i);
		uint16_t *from = on_device(matrices, sizeof matrices);
		uint32_t *to = on_device(out, sizeof out);
		assert_int_equal(fragment_load(stream, count, transposed, from, to), cudaSuccess);
		from_device(out, to, sizeof out);
		from_device(matrices, from, sizeof matrices);
		const struct fragment_layout *layout = transposed ? &FRAGMENT_LOAD_TRANSPOSED : &FRAGMENT_LOAD;
		for (int lane = 0; lane < LANES; lane++)
			for (int i = 0; i < 2 * count; i++)
				assert_int_equal((uint16_t)(out[count * lane + i / 2] >> 16 * (i % 2)),
						 matrices[fragment_place(layout, lane, i)]);
	}
}

enum { GROUP = 128, SIZE = 64, DEPTH = 16, TILE_BYTES = SIZE * SIZE * 2 };

/* A tile whose last 16 columns, or rows, hold an operand of wgmma, and NaN elsewhere. */
static uint16_t *operand_tile(enum fragment_type type, int summed, int offset)
{
	uint16_t *tile = malloc(TILE_BYTES);
	assert_non_null(tile);
	memset(tile, 0xff, TILE_BYTES);
	for (int outer = 0; outer < SIZE; outer++)
		for (int k = 0; k < DEPTH; k++) {
			int at = summed ? fragment_tile_place(SIZE - DEPTH + k, outer)
					: fragment_tile_place(outer, SIZE - DEPTH + k);
			float value = number(outer + offset, k);
			tile[at / 2] = type == FRAGMENT_BF16 ? float_to_bf16(value) : float_to_f16(value);
		}
	return tile;
}

static void group_multiply(enum fragment_type type, int columns, int a_summed, int b_summed, int in_registers)
{
	uint16_t *a = operand_tile(type, a_summed, 0), *b = operand_tile(type, b_summed, 3);
	uint32_t registers[GROUP * 4] = {0};
	float c[GROUP * 32] = {0};
	uint64_t descriptor = 0;
	for (int i = 0; i < GROUP * 8; i++) {
		int place = fragment_place(&FRAGMENT_A_64X16, i / 8 % LANES, i % 8) + i / 8 / LANES * FRAGMENT_WARP_ROWS;
		put(registers + i / 8 * 4, type, i % 8, number(place % SIZE, place / SIZE));
	}
	void *on_a = on_device(a, TILE_BYTES), *on_b = on_device(b, TILE_BYTES), *on_c = on_device(c, sizeof c);
	void *on_registers = on_device(registers, sizeof registers), *on_descriptor = on_device(&descriptor, sizeof descriptor);
	struct fragment_product product = {.type = type,
					   .columns = columns,
					   .a_summed = a_summed,
					   .b_summed = b_summed,
					   .a = on_a,
					   .b = on_b,
					   .a_registers = in_registers ? on_registers : NULL,
					   .c = on_c,
					   .out_descriptor = on_descriptor};
	assert_int_equal(fragment_group_multiply(stream, &product), cudaSuccess);
	from_device(c, on_c, sizeof c);
	from_device(&descriptor, on_descriptor, sizeof descriptor);
	from_device(a, on_a, TILE_BYTES);
	from_device(b, on_b, TILE_BYTES);
	from_device(registers, on_registers, sizeof registers);
	assert_true(descriptor == FRAGMENT_TILE_DESCRIPTOR);
	for (int i = 0; i < GROUP * columns / 2; i++) {
		int thread = i / (columns / 2), value = i % (columns / 2);
		int place = fragment_place(&FRAGMENT_C_64X64, thread % LANES, value) + thread / LANES * FRAGMENT_WARP_ROWS;
		int column = place / SIZE + SIZE - columns;
		float sum = 0;
		for (int k = 0; k < DEPTH; k++)
			sum += number(place % SIZE, k) * number(column + 3, k);
		assert_float_equal(c[i], sum, 0);
	}
	free(a);
	free(b);
}

static void wgmma_multiplies_where_cutlass_says(void **state)
{
	for (int i = 0; i < 16; i++)
		group_multiply(i % 2 ? FRAGMENT_BF16 : FRAGMENT_F16, i / 8 ? 64 : 32, i / 2 % 2, i / 4 % 2, 0);
	for (int i = 0; i < 4; i++)
		group_multiply(i % 2 ? FRAGMENT_BF16 : FRAGMENT_F16, 64, 0, i / 2, 1);
}

/* As measured: V100 truncates at once what does not fit beside 1, however often it occurs; Hopper's FP8 keeps 13 binary
 * places of a sum. */
/* A number up to 2^range larger or smaller than 1, or zero. */
static float any_float(int range)
{
	return rand() % 8 == 0 ? 0
			       : ldexpf((float)(rand() - RAND_MAX / 2) / RAND_MAX, range > 0 ? rand() % (2 * range) - range : 0);
}

static void additions_are_cut(void **state)
{
	const float small[4] = {0x1.8p-24f, 0x1.8p-24f, 0x1.8p-24f, 0x1.8p-24f}, none[2] = {0, -0.0f};
	assert_float_equal(tensor_core_sum(1, small, 4, 23), 1, 0);
	assert_float_equal(tensor_core_sum(0, small, 4, 23), 0x1.8p-22f, 0);
	assert_float_equal(tensor_core_sum(-1, small, 4, 23), -1, 0);
	assert_float_equal(tensor_core_sum(0x1.fffffep0f, (const float[]){0x1.fffffep0f, 0x1p-23f}, 2, 23), 0x1.fffffep1f, 0);
	assert_float_equal(tensor_core_sum(0x1.0007fep0f, none, 2, 13), 1, 0);
	assert_float_equal(tensor_core_sum(-0x1.000ffep0f, none, 2, 13), -0x1.0008p0f, 0);
	assert_float_equal(tensor_core_sum(1, (const float[]){1, 0x1p-13f}, 2, 13), 2, 0);
	assert_float_equal(tensor_core_sum(0x1p-149f, none, 2, 23), 0x1p-149f, 0);
	assert_true(isinf(tensor_core_sum(1, (const float[]){INFINITY, 1}, 2, 23)));
	assert_true(isnan(tensor_core_sum(INFINITY, (const float[]){-INFINITY, 1}, 2, 23)));

	/* Eight at a time give the same, from numbers of one size to all that there are. */
	for (int round = 0; round < 20000; round++) {
		float a[TENSOR_PRODUCTS], b[TENSOR_PRODUCTS][TENSOR_LANES], c[TENSOR_LANES], expected[TENSOR_LANES];
		int range = round % 150, count = round % 3 == 0 ? 4 : round % 3 == 1 ? 8 : 16;
		for (int k = 0; k < count; k++)
			a[k] = any_float(range);
		for (int i = 0; i < TENSOR_LANES; i++) {
			float products[TENSOR_PRODUCTS];
			c[i] = any_float(range);
			for (int k = 0; k < count; k++) {
				b[k][i] = any_float(range);
				products[k] = a[k] * b[k][i];
			}
			expected[i] = tensor_core_sum(c[i], products, count, TENSOR_PLACES);
		}
		tensor_core_add(c, a, (const float(*)[TENSOR_LANES])b, count);
		assert_memory_equal(c, expected, sizeof c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mma_multiplies_where_cutlass_says),
		cmocka_unit_test(two_halves_are_one),
		cmocka_unit_test(ldmatrix_loads_what_cutlass_says),
		cmocka_unit_test(wgmma_multiplies_where_cutlass_says),
		cmocka_unit_test(additions_are_cut),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
