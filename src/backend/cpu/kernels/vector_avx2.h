/* The vectors of vector.h with AVX2: 8 lanes. The comments are in vector_avx512.h. */
#ifndef BACKEND_CPU_KERNELS_VECTOR_AVX2_H
#define BACKEND_CPU_KERNELS_VECTOR_AVX2_H

#include <immintrin.h>

enum { LANES = 8 };
typedef __m256 vector;

INLINE vector vector_load(const float *p)
{
	return _mm256_loadu_ps(p);
}

INLINE void vector_store(float *p, vector x)
{
	_mm256_storeu_ps(p, x);
}

INLINE vector vector_set(float x)
{
	return _mm256_set1_ps(x);
}

INLINE vector vector_fma(vector a, vector b, vector c)
{
	return _mm256_fmadd_ps(a, b, c);
}

INLINE vector vector_max(vector a, vector b)
{
	return _mm256_max_ps(a, b);
}

INLINE vector vector_load_bf16(const uint16_t *p)
{
	__m128i bits = _mm_loadu_si128((const __m128i *)p);
	return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}

INLINE __m256i first_lanes(int64_t left)
{
	__m256i index = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
	return _mm256_cmpgt_epi32(_mm256_set1_epi32(left >= LANES ? LANES : (int)left), index);
}

INLINE vector load_floats(const float *row, int64_t i, int64_t left)
{
	return left >= LANES ? vector_load(row + i) : _mm256_maskload_ps(row + i, first_lanes(left));
}

INLINE void store_floats(float *row, int64_t i, int64_t left, vector x)
{
	if (left >= LANES)
		vector_store(row + i, x);
	else
		_mm256_maskstore_ps(row + i, first_lanes(left), x);
}

/* bf16 is not offered on processors without AVX-512; these functions only complete the set of kernels. */
INLINE vector load_bf16(const uint16_t *row, int64_t i, int64_t left)
{
	uint16_t part[LANES] = {0};
	memcpy(part, row + i, (size_t)(left >= LANES ? LANES : left) * sizeof *part);
	return vector_load_bf16(part);
}

INLINE vector round_to_bf16(vector x)
{
	float part[LANES];
	vector_store(part, x);
	for (int i = 0; i < LANES; i++)
		part[i] = bf16_to_float(float_to_bf16(part[i]));
	return vector_load(part);
}

INLINE void store_bf16(uint16_t *row, int64_t i, int64_t left, vector x)
{
	float part[LANES];
	vector_store(part, x);
	for (int64_t j = 0; j < LANES && j < left; j++)
		row[i + j] = float_to_bf16(part[j]);
}

INLINE vector keep_bits(vector x, const uint8_t *bits, int64_t i)
{
	__m256i lane = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
	__m256i set = _mm256_and_si256(_mm256_set1_epi32(bits[i / 8]), lane);
	return _mm256_and_ps(x, _mm256_castsi256_ps(_mm256_cmpeq_epi32(set, lane)));
}

INLINE vector vector_min(vector a, vector b)
{
	return _mm256_min_ps(a, b);
}

INLINE vector vector_round(vector x)
{
	return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

INLINE vector vector_sqrt(vector x)
{
	return _mm256_sqrt_ps(x);
}

/* In two steps, because 2^n itself may be out of range. */
INLINE vector vector_scale(vector x, vector n)
{
	__m256i whole = _mm256_cvtps_epi32(n), half = _mm256_srai_epi32(whole, 1), bias = _mm256_set1_epi32(127);
	__m256i rest = _mm256_sub_epi32(whole, half);
	x = x * _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(half, bias), 23));
	return x * _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(rest, bias), 23));
}

INLINE vector where_less(vector a, vector b, vector x, vector y)
{
	return _mm256_blendv_ps(y, x, _mm256_cmp_ps(a, b, _CMP_LT_OQ));
}

INLINE vector vector_abs(vector x)
{
	return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), x);
}

INLINE vector with_sign(vector x, vector sign)
{
	return _mm256_or_ps(vector_abs(x), _mm256_and_ps(sign, _mm256_set1_ps(-0.0f)));
}

INLINE float vector_sum(vector x)
{
	__m128 four = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
	__m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
	return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

INLINE float vector_largest(vector x)
{
	__m128 four = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
	__m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
	return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

INLINE uint32_t equal_lanes(vector a, vector b)
{
	return (uint32_t)_mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_EQ_OQ));
}

INLINE uint32_t larger_lanes(vector a, vector b)
{
	return (uint32_t)_mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_GT_OQ));
}

