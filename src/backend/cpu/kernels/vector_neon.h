/* The vectors of vector.h with arm64's Advanced SIMD (NEON): 4 lanes. The comments are in vector_avx512.h. Unlike there, a
 * maximum or minimum is NaN if either operand is. */
#ifndef BACKEND_CPU_KERNELS_VECTOR_NEON_H
#define BACKEND_CPU_KERNELS_VECTOR_NEON_H

#include <arm_neon.h>

enum { LANES = 4 };
typedef float32x4_t vector;

INLINE vector vector_load(const float *p)
{
	return vld1q_f32(p);
}

INLINE void vector_store(float *p, vector x)
{
	vst1q_f32(p, x);
}

INLINE vector vector_set(float x)
{
	return vdupq_n_f32(x);
}

INLINE vector vector_fma(vector a, vector b, vector c)
{
	return vfmaq_f32(c, a, b);
}

INLINE vector vector_max(vector a, vector b)
{
	return vmaxq_f32(a, b);
}

INLINE vector vector_load_bf16(const uint16_t *p)
{
	return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(p), 16));
}

INLINE vector load_floats(const float *row, int64_t i, int64_t left)
{
	if (left >= LANES)
		return vector_load(row + i);
	float part[LANES] = {0};
	for (int64_t j = 0; j < left; j++)
		part[j] = row[i + j];
	return vector_load(part);
}

INLINE void store_floats(float *row, int64_t i, int64_t left, vector x)
{
	if (left >= LANES) {
		vector_store(row + i, x);
		return;
	}
	float part[LANES];
	vector_store(part, x);
	for (int64_t j = 0; j < left; j++)
		row[i + j] = part[j];
}

INLINE vector load_bf16(const uint16_t *row, int64_t i, int64_t left)
{
	if (left >= LANES)
		return vector_load_bf16(row + i);
	uint16_t part[LANES] = {0};
	for (int64_t j = 0; j < left; j++)
		part[j] = row[i + j];
	return vector_load_bf16(part);
}

INLINE uint16x4_t to_bf16(vector x)
{
#ifdef __ARM_FEATURE_BF16_VECTOR_ARITHMETIC
	return vreinterpret_u16_bf16(vcvt_bf16_f32(x));
#else
	uint32x4_t bits = vreinterpretq_u32_f32(x), odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
	uint32x4_t rounded = vaddq_u32(vaddq_u32(bits, vdupq_n_u32(0x7fff)), odd);
	rounded = vbslq_u32(vceqq_f32(x, x), rounded, vorrq_u32(bits, vdupq_n_u32(0x400000)));
	return vshrn_n_u32(rounded, 16);
#endif
}

INLINE void store_bf16(uint16_t *row, int64_t i, int64_t left, vector x)
{
	if (left >= LANES) {
		vst1_u16(row + i, to_bf16(x));
		return;
	}
	uint16_t part[LANES];
	vst1_u16(part, to_bf16(x));
	for (int64_t j = 0; j < left; j++)
		row[i + j] = part[j];
}

INLINE vector round_to_bf16(vector x)
{
	return vreinterpretq_f32_u32(vshll_n_u16(to_bf16(x), 16));
}

/* 1, 2, 4, 8. */
INLINE uint32x4_t lane_bits(void)
{
	static const uint32_t bits[LANES] = {1, 2, 4, 8};
	return vld1q_u32(bits);
}

INLINE vector keep_bits(vector x, const uint8_t *bits, int64_t i)
{
	uint32x4_t set = vtstq_u32(vdupq_n_u32((uint32_t)bits[i / 8] >> i % 8), lane_bits());
	return vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(x), set));
}

INLINE vector vector_min(vector a, vector b)
{
	return vminq_f32(a, b);
}

INLINE vector vector_round(vector x)
{
	return vrndnq_f32(x);
}

INLINE vector vector_sqrt(vector x)
{
	return vsqrtq_f32(x);
}

/* 2^n for the exponents of normal numbers. */
INLINE vector power_of_two(int32x4_t n)
{
	return vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(n, vdupq_n_s32(127)), 23));
}

/* In two steps, because 2^n itself may be out of range. */
INLINE vector vector_scale(vector x, vector n)
{
	int32x4_t whole = vcvtq_s32_f32(n), half = vshrq_n_s32(whole, 1);
	return x * power_of_two(half) * power_of_two(vsubq_s32(whole, half));
}

INLINE vector where_less(vector a, vector b, vector x, vector y)
{
	return vbslq_f32(vcltq_f32(a, b), x, y);
}

INLINE vector vector_abs(vector x)
{
	return vabsq_f32(x);
}

INLINE vector with_sign(vector x, vector sign)
{
	return vbslq_f32(vdupq_n_u32(0x80000000), sign, x);
}

INLINE float vector_sum(vector x)
{
	return vaddvq_f32(x);
}

INLINE float vector_largest(vector x)
{
	return vmaxvq_f32(x);
}

INLINE uint32_t equal_lanes(vector a, vector b)
{
	return vaddvq_u32(vandq_u32(vceqq_f32(a, b), lane_bits()));
}

INLINE uint32_t larger_lanes(vector a, vector b)
{
	return vaddvq_u32(vandq_u32(vcgtq_f32(a, b), lane_bits()));
}

