/* A row of a layer normalization in the registers of a warp: lane l holds the blocks of eight columns l, l + 32, ..., BLOCKS
 * of them; columns beyond the row are 0. */
#ifndef BACKEND_CUDA_KERNELS_NORM_ROW_CUH
#define BACKEND_CUDA_KERNELS_NORM_ROW_CUH

#include "backend/cuda/kernels/device.cuh"

/* First column of this lane's block b. */
DEVICE int norm_first(int b)
{
	return (b * WARP + lane_index()) * BLOCK;
}

template <int BLOCKS, bool ALIGNED>
DEVICE void norm_statistics(const float v[BLOCKS][BLOCK], int columns, float epsilon, float *mean, float *rstd)
{
	float total = 0, squares = 0;
#pragma unroll
	for (int b = 0; b < BLOCKS; b++)
#pragma unroll
		for (int i = 0; i < BLOCK; i++)
			total += v[b][i];
	*mean = warp_sum(total) / (float)columns;
#pragma unroll
	for (int b = 0; b < BLOCKS; b++)
#pragma unroll
		for (int i = 0; i < BLOCK; i++)
			if (norm_first(b) + (ALIGNED ? 0 : i) < columns)
				squares += (v[b][i] - *mean) * (v[b][i] - *mean);
	*rstd = 1 / sqrtf(warp_sum(squares) / (float)columns + epsilon);
}

/* v = gamma (v - mean) rstd [+ beta], for one block of the row. */
DEVICE void norm_scale(float v[BLOCK], float mean, float rstd, const float gamma[BLOCK], const float beta[BLOCK])
{
#pragma unroll
	for (int i = 0; i < BLOCK; i++)
		v[i] = gamma[i] * ((v[i] - mean) * rstd) + beta[i];
}

template <bool ALIGNED>
DEVICE void norm_scale(float v[BLOCK], int first, int columns, float mean, float rstd, const float *gamma, const float *beta)
{
	float g[BLOCK], b[BLOCK] = {};
	load_block<ALIGNED>(gamma, first, columns, g);
	if (beta != nullptr)
		load_block<ALIGNED>(beta, first, columns, b);
	norm_scale(v, mean, rstd, g, b);
}

/* Calls body(BLOCKS, ALIGNED), two integral constants, for rows with this many columns, and returns its result. Unaligned
 * widths are not worth many kernels. */
template <int N> struct norm_constant {
	static constexpr int value = N;
};
template <typename F> static cudaError_t for_width(int64_t columns, F body)
{
	int64_t blocks = (columns + WARP * BLOCK - 1) / (WARP * BLOCK);
	if (columns % BLOCK != 0)
		return body(norm_constant<8>(), norm_constant<0>());
	return blocks <= 1   ? body(norm_constant<1>(), norm_constant<1>())
	       : blocks <= 2 ? body(norm_constant<2>(), norm_constant<1>())
	       : blocks <= 3 ? body(norm_constant<3>(), norm_constant<1>())
	       : blocks <= 4 ? body(norm_constant<4>(), norm_constant<1>())
			     : body(norm_constant<8>(), norm_constant<1>());
}

#endif
