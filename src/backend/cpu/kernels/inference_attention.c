/* Attention of one head of one sequence of up to a few hundred tokens, in bf16, for inference.
 *
 * Keys are packed once with 16 of them side by side, values with pairs of tokens side by side, as vdpbf16ps and AMX's tiles
 * expect them; then a few queries at a time are processed: scores against all keys, softmax, the sum of the values. Only the
 * keys are padded (to 16, for tiles to 32), so the cost of short sequences is in proportion to their length. A row of the result
 * is a function of its sequence alone. */
#include "backend/cpu/kernels/elements.h"
#include "backend/cpu/kernels/inference_kernels.h"
#ifdef ISA_amx
#include "backend/cpu/kernels/tile_configuration.h"
#endif

#ifdef __AVX512BF16__

void KERNEL(inference_attend)(const struct inference_attention *a);

INLINE __m512i load_row(const struct inference_attention *a, const uint16_t *rows, int64_t token, int64_t column)
{
	return token < a->length ? _mm512_loadu_si512(rows + token * a->row + column) : _mm512_setzero_si512();
}

/* [block of 16 keys][pair of columns][key] */
INLINE void pack_keys(const struct inference_attention *a, uint32_t *out, int64_t keys, int size)
{
	for (int64_t key = 0; key < keys; key += 16) {
		for (int column = 0; column < size; column += 32, out += 256) {
			__m512 r[16];
#pragma GCC unroll 16
			for (int i = 0; i < 16; i++)
				r[i] = _mm512_castsi512_ps(load_row(a, a->key, key + i, column));
			transpose(r);
#pragma GCC unroll 16
			for (int i = 0; i < 16; i++)
				_mm512_storeu_ps(out + 16 * i, r[i]);
		}
	}
}

/* [pair of tokens][column] */
INLINE void pack_values(const struct inference_attention *a, uint32_t *out, int64_t keys, int size)
{
	uint16_t order[2][32];
	for (int i = 0; i < 32; i++) {
		order[0][i] = (uint16_t)(i / 2 + i % 2 * 32);
		order[1][i] = (uint16_t)(16 + i / 2 + i % 2 * 32);
	}
	const __m512i low = _mm512_loadu_si512(order[0]), high = _mm512_loadu_si512(order[1]);
	for (int64_t token = 0; token < keys; token += 2) {
		for (int column = 0; column < size; column += 32, out += 32) {
			__m512i even = load_row(a, a->value, token, column), odd = load_row(a, a->value, token + 1, column);
			_mm512_storeu_si512(out, _mm512_permutex2var_epi16(even, low, odd));
			_mm512_storeu_si512(out + 16, _mm512_permutex2var_epi16(even, high, odd));
		}
	}
}

/* 2^x to 3e-6 relative, where bf16 keeps 4e-3; 0 far below 0. The polynomial is a minimax fit of 2^r on 0 <= r < 1. */
INLINE vector vector_exp2(vector x)
{
	vector r = _mm512_reduce_ps(x, _MM_FROUND_TO_NEG_INF); /* x - floor(x), exactly */
	vector p = vector_set(0.013534444384276867f);
	p = vector_fma(p, r, vector_set(0.052010949701070786f));
	p = vector_fma(p, r, vector_set(0.24144303798675537f));
	p = vector_fma(p, r, vector_set(0.69300377368927f));
	p = vector_fma(p, r, vector_set(1.0000026226043701f));
	return _mm512_scalef_ps(p, x); /* p 2^floor(x) */
}

