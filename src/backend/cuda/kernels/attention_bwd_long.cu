/* Backward attention where a sequence is too long for one block's shared memory, in two kernels: blocks of the first own keys
 * and compute dk and dv; blocks of the second own queries, recompute the scores and compute dq. */
#include "backend/cuda/kernels/attention_bwd.cuh"

namespace
{
enum { WARPS = 4, THREADS = 32 * WARPS, ROWS = 16 * WARPS /* keys or queries per block */ };

template <typename E, int D> __global__ void __launch_bounds__(THREADS, 1) attention_keys_kernel(struct kernel_attention a)
{
	using layout = backward_layout<D, WARPS, false>;
	char *shared = reinterpret_cast<char *>(shared_start());
	int room = (a.longest + QUERIES - 1) / QUERIES * QUERIES, warp = (int)threadIdx.x / WARP;
	float *lse = reinterpret_cast<float *>(shared + layout::lse), *delta = lse + room;

	int blocks = (a.longest + ROWS - 1) / ROWS, item = (int)blockIdx.x;
	attention_head h = find_head(a, item / a.heads / blocks, item % a.heads);
	int first = item / a.heads % blocks * ROWS;
	if (first >= h.length)
		return;
	int64_t stride = 3 * (int64_t)a.hidden, y_stride = a.hidden;
	const E *q = static_cast<const E *>(a.qkv) + h.start * stride + h.head * D, *k = q + a.hidden, *v = k + a.hidden;
	const E *dy = static_cast<const E *>(a.dy) + h.start * y_stride + h.head * D;

	load_tile<D, THREADS>(shared + layout::k, ROWS, k + first * stride, stride, h.length - first);
	load_tile<D, THREADS>(shared + layout::v, ROWS, v + first * stride, stride, h.length - first);
	load_tile<D, THREADS>(shared + layout::q, QUERIES, q, stride, h.length);
	load_tile<D, THREADS>(shared + layout::dy, QUERIES, dy, y_stride, h.length);
	load_kept_tile<WARPS>(a, h, shared + layout::kept, 0, first);
	copy_commit();
	int tiles = (h.length + QUERIES - 1) / QUERIES, key = first + 16 * warp;
	load_statistics<E, D, THREADS>(a, h, lse, delta, 0, tiles * QUERIES);

	warp_keys<E, D, (D > 64 ? 16 : 32)> mine = {};
	for (int i = 0; i < tiles; i++) {
		int query = i * QUERIES, next = query + QUERIES, now = i % 2 * layout::query_bytes,
		    then = (i + 1) % 2 * layout::query_bytes;
		copy_wait<0>();
		__syncthreads();
		if (next < h.length) {
			load_tile<D, THREADS>(shared + layout::q + then, QUERIES, q + next * stride, stride, h.length - next);
			load_tile<D, THREADS>(shared + layout::dy + then, QUERIES, dy + next * y_stride, y_stride,
					      h.length - next);
			load_kept_tile<WARPS>(a, h, shared + layout::kept + (i + 1) % 2 * layout::kept_bytes, next, first);
			copy_commit();
		}
		if (key < h.length)
			mine.meet(a, {shared + layout::k, shared + layout::v, shared + layout::q + now, shared + layout::dy + now,
				      nullptr, shared + layout::kept + i % 2 * layout::kept_bytes, lse + query, delta + query,
				      query, key, h.length});
	}
	if (key < h.length) {
		E *dk = static_cast<E *>(a.dqkv) + (h.start + key) * stride + h.head * D + a.hidden;
		uint32_t most_dk = store_tile(dk, stride, h.length - key, mine.dk, a.scale, a.scale);
		uint32_t most_dv = store_tile(dk + a.hidden, stride, h.length - key, mine.dv, a.dropout_scale, a.dropout_scale);
		if (has_largest<E> && a.largest != nullptr)
			note_pairs(a.largest, blockIdx.x * WARPS + (unsigned)warp, larger_pair(most_dk, most_dv));
	}
}

/* ds = p (dp - delta) for 16 queries and 64 keys, in place of s. */
DEVICE void score_gradients(const struct kernel_attention &a, float (&s)[8][4], const float (&dp)[8][4], const float (&power)[2],
			    const float (&mean)[2], uint32_t kept, int key, int length)
{
	uint32_t bits[2][2];
	kept_fragments(bits, kept);
	float scale = a.scale * 1.44269504f;
	int t = lane_index() & 3;
#pragma unroll
	for (int n = 0; n < 8; n++) {
#pragma unroll
		for (int e = 0; e < 4; e++) {
			bool stays = bits[e / 2][n / 4] & 1u << (8 * (n % 4) + e % 2);
			float p = exp2_approximate(fmaf(s[n][e], scale, -power[e / 2]));
			p = key + 8 * n + 2 * t + e % 2 < length ? p : 0.f;
			s[n][e] = p * ((stays ? dp[n][e] * a.dropout_scale : 0.f) - mean[e / 2]);
		}
	}
}

template <typename E, int D> __global__ void __launch_bounds__(THREADS, 1) attention_queries_kernel(struct kernel_attention a)
{
	constexpr int TILES = D / 8, STEPS = D / 16, KEYS = 64, TILE_BYTES = 64 * tile_row<D>::bytes;
	char *q_tile = reinterpret_cast<char *>(shared_start()), *dy_tile = q_tile + TILE_BYTES, *k_tile = dy_tile + TILE_BYTES,
	     *v_tile = k_tile + 2 * TILE_BYTES;
	float *lse = reinterpret_cast<float *>(v_tile + 2 * TILE_BYTES), *delta = lse + ROWS;

	int blocks = (a.longest + ROWS - 1) / ROWS, item = (int)blockIdx.x, warp = (int)threadIdx.x / WARP;
	attention_head h = find_head(a, item / a.heads / blocks, item % a.heads);
	int first = item / a.heads % blocks * ROWS, query = first + 16 * warp;
	if (first >= h.length)
		return;
	int64_t stride = 3 * (int64_t)a.hidden, y_stride = a.hidden;
	const E *q = static_cast<const E *>(a.qkv) + h.start * stride + h.head * D, *k = q + a.hidden, *v = k + a.hidden;
	const E *dy = static_cast<const E *>(a.dy) + h.start * y_stride + h.head * D;

	load_tile<D, THREADS>(q_tile, ROWS, q + first * stride, stride, h.length - first);
	load_tile<D, THREADS>(dy_tile, ROWS, dy + first * y_stride, y_stride, h.length - first);
	load_tile<D, THREADS>(k_tile, KEYS, k, stride, h.length);
	load_tile<D, THREADS>(v_tile, KEYS, v, stride, h.length);
	copy_commit();
	load_statistics<E, D, THREADS>(a, h, lse, delta, first, ROWS);

	float dq[TILES][4] = {};
	for (int key = 0, now = 0; key < h.length; key += KEYS, now ^= TILE_BYTES) {
		int next = key + KEYS, then = now ^ TILE_BYTES;
		copy_wait<0>();
		__syncthreads();
		if (next < h.length) {
			load_tile<D, THREADS>(k_tile + then, KEYS, k + next * stride, stride, h.length - next);
			load_tile<D, THREADS>(v_tile + then, KEYS, v + next * stride, stride, h.length - next);
			copy_commit();
		}
		if (query >= h.length)
			continue;
		uint32_t kept = a.threshold ? load_kept(a, h, query, key) : ~0u;
		float s[8][4] = {}, dp[8][4] = {};
#pragma unroll
		for (int i = 0; i < STEPS; i++) {
			uint32_t left[4], right[4];
			load_rows<D, false>(left, q_tile, 16 * warp, 2 * i);
#pragma unroll
			for (int n = 0; n < 8; n += 2) {
				load_columns<D, false>(right, k_tile + now, 8 * n, 2 * i);
				multiply<E>(s[n], s[n + 1], left, right);
			}
			load_rows<D, false>(left, dy_tile, 16 * warp, 2 * i);
#pragma unroll
			for (int n = 0; n < 8; n += 2) {
				load_columns<D, false>(right, v_tile + now, 8 * n, 2 * i);
				multiply<E>(dp[n], dp[n + 1], left, right);
			}
		}
		int row = 16 * warp + (lane_index() >> 2);
		const float power[2] = {lse[row], lse[row + 8]}, mean[2] = {delta[row], delta[row + 8]};
		score_gradients(a, s, dp, power, mean, kept, key, h.length);
#pragma unroll
		for (int i = 0; i < KEYS / 16; i++) {
			uint32_t right[4], ds[4];
#pragma unroll
			for (int part = 0; part < 4; part++)
				ds[part] = pack2<E>(s[2 * i + part / 2][part % 2 * 2], s[2 * i + part / 2][part % 2 * 2 + 1]);
#pragma unroll
			for (int n = 0; n < TILES; n += 2) {
				load_rows<D, true>(right, k_tile + now, 16 * i, n);
				multiply<E>(dq[n], dq[n + 1], ds, right);
			}
		}
	}
	if (query >= h.length)
		return;
	uint32_t most = store_tile(static_cast<E *>(a.dqkv) + (h.start + query) * stride + h.head * D, stride, h.length - query,
				   dq, a.scale, a.scale);
	if (has_largest<E> && a.largest != nullptr)
		note_pairs(a.largest, blockIdx.x * WARPS + (unsigned)warp, most);
}

template <int D> size_t keys_bytes(int longest)
{
	return (size_t)(backward_layout<D, WARPS, false>::lse + (longest + QUERIES - 1) / QUERIES * QUERIES * 8);
}
template <int D> constexpr size_t queries_bytes = (size_t)(6 * 64 * tile_row<D>::bytes + ROWS * 8);

template <typename E, int D> cudaError_t start(const struct kernel_attention &a, cudaStream_t stream)
{
	unsigned blocks = blocks_of(a.longest, ROWS) * (unsigned)a.heads * (unsigned)a.sequences;
	cudaError_t error = allow_shared(attention_keys_kernel<E, D>, keys_bytes<D>(a.longest));
	if (error == cudaSuccess)
		error = allow_shared(attention_queries_kernel<E, D>, queries_bytes<D>);
	if (error == cudaSuccess)
		error = launch(attention_keys_kernel<E, D>, blocks, THREADS, keys_bytes<D>(a.longest), stream, a);
	if (error == cudaSuccess)
		error = launch(attention_queries_kernel<E, D>, blocks, THREADS, queries_bytes<D>, stream, a);
	return error;
}
} // namespace

extern "C" size_t kernel_attention_bwd_long_shared(int32_t head_size, int32_t longest)
{
	return head_size == 32   ? max(keys_bytes<32>(longest), queries_bytes<32>)
	       : head_size == 64 ? max(keys_bytes<64>(longest), queries_bytes<64>)
				 : max(keys_bytes<128>(longest), queries_bytes<128>);
}

extern "C" cudaError_t kernel_attention_bwd_long(cudaStream_t stream, enum dtype dtype, const struct kernel_attention *a)
{
	return for_head(dtype, a->hidden / a->heads,
			[&](auto type, auto size) { return start<decltype(type), size.value>(*a, stream); });
}
