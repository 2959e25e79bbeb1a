/* The gradient's norm, and AdamW in one pass over weight, moments and gradient. */
#include "backend/cpu/kernels/table.h"

#ifdef __AVX512F__
double KERNEL(sum_squares)(const float *x, int64_t count)
{
	__m512d a = _mm512_setzero_pd(), b = a;
	for (int64_t i = 0; i < count; i += LANES) {
		vector v = load_floats(x, i, count - i);
		__m512d low = _mm512_cvtps_pd(_mm512_castps512_ps256(v));
		__m512d high = _mm512_cvtps_pd(_mm512_extractf32x8_ps(v, 1));
		a = _mm512_fmadd_pd(low, low, a);
		b = _mm512_fmadd_pd(high, high, b);
	}
	return _mm512_reduce_add_pd(_mm512_add_pd(a, b));
}
#else
double KERNEL(sum_squares)(const float *x, int64_t count)
{
	__m256d a = _mm256_setzero_pd(), b = a;
	for (int64_t i = 0; i < count; i += LANES) {
		vector v = load_floats(x, i, count - i);
		__m256d low = _mm256_cvtps_pd(_mm256_castps256_ps128(v));
		__m256d high = _mm256_cvtps_pd(_mm256_extractf128_ps(v, 1));
		a = _mm256_fmadd_pd(low, low, a);
		b = _mm256_fmadd_pd(high, high, b);
	}
	double sums[4];
	_mm256_storeu_pd(sums, _mm256_add_pd(a, b));
	return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}
#endif

void KERNEL(adamw)(const struct adamw_range *a)
{
	const vector beta1 = vector_set(a->beta1), beta2 = vector_set(a->beta2);
	const vector rest1 = vector_set(a->one_minus_beta1), rest2 = vector_set(a->one_minus_beta2);
	const vector scale = vector_set(a->gradient_scale), step = vector_set(a->step_size);
	const vector root = vector_set(a->root_scale), epsilon = vector_set(a->epsilon), decay = vector_set(a->decay);
	for (int64_t i = 0; i < a->count; i += LANES) {
		int64_t left = a->count - i;
		vector g = load_floats(a->g, i, left) * scale, w = load_floats(a->w, i, left);
		vector m = vector_fma(beta1, load_floats(a->m, i, left), rest1 * g);
		vector v = vector_fma(beta2, load_floats(a->v, i, left), rest2 * g * g);
		vector update = step * m / vector_fma(vector_sqrt(v), root, epsilon);
		store_floats(a->m, i, left, m);
		store_floats(a->v, i, left, v);
		store_floats(a->w, i, left, w - vector_fma(decay, w, update));
	}
}
