/* Packs matrices into the blocks of gemm.h, and defines the tables of kernels. */
#include "backend/cpu/kernels/gemm_kernels.h"

enum { N = GEMM_BLOCK };

/* fp32 blocks, from rows: both layouts are plain rows. */
INLINE void f32_copy(enum dtype type, const void *source, int64_t row_elements, float *block)
{
	for (int r = 0; r < N; r++)
		for (int c = 0; c < N; c += LANES)
			vector_store(block + r * N + c, load(source, r * row_elements + c, LANES, type));
}

/* fp32 blocks, from columns. */
INLINE void f32_transpose(enum dtype type, const void *source, int64_t row_elements, float *block)
{
	for (int r = 0; r < N; r += LANES) {
		for (int c = 0; c < N; c += LANES) {
			vector x[LANES];
#pragma GCC unroll 16
			for (int i = 0; i < LANES; i++)
				x[i] = load(source, (r + i) * row_elements + c, LANES, type);
			transpose(x);
#pragma GCC unroll 16
			for (int i = 0; i < LANES; i++)
				vector_store(block + (c + i) * N + r, x[i]);
		}
	}
}

static void f32_from_rows_f32(const void *source, int64_t row_elements, void *block)
{
	f32_copy(DTYPE_F32, source, row_elements, block);
}

static void f32_from_columns_f32(const void *source, int64_t row_elements, void *block)
{
	f32_transpose(DTYPE_F32, source, row_elements, block);
}

static void store_block(const float *block, float *out, int64_t out_row, int64_t rows, int64_t columns, bool accumulate)
{
	for (int64_t r = 0; r < rows; r++) {
		const float *from = block + r * N;
		float *to = out + r * out_row;
		if (!accumulate && columns == N) {
			for (int c = 0; c < N; c += 2 * LANES)
				store_two(to, c, vector_load(from + c), vector_load(from + c + LANES), DTYPE_F32, true);
			continue;
		}
		for (int64_t c = 0; c < columns; c += LANES) {
			vector sum = vector_load(from + c);
			if (accumulate)
				sum += load_floats(to, c, columns - c);
			store_floats(to, c, columns - c, sum);
		}
	}
}

INLINE void add_columns(enum dtype type, const void *source, int64_t row_elements, int64_t rows, int64_t columns, float *sums)
{
	int64_t c = 0;
	for (; c + 2 * LANES <= columns; c += 2 * LANES) {
		vector low = vector_load(sums + c), high = vector_load(sums + c + LANES);
		for (int64_t r = 0; r < rows; r++) {
			low += load(source, r * row_elements + c, LANES, type);
			high += load(source, r * row_elements + c + LANES, LANES, type);
		}
		vector_store(sums + c, low);
		vector_store(sums + c + LANES, high);
	}
	for (; c < columns; c++)
		for (int64_t r = 0; r < rows; r++)
			sums[c] += type == DTYPE_F32 ? ((const float *)source)[r * row_elements + c]
						     : bf16_to_float(((const uint16_t *)source)[r * row_elements + c]);
}

static void add_columns_f32(const void *source, int64_t row_elements, int64_t rows, int64_t columns, float *sums)
{
	add_columns(DTYPE_F32, source, row_elements, rows, columns, sums);
}

static void add_columns_bf16(const void *source, int64_t row_elements, int64_t rows, int64_t columns, float *sums)
{
	add_columns(DTYPE_BF16, source, row_elements, rows, columns, sums);
}

const struct gemm_kernels KERNEL(gemm_kernels_f32) = {
	.source = DTYPE_F32,
	.type = DTYPE_F32,
	.left_from_rows = f32_from_rows_f32,
	.left_from_columns = f32_from_columns_f32,
	.right_from_rows = f32_from_rows_f32,
	.right_from_columns = f32_from_columns_f32,
	.multiply = KERNEL(gemm_multiply_f32),
#ifdef __ARM_NEON
	.multiply_panel = KERNEL(gemm_multiply_panel_f32),
#endif
	.begin = KERNEL(gemm_begin),
	.end = KERNEL(gemm_end),
	.store_block = store_block,
	.add_columns = add_columns_f32,
};

