/* Attention's own steps on one tile of scores: softmax, its gradient, and rows stored in the layouts that products read. */
#include "backend/cpu/kernels/attention_kernels.h"

#include "backend/cpu/kernels/elements.h"
#include "backend/cpu/kernels/gemm_kernels.h"

enum { STRIPE = ATTENTION_STRIPE, VECTORS = STRIPE / LANES };

/* 2^x for x up to about 0: below -150 gives 0. Relative error below 1e-7. */
INLINE vector exp2_vector(vector x)
{
	x = exp2_domain(x);
	vector n = vector_round(x), f = x - n;
	vector p = vector_set(1.534581242594868e-4f);
	p = vector_fma(p, f, vector_set(1.3399930903688073e-3f));
	p = vector_fma(p, f, vector_set(9.618489071726799e-3f));
	p = vector_fma(p, f, vector_set(5.550328642129898e-2f));
	p = vector_fma(p, f, vector_set(2.4022646248340607e-1f));
	p = vector_fma(p, f, vector_set(6.931471824645996e-1f));
	p = vector_fma(p, f, vector_set(1));
	return exp2_scale(p, n);
}

/* Philox4x32-7 for LANES queries from `query` on and one block of 8 keys: word w holds the numbers of keys 2w (low half) and
 * 2w + 1 (high half). Only the query differs between lanes, so part of the first rounds is scalar, and the vectors are kept as
 * even and odd queries in 64-bit lanes until the end. */
INLINE void random_words(const struct attention_dropout *d, uint32_t key_block, uint32_t query, integers words[4])
{
	const uint32_t m0 = 0xD2511F53u, m1 = 0xCD9E8D57u, w0 = 0x9E3779B9u, w1 = 0xBB67AE85u;
	uint32_t k0 = (uint32_t)d->seed, k1 = (uint32_t)(d->seed >> 32);
	/* Round 1: counter (c0, query, c2, c3). */
	uint64_t p0 = (uint64_t)m0 * (d->head << 16 | key_block), p1 = (uint64_t)m1 * d->site;
	uint32_t s0 = (uint32_t)(p1 >> 32) ^ k0, s1 = (uint32_t)p1, s2 = (uint32_t)(p0 >> 32) ^ d->sample ^ k1;
	uint32_t s3 = (uint32_t)p0;
	k0 += w0;
	k1 += w1;
	/* Round 2: (query ^ s0, s1, s2, s3). Round 3: (t0, t1, vector, vector). */
	uint64_t p2 = (uint64_t)m1 * s2;
	uint32_t t0 = (uint32_t)(p2 >> 32) ^ s1 ^ k0, t1 = (uint32_t)p2;
	uint32_t s3k1 = s3 ^ k1;
	k0 += w0;
	k1 += w1;
	uint64_t p3 = (uint64_t)m0 * t0;
	uint32_t t1k0 = t1 ^ k0, u2 = (uint32_t)(p3 >> 32) ^ k1, u3 = (uint32_t)p3;
	integers c0[2], c1[2], c2[2], c3[2], a[2], b[2];
#pragma GCC unroll 2
	for (int i = 0; i < 2; i++) {
		integers q = integers_wide(integers_every_second(query + (uint32_t)i) ^ integers_set(s0), m0);
		integers r = integers_wide(integers_high(q) ^ integers_set(s3k1), m1);
		c0[i] = integers_high(r) ^ integers_set(t1k0);
		c1[i] = r;
		c2[i] = q ^ integers_set(u2);
		c3[i] = integers_set(u3);
	}
#pragma GCC unroll 3
	for (int round = 4; round < 7; round++) {
		k0 += w0;
		k1 += w1;
#pragma GCC unroll 2
		for (int i = 0; i < 2; i++) {
			a[i] = integers_wide(c0[i], m0);
			b[i] = integers_wide(c2[i], m1);
			c0[i] = integers_xor(integers_high(b[i]), c1[i], integers_set(k0));
			c2[i] = integers_xor(integers_high(a[i]), c3[i], integers_set(k1));
			c1[i] = b[i];
			c3[i] = a[i];
		}
	}
	k0 += w0;
	k1 += w1;
#pragma GCC unroll 2
	for (int i = 0; i < 2; i++) {
		a[i] = integers_wide(c0[i], m0);
		b[i] = integers_wide(c2[i], m1);
	}
	words[0] = integers_xor(integers_join_high(b[0], b[1]), integers_join_low(c1[0], c1[1]), integers_set(k0));
	words[1] = integers_join_low(b[0], b[1]);
	words[2] = integers_xor(integers_join_high(a[0], a[1]), integers_join_low(c3[0], c3[1]), integers_set(k1));
	words[3] = integers_join_low(a[0], a[1]);
}