INLINE void transpose(__m256 x[8])
{
	__m256 t[8];
#pragma GCC unroll 8
	for (int i = 0; i < 8; i += 2) {
		t[i] = _mm256_unpacklo_ps(x[i], x[i + 1]);
		t[i + 1] = _mm256_unpackhi_ps(x[i], x[i + 1]);
	}
#pragma GCC unroll 2
	for (int i = 0; i < 8; i += 4) {
		x[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
		x[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xee);
		x[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
		x[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xee);
	}
#pragma GCC unroll 4
	for (int j = 0; j < 4; j++) {
		t[j] = _mm256_permute2f128_ps(x[j], x[4 + j], 0x20);
		t[4 + j] = _mm256_permute2f128_ps(x[j], x[4 + j], 0x31);
	}
#pragma GCC unroll 8
	for (int i = 0; i < 8; i++)
		x[i] = t[i];
}

typedef __m256i integers;
typedef __m256i lanes;

INLINE integers integers_set(uint32_t x)
{
	return _mm256_set1_epi32((int)x);
}

INLINE integers integers_wide(integers a, uint32_t b)
{
	return _mm256_mul_epu32(a, _mm256_set1_epi64x(b));
}

INLINE integers integers_high(integers x)
{
	return _mm256_srli_epi64(x, 32);
}

INLINE integers integers_xor(integers a, integers b, integers c)
{
	return _mm256_xor_si256(a, _mm256_xor_si256(b, c));
}

INLINE integers integers_join_low(integers even, integers odd)
{
	return _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xaa);
}

INLINE integers integers_join_high(integers even, integers odd)
{
	return _mm256_blend_epi32(integers_high(even), odd, 0xaa);
}

INLINE integers integers_every_second(uint32_t first)
{
	const integers steps = _mm256_setr_epi64x(0, 2, 4, 6);
	return _mm256_add_epi32(steps, integers_set(first));
}

INLINE lanes low_reaches(integers x, uint32_t threshold)
{
	return _mm256_cmpgt_epi32(_mm256_and_si256(x, integers_set(0xffff)), integers_set(threshold - 1));
}

INLINE lanes high_reaches(integers x, uint32_t threshold)
{
	return _mm256_cmpgt_epi32(_mm256_srli_epi32(x, 16), integers_set(threshold - 1));
}

INLINE vector keep_lanes(lanes mask, vector x)
{
	return _mm256_and_ps(_mm256_castsi256_ps(mask), x);
}

/* 2^-127 becomes 0; max returns its second operand if either is NaN. */
INLINE vector exp2_domain(vector x)
{
	return vector_max(vector_set(-127), x);
}

INLINE vector exp2_scale(vector p, vector n)
{
	__m256i exponent = _mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(n), integers_set(127)), 23);
	return p * _mm256_castsi256_ps(exponent);
}

INLINE void multiply_wide(__m256i x, __m256i constant, __m256i *high, __m256i *low)
{
	__m256i even = _mm256_mul_epu32(x, constant), odd = _mm256_mul_epu32(_mm256_srli_epi64(x, 32), constant);
	*low = _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xaa);
	*high = _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa);
}

/* The same with 8 blocks per half. Lane 4q + j computes block 2j + q. */
INLINE void dropout_columns(uint64_t seed, uint32_t first, uint32_t position, uint32_t site, uint32_t sample, uint32_t threshold,
			    uint8_t *bits)
{
	const __m256i m0 = _mm256_set1_epi64x(0xD2511F53), m1 = _mm256_set1_epi64x(0xCD9E8D57);
	for (uint32_t half = 0; half < 2; half++, first += 8, bits += 8) {
		__m256i c0 = _mm256_add_epi32(_mm256_set1_epi32((int)first), _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7));
		__m256i c1 = _mm256_set1_epi32((int)position), c2 = _mm256_set1_epi32((int)site);
		__m256i c3 = _mm256_set1_epi32((int)sample);
		uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
		for (int round = 0; round < 7; round++) {
			__m256i high0, low0, high1, low1;
			multiply_wide(c0, m0, &high0, &low0);
			multiply_wide(c2, m1, &high1, &low1);
			c0 = _mm256_xor_si256(_mm256_xor_si256(high1, c1), _mm256_set1_epi32((int)k0));
			c2 = _mm256_xor_si256(_mm256_xor_si256(high0, c3), _mm256_set1_epi32((int)k1));
			c1 = low1;
			c3 = low0;
			k0 += 0x9E3779B9u;
			k1 += 0xBB67AE85u;
		}
		__m256i t0 = _mm256_unpacklo_epi32(c0, c1), t1 = _mm256_unpackhi_epi32(c0, c1);
		__m256i t2 = _mm256_unpacklo_epi32(c2, c3), t3 = _mm256_unpackhi_epi32(c2, c3);
		__m256i u[4] = {_mm256_unpacklo_epi64(t0, t2), _mm256_unpackhi_epi64(t0, t2), _mm256_unpacklo_epi64(t1, t3),
				_mm256_unpackhi_epi64(t1, t3)};
		__m256i limit = _mm256_set1_epi16((short)threshold);
		for (int i = 0; i < 4; i++) {
			__m256i kept = _mm256_cmpeq_epi16(_mm256_max_epu16(u[i], limit), u[i]);
			__m128i bytes = _mm_packs_epi16(_mm256_castsi256_si128(kept), _mm256_extracti128_si256(kept, 1));
			uint16_t mask = (uint16_t)_mm_movemask_epi8(bytes);
			memcpy(bits + 2 * i, &mask, sizeof mask);
		}
	}
}

typedef struct {
	__m256d low, high;
} square_sums;

INLINE void add_squares(square_sums *s, vector x)
{
	__m256d low = _mm256_cvtps_pd(_mm256_castps256_ps128(x));
	__m256d high = _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1));
	s->low = _mm256_fmadd_pd(low, low, s->low);
	s->high = _mm256_fmadd_pd(high, high, s->high);
}

INLINE double square_total(square_sums s)
{
	double sums[4];
	_mm256_storeu_pd(sums, _mm256_add_pd(s.low, s.high));
	return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

INLINE bool stored_two(void *row, int64_t i, vector low, vector high, enum dtype dtype, bool past)
{
	(void)row, (void)i, (void)low, (void)high, (void)dtype, (void)past;
	return false;
}

INLINE void store_past_end(void)
{
	_mm_sfence();
}

#endif
