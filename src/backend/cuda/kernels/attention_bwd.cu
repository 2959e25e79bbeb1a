/* Backward attention of whole heads (attention_bwd_head.cuh) with the matrix instructions of warps. */
#include "backend/cuda/kernels/attention_bwd_head.cuh"

namespace
{
template <typename E, int D, int PART, int UNROLL> struct mma_keys : warp_keys<E, D, PART> {
	static constexpr int TOGETHER = 16;
	static DEVICE int warp()
	{
		return (int)threadIdx.x / WARP;
	}
	static DEVICE void fence()
	{
	}
	/* Within a tile of 64 queries, each of the eight warps handles 16 queries and half of the columns. */
	static DEVICE void multiply_queries(float (&dq)[D / 16][4], const char *ds, const char *k, int keys)
	{
		int warp = mma_keys::warp();
		const lane_places<64> queries = column_places<64>(0, warp % 4 * 2);
		const lane_places<D> half = row_places<D>(0, warp / 4 * (D / 16));
#pragma unroll UNROLL
		for (int row = 0; row < keys; row += 16) {
			uint32_t left[4], right[4];
			load_matrices4_transposed(left, ds + queries.at(row, 0));
#pragma unroll
			for (int n = 0; n < D / 16; n += 2) {
				load_matrices4_transposed(right, k + half.at(row, n));
				multiply<E>(dq[n], dq[n + 1], left, right);
			}
		}
	}
};

template <typename E, int D> cudaError_t start_mma(const struct kernel_attention &a, cudaStream_t stream)
{
	return start<E, D, mma_keys<E, D, 16, 1>, mma_keys<E, D, (D > 64 ? 16 : 32), 4>>(a, stream);
}
} // namespace

extern "C" int32_t kernel_attention_bwd_longest(int32_t head_size, size_t shared_limit)
{
	auto shared = head_size == 32 ? shared_bytes<32> : head_size == 64 ? shared_bytes<64> : shared_bytes<128>;
	int32_t longest = 0;
	while (shared(longest + QUERIES) <= shared_limit)
		longest += QUERIES;
	return longest;
}

extern "C" cudaError_t kernel_attention_bwd(cudaStream_t stream, enum dtype dtype, const struct kernel_attention *a)
{
	return for_head(dtype, a->hidden / a->heads,
			[&](auto type, auto size) { return start_mma<decltype(type), size.value>(*a, stream); });
}