#if defined(ISA_neon_mmla)
/* bf16 blocks of units (gemm.h), which hold the same numbers whether rows are those of a left operand or columns of a right one.
 */

static void units_from_rows(const void *source, int64_t row_elements, void *block)
{
	const uint16_t *from = source;
	for (int r = 0; r < N; r += 2)
		for (int k = 0; k < N; k += 8) {
			uint16_t *to = (uint16_t *)block + (k / 4 * N + r) * 4;
			uint64x2_t upper = vreinterpretq_u64_u16(vld1q_u16(from + r * row_elements + k));
			uint64x2_t lower = vreinterpretq_u64_u16(vld1q_u16(from + (r + 1) * row_elements + k));
			vst1q_u16(to, vreinterpretq_u16_u64(vzip1q_u64(upper, lower)));
			vst1q_u16(to + N * 4, vreinterpretq_u16_u64(vzip2q_u64(upper, lower)));
		}
}

static void units_from_columns(const void *source, int64_t row_elements, void *block)
{
	const uint16_t *from = source;
	for (int k = 0; k < N; k += 4)
		for (int c = 0; c < N; c += 8) {
			uint16_t *to = (uint16_t *)block + (k * N + c * 4);
			uint16x8_t x[4];
#pragma GCC unroll 4
			for (int i = 0; i < 4; i++)
				x[i] = vld1q_u16(from + (k + i) * row_elements + c);
			uint32x4_t low01 = vreinterpretq_u32_u16(vzip1q_u16(x[0], x[1]));
			uint32x4_t high01 = vreinterpretq_u32_u16(vzip2q_u16(x[0], x[1]));
			uint32x4_t low23 = vreinterpretq_u32_u16(vzip1q_u16(x[2], x[3]));
			uint32x4_t high23 = vreinterpretq_u32_u16(vzip2q_u16(x[2], x[3]));
			vst1q_u16(to, vreinterpretq_u16_u32(vzip1q_u32(low01, low23)));
			vst1q_u16(to + 8, vreinterpretq_u16_u32(vzip2q_u32(low01, low23)));
			vst1q_u16(to + 16, vreinterpretq_u16_u32(vzip1q_u32(high01, high23)));
			vst1q_u16(to + 24, vreinterpretq_u16_u32(vzip2q_u32(high01, high23)));
		}
}

const struct gemm_kernels KERNEL(gemm_kernels_bf16) = {
	.source = DTYPE_BF16,
	.type = DTYPE_BF16,
	.left_from_rows = units_from_rows,
	.left_from_columns = units_from_columns,
	.right_from_rows = units_from_columns,
	.right_from_columns = units_from_rows,
	.multiply = KERNEL(gemm_multiply_bf16),
	.multiply_panel = KERNEL(gemm_multiply_panel_bf16),
	.begin = KERNEL(gemm_begin),
	.end = KERNEL(gemm_end),
	.store_block = store_block,
	.add_columns = add_columns_bf16,
};
#elif defined(__AVX512BF16__)
/* bf16 blocks. A row of 32 numbers is one register. */

static void bf16_copy(const void *source, int64_t row_elements, void *block)
{
	const uint16_t *from = source;
	for (int r = 0; r < N; r++)
		_mm512_storeu_si512((uint16_t *)block + r * N, _mm512_loadu_si512(from + r * row_elements));
}