/* Gives padding keys a score so low that it does not affect any sum. */
INLINE void close_rows(float *scores, int64_t keys)
{
	for (int64_t k = keys; k % GEMM_BLOCK; k++)
		for (int j = 0; j < VECTORS; j++)
			vector_store(scores + k * STRIPE + j * LANES, vector_set(-1e30f));
}

/* The position, in right blocks of bf16, of the pairs of keys 2i, 2i + 1 for queries from 16 * half on. */
INLINE uint32_t *pairs_at(void *blocks, int64_t key, int half)
{
	int64_t block = key / STRIPE * 2 + half;
	return (uint32_t *)blocks + (block * STRIPE / 2 + key % STRIPE / 2) * 16;
}

#ifdef __AVX512BF16__
/* Combines two keys' numbers for 16 queries into pairs. */
INLINE __m512i pair_up(vector even, vector odd)
{
	const __m512i interleave = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6,
						    21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
	return _mm512_permutexvar_epi16(interleave, (__m512i)_mm512_cvtne2ps_pbh(odd, even));
}
#endif

#ifdef ISA_neon_mmla
/* Stores the numbers of keys `key` and `key` + 1 for the queries of vector j in right blocks of units (gemm.h). */
INLINE void store_in_units(void *blocks, int64_t key, int j, vector even, vector odd)
{
	uint32_t *out = (uint32_t *)blocks + key / STRIPE * STRIPE * STRIPE / 2;
	uint16x4_t e = to_bf16(even), o = to_bf16(odd);
	uint32x2_t low = vreinterpret_u32_u16(vzip1_u16(e, o)), high = vreinterpret_u32_u16(vzip2_u16(e, o));
	out += (key % STRIPE / 4 * STRIPE + j * LANES) * 2 + key % 4 / 2;
	vst1_lane_u32(out, low, 0);
	vst1_lane_u32(out + 2, low, 1);
	vst1_lane_u32(out + 4, high, 0);
	vst1_lane_u32(out + 6, high, 1);
}
#endif

/* Stores the probabilities of keys `key` and `key` + 1 for the queries of vector j, where dropout keeps them, in right blocks. */
INLINE void store_probabilities(const struct attention_softmax *a, int64_t key, int j, vector even, vector odd, integers word,
				enum dtype blocks, bool dropout)
{
	uint32_t threshold = a->dropout.threshold;
#ifdef __AVX512BF16__
	if (blocks == DTYPE_BF16) {
		__m512i pairs = pair_up(even, odd);
		if (dropout)
			pairs = _mm512_maskz_mov_epi16(_mm512_cmpge_epu16_mask(word, _mm512_set1_epi16((short)threshold)), pairs);
		_mm512_storeu_si512(pairs_at(a->probabilities, key, j), pairs);
		return;
	}
#endif
	(void)blocks;
	if (dropout) {
		even = keep_lanes(low_reaches(word, threshold), even);
		odd = keep_lanes(high_reaches(word, threshold), odd);
	}
#ifdef ISA_neon_mmla
	if (blocks == DTYPE_BF16) {
		store_in_units(a->probabilities, key, j, even, odd);
		return;
	}
#endif
	float *p = (float *)a->probabilities + key * STRIPE + j * LANES;
	vector_store(p, even);
	vector_store(p + STRIPE, odd);
}

