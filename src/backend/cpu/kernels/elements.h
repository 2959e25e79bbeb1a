/* Vectors of elements of either activation type, the last of which may be partial, and the functions of them that kernels
 * need. Every kernel file is compiled once per instruction set. */
#ifndef BACKEND_CPU_KERNELS_ELEMENTS_H
#define BACKEND_CPU_KERNELS_ELEMENTS_H

#include <immintrin.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include "backend/cpu/gelu_table.h"
#include "backend/cpu/kernels/vector.h"
#include "backend/ops.h"
#include "backend/tensor.h"

/* name_avx2, name_avx512, ... */
#define KERNEL_JOIN(name, isa) name##_##isa
#define KERNEL_EXPAND(name, isa) KERNEL_JOIN(name, isa)
#define KERNEL(name) KERNEL_EXPAND(name, ISA)

/* Kernels are written with dtype as a constant argument, which inlining eliminates. */
#define INLINE static inline __attribute__((always_inline))

#ifdef __AVX512F__
INLINE __mmask16 first_lanes(int64_t left)
{
	return left >= LANES ? 0xffff : (__mmask16)((1u << left) - 1);
}

/* Elements i … i + LANES - 1 of a row, with zeros from i + left on; left > 0. */
INLINE vector load_floats(const float *row, int64_t i, int64_t left)
{
	return _mm512_maskz_loadu_ps(first_lanes(left), row + i);
}

INLINE void store_floats(float *row, int64_t i, int64_t left, vector x)
{
	_mm512_mask_storeu_ps(row + i, first_lanes(left), x);
}

INLINE vector load_bf16(const uint16_t *row, int64_t i, int64_t left)
{
	__m256i bits = _mm256_maskz_loadu_epi16(first_lanes(left), row + i);
	return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}

INLINE __m256i to_bf16(vector x)
{
#ifdef __AVX512BF16__
	return (__m256i)_mm512_cvtneps_pbh(x);
#else
	__m512i bits = _mm512_castps_si512(x), one = _mm512_set1_epi32(1);
	__m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), one);
	__m512i rounded = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);
	__mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
	rounded = _mm512_mask_or_epi32(rounded, nan, bits, _mm512_set1_epi32(0x400000));
	return _mm512_cvtepi32_epi16(_mm512_srli_epi32(rounded, 16));
#endif
}

INLINE void store_bf16(uint16_t *row, int64_t i, int64_t left, vector x)
{
	_mm256_mask_storeu_epi16(row + i, first_lanes(left), to_bf16(x));
}

INLINE vector round_to_bf16(vector x)
{
	return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(to_bf16(x)), 16));
}

/* x where the element's bit is set, else 0. */
INLINE vector keep_bits(vector x, const uint8_t *bits, int64_t i)
{
	uint16_t mask;
	memcpy(&mask, bits + i / 8, sizeof mask);
	return _mm512_maskz_mov_ps(mask, x);
}

INLINE vector vector_min(vector a, vector b)
{
	return _mm512_min_ps(a, b);
}

INLINE vector vector_round(vector x)
{
	return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

INLINE vector vector_sqrt(vector x)
{
	return _mm512_sqrt_ps(x);
}

/* x 2^n for integral n. */
INLINE vector vector_scale(vector x, vector n)
{
	return _mm512_scalef_ps(x, n);
}

/* a < b ? x : y */
INLINE vector where_less(vector a, vector b, vector x, vector y)
{
	return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), y, x);
}

INLINE vector vector_abs(vector x)
{
	return _mm512_abs_ps(x);
}

/* |x| with the sign of `sign`. */
INLINE vector with_sign(vector x, vector sign)
{
	__m512i bit = _mm512_and_si512(_mm512_castps_si512(sign), _mm512_set1_epi32((int)0x80000000));
	return _mm512_castsi512_ps(_mm512_or_si512(_mm512_castps_si512(_mm512_abs_ps(x)), bit));
}

INLINE float vector_sum(vector x)
{
	return _mm512_reduce_add_ps(x);
}

INLINE float vector_largest(vector x)
{
	return _mm512_reduce_max_ps(x);
}

/* Bit i is set if elements i are equal. */
INLINE uint32_t equal_lanes(vector a, vector b)
{
	return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ);
}
#else
INLINE __m256i first_lanes(int64_t left)
{
	__m256i index = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
	return _mm256_cmpgt_epi32(_mm256_set1_epi32(left >= LANES ? LANES : (int)left), index);
}

INLINE vector load_floats(const float *row, int64_t i, int64_t left)
{
	return left >= LANES ? vector_load(row + i) : _mm256_maskload_ps(row + i, first_lanes(left));
}

