/* Activation functions and rotations, element by element. */
#include "backend/cuda/kernels/device.cuh"

namespace
{

constexpr int THREADS = 256;

enum function { TANH, TANH_BACKWARD, GELU };

template <function F, typename T, enum activation FORM> DEVICE float apply(float x, float other)
{
	switch (F) {
	case TANH: return tanhf(x);
	case TANH_BACKWARD: return other * (1 - x * x);
	case GELU: return gelu<T>(FORM, x);
	}
	return x;
}

/* y = f(x), or with TANH_BACKWARD y = f(x, y). */
template <function F, typename T, enum activation FORM> __global__ void elementwise(int64_t elements, const T *x, T *y)
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
		in[i] = apply<F, T, FORM>(in[i], other[i]);
	if (whole)
		store_block<true>(y + first, 0, left, in);
	else
		store_block<false>(y + first, 0, left, in);
}

template <function F, enum activation FORM = ACTIVATION_NONE>
cudaError_t run(cudaStream_t stream, enum dtype dtype, int64_t elements, const void *x, void *y)
{
	return for_dtype(dtype, [&](auto type) {
		using T = decltype(type);
		return launch(elementwise<F, T, FORM>, blocks_of(elements, THREADS * BLOCK), THREADS, 0, stream, elements,
			      static_cast<const T *>(x), static_cast<T *>(y));
	});
}

/* One thread per eight columns of y. */
template <typename T, bool ALIGNED> __global__ void gated(struct kernel_gated a)
{
	int blocks = (a.columns + BLOCK - 1) / BLOCK;
	int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x, row = i / blocks;
	int first = (int)(i % blocks) * BLOCK;
	if (row >= a.rows)
		return;
	const T *pre = static_cast<const T *>(a.pre) + row * 2 * a.columns;
	float x[BLOCK], gate[BLOCK], v[BLOCK];
	load_block<ALIGNED>(pre, first, a.columns, x);
	load_block<ALIGNED>(pre + a.columns, first, a.columns, gate);
	if (a.dpre == nullptr) {
#pragma unroll
		for (int k = 0; k < BLOCK; k++)
			v[k] = gelu<T>(a.activation, x[k]) * gate[k];
	} else {
		load_block<ALIGNED>(static_cast<const T *>(a.dy) + row * a.columns, first, a.columns, v);
	}
	if (a.dropout.threshold > 0)
		drop_block(a.dropout, a.dropout.scalars->seed, first, a.dropout.positions[row], a.dropout.samples[row], v);
	if (a.dpre == nullptr) {
		store_block<ALIGNED>(static_cast<T *>(a.y) + row * a.columns, first, a.columns, v);
		return;
	}
	T *dpre = static_cast<T *>(a.dpre) + row * 2 * a.columns;
#pragma unroll
	for (int k = 0; k < BLOCK; k++) {
		gate[k] *= v[k] * gelu_derivative<T>(a.activation, x[k]);
		v[k] *= gelu<T>(a.activation, x[k]);
	}
	store_block<ALIGNED>(dpre, first, a.columns, gate);
	store_block<ALIGNED>(dpre + a.columns, first, a.columns, v);
}

/* One thread per row and angle, for all heads. */
template <typename T> __global__ void rotary(struct kernel_rotary a)
{
	int half = a.size / 2;
	int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x, row = i / half;
	int column = (int)(i % half);
	if (row >= a.rows)
		return;
	float angle = (float)a.positions[row] * a.frequencies[column], cosine = cosf(angle), sine = sinf(angle);
	sine = a.back ? -sine : sine;
	T *x = static_cast<T *>(a.qkv) + row * a.stride + column;
	for (int head = 0; head < a.heads; head++, x += a.size) {
		float low = to_float(x[0]), high = to_float(x[half]);
		x[0] = from_float<T>(low * cosine - high * sine);
		x[half] = from_float<T>(high * cosine + low * sine);
	}
}

} // namespace

extern "C" cudaError_t kernel_gated(cudaStream_t stream, const struct kernel_gated *a)
{
	return for_dtype(a->dtype, [&](auto type) {
		using T = decltype(type);
		int64_t blocks = (a->columns + BLOCK - 1) / BLOCK;
		return launch(a->columns % BLOCK == 0 ? gated<T, true> : gated<T, false>, blocks_of(a->rows * blocks, THREADS),
			      THREADS, 0, stream, *a);
	});
}

extern "C" cudaError_t kernel_rotary(cudaStream_t stream, const struct kernel_rotary *a)
{
	return for_dtype(a->dtype, [&](auto type) {
		return launch(rotary<decltype(type)>, blocks_of(a->rows * (a->size / 2), THREADS), THREADS, 0, stream, *a);
	});
}

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
	return for_activation(activation,
			      [&](auto form) { return run<GELU, decltype(form)::value>(stream, dtype, elements, x, y); });
}
