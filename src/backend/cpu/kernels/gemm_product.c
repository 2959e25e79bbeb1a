/* The inner products of gemm.h: 32 x 32 outputs at a time, held in registers over all of k. */
#include "backend/cpu/kernels/gemm_kernels.h"

enum { N = GEMM_BLOCK, F32_ROW = N, F32_BLOCK = N * N };

/* Rows of the output held in registers: with two vectors of columns that makes 16 of 32 (AVX-512) or 8 of 16
 * (AVX2) accumulators, enough for the latency of two multiply-adds a cycle, while each row of the right
 * operand that is loaded serves ROWS rows. */
#ifdef __AVX512F__
enum { ROWS = 8 };
#else
enum { ROWS = 4 };
#endif

/* ROWS x (2 vectors) of the output. `left` points at the first of these rows in the first block. */
INLINE void f32_rows(const struct block_product *p, const float *left, const float *right, float *out)
{
	const int64_t steps = p->k, left_step = p->left_k / 4, right_step = p->right_k / 4,
	              out_row = p->out_row;
	vector acc[ROWS][2];
#pragma GCC unroll 8
	for (int r = 0; r < ROWS; r++) {
		acc[r][0] = p->accumulate ? vector_load(out + r * out_row) : vector_set(0);
		acc[r][1] = p->accumulate ? vector_load(out + r * out_row + LANES) : vector_set(0);
	}
	for (int64_t step = 0; step < steps; step++) {
		for (int k = 0; k < N; k++) {
			vector b0 = vector_load(right + k * F32_ROW),
			       b1 = vector_load(right + k * F32_ROW + LANES);
#pragma GCC unroll 8
			for (int r = 0; r < ROWS; r++) {
				vector a = vector_set(left[r * F32_ROW + k]);
				acc[r][0] = vector_fma(a, b0, acc[r][0]);
				acc[r][1] = vector_fma(a, b1, acc[r][1]);
			}
		}
		left += left_step;
		right += right_step;
	}
#pragma GCC unroll 8
	for (int r = 0; r < ROWS; r++) {
		vector_store(out + r * out_row, acc[r][0]);
		vector_store(out + r * out_row + LANES, acc[r][1]);
	}
}

void KERNEL(gemm_multiply_f32)(const struct block_product *p)
{
	for (int64_t m = 0; m < p->m; m++) {
		for (int64_t n = 0; n < p->n; n++) {
			const float *left = (const float *)((const char *)p->left + m * p->left_m);
			const float *right = (const float *)((const char *)p->right + n * p->right_n);
			float *out = p->out + m * p->out_m + n * p->out_n;
			for (int column = 0; column < N; column += 2 * LANES)
				for (int row = 0; row < N; row += ROWS)
					f32_rows(p, left + row * F32_ROW, right + column,
					         out + row * p->out_row + column);
		}
	}
}

#ifdef ISA_avx512_bf16
INLINE __m512 dot_pairs(__m512 acc, uint32_t left_pair, __m512i right_pairs)
{
	return _mm512_dpbf16_ps(acc, (__m512bh)_mm512_set1_epi32((int)left_pair), (__m512bh)right_pairs);
}

/* As f32_rows, on pairs: uint32_t stands for two consecutive k. */
INLINE void bf16_rows(const struct block_product *p, const uint32_t *left, const uint32_t *right, float *out)
{
	enum { PAIRS = N / 2 };
	const int64_t steps = p->k, left_step = p->left_k / 4, right_step = p->right_k / 4,
	              out_row = p->out_row;
	__m512 acc[ROWS][2];
#pragma GCC unroll 8
	for (int r = 0; r < ROWS; r++) {
		acc[r][0] = p->accumulate ? vector_load(out + r * out_row) : vector_set(0);
		acc[r][1] = p->accumulate ? vector_load(out + r * out_row + LANES) : vector_set(0);
	}
	for (int64_t step = 0; step < steps; step++) {
		for (int k = 0; k < PAIRS; k++) {
			__m512i b0 = _mm512_loadu_si512(right + k * LANES);
			__m512i b1 = _mm512_loadu_si512(right + (PAIRS + k) * LANES);
#pragma GCC unroll 8
			for (int r = 0; r < ROWS; r++) {
				acc[r][0] = dot_pairs(acc[r][0], left[r * PAIRS + k], b0);
				acc[r][1] = dot_pairs(acc[r][1], left[r * PAIRS + k], b1);
			}
		}
		left += left_step;
		right += right_step;
	}
#pragma GCC unroll 8
	for (int r = 0; r < ROWS; r++) {
		vector_store(out + r * out_row, acc[r][0]);
		vector_store(out + r * out_row + LANES, acc[r][1]);
	}
}

