/* The vectors of vector.h with AVX-512: 16 lanes. */
#ifndef BACKEND_CPU_KERNELS_VECTOR_AVX512_H
#define BACKEND_CPU_KERNELS_VECTOR_AVX512_H

#include <immintrin.h>

enum { LANES = 16 };
typedef __m512 vector;

INLINE vector vector_load(const float *p)
{
	return _mm512_loadu_ps(p);
}

INLINE void vector_store(float *p, vector x)
{
	_mm512_storeu_ps(p, x);
}

INLINE vector vector_set(float x)
{
	return _mm512_set1_ps(x);
}

/* a b + c, rounded once. */
INLINE vector vector_fma(vector a, vector b, vector c)
{
	return _mm512_fmadd_ps(a, b, c);
}

INLINE vector vector_max(vector a, vector b)
{
	return _mm512_max_ps(a, b);
}

/* LANES bf16 numbers, converted to fp32. */
INLINE vector vector_load_bf16(const uint16_t *p)
{
	__m256i bits = _mm256_loadu_si256((const __m256i *)p);
	return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}

INLINE __mmask16 first_lanes(int64_t left)
{
	return left >= LANES ? 0xffff : (__mmask16)((1u << left) - 1);
}

/* Elements i … i + LANES - 1 of a row, with zeros from i + left on; left > 0. */
INLINE vector load_floats(const float *row, int64_t i, int64_t left)
{
	return _mm512_maskz_loadu_ps(first_lanes(left), row + i);
}

INLINE void store_floats(float *row, int64_t i, int64_t left, vector x)
{
	_mm512_mask_storeu_ps(row + i, first_lanes(left), x);
}

INLINE vector load_bf16(const uint16_t *row, int64_t i, int64_t left)
{
	__m256i bits = _mm256_maskz_loadu_epi16(first_lanes(left), row + i);
	return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}

INLINE __m256i to_bf16(vector x)
{
#ifdef __AVX512BF16__
	return (__m256i)_mm512_cvtneps_pbh(x);
#else
	__m512i bits = _mm512_castps_si512(x), one = _mm512_set1_epi32(1);
	__m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), one);
	__m512i rounded = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);
	__mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
	rounded = _mm512_mask_or_epi32(rounded, nan, bits, _mm512_set1_epi32(0x400000));
	return _mm512_cvtepi32_epi16(_mm512_srli_epi32(rounded, 16));
#endif
}

INLINE void store_bf16(uint16_t *row, int64_t i, int64_t left, vector x)
{
	_mm256_mask_storeu_epi16(row + i, first_lanes(left), to_bf16(x));
}

INLINE vector round_to_bf16(vector x)
{
	return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(to_bf16(x)), 16));
}

/* x where the element's bit is set, else 0. */
INLINE vector keep_bits(vector x, const uint8_t *bits, int64_t i)
{
	uint16_t mask;
	memcpy(&mask, bits + i / 8, sizeof mask);
	return _mm512_maskz_mov_ps(mask, x);
}

INLINE vector vector_min(vector a, vector b)
{
	return _mm512_min_ps(a, b);
}

INLINE vector vector_round(vector x)
{
	return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

INLINE vector vector_sqrt(vector x)
{
	return _mm512_sqrt_ps(x);
}

/* x 2^n for integral n. */
INLINE vector vector_scale(vector x, vector n)
{
	return _mm512_scalef_ps(x, n);
}

/* a < b ? x : y */
INLINE vector where_less(vector a, vector b, vector x, vector y)
{
	return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), y, x);
}

INLINE vector vector_abs(vector x)
{
	return _mm512_abs_ps(x);
}

/* |x| with the sign of `sign`. */
INLINE vector with_sign(vector x, vector sign)
{
	__m512i bit = _mm512_and_si512(_mm512_castps_si512(sign), _mm512_set1_epi32((int)0x80000000));
	return _mm512_castsi512_ps(_mm512_or_si512(_mm512_castps_si512(_mm512_abs_ps(x)), bit));
}

INLINE float vector_sum(vector x)
{
	return _mm512_reduce_add_ps(x);
}

INLINE float vector_largest(vector x)
{
	return _mm512_reduce_max_ps(x);
}

/* Bit i is set if elements i are equal. */
INLINE uint32_t equal_lanes(vector a, vector b)
{
	return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ);
}

/* Bit i is set if element i of a is larger than that of b. */
INLINE uint32_t larger_lanes(vector a, vector b)
{
	return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ);
}