INLINE void softmax(const struct attention_softmax *a, enum dtype blocks, bool dropout)
{
	/* Multiples of 8, for dropout; the products take whole blocks. */
	int64_t rows = (a->keys + 7) / 8 * 8, all = (a->keys + STRIPE - 1) / STRIPE * STRIPE;
	struct walk walk[3];
	for (int i = 0; i < 3; i++)
		walk[i] = walk_start(&a->fetch[i], rows / 8 * VECTORS);
	close_rows(a->scores, a->keys);
	for (int j = 0; j < VECTORS; j++) {
		const float *scores = a->scores + j * LANES;
		vector largest[4];
		for (int i = 0; i < 4; i++)
			largest[i] = a->first ? vector_set(-1e30f) : vector_load(a->largest + j * LANES);
		for (int64_t k = 0; k < rows; k += 4)
#pragma GCC unroll 4
			for (int i = 0; i < 4; i++)
				largest[i] = vector_max(largest[i], vector_load(scores + (k + i) * STRIPE));
		vector max = vector_max(vector_max(largest[0], largest[1]), vector_max(largest[2], largest[3]));
		vector scale = vector_set(a->scale), shift = vector_set(0) - max * scale, sum = vector_set(0);
		if (!a->first) {
			vector correction = exp2_vector(vector_fma(vector_load(a->largest + j * LANES), scale, shift));
			sum = vector_load(a->sum + j * LANES) * correction;
			vector_store(a->correction + j * LANES, correction);
		}
		vector_store(a->largest + j * LANES, max);

		for (int64_t k = 0; k < rows; k += 8) {
			integers words[4] = {integers_set(0), integers_set(0), integers_set(0), integers_set(0)};
			for (int i = 0; i < 3; i++)
				walk_on(&walk[i]);
			if (dropout)
				random_words(&a->dropout, (a->first_key + (uint32_t)k) / 8, a->first_query + (uint32_t)j * LANES,
					     words);
#pragma GCC unroll 4
			for (int w = 0; w < 4; w++) {
				const float *pair = scores + (k + 2 * w) * STRIPE;
				vector even = exp2_vector(vector_fma(vector_load(pair), scale, shift));
				vector odd = exp2_vector(vector_fma(vector_load(pair + STRIPE), scale, shift));
				sum += even + odd;
				store_probabilities(a, k + 2 * w, j, even, odd, words[w], blocks, dropout);
			}
		}
		vector_store(a->sum + j * LANES, sum);
	}
	for (int64_t key = rows; key < all; key += 2)
		for (int j = 0; j < VECTORS; j++)
			store_probabilities(a, key, j, vector_set(0), vector_set(0), integers_set(0), blocks, false);
}

/* ds = p (dp after dropout - delta), with p = exp2(scale score - lse) before dropout; p is then returned after dropout. */
INLINE void gradient_vectors(const struct attention_gradient *a, int64_t key, int j, lanes kept, bool dropout, vector *p,
			     vector *ds)
{
	int64_t i = key * STRIPE + j * LANES;
	vector lse = vector_load(a->lse + j * LANES), dp = vector_load(a->dprobabilities + i);
	*p = exp2_vector(vector_fma(vector_load(a->scores + i), vector_set(a->scale), vector_set(0) - lse));
	*ds = *p;
	if (dropout) {
		*p = keep_lanes(kept, *p);
		dp = keep_lanes(kept, dp * vector_set(a->dropout_scale));
	}
	*ds *= dp - vector_load(a->delta + j * LANES);
}

/* Stores rows `key` and `key` + 1 of both results. */
INLINE void store_gradients(const struct attention_gradient *a, int64_t key, vector p[2][VECTORS], vector ds[2][VECTORS],
			    enum dtype blocks)
{
	char *left = (char *)a->probabilities + key / STRIPE * a->left_m;
	char *dleft = (char *)a->dscores + key / STRIPE * a->left_m;
	int64_t row = key % STRIPE;
#ifdef __AVX512BF16__
	if (blocks == DTYPE_BF16) {
		for (int i = 0; i < 2; i++) {
			_mm512_storeu_si512(left + (row + i) * STRIPE * 2, (__m512i)_mm512_cvtne2ps_pbh(p[i][1], p[i][0]));
			_mm512_storeu_si512(dleft + (row + i) * STRIPE * 2, (__m512i)_mm512_cvtne2ps_pbh(ds[i][1], ds[i][0]));
			_mm512_storeu_si512(pairs_at(a->dscores_right, key, i), pair_up(ds[0][i], ds[1][i]));
		}
		return;
	}
#endif
	(void)blocks;
#ifdef ISA_neon_mmla
	if (blocks == DTYPE_BF16) {
		for (int j = 0; j < VECTORS; j++) {
			int64_t at = (j * STRIPE + row) * LANES; /* four queries of two keys: a unit of a left block */
			vst1q_u16((uint16_t *)left + at, vcombine_u16(to_bf16(p[0][j]), to_bf16(p[1][j])));
			vst1q_u16((uint16_t *)dleft + at, vcombine_u16(to_bf16(ds[0][j]), to_bf16(ds[1][j])));
			store_in_units(a->dscores_right, key, j, ds[0][j], ds[1][j]);
		}
		return;
	}
#endif
	float *right = (float *)a->dscores_right + key * STRIPE;
	for (int i = 0; i < 2; i++)
		for (int j = 0; j < VECTORS; j++) {
			vector_store((float *)left + (row + i) * STRIPE + j * LANES, p[i][j]);
			vector_store((float *)dleft + (row + i) * STRIPE + j * LANES, ds[i][j]);
			vector_store(right + i * STRIPE + j * LANES, ds[i][j]);
		}
}

