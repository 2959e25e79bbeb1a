/* Adds partial sums over rows, in order. */
#include "backend/cuda/kernels/device.cuh"

namespace
{

/* One block per 32 columns: each warp adds every WARPS-th part, and the warps' sums are then added in warp order. Outputs
 * along y. */
constexpr int WARPS = 16;

__global__ void __launch_bounds__(WARPS *WARP) add_parts(struct kernel_add_parts a)
{
	float *sums = reinterpret_cast<float *>(shared_start());
	float *out = blockIdx.y == 0 ? a.out[0] : blockIdx.y == 1 ? a.out[1] : a.out[2]; /* an index would copy the array */
	int warp = (int)threadIdx.x / WARP, lane = lane_index();
	int64_t column = (int64_t)blockIdx.x * WARP + lane;
	if (out == nullptr)
		return;
	const float *parts = a.parts + blockIdx.y * a.columns + column;
	float sum = 0;
	if (column < a.columns) {
#pragma unroll 8
		for (int64_t i = warp; i < a.part_count; i += WARPS)
			sum += parts[i * a.stride];
	}
	sums[warp * WARP + lane] = sum;
	__syncthreads();
	if (warp != 0 || column >= a.columns)
		return;
	sum = a.overwrite ? 0 : out[column];
	float total = 0;
	for (int i = 0; i < WARPS; i++)
		total += sums[i * WARP + lane];
	out[column] = sum + total;
}

} // namespace

extern "C" cudaError_t kernel_add_parts(cudaStream_t stream, const struct kernel_add_parts *a)
{
	unsigned outputs = PART_OUTPUTS;
	while (outputs > 0 && a->out[outputs - 1] == nullptr)
		outputs--;
	return launch(add_parts, dim3(blocks_of(a->columns, WARP), outputs), WARPS * WARP, WARPS * WARP * sizeof(float), stream,
		      *a);
}