INLINE void store_floats(float *row, int64_t i, int64_t left, vector x)
{
	if (left >= LANES)
		vector_store(row + i, x);
	else
		_mm256_maskstore_ps(row + i, first_lanes(left), x);
}

/* bf16 is not offered on processors without AVX-512; these functions only complete the set of kernels. */
INLINE vector load_bf16(const uint16_t *row, int64_t i, int64_t left)
{
	uint16_t part[LANES] = {0};
	memcpy(part, row + i, (size_t)(left >= LANES ? LANES : left) * sizeof *part);
	return vector_load_bf16(part);
}

INLINE vector round_to_bf16(vector x)
{
	float part[LANES];
	vector_store(part, x);
	for (int i = 0; i < LANES; i++)
		part[i] = bf16_to_float(float_to_bf16(part[i]));
	return vector_load(part);
}

INLINE void store_bf16(uint16_t *row, int64_t i, int64_t left, vector x)
{
	float part[LANES];
	vector_store(part, x);
	for (int64_t j = 0; j < LANES && j < left; j++)
		row[i + j] = float_to_bf16(part[j]);
}

INLINE vector keep_bits(vector x, const uint8_t *bits, int64_t i)
{
	__m256i lane = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
	__m256i set = _mm256_and_si256(_mm256_set1_epi32(bits[i / 8]), lane);
	return _mm256_and_ps(x, _mm256_castsi256_ps(_mm256_cmpeq_epi32(set, lane)));
}

INLINE vector vector_min(vector a, vector b)
{
	return _mm256_min_ps(a, b);
}

INLINE vector vector_round(vector x)
{
	return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

INLINE vector vector_sqrt(vector x)
{
	return _mm256_sqrt_ps(x);
}

/* In two steps, because 2^n itself may be out of range. */
INLINE vector vector_scale(vector x, vector n)
{
	__m256i whole = _mm256_cvtps_epi32(n), half = _mm256_srai_epi32(whole, 1), bias = _mm256_set1_epi32(127);
	__m256i rest = _mm256_sub_epi32(whole, half);
	x = x * _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(half, bias), 23));
	return x * _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(rest, bias), 23));
}

INLINE vector where_less(vector a, vector b, vector x, vector y)
{
	return _mm256_blendv_ps(y, x, _mm256_cmp_ps(a, b, _CMP_LT_OQ));
}

INLINE vector vector_abs(vector x)
{
	return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), x);
}

INLINE vector with_sign(vector x, vector sign)
{
	return _mm256_or_ps(vector_abs(x), _mm256_and_ps(sign, _mm256_set1_ps(-0.0f)));
}

INLINE float vector_sum(vector x)
{
	__m128 four = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
	__m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
	return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

INLINE float vector_largest(vector x)
{
	__m128 four = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
	__m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
	return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

INLINE uint32_t equal_lanes(vector a, vector b)
{
	return (uint32_t)_mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_EQ_OQ));
}
#endif

/* For rows of activations of either type. */
INLINE vector load(const void *row, int64_t i, int64_t left, enum dtype dtype)
{
	return dtype == DTYPE_BF16 ? load_bf16(row, i, left) : load_floats(row, i, left);
}

INLINE void store(void *row, int64_t i, int64_t left, vector x, enum dtype dtype)
{
	if (dtype == DTYPE_BF16)
		store_bf16(row, i, left, x);
	else
		store_floats(row, i, left, x);
}

/* Stores elements i ... i + 2 LANES - 1, all of which must exist: whole cache lines, where single bf16 vectors would be half
 * lines. With `past` they bypass the caches if alignment allows, which saves reading the lines first: for data that is not
 * read again soon. A kernel that does so ends with store_past_end(). */
INLINE void store_two(void *row, int64_t i, vector low, vector high, enum dtype dtype, bool past)
{
#ifdef __AVX512BF16__
	if (dtype == DTYPE_BF16) {
		__m512i both = (__m512i)_mm512_cvtne2ps_pbh(high, low);
		uint16_t *at = (uint16_t *)row + i;
		if (past && ((uintptr_t)at & 63) == 0)
			_mm512_stream_si512((void *)at, both);
		else
			_mm512_storeu_si512(at, both);
		return;
	}
#endif
#ifdef __AVX512F__
	float *at = (float *)row + i;
	if (past && dtype == DTYPE_F32 && ((uintptr_t)at & 63) == 0) {
		_mm512_stream_ps(at, low);
		_mm512_stream_ps(at + LANES, high);
		return;
	}
#endif
	(void)past;
	store(row, i, LANES, low, dtype);
	store(row, i + LANES, LANES, high, dtype);
}

