/* Forward attention with matrix instructions (FlashAttention-2: Dao 2023): a block of 8 warps handles 128 queries of one head
 * of one sequence, 16 per warp, and loops over the keys in tiles of 64, with two tiles of keys and values in flight. Scores
 * stay in registers, because the accumulator of q k' is the fragment that p v needs. */
#include "backend/cuda/kernels/attention_fwd.cuh"

namespace
{
enum { WARPS = 8, THREADS = 32 * WARPS, QUERIES = 16 * WARPS };

template <typename E, int D, bool WINDOW>
__global__ void __launch_bounds__(THREADS, D <= 64 ? 2 : 1) attention_fwd_kernel(struct kernel_attention a)
{
	constexpr int TILES = D / 8, STEPS = D / 16, KEY_BYTES = KEYS * tile_row<D>::bytes;
	char *q_tile = reinterpret_cast<char *>(shared_start()), *k_tile = q_tile + QUERIES * tile_row<D>::bytes,
	     *v_tile = k_tile + 2 * KEY_BYTES;
	if (a.early) {
		start_next();
		wait_for_previous();
	}

	int blocks = (a.longest + QUERIES - 1) / QUERIES, item = (int)(blockIdx.x);
	attention_head h = find_head(a, item / a.heads / blocks, item % a.heads);
	int first = item / a.heads % blocks * QUERIES;
	if (first >= h.length)
		return;

	int stride = 3 * a.hidden;
	const E *from = static_cast<const E *>(a.qkv) + h.start * (int64_t)stride + h.head * D;
	const tile_source<E, D, THREADS> q(from, stride), k(from + a.hidden, stride), v(from + 2 * a.hidden, stride);
	q.template load<QUERIES>(q_tile, first, h.length);
	int first_block = WINDOW ? max(first - a.window, 0) / KEYS : 0,
	    end = WINDOW ? min(h.length, first + QUERIES + a.window) : h.length;
	k.template load<KEYS>(k_tile + first_block % 2 * KEY_BYTES, first_block * KEYS, h.length);
	copy_commit();
	v.template load<KEYS>(v_tile + first_block % 2 * KEY_BYTES, first_block * KEYS, h.length);
	copy_commit();

	int warp = (int)(threadIdx.x) / 32, query = first + 16 * warp;
	bool active = query < h.length;
	attention_dropout dropout = find_dropout(a, h);
	dropout_query dropout_own = find_dropout_query(dropout, query + (lane_index() & 15));
	pair_limit limit(a.threshold);
	uint4 *key_parts = reinterpret_cast<uint4 *>(v_tile + 2 * KEY_BYTES);
	find_keys(key_parts + first_block / 4 % 2 * KEY_PARTS, dropout, first_block / 4 * 4 * KEYS, h.length);
	float scale = a.scale * 1.44269504f;
	const lane_places<D> rows = row_places<D>(0, 0), columns = column_places<D>(0, 0);
	uint32_t q_part[STEPS][4];
	float o[TILES][4] = {}, largest[2] = {LEAST, LEAST}, sum[2] = {};

	int key_blocks = (end + KEYS - 1) / KEYS;
	for (int j = first_block; j < key_blocks; j++) {
		int key = j * KEYS, next = key + KEYS, now = settled(j % 2 * KEY_BYTES), then = now ^ KEY_BYTES;
		copy_wait<1>(); /* the keys have arrived, the values may still be in flight */
		__syncthreads();
		if (next < end)
			k.template load<KEYS>(k_tile + then, next, h.length);
		copy_commit();
		if (j % 4 == 0 || (WINDOW && j == first_block))
			find_keys(key_parts + (j / 4 + 1) % 2 * KEY_PARTS, dropout, (j / 4 + 1) * 4 * KEYS, h.length);

		uint32_t p[KEYS / 16][4];
		if (active) {
			if (j == first_block) {
#pragma unroll
				for (int i = 0; i < STEPS; i++)
					load_matrices4(q_part[i], q_tile + 16 * warp * tile_row<D>::bytes + rows.at(0, 2 * i));
			}
			const char *tile = k_tile + now;
			float s[KEY_TILES][4] = {};
#pragma unroll
			for (int i = 0; i < STEPS; i++) {
#pragma unroll
				for (int n = 0; n < KEY_TILES; n += 2) {
					uint32_t b[4];
					load_matrices4(b, tile + columns.at(8 * n, 2 * i));
					multiply<E>(s[n], s[n + 1], q_part[i], b);
				}
			}
			if (next > h.length)
				hide_keys(s, h.length - key);
			if (WINDOW)
				hide_unseen(s, a.window, query, key);
			softmax(s, o, largest, sum, scale);
			pack_scores<E>(p, s);
			if (dropout.threshold)
				drop_pairs(p, a, h, make_drops(dropout, limit, key_parts + j % 8 * (KEYS / BLOCK), dropout_own),
					   query, key);
		}

		copy_wait<1>(); /* the values have arrived, the next keys may still be in flight */
		__syncthreads();
		if (next < end)
			v.template load<KEYS>(v_tile + then, next, h.length);
		copy_commit();
		if (active) {
			const char *tile = v_tile + now;
#pragma unroll
			for (int i = 0; i < KEYS / 16; i++) {
#pragma unroll
				for (int n = 0; n < TILES; n += 2) {
					uint32_t b[4];
					load_matrices4_transposed(b, tile + rows.at(16 * i, n));
					multiply<E>(o[n], o[n + 1], p[i], b);
				}
			}
		}
	}
	if (active)
		write_rows<E>(a, h, query, o, largest, sum);
}

template <typename E, int D, bool WINDOW> cudaError_t start(const struct kernel_attention &a, cudaStream_t stream)
{
	size_t shared = kernel_attention_fwd_shared(D);
	cudaError_t error = allow_shared(attention_fwd_kernel<E, D, WINDOW>, shared);
	unsigned blocks = blocks_of(a.longest, QUERIES) * (unsigned)a.heads * (unsigned)a.sequences;
	return error != cudaSuccess
		       ? error
		       : launch_early(a.early, attention_fwd_kernel<E, D, WINDOW>, blocks, THREADS, shared, stream, a);
}
} // namespace

extern "C" cudaError_t kernel_attention_fwd(cudaStream_t stream, enum dtype dtype, const struct kernel_attention *a)
{
	return for_head(dtype, a->hidden / a->heads, [&](auto type, auto size) {
		using E = decltype(type);
		return a->windowed ? start<E, size.value, true>(*a, stream) : start<E, size.value, false>(*a, stream);
	});
}

extern "C" size_t kernel_attention_fwd_shared(int32_t head_size)
{
	return (size_t)((QUERIES + 4 * KEYS) * row_bytes(head_size)) + 2 * KEY_PARTS * sizeof(uint4);
}

extern "C" bool kernel_attention_has(enum dtype dtype, int32_t head_size)
{
	return (dtype == DTYPE_BF16 || dtype == DTYPE_F16) && is_head_size(head_size);
}