INLINE void gradient(const struct attention_gradient *a, enum dtype blocks, bool dropout)
{
	uint32_t threshold = a->dropout.threshold;
	int64_t all = (a->keys + STRIPE - 1) / STRIPE * STRIPE;
	struct walk walk[3];
	for (int i = 0; i < 3; i++)
		walk[i] = walk_start(&a->fetch[i], all / 8);
	close_rows(a->scores, a->keys);
	for (int64_t k = 0; k < all; k += 8) {
		integers words[VECTORS][4];
		for (int i = 0; i < 3; i++)
			walk_on(&walk[i]);
		for (int j = 0; j < VECTORS; j++) {
			for (int w = 0; w < 4; w++)
				words[j][w] = integers_set(0);
			if (dropout)
				random_words(&a->dropout, (a->first_key + (uint32_t)k) / 8, a->first_query + (uint32_t)j * LANES,
					     words[j]);
		}
#pragma GCC unroll 4
		for (int w = 0; w < 4; w++) {
			vector p[2][VECTORS], ds[2][VECTORS];
#pragma GCC unroll 4
			for (int j = 0; j < VECTORS; j++) {
				gradient_vectors(a, k + 2 * w, j, low_reaches(words[j][w], threshold), dropout, &p[0][j],
						 &ds[0][j]);
				gradient_vectors(a, k + 2 * w + 1, j, high_reaches(words[j][w], threshold), dropout, &p[1][j],
						 &ds[1][j]);
			}
			store_gradients(a, k + 2 * w, p, ds, blocks);
		}
	}
}

static void scale_stripe(float *x, int64_t count, const float *factors)
{
	for (int64_t i = 0; i < count; i++)
		for (int j = 0; j < STRIPE; j += LANES)
			vector_store(x + i * STRIPE + j, vector_load(x + i * STRIPE + j) * vector_load(factors + j));
}

/* Adds to the sums of columns c ... c + LANES - 1. */
INLINE void add_sums(const struct attention_rows *a, int64_t c, vector sum)
{
	int64_t left = a->columns - c;
	if (a->column_sums)
		store_floats(a->column_sums, c, left, load_floats(a->column_sums, c, left) + sum);
}

/* Stores columns c ... c + 2 LANES - 1 of a row, or as many of them as exist. */
INLINE void store_row(const struct attention_rows *a, int64_t row, int64_t c, vector low, vector high, enum dtype dtype)
{
	void *to = out_row(a->to, row, a->to_row, dtype);
	int64_t left = a->columns - c;
	if (left >= 2 * LANES) {
		store_two(to, c, low, high, dtype, a->past);
		return;
	}
	store(to, c, left, low, dtype);
	if (left > LANES)
		store(to, c + LANES, left - LANES, high, dtype);
}

INLINE void store_rows(const struct attention_rows *a, enum dtype dtype)
{
	const vector factor = vector_set(a->factor);
	for (int64_t c = 0; c < a->columns; c += 2 * LANES) {
		bool two = a->columns - c > LANES;
		vector low_sum = vector_set(0), high_sum = vector_set(0);
		for (int64_t r = 0; r < a->rows; r++) {
			const float *from = a->from + r * a->from_row + c;
			vector low = vector_load(from) * factor, high = vector_set(0);
			if (two)
				high = vector_load(from + LANES) * factor;
			low_sum += low;
			high_sum += high;
			store_row(a, r, c, low, high, dtype);
		}
		add_sums(a, c, low_sum);
		if (two)
			add_sums(a, c + LANES, high_sum);
	}
	store_past_end();
}