/* exp(scale (score - largest)) in bf16, with zeros after the last key; returns 1 / their sum. */
INLINE float softmax_row(const float *scores, int64_t length, int64_t keys, float scale, uint16_t *out)
{
	const int64_t whole = length / LANES * LANES;
	const __mmask16 tail = first_lanes(length - whole);
	vector most = vector_set(-__builtin_inff());
	int64_t k = 0;
	for (; k < whole; k += LANES)
		most = vector_max(vector_load(scores + k), most);
	if (tail)
		most = _mm512_mask_max_ps(most, tail, vector_load(scores + k), most);
	const vector largest = vector_set(vector_largest(most)), factor = vector_set(scale * 1.44269504f);
	vector sum = vector_set(0);
	for (k = 0; k < whole; k += LANES) {
		vector e = vector_exp2((vector_load(scores + k) - largest) * factor);
		sum += e;
		_mm256_storeu_si256((__m256i *)(void *)(out + k), to_bf16(e));
	}
	if (tail) {
		vector e = _mm512_maskz_mov_ps(tail, vector_exp2((vector_load(scores + k) - largest) * factor));
		sum += e;
		_mm256_storeu_si256((__m256i *)(void *)(out + k), to_bf16(e));
		k += LANES;
	}
	for (; k < keys; k += LANES)
		_mm256_storeu_si256((__m256i *)(void *)(out + k), _mm256_setzero_si256());
	return 1 / vector_sum(sum);
}

/* The next head's parts of some rows, which are too short for hardware prefetchers to detect. */
INLINE void fetch_next(const struct inference_attention *a, int64_t first, int64_t rows, const int size)
{
	if (!a->has_next)
		return;
	for (int64_t token = first; token < first + rows; token++)
		for (int column = 0; column < size; column += 32) {
			__builtin_prefetch(a->query + token * a->row + size + column);
			__builtin_prefetch(a->key + token * a->row + size + column);
			__builtin_prefetch(a->value + token * a->row + size + column);
		}
}

#ifdef ISA_amx
/* Tiles 0-3 hold sums, 4 and 5 queries or probabilities, 6 and 7 keys or values. */
enum { TILE = 16 * 64 };

/* Scores of up to 16 queries, in tiles 4 and 5, against `blocks` x 16 keys (2 or 4). */
INLINE void tile_scores(const char *keys, char *scores, int64_t row, const int blocks, const int size)
{
	const int64_t block = size / 32 * TILE;
	_tile_zero(0);
	_tile_zero(1);
	if (blocks == 4) {
		_tile_zero(2);
		_tile_zero(3);
	}
	_tile_loadd(6, keys, 64);
	_tile_dpbf16ps(0, 4, 6);
	_tile_loadd(7, keys + block, 64);
	_tile_dpbf16ps(1, 4, 7);
	if (blocks == 4) {
		_tile_loadd(6, keys + 2 * block, 64);
		_tile_dpbf16ps(2, 4, 6);
		_tile_loadd(7, keys + 3 * block, 64);
		_tile_dpbf16ps(3, 4, 7);
	}
	if (size == 64) {
		_tile_loadd(6, keys + TILE, 64);
		_tile_dpbf16ps(0, 5, 6);
		_tile_loadd(7, keys + block + TILE, 64);
		_tile_dpbf16ps(1, 5, 7);
		if (blocks == 4) {
			_tile_loadd(6, keys + 2 * block + TILE, 64);
			_tile_dpbf16ps(2, 5, 6);
			_tile_loadd(7, keys + 3 * block + TILE, 64);
			_tile_dpbf16ps(3, 5, 7);
		}
	}
	_tile_stored(0, scores, row);
	_tile_stored(1, scores + 64, row);
	if (blocks == 4) {
		_tile_stored(2, scores + 128, row);
		_tile_stored(3, scores + 192, row);
	}
}

/* 32 tokens of the sums of the values; `probabilities` has rows of `row` bytes. */
INLINE void tile_values(const char *probabilities, int64_t row, const char *values, const int size)
{
	_tile_loadd(4, probabilities, row);
	_tile_loadd(6, values, 4 * size);
	_tile_dpbf16ps(0, 4, 6);
	_tile_loadd(7, values + 64, 4 * size);
	_tile_dpbf16ps(1, 4, 7);
	if (size == 64) {
		_tile_loadd(6, values + 128, 4 * size);
		_tile_dpbf16ps(2, 4, 6);
		_tile_loadd(7, values + 192, 4 * size);
		_tile_dpbf16ps(3, 4, 7);
	}
}

