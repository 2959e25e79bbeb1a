/* Inference's products: some rows of activations times one panel of a weight.
 *
 * A tile of up to TILE_ROWS rows and the panel's two vectors of outputs is accumulated in registers over all inputs. The first
 * tile reads the panel from memory; the others find it in the first- or second-level cache. While a panel is multiplied, the
 * next one is prefetched a few lines at a time, so that memory access and arithmetic overlap even for few rows. */
#include "backend/cpu/kernels/elements.h"
#include "backend/cpu/kernels/inference_kernels.h"

enum { PANEL = 2 * LANES };
#ifdef __AVX512F__
enum { TILE_ROWS = 10 }; /* 12 would fit into the registers, but compilers then add moves */
#define UNROLL_ROWS _Pragma("GCC unroll 10")
#else
enum { TILE_ROWS = 6 };
#define UNROLL_ROWS _Pragma("GCC unroll 6")
#endif

/* Groups of inputs between two prefetches; base addresses, each for three rows. */
enum { STEP = 4, BASES = (TILE_ROWS + 2) / 3 };

enum kind { KIND_F32, KIND_BF16, KIND_S8 };

#ifdef __AVX512F__
typedef __m512i integers;
#define LOAD_INTEGERS(p) _mm512_loadu_si512(p)
#define SET_INTEGERS(x) _mm512_set1_epi32(x)
#define ZERO_INTEGERS() _mm512_setzero_si512()
#define TO_FLOATS(x) _mm512_cvtepi32_ps(x)
#else
typedef __m256i integers;
#define LOAD_INTEGERS(p) _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define SET_INTEGERS(x) _mm256_set1_epi32(x)
#define ZERO_INTEGERS() _mm256_setzero_si256()
#define TO_FLOATS(x) _mm256_cvtepi32_ps(x)
#endif

/* One vector of sums: floats, or integers of the same width. */
typedef union {
	vector f;
	integers i;
} accumulator;

/* Bytes of a group of inputs in a row of activations, and in one vector of a panel. */
INLINE int64_t x_bytes(enum kind kind)
{
	(void)kind;
	return 4;
}

INLINE int64_t w_bytes(enum kind kind)
{
#ifdef __AVX512VNNI__
	(void)kind;
	return LANES * 4;
#else
	return kind == KIND_S8 ? LANES * 2 : LANES * 4;
#endif
}

INLINE int64_t group_inputs(enum kind kind)
{
#ifdef __AVX512VNNI__
	return kind == KIND_F32 ? 1 : kind == KIND_BF16 ? 2 : 4;
#else
	return kind == KIND_F32 ? 1 : 2;
#endif
}