INLINE void store_past_end(void)
{
	_mm_sfence();
}

/* The value that load() would return after store(). */
INLINE vector rounded(vector x, enum dtype dtype)
{
	return dtype == DTYPE_BF16 ? round_to_bf16(x) : x;
}

/* Prefetches the cache line of element i. */
INLINE void fetch(const void *row, int64_t i, enum dtype dtype)
{
	__builtin_prefetch((const char *)row + i * (int64_t)dtype_bytes(dtype));
}

INLINE const void *row_of(const void *rows, int64_t row, int64_t stride, enum dtype dtype)
{
	return (const char *)rows + row * stride * (int64_t)dtype_bytes(dtype);
}

INLINE void *out_row(void *rows, int64_t row, int64_t stride, enum dtype dtype)
{
	return (char *)rows + row * stride * (int64_t)dtype_bytes(dtype);
}

/* e^x to 1e-7 relative; NaN stays NaN, x is clamped to -104 (which gives 0) and 88.7. The polynomial is a minimax fit of (e^r
 * - 1 - r) / r^2 on |r| <= ln 2 / 2. */
INLINE vector vector_exp(vector x)
{
	const vector lowest = vector_set(-104), highest = vector_set(88.7f);
	vector inside = vector_min(highest, vector_max(lowest, x)); /* min and max return their second operand if either is NaN */
	vector n = vector_round(inside * vector_set(1.44269504f));
	vector r = vector_fma(n, vector_set(-0.693145752f), inside);
	r = vector_fma(n, vector_set(-1.42860677e-6f), r);
	vector q = vector_set(0.001381455222144723f);
	q = vector_fma(q, r, vector_set(0.008368706330657005f));
	q = vector_fma(q, r, vector_set(0.04166838899254799f));
	q = vector_fma(q, r, vector_set(0.1666652113199234f));
	q = vector_fma(q, r, vector_set(0.4999999403953552f));
	return vector_scale(vector_fma(r * r, q, r) + vector_set(1), n);
}

/* Distribution function Phi of the standard normal, and *density = e^(-x^2/2). Phi(-|x|) = erfcx(t) e^(-t^2) / 2 with t =
 * |x|/sqrt 2, where erfcx(t) is a polynomial in u = 1 / (1 + p t): smooth for all t >= 0, so there are no branches, and no
 * cancellation in either tail. Error 1e-7 relative for |x| < 3, 1e-7 absolute everywhere. */
INLINE vector normal_distribution(vector x, vector *density)
{
	const vector one = vector_set(1);
	vector t = vector_abs(x) * vector_set(0.70710678f);
	vector u = one / vector_fma(t, vector_set(0.3f), one);
	vector p = vector_set(0.5f * -0.12943428754806519f);
	p = vector_fma(p, u, vector_set(0.5f * 0.4850974678993225f));
	p = vector_fma(p, u, vector_set(0.5f * -0.5112285017967224f));
	p = vector_fma(p, u, vector_set(0.5f * 0.5463973879814148f));
	p = vector_fma(p, u, vector_set(0.5f * -0.09363283216953278f));
	p = vector_fma(p, u, vector_set(0.5f * 0.21443693339824677f));
	p = vector_fma(p, u, vector_set(0.5f * 0.1484822779893875f));
	p = vector_fma(p, u, vector_set(0.5f * 0.17069195210933685f));
	p = vector_fma(p, u, vector_set(0.5f * 0.16918961703777313f));
	*density = vector_exp(t * t * vector_set(-1));
	vector tail = p * u * *density;
	return where_less(vector_set(0), x, one - tail, tail);
}

/* (1 + tanh z) / 2 = 1 / (1 + e^(-2z)) with z = sqrt(2/pi) (x + 0.044715 x^3), as in gelu's tanh form, and *power = e^(-2z). */
INLINE vector tanh_form_logistic(vector x, vector *power)
{
	const vector one = vector_set(1);
	vector cubic = vector_fma(x * x * vector_set(0.044715f), x, x);
	*power = vector_exp(cubic * vector_set(-1.5957691216f));
	return one / (one + *power);
}

/* Gelu of vectors that will be stored as `dtype`: for bf16, the two proper forms from a table held in registers. */
struct gelu {
	enum dtype dtype;
	enum activation form;
	vector low[4], high[4]; /* coefficients of the first LANES pieces, and of the others */
};