/* LANES rows of LANES columns. */
INLINE void transposed(const struct attention_rows *a, int64_t r, int64_t c, vector x[LANES])
{
	const vector factors = vector_load(a->factors + r);
#pragma GCC unroll 16
	for (int i = 0; i < LANES; i++)
		x[i] = vector_load(a->from + (c + i) * STRIPE + r) * factors;
	transpose(x);
}

INLINE void store_transposed(const struct attention_rows *a, enum dtype dtype)
{
	for (int64_t r = 0; r < a->rows; r += LANES) {
		for (int64_t c = 0; c < a->columns; c += 2 * LANES) {
			vector low[LANES], high[LANES], low_sum = vector_set(0), high_sum = vector_set(0);
			transposed(a, r, c, low);
			transposed(a, r, c + LANES, high); /* stripes always have all 32 columns */
			for (int64_t i = 0; i < LANES && r + i < a->rows; i++) {
				low_sum += low[i];
				high_sum += high[i];
				store_row(a, r + i, c, low[i], high[i], dtype);
			}
			add_sums(a, c, low_sum);
			if (a->columns - c > LANES)
				add_sums(a, c + LANES, high_sum);
		}
	}
	store_past_end();
}

INLINE void row_products(const void *dy, const void *y, int64_t row, int64_t rows, int64_t columns, float *delta,
			 enum dtype dtype)
{
	for (int64_t r = 0; r < rows; r++) {
		vector sum = vector_set(0);
		for (int64_t c = 0; c < columns; c += LANES)
			sum = vector_fma(load(dy, r * row + c, columns - c, dtype), load(y, r * row + c, columns - c, dtype),
					 sum);
		delta[r] = vector_sum(sum);
	}
}

/* The functions for each activation type. */
#if defined(__AVX512BF16__) || defined(ISA_neon_mmla)
#define BF16_BLOCKS DTYPE_BF16
#else
#define BF16_BLOCKS DTYPE_F32
#endif

static void softmax_f32(const struct attention_softmax *a)
{
	if (a->dropout.threshold)
		softmax(a, DTYPE_F32, true);
	else
		softmax(a, DTYPE_F32, false);
}

static void softmax_bf16(const struct attention_softmax *a)
{
	if (a->dropout.threshold)
		softmax(a, BF16_BLOCKS, true);
	else
		softmax(a, BF16_BLOCKS, false);
}

static void gradient_f32(const struct attention_gradient *a)
{
	if (a->dropout.threshold)
		gradient(a, DTYPE_F32, true);
	else
		gradient(a, DTYPE_F32, false);
}

static void gradient_bf16(const struct attention_gradient *a)
{
	if (a->dropout.threshold)
		gradient(a, BF16_BLOCKS, true);
	else
		gradient(a, BF16_BLOCKS, false);
}

static void store_f32(const struct attention_rows *a)
{
	store_rows(a, DTYPE_F32);
}

static void store_bf16_rows(const struct attention_rows *a)
{
	store_rows(a, DTYPE_BF16);
}

static void store_transposed_f32(const struct attention_rows *a)
{
	store_transposed(a, DTYPE_F32);
}

static void store_transposed_bf16(const struct attention_rows *a)
{
	store_transposed(a, DTYPE_BF16);
}

static void delta_f32(const void *dy, const void *y, int64_t row, int64_t rows, int64_t columns, float *delta)
{
	row_products(dy, y, row, rows, columns, delta, DTYPE_F32);
}

static void delta_bf16(const void *dy, const void *y, int64_t row, int64_t rows, int64_t columns, float *delta)
{
	row_products(dy, y, row, rows, columns, delta, DTYPE_BF16);
}

const struct attention_kernels KERNEL(attention_kernels_f32) = {
	.softmax = softmax_f32,
	.gradient = gradient_f32,
	.scale = scale_stripe,
	.store = store_f32,
	.store_transposed = store_transposed_f32,
	.delta = delta_f32,
};

const struct attention_kernels KERNEL(attention_kernels_bf16) = {
	.softmax = softmax_bf16,
	.gradient = gradient_bf16,
	.scale = scale_stripe,
	.store = store_bf16_rows,
	.store_transposed = store_transposed_bf16,
	.delta = delta_bf16,
};
