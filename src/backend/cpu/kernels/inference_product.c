/* Inference's products: some rows of activations times one panel of a weight.
 *
 * A tile of up to TILE_ROWS rows and the panel's two (NEON: four) vectors of outputs is accumulated in registers over all inputs.
 * The first tile reads the panel from memory; the others find it in the first- or second-level cache. While a panel is
 * multiplied, the next one is prefetched a few lines at a time, so that memory access and arithmetic overlap even for few rows.
 */
#include "backend/cpu/kernels/elements.h"
#include "backend/cpu/kernels/inference_kernels.h"
#ifdef ISA_amx
#include "backend/cpu/kernels/tile_configuration.h"
#endif

enum { PANEL_VECTORS = LANES == 4 ? 4 : 2, PANEL = PANEL_VECTORS * LANES };
#ifdef __AVX512F__
enum { TILE_ROWS = 10 }; /* 12 would fit into the registers, but compilers then add moves */
#define UNROLL_ROWS _Pragma("GCC unroll 10")
#else
enum { TILE_ROWS = 6 };
#define UNROLL_ROWS _Pragma("GCC unroll 6")
#endif
#define UNROLL_VECTORS _Pragma("GCC unroll 4")

/* Groups of inputs between two prefetches; base addresses, each for three rows. */
enum { STEP = 4, BASES = (TILE_ROWS + 2) / 3 };

enum kind { KIND_F32, KIND_BF16, KIND_S8 };

#ifdef __AVX512F__
#define LOAD_INTEGERS(p) _mm512_loadu_si512(p)
#define SET_INTEGERS(x) _mm512_set1_epi32(x)
#define ZERO_INTEGERS() _mm512_setzero_si512()
#define TO_FLOATS(x) _mm512_cvtepi32_ps(x)
#elif defined(__ARM_NEON)
#define LOAD_INTEGERS(p) vreinterpretq_u32_u8(vld1q_u8((const uint8_t *)(p)))
#define SET_INTEGERS(x) vdupq_n_u32(x)
#define ZERO_INTEGERS() vdupq_n_u32(0)
#define TO_FLOATS(x) vcvtq_f32_s32(vreinterpretq_s32_u32(x))
#else
#define LOAD_INTEGERS(p) _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define SET_INTEGERS(x) _mm256_set1_epi32(x)
#define ZERO_INTEGERS() _mm256_setzero_si256()
#define TO_FLOATS(x) _mm256_cvtepi32_ps(x)
#endif

/* Four bytes at a time, or two of them as bytes, or two widened to 16 bits. */
#if defined(__AVX512VNNI__) || defined(__ARM_FEATURE_DOTPROD)
enum { INT8_DOT = true, INT8_PAIRS = false };
#elif defined(__ARM_NEON)
enum { INT8_DOT = false, INT8_PAIRS = true };
#else
enum { INT8_DOT = false, INT8_PAIRS = false };
#endif

/* One vector of sums: floats, or integers of the same width. */
typedef union {
	vector f;
	integers i;
} accumulator;

/* Bytes of a group of inputs in a row of activations, and in one vector of a panel. */
INLINE int64_t x_bytes(enum kind kind)
{
	return kind == KIND_S8 && INT8_PAIRS ? 2 : 4;
}

INLINE int64_t w_bytes(enum kind kind)
{
	return kind == KIND_S8 && !INT8_DOT ? LANES * 2 : LANES * 4;
}

INLINE int64_t group_inputs(enum kind kind)
{
	return kind == KIND_F32 ? 1 : kind == KIND_S8 && INT8_DOT ? 4 : 2;
}

INLINE integers load_weights(const char *w, enum kind kind)
{
#ifdef __ARM_NEON
	if (kind == KIND_S8 && !INT8_DOT)
		return vreinterpretq_u32_u8(vcombine_u8(vld1_u8((const uint8_t *)w), vdup_n_u8(0)));
#elif !defined(__AVX512VNNI__)
	if (kind == KIND_S8) {
#ifdef __AVX512F__
		return _mm512_cvtepi8_epi16(_mm256_loadu_si256((const __m256i *)(const void *)w));
#else
		return _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(const void *)w));
#endif
	}
#endif
	(void)kind;
	return LOAD_INTEGERS(w);
}

INLINE integers broadcast(const char *x, enum kind kind)
{
	if (x_bytes(kind) == 2) {
		uint16_t pair;
		memcpy(&pair, x, sizeof pair);
		return SET_INTEGERS(pair * 0x10001u);
	}
	int32_t word;
	memcpy(&word, x, sizeof word);
	return SET_INTEGERS(word);
}