/* Up to 16 queries from `first` on; the sums of the values take the place of the scores. */
INLINE void query_tile(const struct inference_attention *a, int64_t first, int64_t queries, int64_t padded, const char *keys,
		       const char *values, float *scores, const int size)
{
	uint16_t *probabilities = (uint16_t *)(scores + ATTENTION_QUERIES * padded);
	const char *query = (const char *)(a->query + first * a->row);
	float factors[ATTENTION_QUERIES];
	int64_t k = 0;
	_tile_loadd(4, query, 2 * a->row);
	if (size == 64)
		_tile_loadd(5, query + 64, 2 * a->row);
	for (; k + 64 <= padded; k += 64)
		tile_scores(keys + 2 * k * size, (char *)(scores + k), 4 * padded, 4, size);
	if (k < padded)
		tile_scores(keys + 2 * k * size, (char *)(scores + k), 4 * padded, 2, size);
	fetch_next(a, first, queries, size);
	for (int64_t q = 0; q < queries; q++)
		factors[q] = softmax_row(scores + q * padded, a->length, padded, a->scale, probabilities + q * padded);
	settle_stores();
	_tile_zero(0);
	_tile_zero(1);
	if (size == 64) {
		_tile_zero(2);
		_tile_zero(3);
	}
	for (k = 0; k < padded; k += 32)
		tile_values((const char *)(probabilities + k), 2 * padded, values + 2 * k * size, size);
	_tile_stored(0, scores, 4 * size);
	_tile_stored(1, (char *)scores + 64, 4 * size);
	if (size == 64) {
		_tile_stored(2, (char *)scores + 128, 4 * size);
		_tile_stored(3, (char *)scores + 192, 4 * size);
	}
	for (int64_t q = 0; q < queries; q++) {
		const vector factor = vector_set(factors[q]);
#pragma GCC unroll 2
		for (int c = 0; c < size; c += 32)
			_mm512_storeu_si512(a->y + (first + q) * a->y_row + c,
					    (__m512i)_mm512_cvtne2ps_pbh(vector_load(scores + q * size + c + 16) * factor,
									 vector_load(scores + q * size + c) * factor));
	}
}

INLINE void head(const struct inference_attention *a, const int size)
{
	int64_t padded = round_up(a->length, 32), full = a->length / ATTENTION_QUERIES * ATTENTION_QUERIES;
	uint32_t *keys = a->scratch, *values = keys + padded * size / 2;
	float *scores = (float *)(values + padded * size / 2);
	pack_keys(a, keys, padded, size);
	pack_values(a, values, padded, size);
	settle_stores();
	if (full > 0)
		configure_tiles(ATTENTION_QUERIES, ATTENTION_QUERIES);
	for (int64_t q = 0; q < full; q += ATTENTION_QUERIES)
		query_tile(a, q, ATTENTION_QUERIES, padded, (const char *)keys, (const char *)values, scores, size);
	if (full < a->length) {
		configure_tiles(a->length - full, a->length - full);
		query_tile(a, full, a->length - full, padded, (const char *)keys, (const char *)values, scores, size);
	}
	_tile_release();
}

#else
enum { QUERIES = 4, VECTORS = 4 };

INLINE __m512i broadcast_pair(const uint16_t *pair)
{
	int32_t word;
	memcpy(&word, pair, sizeof word);
	return _mm512_set1_epi32(word);
}

/* scores[q][...] of `vectors` x 16 keys for `queries` queries; `keys` points to the first packed block of them. */
INLINE void multiply_keys(const uint16_t *query, int64_t row, const uint32_t *keys, float *scores, int64_t scores_row,
			  const int queries, const int vectors, const int size)
{
	__m512 sum[QUERIES][VECTORS];
#pragma GCC unroll 4
	for (int q = 0; q < queries; q++)
#pragma GCC unroll 4
		for (int v = 0; v < vectors; v++)
			sum[q][v] = _mm512_setzero_ps();
	for (int pair = 0; pair < size / 2; pair++) {
		__m512i w[VECTORS];
#pragma GCC unroll 4
		for (int v = 0; v < vectors; v++)
			w[v] = _mm512_loadu_si512(keys + (v * size / 2 + pair) * 16);
#pragma GCC unroll 4
		for (int q = 0; q < queries; q++) {
			__m512i x = broadcast_pair(query + q * row + 2 * pair);
#pragma GCC unroll 4
			for (int v = 0; v < vectors; v++)
				sum[q][v] = _mm512_dpbf16_ps(sum[q][v], (__m512bh)x, (__m512bh)w[v]);
		}
	}
#pragma GCC unroll 4
	for (int q = 0; q < queries; q++)
#pragma GCC unroll 4
		for (int v = 0; v < vectors; v++)
			_mm512_storeu_ps(scores + q * scores_row + 16 * v, sum[q][v]);
}

