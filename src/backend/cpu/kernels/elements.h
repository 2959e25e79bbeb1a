/* Vectors of elements of either activation type, the last of which may be partial, and the functions of them that kernels
 * need. Every kernel file is compiled once per instruction set. */
#ifndef BACKEND_CPU_KERNELS_ELEMENTS_H
#define BACKEND_CPU_KERNELS_ELEMENTS_H

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
	if (stored_two(row, i, low, high, dtype, past))
		return;
	store(row, i, LANES, low, dtype);
	store(row, i + LANES, LANES, high, dtype);
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
