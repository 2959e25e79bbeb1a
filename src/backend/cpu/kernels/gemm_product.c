/* The inner products of gemm.h: 32 x 32 outputs at a time, kept in registers over all of k. */
#include "backend/cpu/kernels/gemm_kernels.h"
#ifdef ISA_amx
#include "backend/cpu/kernels/tile_configuration.h"
#endif

/* Vectors of a register block in one block. */
enum { N = GEMM_BLOCK, ACROSS = LANES == 4 ? 4 : 2 };

/* The position of vectors in a right block, in 32-bit units (bf16: pairs of k). */
INLINE int block_depth(enum dtype type)
{
	return type == DTYPE_BF16 ? N / 2 : N;
}

INLINE int64_t right_at(enum dtype type, int k, int column, int row)
{
	return type == DTYPE_BF16 ? (column / 16 * N / 2 + k) * 16 : k * row + column;
}

/* acc + left b: fp32 numbers, or two products of bf16 pairs. */
INLINE vector multiply_add(enum dtype type, const float *left, vector b, vector acc)
{
#ifdef __AVX512BF16__
	if (type == DTYPE_BF16) {
		uint32_t pair;
		memcpy(&pair, left, sizeof pair);
		return _mm512_dpbf16_ps(acc, (__m512bh)_mm512_set1_epi32((int)pair), (__m512bh)_mm512_castps_si512(b));
	}
#endif
	(void)type;
	return vector_fma(vector_set(*left), b, acc);
}

/* `rows` rows of 2 or 4 vectors (from one or two blocks along n) of the output, starting at the given corners. With 6 rows
 * these take 24 of AVX-512's or NEON's 32 registers, or 12 of AVX2's 16: every loaded vector of the right operand serves 6 rows,
 * every number of the left one 2 or 4 vectors, so multiplications are the bottleneck, not loads. `row`: floats in a row of a
 * right fp32 block. */
INLINE void register_block(const struct block_product *p, enum dtype type, const float *left, const float *right, float *out,
			   int column, const int rows, const int blocks, const int row)
{
	const int64_t steps = p->k, left_step = p->left_k / 4, right_step = p->right_k / 4, out_row = p->out_row;
	const int64_t second = p->right_n / 4, second_out = p->out_n, depth = block_depth(type);
	vector acc[6][4];
#pragma GCC unroll 6
	for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
		for (int j = 0; j < ACROSS * blocks; j++)
			acc[r][j] = p->accumulate ? vector_load(out + r * out_row + j / ACROSS * second_out + j % ACROSS * LANES)
						  : vector_set(0);
	for (int64_t step = 0; step < steps; step++) {
		for (int k = 0; k < depth; k++) {
			vector b[4];
#pragma GCC unroll 4
			for (int j = 0; j < ACROSS * blocks; j++)
				b[j] = vector_load(right + j / ACROSS * second +
						   right_at(type, k, column + j % ACROSS * LANES, row));
#pragma GCC unroll 6
			for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
				for (int j = 0; j < ACROSS * blocks; j++)
					acc[r][j] = multiply_add(type, left + r * depth + k, b[j], acc[r][j]);
		}
		left += left_step;
		right += right_step;
	}
#pragma GCC unroll 6
	for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
		for (int j = 0; j < ACROSS * blocks; j++)
			vector_store(out + r * out_row + j / ACROSS * second_out + j % ACROSS * LANES, acc[r][j]);
}

/* One or two blocks along n, all 32 rows: 6 + 6 + 6 + 6 + 4 + 4. */
INLINE void block_rows(const struct block_product *p, enum dtype type, const float *left, const float *right, float *out,
		       const int blocks)
{
	for (int column = 0; column < N; column += ACROSS * LANES) {
		for (int row = 0; row < 24; row += 6)
			register_block(p, type, left + row * block_depth(type), right, out + row * p->out_row + column, column, 6,
				       blocks, N);
		for (int row = 24; row < N; row += 4)
			register_block(p, type, left + row * block_depth(type), right, out + row * p->out_row + column, column, 4,
				       blocks, N);
	}
}

