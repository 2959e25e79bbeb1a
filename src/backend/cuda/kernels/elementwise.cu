/* Activation functions, element by element, in blocks of eight. */
#include "backend/cuda/kernels/device.cuh"

namespace
{

constexpr int THREADS = 256;

enum function { TANH, TANH_BACKWARD, GELU_ERF, GELU_TANH };

template <function F, typename T> DEVICE float apply(float x, float other)
{
	switch (F) {
	case TANH: return tanhf(x);
	case TANH_BACKWARD: return other * (1 - x * x);
	case GELU_ERF: return gelu<T>(ACTIVATION_GELU_ERF, x);
	case GELU_TANH: return gelu<T>(ACTIVATION_GELU_TANH, x);
	}
	return x;
}

/* y = f(x), or with TANH_BACKWARD y = f(x, y). */
template <function F, typename T> __global__ void elementwise(int64_t elements, const T *x, T *y)
{
	int64_t first = ((int64_t)blockIdx.x * THREADS + threadIdx.x) * BLOCK;
	float in[BLOCK] = {}, other[BLOCK] = {};
	bool whole = first + BLOCK <= elements;
	int left = whole ? BLOCK : first < elements ? (int)(elements - first) : 0;
	if (whole)
		load_block<true>(x + first, 0, left, in);
	else
		load_block<false>(x + first, 0, left, in);
	if (F == TANH_BACKWARD) {
		if (whole)
			load_block<true>(y + first, 0, left, other);
		else
			load_block<false>(y + first, 0, left, other);
	}
#pragma unroll
	for (int i = 0; i < BLOCK; i++)
		in[i] = apply<F, T>(in[i], other[i]);
	if (whole)
		store_block<true>(y + first, 0, left, in);
	else
		store_block<false>(y + first, 0, left, in);
}

template <function F> cudaError_t run(cudaStream_t stream, enum dtype dtype, int64_t elements, const void *x, void *y)
{
	return for_dtype(dtype, [&](auto type) {
		using T = decltype(type);
		return launch(elementwise<F, T>, blocks_of(elements, THREADS * BLOCK), THREADS, 0, stream, elements,
			      static_cast<const T *>(x), static_cast<T *>(y));
	});
}

} // namespace

extern "C" cudaError_t kernel_tanh(cudaStream_t stream, enum dtype dtype, int64_t elements, void *y)
{
	return run<TANH>(stream, dtype, elements, y, y);
}

extern "C" cudaError_t kernel_tanh_backward(cudaStream_t stream, enum dtype dtype, int64_t elements, const void *y, void *dy)
{
	return run<TANH_BACKWARD>(stream, dtype, elements, y, dy);
}

extern "C" cudaError_t kernel_gelu(cudaStream_t stream, enum dtype dtype, enum activation activation, int64_t elements,
				   const void *x, void *y)
{
	return activation == ACTIVATION_GELU_ERF ? run<GELU_ERF>(stream, dtype, elements, x, y)
						 : run<GELU_TANH>(stream, dtype, elements, x, y);
}