INLINE integers load_weights(const char *w, enum kind kind)
{
#ifndef __AVX512VNNI__
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

INLINE integers broadcast(const char *x)
{
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
INLINE void group(accumulator sum[TILE_ROWS][2], const char *const base[BASES], int64_t stride, int64_t offset, const char *w,
		  int rows, enum kind kind)
{
	integers w0 = load_weights(w, kind), w1 = load_weights(w + w_bytes(kind), kind);
	UNROLL_ROWS
	for (int r = 0; r < rows; r++) {
		integers x = broadcast(base[r / 3] + r % 3 * stride + offset);
		sum[r][0] = multiply_add(sum[r][0], x, w0, kind);
		sum[r][1] = multiply_add(sum[r][1], x, w1, kind);
	}
}

INLINE void tile(const struct inference_product *a, int64_t row, struct ahead ahead, const int rows, enum kind kind)
{
	const char *w = a->panel, *base[BASES];
	int64_t stride = a->x_row, groups = a->inputs / group_inputs(kind), left = a->inputs % group_inputs(kind), g = 0;
	accumulator sum[TILE_ROWS][2];
	if (kind == KIND_S8) { /* rows and panels are padded */
		groups += left > 0;
		left = 0;
	}
	for (int i = 0; i < BASES; i++)
		base[i] = (const char *)a->x + (row + 3 * i) * stride;
	UNROLL_ROWS
	for (int r = 0; r < rows; r++) {
		sum[r][0].i = sum[r][1].i = ZERO_INTEGERS();
#ifdef __AVX512VNNI__
		if (kind == KIND_S8) {
			sum[r][0].i = LOAD_INTEGERS(a->sums);
			sum[r][1].i = LOAD_INTEGERS(a->sums + LANES);
		}
#endif
	}
	for (; g + STEP <= groups; g += STEP) {
		fetch_ahead(&ahead);
#pragma GCC unroll 4
		for (int64_t i = 0; i < STEP; i++)
			group(sum, base, stride, i * x_bytes(kind), w + i * 2 * w_bytes(kind), rows, kind);
		for (int i = 0; i < BASES; i++)
			base[i] += STEP * x_bytes(kind);
		w += STEP * 2 * w_bytes(kind);
	}
	for (; g < groups; g++) {
		group(sum, base, stride, 0, w, rows, kind);
		for (int i = 0; i < BASES; i++)
			base[i] += x_bytes(kind);
		w += 2 * w_bytes(kind);
	}
	if (left > 0) { /* one unpaired bf16 number: the memory after it belongs to another row */
		integers w0 = load_weights(w, kind), w1 = load_weights(w + w_bytes(kind), kind);
		UNROLL_ROWS
		for (int r = 0; r < rows; r++) {
			uint16_t number;
			memcpy(&number, base[r / 3] + r % 3 * stride, sizeof number);
			integers x = SET_INTEGERS(number);
			sum[r][0] = multiply_add(sum[r][0], x, w0, kind);
			sum[r][1] = multiply_add(sum[r][1], x, w1, kind);
		}
	}
	UNROLL_ROWS
	for (int r = 0; r < rows; r++) {
		float *y = a->y + (row + r) * a->y_row;
		if (kind == KIND_S8) {
			vector scale = vector_set(
				*(const float *)(const void *)((const char *)a->x + (row + r) * stride - INT8_ROW_HEADER));
			sum[r][0].f = TO_FLOATS(sum[r][0].i) * (vector_load(a->scales) * scale);
			sum[r][1].f = TO_FLOATS(sum[r][1].i) * (vector_load(a->scales + LANES) * scale);
		}
		vector_store(y, sum[r][0].f);
		vector_store(y + LANES, sum[r][1].f);
	}
}

/* Divides the rows into tiles of nearly equal height. */
INLINE void multiply(const struct inference_product *a, enum kind kind)
{
	int64_t tiles = (a->rows + TILE_ROWS - 1) / TILE_ROWS, groups = (a->inputs + group_inputs(kind) - 1) / group_inputs(kind);
	int64_t lines = (groups * 2 * w_bytes(kind) + 63) / 64, step_lines = STEP * 2 * w_bytes(kind) / 64;
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
}

#ifdef ISA_amx
/* Tiles 0-3 hold the sums of up to 32 rows and the panel's 32 outputs, 4 and 5 two halves of the rows, 6 and 7 the panel's two
 * vectors of outputs for as many groups as a tile row has words. */
struct tile_configuration {
	uint8_t palette, start_row, reserved[14];
	uint16_t column_bytes[16];
	uint8_t rows[16];
};

enum { TILE_BYTES = 64, HALF_ROWS = 16 };

static void configure_tiles(int64_t upper, int64_t lower)
{
	struct tile_configuration tiles = {.palette = 1};
	uint8_t rows[8] = {(uint8_t)upper, (uint8_t)upper, (uint8_t)lower, (uint8_t)lower,
			   (uint8_t)upper, (uint8_t)lower, HALF_ROWS,      HALF_ROWS};
	for (int i = 0; i < 8; i++) {
		tiles.rows[i] = rows[i];
		tiles.column_bytes[i] = rows[i] ? TILE_BYTES : 0;
	}
	_tile_loadconfig(&tiles);
}

/* Multiplies one block of up to 32 rows from `row` on; `lower` is true if there are more than 16 rows, so that the upper half
 * is full. int8 rows are unsigned, as for VNNI. */
INLINE void tiles_of_rows(const struct inference_product *a, int64_t row, struct ahead ahead, bool lower, enum kind kind)
{
	const char *x = (const char *)a->x + row * a->x_row, *w = a->panel;
	int64_t steps = (a->inputs * (kind == KIND_S8 ? 1 : 2) + TILE_BYTES - 1) / TILE_BYTES;
	int64_t y_row = a->y_row * (int64_t)sizeof(float);
	char *y = (char *)(a->y + row * a->y_row);
	_tile_zero(0);
	_tile_zero(1);
	if (lower) {
		_tile_zero(2);
		_tile_zero(3);
	}
	for (int64_t step = 0; step < steps; step++, x += TILE_BYTES, w += 2 * HALF_ROWS * TILE_BYTES) {
		fetch_ahead(&ahead);
		_tile_loadd(4, x, a->x_row);
		_tile_loadd(6, w, 2 * TILE_BYTES);
		_tile_loadd(7, w + TILE_BYTES, 2 * TILE_BYTES);
		if (lower)
			_tile_loadd(5, x + HALF_ROWS * a->x_row, a->x_row);
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
	_tile_stored(1, y + TILE_BYTES, y_row);
	if (lower) {
		_tile_stored(2, y + HALF_ROWS * y_row, y_row);
		_tile_stored(3, y + HALF_ROWS * y_row + TILE_BYTES, y_row);
	}
}

/* Converts integer sums, as the tiles leave them, to floats in place. */
INLINE void finish_integers(const struct inference_product *a)
{
	for (int64_t row = 0; row < a->rows; row++) {
		float *y = a->y + row * a->y_row;
		vector scale = vector_set(*(const float *)(const void *)((const char *)a->x + row * a->x_row - INT8_ROW_HEADER));
		for (int64_t c = 0; c < PANEL; c += LANES) {
			integers sum = _mm512_add_epi32(LOAD_INTEGERS(y + c), LOAD_INTEGERS(a->sums + c));
			vector_store(y + c, TO_FLOATS(sum) * (vector_load(a->scales + c) * scale));
		}
	}
}

INLINE void multiply_tiles(const struct inference_product *a, enum kind kind)
{
	int64_t full = a->rows / (2 * HALF_ROWS), left = a->rows % (2 * HALF_ROWS), blocks = full + (left > 0);
	int64_t steps = (a->inputs * (kind == KIND_S8 ? 1 : 2) + TILE_BYTES - 1) / TILE_BYTES;
	int64_t lines = steps * 2 * HALF_ROWS, step_lines = 2 * HALF_ROWS;
	if (full > 0)
		configure_tiles(HALF_ROWS, HALF_ROWS);
	for (int64_t i = 0; i < blocks; i++) {
		struct ahead ahead = {.at = (const char *)a->next + lines * i / blocks * 64,
				      .lines = a->next ? (step_lines + blocks - 1) / blocks : 0};
		if (i < full) {
			tiles_of_rows(a, i * 2 * HALF_ROWS, ahead, true, kind);
			continue;
		}
		int64_t upper = left < HALF_ROWS ? left : HALF_ROWS;
		configure_tiles(upper, left - upper);
		if (left > upper)
			tiles_of_rows(a, i * 2 * HALF_ROWS, ahead, true, kind);
		else
			tiles_of_rows(a, i * 2 * HALF_ROWS, ahead, false, kind);
	}
	_tile_release();
	if (kind == KIND_S8)
		finish_integers(a);
}
#endif

static void multiply_f32(const struct inference_product *a)
{
	multiply(a, KIND_F32);
}

#ifdef __AVX512F__
static void multiply_bf16(const struct inference_product *a)
{
#ifdef ISA_amx
	/* Tiles take whole chunks of a row. The path depends on the weight alone, so its sums are always computed the same
	 * way. */
	if (a->inputs % (TILE_BYTES / 2) == 0) {
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
#else
	multiply(a, KIND_S8);
#endif
}

/* A bit for each lane in which a is larger than b. */
INLINE uint32_t larger_lanes(vector a, vector b)
{
#ifdef __AVX512F__
	return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ);
#else
	return (uint32_t)_mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_GT_OQ));
#endif
}

static int64_t select_larger(const float *block, int64_t rows, const float *limits, struct selected *out)
{
	int64_t count = 0;
	vector low = vector_load(limits), high = vector_load(limits + LANES);
	for (int64_t r = 0; r < rows; r++, block += PANEL) {
		uint32_t lanes = larger_lanes(vector_load(block), low) | larger_lanes(vector_load(block + LANES), high) << LANES;
		for (; lanes; lanes &= lanes - 1) {
			int32_t column = __builtin_ctz(lanes);
			out[count++] = (struct selected){block[column], (int32_t)r, column};
		}
	}
	return count;
}

void KERNEL(inference_pack)(const struct panel_pack *a);
void KERNEL(inference_attend)(const struct inference_attention *a);
void KERNEL(inference_quantise)(const void *x, enum dtype dtype, int64_t rows, int64_t columns, void *out, int64_t out_row);

const struct inference_kernels KERNEL(inference_kernels) = {
	.panel = PANEL,
#ifdef __AVX512VNNI__
	.row_bytes = 1,
#else
	.row_bytes = 2,
#endif
	.multiply_f32 = multiply_f32,
#ifdef __AVX512F__
	.multiply_bf16 = multiply_bf16,
#endif
	.multiply_s8 = multiply_s8,
	.pack = KERNEL(inference_pack),
	.quantise = KERNEL(inference_quantise),
	.select = select_larger,
#ifdef __AVX512BF16__
	.attend = KERNEL(inference_attend),
#endif
};
