/* The same as attention_fwd.cu with Hopper's products of warpgroups (wgmma), for heads of 64 columns, and with the same results:
 * a block of two warpgroups handles 128 queries. p v of one tile of keys and q k' of the next run together; in the meantime, the
 * other warpgroups of the multiprocessor compute probabilities. */
#include "backend/cuda/kernels/attention_fwd.cuh"
#include "backend/cuda/kernels/wgmma.cuh"

namespace
{
constexpr int D = 64, TILES = D / 8, GROUP_QUERIES = 64, THREADS = 2 * WARPGROUP, QUERIES = 2 * GROUP_QUERIES;
constexpr int KEY_BYTES = KEYS * tile_row<D>::bytes,
	      SHARED_BYTES = QUERIES * tile_row<D>::bytes + 4 * KEY_BYTES + 2 * KEY_PARTS * (int)sizeof(uint4);

/* s = q k' for 64 queries and 64 keys */
template <typename E> DEVICE void multiply_keys(float (&s)[KEY_TILES][4], uint32_t q_rows, uint32_t k_rows)
{
#pragma unroll
	for (int i = 0; i < D / 16; i++)
		group_multiply<E, ROWS_ARE_KEPT, ROWS_ARE_KEPT>(s, tile_at(q_rows, 0, 2 * i), tile_at(k_rows, 0, 2 * i), i > 0);
}

/* o += p v */
template <typename E> DEVICE void multiply_values(float (&o)[TILES][4], const uint32_t (&p)[KEYS / 16][4], uint32_t v_rows)
{
#pragma unroll
	for (int i = 0; i < KEYS / 16; i++)
		group_multiply<E, ROWS_ARE_SUMMED>(o, p[i], tile_at(v_rows, 16 * i, 0));
}

template <typename E> __global__ void __launch_bounds__(THREADS, 2) attention_fwd_wgmma_kernel(struct kernel_attention a)
{
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
	k.template load<KEYS>(k_tile, 0, h.length);
	copy_commit();
	v.template load<KEYS>(v_tile, 0, h.length);
	if (KEYS < h.length)
		k.template load<KEYS>(k_tile + KEY_BYTES, KEYS, h.length);
	copy_commit();

	/* The shuffle tells the compiler that a warp does not diverge here, or it would let one product wait for the other. */
	int warp = __shfl_sync(ALL_LANES, (int)(threadIdx.x) / WARP, 0), group = warp / 4, query = first + 16 * warp;
	bool group_active = first + group * GROUP_QUERIES < h.length, active = query < h.length;
	attention_dropout dropout = find_dropout(a, h);
	dropout_query dropout_own = find_dropout_query(dropout, query + (lane_index() & 15));
	pair_limit limit(a.threshold);
	uint4 *key_parts = reinterpret_cast<uint4 *>(v_tile + 2 * KEY_BYTES);
	find_keys(key_parts, dropout, 0, h.length);
	float scale = a.scale * 1.44269504f;
	uint32_t q_rows = tile_at(group_tile(q_tile), group * GROUP_QUERIES, 0), k_rows = group_tile(k_tile),
		 v_rows = group_tile(v_tile);
	float s[KEY_TILES][4], o[TILES][4] = {}, largest[2] = {-INFINITY, -INFINITY}, sum[2] = {};
	uint32_t p[KEYS / 16][4] = {};

	copy_wait<1>();
	fence_shared();
	__syncthreads();
	if (group_active) {
		group_fence();
		multiply_keys<E>(s, q_rows, k_rows);
		group_commit();
		group_wait<0>();
	}
	int key_blocks = (h.length + KEYS - 1) / KEYS;
	for (int j = 0; j < key_blocks; j++) {
		int key = j * KEYS, next = key + KEYS, now = j % 2, then = now ^ 1;
		if (active) {
			if (next > h.length)
				hide_keys(s, h.length - key);
			softmax(s, o, largest, sum, scale);
			pack_scores<E>(p, s);
			if (dropout.threshold)
				drop_pairs(p, a, h, make_drops(dropout, limit, key_parts + j % 8 * (KEYS / BLOCK), dropout_own),
					   query, key);
		}
		copy_wait<0>(); /* these values and the next keys have arrived */
		fence_shared();
		__syncthreads();
		if (next < h.length)
			v.template load<KEYS>(v_tile + then * KEY_BYTES, next, h.length);
		if (next + KEYS < h.length)
			k.template load<KEYS>(k_tile + now * KEY_BYTES, next + KEYS, h.length);
		copy_commit();
		if (j % 4 == 0)
			find_keys(key_parts + (j / 4 + 1) % 2 * KEY_PARTS, dropout, key + 4 * KEYS, h.length);
		if (group_active && next < h.length) {
			group_fence();
			multiply_values<E>(o, p, tile_at(v_rows, now * KEYS, 0));
			multiply_keys<E>(s, q_rows, tile_at(k_rows, then * KEYS, 0));
			group_commit();
			group_wait<0>();
		} else if (group_active) {
			group_fence();
			multiply_values<E>(o, p, tile_at(v_rows, now * KEYS, 0));
			group_commit();
			group_wait<0>();
		}
	}
	if (active)
		write_rows<E>(a, h, query, o, largest, sum);
}

template <typename E> cudaError_t start(const struct kernel_attention &a, cudaStream_t stream)
{
	cudaError_t error = allow_shared(attention_fwd_wgmma_kernel<E>, SHARED_BYTES);
	unsigned blocks = blocks_of(a.longest, QUERIES) * (unsigned)a.heads * (unsigned)a.sequences;
	return error != cudaSuccess
		       ? error
		       : launch_early(a.early, attention_fwd_wgmma_kernel<E>, blocks, THREADS, SHARED_BYTES, stream, a);
}
} // namespace

extern "C" cudaError_t kernel_attention_fwd_wgmma(cudaStream_t stream, enum dtype dtype, const struct kernel_attention *a)
{
	return dtype == DTYPE_BF16 ? start<bf16>(*a, stream) : start<f16>(*a, stream);
}