/* sum + x w for one group of inputs. */
INLINE accumulator multiply_add(accumulator sum, integers x, integers w, enum kind kind)
{
#ifdef __AVX512F__
	if (kind == KIND_F32) {
		sum.f = _mm512_fmadd_ps(_mm512_castsi512_ps(x), _mm512_castsi512_ps(w), sum.f);
	} else if (kind == KIND_BF16) {
#ifdef __AVX512BF16__
		sum.f = _mm512_dpbf16_ps(sum.f, (__m512bh)x, (__m512bh)w);
#else
		const __m512i high = _mm512_set1_epi32((int)0xffff0000);
		__m512 x0 = _mm512_castsi512_ps(_mm512_slli_epi32(x, 16)), w0 = _mm512_castsi512_ps(_mm512_slli_epi32(w, 16));
		__m512 x1 = _mm512_castsi512_ps(_mm512_and_si512(x, high)), w1 = _mm512_castsi512_ps(_mm512_and_si512(w, high));
		sum.f = _mm512_fmadd_ps(x1, w1, _mm512_fmadd_ps(x0, w0, sum.f));
#endif
	} else {
#ifdef __AVX512VNNI__
		sum.i = _mm512_dpbusd_epi32(sum.i, x, w);
#else
		sum.i = _mm512_add_epi32(sum.i, _mm512_madd_epi16(x, w));
#endif
	}
#elif defined(__ARM_NEON)
	if (kind == KIND_F32)
		sum.f = vfmaq_f32(sum.f, vreinterpretq_f32_u32(x), vreinterpretq_f32_u32(w));
	else {
		int32x4_t s = vreinterpretq_s32_u32(sum.i);
		int8x16_t a = vreinterpretq_s8_u32(x), b = vreinterpretq_s8_u32(w);
#ifdef __ARM_FEATURE_DOTPROD
		sum.i = vreinterpretq_u32_s32(vdotq_s32(s, a, b));
#else
		sum.i = vreinterpretq_u32_s32(vpadalq_s16(s, vmull_s8(vget_low_s8(a), vget_low_s8(b))));
#endif
	}
#else
	if (kind == KIND_F32)
		sum.f = _mm256_fmadd_ps(_mm256_castsi256_ps(x), _mm256_castsi256_ps(w), sum.f);
	else
		sum.i = _mm256_add_epi32(sum.i, _mm256_madd_epi16(x, w));
#endif
	return sum;
}

/* Lines of the next panel that one tile prefetches: `at` advances by a few lines every STEP groups. */
struct ahead {
	const char *at;
	int64_t lines;
};

INLINE void fetch_ahead(struct ahead *ahead)
{
	for (int64_t i = 0; i < ahead->lines; i++)
		__builtin_prefetch(ahead->at + i * 64, 0, 2);
	ahead->at += ahead->lines * 64;
}

/* One group of inputs for `rows` rows. Only every third row has a base address, so that the addresses fit into registers. */
INLINE void group(accumulator sum[TILE_ROWS][PANEL_VECTORS], const char *const base[BASES], int64_t stride, int64_t offset,
		  const char *w, int rows, enum kind kind)
{
	integers weights[PANEL_VECTORS];
	UNROLL_VECTORS
	for (int v = 0; v < PANEL_VECTORS; v++)
		weights[v] = load_weights(w + v * w_bytes(kind), kind);
	UNROLL_ROWS
	for (int r = 0; r < rows; r++) {
		integers x = broadcast(base[r / 3] + r % 3 * stride + offset, kind);
		UNROLL_VECTORS
		for (int v = 0; v < PANEL_VECTORS; v++)
			sum[r][v] = multiply_add(sum[r][v], x, weights[v], kind);
	}
}

INLINE float row_scale(const struct inference_product *a, int64_t row)
{
	return *(const float *)(const void *)((const char *)a->x + row * a->x_row - INT8_ROW_HEADER);
}

