/* Loops of plain integer and floating-point arithmetic without branches, which the compiler vectorizes. */
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

/* a where x < y, otherwise b, without a branch; x and y must not be negative. */
static inline int32_t where_less(int32_t x, int32_t y, int32_t a, int32_t b)
{
	int32_t mask = (x - y) >> 31;
	return (a & mask) | (b & ~mask);
}

#define INFINITE 0x7f800000

/* The half-precision number nearest to x, as a float. */
static inline float round_f16(float x)
{
	int32_t bits = (int32_t)bits_of(x), size = bits & 0x7fffffff;
	int32_t normal = (int32_t)(((uint32_t)size + 0xfffu + (((uint32_t)size >> 13) & 1u)) & ~0x1fffu);
	normal = where_less(normal, 0x47800000, normal, INFINITE); /* 65536 and above */
	/* Below 2^-14, the spacing is 2^-24: that of floats between 0.5 and 1. */
	int32_t tiny = (int32_t)bits_of((float_of((uint32_t)size) + 0.5f) - 0.5f);
	int32_t rounded = where_less(size, 0x38800000, tiny, normal);
	rounded = where_less(INFINITE, size, 0x7fc00000, rounded);
	return float_of((uint32_t)rounded | ((uint32_t)bits & 0x80000000u));
}

static inline float round_bf16(float x)
{
	uint32_t bits = bits_of(x), rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) & 0xffff0000u;
	return float_of((int32_t)(bits & 0x7fffffffu) > 0x7f800000 ? (bits | 0x400000u) & 0xffff0000u : rounded);
}

/* Takes a float from round_bf16(). */
static inline uint16_t bf16_pack(float x)
{
	return (uint16_t)(bits_of(x) >> 16);
}

/* Takes a float from round_f16(). */
static inline uint16_t f16_pack(float x)
{
	int32_t bits = (int32_t)bits_of(x), size = bits & 0x7fffffff;
	int32_t normal = (size - 0x38000000) >> 13;
	/* Below 2^-14, the number is a multiple of 2^-24: how many times is in the last bits of its sum with 0.5. */
	int32_t tiny = (int32_t)bits_of(float_of((uint32_t)size) + 0.5f) - 0x3f000000;
	int32_t packed = where_less(size, 0x38800000, tiny, normal);
	packed = where_less(size, INFINITE, packed, 0x7c00);
	packed = where_less(INFINITE, size, 0x7e00, packed);
	return (uint16_t)((uint32_t)packed | (((uint32_t)bits >> 16) & 0x8000u));
}

static inline float f16_unpack(uint16_t half)
{
	int32_t size = half & 0x7fff, tiny = (int32_t)bits_of((float)size * (1.0f / 16777216.0f));
	int32_t value = (int32_t)(((uint32_t)size << 13) + 0x38000000u);
	value = where_less(size, 0x400, tiny, value);
	value = where_less(size, 0x7c00, value, INFINITE);
	value = where_less(0x7c00, size, 0x7fc00000, value);
	return float_of((uint32_t)value | (uint32_t)(half & 0x8000u) << 16);
}

#define ADD(expression)                                                                                                          \
	do {                                                                                                                     \
		if (first)                                                                                                       \
			for (int64_t i = 0; i < count; i++)                                                                      \
				to[i] = (expression);                                                                            \
		else                                                                                                             \
			for (int64_t i = 0; i < count; i++)                                                                      \
				to[i] += (expression);                                                                           \
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

static void pack_f32(uint16_t *restrict to, const float *restrict x, int64_t count, enum comm_type wire)
{
	if (wire == COMM_BF16)
		for (int64_t i = 0; i < count; i++)
			to[i] = bf16_pack(round_bf16(x[i]));
	else
		for (int64_t i = 0; i < count; i++)
			to[i] = f16_pack(round_f16(x[i]));
}

static void pack_f64(uint16_t *restrict to, const double *restrict x, int64_t count, enum comm_type wire)
{
	if (wire == COMM_BF16)
		for (int64_t i = 0; i < count; i++)
			to[i] = bf16_pack(round_bf16((float)x[i]));
	else
		for (int64_t i = 0; i < count; i++)
			to[i] = f16_pack(round_f16((float)x[i]));
}

void wire_pack(void *out, const void *values, int64_t count, enum comm_type type, enum comm_type wire)
{
	if (type == wire) {
		memcpy(out, values, (size_t)count * comm_type_bytes(type));
		return;
	}
	if (type == COMM_F64)
		pack_f64(out, values, count, wire);
	else
		pack_f32(out, values, count, wire);
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
