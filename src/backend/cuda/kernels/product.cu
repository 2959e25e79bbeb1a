/* Products of matrices whose rows are not aligned, or that are too small to matter: one thread per element of a tile of y. */
#include "backend/cuda/kernels/device.cuh"

namespace
{

constexpr int TILE = 16;

template <typename A, typename B, typename Y> __global__ void product(struct kernel_product p)
{
	float *a = reinterpret_cast<float *>(shared_start()), *b = a + TILE * (TILE + 1);
	const A *pa = static_cast<const A *>(p.a);
	const B *pb = static_cast<const B *>(p.b);
	int x = (int)threadIdx.x % TILE, y = (int)threadIdx.x / TILE;
	int64_t row = (int64_t)blockIdx.y * TILE + y, column = (int64_t)blockIdx.x * TILE + x;
	float sum = 0;
	for (int64_t first = 0; first < p.depth; first += TILE) {
		a[y * (TILE + 1) + x] =
			row < p.rows && first + x < p.depth ? to_float(pa[row * p.a_row + (first + x) * p.a_step]) : 0;
		b[y * (TILE + 1) + x] = column < p.columns && first + y < p.depth
						? to_float(pb[(first + y) * p.b_step + column * p.b_column])
						: 0;
		__syncthreads();
		for (int k = 0; k < TILE; k++)
			sum += a[y * (TILE + 1) + k] * b[k * (TILE + 1) + x];
		__syncthreads();
	}
	if (row >= p.rows || column >= p.columns)
		return;
	int64_t at = row * p.y_stride + column;
	if (p.a_inverse != nullptr && p.depth > 0)
		sum *= *p.a_inverse * *p.b_inverse;
	if (p.bias != nullptr)
		sum += to_float(static_cast<const Y *>(p.bias)[column]);
	if (p.pre != nullptr)
		sum *= gelu_derivative<Y>(p.activation, to_float(static_cast<const Y *>(p.pre)[at]));
	if (p.add != nullptr)
		sum += to_float(static_cast<const Y *>(p.add)[at]);
	static_cast<Y *>(p.y)[at] = from_float<Y>(sum);
}

/* The kernel for these types, or NULL. */
void (*kernel_of(const struct kernel_product *p))(struct kernel_product)
{
	bool wide = p->output == DTYPE_F32;
	switch (p->inputs) {
	case DTYPE_F32: return product<float, float, float>;
	case DTYPE_BF16: return wide ? product<bf16, bf16, float> : product<bf16, bf16, bf16>;
	case DTYPE_F16: return wide ? product<f16, f16, float> : product<f16, f16, f16>;
	case DTYPE_E4M3:
		if (p->a_is_gradient)
			return wide ? product<e5m2, e4m3, float> : product<e5m2, e4m3, bf16>;
		return wide ? product<e4m3, e4m3, float> : product<e4m3, e4m3, bf16>;
	default: return nullptr;
	}
}

} // namespace

extern "C" cudaError_t kernel_product(cudaStream_t stream, const struct kernel_product *p)
{
	/* More rows than a grid allows are divided among several launches. */
	constexpr int64_t GRID_ROWS = 32768 * TILE;
	cudaError_t error = cudaSuccess;
	for (int64_t first = 0; first < p->rows && error == cudaSuccess; first += GRID_ROWS) {
		struct kernel_product part = *p;
		part.rows = p->rows - first < GRID_ROWS ? p->rows - first : GRID_ROWS;
		size_t in = dtype_bytes(p->inputs), out = dtype_bytes(p->output);
		part.a = static_cast<const char *>(p->a) + (size_t)(first * p->a_row) * in;
		part.y = static_cast<char *>(p->y) + (size_t)(first * p->y_stride) * out;
		if (p->pre != nullptr)
			part.pre = static_cast<const char *>(p->pre) + (size_t)(first * p->y_stride) * out;
		if (p->add != nullptr)
			part.add = static_cast<const char *>(p->add) + (size_t)(first * p->y_stride) * out;
		dim3 grid(blocks_of(part.columns, TILE), blocks_of(part.rows, TILE));
		size_t shared = 2 * TILE * (TILE + 1) * sizeof(float);
		auto kernel = kernel_of(p);
		error = kernel == nullptr ? cudaErrorInvalidValue : launch(kernel, grid, TILE * TILE, shared, stream, part);
	}
	return error;
}
