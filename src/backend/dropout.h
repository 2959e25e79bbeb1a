/* Dropout arithmetic, shared bit for bit by ref, cpu and the cuda kernels. */
#ifndef BACKEND_DROPOUT_H
#define BACKEND_DROPOUT_H

#include <stdint.h>
#include "base/philox.h"

/* Elements with u < threshold are dropped. */
static inline HOST_DEVICE uint32_t dropout_threshold(double p)
{
	return (uint32_t)(65536.0 * p + 0.5);
}

static inline HOST_DEVICE double dropout_scale(double p)
{
	return 65536.0 / (65536.0 - (double)dropout_threshold(p));
}

/* The eight 16-bit numbers of one block; element i of the block is u[i]. */
static inline HOST_DEVICE void dropout_block(uint64_t seed, uint32_t c0, uint32_t c1, uint32_t site, uint32_t sample,
					     uint16_t u[8])
{
	struct philox block = philox4x32(seed, c0, c1, site, sample, 7);
	for (int i = 0; i < 4; i++) {
		u[2 * i] = (uint16_t)block.word[i];
		u[2 * i + 1] = (uint16_t)(block.word[i] >> 16);
	}
}

static inline HOST_DEVICE uint32_t dropout_attention_counter(uint32_t head, uint32_t key)
{
	return head << 16 | key / 8;
}

/* Attention's dropout mask as forward saves it for backward: one bit per key of each query, set if the key is dropped, in 16-bit
 * words of adjacent keys, whose bits descend in each byte; (heads, words of the longest sequence, query slots). Each sequence's
 * slots start at a multiple of 16, and their number is rounded up to a multiple of 16. */
#define KEPT_KEYS 16
static inline HOST_DEVICE int attention_kept_bit(int64_t key)
{
	return (int)(key % KEPT_KEYS ^ 7);
}
static inline HOST_DEVICE int64_t attention_kept_place(int64_t start, int64_t sequence)
{
	return (start + 15 * sequence) / 16 * 16;
}
static inline HOST_DEVICE int64_t attention_kept_words(int64_t longest)
{
	return (longest + KEPT_KEYS - 1) / KEPT_KEYS;
}
static inline HOST_DEVICE int64_t attention_kept_count(int64_t heads, int64_t longest, int64_t tokens, int64_t sequences)
{
	return heads * attention_kept_words(longest) * attention_kept_place(tokens, sequences);
}

#endif
