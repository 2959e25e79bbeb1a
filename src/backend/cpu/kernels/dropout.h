/* Dropout's random numbers, as defined in backend/dropout.h, for many columns of a row at once. */
#ifndef BACKEND_CPU_KERNELS_DROPOUT_H
#define BACKEND_CPU_KERNELS_DROPOUT_H

#include "backend/cpu/kernels.h"
#include "backend/cpu/kernels/elements.h"

#ifdef __AVX512F__
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
#else
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
#endif

/* Bit c of `bits` is set if column c of the row is kept. Writes DROPOUT_BYTES(columns). */
INLINE void dropout_bits(uint64_t seed, uint32_t position, uint32_t site, uint32_t sample, uint32_t threshold, int64_t columns,
			 uint8_t *bits)
{
	for (int64_t c = 0; c < columns; c += 128)
		dropout_columns(seed, (uint32_t)(c / 8), position, site, sample, threshold, bits + c / 8);
}

INLINE void row_bits(const struct dropout_rows *d, int64_t row, int64_t columns)
{
	if (d->threshold)
		dropout_bits(d->seed, (uint32_t)d->positions[row], d->site, d->samples[row], d->threshold, columns, d->bits);
}

INLINE vector drop(const struct dropout_rows *d, vector x, int64_t column)
{
	return d->threshold ? keep_bits(x * vector_set(d->scale), d->bits, column) : x;
}

#endif
