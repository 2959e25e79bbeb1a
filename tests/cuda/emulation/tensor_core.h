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

#endif