INLINE void tile(const struct inference_product *a, int64_t row, struct ahead ahead, const int rows, enum kind kind)
{
	const char *w = a->panel, *base[BASES];
	int64_t stride = a->x_row, groups = a->inputs / group_inputs(kind), left = a->inputs % group_inputs(kind), g = 0;
	accumulator sum[TILE_ROWS][PANEL_VECTORS];
	if (kind == KIND_S8) { /* rows and panels are padded */
		groups += left > 0;
		left = 0;
	}
	for (int i = 0; i < BASES; i++)
		base[i] = (const char *)a->x + (row + 3 * i) * stride;
	UNROLL_ROWS
	for (int r = 0; r < rows; r++) {
		UNROLL_VECTORS
		for (int v = 0; v < PANEL_VECTORS; v++) {
			sum[r][v].i = ZERO_INTEGERS();
#ifdef __AVX512VNNI__
			if (kind == KIND_S8)
				sum[r][v].i = LOAD_INTEGERS(a->sums + v * LANES);
#endif
		}
	}
	for (; g + STEP <= groups; g += STEP) {
		fetch_ahead(&ahead);
#pragma GCC unroll 4
		for (int64_t i = 0; i < STEP; i++)
			group(sum, base, stride, i * x_bytes(kind), w + i * PANEL_VECTORS * w_bytes(kind), rows, kind);
		for (int i = 0; i < BASES; i++)
			base[i] += STEP * x_bytes(kind);
		w += STEP * PANEL_VECTORS * w_bytes(kind);
	}
	for (; g < groups; g++) {
		group(sum, base, stride, 0, w, rows, kind);
		for (int i = 0; i < BASES; i++)
			base[i] += x_bytes(kind);
		w += PANEL_VECTORS * w_bytes(kind);
	}
	if (left > 0) { /* one unpaired bf16 number: the memory after it belongs to another row */
		UNROLL_ROWS
		for (int r = 0; r < rows; r++) {
			uint16_t number;
			memcpy(&number, base[r / 3] + r % 3 * stride, sizeof number);
			integers x = SET_INTEGERS(number);
			UNROLL_VECTORS
			for (int v = 0; v < PANEL_VECTORS; v++)
				sum[r][v] = multiply_add(sum[r][v], x, load_weights(w + v * w_bytes(kind), kind), kind);
		}
	}
	UNROLL_ROWS
	for (int r = 0; r < rows; r++) {
		float *y = a->y + (row + r) * a->y_row;
		vector scale = vector_set(0);
		if (kind == KIND_S8)
			scale = vector_set(row_scale(a, row + r));
		UNROLL_VECTORS
		for (int v = 0; v < PANEL_VECTORS; v++) {
			if (kind == KIND_S8)
				sum[r][v].f = TO_FLOATS(sum[r][v].i) * (vector_load(a->scales + v * LANES) * scale);
			vector_store(y + v * LANES, sum[r][v].f);
		}
	}
}

INLINE void end_rows(const struct inference_product *a, int64_t row, int64_t rows)
{
	if (a->end.finish)
		a->end.finish(a->end.context, row, rows);
}

/* Divides the rows into tiles of nearly equal height. */
INLINE void multiply(const struct inference_product *a, enum kind kind)
{
	int64_t tiles = (a->rows + TILE_ROWS - 1) / TILE_ROWS, groups = (a->inputs + group_inputs(kind) - 1) / group_inputs(kind);
	int64_t lines = (groups * PANEL_VECTORS * w_bytes(kind) + 63) / 64,
		step_lines = STEP * PANEL_VECTORS * w_bytes(kind) / 64;
	for (int64_t i = 0; i < tiles; i++) {
		int64_t row = a->rows * i / tiles, rows = a->rows * (i + 1) / tiles - row;
		struct ahead ahead = {.at = (const char *)a->next + lines * i / tiles * 64,
				      .lines = a->next ? (step_lines + tiles - 1) / tiles : 0};
		if (tiles > step_lines && i >= step_lines) /* already prefetched */
			ahead.lines = 0;
		else if (tiles > step_lines)
			ahead.at = (const char *)a->next + lines * i / step_lines * 64;
		switch (rows) {
		case 1: tile(a, row, ahead, 1, kind); break;
		case 2: tile(a, row, ahead, 2, kind); break;
		case 3: tile(a, row, ahead, 3, kind); break;
		case 4: tile(a, row, ahead, 4, kind); break;
		case 5: tile(a, row, ahead, 5, kind); break;
		case 6: tile(a, row, ahead, 6, kind); break;
#ifdef __AVX512F__
		case 7: tile(a, row, ahead, 7, kind); break;
		case 8: tile(a, row, ahead, 8, kind); break;
		case 9: tile(a, row, ahead, 9, kind); break;
		case 10: tile(a, row, ahead, 10, kind); break;
#endif
		default: __builtin_unreachable();
		}
	}
	end_rows(a, 0, a->rows);
}

