/* Layer normalisation with what stands before it: bias, dropout, residual. */
#include "backend/cuda/kernels/device.cuh"

namespace
{

constexpr int WARPS = 4; /* of a block, each with a row of its own */

/* A warp holds its row in registers: lane l has the blocks of eight columns l, l + 32, ..., BLOCKS of them. */
template <typename T, int BLOCKS, bool ALIGNED>
__global__ void __launch_bounds__(WARPS *WARP) norm_fwd(struct kernel_norm_fwd a)
{
	int64_t row = (int64_t)blockIdx.x * WARPS + threadIdx.x / WARP;
	if (row >= a.rows)
		return;
	int columns = (int)a.columns, lane = lane_index();
	const T *x = static_cast<const T *>(a.x) + row * columns, *residual = static_cast<const T *>(a.residual) + row * columns;
	T *sums = static_cast<T *>(a.sum) + row * columns, *y = static_cast<T *>(a.y) + row * columns;
	uint64_t seed = a.dropout.threshold > 0 ? a.dropout.scalars->seed : 0;
	float v[BLOCKS][BLOCK], total = 0;

#pragma unroll
	for (int b = 0; b < BLOCKS; b++) {
		int first = (b * WARP + lane) * BLOCK;
		if (first >= columns) {
#pragma unroll
			for (int i = 0; i < BLOCK; i++)
				v[b][i] = 0;
			continue;
		}
		float other[BLOCK];
		load_block<ALIGNED>(x, first, columns, v[b]);
		if (a.bias != nullptr) {
			load_block<ALIGNED>(a.bias, first, columns, other);
#pragma unroll
			for (int i = 0; i < BLOCK; i++)
				v[b][i] += other[i];
		}
		if (a.dropout.threshold > 0) {
			dropout_factors(a.dropout, seed, first, a.dropout.positions[row], a.dropout.samples[row], other);
#pragma unroll
			for (int i = 0; i < BLOCK; i++)
				v[b][i] *= other[i];
		}
		if (a.residual != nullptr) {
			load_block<ALIGNED>(residual, first, columns, other);
#pragma unroll
			for (int i = 0; i < BLOCK; i++)
				v[b][i] += other[i];
		}
		if (a.sum != nullptr)
			store_block<ALIGNED>(sums, first, columns, v[b]);
#pragma unroll
		for (int i = 0; i < BLOCK; i++) {
			v[b][i] = rounded<T>(v[b][i]); /* backward will know no other */
			total += v[b][i];
		}
	}

	float mean = warp_sum(total) / (float)columns, squares = 0;
#pragma unroll
	for (int b = 0; b < BLOCKS; b++)
#pragma unroll
		for (int i = 0; i < BLOCK; i++)
			if ((b * WARP + lane) * BLOCK + i < columns)
				squares += (v[b][i] - mean) * (v[b][i] - mean);
	float rstd = 1 / sqrtf(warp_sum(squares) / (float)columns + a.epsilon);

#pragma unroll
	for (int b = 0; b < BLOCKS; b++) {
		int first = (b * WARP + lane) * BLOCK;
		if (first >= columns)
			continue;
		float gamma[BLOCK], beta[BLOCK];
		load_block<ALIGNED>(a.gamma, first, columns, gamma);
		load_block<ALIGNED>(a.beta, first, columns, beta);
#pragma unroll
		for (int i = 0; i < BLOCK; i++)
			v[b][i] = gamma[i] * ((v[b][i] - mean) * rstd) + beta[i];
		store_block<ALIGNED>(y, first, columns, v[b]);
	}
	if (lane == 0 && a.mean != nullptr) {
		a.mean[row] = mean;
		a.rstd[row] = rstd;
	}
}

template <typename T, bool ALIGNED> cudaError_t launch_norm_fwd(cudaStream_t stream, const struct kernel_norm_fwd *a)
{
	int64_t blocks = (a->columns + WARP * BLOCK - 1) / (WARP * BLOCK);
	if constexpr (!ALIGNED) /* odd widths are not worth many kernels */
		return launch(blocks <= 4 ? norm_fwd<T, 4, false> : norm_fwd<T, 16, false>, blocks_of(a->rows, WARPS), WARPS * WARP, 0,
			      stream, *a);
	auto kernel = blocks <= 1   ? norm_fwd<T, 1, ALIGNED>
		      : blocks <= 2 ? norm_fwd<T, 2, ALIGNED>
		      : blocks <= 3 ? norm_fwd<T, 3, ALIGNED>
		      : blocks <= 4 ? norm_fwd<T, 4, ALIGNED>
		      : blocks <= 8 ? norm_fwd<T, 8, ALIGNED>
				    : norm_fwd<T, 16, ALIGNED>;
	return launch(kernel, blocks_of(a->rows, WARPS), WARPS * WARP, 0, stream, *a);
}

} // namespace

extern "C" cudaError_t kernel_norm_fwd(cudaStream_t stream, const struct kernel_norm_fwd *a)
{
	return for_dtype(a->dtype, [&](auto type) {
		using T = decltype(type);
		return a->columns % BLOCK == 0 ? launch_norm_fwd<T, true>(stream, a) : launch_norm_fwd<T, false>(stream, a);
	});
}