/* Rows 2i and 2i+1 interleaved: columns 0-15 and 16-31, as pairs. */
INLINE void pair_rows(const uint16_t *source, int64_t row_elements, int i, __m512i *low, __m512i *high)
{
	const __m512i low_columns = _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40, 8, 39, 7, 38, 6,
						     37, 5, 36, 4, 35, 3, 34, 2, 33, 1, 32, 0);
	const __m512i high_columns = _mm512_add_epi16(low_columns, _mm512_set1_epi16(16));
	__m512i even = _mm512_loadu_si512(source + 2 * i * row_elements);
	__m512i odd = _mm512_loadu_si512(source + (2 * i + 1) * row_elements);
	*low = _mm512_permutex2var_epi16(even, low_columns, odd);
	*high = _mm512_permutex2var_epi16(even, high_columns, odd);
}

static void bf16_pair(const void *source, int64_t row_elements, void *block)
{
	for (int i = 0; i < N / 2; i++) {
		__m512i low, high;
		pair_rows(source, row_elements, i, &low, &high);
		_mm512_storeu_si512((uint32_t *)block + i * 16, low);
		_mm512_storeu_si512((uint32_t *)block + (16 + i) * 16, high);
	}
}

static void bf16_pair_transpose(const void *source, int64_t row_elements, void *block)
{
	const uint16_t *from = source;
	for (int r = 0; r < N; r += 16) {
		__m512 x[16];
#pragma GCC unroll 16
		for (int i = 0; i < 16; i++)
			x[i] = _mm512_castsi512_ps(_mm512_loadu_si512(from + (r + i) * row_elements));
		transpose(x);
#pragma GCC unroll 16
		for (int i = 0; i < 16; i++)
			_mm512_storeu_ps((uint32_t *)block + (r + i) * 16, x[i]);
	}
}

/* Each pair from two rows is a 32-bit number; transposing these numbers makes the pairs adjacent in the output rows. */
static void bf16_transpose(const void *source, int64_t row_elements, void *block)
{
	__m512 low[16], high[16];
#pragma GCC unroll 16
	for (int i = 0; i < 16; i++) {
		__m512i l, h;
		pair_rows(source, row_elements, i, &l, &h);
		low[i] = _mm512_castsi512_ps(l);
		high[i] = _mm512_castsi512_ps(h);
	}
	transpose(low);
	transpose(high);
#pragma GCC unroll 16
	for (int i = 0; i < 16; i++) {
		_mm512_storeu_ps((uint16_t *)block + i * N, low[i]);
		_mm512_storeu_ps((uint16_t *)block + (16 + i) * N, high[i]);
	}
}

const struct gemm_kernels KERNEL(gemm_kernels_bf16) = {
	.source = DTYPE_BF16,
	.type = DTYPE_BF16,
	.left_from_rows = bf16_copy,
	.left_from_columns = bf16_transpose,
	.right_from_rows = bf16_pair,
	.right_from_columns = bf16_pair_transpose,
	.multiply = KERNEL(gemm_multiply_bf16),
#ifdef ISA_amx
	.multiply_panel = KERNEL(gemm_multiply_panel_bf16),
#endif
	.begin = KERNEL(gemm_begin),
	.end = KERNEL(gemm_end),
	.store_block = store_block,
	.add_columns = add_columns_bf16,
};
#else
/* Without bf16 products, bf16 matrices are converted to fp32 as they are packed. */

static void f32_from_rows_bf16(const void *source, int64_t row_elements, void *block)
{
	f32_copy(DTYPE_BF16, source, row_elements, block);
}

static void f32_from_columns_bf16(const void *source, int64_t row_elements, void *block)
{
	f32_transpose(DTYPE_BF16, source, row_elements, block);
}

const struct gemm_kernels KERNEL(gemm_kernels_bf16) = {
	.source = DTYPE_BF16,
	.type = DTYPE_F32,
	.left_from_rows = f32_from_rows_bf16,
	.left_from_columns = f32_from_columns_bf16,
	.right_from_rows = f32_from_rows_bf16,
	.right_from_columns = f32_from_columns_bf16,
	.multiply = KERNEL(gemm_multiply_f32),
	.begin = KERNEL(gemm_begin),
	.end = KERNEL(gemm_end),
	.store_block = store_block,
	.add_columns = add_columns_bf16,
};
#endif
