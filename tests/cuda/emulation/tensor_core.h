/* How tensor cores add: less accurately than fp32 arithmetic. */
#ifndef EMULATION_TENSOR_CORE_H
#define EMULATION_TENSOR_CORE_H

#include <stdint.h>
#include <string.h>

/* c plus products in one addition: all terms are aligned to the largest one, and everything more than `bits` binary places
 * below its leading bit is truncated; the result is truncated in the same way relative to its own leading bit. This was
 * measured on V100 to H100 (M. Fasi and others, Numerical behavior of NVIDIA tensor cores, 2021; F. Khattak and M.
 * Mikaitis, Accurate models of NVIDIA tensor cores, 2025, and their models in MATLAB): 23 places for 16-bit types and TF32
 * on V100, one more on A100, two more on H100; 13 for FP8 on H100. */
static inline float tensor_core_sum(float c, const float *products, int count, int bits)
{
	int64_t total = 0;
	int top = 1;
	for (int i = -1; i < count; i++) {
		uint32_t x;
		memcpy(&x, i < 0 ? &c : &products[i], sizeof x);
		int exponent = (int)(x >> 23 & 0xff);
		if (exponent == 0xff) { /* infinite or not a number */
			for (int j = 0; j < count; j++)
				c += products[j];
			return c;
		}
		top = exponent > top ? exponent : top;
	}
	for (int i = -1; i < count; i++) {
		uint32_t x;
		memcpy(&x, i < 0 ? &c : &products[i], sizeof x);
		int exponent = (int)(x >> 23 & 0xff), shift = 23 - bits + top - (exponent > 0 ? exponent : 1);
		int64_t significand = (x & 0x7fffff) | (exponent > 0 ? 0x800000 : 0);
		significand = shift < 24 ? significand >> shift : 0;
		total += x >> 31 ? -significand : significand;
	}
	int64_t magnitude = total < 0 ? -total : total;
	int scale = top - 127 - bits;
	for (; magnitude >> (bits + 1) > 0; magnitude >>= 1)
		scale++;
	return __builtin_ldexpf(total < 0 ? -(float)magnitude : (float)magnitude, scale);
}

/* tensor_core_sum() for eight sums at a time, in SIMD lanes: c[i] plus the products a[k] b[k][i], with 23 places, everything as
 * whole numbers in units of the last place that is kept. */
enum { TENSOR_LANES = 8, TENSOR_PLACES = 23, TENSOR_PRODUCTS = 16 };

static inline __attribute__((always_inline)) void tensor_core_add(float *c, const float *a, const float (*b)[TENSOR_LANES],
								  int count)
{
	float products[TENSOR_PRODUCTS][TENSOR_LANES], scale[TENSOR_LANES];
	/* Ordered as numbers without sign are, infinity and NaN last. */
	uint32_t bits[TENSOR_LANES], most[TENSOR_LANES], last[TENSOR_LANES], outside = 0;
	int32_t total[TENSOR_LANES];
	memcpy(most, c, sizeof(most));
#pragma omp simd
	for (int i = 0; i < TENSOR_LANES; i++)
		most[i] &= INT32_MAX;
	for (int k = 0; k < count; k++) {
#pragma omp simd
		for (int i = 0; i < TENSOR_LANES; i++)
			products[k][i] = a[k] * b[k][i];
		memcpy(bits, products[k], sizeof(bits));
#pragma omp simd
		for (int i = 0; i < TENSOR_LANES; i++)
			most[i] = most[i] > (bits[i] & INT32_MAX) ? most[i] : bits[i] & INT32_MAX;
	}
#pragma omp simd reduction(| : outside)
	for (int i = 0; i < TENSOR_LANES; i++) {
		uint32_t top = most[i] == 0 ? TENSOR_PLACES + 8 : most[i] >> 23;
		outside |= (uint32_t)(top < TENSOR_PLACES + 8) | (uint32_t)(top > 240);
		last[i] = top - TENSOR_PLACES;
		bits[i] = (127 + 127 - last[i]) << 23;
	}
	if (outside != 0) { /* not finite, or at the ends of fp32's range */
		for (int i = 0; i < TENSOR_LANES; i++) {
			float column[TENSOR_PRODUCTS];
			for (int k = 0; k < count; k++)
				column[k] = products[k][i];
			c[i] = tensor_core_sum(c[i], column, count, TENSOR_PLACES);
		}
		return;
	}
	memcpy(scale, bits, sizeof(scale));
#pragma omp simd
	for (int i = 0; i < TENSOR_LANES; i++)
		total[i] = (int32_t)(c[i] * scale[i]);
	for (int k = 0; k < count; k++)
#pragma omp simd
		for (int i = 0; i < TENSOR_LANES; i++)
			total[i] += (int32_t)(products[k][i] * scale[i]);
#pragma omp simd
	for (int i = 0; i < TENSOR_LANES; i++) {
		int32_t magnitude = total[i] < 0 ? -total[i] : total[i], shift = 0;
		for (int k = 1; k <= 5; k++) /* 17 terms */
			shift += magnitude >> (TENSOR_PLACES + k) > 0;
		total[i] = (total[i] < 0 ? -1 : 1) * (magnitude >> shift);
		bits[i] = (last[i] + (uint32_t)shift) << 23;
	}
	memcpy(scale, bits, sizeof(scale));
#pragma omp simd
	for (int i = 0; i < TENSOR_LANES; i++)
		c[i] = (float)total[i] * scale[i];
}

#endif
