/* Vectors of fp32 with the width of the instruction set that a kernel file is compiled for: 16 lanes, or 8 with AVX2. */
#ifndef BACKEND_CPU_KERNELS_VECTOR_H
#define BACKEND_CPU_KERNELS_VECTOR_H

#include <immintrin.h>
#include <stdint.h>

#ifdef __AVX512F__
enum { LANES = 16 };
typedef __m512 vector;

static inline vector vector_load(const float *p)
{
	return _mm512_loadu_ps(p);
}

static inline void vector_store(float *p, vector x)
{
	_mm512_storeu_ps(p, x);
}

static inline vector vector_set(float x)
{
	return _mm512_set1_ps(x);
}

/* a b + c, rounded once. */
static inline vector vector_fma(vector a, vector b, vector c)
{
	return _mm512_fmadd_ps(a, b, c);
}

static inline vector vector_max(vector a, vector b)
{
	return _mm512_max_ps(a, b);
}

/* LANES bf16 numbers, converted to fp32. */
static inline vector vector_load_bf16(const uint16_t *p)
{
	__m256i bits = _mm256_loadu_si256((const __m256i *)p);
	return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}
#else
enum { LANES = 8 };
typedef __m256 vector;

static inline vector vector_load(const float *p)
{
	return _mm256_loadu_ps(p);
}

static inline void vector_store(float *p, vector x)
{
	_mm256_storeu_ps(p, x);
}

static inline vector vector_set(float x)
{
	return _mm256_set1_ps(x);
}

static inline vector vector_fma(vector a, vector b, vector c)
{
	return _mm256_fmadd_ps(a, b, c);
}

static inline vector vector_max(vector a, vector b)
{
	return _mm256_max_ps(a, b);
}

static inline vector vector_load_bf16(const uint16_t *p)
{
	__m128i bits = _mm_loadu_si128((const __m128i *)p);
	return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}
#endif

#endif
