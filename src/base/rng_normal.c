/* Normal random numbers: a Box-Muller pair from each Philox block. The two values of a pair are independent, so the second can
 * replace a rejected first; the rest of the block is unused once a value is accepted.
 *
 * Written as loops over arrays that the compiler vectorizes for the processor's widest registers. Products and sums are rounded
 * separately (no fused multiply-add in ISO C), and logarithm, sine, and cosine are the series below, so every processor and both
 * functions give the same bits. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/processor.h"
#include "base/rng.h"

/* Blocks processed at a time: the arrays stay in the L1 cache. */
#define LANES 128

#define INLINE static inline __attribute__((always_inline))

/* log x for 2^-53 <= x <= 1: x = 2^n m with 1/sqrt 2 <= m < sqrt 2; log m = 2 atanh s, s = (m - 1) / (m + 1), |s| < 0.172. The
 * series is cut off at s^23, which is below rounding. */
INLINE double logarithm(double x)
{
	uint64_t bits;
	memcpy(&bits, &x, sizeof bits);
	/* 2^52 + exponent, assembled from bits, since not every processor can convert vectors of 64-bit integers. */
	uint64_t shifted = bits + (0x3ff0000000000000u - 0x3fe6a09e667f3bcdu);
	uint64_t exponent = (shifted >> 52) | 0x4330000000000000u;
	uint64_t mantissa = (shifted & 0x000fffffffffffffu) + 0x3fe6a09e667f3bcdu;
	double n, m;
	memcpy(&n, &exponent, sizeof n);
	memcpy(&m, &mantissa, sizeof m);
	n -= 0x1p52 + 1023;
	double s = (m - 1) / (m + 1), z = s * s;
	double p = 1.0 / 21;
	p = p * z + 1.0 / 19;
	p = p * z + 1.0 / 17;
	p = p * z + 1.0 / 15;
	p = p * z + 1.0 / 13;
	p = p * z + 1.0 / 11;
	p = p * z + 1.0 / 9;
	p = p * z + 1.0 / 7;
	p = p * z + 1.0 / 5;
	p = p * z + 1.0 / 3;
	return n * 0.69314718055994530942 + (2 * s + 2 * s * z * p);
}

/* Cosine and sine of 2 pi turn, 0 <= turn < 1: Taylor series of the distance to the nearest quarter turn, at most pi / 4. */
INLINE void cosine_and_sine(double turn, double *out_cosine, double *out_sine)
{
	int32_t quarter = (int32_t)(4 * turn + 0.5);
	double x = 6.283185307179586 * (turn - 0.25 * quarter), z = x * x;
	double s = 1.0 / 1307674368000;
	s = 1.0 / 6227020800 - s * z;
	s = 1.0 / 39916800 - s * z;
	s = 1.0 / 362880 - s * z;
	s = 1.0 / 5040 - s * z;
	s = 1.0 / 120 - s * z;
	s = 1.0 / 6 - s * z;
	s = x - x * z * s;
	double c = 1.0 / 20922789888000;
	c = 1.0 / 87178291200 - c * z;
	c = 1.0 / 479001600 - c * z;
	c = 1.0 / 3628800 - c * z;
	c = 1.0 / 40320 - c * z;
	c = 1.0 / 720 - c * z;
	c = 1.0 / 24 - c * z;
	c = 0.5 - c * z;
	c = 1 - c * z;
	/* (cos, sin) after 0, 1, 2, 3 quarter turns: (c, s), (-s, c), (-c, -s), (s, -c) */
	double first = quarter & 1 ? s : c, second = quarter & 1 ? c : s;
	*out_cosine = (quarter + 1) & 2 ? -first : first;
	*out_sine = quarter & 2 ? -second : second;
}

/* Uniform in [0, 1) with 53 bits, like rng_double(). */
INLINE double uniform(uint32_t a, uint32_t b)
{
	return ((double)(int32_t)(a >> 5) * 0x1p26 + (double)(int32_t)(b >> 6)) * 0x1p-53;
}

INLINE void pair(const uint32_t word[4], double *first, double *second)
{
	double radius = sqrt(-2 * logarithm(1 - uniform(word[0], word[1]))), cosine, sine;
	cosine_and_sine(uniform(word[2], word[3]), &cosine, &sine);
	*first = radius * cosine;
	*second = radius * sine;
}

double rng_truncated_normal(struct rng *rng)
{
	for (;;) {
		uint32_t word[4];
		double first, second;
		for (int i = 0; i < 4; i++)
			word[i] = rng_u32(rng);
		pair(word, &first, &second);
		if (fabs(first) <= 2)
			return first;
		if (fabs(second) <= 2)
			return second;
	}
}

/* Pairs from blocks first to first + LANES - 1 of a stream. */
INLINE void pairs(const struct rng *stream, uint32_t first, double *out_first, double *out_second)
{
	uint32_t word[4][LANES];
	for (int j = 0; j < LANES; j++) {
		word[0][j] = first + (uint32_t)j;
		word[1][j] = stream->purpose;
		word[2][j] = stream->index_low;
		word[3][j] = stream->index_high;
	}
	uint32_t k0 = (uint32_t)stream->seed, k1 = (uint32_t)(stream->seed >> 32);
	for (int round = 0; round < 10; round++) { /* Philox, as in rng.h */
		for (int j = 0; j < LANES; j++) {
			uint64_t p0 = (uint64_t)0xD2511F53u * word[0][j], p1 = (uint64_t)0xCD9E8D57u * word[2][j];
			uint32_t n0 = (uint32_t)(p1 >> 32) ^ word[1][j] ^ k0, n2 = (uint32_t)(p0 >> 32) ^ word[3][j] ^ k1;
			word[1][j] = (uint32_t)p1;
			word[3][j] = (uint32_t)p0;
			word[0][j] = n0;
			word[2][j] = n2;
		}
		k0 += 0x9E3779B9u;
		k1 += 0xBB67AE85u;
	}
	for (int j = 0; j < LANES; j++) {
		const uint32_t own[4] = {word[0][j], word[1][j], word[2][j], word[3][j]};
		pair(own, &out_first[j], &out_second[j]);
	}
}

typedef void pairs_function(const struct rng *stream, uint32_t first, double *out_first, double *out_second);

static void pairs_plain(const struct rng *stream, uint32_t first, double *out_first, double *out_second)
{
	pairs(stream, first, out_first, out_second);
}

#define DEFINE_PAIRS(name, extensions, here)                                                                                     \
	__attribute__((target(extensions))) static void pairs_##name(const struct rng *stream, uint32_t first,                   \
								     double *out_first, double *out_second)                      \
	{                                                                                                                        \
		pairs(stream, first, out_first, out_second);                                                                     \
	}
PROCESSOR_WIDTHS(DEFINE_PAIRS)

static pairs_function *widest(void)
{
#define IF_HERE(name, extensions, here)                                                                                          \
	if (here)                                                                                                                \
		return pairs_##name;
	PROCESSOR_WIDTHS(IF_HERE)
	return pairs_plain;
}

void rng_truncated_normals(const struct rng *start, double *out, int64_t count)
{
	BUG_IF(start->block != 0 || start->left != 0);
	pairs_function *make = widest();
	double first[LANES], second[LANES];
	int64_t done = 0;
	for (uint32_t block = 0; done < count; block += LANES) {
		make(start, block, first, second);
		for (int j = 0; j < LANES && done < count; j++) {
			if (fabs(first[j]) <= 2)
				out[done++] = first[j];
			else if (fabs(second[j]) <= 2)
				out[done++] = second[j];
		}
	}
}
