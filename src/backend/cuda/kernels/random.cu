/* Normally distributed numbers, for measurements. */
#include "backend/cuda/kernels/device.cuh"

namespace
{

constexpr int THREADS = 256;

/* Box-Muller transform: four numbers per thread. */
template <typename T> __global__ void fill(int64_t elements, uint64_t seed, float deviation, T *out)
{
	int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
	struct philox block = philox4x32(seed, (uint32_t)i, (uint32_t)(i >> 32), 0, 0, 7);
	for (int pair = 0; pair < 2; pair++) {
		float u = ((float)(block.word[2 * pair] >> 8) + 1) * 0x1p-24f,
		      angle = (float)(block.word[2 * pair + 1] >> 8) * 0x1p-23f;
		float radius = deviation * sqrtf(-2 * logf(u));
		int64_t at = i * 4 + pair * 2;
		if (at < elements)
			out[at] = from_float<T>(radius * cosf(3.14159265f * angle));
		if (at + 1 < elements)
			out[at + 1] = from_float<T>(radius * sinf(3.14159265f * angle));
	}
}

} // namespace

extern "C" cudaError_t kernel_random(cudaStream_t stream, enum dtype dtype, int64_t elements, uint64_t seed, float deviation,
				     void *out)
{
	return for_dtype(dtype, [&](auto type) {
		using T = decltype(type);
		return launch(fill<T>, blocks_of(elements, THREADS * 4), THREADS, 0, stream, elements, seed, deviation,
			      static_cast<T *>(out));
	});
}
