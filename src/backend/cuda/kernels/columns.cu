/* The derivative of GELU and what is added, in place, with the sums of the columns on the way. */
#include "backend/cuda/kernels/device.cuh"

namespace
{

/* A block has 256 columns, eight a lane, of one part of the rows, which its warps take by turns. */
constexpr int WARPS = 8, COLUMNS = WARP * BLOCK;

/* GELU: 0 none, 1 erf, 2 tanh. */
template <typename T, bool ALIGNED, int GELU> __global__ void __launch_bounds__(WARPS *WARP) columns_pass(struct kernel_columns a)
{
	float *sums = reinterpret_cast<float *>(shared_start());
	int warp = (int)threadIdx.x / WARP, lane = lane_index(), columns = (int)a.columns;
	int first = (int)blockIdx.x * COLUMNS + lane * BLOCK;
	int64_t end = part_begin(a.rows, gridDim.y, (int64_t)blockIdx.y + 1);
	bool writes = GELU != 0 || a.add != nullptr;
	float sum[BLOCK] = {};
	for (int64_t row = part_begin(a.rows, gridDim.y, blockIdx.y) + warp; row < end && first < columns; row += WARPS) {
		T *dx = static_cast<T *>(a.dx) + row * a.stride;
		float v[BLOCK], other[BLOCK];
		load_block<ALIGNED>(dx, first, columns, v);
		if (GELU != 0) {
			load_block<ALIGNED>(static_cast<const T *>(a.pre) + row * a.stride, first, columns, other);
#pragma unroll
			for (int i = 0; i < BLOCK; i++)
				v[i] *= gelu_derivative(GELU == 1 ? ACTIVATION_GELU_ERF : ACTIVATION_GELU_TANH, other[i]);
		}
		if (a.add != nullptr) {
			load_block<ALIGNED>(static_cast<const T *>(a.add) + row * a.stride, first, columns, other);
#pragma unroll
			for (int i = 0; i < BLOCK; i++)
				v[i] += other[i];
		}
		if (writes)
			store_block<ALIGNED>(dx, first, columns, v);
#pragma unroll
		for (int i = 0; i < BLOCK; i++)
			sum[i] += rounded<T>(v[i]);
	}
	if (a.parts == nullptr)
		return;
	/* (warp, element, lane): neighbours in a lane lie apart, so that no two lanes want the same bank. */
#pragma unroll
	for (int i = 0; i < BLOCK; i++)
		sums[(warp * BLOCK + i) * WARP + lane] = sum[i];
	__syncthreads();
	int element = (int)threadIdx.x / WARP; /* WARPS == BLOCK */
	float total = 0;
	for (int w = 0; w < WARPS; w++)
		total += sums[(w * BLOCK + element) * WARP + lane];
	int column = (int)blockIdx.x * COLUMNS + lane * BLOCK + element;
	if (column < columns)
		a.parts[(int64_t)blockIdx.y * columns + column] = total;
}
static_assert(WARPS == BLOCK, "a warp an element");

} // namespace

extern "C" cudaError_t kernel_columns(cudaStream_t stream, const struct kernel_columns *call)
{
	struct kernel_columns own = *call, *a = &own;
	if (a->stride == 0)
		a->stride = a->columns;
	dim3 grid(blocks_of(a->columns, COLUMNS), (unsigned)a->part_count);
	size_t shared = WARPS * COLUMNS * sizeof(float);
	int gelu_kind = a->pre == nullptr ? 0 : a->activation == ACTIVATION_GELU_ERF ? 1 : 2;
	return for_dtype(a->dtype, [&](auto type) {
		using T = decltype(type);
		bool aligned = a->columns % BLOCK == 0 && a->stride % BLOCK == 0;
		auto kernel = gelu_kind == 0   ? (aligned ? columns_pass<T, true, 0> : columns_pass<T, false, 0>)
			      : gelu_kind == 1 ? (aligned ? columns_pass<T, true, 1> : columns_pass<T, false, 1>)
					       : (aligned ? columns_pass<T, true, 2> : columns_pass<T, false, 2>);
		return launch(kernel, grid, WARPS * WARP, shared, stream, *a);
	});
}
