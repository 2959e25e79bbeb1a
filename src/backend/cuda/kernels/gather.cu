/* Gathers rows, and adds their gradients back. */
#include "backend/cuda/kernels/device.cuh"

namespace
{

constexpr int THREADS = 256;

/* One thread per block of eight columns. */
template <typename T, bool ALIGNED> __global__ void gather(const T *x, const int32_t *rows, int64_t count, int columns, T *y)
{
	int blocks = (columns + BLOCK - 1) / BLOCK;
	int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
	if (i >= count * blocks)
		return;
	int64_t row = i / blocks;
	int first = (int)(i % blocks) * BLOCK;
	float values[BLOCK];
	load_block<ALIGNED>(x + rows[row] * (int64_t)columns, first, columns, values);
	store_block<ALIGNED>(y + row * columns, first, columns, values);
}

/* Rows are distinct, so no two threads update the same element. */
template <typename T, bool ALIGNED>
__global__ void scatter_add(const T *dy, const int32_t *rows, int64_t count, int columns, T *dx)
{
	int blocks = (columns + BLOCK - 1) / BLOCK;
	int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
	if (i >= count * blocks)
		return;
	int64_t row = i / blocks;
	int first = (int)(i % blocks) * BLOCK;
	T *to = dx + (rows == nullptr ? row : rows[row]) * columns;
	float values[BLOCK], before[BLOCK];
	load_block<ALIGNED>(dy + row * columns, first, columns, values);
	load_block<ALIGNED>(to, first, columns, before);
#pragma unroll
	for (int c = 0; c < BLOCK; c++)
		values[c] += before[c];
	store_block<ALIGNED>(to, first, columns, values);
}

unsigned grid(int64_t count, int64_t columns)
{
	return blocks_of(count * ((columns + BLOCK - 1) / BLOCK), THREADS);
}

} // namespace

extern "C" cudaError_t kernel_gather(cudaStream_t stream, enum dtype dtype, const void *x, const int32_t *rows, int64_t count,
				     int64_t columns, void *y)
{
	return for_dtype(dtype, [&](auto type) {
		using T = decltype(type);
		auto kernel = columns % BLOCK == 0 ? gather<T, true> : gather<T, false>;
		return launch(kernel, grid(count, columns), THREADS, 0, stream, static_cast<const T *>(x), rows, count,
			      (int)columns, static_cast<T *>(y));
	});
}

extern "C" cudaError_t kernel_scatter_add(cudaStream_t stream, enum dtype dtype, const void *dy, const int32_t *rows,
					  int64_t count, int64_t columns, void *dx)
{
	return for_dtype(dtype, [&](auto type) {
		using T = decltype(type);
		auto kernel = columns % BLOCK == 0 ? scatter_add<T, true> : scatter_add<T, false>;
		return launch(kernel, grid(count, columns), THREADS, 0, stream, static_cast<const T *>(dy), rows, count,
			      (int)columns, static_cast<T *>(dx));
	});
}
