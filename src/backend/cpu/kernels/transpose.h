/* Transposition of a square of vectors in registers. */
#ifndef BACKEND_CPU_KERNELS_TRANSPOSE_H
#define BACKEND_CPU_KERNELS_TRANSPOSE_H

#include "backend/cpu/kernels/elements.h"

/* Transposes the LANES x LANES 32-bit numbers in x[]. */
#ifdef __AVX512F__
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
#else
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
#endif

#endif
