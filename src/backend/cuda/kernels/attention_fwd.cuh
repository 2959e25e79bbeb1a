/* Shared by the forward attention kernels with matrix instructions: online softmax and dropout of a warp's scores of 16 queries
 * against 64 keys, distributed like accumulators of mma16. */
#ifndef BACKEND_CUDA_KERNELS_ATTENTION_FWD_CUH
#define BACKEND_CUDA_KERNELS_ATTENTION_FWD_CUH

#include "backend/cuda/kernels/attention.cuh"

namespace
{
enum { KEYS = 64, KEY_TILES = KEYS / 8 };

/* Scores of keys that do not exist: all but the first `count` of the tile. */
DEVICE void hide_keys(float (&s)[KEY_TILES][4], int count)
{
#pragma unroll
	for (int n = 0; n < KEY_TILES; n++)
#pragma unroll
		for (int e = 0; e < 4; e++)
			if (8 * n + 2 * (lane_index() & 3) + e % 2 >= count)
				s[n][e] = -INFINITY;
}

/* Scores of keys outside of the queries' windows, for 16 queries from `query` on and 64 keys from `key` on. */
DEVICE void hide_unseen(float (&s)[KEY_TILES][4], int window, int query, int key)
{
	if (query + 15 - window <= key && key + KEYS - 1 - window <= query)
		return;
	int ahead = key - query + 2 * (lane_index() & 3) - (lane_index() >> 2);
#pragma unroll
	for (int n = 0; n < KEY_TILES; n++)
#pragma unroll
		for (int e = 0; e < 4; e++)
			if (abs(ahead + 8 * n + e % 2 - e / 2 * 8) > window)
				s[n][e] = -INFINITY;
}

/* Online softmax for rows g and g + 8 of a warp's scores against one tile of keys: rescales the sum of exp2 and the output so
 * far to the new maximum; scores become probabilities, not yet divided by their sum. */
template <int TILES>
DEVICE void softmax(float (&s)[KEY_TILES][4], float (&o)[TILES][4], float (&largest)[2], float (&sum)[2], float scale)
{
#pragma unroll
	for (int half = 0; half < 2; half++) {
		float most = largest[half];
#pragma unroll
		for (int n = 0; n < KEY_TILES; n++)
			most = fmaxf(most, fmaxf(s[n][2 * half], s[n][2 * half + 1]));
		most = fmaxf(most, __shfl_xor_sync(ALL_LANES, most, 1));
		most = fmaxf(most, __shfl_xor_sync(ALL_LANES, most, 2));
		float correction = exp2_approximate((largest[half] - most) * scale), offset = most * scale;
		largest[half] = most;
		sum[half] *= correction;
#pragma unroll
		for (int n = 0; n < TILES; n++) {
			o[n][2 * half] *= correction;
			o[n][2 * half + 1] *= correction;
		}
#pragma unroll
		for (int n = 0; n < KEY_TILES; n++) {
			s[n][2 * half] = exp2_approximate(fmaf(s[n][2 * half], scale, -offset));
			s[n][2 * half + 1] = exp2_approximate(fmaf(s[n][2 * half + 1], scale, -offset));
			sum[half] += s[n][2 * half] + s[n][2 * half + 1];
		}
	}
}

/* The accumulator of q k' as the fragments that p v needs. */
template <typename E> DEVICE void pack_scores(uint32_t (&p)[KEYS / 16][4], const float (&s)[KEY_TILES][4])
{
#pragma unroll
	for (int n = 0; n < KEY_TILES; n++)
#pragma unroll
		for (int half = 0; half < 2; half++)
			p[n / 2][n % 2 * 2 + half] = pack2<E>(s[n][2 * half], s[n][2 * half + 1]);
}

/* The first warp finds the part of dropout that depends on keys alone, for the 256 keys from `key` on: four tiles. */
constexpr int KEY_PARTS = 4 * KEYS / BLOCK;
DEVICE void find_keys(uint4 *parts, const attention_dropout &d, int key, int length)
{
	if (d.threshold && threadIdx.x < KEY_PARTS && key < length) {
		dropout_keys k = find_dropout_keys(d, key + (int)threadIdx.x * BLOCK);
		parts[threadIdx.x] = {k.second, k.third, k.word, k.low};
	}
}

/* Applies dropout to the packed probabilities of 16 queries from `query` on and 64 keys from `key` on, and saves its bits. */
DEVICE void drop_pairs(uint32_t (&p)[KEYS / 16][4], const struct kernel_attention &a, const attention_head &h, uint32_t drops,
		       int query, int key)
{
	if (a.kept)
		store_drops(a, h, drops, query, key);
	const drop_fragments d(drops);
#pragma unroll
	for (int half = 0; half < 2; half++)
#pragma unroll
		for (int n = 0; n < KEY_TILES; n++)
			p[n / 2][n % 2 * 2 + half] &= ~d.mask(n, half);
}

/* Writes a warp's results for 16 queries from `query` on: the output divided by the sum, and the log-sum-exp. */
template <typename E, int TILES>
DEVICE void write_rows(const struct kernel_attention &a, const attention_head &h, int query, const float (&o)[TILES][4],
		       const float (&largest)[2], float (&sum)[2])
{
#pragma unroll
	for (int half = 0; half < 2; half++) {
		sum[half] += __shfl_xor_sync(ALL_LANES, sum[half], 1);
		sum[half] += __shfl_xor_sync(ALL_LANES, sum[half], 2);
		int row = query + (lane_index() >> 2) + 8 * half;
		if (a.lse && (lane_index() & 3) == 0 && row < h.length)
			a.lse[h.head * a.tokens + h.start + row] = largest[half] * a.scale + logf(sum[half]);
	}
	E *y = static_cast<E *>(a.y) + (h.start + query) * (int64_t)(a.hidden) + h.head * 8 * TILES;
	uint32_t most = store_tile(y, a.hidden, h.length - query, o, a.dropout_scale / sum[0], a.dropout_scale / sum[1]);
	if (has_largest<E> && a.largest != nullptr)
		note_pairs(a.largest, blockIdx.x * (blockDim.x / WARP) + threadIdx.x / WARP, most);
}

} // namespace

#endif
