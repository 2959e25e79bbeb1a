/* What the backward attention kernels share.
 *
 * Keys stand still, everything is transposed (s' = k q'), so that probabilities and their gradients leave the
 * accumulators as the fragments that dv and dk need:
 *
 *   s' = k q'   p' = exp(s' - lse)   dp' = v dy'   ds' = p' (dp' - delta)     delta = row sums of dy y
 *   dv += p' dy     dk += ds' q      dq += ds k                                  (FlashAttention-2: Dao 2023)
 */
#ifndef BACKEND_CUDA_KERNELS_ATTENTION_BWD_CUH
#define BACKEND_CUDA_KERNELS_ATTENTION_BWD_CUH

#include "backend/cuda/kernels/attention.cuh"

namespace
{
enum { QUERIES = 64, CHUNK = 32, CHUNK_TILES = CHUNK / 8 };

/* Where things lie in a block's shared memory, in bytes. */
template <int D, int WARPS, bool DQ> struct backward_layout {
	static constexpr int keys = 16 * WARPS, query_bytes = QUERIES * tile_row<D>::bytes, key_bytes = keys * tile_row<D>::bytes;
	static constexpr int k = 0, v = k + key_bytes, q = v + key_bytes, dy = q + 2 * query_bytes, ds = dy + 2 * query_bytes;
	static constexpr int sums = ds + (DQ ? keys * tile_row<64>::bytes : 0); /* float (WARPS, 3, D) */
	static constexpr int lse = sums + (DQ ? WARPS * 3 * D * 4 : 0);   /* float (queries), then delta, then dq */
};

/* lse in powers of 2 and delta of all queries of a head; those that do not exist get a probability of 0. */
template <typename E, int D, int THREADS>
DEVICE void load_statistics(const struct kernel_attention &a, const attention_head &h, float *lse,
						float *delta, int first, int count)
{
	constexpr int lanes = D / 8; /* of a row */
	int row = (int)(threadIdx.x) / lanes, part = (int)(threadIdx.x) % lanes;
	for (; row < count; row += THREADS / lanes) {
		int query = first + row;
		float product = 0, power = 1e30f;
		if (query < h.length) {
			int64_t at = (h.start + query) * (int64_t)(a.hidden) + h.head * D + part * 8;
			float dy[BLOCK], y[BLOCK];
			load_vector(static_cast<const E *>(a.dy) + at, dy);
			load_vector(static_cast<const E *>(a.y) + at, y);
#pragma unroll
			for (int i = 0; i < BLOCK; i++)
				product = fmaf(dy[i], y[i], product);
			power = a.lse[h.head * a.tokens + h.start + query] * 1.44269504f;
		}
#pragma unroll
		for (int step = lanes / 2; step > 0; step /= 2)
			product += __shfl_xor_sync(ALL_LANES, product, step);
		if (part == 0) {
			lse[row] = power;
			delta[row] = product;
		}
	}
}

/* A warp's part of a tile of queries: 32 queries meet its 16 keys. */
template <typename E, int D> struct warp_keys {
	static constexpr int TILES = D / 8, STEPS = D / 16;
	float dk[TILES][4], dv[TILES][4];

	/* `ds` is NULL where dq is someone else's. */
	DEVICE void chunk(const struct kernel_attention &a, const attention_dropout &d, const char *k,
					      const char *v, const char *q, const char *dy, char *ds, const float *lse,
					      const float *delta, int query, int row, int key, int length)
	{
		int lane = lane_index(), g = lane >> 2, t = lane & 3, warp_row = (int)(threadIdx.x) / 32 * 16;
		float s[CHUNK_TILES][4] = {}, dp[CHUNK_TILES][4] = {};
#pragma unroll
		for (int i = 0; i < STEPS; i++) {
			uint32_t left[4], right[4];
			load_rows<D, false>(left, k, warp_row, 2 * i);
#pragma unroll
			for (int n = 0; n < CHUNK_TILES; n += 2) {
				load_columns<D, false>(right, q, row + 8 * n, 2 * i);
				multiply<E>(s[n], s[n + 1], left, right);
			}
			load_rows<D, false>(left, v, warp_row, 2 * i);
#pragma unroll
			for (int n = 0; n < CHUNK_TILES; n += 2) {
				load_columns<D, false>(right, dy, row + 8 * n, 2 * i);
				multiply<E>(dp[n], dp[n + 1], left, right);
			}
		}

		/* A lane makes the bits of one query and the warp's 16 keys. */
		uint32_t mine = 0xffff;
		if (d.threshold)
			mine = dropout_bits(d, query + lane, key) | dropout_bits(d, query + lane, key + 8) << 8;
		float scale = a.scale * 1.44269504f;
#pragma unroll
		for (int n = 0; n < CHUNK_TILES; n++) {
			int column = 8 * n + 2 * t;
			float2 power = *reinterpret_cast<const float2 *>(lse + column), mean = *reinterpret_cast<const float2 *>(delta + column);
#pragma unroll
			for (int e = 0; e < 2; e++) {
				uint32_t bits = d.threshold ? __shfl_sync(ALL_LANES, mine, column + e) >> g : ~0u;
#pragma unroll
				for (int half = 0; half < 2; half++) {
					bool stays = bits & (half ? 256u : 1u);
					float *at = &s[n][2 * half + e], *gradient = &dp[n][2 * half + e];
					float p = exp2_approximate(fmaf(*at, scale, -(e ? power.y : power.x)));
					p = key + g + 8 * half < length ? p : 0.f;
					*at = stays ? p : 0.f;
					*gradient = p * ((stays ? *gradient * a.dropout_scale : 0.f) -
							 (e ? mean.y : mean.x));
				}
			}
		}

#pragma unroll
		for (int i = 0; i < CHUNK / 16; i++) {
			uint32_t p[4], gradient[4], right[4];
#pragma unroll
			for (int part = 0; part < 4; part++) {
				const float(&from)[4] = s[2 * i + part / 2], (&dfrom)[4] = dp[2 * i + part / 2];
				p[part] = pack2<E>(from[part % 2 * 2], from[part % 2 * 2 + 1]);
				gradient[part] = pack2<E>(dfrom[part % 2 * 2], dfrom[part % 2 * 2 + 1]);
				int chunk = tile_chunk<64>(warp_row + g + part % 2 * 8, row / 8 + 2 * i + part / 2);
				if (ds)
					*reinterpret_cast<uint32_t *>(ds + chunk * 16 + 4 * t) = gradient[part];
			}
#pragma unroll
			for (int n = 0; n < TILES; n += 2) {
				load_rows<D, true>(right, dy, row + 16 * i, n);
				multiply<E>(dv[n], dv[n + 1], p, right);
				load_rows<D, true>(right, q, row + 16 * i, n);
				multiply<E>(dk[n], dk[n + 1], gradient, right);
			}
		}
	}
};

} // namespace

#endif