INLINE void transpose(vector x[4])
{
	float64x2_t a = vreinterpretq_f64_f32(vtrn1q_f32(x[0], x[1])), b = vreinterpretq_f64_f32(vtrn2q_f32(x[0], x[1]));
	float64x2_t c = vreinterpretq_f64_f32(vtrn1q_f32(x[2], x[3])), d = vreinterpretq_f64_f32(vtrn2q_f32(x[2], x[3]));
	x[0] = vreinterpretq_f32_f64(vzip1q_f64(a, c));
	x[1] = vreinterpretq_f32_f64(vzip1q_f64(b, d));
	x[2] = vreinterpretq_f32_f64(vzip2q_f64(a, c));
	x[3] = vreinterpretq_f32_f64(vzip2q_f64(b, d));
}

typedef uint32x4_t integers;
typedef uint32x4_t lanes;

INLINE integers integers_set(uint32_t x)
{
	return vdupq_n_u32(x);
}

INLINE integers integers_wide(integers a, uint32_t b)
{
	return vreinterpretq_u32_u64(vmull_n_u32(vmovn_u64(vreinterpretq_u64_u32(a)), b));
}

INLINE integers integers_high(integers x)
{
	return vreinterpretq_u32_u64(vshrq_n_u64(vreinterpretq_u64_u32(x), 32));
}

INLINE integers integers_xor(integers a, integers b, integers c)
{
	return veorq_u32(a, veorq_u32(b, c));
}

INLINE integers integers_join_low(integers even, integers odd)
{
	return vtrn1q_u32(even, odd);
}

INLINE integers integers_join_high(integers even, integers odd)
{
	return vtrn2q_u32(even, odd);
}

INLINE integers integers_every_second(uint32_t first)
{
	return vreinterpretq_u32_u64(vcombine_u64(vcreate_u64(first), vcreate_u64(first + 2)));
}

INLINE lanes low_reaches(integers x, uint32_t threshold)
{
	return vcgeq_u32(vshlq_n_u32(x, 16), vdupq_n_u32(threshold << 16));
}

INLINE lanes high_reaches(integers x, uint32_t threshold)
{
	return vcgeq_u32(x, vdupq_n_u32(threshold << 16));
}

INLINE vector keep_lanes(lanes mask, vector x)
{
	return vreinterpretq_f32_u32(vandq_u32(mask, vreinterpretq_u32_f32(x)));
}

INLINE vector exp2_domain(vector x)
{
	return vector_max(vector_set(-127), x); /* 2^-127 becomes 0 */
}

INLINE vector exp2_scale(vector p, vector n)
{
	return p * power_of_two(vcvtq_s32_f32(n));
}

/* The high and low halves of products. */
INLINE void multiply_wide(uint32x4_t x, uint32_t constant, uint32x4_t *high, uint32x4_t *low)
{
	uint32x4_t even = vreinterpretq_u32_u64(vmull_n_u32(vget_low_u32(x), constant));
	uint32x4_t odd = vreinterpretq_u32_u64(vmull_high_n_u32(x, constant));
	*low = vuzp1q_u32(even, odd);
	*high = vuzp2q_u32(even, odd);
}

/* Four times four Philox blocks, each of which makes a byte of bits. */
INLINE void dropout_columns(uint64_t seed, uint32_t first, uint32_t position, uint32_t site, uint32_t sample, uint32_t threshold,
			    uint8_t *bits)
{
	static const uint32_t steps[LANES] = {0, 1, 2, 3};
	static const uint16_t weights[8] = {1, 2, 4, 8, 16, 32, 64, 128};
	const uint16x8_t limit = vdupq_n_u16((uint16_t)threshold), weight = vld1q_u16(weights);
	for (uint32_t part = 0; part < 4; part++, bits += LANES) {
		uint32x4_t c0 = vaddq_u32(vdupq_n_u32(first + LANES * part), vld1q_u32(steps)), c1 = vdupq_n_u32(position);
		uint32x4_t c2 = vdupq_n_u32(site), c3 = vdupq_n_u32(sample);
		uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
		for (int round = 0; round < 7; round++) {
			uint32x4_t high0, low0, high1, low1;
			multiply_wide(c0, 0xD2511F53u, &high0, &low0);
			multiply_wide(c2, 0xCD9E8D57u, &high1, &low1);
			c0 = integers_xor(high1, c1, vdupq_n_u32(k0));
			c2 = integers_xor(high0, c3, vdupq_n_u32(k1));
			c1 = low1;
			c3 = low0;
			k0 += 0x9E3779B9u;
			k1 += 0xBB67AE85u;
		}
		vector blocks[LANES] = {vreinterpretq_f32_u32(c0), vreinterpretq_f32_u32(c1), vreinterpretq_f32_u32(c2),
					vreinterpretq_f32_u32(c3)};
		transpose(blocks);
		for (int i = 0; i < LANES; i++) {
			uint16x8_t kept = vcgeq_u16(vreinterpretq_u16_f32(blocks[i]), limit);
			bits[i] = (uint8_t)vaddvq_u16(vandq_u16(kept, weight));
		}
	}
}

typedef struct {
	float64x2_t low, high;
} square_sums;

INLINE void add_squares(square_sums *s, vector x)
{
	float64x2_t low = vcvt_f64_f32(vget_low_f32(x)), high = vcvt_high_f64_f32(x);
	s->low = vfmaq_f64(s->low, low, low);
	s->high = vfmaq_f64(s->high, high, high);
}

INLINE double square_total(square_sums s)
{
	return vaddvq_f64(vaddq_f64(s.low, s.high));
}

INLINE bool stored_two(void *row, int64_t i, vector low, vector high, enum dtype dtype, bool past)
{
	(void)row, (void)i, (void)low, (void)high, (void)dtype, (void)past;
	return false;
}

INLINE void store_past_end(void)
{
}

#endif
