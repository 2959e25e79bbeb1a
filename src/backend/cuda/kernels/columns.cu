/* The derivative of GELU, applied in place, with column sums in the same pass. */
#include "backend/cuda/kernels/device.cuh"

namespace
{

/* A block handles 256 columns, eight per lane, of one part of the rows, which its warps take in turn. */
constexpr int WARPS = 8, COLUMNS = WARP * BLOCK;

/* FORM may be none. */
template <typename T, bool ALIGNED, enum activation FORM>
__global__ void __launch_bounds__(WARPS *WARP) columns_pass(struct kernel_columns a)
{
	float *sums = reinterpret_cast<float *>(shared_start());
	int warp = (int)threadIdx.x / WARP, lane = lane_index(), columns = (int)a.columns;
	int first = (int)blockIdx.x * COLUMNS + lane * BLOCK;
	int64_t end = part_begin(a.rows, gridDim.y, (int64_t)blockIdx.y + 1);
	T *dx = static_cast<T *>(a.dx);
	const T *pre = static_cast<const T *>(a.pre);
	float sum[BLOCK] = {};
	int64_t row = first < columns ? part_begin(a.rows, gridDim.y, blockIdx.y) + warp : end;
	raw_block<T> next = {}, next_pre = {};
	if (row < end) {
		next = load_raw<ALIGNED>(dx + row * a.stride, first, columns);
		if (FORM != ACTIVATION_NONE)
			next_pre = load_raw<ALIGNED>(pre + row * a.stride, first, columns);
	}
	for (; row < end; row += WARPS) {
		float v[BLOCK], other[BLOCK];
		raw_block<T> own = next;
		unpack_block(next_pre, other);
		/* Load the next row while this one is processed. */
		if (int64_t ahead = (row + WARPS) * a.stride; row + WARPS < end) {
			next = load_raw<ALIGNED>(dx + ahead, first, columns);
			if (FORM != ACTIVATION_NONE)
				next_pre = load_raw<ALIGNED>(pre + ahead, first, columns);
		}
		unpack_block(own, v);
		if (FORM != ACTIVATION_NONE) {
#pragma unroll
			for (int i = 0; i < BLOCK; i++)
				v[i] *= gelu_derivative<T>(FORM, other[i]);
			own = pack_block<T>(v);
			store_raw<ALIGNED>(dx + row * a.stride, first, columns, own);
			unpack_block(own, v); /* sum exactly what was written */
		}
#pragma unroll
		for (int i = 0; i < BLOCK; i++)
			sum[i] += v[i];
	}
	if (a.parts == nullptr)
		return;
		/* (warp, element, lane): a lane's elements are stored apart, so that there are no bank conflicts. */
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
	return for_dtype(a->dtype, [&](auto type) {
		using T = decltype(type);
		/* Memory between the last column and the next row may be read but not written; sums over it are not used. */
		bool aligned = a->stride % BLOCK == 0 && (a->columns % BLOCK == 0 || a->pre == nullptr);
		auto pass = [&](auto form) {
			constexpr enum activation FORM = decltype(form)::value;
			return launch(aligned ? columns_pass<T, true, FORM> : columns_pass<T, false, FORM>, grid, WARPS * WARP,
				      shared, stream, *a);
		};
		return a->pre == nullptr ? pass(constant_activation<ACTIVATION_NONE>()) : for_activation(a->activation, pass);
	});
}
