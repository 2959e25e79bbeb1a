/* Tensors are views passed by value; only arenas and slabs own memory. */
#ifndef BACKEND_TENSOR_H
#define BACKEND_TENSOR_H

#include <stddef.h>
#include <stdint.h>

/* E4M3 and E5M2 are the two FP8 formats (fp8.h), S8 is a signed byte (int8.h): types of operands that a back end makes for its
 * products, never of a tensor. */
enum dtype { DTYPE_F64, DTYPE_F32, DTYPE_BF16, DTYPE_F16, DTYPE_E4M3, DTYPE_E5M2, DTYPE_S8, DTYPE_COUNT };

static inline size_t dtype_bytes(enum dtype dtype)
{
	return dtype == DTYPE_F64 ? 8 : dtype == DTYPE_F32 ? 4 : dtype >= DTYPE_E4M3 ? 1 : 2;
}
extern const char *const dtype_names[DTYPE_COUNT]; /* "fp64" "fp32" "bf16" "fp16" "e4m3" "e5m2" "int8", as in --precision */

/* A row-major matrix (rows, columns), rows contiguous; a vector has rows == 1. Blocks are allocated for a capacity rounded up
 * to ROW_MULTIPLE rows: an operation may write the tail rows up to the next multiple; their content is inert (it never reaches
 * a valid row, a gradient or a sum). */
struct tensor {
	void *data; /* device memory; NULL = absent */
	void *twin; /* device memory that accompanies it, private to the back end (backend_functions.twin_bytes), or NULL */
	enum dtype dtype;
	int64_t rows, columns;
};

#define ROW_MULTIPLE 128

static inline int64_t round_up(int64_t value, int64_t multiple)
{
	return (value + multiple - 1) / multiple * multiple;
}

/* bf16 <-> fp32 in plain integer arithmetic, rounding to nearest even, preserving NaN. */
static inline float bf16_to_float(uint16_t bits)
{
	union {
		uint32_t u;
		float f;
	} value = {.u = (uint32_t)bits << 16};
	return value.f;
}

static inline uint16_t float_to_bf16(float x)
{
	union {
		float f;
		uint32_t u;
	} value = {.f = x};
	if ((value.u & 0x7fffffffu) > 0x7f800000u)
		return (uint16_t)((value.u >> 16) | 0x40u);
	return (uint16_t)((value.u + 0x7fffu + ((value.u >> 16) & 1u)) >> 16);
}

/* The same for fp16, including subnormal numbers. */
static inline float f16_to_float(uint16_t bits)
{
	uint32_t sign = (uint32_t)(bits & 0x8000u) << 16, exponent = bits >> 10 & 31, fraction = bits & 1023;
	union {
		uint32_t u;
		float f;
	} value;
	if (exponent == 0) { /* fraction times 2^-24, exactly */
		value.f = (float)fraction * 0x1p-24f;
		value.u |= sign;
	} else {
		value.u = sign | (exponent == 31 ? 255u : exponent + 112) << 23 | fraction << 13;
	}
	return value.f;
}

static inline uint16_t float_to_f16(float x)
{
	union {
		float f;
		uint32_t u;
	} value = {.f = x};
	uint32_t sign = value.u >> 16 & 0x8000u, magnitude = value.u & 0x7fffffffu;
	if (magnitude > 0x7f800000u)
		return (uint16_t)(sign | 0x7e00u);
	if (magnitude >= 0x477ff000u) /* would round to more than 65504 */
		return (uint16_t)(sign | 0x7c00u);
	if (magnitude < 0x38800000u) { /* below 2^-14: adding 0.5 leaves the rounded multiple of 2^-24 in the fraction */
		value.u = magnitude;
		value.f += 0.5f;
		return (uint16_t)(sign | (value.u - 0x3f000000u));
	}
	return (uint16_t)(sign | ((magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1u)) >> 13));
}

/* Element i of an array of a tensor's type, as a float. */
static inline float number_as_float(const void *numbers, enum dtype dtype, int64_t i)
{
	switch (dtype) {
	case DTYPE_F64: return (float)((const double *)numbers)[i];
	case DTYPE_F32: return ((const float *)numbers)[i];
	case DTYPE_F16: return f16_to_float(((const uint16_t *)numbers)[i]);
	default: return bf16_to_float(((const uint16_t *)numbers)[i]);
	}
}

#endif
