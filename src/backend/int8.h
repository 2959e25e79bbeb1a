/* Arithmetic of int8 products, shared by ref and the CPU kernels: weights are rounded once, with a scale per output channel;
 * activations are rounded when they are multiplied, with a scale per row ("dynamic"). Both are symmetric:
 *
 *   scale = max|x| / 127,   q = x * (127 / max|x|) rounded to nearest, ties to even,   y = scale_x scale_w sum(q_x q_w) + b
 *
 * The sum is exact: 32 bits hold 2^31 / 127^2 = 133,000 products. Quantizing a row depends on that row alone, so an answer
 * does not depend on the rest of the batch. A row of zeros (or of numbers too small for a scale) becomes zeros; a row with a
 * non-finite element makes all its products NaN. */
#ifndef BACKEND_INT8_H
#define BACKEND_INT8_H

#include <math.h>
#include <stdint.h>

struct int8_scale {
	float scale;  /* the value of one step of q; NaN if the row is not finite */
	float factor; /* x is multiplied by this before rounding */
};

/* `largest`: the maximum of the bit patterns of all magnitudes, which order as the magnitudes do, with NaN above all. */
static inline struct int8_scale int8_scale_of(uint32_t largest)
{
	const uint32_t infinity = 0x7f800000u, least = 0x0d800000u; /* 2^-100 */
	union {
		uint32_t u;
		float f;
	} value = {.u = largest};
	if (largest >= infinity)
		return (struct int8_scale){.scale = NAN};
	if (largest < least)
		return (struct int8_scale){0};
	return (struct int8_scale){.scale = value.f / 127.0f, .factor = 127.0f / value.f};
}

/* The scale of a row of floats. */
static inline struct int8_scale int8_scale_of_row(const float *x, int64_t count)
{
	uint32_t largest = 0;
	for (int64_t i = 0; i < count; i++) {
		union {
			float f;
			uint32_t u;
		} value = {.f = x[i]};
		uint32_t magnitude = value.u & 0x7fffffffu;
		largest = magnitude > largest ? magnitude : largest;
	}
	return int8_scale_of(largest);
}

/* Only for finite rows. */
static inline int8_t int8_rounded(float x, float factor)
{
	return (int8_t)lrintf(x * factor);
}

#endif
