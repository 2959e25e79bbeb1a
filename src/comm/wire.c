/* Loops of plain integer and float arithmetic without branches, which the compiler turns into vectors. */
#include "comm/wire.h"

#include <string.h>

#include "backend/tensor.h"

size_t comm_type_bytes(enum comm_type type)
{
	return type == COMM_F64 ? 8 : type == COMM_F32 ? 4 : 2;
}

static inline uint32_t bits_of(float x)
{
	union {
		float f;
		uint32_t u;
	} value = {.f = x};
	return value.u;
}

static inline float float_of(uint32_t bits)
{
	union {
		uint32_t u;
		float f;
	} value = {.u = bits};
	return value.f;
}

/* The half-precision number next to x, as a float. */
static inline float round_f16(float x)
{
	uint32_t bits = bits_of(x), sign = bits & 0x80000000u, size = bits & 0x7fffffffu;
	uint32_t normal = (size + 0xfffu + ((size >> 13) & 1u)) & ~0x1fffu;
	normal = normal >= 0x47800000u ? 0x7f800000u : normal; /* 65536 and above */
	/* Below 2^-14 the step is 2^-24: that of a float between a half and one. */
	uint32_t tiny = bits_of((float_of(size) + 0.5f) - 0.5f);
	uint32_t rounded = size < 0x38800000u ? tiny : normal;
	rounded = size > 0x7f800000u ? 0x7fc00000u : rounded;
	return float_of(rounded | sign);
}

static inline float round_bf16(float x)
{
	return bf16_to_float(float_to_bf16(x));
}

/* Of a float that round_f16() gave. */
static inline uint16_t f16_pack(float x)
{
	uint32_t bits = bits_of(x), sign = (bits >> 16) & 0x8000u, size = bits & 0x7fffffffu;
	uint32_t normal = (size - 0x38000000u) >> 13;
	uint32_t tiny = (uint32_t)(int32_t)(float_of(size) * 16777216.0f); /* in steps of 2^-24 */
	uint32_t special = size > 0x7f800000u ? 0x7e00u : 0x7c00u;
	uint32_t packed = size >= 0x7f800000u ? special : size < 0x38800000u ? tiny : normal;
	return (uint16_t)(packed | sign);
}

static inline float f16_unpack(uint16_t half)
{
	uint32_t sign = (uint32_t)(half & 0x8000u) << 16, size = half & 0x7fffu;
	float normal = float_of((size << 13) + 0x38000000u), tiny = (float)(int32_t)size * (1.0f / 16777216.0f);
	float special = float_of(size > 0x7c00u ? 0x7fc00000u : 0x7f800000u);
	float value = size >= 0x7c00u ? special : size < 0x400u ? tiny : normal;
	return float_of(bits_of(value) | sign);
}

#define ADD(expression)                                                                                                \
	do {                                                                                                           \
		if (first)                                                                                             \
			for (int64_t i = 0; i < count; i++)                                                            \
				to[i] = (expression);                                                                  \
		else                                                                                                   \
			for (int64_t i = 0; i < count; i++)                                                            \
				to[i] += (expression);                                                                 \
	} while (0)

static void add_f32(float *restrict to, const float *restrict x, int64_t count, enum comm_type wire, bool first)
{
	if (wire == COMM_BF16)
		ADD(round_bf16(x[i]));
	else if (wire == COMM_F16)
		ADD(round_f16(x[i]));
	else
		ADD(x[i]);
}

static void add_f64(double *restrict to, const double *restrict x, int64_t count, enum comm_type wire, bool first)
{
	if (wire == COMM_BF16)
		ADD((double)round_bf16((float)x[i]));
	else if (wire == COMM_F16)
		ADD((double)round_f16((float)x[i]));
	else
		ADD(x[i]);
}

void wire_add(void *sum, const void *values, int64_t count, enum comm_type type, enum comm_type wire, bool first)
{
	if (type == COMM_F64)
		add_f64(sum, values, count, wire, first);
	else
		add_f32(sum, values, count, wire, first);
}

void wire_pack(void *out, const void *values, int64_t count, enum comm_type type, enum comm_type wire)
{
	if (type == wire) {
		memcpy(out, values, (size_t)count * comm_type_bytes(type));
		return;
	}
	const float *x = values;
	const double *wide = values;
	uint16_t *to = out;
	for (int64_t i = 0; i < count; i++) {
		float value = type == COMM_F64 ? (float)wide[i] : x[i];
		to[i] = wire == COMM_BF16 ? float_to_bf16(value) : f16_pack(round_f16(value));
	}
}

static void add_packed_f32(float *restrict to, const uint16_t *restrict x, int64_t count, enum comm_type wire, bool first)
{
	if (wire == COMM_BF16)
		ADD(bf16_to_float(x[i]));
	else
		ADD(f16_unpack(x[i]));
}

static void add_packed_f64(double *restrict to, const uint16_t *restrict x, int64_t count, enum comm_type wire, bool first)
{
	if (wire == COMM_BF16)
		ADD((double)bf16_to_float(x[i]));
	else
		ADD((double)f16_unpack(x[i]));
}

void wire_add_packed(void *sum, const void *packed, int64_t count, enum comm_type type, enum comm_type wire, bool first)
{
	if (wire == type)
		wire_add(sum, packed, count, type, wire, first);
	else if (type == COMM_F64)
		add_packed_f64(sum, packed, count, wire, first);
	else
		add_packed_f32(sum, packed, count, wire, first);
}
