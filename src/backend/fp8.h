/* FP8 arithmetic, shared bit for bit by ref, the CPU's simulation and the cuda kernels (Micikevicius et al. 2022, "FP8 formats
 * for deep learning"): E4M3 (4 exponent bits, 3 fraction bits, at most 448, no infinity) for activations and weights, E5M2 (at
 * most 57344) for gradients.
 *
 * A matrix is scaled by the power of two that brings its largest magnitude, or a bound of it, as close as possible to the
 * format's largest number without exceeding it, then rounded (to nearest, ties to even, saturating) and multiplied; the
 * product is divided by both powers. Multiplying by a power of two is exact, so the only loss is the format's rounding, and it
 * is the same everywhere. The maximum or bound is that of the matrix itself ("current scaling"), so there is no history and no
 * state. A matrix with a non-finite element makes the product NaN. */
#ifndef BACKEND_FP8_H
#define BACKEND_FP8_H

#include <stdint.h>
#include "backend/tensor.h"
#include "base/philox.h"

static inline HOST_DEVICE uint32_t fp8_bits_of(float x)
{
	union {
		float f;
		uint32_t u;
	} value;
	value.f = x;
	return value.u;
}

static inline HOST_DEVICE float fp8_float_of(uint32_t bits)
{
	union {
		uint32_t u;
		float f;
	} value;
	value.u = bits;
	return value.f;
}

static inline HOST_DEVICE int fp8_fraction_bits(enum dtype format)
{
	return format == DTYPE_E4M3 ? 3 : 2;
}

/* Smallest exponent of a normal number. */
static inline HOST_DEVICE int fp8_least_exponent(enum dtype format)
{
	return format == DTYPE_E4M3 ? -6 : -14;
}

static inline HOST_DEVICE float fp8_largest(enum dtype format)
{
	return format == DTYPE_E4M3 ? 448.0f : 57344.0f;
}

/* The nearest number of the format, ties to even, saturating at the largest. x must not be NaN. Branch-free. */
static inline HOST_DEVICE float fp8_rounded(enum dtype format, float x)
{
	uint32_t sign = fp8_bits_of(x) & 0x80000000u, least = (uint32_t)(fp8_least_exponent(format) + 127) << 23;
	float magnitude = fp8_float_of(fp8_bits_of(x) ^ sign);
	magnitude = magnitude < fp8_largest(format) ? magnitude : fp8_largest(format);
	/* Adding a number whose last place equals the result's last place does the rounding. */
	uint32_t exponent = fp8_bits_of(magnitude) & 0x7f800000u;
	exponent = exponent > least ? exponent : least;
	float rounder = fp8_float_of(exponent + ((uint32_t)(23 - fp8_fraction_bits(format)) << 23));
	return fp8_float_of(fp8_bits_of(magnitude + rounder - rounder) | sign);
}

/* The encoding of fp8_rounded(x); NaN is 0x7f. */
static inline HOST_DEVICE uint8_t fp8_encode(enum dtype format, float x)
{
	uint32_t bits = fp8_bits_of(x), sign = bits >> 24 & 0x80u;
	if ((bits & 0x7fffffffu) > 0x7f800000u)
		return 0x7f;
	int fraction = fp8_fraction_bits(format), least = fp8_least_exponent(format);
	uint32_t rounded = fp8_bits_of(fp8_rounded(format, x)) & 0x7fffffffu;
	if (rounded < (uint32_t)(least + 127) << 23) /* subnormal: a multiple of the smallest number */
		return (uint8_t)(sign |
				 (uint32_t)(fp8_float_of(rounded) * fp8_float_of((uint32_t)(127 - least + fraction) << 23)));
	return (uint8_t)(sign | ((rounded - ((uint32_t)(least - 1 + 127) << 23)) >> (23 - fraction)));
}

/* The value that a byte encodes. */
static inline HOST_DEVICE float fp8_decode(enum dtype format, uint8_t byte)
{
	int fraction = fp8_fraction_bits(format), least = fp8_least_exponent(format);
	uint32_t sign = (uint32_t)(byte & 0x80u) << 24, rest = byte & 0x7fu;
	if (format == DTYPE_E4M3 ? rest == 0x7fu : rest > 0x7cu)
		return fp8_float_of(sign | 0x7fc00000u);
	if (format == DTYPE_E5M2 && rest == 0x7cu)
		return fp8_float_of(sign | 0x7f800000u);
	if (rest >> fraction == 0)
		return fp8_float_of(fp8_bits_of((float)rest * fp8_float_of((uint32_t)(127 + least - fraction) << 23)) | sign);
	return fp8_float_of(sign | ((rest << (23 - fraction)) + ((uint32_t)(least - 1 + 127) << 23)));
}

struct fp8_scale {
	float inverse; /* products are multiplied by this: 2^-k, or NaN */
	float scale;   /* values are multiplied by this before rounding: 2^k */
};

/* `largest`: a bound, or the maximum, of the bit patterns of all magnitudes, which order as the magnitudes do, with NaN above
 * all. */
static inline HOST_DEVICE struct fp8_scale fp8_scale_of(enum dtype format, uint32_t largest)
{
	struct fp8_scale out = {1, 1};
	if (largest >= 0x7f800000u) {
		out.inverse = fp8_float_of(0x7fc00000u);
	} else if (largest > 0) {
		/* The largest number of either format is 1.75 times a power of two. */
		int top = format == DTYPE_E4M3 ? 8 : 15;
		int k = top - ((int)(largest >> 23) - 127) - ((largest & 0x7fffffu) > 0x600000u);
		k = k < 126 ? k : 126;
		out.scale = fp8_float_of((uint32_t)(127 + k) << 23);
		out.inverse = fp8_float_of((uint32_t)(127 - k) << 23);
	}
	return out;
}

#endif