INLINE void multiply(const struct block_product *p, enum dtype type)
{
	for (int64_t m = 0; m < p->m; m++) {
		for (int64_t n = 0; n < p->n; n++) {
			const float *left = (const float *)((const char *)p->left + m * p->left_m);
			const float *right = (const float *)((const char *)p->right + n * p->right_n);
			float *out = p->out + m * p->out_m + n * p->out_n;
			if (LANES == 16 && n + 1 < p->n) {
				block_rows(p, type, left, right, out, 2);
				n++;
			} else {
				block_rows(p, type, left, right, out, 1);
			}
		}
	}
}

void KERNEL(gemm_multiply_f32)(const struct block_product *p)
{
	multiply(p, DTYPE_F32);
}

#ifdef __ARM_NEON
/* 16 columns of the panel at a time: those of a run fit into L1 along with 6 rows. */
void KERNEL(gemm_multiply_panel_f32)(const struct panel_product *p)
{
	enum { HALF = 16 };
	struct block_product product = {.k = p->k,
					.left_k = N * N * (int64_t)sizeof(float),
					.right_k = N * HALF * (int64_t)sizeof(float),
					.out_row = p->out_row,
					.accumulate = p->accumulate};
	for (int half = 0; half < 2; half++) {
		const float *right = (const float *)((const char *)p->right + half * p->half);
		for (int64_t m = 0; m < p->m; m++) {
			const float *left = (const float *)((const char *)p->left + m * p->left_m);
			float *out = p->out + m * N * p->out_row + half * HALF;
			for (int row = 0; row < 24; row += 6)
				register_block(&product, DTYPE_F32, left + row * N, right, out + row * p->out_row, 0, 6, 1, HALF);
			for (int row = 24; row < N; row += 4)
				register_block(&product, DTYPE_F32, left + row * N, right, out + row * p->out_row, 0, 4, 1, HALF);
		}
	}
}
#endif

#ifdef ISA_neon_mmla
/* Units of 2 x 4 numbers (gemm.h): UNITS of them are side by side in a block, half as many in a panel. */
enum { UNIT = 8, UNITS = N / 2, PANEL_UNITS = UNITS / 2, TILE = 4 };

INLINE bfloat16x8_t unit_at(const uint16_t *p, int unit)
{
	return vreinterpretq_bf16_u16(vld1q_u16(p + unit * UNIT));
}

/* 8 x 8 outputs over k_blocks blocks of k: 16 accumulators of 2 x 2, with 8 registers for units of both operands. */
INLINE void mmla_tile(const uint16_t *left, int64_t left_k, const uint16_t *right, int64_t right_k, const int right_units,
		      int64_t k_blocks, float *out, int64_t out_row, bool accumulate)
{
	float32x4_t sum[TILE][TILE];
#pragma GCC unroll 4
	for (int i = 0; i < TILE; i++)
#pragma GCC unroll 2
		for (int j = 0; j < TILE; j += 2) {
			const float *at = out + 2 * i * out_row + 2 * j;
			float64x2_t upper = vdupq_n_f64(0), lower = vdupq_n_f64(0);
			if (accumulate) {
				upper = vreinterpretq_f64_f32(vld1q_f32(at));
				lower = vreinterpretq_f64_f32(vld1q_f32(at + out_row));
			}
			sum[i][j] = vreinterpretq_f32_f64(vzip1q_f64(upper, lower));
			sum[i][j + 1] = vreinterpretq_f32_f64(vzip2q_f64(upper, lower));
		}
	for (int64_t block = 0; block < k_blocks; block++, left += left_k, right += right_k) {
#pragma GCC unroll 2
		for (int k = 0; k < N / 4; k++) {
			bfloat16x8_t a[TILE], b[TILE];
#pragma GCC unroll 4
			for (int i = 0; i < TILE; i++) {
				a[i] = unit_at(left, k * UNITS + i);
				b[i] = unit_at(right, k * right_units + i);
			}
#pragma GCC unroll 4
			for (int i = 0; i < TILE; i++)
#pragma GCC unroll 4
				for (int j = 0; j < TILE; j++)
					sum[i][j] = vbfmmlaq_f32(sum[i][j], a[i], b[j]);
		}
	}
#pragma GCC unroll 4
	for (int i = 0; i < TILE; i++)
#pragma GCC unroll 2
		for (int j = 0; j < TILE; j += 2) {
			float *at = out + 2 * i * out_row + 2 * j;
			float64x2_t first = vreinterpretq_f64_f32(sum[i][j]), second = vreinterpretq_f64_f32(sum[i][j + 1]);
			vst1q_f32(at, vreinterpretq_f32_f64(vzip1q_f64(first, second)));
			vst1q_f32(at + out_row, vreinterpretq_f32_f64(vzip2q_f64(first, second)));
		}
}

