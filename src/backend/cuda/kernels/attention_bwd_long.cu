/* Backward attention where a sequence is too long for one block's shared memory, in two kernels: blocks of the first own keys
 * and compute dk and dv; blocks of the second own queries, recompute the scores and compute dq. */
#include "backend/cuda/kernels/attention_bwd.cuh"

namespace
{
enum { WARPS = 4, THREADS = 32 * WARPS, ROWS = 16 * WARPS /* keys or queries per block */, TWO_TILES = 2 * QUERIES };

/* `whole`: lse and delta of all queries are in shared memory, and not those of two tiles only. */
template <typename E, int D, bool WINDOW>
__global__ void __launch_bounds__(THREADS, 1) attention_keys_kernel(struct kernel_attention a, bool whole)
{
	using layout = backward_layout<D, WARPS, false>;
	char *shared = reinterpret_cast<char *>(shared_start());
	int warp = (int)threadIdx.x / WARP;
	float2 *statistics = reinterpret_cast<float2 *>(shared + layout::statistics);

	int blocks = (a.upto + ROWS - 1) / ROWS, item = (int)blockIdx.x;
	attention_head h = find_head(a, item / a.heads / blocks, item % a.heads);
	int first = item / a.heads % blocks * ROWS;
	if (first >= h.length || !in_class(a, h.length))
		return;
	int stride = 3 * a.hidden;
	const E *from = static_cast<const E *>(a.qkv) + h.start * (int64_t)stride + h.head * D;
	const tile_source<E, D, THREADS> q(from, stride), k(from + a.hidden, stride), v(from + 2 * a.hidden, stride),
		dy(static_cast<const E *>(a.dy) + h.start * (int64_t)a.hidden + h.head * D, a.hidden);
	const kept_source<WARPS> kept(a, h);

	k.template load<ROWS>(shared + layout::k, first, h.length);
	v.template load<ROWS>(shared + layout::v, first, h.length);
	int first_tile = WINDOW ? max(first - a.window, 0) / QUERIES : 0, start = first_tile * QUERIES,
	    end = WINDOW ? min(h.length, first + ROWS + a.window) : h.length;
	q.template load<QUERIES>(shared + layout::q + first_tile % 2 * layout::query_bytes, start, h.length);
	dy.template load<QUERIES>(shared + layout::dy + first_tile % 2 * layout::query_bytes, start, h.length);
	kept.load(shared + layout::kept + first_tile % 2 * layout::kept_bytes, start, first, h.length);
	copy_commit();
	int tiles = (end + QUERIES - 1) / QUERIES, key = first + 16 * warp, own = warp * 16 * tile_row<D>::bytes;
	int place = whole ? start : start % TWO_TILES;
	load_statistics<E, D, THREADS>(a, h, statistics + place, start, whole ? tiles * QUERIES - start : QUERIES);

	warp_keys<E, D, (D > 64 ? 16 : 32), WINDOW> mine;
	for (int i = first_tile; i < tiles; i++) {
		int query = i * QUERIES, next = query + QUERIES, now = settled(i % 2 * layout::query_bytes),
		    then = now ^ layout::query_bytes;
		copy_wait<0>();
		__syncthreads();
		if (next < end) {
			q.template load<QUERIES>(shared + layout::q + then, next, h.length);
			dy.template load<QUERIES>(shared + layout::dy + then, next, h.length);
			kept.load(shared + layout::kept + (i + 1) % 2 * layout::kept_bytes, next, first, h.length);
			copy_commit();
			if (!whole)
				load_statistics<E, D, THREADS>(a, h, statistics + next % TWO_TILES, next, QUERIES);
		}
		if (key < h.length)
			mine.meet(a, {shared + layout::k + own, shared + layout::v + own, shared + layout::q + now,
				      shared + layout::dy + now, nullptr, layout::kept_of(shared, warp, i % 2),
				      statistics + (whole ? query : query % TWO_TILES), query, key, h.length});
	}
	if (key < h.length) {
		E *dk = static_cast<E *>(a.dqkv) + (h.start + key) * (int64_t)stride + h.head * D + a.hidden;
		uint32_t most_dk = store_tile(dk, stride, h.length - key, mine.dk, a.scale, a.scale);
		uint32_t most_dv = store_tile(dk + a.hidden, stride, h.length - key, mine.dv, a.dropout_scale, a.dropout_scale);
		if (has_largest<E> && a.largest != nullptr)
			note_pairs(a.largest, blockIdx.x * WARPS + (unsigned)warp, larger_pair(most_dk, most_dv));
	}
}

/* ds = p (dp - delta) for 16 queries and 64 keys, in place of s. `statistics`: lse and delta of the lane's two queries. */
template <bool WINDOW>
DEVICE void score_gradients(const struct kernel_attention &a, float (&s)[8][4], const float (&dp)[8][4],
			    const float2 (&statistics)[2], uint32_t drops, int query, int key, int length)
{
	const drop_fragments dropped(drops);
	float scale = a.scale * 1.44269504f;
	int t = lane_index() & 3, ahead = key - query + 2 * t - (lane_index() >> 2);
#pragma unroll
	for (int n = 0; n < 8; n++) {
#pragma unroll
		for (int e = 0; e < 4; e++) {
			bool stays = !dropped.has(n, e);
			float p = exp2_approximate(fmaf(s[n][e], scale, -statistics[e / 2].x));
			bool seen = !WINDOW || abs(ahead + 8 * n + e % 2 - e / 2 * 8) <= a.window;
			p = seen && key + 8 * n + 2 * t + e % 2 < length ? p : 0.f;
			s[n][e] = p * ((stays ? dp[n][e] * a.dropout_scale : 0.f) - statistics[e / 2].y);
		}
	}
}

template <typename E, int D, bool WINDOW>
__global__ void __launch_bounds__(THREADS, 1) attention_queries_kernel(struct kernel_attention a)
{
	constexpr int TILES = D / 8, STEPS = D / 16, KEYS = 64, TILE_BYTES = 64 * tile_row<D>::bytes;
	char *q_tile = reinterpret_cast<char *>(shared_start()), *dy_tile = q_tile + TILE_BYTES, *k_tile = dy_tile + TILE_BYTES,
	     *v_tile = k_tile + 2 * TILE_BYTES;
	float2 *statistics = reinterpret_cast<float2 *>(v_tile + 2 * TILE_BYTES);

	int blocks = (a.upto + ROWS - 1) / ROWS, item = (int)blockIdx.x, warp = (int)threadIdx.x / WARP;
	attention_head h = find_head(a, item / a.heads / blocks, item % a.heads);
	int first = item / a.heads % blocks * ROWS, query = first + 16 * warp;
	if (first >= h.length || !in_class(a, h.length))
		return;
	int stride = 3 * a.hidden;
	const E *from = static_cast<const E *>(a.qkv) + h.start * (int64_t)stride + h.head * D;
	const tile_source<E, D, THREADS> q(from, stride), k(from + a.hidden, stride), v(from + 2 * a.hidden, stride),
		dy(static_cast<const E *>(a.dy) + h.start * (int64_t)a.hidden + h.head * D, a.hidden);

	q.template load<ROWS>(q_tile, first, h.length);
	dy.template load<ROWS>(dy_tile, first, h.length);
	int first_key = WINDOW ? max(first - a.window, 0) / KEYS * KEYS : 0,
	    end = WINDOW ? min(h.length, first + ROWS + a.window) : h.length;
	k.template load<KEYS>(k_tile + first_key / KEYS % 2 * TILE_BYTES, first_key, h.length);
	v.template load<KEYS>(v_tile + first_key / KEYS % 2 * TILE_BYTES, first_key, h.length);
	copy_commit();
	load_statistics<E, D, THREADS>(a, h, statistics, first, ROWS);

	const lane_places<D> own = row_places<D>(16 * warp, 0), rows = row_places<D>(0, 0), columns = column_places<D>(0, 0);
	float dq[TILES][4] = {};
	for (int key = first_key; key < end; key += KEYS) {
		int next = key + KEYS, now = settled(key / KEYS % 2 * TILE_BYTES), then = now ^ TILE_BYTES;
		copy_wait<0>();
		__syncthreads();
		if (next < end) {
			k.template load<KEYS>(k_tile + then, next, h.length);
			v.template load<KEYS>(v_tile + then, next, h.length);
			copy_commit();
		}
		if (query >= h.length)
			continue;
		uint32_t drops = a.threshold ? load_drops(a, h, query, key) : 0;
		float s[8][4] = {}, dp[8][4] = {};
#pragma unroll
		for (int i = 0; i < STEPS; i++) {
			uint32_t left[4], right[4];
			load_matrices4(left, q_tile + own.at(0, 2 * i));
#pragma unroll
			for (int n = 0; n < 8; n += 2) {
				load_matrices4(right, k_tile + now + columns.at(8 * n, 2 * i));
				multiply<E>(s[n], s[n + 1], left, right);
			}
			load_matrices4(left, dy_tile + own.at(0, 2 * i));
#pragma unroll
			for (int n = 0; n < 8; n += 2) {
				load_matrices4(right, v_tile + now + columns.at(8 * n, 2 * i));
				multiply<E>(dp[n], dp[n + 1], left, right);
			}
		}
		int row = 16 * warp + (lane_index() >> 2);
		const float2 own_statistics[2] = {statistics[row], statistics[row + 8]};
		score_gradients<WINDOW>(a, s, dp, own_statistics, drops, query, key, h.length);
#pragma unroll
		for (int i = 0; i < KEYS / 16; i++) {
			uint32_t right[4], ds[4];
#pragma unroll
			for (int part = 0; part < 4; part++)
				ds[part] = pack2<E>(s[2 * i + part / 2][part % 2 * 2], s[2 * i + part / 2][part % 2 * 2 + 1]);
#pragma unroll
			for (int n = 0; n < TILES; n += 2) {
				load_matrices4_transposed(right, k_tile + now + rows.at(16 * i, n));
				multiply<E>(dq[n], dq[n + 1], ds, right);
			}
		}
	}
	if (query >= h.length)
		return;
	uint32_t most = store_tile(static_cast<E *>(a.dqkv) + (h.start + query) * (int64_t)stride + h.head * D, stride,
				   h.length - query, dq, a.scale, a.scale);
	if (has_largest<E> && a.largest != nullptr)
		note_pairs(a.largest, blockIdx.x * WARPS + (unsigned)warp, most);
}

template <int D> constexpr size_t keys_bytes(int queries)
{
	return (size_t)(backward_layout<D, WARPS, false>::statistics + queries * 8);
}
template <int D> constexpr size_t queries_bytes = (size_t)(6 * 64 * tile_row<D>::bytes + ROWS * 8);

template <typename E, int D, bool WINDOW>
cudaError_t start(const struct kernel_attention &a, cudaStream_t stream, size_t shared_limit)
{
	unsigned blocks = blocks_of(a.upto, ROWS) * (unsigned)a.heads * (unsigned)a.sequences;
	int queries = (a.upto + QUERIES - 1) / QUERIES * QUERIES;
	bool whole = keys_bytes<D>(queries) <= shared_limit;
	size_t shared = keys_bytes<D>(whole ? queries : TWO_TILES);
	cudaError_t error = allow_shared(attention_keys_kernel<E, D, WINDOW>, shared);
	if (error == cudaSuccess)
		error = allow_shared(attention_queries_kernel<E, D, WINDOW>, queries_bytes<D>);
	if (error == cudaSuccess)
		error = launch(attention_keys_kernel<E, D, WINDOW>, blocks, THREADS, shared, stream, a, whole);
	if (error == cudaSuccess)
		error = launch(attention_queries_kernel<E, D, WINDOW>, blocks, THREADS, queries_bytes<D>, stream, a);
	return error;
}
} // namespace

extern "C" size_t kernel_attention_bwd_long_shared(int32_t head_size)
{
	return head_size == 32   ? max(keys_bytes<32>(TWO_TILES), queries_bytes<32>)
	       : head_size == 64 ? max(keys_bytes<64>(TWO_TILES), queries_bytes<64>)
				 : max(keys_bytes<128>(TWO_TILES), queries_bytes<128>);
}

extern "C" cudaError_t kernel_attention_bwd_long(cudaStream_t stream, enum dtype dtype, const struct kernel_attention *a,
						 size_t shared_limit)
{
	return for_head(dtype, a->hidden / a->heads, [&](auto type, auto size) {
		using E = decltype(type);
		return (a->windowed ? start<E, size.value, true> : start<E, size.value, false>)(*a, stream, shared_limit);
	});
}
