/* Copies of weights in the type of products. */
#include "backend/cuda/kernels/device.cuh"

namespace
{

constexpr int THREADS = 256, GRID = 1024;

/* A grid-stride loop over all elements; both sides are aligned to 16 bytes. */
template <typename F, typename T> DEVICE void convert(const F *from, T *to, int64_t elements)
{
	for (int64_t first = ((int64_t)blockIdx.x * THREADS + threadIdx.x) * BLOCK; first < elements;
	     first += (int64_t)gridDim.x * THREADS * BLOCK) {
		float values[BLOCK];
		if (first + BLOCK <= elements) {
			load_vector(from + first, values);
			store_vector(to + first, values);
		} else {
			for (int64_t i = first; i < elements; i++)
				to[i] = from_float<T>(to_float(from[i]));
		}
	}
}

/* blockIdx.y is the index of the range. */
template <typename T> __global__ void cast(struct kernel_cast a)
{
	const auto &range = a.range[blockIdx.y];
	convert(range.from, static_cast<T *>(range.to), range.elements);
}

template <typename T> __global__ void widen(const T *from, float *to, int64_t elements)
{
	convert(from, to, elements);
}

} // namespace

extern "C" cudaError_t kernel_cast(cudaStream_t stream, const struct kernel_cast *a)
{
	int64_t most = 0;
	for (int i = 0; i < a->count; i++)
		most = a->range[i].elements > most ? a->range[i].elements : most;
	unsigned grid = blocks_of(most, THREADS * BLOCK);
	dim3 blocks(grid < GRID ? grid : GRID, (unsigned)a->count);
	if (a->dtype == DTYPE_BF16)
		return launch(cast<bf16>, blocks, THREADS, 0, stream, *a);
	if (a->dtype == DTYPE_F16)
		return launch(cast<f16>, blocks, THREADS, 0, stream, *a);
	return a->count == 0 ? cudaSuccess : cudaErrorInvalidValue;
}

extern "C" cudaError_t kernel_widen(cudaStream_t stream, enum dtype dtype, const void *from, float *to, int64_t elements)
{
	unsigned grid = blocks_of(elements, THREADS * BLOCK);
	dim3 blocks(grid < GRID ? grid : GRID);
	if (dtype == DTYPE_BF16)
		return launch(widen<bf16>, blocks, THREADS, 0, stream, static_cast<const bf16 *>(from), to, elements);
	if (dtype == DTYPE_F16)
		return launch(widen<f16>, blocks, THREADS, 0, stream, static_cast<const f16 *>(from), to, elements);
	return cudaErrorInvalidValue;
}