/* Transposes the LANES x LANES 32-bit numbers in x[]. */
INLINE void transpose(__m512 x[16])
{
	__m512 t[16];
	/* Pairs of rows, then groups of four: each quarter of x[4i + j] holds a column of rows 4i..4i+3. */
#pragma GCC unroll 16
	for (int i = 0; i < 16; i += 2) {
		t[i] = _mm512_unpacklo_ps(x[i], x[i + 1]);
		t[i + 1] = _mm512_unpackhi_ps(x[i], x[i + 1]);
	}
#pragma GCC unroll 4
	for (int i = 0; i < 16; i += 4) {
		__m512d a = _mm512_castps_pd(t[i]), b = _mm512_castps_pd(t[i + 1]);
		__m512d c = _mm512_castps_pd(t[i + 2]), d = _mm512_castps_pd(t[i + 3]);
		x[i] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, c));
		x[i + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, c));
		x[i + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(b, d));
		x[i + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(b, d));
	}
	/* Combines quarter q of the four groups of rows into column 4q + j. */
#pragma GCC unroll 4
	for (int j = 0; j < 4; j++) {
		__m512 even01 = _mm512_shuffle_f32x4(x[j], x[4 + j], 0x88), odd01 = _mm512_shuffle_f32x4(x[j], x[4 + j], 0xdd);
		__m512 even23 = _mm512_shuffle_f32x4(x[8 + j], x[12 + j], 0x88);
		__m512 odd23 = _mm512_shuffle_f32x4(x[8 + j], x[12 + j], 0xdd);
		t[j] = _mm512_shuffle_f32x4(even01, even23, 0x88);
		t[8 + j] = _mm512_shuffle_f32x4(even01, even23, 0xdd);
		t[4 + j] = _mm512_shuffle_f32x4(odd01, odd23, 0x88);
		t[12 + j] = _mm512_shuffle_f32x4(odd01, odd23, 0xdd);
	}
#pragma GCC unroll 16
	for (int i = 0; i < 16; i++)
		x[i] = t[i];
}

/* Integer vectors matching the float vectors: LANES of 32 bits, or half as many of 64 bits whose upper halves integers_wide()
 * ignores. */
typedef __m512i integers;
typedef __mmask16 lanes;

INLINE integers integers_set(uint32_t x)
{
	return _mm512_set1_epi32((int)x);
}

/* 64-bit products of the low halves of 64-bit lanes. */
INLINE integers integers_wide(integers a, uint32_t b)
{
	return _mm512_mul_epu32(a, _mm512_set1_epi64(b));
}

INLINE integers integers_high(integers x)
{
	return _mm512_srli_epi64(x, 32);
}

INLINE integers integers_xor(integers a, integers b, integers c)
{
	return _mm512_ternarylogic_epi32(a, b, c, 0x96);
}

/* Interleaves the low halves of even and odd 64-bit lanes; integers_join_high() interleaves the high halves. */
INLINE integers integers_join_low(integers even, integers odd)
{
	return _mm512_mask_blend_epi32(0xaaaa, even, _mm512_slli_epi64(odd, 32));
}

INLINE integers integers_join_high(integers even, integers odd)
{
	return _mm512_mask_blend_epi32(0xaaaa, integers_high(even), odd);
}

/* first, first + 2, ... in the low halves of 64-bit lanes. */
INLINE integers integers_every_second(uint32_t first)
{
	const integers steps = _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14);
	return _mm512_add_epi32(steps, integers_set(first));
}

/* Lanes whose low (or high) 16 bits are at least the threshold. */
INLINE lanes low_reaches(integers x, uint32_t threshold)
{
	return _mm512_cmpge_epu32_mask(_mm512_slli_epi32(x, 16), integers_set(threshold << 16));
}

INLINE lanes high_reaches(integers x, uint32_t threshold)
{
	return _mm512_cmpge_epu32_mask(x, integers_set(threshold << 16));
}

INLINE vector keep_lanes(lanes mask, vector x)
{
	return _mm512_maskz_mov_ps(mask, x);
}

/* The domain of exp2_scale(): none is needed. */
INLINE vector exp2_domain(vector x)
{
	return x;
}

/* p 2^n for integral n of that domain; p is about 1. */
INLINE vector exp2_scale(vector p, vector n)
{
	return vector_scale(p, n);
}