#ifdef ISA_amx
/* Multiplies one block of up to 32 rows from `row` on; `lower` is true if there are more than 16 rows, so that the upper half
 * is full. int8 rows are unsigned, as for VNNI. */
INLINE void tiles_of_rows(const struct inference_product *a, int64_t row, struct ahead ahead, bool lower, enum kind kind)
{
	const char *x = (const char *)a->x + row * a->x_row, *w = a->panel;
	int64_t steps = (a->inputs * (kind == KIND_S8 ? 1 : 2) + TILE_ROW - 1) / TILE_ROW;
	int64_t y_row = a->y_row * (int64_t)sizeof(float);
	char *y = (char *)(a->y + row * a->y_row);
	_tile_zero(0);
	_tile_zero(1);
	if (lower) {
		_tile_zero(2);
		_tile_zero(3);
	}
	for (int64_t step = 0; step < steps; step++, x += TILE_ROW, w += 2 * TILE_ROWS_MOST * TILE_ROW) {
		fetch_ahead(&ahead);
		_tile_loadd(4, x, a->x_row);
		_tile_loadd(6, w, 2 * TILE_ROW);
		_tile_loadd(7, w + TILE_ROW, 2 * TILE_ROW);
		if (lower)
			_tile_loadd(5, x + TILE_ROWS_MOST * a->x_row, a->x_row);
		if (kind == KIND_S8) {
			_tile_dpbusd(0, 4, 6);
			_tile_dpbusd(1, 4, 7);
			if (lower) {
				_tile_dpbusd(2, 5, 6);
				_tile_dpbusd(3, 5, 7);
			}
		} else {
			_tile_dpbf16ps(0, 4, 6);
			_tile_dpbf16ps(1, 4, 7);
			if (lower) {
				_tile_dpbf16ps(2, 5, 6);
				_tile_dpbf16ps(3, 5, 7);
			}
		}
	}
	_tile_stored(0, y, y_row);
	_tile_stored(1, y + TILE_ROW, y_row);
	if (lower) {
		_tile_stored(2, y + TILE_ROWS_MOST * y_row, y_row);
		_tile_stored(3, y + TILE_ROWS_MOST * y_row + TILE_ROW, y_row);
	}
}

/* Converts the integer sums of a block, as the tiles leave them, to floats in place, and does what follows. */
INLINE void finish_block(const struct inference_product *a, int64_t block, enum kind kind)
{
	int64_t first = block * 2 * TILE_ROWS_MOST;
	int64_t end = first + 2 * TILE_ROWS_MOST < a->rows ? first + 2 * TILE_ROWS_MOST : a->rows;
	for (int64_t row = first; kind == KIND_S8 && row < end; row++) {
		float *y = a->y + row * a->y_row;
		vector scale = vector_set(row_scale(a, row));
		for (int64_t c = 0; c < PANEL; c += LANES) {
			integers sum = _mm512_add_epi32(LOAD_INTEGERS(y + c), LOAD_INTEGERS(a->sums + c));
			vector_store(y + c, TO_FLOATS(sum) * (vector_load(a->scales + c) * scale));
		}
	}
	end_rows(a, first, end - first);
}

/* A block is finished after the instructions of the next block's product, so that the processor can do both at a time. */
INLINE void multiply_tiles(const struct inference_product *a, enum kind kind)
{
	int64_t full = a->rows / (2 * TILE_ROWS_MOST), left = a->rows % (2 * TILE_ROWS_MOST), blocks = full + (left > 0);
	int64_t steps = (a->inputs * (kind == KIND_S8 ? 1 : 2) + TILE_ROW - 1) / TILE_ROW;
	int64_t lines = steps * 2 * TILE_ROWS_MOST, step_lines = 2 * TILE_ROWS_MOST;
	if (full > 0)
		configure_tiles(TILE_ROWS_MOST, TILE_ROWS_MOST);
	for (int64_t i = 0; i < blocks; i++) {
		struct ahead ahead = {.at = (const char *)a->next + lines * i / blocks * 64,
				      .lines = a->next ? (step_lines + blocks - 1) / blocks : 0};
		if (i == full)
			configure_tiles(left < TILE_ROWS_MOST ? left : TILE_ROWS_MOST,
					left < TILE_ROWS_MOST ? 0 : left - TILE_ROWS_MOST);
		if (i < full || left > TILE_ROWS_MOST)
			tiles_of_rows(a, i * 2 * TILE_ROWS_MOST, ahead, true, kind);
		else
			tiles_of_rows(a, i * 2 * TILE_ROWS_MOST, ahead, false, kind);
		if (i > 0)
			finish_block(a, i - 1, kind);
	}
	if (blocks > 0)
		finish_block(a, blocks - 1, kind);
	_tile_release();
}
#endif

