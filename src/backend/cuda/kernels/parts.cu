/* Partial sums over rows, added in their order. */
#include "backend/cuda/kernels/device.cuh"

namespace
{

/* A block 32 columns: its warps take every WARPS-th part, their sums are then added in order of the warps. */
constexpr int WARPS = 8;

__global__ void add_parts(const float *parts, int64_t part_count, int64_t stride, int64_t columns, float *out, bool overwrite)
{
	float *sums = reinterpret_cast<float *>(shared_start());
	int warp = (int)threadIdx.x / WARP, lane = lane_index();
	int64_t column = (int64_t)blockIdx.x * WARP + lane;
	float sum = 0;
	for (int64_t i = warp; column < columns && i < part_count; i += WARPS)
		sum += parts[i * stride + column];
	sums[warp * WARP + lane] = sum;
	__syncthreads();
	if (warp != 0 || column >= columns)
		return;
	sum = overwrite ? 0 : out[column];
	float total = 0;
	for (int i = 0; i < WARPS; i++)
		total += sums[i * WARP + lane];
	out[column] = sum + total;
}

} // namespace

extern "C" cudaError_t kernel_add_parts(cudaStream_t stream, const float *parts, int64_t part_count, int64_t stride,
					int64_t columns, float *out, bool overwrite)
{
	return launch(add_parts, blocks_of(columns, WARP), WARPS * WARP, WARPS * WARP * sizeof(float), stream, parts, part_count,
		      stride, columns, out, overwrite);
}