/* High and low halves of the 64-bit products of each lane and a constant. */
INLINE void multiply_wide(__m512i x, __m512i constant, __m512i *high, __m512i *low)
{
	__m512i even = _mm512_mul_epu32(x, constant), odd = _mm512_mul_epu32(_mm512_srli_epi64(x, 32), constant);
	*low = _mm512_mask_mov_epi32(even, 0xaaaa, _mm512_slli_epi64(odd, 32));
	*high = _mm512_mask_mov_epi32(_mm512_srli_epi64(even, 32), 0xaaaa, odd);
}

/* 128 columns from block `first` on: 16 Philox blocks side by side. Lane 4q + j computes block 4j + q, so that after the 4 x 4
 * transposition vector j holds blocks 4j … 4j + 3 in column order. */
INLINE void dropout_columns(uint64_t seed, uint32_t first, uint32_t position, uint32_t site, uint32_t sample, uint32_t threshold,
			    uint8_t *bits)
{
	const __m512i m0 = _mm512_set1_epi64(0xD2511F53), m1 = _mm512_set1_epi64(0xCD9E8D57);
	__m512i c0 = _mm512_add_epi32(_mm512_set1_epi32((int)first),
				      _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
	__m512i c1 = _mm512_set1_epi32((int)position), c2 = _mm512_set1_epi32((int)site);
	__m512i c3 = _mm512_set1_epi32((int)sample);
	uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
	for (int round = 0; round < 7; round++) {
		__m512i high0, low0, high1, low1;
		multiply_wide(c0, m0, &high0, &low0);
		multiply_wide(c2, m1, &high1, &low1);
		c0 = _mm512_ternarylogic_epi32(high1, c1, _mm512_set1_epi32((int)k0), 0x96); /* three-way xor */
		c2 = _mm512_ternarylogic_epi32(high0, c3, _mm512_set1_epi32((int)k1), 0x96);
		c1 = low1;
		c3 = low0;
		k0 += 0x9E3779B9u;
		k1 += 0xBB67AE85u;
	}
	__m512i t0 = _mm512_unpacklo_epi32(c0, c1), t1 = _mm512_unpackhi_epi32(c0, c1);
	__m512i t2 = _mm512_unpacklo_epi32(c2, c3), t3 = _mm512_unpackhi_epi32(c2, c3);
	__m512i limit = _mm512_set1_epi16((short)threshold);
	uint32_t keep[4] = {_mm512_cmpge_epu16_mask(_mm512_unpacklo_epi64(t0, t2), limit),
			    _mm512_cmpge_epu16_mask(_mm512_unpackhi_epi64(t0, t2), limit),
			    _mm512_cmpge_epu16_mask(_mm512_unpacklo_epi64(t1, t3), limit),
			    _mm512_cmpge_epu16_mask(_mm512_unpackhi_epi64(t1, t3), limit)};
	memcpy(bits, keep, sizeof keep);
}

/* Sums of squares are in double, because each lane adds up thousands of them. */
typedef struct {
	__m512d low, high;
} square_sums;

INLINE void add_squares(square_sums *s, vector x)
{
	__m512d low = _mm512_cvtps_pd(_mm512_castps512_ps256(x));
	__m512d high = _mm512_cvtps_pd(_mm512_extractf32x8_ps(x, 1));
	s->low = _mm512_fmadd_pd(low, low, s->low);
	s->high = _mm512_fmadd_pd(high, high, s->high);
}

INLINE double square_total(square_sums s)
{
	return _mm512_reduce_add_pd(_mm512_add_pd(s.low, s.high));
}

/* Stores 2 LANES elements as store_two() wants them, if there is a better way than two stores. */
INLINE bool stored_two(void *row, int64_t i, vector low, vector high, enum dtype dtype, bool past)
{
#ifdef __AVX512BF16__
	if (dtype == DTYPE_BF16) {
		__m512i both = (__m512i)_mm512_cvtne2ps_pbh(high, low);
		uint16_t *at = (uint16_t *)row + i;
		if (past && ((uintptr_t)at & 63) == 0)
			_mm512_stream_si512((void *)at, both);
		else
			_mm512_storeu_si512(at, both);
		return true;
	}
#endif
	float *at = (float *)row + i;
	if (past && dtype == DTYPE_F32 && ((uintptr_t)at & 63) == 0) {
		_mm512_stream_ps(at, low);
		_mm512_stream_ps(at + LANES, high);
		return true;
	}
	return false;
}

INLINE void store_past_end(void)
{
	_mm_sfence();
}

#endif