void KERNEL(gemm_multiply_bf16)(const struct block_product *p)
{
	for (int64_t m = 0; m < p->m; m++) {
		for (int64_t n = 0; n < p->n; n++) {
			const uint32_t *left = (const uint32_t *)((const char *)p->left + m * p->left_m);
			const uint32_t *right = (const uint32_t *)((const char *)p->right + n * p->right_n);
			float *out = p->out + m * p->out_m + n * p->out_n;
			for (int row = 0; row < N; row += ROWS)
				bf16_rows(p, left + row * N / 2, right, out + row * p->out_row);
		}
	}
}
#endif

#ifdef ISA_amx
/* Eight tiles of 16 rows of 64 bytes: 0-3 hold the 32 x 32 outputs, 4-5 two halves (16 rows) of a left block,
 * 6-7 two halves (16 columns) of a right block. */
struct tile_configuration {
	uint8_t palette, start_row, reserved[14];
	uint16_t column_bytes[16];
	uint8_t rows[16];
};

static const struct tile_configuration tiles = {
        .palette = 1,
        .column_bytes = {64, 64, 64, 64, 64, 64, 64, 64},
        .rows = {16, 16, 16, 16, 16, 16, 16, 16},
};

static void bf16_block(const struct block_product *p, const char *left, const char *right, float *out)
{
	enum { ROW = 64, HALF = 16 * ROW };
	int64_t row = p->out_row * (int64_t)sizeof(float);
	char *top = (char *)out, *bottom = top + 16 * row;
	if (p->accumulate) {
		_tile_loadd(0, top, row);
		_tile_loadd(1, top + 64, row);
		_tile_loadd(2, bottom, row);
		_tile_loadd(3, bottom + 64, row);
	} else {
		_tile_zero(0);
		_tile_zero(1);
		_tile_zero(2);
		_tile_zero(3);
	}
	for (int64_t step = 0; step < p->k; step++) {
		_tile_loadd(4, left, ROW);
		_tile_stream_loadd(6, right, ROW);
		_tile_dpbf16ps(0, 4, 6);
		_tile_loadd(5, left + HALF, ROW);
		_tile_dpbf16ps(2, 5, 6);
		_tile_stream_loadd(7, right + HALF, ROW);
		_tile_dpbf16ps(1, 4, 7);
		_tile_dpbf16ps(3, 5, 7);
		left += p->left_k;
		right += p->right_k;
	}
	_tile_stored(0, top, row);
	_tile_stored(1, top + 64, row);
	_tile_stored(2, bottom, row);
	_tile_stored(3, bottom + 64, row);
}

void KERNEL(gemm_multiply_bf16)(const struct block_product *p)
{
	/* The compiler does not know that tile loads read memory: all stores before must be done. */
	__asm__ volatile("" ::: "memory");
	for (int64_t m = 0; m < p->m; m++)
		for (int64_t n = 0; n < p->n; n++)
			bf16_block(p, (const char *)p->left + m * p->left_m,
			           (const char *)p->right + n * p->right_n,
			           p->out + m * p->out_m + n * p->out_n);
	__asm__ volatile("" ::: "memory");
}
#endif

/* The tiles' state belongs to the thread, and libraries set their own: configure for each run of products,
 * and release, since held tiles cost 8 KiB at each context switch. */
void KERNEL(gemm_begin)(void)
{
#ifdef ISA_amx
	_tile_loadconfig(&tiles);
#endif
}

void KERNEL(gemm_end)(void)
{
#ifdef ISA_amx
	_tile_release();
#endif
}