#ifdef ISA_neon_mmla
enum { CHUNK = 16, MMLA_ROWS = 4, PANEL_UNITS = PANEL / 2 };

/* One unit of 2 x 8 bytes of rows times one of outputs: a 2 x 2 sum. */
INLINE accumulator multiply_units(accumulator sum, uint64x2_t x, uint64x2_t w, enum kind kind)
{
	if (kind == KIND_S8)
		sum.i = vreinterpretq_u32_s32(
			vmmlaq_s32(vreinterpretq_s32_u32(sum.i), vreinterpretq_s8_u64(x), vreinterpretq_s8_u64(w)));
	else
		sum.f = vbfmmlaq_f32(sum.f, vreinterpretq_bf16_u64(x), vreinterpretq_bf16_u64(w));
	return sum;
}

/* 16 bytes of each row: two units along the inputs for each two rows. */
INLINE void multiply_chunk(accumulator sum[MMLA_ROWS / 2][PANEL_UNITS], const char *const x[MMLA_ROWS], const char *w,
			   const int pairs, enum kind kind)
{
	uint64x2_t units[2][MMLA_ROWS / 2];
#pragma GCC unroll 2
	for (int i = 0; i < pairs; i++) {
		uint64x2_t upper = vreinterpretq_u64_u8(vld1q_u8((const uint8_t *)x[2 * i]));
		uint64x2_t lower = vreinterpretq_u64_u8(vld1q_u8((const uint8_t *)x[2 * i + 1]));
		units[0][i] = vzip1q_u64(upper, lower);
		units[1][i] = vzip2q_u64(upper, lower);
	}
#pragma GCC unroll 2
	for (int half = 0; half < 2; half++)
#pragma GCC unroll 8
		for (int j = 0; j < PANEL_UNITS; j++) {
			const char *at = w + (half * PANEL_UNITS + j) * CHUNK;
			uint64x2_t weights = vreinterpretq_u64_u8(vld1q_u8((const uint8_t *)at));
#pragma GCC unroll 2
			for (int i = 0; i < pairs; i++)
				sum[i][j] = multiply_units(sum[i][j], units[half][i], weights, kind);
		}
}

/* Up to four rows, the last of which stands for missing ones. */
INLINE void mmla_tile(const struct inference_product *a, int64_t row, int64_t rows, struct ahead ahead, const int pairs,
		      enum kind kind)
{
	const char *x[MMLA_ROWS], *w = a->panel;
	int64_t bytes = a->inputs * (kind == KIND_S8 ? 1 : 2),
		chunks = kind == KIND_S8 ? (bytes + CHUNK - 1) / CHUNK : bytes / CHUNK;
	accumulator sum[MMLA_ROWS / 2][PANEL_UNITS];
#pragma GCC unroll 4
	for (int r = 0; r < 2 * pairs; r++)
		x[r] = (const char *)a->x + (row + (r < rows ? r : rows - 1)) * a->x_row;
#pragma GCC unroll 2
	for (int i = 0; i < pairs; i++)
#pragma GCC unroll 8
		for (int j = 0; j < PANEL_UNITS; j++)
			sum[i][j].i = ZERO_INTEGERS();
	for (int64_t chunk = 0; chunk < chunks; chunk++, w += 2 * PANEL_UNITS * CHUNK) {
		fetch_ahead(&ahead);
		multiply_chunk(sum, x, w, pairs, kind);
#pragma GCC unroll 4
		for (int r = 0; r < 2 * pairs; r++)
			x[r] += CHUNK;
	}
	if (kind == KIND_BF16 && bytes % CHUNK > 0) { /* the memory after a row's last numbers belongs to another row */
		char last[MMLA_ROWS][CHUNK] = {{0}};
		for (int r = 0; r < 2 * pairs; r++)
			x[r] = memcpy(last[r], x[r], (size_t)(bytes % CHUNK));
		multiply_chunk(sum, x, w, pairs, kind);
	}
	for (int64_t r = 0; r < rows; r++) {
		float *y = a->y + (row + r) * a->y_row;
		for (int j = 0; j < PANEL_UNITS; j += 2) {
			uint64x2_t first = vreinterpretq_u64_u32(sum[r / 2][j].i),
				   second = vreinterpretq_u64_u32(sum[r / 2][j + 1].i);
			accumulator four = {
				.i = vreinterpretq_u32_u64(r % 2 ? vzip2q_u64(first, second) : vzip1q_u64(first, second))};
			if (kind == KIND_S8)
				four.f = TO_FLOATS(four.i) * (vector_load(a->scales + 2 * j) * vector_set(row_scale(a, row + r)));
			vector_store(y + 2 * j, four.f);
		}
	}
}