void KERNEL(gemm_multiply_bf16)(const struct block_product *p)
{
	for (int64_t m = 0; m < p->m; m++)
		for (int64_t n = 0; n < p->n; n++)
			for (int row = 0; row < N; row += 2 * TILE)
				for (int column = 0; column < N; column += 2 * TILE)
					mmla_tile((const uint16_t *)((const char *)p->left + m * p->left_m) + row / 2 * UNIT,
						  p->left_k / 2,
						  (const uint16_t *)((const char *)p->right + n * p->right_n) + column / 2 * UNIT,
						  p->right_k / 2, UNITS, p->k,
						  p->out + m * p->out_m + n * p->out_n + row * p->out_row + column, p->out_row,
						  p->accumulate);
}

/* The rows of a tile and the panel of a run both fit into L1. */
void KERNEL(gemm_multiply_panel_bf16)(const struct panel_product *p)
{
	for (int64_t m = 0; m < p->m; m++)
		for (int row = 0; row < N; row += 2 * TILE)
			for (int column = 0; column < N; column += 2 * TILE)
				mmla_tile((const uint16_t *)((const char *)p->left + m * p->left_m) + row / 2 * UNIT, N * N,
					  (const uint16_t *)((const char *)p->right + column / 16 * p->half) +
						  column % 16 / 2 * UNIT,
					  N * 16, PANEL_UNITS, p->k, p->out + (m * N + row) * p->out_row + column, p->out_row,
					  p->accumulate);
}
#endif

#ifdef ISA_avx512_bf16
void KERNEL(gemm_multiply_bf16)(const struct block_product *p)
{
	multiply(p, DTYPE_BF16);
}
#endif

#ifdef ISA_amx
/* Tiles 0-3 hold the 32 x 32 outputs, 4-5 the two halves (16 rows each) of a left block, 6-7 the two halves (16 columns each) of
 * a right block. */
enum { ROW = 64, HALF = 16 * ROW };

/* Loads the output tiles, from memory (rows `row` bytes apart) or as zeros; store_outputs() stores them. */
INLINE void load_outputs(const char *top, int64_t row, bool accumulate)
{
	const char *bottom = top + 16 * row;
	if (accumulate) {
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
}

INLINE void store_outputs(char *top, int64_t row)
{
	char *bottom = top + 16 * row;
	_tile_stored(0, top, row);
	_tile_stored(1, top + 64, row);
	_tile_stored(2, bottom, row);
	_tile_stored(3, bottom + 64, row);
}

/* Prefetches into L1 two of the 32 rows of sums that the next block starts with. */
INLINE void fetch_sums(const char *sums, int64_t row, int64_t step)
{
	if (step >= N / 2)
		return;
	for (int i = 0; i < 2; i++) {
		_mm_prefetch(sums + (2 * step + i) * row, _MM_HINT_T0);
		_mm_prefetch(sums + (2 * step + i) * row + ROW, _MM_HINT_T0);
	}
}

/* With `ahead`, data for the next blocks is prefetched; not useful for operands that are in L1 anyway. */
INLINE void bf16_block(const struct block_product *p, const char *left, const char *right, float *out, bool ahead,
		       const float *next, struct walk walk[2])
{
	int64_t row = p->out_row * (int64_t)sizeof(float);
	load_outputs((const char *)out, row, p->accumulate);
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
		if (ahead) {
			walk_on(&walk[0]);
			walk_on(&walk[1]);
			if (p->accumulate)
				fetch_sums((const char *)next, row, step);
		}
	}
	store_outputs((char *)out, row);
}