/* y = sum of the values weighted by the probabilities. */
INLINE void multiply_values(const struct inference_attention *a, int64_t first, const uint16_t *probabilities,
			    const uint32_t *values, int64_t keys, const float *factors, const int queries, const int size)
{
	__m512 sum[QUERIES][VECTORS];
#pragma GCC unroll 4
	for (int q = 0; q < queries; q++)
#pragma GCC unroll 4
		for (int v = 0; v < size / 16; v++)
			sum[q][v] = _mm512_setzero_ps();
	for (int64_t pair = 0; pair < (a->length + 1) / 2; pair++) {
		__m512i w[VECTORS];
#pragma GCC unroll 4
		for (int v = 0; v < size / 16; v++)
			w[v] = _mm512_loadu_si512(values + pair * size + 16 * v);
#pragma GCC unroll 4
		for (int q = 0; q < queries; q++) {
			__m512i x = broadcast_pair(probabilities + q * keys + 2 * pair);
#pragma GCC unroll 4
			for (int v = 0; v < size / 16; v++)
				sum[q][v] = _mm512_dpbf16_ps(sum[q][v], (__m512bh)x, (__m512bh)w[v]);
		}
	}
#pragma GCC unroll 4
	for (int q = 0; q < queries; q++) {
		const vector factor = vector_set(factors[q]);
#pragma GCC unroll 4
		for (int v = 0; v < size / 16; v += 2)
			_mm512_storeu_si512(a->y + (first + q) * a->y_row + 16 * v,
					    (__m512i)_mm512_cvtne2ps_pbh(sum[q][v + 1] * factor, sum[q][v] * factor));
	}
}

INLINE void some_queries(const struct inference_attention *a, int64_t first, const uint32_t *keys, const uint32_t *values,
			 float *scores, const int queries, const int size)
{
	int64_t padded = round_up(a->length, 16), k = 0;
	uint16_t *probabilities = (uint16_t *)(scores + QUERIES * padded);
	const uint16_t *query = a->query + first * a->row;
	float factors[QUERIES];
	for (; k + 16 * VECTORS <= padded; k += 16 * VECTORS)
		multiply_keys(query, a->row, keys + k * size / 2, scores + k, padded, queries, VECTORS, size);
	switch ((padded - k) / 16) {
	case 3: multiply_keys(query, a->row, keys + k * size / 2, scores + k, padded, queries, 3, size); break;
	case 2: multiply_keys(query, a->row, keys + k * size / 2, scores + k, padded, queries, 2, size); break;
	case 1: multiply_keys(query, a->row, keys + k * size / 2, scores + k, padded, queries, 1, size); break;
	default: break;
	}
	fetch_next(a, first, queries, size);
	for (int q = 0; q < queries; q++)
		factors[q] = softmax_row(scores + q * padded, a->length, padded, a->scale, probabilities + q * padded);
	multiply_values(a, first, probabilities, values, padded, factors, queries, size);
}

INLINE void head(const struct inference_attention *a, const int size)
{
	int64_t padded = round_up(a->length, 16), q = 0;
	uint32_t *keys = a->scratch, *values = keys + padded * size / 2;
	float *scores = (float *)(values + padded * size / 2);
	pack_keys(a, keys, padded, size);
	pack_values(a, values, padded, size);
	for (; q + QUERIES <= a->length; q += QUERIES)
		some_queries(a, q, keys, values, scores, QUERIES, size);
	switch (a->length - q) {
	case 3: some_queries(a, q, keys, values, scores, 3, size); break;
	case 2: some_queries(a, q, keys, values, scores, 2, size); break;
	case 1: some_queries(a, q, keys, values, scores, 1, size); break;
	default: break;
	}
}
#endif

void KERNEL(inference_attend)(const struct inference_attention *a)
{
	if (a->size == 64)
		head(a, 64);
	else
		head(a, 32);
}
#endif
