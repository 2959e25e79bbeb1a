/* Attention of one head of one sequence of up to a few hundred tokens, in bf16, for inference.
 *
 * Keys are packed once with 16 of them side by side, values with pairs of tokens side by side, as vdpbf16ps expects them; then
 * a few queries at a time are processed: scores against all keys, softmax, the sum of the values. Only the keys are padded (to
 * 16), so the cost of short sequences is in proportion to their length. A row of the result is a function of its sequence
 * alone. */
#include "backend/cpu/kernels/elements.h"
#include "backend/cpu/kernels/inference_kernels.h"

#ifdef __AVX512BF16__

void KERNEL(inference_attend)(const struct inference_attention *a);

enum { QUERIES = 4, VECTORS = 4 };

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

INLINE __m512i broadcast(const uint16_t *pair)
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
			__m512i x = broadcast(query + q * row + 2 * pair);
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

/* exp(scale (score - largest)) in bf16, with zeros after the last key; returns 1 / their sum. */
INLINE float softmax_row(const float *scores, int64_t length, int64_t keys, float scale, uint16_t *out)
{
	vector most = vector_set(-__builtin_inff());
	int64_t k = 0;
	for (; k + LANES <= length; k += LANES)
		most = vector_max(vector_load(scores + k), most);
	if (k < length)
		most = _mm512_mask_max_ps(most, first_lanes(length - k), vector_load(scores + k), most);
	const vector largest = vector_set(vector_largest(most)), factor = vector_set(scale);
	vector sum = vector_set(0);
	for (k = 0; k < keys; k += LANES) {
		vector e = vector_exp((vector_load(scores + k) - largest) * factor);
		e = _mm512_maskz_mov_ps(first_lanes(length - k), e);
		sum += e;
		_mm256_storeu_si256((__m256i *)(void *)(out + k), to_bf16(e));
	}
	return 1 / vector_sum(sum);
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
			__m512i x = broadcast(probabilities + q * keys + 2 * pair);
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
	if (a->has_next) /* the next head's parts of these rows, which are too short for hardware prefetchers to detect */
		for (int64_t q = 0; q < queries; q++)
			for (int column = 0; column < size; column += 32) {
				__builtin_prefetch(query + q * a->row + size + column);
				__builtin_prefetch(a->key + (first + q) * a->row + size + column);
				__builtin_prefetch(a->value + (first + q) * a->row + size + column);
			}
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

void KERNEL(inference_attend)(const struct inference_attention *a)
{
	if (a->size == 64)
		head(a, 64);
	else
		head(a, 32);
}
#endif