INLINE void bf16_blocks(const struct block_product *p, bool ahead)
{
	int64_t steps = p->m * p->n * p->k;
	struct walk walk[2] = {{.rows = 0}, {.rows = 0}};
	for (int i = 0; ahead && i < 2; i++)
		walk[i] = walk_start(&p->fetch[i], steps);
	for (int64_t m = 0; m < p->m; m++) {
		for (int64_t n = 0; n < p->n; n++) {
			float *out = p->out + m * p->out_m + n * p->out_n;
			const float *next = n + 1 < p->n ? out + p->out_n : p->out + (m + 1) * p->out_m;
			bf16_block(p, (const char *)p->left + m * p->left_m, (const char *)p->right + n * p->right_n, out, ahead,
				   next, walk);
		}
	}
}

void KERNEL(gemm_multiply_bf16)(const struct block_product *p)
{
	settle_stores();
	if (p->fetch[0].rows > 0)
		bf16_blocks(p, true);
	else
		bf16_blocks(p, false);
	settle_stores();
}

/* 32 x 32 x 32 of a panel product. */
INLINE void panel_step(const char *left, const char *right, int64_t half, bool right_stays)
{
	_tile_stream_loadd(4, left, ROW);
	if (right_stays)
		_tile_loadd(6, right, ROW);
	else
		_tile_stream_loadd(6, right, ROW);
	_tile_dpbf16ps(0, 4, 6);
	_tile_stream_loadd(5, left + HALF, ROW);
	_tile_dpbf16ps(2, 5, 6);
	if (right_stays)
		_tile_loadd(7, right + half, ROW);
	else
		_tile_stream_loadd(7, right + half, ROW);
	_tile_dpbf16ps(1, 4, 7);
	_tile_dpbf16ps(3, 5, 7);
}

/* Multiplies the panel by left blocks, which come from L2. The panel's first RESIDENT blocks (32 KiB) stay in L1; the left
 * blocks and the rest of the panel are streamed, which is faster than letting the panel fill L1 or storing the sums more
 * often. */
void KERNEL(gemm_multiply_panel_bf16)(const struct panel_product *p)
{
	enum { RESIDENT = 16 };
	int64_t row = p->out_row * (int64_t)sizeof(float), steps = p->m * p->k;
	struct walk walk = walk_start(&p->fetch, steps);
	settle_stores();
	for (int64_t m = 0; m < p->m; m++) {
		const char *left = (const char *)p->left + m * p->left_m, *right = p->right;
		char *out = (char *)p->out + m * N * row;
		load_outputs(out, row, p->accumulate);
		for (int64_t step = 0; step < p->k; step++) {
			if (step < RESIDENT)
				panel_step(left, right, p->half, true);
			else
				panel_step(left, right, p->half, false);
			left += 2 * HALF;
			right += HALF;
			walk_on(&walk);
			if (p->accumulate)
				fetch_sums(out + N * row, row, step);
		}
		store_outputs(out, row);
	}
	settle_stores();
}
#endif

/* Libraries configure tiles of their own, so this is done for each series of products. */
void KERNEL(gemm_begin)(void)
{
#ifdef ISA_amx
	configure_tiles(TILE_ROWS_MOST, TILE_ROWS_MOST);
#endif
}

void KERNEL(gemm_end)(void)
{
#ifdef ISA_amx
	_tile_release();
#endif
	store_past_end(); /* of store_block's stores */
}
