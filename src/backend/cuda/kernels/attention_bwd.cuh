/* Shared by the backward attention kernels.
 *
 * Keys stay in place and everything is transposed (s' = k q'), so that the accumulators of the probabilities and their
 * gradients are already the fragments that dv and dk need:
 *
 *   s' = k q'   p' = exp(s' - lse)   dp' = v dy'   ds' = p' (dp' - delta)     delta = row sums of dy y
 *   dv += p' dy     dk += ds' q      dq += ds k                             (FlashAttention-2: Dao 2023)
 */
#ifndef BACKEND_CUDA_KERNELS_ATTENTION_BWD_CUH
#define BACKEND_CUDA_KERNELS_ATTENTION_BWD_CUH

#include "backend/cuda/kernels/attention.cuh"

namespace
{
enum { QUERIES = 64 }; /* queries per tile */

/* The layout of a block's shared memory, in bytes. */
template <int D, int WARPS, bool DQ> struct backward_layout {
	static constexpr int keys = 16 * WARPS, query_bytes = QUERIES * tile_row<D>::bytes, key_bytes = keys * tile_row<D>::bytes;
	static constexpr int k = 0, v = k + key_bytes, q = v + key_bytes, dy = q + 2 * query_bytes, ds = dy + 2 * query_bytes;
	static constexpr int kept_bytes = WARPS * QUERIES * 2; /* per tile of queries: words of 16 keys (WARPS, QUERIES) */
	static constexpr int kept = ds + (DQ ? keys * tile_row<64>::bytes : 0);
	static DEVICE const uint16_t *kept_of(const char *shared, int warp, int buffer)
	{
		return reinterpret_cast<const uint16_t *>(shared + kept + buffer * kept_bytes) + warp * QUERIES;
	}
	static constexpr int sums = kept + 2 * kept_bytes;                     /* float (WARPS, 3, D) */
	static constexpr int statistics = sums + (DQ ? WARPS * 3 * D * 4 : 0); /* float2 (queries), then dq */
};

/* Loads lse, in powers of 2, and computes delta, a pair for each query of a head; padding queries get probability 0. */
template <typename E, int D, int THREADS>
DEVICE void load_statistics(const struct kernel_attention &a, const attention_head &h, float2 *statistics, int first, int count)
{
	constexpr int lanes = D / 8 /* per row */, STEP = THREADS / lanes, ROWS = 4 /* loaded at once */;
	int own = (int)(threadIdx.x) / lanes, part = (int)(threadIdx.x) % lanes;
	int64_t column = h.head * D + part * 8;
	for (int row = own; row < count; row += ROWS * STEP) {
		raw_block<E> dy[ROWS], y[ROWS];
		float power[ROWS];
#pragma unroll
		for (int i = 0; i < ROWS; i++) {
			int query = min(first + row + i * STEP, h.length - 1);
			int64_t at = (h.start + query) * (int64_t)a.hidden + column;
			dy[i] = load_raw<true>(static_cast<const E *>(a.dy) + at, 0, BLOCK);
			y[i] = load_raw<true>(static_cast<const E *>(a.y) + at, 0, BLOCK);
			power[i] = a.lse[h.head * a.tokens + h.start + query];
		}
#pragma unroll
		for (int i = 0; i < ROWS; i++) {
			bool there = first + row + i * STEP < h.length;
			float product = 0, left[BLOCK], right[BLOCK];
			unpack_block(dy[i], left);
			unpack_block(y[i], right);
#pragma unroll
			for (int j = 0; j < BLOCK; j++)
				product = fmaf(left[j], right[j], product);
#pragma unroll
			for (int step = lanes / 2; step > 0; step /= 2)
				product += __shfl_xor_sync(ALL_LANES, product, step);
			if (part == 0 && row + i * STEP < count)
				statistics[row + i * STEP] = {there ? power[i] * 1.44269504f : 1e30f, there ? product : 0};
		}
	}
}

/* One thread's part of copying forward's dropout bits for 64 queries and the keys of WARPS warps, asynchronously like
 * tile_source; without dropout there are zeros. */
template <int WARPS> struct kept_source {
	const uint16_t *from;
	int stride, row, chunk, own; /* of 16 keys; of 8 queries, 16 bytes */
	bool any;

	DEVICE kept_source(const struct kernel_attention &a, const attention_head &h)
	    : stride(kept_stride(a)), row((int)threadIdx.x / (QUERIES / 8)), chunk((int)threadIdx.x % (QUERIES / 8)),
	      any(a.threshold > 0)
	{
		from = kept_words(a, h, 0);
		own = settled(row * stride + 8 * chunk);
	}
	DEVICE void load(char *tile, int query, int key, int length) const
	{
		bool there = any && key + KEPT_KEYS * row < length && query + 8 * chunk < length;
		if (row < WARPS)
			copy_async16(tile + (row * QUERIES + 8 * chunk) * 2,
				     from + key / KEPT_KEYS * (int64_t)stride + (query + own), there ? 16 : 0);
	}
};

/* A warp's 16 keys, and the gradients that queries add to. PART queries are processed at a time, and share what a warp loads
 * of k and v. */
template <typename E, int D, int PART, bool WINDOW = false> struct warp_keys {
	static constexpr int TILES = D / 8, STEPS = D / 16, PARTS = PART / 8;
	float dk[TILES][4] = {}, dv[TILES][4] = {};
	lane_places<D> rows = row_places<D>(0, 0), columns = column_places<D>(0, 0);
	int ds_place = settled(tile_chunk<64>((int)threadIdx.x / WARP * 16 + lane_index() / 4, 0) * 16 + lane_index() % 4 * 4);

	/* Shared memory: tiles k, v of the warp's keys; q, dy of its 64 queries; ds (keys, queries), or NULL if dq is
	 * computed elsewhere; the warp's dropout bits; lse and delta of the 64 queries. `query` is the first of these queries,
	 * `key` the warp's first key. */
	struct tiles {
		const char *k, *v, *q, *dy;
		char *ds;
		const uint16_t *kept;
		const float2 *statistics;
		int query, key, length;
	};

	/* Scores of the warp's keys and PART queries, starting at row `row` of the tile, and the gradients of their
	 * probabilities after dropout. */
	DEVICE void products(float (&s)[PARTS][4], float (&dp)[PARTS][4], const tiles &at, int row)
	{
		row *= tile_row<D>::bytes;
#pragma unroll
		for (int i = 0; i < STEPS; i++) {
			uint32_t left[4], right[4];
			load_matrices4(left, at.k + rows.at(0, 2 * i));
#pragma unroll
			for (int n = 0; n < PARTS; n += 2) {
				load_matrices4(right, at.q + row + columns.at(8 * n, 2 * i));
				multiply<E>(s[n], s[n + 1], left, right);
			}
			load_matrices4(left, at.v + rows.at(0, 2 * i));
#pragma unroll
			for (int n = 0; n < PARTS; n += 2) {
				load_matrices4(right, at.dy + row + columns.at(8 * n, 2 * i));
				multiply<E>(dp[n], dp[n + 1], left, right);
			}
		}
	}

	/* In place: s becomes the probabilities after dropout, not scaled; dp becomes the gradient of the scores. */
	DEVICE void gradients(float (&s)[PARTS][4], float (&dp)[PARTS][4], const struct kernel_attention &a, const tiles &at,
			      int row)
	{
		int g = lane_index() >> 2, t = lane_index() & 3;
		float scale = a.scale * 1.44269504f;
		row += 2 * t;
		if (at.key + 16 > at.length) { /* mask padding keys */
#pragma unroll
			for (int n = 0; n < PARTS; n++)
#pragma unroll
				for (int e = 0; e < 4; e++)
					s[n][e] = at.key + g + e / 2 * 8 < at.length ? s[n][e] : -INFINITY;
		}
		if (WINDOW) {
			int ahead = at.key + g - at.query - row;
#pragma unroll
			for (int n = 0; n < PARTS; n++)
#pragma unroll
				for (int e = 0; e < 4; e++)
					s[n][e] = abs(ahead + e / 2 * 8 - 8 * n - e % 2) <= a.window ? s[n][e] : -INFINITY;
		}
#pragma unroll
		for (int n = 0; n < PARTS; n++) {
			/* lse and delta of two queries */
			float4 pair = *reinterpret_cast<const float4 *>(at.statistics + row + 8 * n);
			/* the words of two queries; the lane's keys are in the highest bits of the bytes */
			uint32_t drops = *reinterpret_cast<const uint32_t *>(at.kept + row + 8 * n) << g;
#pragma unroll
			for (int e = 0; e < 2; e++) {
#pragma unroll
				for (int half = 0; half < 2; half++) {
					bool stays = !(drops & 128u << (16 * e + 8 * half));
					float &score = s[n][2 * half + e], &gradient = dp[n][2 * half + e];
					float p = exp2_approximate(fmaf(score, scale, -(e ? pair.z : pair.x)));
					score = stays ? p : 0.f;
					gradient = p * ((stays ? gradient * a.dropout_scale : 0.f) - (e ? pair.w : pair.y));
				}
			}
		}
	}

	/* The fragments of p' and ds' that 16 queries need; ds' is also stored in shared memory. */
	DEVICE void pack(uint32_t (&left)[4], uint32_t (&gradient)[4], const float (&p)[PARTS][4], const float (&ds)[PARTS][4],
			 const tiles &at, int row, int i)
	{
#pragma unroll
		for (int part = 0; part < 4; part++) {
			int n = 2 * i + part / 2, e = part % 2 * 2;
			left[part] = pack2<E>(p[n][e], p[n][e + 1]);
			gradient[part] = pack2<E>(ds[n][e], ds[n][e + 1]);
			if (at.ds)
				*reinterpret_cast<uint32_t *>(at.ds + (ds_place ^ (row * 2 + n * 16)) +
							      part % 2 * 8 * tile_row<64>::bytes) = gradient[part];
		}
	}

	/* dv += p' dy, dk += ds' q */
	DEVICE void add(const float (&p)[PARTS][4], const float (&ds)[PARTS][4], const tiles &at, int row)
	{
		int first = row * tile_row<D>::bytes;
#pragma unroll
		for (int i = 0; i < PART / 16; i++) {
			uint32_t left[4], gradient[4], right[4];
			pack(left, gradient, p, ds, at, row, i);
#pragma unroll
			for (int n = 0; n < TILES; n += 2) {
				load_matrices4_transposed(right, at.dy + first + rows.at(16 * i, n));
				multiply<E>(dv[n], dv[n + 1], left, right);
				load_matrices4_transposed(right, at.q + first + rows.at(16 * i, n));
				multiply<E>(dk[n], dk[n + 1], gradient, right);
			}
		}
	}

	/* Processes a tile of queries, up to the end of the sequence. */
	DEVICE void meet(const struct kernel_attention &a, const tiles &at)
	{
#pragma unroll 1
		for (int row = 0; row < QUERIES && at.query + row < at.length; row += PART) {
			float s[PARTS][4] = {}, dp[PARTS][4] = {};
			products(s, dp, at, row);
			gradients(s, dp, a, at, row);
			add(s, dp, at, row);
		}
	}
};
} // namespace

#endif