INLINE void multiply_mmla(const struct inference_product *a, enum kind kind)
{
	int64_t chunks = (a->inputs * (kind == KIND_S8 ? 1 : 2) + CHUNK - 1) / CHUNK, chunk_lines = 2 * PANEL_UNITS * CHUNK / 64;
	for (int64_t row = 0; row < a->rows; row += MMLA_ROWS) {
		int64_t rows = a->rows - row < MMLA_ROWS ? a->rows - row : MMLA_ROWS, tile = row / MMLA_ROWS;
		/* The first tiles prefetch one line of the next panel per chunk each. */
		struct ahead ahead = {.at = (const char *)a->next + tile * chunks * 64,
				      .lines = a->next && tile < chunk_lines ? 1 : 0};
		if (a->next && a->rows <= MMLA_ROWS)
			ahead.lines = chunk_lines;
		if (rows > 2)
			mmla_tile(a, row, rows, ahead, 2, kind);
		else
			mmla_tile(a, row, rows, ahead, 1, kind);
	}
	end_rows(a, 0, a->rows);
}
#endif

static void multiply_f32(const struct inference_product *a)
{
	multiply(a, KIND_F32);
}

#ifdef ISA_neon_mmla
static void multiply_bf16(const struct inference_product *a)
{
	multiply_mmla(a, KIND_BF16);
}
#elif defined(__AVX512F__)
static void multiply_bf16(const struct inference_product *a)
{
#ifdef ISA_amx
	/* Tiles take whole chunks of a row. The path depends on the weight alone, so its sums are always computed the same
	 * way. */
	if (a->inputs % (TILE_ROW / 2) == 0) {
		multiply_tiles(a, KIND_BF16);
		return;
	}
#endif
	multiply(a, KIND_BF16);
}
#endif

static void multiply_s8(const struct inference_product *a)
{
#ifdef ISA_amx
	multiply_tiles(a, KIND_S8);
#elif defined(ISA_neon_mmla)
	multiply_mmla(a, KIND_S8);
#else
	multiply(a, KIND_S8);
#endif
}

static int64_t select_larger(const float *block, int64_t rows, const float *limits, struct selected *out)
{
	int64_t count = 0;
	vector limit[PANEL_VECTORS];
	for (int v = 0; v < PANEL_VECTORS; v++)
		limit[v] = vector_load(limits + v * LANES);
	for (int64_t r = 0; r < rows; r++, block += PANEL) {
		uint32_t larger = 0;
		UNROLL_VECTORS
		for (int v = 0; v < PANEL_VECTORS; v++)
			larger |= larger_lanes(vector_load(block + v * LANES), limit[v]) << v * LANES;
		for (; larger; larger &= larger - 1) {
			int32_t column = __builtin_ctz(larger);
			out[count++] = (struct selected){block[column], (int32_t)r, column};
		}
	}
	return count;
}

void KERNEL(inference_pack)(const struct panel_pack *a);
void KERNEL(inference_attend)(const struct inference_attention *a);
void KERNEL(inference_quantize)(const void *x, enum dtype dtype, int64_t rows, int64_t columns, void *out, int64_t out_row);

const struct inference_kernels KERNEL(inference_kernels) = {
	.panel = PANEL,
#ifdef ISA_amx
	.tile_rows = 2 * TILE_ROWS_MOST,
#elif defined(ISA_neon_mmla)
	.tile_rows = MMLA_ROWS,
#else
	.tile_rows = TILE_ROWS,
#endif
#if defined(__AVX512VNNI__) || defined(__ARM_NEON)
	.row_bytes = 1,
#else
	.row_bytes = 2,
#endif
	.multiply_f32 = multiply_f32,
#if defined(__AVX512F__) || defined(ISA_neon_mmla)
	.multiply_bf16 = multiply_bf16,
#endif
	.multiply_s8 = multiply_s8,
	.pack = KERNEL(inference_pack),
	.quantize = KERNEL(inference_quantize),
	.select = select_larger,
#ifdef __AVX512BF16__
	.attend = KERNEL(inference_attend),
#endif
};
