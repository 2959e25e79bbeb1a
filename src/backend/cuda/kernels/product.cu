/* Products of matrices whose rows are not aligned, or that are too small to matter: one thread per element of a tile of y, or a
 * warp per row where y has few columns. */
#include "backend/cuda/kernels/device.cuh"

namespace
{

constexpr int TILE = 16, NARROW = 8, WARPS = TILE * TILE / WARP;

/* Writes an element of y, given the sum of products. */
template <typename Y> DEVICE void put(const struct kernel_product &p, int64_t row, int64_t column, float sum)
{
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
	if (row < p.rows && column < p.columns)
		put<Y>(p, row, column, sum);
}

/* The outputs of a classifier: up to NARROW columns, and rows of a and columns of b that are contiguous. A tile would spend most
 * of its time waiting for the next piece of them; a warp has its whole row under way at once. */
template <typename A, typename B, typename Y> __global__ void narrow_product(struct kernel_product p)
{
	int64_t row = (int64_t)blockIdx.x * WARPS + threadIdx.x / WARP;
	int lane = (int)threadIdx.x % WARP;
	if (row >= p.rows)
		return;
	const A *a = static_cast<const A *>(p.a) + row * p.a_row;
	const B *b = static_cast<const B *>(p.b);
	float sums[NARROW] = {};
#pragma unroll 4
	for (int64_t k = lane; k < p.depth; k += WARP) {
		float x = to_float(a[k]);
#pragma unroll
		for (int column = 0; column < NARROW; column++)
			if (column < p.columns)
				sums[column] += x * to_float(b[column * p.b_column + k]);
	}
#pragma unroll
	for (int column = 0; column < NARROW; column++) {
		if (column >= p.columns)
			break;
		float sum = warp_sum(sums[column]);
		if (lane == column)
			put<Y>(p, row, column, sum);
	}
}

bool is_narrow(const struct kernel_product *p)
{
	return p->columns <= NARROW && p->a_step == 1 && p->b_step == 1;
}

template <typename A, typename Y> auto kernel_for(const struct kernel_product *p)
{
	return is_narrow(p) ? narrow_product<A, A, Y> : product<A, A, Y>;
}

/* The kernel for these types, or NULL. Nothing in FP8 is narrow. */
void (*kernel_of(const struct kernel_product *p))(struct kernel_product)
{
	bool wide = p->output == DTYPE_F32;
	switch (p->inputs) {
	case DTYPE_F32: return kernel_for<float, float>(p);
	case DTYPE_BF16: return wide ? kernel_for<bf16, float>(p) : kernel_for<bf16, bf16>(p);
	case DTYPE_F16: return wide ? kernel_for<f16, float>(p) : kernel_for<f16, f16>(p);
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
		bool narrow = is_narrow(p) && p->inputs != DTYPE_E4M3;
		dim3 grid = narrow ? dim3(blocks_of(part.rows, WARPS))
				   : dim3(blocks_of(part.columns, TILE), blocks_of(part.rows, TILE));
		size_t shared = narrow ? 0 : 2 * TILE * (TILE + 1) * sizeof(float);
		auto kernel = kernel_of(p);
		error = kernel == nullptr ? cudaErrorInvalidValue : launch(kernel, grid, TILE * TILE, shared, stream, part);
	}
	return error;
}
