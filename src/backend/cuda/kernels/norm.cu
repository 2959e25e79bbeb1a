/* Layer normalisation with what stands before it (bias, dropout, residual), and its backward. */
#include "backend/cuda/kernels/norm_row.cuh"

namespace
{

constexpr int WARPS = 4; /* of a block, each with a row of its own */

template <typename T, int BLOCKS, bool ALIGNED>
__global__ void __launch_bounds__(WARPS *WARP) norm_fwd(struct kernel_norm_fwd a)
{
	int64_t row = (int64_t)blockIdx.x * WARPS + threadIdx.x / WARP;
	if (row >= a.rows)
		return;
	int columns = (int)a.columns;
	const T *x = static_cast<const T *>(a.x) + row * columns, *residual = static_cast<const T *>(a.residual) + row * columns;
	T *sums = static_cast<T *>(a.sum) + row * columns, *y = static_cast<T *>(a.y) + row * columns;
	uint64_t seed = a.dropout.threshold > 0 ? a.dropout.scalars->seed : 0;
	float v[BLOCKS][BLOCK], mean, rstd;

#pragma unroll
	for (int b = 0; b < BLOCKS; b++) {
		int first = norm_first(b);
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
		for (int i = 0; i < BLOCK; i++)
			v[b][i] = rounded<T>(v[b][i]); /* backward will know no other */
	}
	norm_statistics<BLOCKS>(v, columns, a.epsilon, &mean, &rstd);
#pragma unroll
	for (int b = 0; b < BLOCKS; b++) {
		int first = norm_first(b);
		if (first >= columns)
			continue;
		norm_scale<ALIGNED>(v[b], first, columns, mean, rstd, a.gamma, a.beta);
		store_block<ALIGNED>(y, first, columns, v[b]);
	}
	if (lane_index() == 0 && a.mean != nullptr) {
		a.mean[row] = mean;
		a.rstd[row] = rstd;
	}
}

/* ---- Backward ---- */

constexpr int BACKWARD_WARPS = 8;

/* The head's transform alone needs it: not worth its code in every unrolled loop. */
__device__ __attribute__((noinline)) float gelu_factor(enum activation activation, float x)
{
	return gelu_derivative(activation, x);
}

/* Sums of the block's warps, in their order, of block b of their rows: to parts[first ...]. */
template <int BLOCKS, bool ALIGNED> DEVICE void store_part(const float sums[BLOCKS][BLOCK], int columns, float *shared, float *part)
{
	int warp = (int)threadIdx.x / WARP;
	__syncthreads(); /* the quantity before has been read */
#pragma unroll
	for (int b = 0; b < BLOCKS; b++)
		if (norm_first(b) < columns)
			store_block<ALIGNED>(shared + warp * columns, norm_first(b), columns, sums[b]);
	__syncthreads();
	for (int j = (int)threadIdx.x; j < columns; j += BACKWARD_WARPS * WARP) {
		float sum = 0;
		for (int w = 0; w < BACKWARD_WARPS; w++)
			sum += shared[w * columns + j];
		part[j] = sum;
	}
}

/* A block has a part of the rows, its warps a row each at a time; column sums stay in registers until the part is done. */
template <typename T, int BLOCKS, bool ALIGNED>
__global__ void __launch_bounds__(BACKWARD_WARPS *WARP) norm_bwd(struct kernel_norm_bwd a)
{
	int columns = (int)a.columns, warp = (int)threadIdx.x / WARP;
	int64_t begin = part_begin(a.rows, gridDim.x, blockIdx.x), end = part_begin(a.rows, gridDim.x, (int64_t)blockIdx.x + 1);
	uint64_t seed = a.incoming.threshold > 0   ? a.incoming.scalars->seed
			: a.outgoing.threshold > 0 ? a.outgoing.scalars->seed
						   : 0;
	float dgamma[BLOCKS][BLOCK] = {}, dbeta[BLOCKS][BLOCK] = {}, dbias[BLOCKS][BLOCK] = {};

	for (int64_t row = begin + warp; row < end; row += BACKWARD_WARPS) {
		const T *dy = static_cast<const T *>(a.dy) + row * columns, *sums = static_cast<const T *>(a.sum) + row * columns;
		const T *pre = static_cast<const T *>(a.pre) + row * columns;
		T *dresidual = static_cast<T *>(a.dresidual) + row * columns, *dx = static_cast<T *>(a.dx) + row * columns;
		float mean = a.mean[row], rstd = a.rstd[row], sum_g = 0, sum_gn = 0;
		float g[BLOCKS][BLOCK], n[BLOCKS][BLOCK], other[BLOCK]; /* dy gamma; the normalised row */
#pragma unroll
		for (int b = 0; b < BLOCKS; b++) {
			int first = norm_first(b);
			if (first >= columns)
				continue;
			load_block<ALIGNED>(dy, first, columns, g[b]);
			load_block<ALIGNED>(sums, first, columns, n[b]);
			if (a.incoming.threshold > 0) {
				dropout_factors(a.incoming, seed, first, a.incoming.positions[row], a.incoming.samples[row], other);
#pragma unroll
				for (int i = 0; i < BLOCK; i++)
					g[b][i] *= other[i];
			}
			load_block<ALIGNED>(a.gamma, first, columns, other);
#pragma unroll
			for (int i = 0; i < BLOCK; i++) {
				n[b][i] = (n[b][i] - mean) * rstd;
				dgamma[b][i] += g[b][i] * n[b][i];
				dbeta[b][i] += g[b][i];
				g[b][i] *= other[i]; /* 0 beyond the row */
				sum_g += g[b][i];
				sum_gn += g[b][i] * n[b][i];
			}
		}
		float mean_g = warp_sum(sum_g) / (float)columns, mean_gn = warp_sum(sum_gn) / (float)columns;
#pragma unroll
		for (int b = 0; b < BLOCKS; b++) {
			int first = norm_first(b);
			if (first >= columns)
				continue;
#pragma unroll
			for (int i = 0; i < BLOCK; i++)
				g[b][i] = rstd * (g[b][i] - mean_g - n[b][i] * mean_gn);
			store_block<ALIGNED>(dresidual, first, columns, g[b]);
			if (a.dx != nullptr) {
				if (a.outgoing.threshold > 0) {
					dropout_factors(a.outgoing, seed, first, a.outgoing.positions[row],
							a.outgoing.samples[row], other);
#pragma unroll
					for (int i = 0; i < BLOCK; i++)
						g[b][i] *= other[i];
				}
				if (a.pre != nullptr) {
					load_block<ALIGNED>(pre, first, columns, other);
#pragma unroll
					for (int i = 0; i < BLOCK; i++)
						g[b][i] *= gelu_factor(a.pre_activation, other[i]);
				}
				store_block<ALIGNED>(dx, first, columns, g[b]);
			}
#pragma unroll
			for (int i = 0; i < BLOCK; i++)
				dbias[b][i] += g[b][i];
		}
	}

	float *shared = reinterpret_cast<float *>(shared_start()), *part = a.parts + (int64_t)blockIdx.x * 3 * columns;
	store_part<BLOCKS, ALIGNED>(dgamma, columns, shared, part);
	store_part<BLOCKS, ALIGNED>(dbeta, columns, shared, part + columns);
	if (a.sums_bias)
		store_part<BLOCKS, ALIGNED>(dbias, columns, shared, part + 2 * columns);
}

} // namespace

extern "C" cudaError_t kernel_norm_fwd(cudaStream_t stream, const struct kernel_norm_fwd *a)
{
	return for_dtype(a->dtype, [&](auto type) {
		return for_width(a->columns, [&](auto blocks, auto aligned) {
			return launch(norm_fwd<decltype(type), blocks.value, aligned.value != 0>, blocks_of(a->rows, WARPS), WARPS * WARP,
				      0, stream, *a);
		});
	});
}

extern "C" cudaError_t kernel_norm_bwd(cudaStream_t stream, const struct kernel_norm_bwd *a)
{
	size_t shared = BACKWARD_WARPS * (size_t)a->columns * sizeof(float);
	return for_dtype(a->dtype, [&](auto type) {
		return for_width(a->columns, [&](auto blocks, auto aligned) {
			auto kernel = norm_bwd<decltype(type), blocks.value, aligned.value != 0>;
			cudaError_t error = allow_shared(kernel, shared);
			if (error != cudaSuccess)
				return error;
			return launch(kernel, (unsigned)row_parts(a->rows), BACKWARD_WARPS * WARP, shared, stream, *a);
		});
	});
}
