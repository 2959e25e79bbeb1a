/* Backward attention where a block handles one whole head of one sequence: 8 warps of 16 keys each process one block of keys
 * after another, looping over the queries in tiles of 64, with two tiles in flight; ds' is multiplied by k through shared
 * memory. dq is summed in shared memory, in fragments that always belong to the same thread, in key order, so no sum depends
 * on scheduling. A sequence of up to ATTENTION_SHORT tokens is a single block of keys, and its dq is written out directly. */
#ifndef BACKEND_CUDA_KERNELS_ATTENTION_BWD_HEAD_CUH
#define BACKEND_CUDA_KERNELS_ATTENTION_BWD_HEAD_CUH

#include "backend/cuda/kernels/attention_bwd.cuh"

namespace
{
/* Adds the warps' column sums, in warp order; zeros if WARPS is 0. */
template <int D, int WARPS> DEVICE void store_sums(const struct kernel_attention &a, const attention_head &h, const float *sums)
{
	if (!a.sums)
		return;
	__syncthreads();
	for (int i = threadIdx.x; i < 3 * D; i += blockDim.x) {
		float sum = 0;
		for (int warp = 0; warp < WARPS; warp++)
			sum += sums[warp * 3 * D + i];
		a.sums[((int64_t)h.sequence * 3 + i / D) * a.hidden + h.head * D + i % D] = sum;
	}
}

/* KEYS: the products, of each warp for its 16 keys (attention_bwd.cu), or of four warps together (attention_bwd_wgmma.cu). ONE:
 * no sequence is longer than one block of keys; two blocks then share a multiprocessor. LARGEST: a.largest is wanted; a separate
 * variant, because it takes additional registers. */
template <typename E, int D, typename KEYS, bool ONE, bool LARGEST>
__global__ void __launch_bounds__(256, ONE &&D <= 64 ? 2 : 1) attention_bwd_kernel(struct kernel_attention a)
{
	constexpr int WARPS = 8, THREADS = 32 * WARPS, HALF = D / 16;
	using layout = backward_layout<D, WARPS, true>;
	char *shared = reinterpret_cast<char *>(shared_start());
	int room = (a.upto + QUERIES - 1) / QUERIES * QUERIES;
	float *sums = reinterpret_cast<float *>(shared + layout::sums);
	float2 *statistics = reinterpret_cast<float2 *>(shared + layout::statistics);
	int warp = KEYS::warp(), lane = lane_index();

	int item = (int)(blockIdx.x);
	attention_head h = find_head(a, item / a.heads, item % a.heads);
	if (!in_class(a, h.length))
		return;
	if (h.length <= 0) {
		store_sums<D, 0>(a, h, nullptr);
		return;
	}
	int stride = 3 * a.hidden;
	const E *from = static_cast<const E *>(a.qkv) + h.start * (int64_t)stride + h.head * D;
	const tile_source<E, D, THREADS> q(from, stride), k(from + a.hidden, stride), v(from + 2 * a.hidden, stride),
		dy(static_cast<const E *>(a.dy) + h.start * (int64_t)a.hidden + h.head * D, a.hidden);
	const kept_source<WARPS> kept(a, h);
	E *dq_out = static_cast<E *>(a.dqkv) + h.start * (int64_t)stride + h.head * D, *dk_out = dq_out + a.hidden,
	  *dv_out = dk_out + a.hidden;

	q.template load<QUERIES>(shared + layout::q, 0, h.length);
	dy.template load<QUERIES>(shared + layout::dy, 0, h.length);
	k.template load<layout::keys>(shared + layout::k, 0, h.length);
	v.template load<layout::keys>(shared + layout::v, 0, h.length);
	kept.load(shared + layout::kept, 0, 0, h.length);
	copy_commit();
	int query_tiles = (h.length + QUERIES - 1) / QUERIES, key_blocks = ONE ? 1 : (h.length + layout::keys - 1) / layout::keys;
	load_statistics<E, D, THREADS>(a, h, statistics, 0, query_tiles * QUERIES);
	for (int i = threadIdx.x; i < WARPS * 3 * D; i += THREADS)
		sums[i] = 0;

	float4 *dq_sum = reinterpret_cast<float4 *>(statistics + room) + warp * HALF * 32 + lane; /* this thread's own part */
	int first = warp * 16 / KEYS::TOGETHER * KEYS::TOGETHER, own = first * tile_row<D>::bytes;
	for (int j = 0; j < key_blocks; j++) {
		int block_key = j * layout::keys, key = block_key + 16 * warp, keys = min(layout::keys, h.length - block_key);
		if (j > 0) {
			__syncthreads(); /* the last dq product has finished reading k */
			k.template load<layout::keys>(shared + layout::k, block_key, h.length);
			v.template load<layout::keys>(shared + layout::v, block_key, h.length);
			copy_commit();
		}
		KEYS mine;
		for (int i = 0; i < query_tiles; i++) {
			copy_wait<0>();
			KEYS::fence();
			__syncthreads();
			int next = i + 1 < query_tiles ? (i + 1) * QUERIES : 0, buffer = (j * query_tiles + i) % 2,
			    now = settled(buffer * layout::query_bytes), then = now ^ layout::query_bytes;
			if (next > 0 || j + 1 < key_blocks) {
				q.template load<QUERIES>(shared + layout::q + then, next, h.length);
				dy.template load<QUERIES>(shared + layout::dy + then, next, h.length);
				kept.load(shared + layout::kept + (buffer ^ 1) * layout::kept_bytes, next,
					  next > 0 ? block_key : block_key + layout::keys, h.length);
				copy_commit();
			}
			if (block_key + first < h.length)
				mine.meet(a,
					  {shared + layout::k + own, shared + layout::v + own, shared + layout::q + now,
					   shared + layout::dy + now, shared + layout::ds, layout::kept_of(shared, warp, buffer),
					   statistics + i * QUERIES, i * QUERIES, key, h.length});
			KEYS::fence();
			__syncthreads();
			int query = i * QUERIES + warp % 4 * 16;
			float dq[HALF][4] = {};
			if (KEYS::TOGETHER > 16 || query < h.length)
				KEYS::multiply_queries(dq, shared + layout::ds, shared + layout::k, keys);
			if (query >= h.length)
				continue;
			float4 *before = dq_sum + i * WARPS * HALF * 32;
#pragma unroll
			for (int n = 0; n < HALF; n++) {
				if (j > 0) {
					float4 x = before[n * 32];
					dq[n][0] += x.x;
					dq[n][1] += x.y;
					dq[n][2] += x.z;
					dq[n][3] += x.w;
				}
				if (j + 1 < key_blocks)
					before[n * 32] = {dq[n][0], dq[n][1], dq[n][2], dq[n][3]};
			}
			if (j + 1 == key_blocks) {
				uint32_t most = store_tile(dq_out + query * (int64_t)stride + warp / 4 * (D / 2), stride,
							   h.length - query, dq, a.scale, a.scale);
				if (a.sums)
					add_column_sums(sums + warp * 3 * D + warp / 4 * (D / 2), dq, a.scale);
				if (LARGEST)
					note_pairs(a.largest, blockIdx.x, most);
			}
		}
		if (key < h.length) {
			uint32_t most_dk =
				store_tile(dk_out + key * (int64_t)stride, stride, h.length - key, mine.dk, a.scale, a.scale);
			uint32_t most_dv = store_tile(dv_out + key * (int64_t)stride, stride, h.length - key, mine.dv,
						      a.dropout_scale, a.dropout_scale);
			if (LARGEST)
				note_pairs(a.largest, blockIdx.x, larger_pair(most_dk, most_dv));
			if (a.sums) {
				add_column_sums(sums + (warp * 3 + 1) * D, mine.dk, a.scale);
				add_column_sums(sums + (warp * 3 + 2) * D, mine.dv, a.dropout_scale);
			}
		}
	}
	store_sums<D, WARPS>(a, h, sums);
}

template <int D> size_t shared_bytes(int longest)
{
	int room = (longest + QUERIES - 1) / QUERIES * QUERIES;
	return (size_t)(backward_layout<D, 8, true>::statistics + room * 8 + (longest > ATTENTION_SHORT ? room * D * 4 : 0));
}

/* ONE_KEYS and MORE_KEYS: KEYS for sequences of one block, and for longer ones. */
template <typename E, int D, typename ONE_KEYS, typename MORE_KEYS>
cudaError_t start(const struct kernel_attention &a, cudaStream_t stream)
{
	bool one = a.upto <= ATTENTION_SHORT;
	auto kernel =
		one ? attention_bwd_kernel<E, D, ONE_KEYS, true, false> : attention_bwd_kernel<E, D, MORE_KEYS, false, false>;
	if constexpr (has_largest<E>)
		if (a.largest != nullptr)
			kernel = one ? attention_bwd_kernel<E, D, ONE_KEYS, true, true>
				     : attention_bwd_kernel<E, D, MORE_KEYS, false, true>;
	size_t shared = shared_bytes<D>(a.upto);
	cudaError_t error = allow_shared(kernel, shared);
	unsigned blocks = (unsigned)a.heads * (unsigned)a.sequences;
	return error != cudaSuccess ? error : launch(kernel, blocks, 256, shared, stream, a);
}
} // namespace

#endif
