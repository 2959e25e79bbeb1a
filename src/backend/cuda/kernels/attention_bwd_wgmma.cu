/* Backward attention of whole heads (attention_bwd_head.cuh) with Hopper's products of warpgroups (wgmma), for heads of 64
 * columns, with the same results as attention_bwd.cu: the warps of a group share the products of their 64 keys. */
#include "backend/cuda/kernels/attention_bwd_head.cuh"
#include "backend/cuda/kernels/wgmma.cuh"

namespace
{
enum { D = 64, PART = 32 };

template <typename E> struct wgmma_keys : warp_keys<E, D, PART> {
	static constexpr int TOGETHER = 64;
	using base = warp_keys<E, D, PART>;

	/* The shuffle tells the compiler that a warp does not diverge where this decides, or it would let one product wait for
	 * the other. */
	static DEVICE int warp()
	{
		return __shfl_sync(ALL_LANES, (int)threadIdx.x / WARP, 0);
	}
	static DEVICE void fence()
	{
		fence_shared();
	}

	/* Like warp_keys, but with k and v of the group's 64 keys. */
	DEVICE void meet(const struct kernel_attention &a, const typename base::tiles &at)
	{
		uint32_t k = group_tile(at.k), v = group_tile(at.v), q = group_tile(at.q), dy = group_tile(at.dy);
#pragma unroll 1
		for (int row = 0; row < QUERIES && at.query + row < at.length; row += PART) {
			float s[PART / 8][4], dp[PART / 8][4];
			group_fence();
#pragma unroll
			for (int i = 0; i < D / 16; i++)
				group_multiply<E, ROWS_ARE_KEPT, ROWS_ARE_KEPT>(s, tile_at(k, 0, 2 * i), tile_at(q, row, 2 * i),
										i > 0);
#pragma unroll
			for (int i = 0; i < D / 16; i++)
				group_multiply<E, ROWS_ARE_KEPT, ROWS_ARE_KEPT>(dp, tile_at(v, 0, 2 * i), tile_at(dy, row, 2 * i),
										i > 0);
			group_commit();
			group_wait<0>();
			base::gradients(s, dp, a, at, row);
			uint32_t left[PART / 16][4], gradient[PART / 16][4];
#pragma unroll
			for (int i = 0; i < PART / 16; i++)
				base::pack(left[i], gradient[i], s, dp, at, row, i);
			group_fence();
#pragma unroll
			for (int i = 0; i < PART / 16; i++)
				group_multiply<E, ROWS_ARE_SUMMED>(base::dv, left[i], tile_at(dy, row + 16 * i, 0));
#pragma unroll
			for (int i = 0; i < PART / 16; i++)
				group_multiply<E, ROWS_ARE_SUMMED>(base::dk, gradient[i], tile_at(q, row + 16 * i, 0));
			group_commit();
			group_wait<0>();
		}
	}

	/* Each group multiplies all 64 queries by half of the columns; keys beyond the last 64 with queries to add are left out.
	 */
	static DEVICE void multiply_queries(float (&dq)[D / 16][4], const char *ds, const char *k, int keys)
	{
		if (keys > TOGETHER)
			multiply_keys<8>(dq, group_tile(ds), tile_at(group_tile(k), 0, warp() / 4 * 4));
		else
			multiply_keys<4>(dq, group_tile(ds), tile_at(group_tile(k), 0, warp() / 4 * 4));
	}
	template <int STEPS> static DEVICE void multiply_keys(float (&dq)[D / 16][4], uint32_t ds, uint32_t k)
	{
		group_fence();
#pragma unroll
		for (int i = 0; i < STEPS; i++)
			group_multiply<E, ROWS_ARE_SUMMED, ROWS_ARE_SUMMED>(dq, tile_at(ds, 16 * i, 0), tile_at(k, 16 * i, 0),
									    i > 0);
		group_commit();
		group_wait<0>();
	}
};
} // namespace

extern "C" cudaError_t kernel_attention_bwd_wgmma(cudaStream_t stream, enum dtype dtype, const struct kernel_attention *a)
{
	return dtype == DTYPE_BF16 ? start<bf16, D, wgmma_keys<bf16>, wgmma_keys<bf16>>(*a, stream)
				   : start<f16, D, wgmma_keys<f16>, wgmma_keys<f16>>(*a, stream);
}