/* For gelu() or, with `derivative`, for gelu_derivative(). */
INLINE struct gelu gelu_start(enum activation form, bool derivative, enum dtype dtype)
{
	struct gelu g = {.dtype = dtype, .form = form};
	const struct gelu_table *table = &gelu_tables[form == ACTIVATION_GELU_TANH][derivative];
	for (int i = 0; i < 4; i++) {
		g.low[i] = vector_load(table->c[i]);
		g.high[i] = vector_load(table->c[i] + LANES);
	}
	return g;
}

#ifdef __AVX512F__
/* 1/2 + f(|x|) with the sign of x: see gelu_table.h. NaN stays NaN. */
INLINE vector gelu_lookup(const struct gelu *g, vector x)
{
	const vector round = vector_set(12582912); /* 1.5 2^23: the last bits of the sum are the nearest integer */
	vector scaled = vector_min(vector_set(GELU_PIECES - 1), vector_abs(x) * vector_set(GELU_SCALE));
	vector shifted = scaled + round, r = scaled - (shifted - round);
	__m512i piece = _mm512_castps_si512(shifted);
	vector p = _mm512_permutex2var_ps(g->low[3], piece, g->high[3]);
	p = vector_fma(p, r, _mm512_permutex2var_ps(g->low[2], piece, g->high[2]));
	p = vector_fma(p, r, _mm512_permutex2var_ps(g->low[1], piece, g->high[1]));
	p = vector_fma(p, r, _mm512_permutex2var_ps(g->low[0], piece, g->high[0]));
	const __m512i sign = _mm512_set1_epi32((int)0x80000000);
	__m512i bits = _mm512_castps_si512(p);
	bits = _mm512_ternarylogic_epi32(bits, _mm512_castps_si512(x), sign, 0x78); /* bits ^ (x & sign) */
	return vector_set(0.5f) + _mm512_castsi512_ps(bits);
}
#endif

/* x Phi(x), or Hendrycks and Gimpel's approximation of it with tanh; or SiLU or ReLU. */
INLINE vector gelu(const struct gelu *g, vector x)
{
	vector power;
	if (g->form == ACTIVATION_RELU)
		return where_less(x, vector_set(0), vector_set(0), x);
	if (g->form == ACTIVATION_SILU)
		return x / (vector_set(1) + vector_exp(x * vector_set(-1)));
#ifdef __AVX512F__
	if (g->dtype == DTYPE_BF16)
		return x * gelu_lookup(g, x);
#endif
	return x * (g->form == ACTIVATION_GELU_TANH ? tanh_form_logistic(x, &power) : normal_distribution(x, &power));
}

/* Phi(x) + x e^(-x^2/2) / sqrt(2 pi); in the tanh form, with s = 1 / (1 + e^(-2z)), s + x s^2 e^(-2z) (2z)', because s (1 - s)
 * would lose digits when s is near 1. */
INLINE vector gelu_derivative(const struct gelu *g, vector x)
{
	vector power;
	if (g->form == ACTIVATION_RELU)
		return where_less(vector_set(0), x, vector_set(1), vector_set(0));
	if (g->form == ACTIVATION_SILU) {
		power = vector_exp(x * vector_set(-1));
		vector s = vector_set(1) / (vector_set(1) + power);
		return vector_fma(x * s * s, power, s);
	}
#ifdef __AVX512F__
	if (g->dtype == DTYPE_BF16)
		return gelu_lookup(g, x);
#endif
	if (g->form == ACTIVATION_GELU_TANH) {
		vector s = tanh_form_logistic(x, &power);
		vector slope = vector_fma(x * x, vector_set(3 * 0.044715f), vector_set(1)) * vector_set(1.5957691216f);
		return vector_fma(x * s * s * power, slope, s);
	}
	vector phi = normal_distribution(x, &power);
	return vector_fma(x * vector_set(0.39894228f), power, phi);
}

/* tanh to 2e-7 relative: the quotient of exponentials loses digits near 0, where a short series suffices. */
INLINE vector vector_tanh(vector x)
{
	const vector one = vector_set(1);
	vector size = vector_abs(x), square = x * x;
	vector large = one - vector_set(2) / (one + vector_exp(size * vector_set(2)));
	vector series = vector_set(0.0088632355f);                                      /* 1382/155925 */
	series = vector_fma(series, square * vector_set(-1), vector_set(0.021869488f)); /* 62/2835 */
	series = vector_fma(series, square, vector_set(-0.053968254f));                 /* -17/315 */
	series = vector_fma(series, square, vector_set(0.13333333f));
	series = vector_fma(series, square, vector_set(-0.33333333f));
	series = vector_fma(series * square, size, size);
	return with_sign(where_less(size, vector_set(0.3f), series, large), x);
}

#endif
